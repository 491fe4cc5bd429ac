#!/bin/sh
# Errors of this CPU are those of its baseline, exactly. BASELINES is the folder of baselines, a file for each CPU.
. "$(dirname "$0")/tap.sh"

run "$POSENC" verify --quick --suite accuracy --out jsonl:r.jsonl --out baseline:b.jsonl
same 'a run, and its baseline' $status 0
mv work/*.jsonl .
same 'a baseline has no time, no date and no commit' "$(grep -Ec '"(median_ns|min_ns|ci|gbps|started|commit|version)"' b.jsonl)" 0
same 'and a line a result, sorted' "$(sed '1,2d;$d' b.jsonl | LC_ALL=C sort -c && echo sorted)" sorted
same 'of our own backends alone' "$(sed '1,2d;$d' b.jsonl | grep -vc '"family":"native"')" 0

run "$POSENC" compare ../b.jsonl ../r.jsonl --gate
same 'a run is as its baseline' "$status $(grep -c ' 0 worse, 0 better, 0 otherwise' stdout)" '0 1'
# One error was smaller.
awk '!done && /"max":0\.[0-9]*[1-9]/ { sub(/"max":0\.[0-9]*/, "\"max\":0.0625"); done = 1 } { print }' b.jsonl >smaller.jsonl
run "$POSENC" compare ../smaller.jsonl ../r.jsonl --gate
same 'one error that grew beyond it fails' "$status $(grep -c ' 1 worse, 0 better' stdout)" '3 1'
key=$(sed -n 's/.*"cpu":{"key":"\([^"]*\)".*/\1/p' b.jsonl)
committed=$BASELINES/$key.jsonl
name="errors are within reports/baselines/$key.jsonl"
if [ ! -f "$committed" ]; then
    skip "$name" 'this CPU has no baseline: posenc verify --quick --suite accuracy --out baseline:FILE makes one'
else
    run "$POSENC" compare "$committed" ../r.jsonl --gate
    case $status in
    0) pass "$name" ;;
    5) skip "$name" "$(sed -n 's/.*Not comparable, \(.*\)/\1/p' stdout | tr '\n' ' ')" ;;
    *) fail "$name" "exit $status; where it is meant, docs/verdicts.md says how $committed is written again" ;;
    esac
fi
finish
