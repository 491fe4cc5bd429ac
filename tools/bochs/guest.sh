#!/bin/sh
# Runs an x86-64 program on an emulated Skylake-X: Bochs interprets every instruction, AVX-512 included. The guest is a
# Linux kernel with a file system in memory that has the program, its libraries and its data.
#
#     tools/bochs/guest.sh FOLDER KERNEL SECONDS PROGRAM DATA ARGUMENTS...
#
# In the guest the program is /program, the data /data. Prints the output of the program. The exit status is the program's,
# 128 + N if signal N ended it, 124 after SECONDS, 125 if the guest did not start it. FOLDER keeps disc, console and logs.
set -eu
[ $# -ge 5 ] || {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
folder=$1 kernel=$2 limit=$3 program=$4 data=$5
shift 5

rm -rf "$folder"
mkdir -p "$folder/memory" "$folder/disc"
cp "$program" "$folder/memory/program"
for library in $(ldd "$program" | sed -n 's,^[^/]*\(/[^ ]*\) (.*,\1,p'); do
    mkdir -p "$folder/memory${library%/*}"
    cp -L "$library" "$folder/memory$library"
done
cp -R "$data" "$folder/memory/data"
cp "$kernel" "$folder/disc/vmlinuz"
cd "$folder"
"${CC:-cc}" -std=c11 -O2 -static -o memory/init "$here/init.c"
strip memory/init memory/program
(cd memory && find . | cpio -o -H newc --quiet) >disc/memory

# clearcpuid: the kernel finds the sizes of Bochs' compact XSAVE inconsistent and would then disable AVX. The other options
# turn off the kernel's tests of itself, and measurements of clocks that do not exist.
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 disc
quick='quiet loglevel=3 mitigations=off cryptomgr.notests no_timer_check tsc=reliable lpj=1000000'
cat >disc/isolinux.cfg <<CONF
DEFAULT guest
PROMPT 0
LABEL guest
  KERNEL vmlinuz
  APPEND initrd=memory console=ttyS0 panic=1 clearcpuid=xsavec,xsaves $quick -- $*
CONF
xorriso -as mkisofs -quiet -o disc.iso -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 \
    -boot-info-table disc 2>disc.log || {
    cat disc.log >&2
    exit 125
}

# ips sets the guest's clock against its instructions: the fewer, the less it computes while it waits.
cat >bochsrc <<CONF
config_interface: textconfig
display_library: term
cpu: model=corei7_skylake_x, count=1, ips=50000000, reset_on_triple_fault=0
clock: sync=none
megs: 256
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
boot: cdrom
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=disc.iso, status=inserted
com1: enabled=1, mode=file, dev=console
com2: enabled=1, mode=file, dev=output
log: bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
CONF
echo continue >commands
: >console
: >output

# Bochs opens a terminal for its screen and stops after some minutes if nobody reads there.
drain() {
    display=''
    until [ -n "$display" ]; do
        sleep 0.2
        display=$(sed -n 's/^Bochs connected to screen "\(.*\)"$/\1/p' screen)
    done
    cat "$display" >/dev/null 2>&1 || true # until Bochs ends
}
: >screen
drain &
reader=$!

status=0
TERM=linux timeout -k 5 "$limit" bochs -q -f bochsrc -rc commands </dev/null >screen 2>&1 || status=$?
kill "$reader" 2>/dev/null || true # where it never came to a terminal

# Bochs ends with 1 when the guest switches itself off. The console has the exit status of the program.
cat output
ended=$(tr -d '\r' <console | sed -n 's/^init: \(exit\|signal\) \([0-9]*\)$/\1 \2/p')
case $ended in
'exit '*) exit "${ended#* }" ;;
'signal '*) exit $((128 + ${ended#* })) ;;
esac
{
    echo "${0##*/}: Bochs ended with $status, and this is the end of the guest's console:"
    tail -n 15 console
    grep 'PANIC' bochs.log || tail -n 3 bochs.log
} >&2
case $status in
124 | 137) exit 124 ;;
*) exit 125 ;;
esac
