#!/bin/sh
# Bad input of each command: exit 2, one message with the option, the value and what would be accepted, and no file.
. "$(dirname "$0")/tap.sh"

# ---- Commands and options ----

rejects 'unknown command' 'command: tabel: did you mean table' tabel
rejects 'unknown option' 'unknown option: kernels: did you mean kernel[?]$' verify --kernels x
rejects 'option of another command' 'unknown option: threads' verify --threads 2
rejects 'unknown letter' 'unknown option: j' bench -j 2
rejects 'flag with a value' '--quick=1: expected the option alone' verify --quick=1
rejects 'option without value' '--suite: expected a value after it' verify --suite
rejects 'letter without value' '-o: expected a value after it' verify -o
rejects 'an operand too many' 'unexpected argument: x: expected options only' verify x
for value in 0 -1 1025 99999999999999999999 2x 1e1 0x2 ' 2' ''; do
    rejects "jobs '$value'" '--jobs: .*expected an integer from 1 to 1024' verify -j "$value"
done
for value in 0 -1 nan inf 1e999 ten 86401 ''; do
    rejects "seconds '$value'" '--time-limit: .*expected a number above 0, at most 86400' bench --time-limit "$value"
done
rejects 'text without a character' '--suite: .empty.: expected NAME' verify --suite ''
rejects 'a list with an empty name' '--kernel: alibi,: expected names separated by commas' verify --kernel alibi,
rejects 'quick and full' '--quick: expected without --full$' bench --quick --full
rejects 'quick and exhaustive' '--quick: expected without --exhaustive$' verify --quick --exhaustive

# ---- What is selected ----

rejects 'unknown kernel' '--kernel: rope: did you mean rope_half, rope_table or rope_qk_norm[?]$' verify --kernel rope
rejects 'unknown backend' '--backend: avx3: .*expected one of.*scalar' verify --backend avx3 --out md:x.md
rejects 'unknown model' "'no-such-model' is unknown[.]  Known: " bench --model no-such-model --out md:x.md
rejects 'unknown suite' '--suite: memry: did you mean memory' verify --suite memry
rejects 'one good element type, one bad' '--dtype: f12: did you mean f32.*expected one of f32, f16, bf16' bench --dtype f16,f12
rejects 'element type of what has none' '--dtype: has no effect here: it is for list cases' list kernels --dtype bf16
rejects 'unknown kind' 'kind: backend: did you mean backends' list backend
rejects 'unknown case' '--case: no/such/case: no case has this id' verify -v --case no/such/case
rejects 'pattern without a match' '--case: nothing-at-all: matches nothing' verify --case nothing-at-all
run "$POSENC" verify --kernel alibi --backend scalar --suite digests --case 'alibi/*,alibbi/*'
same 'one pattern of two without a match is printed' "$status $(grep -c -- '--case: alibbi/\*: matches nothing' stderr)" '0 1'
rejects 'kernel that the model does not call' '--kernel: alibi: no selected model calls it: expected one of learned_add$' \
    verify --model gpt2 --kernel alibi
rejects 'a kernel that the plug-in lacks' '--plugin: example: does not provide rope_half: expected one that does' \
    verify -v --case rope_half/f32/given/onnx-rotary-embedding --plugin "$PLUGIN"
rejects 'config that is not there' '--config: ./foo: No such file' bench --config foo --out md:x.md
rejects 'a config of a hub that is not in its cache' 'nobody/nothing: there is no such file, .*/models--nobody--nothing/refs/main .a commit.*no network is used' \
    bench --config nobody/nothing --out md:x.md
echo '{"model_type":"llama","hidden_size":64,"num_attention_heads":1,"max_position_embeddings":64,"rope_scaling":{"rope_type":"twisted","factor":2}}' >c.json
rejects 'unknown key in a config' 'twisted' table rope_table --config "$scratch/c.json" -o x.csv

# ---- Tables ----

plan='rope_table rotary_dim=8'
rejects 'no table' 'TABLE: expected frequencies, drift, errors' table
rejects 'unknown table' 'TABLE: sinusodial: did you mean sinusoidal' table sinusodial
rejects 'errors of an odd dimension' 'rotary_dim: 3: expected an even number' table errors --problem 'rope_table rotary_dim=3'
rejects 'two tables' 'unexpected argument: drift' table errors drift
rejects 'a kernel alone' "TABLE: sinusoidal: needs a whole problem, --problem 'sinusoidal ...'" table sinusoidal
rejects 'a kernel and a problem' 'TABLE: rope_table: has no effect with --problem' table rope_table --problem "$plan"
rejects 'frequencies of nothing' "TABLE: frequencies: needs --problem 'rope_table" table frequencies
rejects 'drift of a rotation' 'rope_half: has no frequencies: expected rope_table or sinusoidal' \
    table drift --problem 'rope_half heads=1 tokens=1 rows=1 head_dim=4 rotary_dim=4'
rejects 'drift up to nowhere' 'has no element: expected batch and tokens above 0' table drift --problem "$plan"
rejects 'errors of no rotation' 'sinusoidal: has no errors by position: expected rope_table' table errors --problem 'sinusoidal dim=8'
rejects 'model of another encoding' 'gpt2: its encoding is learned: expected a model that calls rope_table' table frequencies --model gpt2
rejects 'layers of no model' '--layer-type: text: has no effect here' table --problem "$plan" --layer-type text
rejects 'a backend of frequencies' '--backend: has no effect here' table frequencies --problem "$plan" --backend scalar
rejects 'a parameter of another scaling' 'factor has no effect here: scaling none does not take it' table --problem "$plan factor=2"
rejects 'a parameter that needs another' 'xpos_centre has no effect here: it needs xpos_scale_base' table --problem "$plan xpos_centre=2"
rejects 'a layout without sections' 'mrope_layout has no effect here: it needs mrope_section' table --problem "$plan mrope_layout=kimi"
rejects 'factors of another length' 'short_factor: not given: expected 4 elements' \
    table --model phi-4-mini --problem "$plan" --positions 1
rejects 'positions of columns' '--positions: has no effect here: it is for values' table frequencies --problem "$plan" --positions 1
rejects 'positions of a bias' '--positions: has no effect here: alibi is not computed' \
    table --problem 'alibi heads=1 queries=1 keys=1' --positions 1
rejects 'a picture without sections' '--grid: has no effect here: it is for values with' table --problem "$plan" --grid 4
rejects 'a picture of one axis' '--grid: has no effect here: .*two or three axes' table --problem "$plan mrope_section=4" --grid 4
rejects 'a picture and times' '--grid: has whole positions' table --problem "$plan mrope_section=2,2 position_kind=f32" --grid 4
rejects 'a picture and positions' '--grid: expected without' table --problem "$plan mrope_section=2,2" --grid 4 --positions 1,2
rejects 'positions twice' '--positions: has no effect with tokens' table --problem "$plan tokens=4" --positions 1
for value in 2147483648 -2147483648 5..1 1,,2 1.. ..5 1...5 0..9..1 one 1,2, ' 1' \
    2147483648.0 -3e9.0 1.5,inf 5.5..1 1:2 0..1:0 0..1:-1 0..1: 0..1:x 0..1:1:1; do
    rejects "positions '$value'" '--positions: .*expected numbers' table --problem "$plan" --positions "$value" -o x.csv
done
for value in 2147483647,0.5 0.5,2147483647 0..2147483647:0.5; do
    rejects "times '$value'" '--positions: [0-9.:]*2147483647[0-9.:]*: expected numbers from -2147483520' table --problem "$plan" --positions "$value"
done
rejects 'a wrong piece of a list' '--positions: 7x: expected' table --problem "$plan" --positions 1,7x,9
rejects 'rows without end' '--positions: too many rows: expected at most' table --problem "$plan" --positions 0..1e9:1e-300
rejects 'rows of too many bytes' 'tokens=500000001: the call has .* bytes; at most' table --problem 'sinusoidal dim=65536' --positions 0..500000000

# ---- Problems ----

rejects 'problem of no kernel' 'rope_haf: no kernel; did you mean rope_half' verify --problem 'rope_haf heads=1'
rejects 'problem with an unknown field' 'hed_dim: no field of rope_half.*did you mean head_dim' verify -v --problem 'rope_half hed_dim=1'
rejects 'problem with a bad value' 'heads=x: expected a whole number' bench --problem 'rope_half heads=x'
rejects 'problem that the library rejects' 'rotary_dim is 33: the dim of a rotation is odd' \
    verify --problem 'rope_half head_dim=80 rotary_dim=33 heads=1 tokens=1 rows=1'
for kernel in $("$POSENC" list kernels | sed -n 's/^\([a-z][a-z0-9_]*\)  *\(table\|apply\) .*/\1/p'); do
    rejects "$kernel without sizes" "--problem: " verify --problem "$kernel"
done
rejects 'problem without an element' 'has no element: expected batch and tokens above 0' verify --problem 'rope_half head_dim=80 rotary_dim=32'
rejects 'problem and a case' '--case: has no effect with --problem' verify --problem 'alibi heads=1 queries=1 keys=1' --case x
# Memory and work of a problem are estimated before anything is allocated.
rejects 'a large problem' 'queries=1000000000: the call has .* bytes; at most .*: expected queries of at most [1-9]' \
    verify --problem 'alibi queries=1000000000 keys=100 heads=8'
rejects 'a problem of more values than are checked in minutes' 'tokens=1000000: the call has .* values; at most .*expected tokens of at most' \
    verify --problem 'sinusoidal dim=128 tokens=1000000'
rejects 'a stride that reaches too far' 'elements between the ends of a tensor is -5.8e.16, expected from -1099511627776 to' \
    verify --problem 'rope_half batch=1 tokens=30 heads=4 head_dim=8 rotary_dim=8 x.stride=5,-2000000000000000,1'
rejects 'a number whose sums overflow' 'position_offset=9223372036854775807: expected at most' \
    verify --problem 'sinusoidal dim=64 tokens=3 position_offset=9223372036854775807'

# ---- Outputs ----

table() { name=$1 pattern=$2 && shift 2 && rejects "$name" "$pattern" table --problem 'sinusoidal dim=8' "$@"; }
table 'unknown format' '--out: cvs: did you mean csv' --out cvs:x.csv
table 'format without path' 'expected FORMAT or FORMAT:PATH' --out csv:
table 'folder that is not there' 'cannot be written: No such file' --out csv:no/such/x.csv
table 'output is a folder' 'it is a folder' --out csv:/tmp
table 'the same file twice' 'is written already' --out csv:x --out npy:x
table 'one good and one bad output' 'cannot be written' --out csv:x.csv --out npy:no/x.npy
rejects 'two formats on stdout' 'goes to stdout already' verify --out md --json
rejects 'a name that no format follows from' '-o: x.json: no format follows from this name' verify -o x.json
rejects 'a name without a suffix' '-o: a.b/x: no format follows from this name' verify -o a.b/x
rejects 'NumPy knows no bf16' 'npy: NumPy has no bf16: expected csv or safetensors' table --problem 'sinusoidal dim=8 dtype=bf16' -o x.npy
rejects 'npy of two arrays' 'npy: one file holds one array' table --problem "$plan" -o x.npy
rejects 'columns as an array' 'npy: it cannot hold columns' table frequencies --problem "$plan" -o x.npy
full='>/dev/full' # Linux has it, macOS has not
if [ -c /dev/full ]; then
    table 'no space left' 'cannot be written: No space left' --out csv:/dev/full
else
    full=
    skip 'no space left' 'there is no /dev/full'
fi
if [ "$(id -u)" = 0 ]; then
    skip 'folder that may not be written' 'root may write everywhere'
else
    mkdir closed && chmod 500 closed
    table 'folder that may not be written' 'Permission denied' --out "csv:$scratch/closed/x"
fi
for redirection in '>&-' $full; do
    for arguments in list 'list cases' 'verify --kernel alibi --backend scalar --suite vectors --out jsonl:r.jsonl --out console'; do
        run sh -c "\"\$0\" \"\$@\" $redirection" "$POSENC" $arguments
        case $redirection in '>&-') says='standard output is closed' ;; *) says='standard output.*No space left' ;; esac
        same "stdout $redirection: $arguments" "$status $(grep -c "$says" stderr) $(ls work)" '2 1 '
    done
done
run sh -c '"$0" verify --kernel alibi --backend scalar --suite vectors --out jsonl:r.jsonl 2>&-' "$POSENC"
same 'stderr closed' "$status $(grep -c -v '^{' work/r.jsonl)" '0 0'
rm -f work/*

# ---- Files that are read ----

mkdir short changed empty
cp -R "$GOLDEN/cases" "$GOLDEN/vectors" short
cp -R "$GOLDEN/cases" "$GOLDEN/vectors" changed
head -c 1000 short/vectors/alibi.safetensors >piece && cp piece short/vectors/alibi.safetensors
printf 'x' | dd of=changed/vectors/rope.safetensors bs=1 seek=5000 conv=notrunc 2>dd.log
rejects 'truncated vectors' 'short/vectors/alibi.safetensors: altered: it has 1000 bytes' verify --vectors "$scratch/short" --out md:x.md
rejects 'altered vectors' 'changed/vectors/rope.safetensors: altered.*[0-9a-f]{16}' verify --vectors "$scratch/changed" --out md:x.md
rejects 'empty vectors' 'empty/cases/flags.txt: cannot be read' verify --vectors "$scratch/empty"
rejects 'no vectors there' 'none/cases/flags.txt: cannot be read' verify --vectors "$scratch/none"
echo 'this is no shared library' >text.so
head -c 1000 "$PLUGIN" >short.so
says='short.so: cannot be loaded' # by the system, but where it would die of it
[ "$(head -c 4 "$PLUGIN" | tail -c 3)" != ELF ] || says="$says.*cut short"
rejects 'plug-in that was cut short' "$says" list --plugin "$scratch/short.so"
rejects 'build that was cut short' "$says" pair "$scratch/short.so" "$scratch/short.so"
rejects 'plug-in that is none' 'text.so: cannot be loaded.*expected a shared library' verify --plugin "$scratch/text.so"
rejects 'library without the symbol' 'exports no posenc_plugin' verify --plugin "$PLUGIN_NONE"
echo 'this is no limit' >limits.txt
rejects 'error limits that are none' 'limits.txt:1:17: ' verify --error-limits "$scratch/limits.txt"
rejects 'empty error limits' '/dev/null: holds no error limit' verify --error-limits /dev/null
rejects 'a misspelled family' 'did you mean native' verify --backend natve

# ---- The environment ----

export POSENC_BACKEND=nope
rejects 'forced backend that is unknown' 'POSENC_BACKEND: nope: expected one of.*scalar' list
export POSENC_BACKEND=native
rejects 'forced backend that is a family' 'POSENC_BACKEND: native: expected one of [^?]*scalar' list
! grep -Eq 'did you mean|, native' stderr
verdict 'families are not suggested'
off=$(unset POSENC_BACKEND; "$POSENC" list backends | awk 'NR > 3 && /^[*+ ] [a-z]/ { split(substr($0, 3), f, " ")
    if (f[4] == "no") print f[1] }' | head -n 1)
if [ -n "$off" ]; then
    export POSENC_BACKEND="$off"
    rejects "forced backend $off that this CPU lacks" "POSENC_BACKEND: $off: cannot run here.*expected one of.*scalar" list
    unset POSENC_BACKEND
    rejects "backend $off by option" "--backend: $off: cannot run here.*expected one of" verify --backend "$off"
else
    unset POSENC_BACKEND
    skip 'forced backend that this CPU lacks' 'this CPU runs every backend'
fi
export POSENC_MAX_ISA=nope
rejects 'unknown ceiling' 'POSENC_MAX_ISA: nope' list
finish
