#!/bin/sh
# posenc bench --instructions: every process counts the same, and one instruction more is detected.
. "$(dirname "$0")/tap.sh"

# Prints a member of the first count in a file of records.
count_member() { sed -n '/"t": *"count"/{ s/.*"'"$1"'": *"\{0,1\}\([^,"}]*\).*/\1/p; q; }' "$2"; }

# Counts instructions and writes the records into a file.
count() { # FILE ARGUMENTS...
    file=$1
    shift
    run "$POSENC" bench --instructions "$@" --out jsonl:r.jsonl
    cp work/r.jsonl "$file" 2>/dev/null
}

count first.jsonl --kernel learned_add --backend scalar
if [ $status = 77 ]; then
    skip 'counts' 'nothing counts here'
    finish
    exit 0
fi
same 'counts by single steps' "$status $(count_member by first.jsonl)" '0 single step'
for try in 2 3 4 5; do
    count again.jsonl --kernel learned_add --backend scalar
    grep '"t": *"count"' again.jsonl
done >again
grep '"t": *"count"' first.jsonl >>again
same 'five processes count the same' "$(sort -u again | grep -c .)" 1

for name in counted element row; do
    eval "library=\$PLUGIN_$(echo $name | tr a-z A-Z)"
    count $name.jsonl --plugin "$library" --backend example
done
base=$(count_member instructions counted.jsonl)
same 'an instruction for each element is one for each element' \
    $(($(count_member instructions element.jsonl) - base)) "$(count_member elements counted.jsonl)"
rows=$(($(count_member instructions row.jsonl) - base))
[ $rows -gt 0 ] && [ $((rows * 100)) -lt "$base" ]
verdict 'one for each row, less than 1 % of them, is detected' "$rows of $base"

rm -f work/*
succeeds 'saved counts on a page' 'scalar' report "$scratch/first.jsonl" --out html
rejects 'an operand' 'unexpected argument: alibi' bench --instructions alibi
rejects 'an option of timings' 'expected without --model' bench --instructions --model llama-3.1-8b
rejects 'a pattern that matches nothing' '--case: nothing/[*]' bench --instructions --kernel learned_add --case 'nothing/*'
run "$POSENC" bench --instructions --backend scalar --case 'learned_add/*' --time-limit 0.000001
same 'forms that --case leaves out are not in the total' "$(grep -c ' after 0 of 1 kernels on backends; 0 counted' stderr)" 1
run "$POSENC" bench --instructions --backend scalar --time-limit 0.000001 --out jsonl:r.jsonl
grep -q 'time-limit reached' stderr && grep -q '"complete": *false' work/r.jsonl
verdict 'with a time limit that is reached, the file is marked as incomplete'
finish
