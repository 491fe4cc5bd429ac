# shellcheck shell=sh
# ./run verdicts [COMPARISONS [PART...]]: are verdicts to be believed?  Compares builds of which the answer is known, and
# prints the table of docs/verdicts.md.  Sourced by run.  With 200 comparisons it takes hours: nothing else should run.
#
#     same       two plug-ins that do the same, a noisy neighbour beside them: nothing is slower, nothing faster
#     l2         one is slowed by 5 % in the L2 cache: slower, in 9 of 10
#     dram       one is slowed by 10 % in memory, with a longer time limit: slower, in 9 of 10
#     relinked   the library, and the same objects with other alignment: nothing is slower
#
# Plug-ins are bench/tests/slowed.c.  Their delay is counted in steps of work: a first comparison says how many are 5 %.
verdicts_parts='same l2 dram relinked'

verdicts() {
    verdicts_n=${1:-200}
    [ $# = 0 ] || shift
    verdicts_dir=$PWD/build/verdicts
    mkdir -p "$verdicts_dir"
    build || return 1
    echo '| comparison | rows | slower | faster | same | unclear | identical code | seconds each |'
    echo '|---|---:|---:|---:|---:|---:|---:|---:|'
    # shellcheck disable=SC2048,SC2086  # a list of words
    for part in ${*:-$verdicts_parts}; do
        case " $verdicts_parts " in
        *" $part "*) "verdicts_$part" || return 1 ;;
        *) say "verdicts has no part $part; its parts: $verdicts_parts" && return 2 ;;
        esac
    done
    echo
    date -u +%Y-%m-%d
    sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1
}

# verdicts_plugin NAME STEPS TAG
verdicts_plugin() {
    ${CC:-cc} -std=c11 -O3 -shared -fPIC "-DSLOWED_STEPS=$2" "-DSLOWED_TAG=$3" -I impl/include \
        bench/tests/slowed.c -o "$verdicts_dir/$1.so"
}

# verdicts_compare BASE HEAD OPTION...: one comparison; its record is in last.jsonl.
verdicts_compare() {
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

# member NAME: of the pair of the last comparison.
member() {
    grep '"t":"pair"' "$verdicts_dir/last.jsonl" | grep -o "\"$1\":[^,}]*" | head -n 1 | cut -d: -f2 | tr -d '"'
}

# verdicts_row LABEL TIMES BASE HEAD OPTION...
verdicts_row() {
    label=$1 times=$2 i=0 begun=$(date +%s)
    shift 2
    : >"$verdicts_dir/said"
    while [ $i -lt "$times" ]; do
        verdicts_compare "$@" --seed $((i + 1)) || return 1
        grep '"t":"pair"' "$verdicts_dir/last.jsonl" | grep -o '"verdict":"[a-z]*' | cut -d'"' -f4 >>"$verdicts_dir/said"
        cat "$verdicts_dir/last.jsonl" >>"$verdicts_dir/all.jsonl"
        i=$((i + 1))
    done
    took=$(($(date +%s) - begun))
    awk -v label="$label" -v seconds=$((took / times)) '
        { n[$1]++ }
        END {
            printf "| %s | %d | %d | %d | %d | %d | %d | %d |\n", label, NR, n["slower"], n["faster"], n["same"],
                n["unclear"], n["identical"], seconds
        }' "$verdicts_dir/said"
}

# Comes and goes on whatever core is free, and wants all of the memory there is.
verdicts_neighbour() {
    while :; do
        dd if=/dev/zero of=/dev/null bs=64M count=150 2>/dev/null
        sleep 0.2
    done
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

# verdicts_slowed SHARE PROBE CASE OPTION...: builds slow.so, slower by that share in this case, from how much slower
# PROBE steps make it.
verdicts_slowed() {
    share=$1 probe=$2 which=$3
    shift 3
    verdicts_plugin base 0 1 && verdicts_plugin slow "$probe" 1 &&
        verdicts_compare base.so slow.so --case "$which" "$@" || return 1
    ratio=$(member ratio)
    steps=$(awk -v share="$share" -v probe="$probe" -v ratio="$ratio" \
        'BEGIN { print (ratio > 1 ? int(probe * share / (ratio - 1)) : 0) }')
    [ "$steps" -gt 0 ] || {
        say "verdicts: $probe steps gave a ratio of $ratio in $which"
        return 1
    }
    verdicts_plugin slow "$steps" 1
}

verdicts_l2() {
    verdicts_slowed 0.05 1000 rope_half/f32/given/l2 --time-limit 20 &&
        verdicts_row 'slowed by 5 % in L2' $(((verdicts_n + 9) / 10)) base.so slow.so --case rope_half/f32/given/l2 \
            --time-limit 20
}

verdicts_dram() {
    verdicts_slowed 0.10 2000000 rope_half/f32/given/dram --time-limit 60 &&
        verdicts_row 'slowed by 10 % in memory' $(((verdicts_n + 9) / 10)) base.so slow.so --case rope_half/f32/given/dram \
            --time-limit 90
}

# The objects of the library once more, behind a function that takes 40 bytes of code: all that follows lies elsewhere.
verdicts_relinked() {
    printf 'void pad(void);\nvoid pad(void) { __asm__ volatile(".skip 40, 0x90"); }\n' >"$verdicts_dir/pad.c"
    ${CC:-cc} -O2 -fPIC -c "$verdicts_dir/pad.c" -o "$verdicts_dir/pad.o" || return 1
    library=$(cd build && find impl -maxdepth 1 -type f -name 'libposenc.so.*.*.*' | head -n 1)
    ninja -C build -t commands "$library" | tail -n 1 |
        sed "s,-o $library,-o $verdicts_dir/relinked.so $verdicts_dir/pad.o," >"$verdicts_dir/link.sh"
    (cd build && sh "$verdicts_dir/link.sh") && cp "build/$library" "$verdicts_dir/linked.so" &&
        verdicts_row 'relinked with other alignment, in L2' $(((verdicts_n + 9) / 10)) linked.so relinked.so \
            --kernel rope_half --case rope_half/f32/given/l2 --time-limit 60
}
