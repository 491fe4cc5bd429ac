#!/bin/sh
# build.sh OUTPUT WORDS FILE...: writes a header with the id of a build of the library: the words (compiler and flags), and
# the sum of the words and of all files.
out=$1 words=$2
shift 2
sum=$({ printf '%s\n' "$words" && cat "$@"; } | cksum) || exit 1
printf '#define POSENC_BUILD "%s %s"\n' "$words" "${sum%% *}" >"$out"
