#!/bin/sh
# consumer.sh BUILD: installs a build into a fresh prefix, then uses it from outside of the tree: by
# pkg-config from C and C++, shared and static, as a dependency and a subproject of Meson, by CMake, and through the
# installed program, which has to find its golden vectors and plug-ins. MESON names the meson to use.
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 1
meson=${MESON:-meson}
. "$here/tap.sh"

expect() { # NAME COMMAND...
    name=$1
    shift
    run "$@"
    [ $status = 0 ]
    verdict "$name"
}

prefix=$scratch/prefix
expect 'meson install' env DESTDIR="$prefix" "$meson" install -C "$build" --no-rebuild --quiet
config=$(find "$prefix" -name posenc.pc)
lib=$(dirname "$(dirname "$config")") header=$(find "$prefix" -name posenc.h)
if [ -n "$config" ]; then pass 'posenc.pc is installed'; else fail 'posenc.pc is installed' "$prefix"; fi
export PKG_CONFIG_PATH="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$prefix" LD_LIBRARY_PATH="$lib" DYLD_LIBRARY_PATH="$lib"
flags() {
    pkg-config "$@" posenc
}
cc=${CC:-cc} cxx=${CXX:-c++}

cp "$here/consumer/main.c" "$here/consumer/main.cc" "$here/consumer/meson.build" work
by_pkg_config() {
    # shellcheck disable=SC2046  # lists of words
    {
        expect 'C, shared' $cc -std=c11 -Wall -Wextra -Werror -pedantic main.c -o shared $(flags --cflags --libs) -lm
        expect 'it runs' ./shared
        grep -q 'serves rope_half' stdout
        verdict 'it names a backend'
        if $cxx --version >version 2>&1; then
            for year in 11 14 17 20 23; do
                if $cxx -std=c++$year -x c++ -fsyntax-only /dev/null 2>version; then
                    expect "C++$year" $cxx -std=c++$year -Wall -Wextra -Werror -pedantic main.cc -o shared_cc $(flags --cflags --libs)
                    expect 'it runs' ./shared_cc
                else
                    skip "C++$year" 'the compiler does not know it'
                fi
            done
        else
            skip 'C++' 'no C++ compiler'
        fi
        if [ -f "$lib/libposenc.a" ]; then
            expect 'C, static' $cc main.c -o static $(flags --cflags) "$lib/libposenc.a" $(flags --static --libs-only-l | sed 's/-lposenc//') -lm
            expect 'it runs' ./static
            # The line of docs/install.md; no other library has a .pc file here.
            echo 'int main(void) { return 0; }' >work/empty.c
            if (cd work && $cc -static empty.c -o empty) 2>version; then
                expect 'C, linked statically' env PKG_CONFIG_LIBDIR="$lib/pkgconfig" sh -c \
                    "$cc -static main.c -o static \$(pkg-config --static --cflags --libs posenc)"
                expect 'it runs' ./static
            else
                skip 'C, linked statically' 'the compiler finds no static C library'
            fi
        fi
    }

    expect 'as a Meson dependency' "$meson" setup out
    expect 'it builds' "$meson" compile -C out
    expect 'it runs' out/consumer

    # Each example compiles by the line in its first comment, and runs.
    cp "$here"/../../examples/*.c work
    for example in decode_bf16 plugin threads; do
        line=$(sed -n 's/^ \*     \(cc .*\)/\1/p' "work/$example.c")
        expect "the line of examples/$example.c" sh -c "${line:-false}"
        [ $example = plugin ] || expect 'it runs' "./$example"
    done
}
if pkg-config --version >found 2>&1; then by_pkg_config; else skip 'by pkg-config, from C, C++ and Meson' 'no pkg-config'; fi

# As a subproject: the targets of the outer project's build are its own and the library.
mkdir work/subprojects
ln -s "$(dirname "$(dirname "$here")")" work/subprojects/posenc
expect 'as a subproject' "$meson" setup --wrap-mode=forcefallback within
run "$meson" introspect --targets within
if python3 -c '
import json, os, sys
for target in json.load(sys.stdin):
    place = os.path.dirname(os.path.realpath(target["defined_in"]))
    name = target["name"]
    if os.path.basename(place) in ("impl", "cmake") and (name.startswith("backend_") or name in ("posenc", "build.h")):
        continue
    if name != "consumer":
        sys.exit(f"{name} of {place}")' <stdout 2>stderr; then
    pass 'the library alone is built'
else
    fail 'the library alone is built' "$(cat stderr)"
fi
# CMake's files say where the library lies relative to themselves: none, or beside it.
run "$meson" introspect --installed within
if python3 -c '
import json, os, sys
paths = json.load(sys.stdin).values()
lib = next(os.path.dirname(path) for path in paths if path.endswith("libposenc.so") or path.endswith(".dylib"))
sys.exit(any(path.endswith(".cmake") and not path.startswith(lib + "/") for path in paths))' <stdout 2>stderr; then
    pass 'and of CMake files none that lie elsewhere than it'
else
    fail 'and of CMake files none that lie elsewhere than it' "$(cat stderr)"
fi
# What options ask for comes, too.
run "$meson" setup --wrap-mode=forcefallback -Dposenc:program=enabled whole
if grep -q 'Dependency "jansson" not found\|Pkg-config .* not found' stdout; then
    skip 'a subproject with the program' 'no jansson, or no pkg-config that finds it'
else
    run "$meson" introspect --targets whole
    same 'a subproject with the program' "$(grep -o '"name": "posenc", "id": "[^"]*", "type": "exe' stdout | wc -l)" 1
fi

# By CMake, which reads files that were written without it.
if cmake --version >version 2>&1; then
    cp "$here/consumer/CMakeLists.txt" work
    expect 'by find_package of CMake' cmake -G Ninja -S . -B by-cmake "-DCMAKE_PREFIX_PATH=${header%/include/posenc.h}"
    expect 'it builds' cmake --build by-cmake
    expect 'it runs' by-cmake/consumer
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

# Only posenc_* leaves the library.
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
    run "$POSENC" report "$here/../../reports/tests/run.jsonl" -o page.html
    if grep -q 'Install python3-\|Install Python' stderr; then
        skip 'the installed report writes a page' "$(cat stderr)"
    elif [ $status = 0 ] && grep -q '<style>' work/page.html && grep -q 'rope_half' work/page.html; then
        pass 'the installed report writes a page'
    else
        fail 'the installed report writes a page' "exit $status"
    fi
    run "$POSENC" explore -o explore.html
    if grep -q 'Install ' stderr; then
        skip 'the installed explore writes its page' "$(cat stderr)"
    elif [ $status = 0 ] && grep -q 'Attention does not see order' work/explore.html; then
        pass 'the installed explore writes its page'
    else
        fail 'the installed explore writes its page' "exit $status"
    fi
    mv "$prefix" "$scratch/moved"
    POSENC=$scratch/moved${program#"$prefix"}
    succeeds 'also after the tree was moved' 'passed' verify --backend scalar --suite vectors
else
    skip 'the installed program' 'it was not built'
fi
finish
