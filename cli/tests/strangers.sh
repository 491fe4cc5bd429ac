#!/bin/sh
# Texts that others wrote: a file name reaches the terminal as text, and golden vectors that were changed are never taken
# for the official ones. reports/tests/test_strangers.py tests records.
. "$(dirname "$0")/tap.sh"
LC_ALL=C
export LC_ALL

name=$(printf 'no\033[31m\n::error::x\342\200\256')
run "$POSENC" report "$name"
same 'a file name in a message is one line of printable characters' \
    "$(wc -l <stderr | tr -d ' ') $(tr -d '\n\t\040-\177' <stderr | wc -c | tr -d ' ')" '1 0'

# Golden vectors that are others: a letter of a note changes, and then the hash that is said of the file.
sed 's/| a base that grows with/| A base that grows with/' "$PACK" >work/other.pack
run "$POSENC" vectors info --vectors other.pack
ended 'a pack that was altered is refused' 2 'altered.*SHA256SUMS says' stderr
for again in 1 2 3; do
    is=$(sed -n 's/.*and SHA-256 \([0-9a-f]*\) where.*/\1/p' stderr)
    said=$(sed -n 's/.*SHA256SUMS says \([0-9a-f]*\)$/\1/p' stderr)
    [ -n "$said" ] || break
    sed "s/$said/$is/" work/other.pack >work/next.pack
    mv work/next.pack work/other.pack
    run "$POSENC" vectors info --vectors other.pack
done
same 'with hashes that fit it is read' $status 0
same 'and called what it is' "$(head -n 1 stdout | grep -c ': not the official vectors$')" 1
one="--vectors other.pack --kernel alibi --backend scalar --suite vectors"
for format in console md html csv junit summary comment annotations badge jsonl baseline; do
    # shellcheck disable=SC2086  # a list of words
    run "$POSENC" verify $one --out $format
    case $format in jsonl | baseline) note='"official":false' ;; *) note='not the official vectors' ;; esac
    ended "$format says that the vectors are others" 0 "$note"
done
run "$POSENC" verify --kernel alibi --backend scalar --suite vectors
if grep -q 'not the official' stdout stderr; then fail 'of ours that is not said' 'it is'; else pass 'of ours that is not said'; fi
finish
