#!/bin/sh
# Two builds side by side: what does not depend on the clock.  LIBRARY is the libposenc.so of this build.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"

# A small shape of the plug-ins' kernel.  It has taken all of its rounds in some hundredths of a second; the time limit is
# never reached, however long the machine takes to start a process or to count.
small='alibi heads=2 queries=16 keys=16'
short='--time-limit 3600 --processes 1'

# What a record of a pair says: member_of FILE MEMBER [BACKEND]
member_of() {
    grep '"t":"pair"' "$1" | grep "\"backend\":\"${3-}" | sed -n "s/.*\"$2\":\"\{0,1\}\([^\",}]*\).*/\1/p" | tr '\n' ' '
}

# compares NAME EXIT VERDICTS ARGUMENTS...: exit code and the verdicts of the records, in order.
compares() {
    name=$1 want=$2 verdicts=$3
    shift 3
    run "$POSENC" compare "$@" --out jsonl
    got=$(member_of stdout verdict)
    if [ $status = "$want" ] && [ "$got" = "$verdicts" ]; then
        pass "$name"
    else
        fail "$name" "exit $status, want $want; verdicts: $got, want: $verdicts"
    fi
}

refuses 'two builds are needed' 'expected two builds' compare "$PLUGIN"
refuses 'no more than two' 'expected two builds' compare "$PLUGIN" "$PLUGIN" "$PLUGIN"
refuses 'what is not there is refused by name' 'nowhere.so: No such file' compare "$PLUGIN" ./nowhere.so
refuses 'so is what is no build' 'plugin.c.*expected a build of libposenc' compare "$PLUGIN" "$root/cli/tests/plugin.c"
refuses 'and what exports nothing' 'expected a build of libposenc' compare "$PLUGIN_NONE" "$PLUGIN"
refuses 'a backend of neither' 'expected one of example' compare "$PLUGIN" "$PLUGIN" --backend avx9
refuses 'a kernel of neither' 'neither build has' compare "$PLUGIN" "$PLUGIN" --kernel rope_half
refuses 'a threshold of nothing' 'threshold: expected a number above 0.*got .0.' compare "$PLUGIN" "$PLUGIN" --threshold 0
run "$POSENC" compare "$PLUGIN" "$PLUGIN_ABI"
if [ $status = 5 ] && grep -q 'ABI 999' stderr && grep -q "this program of ABI $(sed -n 's/^#define POSENC_ABI \([0-9]*\)u/\1/p' "$root/impl/include/posenc.h")" stderr; then
    pass 'another ABI is incomparable, exit 5, with both numbers'
else
    fail 'another ABI is incomparable, exit 5, with both numbers' "exit $status"
fi
run "$POSENC" compare --help
same 'help tells of exit codes' "$(grep -c 'Exit codes: 0 success, 1' stdout)" 1

# Results: bits, statuses and errors, on the problems of the suites, whatever is timed.
changes() { # FILE: how many there are of what, worse or not
    grep '"t":"change"' "$1" | sed 's/.*"what":"\([a-z]*\)","worse":\([a-z]*\).*/\1 \2/' | LC_ALL=C sort | uniq -c | awk '{ print ($1 > 1 ? "many" : 1), $2, $3 }' | tr '\n' ' '
}
# shellcheck disable=SC2086
run "$POSENC" compare "$PLUGIN" "$PLUGIN_WRONG" --problem "$small" $short --out jsonl
same 'a wrong head: bits and statuses, all worse' "$status $(changes stdout)" '1 many bits true many status true '
same 'with kernel, place, values of both, the truth, errors and limit' "$(grep '"case":"alibi/f32/given/digest-h4".*"what":"bits"' stdout |
    grep -c '"base":{"max":0.0,"value":"0x0p+0"},"head":{"max":"inf","value":"-0x1p-2"},"metric":"exact","limit":0.0,"worst_at":"batch 0 head 0 query 0 key 4","want":"0x0p+0","moved":180,"of":180.*"first":{"worst_at":"batch 0 head 0 query 0 key 0","base":"-0x1p+0","head":"-0x1.4p+0"}')" 1
# shellcheck disable=SC2086
run "$POSENC" compare "$PLUGIN_WRONG" "$PLUGIN" --problem "$small" $short --out jsonl
same 'mended: the same, all better' "$status $(changes stdout)" '0 many bits false many status false '
# shellcheck disable=SC2086
run "$POSENC" compare "$PLUGIN" "$PLUGIN_COUNTED" --problem "$small" $short -o same.jsonl
same 'the same results: no change, and what was compared is said' \
    "$(changes work/same.jsonl)$(grep '"t":"agreement"' work/same.jsonl | grep -c '"kernel":"alibi","backend":"example".*"problems":[1-9][0-9]*,"values":[1-9][0-9]*,"moved":0,"cases":[1-9][0-9]*,"failed":0')" 1
same 'and in words' "$(tr -d '\n' <stdout | grep -c 'Results of [0-9 ]* cases, and [0-9 ]* values of [0-9 ]* *problems: 0 worse, 0 better, 0 otherwise changed\.')" 1
rm -f work/same.jsonl
# shellcheck disable=SC2086
run "$POSENC" compare "$PLUGIN" "$PLUGIN_CRASH" --problem "$small" $short --out jsonl
same 'a head that ends the process is a change, too' \
    "$status $(grep '"t":"change"' stdout | grep -c '"what":"status","worse":true,"base":{"status":"pass"},"head":{"status":"crash"},"reason":"the process ended by signal 6')" '1 1'

# Code that is the same has one verdict whatever the clock says; where it is not, its instructions are counted.
run "$POSENC" compare "$PLUGIN" "$PLUGIN" --problem "$small" $short --out jsonl
same 'a plug-in beside itself has the same code, and is neither timed nor counted' \
    "$(member_of stdout verdict)$(grep -c '"ratio"' stdout) $(grep -c '"t":"count"' stdout)" 'identical 0 0'
case $(uname -m) in x86_64) changed='element row' ;; *) changed= ;; esac # elsewhere nothing is counted
for more in $changed; do
    eval "head=\$PLUGIN_$(echo $more | tr a-z A-Z)"
    run "$POSENC" compare "$PLUGIN_COUNTED" "$head" --problem "$small" $short --out jsonl
    same "an instruction more for each $more is not the same code, and is counted" \
        "$(grep -c '"verdict":"identical"' stdout) $(grep -c '"t":"count".*"build":"\(base\|head\)"' stdout)" '0 2'
    instructions=$(sed -n '/"t":"count"/s/.*"instructions":\([0-9]*\).*/\1/p' stdout | tr '\n' ' ')
    if [ "${instructions% * }" -lt "$(echo $instructions | cut -d' ' -f2)" ]; then
        pass 'and head takes more of them'
    else
        fail 'and head takes more of them' "$instructions"
    fi
done

# Verdicts on time depend on the machine, and one process is too few for any but these.
run "$POSENC" compare "$PLUGIN" "$PLUGIN" --problem "$small" --time-limit 3600 --identical --out jsonl
if [ $status = 0 ] && [ "$(member_of stdout backend)" = 'example ' ] && [ "$(member_of stdout processes)" -ge 3 ]; then
    pass 'a plug-in beside itself is timed in three processes'
else
    fail 'a plug-in beside itself is timed in three processes' "exit $status"
fi
cp stdout itself.jsonl
same 'header, samples, A/A control and roofline are in the records' \
    "$(grep -c '"t":"header".*"compare":{"base":{"path":".*"sha256":"[0-9a-f]\{64\}"' itself.jsonl) \
$(grep -c '"t":"pair".*"samples":{"head":\[\[[-0-9.e,]*\],\[[-0-9.e,]*\],\[[-0-9.e,]*\].*"control":\[\[' itself.jsonl) \
$(grep -c '"process_ratios":\[[0-9.]*,[0-9.]*,[0-9.]*.*"control_ratio":[0-9.]' itself.jsonl) $(grep -c '"roofline":{"kind":"store"' itself.jsonl)" '1 1 1 1'
same 'a footer ends them' "$(tail -n 1 itself.jsonl | grep -c '"t":"footer","complete":true')" 1

# A time limit that is spent before the first process has timed anything: unclear, which --strict alone minds.  What few
# processes settle is tested with samples that are made up (reports/tests/test_compare.py).
none='--time-limit 0.001 --processes 1'
# shellcheck disable=SC2086
compares 'no process settles nothing' 0 'unclear ' "$PLUGIN" "$PLUGIN_SLOW" --problem "$small" $none --gate
same 'and that is the reason' "$(member_of stdout processes)$(member_of stdout reason)" '0 no process has timed both '
# shellcheck disable=SC2086
compares 'and --strict says so: exit 4' 4 'unclear ' "$PLUGIN" "$PLUGIN_SLOW" --problem "$small" $none --gate --strict
# Twenty times as long is slower on any machine.
compares 'a gate fails where head is slower' 3 'slower ' "$PLUGIN" "$PLUGIN_SLOW" --problem "$small" --time-limit 3600 --gate
same 'which was confirmed' "$(member_of stdout confirmed)$(member_of stdout processes)" 'true 5 '
# shellcheck disable=SC2086
compares 'a wrong head: exit 1, no number' 1 'incomparable ' "$PLUGIN" "$PLUGIN_WRONG" --problem "$small" $short
same 'with its reason' "$(grep -c '"reason":"head: wrong: .*"failed":{"who":"head","how":"wrong"}' stdout) $(grep -c '"ratio"' stdout)" '1 0'
# shellcheck disable=SC2086
compares 'a wrong base is no fault of head' 0 'incomparable ' "$PLUGIN_WRONG" "$PLUGIN" --problem "$small" $short
same 'and is said' "$(grep -c '"failed":{"who":"base","how":"wrong"}' stdout)" 1
# shellcheck disable=SC2086
compares 'a head that crashes: exit 1' 1 'incomparable ' "$PLUGIN" "$PLUGIN_CRASH" --problem "$small" $short
same 'the signal and the side are said' "$(grep -c '"reason":"head: the process ended by signal 6' stdout)" 1
# shellcheck disable=SC2086
compares 'one that exits, as if all were well' 1 'incomparable ' "$PLUGIN" "$PLUGIN_EXIT" --problem "$small" $short
same 'likewise' "$(grep -c '"reason":"head: the process was ended by exit(0)' stdout)" 1
# shellcheck disable=SC2086
compares 'a crash in each of several cases is not the end' 1 'incomparable incomparable ' "$PLUGIN" "$PLUGIN_CRASH" \
    --case 'alibi/*/l[12]' --full $short

# shellcheck disable=SC2086
compares 'a kernel of head alone is new, and one that is wrong: exit 1' 1 'new ' "$PLUGIN" "$PLUGIN_MORE" --problem "alibi_add ${small#alibi}" $short
# shellcheck disable=SC2086
compares 'one of base alone is removed; nothing in common is incomparable' 5 'removed ' "$PLUGIN_MORE" "$PLUGIN" --problem \
    "alibi_add ${small#alibi}" $short
same 'and is a change for the worse' "$(grep -c '"case":"alibi_add/f32/supported".*"worse":true,"base":{"status":"pass"},"head":{"status":"unsupported"}' stdout)" 1

if [ -n "${LIBRARY-}" ] && [ -f "$LIBRARY" ]; then
    # shellcheck disable=SC2086
    run "$POSENC" compare "$LIBRARY" "$LIBRARY" --kernel rope_half --case '*/l2' $short --out jsonl:out.jsonl
    same 'every backend of a build that runs here is compared with itself' \
        "$status $(member_of work/out.jsonl backend | xargs -n 1 | sort | tr '\n' ' ')" \
        "0 $(usable | grep -v sleef | sort | tr '\n' ' ')"
    # shellcheck disable=SC2086
    run env POSENC_BACKEND=libm "$POSENC" compare "$LIBRARY" "$LIBRARY" --problem "rope_half head_dim=64 rotary_dim=64 heads=2 tokens=16 rows=16" \
        --backend scalar $short --out jsonl:forced.jsonl
    same 'a backend that the environment forces has no say' "$status $(member_of work/forced.jsonl backend)" '0 scalar '
    # shellcheck disable=SC2086
    run "$POSENC" compare "$LIBRARY" "$PLUGIN" --problem "$small" --backend scalar,example $short --out jsonl:mixed.jsonl
    same 'a build beside a plug-in has backends of one side alone' "$status $(member_of work/mixed.jsonl verdict)" '5 new removed '
    rm -rf work/*

    # Ended while a process times: a valid file, or none.
    cp "$LIBRARY" base.so
    timing() { has_process 'pair .*--part times .*base[.]so'; }
    # begins NAME: timings on every backend, in the background, until the first process of nine runs
    begins() {
        (cd work && exec "$POSENC" compare "$scratch/base.so" "$LIBRARY" --identical --kernel rope_half --processes 9 \
            --time-limit 36000 -o "$scratch/work/$1") >stdout 2>stderr &
        pid=$!
        await timing
    }
    begins ended.jsonl
    kill -TERM $pid
    wait $pid
    same 'SIGTERM ends it, and what there is is written' \
        "$? $(tail -n 1 work/ended.jsonl | grep -c '"t":"footer","complete":false') $(ls work)" '143 1 ended.jsonl'
    run "$POSENC" compare ended.jsonl ended.jsonl
    same 'which compare reads' "$status $(grep -c 'ended early in base' stdout)" '5 1'
    rm -rf work/*
    begins ended.md
    kill -KILL $pid
    wait $pid
    ends 'SIGKILL leaves no process' 'pair .*base[.]so'
    same 'and no file of that name' "$(find work -name ended.md)" ''
    rm -rf work/*
else
    skip 'a build of the library beside itself' 'this build has no shared library'
fi
finish
