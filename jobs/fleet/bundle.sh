#!/bin/sh
# bundle.sh BUNDLE [ROOT...]: an archive of ./run bundle, unpacked and run where nothing else is.  ROOT is a folder with a
# Debian that debootstrap made; it is copied, and left as it is.  TAP.
bundle=$1
shift
tree=$(cd "$(dirname "$0")/../.." && pwd)
. "$tree/cli/tests/tap.sh"
name=$(basename "$bundle" .tar.gz)

# ---- The archive ----

(cd "$tree" && ./run --no-install bundle "$scratch/again.tar.gz") >stdout 2>stderr
if cmp -s "$bundle" again.tar.gz; then pass 'made again it has the same bytes'; else fail 'made again it has the same bytes' "$(ls -l "$bundle" again.tar.gz)"; fi
here="$scratch/work/a folder, with spaces"
mkdir "$here" && tar -xzf "$bundle" -C "$here"
same 'it has one folder, named like it' "$(ls "$here")" "$name"
POSENC="$here/$name/bin/posenc"
for file in README LICENSE include/posenc.h ci/compare.sh fleet/parallel.sh fleet/slurm.sh lib/posenc/ share/posenc/vectors.pack licences/; do
    if [ -e "$here/$name/$file" ]; then pass "$file is inside"; else fail "$file is inside" ''; fi
done

# ---- In a folder with spaces ----

# works NAME: list, verify, bench and report do, wherever $POSENC is and by the words before it.
small='--kernel alibi --backend scalar'
works() {
    where=$1
    shift
    run "$@" "$POSENC" list backends
    for backend in scalar libm sleef_; do
        if [ $status = 0 ] && grep -q "^[*+ ] $backend" stdout; then pass "$where: $backend is there"; else fail "$where: $backend is there" "exit $status"; fi
    done
    run "$@" "$POSENC" verify $small
    if [ $status = 0 ] && grep -q '^0 failed, [1-9]' stdout; then pass "$where: verify"; else fail "$where: verify" "exit $status"; fi
    if grep -q "^vectors: .*share/posenc/vectors.pack" stderr; then pass "$where: its own vectors"; else fail "$where: its own vectors" ''; fi
    run "$@" "$POSENC" bench --quick $small --case '*/l2'
    if [ $status = 0 ] && grep -q '^  scalar ' stdout; then pass "$where: bench"; else fail "$where: bench" "exit $status"; fi
}
works 'with spaces'
run "$POSENC" verify --quick
if [ $status = 0 ] && grep -q '^0 failed, [1-9]' stdout; then pass 'verify --quick of everything'; else fail 'verify --quick of everything' "exit $status"; fi

# Of what it opens, what is there has to be its own, glibc's or the kernel's.
run strace -f -qq -e trace=open,openat,execve -o "$scratch/opened" "$POSENC" bench --quick $small --case '*/l2'
grep -v ' = -1 ' opened | sed -n 's/^[0-9]* [a-z]*([^"]*"\([^"]*\)".*/\1/p' | sort -u |
    grep -v -e "^$here/" -e '^/proc/' -e '^/sys/' -e '^/dev/' -e '^/etc/ld.so.cache$' -e '^/etc/os-release$' -e '^/etc/localtime$' \
        -e '/lib\(c\|m\|dl\|pthread\|rt\)[.]so[.][0-9]$' >foreign
if [ -s opened ] && [ ! -s foreign ]; then pass 'nothing outside is opened'; else fail 'nothing outside is opened' "$(cat foreign)"; fi

# Without gnuplot a report is one without pictures, which is said.
run env PATH="$scratch/nothing" "$POSENC" report --model transformer-base --backend scalar --dir there
if [ $status = 0 ] && [ -s work/there/report.html ] && grep -q 'gnuplot' stderr; then pass 'a report without gnuplot says so'; else fail 'a report without gnuplot says so' "exit $status"; fi

# ---- Moved, and called by a link ----

mv "$here" "$scratch/work/elsewhere" && mkdir "$scratch/work/bin"
POSENC=$scratch/work/elsewhere/$name/bin/posenc
works 'moved'
ln -s "$POSENC" work/bin/posenc
POSENC=$scratch/work/bin/posenc
works 'by a link'
unpacked=$scratch/work/elsewhere/$name

# ---- Other systems ----

if [ "$(id -u)" != 0 ]; then
    skip 'other systems' 'chroot takes root'
    finish
    exit
fi

# in_root ROOT COMMAND...: with /proc and /dev, which go with the command.
in_root() {
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
works 'glibc alone' in_root "$root"

for original; do
    release=$(basename "$original") root=$scratch/root
    mkdir "$root" && cp -a "$original/." "$root" && cp -R "$unpacked" "$root/opt/posenc"
    POSENC=/opt/posenc/bin/posenc
    version=$(in_root "$root" ldd --version | sed -n '1s/.* //p')
    works "$release, glibc $version" in_root "$root"
    if [ "$original" = "$1" ]; then # the oldest: of everything
        run in_root "$root" $POSENC verify --quick
        if [ $status = 0 ] && grep -q '^0 failed, [1-9]' stdout; then pass "$release: verify --quick of everything"; else fail "$release: verify --quick of everything" "exit $status"; fi
    fi
    rm -rf "$root"
done
finish
