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
# - Tests of Python run ```python blocks of lessons, docs/python.md and docs/check.md. A block without a language is output.
#   Other languages are rejected.
# - A block that cannot run says why in a line above it: <!-- not run: why -->
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

test_excerpt() { # NAME FILE BLOCK: the lines between ... stand in the file, one after the other
    run awk 'function part() { wrong = wrong || !index(file, "\n" lines); lines = "" }
        BEGIN { file = "\n" }
        NR == FNR { file = file $0 "\n"; next }
        FNR > 1 && /^ *[.][.][.]$/ { part(); next }
        FNR > 1 { lines = lines $0 "\n" }
        END { part(); exit wrong }' "$root/$2" "$3"
    same "$1, an excerpt of $2" "$status" 0
}

test_block() { # NAME LANGUAGE FILE
    source=$(sed -n '1s,^/[*] from \(.*\) [*]/$,\1,p' "$3")
    if [ -n "$source" ]; then
        test_excerpt "$1" "$source" "$3"
        return
    fi
    case $2 in
    c) test_c_block "$1" "$3" ;;
    text) ;;
    python) ;; # run by reports/tests/test_course.py and python/tests
    meson) test_lines "$1" "$3" "$root/cli/tests/consumer/meson.build" ;;
    yaml) test_lines "$1" "$3" "$root/examples/ci/workflow.yml" ;;
    cmake) test_lines "$1" "$3" "$root/cli/tests/consumer/CMakeLists.txt" ;;
    *) fail "$1" "no test for blocks of $2: c, meson, cmake, yaml, or none" ;;
    esac
}

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

named=0
for text in README.md CONTRIBUTING.md SECURITY.md docs/install.md docs/how-to.md docs/coming-from.md docs/stability.md \
    docs/output.md docs/architecture.md docs/one-test.md docs/grammars.md docs/adding.md docs/accuracy.md docs/encodings.md \
    docs/exports.md docs/python.md docs/check.md docs/fleets.md docs/ci.md docs/misconceptions.md docs/topics.md \
    docs/performance.md docs/performance/*.md docs/course/*.md; do
    [ -f "$root/$text" ] || continue
    awk -v out="$scratch/work" -f "$here/blocks.awk" "$root/$text" >found || fail "$text was read" "awk ended with $?"
    [ -s found ] || fail "$text has commands or blocks" 'none was found'
    while read -r kind line what; do
        case $kind in
        block) test_block "$text:$line: block of $what" "$what" "$scratch/work/$line.$what" ;;
        exempt) skip "$text:$line: block" "$what" ;;
        command)
            what=${what%%  *\#*} # a comment behind it
            test_typed "$text:$line: $what" "$what"
            ;;
        link) test_link "$text:$line: link to $what" "$text" "$what" ;;
        esac
    done <found
    rm -f work/*.*
done
pass "$named files, folders and links lead to something that is there"
finish
