#!/bin/sh
# posenc explain --config, --model: which key says what, what was assumed, and facts that follow, against the formulas.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"

# explains ARGUMENTS...: the page in stdout, its spaces squeezed and each paragraph on a line of its own in `page`.
explains() {
    run "$POSENC" explain "$@"
    [ $status = 0 ] || fail "explain $*" "exit $status"
    awk '/^               / { sub(/^ +/, " "); printf "%s", $0; next } { printf "%s%s", (NR > 1 ? "\n" : ""), $0 } END { print "" }' stdout |
        tr -s ' ' >"$scratch/page"
}
# config JSON [FILE]: explains such a file
config() {
    echo "$1" >"$scratch/${2:-mine}.json"
    explains --config "$scratch/${2:-mine}.json"
}
# says NAME TEXT: the page has it, letter for letter
says() { if grep -qF -e "$2" "$scratch/page"; then pass "$1"; else fail "$1" "no such words: $2"; fi; }
# has QUANTITY VALUE FROM: such a row of what was read
has() {
    if grep -qxF -e " $1 $2 $3" "$scratch/page"; then pass "$1 from $3"; else fail "$1 from $3" "got$(grep -F -e " $1 " "$scratch/page")"; fi
}
# of NUMBER...: a formula, as awk computes it, printed by FORMAT
of() { awk -v pi=3.14159265358979324 "BEGIN { printf \"$1\", $2 }" </dev/null; }

# ---- where each number is from

model='"model_type":"llama","hidden_size":128,"num_attention_heads":4'
config "{$model,\"torch_dtype\":\"bfloat16\"}"
has storage bf16 torch_dtype
has length 2048 'assumed: the default of its class, as max_position_embeddings is not there'
has head_dim 32 'assumed: hidden_size / num_attention_heads, as head_dim is not there'
has scaling none 'nothing says otherwise'
says 'whose defaults' '(its class: that of llama in transformers, as the survey of it saw (docs/models.md))'
says 'and the note of them' 'taken as the classes of this model_type do: max_position_embeddings 2048'
config "{$model,\"head_dim\":64,\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4,\"rope_theta\":5e5}}"
has rope_theta 500000 rope_parameters.rope_theta
has scaling linear rope_parameters.rope_type
config '{"model_type":"falcon","new_decoder_architecture":false,"alibi":false,"multi_query":true,"parallel_attn":true}'
has key_heads 1 'one for all, as multi_query is there'
config "{\"model_type\":\"gpt_neox\",\"rotary_pct\":0.25,\"hidden_size\":512,\"num_attention_heads\":8,\"rotary_emb_base\":10000}"
has rotary_dim 16 '0.25 of head_dim (rotary_pct)'
config '{"model_type":"roberta","max_position_embeddings":514,"pad_token_id":1}'
has length 512 'max_position_embeddings - (pad_token_id + 1)'
says 'rows of a learned table' 'position 0 is row 2, the last one, 511, row 513'
config '{"model_type":"vit","image_size":[64,32],"patch_size":[16,16],"hidden_size":32,"num_attention_heads":4}'
has length 9 '(image_size.0 / patch_size.0) * (image_size.1 / patch_size.1) + 1'
same 'of a file that says it all nothing is of a class' "$(grep -c 'its class' "$scratch/page")" 0
gemma4='"model_type":"gemma4","text_config":{"model_type":"gemma4_text","num_hidden_layers":2,"layer_types":["sliding_attention","full_attention"]'
config "{$gemma4,\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"proportional\",\"partial_rotary_factor\":0.25,\"rope_theta\":1e6},\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":1e4}},\"per_layer_config\":{\"1\":{\"head_dim\":512}}}}"
has rope_theta 10000 text_config.rope_parameters.sliding_attention.rope_theta
has head_dim 512 text_config.per_layer_config.1.head_dim
says 'pairs that stop' 'proportional: pairs 0-63 unchanged, pairs 64-255 stopped'

# ---- what follows: wavelengths, pairs that are scaled, magnitude, reach

turn=$(of %.4g '2 * pi')
explains --model llama-3.1-8b
cp stdout "$scratch/shown" # compared below
says 'llama 3: its channels' 'all 128 of a head turn, in 64 pairs half of them apart: channel i with channel i + 64'
# Unchanged below 8192 / 4 tokens, slowed by 8 above 8192 / 1; between them 1 / ((1 - s) / 8 + s), s = (8192 / wavelength - 1) / 3.
border() { awk -v most="$1" 'BEGIN { while (8 * atan2(1, 1) * 500000 ^ (i / 64) < most) i++; print i }' </dev/null; }
between() { of %.4g "1 / ((1 - (8192 / (2 * pi * 500000 ^ ($1 / 64)) - 1) / 3) / 8 + (8192 / (2 * pi * 500000 ^ ($1 / 64)) - 1) / 3)"; }
low=$(border 2048) high=$(border 8192)
says 'llama 3: which pairs' "llama3: pairs 0-$((low - 1)) unchanged, pairs $low-$((high - 1)) slowed $(between "$low") to $(between $((high - 1))) times, pairs $high-63 slowed 8 times"
says 'llama 3: wavelengths' "from $turn tokens (pair 0) to 20 470 000 (pair 63); 25 of 64 pairs do not come round within 131 072 positions"
# As posenc table drift has it, whose test computes it again.
first=$("$POSENC" table drift --model llama-3.1-8b --problem 'rope_table profile=hf_f32 tokens=131072' 2>"$scratch/drift.log" | sed -n 's/^0.001,//p')
says "llama 3: off by 0.001 first at $first" "off by more than 0.001 first at position $first, by more than 0.01 nowhere up to position 131071"

explains --model qwen3-8b-yarn
has beta_fast 32 'assumed: beta_fast is not there'
# From pair floor(dim ln(L / (2 pi beta_fast)) / (2 ln theta)) to ceil of the same with beta_slow.
low=$(of %d 'int(128 * log(32768 / (2 * pi * 32)) / (2 * log(1000000)))')
high=$(of %d 'int(128 * log(32768 / (2 * pi)) / (2 * log(1000000))) + 1')
says 'yarn: which pairs' "yarn: pairs 0-$low unchanged, pairs $((low + 1))-$((high - 1)) slowed 1.046 to 3.4 times, pairs $high-63 slowed 4 times"
says 'yarn: magnitude' "multiplied by $(of %.6g '0.1 * log(4) + 1') (attention factor), and so scores by its square, $(of %.6g '(0.1 * log(4) + 1) ^ 2')"

explains --model gemma-3-4b
has rope_theta 10000 'assumed: the default of its class, as rope_local_base_freq is not there'
has layers 5 'text_config.num_hidden_layers, one in 6 full (assumed: sliding_window_pattern)'
says 'gemma 3: full wavelengths' "from $(of %.4g '2 * pi * 8') tokens (pair 0) to 45 120 000 (pair 127)"
says 'gemma 3: sliding wavelengths' "from $turn tokens (pair 0) to 58 470 (pair 127)"
says 'gemma 3: what is not covered' '- vision_config is not covered'
explains --model phi-3-mini-128k
has factor 32 'max_position_embeddings / original_max_position_embeddings'
has long_factor '48, 1.07 to 64.76' rope_scaling.long_factor
says 'longrope: short' 'Up to 4096 longrope: pairs 0-47 slowed 1.1 to 3.05 times'
says 'longrope: long' 'sequences of more than 4096 tokens have other factors, for all of their positions; at 131072: longrope: pairs 0-47 slowed 1.07 to 64.76 times'
says 'longrope: magnitude' "multiplied by $(of %.6g 'sqrt(1 + log(32) / log(4096))') (attention factor)"
config "{$model,\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":4}}"
# at twice the length the base is theta (4 * 2 - 3)^(32 / 30), so the last pair is slowed 5 times
says 'dynamic: beyond' 'beyond 2048 tokens the base grows with the sequence; at 4096: dynamic: pair 0 unchanged, pairs 1-15 slowed 1.113 to 5 times'
explains --model qwen2-vl-7b
says 'axes of text' 'of the pairs of a patch of a picture turn 16 with its time, 24 with its height, 24 with its width'
says 'axes of a tower' 'turn 20 with its row, 20 with its column'
explains --model t5-base
# bucket 15 from 8 (128 / 8)^(7 / 8) on; of the decoder 31 from 16 (128 / 16)^(15 / 16) on
says 't5: encoder' "16 buckets each way: distances 0 to 7 have one each, from $(of %d 'int(8 * 16 ^ (7 / 8)) + 1') on all keys share the last"
says 't5: decoder' "32 buckets for keys behind: distances 0 to 15 have one each, from $(of %d 'int(16 * 8 ^ (15 / 16)) + 1') on all keys share the last"
explains --model bloom-560m
says 'alibi: slopes' "of 16 heads, from $(of %.6g '2 ^ -0.5'), the steepest, to $(of %.8g '2 ^ -8'), the gentlest"
says 'alibi: reach' "from distance $(of %d 'int(10 * 2 ^ 0.5) + 1') on in the steepest head, from $(of %d '10 * 2 ^ 8 + 1') on in the gentlest"
explains --model whisper-large-v3
has length 448 max_target_positions
says 'sinusoids: wavelengths to the endpoint' "from $turn tokens (pair 0) to 62 830 (pair 639)"
explains --model deberta-v3-base
# the last of 256 from where 127 ln(d / 128) / ln(511 / 128) is more than 126
says 'buckets' "distances up to 128 have one each, beyond they grow with the distance; from $(of %d 'int(128 * (511 / 128) ^ (126 / 127)) + 1') on all share the last"
explains --model swin-tiny
says 'windows' '64 of 7 x 7 patches in a picture of 224 x 224 pixels'
explains --model beit-base
says 'a class token' '732 rows: 27 x 27 differences, and three for the class token'

nowhere=
for name in $("$POSENC" list models | awk 'NR > 1 { print $1 }'); do
    run "$POSENC" explain --model "$name"
    [ $status = 0 ] && ! grep -v '^ *scaling' stdout | grep -q 'nothing says otherwise$' || nowhere="$nowhere $name"
done
same 'on no page of a preset a quantity is from nowhere' "$nowhere" ''

# ---- files of others

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
    printf GGUF && le 3 4 && le 0 8 && le 7 8
    text general.architecture && le 8 4 && text gemma3
    whole gemma3.context_length 8192 && whole gemma3.embedding_length 64 && whole gemma3.block_count 14
    whole gemma3.attention.head_count 4 && whole gemma3.attention.sliding_window 512
    text gemma3.rope.freq_base && le 6 4 && le 1232348160 4 # the bits of a million
} >"$scratch/slides.gguf"
explains --config "$scratch/slides.gguf"
has rope_theta 1000000 gemma3.rope.freq_base
has rope_theta 10000 "llama.cpp's constant for layers that slide"
has layers 12 'gemma3.block_count, and which of them slide'
says 'GGUF: whose angles' 'ggml forms its angles in f32 (profile ggml_f32)'
says 'GGUF: whose reading' '- As llama.cpp reads it'
mkdir "$scratch/Meta's"
echo '{"dim": 64, "n_layers": 4, "n_heads": 4, "multiple_of": 256, "use_scaled_rope": true}' >"$scratch/Meta's/params.json"
explains --config "$scratch/Meta's"
has scaling llama3 use_scaled_rope
says 'a path in quotes' "posenc verify --config '$scratch/Meta'\"'\"'s/params.json'"

# docs/output.md shows the output of posenc explain.
awk '/explained: begin/ { on = 1 } /explained: end/ { on = 0 } on && !/^(```|<!--)/' "$root/docs/output.md" >example
if cmp -s example shown; then pass docs/output.md; else fail docs/output.md 'other words: posenc explain --model llama-3.1-8b'; fi

# ---- what is rejected

echo '{"model_type":"llama","rope_scaling":{"rope_type":"spiral","factor":2}}' >"$scratch/spiral.json"
refuses 'a rule that is not known' "posenc explain: --config: .*rope_type 'spiral' of rope_scaling is unknown; known: default, linear" \
    explain --config "$scratch/spiral.json"
refuses 'no such file' '--config: .*nowhere.json: No such file' explain --config "$scratch/nowhere.json"
refuses 'no such model' "--model: model 'llama-9' is unknown" explain --model llama-9
refuses 'two models' "--model: expected one model .got 't5-base'" explain --model llama-2-7b --model t5-base
refuses 'a model and a thing' '--model: not allowed with argument THING' explain yarn --model llama-2-7b
refuses 'a model and a problem' 'not allowed with argument --model|unrecognized arguments: --problem' explain --model llama-2-7b --problem 'rope_half head_dim=4'
refuses 'a model and a backend' 'not allowed with argument --model|unrecognized arguments: --backend' explain --model llama-2-7b --backend scalar
finish
