# shellcheck shell=sh
# Runs jobs of tests and counts their tests. Sourced by run.
#
# A function of this file reads the log of one kind of program that runs tests. It prints a line, adds the counts to $passed,
# $failed, $skipped and the rows of $table, and adds the names of failed tests to $failures.

# Runs jobs of tests, and prints a table of what they counted, the tests that failed, and the sum.
tests() { # JOB...
    tests_follow=no
    case " $* " in *' check test '*) tests_follow=yes ;; esac
    run_jobs "$@"
    printf '\npassed failed skipped\n'
    printf %s "$table" | while read -r row_passed row_failed row_skipped name; do
        printf '%6d %6d %7d  %s\n' "$row_passed" "$row_failed" "$row_skipped" "$name"
    done
    [ $failed = 0 ] || printf '\nfailed:\n'
    printf %s "$table" | sed -n 's/^[0-9]* \([1-9][0-9]*\) [0-9]* /    \1 of /p'
    printf %s "$failures" | sed 's/^/    /'
    printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
    [ $failed = 0 ] && [ $passed != 0 ]
}

# Runs jobs one after another. Each tallies its tests.
run_jobs() { # JOB...
    passed=0 failed=0 skipped=0 table='' failures=''
    for job in "$@"; do
        begun=$(date +%s)
        case $job in
        check | quick | bare | fleet | beside) $job ;;
        stress) stress $stress_words ;;
        fuzz) fuzz $fuzz_words ;;
        test-sanitizers | test-aarch64 | test-riscv64) "test_${job#test-}" ;; # each has a build of its own
        test) ! build_for_tests || test_native ;;
        *) ! build_for_tests || "test_${job#test-}" ;;
        esac
        say "$job took $(($(date +%s) - begun)) s"
    done
}

# Starts jobs that need no other build than their own. They run beside all others until the job "beside", so that no core
# waits for a slow test or for Meson. build-beside.log gets their output.
start_beside() { # JOB...
    rm -f build-beside.*
    trap 'kill 0' INT # which the background ignores
    {
        run_jobs "$@"
        printf %s "$failures" >build-beside.failures
        printf %s "$table" >build-beside.table
    } >build-beside.log 2>&1 3>&1 &
    jobs_beside=$!
}

# Waits for these jobs and adds their counts.
beside() {
    wait "$jobs_beside"
    cat build-beside.log
    if [ -f build-beside.table ]; then
        while read -r row_passed row_failed row_skipped name; do
            tally "$name" "$row_passed" "$row_failed" "$row_skipped" >>build-beside.log
        done <build-beside.table
        name_failures "$(cat build-beside.failures)"
    else
        tally 'the jobs in build-beside.log' 0 1 0
    fi
}

build_for_tests() {
    build && return
    tally "$job: build" 0 1 0
    return 1
}

tally() { # LABEL PASSED FAILED SKIPPED
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    table="$table$2 $3 $4 $1
"
    echo "$1: $2 passed, $3 failed, $4 skipped"
}

# Adds names of failed tests, a line each, to those that the end of a run prints.
name_failures() { # LINES
    failures="$failures${1:+$1
}"
}

# Counts a test whose tools are missing: as failed, or as skipped if nothing may be installed here.
cannot() { # LABEL
    if [ $install = no ]; then tally "$1" 0 0 1; else tally "$1" 0 1 0; fi
}

# Counts the log of conformance/criterion/runner, backend by backend. A log without its last line is a failure.
tally_runner() { # LABEL LOG
    rows=$(awk '
        /: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
            split(substr($0, match($0, /: [0-9]+ passed, /) + 2), number, /[^0-9]+/)
            print number[1], number[2], number[3], substr($0, 1, RSTART - 1)
            named = 1
        }
        /^off: / { print 0, 0, 1, substr($0, 6); named = 1 }
        /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { whole = 1 }
        END { if (!whole || !named) print 0, 1, 0, whole ? "ran no backend" : "did not end" }' "$2")
    before=$failed
    while read -r row_passed row_failed row_skipped name; do
        tally "$1: $name" "$row_passed" "$row_failed" "$row_skipped"
    done <<ROWS
$rows
ROWS
    [ "$failed" = "$before" ] || cat "$2"
}

# Prints "PASSED FAILED SKIPPED" of Meson's logs LOG.json and LOG.junit.xml, then the name of each failed test. Each test
# case counts, and a program that has to fail, and did, is one that passed.
count_tests() { # LOG
    python3 - "$1" <<'PYTHON'
import json, sys, xml.etree.ElementTree as ET

def bare(name):
    return name.split(" / ")[-1].split("posenc.")[-1]

with open(sys.argv[1] + ".json", encoding="utf-8") as log:
    results = [json.loads(line) for line in log]
expected = {bare(one["name"]) for one in results if one["result"] == "EXPECTEDFAIL"}
passed = failed = skipped = 0
names = []
for suite in ET.parse(sys.argv[1] + ".junit.xml").iter("testsuite"):
    if bare(suite.get("name")) in expected:
        passed += 1
        continue
    for case in suite.iter("testcase"):
        bad, skip = case.find("failure") is not None or case.find("error") is not None, case.find("skipped") is not None
        passed, failed, skipped = passed + (not bad and not skip), failed + bad, skipped + skip
        names += [f'{bare(suite.get("name"))}: {case.get("name")}'] if bad else []
print(passed, failed, skipped, *names, sep="\n")
PYTHON
}

# Runs Meson's tests and counts them. A run without a test, and a failure that no log shows, is one failure. Ten times the
# time limits of an idle machine end only tests that hang. Some tests wait, so that twice as many run as there are CPUs.
meson_tests() { # FOLDER ARGUMENTS...
    folder=$1
    shift
    log=$folder/meson-logs/testlog
    rm -f "$log.json" "$log.junit.xml"
    "$meson" test -C "$folder" --no-rebuild --print-errorlogs --timeout-multiplier 10 \
        --num-processes $((2 * $(getconf _NPROCESSORS_ONLN))) "$@"
    status=$?
    counts='0 0 0'
    [ ! -f "$log.junit.xml" ] || counts=$(count_tests "$log") || counts='0 1 0' # logs that cannot be read
    name_failures "$(echo "$counts" | sed 1,3d)"
    # shellcheck disable=SC2046  # three numbers
    set -- $(echo "$counts" | sed 3q)
    if [ $(($1 + $2)) = 0 ]; then
        say "no test ran in $folder"
        set -- 0 1 "$3"
    elif [ $status != 0 ] && [ "$2" = 0 ]; then
        say "meson test in $folder ended with $status"
        set -- "$1" 1 "$3"
    fi
    tally "$job: meson test in $folder" "$@"
}

# Counts a log by an awk program that prints "PASSED FAILED SKIPPED". Another status than 0 without a failure is one.
tally_log() { # LABEL LOG STATUS AWK
    label=$1 log=$2 status=$3
    # shellcheck disable=SC2046  # three numbers
    set -- $(awk "$4" "$2")
    [ "$status" = 0 ] || [ "$2" != 0 ] || set -- "$1" 1 "$3"
    tally "$label" "$@"
    if [ "$2" != 0 ]; then
        name_failures "$(grep -E '^(not ok|FAIL|CRASH|TIMEOUT) ' "$log" | head -n 20 | sed "s|^|$label: |")"
        cat "$log"
    fi
}

# Counts the output of a TAP script. One that ended early has failed, and so has one that ran nothing and skipped nothing.
tally_tap() { # NAME LOG STATUS
    tally_log "$job: $1" "$2" "$3" '
        /^1\.\.[0-9]/ { plan = substr($1, 4) }
        /^ok .*# SKIP/ { skipped++; next }
        /^ok / { passed++ }
        /^not ok / { failed++ }
        END {
            if (plan == "" || passed + failed + skipped != plan || (passed + failed == 0 && !skipped)) failed++
            print passed + 0, failed + 0, skipped + 0
        }'
}

# Counts the output of posenc verify. A log without its last line is a failure.
tally_verify() { # LABEL LOG STATUS
    tally_log "$@" '
        /^[0-9]+ failed, [0-9]+ passed, [0-9]+ skipped/ { print $3, $1, $5; whole = 1 }
        END { if (!whole) print 0, 1, 0 }'
}
