#!/bin/sh
# Many runs in their order: files are made up, nothing is timed.
. "$(dirname "$0")/tap.sh"

# made NAME DAY COMMIT CPU SHARE ERROR: results of a run.
made() {
    {
        printf '{"t":"header","schema":"posenc.results/1","started":"2026-11-%02dT09:00:00Z","tool":{"version":"0.1.0","commit":"%s"},"mode":"quick"}\n' "$2" "$3"
        printf '{"t":"env","env_id":"%s","cpu":{"key":"%s","name":"a CPU of paper"},"build":{"type":"release"}}\n' "$4" "$4"
        for backend in avx2 scalar; do
            printf '{"t":"bench","kernel":"alibi","dtype":"f32","profile":"given","case":"alibi/f32/given/decode","backend":"%s","family":"template","median_ns":1000,"gbps":50.%s,"roof":{"gbps":100,"ratio":0.5},"threads":1}\n' $backend "$5"
        done
        printf '{"t":"conf","kernel":"alibi","dtype":"f32","profile":"given","case":"alibi/f32/given/far","backend":"avx2","family":"template","suite":"accuracy","status":"pass","err":{"metric":"ulp","max":%s,"limit":1.0}}\n' "$6"
        printf '{"t":"footer","complete":true}\n'
    } >"$1.jsonl"
}

day=1
while [ $day -le 20 ]; do
    error=0.5
    [ $day -le 15 ] || error=0.75
    made "r$day" $day "aaaaaa$(printf %02d $day)" paper $((day % 3)) $error
    day=$((day + 1))
done

# shows NAME PATTERN ARGUMENTS...: exit 0, and a line that matches.
shows() {
    name=$1 pattern=$2
    shift 2
    run env COLUMNS=100 sh -c '"$POSENC" results trend ../r*.jsonl "$@"' sh "$@"
    if [ $status != 0 ]; then
        fail "$name" "exit $status"
    elif ! grep -Eq -e "$pattern" stdout; then
        fail "$name" "not found: $pattern"
    else
        pass "$name"
    fi
}

shows 'runs in their order' '20 runs from aaaaaa0 to aaaaaa2; 2 cases timed'
shows 'what stays is not called a change' 'No change of level was found'
shows 'an error that grew is told, and is no gate' 'alibi/f32/given/far.*0.50 ulp.*0.75 ulp.*worse'
run env LC_ALL=C sh -c '"$POSENC" results trend ../r*.jsonl'
same 'without UTF-8 nothing but ASCII' "$status $(LC_ALL=C grep -c '[^ -~]' stdout)" '0 0'
shows 'a backend alone' '; 1 cases? timed' --backend avx2
shows 'a case by its pattern' '; 0 cases timed' --case '*far'

made r21 21 aaaaaa21 other 1 0.5
shows 'another CPU has a history of its own' 'History on other'
seq 21 -1 2 | sed 's/^\(.\)$/0\1/; s/^/aaaaaa/' >order
run sh -c '"$POSENC" results trend ../r*.jsonl --commits ../order'
same 'commits in an order that is given' "$status $(grep -c '/r1.jsonl: its commit is not in the list' stderr)" '0 1'
refuses 'no file' 'arguments are required: FILE' results trend
refuses 'a kernel that the files have not' 'no file has a result of that kernel' results trend ../r1.jsonl --kernel t5
refuses 'a list of commits that is not there' 'nowhere' results trend ../r1.jsonl --commits nowhere
echo '{"t":' >broken.jsonl
refuses 'a damaged file, by its line' 'line 1 is no record: .*broken.jsonl' results trend ../r1.jsonl ../broken.jsonl
finish
