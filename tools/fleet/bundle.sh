#!/bin/sh
# bundle.sh BUNDLE [ROOT...]: unpacks an archive of ./run bundle and runs it on systems that have nothing else. ROOT is a
# folder with a Debian that debootstrap made, which is copied. Prints TAP.
bundle=$1
shift
tree=$(cd "$(dirname "$0")/../.." && pwd)
. "$tree/cli/tests/tap.sh"
name=$(basename "$bundle" .tar.gz)

# ---- The archive ----

(umask 077 && cd "$tree" && ./run --no-install bundle "$scratch/again.tar.gz") >stdout 2>stderr
cmp -s "$bundle" again.tar.gz
verdict 'made again, with another umask, it has the same bytes'
here="$scratch/work/a folder, with spaces"
mkdir "$here" && tar -xzf "$bundle" -C "$here"
same 'it has one folder, named like it' "$(ls "$here")" "$name"
POSENC="$here/$name/bin/posenc"
for file in README LICENSE include/posenc.h include/posenc_kernels.def include/posenc/backend.h ci/compare.sh fleet/parallel.sh fleet/slurm.sh lib/posenc/ share/posenc/golden/vectors/SHA256SUMS libexec/posenc/python/ licences/; do
    [ -e "$here/$name/$file" ]
    verdict "$file is inside"
done
run sh -c "echo '#include <posenc/experimental.h>' | ${CC:-cc} -std=c11 -I '$here/$name/include' -fsyntax-only -x c -"
same 'a program can include posenc/experimental.h' $status 0

# ---- In a folder with spaces ----

# Tests list, verify and bench of $POSENC, which a command runs, such as chroot.
small='--kernel alibi --backend scalar'
test_commands() { # WHERE [COMMAND...]
    where=$1
    shift
    run "$@" "$POSENC" list backends
    for backend in scalar libm sleef_; do
        ended "$where: $backend is there" 0 "^[*+ ] $backend"
    done
    run "$@" "$POSENC" verify $small
    ended "$where: verify" 0 '^0 failed, [1-9]'
    grep -q "^vectors: .*share/posenc/golden," stderr
    verdict "$where: its own vectors"
    run "$@" "$POSENC" bench --quick $small --case '*/l2'
    ended "$where: bench" 0 '^  scalar '
}
test_commands 'with spaces'
run "$POSENC" verify --quick
ended 'verify --quick of everything' 0 '^0 failed, [1-9]'

# Each file that it opens is its own, glibc's or the kernel's.
run strace -f -qq -e trace=open,openat,execve -o "$scratch/opened" "$POSENC" bench --quick $small --case '*/l2'
grep -v ' = -1 ' opened | sed -n 's/^[0-9]* [a-z]*([^"]*"\([^"]*\)".*/\1/p' | sort -u |
    grep -v -e "^$here/" -e '^/proc/' -e '^/sys/' -e '^/dev/' -e '^/etc/ld.so.cache$' -e '^/etc/os-release$' -e '^/etc/localtime$' \
        -e '/lib\(c\|m\|dl\|pthread\|rt\)[.]so[.][0-9]$' >foreign
[ -s opened ] && [ ! -s foreign ]
verdict 'nothing outside is opened'

# ---- The Python part ----

# A Python that sees no module but its own library's.
mkdir "$scratch/alone" "$scratch/nothing"
printf '#!/bin/sh\nexec "%s" -I -S "$@"\n' "$(python3 -c 'import sys; print(sys.executable)')" >"$scratch/alone/python3"
chmod +x "$scratch/alone/python3"
run env PATH="$scratch/alone" "$POSENC" report --model transformer-base --backend scalar --dir there
[ $status = 0 ] && grep -q 'version: *"3[.]5' work/there/report.html && grep -q '^Page: there/report.html' stdout && ! grep -q D3 stderr
verdict 'report writes a page with charts by its own modules'
for command in "$here/$name"/libexec/posenc/posenc-*; do
    command=${command##*/posenc-}
    run env PATH="$scratch/alone" "$POSENC" "$command" --help
    if [ "$command" = plot ]; then # matplotlib is not inside
        [ $status = 2 ] && grep -q '^posenc plot: error: .* lacks the module matplotlib' stderr && status=0
    fi
    same "$command starts with its own modules" $status 0
done

# Tests that report says in one line that Python is missing.
test_missing_python() { # WHERE COMMAND...
    where=$1
    shift
    run "$@" "$POSENC" report --model transformer-base --backend scalar --dir nowhere
    [ $status = 2 ] && [ "$(wc -l <stderr)" = 1 ] && [ ! -s stdout ] && grep -q 'Install Python 3.9' stderr
    verdict "$where: report asks for Python in one line"
}
test_missing_python 'without Python' env PATH="$scratch/nothing"

# ---- Moved, and called by a link ----

mv "$here" "$scratch/work/elsewhere" && mkdir "$scratch/work/bin"
POSENC=$scratch/work/elsewhere/$name/bin/posenc
test_commands 'moved'
ln -s "$POSENC" work/bin/posenc
POSENC=$scratch/work/bin/posenc
test_commands 'by a link'
unpacked=$scratch/work/elsewhere/$name

# ---- Other systems ----

if [ "$(id -u)" != 0 ]; then
    skip 'other systems' 'chroot takes root'
    finish
    exit
fi

# Runs a command in a root, with /proc and /dev in a namespace that ends with it.
run_in_root() { # ROOT COMMAND...
    unshare --mount sh -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && root=$1 && shift &&
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@"' sh "$@"
}

# glibc and nothing else: not even a shell.
loader=$(readelf -l "$unpacked/bin/posenc" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
root=$scratch/glibc
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root$(dirname "$loader")" "$root/lib"
cp -L "$loader" "$root$loader"
for library in c m dl pthread rt; do
    cp -L "$(ldconfig -p | sed -n "s,^\tlib${library}[.]so[.][0-9] .*=> ,,p" | head -n 1)" "$root/lib"
done
cp -R "$unpacked" "$root/posenc"
POSENC=/posenc/bin/posenc
test_commands 'glibc alone' run_in_root "$root"
test_missing_python 'glibc alone' run_in_root "$root"

for original; do
    release=$(basename "$original") root=$scratch/root
    mkdir "$root" && cp -a "$original/." "$root" && cp -R "$unpacked" "$root/opt/posenc"
    POSENC=/opt/posenc/bin/posenc
    version=$(run_in_root "$root" ldd --version | sed -n '1s/.* //p')
    test_commands "$release, glibc $version" run_in_root "$root"
    test_missing_python "$release" run_in_root "$root"
    if [ "$original" = "$1" ]; then # the oldest: of everything
        run run_in_root "$root" $POSENC verify --quick
        ended "$release: verify --quick of everything" 0 '^0 failed, [1-9]'
    fi
    rm -rf "$root"
done
finish
