#!/bin/sh
# Writes {"name", "text"}, of each JSON file given, as strings of C.
#   embed.sh FILE.json...
set -eu
for file; do
    printf '{"%s",\n' "$(basename "$file" .json)"
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' "$file"
    printf '},\n'
done
