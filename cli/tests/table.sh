#!/bin/sh
# posenc table: its rows, columns and formats. posenc verify checks the numbers.
. "$(dirname "$0")/tap.sh"

# A shell command makes these words of a table.
prints() { # NAME WORDS COMMAND ARGUMENTS...
    name=$1 wanted=$2 command=$3
    shift 3
    run "$POSENC" table "$@"
    got=$(sh -c "$command" <stdout | tr '\n' ' ')
    [ "$status $got" = "0 $wanted " ]
    verdict "$name"
}
# Two tables have the same bytes.
alike() { # NAME ARGUMENTS... = ARGUMENTS...
    name=$1
    shift
    : >words
    while [ "$1" != = ]; do
        printf "%s\n" "$1" >>words
        shift
    done
    shift
    run "$POSENC" table "$@"
    cp stdout wanted
    set --
    while read -r word; do set -- "$@" "$word"; done <words
    run "$POSENC" table "$@"
    [ $status = 0 ] && [ -s wanted ] && cmp -s stdout wanted
    verdict "$name"
}

# ---- Rows: tokens of the problem, positions, times, a picture ----

prints 'a line of names and a line a position' \
    'position,cos[0],cos[1],cos[2],sin[0],sin[1],sin[2] -2 -1 0 1 2' 'awk -F, "NR == 1 { print } NR > 1 { print \$1 }"' \
    --problem 'rope_table rotary_dim=6' --positions -2..2
prints '16 tokens by default' '0 15' 'cut -d, -f1 | sed -n "2p;17p"' --problem 'sinusoidal dim=2'
prints 'tokens of the problem' '70 71' 'cut -d, -f1 | sed 1d' --problem 'sinusoidal dim=2 tokens=2 position_offset=70'
prints 'times: lists and ranges' '0 0.100000001 0.200000003 0.300000012 999.25 -1.5 -0.5 0.5 1.5' 'cut -d, -f1 | sed 1d' \
    --problem 'sinusoidal dim=4' --positions 0..0.3:0.1,999.25,-1.5..1.5
alike 'a whole time is a position' --problem 'sinusoidal dim=64 position_kind=f32' --positions 0..9,999,-4,16777216 = \
    --problem 'sinusoidal dim=64' --positions 0..9,999,-4,16777216
prints 'steps' '3 5 7 -1' 'cut -d, -f1 | sed 1d' --problem 'sinusoidal dim=4' --positions 3..8:2,-1
prints 'whole steps end before B' '0 1000000 0 1073741824' 'cut -d, -f1 | sed 1d' \
    --problem 'sinusoidal dim=4' --positions 0..1999999:1000000,0..2147483647:1073741824
prints 'each batch has the positions of the option' '7 9 7 9' 'cut -d, -f1 | sed 1d' \
    --problem 'rope_table rotary_dim=4 batch=2' --positions 7,9
alike 'positions of the problem are those of the option' \
    --problem 'rope_table rotary_dim=64 position_kind=i64 positions=-497577,0,1715512116' = \
    --problem 'rope_table rotary_dim=64' --positions -497577,0,1715512116
prints 'batches follow each other' '0 1 100 101' 'cut -d, -f1 | sed 1d' \
    --problem 'rope_table rotary_dim=4 batch=2 tokens=2 position_kind=i64 batch_shift=100'
prints 'and so has each axis' 'position 7 9' 'cut -d, -f1' \
    --problem 'rope_table rotary_dim=4 mrope_section=1,1 position_kind=i64 mrope_grid=2' --positions 7,9
picture='rope_table rotary_dim=20 mrope_section=4,3,3 tokens=16'
prints 'a picture row by row' 'position[0],position[1],position[2] 0,0,0 0,0,4 0,1,0 0,3,0' \
    'cut -d, -f1-3 | sed -n "1p;2p;6p;7p;17p"' --problem "$picture" --grid 5
# Coordinates of DETR: the times of a row differ by axis.
detr='sinusoidal dim=8 mrope_section=2,2 mrope_layout=qwen2_vl_vision tokens=5 position_kind=f32 mrope_grid=2 time_step=0.3'
prints 'times of each axis' '0,0 0.300000012,1.29999995 1.60000002,0.600000024 1.89999998,1.89999998 3.20000005,1.20000005' \
    'sed 1d | cut -d, -f1,2' --problem "$detr"
cut -d, -f3-6 stdout | sed 1d >wanted
prints 'rotate its columns' "$(paste -s -d ' ' wanted)" 'cut -d, -f2- | sed 1d' \
    --problem 'sinusoidal dim=4' --positions 0,0.300000012,1.60000002,1.89999998,3.20000005
alike 'it is a field of the problem' --problem "$picture position_kind=i64 mrope_grid=5" = --problem "$picture" --grid 5

# ---- Values: by backend, of any kernel ----

# An f64 rotation has the wrong sign there: cos(1715512116 10000^(-50/512)), to 60 digits.
value() { # BACKEND WANTED
    run "$POSENC" table --problem 'sinusoidal dim=512' --positions 1715512116 --backend "$1"
    same "next to a zero, by $1" "$(sed 1d stdout | cut -d, -f53)" "$2"
}
value scalar -2.24195154e-14
run "$POSENC" table --problem 'sinusoidal dim=512' --positions 1715512116 --backend libm
! sed 1d stdout | cut -d, -f53 | grep -q '^-'
verdict 'libm has the other sign'
prints 'slopes' '-0.125,-0.0625,0 -0.0078125,-0.00390625,0' 'sed 1d | cut -d, -f2-' \
    --problem 'alibi heads=2 queries=1 keys=3 query_offset=2 causal=true'
prints 'rows of a window have numbers' 'row 0 1 2 3' 'cut -d, -f1' \
    --problem 'window_bias heads=1 window_height=2 window_width=2 recipe=index'

# ---- Formats ----

run "$POSENC" table --problem 'sinusoidal dim=6 tokens=5 dtype=f16' -o x.npy
same 'npy: shape and type' "$(head -c 128 work/x.npy | tr -d '\0' | grep -ac "NUMPY.*'descr': '<f2'.*(5, 6)")" 1
same 'npy: bytes past an aligned header' "$(($(wc -c <work/x.npy) % 64))" 60
run "$POSENC" table --problem 'rope_table rotary_dim=6 dtype=bf16' --positions 0 --out safetensors:x
same 'safetensors: names and shapes' \
    "$(head -c 256 work/x | tr -d '\0' | grep -ac '"cos":{"dtype":"BF16","shape":\[1,3\].*"sin":{"dtype":"BF16"')" 1
# Cosines and sines of 0: 1 is 0x3f80.
same 'safetensors: bytes' "$(tail -c 12 work/x | od -An -tx1 | tr -d ' \n')" 803f803f803f000000000000
rm -f work/*

# ---- Columns: frequencies, drift, errors ----

# 500000^(-2i/128), slowed by 8 from pair 35 on (llama3); 2 pi / 1 positions a turn.
run "$POSENC" table frequencies --model llama-3.1-8b
same 'frequencies: names' "$(head -n 1 stdout)" pair,axis,radians,wavelength,unscaled_radians,unscaled_wavelength,attention_factor
same 'frequencies: values' "$(awk -F, 'NR == 2 { first = $3 == 1 && $5 == 1 && $4 - 6.283185307179586 < 1e-12 }
    $1 == 63 { w = exp(-126 / 128 * log(500000)); last = ($5 / w - 1) ^ 2 < 1e-20 && $5 / $3 == 8 && $6 * 8 == $4 }
    END { print NR, first + last }' stdout)" '65 2'
prints 'a pair that rests has no wavelength' '0,' 'tail -n 1 | cut -d, -f3,4' \
    frequencies --problem 'rope_table rotary_dim=8 scaling=proportional partial_rotary_factor=0.5'
prints 'axes' '0 1 1 2' 'sed 1d | cut -d, -f2' frequencies --problem 'rope_table rotary_dim=8 mrope_section=1,2,1'
# Unscaled ones are f64: those of an f32 mode differ by its rounding.
prints 'frequencies of an f32 mode are f32' 1 'awk -F, "\$1 == 1 { print (\$3 != \$5 && (\$3 / \$5 - 1) ^ 2 < 1e-13) }"' \
    frequencies --problem 'rope_table rotary_dim=128 numerics=hf_f32'

drift='rope_table numerics=hf_f32 rotary_dim=64 tokens=1'
run "$POSENC" table drift --problem "$drift position_offset=60000"
first=$(sed -n 's/^0.001,//p' stdout)
prints 'drift: limits, and a position for each' "limit 0.001 0.01" 'cut -d, -f1' drift --problem "$drift position_offset=60000"
prints 'drift: not before' '0.001,' 'sed -n 2p' drift --problem "$drift position_offset=$((first - 1))"
prints 'drift: from there on' "0.001,$first" 'sed -n 2p' drift --problem "$drift position_offset=$first"
prints 'drift: the exact mode has none' '0.001, 0.01,' 'sed 1d' drift --problem 'rope_table rotary_dim=64 tokens=60000'

# Exact is correctly rounded at any position, an f32 angle is not, nor a position in bf16 above 256.
run "$POSENC" table errors --problem 'rope_table rotary_dim=64' --backend scalar
same 'errors by position' "$(awk -F, '$2 == "" && $1 == "exact" && $3 == "scalar" { exact++; wrong += $5 > 2 ^ -25 }
    $1 == "hf_f32" && $4 > 1e6 && $5 > 1e-2 { far = 1 }
    $2 == "positions in bf16" { wrong += $4 == 128 && $5 > 2 ^ -25; bf16 += $4 > 512 && $5 > 0.1 }
    END { print exact, wrong + 0, far, (bf16 > 0) }' stdout)" '124 0 1 1'
run "$POSENC" table errors --backend scalar \
    --problem 'rope_table rotary_dim=64 scaling=yarn factor=4 original_max_position_embeddings=4096'
same 'errors: a mode that lacks the scaling is skipped by name' \
    "$status $(grep -c 'skipped: torch_exp_f32: scaling' stderr) $(grep -c torch_exp_f32 stdout)" '0 1 0'
finish
