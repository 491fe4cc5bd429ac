# shellcheck shell=sh
# ./run stress [N [M]]: N whole runs of ./run test (3 where none is named), and M runs (10) of every test that starts
# processes, waits or limits time, beside two busy loops and a build that repeats in a folder of its own.  No test may
# depend on what else the machine does: every one has to pass.  Sourced by run.
#
# Each run is a line of build/stress.log: commit, kind, number, passed, failed, skipped, seconds.  Started again, it
# goes on after the last of this commit.  A run that failed leaves Meson's log as build/stress-KIND-NUMBER.txt.

# Suites with such a test.
stress_suites='--suite cli --suite bench --suite fuzz --suite conformance --suite threads --suite criterion'

stress_test() {
    # shellcheck disable=SC2086  # a list of words
    meson_tests build $stress_suites --no-suite runner
}

# The build of everything, without ccache, again and again, until this process is told to end.
stress_builds() {
    trap 'kill $! 2>/dev/null; exit' TERM
    while :; do
        ninja -C build-stress -t clean
        CCACHE_DISABLE=1 ninja -C build-stress &
        wait $!
    done >build-stress/stress.log 2>&1
}

# Runs in a session of its own: Linux may divide CPU time among sessions first, and each test has one.
stress_loop() {
    exec setsid sh -c 'while :; do :; done'
}

# What loads the machine, until stress_rest.
stress_load() {
    stress_loop &
    load=$!
    stress_loop &
    load="$load $!"
    stress_builds &
    load="$load $!"
    trap stress_rest EXIT
    trap 'exit 1' HUP INT TERM
}

stress_rest() {
    # shellcheck disable=SC2086  # a list of processes
    kill $load 2>/dev/null
}

# stress_runs KIND TIMES COMMAND: until the log has so many of them.
stress_runs() {
    while stress_at=$(grep -c "^$commit $1 " build/stress.log) || true && [ "$stress_at" -lt "$2" ]; do
        stress_at=$((stress_at + 1)) stress_begun=$(date +%s) passed=0 failed=0 skipped=0
        say "stress: $1, run $stress_at of $2"
        $3
        [ $failed = 0 ] || cp build/meson-logs/testlog.txt "build/stress-$1-$stress_at.txt"
        echo "$commit $1 $stress_at $passed $failed $skipped $(($(date +%s) - stress_begun))" >>build/stress.log
    done
}

stress() {
    commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo none)
    build && configure build-stress -Dtests=disabled -Dexplore=disabled || {
        tally 'stress: build' 0 1 0
        return
    }
    touch build/stress.log
    stress_load
    stress_runs whole "${1:-3}" test_native
    stress_runs part "${2:-10}" stress_test
    stress_rest
    passed=0 failed=0 skipped=0 table=''
    while read -r of kind number row_passed row_failed row_skipped took; do
        [ "$of" != "$commit" ] || tally "$kind $number, $took s" "$row_passed" "$row_failed" "$row_skipped"
    done <build/stress.log
}
