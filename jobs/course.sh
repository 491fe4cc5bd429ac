# shellcheck shell=sh
# ./run test-course: what takes packages of PyPI, in a virtual environment in build-torch. The blocks of PyTorch in
# docs/course, and axe, which looks for faults of accessibility in the pages of posenc explore and posenc report. The
# other tests of these are in ./run test. Sourced by run.

course_torch=2.13.0 course_axe=0.1.8

course_tools='/usr/share/doc/python3-venv:python3-venv'

course_environment() {
    venv=$PWD/build-torch
    [ ! -f "$venv/complete" ] || return 0
    python3 -m venv "$venv" &&
        "$venv/bin/pip" install -q "torch==$course_torch" numpy pytest >&2 &&
        "$venv/bin/pip" install -q --no-deps --target "$venv/axe" "axe-playwright-python==$course_axe" >&2 &&
        touch "$venv/complete"
}

test_course() {
    await_early
    bring $course_tools && course_environment || {
        cannot "$job: PyTorch $course_torch and axe from PyPI"
        return
    }
    pages="reports/tests/test_explore.py reports/tests/test_page.py"
    course_tests 'lessons, with PyTorch' "$venv/bin/python3" reports/tests/test_course.py
    python_with jinja2 rich matplotlib pytest jsonschema
    # shellcheck disable=SC2086  # a list of files
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
