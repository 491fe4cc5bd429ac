# shellcheck shell=sh disable=SC2154
# ./run count-emulated: instructions of each kernel on ARM and RISC-V, counted by a plug-in of qemu-user (bench/counter.c)
# while it runs the program.  Sourced by run.
#
# Everything is written to build/counts, a file of records for each CPU, which posenc report shows together.

count_emulated() {
    bring_aarch64 && bring_riscv64 && bring cc:gcc || return 2
    if [ ! -x build/posenc ]; then
        say 'the program was not built: it needs jansson'
        return 2
    fi
    rm -rf build/counts
    mkdir -p build/counts
    counter=$PWD/build/counts/counter.so
    cc -O2 -fPIC -shared -I. bench/counter.c -o "$counter" || return 1
    emulated_targets=posenc:executable
    build_aarch64 || return 1
    count_on neon neoverse-n1 neon
    for bits in 128 256 512; do
        count_on sve-$bits "$(sve_cpu $bits)" sve
    done
    build_riscv64 || return 1
    for bits in 128 256 512; do
        count_on rvv-$bits "$(rvv_cpu $bits)" rvv
    done
    emulated_targets=
    build/posenc report build/counts/*.jsonl
}

# count_on NAME CPU BACKEND: on the program of the last build.
count_on() {
    say "counting $1"
    POSENC_COUNTER=$PWD/build/counts/$1.txt QEMU_CPU=$2 "qemu-$machine" -L "$sysroot" \
        -plugin "$counter,to=$PWD/build/counts/$1.txt" "$cross/posenc" count --backend "$3" \
        --out "jsonl:build/counts/$1.jsonl" || say "$1 could not be counted"
    rm -f "build/counts/$1.txt"
}
