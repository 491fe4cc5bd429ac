#!/bin/sh
# Every command once, as users type it, and runs that a signal ends.
. "$(dirname "$0")/tap.sh"

succeeds 'help' 'usage: posenc COMMAND' --help
for version in --version -V 'verify -V'; do
    succeeds "$version" '^posenc [0-9]+\.[0-9]+\.[0-9]+$' $version
done
for command in list verify bench pair table vectors; do
    succeeds "help of $command" "usage: posenc $command" $command --help
    same 'its width' "$(sed -n '/^Options/,$p' stdout | awk 'length > 80' | wc -l | tr -d ' ') $(grep -c '^Examples' stdout)" '0 1'
    cp stdout "help.$command"
    run "$POSENC" help $command
    cmp -s stdout "help.$command"
    verdict "help $command" 'it differs'
done
run "$POSENC"
[ $status = 2 ] && grep -q usage stderr && [ ! -s stdout ]
verdict 'no command'

while read -r kind pattern; do
    succeeds "list $kind" "$pattern" list ${kind#all}
done <<'KINDS'
all ^\* 
backends ^. scalar +native
kernels ^rope_half +apply
methods ^deberta 
types ^mamba +rejected +it encodes no positions
models ^llama-3.1-8b 
cases ^[0-9]+ golden vectors, SHA-256 [0-9a-f]{64}
numerics ^ggml_f32 
scalings ^longrope 
KINDS
run "$POSENC" list cases --dtype f32
same 'list cases of a type' "$(grep -c '^rope_half/f32/' stdout | sed 's/[1-9].*/some/') $(grep -c '^[a-z0-9_]*/[bf][f1][16]' stdout)" 'some 0'

succeeds 'vectors export' 'files: x$' vectors export x
run "$POSENC" list cases
same 'every case is exported' "$(wc -l <work/x/cases.jsonl | tr -d ' ')" "$(grep -c / stdout)"
same 'with its parameters, and the name of its tensor in the file' \
    "$(grep '"id": "alibi/f32/given/h1-symmetric"' work/x/cases.jsonl |
        grep -c '"tensor": "alibi/f32/given/h1-symmetric.out".*"heads": 1, .*"recipe": "mix"') \
$(grep -ac '"alibi/f32/given/h1-symmetric.out":{' work/x/vectors/alibi.safetensors)" '1 1'
run sh -c 'cd x && sha256sum -c vectors/SHA256SUMS'
same 'with its hashes' $status 0
printf ' ' >>work/x/vectors/rope.safetensors
run sh -c 'cd x && sha256sum -c vectors/SHA256SUMS'
same 'which detect a change' $status 1
rm -rf work/*

succeeds 'verify' 'passed' verify --kernel alibi --backend scalar
# Checks of memory are skipped by name in builds with a sanitizer (3) or counters of coverage (1), which write there.
of_a_problem='^0 failed, (13 passed, 0|12 passed, 1) skipped' sanitized=no
run "$POSENC" verify --kernel alibi --backend scalar --suite vectors --out jsonl
! grep -q '"sanitizer":"[a-z]' stdout || of_a_problem='^0 failed, 11 passed, 2 skipped' sanitized=yes
succeeds 'verify a problem' "$of_a_problem" verify --backend scalar --problem 'rope_half x head_dim=80 rotary_dim=32 heads=2 tokens=3 rows=3'
# Rows 16 GiB apart take address space, no memory. With little of it the checks of far rows are skipped, by name.
succeeds 'verify a problem of far rows' "$of_a_problem" verify --backend scalar --problem \
    'rope_half x head_dim=7 rotary_dim=4 heads=2 tokens=2 rows=3 x.stride=0,14,-4294979641 out.stride=0,4295004331,7'
succeeds 'verify a problem of many rows' "$of_a_problem" verify --backend scalar --problem \
    'learned_add x dim=5 rows=20000003 table.stride=128 tokens=3 position_kind=i64 positions=19999999,65537,16777219'
# A call that stops at each page of a large tensor would take minutes, which is a matter of builds without sanitizers.
while [ "$sanitized" = no ] && read -r name wanted problem; do
    succeeds "verify a problem of many $name" "$wanted" verify --backend scalar --limit 20 --out jsonl --problem "$problem"
done <<'PROBLEMS'
pages side-effects/together",.*"status":"pass" rope_half heads=40 head_dim=128 rotary_dim=128 tokens=1024 rows=1024
scores side-effects/together",.*"status":"pass" alibi_add heads=32 queries=512 keys=512
sums "complete":true learned_grad dim=1 rows=1000000 tokens=1000000
PROBLEMS
# shellcheck disable=SC3045  # a shell without this limit skips the test
limited() { (ulimit -v 4000000 && exec "$POSENC" "$@") >stdout 2>stderr; }
if [ "$(uname)" = Linux ] && limited --version; then
    limited verify --jobs 1 --backend scalar --kernel learned_add --case '*/memory/*-*' --out csv
    same 'without address space far rows are skipped' \
        "$(grep -c 'skipped.*does not give so much address space' stdout) of $(grep -Ec 'far-strides|many-rows' stdout)" '6 of 6'
else
    skip 'without address space far rows are skipped' 'this build does not start with 4 GB of it'
fi
succeeds 'a problem in depth' 'Verdicts' verify -v --backend scalar --problem 'alibi heads=3 queries=2 keys=5 | flags | note | source'
succeeds 'in depth the worst value of a narrow output is shown' '^    cos, row [12]$' \
    verify -v --backend scalar --problem 'rope_table rotary_dim=4 tokens=3'
positions=$(awk 'BEGIN { for (i = 10000; i < 12000; i++) printf ",%d", i }' | cut -c 2-)
succeeds 'a long problem in depth is printed whole' '^  rope_half .*,11998,11999' verify -v --backend scalar --problem \
    "rope_half head_dim=2 rotary_dim=2 tokens=2000 heads=1 rows=12000 position_kind=i64 positions=$positions"
succeeds 'verify a suite' 'passed' verify --suite vectors --backend libm
succeeds 'junit' '<testsuites' verify --kernel alibi --backend scalar --out junit
succeeds 'jsonl' '^\{"t": ?"header", ?"schema": ?"posenc.results/2"' verify --kernel alibi --backend scalar --out jsonl
run "$POSENC" verify --kernel alibi --backend scalar --json --quiet
same 'records, and nothing else' "$status $(grep -c -v '^{' stdout) $(wc -l <stderr)" '0 0 0'
run "$POSENC" verify --kernel alibi --backend scalar --out jsonl:r.jsonl -o r.md -o r.csv
[ "$(ls work | tr '\n' ' ')" = 'r.csv r.jsonl r.md ' ]
verdict 'several outputs'
rm -f work/*

run "$POSENC" verify --kernel alibi --backend scalar --dtype bf16,f16 --out jsonl:r.jsonl
[ $status = 0 ] && grep '"t": *"check"' work/r.jsonl >conf && ! grep -v '"dtype": *"b*f16".*"case": *"alibi/b*f16/' conf
verdict 'verify of two types'
kernels=$("$POSENC" list kernels | grep -c '^[a-z_0-9]* *\(table\|apply\) ')
[ "$(grep -c '"t": *"kernel"' work/r.jsonl)" = "$kernels" ] && grep -q '"encodings": *\["DeBERTa", *"Shaw keys", *"Transformer-XL"\]' work/r.jsonl
verdict 'records of kernels name encodings'
rm -f work/*
run "$POSENC" bench --kernel rope_half --backend scalar --dtype f16,bf16 --model llama-3.1-8b --case '*-decode' --time-limit 1 --out jsonl:r.jsonl --out console
if [ $status = 77 ]; then
    skip 'bench of two types, and the noise in the footer' "$(cat stderr)"
else
    # 40 heads of 128 are read and written. libm is not timed, so that no ratio to it is printed.
    same 'bench of two types' "$status $(sed -n 's,.*"t": *"bench".*"dtype": *"\([a-z0-9]*\)".*\(rope_half/[^"]*\)".*"bytes": *\([0-9]*\).*,\1 \2 \3,p' work/r.jsonl | sort)
$(grep -c '^rope_half/.* -$' stdout) $(grep -c nan stdout)" '0 bf16 rope_half/bf16/given/llama-3.1-8b-decode 20480
f16 rope_half/f16/given/llama-3.1-8b-decode 20480
2 0'
    # The CPU time of other programs comes from /proc/stat, which some systems lack.
    ! grep -q '^cpu ' /proc/stat 2>/dev/null ||
        grep -q '"t": *"footer".*"noise":.*"steal_pct": *[0-9].*"load1": *[0-9].*"others": *[0-9]' work/r.jsonl
    verdict 'the footer has what others took' "$(tail -n 1 work/r.jsonl)"
fi
rm -f work/*

case_id=$("$POSENC" list cases 2>stderr | awk 'NR == 3 { print $1 }')
succeeds "$case_id in depth" '^Problem$' verify -v --case "$case_id"
succeeds 'in depth every backend is shown' 'scalar .*pass' verify -v --case "$case_id"

# A signal soon ends a run with records, and its file says that it is not complete. Other runs leave no file.

# Starts the program in the background.
start() { # ARGUMENTS...
    (cd work && exec "$POSENC" "$@" >"$scratch/stdout" 2>"$scratch/stderr") &
    pid=$!
}
start table --problem 'sinusoidal dim=1024 tokens=100000' --out csv:t.csv
sleep 1
kill -TERM $pid
wait $pid
same 'killed: no file' "$(ls work)" ''

# Interrupts a run that has printed so many results.
test_interrupted() { # NAME SIGNAL STATUS LINES ARGUMENTS...
    name="$1: a valid file" signal=$2 expected=$3 lines=$4
    shift 4
    rm -rf work/*
    : >stdout # which the run before wrote
    start "$@" --out jsonl:r.jsonl --out jsonl
    while kill -0 $pid 2>kill.log && [ "$(grep -m $lines -c '"t": *"\(check\|bench\)"' stdout)" -lt $lines ]; do :; done
    kill -$signal $pid
    wait $pid
    status=$?
    [ $status = $expected ] && tail -n 1 work/r.jsonl | grep -q '"complete": *false'
    verdict "$name"
}
test_interrupted 'interrupted' INT 130 5 verify --full
test_interrupted 'terminated' TERM 143 5 verify --full
run "$POSENC" bench --case nope
if [ $status = 77 ]; then
    skip 'interrupted in a timing' "$(cat stderr)"
else
    test_interrupted 'interrupted in a timing' INT 130 1 bench --full
fi
rm -rf work/*
finish
