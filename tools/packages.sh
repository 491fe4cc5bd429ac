# shellcheck shell=sh
# Finds out what a machine lacks for a job, and installs it with the package manager of the system. Sourced by run, which
# sets $install (yes or no) and $job.
#
#     prepare                    everything that the build of a job takes; sets $meson
#     bring COMMAND:PACKAGE...   Debian packages of further tools
#     have THING                 succeeds if a thing of needs() is there

spare='' # things of needs() that the job does without, or their first words

# Prints a line for each thing: its name for have(), its package on Debian and Ubuntu, on Fedora and with Homebrew (-: it
# comes with the system, or is not packaged), and its use.
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
python:jinja2    python3-jinja2   python3-jinja2         -                 the page of a report
python:rich      python3-rich     python3-rich           -                 tables on a terminal
python:d3        libjs-d3         -                      -                 charts on the page
wasm:clang       clang            clang                  llvm              posenc explore
wasm:lld         lld              lld                    lld               posenc explore
wasm:libc        wasi-libc        wasi-libc-static       wasi-libc         posenc explore
wasm:markdown    python3-markdown python3-markdown       -                 the lessons in the page of posenc explore
wasm:builtins    libclang-rt-dev-wasm32 -                wasi-runtimes     posenc explore
tests:matplotlib python3-matplotlib python3-matplotlib   python-matplotlib posenc plot
tests:pytest     python3-pytest   python3-pytest         pytest            tests of what is written in Python
tests:jsonschema python3-jsonschema python3-jsonschema   python-jsonschema tests of the schema of records
tests:gmpy2      python3-gmpy2    python3-gmpy2          -                 making and certifying the golden vectors
tests:selenium   python3-selenium python3-selenium       -                 tests of the page of a report in a browser
tests:nbclient   python3-nbclient python3-nbclient       -                 the test of the notebook of the course
tests:ipykernel  python3-ipykernel python3-ipykernel     -                 the kernel that it runs in
tests:Python.h   python3-dev      python3-devel          -                 the Python package
browser:chromium chromium         chromium               -                 the browser of these tests
browser:chromedriver chromium-driver chromedriver        -                 driving it
browser:tidy     tidy             tidy                   -                 errors in the HTML of a report
tests:material   mkdocs-material  -                      mkdocs-material   the documentation as a site
shells:mandoc    mandoc           mandoc                 -                 the test of the man page
shells:zsh       zsh              zsh                    -                 the test of completions
shells:fish      fish             fish                   fish              the test of completions
LIST
}

# Prints the version of a program, or nothing if it does not run, as a shim of a Python that lacks it.
version_of() {
    "$@" --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9][0-9.]*\).*/\1/p'
}

# Sets $meson to the first Meson 1.0 or later.
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

# Sets $python to the first that has all of these modules, as reports/meson.build does.
python_with() {
    for python in "$PWD/build/venv/bin/python3" python3 /usr/bin/python3; do
        has_modules "$python" "$@" && return 0
    done
    return 1
}

# Succeeds if a Python is 3.9 or later and has these modules.
has_modules() { # PYTHON MODULE...
    python=$1
    shift
    "$python" -c 'import sys, importlib.util as u
sys.exit(sys.version_info < (3, 9) or not all(map(u.find_spec, sys.argv[1:])))' "$@" 2>/dev/null
}

# Succeeds if a clang links for WebAssembly. reports/meson.build tries these names as well.
links_wasm() {
    for clang in clang clang-19 clang-14; do
        "$clang" --target=wasm32-wasi -mexec-model=reactor -include math.h -x c /dev/null -o /dev/null 2>/dev/null && return 0
    done
    return 1
}

have() { # THING
    case $1 in
    meson) find_meson ;;
    compiler:cc) echo '#include <stdio.h>' | ${CC:-cc} -E - >/dev/null 2>&1 ;;
    compiler:c++) echo '#include <string>' | ${CXX:-c++} -E -x c++ - >/dev/null 2>&1 ;;
    command:* | browser:*) [ -n "$(version_of "${1#*:}")" ] ;;
    python:d3) [ -e /usr/share/javascript/d3/d3.min.js ] || python_with jinja2 rich xstatic.pkg.d3 ;;
    python:*) python_with jinja2 rich || has_modules /usr/bin/python3 "${1#*:}" ;;
    tests:gmpy2) python_with gmpy2 ;;
    tests:Python.h) python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null ;;
    tests:material) mkdocs build --help 2>/dev/null | grep -q material ;; # among its themes
    tests:nbclient | tests:ipykernel) python_with jinja2 rich matplotlib pytest jsonschema "${1#*:}" || has_modules /usr/bin/python3 "${1#*:}" ;;
    tests:*) python_with jinja2 rich matplotlib pytest jsonschema || has_modules /usr/bin/python3 "${1#*:}" ;;
    shells:*) command -v "${1#*:}" >/dev/null ;;
    wasm:markdown) python_with jinja2 rich markdown || has_modules /usr/bin/python3 markdown ;;
    wasm:*) links_wasm ;;
    library:*) pkg-config --exists "${1#*:}" 2>/dev/null ;;
    esac
}

# Prints the things that a job does without. Those of pictures and tests take 900 MB.
spared() {
    case $job in
    test* | check | coverage | stress) ;;
    plot) echo library:criterion tests:pytest tests:jsonschema tests:gmpy2 tests:selenium tests:nbclient tests:ipykernel tests:material browser shells wasm ;;
    explore) echo library:criterion tests browser shells ;;
    *) if command_names | grep -qx -e "$job"; then echo tests browser shells wasm library:criterion; else echo tests browser shells wasm; fi ;;
    esac
}

# Sets $missing to the things that are not there, of those named or of all, and $packages to their packages.
look() { # [THING...]
    missing='' packages=''
    while read -r thing debian fedora brew what; do
        case " ${*:-$thing} " in *" $thing "*) ;; *) continue ;; esac
        case " $spare " in *" $thing "* | *" ${thing%%:*} "*) continue ;; esac
        have "$thing" && continue
        missing="$missing ${thing#*:}"
        case $manager in dnf) package=$fedora ;; brew) package=$brew ;; *) package=$debian ;; esac
        if [ "$package" = - ]; then
            say "no package here brings ${thing#*:} ($what)"
        else
            packages="$packages $package"
        fi
    done <<LIST
$(needs)
LIST
}

# Sets $manager, and $root, the command that runs it as root. If nothing can be installed, $install becomes no and $why
# the reason.
find_manager() {
    for manager in apt-get dnf brew none; do
        command -v $manager >/dev/null && break
    done
    root='' why='--no-install'
    [ $install = yes ] || return 0
    if [ "$manager" = none ]; then
        install=no why='neither apt-get nor dnf nor brew is here'
    elif [ "$(id -u)" = 0 ] || [ "$manager" = brew ]; then
        :
    elif sudo -n true 2>/dev/null; then
        root='sudo -n'
    elif command -v sudo >/dev/null; then
        install=no why='sudo wants a password, and nothing is asked here'
    else
        install=no why='that takes root, or sudo'
    fi
}

# Prints the command that installs packages, for a person to type.
install_line() { # PACKAGE...
    case $manager in
    none) echo "install $*" && return ;;
    brew) line="brew install $*" ;;
    *) line="$manager install $*" ;;
    esac
    if [ "$manager" = brew ] || [ "$(id -u)" = 0 ]; then
        echo "$line"
    elif command -v sudo >/dev/null; then
        echo "sudo $line"
    else
        echo "su -c '$line'"
    fi
}

# Installs packages by apt-get. One that this release lacks does not stop the others.
apt_install() { # PACKAGE...
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
    [ -z "$available" ] || $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        -o Dpkg::Use-Pty=0 --no-install-recommends $available
}

# Installs packages, or prints the command that does.
install_packages() { # PACKAGE...
    if [ $install = no ]; then
        say "not installed, $why: $*"
        say "to install them: $(install_line "$@")"
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

# Installs Meson from PyPI into build-tools if the system has none or an older one than 1.0.
install_own_meson() {
    [ $install = yes ] && command -v python3 >/dev/null || return 1
    say 'no Meson 1.0 or newer here: making one in build-tools'
    python3 -m venv build-tools >&2 && build-tools/bin/pip install -q 'meson>=1.0,<2' >&2 && find_meson
}

# Installs the modules of reports that no package brought from PyPI into build/venv, which takes neither root nor a package
# manager. Without the program there are no reports.
install_pages_from_pip() {
    [ $fetch = yes ] && have library:jansson || return 0
    look python:jinja2 python:rich python:d3 3>/dev/null
    [ -n "$missing" ] || return 0
    lacking=$missing
    for python in python3 /usr/bin/python3 none; do
        ! has_modules "$python" venv || break
    done
    [ $python != none ] || {
        say "posenc report lacks Python 3.9 or later; the rest works without"
        return 0
    }
    say "installing$lacking by pip, in build/venv"
    # shellcheck disable=SC2046  # a list of words
    if log=$("$python" -m venv --system-site-packages build/venv 2>&1 &&
        build/venv/bin/python3 -m pip install -q --disable-pip-version-check --retries 1 --timeout 30 \
            $(sed -n 's/^dependencies = \[\(.*\)\]$/\1/p' pyproject.toml | tr -d '",') 2>&1); then
        return 0
    fi
    rm -rf build/venv
    printf '%s\n' "$log" | tail -n 3 >&2
    say "pip installed nothing: posenc report lacks$lacking; the rest works without"
}

prepare() {
    fetch=$install
    find_manager
    spare=$(spared)
    look
    spare=
    [ -z "$packages" ] || install_packages $packages
    find_meson || install_own_meson
    look compiler:cc command:ninja meson
    [ -z "$missing" ] || {
        say "a C compiler, ninja and Meson 1.0 or newer are needed to build; missing:$missing"
        [ -z "$packages" ] || say "to install them: $(install_line $packages)"
        exit 2
    }
    install_pages_from_pip
    export MESON="$meson"
}

# Installs the Debian packages of the commands or files (/...) that are missing. Fails if one is still missing then.
bring() { # COMMAND:PACKAGE...
    absent "$@" || return 0
    [ "$manager" = apt-get ] || install=no why='what this system calls them was not tried'
    install_packages $packages
    absent "$@" || return 0
    say "missing for $job:$missing"
    return 1
}

# Sets $missing and $packages to the commands or files that are missing; succeeds if there is one.
absent() { # COMMAND:PACKAGE...
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

environment_tools=/usr/share/doc/python3-venv:python3-venv

# Makes a virtual environment with packages of PyPI, once: FOLDER/complete says that it has them.
environment() { # FOLDER PACKAGE...
    folder=$1
    shift
    [ ! -f "$folder/complete" ] || return 0
    bring $environment_tools || return 1
    say "packages of PyPI come into $folder: $*"
    python3 -m venv "$folder" && "$folder/bin/pip" install -q "$@" >&2 && touch "$folder/complete"
}
