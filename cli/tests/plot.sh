#!/bin/sh
# posenc plot: every kind as PNG and SVG, whole or not at all; the figures printed beside each are right.
speeds=$(cd "$(dirname "$0")/../../docs" && pwd)/speed.jsonl
. "$(dirname "$0")/tap.sh"

run "$POSENC" plot t5 --out svg:p.svg
if [ $status != 0 ] && grep -q gnuplot stderr; then
    skip 'pictures' 'gnuplot is not here'
    finish
    exit 0
fi
rm -f work/*

kinds=$("$POSENC" plot 2>&1 | sed -n 's/.*expected one of//p' | tr -d ,)
for kind in $kinds; do
    file=
    [ "$kind" != speed ] || file=$speeds
    # shellcheck disable=SC2086  # a file or nothing
    run "$POSENC" plot "$kind" $file --out png:p.png --out svg:p.svg
    if [ $status = 0 ] && [ "$(head -c 4 work/p.png | tail -c 3)" = PNG ] && grep -q '</svg>' work/p.svg && [ -s stdout ]; then
        pass "plot $kind"
    else
        fail "plot $kind" "exit $status, files: $(ls work)"
    fi
    rm -f work/*
done

# prints NAME PATTERN ARGUMENTS...: the figures match; the picture goes away.
prints() { succeeds "$@" --out svg:p.svg; rm -f work/*; }
# below NAME PATTERN LIMIT: the number after the pattern in stdout is below the limit
below() {
    if awk -v pattern="$2" -v limit="$3" '$0 ~ pattern { found = 1; if (!($NF + 0 < limit)) bad = 1 } END { exit bad || !found }' stdout; then
        pass "$1"
    else
        fail "$1" "not below $3"
    fi
}
# Wavelength of pair i: 2 pi theta^(2i/d).  d = 128, i = 32: 628.3185.
prints 'rope: the turn of a pair' 'pair 32: 0.01 rad a position, a turn in 628\.319 positions' plot rope
# Mean of cos(o w_i), d = 128: 0.66155 at offset 11, 0.66220 at 12.
prints 'rope: nearer is not always more similar' 'nearer is not.*: 0.6616 at offset 11, 0.6622 at 12' plot rope
run "$POSENC" plot rope --out svg:p.svg
below 'rope: products depend on the offset alone' 'differ by at most' 1e-6
run "$POSENC" plot rope --profile hf_f32 --out svg:p.svg
if awk '/differ by at most/ { found = $NF > 1e-4 } END { exit !found }' stdout; then
    pass 'rope: but for f32 angles far out'
else
    fail 'rope: but for f32 angles far out' 'they do not show'
fi
prints 'rope of a model' 'rope_theta 500000, llama3, exact' plot rope --model llama-3.1-8b
prints 'rope of one pair' 'pair 0: 1 rad' plot rope --dim 2 --tokens 2
prints 'alibi: slopes' '^slopes 0.5 0.25 0.125 0.0625 0.03125 0.015625 0.0078125 0.00390625$' plot alibi
prints 'alibi: 12 heads' '^slopes 0.5 .* 0.00390625 0.707107 0.353553 0.176777 0.0883883$' plot alibi --heads 12
prints 'alibi: bias' 'distance 127: head 1 -63.5, head 8 -0.496094' plot alibi --tokens 128
prints 'alibi of a model' '^alibi, 112 heads' plot alibi --model bloom-176b
prints 't5: both directions' 'bidirectional.* 0 1 2 3 4 5 6 7 8 12 16 23 32 46 64 91$' plot t5
prints 't5: causal' 'causal.* 15 16 19 21 24 27 31 35 40 46 52 59 67 77 87 99 113$' plot t5
prints 't5 of a model' 'num_buckets 32, max_distance 128' plot t5 --model t5-base
# 256 buckets to 512: 128 and below have a column each, 511 is the last that has one of its own bucket, 255.
prints 'deberta: columns' 'opposites: 384/128 448/64 511/0$' plot deberta
prints 'deberta: without buckets' 'column of distance 0: 16$' plot deberta --position-buckets 0 --max-distance 16
# The published example of a window of 2 x 2.
run "$POSENC" plot swin --window-height 2 --out svg:p.svg
if tail -n 4 stdout | tr -s ' \n' ' ' | grep -qx ' 4 3 1 0 5 4 2 1 7 6 4 3 8 7 5 4 '; then
    pass 'swin: the index of 2 x 2'
else
    fail 'swin: the index of 2 x 2' 'other numbers'
fi
rm -f work/*
prints 'swin: rows of a window that is not square' '3 x 5 tokens, a table of 45 rows' plot swin --window-height 3 --window-width 5
# -64/16, -2 ln 65, -8; T5's bucket of 64 begins at 59: -2 ln 60.
run "$POSENC" plot bias --out svg:p.svg
for line in 'ALiBi,.* -4\.000$' 'KERPLE, -2 ln.* -8\.349$' 'KERPLE, -d.* -8\.000$' 'T5,.* -8\.189$'; do
    if grep -Eq -e "$line" stdout; then pass "bias: $line"; else fail "bias: $line" 'other numbers'; fi
done
rm -f work/*
# z_0 = 0.4/1.4; the product of xPos at offset 256 is the mean of z_i^(1/2) cos(256 w_i), d = 64: from awk.
run "$POSENC" plot xpos --out svg:p.svg
if grep -q 'pair 0: factor 0.2857 every 512' stdout && awk '/^256 / { for (i = 0; i < 32; i++) {
        w = exp(-2 * i / 64 * log(10000)); z = (2 * i + 25.6) / 89.6; a += cos(256 * w) / 32; b += sqrt(z) * cos(256 * w) / 32 }
        found = ($2 - a) ^ 2 < 1e-8 && ($3 - b) ^ 2 < 1e-8 } END { exit !found }' stdout; then
    pass 'xpos: products'
else
    fail 'xpos: products' 'other numbers'
fi
rm -f work/*
run "$POSENC" plot sinusoidal --tokens 512 --out svg:p.svg
if [ "$(grep -o '>dimension [0-9]*: [0-9.]*<' work/p.svg | sort -u | grep -c .)" = 4 ] && grep -q '>dimension 32: 62.83<' work/p.svg; then
    pass 'sinusoidal: curves by wavelength'
else
    fail 'sinusoidal: curves by wavelength' "$(grep -o '>dimension .*<' work/p.svg)"
fi
run "$POSENC" plot sinusoidal --dims 0,127 --layout sin_cos --out svg:p.svg
if [ "$(grep -o '>dimension .*:.*[0-9]<' work/p.svg | sort -u | tr -d '\n')" = '>dimension 0: 6.283<>dimension 127: 5.441e+04<' ]; then
    pass 'sinusoidal: curves by name'
else
    fail 'sinusoidal: curves by name' "$(grep -o '>dimension .*<' work/p.svg)"
fi
rm -f work/*
prints 'learned: rows of a table' 'positions 5000 to 5063,.*' plot learned --rows 5000..5063
prints 'learned: all rows up to them count' 'learned 5064 x 32 = 162048' plot learned --dim 32 --rows 5000..5063
run "$POSENC" plot learned --tokens 9 --out svg:p.svg
cp work/p.svg nine.svg
run "$POSENC" plot learned --rows 0..8 --out svg:p.svg
if cmp -s work/p.svg nine.svg; then pass 'learned: the first rows are --tokens'; else fail 'learned: the first rows are --tokens' 'other pictures'; fi
rm -f work/*
prints 'learned: parameters' 'learned 100 x 32 = 3200, sinusoidal 0' plot learned --tokens 100 --dim 32
run "$POSENC" plot learned --tokens 512 --dim 256 --out svg:p.svg
# 131072 draws: a standard deviation is known to 1/sqrt(2n) = 0.2 %, a correlation to 1/sqrt(n) = 0.0028.
if awk '/^  tokens  / { tokens = $2 } /^  sinusoidal/ { sinusoidal = $2 } /^  learned/ { learned = $2 }
        /tokens \+ sinusoidal/ { sum = $4 } /tokens \+ learned/ { sum2 = $4 } /^correlation/ { c = $7 }
        function near(a, b, d) { return a > b - d && a < b + d }
        END { exit !(near(tokens, 1, 0.01) && near(learned, 0.02, 0.0002) && near(c, 0, 0.014) &&
                     near(sum, sqrt(tokens^2 + sinusoidal^2), 0.01) && near(sum2, sqrt(tokens^2 + learned^2), 0.001)) }' stdout; then
    pass 'learned: independent parts add their variances'
else
    fail 'learned: independent parts add their variances' 'they do not'
fi
# docs/encodings.md says these.
prints 'learned: how loud a sinusoidal table is' '^  sinusoidal +0\.5756 0\.7071$' plot learned --dim 64 --tokens 32
rm -f work/*
run "$POSENC" plot learned --seed 7 --out svg:p.svg
cp stdout seven
run "$POSENC" plot learned --seed 7 --out svg:p.svg
if cmp -s stdout seven; then pass 'learned: a seed gives one picture'; else fail 'learned: a seed gives one picture' 'another'; fi
run "$POSENC" plot learned --seed 8 --out svg:p.svg
if cmp -s stdout seven; then fail 'learned: another seed, another one' 'the same'; else pass 'learned: another seed, another one'; fi
run "$POSENC" plot error --out svg:p.svg
for profile in $("$POSENC" list profiles | awk 'NR > 1 { print $1 }'); do
    if grep -q "^$profile: " stdout && grep -q "$profile: " work/p.svg; then
        pass "error: $profile"
    else
        fail "error: $profile" 'no curve'
    fi
done
# Half an ulp just below 1: 2^-12 of f16, 2^-9 of bf16, at every position alike.
if awk '/^exact, tables in f16/ { f = $(NF - 4) == 2.4e-4 && $NF == 2.4e-4 }
        /^exact, tables in bf16/ { b = $(NF - 4) == 2.0e-3 && $NF == 2.0e-3 } END { exit !(f && b) }' stdout; then
    pass 'error: tables in 16 bits'
else
    fail 'error: tables in 16 bits' 'not as roundings are'
fi
# Of the f32 profiles the iterated product is the farthest: below 2^17, 0.016 against 0.007.
if awk '/^ggml_f32/ { g = $(NF - 3) } /^hf_f32/ { h = $(NF - 3) } END { exit !(g > 1.5 * h && g < 0.05) }' stdout; then
    pass 'error: ggml is farther than Hugging Face'
else
    fail 'error: ggml is farther than Hugging Face' 'it is not'
fi
rm -f work/*
prints 'error of a scaling, and who has none' 'not applicable: torch_exp_f32' plot error --scaling linear --factor 4 --dim 16
prints 'error with an attention factor' 'exact: template +1?[.0-9e-]*' plot error --model gpt-oss-20b

# Turns of pair 8: of 128 tokens those that were trained, of 8192 those of the greater base.
dynamic='--dim 64 --scaling dynamic --factor 2 --max-position-embeddings 2048'
prints 'rope: dynamic has the base of the tokens in the picture' 'pair 8: 0[.]1 rad' plot rope $dynamic
prints 'and a far query to which it holds' 'm = 127 and m = 2047 differ' plot rope $dynamic
prints 'or of the length that is given' 'm = 127 and m = 8191 differ' plot rope $dynamic --seq-len 8192
prints 'where the picture has all of it, one far out' 'm = 2999 and m = 1048576 differ' plot rope --tokens 3000 $dynamic
prints 'without a length, one far out' 'm = 127 and m = 1048576 differ' plot rope --dim 64

# Speeds are quotients of the medians in the records.
"$POSENC" report "$speeds" --out csv >speed.csv
run "$POSENC" plot speed "$speeds" --out svg:p.svg
if awk 'NR == FNR { split($0, f, ","); time[f[7] " " f[8]] = f[26]; next }
        FNR > 1 { n++; q = time[$1 " libm"] / time[$1 " " $2]; off = ($3 + 0) / q - 1; bad += off * off > 0.026 ^ 2 || !/x$/ }
        END { exit bad || n < 4 }' speed.csv stdout && ! grep -q ' libm ' stdout; then
    pass 'speed: against libm'
else
    fail 'speed: against libm' 'other numbers'
fi
missing=
for words in "$(awk 'NR > 1 { sub(/x$/, "", $3); print ">" $3 "<"; exit }' stdout)" '>avx2<' '>libm (plain C)<' '>rope_table<' '>L2, 512 KiB<' '99 %'; do
    grep -qF -e "$words" work/p.svg || missing="$missing $words"
done
if [ -z "$missing" ]; then pass 'speed: labels'; else fail 'speed: labels' "not in the picture:$missing"; fi
rm -f work/*
grep -v '"backend":"libm"' "$speeds" >unrivalled.jsonl
refuses 'speed without plain C' 'time no case with libm and another backend; expected those of posenc bench' plot speed "$scratch/unrivalled.jsonl"
sed 's|"env_id":"[^"]*"|"env_id":"another"|' "$speeds" | cat "$speeds" - >two.jsonl
refuses 'speed on two machines' 'the records are of 2 machines; expected one' plot speed "$scratch/two.jsonl"
for n in 1 2 3 4 5; do sed "s,/l2\",/l2-$n\",g; s,/dram\",/dram-$n\",g" "$speeds"; done | cat "$speeds" - >many.jsonl
refuses 'speed in many cases' 'the records time 18 cases; expected at most 12' plot speed "$scratch/many.jsonl"
refuses 'speed without records' 'FILE: expected the records of posenc bench --out jsonl:FILE' plot speed
refuses 'speed of no file' 'FILE: .*nowhere.jsonl: No such file' plot speed nowhere.jsonl
refuses 'speed of two files' 'unexpected argument: b: expected one FILE' plot speed a b
refuses 'speed of one backend' '--backend: has no effect here: it is for' plot speed "$speeds" --backend avx2
refuses 'speed by tokens' '--tokens: has no effect here: it is for' plot speed "$speeds" --tokens 4

refuses 'unknown picture' 'KIND: alibbi: did you mean alibi' plot alibbi
refuses 'no picture' 'KIND: .*expected one of' plot
refuses 'two pictures' 'unexpected argument: rope' plot alibi rope
refuses 'option of another picture' '--heads: has no effect here: it is for alibi' plot rope --heads 4
refuses 'tokens of errors' '--tokens: has no effect here' plot error --tokens 4
refuses 'a model of another encoding' 't5-base: its encoding is t5: expected a model with alibi' plot alibi --model t5-base
refuses 'odd number of buckets' '--num-buckets: 33: expected an even number' plot t5 --num-buckets 33
refuses 'distance below the buckets' '--max-distance: 8: expected above' plot t5 --max-distance 8
refuses 'too many tokens' '--tokens: 5000: expected from 2 to 4096' plot rope --tokens 5000
refuses 'odd dim' '--dim: 7: expected an even integer' plot error --dim 7
refuses 'scaling without its parameter' '--max-position-embeddings: not given: expected from 1' plot rope --scaling dynamic --factor 2
refuses 'odd number of position buckets' '--position-buckets: expected 0 or an even number' plot deberta --position-buckets 255
refuses 'position buckets beyond the distance' '--max-distance: expected above 256' plot deberta --max-distance 256
refuses 'a window of nothing' '--window-height: 0: expected an integer from 1 to 16' plot swin --window-height 0
refuses 'a model of a picture without' 'unknown option|--model: has no effect here' plot swin --model llama-3.1-8b
refuses 'errors of a backend without tables' '--backend: example: does not provide rope_table: expected one that does' \
    plot error --plugin "$PLUGIN" --backend example --out svg:x.svg
for dims in 128 -1 x '0,,1' '' 0,1,2,3,4,5,6,7,8; do
    refuses "curves '$dims'" '--dims: .*expected (up to 8 dimensions from 0 to 127, separated by commas|LIST)' plot sinusoidal --dims "$dims"
done
for rows in 7 5..5 9..2 -4..4 0..1024 a..b 0.. ..9 0:9 0..2147483647; do
    refuses "rows '$rows'" '--rows: .*expected A..B: 2 to 1024 rows of the table, from 0 to 2147483646' plot learned --rows "$rows"
done
refuses 'rows and tokens' '--rows: 0..9: expected without --tokens' plot learned --rows 0..9 --tokens 10
refuses 'curves of another picture' '--dims: has no effect here: it is for sinusoidal' plot learned --dims 1
refuses 'a device' 'expected an ordinary file' plot t5 --out svg:/dev/null
finish
