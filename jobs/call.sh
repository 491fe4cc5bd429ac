# shellcheck shell=sh
# ./run call [SETS] [--only KERNEL] [--seed N]: random calls of every kernel, right and wrong; conformance/caller/caller.h
# says what is checked.  Sourced by run.

call() {
    configure build && ninja -C build conformance/caller/call >build/run-build.log || return 1
    build/conformance/caller/call "$@"
}
