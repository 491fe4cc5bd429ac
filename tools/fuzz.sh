# shellcheck shell=sh
# ./run fuzz [SECONDS] [NAME...]: runs libFuzzer on the readers of foreign files, 60 seconds each unless told otherwise. It
# begins with fuzz/corpus and files of the repository. Findings are kept in build-fuzz/found, and
# `build/fuzz/fuzz_NAME fuzz/corpus/NAME.txt FILE` runs one again. Without clang the corpus alone is run. Sourced by run.

# Prints folders of the repository with files for a reader.
fuzz_seeds() { # NAME
    case $1 in
    cases) echo conformance/cases conformance/cases/golden ;;
    error_limits) echo conformance/engine ;;
    esac
}

fuzz_builds() { # "NAMES"
    (
        export CC=clang CXX=clang++
        configure build-fuzz -Doptimization=0 -Ddebug=false -Ddefault_library=static -Dtests=disabled \
            -Dbench=disabled -Dgolden=disabled -Dsleef=disabled -Dfuzz=true
    ) && {
        # shellcheck disable=SC2046  # a list of words
        compile build-fuzz $(for name in $1; do echo "fuzz/libfuzzer_$name"; done)
    }
}

# Fuzzes one reader and writes the exit status to build-fuzz/NAME.status.
fuzz_run() { # NAME
    mkdir -p "build-fuzz/corpus/$1" build-fuzz/found
    build/fuzz/fuzz_"$1" "fuzz/corpus/$1.txt" "build-fuzz/corpus/$1" >"build/fuzz-$1.log" 2>&1
    # shellcheck disable=SC2046  # a list of words
    ASAN_OPTIONS=allocator_may_return_null=1 nice -n 19 build-fuzz/fuzz/libfuzzer_"$1" \
        -max_total_time="$fuzz_seconds" -timeout=20 -max_len=8192 -artifact_prefix="build-fuzz/found/$1-" \
        "build-fuzz/corpus/$1" $(fuzz_seeds "$1") >"build-fuzz/$1.log" 2>&1
    echo $? >"build-fuzz/$1.status"
}

# Fuzzes readers, as many at a time as there are CPUs.
fuzz_all() ( # NAME...
    at_once=$(getconf _NPROCESSORS_ONLN) running=0
    for name; do
        rm -f "build-fuzz/$name.status"
        fuzz_run "$name" &
        running=$((running + 1))
        [ $((running % at_once)) != 0 ] || wait
    done
    wait
)

# Counts the corpus of a reader, and its fuzzing.
fuzz_tally() { # NAME
    if build/fuzz/fuzz_"$1" "fuzz/corpus/$1.txt" >"build/fuzz-$1.log" 2>&1; then
        tally "fuzz: corpus of $1" "$(grep -c '^ok' "build/fuzz-$1.log")" 0 0
    else
        tail -n 5 "build/fuzz-$1.log"
        tally "fuzz: corpus of $1" 0 1 0
    fi
    if [ "$fuzz_ready" = no ]; then
        tally "fuzz: $1 (there is no clang with libFuzzer)" 0 0 1
    elif [ "$(cat "build-fuzz/$1.status")" = 0 ]; then
        tally "fuzz: $1, $(sed -n 's/^Done \([0-9]* runs\) .*/\1/p' "build-fuzz/$1.log")" 1 0 0
    else
        tail -n 20 "build-fuzz/$1.log"
        tally "fuzz: $1: a finding in build-fuzz/found" 0 1 0
    fi
}

fuzz() {
    fuzz_seconds=60 fuzz_ready=no
    case ${1:-} in
    [1-9]*[!0-9]* | 0* | [!0-9a-z]*) reject "fuzz: $1: expected seconds, then names" ;;
    [1-9]*) fuzz_seconds=$1 && shift ;;
    esac
    all=$(ls fuzz/corpus | sed 's/[.]txt$//')
    for name; do
        [ -f "fuzz/corpus/$name.txt" ] || reject "fuzz: $name: there is no such reader; there are: $(echo "$all" | tr '\n' ' ')"
    done
    names=${*:-$all}
    build || return 1
    if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -fsanitize=fuzzer -x c - -o build/fuzz-probe >build/fuzz-probe.log 2>&1; then
        if fuzz_builds "$names"; then fuzz_ready=yes; else tally 'fuzz: build' 0 1 0; fi
    fi
    [ "$fuzz_ready" = no ] || fuzz_all $names
    for name in $names; do
        fuzz_tally "$name"
    done
}
