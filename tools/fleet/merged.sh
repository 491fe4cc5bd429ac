# shellcheck shell=sh
# What the results of a fleet are held to: the records of one run, and refusals of shards that are not whole. Sourced by
# parallel.sh and slurm.sh, with tap.sh; $program is posenc.

# records FILE: its conformance records, sorted.
records() {
    grep '^{"t": *"check"' "$1" | sort
}

# same_as_one NAME FILE OPTIONS...: the file has the conformance records of one run with these options.
same_as_one() {
    what=$1 file=$2
    shift 2
    "$program" verify "$@" --out jsonl:one.jsonl >one.log 2>&1 || [ $? = 1 ] || cat one.log
    records one.jsonl >one.records
    records "$file" >all.records
    if [ -s one.records ] && cmp -s one.records all.records; then
        pass "$what: the $(wc -l <one.records) conformance records of one run"
    else
        fail "$what: the conformance records of one run" "$(wc -l <all.records) of $(wc -l <one.records); $(diff one.records all.records | head -n 4 | cut -c 1-160)"
    fi
}

# refused NAME STATUS PATTERN FILES...: posenc results merge ends so, says so, and writes nothing.
refused() {
    what=$1 wanted=$2 pattern=$3
    shift 3
    run "$program" results merge "$@" -o merged.jsonl
    if [ $status != "$wanted" ] || ! grep -Eq -e "$pattern" stderr; then
        fail "$what" "exit $status instead of $wanted, or not said: $pattern"
    elif [ -e work/merged.jsonl ]; then
        fail "$what" 'a file was written'
    else
        pass "$what"
    fi
    rm -f work/merged.jsonl
}

# refuses_broken SHARD-FILES...: one that is missing, doubled or damaged is refused by name.
refuses_broken() {
    first=$1
    shift
    refused 'a missing shard is refused by name' 6 'missing: shard 0 of [0-9]+ of verify' "$@"
    cp "$first" doubled.jsonl
    refused 'a doubled shard is refused by name' 2 'doubled.jsonl' "$first" "$@" "$scratch/doubled.jsonl"
    # In the middle of a record, as a full disk or a kill leaves it.
    head -c $(($(wc -c <"$first") * 2 / 3)) "$first" >damaged.jsonl
    refused 'a shard that ends early is refused by name' 2 'damaged.jsonl: is partial' "$scratch/damaged.jsonl" "$@"
    # Whole lines, and the last one missing.
    sed '$d' "$first" >unended.jsonl
    refused 'and one without its last line' 2 'unended.jsonl: is partial' "$scratch/unended.jsonl" "$@"
}
