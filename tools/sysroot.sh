#!/bin/sh
# Makes a sysroot: a folder with the files of Debian packages of another architecture, to compile and run programs with.
#
#     tools/sysroot.sh ARCH SUITE FOLDER PACKAGES...
#     tools/sysroot.sh arm64 bookworm build-sysroot/arm64 libc6-dev libjansson-dev
#
# apt fetches and checks the packages and their dependencies, with lists and archives in a folder of its own. It neither
# touches the packages of this system nor needs root. The mirror is that of apt here, or DEBIAN_MIRROR=URI. FOLDER/.packages
# lists the packages, so that a second run does nothing. FOLDER exists complete or not at all. Exit status 75: the archive did
# not give the packages.
set -eu
[ $# -ge 4 ] || {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
arch=$1 suite=$2 folder=$3
shift 3
wanted="$arch $suite $*"
[ "$(cat "$folder/.packages" 2>/dev/null)" != "$wanted" ] || exit 0

new=$folder.new
mkdir -p "$(dirname "$folder")"
rm -rf "$new" "$new.apt"
trap 'rm -rf "$new" "$new.apt"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$new" "$new.apt/lists/partial" "$new.apt/archives/partial"
root=$(cd "$new" && pwd)
apt=$root.apt

# The first archive of whole releases that apt reads here; those of updates have a dash in their names.
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' | awk '$2 !~ /-/ && $3 == "main" { print $1; exit }')}
[ -n "$mirror" ] || {
    echo "${0##*/}: apt names no archive here: expected DEBIAN_MIRROR=URI" >&2
    exit 2
}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
signed=
[ ! -r $keys ] || signed=" signed-by=$keys"
echo "deb [arch=$arch$signed] $mirror $suite main" >"$apt/sources"
: >"$apt/status"
cat >"$apt/conf" <<CONF
#clear APT::Architectures;
#clear APT::Update::Post-Invoke;
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Debug::NoLocking "true";
Dir::Cache "$apt";
Dir::Etc::SourceList "$apt/sources";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "$apt";
Dir::State::Lists "$apt/lists";
Dir::State::Status "$apt/status";
pkgCacheGen::Essential "none";
CONF
# A mirror that is being updated has lists that do not agree, for hours at times.
apt-get -c "$apt/conf" update -qq || exit 75
apt-get -c "$apt/conf" install -y -qq --download-only "$@" >"$apt/log" || {
    cat "$apt/log" >&2
    exit 75
}

# Debian's merged /usr: packages still bring files of /lib, which belong in usr/lib.
for name in bin lib sbin; do
    mkdir -p "$root/usr/$name"
    ln -s "usr/$name" "$root/$name"
done
for package in "$apt"/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" >"$apt/tar"
    tar -x -f "$apt/tar" -C "$root" --keep-directory-symlink --no-same-owner \
        --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*'
    # Licences, for what is handed on to others.
    tar -x -f "$apt/tar" -C "$root" --no-same-owner --wildcards './usr/share/doc/*/copyright' 2>/dev/null || true
done
# An absolute link means the root of the other system, which is this folder.
find "$root" -type l -lname '/*' >"$apt/links"
while read -r link; do
    ln -snfr "$root$(readlink "$link")" "$link"
done <"$apt/links"

echo "$wanted" >"$root/.packages"
rm -rf "$folder"
mv "$root" "$folder"
