#!/bin/sh
# --model and --config: which call of a model a command takes, by kernel, type of layers and length, and the notes that it
# prints. reports/tests tests the readers of model files.
. "$(dirname "$0")/tap.sh"

# A table of a model has the bytes of that of a whole problem.
takes() { # NAME PROBLEM ARGUMENTS...
    name=$1 line=$2
    shift 2
    run "$POSENC" table --problem "$line" --positions 0..7,4095
    cp stdout wanted
    run "$POSENC" table "$@" --positions 0..7,4095
    [ $status = 0 ] && [ -s wanted ] && cmp -s stdout wanted
    verdict "$name"
}
# Stderr of the last run has a line that matches, or none.
says() {
    grep -Eq -e "$2" stderr
    verdict "$1" "stderr does not match: $2"
}
hushes() {
    ! grep -Eq -e "$2" stderr
    verdict "$1" "stderr matches: $2"
}

# ---- The call, and what a line changes of it ----

takes 'a table of sinusoids' 'sinusoidal dim=1280 layout=sin_cos freq_spacing=endpoint' sinusoidal --model whisper-large-v3
takes 'a rotation with its scaling' \
    'rope_table rotary_dim=128 rope_theta=500000 scaling=llama3 factor=8 low_freq_factor=1 high_freq_factor=4
    original_max_position_embeddings=8192' rope_table --model llama-3.1-8b
hushes 'layers alike are not listed' 'layers of types'
takes 'fields of a line come before those of the model' 'rope_table rotary_dim=64 rope_theta=500000 dtype=bf16' \
    --model llama-3.1-8b --problem 'rope_table rotary_dim=64 scaling=none dtype=bf16'
run "$POSENC" table rope_table --model gemma-3-4b --quiet
same 'a quiet run prints no note' "$status $(wc -l <stderr)" '0 0'

# Types of layers that rotate differently are listed, and the first is taken unless another is named.
gemma='rope_table rotary_dim=256 rope_theta=1e6 scaling=linear factor=8'
takes 'the first type of layers' "$gemma" rope_table --model gemma-3-4b
says 'and both are listed' '^gemma-3-4b has layers of types full_attention and sliding_attention; this uses full_attention [(]--layer-type NAME: another[)]$'
takes 'layers that slide' 'rope_table rotary_dim=256' rope_table --model gemma-3-4b --layer-type sliding_attention
hushes 'which nobody is told who chose' 'layers of types'
takes 'a tower beside text' 'rope_table rotary_dim=80 mrope_section=20,20 mrope_layout=qwen2_vl_vision' \
    rope_table --model qwen2-vl-7b --layer-type vision
takes 'text beside a tower' 'rope_table rotary_dim=128 rope_theta=1e6' rope_table --model qwen2-vl-7b --layer-type text
rejects 'unknown type of layers' '--layer-type: sliding: did you mean sliding_attention.*expected one of full_attention, sliding_attention$' \
    table rope_table --model gemma-3-4b --layer-type sliding --out csv:x.csv
rejects 'a type of layers where all are alike' '--layer-type: full_attention: expected one of text' \
    table rope_table --model llama-2-7b --layer-type full_attention
echo '{"model_type":"musicgen_decoder","hidden_size":64,"num_attention_heads":4,"max_position_embeddings":100}' >musicgen.json
rejects 'cosines before sines are two tables' 'has all cosines before all sines: expected posenc table rope_table' \
    table sinusoidal --config "$scratch/musicgen.json"
# Kimi K2.5's tower turns by the column of a patch, then by its row: each pair of columns changes places.
echo '{"model_type":"kimi_k25","text_config":{"model_type":"deepseek_v3"},"vision_config":{"model_type":"kimi_k25_vision"}}' >kimi.json
run "$POSENC" table --problem 'rope_table rotary_dim=72 mrope_section=18,18 mrope_layout=kimi tokens=6' --grid 3
awk -F, 'NR > 1 { for (i = 1; i < NF; i += 2) printf "%s,%s%s", $(i + 1), $i, i + 1 < NF ? "," : "\n" }' stdout >wanted
run "$POSENC" table --config "$scratch/kimi.json" --layer-type vision --problem 'rope_table tokens=6' --grid 3
sed 1d stdout | cut -d, -f1,2 | sed -n '2p;4p' >positions
same 'a tower, its own order' "$(paste -s -d ' ' positions) $(sed 1d stdout | cmp - wanted && wc -l <wanted)" '1,0 0,1 6'
# longrope by the length of the sequence: the largest position and 1, unless it is given.
long='^posenc table: longrope: the long factors, of 4097 tokens, the largest position and 1, where 4096 were trained on'
for at in 4095 4096; do
    run "$POSENC" table --model phi-4-mini --positions 4,$at --problem "rope_table seq_len=$((at + 1))"
    hushes "longrope, $((at + 1)) tokens: told" longrope
    cp stdout wanted.$at
    run "$POSENC" table rope_table --model phi-4-mini --positions 4,$at
    [ -s wanted.$at ] && cmp -s stdout wanted.$at
    verdict "longrope, position $at" 'other bytes'
done
says 'longrope: long factors are said' "$long"
[ "$(sed -n 2p wanted.4095)" != "$(sed -n 2p wanted.4096)" ]
verdict 'longrope: the length counts'
run "$POSENC" table rope_table --model phi-4-mini --positions 0..4096:1000
hushes 'longrope: the last row counts, not the end of its range' longrope
run "$POSENC" table rope_table --model phi-4-mini --positions 4,4095.5
hushes 'longrope: a time is in the token before it' longrope

# ---- What commands check and time of it ----

# Prints the exit status, and "N of N" calls passed.
calls_of() { # MODEL KERNEL ARGUMENTS...
    model=$1 kernel=$2
    shift 2
    run "$POSENC" verify --backend scalar --model "$model" --kernel "$kernel" --case '*/model*' --out csv "$@"
    echo "$status $(grep -c ',pass,' stdout) of $(grep -c ',check,' stdout)"
}
same 't5: a quick run has the prompt' "$(calls_of t5-base t5_bias_add --quick) $(grep -c 'q512-k512-d12,' stdout)" '0 3 of 3 1'
same 't5: a full run has the decoder, too' "$(calls_of t5-base t5_bias_add --full) $(grep -c 'q1-k512-d12,' stdout)" '0 4 of 4 2'
run "$POSENC" verify --full --backend scalar --kernel window_bias --case '*/presets' --out csv
same 'a full run has the calls of all presets' "$status $(grep -c 'f32/accuracy/presets.*,pass,' stdout)" '0 1'
same 'and names those in 16 bits, which it leaves out' "$(grep -c 'f16/accuracy/presets.*,skipped,.*--model M --full' stdout)" 2

for command in 'table rope_table' 'bench --case none' 'verify --case none'; do
    run "$POSENC" $command --model gemma-3-4b
    same "notes of $command" "$(grep -c '^gemma-3-4b: .*One layer in 6 has full attention.*vision_config is not covered' stderr) \
$(grep -c '^gemma-3-4b: .*forms its angles in f32: numerics mode .hf_f32' stderr)" '1 1'
    rm -rf work/*
done

# Element types: those of a configuration, unless --dtype names others; f32 where neither does.
model='"model_type":"llama","hidden_size":64,"num_attention_heads":2,"max_position_embeddings":64'
echo "{$model,\"torch_dtype\":\"bfloat16\"}" >stored.json
echo "{$model}" >plain.json
echo "{$model,\"torch_dtype\":\"float64\"}" >wide.json
# Checks the element types of the cases that a command checks or times, and its message about them.
stores() { # NAME TYPES PATTERN COMMAND ARGUMENTS...
    name=$1 wanted=$2 pattern=$3
    shift 3
    run "$POSENC" "$@" --kernel rope_half --backend scalar --out csv
    types=$(grep -o ',rope_half/[a-z0-9]*/' stdout | sort -u | cut -d/ -f2 | tr '\n' ' ')
    if grep -q 'nothing is timed here' stderr; then
        skip "$name" "$(cat stderr)"
    elif [ $status = 0 ] && [ "$types" = "$wanted" ] && grep -Eq -e "$pattern" stderr; then
        pass "$name"
    else
        fail "$name" "exit $status, types $types"
    fi
}
from="^stored: storage bf16, from the config's torch_dtype\$"
for command in 'bench --case *-decode --time-limit 0.05' 'verify --suite accuracy --case */model*'; do
    set -f # patterns are no files
    stores "${command%% *}, --dtype" 'f32 ' "^stored: storage f32, from --dtype, where the config's torch_dtype has bf16\$" \
        $command --config "$scratch/stored.json" --dtype f32
    stores "${command%% *}, two models" 'bf16 f32 ' "$from" $command --config "$scratch/stored.json" --config "$scratch/plain.json"
    stores "${command%% *}, none of ours" 'f32 ' '^wide: .*torch_dtype is float64, .*: f32 is taken' $command --config "$scratch/wide.json"
    set +f
done
rm -rf work/*

# ---- Files: which one of a folder or of a cache, and without Python none ----

mkdir -p release hub/models--org--Some-Model/refs hub/models--org--Some-Model/snapshots/0123456789abcdef
echo '{"dim": 64, "n_layers": 4, "n_heads": 4, "multiple_of": 256, "rope_theta": 500000}' >release/params.json
takes 'a folder with params.json' 'rope_table rotary_dim=16 rope_theta=5e5' rope_table --config "$scratch/release"
says 'which is said' '^posenc table: --config .*/release: read from .*/release/params.json$'
cp plain.json release/config.json
takes 'config.json before params.json' 'rope_table rotary_dim=32' rope_table --config "$scratch/release"
cp plain.json hub/models--org--Some-Model/snapshots/0123456789abcdef/config.json
printf 0123456789abcdef >hub/models--org--Some-Model/refs/main
mkdir huggingface .cache
ln -s "$scratch/hub" huggingface/hub
ln -s "$scratch/huggingface" .cache/huggingface
for place in HF_HUB_CACHE="$scratch/hub" HF_HOME="$scratch" XDG_CACHE_HOME="$scratch" HOME="$scratch"; do
    run env -u HF_HUB_CACHE -u HF_HOME -u XDG_CACHE_HOME -u HOME "$place" "$POSENC" table rope_table --config org/Some-Model
    says "the cache of the hub by ${place%%=*}" \
        '^posenc table: --config org/Some-Model: read from .*/0123456789abcdef/config.json; no network is used$'
done
if [ -z "${PROGRAM:-}" ]; then
    cp "$POSENC" "$scratch/alone"
    for arguments in 'list types' "table rope_table --positions 1 --config $scratch/release"; do
        run env PATH=/nowhere "$scratch/alone" $arguments
        same "without Python: ${arguments%% *}" \
            "$status $(wc -l <stderr) $(grep -c 'needs the Python part of posenc: posenc-explain is not installed' stderr)" '2 1 1'
    done
    run env PATH=/nowhere "$scratch/alone" table rope_table --model llama-2-7b --positions 1
    same 'without Python: a preset' "$status" 0
fi
finish
