#!/bin/sh
# Every command ends silently with 141 if the reader of its output has gone (posenc list | head -1).
. "$(dirname "$0")/tap.sh"

mkfifo pipe
mkdir none some
cp "$PLUGIN" some/plugin.so

# Runs the program with a pipe without a reader as stdout.
unread() { # ARGUMENTS...
    exec 3<>pipe 4>pipe 3<&-
    (cd work && exec "$POSENC" "$@") >&4 2>stderr
    status=$?
    exec 4>&-
}

# Tests one command. Some machines neither time nor count.
gone() { # ARGUMENTS...
    unread "$@"
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
    gone --help
    gone help list
    gone list --help
    gone --version
    gone list
    for kind in $kinds; do
        gone list "$kind"
    done
    gone explain rope_half
    gone verify -v --case "$case_id"
    [ -n "${PROGRAM:-}" ] || gone explain --model llama-3.1-8b # Python asks a program that no emulator runs
    gone verify -v --problem 'alibi heads=1 queries=2 keys=2'
    gone table --problem 'sinusoidal dim=64 tokens=2000'
    gone vectors info
    gone vectors export x
    gone vectors check x
    for format in console jsonl csv; do
        # shellcheck disable=SC2086  # a list of words
        gone verify $few --out $format
    done
    gone bench --instructions --kernel alibi --backend scalar --dtype f32
    gone bench --problem 'alibi heads=2 queries=16 keys=16' --backend scalar --budget 0.01
    gone report a.jsonl
    gone compare a.jsonl b.jsonl
    ! "$POSENC" results trend --help >help.log 2>&1 || gone results trend a.jsonl # which takes rich
    gone results merge a.jsonl
    gone tune --kernel alibi --dtype f32 --budget 0.1 profile
    rm -rf work/x work/*.png work/profile
done
gone doctor --quick

# Some programs let those that they start ignore SIGPIPE, which changes nothing.
trap '' PIPE
gone list
gone table --problem 'sinusoidal dim=64 tokens=2000'
trap - PIPE

# A plug-in that raises SIGPIPE is a crash, and reported.
cp "$MISBEHAVES" work/pipe_in_first_call.so
run env POSENC_PLUGINS= "$POSENC" verify -v --plugin ./pipe_in_first_call.so --problem 'alibi heads=1 queries=2 keys=2'
same 'a plug-in that raises SIGPIPE is told of' "$status $(grep -c 'ended by signal 13 .* in alibi' stderr)" '1 1'
finish
