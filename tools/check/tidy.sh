#!/bin/sh
# Runs clang-tidy on every C file of a build, on all cores. Prints the findings and then one line.
#
#     sh tools/check/tidy.sh BUILD      a build by clang, which has to be compiled, since it makes some headers
#
# Backends are left out: they are the templates again and again, and take longer than all other files.
set -u
list=$1/tidy.list
# Files of the repository have a path that begins with ..; the build made the others.
sed -n 's,^ *"file": "\([.][.]/\)\{1\,\}\(.*[.]c\)".*,\2,p' "$1/compile_commands.json" | grep -v '^impl/backends/' | sort -u >"$list"
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
xargs -P "$cores" -n 6 clang-tidy --quiet -p "$1" <"$list" >"$1/tidy.out" 2>"$1/tidy.err"
status=$?
grep -v '^$' "$1/tidy.out"
# clang-tidy also prints how many warnings it suppressed.
grep -v 'warnings generated\|^Suppressed\|^Use -header' "$1/tidy.err"
echo "$(wc -l <"$list") files"
exit $status
