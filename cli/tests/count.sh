#!/bin/sh
# Counts of instructions: the same in each process and by the emulator, and an instruction more is seen.
. "$(dirname "$0")/tap.sh"

# value NAME FILE: that member of the first count in a file of records.
value() { sed -n '/"t": *"count"/{ s/.*"'"$1"'": *"\{0,1\}\([^,"}]*\).*/\1/p; q; }' "$2"; }

run "$POSENC" count --kernel learned_add --backend scalar --out jsonl:r.jsonl
if [ $status = 77 ]; then
    skip 'counts' 'nothing counts here'
    finish
    exit 0
fi
cp work/r.jsonl first.jsonl
by=$(value by first.jsonl)
if [ $status = 0 ] && [ "$(value instructions first.jsonl)" -gt 1000 ]; then pass "counts, by $by"; else fail 'counts' "exit $status"; fi

# ---- The same each time ----

for try in 2 3 4 5; do
    "$POSENC" count --kernel learned_add --backend scalar --out jsonl:again.jsonl 2>stderr
    grep '"t": *"count"' again.jsonl
done >again
grep '"t": *"count"' first.jsonl >>again
same 'five processes count the same' "$(sort -u again | grep -c .)" 1

# ---- An instruction more ----

count_plugin() { # LIBRARY FILE
    "$POSENC" count --plugin "$1" --backend example --out jsonl:"$2" 2>stderr
}
for name in counted element row; do
    eval "library=\$PLUGIN_$(echo $name | tr a-z A-Z)"
    count_plugin "$library" $name.jsonl || fail "counts of plug-in $name" "exit $?"
done
base=$(value instructions counted.jsonl) elements=$(value elements counted.jsonl)
same 'an instruction for each element is one for each element' $(($(value instructions element.jsonl) - base)) "$elements"
rows=$(($(value instructions row.jsonl) - base))
if [ $rows -gt 0 ] && [ $((rows * 100)) -lt "$base" ]; then
    pass "one for each row, less than 1 % of them, is seen: $rows of $base"
else
    fail 'one for each row is seen' "$rows of $base"
fi
# ---- What is shown ----

rm -f work/*
succeeds 'saved counts on a page' 'scalar' report "$scratch/first.jsonl" --out html
refuses 'an operand' 'unexpected argument: alibi' count alibi
refuses 'a pattern that matches nothing' '--case: nothing/[*]' count --kernel learned_add --backend scalar --case 'nothing/*'
run "$POSENC" count --backend scalar --budget 0.000001 --out jsonl:r.jsonl
if grep -q 'budget is spent' stderr && grep -q '"complete": *false' work/r.jsonl; then
    pass 'a budget that is spent leaves a file that says so'
else
    fail 'a budget that is spent' "exit $status"
fi

# ---- By the emulator's plug-in ----

machine=$(uname -m)
if ! "qemu-$machine" --help 2>/dev/null | grep -q -e '-plugin'; then
    skip 'the plug-in of qemu counts the same' "no qemu-$machine that takes plug-ins"
else
    # The table of backends of a CPU that the emulator has: the same kernel on the same backend.
    export POSENC_COUNTER="$scratch/counter"
    run "qemu-$machine" -cpu max -plugin "$COUNTER,to=$POSENC_COUNTER" "$POSENC" count --kernel learned_add --backend scalar \
        --out jsonl:r.jsonl
    unset POSENC_COUNTER
    same 'the plug-in of qemu says who counts' "$(value by work/r.jsonl)" 'qemu plug-in'
    same "and counts the same as $by" "$(value instructions work/r.jsonl) $(value per_element work/r.jsonl)" \
        "$(value instructions first.jsonl) $(value per_element first.jsonl)"
    run "qemu-$machine" -cpu max "$POSENC" count --kernel learned_add --backend scalar --out jsonl:s.jsonl
    if [ $status = 77 ] || [ "$(value instructions work/s.jsonl)" = "$(value instructions first.jsonl)" ]; then
        pass "without it: $([ $status = 77 ] && echo nothing is counted || value by work/s.jsonl)"
    else
        fail 'without it' "exit $status, $(value instructions work/s.jsonl)"
    fi
fi
finish
