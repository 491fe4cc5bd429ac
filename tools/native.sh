# shellcheck shell=sh
# Tests on this machine. Sourced by run. Logs: build/meson-logs and build/*.log.

# Runs Meson's tests, and the use of an installed library at the same time, so that no core waits.
test_native() {
    sh cli/tests/consumer.sh "$PWD/build" >build/consumer.log 2>&1 &
    consumer=$!
    # Every suite runs on every backend once: by Criterion, or by the runner where there is none.
    omitted_suite=runner
    (have library:criterion) || omitted_suite=criterion
    meson_tests build --no-suite $omitted_suite --no-suite certify --no-suite faults --no-suite reports
    wait $consumer
    tally_tap cli/tests/consumer.sh build/consumer.log $?
}

# The suite that is meant for an injected fault has to detect it.
test_faults() {
    compile build conformance/faults/faulty || {
        tally "$job: build of faulty kernels" 0 1 0
        return
    }
    meson_tests build --suite faults
}

# The Python part, comparisons of builds, the documentation, and the calls of presets at their real sizes.
test_reports() {
    meson_tests build --suite reports --no-suite certify
}

test_certify() {
    if (have tests:gmpy2); then meson_tests build --suite certify; else cannot "$job: Python with gmpy2"; fi
}

# Runs the suites by the runner, which detects leaks where Criterion does not. Calls take the compiler less time than inline
# checks; AddressSanitizer detects null pointers and accesses past the end of an object by itself.
test_sanitizers() {
    cheap='--param=asan-instrumentation-with-call-threshold=0 -fno-sanitize=null,object-size'
    configure build-asan -Doptimization=1 -Ddebug=false "-Dc_args=-g1 $cheap" -Db_sanitize=address,undefined \
        -Ddefault_library=static -Dtests=disabled && compile build-asan || {
        tally "$job: build with sanitizers" 0 1 0
        return
    }
    # Meson 1.0 sets neither: without them UndefinedBehaviorSanitizer's findings pass unseen.
    export ASAN_OPTIONS=halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1
    export UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1
    meson_tests build-asan --no-suite once
    unset ASAN_OPTIONS UBSAN_OPTIONS
    test_races
}

# Tests kernels on several threads, and the choice of backends, under ThreadSanitizer, in a build of these tests alone.
test_races() {
    configure build-tsan -Doptimization=1 -Ddebug=false -Dc_args=-g1 -Db_sanitize=thread -Ddefault_library=static \
        -Dtests=disabled -Dbench=disabled -Dgolden=disabled -Dsleef=disabled &&
        compile build-tsan conformance/test_threads impl/test_rope || {
        tally "$job: build with ThreadSanitizer" 0 1 0
        return
    }
    export TSAN_OPTIONS=halt_on_error=1
    meson_tests build-tsan --suite threads
    unset TSAN_OPTIONS
}

# Installs the tools of all jobs of test-all at once.
bring_all() {
    words=$course_tools
    case $(uname -s)-$(uname -m) in
    Linux-x86_64) words="$words $aarch64_tools $riscv64_tools $bochs_tools objdump:binutils qemu-x86_64:qemu-user" ;;
    esac
    for part in $all_parts; do
        words="$words $(check_tools "$part")"
    done
    bring $words
}

# ---- Packages of PyPI in build-torch: the blocks of PyTorch in docs/course, and axe, which finds faults of accessibility ----

course_torch=2.13.0 course_transformers=5.24.0 course_axe=0.1.8
course_tools=$environment_tools

course_environment() {
    venv=$PWD/build-torch
    environment build-torch "torch==$course_torch" "transformers==$course_transformers" jax ml_dtypes numpy pytest &&
        { [ -d "$venv/axe" ] || "$venv/bin/pip" install -q --no-deps --target "$venv/axe" "axe-playwright-python==$course_axe" >&2; }
}

test_course() {
    [ -z "$early" ] || wait "$early"
    course_environment || {
        cannot "$job: PyTorch $course_torch and axe from PyPI"
        return
    }
    pages="reports/tests/test_explore.py reports/tests/test_page.py"
    course_tests 'lessons, with PyTorch' "$venv/bin/python3" reports/tests/test_course.py
    PYTHONPATH=$PWD/build/python:$PWD/python course_tests 'package, with PyTorch, JAX and transformers' "$venv/bin/python3" python/tests
    python_with jinja2 rich matplotlib pytest jsonschema
    PYTHONPATH=$venv/axe course_tests 'pages, with axe' "$python" -k axe $pages
}

course_tests() { # NAME PYTHON ARGUMENTS...
    name=$1 python=$2
    shift 2
    status=0
    POSENC_PROGRAM=$PWD/build/posenc "$python" -m pytest -p no:terminal -p no:cacheprovider "$@" >build/course.log 2>&1 ||
        status=$?
    tally_tap "$name" build/course.log $status
}
