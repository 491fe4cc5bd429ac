#!/bin/sh
# Writes a C file holding each JSON file given as a string: model_sources[], ending in NULL names.
#   embed.sh OUT.c FILE.json...
set -eu
out=$1
shift
{
    printf '/* Made by conformance/models/embed.sh; do not edit. */\n#include "sources.h"\n'
    printf 'const struct model_source model_sources[] = {\n'
    for file; do
        name=$(basename "$file" .json)
        printf '{"%s",\n' "$name"
        sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' "$file"
        printf '},\n'
    done
    printf '{0, 0}};\n'
} > "$out.tmp"
mv "$out.tmp" "$out"
