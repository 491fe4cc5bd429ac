# shellcheck shell=sh
# ./run test: every test of what this machine can run, then all of them with sanitizers.  Sourced by run.

test_native() {
    meson_tests build --no-suite runner
    pack=build/conformance/golden/vectors.pack
    build/conformance/criterion/runner $pack >build/runner.log 2>&1
    tally_runner "$job" build/runner.log
    tap_script cli/tests/consumer.sh "$PWD/build"
    # The same suites again under AddressSanitizer and UndefinedBehaviorSanitizer: by the runner, which sees leaks
    # where Criterion does not, and without the tests that would only repeat, at length, what these say of the same
    # functions.
    if configure build-asan --buildtype=debugoptimized -Db_sanitize=address,undefined \
        -Ddefault_library=static && compile build-asan; then
        # Meson 1.0 sets neither: without them UndefinedBehaviorSanitizer's findings pass unseen.
        export ASAN_OPTIONS=halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1
        export UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1
        meson_tests build-asan --no-suite once --no-suite criterion
        unset ASAN_OPTIONS UBSAN_OPTIONS
    else
        tally "$job: build with sanitizers" 0 1 0
    fi
}
