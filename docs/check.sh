#!/bin/sh
# Checks claims and numbers of the documentation, and prints those that are wrong:
#
# - encodings.md and misconceptions.md: every test that they name as the measure of a claim passes, every picture exists, and
#   posenc explains each topic that they name
# - misconceptions.md: each entry has a number and a command, and the command prints the number
# - how-to.md: it quotes each task of examples/tasks.c, whole
# - README and docs: counts and names are those of the program, speeds those of docs/speed.jsonl
#
#   sh docs/check.sh [POSENC]      the program (default: build/posenc)
set -eu
posenc=${1:-build/posenc}
docs=$(dirname "$0")
root=$docs/..
text=$docs/encodings.md
misconceptions=$docs/misconceptions.md
wrong=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

complain() { # WHAT [FILE]
    echo "${2:-encodings.md}: $1" >&2
    wrong=$((wrong + 1))
}

# The whole text in one line, without the marks of quotations.
sed 's/^> *//' "$text" | tr '\n' ' ' >"$work/line"

# The names between "*measured*" and the next parenthesis.
awk '{
    n = split($0, after, /\*measured\*(: | \()/)
    for (i = 2; i <= n; i++) {
        m = split(substr(after[i], 1, index(after[i], ")")), word, "`")
        for (k = 2; k <= m; k += 2)
            print word[k]
    }
}' "$work/line" | grep -vx -e accuracy >"$work/named"

# Entries of misconceptions.md, one a line: statement, number, what shows it.
awk '
    function flush() { if (entry != "") print entry "\t" (number == "" ? "-" : number) "\t" (shown == "" ? "-" : shown) }
    /^##/ { flush(); entry = number = shown = part = ""; if (sub(/^### /, "")) entry = $0; next }
    /^- Number: / { part = "number" }
    /^- Shown by: / { part = "shown" }
    /^$/ { part = "" }
    part == "number" { number = number " " $0 }
    part == "shown" { shown = shown " " $0 }
    END { flush() }' "$misconceptions" >"$work/entries"
[ -s "$work/entries" ] || complain 'no entries' misconceptions.md

print_quoted() { # TEXT: prints the texts between backticks, one a line
    printf '%s\n' "$1" | tr '`' '\n' | sed -n 'n;p' | tr -s ' '
}

is_printed() { # NUMBER: succeeds if "$work/printed" has a field that rounds to it; the first field of a line names the row
    awk -F, -v want="$1" '
        BEGIN {
            digits = want
            sub(/e.*/, "", digits)
            sub(/^[^.]*[.]?/, "", digits)
            form = "%." length(digits) (want ~ /e/ ? "e" : "f")
        }
        { for (i = 2; i <= NF; i++) found += $i == want "" || ($i ~ /^-?[0-9]/ && sprintf(form, $i) == want "") }
        END { exit !found }' "$work/printed"
}

while IFS='	' read -r statement number shown; do
    [ "$number" != - ] || complain "$statement: no number" misconceptions.md
    case $shown in *'`posenc '* | *'`docs/claims.py '* | *'Proof: '*) ;; *) complain "$statement: no command shows it" misconceptions.md ;; esac
    : >"$work/printed"
    print_quoted "$shown" >"$work/commands"
    while read -r command; do
        case $command in
        'posenc verify --case '*) echo "${command#posenc verify --case }" | sed "s/^'//; s/'\$//; s,^[*]/properties/,," >>"$work/named" ;;
        'docs/claims.py '*) echo "${command#docs/claims.py }" >>"$work/named" ;;
        'posenc table '*)
            eval "\"\$posenc\" ${command#posenc }" >>"$work/printed" 2>"$work/result" </dev/null ||
                complain "$command fails: $(head -n 1 "$work/result")" misconceptions.md
            ;;
        *) complain "$statement: '$command' is neither posenc table, posenc verify --case nor docs/claims.py" misconceptions.md ;;
        esac
    done <"$work/commands"
    print_quoted "$number" >"$work/numbers"
    [ ! -s "$work/printed" ] || [ -s "$work/numbers" ] || complain "$statement: no number that its command prints" misconceptions.md
    while read -r value; do
        is_printed "$value" || complain "$statement: no command of it prints $value" misconceptions.md
    done <"$work/numbers"
done <"$work/entries"

sort -u "$work/named" >"$work/names"
# One run of all cases costs less than a run for each.
"$posenc" verify --backend scalar --out "csv:$work/all" >"$work/result" 2>&1 </dev/null || true
awk -F, '{ print $7, $11 }' "$work/all" >"$work/ended"
POSENC=$posenc python3 "$docs/claims.py" >>"$work/ended" || true
while read -r name; do
    awk -v name="$name" '
        $1 == name || substr($1, length($1) - length("/properties/" name) + 1) == "/properties/" name {
            n++
            bad += $2 != "pass"
        }
        END { exit !n || bad }' "$work/ended" || complain "$name: not there, or it fails" 'encodings.md or misconceptions.md'
done <"$work/names"

tr '\n' ' ' <"$misconceptions" | cat "$work/line" - | grep -o '`posenc explain [a-z0-9_]*`' | tr -d '`' | awk '{ print $3 }' | sort -u >"$work/topics"
while read -r topic; do
    "$posenc" explain "$topic" >"$work/result" 2>&1 </dev/null || complain "posenc explain $topic is rejected"
done <"$work/topics"

for picture in $(sed -n 's/^!\[.*](\(.*\.svg\))$/\1/p' "$text"); do
    [ -s "$docs/$picture" ] || complain "$picture is not there"
done

check_count() { # NUMBER WORDS: README says "NUMBER WORDS", and no page has another number before these words
    for page in "$root/README.md" "$root/CONTRIBUTING.md" "$docs"/*.md "$docs"/performance/*.md; do
        tr '\n' ' ' <"$page" | grep -oE "[0-9]+ $2" | grep -vx "$1 $2" | sort -u >"$work/others" || true
        [ ! -s "$work/others" ] || complain "$(tr '\n' ';' <"$work/others") the program counts $1" "$page"
    done
    check_text README.md "$1 $2"
}

check_text() { # FILE WORDS: the file has them, on one line or several
    tr '\n' ' ' <"$root/$1" | tr -s ' ' | grep -qF -e "$2" || complain "it does not say '$2'" "$1"
}

"$posenc" list types >"$work/types"
count_types() { # WORDS: prints the number before them at the end of posenc list types
    sed -n "s/.*: \([0-9][0-9]*\) $1.*/\1/p" "$work/types"
}
check_count "$("$posenc" list models | sed 1d | wc -l)" 'presets'
check_count "$("$posenc" list kernels | sed 1d | grep -c '^[a-z]')" 'kernels'
check_count "$(count_types 'read, ')" 'model types of Hugging Face'
check_count "$(count_types 'read as')" 'architectures of GGUF'
check_count "$(grep -cE " [0-9a-f]{64}\$" "$root/conformance/engine/digests.txt")" 'committed SHA-256 digests'
# Rows of the table of README name what the program lists.
"$posenc" list numerics >"$work/modes"
[ "$(sed 1d "$work/modes" | grep -c .)" = 4 ] || complain 'it names four numerics modes' README.md
"$posenc" list scalings | sed '1d; s/ .*//; /^none$/d; /_/d' | sort >"$work/scalings"
sed -n 's/^| scalings | \([^;]*\);.*/\1/p' "$root/README.md" | sed 's/, /\
/g' | sort | cmp -s - "$work/scalings" || complain "its scalings are not $(tr '\n' ' ' <"$work/scalings")" README.md
{ "$posenc" list kernels && "$posenc" list methods; } >"$work/listed"
sed -n 's/^| encodings | [^;]*; \(.*\) |$/\1/p' "$root/README.md" | sed 's/; /\
/g' >"$work/encodings"
[ -s "$work/encodings" ] || complain 'no encodings' README.md
while read -r encoding; do
    grep -qiF -e "$encoding" "$work/listed" || complain "no kernel or method is for $encoding" README.md
done <"$work/encodings"
surveyed=$(sed -n 's/^The library has \([0-9]*\) types of models.*/\1/p' "$docs/models.md")
check_text docs/models.md "\`posenc list types\` prints these and $(($(count_types 'model types') - surveyed)) more"

# The how-to page quotes each task. test_pages.py checks that it quotes nothing else.
awk 'NR == FNR { page = page $0 "\n"; next } /---- Their check/ { exit }
    /^static/ { name = $0; task = "\n" } name != "" { task = task $0 "\n" }
    /^}/ { if (!index(page, task)) print name; name = "" }' "$docs/how-to.md" "$root/examples/tasks.c" >"$work/unquoted"
[ ! -s "$work/unquoted" ] || complain "it does not quote, as they stand: $(cat "$work/unquoted")" how-to.md

# Measurements in README are those of the pages that say how they were made.
sampled=$(sed -n 's/^| `exact`, sampled | \([0-9 ]*[0-9]\) | 0 |.*/\1/p' "$docs/accuracy.md")
hardest=$(sed -n 's/^| `exact`, searched: .* | \([0-9.]* ulp\) |$/\1/p' "$docs/accuracy.md")
check_text README.md "All $sampled sampled table values are correctly rounded"
check_text README.md "the error is at most $hardest"
quick=$(sed -n 's/^| `--quick` | \([0-9]*\) | [0-9]* | .*/\1/p' "$docs/trust.md")
full=$(sed -n 's/^| `--full` | \([0-9]*\) | \([0-9]*\) | .*/\1 of \2/p' "$docs/trust.md")
check_text README.md "detected ${full:?} faults"
check_text README.md "\`--quick\` detected ${quick:?} ("
awk -F'|' '/^[|] the same, / { rows += $3; alarms += $4 + $5 } /^[|] slowed by 5 % / { slowed += $3; missed += $3 - $4 }
    END { if (!alarms && !missed) print rows " comparisons of identical code"; print slowed " slowdowns of 5 %" }' "$docs/verdicts.md" >"$work/verdicts"
while read -r verdict; do check_text README.md "$verdict"; done <"$work/verdicts"
[ "$(wc -l <"$work/verdicts")" = 2 ] || complain 'its table has a false alarm, or a slowdown that was missed' verdicts.md

# Speeds in README are those of the records that its picture is drawn from.
"$posenc" results export "$docs/speed.jsonl" --format csv -o "$work/speed" --force
print_speedup() { # CASE BACKENDS FORMAT: prints how many times as fast as the best of these avx512 is, by printed medians
    awk -F, -v id="$1" -v than="^($2)\$" -v form="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) { sub(/\r$/, "", $i); at[$i] = i }; next }
        $at["case"] != id || $at["median_ns"] == "" { next }
        { time = sprintf("%.3g", $at["median_ns"]) + 0 }
        $at["backend"] == "avx512" { own = time }
        $at["backend"] ~ than && (!other || time < other) { other = time }
        END { printf form, own ? other / own : 0 }' "$work/speed"
}
table=rope_table/f32/exact/l2 rotation=rope_half/f32/given/l2
memory=rope_half/f32/given/dram
check_text README.md "computed $(print_speedup $table libm %.0f)× faster than in plain C and $(print_speedup $table 'sleef.*' %.1f)× faster than with SLEEF"
check_text README.md "is $(print_speedup $rotation libm %.1f)× faster than in plain C and $(print_speedup $rotation 'autovec.*' %.1f)× faster than compiler"
check_text README.md "these are $(print_speedup $memory libm %.1f)× and $(print_speedup $memory 'autovec.*' %.1f)×"

echo "$(wc -l <"$work/names") tests, $(wc -l <"$work/entries") misconceptions, $(wc -l <"$work/topics") explanations, $wrong wrong"
[ $wrong = 0 ]
