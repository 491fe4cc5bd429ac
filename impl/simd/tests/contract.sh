#!/bin/sh
# Checks the names in the contract of simd.h: each has a test and stands in the header of every ISA, and the kernels
# use no others.
set -eu
cd "$(dirname "$0")/../.."
primitive='\b(v[fdq]_[a-z0-9_]+)\b'

contract=$(sed '/\*\//q' simd/simd.h | grep -oE "$primitive" | sort -u)
[ -n "$contract" ] || {
    echo 'simd.h: no contract was found at its top'
    exit 1
}
wrong=0

# Prints the names of functions and macros that files define.
defined() { # FILE...
    sed -nE 's/^(SIMD_INLINE|#define) ([a-z0-9_ ]+ \*?)?'"$primitive"'\(.*/\3/p' "$@" | sort -u
}

# Reports the names of the contract that are not among others.
report_missing() { # WHERE NAMES
    for name in $contract; do
        printf '%s\n' "$2" | grep -qx "$name" && continue
        echo "$1: no $name, which the contract in simd.h has"
        wrong=1
    done
}

report_missing simd/tests/primitives.c "$(grep -oE "\"$primitive\"" simd/tests/primitives.c | tr -d '"')"
for header in simd/simd_*.h; do
    report_missing "$header" "$(defined "$header")"
done
known=$(printf '%s\n' "$contract" && defined kernels/*)
for name in $(cat kernels/* | grep -oE "$primitive\\(" | tr -d '(' | sort -u); do
    printf '%s\n' "$known" | grep -qx "$name" && continue
    echo "kernels: $name is not in the contract in simd.h"
    wrong=1
done
exit $wrong
