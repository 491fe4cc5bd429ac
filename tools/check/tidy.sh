#!/bin/sh
# clang-tidy on every C file of a build, on all cores; one line of result, and what was found before it.
#
#     sh tools/check/tidy.sh BUILD      BUILD: set up for clang, and built (some headers are made by it)
#
# The backends are left out: they are the templates again and again, and take longer than all the rest.
set -u
list=$1/tidy.list
# Files of the repository are named from the build upwards; what the build made is not looked at.
sed -n 's,^ *"file": "\([.][.]/\)\{1\,\}\(.*[.]c\)".*,\2,p' "$1/compile_commands.json" | grep -v '^impl/backends/' | sort -u >"$list"
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
xargs -P "$cores" -n 6 clang-tidy --quiet -p "$1" <"$list" >"$1/tidy.out" 2>"$1/tidy.err"
status=$?
grep -v '^$' "$1/tidy.out"
# Without this line its words would count how much was suppressed.
grep -v 'warnings generated\|^Suppressed\|^Use -header' "$1/tidy.err"
echo "$(wc -l <"$list") files"
exit $status
