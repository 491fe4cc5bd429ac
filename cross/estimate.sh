# shellcheck shell=sh
# ./run estimate: cycles of the kernels' inner loops on cores that need not be at hand.  Clang compiles
# the loops of impl/loops for each backend, with the library's flags; loops.awk takes each one's
# main loop, llvm-mca runs it through its model of a core.  A core that is at hand is timed, too.
#
# ./run test-estimate: that of one core, which fails where a loop of impl/loops is no longer the kernel's.
#
# Sourced by run, which has say and bring.  Everything is written to build/estimate, then the records
# to build/estimates.jsonl, which posenc report shows alone or beside other results.

# Backend, its lanes on the core, the core, and whose model LLVM 19 uses for it.
estimate_cores() {
    cat <<'LIST'
neon 4 cortex-a72 Cortex-A57
neon 4 neoverse-n1 own
neon 4 neoverse-v1 own
neon 4 neoverse-v2 own
neon 4 apple-m1 Cyclone (2013)
sve 8 neoverse-v1 own
sve 4 neoverse-v2 own
avx2 8 znver4 own
avx2 8 icelake-server own
avx2 8 sapphirerapids own
avx512 16 znver4 own
avx512 16 icelake-server own
avx512 16 sapphirerapids own
LIST
}

# $triple and $flags of a backend (those of impl/meson.build), $bytes of its vectors (0: the core's).
estimate_backend() {
    triple=aarch64-linux-gnu flags='' bytes=16
    case $1 in
    neon) ;;
    sve) flags='-march=armv8.2-a+sve' bytes=0 ;;
    avx2) triple=x86_64-linux-gnu flags='-mavx2 -mfma -mf16c' bytes=32 ;;
    avx512)
        triple=x86_64-linux-gnu bytes=64
        flags='-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512'
        ;;
    esac
    # The other architecture's headers; this one's are where the compiler looks anyway.
    [ "${triple%%-*}" = "$(uname -m)" ] || flags="$flags -isystem /usr/$triple/include"
}

# Assembler of a backend's loops, and of each the main loop.  No unrolling, as gcc does none.
estimate_compile() {
    # shellcheck disable=SC2086  # a list of words
    clang-19 --target=$triple $flags -std=c11 -O3 -ffp-contract=off -fno-unroll-loops \
        -fno-asynchronous-unwind-tables -I. -Iimpl/include "-DPOSENC_SIMD=\"impl/simd/simd_$1.h\"" "-DPOSENC_ISA=$1" \
        -S impl/loops/loops.c -o build/estimate/"$1".s &&
        awk -v bytes=$bytes -f bench/estimate/loops.awk build/estimate/"$1".s >build/estimate/"$1".loops.s
}

# Times a backend's loops, the same assembler, into build/estimate/BACKEND.times.
estimate_time() {
    rm -f build/estimate/"$1".times
    clang-19 -std=c11 -O2 -I. -Iimpl/include impl/loops/measure.c build/estimate/"$1".s -lm \
        -o build/estimate/"$1".measure &&
        build/estimate/"$1".measure >build/estimate/"$1".new &&
        mv build/estimate/"$1".new build/estimate/"$1".times && return 0
    say "this CPU, a $host, did not run the loops of $1: not timed"
}

estimate_core() {
    backend=$1 lanes=$2 core=$3
    shift 3
    out=build/estimate/$backend-$core.json times=-
    estimate_backend "$backend"
    [ -f build/estimate/"$backend".loops.s ] || estimate_compile "$backend" || return 1
    if [ "$core" = "$host" ]; then
        estimate_time "$backend"
        [ ! -f build/estimate/"$backend".times ] || times=build/estimate/$backend.times
    fi
    llvm-mca-19 -mtriple=$triple -mcpu="$core" -iterations=1000 --json \
        build/estimate/"$backend".loops.s >"$out" 2>build/estimate/mca.log || {
        cat build/estimate/mca.log >&2
        return 1
    }
    echo "$backend $lanes $core $out $times $*" >>build/estimate/list
}

estimate() {
    estimate_tools || return 2
    if [ ! -x build/posenc ]; then
        say 'the program was not built: it needs jansson'
        return 2
    fi
    estimate_cores | estimate_records build/estimates.jsonl && build/posenc report build/estimates.jsonl
}

# One core of this architecture, so that its headers are here.
test_estimate() {
    tool=build/bench/estimate/estimate_records
    if [ ! -x $tool ] || ! estimate_tools; then
        cannot "$job:${missing:- jansson}"
        return
    fi
    case $(uname -m) in aarch64) core='neon 4 neoverse-n1' ;; *) core='avx2 8 znver4' ;; esac
    if estimate_cores | grep "^$core " | estimate_records build/estimate-test.jsonl >build/estimate.log 2>&1; then
        tally "$job: $core" "$(grep -c '"t":"estimate"' build/estimate-test.jsonl)" 0 0
    else
        cat build/estimate.log
        tally "$job: $core" 0 1 0
    fi
}

estimate_tools() {
    set -- clang-19:clang-19 llvm-mca-19:llvm-19
    [ "$(uname -m)" = aarch64 ] || set -- "$@" /usr/aarch64-linux-gnu/include/math.h:libc6-dev-arm64-cross
    [ "$(uname -m)" = x86_64 ] || set -- "$@" /usr/x86_64-linux-gnu/include/math.h:libc6-dev-amd64-cross
    bring "$@"
}

# Records of the cores on standard input.
estimate_records() {
    rm -rf build/estimate
    mkdir -p build/estimate
    mca=$(llvm-mca-19 --version)
    host=$(printf '%s\n' "$mca" | sed -n 's/.*Host CPU: *//p')
    mca="llvm-mca $(printf '%s\n' "$mca" | sed -n 's/.*LLVM version *//p')"
    clang="clang $(clang-19 --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')"
    while read -r backend lanes core model; do
        estimate_core "$backend" "$lanes" "$core" "$model" </dev/null || {
            say "no estimate of $backend on $core"
            return 1
        }
    done
    build/bench/estimate/estimate_records build/estimate/new.jsonl "$mca" "$clang" <build/estimate/list &&
        mv build/estimate/new.jsonl "$1"
}
