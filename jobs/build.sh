# shellcheck shell=sh
# Setting up and compiling the folders of a build.  Sourced by run; prepare has set $meson.

# configure FOLDER OPTIONS...: sets up once; again when a library came or went since.
configure() {
    folder=$1
    shift
    look 2 2>/dev/null
    stamp="$("$meson" --version) without:$missing"
    if [ -f "$folder/build.ninja" ] && [ "$(cat "$folder/run-stamp" 2>/dev/null)" = "$stamp" ]; then
        return 0
    fi
    if [ -f "$folder/build.ninja" ]; then
        "$meson" setup --reconfigure "$folder" >&2 || rm -rf "$folder"
    fi
    [ -f "$folder/build.ninja" ] || "$meson" setup "$@" "$folder" >&2 || return 1
    printf '%s' "$stamp" >"$folder/run-stamp"
}

# compile FOLDER TARGETS...: everything when none is named.
compile() {
    folder=$1
    shift
    "$meson" compile -C "$folder" "$@" >"$folder/run-build.log" 2>&1 && return 0
    tail -n 40 "$folder/run-build.log" >&2
    say "the build in $folder failed"
    return 1
}

build() {
    configure build && compile build
}
