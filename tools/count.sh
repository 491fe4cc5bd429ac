# shellcheck shell=sh
# Counts tests: reads the logs of programs that run tests, prints a line for each, and adds it to $passed, $failed, $skipped
# and the rows of $table. The names of failed tests are added to $failures. Sourced by run.

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
