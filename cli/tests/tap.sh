# shellcheck shell=sh
# What the scripts here share: TAP on stdout, a scratch folder that goes away, and the ways a command
# can be expected to behave.  POSENC is the program under test.
set -u
scratch=$(mktemp -d) || exit 1
# What the shell itself complains of goes into a file: finish() fails where a script asked for a function or a command
# that is not there, which sh passes over.
exec 2>"$scratch/complaints"
trap 'sed "s/^/# /" "$scratch/complaints"; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
cd "$scratch" || exit 1
mkdir work
tests=0

pass() {
    tests=$((tests + 1))
    echo "ok $tests - $1"
}

fail() { # NAME REASON: what was seen goes into comments
    tests=$((tests + 1))
    echo "not ok $tests - $1"
    echo "# $2"
    [ ! -f "$scratch/stderr" ] || sed 's/^/# stderr: /; 20q' "$scratch/stderr"
    [ ! -f "$scratch/stdout" ] || sed 's/^/# stdout: /; 20q' "$scratch/stdout"
}

same() { # NAME GOT WANT
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got $2, want $3"; fi
}

skip() {
    tests=$((tests + 1))
    echo "ok $tests - $1 # SKIP $2"
}

finish() {
    ! grep -q 'not found$' "$scratch/complaints" || fail 'every function of the script is there' 'see below'
    echo "1..$tests"
}

# Runs a command in the folder work; its output is in stdout and stderr, its exit code in $status.
run() {
    (cd work && "$@") >"$scratch/stdout" 2>"$scratch/stderr"
    status=$?
}

# await COMMAND...: runs it until it succeeds.  It gives up, with status 1, after ten minutes, which only a program that
# hangs takes.  A test waits so for the state that it needs; it never sleeps for a time in which that may come.
await() {
    looks=0
    until "$@"; do
        looks=$((looks + 1))
        [ $looks -lt 6000 ] || return 1
        sleep 0.1
    done
}

# processes PATTERN: command lines of processes with this test's scratch folder, and PATTERN, among their arguments.
# Those of other tests and of other users are not among them.
processes() {
    if [ -r /proc/self/cmdline ]; then
        # shellcheck disable=SC2062  # files
        for one in $(printf %s "$scratch" | grep -alF -f - /proc/[0-9]*/cmdline); do tr '\0' ' ' <"$one" && echo; done
    else
        printf %s "$scratch" >own && ps -e -o args | grep -F -f own
    fi 2>"$scratch/gone.log" | pattern="$1" awk '$0 ~ ENVIRON["pattern"]'
}
no_process() { [ -z "$(processes "$1")" ]; }
has_process() { ! no_process "$1"; }
lists_processes() { [ -r /proc/self/cmdline ] || command -v ps >/dev/null; }

# ends NAME PATTERN: no such process is left.
ends() {
    if ! lists_processes; then
        skip "$1" 'this system does not list processes'
    elif await no_process "$2"; then
        pass "$1"
    else
        fail "$1" "$(processes "$2")"
    fi
}

# Prints why nothing can be run on a pseudo-terminal here; nothing where it can.
no_terminal() {
    if ! script --version 2>&1 | grep -q util-linux; then
        echo 'there is no script(1) of util-linux (Debian: bsdutils)'
    elif ! script -qefc true "$scratch/no_terminal" </dev/null >"$scratch/no_terminal.log" 2>&1; then
        echo 'no pseudo-terminal can be opened (/dev/pts)'
    fi
}

# terminal COLUMNS TERM FILE COMMAND: a shell runs it on a pseudo-terminal, in the background, as process $shown; what it
# shows goes into FILE.
terminal() {
    : >"$3"
    TERM=$2 script -qefc "stty cols $1 rows 24; $4" "$3" >"$scratch/script.log" 2>&1 </dev/null &
    shown=$!
}
# shows FILE PATTERN: a line of that terminal, or what stood in one for a time, matches.
shows() { tr '\r' '\n' <"$1" | grep -Eq -e "$2"; }


# What no message may be, whatever it says; prints nothing where all is well.  The words of the command are given.
astray() {
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

# refuses NAME PATTERN ARGUMENTS...: exit 2, a message that matches, nothing on stdout, no file.
refuses() {
    name=$1 pattern=$2
    shift 2
    run "$POSENC" "$@"
    if [ $status != 2 ]; then
        fail "$name" "exit $status instead of 2"
    elif ! grep -Eq -e "$pattern" stderr; then
        fail "$name" "the message does not match: $pattern"
    elif [ "$(grep -c '^posenc' stderr)" != 1 ]; then
        fail "$name" 'expected one message'
    elif [ -n "$(astray "$@")" ]; then
        fail "$name" "the message is astray: $(astray "$@")"
    elif [ -s stdout ]; then
        fail "$name" 'something on stdout'
    elif [ -n "$(ls -A work)" ]; then
        fail "$name" "left behind: $(ls -A work)"
        rm -rf work
        mkdir work
    else
        pass "$name"
    fi
}

# succeeds NAME PATTERN ARGUMENTS...: exit 0 and stdout that matches.
succeeds() {
    name=$1 pattern=$2
    shift 2
    run "$POSENC" "$@"
    if [ $status != 0 ]; then
        fail "$name" "exit $status"
    elif ! grep -Eq -e "$pattern" stdout; then
        fail "$name" "stdout does not match: $pattern"
    else
        pass "$name"
    fi
}

# The backends that run here, from the program itself.
usable() {
    "$POSENC" list backends | awk 'NR > 3 && /^[*+ ] [a-z]/ { line = substr($0, 3); split(line, f, " ")
        if (f[4] == "yes") print f[1] }'
}
