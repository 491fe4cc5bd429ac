#!/bin/sh
# examples/ci/compare.sh, called as GitHub and GitLab call it: it judges changes of a plug-in in a repository made for this
# test, and the YAML files around it agree with it.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"
ci=$root/examples/ci

if ! command -v git >/dev/null || ! command -v "${CC:-cc}" >/dev/null || [ -n "${PROGRAM:-}" ]; then
    echo '1..0 # SKIP no git or no compiler here, or a program that is emulated'
    exit
fi
for name in $(env | sed -n 's/^\(GITHUB_[A-Z_0-9]*\|CI_[A-Z_0-9]*\|GIT_[A-Z_]*\|POSENC_[A-Z_0-9]*\)=.*/\1/p'); do unset "$name"; done
export HOME="$scratch" XDG_CACHE_HOME="$scratch/cache" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
unset CFLAGS LDFLAGS

# -march=native, since an emulated fmaf() takes hundreds of instructions, which are all counted.
native=$(! "${CC:-cc}" -march=native -E -x c /dev/null >/dev/null 2>&1 || echo ' -march=native')
build='${CC:-cc} -std=c11 -O3'$native' -shared -fPIC plugin.c -I"$POSENC_INCLUDE" -lm -o "mine.so"'
# The project: a base, and a change on a branch each.
project="$scratch/a project"
make_change() { # BRANCH EXPRESSION: of sed, on the plug-in of main
    git checkout -q -b "$1" main && sed "$2" plugin.c >changed && mv changed plugin.c && git commit -q -a -m "$1" || exit 1
    ! git diff --quiet main || fail "the change called $1 is one" "$2"
}
mkdir "$project" && cd "$project" && git init -q -b main . && git commit -q --allow-empty -m empty && cp "$root/examples/plugin.c" . &&
    git add . && git commit -q -m base || exit 1
make_change same 's|^/\* Rotates one head|/* Rotates a head|'
make_change slower '/^static enum posenc_status rope_half/,/^}/s|^{|{ for (volatile int i = 0; i < 6000; i++) {}|'
make_change wrong 's|y\[i\] = fmaf(x0, c, -(x1 \* s));|y[i] = x0 * c - x1 * s;|'
make_change broken 's|^#include <math.h>|#include <maths.h>|'
git checkout -q --orphan stranger && git commit -q -m stranger || exit 1
git checkout -q main
cd "$scratch" || exit 1

# GitHub makes these variables of the inputs of action.yml, and runs this line.
step_command='"$GITHUB_ACTION_PATH/compare.sh"'
small="--problem 'rope_half heads=4 tokens=4 rows=4 head_dim=64 rotary_dim=64' --processes 1 --time-limit 3600"

# Runs the step of a job in a clone. $status is its exit code; the page is in summary, the outputs for later steps in output.
run_step() { # FOLDER VARIABLE=VALUE...
    folder=$1
    shift
    : >summary
    : >output
    (cd "$folder" && env GITHUB_ACTIONS=true GITHUB_ACTION_PATH="$ci" GITHUB_STEP_SUMMARY="$scratch/summary" \
        GITHUB_OUTPUT="$scratch/output" POSENC_PROGRAM="$POSENC" POSENC_BUILD="$build" POSENC_LIBRARY=mine.so \
        POSENC_VERIFY="--suite vectors --case '*/onnx*'" POSENC_ARGUMENTS="$small" "$@" sh -e -c "$step_command") >stdout 2>stderr
    status=$?
}
step_on() { # BRANCH VARIABLE=VALUE...: of the project
    branch=$1
    shift
    (cd "$project" && git checkout -q --detach "$branch")
    run_step "$project" "$@"
}
test_step() { # NAME STATUS PATTERN BRANCH VARIABLE=VALUE...: a step ends so, with a line of the page that matches
    name=$1 wanted=$2 pattern=$3
    shift 3
    step_on "$@"
    ended "$name" "$wanted" "$pattern" summary
}
test_page() { # NAME PATTERN [FILE]: a line of the page
    grep -Eq -e "$2" "${3:-summary}"
    verdict "$1"
}
same_outputs() { # NAME: the output exit-code is the exit status of the step
    same "$1" "$(sed -n 's/^exit-code=//p' output)" "$status"
}

# A right change: the same code, or the same results where code cannot be compared.
step_on same POSENC_BASE=main
if [ $status = 77 ]; then
    test_page 'where nothing can be timed, HEAD is verified, and the page gives the reason' 'HEAD is verified alone'
    finish
    exit
fi
same 'a comment: exit 0' $status 0
same_outputs 'the output exit-code equals the exit status'
same 'the page begins with the heading' "$(sed -n '1s/^## posenc: .*checks passed.*/heading/p' summary)" heading
test_page 'the page names base by its commit' "^Base is $(cd "$project" && git rev-parse --short main), the last commit that HEAD and main have in common\.\$"
test_page 'the page says that results are the same' '\*\*0 worse\*\*, 0 better, 0 otherwise changed'
same 'no error is annotated' "$(grep -c '^::error' stdout)" 0
same 'the folder posenc-ci has reports, records and the log' "$(cd "$project/posenc-ci" && echo *)" 'compare.jsonl junit.xml log.txt report.html summary.md verify.jsonl'
same 'both files of records are complete' "$(tail -q -n 1 "$project"/posenc-ci/*.jsonl | grep -c '"t":"footer","complete":true')" 2
same 'the kept page is that of the job' "$(cmp "$project/posenc-ci/summary.md" summary && echo yes)" yes
same 'the repository has no other change, and no more worktrees' "$(cd "$project" && git worktree list | wc -l | tr -d ' ')$(cd "$project" && git status --short | tr -d '\n')" '1?? posenc-ci/'

# A slower change is reported, and fails if there is a gate. It takes ten times as long, which any machine detects.
slow="${small%--processes*}--time-limit 3600"
step_on slower POSENC_BASE=main POSENC_ARGUMENTS="$slow" POSENC_GATE=yes
same 'a slower change, with a gate: exit 3' $status 3
same_outputs 'with a gate, the output exit-code equals the exit status'
test_page 'the page names the slower kernel and the number of processes' '^\| rope_half/f32/given/problem \| mine \| SLOWER \| .*processes; confirmed \|$'
test_page 'the page begins with the exit code of the job' '^Exit code 3: a kernel became slower by 3 % or more, which was confirmed\.$'
test_page 'the slowdown is annotated as an error' '^::error title=mine.*::SLOWER ' stdout
test_page 'the outcome is annotated as an error' '^::error title=posenc::a kernel became slower' stdout
step_on slower POSENC_BASE=main POSENC_ARGUMENTS="$slow"
same 'a slower change, without a gate: exit 0' $status 0
test_page 'the page says that a slowdown is reported' '^Exit code 0: nothing that fails the job; a kernel became slower, which is reported'
same 'without a gate, the slowdown is annotated as a warning, and nothing as an error' "$(grep -c '^::warning title=mine.*::SLOWER ' stdout)$(grep -c '^::error' stdout)" 10

# A wrong change fails always. This one rounds a product that base does not round.
step_on wrong POSENC_BASE=main POSENC_VERIFY=--quick
same 'one more rounding: exit 1, without a gate' $status 1
test_page 'the page counts what got worse' '\*\*[1-9][0-9]* worse\*\*'
test_page 'the page names kernel and case of a change of results' 'rope_half/f32/given/[a-z0-9-]* .*(ulp|moved)'
test_page 'the failure of verify is annotated' '^::error title=mine.*rope_half' stdout
same 'the output outcome gives the reason' "$(sed -n 's/^outcome=//p' output)" 'results are wrong, or HEAD fails where its base does not'

(cd "$project" && git checkout -q wrong && git checkout -q -b still && echo >>plugin.c && git commit -q -a -m still)
step_on still POSENC_BASE=wrong POSENC_VERIFY='--suite accuracy'
same 'wrong results that base has, too: exit 1' "$status $(grep -c '\*\*0 worse\*\*' summary)" '1 1'

# Right, and less exact than it was: in double, and back.
double='/^static void rotate_pairs(/,/^}/{s|const float x0|const double x0|; s|fmaf(x0, c, -(x1 \* s))|(float)(x0 * c - x1 * s)|
    s|fmaf(x1, c, x0 \* s)|(float)(x1 * c + x0 * s)|}'
(cd "$project" && git checkout -q main && make_change double "$double" && git checkout -q -b single && git checkout -q main plugin.c && git commit -q -m single)
step_on single POSENC_BASE=double POSENC_GATE=yes
same 'a larger error, with a gate: exit 3' $status 3
test_page 'the page says that an error grew' '^Exit code 3: the largest error of a case grew\.$'

# ---- Builds that fail ----

test_step 'a HEAD that does not build' 2 '^the build of HEAD ended with exit code 1$' broken POSENC_BASE=main
test_page 'the page has the message of the compiler' 'maths\.h.*No such file|maths\.h.*not found'
same_outputs 'if HEAD does not build, the output exit-code equals the exit status'
same 'no file of the run before is left' "$(cd "$project/posenc-ci" && echo *)" 'log.txt summary.md'
(cd "$project" && git checkout -q --detach broken && git checkout -q main plugin.c && git commit -q -m mended && git branch mended)
test_step 'a base that does not build' 5 'does not build, so that there is nothing to compare with: HEAD is verified alone\.$' \
    mended POSENC_BASE=broken
test_page 'if base does not build, HEAD is verified' '^## posenc: [0-9]* checks passed'
test_step 'a library that is not made' 2 'makes no file other.so' main POSENC_LIBRARY=other.so POSENC_BASE=same

# ---- The base ----

test_step 'without a base HEAD is verified alone' 0 '^No base is known here' main
same 'no comparison of the run before is left' "$(cd "$project/posenc-ci" && echo *.jsonl)" verify.jsonl
test_step 'the commit before, by its name' 0 'the last commit that HEAD and HEAD.1 have in common' same POSENC_BASE='HEAD^1'
test_step 'a first push has no base' 0 '^No base is known here' main POSENC_BASE=0000000000000000000000000000000000000000
test_step 'a HEAD that is older than its base' 0 '^HEAD has nothing that same has not' main POSENC_BASE=same
test_step 'no commit in common' 2 'HEAD and stranger have no commit in common' same POSENC_BASE=stranger
test_step 'no such base' 2 'nowhere, is no commit of this clone' same POSENC_BASE=nowhere
step_on same CI_MERGE_REQUEST_DIFF_BASE_SHA="$(cd "$project" && git rev-parse main)" GITHUB_ACTIONS='' GITHUB_STEP_SUMMARY='' GITHUB_OUTPUT=''
same 'a merge request of GitLab names its own' "$status $(grep -c '^Base is' "$project/posenc-ci/summary.md") $(grep -c '^::' stdout)" '0 1 0'

# A clone that actions/checkout makes of a pull request has a merge, alone or with its parents.
(cd "$project" && git checkout -q main && git commit -q --allow-empty -m later && git checkout -q -b merged main && git merge -q --no-edit same)
pull="GITHUB_EVENT_NAME=pull_request GITHUB_BASE_REF=main GITHUB_SHA=$(cd "$project" && git rev-parse merged)"
git clone -q --depth 1 --branch merged "file://$project" shallow
run_step shallow $pull
ended 'a shallow clone, and what to write into the workflow' 2 \
    'the base, origin/main, is not here, and this clone is shallow: expected fetch-depth: 0' summary
git clone -q --depth 2 --branch merged "file://$project" parents
run_step parents $pull
main=$(cd "$project" && git rev-parse --short main)
ended 'a clone with the parents of the merge has a base' 0 "^Base is $main, of main, into which" summary
(cd "$project" && git checkout -q same && git checkout -q -b updated && git merge -q --no-edit main)
git clone -q --branch updated "file://$project" branch
run_step branch $pull
ended 'a merge that the author made is compared with the branch' 0 "^Base is $main, .*origin/main" summary

# ---- Inputs ----

test_step 'no build' 2 'POSENC_BUILD .build:. is not given' same POSENC_BUILD=
test_step 'a gate that is neither yes nor no' 2 'is may\\nbe: expected yes or no' same POSENC_GATE='may\nbe'
test_page 'the annotation leaves escapes of the value as they are' '^::error .*is may\\nbe: expected' stdout
test_step 'a quotation without an end' 2 'expected arguments as a shell reads them' same POSENC_ARGUMENTS="--case 'x"
test_step 'a threshold of nothing, in the words of posenc' 2 \
    '^posenc compare: error: argument --threshold: expected a number above 0' same POSENC_THRESHOLD=0 POSENC_BASE=main
same 'no output repeats the message' "$(grep -c 'posenc compare: error' output)" 0

# ---- The program: of a bundle, beside the script, or built from the sources around it ----

inside="$scratch/a bundle/posenc"
mkdir -p "$inside/bin" "$inside/ci" "$inside/include" && cp "$ci/compare.sh" "$inside/ci" &&
    cp -R "$root/impl/include/posenc.h" "$root/impl/include/posenc_kernels.def" "$root/impl/include/posenc" "$inside/include" && echo '#error this one' >>"$inside/include/posenc.h" &&
    printf '#!/bin/sh\necho "a bundle" >&2\nexec "%s" "$@"\n' "$POSENC" >"$inside/bin/posenc" && chmod +x "$inside/bin/posenc"
tar -czf bundle.tar.gz -C "$scratch/a bundle" posenc
test_step 'an address of a bundle needs its sum' 2 'expected POSENC_BUNDLE_SHA256' \
    same POSENC_PROGRAM= POSENC_BUNDLE=https://localhost/x.tar.gz
test_step 'a bundle in a file needs the right sum, if one is given' 2 'its SHA-256 is [0-9a-f]{64}, expected 12' \
    same POSENC_PROGRAM= POSENC_BUNDLE="$scratch/bundle.tar.gz" POSENC_BUNDLE_SHA256=12
test_step 'the script of a bundle needs the same inputs' 2 'POSENC_LIBRARY .library:. is not given' \
    same POSENC_PROGRAM= POSENC_LIBRARY= GITHUB_ACTION_PATH="$inside/ci"
sources="$scratch/its sources"
mkdir -p "$sources/examples/ci" "$sources/impl" && cp "$ci/compare.sh" "$sources/examples/ci" && cp -r "$inside/include" "$sources/impl" &&
    printf '#!/bin/sh\n[ "$1" = build ] && mkdir build && cp "%s/bin/posenc" build\n' "$inside" >"$sources/run" && chmod +x "$sources/run"
for place in POSENC_BUNDLE="$scratch/bundle.tar.gz" GITHUB_ACTION_PATH="$inside/ci" GITHUB_ACTION_PATH="$sources/examples/ci"; do
    test_step "the header is that of $place" 2 'error: .*this one' same POSENC_PROGRAM= "$place"
    grep -q 'a bundle' stderr
    verdict "the program is that of $place"
done
# That run fails if there is a folder build.
test_step 'sources that cannot be built' 2 '^posenc itself could not be built' \
    same POSENC_PROGRAM= GITHUB_ACTION_PATH="$sources/examples/ci"

# ---- YAML files: they name each input of the script, and their only shell is a call of it ----

for python in /usr/bin/python3 python3 ''; do ! "$python" -c 'import yaml' 2>/dev/null || break; done
if [ -n "$python" ]; then
    "$python" "$root/cli/tests/ci_yaml.py" "$ci" "$step_command" >found 2>&1
    [ $? = 0 ] || fail 'the YAML can be read' "$(tail -n 1 found)"
    while read -r right name; do same "$name" "$right" yes; done <found
else
    skip 'the YAML files agree with the script' 'no python3-yaml'
fi
finish
