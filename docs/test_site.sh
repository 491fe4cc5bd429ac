#!/bin/sh
# Builds the site of the documentation, and checks its pages and the names in the C API. Prints TAP.
#
#     sh docs/test_site.sh
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/cli/tests/tap.sh"

if ! mkdocs build --help 2>/dev/null | grep -q material; then
    skip 'the site' 'no MkDocs with the theme Material'
    finish
    exit
fi
run env PYTHONDONTWRITEBYTECODE=1 mkdocs build --strict -f "$root/mkdocs.yml" --site-dir "$scratch/site"
same 'the site builds without a warning' $status 0
! grep -q 'not included in the "nav"' stderr
verdict 'each page is in the navigation' 'mkdocs.yml lacks a page'
grep '<h4' site/c-api.html | grep -o '<code>[a-z0-9_]*</code>' | sed 's/<[^>]*>//g' >headings
sed -n 's/^symbol //p' "$root/impl/abi.txt" >symbols
[ -s symbols ] && ! grep -vxF -f headings symbols >missing
verdict 'each function of the library has a heading in the C API' "no heading: $(tr '\n' ' ' <missing)"
finish
