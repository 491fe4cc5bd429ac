#!/bin/sh
# Tests ./run check: puts one mistake after the other into a copy of the tree; its part has to fail and to name the place.
# Prints TAP.
#
#     sh tools/check/test.sh [PART...]      parts (default: all); gcc, clang and tidy build and take minutes
set -u
cd "$(dirname "$0")/../.." || exit 2
parts=${*:-format includes signatures lengths lines spelling prose shell python gcc clang tidy}
copy=$(mktemp -d) || exit 2
trap 'rm -rf "$copy"' EXIT
tar -c --exclude='./build*' --exclude=./.git --exclude='./posenc-report*' . | tar -x -C "$copy" || exit 2
cd "$copy" || exit 2
: >verdicts

# Prints the result of the command before.
verdict() { # SENTENCE
    if [ $? = 0 ]; then
        echo "ok - $1" | tee -a verdicts
    else
        echo "not ok - $1" | tee -a verdicts
        sed 's/^/# /; 20q' log
    fi
}

is_selected() { # PART
    case " $parts " in *" $1 "*) ;; *) return 1 ;; esac
}

check() { # PART
    ./run --no-install check "$1" >log 2>&1
}

# Tests that a part passes without a mistake.
clean() { # PART
    is_selected "$1" || return 1
    check "$1"
    verdict "$1 passes without an offence"
}

# Tests that a part fails with a message.
fails() { # PART WORDS SENTENCE
    ! check "$1" && grep -q -e "$2" log
    verdict "$1: $3"
}

# Appends the mistake, on stdin, to a file or to a new one; back removes it.
put() { # FILE
    mkdir -p "$(dirname "$1")"
    [ ! -e "$1" ] || cp "$1" kept
    cat >>"$1"
}
back() { # FILE
    if [ -e kept ]; then mv kept "$1"; else rm -r "$1"; fi
}

# Tests that a part detects the mistake on stdin.
offence() { # PART FILE WORDS SENTENCE
    put "$2"
    fails "$1" "$3" "$4"
    back "$2"
}

if clean format; then
    echo 'int  two_spaces;' | offence format impl/cpu.c 'impl/cpu.c:.*clang-format' 'a second space'
fi

if clean includes; then
    echo '#include "conformance/problem/problem.h"' |
        offence includes impl/cpu.c 'impl/cpu.c:[0-9]*: .*impl may not use conformance/problem; it may use impl/include' \
            'the library includes a file of the tests'
    echo '#include "bench/bench.h"' |
        offence includes base/records.c 'base may not use bench; it may use base/text' 'records use timings'
    echo '#include "registry.h"' |
        offence includes impl/include/posenc.h 'impl and impl/include include each other' 'two folders include each other'
    echo '#include <posenc.h>' | offence includes attic/old.c 'attic/old.c: its folder has no line' 'a folder without a line'
    echo 'attic' | offence includes tools/check/includes.txt 'attic has no sources' 'a module without sources'
    echo 'impl/include impl' | offence includes tools/check/includes.txt 'a cycle: ' 'a cycle of dependencies'
    printf "executable('x', '../base/records.c')\n" |
        offence includes impl/meson.build 'impl/meson.build:.*impl may not use base' 'a source compiled across folders'
fi

if clean python; then
    echo 'import json' | offence python reports/posenc/engine.py 'engine.py:.*F401' 'an import that nothing needs'
    printf '\n\nx: int = "text"\n' | offence python reports/posenc/records.py 'records.py:.*Incompatible types' 'a type that is not kept'
    printf '\n\ndef f(x):\n    return x\n' | offence python reports/tests/test_pictures.py 'test_pictures.py:.*annotation' 'a function without types'
    printf '\n\ndef f(x: int) -> None:\n    match x:\n        case 1:\n            pass\n' |
        offence python reports/posenc/records.py 'records.py' 'a word that Python 3.9 does not know'
fi

if clean signatures; then
    echo 'int f(int x) { switch (x) { case SIGNATURE_rope: return 1; } }' |
        offence signatures bench/check.c 'bench/check.c:.*case SIGNATURE_rope' 'a switch over the signature'
fi

if clean lengths; then
    awk 'BEGIN { print "int f(void)\n{"; for (i = 0; i < 100; i++) print "    f();"; print "}" }' |
        offence lengths impl/cpu.c 'impl/cpu.c:.*a function of 102 lines' 'a function that never ends'
    awk 'BEGIN { for (i = 0; i < 600; i++) print "int x" i ";" }' |
        offence lengths impl/new.c 'impl/new.c: 600 lines; at most' 'a file that never ends'
fi

if clean lines; then
    awk 'BEGIN { for (i = 0; i < 300; i++) print "int x" i ";" }' |
        offence lines impl/new.c 'impl: [0-9]* lines of c; lines.csv allows' 'a folder that grows'
    echo 'echo one' | offence lines attic/one.sh 'attic: 1 lines of shell; lines.csv allows 0' 'a folder without a row'
fi

if clean spelling; then
    # The word is in two halves, so that the check does not find it in this script.
    echo "/* rec""ieve */" | offence spelling impl/cpu.c 'impl/cpu.c:.*rec''ieve' 'a misspelt word'
fi

if clean prose; then
    echo '/* Of all terms the first. */' |
        offence prose impl/cpu.c 'impl/cpu.c: a sentence begins with Of: Of all terms the first' 'a sentence that begins with Of'
    printf '\nThe kernel %s such calls.\n' refuses |
        offence prose docs/accuracy.md 'docs/accuracy.md: "refuses", say reject: The kernel' 'a home-made word'
    printf '"""Returns one of %s."""\n' 'those that somebody else has' |
        offence prose reports/posenc/new.py 'reports/posenc/new.py: "somebody", say you' 'a docstring with such a word'
    awk 'BEGIN { for (s = 0; s < 30; s++) { printf "\nEach of these"; for (i = 0; i < 40; i++) printf " words"; print "." } }' |
        offence prose attic/long.md 'attic: 30 sentences, 43.0 words each (at most 18), 100.0 % over 30' 'long sentences'
    awk 'BEGIN { for (s = 0; s < 30; s++) { printf "\nThis is short."; if (s % 10 == 0) { printf "  The next"
            for (i = 0; i < 40; i++) printf " words"; print "." } } }' |
        offence prose attic/some.md 'attic: 33 sentences, .* (at most 18), 9.1 % over 30' 'too many long ones'
fi

if clean shell; then
    # shellcheck disable=SC2016
    echo 'for x in $(ls); do cd $x' | offence shell docs/check.sh 'docs/check.sh' 'a script that does not parse'
    printf '#!/bin/sh\nread x\n[ $x == 1 ]\n' | offence shell tools/new.sh 'tools/new.sh.*' 'an operator that sh lacks'
fi

for compiler in gcc clang; do
    if clean $compiler; then
        printf '#include <stdint.h>\nint narrowed(int64_t x) { return x; }\n' |
            offence $compiler impl/freqs/alibi.c 'alibi.c:.*error: .*-Werror' 'a warning'
    fi
done

if clean tidy; then
    echo 'int posenc_twice(int x); int posenc_twice(int x) { return x + 1 || x + 1; }' |
        offence tidy impl/freqs/alibi.c 'alibi.c:.*misc-redundant-expression' 'an expression with two equal sides'
fi

echo "1..$(wc -l <verdicts)"
! grep -q '^not' verdicts
