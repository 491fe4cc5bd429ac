# shellcheck shell=sh
# ./run bundle [FILE]: makes an archive of the program and all that it needs, which runs from any folder. Sourced by run.
#
# FILE is NAME.tar.gz (default: build-bundle/posenc-VERSION-linux-MACHINE.tar.gz). It has the program, the library, plug-ins,
# golden vectors, the header, the Python part with the modules that it imports, the scripts of examples/fleet and
# examples/ci, and licences.
#
# The compiler is this system's. The libraries are those of an older Debian (BUNDLE_SUITE=bullseye, which is 11), so that
# systems of that age run the bundle; all but glibc's are inside. The modules are Debian 12's and pure Python, for any Python
# from 3.9 on. The same commit and compiler give the same bytes: files are sorted, their modes do not depend on the umask, and
# they have the time of the commit or of SOURCE_DATE_EPOCH.
#
# It takes Linux and Debian's packages (apt-get, dpkg-deb). DEBIAN_MIRROR=URI names a mirror that has both releases.

bundle() { # FILE
    bundle_folders "$1" && bundle_ready && bundle_build && bundle_fill && bundle_check && bundle_write
}

# Reads FILE and BUNDLE_SUITE: sets $bundle_file, $bundle_runtime (the gcc of that release), $bundle_name, $bundle_stage and
# $bundle_top, its folder with that name.
bundle_folders() { # FILE
    case ${BUNDLE_SUITE:=bullseye} in
    bullseye) bundle_runtime=10 ;;
    bookworm) bundle_runtime=12 ;;
    trixie) bundle_runtime=14 ;;
    *)
        say "bundle: BUNDLE_SUITE: $BUNDLE_SUITE: expected bullseye, bookworm or trixie"
        return 1
        ;;
    esac
    bundle_version=$(sed -n "s/^ *version: '\([0-9.]*\)',\$/\1/p" meson.build)
    bundle_name=posenc-$bundle_version-linux-$(uname -m)
    bundle_file=${1:-build-bundle/$bundle_name.tar.gz}
    bundle_stage=build-bundle/stage
    bundle_top=$bundle_stage/$bundle_name
    case $bundle_file in *.tar.gz) ;; *)
        say "bundle: $bundle_file: expected NAME.tar.gz"
        return 1
        ;;
    esac
    mkdir -p build-bundle || return 1
    [ -d "$(dirname "$bundle_file")" ] || {
        say "bundle: $bundle_file: its folder is not there"
        return 1
    }
}

# Installs the compiler and makes the sysroots: sets $bundle_sysroot, $bundle_modules and $bundle_tuple.
bundle_ready() {
    [ "$(uname -s)" = Linux ] || {
        say "bundle: it takes Linux, this is $(uname -s)"
        return 1
    }
    bring apt-get:apt dpkg-deb:dpkg gcc:gcc g++:g++ objdump:binutils readelf:binutils \
        /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring || return 1
    bundle_tuple=$(gcc -dumpmachine) bundle_arch=$(dpkg --print-architecture)
    bundle_sysroot=$PWD/build-sysroot/$BUNDLE_SUITE-$bundle_arch
    sh tools/sysroot.sh "$bundle_arch" "$BUNDLE_SUITE" "$bundle_sysroot" libc6-dev "libstdc++-$bundle_runtime-dev" \
        libjansson-dev libbenchmark-dev libsleef-dev || return 1
    bundle_modules=$PWD/build-sysroot/python-$bundle_arch
    sh tools/sysroot.sh "$bundle_arch" bookworm "$bundle_modules" python3-jinja2 python3-rich libjs-d3
}

bundle_build() {
    bundle_description=build-bundle/older-glibc.ini
    [ -d build-bundle ] || mkdir build-bundle || return 1
    sed "s,@SYSROOT@,$bundle_sysroot,; s,@TREE@,$PWD,; s,@TUPLE@,$bundle_tuple,; s,@RUNTIME@,$bundle_runtime,; s,@CC@,gcc,
        s,@CXX@,g++,; s,@MACHINE@,$(uname -m)," tools/bundle/older-glibc.ini.in >$bundle_description
    configure build-bundle/build --cross-file $bundle_description -Dprogram=enabled -Dbench=enabled -Dtests=disabled \
        -Dgolden=disabled || return 1
    compile_program build-bundle/build
}

# Fills the folder of the bundle.
bundle_fill() {
    rm -rf "$bundle_stage" && mkdir -p "$bundle_top/licences" &&
        DESTDIR=$PWD/$bundle_stage/installed "$meson" install -C build-bundle/build --no-rebuild --quiet --tags runtime &&
        mv $bundle_stage/installed/usr/local/* "$bundle_top" && rm -r "$bundle_stage/installed" || return 1
    bundle_libraries && bundle_python || return 1
    mkdir "$bundle_top/fleet" "$bundle_top/ci" "$bundle_top/include" && cp examples/fleet/*.sh "$bundle_top/fleet" &&
        cp examples/ci/compare.sh "$bundle_top/ci" &&
        cp -R impl/include/posenc.h impl/include/posenc_kernels.def impl/include/posenc "$bundle_top/include" && cp LICENSE "$bundle_top" || return 1
    for package in libjansson4 libbenchmark1 libsleef3 gcc-$bundle_runtime-base; do
        cp -L "$bundle_sysroot/usr/share/doc/$package/copyright" "$bundle_top/licences/$package" || return 1
    done
    for package in python3-jinja2 python3-markupsafe python3-rich libjs-d3; do
        cp -L "$bundle_modules/usr/share/doc/$package/copyright" "$bundle_top/licences/$package" || return 1
    done
    find "$bundle_top" -type f -exec chmod u=rw,go=r {} + &&
        chmod 755 "$bundle_top"/bin/* "$bundle_top"/libexec/posenc/posenc-* "$bundle_top"/fleet/*.sh "$bundle_top"/ci/*.sh
}

# Copies the libraries that the program, the plug-ins and these libraries need, but for glibc.
bundle_libraries() {
    while bundle_missing=$(bundle_needs | grep -v "$bundle_glibc_names") && [ -n "$bundle_missing" ]; do
        for library in $bundle_missing; do
            cp "$bundle_sysroot/usr/lib/$bundle_tuple/$library" "$bundle_top/lib" || {
                say "bundle: $library is needed, and not in $bundle_sysroot"
                return 1
            }
        done
    done
}

# Copies the modules that reports import. Those that rich has for code and Markdown are left out: nothing here prints
# either, and they are four times as large as the rest.
bundle_python() {
    bundle_python=$bundle_top/libexec/posenc/python
    for module in jinja2 markupsafe rich; do
        cp -RL "$bundle_modules/usr/lib/python3/dist-packages/$module" "$bundle_python" || return 1
    done
    cp -L "$bundle_modules/usr/share/javascript/d3/d3.min.js" "$bundle_python/posenc/report" &&
        find "$bundle_python" -name '_speedups.*' -exec rm {} +
}

# Prints the names of libraries that are needed and not inside.
bundle_needs() {
    find "$bundle_top/bin" "$bundle_top/lib" -type f -exec readelf -d {} + | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u |
        while read -r needed; do [ -e "$bundle_top/lib/$needed" ] || echo "$needed"; done
}
bundle_glibc_names='^\(lib\(c\|m\|dl\|pthread\|rt\)[.]so[.][0-9]\|ld-linux.*\)$'

# Sets $bundle_glibc, the oldest that has every symbol. Fails if a file names a path of this machine, or if a file of the
# Python part has an unexpected type.
bundle_check() {
    bundle_objects=$(find "$bundle_top/bin" "$bundle_top/lib" -type f)
    bundle_glibc=$(objdump -T $bundle_objects | sed -n 's/.*[ (]GLIBC_\([0-9][0-9.]*\)[) ].*/\1/p' | sort -uV | tail -n 1)
    if grep -rlF -e "$PWD" "$bundle_top" >&2; then
        say "bundle: these files name $PWD"
        return 1
    fi
    if find "$bundle_top/libexec" -type f ! -name '*.py' ! -name 'posenc-*' ! -name '*.j2' ! -name '*.css' ! -name '*.js' \
        ! -name '*.json' ! -name '*.md' ! -name '*.txt' ! -name '*.svg' ! -name '*.wasm' ! -name py.typed | grep . >&2; then
        say 'bundle: these files are no part of the Python that was meant'
        return 1
    fi
}

# Writes README and packs the archive.
bundle_write() {
    commit=$(sh cli/commit.sh .) when=$(date -r CHANGELOG.md +%s)
    if [ "$commit" ]; then
        when=$(git log -1 --format=%ct)
        [ -z "$(git status --porcelain)" ] || commit="${commit%-dirty}, with changes"
    fi
    sed "s/@VERSION@/$bundle_version/g; s/@COMMIT@/${commit:-no commit}/g; s/@MACHINE@/$(uname -m)/g; s/@GLIBC@/$bundle_glibc/g
        s/@COMPILER@/$(gcc --version | sed -n '1s,[/&],\\&,g;1p')/g" tools/bundle/README.in >"$bundle_top/README" || return 1
    chmod 644 "$bundle_top/README"
    find "$bundle_top" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-$when}" {} +
    tar -c --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=ustar -C "$bundle_stage" "$bundle_name" \
        >"$bundle_stage/bundle.tar" && gzip -9n <"$bundle_stage/bundle.tar" >"$bundle_file.partial" &&
        mv "$bundle_file.partial" "$bundle_file" && rm "$bundle_stage/bundle.tar" || return 1
    say "bundle: $bundle_file, $(wc -c <"$bundle_file") bytes, SHA-256 $(sha256sum <"$bundle_file" | cut -c 1-16)"
    say "bundle: glibc $bundle_glibc or newer, $(uname -m); Python 3.9 or newer for the report"
}
