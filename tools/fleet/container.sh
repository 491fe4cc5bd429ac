#!/bin/sh
# container.sh BUNDLE ROOT: builds examples/fleet/Containerfile by buildah and runs it. ROOT, a Debian 12 by debootstrap,
# takes the place of the image debian:12-slim. Images lie in a temporary folder. Prints TAP.
root=$2
tree=$(cd "$(dirname "$0")/../.." && pwd)
. "$tree/cli/tests/tap.sh"
trap 'rm -rf "$scratch"' EXIT

b() {
    buildah --root "$scratch/storage" --runroot "$scratch/running" --storage-driver vfs "$@"
}
step() { # NAME COMMAND...
    name=$1
    shift
    "$@" >stdout 2>stderr
    status=$?
    [ $status = 0 ]
    verdict "$name"
}

base=$(b from scratch)
b copy -q "$base" "$root" / >/dev/null 2>stderr
step 'a Debian 12 of debootstrap is the image that others pull' b commit -q "$base" docker.io/library/debian:12-slim
step 'the recipe is followed, each RUN for real' b build --pull-never --isolation chroot ${http_proxy:+--build-arg "http_proxy=$http_proxy"} \
    --network host -t posenc -f "$tree/examples/fleet/Containerfile" "$tree"
posenc=$(b from --pull-never posenc)
in_image() {
    b run --isolation chroot --network host "$posenc" -- "$@"
}
config() { # FORMAT
    b inspect --format "$1" "$posenc"
}
same 'it runs verify unless told otherwise' "$(config '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}')" '[posenc] [verify --quick]'
same 'by a user without rights' "$(config '{{.OCIv1.Config.User}}') $(in_image id -u)" 'posenc 1000'
step 'verify' in_image posenc verify --quick --kernel alibi
step 'bench' in_image posenc bench --quick --kernel alibi --backend scalar
grep -q '^  scalar ' stdout
verdict 'which times'
step 'the plug-ins are there' in_image sh -c 'posenc list backends | grep -q sleef_'
step 'results can be written' in_image sh -c 'posenc verify --quick --kernel alibi --backend scalar --out jsonl:here.jsonl && test -s /results/here.jsonl'
if in_image sh -c 'command -v gcc || command -v meson' >stdout 2>&1; then
    fail 'what built it is not inside' ''
else
    pass 'what built it is not inside'
fi
finish
