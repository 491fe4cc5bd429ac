#!/bin/sh
# posenc table: shapes, formats, the hard positions, and the same bytes from a whole family.
. "$(dirname "$0")/tap.sh"

hard=0,1000000,16777216,2147482648,497577,1715512116,-497577
family=$("$POSENC" list backends | awk 'NR > 3 && /^[*+ ] [a-z]/ { split(substr($0, 3), f, " ")
    if (f[2] == "native" && f[4] == "yes" && f[1] != "scalar") print f[1] }')

for format in csv npy safetensors; do
    run "$POSENC" table sinusoidal --dim 768 --positions $hard --backend scalar --out $format
    cp stdout "sinusoidal.$format"
done
for format in csv safetensors; do
    run "$POSENC" table rope_table --dim 512 --positions $hard --backend scalar --out $format
    cp stdout "rope_table.$format"
done
for backend in $family; do
    for file in sinusoidal.csv sinusoidal.npy sinusoidal.safetensors rope_table.csv rope_table.safetensors; do
        dim=768
        [ "${file%.*}" = sinusoidal ] || dim=512
        run "$POSENC" table "${file%.*}" --dim $dim --positions $hard --backend "$backend" --out "${file#*.}"
        if [ $status = 0 ] && cmp -s stdout "$file"; then
            pass "$backend prints the bytes of scalar: $file"
        else
            fail "$backend prints the bytes of scalar: $file" "exit $status or other bytes"
        fi
    done
done
for arguments in "sinusoidal --dim 320 --layout cos_sin --times 0.5,999.25,8388607.5,-0.001,1e-30,0..1000:62.5" \
    "rope_table --dim 128 --mrope-section 24,20,20 --mrope-layout interleaved --grid 7 --tokens 61 --first -3" \
    "rope_table --dim 80 --mrope-section 20,20 --mrope-layout restarted --grid 7 --tokens 61 --first 100000"; do
    # shellcheck disable=SC2086  # a list of words
    run "$POSENC" table $arguments --backend scalar
    cp stdout wanted
    for backend in $family; do
        # shellcheck disable=SC2086
        run "$POSENC" table $arguments --backend "$backend"
        if [ $status = 0 ] && [ -s wanted ] && cmp -s stdout wanted; then
            pass "$backend prints the bytes of scalar: $arguments"
        else
            fail "$backend prints the bytes of scalar: $arguments" "exit $status or other bytes"
        fi
    done
done
[ -n "$family" ] || skip 'bytes of a family' 'no other backend of the family runs here'

# Values where an f64 rotation is thousands of ulp off, computed to 60 digits: sin(497577 w(317)) for
# dim 768, cos or sin(1715512116 w(25)) for dim 512, w(i) = 10000^(-2i/dim).
check() { # NAME POSITION COLUMN DIM VALUE: the printed value is that one, correctly rounded
    run "$POSENC" table sinusoidal --dim "$4" --positions "$2" --backend scalar
    got=$(awk -F, -v column="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i } NR == 2 { print $at }' stdout)
    if [ "$got" = "$5" ]; then pass "$1"; else fail "$1" "got $got, want $5"; fi
}
check 'next to a zero: position 497577' 497577 'sinusoidal[634]' 768 -1.19872038e-11
check 'the same, negative' -497577 'sinusoidal[634]' 768 1.19872038e-11
check 'next to a zero: position 1715512116' 1715512116 'sinusoidal[51]' 512 -2.24195154e-14
check 'position 1000000' 1000000 'sinusoidal[0]' 512 -0.349993497
check 'position 2^24' 16777216 'sinusoidal[3]' 512 0.670601726
check 'position 2^31 - 1000' 2147482648 'sinusoidal[0]' 512 -0.742889881
check 'its slowest pair' 2147482648 'sinusoidal[511]' 512 -0.292066514
check 'position 0' 0 'sinusoidal[1]' 512 1

# Shapes as the files tell them.
run "$POSENC" table sinusoidal --dim 6 --tokens 5 --out npy:x.npy
same 'npy is written to the path' "$(ls work)" x.npy
same 'npy header' "$(head -c 6 work/x.npy | tail -c 5)" NUMPY
same 'npy shape' "$(head -c 128 work/x.npy | tr -d '\0' | grep -ac '(5, 6)')" 1
same 'npy size' "$(($(wc -c <work/x.npy) % 64))" 56 # 30 numbers past an aligned header
rm -f work/x.npy
run "$POSENC" table rope_table --dim 6 --tokens 5 --out safetensors:x
same 'safetensors names cos' "$(head -c 256 work/x | tr -d '\0' | grep -ac '"cos".*\[5, *3\]')" 1
same 'safetensors names sin' "$(head -c 256 work/x | tr -d '\0' | grep -ac '"sin".*\[5, *3\]')" 1
rm -f work/x
run "$POSENC" table rope_table --dim 6 --positions -2..2
same 'csv: a line of names and a line a position' "$(($(wc -l <stdout)))" 6
same 'csv: columns' "$(head -n 1 stdout)" 'position,cos[0],cos[1],cos[2],sin[0],sin[1],sin[2]'
same 'csv: positions' "$(cut -d, -f1 stdout | tr '\n' ' ')" 'position -2 -1 0 1 2 '
same 'cos is even, sin is odd' "$(awk -F, 'NR == 2 { a = $2; b = $5 } NR == 6 { print (a == $2 && b == -$5) }' stdout)" 1
run "$POSENC" table sinusoidal --dim 5 --positions 3 --layout sin_cos
same 'odd dim: halves end in a zero column' "$(tail -n 1 stdout | cut -d, -f6)" 0
run "$POSENC" table rope_table --dim 64 --rotary-dim 32 --tokens 1
same 'rotary_dim: half as many pairs' "$(($(tail -n 1 stdout | tr ',' '\n' | wc -l)))" 33
run "$POSENC" table rope_table --model llama-3.1-8b --positions 131071
cp stdout preset
run "$POSENC" table rope_table --dim 128 --rope-theta 500000 --scaling llama3 --factor 8 --low-freq-factor 1 \
    --high-freq-factor 4 --original-max-position-embeddings 8192 --positions 131071
if [ $status = 0 ] && cmp -s stdout preset; then pass 'a preset is its parameters'; else fail 'a preset is its parameters' "exit $status"; fi

# Scalings by what they come to.
equals() { # NAME ARGUMENTS... = ARGUMENTS...: two rope tables with the same bytes
    name=$1
    shift
    first=
    while [ "$1" != = ]; do
        first="$first $1"
        shift
    done
    shift
    # shellcheck disable=SC2086  # a list of words
    run "$POSENC" table rope_table $first --positions 0..63,1000000
    cp stdout other
    run "$POSENC" table rope_table "$@" --positions 0..63,1000000
    if [ $status = 0 ] && [ -s other ] && cmp -s stdout other; then pass "$name"; else fail "$name" "exit $status or other bytes"; fi
}
dynamic='--dim 128 --scaling dynamic --factor 2 --max-position-embeddings 4096'
equals 'dynamic up to its maximum is none' $dynamic --seq-len 4096 = --dim 128
equals 'dynamic, told of no length' $dynamic --seq-len 0 = --dim 128
equals 'dynamic, no length given: the largest position and 1' $dynamic = $dynamic --seq-len 1000001
# 10000 (2 8192/4096 - 1)^(128/126)
equals 'dynamic at twice its maximum' $dynamic --seq-len 8192 = --dim 128 --rope-theta 30527.736748806763
equals 'ntk is dynamic at a fixed length' --dim 128 --scaling ntk --factor 2 = $dynamic --seq-len 6144
longrope='--dim 8 --scaling longrope --factor 32 --original-max-position-embeddings 4096 --attention-factor 1'
equals 'longrope up to its context' $longrope --short-factors 1,1,1,1 --long-factors 2,2,2,2 --seq-len 4096 = --dim 8
equals 'longrope beyond it' $longrope --short-factors 1,1,1,1 --long-factors 2,2,2,2 --seq-len 4097 = \
    --dim 8 --scaling linear --factor 2
equals 'longrope, no length given: long factors beyond it' $longrope --short-factors 1,1,1,1 --long-factors 2,2,2,2 = \
    --dim 8 --scaling linear --factor 2
printf '[1.0, 1.5,\n 2e0, 40]\n' >factors.json
equals 'factors from a file' $longrope --short-factors "@$scratch/factors.json" --long-factors "@$scratch/factors.json" = \
    $longrope --short-factors 1,1.5,2,40 --long-factors 1,1.5,2,40
run "$POSENC" table rope_table --dim 8 --scaling longrope --factor 32 --original-max-position-embeddings 4096 \
    --short-factors 1,1,1,1 --long-factors 1,1,1,1 --tokens 1
same 'longrope: attention factor' "$(tail -n 1 stdout | cut -d, -f2)" 1.19023812 # sqrt(1 + ln 32 / ln 4096)
equals 'proportional with factor 1 of all is none' --dim 8 --scaling proportional = --dim 8
run "$POSENC" table rope_table --dim 8 --scaling proportional --partial-rotary-factor 0.5 --positions 1
same 'proportional: the others rest' "$(tail -n 1 stdout | cut -d, -f4,5,8,9)" 1,1,0,0
same 'proportional: exponents of the whole head' "$(tail -n 1 stdout | cut -d, -f7)" 0.099833414 # sin 0.1
equals 'a preset in full' --model gpt-oss-20b = --dim 64 --rope-theta 150000 --scaling yarn --factor 32 \
    --original-max-position-embeddings 4096 --truncate false

# Times: whole ones are positions, the others cosines and sines of real numbers.
for kernel in sinusoidal rope_table; do
    for profile in $("$POSENC" list profiles | awk 'NR > 1 { print $1 }'); do
        run "$POSENC" table $kernel --dim 64 --profile "$profile" --positions 0..9,999,-4,16777216
        cp stdout wanted
        run "$POSENC" table $kernel --dim 64 --profile "$profile" --times 0..9,999,-4,16777216
        if [ $status = 0 ] && [ -s wanted ] && cmp -s stdout wanted; then
            pass "$kernel, $profile: a whole time is a position"
        else
            fail "$kernel, $profile: a whole time is a position" "exit $status or other bytes"
        fi
    done
done
run "$POSENC" table sinusoidal --dim 4 --times 0..0.3:0.1,999.25,-1.5..1.5
same 'times: lists and ranges' "$(cut -d, -f1 stdout | tr '\n' ' ')" \
    'position 0 0.100000001 0.200000003 0.300000012 999.25 -1.5 -0.5 0.5 1.5 '
# Diffusion: cosines first, exponent i/160.  Some columns to 40 digits, from bc; all of them as awk has them, within
# half an ulp of f32 just below 1 (2^-25) and half of the ninth digit, which is the last one printed.
run "$POSENC" table sinusoidal --dim 320 --layout cos_sin --times 999.25 --backend scalar
cp stdout embedding
digits() { # COLUMN VALUE: a correct rounding
    same "time 999.25: $1" "$(awk -F, -v column="$1" -v want="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i }
        NR == 2 { off = $at - want; size = want < 0 ? -want : want; for (ulp = 2 ^ -24; ulp > size; ) ulp /= 2
            for (; ulp * 2 ^ 24 <= size; ) ulp *= 2
            print ((off < 0 ? -off : off) <= ulp / 2 + 5e-10) }' embedding)" 1
}
digits 'sinusoidal[0]' .9751196549063472039105621820719139782712
digits 'sinusoidal[160]' .2216791794809028505672098109514790371990
digits 'sinusoidal[53]' -.9878955069416369388964982785849065832439
digits 'sinusoidal[213]' -.1551208153811932893326024172218670032962
digits 'sinusoidal[159]' .9944035475622416281063417134684854163562
digits 'sinusoidal[319]' .1056484008190784313486654260239652327412
off() { # N FILE: columns, and how many are not cos and sin of t 10000^(-i/N) for i from 0 to 159
    awk -F, -v n="$1" 'NR == 2 { most = (2 ^ -25 + 5e-10 + 1e-12) ^ 2; for (i = 0; i < 160; i++) { a = $1 * exp(-i / n * log(10000))
        c = $(i + 2) - cos(a); s = $(i + 162) - sin(a); bad += c * c > most; bad += s * s > most }
        print NF + 0, bad + 0 }' "$2"
}
same 'time 999.25: all 320 columns' "$(off 160 embedding)" '321 0'
run "$POSENC" table sinusoidal --dim 320 --layout cos_sin --convention endpoint --times 999.25
same 'time 999.25: endpoint' "$(off 159 stdout)" '321 0'
same 'and it differs' "$(off 160 stdout | awk '{ print ($2 > 300) }')" 1

# Positions of several axes.  Of text they are one, and the table is the one without sections.
equals 'mrope: text, chunked' --dim 128 --mrope-section 16,24,24 = --dim 128
equals 'mrope: text, interleaved' --dim 128 --mrope-section 24,20,20 --mrope-layout interleaved --rope-theta 5e6 = \
    --dim 128 --rope-theta 5e6
equals 'mrope: text, with a model and its scaling' --model llama-3.1-8b --mrope-section 16,24,24 = --model llama-3.1-8b
equals 'mrope: a leading slice' --dim 256 --rotary-dim 64 --mrope-section 11,11,10 --mrope-layout interleaved = --dim 64
turning() { # TOKEN: pairs whose sine is not 0, of ten
    awk -F, -v token="$1" 'NR == token + 2 { for (i = 0; i < 10; i++) if ($(14 + i) != 0) printf "%s%d", n++ ? " " : "", i }' stdout
}
run "$POSENC" table rope_table --dim 20 --mrope-section 4,3,3 --grid 5
same 'grid: 16 tokens' "$(cut -d, -f1-3 stdout | sed -n '1p;2p;6p;7p;17p' | tr '\n' ' ')" \
    'position[0],position[1],position[2] 0,0,0 0,0,4 0,1,0 0,3,0 '
same 'chunked: what turns with the column' "$(turning 1)" '7 8 9'
same 'chunked: what turns with the row' "$(turning 5)" '4 5 6'
run "$POSENC" table rope_table --dim 20 --mrope-section 4,3,3 --grid 5 --mrope-layout interleaved
same 'interleaved: what turns with the column' "$(turning 1)" '2 5 8'
same 'interleaved: what turns with the row' "$(turning 5)" '1 4 7'
run "$POSENC" table rope_table --dim 20 --mrope-section 6,2,2 --grid 5 --mrope-layout interleaved
same 'interleaved: a section that ends' "$(turning 1)" '2 5'
# Chunked columns are those of the plain table at each position.
run "$POSENC" table rope_table --dim 20 --mrope-section 4,3,3 --grid 4 --tokens 12 --first 70
for part in 4-7,14-17/70,70,70,70,70,70,70,70,70,70,70,70/2-5,12-15 8-10,18-20/70,70,70,70,71,71,71,71,72,72,72,72/6-8,16-18 \
    11-13,21-23/70..73,70..73,70..73/9-11,19-21; do
    mine=${part%%/*} rest=${part#*/}
    cut -d, -f"$mine" stdout | sed 1d >wanted
    "$POSENC" table rope_table --dim 20 --positions "${rest%/*}" | cut -d, -f"${rest#*/}" | sed 1d >other
    if [ -s wanted ] && cmp -s wanted other; then pass "chunked: columns $mine"; else fail "chunked: columns $mine" 'other bytes'; fi
done
# A vision tower: two tables of half the size side by side, the rows' and the columns'.
for profile in exact hf_f32 torch_exp_f32; do
    run "$POSENC" table rope_table --dim 80 --mrope-section 20,20 --mrope-layout restarted --grid 4 --tokens 12 --profile $profile
    for part in 3-22,43-62/0,0,0,0,1,1,1,1,2,2,2,2 23-42,63-82/0..3,0..3,0..3; do
        cut -d, -f"${part%/*}" stdout | sed 1d >wanted
        "$POSENC" table rope_table --dim 40 --positions "${part#*/}" --profile $profile | cut -d, -f2- | sed 1d >other
        if [ -s wanted ] && cmp -s wanted other; then
            pass "vision, $profile: columns ${part%/*}"
        else
            fail "vision, $profile: columns ${part%/*}" 'other bytes'
        fi
    done
done

# Sinusoidal encodings of several axes: one of each side by side, MAE's columns first, DETR's rows, counted from 1.
side_by_side() { # NAME COLUMNS LIST DIM ARGUMENTS...: these columns of stdout are the table of DIM at the positions
    name=$1 mine=$2 list=$3 dim=$4
    shift 4
    cut -d, -f"$mine" stdout | sed 1d >wanted
    "$POSENC" table sinusoidal --dim "$dim" "$@" "$list" | cut -d, -f2- | sed 1d >other
    if [ -s wanted ] && cmp -s wanted other; then pass "$name"; else fail "$name" 'other bytes'; fi
}
run "$POSENC" table sinusoidal --dim 24 --layout sin_cos --mrope-section 6,6 --grid 4 --grid-order columns --tokens 12
side_by_side 'MAE: columns first' 3-14 0..3,0..3,0..3 12 --layout sin_cos --positions
side_by_side 'MAE: then rows' 15-26 0,0,0,0,1,1,1,1,2,2,2,2 12 --layout sin_cos --positions
run "$POSENC" table sinusoidal --dim 24 --mrope-section 4,8 --grid 4 --tokens 12
side_by_side 'rows first' 3-10 0,0,0,0,1,1,1,1,2,2,2,2 8 --positions
side_by_side 'sections of two sizes' 11-26 0..3,0..3,0..3 16 --positions
run "$POSENC" table sinusoidal --dim 8 --mrope-section 2,2
side_by_side 'the same position on both axes' 2-5 0..15 4 --positions
run "$POSENC" table sinusoidal --dim 8 --mrope-section 2,2 --grid 2 --tokens 5 --grid-scale 6.283185307179586
# 2 pi 1/(3 + 1e-6) ... in f32: numerator, sum, quotient and product rounded each.
same 'DETR: coordinates' "$(sed 1d stdout | cut -d, -f1,2 | tr '\n' ' ')" \
    '2.09439445,3.14159131 2.09439445,6.28318262 4.18878889,3.14159131 4.18878889,6.28318262 6.28318357,3.14159131 '
side_by_side 'DETR: rows' 3-6 2.09439445,2.09439445,4.18878889,4.18878889,6.28318357 4 --times
side_by_side 'DETR: columns' 7-10 3.14159131,6.28318262,3.14159131,6.28318262,3.14159131 4 --times
run "$POSENC" table rope_table --dim 20 --mrope-section 4,3,3 --grid 5 --grid-order columns
same 'rope_table: columns first' "$(cut -d, -f1-3 stdout | sed -n '2p;6p;7p' | tr '\n' ' ')" '0,0,0 0,4,0 0,0,1 '

# xPos: a factor on cosines and sines, its inverse for keys; 1 at the centre.
xpos='--dim 64 --xpos-scale-base 512'
run "$POSENC" table rope_table $xpos --xpos-centre 100 --positions 100
sed 1d stdout >wanted
run "$POSENC" table rope_table --dim 64 --positions 100
if [ -s wanted ] && sed 1d stdout | cmp -s - wanted; then pass 'xPos: 1 at the centre'; else fail 'xPos: 1 at the centre' 'other bytes'; fi
run "$POSENC" table rope_table $xpos --positions 512
cp stdout queries
run "$POSENC" table rope_table $xpos --xpos-inverse --positions 512
cp stdout keys
run "$POSENC" table rope_table --dim 64 --positions 512
same 'xPos: factors at its base' "$(paste -d, stdout queries keys | awk -F, 'NR == 2 { for (i = 0; i < 32; i++) { z = (2 * i + 25.6) / 89.6
    q = $(i + 67) / (z * $(i + 2)); k = $(i + 132) * z / $(i + 2); bad += (q - 1) ^ 2 > 1e-12; bad += (k - 1) ^ 2 > 1e-12 } print bad + 0 }')" 0

# Storage in 16 bits: the f32 values rounded once more, natively in the files that know the type.
for kernel in sinusoidal rope_table; do
    for dtype in f16 bf16; do
        digits=11
        [ $dtype = f16 ] || digits=8
        run "$POSENC" table $kernel --dim 64 --positions 1..40,1000000 --backend scalar
        cp stdout plain
        run "$POSENC" table $kernel --dim 64 --positions 1..40,1000000 --backend scalar --dtype $dtype
        cp stdout wanted
        same "$kernel, $dtype: within half an ulp" "$(paste -d, plain wanted | awk -F, -v digits=$digits 'NR > 1 { n = NF / 2
            for (i = 2; i <= n; i++) { off = $(n + i) - $i; size = $i < 0 ? -$i : $i; for (ulp = 1; ulp > size; ) ulp /= 2
                for (ulp *= 2 ^ (1 - digits); ulp < 2 ^ -24; ) ulp *= 2
                bad += (off < 0 ? -off : off) > ulp / 2 * 1.0001; differ += off != 0 } } END { print bad + 0, (differ > 1000) }')" '0 1'
        for backend in $family; do
            run "$POSENC" table $kernel --dim 64 --positions 1..40,1000000 --backend "$backend" --dtype $dtype
            if [ $status = 0 ] && [ -s wanted ] && cmp -s stdout wanted; then
                pass "$backend prints the bytes of scalar: $kernel, $dtype"
            else
                fail "$backend prints the bytes of scalar: $kernel, $dtype" "exit $status or other bytes"
            fi
        done
    done
done
run "$POSENC" table sinusoidal --dim 6 --tokens 5 --dtype f16 --out npy:x.npy
same 'npy: f16' "$(head -c 128 work/x.npy | tr -d '\0' | grep -ac "'descr': '<f2'.*(5, 6)")" 1
same 'npy: bytes of f16' "$(($(wc -c <work/x.npy) % 64))" 60
rm -f work/x.npy
run "$POSENC" table rope_table --dim 6 --positions 0 --dtype bf16 --out safetensors:x
same 'safetensors: bf16' "$(head -c 256 work/x | tr -d '\0' | grep -ac '"cos":{"dtype":"BF16","shape":\[1,3\]')" 1
# Cosines and sines of 0: 1 is 0x3f80.
same 'safetensors: the bytes of bf16' "$(tail -c 12 work/x | od -An -tx1 | tr -d ' \n')" 803f803f803f000000000000
rm -f work/x

# Profiles: the same at position 0, none the same far out.
: >profiles
for profile in $("$POSENC" list profiles | awk 'NR > 1 { print $1 }'); do
    run "$POSENC" table rope_table --dim 128 --profile "$profile" --positions 0,1000000 --backend scalar
    sed -n 3p stdout | cksum >>profiles
    same "$profile: position 0" "$(sed -n 2p stdout | tr , '\n' | sort | uniq -c | tr -s ' \n' ' ')" ' 65 0 64 1 '
done
same 'profiles differ' "$(sort -u profiles | wc -l | tr -d ' ')" "$("$POSENC" list profiles | sed 1d | wc -l | tr -d ' ')"
# Of dim 2 there is no product to iterate: position 2^24 + 1 is an f32 with each of them but exact.
for profile in hf_f32 ggml_f32 torch_exp_f32; do
    run "$POSENC" table rope_table --dim 2 --profile $profile --positions 16777216,16777217
    same "$profile: 2^24 + 1 is 2^24" "$(sed -n 2p stdout | cut -d, -f2-)" "$(sed -n 3p stdout | cut -d, -f2-)"
done
run "$POSENC" table sinusoidal --dim 8 --tokens 3 --backend autovec
if [ -n "$(usable | grep '^autovec')" ]; then
    same 'a family by name' "$status" 0
else
    same 'a family that cannot run' "$status" 2
fi
echo position,old >work/x.csv
run "$POSENC" table sinusoidal --dim 8 --tokens 1 --out csv:x.csv
same 'an old file is replaced' "$(head -c 22 work/x.csv)" 'position,sinusoidal[0]'
ln -s x.csv work/link.csv
run "$POSENC" table sinusoidal --dim 2 --tokens 1 --out csv:link.csv
same 'a link stays a link, its target is written' "$(test -L work/link.csv && head -n 1 work/x.csv)" 'position,sinusoidal[0],sinusoidal[1]'

# A problem's line asks for the same numbers as the options do; batches follow each other.
check_problem() { # NAME LINE ARGUMENTS...: the bytes of both
    name=$1 line=$2
    shift 2
    run "$POSENC" table "$@"
    cp stdout wanted
    run "$POSENC" table --problem "$line"
    if [ "$status" = 0 ] && [ -s wanted ] && cmp -s stdout wanted; then pass "$name"; else fail "$name" "exit $status or other bytes"; fi
}
check_problem 'problem: sinusoidal' 'sinusoidal dim=320 tokens=5 position_offset=1000000 layout=cos_sin scale=0.5' \
    sinusoidal --dim 320 --tokens 5 --first 1000000 --layout cos_sin --scale 0.5
check_problem 'problem: rope_table in bf16 of a list of positions' \
    'rope_table rotary_dim=64 dtype=bf16 rope_theta=500000 position_kind=i64 positions=-497577,0,1715512116' \
    rope_table --dim 64 --dtype bf16 --rope-theta 500000 --positions -497577,0,1715512116
check_problem 'problem: a picture' 'rope_table rotary_dim=80 tokens=61 position_kind=i64 position_offset=100000 mrope_section=20,20 mrope_layout=restarted mrope_grid=7' \
    rope_table --dim 80 --mrope-section 20,20 --mrope-layout restarted --grid 7 --tokens 61 --first 100000
run "$POSENC" table --problem 'rope_table rotary_dim=4 batch=2 tokens=2 position_kind=i64 batch_shift=100'
same 'problem: batches follow each other' "$(cut -d, -f1 stdout | tr '\n' ' ')" 'position 0 1 100 101 '

# Any kernel's problem: the rows of its output.  recipe=index makes a bias the number of what is looked up.
rows() { # NAME LINE WANTED: the rows that posenc table prints of a problem, without their numbers
    run "$POSENC" table --problem "$2"
    same "$1" "$(tail -n +2 stdout | cut -d, -f2- | tr '\n' ' ')" "$3 "
}
rows 'problem: slopes' 'alibi heads=2 queries=1 keys=3 query_offset=2 causal=true' '-0.125,-0.0625,0 -0.0078125,-0.00390625,0'
rows 'problem: buckets of T5' \
    't5_bias heads=1 queries=1 keys=9 query_offset=4 num_buckets=8 max_distance=16 bidirectional=true recipe=index' '2,2,2,1,0,5,6,6,6'
rows 'problem: rows of a window' 'window_bias heads=1 window_height=2 window_width=2 recipe=index' \
    '4,3,1,0 5,4,2,1 7,6,4,3 8,7,5,4'
rows 'problem: columns of DeBERTa' \
    'relative_bias heads=1 queries=1 keys=5 query_offset=2 relative=deberta position_buckets=4 max_distance=8 recipe=index' '6,5,4,3,2'
run "$POSENC" table --problem 'window_bias heads=1 window_height=2 window_width=2 recipe=index'
same 'its rows have numbers' "$(cut -d, -f1 stdout | tr '\n' ' ')" 'row 0 1 2 3 '

# Frequencies: 500000^(-2i/128), slowed by 8 from pair 35 on (llama3); 2 pi / 1 positions a turn.
run "$POSENC" table frequencies --model llama-3.1-8b
same 'frequencies: columns' "$(head -n 1 stdout)" pair,axis,radians,wavelength,unscaled_radians,unscaled_wavelength,attention_factor
same 'frequencies: a line a pair' "$(($(wc -l <stdout)))" 65
if awk -F, 'NR == 2 { first = $3 == 1 && $5 == 1 && $4 - 6.283185307179586 < 1e-12 }
        $1 == 63 { w = exp(-126 / 128 * log(500000)); last = ($5 / w - 1) ^ 2 < 1e-20 && $5 / $3 == 8 && $6 * 8 == $4 }
        END { exit !(first && last) }' stdout; then pass 'frequencies: values'; else fail 'frequencies: values' 'other numbers'; fi
run "$POSENC" table frequencies --dim 8 --scaling proportional --partial-rotary-factor 0.5
same 'frequencies: a pair that rests has no wavelength' "$(tail -n 1 stdout | cut -d, -f3,4)" '0,'
run "$POSENC" table frequencies --dim 8 --mrope-section 1,2,1
same 'frequencies: axes' "$(tail -n +2 stdout | cut -d, -f2 | tr '\n' ' ')" '0 1 1 2 '
run "$POSENC" table frequencies --dim 128 --profile hf_f32
single=$(awk -F, '$1 == 1 { print $3 }' stdout)
if [ "$single" != "$(awk -F, '$1 == 1 { print $5 }' stdout)" ] && awk -v w="$single" 'BEGIN { exit !((w / exp(-2 / 128 * log(10000)) - 1) ^ 2 < 1e-13) }'; then
    pass 'frequencies of an f32 mode are f32'
else
    fail 'frequencies of an f32 mode are f32' "$single"
fi

# Errors: exact is correctly rounded at any position, an f32 angle is not, nor a position in bf16 above 256.
run "$POSENC" table errors --dim 64 --backend scalar
if awk -F, 'NR > 1 { n++; e = $NF; p = $(NF - 1); c = $1 }
        c ~ /^"exact: / && e > 2 ^ -25 { wrong++ }
        c ~ /^"exact: / { exact++ }
        c ~ /^"hf_f32/ && p > 1e6 && e > 1e-2 { far++ }
        c ~ /^"exact/ && /positions in bf16/ && p == 128 && e > 2 ^ -25 { wrong++ }
        c ~ /^"exact/ && /positions in bf16/ && p > 512 && e > 0.1 { bf16++ }
        END { exit !(exact == 124 && !wrong && far && bf16) }' stdout; then
    pass 'errors by position'
else
    fail 'errors by position' "$(head -n 3 stdout)"
fi
run "$POSENC" table errors --dim 64 --backend scalar --scaling yarn --factor 4 --original-max-position-embeddings 4096
if [ $status = 0 ] && grep -q 'left out: torch_exp_f32: scaling' stderr && ! grep -q torch_exp_f32 stdout; then
    pass 'errors: a mode that lacks the scaling is left out by name'
else
    fail 'errors: a mode that lacks the scaling is left out by name' "exit $status: $(head -n 1 stderr)"
fi
# Frequencies of a problem are those of the options that say the same; drift is where a profile leaves the exact one.
run "$POSENC" table frequencies --dim 64 --rope-theta 500000 --scaling linear --factor 4
cp stdout wanted
run "$POSENC" table frequencies --problem 'rope_table rotary_dim=64 rope_theta=500000 scaling=linear factor=4 tokens=1'
if [ -s wanted ] && cmp -s stdout wanted; then pass 'frequencies of a problem'; else fail 'frequencies of a problem' 'other bytes'; fi
run "$POSENC" table drift --problem 'rope_table profile=hf_f32 rotary_dim=64 tokens=1 position_offset=60000'
same 'drift: limits' "$(cut -d, -f1 stdout | tr '\n' ' ')" 'limit 0.001 0.01 '
first=$(sed -n 's/^0.001,//p' stdout)
run "$POSENC" table drift --problem "rope_table profile=hf_f32 rotary_dim=64 tokens=1 position_offset=$((first - 1))"
same 'drift: not before' "$(sed -n 2p stdout)" '0.001,'
run "$POSENC" table drift --problem "rope_table profile=hf_f32 rotary_dim=64 tokens=1 position_offset=$first"
same 'drift: from there on' "$(sed -n 2p stdout)" "0.001,$first"
run "$POSENC" table drift --problem 'rope_table rotary_dim=64 tokens=1 position_offset=60000'
same 'drift: the exact profile has none' "$(sed -n '2,3p' stdout | tr '\n' ' ')" '0.001, 0.01, '
rm -f work/*
refuses 'drift of nothing' "TABLE: drift: needs --problem 'rope_table profile=hf_f32" table drift
refuses 'drift of a rotation' 'rope_half: has no frequencies: expected rope_table or sinusoidal' \
    table drift --problem 'rope_half heads=1 tokens=1 rows=1 head_dim=4 rotary_dim=4'
refuses 'a table and a problem' 'TABLE: rope_table: expected --problem alone' table rope_table --problem 'rope_table rotary_dim=8 tokens=1'
finish
