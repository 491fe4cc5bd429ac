#!/bin/sh
# Plug-ins are listed, verified, timed and forced like the library's own backends, and wrong ones fail.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"

succeeds 'list names it' '^. example +example' list backends --plugin "$PLUGIN"
succeeds 'verify passes it' 'example' verify --plugin "$PLUGIN"
run "$POSENC" verify --plugin "$PLUGIN" --out csv
grep -q ',example,' stdout && ! grep -q ',scalar,' stdout
verdict 'verify --plugin checks the plug-in alone' 'other backends in the results'
run "$POSENC" verify --plugin "$PLUGIN_WRONG"
ended 'a wrong one fails, exit 1' 1 'alibi/'
grep -q '^      matches: query_offset is one too high$' stdout
verdict 'and the failure names the mistake'
run "$POSENC" verify -v --plugin "$PLUGIN_WRONG" --problem 'alibi heads=1 queries=2 keys=14 query_offset=9 causal=true'
same 'in depth a number in the place of an infinity is the worst value' "$status $(grep -c '^    \[   12\]' stdout)" '1 1'
run "$POSENC" verify -v --plugin "$PLUGIN_WRONG" --problem 'alibi heads=1 queries=2 keys=99'
ended 'and one that is no known mistake is said to be none' 1 '^    no known mistake reproduces these values$'
# Right plug-ins pass, also those that others compile in another way.
if [ -n "${PLUGIN_F32:-}" ]; then
    succeeds 'one for f32 alone is handed nothing else, tables neither, and passes all cases' '^0 failed' \
        verify --plugin "$PLUGIN_F32" --jobs 2
    run "$POSENC" bench --plugin "$PLUGIN_F32" --backend right --time-limit 0.01 --out csv \
        --problem 'rope_half table_dtype=bf16 heads=2 tokens=3 head_dim=64 rotary_dim=64 rows=4'
    same 'nor when it is timed' "$(grep -c 'takes f32 alone' stdout)" 1
    rotations='rope_half,rope_interleaved,rope_qk_norm'
    succeeds 'one whose compiler contracts passes where it says so' '^0 failed' \
        verify --plugin "$PLUGIN_CONTRACTS" --kernel $rotations --jobs 2
    run "$POSENC" verify --plugin "$PLUGIN_UNDECLARED" --kernel $rotations --jobs 2
    if [ $status = 0 ]; then
        skip 'and where it does not, the failure says what to say' 'nothing was contracted'
    else
        same 'and where it does not, the failure says what to say' \
            "$(grep -c 'FAIL' stdout) $(grep -c 'says it by .allows_contraction' stdout)" \
            "$(grep -c 'FAIL' stdout) $(grep -c 'FAIL' stdout)"
    fi
else
    skip 'right plug-ins of other compilers pass' 'of a machine that is emulated, or with sanitizers'
fi
# Several threads are the first to call it: where they exit at once a sanitizer may see that first.
ended='the process was ended by exit(0)\|the process ended by signal 6'
run env STAYS=yes "$POSENC" verify --plugin "$PLUGIN_EXIT" --kernel alibi --case 'alibi/f32/memory/guard-end'
same 'one that calls exit(0), which never ends, has crashed' "$status $(grep -c "$ended" stdout)" '1 1'
three='--kernel alibi,t5_bias,learned_grad --backend scalar,libm'
run "$POSENC" verify $three --jobs 1 --out csv
grep -v '^#' stdout >one
run "$POSENC" verify $three --jobs 3 --out csv
same 'three kernels at once report what one at a time reports, in its order' "$(grep -v '^#' stdout | cksum)" "$(cksum <one)"
# The command that a failure prints fails as well, whatever suite found it.
run "$POSENC" verify --plugin "$PLUGIN_WRONG" --out jsonl:w.jsonl
for suite in vectors accuracy memory digests; do
    line=$(grep '"status": *"fail"' work/w.jsonl | grep "\"suite\": *\"$suite\"" | grep -o "posenc verify[^\"]*--problem '[^']*'" | head -n 1)
    [ -n "$line" ] || continue
    problem=${line#*--problem \'}
    run "$POSENC" verify --plugin "$PLUGIN_WRONG" --problem "${problem%\'}"
    [ $status = 1 ]
    verdict "the problem of a failure in $suite fails"
done
rm -f work/w.jsonl
# A wrong output is a failure of a command that times, too, whatever else it times, and where nothing else finds it.
run "$POSENC" bench --problem 'alibi heads=3 queries=2 keys=5' --plugin "$PLUGIN_WRONG" --backend scalar,example --time-limit 0.1 --out csv
if grep -q 'nothing is timed here' stderr; then
    skip 'bench: one wrong output of two' "$(cat stderr)"
else
    same 'bench: one wrong output of two, exit 1' \
        "$status $(grep -c ',bench,.*,scalar,.*wrong' stdout) $(grep -c ',bench,.*,example,.*wrong' stdout)" '1 0 1'
fi
run "$POSENC" bench --plugin "$PLUGIN" --model bloom-560m --time-limit 0.01 --out csv
timed() {
    grep ',bench,' stdout | grep -Eo '[a-z0-9_]+/f32/given/[a-z0-9-]+' | sed 's,/.*,,' | LC_ALL=C sort -u | tr '\n' ' '
}
if grep -q 'nothing is timed here' stderr; then
    skip 'bench --plugin times the kernels that it has' "$(cat stderr)"
else
    same 'bench --plugin times the kernels that it has' "$(timed)" 'alibi '
    run "$POSENC" bench --plugin "$PLUGIN" --kernel alibi,alibi_add --model bloom-560m --time-limit 0.01 --out csv
    same 'and more where --kernel says so' "$(timed)" 'alibi alibi_add '
fi
rejects 'a kernel that no selected backend has' '--kernel: rope_half: no selected backend provides it: expected one of alibi$' \
    verify --plugin "$PLUGIN" --kernel rope_half
# The plug-in of the examples, as it is built here and as its first comment says to build it.
right() { # NAME LIBRARY
    succeeds "$1" '^0 failed, [0-9]* passed' verify --quick --plugin "$2" --kernel rope_half
}
right 'the one of examples/ is right' "$EXAMPLE"
name='and built for this CPU'
if [ -n "${PROGRAM:-}" ]; then
    skip "$name" 'not here'
else
    run ${CC:-cc} -std=c11 -O3 -march=native -shared -fPIC "$root/examples/plugin.c" "-I$root/impl/include" -lm -o mine.so
    right "$name" ./mine.so
fi
# The plug-in has the address of each function, so that the loader misses one that does not exist.
name='a plug-in may call every function of the library'
if [ -n "${PROGRAM:-}" ] || [ "$(uname)" = Darwin ]; then
    skip "$name" 'not here'
else
    awk '$1 == "symbol" { print "void " $2 "(void);"; all = all $2 ", " } END { print "void (*const all[])(void) = { " all "};" }' \
        "$root/impl/abi.txt" >work/all.c
    run ${CC:-cc} -shared -fPIC all.c "$root/examples/plugin.c" "-I$root/impl/include" -lm -o mine.so
    succeeds "$name" '^. mine +mine' list backends --plugin ./mine.so
    rm -f work/*
fi
rejects 'a model without its kernels' '--plugin: example: provides none of the selected kernels: .* a backend with learned_add$' verify --model gpt2 --plugin "$PLUGIN"
rejects 'a problem of another kernel' '--plugin: example: provides none of the selected kernels: .* with rope_half$' verify --plugin "$PLUGIN" \
    --problem 'rope_half heads=1 tokens=1 rows=1 head_dim=4 rotary_dim=4'
# Plug-ins that load without an option: of the folder beside the program, or of POSENC_PLUGINS.
mkdir work/folder
cp "$PLUGIN" work/folder/example.so
export POSENC_PLUGINS=folder
succeeds 'what lies in POSENC_PLUGINS is listed' '^. example +example' list backends
run "$POSENC" verify --kernel alibi --out csv
same 'and verified beside the others' "$status $(grep -Eo ',(example|scalar),' stdout | sort -u | tr -d '\n')" '0 ,example,,scalar,'
run env POSENC_BACKEND=example "$POSENC" list kernels
same 'POSENC_BACKEND forces it' "$(awk '$1 == "alibi" { print $3 }' stdout)" example
run "$POSENC" verify --kernel alibi --plugin folder/example.so --out csv
same 'and named by --plugin it is the selection' "$status $(grep -c ',scalar,' stdout)" '0 0'
printf no >work/folder/broken.so
run "$POSENC" list backends
same 'one that is none is skipped with a message' \
    "$status $(grep -c '^. example' stdout) $(grep -c '^posenc: skipped: folder/broken.so: cannot be loaded' stderr)" '0 1 1'
for named in nowhere folder/broken.so; do
    run env POSENC_PLUGINS=$named "$POSENC" list backends
    same 'a POSENC_PLUGINS that is no folder is said to be none' "$status $(cat stderr)" \
        "0 posenc: POSENC_PLUGINS: $named: expected a folder of plug-ins"
done
POSENC_PLUGINS=
run "$POSENC" list backends
same 'an empty POSENC_PLUGINS has none' "$status $(grep -cE '^. (example|sleef)' stdout)" '0 0'
unset POSENC_PLUGINS
rm -rf work/folder
if [ -n "${SLEEF:-}" ]; then
    for name in $SLEEF; do
        succeeds "$name lies beside the program" "^. $name +sleef" list backends
    done
fi
rejects 'a kernel it lacks' '--plugin|example.*does not provide sinusoidal' table --problem 'sinusoidal dim=8' \
    --plugin "$PLUGIN" --backend example --out csv:x.csv
finish
