#!/bin/sh
# Bad input: exit 2, a message that says what, which value and what would be accepted, and no file.
. "$(dirname "$0")/tap.sh"

refuses 'unknown command' 'command: tabel: did you mean table' tabel
refuses 'flag with a value' '--quick: 1: expected the option alone' verify --quick=1
refuses 'unknown option' 'unknown option: dimm: did you mean dim' table sinusoidal --dimm 8
refuses 'option without value' 'expected a value' table sinusoidal --dim
refuses 'option of another command' 'unknown option: threads' table sinusoidal --threads 2

table='--out csv:x.csv --dim 8'
refuses 'unknown kernel' 'sinusodial: did you mean sinusoidal' table sinusodial $table
refuses 'kernel without a table' 'rope_half: .*expected one of sinusoidal, rope_table' table rope_half $table
refuses 'no table' 'TABLE: expected one of' table $table
refuses 'two kernels' 'unexpected argument: rope_table' table sinusoidal rope_table $table
refuses 'unknown kernel to verify' '--kernel: rope_halv: did you mean rope_half' verify --kernel rope_halv --out jsonl:x
refuses 'unknown backend' '--backend: avx3: .*expected one of.*scalar' table sinusoidal $table --backend avx3
refuses 'unknown backend to verify' '--backend: nope: expected one of.*libm' verify --backend nope --out md:x.md
refuses 'unknown model' 'llama-3.1-9b.*llama-3.1-8b' table rope_table --model llama-3.1-9b --out csv:x.csv
refuses 'unknown model to bench' "'no-such-model' is unknown[.]  Known: " bench --model no-such-model --out md:x.md
refuses 'config that is not there' '--config: ./foo: No such file' bench --config foo --out md:x.md
refuses 'a config of a hub that is not in its cache' 'nobody/nothing: there is no such file, .*/models--nobody--nothing/refs/main .a commit.*no network is used' \
    bench --config nobody/nothing --out md:x.md
mkdir "$scratch/folder" "$scratch/two"
printf GGUF >"$scratch/two/a.gguf"
cp "$scratch/two/a.gguf" "$scratch/two/b.gguf"
refuses 'a folder without a config' 'a folder without a config.json, a params.json or a .gguf file' bench --config "$scratch/folder" --out md:x.md
refuses 'a folder with two files' 'with 2 .gguf files: the path of one is needed: a.gguf, b.gguf$' bench --config "$scratch/two" --out md:x.md
refuses 'a GGUF file without an end' 'a.gguf: the version at byte 4: 4 bytes are needed, 0 are left' bench --config "$scratch/two/a.gguf" --out md:x.md
refuses 'model of another encoding' 'gpt2: its encoding is learned' table rope_table --model gpt2 --out csv:x.csv
refuses 'unknown format' '--out: cvs: did you mean csv' table sinusoidal --dim 8 --out cvs:x.csv
refuses 'unknown report format' '--out: junitt: did you mean junit' verify --out junitt:x.xml
refuses 'format without path' 'expected FORMAT or FORMAT:PATH' table sinusoidal --dim 8 --out csv:
refuses 'unknown suite' '--suite: memry: did you mean memory' verify --suite memry
refuses 'unknown element type' '--dtype: f12: did you mean f32.*expected one of f32, f16, bf16' verify --dtype f12
refuses 'one good element type, one bad' '--dtype: half: expected one of f32' bench --dtype f16,half
refuses 'element type of what has none' '--dtype: has no effect here: it is for list cases' list kernels --dtype bf16
refuses 'element type of everything' '--dtype: has no effect here' list --dtype bf16
refuses 'unknown element type of a table' '--dtype: bfloat16: .*bf16' table sinusoidal --dim 8 --dtype bfloat16 --out csv:x.csv
refuses 'NumPy knows no bf16' 'npy: NumPy has no bf16: expected csv or safetensors' \
    table sinusoidal --dim 8 --dtype bf16 --out npy:x.npy
refuses 'unknown layout' '--layout: sincos: .*sin_cos' table sinusoidal $table --layout sincos
refuses 'unknown profile' '--profile: exakt: did you mean exact' table sinusoidal $table --profile exakt
refuses 'unknown scaling' '--scaling: yam: .*yarn' table rope_table $table --scaling yam
refuses 'unknown case' '--case: no/such/case: no case has this id' verify -v --case no/such/case
refuses 'pattern without a match' '--case: nothing-at-all: matches nothing' verify --case nothing-at-all
refuses 'kernel that the model does not call' '--kernel: alibi: no model that was named calls it: expected one of learned_add$' \
    verify --model gpt2 --kernel alibi
refuses 'the same to bench' '--kernel: rope_half: no model that was named calls it: expected one of .*learned_add, alibi' \
    bench --model gpt2 --model bloom-560m --kernel rope_half,alibi --out md:x.md
run "$POSENC" verify --kernel alibi --backend scalar --suite digests --case 'alibi/*' --case 'alibbi/*'
if [ $status = 0 ] && grep -q -- '--case: alibbi/\*: matches nothing' stderr && [ "$(grep -c matches stderr)" = 1 ]; then
    pass 'one pattern of two without a match is said'
else
    fail 'one pattern of two without a match is said' "exit $status"
fi
refuses 'unknown kind' 'kind: backend: did you mean backends' list backend
refuses 'quick and full' '--quick: expected without' verify --quick --full

for value in 0 -3 99999999999 99999999999999999999 65537 8x 1e3 0x10 ' 8' '' nan; do
    refuses "dim '$value'" "--dim: .*expected an integer from 1 to 65536" table sinusoidal --dim "$value" --out csv:x.csv
done
refuses 'no dim' '--dim: expected' table sinusoidal --out csv:x.csv
refuses 'odd dim' '--dim: 7: expected an even integer from 2' table rope_table --dim 7 --out csv:x.csv
refuses 'rotary_dim above head_dim' '--rotary-dim: 96: expected an even integer from 2 to 64' \
    table rope_table --dim 64 --rotary-dim 96 --out csv:x.csv
refuses 'odd rotary_dim' '--rotary-dim: 31: expected an even' table rope_table --dim 64 --rotary-dim 31 --out csv:x.csv
for value in 0 -1 nan inf 1e999 ten 1e4x ''; do
    refuses "rope_theta '$value'" '--rope-theta: .*expected a finite number above 0' \
        table sinusoidal $table --rope-theta "$value"
done
for value in 0 -1 3000000000000 many; do
    refuses "tokens '$value'" '--tokens: .*expected an integer from 1' table sinusoidal $table --tokens "$value"
done
refuses 'too many tokens for memory' 'expected at most 4 GiB' table sinusoidal --dim 65536 --tokens 4000000000 \
    --first -2147483647 --out csv:x.csv
refuses 'tokens past the last position' '16 tokens from 2147483640: expected positions up to' \
    table sinusoidal $table --first 2147483640
for value in 2147483648 -2147483648 5..1 1,,2 1.. ..5 1...5 one 1,2, 1.5 ' 1' ''; do
    refuses "positions '$value'" '--positions: .*expected' table sinusoidal $table --positions "$value"
done
refuses 'positions twice' '--positions: 1: expected without --tokens' table sinusoidal $table --positions 1 --tokens 4
refuses 'no positions' '--positions: .*integers and ranges' table sinusoidal $table --positions ''
for value in 2147483648 -3e9 nan inf one 1,,2 1,2, 5..1 1.. ..5 1...5 1:2 0..1:0 0..1:-1 0..1: 0..1:x 0..1:1:1 0..9..1 ' 1' ''; do
    refuses "times '$value'" '--times: .*(expected numbers between|times with fractions)' table sinusoidal $table --times "$value"
done
refuses 'times and tokens' '--times: 0.5: expected without --tokens, --first, --positions' table sinusoidal $table --times 0.5 --tokens 4
refuses 'times and positions' '--times: 0.5: expected without' table rope_table $table --times 0.5 --positions 4
refuses 'times without end' 'expected at most 4 GiB' table sinusoidal $table --times 0..1e9:1e-300
for value in 4 1,1,1,1 5,-1 0,4 4,0 2,,2 2,2, ,2,2 1.5,2.5 h,w 32769,2 2:2 ' 2,2' ''; do
    refuses "sections '$value'" '--mrope-section: .*(expected T,H,W or H,W: pairs of each axis|expected T,H,W: pairs)' \
        table rope_table $table --mrope-section "$value"
done
refuses 'sections of too few pairs' '--mrope-section: 3 pairs: expected sections that add up to 4' \
    table rope_table $table --mrope-section 1,1,1
refuses 'sections of the whole head' '--mrope-section: 4 pairs: expected sections that add up to 2' \
    table rope_table $table --rotary-dim 4 --mrope-section 2,2
refuses 'sections of a sinusoidal table that add up to less' '--mrope-section: 3 pairs: .*add up to 4, half of dim' \
    table sinusoidal $table --mrope-section 2,1
for layout in chunked interleaved; do
    refuses "a sinusoidal table with sections $layout" "--mrope-layout: $layout: expected restarted" \
        table sinusoidal $table --mrope-section 2,2 --mrope-layout $layout
done
refuses 'order without a grid' '--grid-order: has no effect here: it needs --grid' \
    table rope_table $table --mrope-section 2,2 --grid-order columns
refuses 'unknown order' '--grid-order: column: did you mean columns' \
    table rope_table $table --mrope-section 2,2 --grid 4 --grid-order column
refuses 'scale without a grid' '--grid-scale: has no effect here: it needs --grid' table sinusoidal $table --grid-scale 6
refuses 'scale and a first position' '--first: has no effect here: --grid-scale counts from 1' \
    table sinusoidal $table --mrope-section 2,2 --grid 4 --grid-scale 6 --first 3
for value in 0 -1 nan two ''; do
    refuses "grid scale '$value'" '--grid-scale: .*expected a finite number above 0' \
        table sinusoidal $table --mrope-section 2,2 --grid 4 --grid-scale "$value"
done
for option in '--xpos-centre 3' --xpos-inverse; do
    # shellcheck disable=SC2086  # an option and its value
    refuses "$option without a base" "${option%% *}: has no effect here: it needs --xpos-scale-base" \
        table rope_table $table $option
done
for value in 0 -512 inf many ''; do
    refuses "xPos base '$value'" '--xpos-scale-base: .*expected a finite number above 0' \
        table rope_table $table --xpos-scale-base "$value"
done
refuses 'xPos of a sinusoidal table' '--xpos-scale-base: has no effect here: it is for rope_table' \
    table sinusoidal $table --xpos-scale-base 512
refuses 'xPos in an f32 profile' '--(profile|xpos-scale-base): .*expected' \
    table rope_table $table --xpos-scale-base 512 --profile hf_f32
refuses 'xPos of several axes' 'xpos.*expected|mrope.*expected' \
    table rope_table $table --xpos-scale-base 512 --mrope-section 2,2
refuses 'layout without sections' '--mrope-layout: has no effect here: it needs --mrope-section' \
    table rope_table $table --mrope-layout restarted
refuses 'unknown layout of sections' '--mrope-layout: chunk: did you mean chunked' \
    table rope_table $table --mrope-section 2,2 --mrope-layout chunk
refuses 'sections that restart and a scaling' '--scaling: linear: expected none \(sections that restart' \
    table rope_table $table --mrope-section 2,2 --mrope-layout restarted --scaling linear --factor 2
refuses 'sections that restart, iterated' '--profile: ggml_f32: expected one of exact, hf_f32' \
    table rope_table $table --mrope-section 2,2 --mrope-layout restarted --profile ggml_f32
refuses 'grid without sections' '--grid: has no effect here: it needs --mrope-section' table rope_table $table --grid 4
refuses 'grid of a sinusoidal table without sections' '--grid: has no effect here: it needs --mrope-section' \
    table sinusoidal $table --grid 4
for value in 0 -1 1.5 4x4 3000000000 ''; do
    refuses "grid '$value'" '--grid: .*expected an integer from 1' table rope_table $table --mrope-section 2,2 --grid "$value"
done
refuses 'grid and positions' '--positions: 1,2: expected without .*--grid' \
    table rope_table $table --mrope-section 2,2 --grid 4 --positions 1,2
refuses 'grid and times' '--times: 1,2: expected without .*--grid' table rope_table $table --mrope-section 2,2 --grid 4 --times 1,2
refuses 'a column past the last position' '16 tokens from 2147483640 in rows of 9: expected positions up to' \
    table rope_table $table --mrope-section 2,2 --grid 9 --first 2147483640

refuses 'a tiny value keeps its exponent' 'is 1e-77, expected from 8\.[0-9]*e-25 to 65536: rope_theta' table sinusoidal --dim 8 --rope-theta 1e308
refuses 'factor below 1' '--factor: 0.5: expected' table rope_table $table --scaling linear --factor 0.5
refuses 'factor without scaling' '--factor: has no effect here' table rope_table $table --factor 2
refuses 'llama3 without its parameters' '--original-max-position-embeddings: not given: expected from 1 to' \
    table rope_table $table --scaling llama3 --factor 8
refuses 'layout of a rope table' '--layout: has no effect here: it is for sinusoidal' table rope_table $table --layout sin_cos
refuses 'scaling of a sinusoidal table' '--scaling: has no effect here: it is for rope_table' \
    table sinusoidal $table --scaling linear --factor 2

refuses 'unknown profile, with all' '--profile: ggml: did you mean ggml_f32.*expected one of.*torch_exp_f32' \
    table rope_table $table --profile ggml
refuses 'dynamic without a maximum' '--max-position-embeddings: not given: expected from 1 to' \
    table rope_table $table --scaling dynamic --factor 2
for value in 0 -5 nan many; do
    refuses "maximum '$value'" '--max-position-embeddings: .*expected a finite number above 0' \
        table rope_table $table --scaling dynamic --factor 2 --max-position-embeddings "$value"
done
for value in -1 1.5 many 2000000000000 ''; do
    refuses "seq_len '$value'" '--seq-len: .*expected an integer from 0 to' \
        table rope_table $table --scaling dynamic --factor 2 --max-position-embeddings 64 --seq-len "$value"
done
refuses 'seq_len of another scaling' '--seq-len: has no effect here: it needs --scaling dynamic, longrope' \
    table rope_table $table --scaling linear --factor 2 --seq-len 64
refuses 'two channels' 'dim: 2: expected from 3' table rope_table --dim 2 --scaling ntk --factor 2 --out csv:x.csv
for value in 0 -0.5 1.5 nan half; do
    refuses "part '$value'" '--partial-rotary-factor: .*expected a number above 0, at most 1' \
        table rope_table $table --scaling proportional --partial-rotary-factor "$value"
done
refuses 'a part of no pair' '--partial-rotary-factor: 0\.1.*: expected from 0.25 to 1 \(a pair at least\)' \
    table rope_table $table --scaling proportional --partial-rotary-factor 0.1
refuses 'part of another scaling' '--partial-rotary-factor: has no effect here: it needs --scaling proportional' \
    table rope_table $table --partial-rotary-factor 0.5
longrope='--scaling longrope --factor 4 --original-max-position-embeddings 64'
refuses 'longrope without factors' '--short-factors: expected 4 numbers, one for each pair' table rope_table $table $longrope
refuses 'longrope with half of them' '--long-factors: expected 4 numbers' table rope_table $table $longrope --short-factors 1,1,1,1
refuses 'too few factors' '--short-factors: 3 numbers: expected 4, one for each pair' \
    table rope_table $table $longrope --short-factors 1,1,1 --long-factors 1,1,1,1
refuses 'too many factors' '--long-factors: 5 numbers: expected 4' \
    table rope_table $table $longrope --short-factors 1,1,1,1 --long-factors 1,1,1,1,1
refuses 'a factor that is none' '--short-factors: x1: expected numbers' \
    table rope_table $table $longrope --short-factors 1,x1,1,1 --long-factors 1,1,1,1
refuses 'a factor of zero' '--short-factors: 0: expected from' \
    table rope_table $table $longrope --short-factors 1,0,1,1 --long-factors 1,1,1,1
refuses 'factors of a file that is not there' '--short-factors: gone: No such file' \
    table rope_table $table $longrope --short-factors @gone --long-factors 1,1,1,1
refuses 'factors of a folder' '--short-factors: /: .*expected a' table rope_table $table $longrope --short-factors @/ --long-factors 1,1,1,1
printf '1,1\0,1,1' >zero.txt
refuses 'factors of a file that is no text' 'holds a zero byte' \
    table rope_table $table $longrope --short-factors "@$scratch/zero.txt" --long-factors 1,1,1,1
refuses 'factors of another scaling' '--long-factors: has no effect here: it needs --scaling longrope' \
    table rope_table $table --long-factors 1,1,1,1
refuses 'a profile without scalings' '--scaling: yarn: expected none \(profile torch_exp_f32 knows none\)' \
    table rope_table $table --profile torch_exp_f32 --scaling yarn --factor 2
refuses 'a profile without this scaling' '--scaling: proportional: expected one of none, linear,.*longrope \(' \
    table rope_table $table --profile ggml_f32 --scaling proportional
refuses 'a profile without this convention' '--convention: endpoint: expected exponent' \
    table sinusoidal $table --profile ggml_f32 --convention endpoint

refuses 'npy of two arrays' 'npy: one file holds one array' table rope_table --dim 8 --out npy:x.npy
refuses 'folder that is not there' 'cannot be written: No such file' table sinusoidal --dim 8 --out csv:no/such/x.csv
refuses 'output is a folder' 'it is a folder' table sinusoidal --dim 8 --out csv:/tmp
full='>/dev/full' # Linux has it, macOS has not
if [ -c /dev/full ]; then
    refuses 'no space left' 'cannot be written: No space left' table sinusoidal --dim 8 --out csv:/dev/full
    refuses 'no space left for records' 'cannot be written: No space left' verify --kernel alibi --backend libm \
        --suite vectors --out jsonl:/dev/full
else
    full=
    skip 'no space left' 'there is no /dev/full'
fi
refuses 'unwritable before the work begins' 'cannot be written' verify --full --out md:no/such/x.md
refuses 'the same file twice' 'is written already' table sinusoidal --dim 8 --out csv:x --out npy:x
refuses 'two formats on stdout' 'goes to stdout already' verify --out md --out csv
refuses 'one good and one bad output' 'cannot be written' table sinusoidal --dim 8 --out csv:x.csv --out npy:no/x.npy
if [ "$(id -u)" = 0 ]; then
    skip 'folder that may not be written' 'root may write everywhere'
else
    mkdir closed && chmod 500 closed
    refuses 'folder that may not be written' 'Permission denied' table sinusoidal --dim 8 --out "csv:$scratch/closed/x"
fi

# shellcheck disable=SC2086  # none or one
for redirection in '>&-' $full; do
    for arguments in list 'table sinusoidal --dim 8' 'verify --kernel alibi --backend scalar --suite vectors --out jsonl:r.jsonl --out console' \
        'table sinusoidal --dim 512 --tokens 500'; do
        # shellcheck disable=SC2086  # a list of words
        run sh -c "\"\$0\" \"\$@\" $redirection" "$POSENC" $arguments
        case $redirection in '>&-') says='standard output is closed' ;; *) says='standard output.*No space left' ;; esac
        if [ $status = 2 ] && grep -q "$says" stderr && [ -z "$(ls work)" ]; then
            pass "stdout $redirection: $arguments"
        else
            fail "stdout $redirection: $arguments" "exit $status, files: $(ls work)"
        fi
    done
done
run sh -c '"$0" verify --kernel alibi --backend scalar --suite vectors --out jsonl:r.jsonl 2>&-' "$POSENC"
if [ $status = 0 ] && ! grep -v '^{' work/r.jsonl; then pass 'stderr closed'; else fail 'stderr closed' "exit $status"; fi
rm -f work/*

# Golden vectors that were cut short or changed.
cp "$PACK" good.pack
head -c $(($(wc -c <good.pack) / 2)) good.pack >short.pack
cp good.pack changed.pack
printf 'x' | dd of=changed.pack bs=1 seek=$(($(wc -c <good.pack) - 9)) conv=notrunc 2>dd.log
: >empty.pack
refuses 'truncated vectors' 'short.pack' verify --vectors "$scratch/short.pack" --out md:x.md
refuses 'altered vectors' 'changed.pack.*[0-9a-f]{16}' verify --vectors "$scratch/changed.pack" --out md:x.md
refuses 'empty vectors' 'empty.pack' verify --vectors "$scratch/empty.pack"
refuses 'no vectors there' 'none.pack' verify --vectors "$scratch/none.pack"

refuses 'problem of no kernel' 'rope_haf: no kernel; did you mean rope_half' verify --problem 'rope_haf heads=1'
refuses 'problem with an unknown field' 'hed_dim: no field of rope_half.*did you mean head_dim' verify -v --problem 'rope_half hed_dim=1'
refuses 'problem with a bad value' 'heads=x: expected a whole number' bench --problem 'rope_half heads=x'
refuses 'problem that the library refuses' 'rotary_dim is 33: a dimension that must be even is odd' verify --problem 'rope_half head_dim=80 rotary_dim=33 heads=1 tokens=1 rows=1'
refuses 'rotation without the channels that turn' 'rotary_dim is 0, expected from 2 to 4: rotary_dim.* is out of range$' \
    verify --problem 'rope_half head_dim=5'
refuses 'head of one channel' 'head_dim is 1, expected from 2' verify --problem 'rope_half head_dim=1 rotary_dim=2 heads=1 tokens=1 rows=1'
refuses 'slopes without heads' 'heads is 0, expected from 1 to 65536' verify --problem 'alibi'
refuses 'slopes that do not fall' 'alibi_bias_max is 0, expected from 2' verify --problem 'alibi heads=2 queries=2 keys=2 alibi_bias_max=0'
for command in bench pair; do
    refuses "$command: quick and full" '--quick: expected without --full$' $command --quick --full
done
refuses 'quick and exhaustive' '--quick: expected without --exhaustive$' verify --quick --exhaustive
refuses 'one of many names: the three that are nearest' 'did you mean rope_half, rope_table or rope_qk_norm[?]$' verify --kernel rope
refuses 'an option of many' 'unknown option: kernels: did you mean kernel[?]$' verify --kernels x
refuses 'a topic of many' 'Did you mean [^?]*[?]' explain sinus
# Each kernel without its sizes, and with what does not fit.
for kernel in $("$POSENC" list kernels | sed -n 's/^\([a-z][a-z0-9_]*\)  *\(table\|apply\) .*/\1/p'); do
    refuses "$kernel without sizes" "--problem: " verify --problem "$kernel"
done
for distances in 3 8 -5; do
    refuses "table of $distances rows for a window of nine differences" "distances, rows of the table is $distances, expected from 9 to" \
        verify --problem "window_bias heads=1 window_height=2 window_width=2 distances=$distances"
done
refuses 'problem without an element' 'has no element: expected batch and tokens above 0' verify --problem 'rope_half head_dim=80 rotary_dim=32'
refuses 'problem and a case' '--case: has no effect beside --problem' verify --problem 'alibi heads=1 queries=1 keys=1' --case x
refuses 'problem and a dimension' '--dim: has no effect beside --problem' table --problem 'sinusoidal dim=4 tokens=2' --dim 8
refuses 'problem and a kernel' 'sinusoidal: expected --problem alone' table sinusoidal --problem 'sinusoidal dim=4 tokens=2'
refuses 'a kernel that needs a problem' 'alibi: needs a whole problem: --problem .alibi ....' table alibi
refuses 'columns of several types as an array' 'npy: has no room for columns of several types: expected csv' table frequencies --dim 8 --out npy:x.npy
refuses 'frequencies of no dim' '--dim: expected' table frequencies
refuses 'rows of what has none' '--tokens: has no effect here: it is for sinusoidal, rope_table' table errors --tokens 5
refuses 'problem of two arrays into one' 'npy: one file holds one array' table --problem 'rope_table rotary_dim=4 tokens=2' --out npy:x.npy

echo 'this is no shared library' >text.so
head -c 1000 "$PLUGIN" >short.so
says='short.so: cannot be loaded' # by the system, but where it would die of it
[ "$(head -c 4 "$PLUGIN" | tail -c 3)" != ELF ] || says="$says.*cut short"
refuses 'plug-in that was cut short' "$says" list --plugin "$scratch/short.so"
echo 'this is no budget' >budgets.txt
refuses 'budgets that are none' 'budgets.txt:1:18: ' verify --budgets "$scratch/budgets.txt"
# What a problem would cost is known before memory is asked for.
for problem in 'queries=1000000000 alibi queries=1000000000 keys=100 heads=8' \
    'rows=1000000000 learned_grad dim=1024 tokens=3 rows=1000000000' \
    'max_distance=100000000 relative_bias heads=12 queries=512 keys=512 max_distance=100000000'; do
    refuses "a problem of ${problem%% *}" "${problem%% *}: the call has .* bytes; at most .*: expected ${problem%%=*} of at most [1-9]" \
        verify --problem "${problem#* }"
done
refuses 'a problem of more values than are checked in minutes' 'tokens=1000000: the call has .* values; at most .*expected tokens of at most' \
    verify --problem 'sinusoidal dim=128 tokens=1000000'
refuses 'a number whose sums overflow' 'position_offset=9223372036854775807: expected at most' \
    verify --problem 'sinusoidal dim=64 tokens=3 position_offset=9223372036854775807'

refuses 'empty budgets' '/dev/null: holds no budget' verify --budgets /dev/null
refuses 'plug-in that is none' 'text.so: cannot be loaded.*expected a shared library' verify --plugin "$scratch/text.so"
refuses 'plug-in that is not there' 'gone.so: cannot be loaded' verify --plugin gone.so
refuses 'library without the symbol' 'exports no posenc_plugin' verify --plugin "$PLUGIN_NONE"

echo '{"t":"header","schema":"posenc.results/1"}' >cut.jsonl
printf '{"t":"conf","case":' >>cut.jsonl
refuses 'and are not merged' 'cut.jsonl: nothing says which machine' results merge "$scratch/cut.jsonl"
echo '{"model_type":"llama","hidden_size":64,"num_attention_heads":1,"max_position_embeddings":64,"rope_scaling":{"rope_type":"twisted","factor":2}}' >c.json
refuses 'unknown key in a config' 'twisted' table rope_table --model "$scratch/c.json" --out csv:x.csv

export POSENC_BACKEND=nope
refuses 'forced backend that is unknown' 'POSENC_BACKEND: nope: expected one of.*scalar' table sinusoidal $table
refuses 'the same for list' 'POSENC_BACKEND: nope' list
export POSENC_BACKEND=native
refuses 'forced backend that is a family' 'POSENC_BACKEND: native: expected one of [^?]*scalar' list
if grep -Eq 'did you mean|, native' stderr; then fail 'families are not suggested' 'one is'; else pass 'families are not suggested'; fi
off=$(unset POSENC_BACKEND; "$POSENC" list backends | awk 'NR > 3 && /^[*+ ] [a-z]/ { split(substr($0, 3), f, " ")
    if (f[4] == "no") print f[1] }' | head -n 1)
if [ -n "$off" ]; then
    export POSENC_BACKEND="$off"
    refuses "forced backend $off that this CPU lacks" "POSENC_BACKEND: $off: cannot run here.*expected one of.*scalar" \
        table sinusoidal $table
    unset POSENC_BACKEND
    refuses "backend $off by option" "--backend: $off: cannot run here.*expected one of" table sinusoidal $table --backend "$off"
else
    unset POSENC_BACKEND
    skip 'forced backend that this CPU lacks' 'this CPU runs every backend'
fi
export POSENC_MAX_ISA=nope
refuses 'unknown ceiling' 'POSENC_MAX_ISA: nope' table sinusoidal $table
finish
