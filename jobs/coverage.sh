# shellcheck shell=sh
# ./run coverage: how many lines and branches of each folder the tests reach, natively: the suites on every backend that
# runs here, broken kernels, and everything of meson test.  Sourced by run.
#
# Not optimised, so that a line is a line; what is counted is the C of the repository but for tests and generators.

coverage() {
    bring gcovr:gcovr gcov:gcc || return 2
    CC=gcc CXX=g++ configure build-coverage --buildtype=debug -Db_coverage=true -Ddefault_library=static || return 1
    compile build-coverage || return 1
    find build-coverage -name '*.gcda' -exec rm {} +
    "$meson" test -C build-coverage --no-rebuild --timeout-multiplier 10 --no-suite criterion >build-coverage/tests.log 2>&1 ||
        say "not every test passed, see build-coverage/tests.log: the numbers are of those that ran"
    gcovr --root . --exclude '.*/tests?[_/].*' --exclude '.*/golden/.*' --exclude 'build.*' --json-summary build-coverage/summary.json \
        --txt build-coverage/files.txt build-coverage || return 1
    python3 jobs/coverage.py build-coverage/summary.json
    say 'file by file: build-coverage/files.txt'
}
