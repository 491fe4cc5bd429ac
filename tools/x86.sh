# shellcheck shell=sh disable=SC2154
# Other x86-64 CPUs than this one.  Sourced by run, whose functions it uses.
#
#     ./run test-avx512     the AVX-512 backend on this CPU where it can and in Bochs,
#                           which interprets every instruction, so that any machine vouches for it: for all
#                           suites where this CPU lacks AVX-512, for golden vectors and primitives where it has it
#     ./run test-baseline   the engine in qemu-user on a CPU with SSE2 only, and on one with AVX2 but no
#                           AVX-512: nothing may run there that the CPU lacks

# is_x86 LABEL: says and counts where it is not.
is_x86() {
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
        # scalar is the reference: vectors that it does not pass either are the emulator's fault.
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

# The four sets that the backend needs; without them it is tested in Bochs alone.
avx512_here() {
    for flag in avx512f avx512bw avx512dq avx512vl; do
        grep -qw $flag /proc/cpuinfo || {
            say "this CPU lacks $flag: AVX-512 in Bochs alone"
            return 1
        }
    done
}

# Bochs, and what makes a disc to boot from.
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

# A fault of the emulator: Bochs 2.7 rounds ties of vcvtps2ph away from zero, so what stores f16 is for real CPUs, and the
# problems at random, of which some do.
bochs_except='*/f16/*' bochs_except_random='*/random/*'

# bochs_runner BACKEND OPTIONS...: all suites take a quiet machine ten minutes; what takes forty hangs.
bochs_runner() {
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

# avx512_count WHERE STATUS LOG: what the runner counted, and an end that it does not know of.
avx512_count() {
    tally_runner "$job: $1" "$3"
    [ "$2" -gt 1 ] || return 0
    [ ! -s "${3%.log}.err" ] || cat "${3%.log}.err"
    tally "$job: $1: the runner ended with $2" 0 1 0
}

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

# A fault of the emulator: qemu 7.2 reads 16 bytes for the 4 in memory of a scalar fused multiply-add, which is a
# crash at the end of a guarded buffer.  gcc's objects have none in the templates, and do in autovec_v3, the plain
# loops that it contracts itself: its buffers with a guard at the end, which the law of layouts, the sizes of models
# and the problems at random have as well, are for real CPUs.  clang 14's have one in sinusoidal_add, and fail here for it.
#
# qemu64 is AMD's first 64-bit CPU and a little more.  Haswell here is without what qemu does not emulate and
# would warn of.
baseline_cpu() {
    case $1 in
    sse2) echo qemu64,-sse3,-cx16 ;;
    avx2) echo Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid ;;
    esac
}

# Of a level and a backend: what the CPU lacks, nothing where it runs.  A new backend gets its line here.
baseline_lacks() {
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
    baseline=build/baseline
    mkdir -p "$baseline"
    "${CC:-cc}" -std=c11 -O2 -o "$baseline/illegal" tools/illegal.c || {
        tally "$job: tools/illegal.c" 0 1 0
        return
    }
    names=$(build/posenc list backends | baseline_list | cut -d' ' -f1)
    # What takes the time: all at once, and the rest meanwhile.
    baseline_runners
    for level in sse2 avx2; do
        baseline_program $level
    done
    wait
    for started in $runners; do
        case $started in
        *-primitives) tally_runner "$job: ${started%-*}, primitives" "$baseline/$started.log" ;;
        *) tally_runner "$job: ${started%%-*}" "$baseline/$started.log" ;;
        esac
        status=$(cat "$baseline/$started.status")
        [ "$status" -le 1 ] || tally "$job: $started: the runner ended with $status" 0 1 0
    done
}

# on LEVEL PROGRAM ARGUMENTS...
on() {
    cpu=$(baseline_cpu "$1")
    shift
    QEMU_CPU=$cpu qemu-x86_64 "$@"
}

# On each level primitives, and a runner for each backend.  scalar and libm have every suite without AVX: on a CPU with it
# they are the code that ./run test has on this one, so that vectors and digests are enough.
baseline_runners() {
    runners=''
    for level in sse2 avx2; do
        baseline_start $level-primitives build/impl/simd/tests/primitives
        for name in $names; do
            [ -z "$(baseline_lacks $level "$name")" ] || continue
            case $level-$name in
            avx2-scalar | avx2-libm) # digests are of the templates
                baseline_suites $level "$name" --suite vectors
                [ "$name" = libm ] || baseline_suites $level "$name" --suite digests
                ;;
            *-autovec_v3)
                baseline_suites $level "$name" --no-accuracy --except '*/memory/guard-end' --except '*/memory/values' \
                    --except '*/memory/sizes' --except '*/properties/layouts' --except '*/random/*'
                ;;
            *) baseline_suites $level "$name" --no-accuracy ;;
            esac
        done
    done
}

baseline_suites() { # LEVEL BACKEND ARGUMENTS...
    level=$1 name=$2
    shift 2
    suites=$(printf %s "$*" | tr -cd 'a-z')
    [ "$brief" = no ] || set -- "$@" --except '*/memory/sizes' --except '*/properties/*' --except '*/random/*'
    baseline_start "$level-$name-$suites" build/conformance/criterion/runner --backend "$name" "$@" \
        build/golden
}

# baseline_start LEVEL-NAME PROGRAM ARGUMENTS...: in a process of its own.
baseline_start() {
    runners="$runners $1"
    {
        start=$1 status=0
        shift
        on "${start%%-*}" "$@" >"$baseline/$start.log" 2>&1 || status=$?
        echo $status >"$baseline/$start.status"
    } &
}

# From posenc list backends: "NAME runs", "NAME serves" (the default) or "NAME off: REASON" each.
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

# expect TEXT COMMAND...: one test.
expect() {
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

# What the program says and does on a CPU of this level.
baseline_program() {
    level=$1 right=0 wrong=0 default=scalar
    [ "$level" != avx2 ] || default=avx2
    for set in sse2 sse3 ssse3 sse4_1 popcnt bmi2 avx f16c fma avx2 avx512f; do
        expect "an instruction of $set runs where the CPU has it, and only there" baseline_instruction $set
    done
    expect 'list backends names each that is off with its reason, and the default' baseline_listed
    for name in $names; do
        [ -z "$(baseline_lacks "$level" "$name")" ] ||
            expect "$name is refused, and what is usable is named" baseline_refused "$name"
    done
    tally "$job: $level: the program" $right $wrong 0
}

baseline_instruction() {
    wanted=0
    case $level-$1 in
    sse2-sse2 | avx2-[!a]* | avx2-avx | avx2-avx2) ;;
    *) wanted=1 ;;
    esac
    on "$level" "$baseline/illegal" "$1"
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
    on "$level" build/posenc list backends >"$baseline/list" || return 1
    baseline_list <"$baseline/list" >"$baseline/$level.list"
    diff "$baseline/$level.expected" "$baseline/$level.list"
}

# By the variable and by the argument: exit 2, nothing on stdout, the names of those that do run.
baseline_refused() {
    for way in variable argument; do
        if [ $way = variable ]; then
            POSENC_BACKEND=$1 on "$level" build/posenc table --problem 'sinusoidal dim=8 tokens=2'
        else
            on "$level" build/posenc table --problem 'sinusoidal dim=8 tokens=2' --backend "$1"
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

# Without an emulator: no object but those of the AVX backends, their primitives' tests, and of the
# plug-ins that are compiled for the CPU at hand, has an instruction that the first x86-64 lacks; and the backends
# export nothing but their table, so that nobody else gets a function of theirs.  (The roofs of bench compile each
# function for its own set, and are asked for the sets that the CPU has.)
baseline_objects() {
    right=0 wrong=0
    find build/impl build/conformance build/reports build/cli build/posenc.p -name '*.o' ! -name 'explore-*' 2>/dev/null |
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
        # The table of the backend, and kernels that bear its name.
        exported=$(nm -g --defined-only "$folder"/*.o | awk -v isa="$name" '
            NF == 3 && $3 !~ "^posenc_(backend_" isa "|" isa "_[a-z0-9_]+)$" { print $3 }')
        table=$(nm -g --defined-only "$folder"/*.o | grep -c " posenc_backend_$name\$")
        newer=$(objdump -d --no-show-raw-insn "$folder"/*.o | newer_instructions)
        case $name in
        # That this looks for the right thing: here it has to find some.
        avx* | autovec_v*) [ -n "$newer" ] ;;
        *) [ -z "$newer" ] ;;
        esac && [ -z "$exported" ] && [ "$table" = 1 ] && right=$((right + 1)) && continue
        wrong=$((wrong + 1))
        say "backend $name: $table tables; exports ${exported:-nothing else}; newer instructions: ${newer:-none}"
    done
    tally "$job: instructions of the objects" $right $wrong 0
}

# VEX and EVEX all begin with a v, but for masks and the bit manipulation of BMI.  The first of each file.
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
