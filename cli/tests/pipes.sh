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
kinds=$("$POSENC" list --help | sed -n 's/^usage: .*\[\([a-z|]*\)\].*/\1/p' | tr '|' '\n')
few='--kernel alibi --backend scalar --case alibi/f32/given/h1-symmetric'
"$POSENC" verify $few --out jsonl:one.jsonl 2>stderr
cp one.jsonl work/a.jsonl
cp one.jsonl work/b.jsonl

# Commands that load plug-ins, then all others.
cat >loading <<COMMANDS
list
$(echo "$kinds" | sed 's/^/list /')
verify -v --case $case_id
verify -v --problem 'alibi heads=1 queries=2 keys=2'
verify $few --out console
verify $few --out jsonl
verify $few --out csv
table --problem 'sinusoidal dim=64 tokens=2000'
bench --instructions --kernel alibi --backend scalar --dtype f32
bench --problem 'alibi heads=2 queries=16 keys=16' --backend scalar --time-limit 0.01
COMMANDS
cat >others <<COMMANDS
--help
help list
list --help
--version
explain rope_half
vectors prompts x --kernel alibi
report a.jsonl
compare a.jsonl b.jsonl
results merge a.jsonl
tune --kernel alibi --dtype f32 --time-limit 0.1 tuning
doctor --quick
COMMANDS
[ -n "${PROGRAM:-}" ] || echo 'explain --model llama-3.1-8b' >>others # Python asks a program that no emulator runs
! "$POSENC" results trend --help >help.log 2>&1 || echo 'results trend a.jsonl' >>others # which takes rich
for plugins in none some; do
    export POSENC_PLUGINS="$scratch/$plugins"
    # shellcheck disable=SC2046  # a file or none
    cat loading $([ $plugins = some ] || echo others) >commands
    while read -r words; do
        eval "test_closed_pipe $words" </dev/null
    done <commands
done

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
