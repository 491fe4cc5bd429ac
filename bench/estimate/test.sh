#!/bin/sh
# The two steps of ./run estimate that are ours, without its compiler: loops.awk finds the right loop, and
# estimate_records says the right numbers.  TAP.
#
#     sh bench/estimate/test.sh ESTIMATE_RECORDS
set -u
records=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")" && pwd)
loops=$here/../../impl/loops/loops.def
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
n=0

# check SENTENCE: of the command before
check() {
    status=$?
    n=$((n + 1))
    [ $status = 0 ] && echo "ok $n - $1" || echo "not ok $n - $1"
}

loops() {
    awk -v bytes="$1" -f "$here/loops.awk" >out 2>err
}

# The loop over rows stores two vectors a turn, one more on the stack, and leaves for a call that lies
# behind its first end; the loop before it stores one.
loops 32 <<'ASM'
loop_a:                                 # @loop_a
# %bb.0:
	.p2align	4, 0x90
.LBB0_1:                                # =>This Inner Loop Header: Depth=1
	vmovups	%ymm0, (%rdi)
	jne	.LBB0_1
	jmp	.LBB0_4
.LBB0_3:                                #   in Loop: Header=BB0_4 Depth=1
	incl	%ebp
	jne	.LBB0_2
.LBB0_4:                                # =>This Loop Header: Depth=1
                                        #     Child Loop BB0_5 Depth 2
	vmovups	%ymm9, (%rdi)
.LBB0_5:                                #   Parent Loop BB0_4 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
	vmovups	(%rsi), %ymm0
	#APP
	#NO_APP
	vmovups	%ymm0, 64(%rsp)                 # 32-byte Spill
	vmovups	%ymm0, (%rdi)
	vmovupd	%ymm1, 32(%rdi)
	jne	.LBB0_7
.LBB0_6:                                #   in Loop: Header=BB0_5 Depth=2
	decq	%r14
	jne	.LBB0_5
	jmp	.LBB0_3
.LBB0_7:                                #   in Loop: Header=BB0_5 Depth=2
	callq	mend_small
	vmovups	%ymm0, (%rdi)
	jne	.LBB0_5
.Lfunc_end0:
ASM
cat >want <<'ASM'
# LLVM-MCA-BEGIN a 2
	vmovups	(%rsi), %ymm0
	vmovups	%ymm0, 64(%rsp)
	vmovups	%ymm0, (%rdi)
	vmovupd	%ymm1, 32(%rdi)
	jne	.LBB0_7
	decq	%r14
	jne	.LBB0_5
# LLVM-MCA-END
ASM
cmp -s out want
check 'the innermost loop that stores most is taken, to its first end, without what lies behind'

# store VECTORS INSTRUCTION: what one instruction stores
store() {
    printf 'loop_a:\n.LBB0_1:  // =>This Inner Loop Header: Depth=1\n\t%s\n\tb.ne\t.LBB0_1\n.Lfunc_end0:\n' "$2" |
        loops "$bytes" && grep -qx "# LLVM-MCA-BEGIN a $1" out
}
bytes=16
store 1 'str	q0, [x0], #16' && store 2 'stp	q0, q1, [x0, #-32]' && store 2 'st2	{ v0.4s, v1.4s }, [x8]'
check 'stores of NEON are counted'
bytes=0
store 1 'st1w	{ z0.s }, p0, [x0, #1, mul vl]' && store 2 'st2w	{ z0.s, z1.s }, p3, [x25]' &&
    store 1 'st1b	{ z1.b }, p1, [x2, x11]'
check 'stores of SVE are counted, whatever the length'
bytes=64
store 1 'vmovups	%zmm16, -64(%r12)' && store 2 'vmovups	%zmm16, (%r12)
	vmovups	%ymm16, (%r12)
	vextractf64x4	$1, %zmm1, %ymm2
	vmovaps	%ymm1, 32(%rdi,%rax,4)'
check 'stores of AVX-512 are counted, halves as halves'

! store 0 'vmovups	%ymm16, (%r12)' && grep -q 'whole vectors' err
check 'half a vector a turn is refused'
! store 1 'vmovups	%zmm1, (%rdi)
	callq	mend_small' && grep -q 'callq' err
check 'a loop that calls is refused'
! store 1 'je	.LBB0_2
	vmovups	%zmm1, (%rdi)
.LBB0_2:' && grep -q 'top to bottom' err
check 'a loop with a branch of its own is refused'
! printf 'loop_a:\n\tret\n.Lfunc_end0:\n' | loops 32 && grep -q 'a: no loop' err && ! loops 32 </dev/null
check 'a function without a loop is named'

# llvm-mca's words on every loop of loops.def, eight cycles a turn.
answer() {
    echo '{"CodeRegions": ['
    sed -n 's/^LOOP(\(.*\), \(.*\), \(.*\), \(.*\))/\1__\2__\3 \4/p' "$loops" | while read -r name vectors; do
        cat <<JSON
{"Name": "$name $vectors", "Instructions": ["a", "b"],
 "ResourcePressureView": {"ResourcePressureInfo": [
   {"InstructionIndex": 0, "ResourceIndex": 0, "ResourceUsage": 8},
   {"InstructionIndex": 2, "ResourceIndex": 0, "ResourceUsage": 1},
   {"InstructionIndex": 2, "ResourceIndex": 1, "ResourceUsage": $1}]},
 "SummaryView": {"DispatchWidth": 4, "Iterations": 100, "TotalCycles": 800, "TotaluOps": $2}},
JSON
    done | sed '$s/,$//'
    printf '], "TargetInfo": {"CPUName": "some-core", "Resources": ["UnitA", "UnitB.\\u0001"]}}\n'
}
answer 7.5 800 >unit.json
answer 7.1 3200 >dispatch.json
answer 7.1 800 >latency.json
printf 'cycle 0.27\nrope_half__given__plain 8 12.0\n' >timed.txt
convert() {
    "$records" out.jsonl 'llvm-mca 19' 'clang 19' 2>err
}

printf 'neon 4 core-a unit.json - own\nneon 4 core-b dispatch.json - own\nneon 4 core-c latency.json timed.txt Core-A (2013)\n' |
    convert && [ "$(grep -c '"t":"estimate"' out.jsonl)" = $((3 * $(grep -c '^LOOP' "$loops"))) ] &&
    head -n 1 out.jsonl | grep -q '"schema":"posenc.results/1"' && tail -n 1 out.jsonl | grep -q '"footer"'
check 'every loop on every core is a record, between a header and a footer'
grep '"rope_half"' out.jsonl | grep -q '"core":"core-a".*"cycles_per_vector":1.0,.*"cycles_per_element":0.25,'
check 'cycles are those of a turn, by vector and by element'
grep -q '"core":"core-a".*"bottleneck":"UnitB"' out.jsonl && grep -q '"core":"core-b".*"bottleneck":"dispatch"' out.jsonl &&
    grep -q '"core":"core-c".*"bottleneck":"latency"' out.jsonl
check 'the bottleneck is the busiest unit, else dispatch, else latency'
grep '"rope_half"' out.jsonl | grep '"model":"Core-A (2013)"' | grep -q '"measured_per_vector":1.5' &&
    [ "$(grep -c measured_per_vector out.jsonl)" = 1 ]
check 'the time of a loop stands beside its estimate, only where it was taken'

sed 's/rope_half__given__plain 8/rope_half__given__plain 4/' unit.json >few.json
! echo 'neon 4 core-a few.json - own' | convert && grep -q 'rope_half__given__plain stores 4 vectors; loops.def states 8' err
check 'a loop that stores other than stated is named'
sed 's/rope_half__given__plain/rope_third__given__plain/' unit.json >none.json
! echo 'neon 4 core-a none.json - own' | convert && grep -q 'no region rope_half__given__plain' err
check 'a loop that is missing is named'
echo '[' >broken.json
! echo 'neon 4 core-a broken.json - own' | convert && grep -q broken.json err &&
    ! echo 'neon 4 core-a nowhere.json - own' | convert && grep -q nowhere.json err &&
    ! echo 'neon none core-a unit.json - own' | convert && grep -q 'neon none' err
check 'bad input is named'

echo "1..$n"
