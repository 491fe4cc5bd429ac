# shellcheck shell=sh disable=SC2154
# What the tests of another architecture under qemu-user share.  Sourced by run, whose functions it uses.
#
# emulated_build sets $machine, the architecture as uname -m names it, $sysroot, and $cross, the folder of
# the build.  A CPU is what QEMU_CPU takes.

# emulated_build MACHINE DEBIAN-NAME SUITE PACKAGES...: builds in build-MACHINE, against a sysroot of packages.
emulated_build() {
    machine=$1 cross=build-$1 sysroot=$PWD/build-sysroot/$2 suite=$3
    shift 3
    sh cross/sysroot.sh "${sysroot##*/}" "$suite" "$sysroot" "$@" || return 1
    description=build-sysroot/$machine.ini
    sed "s,@SYSROOT@,$sysroot," "cross/$machine-linux.ini.in" >"$description"
    # Meson reads the description once, so a build with another one, or with other packages, begins anew.
    wanted=$(cat "$description" "$sysroot/.packages" | cksum)
    [ "$(cat "$cross/cross-stamp" 2>/dev/null)" = "$wanted" ] || rm -rf "$cross"
    configure "$cross" --cross-file "$description" || return 1
    echo "$wanted" >"$cross/cross-stamp"
    compile "$cross"
}

# emulated CPU PROGRAM ARGUMENTS...: runs the program under qemu-user.
emulated() {
    cpu=$1
    shift
    QEMU_CPU=$cpu "qemu-$machine" -L "$sysroot" "$@"
}

# emulated_runner NAME CPU BACKENDS...: starts the tests of the primitives, then conformance/runner, without
# its scans of accuracy.
runners=
emulated_runner() {
    name=$1 cpu=$2
    shift 2
    set -- "$(printf ' --backend %s' "$@")"
    {
        emulated "$cpu" "$cross/impl/simd/tests/primitives" >"$cross/primitives-$name.log" 2>&1
        # shellcheck disable=SC2086  # a list of words
        emulated "$cpu" "$cross/conformance/criterion/runner" --no-accuracy $1 \
            "$cross/conformance/golden/vectors.pack" >"$cross/runner-$name.log" 2>&1
    } &
    runners="$runners $name"
}

# Waits for the runners and counts, in the order of their start.
emulated_count() {
    wait
    for runner in $runners; do
        tally_runner "$job: $runner, primitives" "$cross/primitives-$runner.log"
        tally_runner "$job: $runner" "$cross/runner-$runner.log"
    done
    runners=
}

# emulated_meson CPU: runs the meson tests for which the CPU can matter, but for the runner's.
emulated_meson() {
    export QEMU_CPU="$1"
    meson_tests "$cross" --no-suite runner --no-suite once --no-suite text --timeout-multiplier 4
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

# emulated_tables NAME CPU BACKEND: posenc table prints there what avx2 prints here, byte for byte.
emulated_tables() {
    log=$cross/tables.log right=0 wrong=0 reference=scalar
    ! build/posenc list backends | grep -q '^[*+ ] avx2 .* yes ' || reference=avx2
    : >"$log"
    for kernel in 'sinusoidal --out npy' 'rope_table --out safetensors'; do
        for dim in 128 512; do
            for first in 0 1000000 2147482648; do
                # shellcheck disable=SC2086  # a list of words
                if same_table "$2" "$3" $kernel --dim $dim --first $first >>"$log" 2>&1; then
                    right=$((right + 1))
                else
                    wrong=$((wrong + 1))
                    echo "$kernel --dim $dim --first $first: $3 differs from $reference" >>"$log"
                fi
            done
        done
    done
    tally "$job: $1: tables of $3 and of $reference here are the same bytes" $right $wrong 0
    [ $wrong = 0 ] || cat "$log"
}

same_table() { # CPU BACKEND ARGUMENTS...
    cpu=$1 backend=$2
    shift 2
    set -- table "$@" --tokens 64 --profile exact --backend
    build/posenc "$@" "$reference" >"$cross/table-here" &&
        emulated "$cpu" "$cross/posenc" "$@" "$backend" >"$cross/table-there" &&
        cmp "$cross/table-here" "$cross/table-there"
}
