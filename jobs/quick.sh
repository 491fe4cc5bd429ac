# shellcheck shell=sh
# ./run quick [KERNEL...]: the loop of somebody who changes a kernel.  Builds the program and nothing else, without
# sanitizers; holds the kernels (all of them, when none is named) to golden vectors, digests, memory and laws on every
# backend that runs here; then the parts of check that take no time.  Sourced by run.

quick_build() {
    configure build || return
    set -- posenc conformance/golden/vectors.pack
    # Without jansson there is no program; the engine's own runner then.
    pkg-config --exists jansson ||
        set -- conformance/criterion/runner conformance/golden/vectors.pack
    ninja -C build "$@" >build/run-build.log 2>&1 && return
    # The compiler's words, without the progress of the build.
    grep -v '^\[[0-9]*/[0-9]*\]' build/run-build.log >&2
    return 1
}

# Of $quick_kernels.
quick() {
    # shellcheck disable=SC2086  # a list of words
    set -- $quick_kernels
    quick_build || { tally 'quick: build' 0 1 0; return; }
    if [ -x build/posenc ]; then
        for kernel in "$@"; do
            set -- "$@" --kernel "$kernel"
            shift
        done
        build/posenc verify --quick "$@" >build/quick.log 2>&1
        tally_verify "$job $quick_kernels" build/quick.log
    else
        [ $# = 0 ] || say 'no program without jansson: every kernel is checked'
        build/conformance/criterion/runner build/conformance/golden/vectors.pack >build/quick.log 2>&1
        tally_runner "$job" build/quick.log
    fi
    check_parts='format rooms lengths'
    check
}
