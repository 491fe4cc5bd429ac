#!/bin/sh
# posenc tune: the tuning file, who reads and rejects it, and what a check says; never which backend is chosen.
. "$(dirname "$0")/tap.sh"
export XDG_CONFIG_HOME="$scratch/config"

# rejected NAME PATTERN ARGUMENTS...: exit 2, a message that matches, nothing on stdout, no file.
rejected() {
    name=$1 pattern=$2
    shift 2
    run "$POSENC" tune "$@"
    if [ $status = 2 ] && grep -Eq -e "$pattern" stderr && [ ! -s stdout ] && [ -z "$(ls work)" ]; then
        pass "$name"
    else
        fail "$name" "exit $status, files: $(ls work)"
    fi
}
rejected 'two files' 'tune: error: unrecognized arguments: b' a b
rejected 'a kernel that does not exist' 'tune: --kernel: rope_full: did you mean' --kernel rope_full
rejected 'an option of others' 'tune: error: unrecognized arguments: --threads' --threads 2
rejected 'a time that is none' "expected a number above 0, at most 86400 \\(got 'soon'\\)" --time-limit soon

quick='--kernel rope_half --dtype f32 --time-limit 1'
# shellcheck disable=SC2086  # options
run "$POSENC" tune $quick p
if [ $status = 77 ]; then # emulated, or without Google Benchmark
    if [ -z "$(ls work)" ] && [ -s stderr ]; then
        pass 'nothing is timed here: 77, and nothing is written'
    else
        fail 'nothing is timed here: 77, and nothing is written' "files: $(ls work)"
    fi
    finish
    exit 0
fi
if [ $status = 0 ] && [ "$(head -n 1 work/p)" = posenc.tune/1 ] && grep -q '^cpu ' work/p && grep -q '^build ' work/p &&
    grep -Eq '^rope_half +[a-z0-9_]+ +f32 +[0-9]+ +# L1: ' work/p && grep -q 'written to p' stdout; then
    pass 'a tuning file, with its CPU, its build and a line for each memory level'
else
    fail 'a tuning file, with its CPU, its build and a line for each memory level' "exit $status: $(cat work/p)"
fi
same 'each level reaches farther than the one before' \
    "$(awk '/^rope_half/ && $4 ~ /^[0-9]+$/ { if ($4 + 0 <= last) bad++; last = $4 } END { print bad + 0, (last > 100000) }' work/p)" '0 1'
if usable | grep -qx avx2; then # many times as fast there as these, on any CPU and however busy
    same 'the plain ones are not chosen where a vector does far more' \
        "$(grep -c '^rope_half *\(scalar\|libm\) *f32 *[0-9]* *# L1' work/p)" 0
fi
same 'the last level has no end' "$(grep -c '^rope_half *[a-z0-9_]* *f32 *# ' work/p)" 1
mv work/p "$scratch/p"

# in_force NAME PATTERN: what list says with POSENC_PROFILE=../q.
in_force() {
    run env POSENC_PROFILE=../q "$POSENC" list tuning
    if [ $status = 0 ] && grep -Eq -e "$2" stdout; then
        pass "$1"
    else
        fail "$1" "exit $status"
    fi
}

# refused NAME PATTERN: by every command, with POSENC_PROFILE=../q.
refused() {
    run env POSENC_PROFILE=../q "$POSENC" list kernels
    if [ $status = 2 ] && grep -Eq -e "list: POSENC_PROFILE: ../q: $2" stderr && [ ! -s stdout ]; then
        pass "$1"
    else
        fail "$1" "exit $status"
    fi
}

cp p q
in_force 'it is in force where the environment names it' '^In force: ../q'
run env POSENC_PROFILE=../q POSENC_VERBOSE=1 "$POSENC" list kernels
if grep -q '^posenc: rope_half: .*(measured: POSENC_PROFILE=../q)' stderr; then
    pass 'the reason of a choice is the tuning file'
else
    fail 'the reason of a choice is the tuning file' "$(head -n 6 stderr)"
fi
sed 's/^cpu .*/cpu vax-780/' p >q
refused 'of another CPU' 'line 3: it is of the CPU vax-780, and this is '
sed 's/^build .*/build 0.0.1 tcc/' p >q
refused 'of another build' 'line 4: it is of the build 0.0.1 tcc, and this is '
sed 's/^rope_half/rope_full/' p >q
refused 'a line that is none' "line 5: 'rope_full' is no kernel"
echo 'rope_half libm' >q
refused 'no tuning file' 'no tuning file: its first line is not posenc.tune/1'
rm q
refused 'a file that is not there' 'No such file'

# A file that is no tuning file stays.
echo mine >work/notes
# shellcheck disable=SC2086
run "$POSENC" tune $quick notes
if [ $status = 2 ] && [ "$(cat work/notes)" = mine ] && grep -q "the file exists and is no earlier output (got 'notes')" stderr; then
    pass 'a file that is no tuning file is not overwritten'
else
    fail 'a file that is no tuning file is not overwritten' "exit $status: $(cat work/notes)"
fi
rm work/notes
# shellcheck disable=SC2086
rejected 'a folder that does not exist' "the output cannot be written: No such file or directory \\(got 'none/p'\\)" $quick none/p

# The user's own is used without a word.
# shellcheck disable=SC2086
succeeds 'the default file' 'This program uses it from now on' tune $quick
succeeds 'which the program uses' '^In force: .*/config/posenc/profile' list tuning
sed -i.old 's/^build .*/build 0.0.1 tcc/' config/posenc/profile
succeeds 'of another build it is not used, and no command fails for it' '^Not used: .*it is of the build 0.0.1 tcc' list tuning
succeeds 'calls are then served as without' '^Defaults: first of the list that runs here' list kernels
rm -r config

# check NAME EXIT PATTERN: of ../q.
check() {
    # shellcheck disable=SC2086
    run "$POSENC" tune --check $quick ../q
    if [ $status = "$2" ] && cat stdout stderr | grep -Eq -e "$3"; then
        pass "$1"
    else
        fail "$1" "exit $status"
    fi
}
sed 's/^cpu .*/cpu vax-780/' p >q
check 'a check of another CPU has nothing to compare' 5 'it is of the CPU vax-780'
{
    sed '/^rope_half/d' p
    echo 'rope_half scalar f32'
} >q
check 'a check finds a choice that is far slower' 3 'rope_half, f32, L1: scalar takes (far longer|[0-9.]+ times)'
finish
