# shellcheck shell=sh
# ./run check [PART...]: checks the source without running it. Sourced by run. Logs and builds: build-check.
#
#     format       clang-format 14 has nothing to change
#     includes     each include is allowed by the list of dependencies (tools/check/includes.txt)
#     signatures   no switch over the signature outside the table of signatures
#     lengths      no file and no function is longer than tools/check/lengths.awk says
#     lines        no folder has more lines or files than tools/check/lines.csv allows
#     spelling     codespell finds nothing
#     prose        sentences are short and use standard terms (tools/check/prose.py)
#     shell        shellcheck has no warning
#     python       flake8 and mypy --strict find nothing, for Python 3.9
#     gcc, clang   a build of everything where each warning is an error
#     tidy         clang-tidy finds nothing; .clang-tidy lists its checks
#
# Each part prints its findings and then one line. tools/check/test_check.py tests that each part fails for a mistake.
all_parts='format includes signatures lengths lines spelling prose shell python gcc clang tidy'
check_parts=$all_parts

check() {
    mkdir -p build-check
    checkers='' words=''
    for part in $check_parts; do
        command -v "check_$part" >/dev/null || reject "check has no part $part; its parts: $all_parts"
        words="$words $(check_tools "$part")"
    done
    bring $words || :
    # Those that compile nothing run beside the others, which use all CPUs.
    for part in $check_parts; do
        case $part in
        gcc | clang | tidy) ;;
        *)
            check_run "$part" &
            checkers="$checkers $!"
            ;;
        esac
    done
    for part in $check_parts; do
        case $part in gcc | clang | tidy) check_run "$part" ;; esac
    done
    [ -z "$checkers" ] || wait $checkers
    for part in $check_parts; do
        check_count "$part"
    done
}

# Runs a part: build-check/PART.log gets its output, PART.status its exit status and the seconds that it took.
check_run() { # PART
    part_begun=$(date +%s) status=0
    "check_$1" >"build-check/$1.log" 2>&1 || status=$?
    echo "$status $(($(date +%s) - part_begun))" >"build-check/$1.status"
}

check_count() { # PART
    read -r status took <"build-check/$1.status"
    words="$(tail -n 1 "build-check/$1.log")"
    case $status in
    0) tally "check: $1, $took s: $words" 1 0 0 ;;
    77) cannot "check: $1: $words" ;;
    *)
        cat "build-check/$1.log"
        tally "check: $1, $took s" 0 1 0
        ;;
    esac
}

# Prints the tools of a part, each as COMMAND:PACKAGE.
check_tools() { # PART
    case $1 in
    format) echo clang-format:clang-format ;;
    spelling) echo codespell:codespell ;;
    shell) echo shellcheck:shellcheck ;;
    python) echo flake8:flake8 mypy:mypy /usr/lib/python3/dist-packages/pytest:python3-pytest ;;
    gcc) echo gcc:gcc g++:g++ ;;
    clang) echo clang:clang clang++:clang ;;
    tidy) echo clang-tidy:clang-tidy clang:clang clang++:clang ;;
    esac
}

# Returns 77 if a tool of a part is missing.
need() { # PART
    # shellcheck disable=SC2046  # a list of words
    absent $(check_tools "$1") || return 0
    echo "missing:$missing"
    return 77
}

# Prints the files of the repository whose path matches. Builds and reports leave theirs elsewhere.
sources() { # REGEX
    find . \( -path './build*' -o -path './posenc-report*' -o -path ./.git \) -prune -o -type f -print |
        sed 's,^[.]/,,' | grep -E "$1" | sort
}
c_files='[.](c|h|cc)$'

check_format() {
    need format || return
    case $(version_of clang-format) in
    14.*) ;;
    *) echo 'clang-format 14 is needed: others lay some lines out differently'; return 77 ;;
    esac
    sources "$c_files" >build-check/format.list
    xargs clang-format --dry-run -Werror <build-check/format.list || return 1
    echo "$(wc -l <build-check/format.list) files"
}

check_includes() {
    python3 tools/check/includes.py
}

check_signatures() {
    ! sources "$c_files" | xargs grep -n 'case SIGNATURE_' || {
        echo 'A switch over the signature: put what it decides into the table of signatures.'
        return 1
    }
    echo 'no switch over the signature'
}

check_lengths() {
    sources "$c_files" | xargs awk -f tools/check/lengths.awk
}

check_lines() {
    python3 tools/check/lines.py
}

check_spelling() {
    need spelling || return
    # Numbers, pictures and configurations of models are no prose.
    sources . | grep -Ev '[.](svg|safetensors|json|jsonl|npy)$|digests[.]txt$' >build-check/spelling.list
    xargs codespell --ignore-words tools/check/words.txt <build-check/spelling.list || return 1
    echo "$(wc -l <build-check/spelling.list) files"
}

check_prose() {
    python3 tools/check/prose.py
}

check_shell() {
    need shell || return
    sources '[.]sh$|(^|/)run$' >build-check/shell.list
    # SC1090, SC1091, SC2034, SC2154: shellcheck does not follow sourced files; SC2258: a comma at the end is meant.
    xargs shellcheck --severity warning --exclude SC1090,SC1091,SC2034,SC2154,SC2258 <build-check/shell.list || return 1
    echo "$(wc -l <build-check/shell.list) scripts"
}

check_python() {
    need python || return
    flake8 &&
        mypy --config-file pyproject.toml --cache-dir build-check/mypy reports conformance/golden &&
        mypy --config-file pyproject.toml --cache-dir build-check/mypy-package python reports/tests/tap.py || return 1
}

# Builds everything in build-check/COMPILER, with warnings as errors. gcc's optimizer makes some of its warnings.
build_strictly() { # COMPILER C++-COMPILER OPTIMIZATION
    CC=$1 CXX=$2 configure "build-check/$1" --werror -Dexplore=disabled -Doptimization="$3" -Ddebug=false || return
    "$meson" compile -C "build-check/$1" --ninja-args=-k0 >"build-check/$1.build" 2>&1 || {
        grep -a -A 3 -E '(error|warning): |FAILED' "build-check/$1.build" | sed 's/^FAILED: /failed: /'
        return 1
    }
    echo "$("$1" --version | head -n 1), warnings are errors"
}

# Builds with gcc. If the tests of a new tree come next, the build is theirs.
check_gcc() {
    need gcc || return
    if [ "${tests_follow:-}" = yes ] && [ ! -f build/build.ninja ] && is_gcc; then
        configure build --werror && compile build || return
        echo "$(cc --version | head -n 1), warnings are errors, the build of the tests"
    else
        build_strictly gcc g++ 1
    fi
}

# Succeeds if the build uses gcc.
is_gcc() {
    [ -z "${CC:-}${CXX:-}" ] && cc --version 2>/dev/null | grep -q 'Free Software Foundation'
}

check_clang() {
    need clang || return
    build_strictly clang clang++ 0
}

# Runs clang-tidy on every C file but backends, which are the templates again and again and take longer than the rest.
check_tidy() {
    need tidy || return
    # The build makes headers that clang-tidy reads.
    check_clang >build-check/tidy.build || {
        status=$?
        cat build-check/tidy.build
        return $status
    }
    tidy=build-check/clang/tidy status=0
    # Files of the repository have a path that begins with ..; the build made the others.
    sed -n 's,^ *"file": "\([.][.]/\)\{1\,\}\(.*[.]c\)".*,\2,p' build-check/clang/compile_commands.json |
        grep -v '^impl/backends/' | sort -u >$tidy.list
    xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 6 clang-tidy --quiet -p build-check/clang <$tidy.list >$tidy.out 2>$tidy.err ||
        status=$?
    # clang-tidy also prints how many warnings it suppressed.
    cat $tidy.out $tidy.err | grep -v '^$\|warnings generated\|^Suppressed\|^Use -header'
    echo "$(wc -l <$tidy.list) files"
    return $status
}
