#!/bin/sh
# Two files of results side by side: nothing runs, and the answer is exact.
. "$(dirname "$0")/tap.sh"

run "$POSENC" verify --quick --kernel alibi --backend scalar --suite accuracy --out jsonl:base.jsonl --force
same 'a run is recorded' $status 0
mv work/base.jsonl .

# compares NAME EXIT PATTERN [OPTION...]: base.jsonl with head.jsonl
compares() {
    name=$1 want=$2 pattern=$3
    shift 3
    run env COLUMNS=80 "$POSENC" compare ../base.jsonl ../head.jsonl "$@"
    if [ $status != "$want" ]; then
        fail "$name" "exit $status, want $want"
    elif ! grep -Eq -e "$pattern" stdout; then
        fail "$name" "not found: $pattern"
    else
        pass "$name"
    fi
}

# Head is base with this done to it.
edited() {
    sed "$1" base.jsonl >head.jsonl
}

edited ''
compares 'a file beside itself: nothing changed' 0 '0 worse.*0 better'
compares 'a gate passes' 0 '0 worse' --gate

edited '/"t":"check"/s/"max":[0-9.e-]*/"max":0.75/'
compares 'errors that grew are worse' 0 '[1-9][0-9]* worse'
compares 'and fail a gate' 3 '0\.75' --gate
run "$POSENC" compare ../head.jsonl ../base.jsonl --gate
same 'errors that shrank do not' "$status $(grep -c ' 0 worse' stdout)" '0 1'

edited '/"t":"check"/s/"status":"pass"/"status":"fail"/'
compares 'a new failure: exit 1' 1 'fail, was pass'

edited '/"t":"env"/s/"key":"[^"]*"/"key":"paper"/'
compares 'another CPU: exit 5, by name' 5 'Not comparable, CPU: .* in base, paper in head'

edited '/"t":"header"/s/"sha256":"[0-9a-f]*"/"sha256":"0"/'
compares 'other vectors: exit 5, by name' 5 'golden vectors'

edited 2d # env
compares 'what no machine is told of is compared as it is' 0 '0 worse'

edited '$d'
compares 'a run that ended early is no whole one: exit 5, by name' 5 'Not comparable, run: whole in base, ended early in head' --gate
compares 'and loses nothing that was not asked for' 5 '0 worse'
edited '/"t":"check"/d'
compares 'nothing in common is not the same: exit 5' 5 'Not comparable, results: none that head has in base' --gate

edited ''
run "$POSENC" compare ../base.jsonl ../head.jsonl --out jsonl:c.jsonl --out md:c.md -o c.html
same 'a comparison is a file of records itself' "$status $(grep -c '"compare":{' work/c.jsonl)" '0 1'
same 'with a page' "$(grep -c '<!DOCTYPE html>' work/c.html) $(grep -c '^# posenc' work/c.md)" '1 1'
run "$POSENC" report c.jsonl -o c.md --force
same 'that report reads' $status 0
rm -f work/c.*

refuses 'what would be timed is refused' 'has no effect here' compare ../base.jsonl ../head.jsonl --budget 5
refuses 'a kernel is not selected' 'has no effect here' compare ../base.jsonl ../head.jsonl --kernel alibi
echo '{"t":' >broken.jsonl
refuses 'a damaged file is refused by its line' 'line 1 is no record.*broken.jsonl' compare ../base.jsonl ../broken.jsonl
refuses 'a file and a build are not compared' 'base.jsonl' compare ../base.jsonl ./nowhere.so
finish
