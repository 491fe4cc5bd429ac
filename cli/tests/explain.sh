#!/bin/sh
# posenc explain THING: no page without a text, and no test named that is not there.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"

kernels=$("$POSENC" list kernels | awk 'NR > 1 && /^[a-z]/ && $1 != "Defaults:" { print $1 }')
profiles=$("$POSENC" list profiles | awk 'NR > 1 { print $1 }')
scalings=$("$POSENC" list scalings | awk 'NR > 1 { print $1 }')
"$POSENC" list cases >cases 2>stderr

has() { # NAME SECTION...: explain NAME prints each section, with something in it
    name=$1
    shift
    run "$POSENC" explain "$name"
    for section; do
        awk -v section="## $section" '$0 == section { at = NR } at && NR == at + 2 && /[^ ]/ { found = 1 } END { exit !found }' \
            stdout || { fail "explain $name" "no $section"; return; }
    done
    if [ $status = 0 ]; then pass "explain $name"; else fail "explain $name" "exit $status"; fi
    cp stdout "page.$name"
    awk '/^## / { section = $2 } section == "Parameters" && /^- `/ { sub(/^- `/, ""); sub(/`.*/, ""); print }' stdout >>parameters
    tr -s '\n ' ' ' <stdout | grep -o 'Caught by `posenc verify --case [^`]*`' | sed 's/.*--case //; s/`//' >>named
    tr -s '\n ' ' ' <stdout | grep -o 'Caught by the suite [^)]*)' | sed 's/.*suite \([a-z]*\) (broken kernel `\(.*\)`)/\2 \1/' >>broken
}
: >named
: >parameters
: >broken
for name in $kernels; do has "$name" Definition Shapes Parameters Source Traps Models; done
for name in $profiles; do has "$name" Definition Source Traps Models; done
for name in $scalings; do has "$name" Definition Parameters Source Models; done
methods=$("$POSENC" list methods | awk 'NR > 1 { print $1 }')
for name in $methods; do has "$name" Definition Parameters Source Traps; done

count() { if [ "$2" -ge "$3" ]; then pass "$1"; else fail "$1" "$2, expected $3 at least"; fi; }
count 'every kernel has a topic' "$(echo "$kernels" | wc -w)" 18
count 'every method is listed' "$(echo "$methods" | wc -w)" 15
count 'every profile is listed' "$(echo "$profiles" | wc -w)" 4
count 'every scaling is listed' "$(echo "$scalings" | wc -w)" 8
count 'cases are named' "$(wc -l <named)" 20
count 'broken kernels are named' "$(wc -l <broken)" 34
# A kernel that was broken on purpose is caught by the suite that is said to catch it.
sed -n 's/^\([a-z0-9_]*\) *| *[a-z0-9_]* *| *\([a-z]*\) *|.*/\1 \2/p' "$root/conformance/cases/mistakes.txt" | sort >mistakes
same 'broken kernels and their suites' "$(sort -u broken | comm -23 - mistakes)" ''
run sh -c '"$0" list profiles; "$0" list scalings; "$0" list methods' "$POSENC"
if awk 'NF < 3 { bad = 1 } END { exit bad }' stdout; then pass 'each has a line'; else fail 'each has a line' 'one is empty'; fi

# A case that is named exists; those of no vectors are run.
# (In two runs, for each costs more than its cases; those that only a full run has are large.)
"$POSENC" verify --quick --backend scalar --case '*/properties/*' --case '*/memory/*' --out csv:ended >verified 2>stderr
"$POSENC" verify --full --backend scalar --case '*/properties/large' --out csv:large >verified 2>stderr
cat large >>ended
missing=
for id in $(sort -u named); do
    grep -q "^$id " cases ||
        awk -F, -v id="$id" '$7 == id { n++; bad += $11 != "pass" } END { exit !n || bad }' ended || missing="$missing $id"
done
if [ -z "$missing" ]; then pass 'every case that is named exists'; else fail 'every case that is named exists' "$missing"; fi

# Parameters that a text names have a text of their own, and so have the models' names a use.
missing=
for name in $(sort -u parameters); do
    "$POSENC" explain "$name" 2>stderr | grep -q '^A parameter: .' || [ "$name" = scaling ] || missing="$missing $name"
done
if [ -z "$missing" ]; then pass 'every parameter has a meaning'; else fail 'every parameter has a meaning' "$missing"; fi

# Whose encodings there are (all but those that need a network), and which kernels serve them.
"$POSENC" list kernels >listed
for encoding in Transformer tensor2tensor fairseq Whisper 'timestep embedding' MAE DETR GPT-2 BERT RoBERTa OPT ViT RoPE GPT-NeoX \
    GPT-J 'partial rotary' linear 'dynamic NTK' 'static NTK' YaRN LongRoPE 'Llama 3' proportional M-RoPE '2-D vision RoPE' xPos \
    ALiBi T5 Swin BEiT KERPLE Sandwich Shaw Transformer-XL DeBERTa; do
    if tr -s '\n ' ' ' <listed | grep -qF -e "$encoding"; then pass "list kernels: $encoding"; else fail "list kernels: $encoding" 'not there'; fi
done

# An example is a command that works.
for name in $methods; do
    sed -n 's/^    posenc \(table .*\)/\1/p' "page.$name" >example
    if [ ! -s example ]; then
        continue # a picture, or two calls among others
    fi
    eval "run \"\$POSENC\" $(cat example)"
    if [ $status = 0 ] && grep -q '^position' stdout; then
        pass "the example of $name: $(cat example)"
    else
        fail "the example of $name: $(cat example)" "exit $status"
    fi
    rm -f work/*
done

succeeds 'a name of others' '^# rope_theta$' explain freq_base
succeeds 'ggml: n_ctx_orig' '^# original_max_position_embeddings$' explain n_ctx_orig
succeeds 'diffusers: flip_sin_to_cos' '^# layout$' explain flip_sin_to_cos
succeeds 'diffusers: downscale_freq_shift' '^# convention$' explain downscale_freq_shift
succeeds 'Hugging Face: mrope_interleaved' '^# mrope_layout$' explain mrope_interleaved
succeeds 'ggml: IMROPE' '^# mrope$' explain IMROPE
succeeds 'transformers: create_position_ids_from_input_ids' '^# padding_positions$' explain create_position_ids_from_input_ids
succeeds 'PyTorch: bfloat16' '^# dtype$' explain bfloat16
succeeds 'DETR: PositionEmbeddingSine' '^# detr_sine_2d$' explain PositionEmbeddingSine
succeeds 'who uses llama3' 'llama-3.1-8b' explain llama3
succeeds 'who uses t5_bias' '^.*t5-base' explain t5_bias
refuses 'unknown thing' 'no kernel, method, profile, scaling or parameter of this name .got .yam... Did you mean .*yarn' explain yam
refuses 'nothing to explain' 'one of the arguments THING --config' explain
refuses 'two things' 'unrecognized arguments: yarn' explain rope_half yarn
refuses 'a problem of a kernel that the plug-in lacks' '--plugin: example: does not provide rope_half' \
    verify -v --plugin "$PLUGIN" --problem 'rope_half heads=1 tokens=1 rows=1 head_dim=4 rotary_dim=4'

# What a list can be of is told by --help, too.
run "$POSENC" list nothing-like-it
kinds=$(sed -n 's/.*expected one of//p' stderr | tr -d ,)
missing=
for kind in $kinds; do "$POSENC" list --help | grep -q "[[|]${kind}[]|]" || missing="$missing $kind"; done
if [ -n "$kinds" ] && [ -z "$missing" ]; then pass 'list --help'; else fail 'list --help' "lacks$missing"; fi
finish
