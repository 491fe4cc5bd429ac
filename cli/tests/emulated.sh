#!/bin/sh
# Under an emulator bench and doctor time nothing: they name the emulator and exit with 77.
. "$(dirname "$0")/tap.sh"

# Runs a command under an emulator. POSENC of a cross build runs under one already.
untimed() { # COMMAND [EMULATOR OPTION...]
    command=$1
    shift
    name="${command%% *} under ${1:-the emulator of a cross build}"
    if [ $# != 0 ] && ! command -v "$1" >found; then
        skip "$name" "no $1"
        return
    fi
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
    untimed "$bench" $emulator
    untimed "$doctor" $emulator
    untimed "$bench" valgrind
fi
finish
