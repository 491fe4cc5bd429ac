# shellcheck shell=sh
# What a job needs and a machine may lack: finding it, and installing it with the system's package manager.
# Sourced by run, which has say and sets $install.

# One line for each thing needed: how to see that it is there, its package on Debian and Ubuntu, on
# Fedora, with Homebrew (-: comes with the system, or not packaged), and what it is for.
needs() {
    cat <<'LIST'
compiler:cc      gcc              gcc                    -                 compiling C
compiler:c++     g++              gcc-c++                -                 Google Benchmark's shim
command:ninja    ninja-build      ninja-build            ninja             building
command:pkg-config pkgconf        pkgconf-pkg-config     pkg-config        finding libraries
meson            meson            meson                  meson             building
library:jansson  libjansson-dev   jansson-devel          jansson           the posenc program (records)
library:criterion libcriterion-dev -                     criterion         the Criterion suites
library:benchmark libbenchmark-dev google-benchmark-devel google-benchmark timing
library:sleef    libsleef-dev     sleef-devel            sleef             the plug-ins over SLEEF
library:mpfr     libmpfr-dev      mpfr-devel             mpfr              certifying the golden vectors
command:gnuplot  gnuplot-nox      gnuplot-minimal        gnuplot           pictures
LIST
}

# A program may exist and still not run (a shim of a Python that lacks it): ask each for its version.
version_of() {
    "$@" --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9][0-9.]*\).*/\1/p'
}

find_meson() {
    for meson in "${MESON:-}" /usr/bin/meson meson "$PWD/build-tools/bin/meson"; do
        [ -n "$meson" ] || continue
        case $(version_of "$meson") in
        '' | 0.*) ;;
        *) return 0 ;;
        esac
    done
    meson=
    return 1
}

have() {
    case $1 in
    meson) find_meson ;;
    compiler:cc) echo '#include <stdio.h>' | "${CC:-cc}" -E - >/dev/null 2>&1 ;;
    compiler:c++) echo '#include <string>' | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1 ;;
    command:*) [ -n "$(version_of "${1#*:}")" ] ;;
    library:*) pkg-config --exists "${1#*:}" 2>/dev/null ;;
    esac
}

# Sets $missing (things) and, for the package manager in column $1 of the list, $packages.
look() {
    missing='' packages=''
    while read -r thing debian fedora brew what; do
        have "$thing" && continue
        missing="$missing ${thing#*:}"
        case $1 in 2) package=$debian ;; 3) package=$fedora ;; *) package=$brew ;; esac
        if [ "$package" = - ]; then
            say "no package here brings ${thing#*:} ($what)"
        else
            packages="$packages $package"
        fi
    done <<LIST
$(needs)
LIST
}

# Sets $manager, and $root, which goes before it; $install becomes no where it cannot be used.
find_manager() {
    for manager in apt-get dnf brew none; do
        command -v $manager >/dev/null && break
    done
    root=
    [ "$manager" != none ] || install=no
    if [ "$(id -u)" != 0 ] && [ "$manager" != brew ]; then
        if sudo -n true 2>/dev/null; then root='sudo -n'; else install=no; fi
    fi
}

# One update, one installation; a package this release lacks does not stop the others.
apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    $root apt-get update -qq || say 'apt-get update failed; trying with the lists that are there'
    available=
    for package in "$@"; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            available="$available $package"
        else
            say "this release has no package $package"
        fi
    done
    # shellcheck disable=SC2086  # a list of words
    [ -z "$available" ] || $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        -o Dpkg::Use-Pty=0 --no-install-recommends $available
}

install_packages() {
    if [ $install = no ]; then
        say "not installed: $*"
        return 0
    fi
    say "installing $*"
    log=$(mktemp) || return 0
    case $manager in
    apt-get) apt_install "$@" ;;
    dnf) $root dnf install -y -q --skip-broken "$@" ;;
    brew) brew install -q "$@" ;;
    esac >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        say 'not everything could be installed; going on with what there is'
    }
    rm -f "$log"
}

# Meson 1.0 or newer from its own archive, where the system's is too old or absent.
meson_of_our_own() {
    [ $install = yes ] && command -v python3 >/dev/null || return 1
    say 'no Meson 1.0 or newer here: making one in build-tools'
    python3 -m venv build-tools >&2 && build-tools/bin/pip install -q 'meson>=1.0,<2' >&2 && find_meson
}

prepare() {
    find_manager
    case $manager in dnf) look 3 ;; brew) look 4 ;; *) look 2 ;; esac
    # shellcheck disable=SC2086  # a list of words
    [ -z "$packages" ] || install_packages $packages
    find_meson || meson_of_our_own || {
        say 'Meson 1.0 or newer is needed to build: install meson (Debian 12, Fedora, Homebrew) and run this again'
        exit 2
    }
    if ! have compiler:cc || ! have command:ninja; then
        say 'a C compiler and ninja are needed to build'
        exit 2
    fi
    export MESON="$meson"
}

# bring COMMAND:PACKAGE...: the Debian packages of commands, or of files (/...), that are missing.
bring() {
    absent "$@" || return 0
    [ "$manager" = apt-get ] || install=no # what others call these packages was not tried
    # shellcheck disable=SC2086  # a list of words
    install_packages $packages
    absent "$@" || return 0
    say "missing for $job:$missing"
    return 1
}

absent() {
    missing='' packages=''
    for thing in "$@"; do
        case $thing in
        /*) [ -e "${thing%%:*}" ] ;;
        *) command -v "${thing%%:*}" >/dev/null ;;
        esac && continue
        missing="$missing ${thing%%:*}" packages="$packages ${thing#*:}"
    done
    [ -n "$missing" ]
}
