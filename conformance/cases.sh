#!/bin/sh
# Prints the compiled-in problems as elements of files[] in problem/cases.c. Of the golden cases it takes the paragraphs
# with shapes of kernels, of other files all lines.
#
#     sh cases.sh QUOTE.SED CASES
set -e
quote=$1 cases=$2

print_file() { # ENUMERATOR NAME <TEXT
    printf '[%s] = { "%s", (const char *const[]){\n' "$1" "$2"
    sed -f "$quote"
    printf 'NULL } },\n'
}

# The names are those of case_is_shape().
awk 'BEGIN { RS = ""; ORS = "\n\n" } /(^|\n)(default|realistic|length[0-3]|random) /' "$cases"/golden/*.txt |
    print_file CASES_SHAPES cases/golden
for name in VARIANTS PROPERTIES SIZES REJECTED SCANS; do
    text=$(printf %s.txt "$name" | tr '[:upper:]' '[:lower:]')
    print_file CASES_$name "$text" <"$cases/$text"
done
