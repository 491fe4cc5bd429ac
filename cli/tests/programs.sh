#!/bin/sh
# Programs that answer prompts (docs/protocol.md): right ones pass, and each mistake of a program is one result that names
# it. program.py makes the mistake of its argument in the answer to its third prompt.
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"
python=$(command -v /usr/bin/python3 || command -v python3)
if ! "${python:-false}" -c 'import numpy' 2>/dev/null; then
    echo '1..0 # SKIP no Python with NumPy'
    exit 0
fi

count() { grep -c "\"t\":\"check\".*\"status\":\"$1\"" stdout; }
reasons() { sed -n 's/.*"status":"\(crash\|fail\)","reason":"\(\([^"\\]\|\\.\)*\)".*/\2/p' stdout; }
# Verifies a kernel with the program, and leaves records in stdout.
verify() { # COMMAND OPTION...
    command=$1
    shift
    run $watched "$POSENC" verify --exec "$command" -j 2 --out jsonl "$@"
}

# ---- Right programs ----

for way in step f64; do
    verify "$python '$here/program.py' $way"
    same "every kernel, $way" "$status $(count fail) $(count crash) $([ "$(count pass)" -gt 1000 ] && echo many)" '0 0 0 many'
done
verify "$python '$here/program.py' step" --model bloom-560m --kernel alibi --suite vectors
same 'with the shapes of a model' "$status $(count fail)" '0 0'
verify "$python '$here/program.py' step" --problem 'rope_half heads=2 tokens=3 head_dim=8 rotary_dim=4 rows=9'
same 'a problem alone: its values' "$status $(count pass)" '0 1'
run "$POSENC" verify -v --exec true --case 'alibi/f32/given/h1-causal'
ended 'none with -v' 2 '.--exec.*no effect' stderr

# Wrong arithmetic, in every kernel.
failed_kernels() { sed -n 's/.*"kernel":"\([a-z0-9_]*\)".*"status":"fail".*/\1/p' stdout | LC_ALL=C sort -u | tr '\n' ' '; }
verify "$python '$here/program.py' bf16" --suite vectors --dtype f16 # each failure is compared with all known mistakes
same 'results in bf16 are wrong' "$status $(failed_kernels | wc -w)" '1 19'
verify "$python '$here/program.py' scale" --suite vectors
same 'a factor in bf16 is wrong' "$status $(failed_kernels)" '1 alibi_add distance_bias_add learned_add '\
'relative_bias_add sinusoidal_add t5_bias_add window_bias_add '

# The examples, which offer some kernels.
for example in "$python $root/examples/protocol/client.py" "node $root/examples/protocol/client.js"; do
    name="the example ${example##*/}"
    if command -v "${example%% *}" >/dev/null; then
        verify "$example"
        same "$name" "$status $(count fail) $(count crash) $([ "$(count pass)" -gt 300 ] && echo many)" '0 0 0 many'
    else
        skip "$name" "there is no ${example%% *}"
    fi
done
name='the example client.rs'
if command -v rustc >/dev/null && rustc -O --edition 2021 -o work/client_rs "$root/examples/protocol/client.rs" 2>work/rustc.log; then
    verify ./client_rs
    same "$name" "$status $(count fail) $(count crash) $([ "$(count pass)" -gt 80 ] && echo many)" '0 0 0 many'
else
    skip "$name" 'there is no rustc that builds it'
fi

rm -f work/*

# ---- Mistakes ----

# Each line has a mistake, the number of results that fail or crash, and the reason of one.
while read -r name failed said; do
    limit=
    case $name in silent | beyond | newline) limit='--limit 10' ;; esac
    verify "exec $python '$here/program.py' f64 $name" --kernel alibi --suite vectors $limit
    if [ $status = 1 ] && reasons | grep -Eq -e "$said" && ! grep -q "$(printf '\033')" stdout stderr &&
        [ "$(tail -n 1 stdout | grep -c '"complete":true')" = 1 ]; then
        same "$name" "$(($(count fail) + $(count crash)))" "$failed"
    else
        fail "$name" "exit $status, want 1 and: $said; $(reasons)"
    fi
done <<END
nan 1 got nan want .* at batch 0
dtype 1 ^the answer is wrong: out is F64 .*, expected F32
shape 1 ^the answer is wrong: out is F32 .[0-9]+., expected F32
name 1 ^the answer is wrong: it has a tensor 'output', expected 'out'
extra 1 ^the answer is wrong: it has a tensor 'second', expected 'out'
nothing 1 ^the answer is wrong: out is missing, expected F32
declined_too 1 ^the answer has tensors and 'declined': expected one of them
type 1 dtype of its tensor 'out' is .*F12.*: expected one of F64, F32, F16, BF16, I64, I32 in alibi
less 1 data_offsets of its tensor 'out' are .0, [0-9]+.: expected [0-9]+ bytes between them for F32 .1,
rank 1 shape of its tensor 'out' is .1,1,.*: expected at most 4 integers
huge 1 shape of its tensor 'out' is .1099511627776,.*: expected at most 4 integers from 0 to 4294967295
negative 1 shape of its tensor 'out' is .-1,.*: expected at most 4 integers
overlap 1 its tensors 'out' and 'second' overlap
covered 1 its tensors 'out' and 'second' overlap
error 1 ^the program reports an error: no GPU .* here
error_declined 1 ^the program reports an error: no GPU
no_error 1 ^the program reports an error: .an empty text.
error_end 2 ^the program reports an error: no GPU
nan_end 2 got nan want .* at batch 0
no_text 1 the member of __metadata__ .a. is 1: expected a string
no_metadata 1 its __metadata__ is missing: expected an object
gap 1 its tensors leave 4 of [0-9]+ bytes uncovered
beyond 1 ^the program did not answer within 10 s after [0-9]+ of [0-9]+ bytes of its data, at prompt 3
newline 1 ^the program did not answer within 10 s after [0-9]+ of [0-9]+ bytes of its header, at prompt 3
cut 1 ^the program ended by exit.0. after [0-9]+ of [0-9]+ bytes of its data, at prompt 3 in alibi/f32/
exit 1 ^the program ended by exit.3., at prompt 3 in alibi/f32/
orphan 1 ^the program ended by exit.4., at prompt 3 in alibi/f32/
crash 1 ^the program ended by signal 11 .*, at prompt 3 in alibi/f32/
silent 1 ^the program did not answer within 10 s, at prompt 3
close 1 ^the program closed its output, at prompt 3
length 1 ^the answer .* 3 cannot be read: its first 8 bytes announce .* 1152921504606846976 bytes, expected at most 1048576 in alibi
json 1 ^the answer to prompt 3 cannot be read: its header is no JSON object: .* at byte 8
list 1 ^the answer to prompt 3 cannot be read: its header is no JSON object: expected '{' at its start
utf8 1 ^the answer to prompt 3 cannot be read: its header is no JSON object
deep 1 ^the answer to prompt 3 cannot be read: its header is no JSON object
twice_member 1 ^the answer to prompt 3 cannot be read: its header is no JSON object: duplicate
entry 1 cannot be read: its tensor 'out' is 1: expected an object with dtype, shape and data_offsets
offsets 1 ^the answer to prompt 3 cannot be read: its header announces 1152921504606846976 bytes of tensors
backwards 1 cannot be read: data_offsets of its tensor 'out' is .8,0.: expected two integers
texts 1 cannot be read: data_offsets of its tensor 'out' is .*all.*: expected two integers
number 1 ^the answer to prompt 3 has the prompt number '2': expected '3'
no_number 1 ^the answer to prompt 3 has the prompt number '': expected '3'
twice 1 ^the answer to prompt 4 has the prompt number '3': expected '4'
hello_again 1 ^the program's hello is not that of its first start
END

# A hello that cannot be used is one error, not a result of each kernel.
while read -r name said; do
    limit=
    case $name in hello_silent) limit='--limit 10' ;; esac
    rejects "$name" "program.py' f64 $name: $said" verify --exec "$python '$here/program.py' f64 $name" $limit
done <<END
late the program sent more after its last answer
late_exit the program ended by exit.3., after its input was closed
hello_kernel its hello: kernels: 'rope_third': expected some of .* rope_half .* rope_qk_norm, with blanks
hello_dtype its hello: dtypes: 'f64': expected some of f32 f16 bf16
hello_numerics its hello: numerics: 'given': expected some of exact hf_f32
hello_number its hello: max_position: '-1': expected an integer from 0 to 9223372036854775807
hello_nothing its hello: kernels: '': expected some of
hello_name its hello: name: 'My Engine': expected 1 to 63 of a-z, 0-9 and _
hello_long its hello: name: 'a{64}': expected 1 to 63 of a-z, 0-9 and _
hello_taken is named scalar, as a backend of this library: expected another name
hello_version its hello: hello: '1.0': expected '1'
hello_fused its hello: fused: 'yes': expected '0' or '1'
hello_tensor its hello has a tensor 'x': expected metadata alone
hello_escape the program has no description, or one that is not plain text
hello_exit the program ended by exit.3., at its hello
hello_crash the program ended by signal 11 .*, at its hello
hello_silent the program did not answer within 10 s, at its hello
END
verify "$python '$here/program.py' f64 hello_new_member" --kernel alibi --suite vectors
same 'other members of a hello are for later versions' "$status $(count fail)" '0 0'

# NaNs equal one another, also where a property expects equal values.
verify "$python '$here/program.py' nan:all" --suite properties
same 'NaNs alone pass no property' "$(count pass)" 0

# A program that declines: skipped, and a failure if it declines all of a kernel that its hello offers.
some() { grep -c "\"status\":\"$1\",\"reason\":\"[0-9]* of [0-9]* problems were not offered: $2\"" stdout; }
verify "$python '$here/program.py' declines:5" --case alibi/f32/random/pairs
same 'a program that declines one random problem' "$status $(count pass) $(some skipped xpos)" '77 0 1'
verify "$python '$here/program.py' hello_near" --case sinusoidal/f32/random/pairs
same 'one whose hello leaves some out' "$status $(some pass '.*')" '0 1'
verify "$python '$here/program.py' declines:all" --kernel alibi
ended 'a program that declines every prompt of a kernel' 1 '"status":"fail","reason":"no prompt was answered'
verify "$python '$here/program.py' declines:all" --kernel alibi --suite vectors
same 'and nothing ran' "$status $(count pass) $(grep -c '"reason":"not offered: xpos"' stdout)" "77 0 $(count skipped)"
rejects 'a command that the shell does not find' '--exec: no_such_program: the shell cannot run the command' verify --exec no_such_program
rejects 'a socket that is none' '--exec: fd:0: expected fd:N with the number of an inherited socket' verify --exec fd:0
rejects 'a backend instead of the program' '--backend: scalar: does not select the program python: expected --backend python' \
    verify --exec "$python '$here/program.py'" --backend scalar
verify "$python '$here/program.py'" --suite memory
ended 'a suite that judges no program' 77 '^posenc verify: nothing was checked: ' stderr

# The command of a failure runs it again, with the quotes of the program's command.
verify "$python '$here/program.py' scale" --kernel learned_add --suite vectors
grep '"t":"check".*"command":' stdout | sed -n '1{s/.*"command":"posenc \(verify [^"]*\)".*/\1/;s/\\\\/\\/g;p;}' >again
run sh -c "\"\$0\" $(cat again)" "$POSENC"
ended 'a failure can be run again' 1 '^FAIL +python +learned_add/f32/given/problem'

# A random problem that fails is shrunk through the connection.
verify "$python '$here/program.py' scale" --kernel learned_add --suite random
grep -q '"suite":"random","status":"fail".*"problem":"learned_add x_scale=[^ ]* *\(dim=1 \)\?' stdout
verdict 'a random problem is shrunk'

# ---- A socket ----

cat >work/over_socket.py <<'PY'
import socket, subprocess, sys
ours, theirs = socket.socketpair()
command = [sys.argv[1], 'verify', '--exec', f'fd:{theirs.fileno()}', '--kernel', 'alibi,rope_half', '--suite', 'vectors', '--out', 'jsonl']
verify = subprocess.Popen(command, pass_fds=[theirs.fileno()])
theirs.close()
subprocess.run([sys.executable, *sys.argv[2:]], stdin=ours, stdout=ours)
sys.exit(verify.wait())
PY
run $watched "$python" over_socket.py "$POSENC" "$here/program.py"
same 'a socket, kernel after kernel' "$status $(count fail) $(count crash) $([ "$(count pass)" -gt 60 ] && echo many)" '0 0 0 many'
run $watched "$python" over_socket.py "$POSENC" "$here/program.py" f64 gap
same 'a message with a gap, and the next kernel' "$status $(count fail) $(count crash) $([ "$(count pass)" -gt 30 ] && echo many)" '1 0 1 many'
run "$python" -c 'import socket, subprocess, sys
ours, theirs = socket.socketpair(type=socket.SOCK_DGRAM)
sys.exit(subprocess.call([sys.argv[1], "verify", "--exec", f"fd:{theirs.fileno()}"], pass_fds=[theirs.fileno()]))' "$POSENC"
ended 'a socket of datagrams' 2 'expected fd:N with .* of type SOCK_STREAM' stderr

# ---- Files ----

run "$POSENC" vectors prompts dir --kernel alibi,sinusoidal --dtype f32
ended 'prompts are written' 0 "^$(find work/dir/prompts -type f | wc -l) prompts: dir$"
run "$POSENC" vectors answers dir --kernel alibi,sinusoidal --out jsonl
same 'without answers nothing ran' "$status $(count pass)" '77 0'
cp work/dir/expected/* work/dir/answers
run "$POSENC" vectors answers dir --kernel alibi,sinusoidal --dtype f32 --out jsonl
same 'the expected outputs pass' "$status $(count fail) $(count skipped) $([ "$(count pass)" -gt 60 ] && echo many)" '0 0 0 many'
answers=work/dir/answers
one=alibi.f32.given.h1-causal.safetensors
judge() { # NAME REASON: judges the answer in the place of `one`
    run "$POSENC" vectors answers dir --case alibi/f32/given/h1-causal --kernel alibi --out jsonl
    [ $status = 1 ] && reasons | grep -Eq -e "$2"
    verdict "$1" "exit $status: $(reasons)"
    rm -rf "${answers:?}/$one"
}
rm "$answers/$one"
"$python" "$here/program.py" f64 nan:0 <"work/dir/prompts/$one" >"$answers/$one"
judge 'a wrong answer fails' '^got nan want'
cp "$answers/alibi.f32.given.h1-symmetric.safetensors" "$answers/$one"
judge 'the answer to another prompt' 'it has the prompt number [0-9]+, expected [0-9]+'
head -c 50 "work/dir/expected/$one" >"$answers/$one"
judge 'a file that is cut' 'it ends after 42 of [0-9]+ bytes of its header'
cat "work/dir/expected/$one" - >"$answers/$one" <<'MORE'
more
MORE
judge 'a file with more' 'it is longer than its header says'
: >"$answers/$one"
judge 'an empty file' 'it is empty'
ln -s "../expected/$one" "$answers/$one"
judge 'a link' 'it is a symbolic link: expected a regular file'
ln -s /dev/zero "$answers/$one"
judge 'a link to a device' 'it is a symbolic link'
mkdir "$answers/$one"
judge 'a folder' 'expected a regular file'
if mkfifo "$answers/$one" 2>/dev/null; then
    judge 'a pipe, without waiting for it' 'expected a regular file'
fi
: >"$answers/Alibi.safetensors"
run "$POSENC" vectors answers dir --kernel alibi
ended 'an answer to no prompt' 2 'answers: Alibi.safetensors: expected the name of a prompt' stderr
run "$POSENC" vectors prompts dir
ended 'a folder with files' 2 'prompts: dir: expected a new or an empty folder' stderr
rm -rf work/dir work/over_socket.py
rejects 'a folder without answers' 'answers: nowhere: expected a folder of posenc vectors prompts' vectors answers nowhere
finish
