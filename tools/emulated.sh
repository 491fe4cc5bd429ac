# shellcheck shell=sh disable=SC2154
# Sourced by run:
#
#     ./run test-aarch64    the library, the suites and the program built for 64-bit ARM by Debian's cross gcc, run by
#                           qemu-user on a CPU without SVE and at four vector lengths with it
#     ./run test-riscv64    the same for RISC-V by clang 19, with the vector extension at four lengths and without it
#
# The build of a machine sets $machine, the architecture as uname -m names it, $sysroot, and $cross, its folder. A CPU is
# what QEMU_CPU takes.

test_aarch64() {
    emulated_ready aarch64 'aarch64 arm64' || return 0
    emulated_runner neoverse-n1-neon neoverse-n1 neon
    for backend in scalar sleef_neon autovec_neon libm; do
        emulated_again neoverse-n1-$backend neoverse-n1 $backend
    done
    emulated_primitives neoverse-n1 neoverse-n1
    emulated_lengths sve sve_cpu 128 256 512 2048
    # Its source names no lanes, so that one length is enough.
    emulated_again sve-256-autovec_sve "$(sve_cpu 256)" autovec_sve
    emulated_meson max
    emulated_default neoverse-n1 neon sve 'CPU lacks sve'
    emulated_count
}

debian_keys=/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
aarch64_tools="aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu aarch64-linux-gnu-g++:g++-aarch64-linux-gnu
    qemu-aarch64:qemu-user $debian_keys"

build_aarch64() {
    # The release whose C++ library is that of the compiler.
    # shellcheck disable=SC1091
    suite=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME")
    libraries=libstdc++-$(aarch64-linux-gnu-g++ -dumpversion | cut -d. -f1)-dev
    emulated_build aarch64 arm64 "${suite:-bookworm}" libc6-dev "$libraries" libcriterion-dev \
        libjansson-dev libbenchmark-dev libsleef-dev
}

# A Linux CPU has the lengths up to its longest; left alone, a program gets 512 bits of them at most.
sve_cpu() {
    case $1 in
    128) echo max,sve128=on,sve256=off ;;
    256) echo max,sve256=on,sve512=off ;;
    512) echo max ;;
    2048) echo max,sve-default-vector-length=-1 ;;
    esac
}

test_riscv64() {
    emulated_ready riscv64 riscv64 || return 0
    emulated_again no-vectors-scalar rv64 scalar
    emulated_again no-vectors-libm rv64 libm
    emulated_primitives no-vectors rv64
    emulated_lengths rvv rvv_cpu 128 256 512 1024
    emulated_again rvv-256-autovec_rvv "$(rvv_cpu 256)" autovec_rvv
    emulated_meson "$(rvv_cpu 256)"
    emulated_default rv64 scalar rvv 'CPU lacks v'
    emulated_count
}

riscv64_tools="clang-19:clang-19 ld.lld-19:lld-19 llvm-ar-19:llvm-19 qemu-riscv64:qemu-user $debian_keys"

# Debian 13 is the first release for RISC-V. Its Criterion is not used: the runner has every suite.
build_riscv64() {
    emulated_build riscv64 riscv64 trixie libc6-dev libgcc-14-dev libstdc++-14-dev libjansson-dev libbenchmark-dev \
        libsleef-dev
}

rvv_cpu() {
    echo "rv64,v=true,vlen=$1,vext_spec=v1.0"
}

# emulated_ready MACHINE NAMES-OF-IT: builds for it, or counts why not.
emulated_ready() {
    case " $2 " in *" $(uname -m) "*)
        say "this machine is $(uname -m) itself: ./run test tests it"
        tally "$job: an emulation of this machine" 0 0 1
        return 1
        ;;
    esac
    case $1 in aarch64) words=$aarch64_tools ;; *) words=$riscv64_tools ;; esac
    # shellcheck disable=SC2086  # a list of words
    bring $words || {
        cannot "$job: cross build"
        return 1
    }
    "build_$1" || {
        emulated_unbuilt $?
        return 1
    }
}

# emulated_build MACHINE DEBIAN-NAME SUITE PACKAGES...: builds in build-MACHINE, against a sysroot of packages. 75: the
# archive did not give the packages.
emulated_build() {
    machine=$1 cross=build-$1
    await_early
    sysroot_of "$@" || return
    description=build-sysroot/$machine.ini
    sed "s,@SYSROOT@,$sysroot," "tools/$machine-linux.ini.in" >"$description"
    # Alone, a job tests kernels as they are installed.
    as_installed='-Dcalled=false'
    [ "$brief" = no ] || as_installed='-Dcalled=true -Doptimization=2'
    # Meson reads the description once, so a build with another one, or with other packages, begins anew.
    wanted=$(echo "$as_installed" | cat - "$description" "$sysroot/.packages" | cksum)
    [ "$(cat "$cross/cross-stamp" 2>/dev/null)" = "$wanted" ] || rm -rf "$cross"
    # shellcheck disable=SC2086  # a list of words
    configure "$cross" --cross-file "$description" -Dexplore=disabled $as_installed || return 1
    echo "$wanted" >"$cross/cross-stamp"
    compile "$cross"
}

# sysroot_of MACHINE DEBIAN-NAME SUITE PACKAGES...
sysroot_of() {
    sysroot=$PWD/build-sysroot/$2 suite=$3
    shift 3
    sh tools/sysroot.sh "${sysroot##*/}" "$suite" "$sysroot" "$@"
}

# emulated_unbuilt STATUS: counts what did not build: as skipped where there was nothing to build against, since a copy of
# Debian's archive that is being renewed says nothing of this tree.
emulated_unbuilt() {
    case $1 in
    75)
        say "$job: the archive does not give the packages of $machine just now: nothing was tested"
        tally "$job: cross build: no packages of $machine" 0 0 1
        ;;
    *) tally "$job: cross build" 0 1 0 ;;
    esac
}

# emulated CPU PROGRAM ARGUMENTS...: runs the program under qemu-user.
emulated() {
    cpu=$1
    shift
    QEMU_CPU=$cpu "qemu-$machine" -L "$sysroot" "$@"
}

# What takes long is started, all of it at once, and counted at the end, so that no core waits for a last one.
#
# emulated_start KIND-NAME CPU PROGRAM ARGUMENTS...: what it says goes to build-MACHINE/KIND-NAME.log.
started=
emulated_start() {
    start=$1
    shift
    emulated "$@" >"$cross/$start.log" 2>&1 &
    started="$started $start"
}

emulated_primitives() { # NAME CPU
    emulated_start "primitives-$1" "$2" "$cross/impl/simd/tests/primitives"
}

# emulated_runner NAME CPU BACKEND OPTIONS...: conformance/runner, without its scans of accuracy.
emulated_runner() {
    name=$1 cpu=$2 backend=$3
    shift 3
    emulated_start "runner-$name" "$cpu" "$cross/conformance/criterion/runner" --no-accuracy --backend "$backend" "$@" \
        "$cross/golden"
}

# The same of another vector length or of plain C: ./run test-all leaves out what has the longest problems (CONTRIBUTING.md).
emulated_again() {
    [ "$brief" = no ] || set -- "$@" --except '*/memory/sizes' --except '*/properties/*' --except '*/random/*'
    emulated_runner "$@"
}

# emulated_lengths BACKEND CPU-OF-LENGTH BITS...: all suites at the shortest length.
emulated_lengths() {
    vector=$1 cpu_of=$2 again=runner
    shift 2
    for bits; do
        "emulated_$again" "$vector-$bits" "$("$cpu_of" "$bits")" "$vector"
        emulated_primitives "$vector-$bits" "$("$cpu_of" "$bits")"
        again=again
    done
}

# Waits for all of them and counts, in the order of their start.
emulated_count() {
    wait
    for start in $started; do
        log=$cross/$start.log
        case $start in
        primitives-*) tally_runner "$job: ${start#*-}, primitives" "$log" ;;
        runner-*) tally_runner "$job: ${start#*-}" "$log" ;;
        esac
    done
    started=
}

# emulated_meson CPU: runs the meson tests for which the CPU can matter, but for those that are started one by one.
emulated_meson() {
    export QEMU_CPU="$1"
    no_cli=''
    [ "$brief" = no ] || no_cli='--no-suite cli'
    # shellcheck disable=SC2086  # two words or none
    meson_tests "$cross" --no-suite runner --no-suite primitives --no-suite once --no-suite text --no-suite scans \
        --timeout-multiplier 100 $no_cli
    unset QEMU_CPU
}

# emulated_default CPU DEFAULT OFF REASON: checks which backend serves calls on this CPU, and that another one is off
# there, for this reason.
emulated_default() {
    log=$cross/list.log right=0
    emulated "$1" "$cross/posenc" list backends >"$log" 2>&1
    ! grep -q "^[*] $2 " "$log" || right=1
    # A backend is a line with its name and more lines with its needs.
    if awk -v name="$3" '/^[*+ ] [a-z]/ { of = substr($0, 3) ~ "^" name " " }
        of' "$log" | grep -q ": $4\$"; then
        right=$((right + 1))
    fi
    tally "$job: the default on $1 is $2, $3 is off: $4" $right $((2 - right)) 0
    [ $right = 2 ] || cat "$log"
}
