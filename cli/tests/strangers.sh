#!/bin/sh
# Texts that others wrote: a file name reaches the terminal as text, and golden vectors that were changed are never taken
# for the official ones. reports/tests/test_results.py tests records.
. "$(dirname "$0")/tap.sh"
LC_ALL=C
export LC_ALL

name=$(printf 'no\033[31m\n::error::x\342\200\256')
run "$POSENC" report "$name"
same 'a file name in a message is one line of printable characters' \
    "$(wc -l <stderr | tr -d ' ') $(tr -d '\n\t\040-\177' <stderr | wc -c | tr -d ' ')" '1 0'

# Golden vectors that are others: a letter of a note changes, and then its hash.
mkdir work/other
cp -R "$GOLDEN/cases" "$GOLDEN/vectors" work/other
sed 's/| a base that grows with/| A base that grows with/' "$GOLDEN/cases/flags.txt" >work/other/cases/flags.txt
run "$POSENC" list cases --vectors other
ended 'a file that was altered is rejected' 2 'altered.*SHA256SUMS says' stderr
# shellcheck disable=SC2046  # a list of names
(cd work/other && sha256sum $(cut -c67- vectors/SHA256SUMS) >"$scratch/sums" && cp "$scratch/sums" vectors/SHA256SUMS)
run "$POSENC" list cases --vectors other
same 'with hashes that fit it is read' $status 0
same 'and called what it is' "$(head -n 1 stdout | grep -c ': not the official vectors$')" 1
one="--vectors other --kernel alibi --backend scalar --suite vectors"
for format in console md html csv junit summary comment annotations badge jsonl baseline; do
    run "$POSENC" verify $one --out $format
    case $format in jsonl | baseline) note='"official":false' ;; *) note='not the official vectors' ;; esac
    ended "$format says that the vectors are others" 0 "$note"
done
run "$POSENC" verify --kernel alibi --backend scalar --suite vectors
! grep -q 'not the official' stdout stderr
verdict 'of ours that is not said'
finish
