#!/bin/sh
# Prints the golden vectors of a folder with cases/ and vectors/ as one file, a pack, which readers/load.c reads.
#
#     sh pack.sh ROOT >PACK
set -e
cd "$1"
echo posenc.vectors/3
for file in vectors/SHA256SUMS $(cut -c67- vectors/SHA256SUMS); do
    printf '%s %d\n' "$file" "$(wc -c <"$file")"
    cat "$file"
    echo
done
