#!/bin/sh
# Compiles the code of README, CONTRIBUTING and docs, runs their commands, and follows their links. Prints TAP.
#
#     sh docs/blocks.sh POSENC LIBRARY      the program, and the folder with the shared library
#
# - A ```c block compiles without a warning; it is a program that runs and returns 0.
# - A block that begins with a line /* from FILE */ is an excerpt: its other lines stand in that file, one after the other
#   except where a line ... stands for others.
# - A ```meson or ```cmake block stands, line for line, in the project of cli/tests/consumer, which consumer.sh builds; a
#   ```yaml block in examples/ci/workflow.yml, which cli/tests/action.sh reads.
# - Tests of Python run ```python blocks of lessons and of docs/check.md, ci.md and python.md. A block without a language is
#   output. Other languages are rejected.
# - A block that cannot run says why in a line above it: <!-- not run: why -->
# - The commands of a tutorial are typed one after the other, in an empty folder beside posenc. A ```c block that begins with
#   a line /* FILE */ is saved under that name. A block without a language is what the last command prints, whole, except
#   where a line ... stands for others, or a line <!-- not compared: why --> above it.
# - posenc list, explain, table and plot run as they stand; of commands that take longer, or with a NAME to be filled
#   in, the options are asked for (--help).
# - What follows ./run is a job of run or a command.
# - Files and folders that are named are there, and so are the files and headings that links lead to.
here=$(cd "$(dirname "$0")" && pwd)
POSENC=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
library=$(cd "$2" && pwd) || exit 1
root=$(dirname "$here")
. "$root/cli/tests/tap.sh"
mkdir work/docs

succeeded() { # NAME: the last run did
    same "$1" "$status" 0
}

test_c_block() { # NAME FILE
    flags="-std=c11 -Wall -Wextra -pedantic -Werror -I$root/impl/include"
    cp "$2" work/block.c
    # shellcheck disable=SC2086  # a list of words
    run ${CC:-cc} $flags block.c -o block "-L$library" -lposenc "-Wl,-rpath,$library" -lm
    [ $status != 0 ] || run ./block
    succeeded "$1"
}

test_lines() { # NAME BLOCK FILE: each line of the block stands in the file
    run grep -vxF -f "$3" "$2"
    same "$1, in $3" "$status" 1
}

# The lines of a block stand in a file, one after the other, except that a line ... stands for others.
is_excerpt() { # FILE BLOCK
    awk 'function part() { at = index(file, "\n" lines); wrong = wrong || !at; file = substr(file, at + length(lines)); lines = "" }
        BEGIN { file = "\n" }
        NR == FNR { file = file $0 "\n"; next }
        /^ *[.][.][.]$/ { part(); next }
        { lines = lines $0 "\n" }
        END { part(); exit wrong }' "$1" "$2"
}

test_excerpt() { # NAME FILE BLOCK: the block without its first line
    sed 1d "$3" >work/excerpt
    is_excerpt "$root/$2" work/excerpt
    verdict "$1, an excerpt of $2" "$2 has other lines"
}

test_block() { # NAME LANGUAGE FILE
    source=$(sed -n '1s,^/[*] from \(.*\) [*]/$,\1,p' "$3")
    if [ -n "$source" ]; then
        test_excerpt "$1" "$source" "$3"
        return
    fi
    if [ -n "$tutorial" ]; then
        test_saved_or_printed "$1" "$2" "$3"
        return
    fi
    case $2 in
    c) test_c_block "$1" "$3" ;;
    text) ;;
    python) ;; # run by other tests, as said above
    meson) test_lines "$1" "$3" "$root/cli/tests/consumer/meson.build" ;;
    yaml) test_lines "$1" "$3" "$root/examples/ci/workflow.yml" ;;
    cmake) test_lines "$1" "$3" "$root/cli/tests/consumer/CMakeLists.txt" ;;
    *) fail "$1" "no test for blocks of $2: c, meson, cmake, yaml, or none" ;;
    esac
}

# ---- Tutorials ----

begin_tutorial() { # the folder and the variables in which its first line is typed
    rm -rf work/beside
    mkdir work/beside && ln -s "$root" work/beside/posenc
    echo "$scratch/work/beside" >folder
    (
        for name in $(env | sed -n 's/^\(GITHUB_[A-Z_0-9]*\|CI_[A-Z_0-9]*\|GIT_[A-Z_]*\|POSENC_[A-Z_0-9]*\)=.*/\1/p'); do unset "$name"; done
        PATH=$(dirname "$POSENC"):$PATH
        export PKG_CONFIG_PATH="$library/../meson-uninstalled" LD_LIBRARY_PATH="$library"
        export HOME="$scratch" XDG_CACHE_HOME="$scratch/cache" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        export -p >variables
    )
}

type_line() { # NAME COMMAND: in the folder and with the variables that the line before it left
    (
        unset -f posenc
        . ./variables
        cd "$(cat folder)" || exit
        eval "$2" >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || exit
        pwd >"$scratch/folder"
        export -p >"$scratch/variables"
    )
    status=$?
    case $status$2 in 1posenc\ verify\ *) status=0 ;; esac # a check fails: the page shows it
    succeeded "$1"
}

is_printed() { # FILES
    { echo BEGIN && cat "$@" && echo END; } >work/printed
    is_excerpt work/printed work/shown
}

test_saved_or_printed() { # NAME LANGUAGE FILE: a file that begins with its name in a comment, or what the last line printed
    name=$(sed -n '1s,^\(/[*]\|#\) \([a-z_]*[.][a-z]*\)\( [*]/\)*$,\2,p' "$3")
    if [ -n "$name" ]; then
        cp "$3" "$(cat folder)/$name"
    elif [ "$2" = text ] && [ -n "$why" ]; then
        skip "$1" "$why"
    elif [ "$2" = text ]; then
        { echo BEGIN && cat "$3" && echo END; } >work/shown
        is_printed stdout || is_printed stderr stdout # a message of the program, and what echo prints
        verdict "$1" 'the last line printed other text'
    else
        fail "$1" 'no name in its first line'
    fi
}

# ---- All pages ----

posenc() {
    "$POSENC" "$@"
}

test_command() { # NAME COMMAND: it works; of one with words in capitals, which a user fills in, and of a long one, --help does
    case $2 in
    *' '[A-Z][A-Z][A-Z]*)
        set -- "$1" "$(echo "$2" | sed 's/ --[a-z]* [A-Z][A-Z][A-Z]*//g; s/ [A-Z][A-Z][A-Z]*//g') --help"
        ;;
    *' list '* | *' explain '* | *' table '* | *' plot '*) ;;
    *) set -- "$1" "$2 --help" ;;
    esac
    ! grep -qxF -e "$2" ran || return # on another page
    echo "$2" >>ran
    run eval "$2"
    case $2 in *' plot '*) grep -q 'lacks the module' stderr && skip "$1" 'no matplotlib' && return ;; esac
    succeeded "$1"
}

test_job() { # NAME JOB
    if grep -q "^#     ./run $2 " "$root/run"; then pass "$1"; else test_command "$1" "posenc $2"; fi
}

test_path() { # NAME PATH: * stands for anything, <...> and {...} too
    set -- "$1" "$(printf %s "$2" | sed 's/<[^>]*>/*/g; s/{[^}]*}/*/g')"
    # shellcheck disable=SC2086  # a pattern
    set -- "$1" "$root"/$2
    if [ -e "$2" ]; then named=$((named + 1)); else fail "$1" 'not there'; fi
}

test_typed() { # NAME COMMAND
    case $2 in
    posenc\ * | build/posenc\ *) test_command "$1" "${2#build/}" ;;
    ./run\ [a-z]*) test_job "$1" "$(echo "$2" | awk '{ print $2 }')" ;;
    *\ *) ;;
    impl/* | conformance/* | bench/* | reports/* | cli/* | docs/* | tools/* | examples/*) test_path "$1" "$2" ;;
    esac
}

test_link() { # NAME TEXT TARGET: FILE, FILE#HEADING or #HEADING
    case $3 in http://* | https://*) return ;; esac
    set -- "$1" "$2" "${3%%#*}" "$(printf %s "$3" | sed -n 's/^[^#]*#//p')"
    to=$root/$2
    [ -z "$3" ] || to=$root/$(dirname "$2")/$3
    if [ ! -e "$to" ]; then
        fail "$1" 'not there'
    elif [ -n "$4" ] && ! sed -n 's/^##* //p' "$to" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g' | grep -qxF -e "$4"; then
        fail "$1" "no heading '$4' there"
    else
        named=$((named + 1))
    fi
}

named=0 why=
: >ran
no_gdb='no gdb, or it may not trace a process'
! gdb -q -batch -ex run --args true 2>&1 | grep -q 'exited normally' || no_gdb=
for text in $(cd "$root" && echo README.md CONTRIBUTING.md SECURITY.md docs/*.md docs/*/*.md); do
    case $text in
    docs/tutorials/* | docs/debugging.md) tutorial=yes && begin_tutorial ;;
    *) tutorial= ;;
    esac
    awk -v out="$scratch/work" -f "$here/blocks.awk" "$root/$text" >found || fail "$text was read" "awk ended with $?"
    [ -s found ] || fail "$text has commands, blocks or links" 'none was found'
    while read -r kind line what; do
        case $kind in
        block) test_block "$text:$line: block of $what" "$what" "$scratch/work/$line.$what" ;;
        exempt) skip "$text:$line: block" "$what" ;;
        typed | command)
            what=${what%%  *\#*} # a comment behind it
            if [ $kind$tutorial = typedyes ]; then
                why=
                case $what in gdb\ * | *\ gdb\ *) why=$no_gdb ;; esac
                if [ -n "$why" ]; then skip "$text:$line: $what" "$why"; else type_line "$text:$line: $what" "$what"; fi
            else
                test_typed "$text:$line: $what" "$what"
            fi
            ;;
        link) test_link "$text:$line: link to $what" "$text" "$what" ;;
        esac
    done <found
    rm -f work/*.*
done
pass "$named files, folders and links lead to something that is there"
finish
