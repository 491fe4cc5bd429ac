#!/bin/sh
# posenc explain THING: pages of docs/encodings by any of their names; what they say of tests and commands is so.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"

"$POSENC" list cases >cases 2>stderr
cat "$root"/docs/encodings/*.md | tr -s '\n ' ' ' >pages
grep -o 'Detected by `posenc verify --case [^`]*`' pages | sed 's/.*--case //; s/`//' | sort -u >named
grep -o 'Detected by the suite [^)]*)' pages | sed 's/.*suite \([a-z-]*\) (fault `\(.*\)`)/\2 \1/' | sort -u >faults
if [ "$(wc -l <named)" -ge 60 ] && [ "$(wc -l <faults)" -ge 30 ]; then pass 'tests are named'; else fail 'tests are named' "$(wc -l named faults)"; fi

# A fault is detected by the suite that a page says: the one that ./run test-faults holds to it.
sed -n 's,^\([a-z0-9_]*\) | [a-z0-9_ ]* | \([a-z-]*\)[a-z0-9/* -]* | .*,\1 \2,p' "$root/conformance/cases/faults.txt" | sort >detected
same 'faults and their suites' "$(comm -23 faults detected)" ''
# A case that is named exists; those of no vectors are run.
# (In two runs, for each costs more than its cases; those that only a full run has are large.)
"$POSENC" verify --quick --backend scalar --case '*/properties/*,*/memory/*,*/random/calls' --out csv:ended >verified 2>stderr
"$POSENC" verify --full --backend scalar --case '*/properties/large' --out csv:large >verified 2>stderr
cat large >>ended
missing=
while read -r id; do
    grep -q "^$id " cases ||
        awk -F, -v id="$id" '$7 == id { n++; bad += $11 != "pass" } END { exit !n || bad }' ended || missing="$missing $id"
done <named
same 'every case that is named exists, and passes' "$missing" ''
# An example is a command that works.
sed -n 's/^    posenc \(table .*\)/\1/p' "$root"/docs/encodings/*.md >examples
while read -r example; do
    eval "run \"\$POSENC\" $example"
    if [ $status = 0 ] && grep -q '^position' stdout; then pass "the example $example"; else fail "the example $example" "exit $status"; fi
done <examples

# Whose encodings there are (all but those that need a network), and that each line of a list has a text.
"$POSENC" list kernels | tr -s '\n ' ' ' >listed
missing=
while read -r encoding; do grep -qF -e "$encoding" listed || missing="$missing, $encoding"; done <<'ENCODINGS'
Transformer
tensor2tensor
fairseq
timestep embedding
MAE
DETR
RoBERTa
GPT-NeoX
partial rotary
dynamic NTK
YaRN
LongRoPE
M-RoPE
2-D vision RoPE
xPos
ALiBi
T5
Swin
BEiT
KERPLE
Sandwich
Shaw
Transformer-XL
DeBERTa
ENCODINGS
same 'list kernels names encodings' "$missing" ''
run sh -c '"$0" list profiles; "$0" list scalings; "$0" list methods' "$POSENC"
same 'each has a line' "$(awk 'NF < 3' stdout)" ''

# A page has its sections, and is found by the names of others.
run "$POSENC" explain rope_half
same 'sections of a page' "$(sed -n 's/^## //p' stdout | tr '\n' ' ')" \
    "$(sed -n 's/^## //p' "$root/docs/encodings/rope_half.md" | tr '\n' ' ')"
while read -r name title; do succeeds "$name is $title" "^# $title\$" explain "$name"; done <<'NAMES'
freq_base rope_theta
n_ctx_orig original_max_position_embeddings
flip_sin_to_cos layout
IMROPE mrope
create_position_ids_from_input_ids padding_positions
bfloat16 dtype
PositionEmbeddingSine detr_sine_2d
NAMES
succeeds 'who uses llama3' 'llama-3.1-8b' explain llama3
refuses 'unknown thing' 'no kernel, method, profile, scaling or parameter of this name .got .yam... Did you mean .*yarn' explain yam
refuses 'nothing to explain' 'one of the arguments THING --config' explain
refuses 'two things' 'unrecognized arguments: yarn' explain rope_half yarn
finish
