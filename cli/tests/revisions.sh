#!/bin/sh
# Builds of git revisions: made once, whole, and without a trace in the repository.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"

if ! command -v git >/dev/null || [ -n "${PROGRAM:-}" ]; then
    echo '1..0 # SKIP no git here, or a program that is emulated'
    exit
fi
export HOME="$scratch" XDG_CACHE_HOME="$scratch/cache" TMPDIR="$scratch/tmp" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE CC CFLAGS LDFLAGS
builds=$XDG_CACHE_HOME/posenc/builds
repository="$scratch/work/it's a \$(repository)"
commit() { # TEXT: what the next commit's file holds
    printf '%s\n' "$1" >part.c
    git add part.c && git commit -q -m "$1"
}
mkdir -p "$TMPDIR" "$repository/sub" && cd "$repository" && git init -q -b main . || exit 1
commit one
git tag first
commit two
commit three
cd "$scratch" || exit 1
command='echo x >>"$HOME/count"; mkdir out && cp part.c out/mine.so'

# Runs the program in a folder of the repository; its words are in $commit, $way, $state and $path.
revision_in() {
    folder=$1
    shift
    (cd "$repository/$folder" && "$PYTHON" "$REVISION" "$@") >stdout 2>stderr
    status=$?
    # shellcheck disable=SC2046  # words
    IFS=' ' read -r commit way state path <stdout || commit='' way='' state='' path=''
}
takes() { # NAME WANT REVISION: status, built or cached, clean or dirty, what the object holds
    name=$1 want=$2
    shift 2
    revision_in . --build "$command" out/mine.so "$@"
    same "$name" "$status $way $state $([ -z "$path" ] || cat "$path")" "$want"
}
is_refused() { # NAME PATTERN ARGUMENTS
    name=$1 pattern=$2
    shift 2
    revision_in . "$@"
    if [ $status = 2 ] && grep -Eq -e "$pattern" stderr && [ "$(grep -c '^posenc' stderr)" -le 2 ]; then
        pass "$name"
    else
        fail "$name" "exit $status, or not: $pattern"
    fi
}
traces() { # what is left in the repository and among temporary files
    (cd "$repository" && git worktree list | wc -l && git status --short | wc -l && git branch | wc -l) | tr '\n' ' '
    find "$TMPDIR" "$builds" -name 'posenc-*' -o -name '.*.so.*' | wc -l
}

# What the program says of its own commit: that of a repository whose top its sources are, and of no other.
inside="$repository/sub/release"
own() { commit=mine sh "$root/cli/commit.sh" "$1" 2>stderr; }
mkdir "$inside"
same 'the commit of a source tree' "$(own "$repository")" "$(cd "$repository" && git rev-parse --short=12 HEAD)"
same 'none of a release unpacked in another repository' "$(own "$inside")" ''
same 'not by what a hook of git says either' \
    "$(GIT_DIR="$repository/.git" GIT_WORK_TREE="$inside" own "$inside")" ''
same 'none in the folder of a repository itself' "$(own "$repository/.git")" ''
same 'none without git' "$(shell=$(command -v sh) && PATH=/nowhere "$shell" "$root/cli/commit.sh" "$repository" 2>stderr)" ''
ln -s "$repository" "$scratch/link"
same 'a link leads to it' "$(own "$scratch/link")" "$(own "$repository")"
echo more >>"$repository/part.c"
same 'with changes it says so' "$(own "$repository")" "$(cd "$repository" && git rev-parse --short=12 HEAD)-dirty"
(cd "$repository" && git checkout -q part.c && git worktree add -q "$inside/linked" first 2>"$scratch/stderr")
same 'a linked work tree has one of its own' "$(own "$inside/linked")" "$(cd "$repository" && git rev-parse --short=12 first)"
(cd "$repository" && git worktree remove "$inside/linked")
rmdir "$inside"
same 'nobody else asks git at build time' \
    "$(find "$root/." -name 'build*' -prune -o -name meson.build -exec grep -l "'git'" {} + | tr '\n' ' ')" ''

takes 'a tag is built' '0 built clean one' first
same 'its commit is told in full' "$commit" "$(cd "$repository" && git rev-parse first)"
case $path in "$builds/$commit-"*/mine.so) pass 'and names its place in the cache' ;; *) fail 'and names its place in the cache' "$path" ;; esac
takes 'HEAD~1 is built' '0 built clean two' HEAD~1
takes 'a tag is there the second time' '0 cached clean one' first
takes 'so is another name of that commit' '0 cached clean one' HEAD~2
same 'each was built once' "$(wc -l <count | tr -d ' ')" 2
revision_in . --build "$command # otherwise" out/mine.so first
same 'another command is another build' "$status $way" '0 built'
CFLAGS=-O1
export CFLAGS
takes 'so are other flags of the compiler' '0 built clean one' first
unset CFLAGS
revision_in sub --build "$command" out/mine.so HEAD~1
same 'a folder of the repository will do' "$status $way $(cat "$path")" '0 cached two'

takes 'the work tree without changes is HEAD' '0 built clean three'
same 'by its commit' "$commit" "$(cd "$repository" && git rev-parse HEAD)"
printf 'four\n' >"$repository/part.c"
printf 'new\n' >"$repository/untracked.c"
before=$(cd "$repository" && git status --short && git rev-parse HEAD && git stash list && ls)
takes 'with changes it is built with them' '0 built dirty four'
same 'which is said, and what is left out' \
    "$(grep -c 'changes that are not committed' stderr) $(grep -c '1 file that git does not track: left out' stderr)" '1 1'
takes 'and is there the second time' '0 cached dirty four'
same 'the work tree is as it was' "$(cd "$repository" && git status --short && git rev-parse HEAD && git stash list && ls)" "$before"
(cd "$repository" && git add part.c)
takes 'staged or not is the same' '0 cached dirty four'
(cd "$repository" && git reset -q --hard && rm untracked.c)
same 'nothing is left behind' "$(traces)" '1 0 1 0'

# What git tells its hooks is not what is built.
(cd "$repository" && GIT_DIR=.git GIT_INDEX_FILE=.git/index GIT_PREFIX='' "$PYTHON" "$REVISION" --build 'cp part.c mine.so' mine.so first) >stdout 2>stderr
same 'from a hook as well' "$? $(cut -d' ' -f2 stdout) $(traces)" '0 built 1 0 1 0'

is_refused 'an unknown revision, with the nearest' '^posenc compare: error: there is no such revision \(got .mian.\)\. Did you mean main\?' --build true mine.so mian
is_refused 'an option' '^posenc compare: error: there is no such revision \(got .--all.\)' --build true mine.so --all
is_refused 'a shell command' '^posenc compare: error: there is no such revision \(got .main; touch hacked.\)' --build true mine.so 'main; touch hacked'
is_refused 'a tree' '^posenc compare: error: there is no such revision \(got .HEAD:sub.\)' --build true mine.so 'HEAD:sub'
is_refused 'a build that fails' 'the build of main ended with exit code 3\. Its log is .*/builds/[0-9a-f-]*/build\.log$' \
    --build 'i=0; while [ $i -lt 30 ]; do i=$((i + 1)); echo "line $i"; done; exit 3' mine.so main
same 'shows the last of its log' "$(grep -c '^| line' stderr) $(sed -n 's/^| //p' stderr | sed -n '1p;$p' | tr '\n' ' ')" '20 line 11 line 30 '
log=$(sed -n 's/.*Its log is //p' stderr)
same 'and keeps it' "$(grep -c line "$log")" 30
is_refused 'a library that is not made' 'the build of main makes no file out/other\.so\. Its log is ' --build 'mkdir out' out/other.so main
is_refused 'a repository of somebody else, without --build' '^posenc compare: error: --build is missing: .* Give a command' main
repository_kept=$repository repository=$scratch
is_refused 'a folder that is no repository' 'this folder is in no git repository' --build true mine.so main
mkdir empty && (cd empty && git init -q .)
repository=$scratch/empty
is_refused 'a repository without a commit' 'has no commit yet' --build true mine.so
repository=$repository_kept
(cd "$repository" && env -u XDG_CACHE_HOME HOME= "$PYTHON" "$REVISION" --build true mine.so main) >stdout 2>stderr
same 'nowhere to keep it' "$? $(grep -c 'Set XDG_CACHE_HOME or HOME' stderr)" '2 1'
same 'nor do refusals leave anything' "$(traces)" '1 0 1 0'

# Two at once; one that is interrupted.
slow='touch "$HOME/begun"; sleep 1; cp part.c mine.so' # whether or not the other one comes in that second
has_begun() { [ -e begun ]; }
(cd "$repository" && "$PYTHON" "$REVISION" --build "$slow" mine.so main) >other 2>/dev/null &
other=$!
await has_begun
revision_in . --build "$slow" mine.so main
wait $other
same 'two at once are both served' "$? $status $(cut -d' ' -f4 other) $(cat "$path")" "0 0 $path three"
same 'and leave nothing' "$(traces)" '1 0 1 0'
(cd "$repository" && exec "$PYTHON" "$REVISION" --build 'echo $$ >"$HOME/pid"; sleep 1000 & wait' mine.so first) >stdout 2>stderr &
building() { [ -s pid ]; }
await building
kill -TERM $!
wait $!
same 'one that is interrupted dies of it' "$?" 143
kill -0 "$(cat pid)" 2>/dev/null
same 'with its build' "$?" 1
same 'and leaves nothing' "$(traces)" '1 0 1 0'

# This library's own revisions: options that they do not have are not given.
mkdir bin
cat >bin/meson <<'MESON'
#!/bin/sh
echo "meson $*"
[ "$1" != compile ] || { mkdir -p "$3/impl" && cp meson.build "$3/impl/libposenc.so" && cp meson.build "$3/impl/libposenc.dylib"; }
MESON
chmod +x bin/meson
mkdir -p own/impl/include && cd own && git init -q -b main . && echo own >meson.build && : >impl/include/posenc.h &&
    printf "option('program', type: 'feature')\noption('tests', type: 'feature')\n" >meson_options.txt &&
    git add . && git commit -q -m own
cd "$scratch" || exit 1
PATH="$scratch/bin:$PATH"
repository=$scratch/own
revision_in . main
same 'a revision of this library needs no --build' "$status $way $(cat "$path")" '0 built own'
same 'and is built with the options that it has' "$(sed -n '1p' "$(dirname "$path")/build.log")" \
    'meson setup revision-build --buildtype=release -Ddefault_library=shared -Dprogram=disabled -Dtests=disabled'

# compare: a plug-in of somebody else's repository; then its work tree, where it is mended.
mkdir mine && cd mine && git init -q -b main . && cp "$root/cli/tests/plugin.c" . && git add . && git commit -q -m right &&
    { echo '#define PLUGIN_WRONG' && cat "$root/cli/tests/plugin.c"; } >plugin.c && git commit -q -a -m wrong
builds_of() { # what the header says of base and head
    sed -n '1s/.*"compare":{//p' ../stdout | grep -o '"rev":"[^"]*","commit":"[0-9a-f]\{40\}","dirty":[a-z]*' |
        sed 's/"rev":"\(.*\)","commit":"\(.*\)","dirty":\(.*\)/\1 \2 \3/' | tr '\n' ' '
}
moved() { # worse or better: whether there is any of these
    grep -q "\"t\":\"change\".*\"what\":\"bits\",\"worse\":$1" ../stdout && echo "$2"
}
compares() { # WANT ARGUMENTS...: exit code, what bits have moved to, base and head
    want=$1
    shift
    "$POSENC" compare --rev "$@" --build "${CC:-cc} -shared -fPIC -I'$root/impl/include' plugin.c -o mine.so" --library mine.so \
        --problem 'alibi heads=2 queries=16 keys=16' --time-limit 0.2 --processes 1 --json >../stdout 2>../stderr
    status=$?
    if [ $status = 77 ]; then
        skip "compare --rev $*" "$(cat ../stderr)"
    else
        same "compare --rev $*" "$status $(moved true worse)$(moved false better) $(builds_of | sed 's/work tree [0-9a-f]*/work tree/')" "$want"
    fi
}
first=$(git rev-parse HEAD~1) last=$(git rev-parse HEAD)
compares "1 worse HEAD~1 $first false HEAD $last false " HEAD~1 HEAD
git show HEAD~1:plugin.c >plugin.c
compares "0 better main $last false work tree true " main
cd "$scratch" && rm -rf work/*
refuses 'compare --rev without a revision' 'expected one or two git revisions' compare --rev
refuses '--build alone' '--library is missing beside --build\. Give both' compare --rev main --build true
refuses '--build without --rev' '--build has no effect without --rev' compare a b --build true --library x

finish
