# shellcheck shell=sh
# Tests of x86-64 CPUs other than this one. Sourced by run. Logs: build/avx512 and build.

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

# Tests the AVX-512 backend on this CPU if it has AVX-512, else in Bochs, which interprets every instruction.
test_avx512() {
    is_x86 'programs for x86-64' || return 0
    logs=build/avx512 bochs=build/avx512/bochs
    runner=build/conformance/criterion/runner primitives=build/impl/simd/tests/primitives
    mkdir -p "$bochs"
    if avx512_here; then
        $primitives avx512 >"$logs/primitives.log" 2>&1
        avx512_count 'this CPU, primitives' $? "$logs/primitives.log"
        $runner --no-accuracy --backend avx512 build/golden >"$logs/here.log" 2>&1
        avx512_count 'this CPU' $? "$logs/here.log"
        return
    fi
    bochs_ready || {
        cannot "$job: in Bochs"
        return
    }
    golden=$bochs/golden # without the sources beside them
    rm -rf "$golden" && mkdir "$golden" && cp -R build/golden/cases build/golden/vectors "$golden"
    # scalar is a reference: the emulator is wrong where scalar fails as well.
    bochs_runner avx512 --no-accuracy &
    guests="avx512:$!"
    bochs_runner scalar --suite vectors &
    guests="$guests scalar:$!"
    bochs_primitives &
    guests="$guests primitives:$!"
    for guest in $guests; do
        wait "${guest#*:}"
        avx512_count 'in Bochs' $? "$bochs/${guest%:*}.log"
    done
}

# Succeeds if this CPU has the four sets that the backend needs.
avx512_here() {
    for flag in avx512f avx512bw avx512dq avx512vl; do
        grep -qw $flag /proc/cpuinfo || {
            say "this CPU lacks $flag: AVX-512 in Bochs"
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
    bring $bochs_tools || return 1
    [ ! -s "$bochs/vmlinuz" ] || return 0
    bochs_kernel && return
    [ "$install" = yes ] || return 1
    say 'once more with new lists of packages'
    $root apt-get update -qq && bochs_kernel
}

# Downloads the kernel that guest.sh boots, Debian's own for virtual machines, to vmlinuz, which is there complete or not at all.
bochs_kernel() {
    # linux-image-cloud-amd64 has no files: it depends on the release's newest.
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
    [ -n "$package" ] || {
        say 'apt knows no linux-image-cloud-amd64 here: expected Debian with its lists (apt-get update)'
        return 1
    }
    rm -rf "$bochs/kernel" && mkdir "$bochs/kernel" &&
        (cd "$bochs/kernel" && apt-get download -qq -o APT::Sandbox::User= "$package" && dpkg -x "$package"_*.deb .) &&
        mv "$bochs"/kernel/boot/vmlinuz-* "$bochs/vmlinuz" && rm -rf "$bochs/kernel"
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

# ---- An old CPU ----

# Tests all backends in qemu-user on a CPU with SSE2 only, and on one with AVX2 but no AVX-512. Nothing may run there that the
# CPU lacks.
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
    machine=x86_64 sysroot=/ cross=build # of tools/emulated.sh
    "${CC:-cc}" -std=c11 -O2 -o build/illegal tools/illegal.c || {
        tally "$job: tools/illegal.c" 0 1 0
        return
    }
    # The first 64-bit CPU of AMD, and a Haswell without what qemu does not emulate. With AVX2 the code is that which
    # ./run test runs: vectors and digests, which reach every kernel, show that a Haswell has its instructions.
    sse2=qemu64,-sse3,-cx16 avx2=Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid
    emulated_primitives sse2 $sse2 scalar
    emulated_primitives avx2 $avx2 avx2
    emulated_again sse2 $sse2 ''
    emulated_runner avx2-vectors $avx2 '' --suite vectors
    emulated_runner avx2-digests $avx2 '' --suite digests
    baseline_instructions sse2 $sse2 sse2
    baseline_instructions avx2 $avx2 'sse2 sse3 ssse3 sse4_1 popcnt bmi2 avx f16c fma avx2'
    emulated_backends $sse2 scalar '*avx2:avx2' 'autovec_v3:avx2' '*512*:avx512f' 'autovec_v4:avx512f'
    emulated_backends $avx2 avx2 '*512*:avx512f' 'autovec_v4:avx512f'
    emulated_count
}

# Tests that an emulated CPU has some instructions and rejects newer ones.
baseline_instructions() { # NAME CPU SETS-THAT-IT-HAS
    right=0 wrong=0
    for set in sse2 sse3 ssse3 sse4_1 popcnt bmi2 avx f16c fma avx2 avx512f; do
        case " $3 " in *" $set "*) wanted=0 ;; *) wanted=1 ;; esac
        emulated "$2" build/illegal $set && got=0 || got=$?
        [ $got = $wanted ] && right=$((right + 1)) && continue
        wrong=$((wrong + 1))
        say "$job: $1: an instruction of $set: exit $got, expected $wanted"
    done
    tally "$job: $1: its instructions" $right $wrong 0
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
