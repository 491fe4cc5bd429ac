#!/bin/sh
# Nothing is timed where something emulates the CPU: bench and doctor say so, with the emulator's name, and exit 77.
. "$(dirname "$0")/tap.sh"

# untimed COMMAND EMULATOR AND ITS OPTIONS: of a cross build, POSENC runs in one already.
untimed() {
    command=$1
    shift
    name="${command%% *} under ${1:-the emulator of a cross build}"
    if [ $# != 0 ] && ! command -v "$1" >found; then
        skip "$name" "no $1"
        return
    fi
    # shellcheck disable=SC2086  # a list of words
    run "$@" "$POSENC" $command
    if grep -q -e 'lacks the module' -e 'not installed' stderr; then
        skip "$name" 'the Python part is missing'
    elif [ $status = 77 ] && grep -q "nothing is [a-z]* here: .*${1:-qemu}" stderr && [ ! -s stdout ] && [ -z "$(ls work)" ]; then
        pass "$name"
    else
        fail "$name" "exit $status, files: $(ls work)"
    fi
    rm -rf work/*
}
bench='bench --kernel alibi --backend scalar --out jsonl:r.jsonl' doctor='doctor --quick -o r.jsonl'

if [ -n "${MESON_EXE_WRAPPER:-}" ]; then
    untimed "$bench"
    untimed "$doctor"
else
    case $(uname -sm) in
    'Linux x86_64') emulator='qemu-x86_64 -cpu max' ;;
    'Linux aarch64') emulator=qemu-aarch64 ;;
    *) emulator=qemu ;;
    esac
    # shellcheck disable=SC2086  # a list of words
    {
        untimed "$bench" $emulator
        untimed "$doctor" $emulator
    }
    untimed "$bench" valgrind
fi
finish
