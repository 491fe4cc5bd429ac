# shellcheck shell=sh
# ./run coverage: how many lines and branches of each folder the tests reach, natively: the suites on every backend that
# runs here, broken kernels, and everything of meson test.  Sourced by run.
#
# Not optimised, so that a line is a line, but for the kernels, which take too much memory then (impl/meson.build).  What
# is counted is the C of the repository but for tests and generators.
# (lcov, since gcovr 5.2 ends at functions of one name that the templates make in several files.)

coverage() {
    bring lcov:lcov gcov:gcc || return 2
    CC=gcc CXX=g++ configure build-coverage --buildtype=debug -Db_coverage=true -Ddefault_library=static \
        -Dc_args=-fprofile-update=atomic || return 1
    compile build-coverage || return 1
    find build-coverage -name '*.gcda' -exec rm {} +
    "$meson" test -C build-coverage --no-rebuild --timeout-multiplier 10 --no-suite criterion >build-coverage/tests.log 2>&1 ||
        say "not every test passed, see build-coverage/tests.log: the numbers are of those that ran"
    lcov --capture --directory build-coverage --base-directory build-coverage --rc lcov_branch_coverage=1 \
        --output-file build-coverage/coverage.info >build-coverage/lcov.log 2>&1 || return 1
    python3 jobs/coverage.py build-coverage/coverage.info "$PWD" build-coverage/files.txt || return 1
    say 'file by file: build-coverage/files.txt'
}
