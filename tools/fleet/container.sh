#!/bin/sh
# container.sh BUNDLE ROOT: builds examples/fleet/Containerfile by buildah and runs it. ROOT, a Debian 12 by debootstrap,
# takes the place of the image debian:12-slim. Images lie in a temporary folder. Prints TAP.
root=$2
tree=$(cd "$(dirname "$0")/../.." && pwd)
. "$tree/cli/tests/tap.sh"
trap 'rm -rf "$scratch"' EXIT

run_buildah() {
    buildah --root "$scratch/storage" --runroot "$scratch/running" --storage-driver vfs "$@"
}
expect() { # NAME COMMAND...
    name=$1
    shift
    "$@" >stdout 2>stderr
    status=$?
    [ $status = 0 ]
    verdict "$name"
}

base=$(run_buildah from scratch)
run_buildah copy -q "$base" "$root" / >/dev/null 2>stderr
expect 'a Debian 12 of debootstrap is the image that others pull' run_buildah commit -q "$base" docker.io/library/debian:12-slim
expect 'the recipe is followed, each RUN for real' run_buildah build --pull-never --isolation chroot ${http_proxy:+--build-arg "http_proxy=$http_proxy"} \
    --network host -t posenc -f "$tree/examples/fleet/Containerfile" "$tree"
posenc=$(run_buildah from --pull-never posenc)
in_image() {
    run_buildah run --isolation chroot --network host "$posenc" -- "$@"
}
config() { # FORMAT
    run_buildah inspect --format "$1" "$posenc"
}
same 'it runs verify unless told otherwise' "$(config '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}')" '[posenc] [verify --quick]'
same 'by a user without rights' "$(config '{{.OCIv1.Config.User}}') $(in_image id -u)" 'posenc 1000'
expect 'verify' in_image posenc verify --quick --kernel alibi
expect 'bench' in_image posenc bench --quick --kernel alibi --backend scalar
grep -q '^  scalar ' stdout
verdict 'which times'
expect 'the plug-ins are there' in_image sh -c 'posenc list backends | grep -q sleef_'
expect 'results can be written' in_image sh -c 'posenc verify --quick --kernel alibi --backend scalar --out jsonl:here.jsonl && test -s /results/here.jsonl'
if in_image sh -c 'command -v gcc || command -v meson' >stdout 2>&1; then
    fail 'what built it is not inside' ''
else
    pass 'what built it is not inside'
fi
finish
