#!/bin/sh
# Builds the site of the documentation, and compares its generated pages with the library and the program. Prints TAP.
#
#     POSENC=build/posenc sh docs/test_site.sh
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

# ---- C API ----

grep '<h4' site/c-api.html | grep -o '<code>[a-z0-9_]*</code>' | sed 's/<[^>]*>//g' >headings
sed -n 's/^symbol //p' "$root/impl/abi.txt" >symbols
[ -s symbols ] && ! grep -vxF -f headings symbols >missing
verdict 'each function of the library has a heading in the C API' "no heading: $(tr '\n' ' ' <missing)"

# ---- Command line ----

list_commands >commands
while read -r command; do
    "$POSENC" $command --help >help 2>help.log || continue # without Jinja2 or rich
    sed -n "/^<h[23] id=\"posenc-$(echo "$command" | tr ' ' -)\"/,/^<h[23] /p" site/cli.html | sed '1!{/^<h[23]/d;}' >section
    [ -s section ] || echo "$command"
    options_of help | while read -r option; do grep -Eq "<code>$option( |</code>)" section || echo "$command:$option"; done
done <commands >missing
[ "$(grep -c . commands)" -gt 30 ] && [ ! -s missing ]
verdict 'each command and option has its row' "missing: $(tr '\n' ' ' <missing)"
"$POSENC" --help | sed -n '/^Exit codes/,$s/^  \([A-Z0-9_+]*\)  .*/\1/p' | while read -r name; do
    grep -qF "<td><code>$name</code></td>" site/cli.html || echo "$name"
done >missing
[ ! -s missing ]
verdict 'each exit code and variable has its row' "missing: $(tr '\n' ' ' <missing)"

# ---- Support ----

# A line for each row of a table: cells with " | " after each.
tr -d '\n' <site/support.html | awk '{ gsub(/<tr>|<\/table>/, "\n"); gsub(/<\/t[dh]>/, " | "); gsub(/<[^>]*>/, ""); print }' >rows
"$POSENC" list backends | awk 'NR > 3 && /^[*+ ] [a-z]/ && $2 != "default" { sub(/^[*+ ] /, ""); print $1 " | " $2 " | " }' >backends
while read -r backend; do grep -qF "$backend" rows || echo "$backend"; done <backends >missing
[ -s backends ] && [ ! -s missing ]
verdict 'each backend has its row' "missing: $(cat missing)"
# Lists of kernels have a kernel and, below it, "by" and its backends. They become lines KERNEL<tab>BACKENDS.
"$POSENC" list kernels | sed -n 's/^\([a-z][a-z0-9_]*\) .* \(table\|apply\) .*/\1/p; s/^  *by / /p' | paste - - >kernels
while read -r kernel by; do
    # The last column of the page: yes or –. If this build lacks SLEEF, either may be right.
    case " $by " in *' all '* | *' sleef_'*) sleef=yes ;; *) sleef=– ;; esac
    grep -q sleef backends || sleef='[^|]*'
    grep -q "^$kernel | .* | $sleef | *\$" rows || echo "$kernel: $sleef"
    for backend in $(sed '/sleef/d; s/ .*//' backends); do
        case " $by " in *' all '* | *" $backend "*) ;; *) echo "$kernel: $backend lacks it" ;; esac
    done
done <kernels >wrong
[ "$(grep -c . kernels)" -gt 18 ] && [ ! -s wrong ]
verdict 'each kernel has its row, which names its backends' "$(cat wrong)"
# Column 4 says whether a kernel takes `transpose`.
awk -F ' [|] ' '$4 == "yes" { print "`" $1 "`" }' rows >transposed
while read -r kernel; do grep -q "^| kernels |.*$kernel.* transposed" "$root/README.md" || echo "$kernel"; done <transposed >missing
[ -s transposed ] && [ ! -s missing ]
verdict 'README names the kernels with a transpose' "$(cat missing)"
grep -c '^\(un\)\{0,1\}tested' rows >tested
same 'the platforms are those of README' "$(cat tested)" 3

# ---- Glossary ----

grep -o '<span id="[a-z-]*"></span>[^<]*' site/glossary.html | sed 's/.*>//' >terms
for term in kernel 'A/A control' 'SLOWER (verdict)'; do grep -qxF "$term" terms || echo "$term"; done >missing
sort -f terms | uniq -di >twice
same 'the glossary has the terms of library and reports, each once' "$(cat missing twice)" ''
finish
