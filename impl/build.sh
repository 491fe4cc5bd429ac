#!/bin/sh
# build.sh OUTPUT WORDS FILE...: writes a header that defines the id of this build of the library: the words (version,
# compiler and flags), and a checksum of the words and all files.
out=$1 words=$2
shift 2
sum=$({ printf '%s\n' "$words" && cat "$@"; } | cksum) || exit 1
printf '#define POSENC_BUILD "%s %s"\n' "$words" "${sum%% *}" >"$out"
