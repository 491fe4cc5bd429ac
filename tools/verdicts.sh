# shellcheck shell=sh
# ./run verdicts [COMPARISONS [PART...]]: checks verdicts of posenc compare. It compares builds of which the answer is
# known, 200 times unless told otherwise, and prints the table of docs/verdicts.md. That takes hours, in which nothing else
# should run. Everything is built in build/verdicts; all.jsonl there has every record. Sourced by run.
#
#     same       two plug-ins that do the same, alone and beside a noisy neighbour: nothing is slower or faster
#     l2         one is slowed by 5 % in the L2 cache: slower, in 9 of 10
#     dram       one is slowed by 10 % in memory, with a longer time limit: slower, in 9 of 10
#     relinked   the library, and the same objects with other alignment: nothing is slower
#
# bench/tests/slowed.c is a plug-in with a delay, which is counted in steps of work. A first comparison measures the steps
# that a share of the time takes.
verdicts_parts='same l2 dram relinked'

verdicts() { # [COMPARISONS [PART...]]
    verdicts_n=${1:-200} verdicts_dir=$PWD/build/verdicts
    [ $# = 0 ] || shift
    mkdir -p "$verdicts_dir"
    build || return 1
    echo '| comparison | rows | slower | faster | same | unclear | identical code | seconds each |'
    echo '|---|---:|---:|---:|---:|---:|---:|---:|'
    # shellcheck disable=SC2048  # a list of words
    for part in ${*:-$verdicts_parts}; do
        case $part in
        same) verdicts_same ;;
        l2) verdicts_slowed 'slowed by 5 % in L2' 0.05 1000 rope_half/f32/given/l2 20 20 ;;
        dram) verdicts_slowed 'slowed by 10 % in memory' 0.10 2000000 rope_half/f32/given/dram 60 90 ;;
        relinked) verdicts_relinked ;;
        *) reject "verdicts has no part $part; its parts: $verdicts_parts" ;;
        esac || return 1
    done
    echo
    date -u +%Y-%m-%d
    sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1
}

verdicts_same() {
    verdicts_plugin same1 0 1 && verdicts_plugin same2 0 2 || return 1
    verdicts_row 'the same, in L2' "$verdicts_n" same1.so same2.so --case 'rope_half/f32/given/l2' --time-limit 20 || return 1
    verdicts_neighbour &
    neighbour=$!
    verdicts_row 'the same, in L2, beside a noisy neighbour' "$verdicts_n" same1.so same2.so \
        --case 'rope_half/f32/given/l2' --time-limit 20
    status=$?
    kill $neighbour
    wait $neighbour 2>/dev/null
    return $status
}

# Links the objects of the library once more, behind a function that takes 40 bytes of code, which moves all that follows.
verdicts_relinked() {
    echo 'void pad(void); void pad(void) { __asm__ volatile(".skip 40, 0x90"); }' >"$verdicts_dir/pad.c"
    ${CC:-cc} -O2 -fPIC -c "$verdicts_dir/pad.c" -o "$verdicts_dir/pad.o" || return 1
    library=$(cd build && find impl -maxdepth 1 -type f -name 'libposenc.so.*.*.*' | head -n 1)
    ninja -C build -t commands "$library" | tail -n 1 |
        sed "s,-o $library,-o $verdicts_dir/relinked.so $verdicts_dir/pad.o," >"$verdicts_dir/link.sh"
    (cd build && sh "$verdicts_dir/link.sh") && cp "build/$library" "$verdicts_dir/linked.so" &&
        verdicts_row 'relinked with other alignment, in L2' $(((verdicts_n + 9) / 10)) linked.so relinked.so \
            --kernel rope_half --case rope_half/f32/given/l2 --time-limit 60
}

# Slows a plug-in by a share of the time of a case, from the ratio that a probe of some steps gives, and compares it.
verdicts_slowed() { # LABEL SHARE PROBE-STEPS CASE PROBE-SECONDS SECONDS
    verdicts_plugin base 0 1 && verdicts_plugin slow "$3" 1 &&
        verdicts_compare base.so slow.so --case "$4" --time-limit "$5" || return 1
    ratio=$(grep '"t":"pair"' "$verdicts_dir/last.jsonl" | sed 's/.*"ratio":\([0-9.e-]*\).*/\1/')
    steps=$(awk -v share="$2" -v probe="$3" -v ratio="$ratio" \
        'BEGIN { print (ratio > 1 ? int(probe * share / (ratio - 1)) : 0) }')
    [ "$steps" -gt 0 ] || {
        say "verdicts: $3 steps gave a ratio of $ratio in $4"
        return 1
    }
    verdicts_plugin slow "$steps" 1 &&
        verdicts_row "$1" $(((verdicts_n + 9) / 10)) base.so slow.so --case "$4" --time-limit "$6"
}

verdicts_plugin() { # NAME STEPS TAG
    ${CC:-cc} -std=c11 -O3 -shared -fPIC "-DSLOWED_STEPS=$2" "-DSLOWED_TAG=$3" -I impl/include \
        bench/tests/slowed.c -o "$verdicts_dir/$1.so"
}

# Compares two builds once; the records are in last.jsonl.
verdicts_compare() { # BASE HEAD OPTION...
    base=$1 head=$2
    shift 2
    "${POSENC:-build/posenc}" compare "$verdicts_dir/$base" "$verdicts_dir/$head" "$@" --force \
        --out "jsonl:$verdicts_dir/last.jsonl" >"$verdicts_dir/last.log" 2>&1
    status=$?
    [ $status = 0 ] || [ $status = 3 ] || {
        cat "$verdicts_dir/last.log" >&2
        say "verdicts: posenc compare $base $head: exit $status"
        return 1
    }
}

# Compares two builds several times, each with a seed of its own, and prints a row of the table.
verdicts_row() { # LABEL TIMES BASE HEAD OPTION...
    label=$1 times=$2 i=0 begun=$(date +%s)
    shift 2
    : >"$verdicts_dir/pairs"
    while [ $i -lt "$times" ]; do
        i=$((i + 1))
        verdicts_compare "$@" --seed $i || return 1
        cat "$verdicts_dir/last.jsonl" >>"$verdicts_dir/all.jsonl"
        grep '"t":"pair"' "$verdicts_dir/last.jsonl" >>"$verdicts_dir/pairs"
    done
    sed 's/.*"verdict":"\([a-z]*\).*/\1/' "$verdicts_dir/pairs" |
        awk -v label="$label" -v seconds=$((($(date +%s) - begun) / times)) '{ n[$1]++ }
            END { printf "| %s | %d | %d | %d | %d | %d | %d | %d |\n", label, NR, n["slower"], n["faster"], n["same"],
                n["unclear"], n["identical"], seconds }'
}

# Takes whatever core is free, and the bandwidth of memory, now and then.
verdicts_neighbour() {
    while :; do
        dd if=/dev/zero of=/dev/null bs=64M count=150 2>/dev/null
        sleep 0.2
    done
}
