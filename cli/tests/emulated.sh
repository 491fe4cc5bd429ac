#!/bin/sh
# Nothing is timed where something emulates the CPU: bench and doctor say so, with the emulator's name, and exit 77;
# report has everything but times.
. "$(dirname "$0")/tap.sh"

# untimed EMULATOR AND ITS OPTIONS: of a cross build, POSENC runs in one already.
untimed() {
    name=${1:-the emulator of a cross build}
    if [ $# != 0 ] && ! command -v "$1" >found; then
        skip "bench under $name" "no $1"
        return
    fi
    run "$@" "$POSENC" bench --kernel alibi --backend scalar --out jsonl:r.jsonl
    if [ $status = 77 ] && grep -q "nothing is timed here: .*${1:-qemu}" stderr && [ ! -s stdout ] && [ -z "$(ls work)" ]; then
        pass "bench under $name"
    else
        fail "bench under $name" "exit $status, files: $(ls work)"
    fi
    rm -rf work/*
}

undoctored() {
    name=${1:-the emulator of a cross build}
    if [ $# != 0 ] && ! command -v "$1" >found; then
        skip "doctor under $name" "no $1"
        return
    fi
    run "$@" "$POSENC" doctor --quick -o r.jsonl
    if grep -q -e 'lacks the module' -e 'not installed' stderr; then
        skip "doctor under $name" 'the Python part is missing'
    elif [ $status = 77 ] && grep -q "nothing is measured here: .*${1:-qemu}" stderr && [ ! -s stdout ] && [ -z "$(ls work)" ]; then
        pass "doctor under $name"
    else
        fail "doctor under $name" "exit $status, files: $(ls work)"
    fi
    rm -rf work/*
}

if [ -n "${MESON_EXE_WRAPPER:-}" ]; then
    untimed
    undoctored
else
    case $(uname -sm) in
    'Linux x86_64') emulator='qemu-x86_64 -cpu max' ;;
    'Linux aarch64') emulator=qemu-aarch64 ;;
    *) emulator=qemu ;;
    esac
    # shellcheck disable=SC2086  # a list of words
    {
        untimed $emulator
        undoctored $emulator
    }
    untimed valgrind
fi
finish
