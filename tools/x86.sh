# shellcheck shell=sh disable=SC2154
# Tests of x86-64 CPUs other than this one. Sourced by run. Logs: build/avx512 and build/baseline.
#
#     ./run test-avx512     the AVX-512 backend on this CPU, if it has AVX-512, and in Bochs, which interprets every
#                           instruction: all suites on a CPU without AVX-512, else golden vectors and primitives
#     ./run test-baseline   all backends in qemu-user on a CPU with SSE2 only, and on one with AVX2 but no AVX-512;
#                           nothing may run there that the CPU lacks

# Succeeds on x86-64 Linux; elsewhere counts a skipped test.
is_x86() { # LABEL
    case $(uname -s)-$(uname -m) in
    Linux-x86_64) return 0 ;;
    esac
    say "$1: it takes Linux on x86-64, this is $(uname -s) on $(uname -m)"
    tally "$job: $1" 0 0 1
    return 1
}

# ---- AVX-512 ----

test_avx512() {
    is_x86 'programs for x86-64' || return 0
    logs=build/avx512 bochs=build/avx512/bochs
    runner=build/conformance/criterion/runner primitives=build/impl/simd/tests/primitives
    mkdir -p "$bochs"
    golden=$bochs/golden # without the sources beside them
    rm -rf "$golden"
    mkdir "$golden"
    cp -R build/golden/cases build/golden/vectors "$golden"
    guests='' here=no suites='--no-accuracy'
    if avx512_here; then
        here=yes suites='--suite vectors'
    fi
    if bochs_ready; then
        # scalar is a reference: the emulator is wrong where scalar fails as well.
        # shellcheck disable=SC2086  # an option or two words
        bochs_runner avx512 $suites &
        guests="$guests avx512:$!"
        bochs_runner scalar --suite vectors &
        guests="$guests scalar:$!"
        bochs_primitives &
        guests="$guests primitives:$!"
    else
        cannot "$job: in Bochs"
    fi
    if [ $here = yes ]; then
        $primitives avx512 >"$logs/primitives.log" 2>&1
        avx512_count 'this CPU, primitives' $? "$logs/primitives.log"
        $runner --no-accuracy --backend avx512 --backend scalar "$golden" >"$logs/here.log" 2>&1
        avx512_count 'this CPU' $? "$logs/here.log"
        # shellcheck disable=SC2086  # an option or two words
        $runner $suites --backend avx512 --backend scalar --except "$bochs_except" "$golden" \
            >"$logs/same.log" 2>&1 || true
    fi
    for guest in $guests; do
        wait "${guest#*:}"
        avx512_count 'in Bochs' $? "$bochs/${guest%:*}.log"
    done
    [ $here = no ] || [ -z "$guests" ] || avx512_same
}

# Succeeds if this CPU has the four sets that the backend needs.
avx512_here() {
    for flag in avx512f avx512bw avx512dq avx512vl; do
        grep -qw $flag /proc/cpuinfo || {
            say "this CPU lacks $flag: AVX-512 in Bochs alone"
            return 1
        }
    done
}

# Bochs, and tools that make a disc to boot from.
bochs_tools="bochs:bochs /usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so:bochs-term
    /usr/share/bochs/BIOS-bochs-latest:bochsbios /usr/share/bochs/VGABIOS-lgpl-latest:vgabios
    /usr/lib/ISOLINUX/isolinux.bin:isolinux /usr/lib/syslinux/modules/bios/ldlinux.c32:syslinux-common
    xorriso:xorriso cpio:cpio"

bochs_ready() {
    # shellcheck disable=SC2086  # a list of words
    bring $bochs_tools || return 1
    sh tools/bochs/kernel.sh "$bochs" && return 0
    [ "$install" = yes ] || return 1
    say 'once more with new lists of packages'
    $root apt-get update -qq && sh tools/bochs/kernel.sh "$bochs"
}

# Bochs 2.7 rounds ties of vcvtps2ph away from zero, so that cases that store f16 run on real CPUs only, and with them all
# random problems.
bochs_except='*/f16/*' bochs_except_random='*/random/*'

# Runs suites in Bochs. All take ten minutes on a quiet machine, and forty only if the guest hangs.
bochs_runner() { # BACKEND OPTIONS...
    guest=$1
    shift
    [ "$brief" = no ] || set -- "$@" --except '*/memory/sizes' --except '*/properties/*'
    sh tools/bochs/guest.sh "$bochs/$guest" "$bochs/vmlinuz" 2400 "$runner" "$golden" "$@" --backend "$guest" \
        --except "$bochs_except" --except "$bochs_except_random" /data \
        >"$bochs/$guest.log" 2>"$bochs/$guest.err"
}

bochs_primitives() {
    sh tools/bochs/guest.sh "$bochs/primitives" "$bochs/vmlinuz" 1200 "$primitives" "$golden" --except vf_store_f16 avx512 \
        >"$bochs/primitives.log" 2>"$bochs/primitives.err"
}

# Counts the log of a runner, and a failure if it ended with another status than 0 or 1.
avx512_count() { # WHERE STATUS LOG
    tally_runner "$job: $1" "$3"
    [ "$2" -gt 1 ] || return 0
    [ ! -s "${3%.log}.err" ] || cat "${3%.log}.err"
    tally "$job: $1: the runner ended with $2" 0 1 0
}

# Counts a failure for each backend that does not run the same cases on this CPU and in Bochs.
avx512_same() {
    right=0
    for backend in avx512 scalar; do
        counted=$(grep "^$backend .* passed" "$logs/same.log")
        [ -n "$counted" ] && [ "$counted" = "$(grep "^$backend .* passed" "$bochs/$backend.log")" ] &&
            right=$((right + 1))
    done
    tally "$job: the same cases on this CPU and in Bochs" $right $((2 - right)) 0
}

# ---- An old CPU ----

# qemu 7.2 reads 16 bytes for the 4 bytes of a scalar fused multiply-add in memory, which crashes at the end of a guarded
# buffer. gcc compiles such instructions into autovec_v3, which contracts plain loops, and into no template. Cases of
# autovec_v3 with a guard behind the buffer therefore run on real CPUs only: memory, layouts, sizes of models, random
# problems. clang 14 compiles one into sinusoidal_add and fails here.

# Prints the CPU of a level for qemu: AMD's first 64-bit CPU, or a Haswell without what qemu does not emulate.
baseline_cpu() { # LEVEL
    case $1 in
    sse2) echo qemu64,-sse3,-cx16 ;;
    avx2) echo Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid ;;
    esac
}

# Prints the feature that the CPU of a level lacks for a backend, or nothing. A new backend needs a line here.
baseline_lacks() { # LEVEL BACKEND
    case $1-$2 in
    *-avx512 | *-avx512_bf16 | *-sleef_avx512 | *-autovec_v4) echo avx512f ;;
    sse2-avx2 | sse2-sleef_avx2 | sse2-autovec_v3) echo avx2 ;;
    avx2-avx2 | avx2-sleef_avx2 | avx2-autovec_v3) ;;
    *-scalar | *-libm) ;;
    *) echo 'nothing that tools/x86.sh knows of' ;;
    esac
}

test_baseline() {
    is_x86 'programs for x86-64' || return 0
    bring objdump:binutils || {
        cannot "$job: instructions in the objects"
        return
    }
    baseline_objects
    bring qemu-x86_64:qemu-user || {
        cannot "$job: in qemu"
        return
    }
    if [ ! -x build/posenc ]; then
        say 'the program was not built: it needs jansson'
        cannot "$job: the program and the vectors"
        return
    fi
    machine=x86_64 sysroot=/ cross=build baseline=build/baseline # of tools/emulated.sh
    mkdir -p "$baseline"
    "${CC:-cc}" -std=c11 -O2 -o "$baseline/illegal" tools/illegal.c || {
        tally "$job: tools/illegal.c" 0 1 0
        return
    }
    names=$(build/posenc list backends | baseline_list | cut -d' ' -f1)
    # The runners take the most time: all start at once, and the program is tested meanwhile.
    for level in sse2 avx2; do
        emulated_primitives $level "$(baseline_cpu $level)"
        for name in $names; do
            [ -n "$(baseline_lacks $level "$name")" ] || baseline_start $level "$name"
        done
    done
    for level in sse2 avx2; do
        baseline_program $level
    done
    emulated_count
}

# Starts the suites of a backend. scalar and libm have every suite on the CPU without AVX. With AVX they are the code that
# ./run test runs, so that vectors and digests are enough; digests are of the templates.
baseline_start() { # LEVEL BACKEND
    cpu=$(baseline_cpu "$1")
    case $1-$2 in
    avx2-libm) emulated_again "$1-$2" "$cpu" "$2" --suite vectors ;;
    avx2-scalar)
        emulated_again "$1-$2-vectors" "$cpu" "$2" --suite vectors
        emulated_again "$1-$2-digests" "$cpu" "$2" --suite digests
        ;;
    *-autovec_v3)
        emulated_again "$1-$2" "$cpu" "$2" --except '*/memory/guard-end' --except '*/memory/values' \
            --except '*/memory/sizes' --except '*/properties/layouts' --except '*/random/*'
        ;;
    *) emulated_again "$1-$2" "$cpu" "$2" ;;
    esac
}

# Runs a program on the CPU of a level.
run_on() { # LEVEL PROGRAM ARGUMENTS...
    cpu=$(baseline_cpu "$1")
    shift
    emulated "$cpu" "$@"
}

# Reads the output of posenc list backends and prints "NAME runs", "NAME serves" (the default) or "NAME off: REASON".
baseline_list() {
    awk '
        function flush() { if (name) print name, state }
        /^[*+ ] [a-z]/ && split(substr($0, 3), field, " ") > 4 && field[4] ~ /^(yes|no)$/ {
            flush()
            name = field[1]
            state = field[4] == "no" ? "off:" : /^[*]/ ? "serves" : "runs"
        }
        /^ *needs .*: / && state == "off:" { state = state " " substr($0, match($0, /: /) + 2) }
        END { flush() }'
}

# Runs one test and counts it.
expect() { # TEXT COMMAND...
    text=$1
    shift
    if "$@" >"$baseline/check.log" 2>&1; then
        right=$((right + 1))
    else
        wrong=$((wrong + 1))
        say "$job: $level: failed: $text"
        cat "$baseline/check.log"
    fi
}

# Tests the program on the CPU of a level: which backends it lists, uses and rejects.
baseline_program() { # LEVEL
    level=$1 right=0 wrong=0 default=scalar
    [ "$level" != avx2 ] || default=avx2
    for set in sse2 sse3 ssse3 sse4_1 popcnt bmi2 avx f16c fma avx2 avx512f; do
        expect "an instruction of $set runs where the CPU has it, and only there" baseline_instruction $set
    done
    expect 'list backends names each that is off with its reason, and the default' baseline_listed
    for name in $names; do
        [ -z "$(baseline_lacks "$level" "$name")" ] ||
            expect "$name is rejected, and what is usable is named" baseline_rejected "$name"
    done
    tally "$job: $level: the program" $right $wrong 0
}

baseline_instruction() {
    wanted=0
    case $level-$1 in
    sse2-sse2 | avx2-[!a]* | avx2-avx | avx2-avx2) ;;
    *) wanted=1 ;;
    esac
    run_on "$level" "$baseline/illegal" "$1"
    status=$?
    echo "exit $status, expected $wanted"
    [ $status = $wanted ]
}

baseline_listed() {
    for name in $names; do
        lacks=$(baseline_lacks "$level" "$name")
        if [ -n "$lacks" ]; then
            echo "$name off: CPU lacks $lacks"
        elif [ "$name" = "$default" ]; then
            echo "$name serves"
        else
            echo "$name runs"
        fi
    done >"$baseline/$level.expected"
    run_on "$level" build/posenc list backends >"$baseline/list" || return 1
    baseline_list <"$baseline/list" >"$baseline/$level.list"
    diff "$baseline/$level.expected" "$baseline/$level.list"
}

# The program rejects a backend that the variable or the option names: exit 2, nothing on stdout, and a message that names
# those that run.
baseline_rejected() { # BACKEND
    for way in variable argument; do
        if [ $way = variable ]; then
            POSENC_BACKEND=$1 run_on "$level" build/posenc table --problem 'sinusoidal dim=8 tokens=2'
        else
            run_on "$level" build/posenc table --problem 'sinusoidal dim=8 tokens=2' --backend "$1"
        fi >"$baseline/stdout" 2>"$baseline/stderr"
        status=$?
        echo "by $way: exit $status"
        cat "$baseline/stderr"
        [ $status = 2 ] && [ ! -s "$baseline/stdout" ] || return 1
        for other in $names; do
            if [ -z "$(baseline_lacks "$level" "$other")" ]; then
                grep -qw "$other" "$baseline/stderr" || return 1
            fi
        done
    done
}

# Disassembles the objects. Only backends with AVX, their primitives' tests and plug-ins that are compiled for this CPU may
# have instructions that the first x86-64 lacks. A backend exports its table and nothing else. Rooflines of bench and
# the 512-bit loop of the probe ask the CPU first, and are left out.
baseline_objects() {
    right=0 wrong=0
    find build/impl build/conformance build/reports build/cli build/posenc.p -name '*.o' ! -name 'explore-*' ! -name 'cli_probe_core*' 2>/dev/null |
        grep -v '/\(lib\(backend\|primitives\)_\(avx\|autovec_v\)\|plugins/sleef_avx\|libplugin_\(contracts\|undeclared\)[.]\)' >build/objects
    leaked=$(xargs objdump -d --no-show-raw-insn <build/objects | newer_instructions)
    if [ -s build/objects ] && [ -z "$leaked" ]; then
        right=$((right + 1))
    else
        wrong=$((wrong + 1))
        say "of $(($(wc -l <build/objects))) objects for any x86-64 these have instructions of newer ones:"
        echo "$leaked"
    fi
    for folder in build/impl/libbackend_*.a.p; do
        [ -n "$(find "$folder" -name '*.o')" ] || continue # what an earlier build left
        name=${folder#*/libbackend_} name=${name%.a.p}
        # A backend exports its table, and kernels with its name.
        exported=$(nm -g --defined-only "$folder"/*.o | awk -v isa="$name" '
            NF == 3 && $3 !~ "^posenc_(backend_" isa "|" isa "_[a-z0-9_]+)$" { print $3 }')
        table=$(nm -g --defined-only "$folder"/*.o | grep -c " posenc_backend_$name\$")
        newer=$(objdump -d --no-show-raw-insn "$folder"/*.o | newer_instructions)
        case $name in
        # These must have some, which shows that the search finds any.
        avx* | autovec_v*) [ -n "$newer" ] ;;
        *) [ -z "$newer" ] ;;
        esac && [ -z "$exported" ] && [ "$table" = 1 ] && right=$((right + 1)) && continue
        wrong=$((wrong + 1))
        say "backend $name: $table tables; exports ${exported:-nothing else}; newer instructions: ${newer:-none}"
    done
    tally "$job: instructions of the objects" $right $wrong 0
}

# Reads disassembly and prints the first newer instruction of each file. Names with VEX and EVEX begin with a v, but for
# those of masks and of BMI.
newer_instructions() {
    awk -F '\t' '
        /file format/ { file = $1; sub(/: .*/, "", file); told = 0; next }
        { split($2, word, " ") }
        word[1] ~ /^(v.*|k(mov|and|or|xor|xnor|not|test|unpck|shift|add).*)$/ ||
            word[1] ~ /^(andn|bextr|bls.*|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|popcnt|movbe)$/ {
            if (!told++)
                print "  " file ": " $2
        }'
}
