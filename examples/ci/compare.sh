#!/bin/sh
# Checks a change of a plug-in: builds it at its base and at HEAD, compares both builds, verifies that of HEAD, and writes a
# summary for the job. action.yml and gitlab.yml call this script. You can call it in any clone:
#
#     POSENC_BUILD='make mine.so' POSENC_LIBRARY=mine.so POSENC_BASE=main .../posenc/examples/ci/compare.sh
#
# Run it in the project that has the plug-in. It reads the environment:
#
#     POSENC_BUILD      a shell command that builds the plug-in, run in the top folder of a fresh checkout of each commit;
#                       posenc.h is in the folder $POSENC_INCLUDE, which this script sets unless you do
#     POSENC_LIBRARY    the shared object that the build makes, a path in that folder
#     POSENC_BASE       a branch, tag or commit: HEAD is compared with the last commit that both have (default: the base of
#                       the pull request or merge request, or of GitLab's push; without one, HEAD is verified alone)
#     POSENC_GATE       yes: a slower kernel or a larger error ends with 3; no: it is reported (default: no)
#     POSENC_THRESHOLD  slowdown in per cent from which a gate fails (default: 3)
#     POSENC_ARGUMENTS  arguments of compare, as a shell reads them: --kernel rope_half --model llama-3.1-8b --strict
#     POSENC_VERIFY     arguments of verify, such as --full (default: --quick)
#     POSENC_OUT        folder of the results: *.jsonl, report.html, summary.md, junit.xml, and log.txt with the output of
#                       compare and verify (default: posenc-ci)
#     POSENC_PROGRAM    an installed posenc (default: built from the sources, or taken from the bundle, around this script)
#     POSENC_BUNDLE     an archive of ./run bundle, a file or a URL, with POSENC_BUNDLE_SHA256 (required for a URL)
#
# Exit code: 0 success; otherwise the first that applies: 1 wrong results, 2 a build or an input failed, 3 slower,
# 4 unclear with --strict, 5 nothing to compare with, 77 nothing can be timed here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${POSENC_OUT:-posenc-ci}
# Files in $work: last_output, what the last command printed, which reject shows; notes, paragraphs of this script; summary, as
# posenc renders it; page, both together; head, the checkout of HEAD.
work=$(mktemp -d)
trap 'clean' EXIT
trap 'exit 130' HUP INT TERM

clean() {
    [ ! -e "$work/head" ] || git worktree remove --force "$work/head" >/dev/null 2>&1 || :
    rm -rf "$work"
}

note() { # WORDS...: adds a paragraph to the summary
    printf '%s\n\n' "$*" >>"$work/notes"
}

say() { # WORDS...: prints them and adds them to the summary
    printf 'compare.sh: %s\n' "$*" # echo of some shells would undo the escapes of posenc's messages
    note "$@"
}

# ---- Inputs ----

reject() { # WORDS...: ends the job with a message in the log, the summary and an annotation
    printf 'compare.sh: %s\n' "$*" >&2
    [ -z "${GITHUB_ACTIONS:-}" ] || printf '::error title=posenc::%s\n' "$*"
    printf '## posenc: nothing was compared\n\n%s\n' "$*" >"$work/page"
    [ ! -s "$work/last_output" ] || { echo && echo '```' && cat "$work/last_output" && echo '```'; } >>"$work/page"
    publish 2 "$*"
    exit 2
}

publish() { # CODE OUTCOME: writes the summary, and the outputs for later steps where the service reads them
    mkdir -p "$out" && cp "$work/page" "$out/summary.md"
    [ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$work/page" >>"$GITHUB_STEP_SUMMARY"
    [ -z "${GITHUB_OUTPUT:-}" ] || printf 'exit-code=%s\noutcome=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}

check_inputs() {
    [ -n "${POSENC_BUILD:-}" ] || reject 'POSENC_BUILD (build:) is not given: expected a command that builds the plug-in'
    [ -n "${POSENC_LIBRARY:-}" ] || reject 'POSENC_LIBRARY (library:) is not given: expected the path of what that makes'
    case ${POSENC_GATE:-no} in
    yes | true) gate=--gate ;;
    no | false) gate= ;;
    *) reject "POSENC_GATE (gate:) is $POSENC_GATE: expected yes or no" ;;
    esac
    for words in "${POSENC_ARGUMENTS:-}" "${POSENC_VERIFY:-}"; do
        (eval "set -- $words") 2>/dev/null || reject "$words: expected arguments as a shell reads them"
    done
    git rev-parse --verify 'HEAD^{commit}' >"$work/last_output" 2>&1 || {
        cat "$work/last_output"
        reject "$PWD is no git repository with a commit: expected a checkout (actions/checkout)"
    }
    : >"$work/last_output"
}

# ---- posenc ----

find_posenc() { # sets $posenc, $version and $POSENC_INCLUDE, the folder of posenc.h
    if [ -n "${POSENC_PROGRAM:-}" ]; then
        posenc=$POSENC_PROGRAM
    elif [ -n "${POSENC_BUNDLE:-}" ]; then
        unpack_bundle
        posenc=$work/posenc/bin/posenc
    elif [ -x "$here/../bin/posenc" ]; then
        posenc=$here/../bin/posenc
    elif [ -x "$here/../../run" ]; then
        echo "compare.sh: posenc is built, in $(cd "$here/../.." && pwd)"
        (cd "$here/../.." && ./run build) || reject 'posenc itself could not be built: the log says what is missing'
        posenc=$here/../../build/posenc
    else
        reject "no posenc: expected $here in its sources or its bundle, or POSENC_PROGRAM, or POSENC_BUNDLE"
    fi
    version=$("$posenc" --version) || reject "$posenc does not run: expected the program posenc"
    program=$(command -v "$posenc")
    for include in "${POSENC_INCLUDE:-}" "$(cd "$(dirname "$program")" && pwd)/../include" "$here/../../impl/include"; do
        [ ! -r "$include/posenc.h" ] || break
    done
    export POSENC_INCLUDE="$include"
}

unpack_bundle() { # unpacks $POSENC_BUNDLE into $work/posenc, after a check of its SHA-256
    bundle=$POSENC_BUNDLE
    case $bundle in
    *://*)
        [ -n "${POSENC_BUNDLE_SHA256:-}" ] || reject "$bundle: expected POSENC_BUNDLE_SHA256 (bundle-sha256:) beside an address"
        curl --fail --silent --show-error --location --output "$work/bundle" "$bundle" || reject "$bundle: not to be had"
        bundle=$work/bundle
        ;;
    esac
    [ -r "$bundle" ] || reject "$bundle: no such file"
    [ -z "${POSENC_BUNDLE_SHA256:-}" ] || [ "$(sha256sum <"$bundle" | cut -d ' ' -f 1)" = "$POSENC_BUNDLE_SHA256" ] ||
        reject "$POSENC_BUNDLE: its SHA-256 is $(sha256sum <"$bundle" | cut -d ' ' -f 1), expected $POSENC_BUNDLE_SHA256"
    mkdir "$work/posenc" && tar -xzf "$bundle" -C "$work/posenc" --strip-components=1 ||
        reject "$POSENC_BUNDLE: expected the archive that ./run bundle writes"
}

# ---- The base ----

base_name() { # prints the base as the caller or this service names it; nothing for a first push or a scheduled run
    for name in "${POSENC_BASE:-}" "${merged:+HEAD^1}" "${GITHUB_BASE_REF:+origin/$GITHUB_BASE_REF}" \
        "${CI_MERGE_REQUEST_DIFF_BASE_SHA:-}" "${CI_COMMIT_BEFORE_SHA:-}"; do
        case $name in *[!0]*) echo "$name" && return ;; esac # only zeros: there was none
    done
}

reject_base() { # WORDS_IF_SHALLOW WORDS: ends the job; a shallow clone may lack what the remote has
    [ "$(git rev-parse --is-shallow-repository)" != true ] ||
        reject "$1, and this clone is shallow: expected fetch-depth: 0 (actions/checkout), GIT_DEPTH: 0 (GitLab), or git fetch --unshallow"
    reject "$2"
}

find_base() { # sets $base to a commit, or to nothing if HEAD is verified alone
    merged=
    # GitHub checks out a merge of a pull request into its base, which is the first of two parents.
    if [ -z "${POSENC_BASE:-}" ] && [ "${GITHUB_EVENT_NAME:-}" = pull_request ] &&
        [ "$(git rev-parse HEAD)" = "${GITHUB_SHA:-}" ] && git rev-parse --quiet --verify 'HEAD^2' >/dev/null; then
        merged=yes
    fi
    base='' name=$(base_name)
    if [ -z "$name" ]; then
        say 'No base is known here: HEAD is verified alone.'
        return
    fi
    commit=$(git rev-parse --quiet --verify "$name^{commit}") || reject_base "the base, $name, is not here" \
        "the base, $name, is no commit of this clone: expected a branch (origin/main), a tag or a commit"
    base=$(git merge-base HEAD "$commit") || reject_base "no common commit of HEAD and $name is here" \
        "HEAD and $name have no commit in common: expected a base that HEAD comes from"
    if [ "$base" = "$(git rev-parse HEAD)" ]; then
        say "HEAD has nothing that $name has not: it is verified alone."
        base=
    else
        base=$(git rev-parse --short "$base")
        if [ -n "$merged" ]; then
            note "Base is $base, of $GITHUB_BASE_REF, into which HEAD merges the pull request."
        else
            note "Base is $base, the last commit that HEAD and $name have in common."
        fi
    fi
}

# ---- Build, compare, verify ----

run_shown() { # COMMAND...: shows its output at once, and keeps it in $work/last_output and log.txt
    {
        code=0
        "$@" 2>&1 || code=$?
        echo "$code" >"$work/code"
    } | tee "$work/last_output"
    cat "$work/last_output" >>"$out/log.txt"
    return "$(cat "$work/code")"
}

build_head() { # builds HEAD in a checkout of its own; sets $library
    git -c core.hooksPath=/dev/null worktree add --quiet --detach "$work/head" HEAD || reject 'git cannot check HEAD out'
    built=0
    (cd "$work/head" && sh -c "$POSENC_BUILD") >"$work/build" 2>&1 || built=$?
    tail -n 20 "$work/build" | tee "$work/last_output"
    [ $built = 0 ] || reject "the build of HEAD ended with exit code $built"
    library=$work/head/$POSENC_LIBRARY
    [ -f "$library" ] || reject "the build of HEAD makes no file $POSENC_LIBRARY"
}

compare() { # ARGUMENTS...: sets $compared to the exit code, and $library to the build of HEAD, if it succeeded
    # posenc caches builds by their command. The checksum in it makes a build with another header another build.
    build="$POSENC_BUILD # posenc.h: $(cat "$POSENC_INCLUDE/posenc.h" "$POSENC_INCLUDE/"*.def "$POSENC_INCLUDE/posenc/"*.h 2>/dev/null | cksum)"
    run_shown "$posenc" compare --rev "$base" HEAD --build "$build" --library "$POSENC_LIBRARY" $gate \
        --threshold "${POSENC_THRESHOLD:-3}" "$@" --out console --out "jsonl:$out/compare.jsonl" --force || compared=$?
    if [ -s "$out/compare.jsonl" ]; then # line 1 has "compare":{"base":{...},"head":{"path":"...",...},...}
        library=$(sed -n '1s/.*"compare":{"base":{[^}]*},"head":{"path":"\([^"]*\)".*/\1/p' "$out/compare.jsonl")
        return
    fi
    # Exit code 2 has many causes; only the message says which build failed.
    why=$(sed -n 's/^posenc compare: error: //p' "$work/last_output" | tail -n 1)
    case "$compared $why" in
    "2 the build of $base "*)
        compared=5
        say "The base, $base, does not build, so that there is nothing to compare with: HEAD is verified alone."
        ;;
    '2 the build of HEAD '*) reject "${why%. Its log is *}" ;;
    5\ * | 77\ *) say "Nothing was compared, HEAD is verified alone: $why" ;;
    *) reject "posenc compare: ${why:-exit code $compared}" ;;
    esac
}

verify() { # ARGUMENTS...: sets $verified to the exit code
    run_shown "$posenc" verify --plugin "$library" "$@" --out console --out "jsonl:$out/verify.jsonl" --force || verified=$?
    [ -s "$out/verify.jsonl" ] || reject "posenc verify: exit code $verified: $(tail -n 1 "$work/last_output")"
}

# ---- Summary and exit code ----

has_record() { # PATTERN: succeeds if compare wrote such a record
    grep -qs "$1" "$out/compare.jsonl"
}

gate_failures() { # prints why the gate fails: a slower kernel, a larger error, or both
    slower="a kernel became slower by ${POSENC_THRESHOLD:-3} % or more, which was confirmed"
    grown='the largest error of a case grew'
    if ! has_record '"verdict":"slower","reason":"at or over the threshold[^"]*; confirmed"'; then
        echo "$grown"
    elif has_record '"t":"change".*"what":"error","worse":true'; then
        echo "$slower, and $grown"
    else
        echo "$slower"
    fi
}

describe_outcome() { # CODE: prints its meaning
    case $1 in
    0)
        remark=
        ! has_record '"t":"pair".*"verdict":"slower"' || remark='; a kernel became slower, which is reported and no failure here'
        echo "nothing that fails the job$remark"
        ;;
    1) echo 'results are wrong, or HEAD fails where its base does not' ;;
    3) gate_failures ;;
    4) echo 'a verdict stayed unclear (--strict)' ;;
    5) echo 'there is nothing to compare with' ;;
    77) echo 'nothing can be timed on this machine' ;;
    *) echo "posenc ended with exit code $1" ;;
    esac
}

annotations() { # CODE OUTCOME RESULTS...: prints annotations of GitHub; without a gate a slower kernel is a warning
    failed=$1 outcome=$2
    shift 2
    "$posenc" results export "$@" --format annotations | case $gate in
    '') sed 's/^::error\(.*::SLOWER \)/::warning\1/' ;;
    *) cat ;;
    esac
    [ "$failed" = 0 ] || echo "::error title=posenc::$outcome"
}

compose_page() { # prints the heading of the summary, the notes of this script, and the rest of the summary
    sed -n 1p "$work/summary"
    echo
    cat "$work/notes"
    sed 1,2d "$work/summary"
}

report() { # CODE: writes all results of the job
    code=$1
    outcome=$(describe_outcome "$code")
    set -- "$out/verify.jsonl"
    [ ! -s "$out/compare.jsonl" ] || set -- "$@" "$out/compare.jsonl" # last, as the summary shows the last command
    "$posenc" results export "$@" --format summary -o "$work/summary" --force &&
        "$posenc" results export "$@" --format junit -o "$out/junit.xml" --force &&
        "$posenc" report "$@" -o "$out/report.html" --force ||
        reject 'the results cannot be rendered: the log says why'
    [ -z "${GITHUB_ACTIONS:-}" ] || annotations "$code" "$outcome" "$@"
    note "Exit code $code: $outcome."
    compose_page >"$work/page"
    publish "$code" "$outcome"
    echo "compare.sh: exit code $code: $outcome; $out has the records, report.html and log.txt"
}

: >"$work/notes"
case $out in /*) ;; *) out=$PWD/$out ;; esac
mkdir -p "$out"
(cd "$out" && rm -f compare.jsonl verify.jsonl report.html summary.md junit.xml log.txt) # of a run before
check_inputs
find_base
find_posenc
echo "compare.sh: $version"
compared=0 verified=0 library=
eval "set -- ${POSENC_ARGUMENTS:-}"
[ -z "$base" ] || compare "$@"
[ -n "$library" ] || build_head
eval "set -- ${POSENC_VERIFY:---quick}"
verify "$@"
# The smaller code applies first: the list of exit codes above is in this order.
code=$(printf '%s\n' "$compared" "$verified" | grep -v '^0$' | sort -n | head -n 1)
code=${code:-0}
report "$code"
exit "$code"
