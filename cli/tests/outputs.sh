#!/bin/sh
# Outputs overwrite earlier outputs of their own format and no other file, and formats of Python get the records.
. "$(dirname "$0")/tap.sh"

one='--kernel alibi --backend scalar --case alibi/f32/given/h1-symmetric'

# The program rejects the arguments with a message that matches, and a file is what it was.
keeps() { # NAME PATTERN FILE ARGUMENTS...
    name=$1 pattern=$2 file=$3
    shift 3
    before=$(cd work && cksum "$file" && find . | sort)
    run "$POSENC" "$@"
    if [ $status != 2 ] || ! grep -Eq -e "$pattern" stderr; then
        fail "$name" "exit $status, or the message does not match: $pattern"
    else
        same "$name" "$(cd work && cksum "$file" && find . | sort)" "$before"
    fi
}

echo '<a/>' >work/verify.xml
keeps 'records over an XML file' '--out: verify.xml: exists and is not a jsonl file of posenc: expected another path, or --force' \
    verify.xml verify $one --out jsonl:verify.xml
run "$POSENC" verify $one --force --out jsonl:verify.xml
same '--force writes over it' "$status $(cut -c 1-13 work/verify.xml | head -n 1)" '0 {"t":"header"'
keeps 'JUnit over records' 'verify.xml: exists and is not a junit file' verify.xml verify $one --out junit:verify.xml
rm -f work/*

formats='console md html jsonl csv junit annotations summary comment bmf badge baseline'
set --
for format in $formats; do
    set -- "$@" --out "$format:r.$format"
done
run "$POSENC" verify $one "$@"
run "$POSENC" verify $one "$@"
same 'every format of records overwrites its own' "$status $(ls work | wc -l | tr -d ' ')" '0 12'
echo 'buy milk' >work/notes.txt
for format in $formats; do
    keeps "$format over a text" "notes.txt: exists and is not a $format file" notes.txt verify $one --out "$format:notes.txt"
done
keeps 'a table over a text' 'notes.txt: exists and is not a csv file' notes.txt table --problem 'sinusoidal dim=4' --out csv:notes.txt
rm -f work/*
for format in csv npy safetensors; do
    run "$POSENC" table --problem 'sinusoidal dim=4' --out "$format:t.$format"
    run "$POSENC" table --problem 'sinusoidal dim=4' --out "$format:t.$format"
    same "$format overwrites its own" $status 0
done
keeps 'an array over a table of text' 't.csv: exists and is not a npy file' t.csv table --problem 'sinusoidal dim=4' --out npy:t.csv
: >work/empty
run "$POSENC" table --problem 'sinusoidal dim=4' --out csv:empty
same 'an empty file is nothing to be lost' $status 0
rm -f work/*

echo 'position,x' >work/x
ln -s x work/link
keeps 'one file, spelled twice' '--out: ./x: is written already, as x: expected another path' x \
    table --problem 'sinusoidal dim=4' --out csv:x --out csv:./x
keeps 'a file and a link to it' '--out: link: is written already, as x' x table --problem 'sinusoidal dim=4' --out csv:x --out csv:link
keeps 'one new file' '--out: z: is written already, as z' x table --problem 'sinusoidal dim=4' --out csv:z --out csv:z
ln -s nowhere work/dangling
keeps 'a dangling link' '--out: dangling: .*it is a dangling link' x table --problem 'sinusoidal dim=4' --out csv:dangling
run "$POSENC" table --problem 'sinusoidal dim=4' --out csv:link
same 'a link is followed' "$status $(readlink work/link) $(grep -c . work/x)" '0 x 17'
rm -f work/*

echo 'mine' >work/rope.json
keeps 'vectors into a folder of other files' 'prompts: ../work: expected a new or an empty folder' rope.json vectors prompts ../work
keeps 'nor does an export go there' 'export: ../work: expected a new or an empty folder' rope.json vectors export ../work
rm -rf work/*
mkdir work/x
run "$POSENC" vectors prompts x --kernel alibi
same 'an empty folder is as good as none' "$status" 0
rm -rf work/*

# ---- formats that another program writes ----

# The program alone, with a posenc-results on PATH that a test makes up.
if [ -n "${PROGRAM:-}" ] || ! mkdir "$scratch/lone" "$scratch/bin" || ! cp "$POSENC" "$scratch/lone/posenc" ||
    PATH=/usr/bin:/bin "$scratch/lone/posenc" results --help >out 2>&1; then
    skip 'formats of other programs' 'this program is emulated, or finds an installed one'
else
    # Makes posenc-results a shell script of these lines.
    results() { printf '%s\n' "$@" >"$scratch/bin/posenc-results" && chmod +x "$scratch/bin/posenc-results"; }
    # Runs the program with outputs.
    exports() { run env PATH="$scratch/bin:/usr/bin:/bin" "$scratch/lone/posenc" verify $one --vectors "$GOLDEN" "$@"; }
    exports --out junit:x.xml --out jsonl:x.jsonl
    same 'where it is missing that is said before the run, in a line' \
        "$status $(grep -c 'junit: is written in Python, and posenc-results is not installed' stderr) $(ls work)" '2 1 '
    results '#!/no/such/python3'
    exports --out junit:x.xml
    same 'and so it is where Python is' "$status $(grep -c 'posenc-results cannot be run: install Python' stderr) $(ls work)" '2 1 '
    results '#!/bin/sh' '[ "$1" != --help ] || exit 0' 'echo "$@" && grep -c "\"t\":\"check\""'
    exports --out junit:x.xml -o x.csv -o x.jsonl
    same 'it is given the records, and the format' "$status $(paste -s -d ' ' work/x.xml) $(paste -s -d ' ' work/x.csv)" \
        "0 export - --format junit $(grep -c '"t":"check"' work/x.jsonl) export - --format csv $(grep -c '"t":"check"' work/x.jsonl)"
    results '#!/bin/sh' '[ "$1" != --help ] || exit 0' 'echo half' 'echo no room >&2' 'exit 5'
    rm -f work/*
    exports --out junit:x.xml -o x.jsonl
    same 'if it fails its code is that of the run, and no other output is lost' \
        "$status $(grep -c 'no room' stderr) $(ls work) $(tail -n 1 work/x.jsonl | grep -c '"complete":true')" '5 1 x.jsonl 1'
    results '#!/bin/sh' '[ "$1" != --help ] || exit 0' 'kill -9 $$'
    exports --out junit
    same 'and so is the signal that ends it' "$status $(cat stdout)" '137 '
    rm -f work/*
fi
finish
