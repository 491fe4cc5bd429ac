#!/bin/sh
# Every command ends silently with 141 if the reader of its output has gone (posenc list | head -1).
. "$(dirname "$0")/tap.sh"

mkfifo pipe
mkdir none some
cp "$PLUGIN" some/plugin.so

# Runs the program with a pipe without a reader as stdout.
run_unread() { # ARGUMENTS...
    exec 3<>pipe 4>pipe 3<&-
    (cd work && exec "$POSENC" "$@") >&4 2>stderr
    status=$?
    exec 4>&-
}

# Tests one command. Some machines neither time nor count.
test_closed_pipe() { # ARGUMENTS...
    run_unread "$@"
    if [ $status = 77 ]; then
        skip "$plugins: $*" 'not on this machine'
    elif [ $status != 141 ]; then
        fail "$plugins: $*" "exit $status"
    elif grep -Eq '^posenc|signal|[Pp]ipe' stderr; then
        fail "$plugins: $*" 'it complains'
    else
        pass "$plugins: $*"
    fi
}

case_id=$("$POSENC" list cases 2>stderr | awk 'NR == 3 { print $1 }')
kinds=$("$POSENC" list --help | sed -n 's/^usage: .*\[\([a-z|]*\)\].*/\1/p' | tr '|' ' ')
few='--kernel alibi --backend scalar --case alibi/f32/given/h1-symmetric'
# shellcheck disable=SC2086  # a list of words
"$POSENC" verify $few --out jsonl:one.jsonl 2>stderr
cp one.jsonl work/a.jsonl
cp one.jsonl work/b.jsonl

for plugins in none some; do
    export POSENC_PLUGINS="$scratch/$plugins"
    test_closed_pipe --help
    test_closed_pipe help list
    test_closed_pipe list --help
    test_closed_pipe --version
    test_closed_pipe list
    for kind in $kinds; do
        test_closed_pipe list "$kind"
    done
    test_closed_pipe explain rope_half
    test_closed_pipe verify -v --case "$case_id"
    [ -n "${PROGRAM:-}" ] || test_closed_pipe explain --model llama-3.1-8b # Python asks a program that no emulator runs
    test_closed_pipe verify -v --problem 'alibi heads=1 queries=2 keys=2'
    test_closed_pipe table --problem 'sinusoidal dim=64 tokens=2000'
    test_closed_pipe vectors prompts x --kernel alibi
    rm -rf work/x
    for format in console jsonl csv; do
        # shellcheck disable=SC2086  # a list of words
        test_closed_pipe verify $few --out $format
    done
    test_closed_pipe bench --instructions --kernel alibi --backend scalar --dtype f32
    test_closed_pipe bench --problem 'alibi heads=2 queries=16 keys=16' --backend scalar --time-limit 0.01
    test_closed_pipe report a.jsonl
    test_closed_pipe compare a.jsonl b.jsonl
    ! "$POSENC" results trend --help >help.log 2>&1 || test_closed_pipe results trend a.jsonl # which takes rich
    test_closed_pipe results merge a.jsonl
    test_closed_pipe tune --kernel alibi --dtype f32 --time-limit 0.1 tuning
    rm -rf work/x work/*.png work/tuning
done
test_closed_pipe doctor --quick

# Some programs let those that they start ignore SIGPIPE, which changes nothing.
trap '' PIPE
test_closed_pipe list
test_closed_pipe table --problem 'sinusoidal dim=64 tokens=2000'
trap - PIPE

# A plug-in that raises SIGPIPE is a crash, and reported.
cp "$MISBEHAVES" work/sigpipe_in_first_call.so
run env POSENC_PLUGINS= "$POSENC" verify -v --plugin ./sigpipe_in_first_call.so --problem 'alibi heads=1 queries=2 keys=2'
same 'a plug-in that raises SIGPIPE is told of' "$status $(grep -c 'ended by signal 13 .* in alibi' stderr)" '1 1'
finish
