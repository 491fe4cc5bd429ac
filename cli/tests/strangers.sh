#!/bin/sh
# What strangers write (records, file names, golden vectors) neither reaches a terminal or a page as anything but text,
# nor is taken for ours.
saved=$(cd "$(dirname "$0")/../../reports/tests" && pwd)/run.jsonl
. "$(dirname "$0")/tap.sh"
LC_ALL=C
export LC_ALL
escape=$(printf '\033') turn=$(printf '\342\200\256')

# A run of which every text holds an escape sequence, a direction of writing, HTML, a link of Markdown, code without an
# end, commands of GitHub's runners, of a shell and of gnuplot, the end of a string; and at its begin a formula.
cat >work/plain.jsonl <<'JSON'
{"t":"header","schema":"posenc.results/2","run_id":"1","started":"@","tool":{"version":"@"},"mode":"@","command":"bench","argv":["posenc","@"]}
{"t":"env","env_id":"@","cpu":{"key":"@","name":"@"},"build":{"type":"release"},"emulator":"@"}
{"t":"backend","id":"@","family":"@","description":"@","available":true,"unavailable_reason":"@"}
{"t":"check","case":"@","kernel":"@","dtype":"@","numerics":"@","backend":"@","family":"@","suite":"@","status":"fail","reason":"@","command":"@","error":{"metric":"ulp","max":3,"limit":1,"worst_at":"@","got":"@","want":"@"}}
{"t":"check","case":"@2","kernel":"@","dtype":"f32","numerics":"@","backend":"@","family":"@","suite":"@","status":"crash","reason":"@","command":"@"}
{"t":"bench","case":"@","kernel":"@","dtype":"@","numerics":"@","backend":"@","family":"@","footprint":{"name":"@","bytes":100},"threads":1,"rounds":9,"median_ns":5,"min_ns":4,"ci":{"level":0.9,"lo":4,"hi":6},"gbps":2,"roofline":{"kind":"@","variant":"@","gbps":3},"bound":{"resource":"@","kind":"@","variant":"@","gbps":4,"share":0.5}}
{"t":"bench","case":"@3","kernel":"@","backend":"@","rejected":"wrong: @"}
{"t":"model","name":"@","title":"@","source":"@","notes":"@","encoding":"@","cases":[{"case":"@","label":"@","kernel":"@","step":"@","calls":2}]}
{"t":"pair","kernel":"@","dtype":"f32","numerics":"@","case":"@","backend":"@","family":"@","base":{"ns":50.0},"head":{"ns":55.0},"ratio":1.1,"ci":{"level":0.99,"lo":1.09,"hi":1.12},"noise_threshold":0.01,"threshold":0.03,"verdict":"slower","reason":"@","confirmed":true,"processes":3,"rounds":31}
{"t":"change","kernel":"@","dtype":"f32","numerics":"@","case":"@","backend":"@","suite":"@","what":"error","worse":true,"worst_at":"@","metric":"ulp","base":{"max":1},"head":{"max":2},"problem":"@"}
{"t":"doctor","findings":[{"what":"@","level":"costs","evidence":"@","fix":"@","command":"@"}],"quality":{"grade":"C","reasons":[]}}
{"t":"footer","complete":true,"noise":{"load1":3}}
JSON
hostile='=x\u001b[2J\u009b1m\u202e<script>x</script>[l](javascript:x)@x\n::error::no ::error::no ##[group]z |%q `touch ran` $(touch ran) \" '"'"' `<script>x'
sed "s|@|$(printf %s "$hostile" | sed 's/\\/\\\\/g; s/[&|]/\\&/g')|g" work/plain.jsonl >work/hostile.jsonl

clean() { # NAME FILE: no byte that a terminal obeys
    if grep -q -e "$escape" -e "$turn" "$2" || tr -d '\n\r\t\040-\377' <"$2" | grep -q .; then
        fail "$1" "$(tr -d '\n\r\t\040-\377' <"$2" | od -c | head -n 3)"
    else
        pass "$1"
    fi
}
for format in console md html csv junit summary comment annotations badge gbench gha bmf baseline jsonl; do
    case $format in
    console) run "$POSENC" report hostile.jsonl -v ;;
    md | html | jsonl) run "$POSENC" report hostile.jsonl --out "$format" ;;
    *) run "$POSENC" results export hostile.jsonl --format "$format" ;;
    esac
    case $status in 0) ;; *) fail "$format is written" "exit $status" ;; esac
    clean "$format: nothing that a terminal obeys" stdout
    case $format in
    console) grep -q '^ *::\|##\[' stdout ;;
    annotations) grep -v '^::\(error\|warning\|notice\) title=' stdout | grep -q . ;;
    html) grep -q '<script>x' stdout ;;
    md | summary | comment) # code apart, which says what stands in it
        awk '/^```/ { inside = !inside; next } !inside' stdout | sed 's/\\`//g; s/`[^`]*`//g' |
            grep -q '\(^\|[^\]\)\(<script>x\|\[l\](\|`\)'
        ;;
    junit) grep -q '<script>' stdout ;;
    csv) grep -q '\(^\|,\)"*[=+@]' stdout ;;
    *) false ;;
    esac
    same "$format: nothing that its reader obeys" $? 1
done
rm -f work/*

# A file name.
name=$(printf 'no\033[31m\n::error::x\342\200\256')
run "$POSENC" report "$name"
clean 'a file name in a message' stderr
same 'on one line' "$(wc -l <stderr | tr -d ' ')" 1

# Golden vectors that are others: a letter of a note changes, and then its hash.
mkdir work/other
cp -R "$GOLDEN/cases" "$GOLDEN/vectors" work/other
sed 's/| a base that grows with/| A base that grows with/' "$GOLDEN/cases/flags.txt" >work/other/cases/flags.txt
run "$POSENC" vectors info --vectors other
if [ $status = 2 ] && grep -q 'altered.*SHA256SUMS says' stderr; then
    pass 'a file that was altered is refused'
else
    fail 'a file that was altered is refused' "exit $status"
fi
# shellcheck disable=SC2046  # a list of names
(cd work/other && sha256sum $(cut -c67- vectors/SHA256SUMS) >"$scratch/sums" && cp "$scratch/sums" vectors/SHA256SUMS)
run "$POSENC" vectors info --vectors other
same 'with hashes that fit it is read' $status 0
same 'and called what it is' "$(head -n 1 stdout | grep -c ': not the official vectors$')" 1
one="--vectors other --kernel alibi --backend scalar --suite vectors"
for format in console md html csv junit summary comment annotations badge jsonl baseline; do
    # shellcheck disable=SC2086  # a list of words
    run "$POSENC" verify $one --out $format
    case $format in jsonl | baseline) note='"official":false' ;; *) note='not the official vectors' ;; esac
    if [ $status = 0 ] && grep -q "$note" stdout; then
        pass "$format says that the vectors are others"
    else
        fail "$format says that the vectors are others" "exit $status"
    fi
done
run "$POSENC" verify --kernel alibi --backend scalar --suite vectors
if grep -q 'not the official' stdout stderr; then fail 'of ours that is not said' 'it is'; else pass 'of ours that is not said'; fi
finish
