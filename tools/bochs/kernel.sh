#!/bin/sh
# Downloads the kernel that guest.sh boots, Debian's own for virtual machines, and unpacks it to FOLDER/vmlinuz, which is
# written atomically. A second run does nothing.
#
#     tools/bochs/kernel.sh FOLDER
set -eu
[ $# = 1 ] || {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
[ ! -s "$1/vmlinuz" ] || exit 0
rm -rf "$1/kernel"
mkdir -p "$1/kernel"
cd "$1/kernel"
# linux-image-cloud-amd64 has no files: it depends on the release's newest.
package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
[ -n "$package" ] || {
    echo "${0##*/}: apt knows no linux-image-cloud-amd64 here: expected Debian with its lists (apt-get update)" >&2
    exit 2
}
apt-get download -qq -o APT::Sandbox::User= "$package"
dpkg -x "$package"_*.deb .
mv boot/vmlinuz-* ../vmlinuz.new
cd ..
mv vmlinuz.new vmlinuz
rm -rf kernel
