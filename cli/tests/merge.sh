#!/bin/sh
# Merged shards of a run are that run, and the file of a run that was interrupted says so. reports/tests/test_merge.py tests
# which files are rejected.
. "$(dirname "$0")/tap.sh"

checks='--kernel alibi,learned_add --backend scalar,libm --suite memory'

# Prints the records of checks in a file.
check_records() { # FILE
    grep '"t":"check"' "work/$1"
}

# ---- shards ----

verify_part() { run "$POSENC" verify $checks "$@"; }
verify_part --out jsonl:whole.jsonl
check_records whole.jsonl >whole
same 'a whole run' "$status $(grep -c shard work/whole.jsonl)" '0 0'
for i in 0 1 2; do
    verify_part --shard $i/3 --out jsonl:r$i.jsonl
    same "shard $i of 3" "$status $(sed -n '1s/.*"shard":\({[^}]*}\).*/\1/p' work/r$i.jsonl)" "0 {\"i\":$i,\"n\":3}"
done
cat work/r?.jsonl | grep '"t":"check"' | sed 's/,"place":[0-9]*//' | sort >shares
sort whole | diff - shares >difference
same 'together they are the checks of the whole run, each once, with the same values' "$? $(cat difference)" '0 '
at_most=$(($(grep -c . whole) * 2 / 3))
for i in 0 1 2; do
    n=$(check_records r$i.jsonl | grep -c .)
    [ "$n" -gt 0 ] && [ "$n" -lt $at_most ]
    verdict "shard $i has a share" "$n checks"
done
for i in 0 1 2; do
    check_records r$i.jsonl | sed 's/.*"case":"\([^"]*\)".*/\1/' | sort -u
done | sort | uniq -d >twice
same 'all backends of a case are in one shard' "$(cat twice)" ''
for i in 0 1 2; do
    check_records r$i.jsonl | sed -n 's/.*"case":"\([^"]*\/memory\)\/.*/\1/p' | sort -u
done | sort | uniq -d >twice
same 'and so are the checks of memory that are made in one sweep' "$(cat twice)" ''

run "$POSENC" results merge r2.jsonl r0.jsonl r1.jsonl -o merged.jsonl
check_records merged.jsonl | diff whole - >difference
same 'merged, they are that run to the letter' "$status $(cat difference)" '0 '
same 'with one header, of no shard, and one footer' "$(grep -c '^{"t":"header"' work/merged.jsonl) \
$(head -n 1 work/merged.jsonl | grep -vc '"shard"') $(tail -n 1 work/merged.jsonl | grep -c '"t":"footer","complete":true')" '1 1 1'
for wrong in 3/3 1/3x 1/5000; do
    rm -rf empty && mkdir empty && mv work kept && mv empty work
    rejects "--shard '$wrong'" '[-]-shard: .*expected I/N, share I of N with I from 0 to N - 1' verify $checks --shard "$wrong"
    rm -rf work && mv kept work
done
one=$(sed -n '1s/.*"case":"\([^"]*\)".*/\1/p' whole)
empty=0
for i in 0 1 2 3; do
    run "$POSENC" verify --kernel alibi,learned_add --backend scalar --case "$one" --shard $i/4 --out jsonl:e$i.jsonl
    [ $status = 0 ] && empty=$((empty + $(check_records e$i.jsonl | grep -c .)))
done
same 'a shard that nothing falls into is fine' "$status $empty" '0 1'
run "$POSENC" verify --kernel alibi --backend scalar --case 'alibi/no/such' --shard 1/4 --out jsonl:none.jsonl
same 'a pattern that matches nothing in any shard is rejected' "$status $(find work -name none.jsonl)" '2 '

rm -f work/*

# ---- interrupted ----

# Checks that never end, in the background, until the one that hangs has begun.
(cd work && MISBEHAVED="$scratch/hangs" exec "$POSENC" verify --plugin "$PLUGIN_HANG" --limit 86400 --backend scalar,example \
    --kernel alibi --suite memory --out "jsonl:slow.jsonl" >"$scratch/stdout" 2>"$scratch/stderr") &
pid=$!
while kill -0 $pid 2>kill.log && [ ! -e hangs ]; do :; done
kill -TERM $pid
wait $pid
same 'terminated, it leaves a file that is not complete' \
    "$? $(ls work) $(tail -n 1 work/slow.jsonl | grep -c '"complete":false')" '143 slow.jsonl 1'
rm -f work/*

# ---- timings ----

times='--model transformer-base,llama-3.1-8b,bloom-176b --case *-decode --backend scalar,libm --time-limit 0.4'
timed_cases() { grep '"t":"bench"' "work/$1" | sed 's/.*"case":"\([^"]*\)","backend":"\([^"]*\)".*/\1 \2/'; }
run "$POSENC" bench $times --out jsonl:whole.jsonl
if [ $status = 77 ]; then
    skip 'bench' "$(cat stderr)"
else
    timed_cases whole.jsonl >whole
    for i in 0 1; do
        run "$POSENC" bench $times --shard $i/2 --out jsonl:b$i.jsonl
        same "bench, shard $i" "$status" 0
    done
    run "$POSENC" results merge b1.jsonl b0.jsonl -o merged.jsonl
    timed_cases merged.jsonl | diff whole - >difference
    same 'shards of bench have each case once, with all of its backends, in order' "$status $(cat difference)" '0 '
fi
rm -f work/*

finish
