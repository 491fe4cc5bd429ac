#!/bin/sh
# What this CPU's errors were, and what they are: exactly.  BASELINES is the folder of baselines, a file a CPU.
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
sed '9d' b.jsonl >fewer.jsonl
run "$POSENC" compare ../fewer.jsonl ../r.jsonl --gate
same 'a result that the baseline has not is no change' $status 0
(cd work && "$POSENC" results export ../r.jsonl --format baseline -o b.jsonl && "$POSENC" results export ../r.jsonl --format baseline -o b.jsonl) 2>stderr
same 'it is written over itself, and is the same from a file' "$(cmp work/b.jsonl b.jsonl && echo same)" same
rm -f work/b.jsonl

# Shares of the roof, made up: told as a trend, and no time with them.
timed() { # GB/S, of 100 of the roof
    sed -n 1,2p r.jsonl
    printf '{"t":"bench","kernel":"alibi","dtype":"f32","numerics":"given","case":"alibi/f32/given/l2","backend":"avx2","family":"native","median_ns":1000,"ci":{"lo":990,"hi":1010,"level":0.99},"control_pct":0.1,"rounds":31,"gbps":%s,"roofline":{"gbps":100},"threads":1}\n' "$1"
    echo '{"t":"footer","complete":true}'
}
timed 80 >fast.jsonl
timed 40 >half.jsonl
run sh -c '"$POSENC" results export ../fast.jsonl --format baseline -o s.jsonl && "$POSENC" compare s.jsonl ../half.jsonl --gate'
same 'a share of the roof that fell is a trend, and passes a gate' \
    "$status $(grep -Ec 'avx2 +- +80 % +1.00 .s +40 % +\+100 %' stdout) $(grep -c '_ns' work/s.jsonl)" '0 1 0'
sed '$d' r.jsonl >early.jsonl
run sh -c '"$POSENC" results export ../early.jsonl --format baseline -o e.jsonl && "$POSENC" compare e.jsonl ../r.jsonl --gate'
same 'the baseline of a run that ended early holds nobody' "$status" 5
rm -f work/s.jsonl work/e.jsonl

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
