#!/bin/sh
# What is taken of a model and said of it: the call that is meant, by kernel and by type of layers, at which length, and the
# notes of its configuration, by every command that reads one.
. "$(dirname "$0")/tap.sh"

# takes NAME KERNEL MODEL... = ARGUMENTS...: a table of the model with the bytes of one by options
takes() {
    name=$1 kernel=$2
    shift 2
    model=
    while [ "$1" != = ]; do
        model="$model $1"
        shift
    done
    shift
    run "$POSENC" table "$kernel" "$@" --positions 0..7,4095
    cp stdout wanted
    # shellcheck disable=SC2086  # a list of words
    run "$POSENC" table "$kernel" $model --positions 0..7,4095
    if [ $status = 0 ] && [ -s wanted ] && cmp -s stdout wanted; then pass "$name"; else fail "$name" "exit $status or other bytes"; fi
}
# says NAME PATTERN, hushes NAME PATTERN: stderr has such a line, or none
says() { if grep -Eq -e "$2" stderr; then pass "$1"; else fail "$1" "stderr does not match: $2"; fi; }
hushes() { if grep -Eq -e "$2" stderr; then fail "$1" "stderr matches: $2"; else pass "$1"; fi; }

takes 'whisper: the table of its encoder' sinusoidal --model whisper-large-v3 = --dim 1280 --layout sin_cos --convention endpoint

# Types of layers that rotate differently: all are said, the first is taken unless another is named.
two='^gemma-3-4b: .* 2 ways: full_attention \(256 channels, rope_theta 1000000, linear\), which is taken; sliding_attention \(256 channels, rope_theta 10000\)'
takes 'gemma 3: the first type of layers' rope_table --model gemma-3-4b = --dim 256 --rope-theta 1e6 --scaling linear --factor 8
says 'and both are said' "$two"
takes 'gemma 3: layers that slide' rope_table --model gemma-3-4b --layer-type sliding_attention = --dim 256
hushes 'which nobody is told who chose' ' ways: '
takes 'gemma 3: layers of full attention' rope_table --model gemma-3-4b --layer-type full_attention = \
    --dim 256 --rope-theta 1e6 --scaling linear --factor 8
takes 'gemma 4: layers that slide' rope_table --model gemma-4-e2b --layer-type sliding_attention = --dim 256
echo '{"model_type":"modernbert","hidden_size":768,"num_attention_heads":12,"max_position_embeddings":8192}' >modernbert.json
takes 'ModernBERT: layers that slide' rope_table --config "$scratch/modernbert.json" --layer-type sliding_attention = --dim 64
takes 'ModernBERT: layers of full attention' rope_table --config "$scratch/modernbert.json" = --dim 64 --rope-theta 160000
says 'ModernBERT: both are said' '^modernbert: .*full_attention .*160000\), which is taken; sliding_attention .*10000\)'
# Kimi K2.5's tower turns by the column of a patch, then by its row.
echo '{"model_type":"kimi_k25","text_config":{"model_type":"deepseek_v3"},"vision_config":{"model_type":"kimi_k25_vision"}}' >"$scratch/kimi.json"
picture() { run "$POSENC" table rope_table --grid 3 --tokens 6 "$@" && cp stdout "$scratch/picture"; }
for order in '' rows; do
    picture --dim 72 --mrope-section 18,18 --mrope-layout alternating --grid-order "${order:-columns}"
    cp "$scratch/picture" "$scratch/wanted"
    picture --config "$scratch/kimi.json" --layer-type vision ${order:+--grid-order "$order"}
    if [ -s "$scratch/wanted" ] && cmp -s "$scratch/picture" "$scratch/wanted"; then
        pass "a tower with ${order:-columns} first"
    else
        fail "a tower with ${order:-columns} first" "exit $status or other bytes"
    fi
done
echo '{"model_type":"musicgen_decoder","hidden_size":64,"num_attention_heads":4,"max_position_embeddings":100}' >"$scratch/musicgen.json"
refuses 'cosines before sines are two tables' 'has all cosines before all sines: expected posenc table rope_table' \
    table sinusoidal --config "$scratch/musicgen.json"
takes 'a tower beside text' rope_table --model qwen2-vl-7b --layer-type vision = --dim 80 --mrope-section 20,20 --mrope-layout restarted
takes 'text beside a tower' rope_table --model qwen2-vl-7b --layer-type text = --dim 128 --rope-theta 1e6
takes 'layers alike' rope_table --model llama-2-7b = --dim 128
hushes 'of which nothing is said' ' ways: '
refuses 'unknown type of layers' '--layer-type: sliding: did you mean sliding_attention.*expected one of full_attention, sliding_attention$' \
    table rope_table --model gemma-3-4b --layer-type sliding --out csv:x.csv
refuses 'a type of layers where all are alike' '--layer-type: full_attention: has no effect here: all layers of llama-2-7b rotate alike' \
    table rope_table --model llama-2-7b --layer-type full_attention
refuses 'a type of layers of no model' '--layer-type: has no effect here: it needs --model or --config' \
    table rope_table --dim 8 --layer-type full_attention

# Calls of a model are verified at their real sizes: a quick run takes one of each kernel, a full run all of them.
# calls_of MODEL KERNEL ARGUMENTS...: the exit status, and "N of N" calls passed
calls_of() {
    model=$1 kernel=$2
    shift 2
    run "$POSENC" verify --backend scalar --model "$model" --kernel "$kernel" --case '*/model*' --out csv "$@"
    echo "$status $(grep -c ',pass,' stdout) of $(grep -c ',check,' stdout)"
}
same 't5: a quick run has the prompt' "$(calls_of t5-base t5_bias_add --quick) $(grep -c 'q512-k512-d12,' stdout)" '0 3 of 3 1'
same 't5: a full run has the decoder, too' "$(calls_of t5-base t5_bias_add --full) $(grep -c 'q1-k512-d12,' stdout)" '0 4 of 4 2'
same 'whisper: all rows of the encoder' "$(calls_of whisper-large-v3 sinusoidal --full) $(grep -c 'exact/model.*t1500-d1280,' stdout)" '0 7 of 7 1'
run "$POSENC" verify --full --backend scalar --kernel window_bias --case '*/presets' --out csv
same 'a full run has the calls of all presets' "$status $(grep -c 'f32/accuracy/presets.*,pass,' stdout)" '0 1'
same 'and names those in 16 bits, which it leaves out' "$(grep -c 'f16/accuracy/presets.*,skipped,.*--model M --full' stdout)" 2

# Other doors: a GGUF file, params.json, a folder of one of them, a model of the hub in its local cache.
le() { # VALUE BYTES
    value=$1 left=$2
    while [ "$left" -gt 0 ]; do
        # shellcheck disable=SC2059  # a byte in octal
        printf "\\$(printf %03o $((value % 256)))"
        value=$((value / 256)) left=$((left - 1))
    done
}
text() { le ${#1} 8 && printf %s "$1"; }
whole() { text "$1" && le 4 4 && le "$2" 4; }
{
    printf GGUF && le 3 4 && le 0 8 && le 5 8
    text general.architecture && le 8 4 && text stablelm
    whole stablelm.context_length 4096 && whole stablelm.embedding_length 64 && whole stablelm.block_count 4
    whole stablelm.attention.head_count 4
} >"$scratch/small.gguf"
takes 'a GGUF file' rope_table --config "$scratch/small.gguf" = --dim 16
says 'and whose reading it is' '^small: As llama.cpp reads it.*profile ggml_f32'
takes 'its own angles' rope_table --config "$scratch/small.gguf" --profile ggml_f32 = --dim 16 --profile ggml_f32
mkdir "$scratch/release" "$scratch/converted"
echo '{"dim": 64, "n_layers": 4, "n_heads": 4, "multiple_of": 256, "rope_theta": 500000}' >"$scratch/release/params.json"
cp "$scratch/small.gguf" "$scratch/converted"
takes 'a folder with params.json' rope_table --config "$scratch/release" = --dim 16 --rope-theta 5e5
says 'which is said' '^posenc table: --config .*/release: read from .*/release/params.json$'
takes 'a folder with a GGUF file' rope_table --config "$scratch/converted" = --dim 16
echo '{"model_type":"llama","hidden_size":128,"num_attention_heads":4,"max_position_embeddings":8192}' >"$scratch/release/config.json"
takes 'config.json before params.json' rope_table --config "$scratch/release" = --dim 32
snapshot=hub/models--org--Some-Model/snapshots/0123456789abcdef
mkdir -p "$scratch/$snapshot" "$scratch/hub/models--org--Some-Model/refs"
cp "$scratch/release/config.json" "$scratch/$snapshot"
printf 0123456789abcdef >"$scratch/hub/models--org--Some-Model/refs/main"
cached() { # NAME VARIABLE=VALUE: what HOME and its like say alone
    run env -u HF_HUB_CACHE -u HF_HOME -u XDG_CACHE_HOME -u HOME "$2" "$POSENC" table rope_table --config org/Some-Model --positions 5
    if [ $status = 0 ]; then says "$1" "^posenc table: --config org/Some-Model: read from .*/$snapshot/config.json; no network is used$"; else fail "$1" "exit $status"; fi
}
cached 'the cache of the hub' HF_HUB_CACHE="$scratch/hub"
says 'by the name of the model' '^some-model: '
cached 'below HF_HOME' HF_HOME="$scratch"
mkdir -p "$scratch/huggingface" "$scratch/.cache"
ln -s "$scratch/hub" "$scratch/huggingface/hub"
ln -s "$scratch/huggingface" "$scratch/.cache/huggingface"
cached 'below XDG_CACHE_HOME' XDG_CACHE_HOME="$scratch"
cached 'below HOME' HOME="$scratch"

# longrope by the length of the sequence: the largest position and 1, unless it is given.
long='^posenc table: longrope: the long factors, of 4097 tokens, the largest position and 1, where 4096 were trained on; --seq-len'
for at in 4095 4096; do
    run "$POSENC" table rope_table --model phi-4-mini --positions 4,$at --seq-len $((at + 1))
    cp stdout wanted
    hushes "longrope, $((at + 1)) tokens: told" 'longrope'
    run "$POSENC" table rope_table --model phi-4-mini --positions 4,$at
    if [ -s wanted ] && cmp -s stdout wanted; then pass "longrope, position $at"; else fail "longrope, position $at" 'other bytes'; fi
done
says 'longrope: long factors are said' "$long"
run "$POSENC" table rope_table --model phi-4-mini --positions 4,4095
hushes 'longrope: short ones are not' longrope
run "$POSENC" table rope_table --model phi-4-mini --times 4,4095.5
hushes 'longrope: a time is in the token before it' longrope
run "$POSENC" table rope_table --model phi-4-mini --positions 4,4096 --seq-len 4096
sed -n 2p stdout >short
run "$POSENC" table rope_table --model phi-4-mini --positions 4,4096
if [ -s short ] && sed -n 2p stdout | cmp -s - short; then fail 'longrope: a length that is given counts' 'the same'; else pass 'longrope: a length that is given counts'; fi

# What a model file leaves open, every command that reads it says.
for command in 'table rope_table' 'bench --case none' 'verify --case none'; do
    # shellcheck disable=SC2086  # a list of words
    run "$POSENC" $command --model gemma-3-4b
    same "notes of $command" "$(grep -c '^gemma-3-4b: .*One layer in 6 has full attention.*vision_config is not covered' stderr) \
$(grep -c '^gemma-3-4b: .*forms its angles in f32: profile .hf_f32' stderr)" '1 1'
    rm -rf work/*
done

# Storage: what a configuration says, unless --dtype does; f32 where neither does, and in tables.
model='"model_type":"llama","hidden_size":64,"num_attention_heads":2,"max_position_embeddings":64'
echo "{$model,\"torch_dtype\":\"bfloat16\"}" >stored.json
echo "{$model}" >plain.json
echo "{$model,\"torch_dtype\":\"float64\"}" >wide.json
types() { grep -o ',rope_half/[a-z0-9]*/' stdout | sort -u | cut -d/ -f2 | tr '\n' ' '; }
# stores NAME WANTED PATTERN COMMAND ARGUMENTS...: the types of what is checked or timed, and what stderr says of them
stores() {
    name=$1 wanted=$2 pattern=$3
    shift 3
    run "$POSENC" "$@" --kernel rope_half --backend scalar --out csv
    if grep -q 'nothing is timed here' stderr; then
        skip "$name" "$(cat stderr)"
    elif [ $status = 0 ] && [ "$(types)" = "$wanted" ] && grep -Eq -e "$pattern" stderr; then
        pass "$name"
    else
        fail "$name" "exit $status, types $(types)"
    fi
}
from="^stored: storage bf16, from the config's torch_dtype\$"
timed="--case *-decode --budget 0.05"
for command in "bench $timed" 'verify --suite accuracy --case */model*'; do
    set -f # patterns are no files
    # shellcheck disable=SC2086  # a list of words
    stores "storage of ${command%% *}" 'bf16 ' "$from" $command --config "$scratch/stored.json"
    # shellcheck disable=SC2086
    stores "storage of ${command%% *} with --dtype" 'f32 ' "^stored: storage f32, from --dtype, where the config's torch_dtype has bf16\$" \
        $command --config "$scratch/stored.json" --dtype f32
    # shellcheck disable=SC2086
    stores "storage of ${command%% *}, two models" 'bf16 f32 ' "$from" \
        $command --config "$scratch/stored.json" --config "$scratch/plain.json"
    # shellcheck disable=SC2086
    stores "storage of ${command%% *}, none of ours" 'f32 ' '^wide: .*torch_dtype is float64, .*: f32 is taken' \
        $command --config "$scratch/wide.json"
    set +f
done
rm -rf work/*
run "$POSENC" table rope_table --config "$scratch/plain.json"
cp stdout wanted
run "$POSENC" table rope_table --config "$scratch/stored.json"
if [ -s wanted ] && cmp -s stdout wanted; then pass 'tables are f32'; else fail 'tables are f32' 'other bytes'; fi
hushes 'of which no storage is said' storage
# Without Python presets work, and what it reads ends in a line.
if [ -z "${PROGRAM:-}" ]; then
    cp "$POSENC" "$scratch/alone"
    for arguments in 'list types' "table rope_table --positions 1 --config $scratch/release"; do
        # shellcheck disable=SC2086  # a list of words
        run env PATH=/nowhere "$scratch/alone" $arguments
        same "without Python: ${arguments%% *}" "$status $(wc -l <stderr)" '2 1'
        says 'in a message' 'needs the Python part of posenc: posenc-explain is not installed'
    done
    run env PATH=/nowhere "$scratch/alone" table rope_table --model llama-2-7b --positions 1
    same 'without Python: a preset' "$status" 0
fi
finish
