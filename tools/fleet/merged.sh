# shellcheck shell=sh
# Tests of the results of many machines: merged they are the records of one run, and shards that are not complete are
# rejected. parallel.sh and slurm.sh source this file after tap.sh; $program is posenc.

# Prints the conformance records of a file, sorted.
check_records() { # FILE
    grep '^{"t": *"check"' "$1" | sort
}

# Tests that a file has the conformance records of one run with these options.
test_merged() { # NAME FILE OPTIONS...
    what=$1 file=$2
    shift 2
    "$program" verify "$@" --out jsonl:one.jsonl >one.log 2>&1 || [ $? = 1 ] || cat one.log
    check_records one.jsonl >one.records
    check_records "$file" >all.records
    if [ -s one.records ] && cmp -s one.records all.records; then
        pass "$what: the $(wc -l <one.records) conformance records of one run"
    else
        fail "$what: the conformance records of one run" "$(wc -l <all.records) of $(wc -l <one.records); $(diff one.records all.records | head -n 4 | cut -c 1-160)"
    fi
}

# Tests that posenc results merge ends with a status and a message, and writes nothing.
test_rejected() { # NAME STATUS PATTERN FILES...
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

# Tests that a shard that is missing, doubled or damaged is rejected by name.
test_broken_shards() { # SHARD-FILES...
    first=$1
    shift
    test_rejected 'a missing shard is rejected by name' 6 'missing: shard 0 of [0-9]+ of verify' "$@"
    cp "$first" doubled.jsonl
    test_rejected 'a doubled shard is rejected by name' 2 'doubled.jsonl' "$first" "$@" "$scratch/doubled.jsonl"
    # A full disk or a kill cuts a file in the middle of a record.
    head -c $(($(wc -c <"$first") * 2 / 3)) "$first" >damaged.jsonl
    test_rejected 'a shard that ends early is rejected by name' 2 'damaged.jsonl: is partial' "$scratch/damaged.jsonl" "$@"
    sed '$d' "$first" >unended.jsonl
    test_rejected 'and one without its last line' 2 'unended.jsonl: is partial' "$scratch/unended.jsonl" "$@"
}
