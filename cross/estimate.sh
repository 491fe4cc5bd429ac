# shellcheck shell=sh
# ./run estimate: cycles of the kernels' inner loops on cores that need not be at hand, see cross/estimate.py.
#
# ./run test-estimate: that of one core, which fails where a loop of impl/loops is no longer the kernel's.
#
# Sourced by run, which has say and bring.

estimate_tools() {
    set -- clang-19:clang-19 llvm-mca-19:llvm-19
    [ "$(uname -m)" = aarch64 ] || set -- "$@" /usr/aarch64-linux-gnu/include/math.h:libc6-dev-arm64-cross
    [ "$(uname -m)" = x86_64 ] || set -- "$@" /usr/x86_64-linux-gnu/include/math.h:libc6-dev-amd64-cross
    bring "$@"
}

estimate() {
    estimate_tools && python3 cross/estimate.py
}

# One core of this architecture, so that its headers are here.
test_estimate() {
    if ! estimate_tools; then
        cannot "$job:$missing"
        return
    fi
    case $(uname -m) in aarch64) core='neon neoverse-n1' ;; *) core='avx2 znver4' ;; esac
    # shellcheck disable=SC2086  # two words
    if python3 cross/estimate.py $core >build/estimate.log 2>&1; then
        tally "$job: $core" "$(grep -c '^[a-z]*_*[a-z0-9]* [a-z0-9_]* ' build/estimate.log)" 0 0
    else
        cat build/estimate.log
        tally "$job: $core" 0 1 0
    fi
}
