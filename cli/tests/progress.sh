#!/bin/sh
# The line of progress on a terminal: it has totals and a time, fits the terminal, and leaves nothing behind.
. "$(dirname "$0")/tap.sh"

run "$POSENC" verify --backend scalar --kernel alibi --out csv
same 'a file gets no line of progress' "$status $(grep -c 'kernels on backends' stderr)" '0 0'
reason=$(no_terminal)
if [ -n "$reason" ]; then
    skip 'progress on a terminal' "$reason"
    finish
    exit 0
fi

# Runs the program on a terminal, in the background, as process $shown (tap.sh). The file screen gets what it shows, the
# file pid its process id.
start() { # COLUMNS TERM ARGUMENTS...
    columns=$1 term=$2
    shift 2
    rm -f pid
    terminal "$columns" "$term" screen "echo \$\$ >pid; exec $POSENC $*"
}

# Prints each drawing of the line of a command.
drawings() { # COMMAND
    tr '\r' '\n' <screen | sed -n "s/^$(printf '\033')\[K\($1 .*\)/\1/p"
}
has_time() { drawings verify | grep -q '^verify 1/2.* left'; }
longest_line() { awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }'; }
# Prints the number of lines of progress on the screen at the end: 0, or 1 if the last drawing erased nothing.
lines_left() { tr '\r' '\n' <screen | grep "^$(printf '\033')\[K" | tail -n 1 | grep -c '[0-9]/[0-9]'; }

# The example backend hangs, which keeps the program busy until it is killed.
hanging="verify --plugin $PLUGIN_HANG --limit 86400 --backend scalar --backend example --kernel alibi --out csv:$scratch/work/r.csv"
for columns in 80 40; do
    start $columns xterm $hanging
    await has_time
    kill -TERM "$(cat pid)"
    wait $shown
    drawings verify | grep -Eq '^verify 1/2( kernels on backends)?, about [0-9]+ (s|min) left'
    verdict "$columns columns: what is done, of what, and a time"
    most=$(drawings verify | longest_line)
    [ "$most" -gt 20 ] && [ "$most" -lt $columns ]
    verdict "$columns columns: the line fits" "$most characters"
    if [ $columns = 80 ]; then
        drawings verify | grep -Eq ' left  [a-z].*(/|\.\.\.)' # two blanks, then the id of a case, shortened or not
        verdict '80 columns: the kernel that is checked'
    fi
    same "$columns columns: an interruption leaves nothing of it" "$(grep -c 'interrupted: writing' screen) $(lines_left)" '1 0'
done

start 80 xterm verify --backend libm,scalar --kernel alibi --out "csv:$scratch/work/r.csv"
wait $shown
same 'a run to its end succeeds, and leaves nothing of it' "$? $(drawings verify | grep -q . && lines_left)" '0 0'
start 80 xterm bench --backend scalar --time-limit 7200 --problem "'alibi heads=1 queries=4 keys=4'" --out "csv:$scratch/work/r.csv"
wait $shown
status=$?
if [ $status = 77 ]; then
    skip 'bench: shapes and a time' 'nothing is timed here'
else
    drawings bench | grep -Eq '^bench 0/1 shapes, about [0-9]+ min left  alibi/'
    verdict 'bench: shapes and a time'
fi

start 80 xterm pair "$PLUGIN" "$PLUGIN" --kernel alibi --part results --out "jsonl:$scratch/work/r.jsonl"
wait $shown
status=$?
if [ $status = 77 ]; then
    skip 'pair: kernels of two builds' 'nothing is timed here'
else
    [ $status = 0 ] && drawings 'pair results' | grep -q '^pair results [0-9]/2 kernels on backends of either build'
    verdict 'pair: kernels of two builds' "exit $status"
fi

start 80 dumb verify --backend scalar --kernel alibi --out "csv:$scratch/work/r.csv"
wait $shown
same 'a terminal that cannot erase gets no line' "$? $(grep -c 'kernels on backends' screen)" '0 0'
finish
