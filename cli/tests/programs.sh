#!/bin/sh
# Programs that answer prompts (docs/protocol.md): right ones pass, and each mistake of a program is one result that names
# it. program.py makes the mistake of its argument in the answer to its third prompt.
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"
python=$(command -v /usr/bin/python3 || command -v python3)
if [ -z "$python" ]; then
    echo '1..0 # SKIP no Python'
    exit 0
fi

# A run that takes longer than this hangs, however busy the machine is, and is killed.
watched=
command -v timeout >/dev/null && watched='timeout -k 10 600'
count() { grep -c "\"t\":\"check\".*\"status\":\"$1\"" stdout; }
reasons() { sed -n 's/.*"status":"\(crash\|fail\)","reason":"\([^"]*\)".*/\2/p' stdout; }
# Verifies a kernel with the program, and leaves records in stdout.
verify() { # COMMAND OPTION...
    command=$1
    shift
    # shellcheck disable=SC2086  # words
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
    same "$name" "$status $(count fail) $(count crash) $([ "$(count pass)" -gt 100 ] && echo many)" '0 0 0 many'
else
    skip "$name" 'there is no rustc that builds it'
fi

# ---- Mistakes ----

# Each line has a mistake, the number of results that fail or crash, and the reason of one.
while read -r name failed said; do
    limit=
    case $name in silent | close | gap | hello_silent) limit='--limit 1' ;; esac
    # shellcheck disable=SC2086  # words
    verify "$python '$here/program.py' f64 $name" --kernel alibi --suite vectors $limit
    case $failed in all) same_number=$(count fail) ;; *) same_number=$failed ;; esac
    if [ $status = 1 ] && reasons | grep -Eq -e "$said" && ! grep -q "$(printf '\033')" stdout stderr &&
        [ "$(tail -n 1 stdout | grep -c '"complete":true')" = 1 ]; then
        same "$name" "$(($(count fail) + $(count crash)))" "$same_number"
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
type 1 dtype, shape and data_offsets of its tensor 'out' do not agree
less 1 dtype, shape and data_offsets of its tensor 'out' do not agree
rank 1 dtype, shape and data_offsets of its tensor 'out' do not agree
huge 1 dtype, shape and data_offsets of its tensor 'out' do not agree
negative 1 dtype, shape and data_offsets of its tensor 'out' do not agree
overlap 1 its tensors 'out' and 'second' overlap
error 1 ^the program reports an error: no GPU .* here
no_text 1 __metadata__ is no object whose values are strings
gap 1 ^the program did not answer within 1 s, at prompt 3
cut 1 ^the program ended by exit.0., at prompt 3 in alibi/f32/
exit 1 ^the program ended by exit.3., at prompt 3 in alibi/f32/
crash 1 ^the program ended by signal 11 .*, at prompt 3 in alibi/f32/
silent 1 ^the program did not answer within 1 s, at prompt 3
close 1 ^the program closed the connection, at prompt 3
length 1 ^the answer to prompt 3 cannot be read: its first 8 bytes announce a header of 1152921504606846976 bytes
json 1 ^the answer to prompt 3 cannot be read: its header is no JSON object
list 1 ^the answer to prompt 3 cannot be read: its header is no JSON object
utf8 1 ^the answer to prompt 3 cannot be read: its header is no JSON object
deep 1 ^the answer to prompt 3 cannot be read: its header is no JSON object
twice_member 1 ^the answer to prompt 3 cannot be read: its header is no JSON object
offsets 1 ^the answer to prompt 3 cannot be read: its header announces 1152921504606846976 bytes of tensors
backwards 1 ^the answer to prompt 3 cannot be read: data_offsets of a tensor
texts 1 ^the answer to prompt 3 cannot be read: data_offsets of a tensor
number 1 ^the answer to prompt 3 has the number 2
no_number 1 ^the answer to prompt 3 has the number
twice 1 ^the answer to prompt 4 has the number 3
late 1 ^the program sent more after its last answer
late_exit 1 ^the program ended by exit.3., after its input was closed
hello_kernel 1 ^its hello: kernels: 'rope_third' is unknown
hello_dtype 1 ^its hello: dtypes: 'f64' is unknown
hello_number 1 ^its hello: max_position: '-1': expected an integer
hello_nothing 1 ^the program provides no kernel
hello_name 1 ^the program has no usable name
hello_escape 1 ^the program has no description, or one that is not plain text
hello_exit 1 ^the program ended by exit.3., at its hello
hello_crash 1 ^the program ended by signal 11 .*, at its hello
hello_silent 1 ^the program did not answer within 1 s, at its hello
END
finish
