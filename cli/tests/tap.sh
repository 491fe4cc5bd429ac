# shellcheck shell=sh
# Functions of the test scripts: each test prints a line of TAP on stdout. A script sets POSENC, the program under test,
# sources this file, and ends with finish. The current folder is then an empty one, $scratch, which goes away at the end.
#
#     run "$POSENC" table errors              runs a command in the folder work: sets $status, writes stdout and stderr
#     ended 'NAME' 0 'PATTERN' [FILE]         one test: its exit status, and a line of FILE (stdout) that matches
#     same 'NAME' "$got" "$wanted"            one test: two texts are equal
#     grep -q x FILE; verdict 'NAME'          one test: the command before succeeded
#     succeeds 'NAME' 'PATTERN' list types    one test: the program succeeds, and prints a line that matches
#     rejects 'NAME' 'PATTERN' table errors   one test: the program rejects these arguments, with a message that matches
set -u
scratch=$(mktemp -d) || exit 1
# Complaints of the shell itself go into a file: finish() fails if a function or a command was not found, which sh ignores.
exec 2>"$scratch/complaints"
trap 'sed "s/^/# /" "$scratch/complaints"; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
cd "$scratch" || exit 1
mkdir work
tests=0 status=0
# Precedes a command that might hang: ten minutes are enough for each, however busy the machine is.
watched=$(! command -v timeout >/dev/null || echo 'timeout -k 10 600')

# ---- Tests ----

pass() { # NAME
    tests=$((tests + 1))
    printf 'ok %d - %s\n' "$tests" "$1" # echo takes \1 in a command for a character
}

fail() { # NAME REASON: prints what the last run printed, as comments
    tests=$((tests + 1))
    printf 'not ok %d - %s\n# %s\n' "$tests" "$1" "$2"
    [ ! -f "$scratch/stderr" ] || sed 's/^/# stderr: /; 20q' "$scratch/stderr"
    [ ! -f "$scratch/stdout" ] || sed 's/^/# stdout: /; 20q' "$scratch/stdout"
}

skip() { # NAME REASON
    tests=$((tests + 1))
    printf 'ok %d - %s # SKIP %s\n' "$tests" "$1" "$2"
}

# Passes if the command before it succeeded. No argument may run a command, since bash would judge that one.
verdict() { # NAME [REASON]
    if [ $? = 0 ]; then pass "$1"; else fail "$1" "${2:-exit $status; in work: $(ls "$scratch/work")}"; fi
}

same() { # NAME GOT WANTED
    [ "$2" = "$3" ]
    verdict "$1" "got $2, want $3"
}

ended() { # NAME STATUS PATTERN [FILE]: how the last run ended, and what it printed
    [ $status = "$2" ] && grep -Eq -e "$3" "${4:-stdout}"
    verdict "$1" "exit $status, want $2 and in ${4:-stdout}: $3"
}

# The checks among the records of a file are those of one run of a command.
same_checks() { # NAME FILE COMMAND...
    name=$1 file=$2
    shift 2
    "$@" --out jsonl:one.jsonl >one.log 2>&1
    grep '^{"t": *"check"' one.jsonl | sort >wanted
    grep '^{"t": *"check"' "$file" | sort | cmp - wanted >difference && [ -s wanted ]
    verdict "$name: the checks of one run"
}

finish() {
    ! grep -q 'not found$' "$scratch/complaints" || fail 'every function of the script exists' 'the shell complains below'
    echo "1..$tests"
}

# Runs a command in the folder work. Its output is in stdout and stderr, its exit status in $status.
run() {
    (cd work && "$@") >"$scratch/stdout" 2>"$scratch/stderr"
    status=$?
}

expect() { # NAME COMMAND...: the command succeeds
    name=$1
    shift
    run "$@"
    same "$name" $status 0
}

# ---- Processes that run beside the script ----

# Runs a command until it succeeds, for at most three minutes, which only a program that hangs takes: the limit of a whole
# script is four (meson.build). A test waits for the state that it needs and never for a time in which that may come.
await() { # COMMAND...
    looks=0
    until "$@"; do
        looks=$((looks + 1))
        [ $looks -lt 1800 ] || return 1
        sleep 0.1
    done
}

# Prints command lines that name this test's scratch folder and match a pattern: no process of another test does.
processes() { # PATTERN
    if [ -r /proc/self/cmdline ]; then
        # shellcheck disable=SC2062  # files
        for one in $(printf %s "$scratch" | grep -alF -f - /proc/[0-9]*/cmdline); do tr '\0' ' ' <"$one" && echo; done
    else
        printf %s "$scratch" >own && ps -e -o args | grep -F -f own
    fi 2>"$scratch/gone.log" | pattern="$1" awk '$0 ~ ENVIRON["pattern"]'
}
no_process() { [ -z "$(processes "$1")" ]; }
has_process() { ! no_process "$1"; }

ends() { # NAME PATTERN: soon there is no such process
    if [ ! -r /proc/self/cmdline ] && ! command -v ps >/dev/null; then
        skip "$1" 'this system does not list processes'
        return
    fi
    await no_process "$2"
    verdict "$1" 'a process is left'
}

# Prints why no pseudo-terminal can be opened here, or nothing.
no_terminal() {
    if ! script --version 2>&1 | grep -q util-linux; then
        echo 'there is no script(1) of util-linux (Debian: bsdutils)'
    elif ! script -qefc true "$scratch/no_terminal" </dev/null >"$scratch/no_terminal.log" 2>&1; then
        echo 'no pseudo-terminal can be opened (/dev/pts)'
    fi
}

# Runs a shell command on a pseudo-terminal, in the background, as process $shown. The file gets what it shows.
terminal() { # COLUMNS TERM FILE COMMAND
    : >"$3"
    TERM=$2 script -qefc "stty cols $1 rows 24; $4" "$3" >"$scratch/script.log" 2>&1 </dev/null &
    shown=$!
}

# ---- The program ----

# Prints mistakes in the message of a rejection: a line end that is two characters, a value inside of the range that it is
# said to miss, an option that the command does not have.
message_mistakes() { # COMMAND
    if grep -q '\\n$' stderr; then
        echo 'its line end is two characters'
    fi
    awk 'match($0, /is -?[0-9][-+.0-9e]*, expected from -?[0-9][-+.0-9e]* to -?[0-9][-+.0-9e]*/) {
        split(substr($0, RSTART, RLENGTH), word, /[ ,]+/)
        if (word[2] + 0 >= word[5] + 0 && word[2] + 0 <= word[7] + 0) print "its range has the value" }' stderr
    if [ -s "$scratch/help.$1" ] || "$POSENC" "$1" --help >"$scratch/help.$1" 2>"$scratch/help.log"; then
        sed 's/(posenc [a-z]* --[^)]*)//' stderr | tr ' (' '\n\n' | sed -n 's/^\(--[a-z][a-z-]*\).*/\1/p' | sort -u | while read -r option; do
            grep -q -e "$option\($\|[^a-z-]\)" "$scratch/help.$1" || echo "posenc $1 has no $option"
        done
    fi
}

# The program rejects the arguments: exit 2, one message that matches, nothing on stdout, and no file.
rejects() { # NAME PATTERN ARGUMENTS...
    name=$1 pattern=$2 reason=
    shift 2
    run "$POSENC" "$@"
    mistakes=$(message_mistakes "$@")
    grep -Eq -e "$pattern" stderr || reason="the message does not match: $pattern"
    [ "$(grep -c '^posenc' stderr)" = 1 ] || reason='expected one message'
    [ -z "$mistakes" ] || reason="the message is wrong: $mistakes"
    [ ! -s stdout ] || reason='something on stdout'
    [ $status = 2 ] || reason="exit $status instead of 2"
    if [ -n "$(ls -A work)" ]; then
        reason="left behind: $(ls -A work)"
        rm -rf work && mkdir work
    fi
    [ -z "$reason" ]
    verdict "$name" "$reason"
}

# The program succeeds and prints a line that matches.
succeeds() { # NAME PATTERN ARGUMENTS...
    name=$1 pattern=$2
    shift 2
    run "$POSENC" "$@"
    ended "$name" 0 "$pattern"
}

# Prints the commands of the help, and those below them, one a line.
list_commands() {
    "$POSENC" --help | sed -n 's/^  \([a-z][a-z]*\)  *[A-Z].*/\1/p'
    "$POSENC" plot --help | sed -n '/^Kinds/,/^$/s/^  \([a-z0-9]*\) .*/plot \1/p'
    "$POSENC" results --help | sed -n '/FILE/,/^Formats/s/^  \([a-z]*\) .*/results \1/p'
}

# Prints the options of the help text in a file, one a line.
options_of() { # FILE
    sed -n 's/^  \{1,6\}\(-.*\)/\1/p' "$1" | sed 's/   *[^-].*//' | grep -oE -e '(^|[ ,])--?[a-zA-Z][a-z-]*' | tr -d ' ,' | sort -u
}

# Prints the backends that run here, as the program lists them.
usable() {
    "$POSENC" list backends | awk 'NR > 3 && /^[*+ ] [a-z]/ { line = substr($0, 3); split(line, f, " ")
        if (f[4] == "yes") print f[1] }'
}
