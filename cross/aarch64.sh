# shellcheck shell=sh disable=SC2154
# ./run test-aarch64: the library, the suites and the program built for 64-bit ARM by Debian's cross gcc, run
# by qemu-user on CPUs without SVE and with it at four lengths.  Sourced by run.

test_aarch64() {
    case $(uname -m) in
    aarch64 | arm64)
        say 'this machine is 64-bit ARM itself: ./run test is what tests it'
        tally "$job: an emulation of this machine" 0 0 1
        return
        ;;
    esac
    bring_aarch64 || {
        cannot "$job: cross build"
        return
    }
    build_aarch64 || {
        emulated_unbuilt $?
        return
    }
    emulated_runner neoverse-n1-neon neoverse-n1 neon
    for backend in scalar sleef_neon autovec_neon libm; do
        emulated_again neoverse-n1-$backend neoverse-n1 $backend
    done
    emulated_primitives neoverse-n1 neoverse-n1
    emulated_tables neoverse-n1 neoverse-n1 neon
    emulated_runner sve-128 "$(sve_cpu 128)" sve
    for bits in 256 512 2048; do
        emulated_again sve-$bits "$(sve_cpu $bits)" sve
    done
    for bits in 128 256 512 2048; do
        emulated_primitives sve-$bits "$(sve_cpu $bits)"
        emulated_tables sve-$bits "$(sve_cpu $bits)" sve
    done
    # Its source names no lanes, so that one length is enough.
    emulated_again sve-256-autovec_sve "$(sve_cpu 256)" autovec_sve
    emulated_meson max
    emulated_default neoverse-n1 neon sve 'CPU lacks sve'
    emulated_count
}

bring_aarch64() {
    bring aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu aarch64-linux-gnu-g++:g++-aarch64-linux-gnu \
        qemu-aarch64:qemu-user /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
}

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
