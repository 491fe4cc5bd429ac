#!/bin/sh
# posenc compare on builds: results, code and verdicts that do not depend on the clock. LIBRARY is this build's libposenc.so.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"

# A small shape of the plug-ins' kernel. All of its rounds take some hundredths of a second, so that the time limit is never
# reached, however long the machine takes to start a process or to count.
small='alibi heads=2 queries=16 keys=16'

# Compares two builds in one process and prints records.
compare() { # BASE HEAD OPTIONS...
    run "$POSENC" compare --time-limit 3600 --processes 1 --out jsonl "$@"
}
compare_small() { # BASE HEAD OPTIONS...
    compare "$@" --problem "$small"
}

# Prints a member of each record of a pair in the last output.
member_of() { # MEMBER
    grep '"t":"pair"' stdout | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p" | tr '\n' ' '
}

# Checks the exit code of the last comparison, and the verdicts of its records in order.
concludes() { # NAME EXIT VERDICTS
    same "$1" "$status $(member_of verdict)" "$2 $3"
}

rejects 'what is not there is rejected by name' 'nowhere.so: cannot be loaded .No such file' compare "$PLUGIN" ./nowhere.so
rejects 'so is what is no build' 'plugin.c.*expected a build of libposenc' compare "$PLUGIN" "$root/cli/tests/plugin.c"
rejects 'and what exports nothing' 'expected a build of libposenc' compare "$PLUGIN_NONE" "$PLUGIN"
rejects 'a backend of neither' 'expected one of example' compare "$PLUGIN" "$PLUGIN" --backend avx9
rejects 'a kernel of neither' 'neither build has' compare "$PLUGIN" "$PLUGIN" --kernel rope_half
run "$POSENC" compare "$PLUGIN" "$PLUGIN_ABI"
[ $status = 5 ] && grep -q 'its ABI is 999' stderr && grep -q "that of this program $(sed -n 's/^#define POSENC_ABI \([0-9]*\)u/\1/p' "$root/impl/include/posenc.h")" stderr
verdict 'another ABI is incomparable, exit 5, with both numbers'
run "$POSENC" compare --help
same 'help tells of exit codes' "$(grep -c 'Exit codes: 0 success, 1' stdout)" 1

# ---- Results: bits, statuses and errors on the problems of the suites, whatever is timed ----

# Prints how many changes there are of each kind, and if they are worse: "1 bits true", or "many".
count_changes() {
    grep '"t":"change"' stdout | sed 's/.*"what":"\([a-z]*\)","worse":\([a-z]*\).*/\1 \2/' | LC_ALL=C sort | uniq -c |
        awk '{ print ($1 > 1 ? "many" : 1), $2, $3 }' | tr '\n' ' '
}
compare_small "$PLUGIN" "$PLUGIN_WRONG"
same 'a wrong head: bits and statuses, all worse' "$status $(count_changes)" '1 many bits true many status true '
same 'with kernel, place, values of both, the truth, errors and limit' "$(grep '"case":"alibi/f32/given/digest-h4".*"what":"bits"' stdout |
    grep -c '"base":{"max":0.0,"value":"0x0p+0"},"head":{"max":"inf","value":"-0x1p-2"},"metric":"exact","limit":0.0,"worst_at":"batch 0 head 0 query 0 key 4","want":"0x0p+0","moved":180,"of":180.*"first":{"worst_at":"batch 0 head 0 query 0 key 0","base":"-0x1p+0","head":"-0x1.4p+0"}')" 1
concludes 'no number is given, and the gate fails' 1 'incomparable '
same 'with its reason' "$(grep -c '"reason":"head: wrong: .*"failed":{"who":"head","how":"wrong"}' stdout) $(grep -c '"ratio"' stdout)" '1 0'
compare_small "$PLUGIN_WRONG" "$PLUGIN"
same 'a head that is right again: the same changes, all better' "$status $(count_changes)" '0 many bits false many status false '
same 'and base is named' "$(grep -c '"failed":{"who":"base","how":"wrong"}' stdout)" 1
compare_small "$PLUGIN" "$PLUGIN_COUNTED"
same 'the same results: no change, and what was compared' \
    "$(count_changes)$(grep '"t":"agreement"' stdout | grep -c '"kernel":"alibi","backend":"example".*"problems":[1-9][0-9]*,"values":[1-9][0-9]*,"moved":0,"cases":[1-9][0-9]*,"failed":0')" 1
compare_small "$PLUGIN" "$PLUGIN_CRASH"
same 'a head that ends the process is a change, too' \
    "$status $(grep '"t":"change"' stdout | grep -c '"what":"status","worse":true,"base":{"status":"pass"},"head":{"status":"crash"},"reason":"the process ended by signal 6')" '1 1'
concludes 'and cannot be compared' 1 'incomparable '
same 'the signal and the side are in the reason' "$(grep -c '"reason":"head: the process ended by signal 6' stdout)" 1
compare_small "$PLUGIN" "$PLUGIN_EXIT"
concludes 'a head that exits as if it had succeeded' 1 'incomparable '
same 'is named likewise' "$(grep -c '"reason":"head: the process was ended by exit(0)' stdout)" 1
compare "$PLUGIN" "$PLUGIN_CRASH" --case 'alibi/*/l[12]' --full
concludes 'a crash in each of several cases does not end the comparison' 1 'incomparable incomparable '

# ---- Code: the same has one verdict whatever the clock says, instructions of other code are counted ----

compare_small "$PLUGIN" "$PLUGIN"
concludes 'a plug-in beside itself has the same code' 0 'identical '
same 'and is neither timed nor counted' "$(grep -c '"ratio"\|"t":"count"' stdout)" 0
case $(uname -m) in x86_64) changed='ELEMENT ROW' ;; *) changed= ;; esac # elsewhere nothing is counted
for more in $changed; do
    eval "head=\$PLUGIN_$more"
    compare_small "$PLUGIN_COUNTED" "$head"
    same "an instruction more for each $more is other code" "$(grep -c '"verdict":"identical"' stdout)" 0
    grep '"t":"count"' stdout | sed 's/.*"instructions":\([0-9]*\).*/\1/' >counts
    [ "$(wc -l <counts)" = 2 ] && [ "$(head -n 1 counts)" -lt "$(tail -n 1 counts)" ]
    verdict 'of which head takes more instructions'
done

# ---- Time: verdicts that no busy machine changes ----

compare_small "$PLUGIN" "$PLUGIN" --identical --processes 3
[ $status = 0 ] && [ "$(member_of backend)" = 'example ' ] && [ "$(member_of processes)" = '3 ' ]
verdict 'a plug-in beside itself is timed in three processes'
same 'header, samples, A/A control, roofline and footer are in the records' \
    "$(grep -c '"t":"header".*"compare":{"base":{"path":".*"sha256":"[0-9a-f]\{64\}"' stdout) \
$(grep -c '"t":"pair".*"samples":{"head":\[\[[-0-9.e,]*\],\[[-0-9.e,]*\],\[[-0-9.e,]*\].*"control":\[\[' stdout) \
$(grep -c '"process_ratios":\[[0-9.]*,[0-9.]*,[0-9.]*.*"control_ratio":[0-9.]' stdout) $(grep -c '"roofline":{"kind":"store"' stdout) \
$(tail -n 1 stdout | grep -c '"t":"footer","complete":true')" '1 1 1 1 1'

# A time limit that is spent before the first process has timed anything. Samples that are made up test what few processes
# settle (reports/tests/test_compare.py).
compare_small "$PLUGIN" "$PLUGIN_SLOW" --time-limit 0.001 --gate
concludes 'without a process that timed both the verdict is unclear' 0 'unclear '
same 'and that is the reason' "$(member_of processes)$(member_of reason)" '0 no process has timed both '
compare_small "$PLUGIN" "$PLUGIN_SLOW" --time-limit 0.001 --gate --strict
concludes 'for which --strict exits with 4' 4 'unclear '
# Twenty times as long is slower on any machine.
run "$POSENC" compare "$PLUGIN" "$PLUGIN_SLOW" --problem "$small" --time-limit 3600 --gate --out jsonl
concludes 'a gate fails where head is slower' 3 'slower '
same 'which was confirmed' "$(member_of confirmed)$(member_of processes)" 'true 5 '

# ---- Kernels and backends of one build alone ----

compare "$PLUGIN" "$PLUGIN_MORE" --problem "alibi_add ${small#alibi}"
concludes 'a kernel of head alone is new, and one that is wrong: exit 1' 1 'new '
compare "$PLUGIN_MORE" "$PLUGIN" --problem "alibi_add ${small#alibi}"
concludes 'one of base alone is removed; nothing in common is incomparable' 5 'removed '
same 'and is a change for the worse' "$(grep -c '"case":"alibi_add/f32/supported".*"worse":true,"base":{"status":"pass"},"head":{"status":"unsupported"}' stdout)" 1
if [ -n "${LIBRARY-}" ] && [ -f "$LIBRARY" ]; then
    compare "$LIBRARY" "$LIBRARY" --kernel rope_half --case '*/l2'
    same 'every backend of a build that runs here is compared with itself' \
        "$status $(member_of backend | xargs -n 1 | sort | tr '\n' ' ')" \
        "0 $(usable | grep -v sleef | sort | tr '\n' ' ')"
    POSENC_BACKEND=libm && export POSENC_BACKEND
    compare "$LIBRARY" "$LIBRARY" --problem 'rope_half head_dim=64 rotary_dim=64 heads=2 tokens=16 rows=16' --backend scalar
    unset POSENC_BACKEND
    same 'a backend that the environment forces has no effect' "$status $(member_of backend)" '0 scalar '
    compare_small "$LIBRARY" "$PLUGIN" --backend scalar,example
    concludes 'a build beside a plug-in has backends of one side alone' 5 'new removed '

    # Ended while a process times: a valid file, or none.
    cp "$LIBRARY" base.so
    is_timing() { has_process 'pair .*--part times .*base[.]so'; }
    # begins NAME: timings on every backend, in the background, until the first process of nine runs
    start_timing() {
        (cd work && exec "$POSENC" compare "$scratch/base.so" "$LIBRARY" --identical --kernel rope_half --processes 9 \
            --time-limit 36000 -o "$scratch/work/$1") >stdout 2>stderr &
        pid=$!
        await is_timing
    }
    start_timing ended.jsonl
    kill -TERM $pid
    wait $pid
    same 'SIGTERM ends it, and what there is is written' \
        "$? $(tail -n 1 work/ended.jsonl | grep -c '"t":"footer","complete":false') $(ls work)" '143 1 ended.jsonl'
    run "$POSENC" compare ended.jsonl ended.jsonl
    same 'which compare reads' "$status $(grep -c 'ended early in base' stdout)" '5 1'
    rm -rf work/*
    start_timing ended.md
    kill -KILL $pid
    wait $pid
    ends 'SIGKILL leaves no process' 'pair .*base[.]so'
    same 'and no file of that name' "$(find work -name ended.md)" ''
    rm -rf work/*
else
    skip 'a build of the library beside itself' 'this build has no shared library'
fi
finish
