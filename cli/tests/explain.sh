#!/bin/sh
# posenc explain KERNEL, PROFILE, SCALING, METHOD, PARAMETER: nothing without a text, and no test named that is not there.
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
        awk -v section="$section" '$0 == section { at = NR } at && NR == at + 1 && /^  [^ ]/ { found = 1 } END { exit !found }' \
            stdout || { fail "explain $name" "no $section"; return; }
    done
    if [ $status = 0 ]; then pass "explain $name"; else fail "explain $name" "exit $status"; fi
    sed -n 's/.*caught by posenc verify --case //p' stdout >>named
}
: >named
for name in $kernels; do has "$name" 'Encodings it serves' Definition Shapes Parameters Source Traps 'Used by'; done
for name in $profiles; do has "$name" Definition Source Traps 'Used by'; done
for name in $scalings; do has "$name" Definition Parameters Source 'Used by'; done
methods=$("$POSENC" list methods | awk 'NR > 1 { print $1 }')
for name in $methods; do has "$name" Definition Parameters Source Traps; done

count() { if [ "$2" -ge "$3" ]; then pass "$1"; else fail "$1" "$2, expected $3 at least"; fi; }
count 'every kernel has a topic' "$(echo "$kernels" | wc -w)" 18
count 'every method is listed' "$(echo "$methods" | wc -w)" 15
count 'every profile is listed' "$(echo "$profiles" | wc -w)" 4
count 'every scaling is listed' "$(echo "$scalings" | wc -w)" 8
count 'cases are named' "$(wc -l <named)" 20
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
for name in $kernels $scalings $methods; do
    run "$POSENC" explain "$name"
    awk '/^[A-Z]/ { section = $0 } section == "Parameters" && /^  [^ ]/ { print $1 }' stdout >>parameters
done
missing=
for name in $(sort -u parameters); do
    "$POSENC" explain "$name" 2>stderr | grep -q '^Meaning' || [ "$name" = scaling ] || missing="$missing $name"
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
    "$POSENC" explain "$name" | sed -n 's/^  posenc \(table .*\)/\1/p' >example
    if [ ! -s example ]; then
        continue # a picture, or two calls among others
    fi
    # shellcheck disable=SC2046  # a list of words
    run "$POSENC" $(cat example)
    if [ $status = 0 ] && grep -q '^position' stdout; then
        pass "the example of $name: $(cat example)"
    else
        fail "the example of $name: $(cat example)" "exit $status"
    fi
    rm -f work/*
done

succeeds 'a name of others' '^rope_theta, a parameter' explain freq_base
succeeds 'ggml: n_ctx_orig' '^original_max_position_embeddings, a parameter' explain n_ctx_orig
succeeds 'diffusers: flip_sin_to_cos' '^layout, a parameter' explain flip_sin_to_cos
succeeds 'diffusers: downscale_freq_shift' '^convention, a parameter' explain downscale_freq_shift
succeeds 'Hugging Face: mrope_interleaved' '^mrope_layout, a parameter' explain mrope_interleaved
succeeds 'ggml: IMROPE' '^mrope, a method' explain IMROPE
succeeds 'transformers: create_position_ids_from_input_ids' '^padding_positions, a method' explain create_position_ids_from_input_ids
succeeds 'PyTorch: bfloat16' '^dtype, a parameter' explain bfloat16
succeeds 'DETR: PositionEmbeddingSine' '^detr_sine_2d, a method' explain PositionEmbeddingSine
succeeds 'who uses llama3' '^  .*llama-3.1-8b' explain llama3
succeeds 'who uses t5_bias' '^  .*t5-base' explain t5_bias
succeeds 'a broken kernel is named with its suite' 'suite properties \(broken kernel rope_half_other_pairing\)' explain rope_half
succeeds 'a broken kernel that no trap names' 'rope_half_lane_leak, memory' explain rope_half
refuses 'unknown thing' 'THING: yam: did you mean yarn' explain yam
refuses 'nothing to explain' 'THING: expected one kernel, profile, scaling, method or parameter' explain
refuses 'two things' 'THING: yarn: expected one' explain rope_half yarn
refuses 'a backend of what runs nothing' '--backend: has no effect here: it is for the id of a case' explain rope_half --backend scalar
refuses 'a plug-in of what runs nothing' '--plugin: has no effect here' explain yarn --plugin "$PLUGIN"
refuses 'a case of a kernel that the plug-in lacks' '--plugin: example: does not provide rope_half: expected one that does' \
    explain rope_half/f32/given/onnx-rotary-embedding --plugin "$PLUGIN"
refuses 'a problem of a kernel that the plug-in lacks' '--plugin: example: does not provide rope_half' \
    explain --plugin "$PLUGIN" --problem 'rope_half heads=1 tokens=1 rows=1 head_dim=4 rotary_dim=4'

# What a list can be of is told by --help, too.
run "$POSENC" list nothing-like-it
kinds=$(sed -n 's/.*expected one of//p' stderr | tr -d ,)
missing=
for kind in $kinds; do "$POSENC" list --help | grep -q "[[|]${kind}[]|]" || missing="$missing $kind"; done
if [ -n "$kinds" ] && [ -z "$missing" ]; then pass 'list --help'; else fail 'list --help' "lacks$missing"; fi
finish
