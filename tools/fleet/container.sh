#!/bin/sh
# container.sh BUNDLE ROOT: builds examples/fleet/Containerfile by buildah and runs it. ROOT, a Debian 12 by debootstrap,
# takes the place of the image debian:12-slim. Images lie in a temporary folder. Prints TAP.
root=$2
tree=$(cd "$(dirname "$0")/../.." && pwd)
. "$tree/cli/tests/tap.sh"

run_buildah() {
    buildah --root "$scratch/storage" --runroot "$scratch/running" --storage-driver vfs "$@"
}

base=$(run_buildah from scratch)
run_buildah copy -q "$base" "$root" / >/dev/null 2>stderr
expect 'the debootstrap root becomes debian:12-slim' run_buildah commit -q "$base" docker.io/library/debian:12-slim
expect 'the Containerfile builds' run_buildah build --pull-never --isolation chroot ${http_proxy:+--build-arg "http_proxy=$http_proxy"} \
    --network host -t posenc -f "$tree/examples/fleet/Containerfile" "$tree"
posenc=$(run_buildah from --pull-never posenc)
in_image() {
    run_buildah run --isolation chroot --network host "$posenc" -- "$@"
}
config() { # FORMAT
    run_buildah inspect --format "$1" "$posenc"
}
same 'the default command is verify --quick' "$(config '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}')" '[posenc] [verify --quick]'
same 'the image runs as an unprivileged user' "$(config '{{.OCIv1.Config.User}}') $(in_image id -u)" 'posenc 1000'
expect 'verify passes in the image' in_image posenc verify --quick --kernel alibi
expect 'bench' in_image posenc bench --quick --kernel alibi --backend scalar
grep -q '^  scalar ' stdout
verdict 'bench prints a row for scalar'
expect 'the plug-ins are there' in_image sh -c 'posenc list backends | grep -q sleef_'
expect 'results can be written' in_image sh -c 'posenc verify --quick --kernel alibi --backend scalar --out jsonl:here.jsonl && test -s /results/here.jsonl'
expect 'the compiler and meson are not in the image' in_image sh -c '! command -v gcc && ! command -v meson'
finish
