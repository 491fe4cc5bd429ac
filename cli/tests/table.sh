#!/bin/sh
# posenc table: shapes, formats, the hard positions, and the same bytes from a whole family.
. "$(dirname "$0")/tap.sh"

hard=0,1000000,16777216,2147482648,497577,1715512116,-497577
family=$("$POSENC" list backends | awk 'NR > 3 && /^[*+ ] [a-z]/ { split(substr($0, 3), f, " ")
    if (f[2] == "template" && f[4] == "yes" && f[1] != "scalar") print f[1] }')

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
same() {
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got $2, want $3"; fi
}
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
run "$POSENC" table sinusoidal --dim 8 --tokens 3 --backend autovec
if [ -n "$(usable | grep '^autovec')" ]; then
    same 'a family by name' "$status" 0
else
    same 'a family that cannot run' "$status" 2
fi
echo old >work/x.csv
run "$POSENC" table sinusoidal --dim 8 --tokens 1 --out csv:x.csv
same 'an old file is replaced' "$(head -c 8 work/x.csv)" position
ln -s x.csv work/link.csv
run "$POSENC" table sinusoidal --dim 2 --tokens 1 --out csv:link.csv
same 'a link stays a link, its target is written' "$(test -L work/link.csv && head -n 1 work/x.csv)" 'position,sinusoidal[0],sinusoidal[1]'
finish
