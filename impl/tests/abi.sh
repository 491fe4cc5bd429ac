#!/bin/sh
# abi.sh LIBRARY [--write]: compares the binary interface of the headers (see abi.awk) and the exported symbols of the shared
# library with the list in impl/abi.txt. With --write it writes the list.
here=$(cd "$(dirname "$0")" && pwd)
list=$here/../abi.txt
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

awk -f "$here/abi.awk" "$here/../include/posenc.h" "$here/../include/posenc/"*.h >"$scratch/abi.c" &&
    ${CC:-cc} -std=c11 -I"$here/../include" "$scratch/abi.c" -o "$scratch/abi" && "$scratch/abi" >"$scratch/now" || exit 1
if ${CC:-cc} -fshort-enums -fsyntax-only -x c /dev/null 2>"$scratch/found"; then
    ${CC:-cc} -std=c11 -fshort-enums -I"$here/../include" "$scratch/abi.c" -o "$scratch/short" &&
        "$scratch/short" | diff "$scratch/now" - || { echo 'abi: -fshort-enums changes a struct' && exit 1; }
fi
if ! command -v nm >"$scratch/found" || [ ! -s "$1" ] || [ "$(getconf LONG_BIT)" != 64 ]; then
    echo 'abi: no nm, no shared library, or no 64 bits: skipped'
    exit 77
fi
nm -D --defined-only "$1" | awk '$3 ~ /^posenc_/ { print "symbol " $3 }' | LC_ALL=C sort >>"$scratch/now"

if [ "$2" = --write ]; then
    cp "$scratch/now" "$list"
    exit
fi
if diff "$list" "$scratch/now"; then
    echo "abi: $(wc -l <"$list") lines as listed"
    exit 0
fi
cat <<'END'

What programs are built against has changed (< as listed in impl/abi.txt, > now).
- Only lines that are new, each struct with members at its end and a larger size: write the list anew,
  sh impl/tests/abi.sh LIBRARY --write, and commit it with the change.
- A struct whose size did not grow though it has a member more: the member lies in padding, where the programs of
  today have anything.  Make it larger or put a reserved member beside it.
- A line that changed or went: programs break.  Raise POSENC_ABI, and write the list anew.
END
exit 1
