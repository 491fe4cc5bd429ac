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
has model_type llama model_type
has storage bf16 torch_dtype
has heads 4 num_attention_heads
has length 2048 'assumed: the default of its class, as max_position_embeddings is not there'
has head_dim 32 'assumed: hidden_size / num_attention_heads, as head_dim is not there'
has key_heads 4 'assumed: num_attention_heads, as num_key_value_heads is not there'
has rope_theta 10000 'assumed: the default of its class, as rope_theta is not there'
has scaling none 'nothing says otherwise'
says 'whose defaults' '(its class: that of llama in transformers, as the survey of it saw (docs/models.md))'
says 'and the note of them' 'taken as the classes of this model_type do: max_position_embeddings 2048'
config "{$model,\"head_dim\":64,\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4,\"rope_theta\":5e5}}"
has head_dim 64 head_dim
has rope_theta 500000 rope_parameters.rope_theta
has scaling linear rope_parameters.rope_type
has factor 4 rope_parameters.factor
config '{"model_type":"falcon","new_decoder_architecture":false,"alibi":false,"multi_query":true,"parallel_attn":true}'
has encoding rope_half alibi
has key_heads 1 'one for all, as multi_query is there'
config "{\"model_type\":\"gpt_neox\",\"rotary_pct\":0.25,\"hidden_size\":512,\"num_attention_heads\":8,\"rotary_emb_base\":10000}"
has rotary_dim 16 '0.25 of head_dim (rotary_pct)'
has rope_theta 10000 rotary_emb_base
config '{"model_type":"roberta","max_position_embeddings":514,"pad_token_id":1}'
has length 512 'max_position_embeddings - (pad_token_id + 1)'
has first 2 'pad_token_id + 1'
has rows 514 max_position_embeddings
says 'rows of a learned table' 'position 0 is row 2, the last one, 511, row 513'
config '{"model_type":"vit","image_size":[64,32],"patch_size":[16,16],"hidden_size":32,"num_attention_heads":4}'
has length 9 '(image_size.0 / patch_size.0) * (image_size.1 / patch_size.1) + 1'
same 'of a file that says it all nothing is of a class' "$(grep -c 'its class' "$scratch/page")" 0
gemma4='"model_type":"gemma4","text_config":{"model_type":"gemma4_text","num_hidden_layers":2,"layer_types":["sliding_attention","full_attention"]'
config "{$gemma4,\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"proportional\",\"partial_rotary_factor\":0.25,\"rope_theta\":1e6},\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":1e4}},\"per_layer_config\":{\"1\":{\"head_dim\":512}}}}"
has model_type gemma4_text text_config.model_type
has rope_theta 1000000 text_config.rope_parameters.full_attention.rope_theta
has rope_theta 10000 text_config.rope_parameters.sliding_attention.rope_theta
has head_dim 512 text_config.per_layer_config.1.head_dim
has layers 1 text_config.layer_types
says 'pairs that stop' 'proportional: pairs 0-63 unchanged, pairs 64-255 stopped'

# ---- rotations: wavelengths, pairs that are scaled, magnitude

turn=$(of %.4g '2 * pi')
explains --model llama-3.1-8b
says 'llama 3: its channels' 'all 128 of a head turn, in 64 pairs half of them apart: channel i with channel i + 64'
# Unchanged below 8192 / 4 tokens, slowed by 8 above 8192 / 1 (Llama 3.1's low and high factors).
border() { awk -v most="$1" 'BEGIN { while (8 * atan2(1, 1) * 500000 ^ (i / 64) < most) i++; print i }' </dev/null; }
same 'llama 3: borders' "$(border 2048) $(border 8192)" '29 35'
says 'llama 3: which pairs' 'llama3: pairs 0-28 unchanged, pairs 29-34 slowed 1.207 to 5.257 times, pairs 35-63 slowed 8 times'
# between them: 1 / ((1 - s) / 8 + s), s = (8192 / wavelength - 1) / 3
between() { of %.4g "1 / ((1 - (8192 / (2 * pi * 500000 ^ ($1 / 64)) - 1) / 3) / 8 + (8192 / (2 * pi * 500000 ^ ($1 / 64)) - 1) / 3)"; }
same 'llama 3: between' "$(between 29) $(between 34)" '1.207 5.257'
says 'llama 3: wavelengths' "from $turn tokens (pair 0) to 20 470 000 (pair 63); 25 of 64 pairs do not come round within 131 072 positions"
same 'llama 3: the longest' "$(of %.4g '2 * pi * 8 * 500000 ^ (63 / 64)')" 2.047e+07

# The first positions at which f32 is off, recomputed: an angle is the f32 product of the position and an f32 frequency.
cat >drift.awk <<'EOF'
function f32(x,    unit) { # to nearest: of a double, which has more than twice the digits
    unit = 1
    while (unit * 16777216 <= x) unit *= 2
    while (unit * 8388608 > x) unit /= 2
    x /= unit
    return (x - int(x) == 0.5 ? 2 * int((int(x) + 1) / 2) : int(x + 0.5)) * unit
}
function abs(x) { return x < 0 ? -x : x }
BEGIN {
    for (i = 0; i < pairs; i++) {
        exact[i] = theta ^ (-2 * i / dim)
        single[i] = f32(1 / f32(theta ^ (2 * i / dim)))
    }
    for (at = from; at < to; at++)
        for (i = 0; i < pairs; i++) {
            a = f32(at * single[i])
            b = at * exact[i]
            if (at && (abs(cos(a) - cos(b)) * by > limit || abs(sin(a) - sin(b)) * by > limit)) { print at; exit }
        }
    print "none"
}
EOF
drift() { awk -v theta="$1" -v dim="$2" -v pairs="$3" -v by="$4" -v limit="$5" -v from="$6" -v to="$7" -f drift.awk </dev/null; }
first=$(drift 500000 128 12 1 0.001 0 14000)
says "llama 3: off by 0.001 first at $first" "off by more than 0.001 first at position $first, by more than 0.01 nowhere up to position 131071"

config '{"model_type":"llama","head_dim":128,"rope_theta":1e4,"max_position_embeddings":20000}'
says 'a sine that is off before any cosine' "off by more than 0.001 first at position $(drift 10000 128 12 1 0.001 0 20000), by more than 0.01 nowhere up to position 19999"

explains --model qwen3-8b-yarn
has factor 4 rope_scaling.factor
has beta_fast 32 'assumed: beta_fast is not there'
has head_dim 128 head_dim
# From pair floor(dim ln(L / (2 pi beta_fast)) / (2 ln theta)) to ceil of the same with beta_slow.
low=$(of %d 'int(128 * log(32768 / (2 * pi * 32)) / (2 * log(1000000)))')
high=$(of %d 'int(128 * log(32768 / (2 * pi)) / (2 * log(1000000))) + 1')
says 'yarn: which pairs' "yarn: pairs 0-$low unchanged, pairs $((low + 1))-$((high - 1)) slowed 1.046 to 3.4 times, pairs $high-63 slowed 4 times"
says 'yarn: magnitude' "multiplied by $(of %.6g '0.1 * log(4) + 1') (attention factor), and so scores by its square, $(of %.6g '(0.1 * log(4) + 1) ^ 2')"
first=$(drift 1000000 128 12 1.138629436 0.001 0 14000)
last=$(drift 1000000 128 6 1.138629436 0.01 0 126000)
says "yarn: off first at $first and $last" "off by more than 0.001 first at position $first, by more than 0.01 first at position $last"

explains --model gemma-3-4b
has length 131072 'assumed: the default of its class, as max_position_embeddings is not there'
has rope_theta 1000000 'assumed: the default of its class, as rope_theta is not there'
has rope_theta 10000 'assumed: the default of its class, as rope_local_base_freq is not there'
has factor 8 text_config.rope_scaling.factor
has layers 5 'text_config.num_hidden_layers, one in 6 full (assumed: sliding_window_pattern)'
says 'gemma 3: full' 'full: Rotation of queries and keys, 5 layers'
says 'gemma 3: sliding' 'sliding: Rotation of queries and keys, 29 layers'
says 'gemma 3: all slowed' 'linear: pairs 0-127 slowed 8 times'
same 'gemma 3: wavelengths' "$(of '%.4g %.4g' '2 * pi * 8, 2 * pi * 8 * 1000000 ^ (127 / 128)') $(of %.4g '2 * pi * 10000 ^ (127 / 128)')" '50.27 4.512e+07 5.847e+04'
says 'gemma 3: full wavelengths' 'from 50.27 tokens (pair 0) to 45 120 000 (pair 127)'
says 'gemma 3: sliding wavelengths' "from $turn tokens (pair 0) to 58 470 (pair 127)"
says 'gemma 3: what is not covered' '- vision_config is not covered'

explains --model phi-3-mini-128k
has factor 32 'max_position_embeddings / original_max_position_embeddings'
has long_factor '48, 1.07 to 64.76' rope_scaling.long_factor
says 'longrope: short' 'Up to 4096 longrope: pairs 0-47 slowed 1.1 to 3.05 times'
says 'longrope: long' 'sequences of more than 4096 tokens have other factors, for all of their positions; at 131072: longrope: pairs 0-47 slowed 1.07 to 64.76 times'
says 'longrope: magnitude' "multiplied by $(of %.6g 'sqrt(1 + log(32) / log(4096))') (attention factor)"
says 'longrope: short wavelengths' "from $(of %.4g '2 * pi * 1.1') tokens (pair 0)"
says 'longrope: long wavelengths' "from $(of %.4g '2 * pi * 1.07') tokens (pair 0)"
config "{$model,\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":4}}"
# at twice the length the base is theta (4 * 2 - 3)^(32 / 30), so the last pair is slowed 5 times
says 'dynamic: up to its length' 'Up to 2048 dynamic: pairs 0-15 unchanged'
says 'dynamic: beyond' 'beyond 2048 tokens the base grows with the sequence; at 4096: dynamic: pair 0 unchanged, pairs 1-15 slowed 1.113 to 5 times'
explains --model qwen2-vl-7b
has mrope_section '16, 24, 24' rope_scaling.mrope_section
has heads 16 vision_config.num_heads
says 'axes of text' 'of the pairs of a patch of a picture turn 16 with its time, 24 with its height, 24 with its width'
says 'axes of a tower' 'turn 20 with its row, 20 with its column'

# ---- other encodings

explains --model t5-base
has num_buckets 32 relative_attention_num_buckets
has decoder_layers 6 'assumed: the default of its class, as num_decoder_layers is not there'
# bucket 15 from 8 (128 / 8)^(7 / 8) on; of the decoder 31 from 16 (128 / 16)^(15 / 16) on
says 't5: encoder' "16 buckets each way: distances 0 to 7 have one each, from $(of %d 'int(8 * 16 ^ (7 / 8)) + 1') on all keys share the last"
says 't5: decoder' "32 buckets for keys behind: distances 0 to 15 have one each, from $(of %d 'int(16 * 8 ^ (15 / 16)) + 1') on all keys share the last"
explains --model bloom-560m
has heads 16 num_attention_heads
has alibi_bias_max 8 'assumed: attn_config.alibi_bias_max is not there'
says 'alibi: slopes' "of 16 heads, from $(of %.6g '2 ^ -0.5'), the steepest, to $(of %.8g '2 ^ -8'), the gentlest"
says 'alibi: reach' "from distance $(of %d 'int(10 * 2 ^ 0.5) + 1') on in the steepest head, from $(of %d '10 * 2 ^ 8 + 1') on in the gentlest"
explains --model whisper-large-v3
has length 1500 max_source_positions
has length 448 max_target_positions
says 'sinusoids' 'encoder: Sinusoids added to embeddings'
same 'sinusoids: the endpoint' "$(of %.4g '2 * pi * 10000')" 6.283e+04
says 'sinusoids: wavelengths to the endpoint' "from $turn tokens (pair 0) to 62 830 (pair 639)"
config '{"model_type":"transformer","d_model":5,"rope_theta":20,"max_position_embeddings":60000}'
says 'sinusoids of an odd width' "off by more than 0.001 first at position $(drift 20 5 2 1 0.001 0 60000), by more than 0.01 nowhere"
explains --model deberta-v3-base
has max_distance 512 max_position_embeddings
# the last of 256 from where 127 ln(d / 128) / ln(511 / 128) is more than 126
says 'buckets' "distances up to 128 have one each, beyond they grow with the distance; from $(of %d 'int(128 * (511 / 128) ^ (126 / 127)) + 1') on all share the last"
explains --model swin-tiny
has heads 24 'num_heads[3]'
says 'windows' '64 of 7 x 7 patches in a picture of 224 x 224 pixels'
says 'a table of differences' "169 rows: 13 x 13 differences"
explains --model beit-base
says 'a class token' '732 rows: 27 x 27 differences, and three for the class token'

# Every preset has a page on which nothing is from nowhere.
for name in $("$POSENC" list models | awk 'NR > 1 { print $1 }'); do
    run "$POSENC" explain --model "$name"
    if [ $status != 0 ] || ! grep -q '^Next$' stdout; then
        fail "the page of $name" "exit $status"
    elif awk '/nothing says otherwise$/ && $1 != "scaling" { bad = 1 } END { exit !bad }' stdout; then
        fail "the page of $name" 'a quantity is from nowhere'
    else
        pass "the page of $name"
    fi
done

# ---- other doors

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
    printf GGUF && le 3 4 && le 0 8 && le 6 8
    text general.architecture && le 8 4 && text stablelm
    whole stablelm.context_length 4096 && whole stablelm.embedding_length 64 && whole stablelm.block_count 4
    whole stablelm.attention.head_count 4 && whole stablelm.rope.dimension_count 8
} >"$scratch/small.gguf"
explains --config "$scratch/small.gguf"
has model_type stablelm general.architecture
has heads 4 stablelm.attention.head_count
has rotary_dim 8 stablelm.rope.dimension_count
has head_dim 16 'assumed: stablelm.embedding_length / stablelm.attention.head_count, as stablelm.attention.key_length is not there'
has rope_theta 10000 'assumed: stablelm.rope.freq_base is not there'
says 'GGUF: whose angles' 'ggml forms its angles in f32 (profile ggml_f32)'
says 'GGUF: whose reading' '- As llama.cpp reads it'
single() { text "$1" && le 6 4 && le "$2" 4; }
{
    printf GGUF && le 3 4 && le 0 8 && le 7 8
    text general.architecture && le 8 4 && text gemma3
    whole gemma3.context_length 8192 && whole gemma3.embedding_length 64 && whole gemma3.block_count 14
    whole gemma3.attention.head_count 4 && whole gemma3.attention.sliding_window 512
    single gemma3.rope.freq_base 1232348160 # the bits of a million
} >"$scratch/slides.gguf"
explains --config "$scratch/slides.gguf"
has rope_theta 1000000 gemma3.rope.freq_base
has rope_theta 10000 "llama.cpp's constant for layers that slide"
has layers 2 'gemma3.block_count, and which of them slide'
has layers 12 'gemma3.block_count, and which of them slide'
mkdir "$scratch/Meta's"
echo '{"dim": 64, "n_layers": 4, "n_heads": 4, "multiple_of": 256, "use_scaled_rope": true}' >"$scratch/Meta's/params.json"
explains --config "$scratch/Meta's"
has scaling llama3 use_scaled_rope
has head_dim 16 'dim / n_heads'
says 'a path in quotes' "posenc verify --config '$scratch/Meta'\"'\"'s/params.json'"
explains --model llama-2-7b
says 'the next command' 'posenc report --model llama-2-7b'

# docs/output.md shows the output of posenc explain.
explains --model llama-3.1-8b
awk '/explained: begin/ { on = 1 } /explained: end/ { on = 0 } on && !/^(```|<!--)/' "$root/docs/output.md" >shown
if cmp -s shown stdout; then pass docs/output.md; else fail docs/output.md 'other words: posenc explain --model llama-3.1-8b'; fi

# ---- what is refused

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
