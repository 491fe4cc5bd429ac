# shellcheck shell=sh
# Sets up and compiles the folders of builds. Sourced by run, where prepare has set $meson.

# Sets up a folder, and again if a library came or went since, or CC or CXX names another compiler. FOLDER/run-stamp has
# the reasons to do so.
configure() { # FOLDER OPTIONS...
    folder=$1
    shift
    look 3>/dev/null
    case "$*" in
    *--cross-file*) ;;
    *) [ ! -f "$folder/build.ninja" ] || same_compilers || wipe || return 1 ;;
    esac
    stamp="$("$meson" --version) without:$missing"
    if [ -f "$folder/build.ninja" ] && [ "$(cat "$folder/run-stamp" 2>/dev/null)" = "$stamp" ]; then
        return 0
    fi
    if [ -f "$folder/build.ninja" ]; then
        "$meson" setup --reconfigure "$folder" >&2 || find "$folder" -mindepth 1 -maxdepth 1 ! -name venv -exec rm -rf {} +
    fi
    [ -f "$folder/build.ninja" ] || "$meson" setup "$@" "$folder" >&2 || return 1
    printf '%s' "$stamp" >"$folder/run-stamp"
}

# Lets Meson empty $folder and set it up again; the virtual environment of tools/packages.sh stays.
wipe() {
    [ ! -d "$folder/venv" ] || mv "$folder/venv" "$folder-venv" || return 1
    "$meson" setup --wipe "$folder" >&2
    wiped=$?
    [ ! -d "$folder-venv" ] || mv "$folder-venv" "$folder/venv" || return 1
    return $wiped
}

# Succeeds unless CC or CXX names another compiler than the one that $folder was set up with. If neither is set, the folder
# keeps its compiler, and a message names it.
same_compilers() {
    for language in c cpp; do
        case $language in c) named=${CC:-} now=${CC:-cc} ;; *) named=${CXX:-} now=${CXX:-c++} ;; esac
        was=$(compiler_of $language)
        now=$($now --version 2>/dev/null | sed -n '1s/^[^ ]* //p') # its own name apart: cc is gcc
        [ -n "$was" ] && [ -n "$now" ] && [ "${was#* }" != "$now" ] || continue
        if [ -n "$named" ]; then
            say "$folder was made with $was; all of it is made again with $named"
            return 1
        fi
        say "$folder is made with $was, and stays so until CC or CXX names another compiler"
    done
    return 0
}

# Prints the first line of the version of the compiler that $folder was set up with.
compiler_of() { # LANGUAGE
    awk -v language="\"$1\":" '
        $1 == "\"build\":" { exit }
        $1 ~ /^"(c|cpp)":/ { here = $1 == language }
        here && $1 == "\"full_version\":" { sub(/^ *"full_version": "/, ""); sub(/",?$/, ""); print; exit }
        ' "$folder/meson-info/intro-compilers.json" 2>/dev/null
}

# Compiles targets, or everything. FOLDER/run-build.log has the output.
compile() { # FOLDER [TARGET...]
    folder=$1
    shift
    : >"$folder/run-build.log"
    follow "$folder" </dev/null >/dev/null 2>&1 &
    follower=$!
    "$meson" compile -C "$folder" "$@" >"$folder/run-build.log" 2>&1
    compiled=$?
    kill $follower 2>/dev/null
    wait $follower 2>/dev/null
    [ ! -t 3 ] || printf '\r\033[K' >&3
    [ ! -f "$folder/run-told" ] || say "compiled $folder in $(($(date +%s) - $(cat "$folder/run-told"))) s"
    rm -f "$folder/run-told"
    [ $compiled != 0 ] || return 0
    tail -n 40 "$folder/run-build.log" >&2
    say "the build in $folder failed"
    return 1
}

# Compiles what is installed. The tests would take as many steps again.
compile_program() { # FOLDER
    opened=$(tr , '\n' <"$1/meson-info/intro-installed.json" | sed -n "s,^[ {]*\"$PWD/$1/\([^\"]*\)\": .*,\1,p" |
        grep -v '[.]\(pc\|cmake\|installed\)$' | tr '\n' ,)
    compile "$1" ${opened:+"--ninja-args=${opened%,}"}
}

# Prints the progress of a build: a line that changes on a terminal, elsewhere one line if it takes more than two seconds.
follow() { # FOLDER
    begun=$(date +%s)
    rm -f "$1/run-told"
    while sleep 1 3>&- && kill -0 $$; do
        step=$(tail -c 4000 "$1/run-build.log" | tr '\r' '\n' | sed -n 's|^\[\([0-9]*\)/\([0-9]*\)\].*|\1 \2|p' | tail -n 1)
        spent=$(($(date +%s) - begun))
        at=${step% *} steps=${step#* }
        if [ "${at:-0}" = 0 ] || [ $spent -lt 2 ]; then
            continue
        elif [ -t 3 ]; then
            printf '\r\033[K./run: compiling %d of %d, about %d s left' $at $steps $((spent * (steps - at) / at)) >&3
        elif [ ! -f "$1/run-told" ]; then
            say "compiling $1: $steps steps, written to $1/run-build.log"
            echo $begun >"$1/run-told"
        fi
    done
}

build() {
    configure build && compile build
}
