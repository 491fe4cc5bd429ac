# shellcheck shell=sh
# Sets up and compiles the folders of builds. Sourced by run, where prepare has set $meson.

# Sets up a folder, and again if a library came or went since; from scratch if the compilers, or the cross file and options of a
# cross build, changed. FOLDER/run-stamp has the reasons to do so. The virtual environment of tools/packages.sh stays.
configure() { # FOLDER OPTIONS...
    folder=$1
    shift
    look 3>/dev/null
    stamp="$("$meson" --version) without:$missing"
    # Each by its version: cc is gcc.
    compilers=$(for name in "${CC:-cc}" "${CXX:-c++}"; do $name --version 2>/dev/null | sed -n '1s/^[^ ]* //p'; done
        [ "${1:-}" != --cross-file ] || echo "$* $(cksum <"$2")")
    if [ -f "$folder/build.ninja" ]; then
        old=$(cat "$folder/run-stamp" 2>/dev/null)
        [ "$old" != "$stamp
$compilers" ] || return 0
        { [ "${old#*
}" = "$compilers" ] && "$meson" setup --reconfigure "$folder" >&2; } || {
            say "$folder is made again, with $(${CC:-cc} --version | head -n 1)"
            find "$folder" -mindepth 1 -maxdepth 1 ! -name venv -exec rm -rf {} +
        }
    fi
    [ -f "$folder/build.ninja" ] || "$meson" setup "$@" "$folder" >&2 || return 1
    printf '%s\n%s\n' "$stamp" "$compilers" >"$folder/run-stamp"
}

# Compiles targets, or everything. Ninja shows its progress on a terminal; elsewhere FOLDER/run-build.log gets its output.
compile() { # FOLDER [TARGET...]
    folder=$1
    shift
    if [ -t 3 ]; then
        (cd "$folder" && NINJA_STATUS='./run: compiling %f of %t, %e s: ' exec ninja "$@") >&3 2>&3 && return
    else
        { sleep 2 3>&- && say "compiling $folder, written to $folder/run-build.log"; } >/dev/null 2>&1 &
        ninja -C "$folder" "$@" >"$folder/run-build.log" 2>&1
        compiled=$?
        kill $! 2>/dev/null
        [ $compiled != 0 ] || return 0
        tail -n 40 "$folder/run-build.log" >&2
    fi
    say "the build in $folder failed"
    return 1
}

# Compiles what is installed. The tests would take as many steps again.
compile_program() { # FOLDER
    # shellcheck disable=SC2046  # a list of words
    compile "$1" $(tr , '\n' <"$1/meson-info/intro-installed.json" |
        sed -n "s,^[ {]*\"$PWD/$1/\([^\"]*\)\": .*,\1,p" | grep -v '[.]\(pc\|cmake\|installed\)$')
}

build() {
    configure build && compile build
}
