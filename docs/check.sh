#!/bin/sh
# Whether docs/encodings.md can be relied on: every test it names as the measure of a claim is there and
# passes, every picture is there, and posenc explains what the text says it does.
#
#   sh docs/check.sh [POSENC]      POSENC: the program, build/posenc unless given
set -eu
posenc=${1:-build/posenc}
docs=$(dirname "$0")
text=$docs/encodings.md
wrong=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

complain() # WHAT
{
    echo "encodings.md: $1" >&2
    wrong=$((wrong + 1))
}

# The whole text in one line, without the marks of quotations.
sed 's/^> *//' "$text" | tr '\n' ' ' > "$work/line"

# The names between "*measured*" and the next parenthesis.
awk '{
    n = split($0, after, /\*measured\*(: | \()/)
    for (i = 2; i <= n; i++) {
        m = split(substr(after[i], 1, index(after[i], ")")), word, "`")
        for (k = 2; k <= m; k += 2)
            print word[k]
    }
}' "$work/line" | grep -vx -e law -e accuracy | sort -u > "$work/names"
# All in one run, which costs less than a run for each: ids of cases, and how they ended.
"$posenc" verify --backend scalar --out "csv:$work/all" > "$work/result" 2>&1 < /dev/null || true
awk -F, '{ print $7, $11 }' "$work/all" > "$work/ended"
while read -r name; do
    awk -v name="$name" '
        $1 == name || substr($1, length($1) - length("/properties/" name) + 1) == "/properties/" name {
            n++
            bad += $2 != "pass"
        }
        END { exit !n || bad }' "$work/ended" || complain "$name: not there, or it fails"
done < "$work/names"

grep -o '`posenc explain [a-z0-9_]*`' "$work/line" | tr -d '`' | awk '{ print $3 }' | sort -u > "$work/topics"
while read -r topic; do
    "$posenc" explain "$topic" > "$work/result" 2>&1 < /dev/null || complain "posenc explain $topic is refused"
done < "$work/topics"

for picture in $(sed -n 's/^!\[.*](\(.*\.svg\))$/\1/p' "$text"); do
    [ -s "$docs/$picture" ] || complain "$picture is not there"
done

echo "$(wc -l < "$work/names") tests, $(wc -l < "$work/topics") explanations, $wrong wrong"
[ $wrong = 0 ]
