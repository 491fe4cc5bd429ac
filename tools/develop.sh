# shellcheck shell=sh
# Jobs for those who work on the code. Sourced by run.

# ---- ./run quick [KERNEL...] ----
#
# Builds the program and nothing else, without sanitizers. Holds the kernels (all, if none is named) to golden vectors,
# digests, memory and properties on every backend that runs here. Then runs the parts of check that take no time.

# Checks the kernels in $quick_kernels, or all.
quick() {
    configure build && compile build posenc || {
        tally 'quick: build' 0 1 0
        return
    }
    set -- $quick_kernels
    for kernel in "$@"; do
        set -- "$@" --kernel "$kernel"
        shift
    done
    build/posenc verify --quick "$@" >build/quick.log 2>&1
    tally_verify "$job $quick_kernels" build/quick.log $?
    check_parts='format includes lengths'
    check
}

# ---- ./run coverage ----
#
# Prints how many lines and branches of each folder the tests reach natively. Nothing is optimised, so that a line is a
# line. Tests and generators are not counted. (lcov, since gcovr 5.2 ends at functions of one name that the templates make
# in several files.)

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
    python3 tools/coverage.py build-coverage/coverage.info "$PWD" build-coverage/files.txt || return 1
    say 'file by file: build-coverage/files.txt'
}

# ---- ./run mutate [N | all] [FILE...] ----
#
# Makes mutants of the kernels, one at a time, and lists those that no suite detects. --right compiles right kernels in
# many ways, each of which has to pass. --faults [NAME...] tries the injected faults of conformance/cases/faults.txt.
# tools/mutate/mutate.py says what else it takes, docs/trust.md what came of it.

mutate() {
    build || return 1
    if [ "${1:-}" = --faults ]; then
        shift
        python3 tools/mutate/faults.py build "$@"
    else
        python3 tools/mutate/mutate.py build "$@"
    fi
}

# ---- ./run survey ----
#
# Asks two releases of transformers how their model types encode positions, compares that with what --config reads, and
# writes docs/models.md. conformance/models/survey.py says how. build-survey/RELEASE.log has the files that are read
# wrongly. It takes packages of PyPI into build-survey, and then half an hour.

survey_torch=2.13.0 survey_newer=5.23.0 survey_older=4.57.6

survey() {
    configure build && ninja -C build posenc >build/run-build.log || return 1
    for release in $survey_newer $survey_older; do
        environment build-survey/$release "torch==$survey_torch" "transformers==$release" pillow scipy || return 1
    done
    for release in $survey_newer $survey_older; do
        # build-survey/RELEASE.jsonl keeps the answers of transformers.
        OMP_NUM_THREADS=1 build-survey/$release/bin/python conformance/models/survey.py --seen build-survey/$release.jsonl \
            --published reports/tests/published.jsonl.gz --figures build-survey/$release.json 2>build-survey/$release.log || {
            say "survey: files are read wrongly: build-survey/$release.log"
            return 1
        }
    done
    build-survey/$survey_newer/bin/python conformance/models/survey/models_page.py build-survey/$survey_newer.json \
        build-survey/$survey_older.json >build-survey/models.md && cp build-survey/models.md docs/models.md
}

# ---- ./run stress [N [M]] ----
#
# Runs ./run test N times (3), and M times (10) its tests that start processes, wait or limit time, beside busy loops, two
# for each CPU. No test may depend on the load of the machine. Logs of runs that fail: build/stress-KIND-NUMBER.txt.

stress_waiting() {
    meson_tests build --suite cli --suite bench --suite fuzz --suite conformance --suite threads --suite criterion \
        --no-suite runner
}

stress_repeat() { # KIND TIMES COMMAND
    for number in $(seq "$2"); do
        failed_before=$failed
        say "stress: $1, run $number of $2"
        $3
        [ $failed = $failed_before ] || cp build/meson-logs/testlog.txt "build/stress-$1-$number.txt"
    done
}

stress() { # [N [M]]
    case $* in *[!0-9\ ]* | *' '*' '*) reject "stress takes two numbers of runs; there are: $*" ;; esac
    build_for_tests || return
    load=''
    for _ in $(seq $((2 * $(getconf _NPROCESSORS_ONLN)))); do
        # In a session of its own: Linux may divide CPU time among sessions first, and each test has one.
        setsid sh -c 'while :; do :; done' &
        load="$load $!"
    done
    trap 'kill $load 2>/dev/null' EXIT
    trap 'exit 1' HUP INT TERM
    stress_repeat whole "${1:-3}" test_native
    stress_repeat part "${2:-10}" stress_waiting
}
