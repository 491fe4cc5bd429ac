#!/bin/sh
# The man page and the completions of the shells, as the build made them in the folder MANUAL.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/cli/tests/tap.sh"

# ---- Options ----

list_commands >commands
same 'commands of the help' "$(grep -c . commands)" 33

: >silent
missing_man='' missing_bash='' missing_zsh='' missing_fish='' n=0
while read -r command; do
    # Commands in Python print no help where Python lacks Jinja2 or rich.
    "$POSENC" $command --help >help 2>help.log || echo "$command" >>silent
    options_of help >options
    sed -n "/^\.Ss posenc $command\$/,/^\.S[hs]/p" "$MANUAL/posenc.1" | sed '1!{/^\.Sh/q;}' | tr -d '\\' >section
    sed -n "s/^    \"$command:\"\*:-\*) words=\"\(.*\)\" ;;/ \1 /p" "$MANUAL/posenc" >words
    sed -n "/^    \"$command\") _arguments/,/;;\$/p" "$MANUAL/_posenc" >arguments
    grep "^    complete -c posenc -n '__posenc_at $command' " "$MANUAL/posenc.fish" >completes
    while read -r option; do
        n=$((n + 1))
        case $option in --*) fish="-l ${option#--}" ;; *) fish="-s ${option#-}" ;; esac
        grep -Eq "^\.It .*&$option( |,|\$)" section || missing_man="$missing_man $command:$option"
        grep -q -e " $option " words || missing_bash="$missing_bash $command:$option"
        grep -Eq "'[*]$option(\[|=|[+])" arguments || missing_zsh="$missing_zsh $command:$option"
        grep -q -e " $fish " completes || missing_fish="$missing_fish $command:$option"
    done <options
done <commands
[ $n -gt $((300 - 10 * $(grep -c . silent))) ]
verdict 'options of the help' "only $n"
same 'each is in the man page' "$missing_man" ''
same 'in the completion of bash' "$missing_bash" ''
same 'in that of zsh' "$missing_zsh" ''
same 'in that of fish' "$missing_fish" ''

# ---- The man page ----

for section in NAME SYNOPSIS DESCRIPTION COMMANDS ENVIRONMENT 'EXIT STATUS'; do
    grep -q "^\.Sh $section\$" "$MANUAL/posenc.1" || echo "$section"
done >absent
same 'its sections' "$(cat absent)" ''
if command -v mandoc >/dev/null; then
    run mandoc -T lint -W warning "$MANUAL/posenc.1"
    same 'mandoc has no complaints' "$status $(cat stdout stderr)" '0 '
    run mandoc -T ascii "$MANUAL/posenc.1"
    ended 'mandoc prints it' 0 'posenc verify --kernel rope_half --backend avx2'
else
    skip 'mandoc has no complaints' 'no mandoc'
fi

# HF_HOME and HF_HUB_CACHE are in a list of Python. POSENC_EMULATOR is set by the program.
grep -rhoE '(getenv|_environment|get_variable|environ[.]get)[(]"[A-Z_]+"' "$root"/cli/*.c "$root/impl" "$root/conformance/engine" \
    "$root/reports/posenc" | sed 's/.*("\(.*\)"/\1/' | sort -u | grep -vx -e HOME -e PATH -e TERM -e POSENC_EMULATOR >variables
sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh EXIT/s/^\.It .*&//p' "$MANUAL/posenc.1" >documented
[ "$(grep -c POSENC_ variables)" -ge 6 ] && ! grep -vxF -f documented variables >undocumented
verdict 'variables that the program reads' "missing: $(tr '\n' ' ' <undocumented)"

# ---- Completions, as a user asks for them ----

mkdir bin
ln -s "$POSENC" bin/posenc
export PATH="$scratch/bin:$PATH"

# Each shell completes what is left of the bar to what is right of it. The last three ask the program.
cat >cases <<'CASES'
posenc ver|verify
posenc results tr|trend
posenc verify --exh|--exhaustive
posenc results export --form|--format
posenc verify --suite side|side-effects
posenc list scal|scalings
posenc verify --kernel rope_hal|rope_half
posenc bench --quick --model llama-3.1-8|llama-3.1-8b
posenc tune --kernel alibi_|alibi_add
posenc report --backend scal|scalar
posenc explain resonance_|resonance_yarn
posenc plot sinusoidal --layout cos|cos_sin
CASES

test_shell() { # SHELL COMMAND...: the command has LINE and prints what the shell completes it to
    shell=$1
    shift
    if ! command -v "$shell" >/dev/null || ! command -v timeout >/dev/null; then
        skip "$shell completes" "no $shell, or no timeout(1)"
        return
    fi
    while IFS='|' read -r line want; do
        ! grep -qx "$(echo "$line" | cut -d ' ' -f 2)" silent || continue
        run env LINE="$line" WANT="$want" TERM=vt100 timeout 60 "$@"
        same "$shell: $line" "$status $(cat stdout)" "0 $want"
    done <cases
}

test_shell bash bash --norc -c '. "$MANUAL/posenc"; complete -p posenc | grep -q "_posenc posenc$" || exit 3
    read -ra COMP_WORDS <<<"$LINE"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _posenc; printf "%s\n" "${COMPREPLY[@]}"'
# zsh completes on a terminal only: ^X prints the line there.
cat >zsh.zsh <<'ZSH'
zmodload zsh/zpty && zpty shell zsh -f -i || exit 3
zpty -w shell "fpath=($MANUAL \$fpath); autoload -Uz compinit && compinit -u -D"
zpty -w shell 'show() { print -r -- "<$BUFFER>" }; zle -N show; bindkey "^X" show; print rea""dy'
zpty -r -m shell shown '*ready*' && zpty -w -n shell "$LINE"$'\t\x18' && zpty -r -m shell shown '*<posenc *>*'
print -r -- ${${${${shown##*<}%%>*}%[ =]}##* }
ZSH
terminal=$(no_terminal)
if [ -z "$terminal" ]; then test_shell zsh zsh -f "$scratch/zsh.zsh"; else skip 'zsh completes' "$terminal"; fi
test_shell fish fish --no-config -c 'source $MANUAL/posenc.fish; complete -C $LINE | cut -f 1'

# = before a value, which bash gives as a word, and files where the program reads or writes them.
if command -v bash >/dev/null; then
    run bash --norc -c '. "$MANUAL/posenc"; COMP_WORDS=(posenc verify --dtype = b); COMP_CWORD=4; _posenc; echo "${COMPREPLY[@]}"
        compopt() { echo "$*"; }; COMP_WORDS=(posenc verify --plugin ""); COMP_CWORD=3; _posenc'
    same 'bash: = and files' "$(cat stdout)" "$(printf 'bf16\n-o default')"
fi
finish
