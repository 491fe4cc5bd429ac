#!/bin/sh
# Draws the pictures of docs/encodings.md and puts them beside it.  What gnuplot writes into an SVG and
# nobody sees is left out (empty groups, defaults, indentation), which takes away a third.
#
#   sh docs/pictures.sh [POSENC]      POSENC: the program, build/posenc unless given
set -eu
posenc=${1:-build/posenc}
docs=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

picture() # NAME KIND [OPTIONS]
{
    name=$1
    shift
    "$posenc" plot "$@" --backend scalar --out svg:"$work/$name.svg" > "$work/facts" 2> "$work/told" || {
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

picture sinusoidal sinusoidal --dim 128 --tokens 64
picture learned learned --dim 64 --tokens 32
picture rope rope --tokens 64
picture xpos xpos --dim 128 --tokens 384
picture alibi alibi --tokens 64
picture bias bias --tokens 192
picture t5 t5
picture swin swin
picture deberta deberta
