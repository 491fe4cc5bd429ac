#!/bin/sh
# posenc tune on this machine: the tuning file, which commands read or reject it, and what a check of it says. Choices
# among backends and rejected arguments are tested on made-up samples (reports/tests/test_tune.py).
. "$(dirname "$0")/tap.sh"
export XDG_CONFIG_HOME="$scratch/config"

rejects 'a kernel that does not exist' 'tune: --kernel: rope_full: did you mean' tune --kernel rope_full
quick='--kernel rope_half --dtype f32 --time-limit 1'
run "$POSENC" tune $quick p
if [ $status = 77 ]; then # emulated, or without Google Benchmark
    [ -z "$(ls work)" ] && [ -s stderr ]
    verdict 'nothing is timed here: 77, and nothing is written'
    finish
    exit 0
fi
[ $status = 0 ] && [ "$(head -n 1 work/p)" = posenc.tune/1 ] && grep -q '^cpu ' work/p && grep -q '^build ' work/p &&
    grep -Eq '^rope_half +[a-z0-9_]+ +f32 +[0-9]+ +# L1: ' work/p && grep -q 'written to p' stdout
verdict 'a tuning file, with its CPU, its build and a line for each memory level'
same 'each level has a larger limit than the one before, and the largest is no first cache' \
    "$(awk '/^rope_half/ && $4 ~ /^[0-9]+$/ { if ($4 + 0 <= last) bad++; last = $4 } END { print bad + 0, (last > 100000) }' work/p)" '0 1'
same 'the last level alone has no limit' "$(awk '/^rope_half/ { n++; if ($4 == "#") print n - lines }' lines="$(grep -c '^rope_half' work/p)" work/p)" 0
if usable | grep -qx avx2; then # AVX2 is many times as fast as plain loops, on any CPU and however busy
    same 'plain loops are not chosen where a vector does far more' \
        "$(grep -c '^rope_half *\(scalar\|libm\) *f32 *[0-9]* *# L1' work/p)" 0
fi
mv work/p "$scratch/p"
echo mine >work/notes
run "$POSENC" tune $quick notes
ended 'another file is not overwritten' 2 'the file exists and is no earlier output' stderr
same 'and keeps its text' "$(cat work/notes)" mine
rm work/notes

# ---- A file that POSENC_TUNING names ----

# lists KIND: runs posenc list with the tuning file q.
lists() { run env POSENC_TUNING=../q "$POSENC" list "$1"; }
cp p q
lists tuning
ended 'a file that is named is in force' 0 '^In force: ../q'
lists kernels
ended 'and is the reason of a choice' 0 '^rope_half: measured: POSENC_TUNING=../q'
same 'beside the reason of all others' "$(grep -c '^Defaults: first of the list that runs here' stdout)" 1

# Each line: the change of the file, as sed makes it, and the message.
while IFS="|" read -r change message; do
    sed "$change" p >q
    lists kernels
    ended "a tuning file after $change is rejected" 2 "list: POSENC_TUNING: ../q: $message" stderr
    same 'and nothing is printed' "$(cat stdout)" ''
done <<'CHANGES'
s/^cpu .*/cpu vax-780/|line 3: it is of the CPU vax-780, and this is
s/^build .*/build 0.0.1 tcc/|line 4: it is of the build 0.0.1 tcc, and this is
s/^rope_half/rope_full/|line 5: 'rope_full' is no kernel
1d|no tuning file: its first line is not posenc.tune/1
CHANGES
rm q
lists kernels
ended 'a tuning file that does not exist is rejected' 2 'No such file' stderr

# ---- The user's own file, which is used unless it is stale ----

succeeds 'without a name the default file is written' 'This program uses it from now on' tune $quick
succeeds 'which the program uses' '^In force: .*/config/posenc/tuning' list tuning
sed -i.old 's/^build .*/build 0.0.1 tcc/' config/posenc/tuning
succeeds 'of another build it is not used' '^Not used: .*it is of the build 0.0.1 tcc' list tuning
succeeds 'and no command fails for it' '^Defaults: first of the list that runs here' list kernels
rm -r config

# ---- Checks of a file ----

sed 's/^cpu .*/cpu vax-780/' p >q
run "$POSENC" tune --check $quick ../q
ended 'a check of another CPU has nothing to compare' 5 'it is of the CPU vax-780' stderr
{
    sed '/^rope_half/d' p
    echo 'rope_half scalar f32'
} >q
run "$POSENC" tune --check $quick ../q
ended 'a check finds a choice that is far slower' 3 'rope_half, f32, L1: scalar takes (far longer|[0-9.]+ times)'
finish
