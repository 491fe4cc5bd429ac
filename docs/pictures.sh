#!/bin/sh
# Draws all pictures of README and docs, as SVG files beside this script.
#
#   sh docs/pictures.sh [POSENC]         draws them by this program (default: build/posenc)
#   sh docs/pictures.sh POSENC speed     measures docs/speed.jsonl on this machine, and draws it
set -eu
posenc=${1:-build/posenc}
docs=$(dirname "$0")

picture() { # KIND [OPTIONS]
    "$posenc" plot "$@" --force -o "$docs/$1.svg"
}

# Timings run on one CPU, since a process that moves between CPUs loses its caches.
if [ "${2:-}" = speed ]; then
    pin=$(command -v taskset >/dev/null && echo 'taskset -c 1' || true)
    $pin "$posenc" bench --full --time-limit 75 --force --out "jsonl:$docs/speed.jsonl" \
        --backend avx512 --backend avx2 --backend sleef --backend autovec --backend libm \
        --case 'rope_half/f32/given/l2' --case 'rope_half/f32/given/dram' --case 'rope_table/f32/exact/l2'
    picture speed "$docs/speed.jsonl"
    exit
fi
for kind in attention sinusoidal rope frequencies mrope alibi t5 swin deberta buckets error; do
    picture $kind
done >/dev/null
picture learned --dim 64 --tokens 32 >/dev/null
picture xpos --dim 128 --tokens 384 >/dev/null
picture bias --tokens 192 >/dev/null
picture speed "$docs/speed.jsonl" >/dev/null
