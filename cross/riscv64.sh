# shellcheck shell=sh disable=SC2154
# ./run test-riscv64: the library, the suites and the program built for RISC-V by clang 19, run by qemu-user on
# CPUs with the vector extension at four lengths and without it.  Sourced by run.
#
# Debian 13 is the first release for RISC-V, and its Criterion is not used: the runner has every suite.

test_riscv64() {
    if [ "$(uname -m)" = riscv64 ]; then
        say 'this machine is RISC-V itself: ./run test is what tests it'
        tally "$job: an emulation of this machine" 0 0 1
        return
    fi
    bring_riscv64 || {
        cannot "$job: cross build"
        return
    }
    build_riscv64 || {
        emulated_unbuilt $?
        return
    }
    emulated_again no-vectors-scalar rv64 scalar
    emulated_again no-vectors-libm rv64 libm
    emulated_primitives no-vectors rv64
    emulated_runner rvv-128 "$(rvv_cpu 128)" rvv
    for bits in 256 512 1024; do
        emulated_again rvv-$bits "$(rvv_cpu $bits)" rvv
    done
    for bits in 128 256 512 1024; do
        emulated_primitives rvv-$bits "$(rvv_cpu $bits)"
        emulated_tables rvv-$bits "$(rvv_cpu $bits)" rvv
    done
    # Loops that no lane is written in: at one length.
    emulated_again rvv-256-autovec_rvv "$(rvv_cpu 256)" autovec_rvv
    emulated_meson "$(rvv_cpu 256)"
    emulated_default rv64 scalar rvv 'CPU lacks v'
    emulated_count
}

bring_riscv64() {
    bring clang-19:clang-19 ld.lld-19:lld-19 llvm-ar-19:llvm-19 qemu-riscv64:qemu-user \
        /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
}

build_riscv64() {
    emulated_build riscv64 riscv64 trixie libc6-dev libgcc-14-dev libstdc++-14-dev libjansson-dev \
        libbenchmark-dev libsleef-dev
}

rvv_cpu() {
    echo "rv64,v=true,vlen=$1,vext_spec=v1.0"
}
