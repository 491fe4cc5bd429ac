#!/bin/sh
# consumer.sh BUILD: installs a build into a new folder and uses it from outside of the tree: by pkg-config from C and C++,
# shared and static, as a dependency and a subproject of Meson, by CMake, and by the installed program, which has to find
# its golden vectors and plug-ins. MESON names the meson to use.
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 1
meson=${MESON:-meson}
. "$here/tap.sh"

builds() { # NAME PROGRAM COMMAND...: the command succeeds, and then the program that it makes
    name=$1 made=$2
    shift 2
    run "$@"
    [ $status != 0 ] || run "$made"
    same "$name" $status 0
}

prefix=$scratch/prefix
expect 'meson install' env DESTDIR="$prefix" "$meson" install -C "$build" --no-rebuild --quiet
config=$(find "$prefix" -name posenc.pc)
[ -n "$config" ]
verdict 'posenc.pc is installed'
lib=$(dirname "$(dirname "$config")") header=$(find "$prefix" -name posenc.h)
export PKG_CONFIG_PATH="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$prefix" LD_LIBRARY_PATH="$lib" DYLD_LIBRARY_PATH="$lib"
cc=${CC:-cc} cxx=${CXX:-c++} warnings='-Wall -Wextra -Werror -pedantic'
cp "$here/consumer/main.c" "$here/consumer/main.cc" "$here/consumer/meson.build" work

# ---- By pkg-config: C, C++, static libraries, Meson, examples ----

# shellcheck disable=SC2046  # lists of words
by_pkg_config() {
    flags=$(pkg-config --cflags --libs posenc)
    builds 'C, shared' ./shared $cc -std=c11 $warnings main.c -o shared $flags -lm
    grep -q 'runs rope_half' stdout
    verdict 'it names a backend'
    if $cc -fshort-enums -fsyntax-only -x c /dev/null 2>version; then
        builds 'C, with short enums' ./short $cc -std=c11 -fshort-enums $warnings main.c -o short $flags -lm
    else
        skip 'C, with short enums' 'a compiler without -fshort-enums'
    fi
    for year in 11 14 17 20 23; do
        if $cxx -std=c++$year -x c++ -fsyntax-only /dev/null 2>version; then
            builds "C++$year" ./shared_cc $cxx -std=c++$year $warnings main.cc -o shared_cc $flags
        else
            skip "C++$year" 'no C++ compiler, or one that does not know it'
        fi
    done
    if [ -f "$lib/libposenc.a" ]; then
        builds 'C, static' ./static $cc main.c -o static $(pkg-config --cflags posenc) "$lib/libposenc.a" \
            $(pkg-config --static --libs-only-l posenc | sed 's/-lposenc//') -lm
        # The line of docs/install.md; no other library has a .pc file here.
        echo 'int main(void) { return 0; }' >work/empty.c
        if (cd work && $cc -static empty.c -o empty) 2>version; then
            builds 'C, linked statically' ./static env PKG_CONFIG_LIBDIR="$lib/pkgconfig" sh -c \
                "$cc -static main.c -o static \$(pkg-config --static --cflags --libs posenc)"
        else
            skip 'C, linked statically' 'the compiler finds no static C library'
        fi
    fi
    builds 'as a Meson dependency' out/consumer sh -c '"$1" setup out && "$1" compile -C out' sh "$meson"

    # The first comment of each example has the line that compiles it.
    cp "$here"/../../examples/*.c work
    for example in decode_bf16 plugin tasks threads; do
        line=$(sed -n 's/^ \*     \(cc .*\)/\1/p' "work/$example.c")
        case $example in plugin) program=true ;; *) program=./$example ;; esac
        builds "the line of examples/$example.c" "$program" sh -c "${line:-false}"
    done
    if $cxx -std=c++17 -x c++ -fsyntax-only /dev/null 2>version; then
        builds 'the ten tasks, in C++17' ./tasks_cc $cxx -std=c++17 $warnings -x c++ tasks.c -o tasks_cc $flags
    else
        skip 'the ten tasks, in C++17' 'no C++ compiler, or one that does not know it'
    fi
    same 'each of the ten tasks has at most twelve lines' "$(sed '/^\/\* ---- Their check/,$d' work/tasks.c |
        awk '/^{$/ { n = 0; next } /^}$/ { tasks++; if (n > 12) print "one has " n; next } { n++ } END { print tasks }')" 10
    expect 'from ctypes' python3 -B "$here/consumer/client.py" "$lib/libposenc.so"
    expect 'examples/rope.py' python3 -B "$here/../../examples/rope.py" "$lib/libposenc.so"
}
if pkg-config --version >found 2>&1; then by_pkg_config; else skip 'by pkg-config, from C, C++ and Meson' 'no pkg-config'; fi

# ---- As a subproject of Meson ----

# The outer project's build has its own targets and the library, unless options ask for more.
mkdir work/subprojects
ln -s "$(dirname "$(dirname "$here")")" work/subprojects/posenc
expect 'as a subproject' "$meson" setup --wrap-mode=forcefallback within
test_targets() { # NAME FOLDER: the library is the only target of posenc
    run "$meson" introspect --targets "$2"
    python3 -c '
import json, os, sys
for target in json.load(sys.stdin):
    place = os.path.dirname(os.path.realpath(target["defined_in"]))
    name = target["name"]
    if os.path.basename(place) in ("impl", "cmake") and (name.startswith("backend_") or name in ("posenc", "build.h")):
        continue
    if name != "consumer":
        sys.exit(f"{name} of {place}")' <stdout 2>stderr
    verdict "$1"
}
test_targets 'the library alone is built' within
expect 'without optional parts' "$meson" setup --auto-features=disabled alone subprojects/posenc
test_targets 'the library alone is built then' alone
# CMake's files name the library relative to themselves: there are none, or they lie beside it.
run "$meson" introspect --installed within
python3 -c '
import json, os, sys
paths = json.load(sys.stdin).values()
lib = next(os.path.dirname(path) for path in paths if path.endswith("libposenc.so") or path.endswith(".dylib"))
sys.exit(any(path.endswith(".cmake") and not path.startswith(lib + "/") for path in paths))' <stdout 2>stderr
verdict 'and of CMake files none that lie elsewhere than it'
run "$meson" setup --wrap-mode=forcefallback -Dposenc:program=enabled whole
if grep -q 'Dependency "jansson" not found\|Pkg-config .* not found' stdout; then
    skip 'a subproject with the program' 'no jansson, or no pkg-config that finds it'
else
    run "$meson" introspect --targets whole
    same 'a subproject with the program' "$(grep -o '"name": "posenc", "id": "[^"]*", "type": "exe' stdout | wc -l)" 1
fi

# ---- By CMake ----

if cmake --version >version 2>&1; then
    cp "$here/consumer/CMakeLists.txt" work
    builds 'by find_package of CMake' by-cmake/consumer sh -c 'cmake -G Ninja -S . -B by-cmake "$1" && cmake --build by-cmake' sh \
        "-DCMAKE_PREFIX_PATH=${header%/include/posenc.h}"
    expect 'with the static library, too' by-cmake/consumer_static
    cat >work/asks.cmake <<'END'
set(PACKAGE_FIND_VERSION ${ASKED})
string(REPLACE "." ";" parts ${ASKED})
list(GET parts 0 PACKAGE_FIND_VERSION_MAJOR)
list(GET parts 1 PACKAGE_FIND_VERSION_MINOR)
include(${FILE})
message(${PACKAGE_VERSION_COMPATIBLE})
END
    for asked in 0.1:TRUE 0.1.0:TRUE 0.1.9:FALSE 0.0:FALSE 0.2:FALSE 1.0:FALSE; do
        run cmake "-DASKED=${asked%:*}" "-DFILE=$lib/cmake/posenc/posenc-config-version.cmake" -P asks.cmake
        same "CMake asks for posenc ${asked%:*}" "$(cat stderr)" "${asked#*:}"
    done
else
    skip 'by find_package of CMake' 'no cmake'
fi

# ---- Exports of the library ----

if command -v nm >found; then
    if [ -f "$lib/libposenc.dylib" ]; then # where C's names begin with an underscore
        run sh -c "nm -gU '$lib'/libposenc.dylib | awk '{ print \$3 }' | grep -v '^_posenc_'"
    else
        run sh -c "nm -D --defined-only '$lib'/libposenc.so | awk '{ print \$3 }' | grep -v '^posenc_'"
    fi
    [ ! -s stdout ]
    verdict 'exports are posenc_* only'
else
    skip 'exports are posenc_* only' 'no nm'
fi

# ---- The installed program ----

page() { # TEXT COMMAND [ARGUMENTS...]: the command writes a page with a style and this text
    text=$1
    shift
    run "$POSENC" "$@" -o page.html --force
    if grep -q 'Install ' stderr; then
        skip "the installed $1 writes its page" "$(cat stderr)"
    else
        [ $status = 0 ] && grep -q '<style>' work/page.html && grep -q "$text" work/page.html
        verdict "the installed $1 writes its page"
    fi
}
program=$(find "$prefix" -path '*/bin/posenc' -type f)
if [ -n "$program" ]; then
    POSENC=$program
    unset POSENC_VECTORS
    succeeds 'the installed program verifies' 'passed' verify --backend scalar --suite vectors
    pack=$(sed -n 's/^vectors: \([^,]*\),.*/\1/p' stderr)
    pack=$(cd "$(dirname "$pack")" && pwd -P)
    case $pack in
    "$(cd "$prefix" && pwd -P)"/*) pass 'with the installed vectors' ;;
    *) fail 'with the installed vectors' "used $pack" ;;
    esac
    for plugin in "$lib"/posenc/*.so; do
        [ ! -e "$plugin" ] || succeeds "it has $(basename "$plugin" .so)" "^. $(basename "$plugin" .so) " list backends
    done
    same 'nothing compiled by Python is installed' "$(find "$prefix" -name __pycache__)" ''
    page rope_half report "$here/../../reports/tests/run.jsonl"
    page 'Attention does not see order' explore
    mv "$prefix" "$scratch/moved"
    POSENC=$scratch/moved${program#"$prefix"}
    succeeds 'also after the tree was moved' 'passed' verify --backend scalar --suite vectors
else
    skip 'the installed program' 'it was not built'
fi
finish
