#!/bin/sh
# Draws the pictures of docs/encodings.md and of README and puts them beside it.  Parts of gnuplot's SVG
# that nobody sees are left out (empty groups, defaults, indentation), which takes away a third.
#
#   sh docs/pictures.sh [POSENC]         POSENC: the program, build/posenc unless given
#   sh docs/pictures.sh POSENC speed     measures docs/speed.jsonl on this machine, and draws it alone
set -eu
posenc=${1:-build/posenc}
only=${2:-}
docs=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

picture() # NAME KIND [OPTIONS]
{
    name=$1
    shift
    "$posenc" plot "$@" --out svg:"$work/$name.svg" > "$work/facts" 2> "$work/told" || {
        cat "$work/told" >&2
        exit 1
    }
    awk '
        {
            gsub(/ stroke-linecap="butt" stroke-linejoin="miter"/, "")
            gsub(/<tspan font-family="[^"]*" >/, "<tspan>")
            gsub(/[ \t]+$/, "")
            sub(/^[ \t]+/, "")
        }
        /^<polygon fill = .rgb\(/ { # a step of a colour box, or a bar
            n = split($0, part, "\047")
            split(part[n - 1], at, /[ ,]/)
            gsub(/ /, "", part[2])
            if (at[2] == at[4] && at[3] == at[5] && at[6] == at[8] && at[1] == at[7])
                $0 = "<path fill=\047" part[2] "\047" (part[3] ~ /opacity/ ? " fill-opacity=\047" part[4] "\047" : "") \
                    " d=\047M" at[1] "," at[2] "H" at[3] "V" at[6] "H" at[1] "\047/>"
        }
        /^<g [^>]*>$/ { if (held != "") print held; held = $0; next }
        held != "" && $0 == "</g>" { held = ""; next }
        held != "" { print held; held = "" }
        $0 != "" { print }
    ' "$work/$name.svg" > "$docs/$name.svg"
}

# On one CPU, since a process that moves between CPUs loses its caches.
if [ "$only" = speed ]; then
    pin=$(command -v taskset > "$work/told" && echo 'taskset -c 1' || true)
    # shellcheck disable=SC2086  # a command or nothing
    $pin "$posenc" bench --full --budget 75 --force --out "jsonl:$docs/speed.jsonl" \
        --backend avx512 --backend avx2 --backend sleef --backend autovec --backend libm \
        --case 'rope_half/f32/given/l2' --case 'rope_half/f32/given/dram' --case 'rope_table/f32/exact/l2'
    picture speed speed "$docs/speed.jsonl"
    cat "$work/facts"
    exit
fi
encoding() # NAME KIND [OPTIONS]
{
    picture "$@" --backend scalar
}
encoding sinusoidal sinusoidal --dim 128 --tokens 64
encoding learned learned --dim 64 --tokens 32
encoding rope rope --tokens 64
encoding xpos xpos --dim 128 --tokens 384
encoding alibi alibi --tokens 64
encoding bias bias --tokens 192
encoding t5 t5
encoding swin swin
encoding deberta deberta
picture speed speed "$docs/speed.jsonl"
