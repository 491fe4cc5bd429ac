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
