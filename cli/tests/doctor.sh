#!/bin/sh
# What posenc doctor says of whatever machine this is: its form, never its grade.
. "$(dirname "$0")/tap.sh"

refuses 'an argument' 'doctor: unexpected argument: now: expected options only' doctor now
refuses 'an option of others' 'doctor: unknown option: kernel: expected one of quick, out, force, help' doctor --kernel alibi
refuses 'a format without machines' 'doctor: --out: junit: expected' doctor --quick --out junit
refuses 'a folder that is not there' 'doctor: --out: none/r.md: cannot be written' doctor --quick --out md:none/r.md

run "$POSENC" doctor --quick --out console --out jsonl:r.jsonl --out md:r.md --out html:r.html
if [ $status = 77 ]; then # emulated: nothing else can be asked of it
    if grep -q 'doctor: nothing is measured here: ' stderr && [ ! -s stdout ] && [ -z "$(ls work)" ]; then
        pass 'under an emulator: 77, and why'
    else
        fail 'under an emulator: 77, and why' "files: $(ls work)"
    fi
    finish
    exit 0
fi
cp stdout console
if [ $status = 0 ] && grep -Eq '^ *Grade [ABCD]: timings tell apart what differs by more than [0-9.]+ %' console; then
    pass 'a grade, and what it means'
else
    fail 'a grade, and what it means' "exit $status"
fi
if grep -q '^ *against its own copy' console && grep -Eq '^ +cache, [0-9]+ KiB +([0-9]+|any) ' console; then
    pass 'a kernel against its own copy'
else
    fail 'a kernel against its own copy' "$(cat console)"
fi
same 'records of a machine, and of nothing else' "$(sed -n 's/^{"t": *"\([a-z]*\)".*/\1/p' work/r.jsonl | tr '\n' ' ')" 'header env machine footer '
grep '"t": *"machine"' work/r.jsonl >machine
findings=$(grep -o '"what":' machine | wc -l)
whole=$(grep -oE '"what":"[^"]+","level":"(costs|note|fine|hidden)","cost_pct":[^,]+,"evidence":"[^"]+","fix":' machine | wc -l)
if [ "$findings" -gt 8 ] && [ "$findings" = "$whole" ]; then pass 'findings are whole'; else fail 'findings are whole' "$whole of $findings"; fi
if grep -q '"complete":true' work/r.jsonl && ! grep -Eqi '[^a-z](nan|inf)[^a-z]' machine; then
    pass 'complete, and all numbers are numbers'
else
    fail 'complete, and all numbers are numbers' "$(cat machine)"
fi
run "$POSENC" report r.jsonl
if [ $status = 0 ] && cmp -s stdout console; then pass 'a saved file reads as the run did'; else fail 'a saved file reads as the run did' "exit $status"; fi
if grep -q 'Can this machine be trusted' work/r.md && grep -q 'Can this machine be trusted' work/r.html && ! grep -q 'Timing: none' work/r.md; then
    pass 'pages'
else
    fail 'pages' "$(head -20 work/r.md)"
fi
COLUMNS=80 run "$POSENC" report r.jsonl
wide=$(grep -v '^    ' stdout | awk 'length($0) > 80' | wc -l)
same '80 columns hold all but commands' "$wide" 0
rm -rf work/*

# Killed: what there is, and it says so; on a terminal, how far it was.
says_how_far() { shows screen 'doctor [0-9]+/13 seconds, about [0-9]+ s left'; }
has_begun() { [ -n "$(ls work)" ]; }
reason=$(no_terminal)
if [ -z "$reason" ]; then
    terminal 80 xterm screen "echo \$\$ >pid; exec $POSENC doctor --out jsonl:work/r.jsonl"
    await says_how_far
else
    sh -c "echo \$\$ >pid; exec $POSENC doctor --out jsonl:work/r.jsonl" >stdout 2>stderr &
    shown=$!
    await has_begun
fi
kill -TERM "$(cat pid)"
wait $shown
same 'a signal ends it' $? 143
if [ -n "$reason" ]; then
    skip 'how far it is, and how long it takes' "$reason"
elif says_how_far; then
    pass 'how far it is, and how long it takes'
else
    fail 'how far it is, and how long it takes' "$(tr '\r' '\n' <screen)"
fi
run "$POSENC" report r.jsonl
if grep -q '"complete":false' work/r.jsonl && [ $status = 0 ] && grep -Eq '(Partial|Incomplete): 1 of 1 run' stdout; then
    pass 'with a file that says what is missing'
else
    fail 'with a file that says what is missing' "exit $status: $(cut -c1-200 work/r.jsonl)"
fi
finish
