# shellcheck shell=sh
# ./run test-course: the blocks of PyTorch in docs/course, by PyTorch in a virtual environment below build/. Those of NumPy, and
# the lessons' form, are tested by ./run test. Sourced by run.

course_torch=2.13.0

test_course() {
    venv=build-torch
    if [ ! -f $venv/complete ]; then
        bring /usr/share/doc/python3-venv:python3-venv && python3 -m venv $venv &&
            $venv/bin/pip install -q "torch==$course_torch" numpy pytest >&2 && touch $venv/complete || {
            cannot "$job: PyTorch $course_torch from PyPI"
            return
        }
    fi
    status=0
    POSENC_PROGRAM=$PWD/build/posenc $venv/bin/python3 -m pytest -p no:terminal -p no:cacheprovider \
        reports/tests/test_course.py >build/course.log 2>&1 || status=$?
    tally_tap reports/tests/test_course.py build/course.log $status
}
