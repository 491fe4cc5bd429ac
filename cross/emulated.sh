# shellcheck shell=sh disable=SC2154
# What the tests of another architecture under qemu-user share.  Sourced by run, whose functions it uses.
#
# emulated_build sets $machine, the architecture as uname -m names it, $sysroot, and $cross, the folder of
# the build.  A CPU is what QEMU_CPU takes.

# emulated_build MACHINE DEBIAN-NAME SUITE PACKAGES...: builds in build-MACHINE, against a sysroot of packages; of what
# is built $emulated_targets alone, where that names some.  75: the archive did not give the packages.
emulated_targets=
emulated_build() {
    machine=$1 cross=build-$1
    await_early
    sysroot_of "$@" || return
    description=build-sysroot/$machine.ini
    sed "s,@SYSROOT@,$sysroot," "cross/$machine-linux.ini.in" >"$description"
    # Alone, a job tests kernels as they are installed.
    as_installed='-Dcalled=false'
    [ "$brief" = no ] || as_installed='-Dcalled=true -Doptimization=2'
    # Meson reads the description once, so a build with another one, or with other packages, begins anew.
    wanted=$(echo "$as_installed" | cat - "$description" "$sysroot/.packages" | cksum)
    [ "$(cat "$cross/cross-stamp" 2>/dev/null)" = "$wanted" ] || rm -rf "$cross"
    # shellcheck disable=SC2086  # a list of words
    configure "$cross" --cross-file "$description" -Dexplore=disabled $as_installed || return 1
    echo "$wanted" >"$cross/cross-stamp"
    # shellcheck disable=SC2086  # a list of words
    compile "$cross" $emulated_targets
}

# sysroot_of MACHINE DEBIAN-NAME SUITE PACKAGES...
sysroot_of() {
    sysroot=$PWD/build-sysroot/$2 suite=$3
    shift 3
    sh cross/sysroot.sh "${sysroot##*/}" "$suite" "$sysroot" "$@"
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
        "$cross/conformance/golden/vectors.pack"
}

# The same of another vector length or of plain C: ./run test-all leaves out what has the longest problems (CONTRIBUTING.md).
emulated_again() {
    [ "$brief" = no ] || set -- "$@" --except '*/memory/sizes' --except '*/properties/*' --except '*/random/*'
    emulated_runner "$@"
}

# emulated_tables NAME CPU BACKEND: posenc table prints there what avx2 prints here, byte for byte.
emulated_tables() {
    compare_tables "$@" >"$cross/tables-$1.log" 2>&1 &
    started="$started tables-$1"
}

# Waits for all of them and counts, in the order of their start.
emulated_count() {
    wait
    for start in $started; do
        log=$cross/$start.log
        case $start in
        primitives-*) tally_runner "$job: ${start#*-}, primitives" "$log" ;;
        runner-*) tally_runner "$job: ${start#*-}" "$log" ;;
        tables-*) tally_tables "$log" ;;
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

# compare_tables NAME CPU BACKEND: the last line is "RIGHT WRONG tables of ...".
compare_tables() {
    name=$1 cpu=$2 backend=$3 right=0 wrong=0 reference=scalar
    ! build/posenc list backends | grep -q '^[*+ ] avx2 .* yes ' || reference=avx2
    for kernel in 'sinusoidal dim' 'rope_table rotary_dim'; do
        for dim in 128 512; do
            for first in 0 1000000 2147482648; do
                line="$kernel=$dim position_offset=$first tokens=64"
                if same_table "$line"; then
                    right=$((right + 1))
                else
                    wrong=$((wrong + 1))
                    echo "$line: $backend differs from $reference"
                fi
            done
        done
    done
    echo "$right $wrong $name: tables of $backend and of $reference here are the same bytes"
}

tally_tables() { # LOG
    before=$failed
    read -r right wrong what <<LAST
$(tail -n 1 "$1")
LAST
    tally "$job: $what" "$right" "$wrong" 0
    [ "$failed" = "$before" ] || cat "$1"
}

same_table() { # LINE
    set -- table --problem "$1" --out safetensors --backend
    build/posenc "$@" "$reference" >"$cross/table-$name-here" &&
        emulated "$cpu" "$cross/posenc" "$@" "$backend" >"$cross/table-$name-there" &&
        cmp "$cross/table-$name-here" "$cross/table-$name-there"
}
