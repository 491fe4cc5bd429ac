# shellcheck shell=sh
# Tests of other architectures under qemu-user. Sourced by run.
#
# emulated_build sets $machine, the architecture as uname -m names it, $sysroot, and $cross, the folder of the build, which
# also gets a log of each program. CPU stands for a value of QEMU_CPU.

# Tests 64-bit ARM, built by Debian's cross gcc: a CPU without SVE, and SVE at four vector lengths.
test_aarch64() {
    emulated_ready aarch64 'aarch64 arm64' || return 0
    emulated_runner neoverse-n1-neon neoverse-n1 neon
    for backend in scalar sleef_neon autovec_neon libm; do
        emulated_again neoverse-n1-$backend neoverse-n1 $backend
    done
    emulated_primitives neoverse-n1 neoverse-n1 scalar neon
    emulated_lengths sve sve_cpu 128 256 512 2048
    # The source of autovec names no lanes, so that one length is enough.
    emulated_again sve-256-autovec_sve "$(sve_cpu 256)" autovec_sve
    emulated_meson max
    emulated_backends neoverse-n1 neon '*sve:sve'
    emulated_count
}

debian_keys=/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
aarch64_tools="aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu aarch64-linux-gnu-g++:g++-aarch64-linux-gnu
    qemu-aarch64:qemu-user $debian_keys"

build_aarch64() {
    # The release whose C++ library is that of the compiler.
    suite=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME")
    libraries=libstdc++-$(aarch64-linux-gnu-g++ -dumpversion | cut -d. -f1)-dev
    emulated_build aarch64 arm64 "${suite:-bookworm}" libc6-dev "$libraries" libjansson-dev \
        libbenchmark-dev libsleef-dev
}

# Prints the CPU with an SVE length. Linux offers all lengths up to the longest, and by default at most 512 bits.
sve_cpu() { # BITS
    case $1 in
    128) echo max,sve128=on,sve256=off ;;
    256) echo max,sve256=on,sve512=off ;;
    512) echo max ;;
    2048) echo max,sve-default-vector-length=-1 ;;
    esac
}

# Tests RISC-V, built by clang 19: a CPU without the vector extension, and the extension at four vector lengths.
test_riscv64() {
    emulated_ready riscv64 riscv64 || return 0
    emulated_again no-vectors-scalar rv64 scalar
    emulated_again no-vectors-libm rv64 libm
    emulated_primitives no-vectors rv64 scalar
    emulated_lengths rvv rvv_cpu 128 256 512 1024
    emulated_again rvv-256-autovec_rvv "$(rvv_cpu 256)" autovec_rvv
    emulated_meson "$(rvv_cpu 256)"
    emulated_backends rv64 scalar '*rvv:v'
    emulated_count
}

riscv64_tools="clang-19:clang-19 ld.lld-19:lld-19 llvm-ar-19:llvm-19 qemu-riscv64:qemu-user $debian_keys"

# Debian 13 is the first release for RISC-V.
build_riscv64() {
    emulated_build riscv64 riscv64 trixie libc6-dev libgcc-14-dev libstdc++-14-dev libjansson-dev libbenchmark-dev \
        libsleef-dev
}

rvv_cpu() { # BITS
    echo "rv64,v=true,vlen=$1,vext_spec=v1.0"
}

# Builds for a machine, or counts the reason why not.
emulated_ready() { # MACHINE "NAMES OF IT BY UNAME"
    case " $2 " in *" $(uname -m) "*)
        say "this machine is $(uname -m) itself: ./run test tests it"
        tally "$job: an emulation of this machine" 0 0 1
        return 1
        ;;
    esac
    case $1 in aarch64) words=$aarch64_tools ;; *) words=$riscv64_tools ;; esac
    bring $words || {
        cannot "$job: cross build"
        return 1
    }
    "build_$1" || {
        emulated_unbuilt $?
        return 1
    }
}

# Builds in build-MACHINE, against a sysroot of Debian packages. Returns 75 if the archive did not give the packages.
emulated_build() { # MACHINE DEBIAN-NAME SUITE PACKAGES...
    machine=$1 cross=build-$1
    sysroot_of "$@" || return
    description=build-sysroot/$machine.ini
    { sed "s,@SYSROOT@,$sysroot," "tools/$machine-linux.ini.in" && sed 's/^/# /' "$sysroot/.packages"; } >"$description"
    # Alone, a job tests kernels as they are installed.
    as_installed='-Dcalled=false'
    [ "$brief" = no ] || as_installed='-Dcalled=true -Doptimization=2'
    configure "$cross" --cross-file "$description" -Dexplore=disabled $as_installed || return 1
    compile "$cross"
}

# Makes the sysroot, and sets $sysroot.
sysroot_of() { # MACHINE DEBIAN-NAME SUITE PACKAGES...
    sysroot=$PWD/build-sysroot/$2 suite=$3
    shift 3
    sh tools/sysroot.sh "${sysroot##*/}" "$suite" "$sysroot" "$@"
}

# Counts a build that failed: as skipped if the archive did not give the packages, which is no failure of this tree.
emulated_unbuilt() { # STATUS
    case $1 in
    75)
        say "$job: the archive does not give the packages of $machine just now: nothing was tested"
        tally "$job: cross build: no packages of $machine" 0 0 1
        ;;
    *) tally "$job: cross build" 0 1 0 ;;
    esac
}

emulated() { # CPU PROGRAM ARGUMENTS...
    cpu=$1
    shift
    QEMU_CPU=$cpu "qemu-$machine" -L "$sysroot" "$@"
}

# Starts a program in the background, with build-MACHINE/KIND-NAME.log as its log. All programs start at once and are
# counted at the end, so that no core waits for the last one.
started='' # KIND-NAME:PROCESS of each
emulated_start() { # KIND-NAME CPU PROGRAM ARGUMENTS...
    start=$1
    shift
    emulated "$@" >"$cross/$start.log" 2>&1 &
    started="$started $start:$!"
}

emulated_primitives() { # NAME CPU BACKEND...
    name=$1 cpu=$2
    shift 2
    emulated_start "primitives-$name" "$cpu" "$cross/impl/simd/tests/primitives" "$@"
}

# Starts conformance/criterion/runner without its scans of accuracy, for a backend or all.
emulated_runner() { # NAME CPU BACKEND OPTIONS...
    name=$1 cpu=$2 backend=$3
    shift 3
    emulated_start "runner-$name" "$cpu" "$cross/conformance/criterion/runner" --no-accuracy ${backend:+--backend "$backend"} "$@" \
        "$cross/golden"
}

# Starts it for another vector length or for plain C. test-all leaves out the longest problems then (CONTRIBUTING.md).
emulated_again() { # NAME CPU BACKEND OPTIONS...
    [ "$brief" = no ] || set -- "$@" --except '*/memory/sizes' --except '*/properties/*' --except '*/random/*'
    emulated_runner "$@"
}

# Starts runners and primitives at each vector length, with all suites at the first one.
emulated_lengths() { # BACKEND FUNCTION-THAT-PRINTS-THE-CPU BITS...
    vector=$1 cpu_of=$2 again=runner
    shift 2
    for bits; do
        "emulated_$again" "$vector-$bits" "$("$cpu_of" "$bits")" "$vector"
        emulated_primitives "$vector-$bits" "$("$cpu_of" "$bits")" "$vector"
        again=again
    done
}

# Waits for all programs that were started and counts their logs.
emulated_count() {
    for start in $started; do
        wait "${start##*:}"
        status=$? start=${start%:*} log=$cross/${start%:*}.log
        case $start in
        primitives-*) tally_runner "$job: ${start#*-}, primitives" "$log" ;;
        runner-*) tally_runner "$job: ${start#*-}" "$log" ;;
        esac
        # 77: the build for another architecture has no such backend.
        case $job-$status in
        *-[01] | test-aarch64-77 | test-riscv64-77) ;;
        *) tally "$job: $start ended with $status" 0 1 0 ;;
        esac
    done
    started=
}

# Runs Meson's tests that depend on the CPU, without those that are started one by one.
emulated_meson() { # CPU
    export QEMU_CPU="$1"
    no_cli=''
    [ "$brief" = no ] || no_cli='--no-suite cli'
    meson_tests "$cross" --no-suite runner --no-suite primitives --no-suite once --no-suite text --no-suite scans \
        --timeout-multiplier 100 $no_cli
    unset QEMU_CPU
}

# Tests the list of backends on a CPU: those that match a pattern are off for a reason, the others run, one by default. The
# program rejects one that is off, and names the default among those that run.
emulated_backends() { # CPU DEFAULT PATTERN:FEATURE...
    cpu=$1 default=$2 off=none right=0 wrong=0
    shift 2
    emulated "$cpu" "$cross/posenc" list backends | awk '
        function flush() { if (name) print name, state }
        /^[*+ ] [a-z]/ && split(substr($0, 3), field, " ") > 4 && field[4] ~ /^(yes|no)$/ {
            flush()
            name = field[1]
            state = field[4] == "no" ? "off:" : /^[*]/ ? "default" : "runs"
        }
        /^ *needs .*: / && state == "off:" { state = state " " substr($0, match($0, /: /) + 2) }
        END { flush() }' >"$cross/list.log"
    while read -r name state; do
        expected=runs
        [ "$name" != "$default" ] || expected=default
        for pair; do
            # shellcheck disable=SC2254  # a pattern
            case $name in ${pair%%:*}) expected="off: CPU lacks ${pair#*:}" off=$name && break ;; esac
        done
        if [ "$state" = "$expected" ]; then right=$((right + 1)); else wrong=$((wrong + 1)) && say "$job: $name: $state, expected $expected"; fi
    done <"$cross/list.log"
    for words in "-E POSENC_BACKEND=$off $cross/posenc list" "$cross/posenc verify --backend $off"; do
        emulated "$cpu" $words >"$cross/rejected.out" 2>"$cross/rejected.log"
        if [ $? = 2 ] && [ ! -s "$cross/rejected.out" ] && grep -q "$off: cannot run here.*expected one of.*$default" "$cross/rejected.log"; then
            right=$((right + 1))
        else
            wrong=$((wrong + 1)) && say "$job: $words is not rejected: $(cat "$cross/rejected.log")"
        fi
    done
    tally "$job: backends on $cpu, of which $default is the default" $right $wrong 0
}
