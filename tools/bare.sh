# shellcheck shell=sh
# ./run bare [SUITE [COMMAND...]]: runs this tree on a Debian release (bookworm) with nothing but minbase. Sourced by run.
#
# Without COMMAND it types the commands of docs/install.md, as root and as a user who may not install anything
# (bare/typed.sh). With COMMAND it runs that as root, in the tree, and exits with its status.
#
# debootstrap makes the release once, in build-bare/SUITE, from its own mirror or DEBIAN_MIRROR=URI. BARE_ROOTS=FOLDER names
# a folder that has FOLDER/SUITE already. Commands run in a copy, which is removed.

bare() {
    bare_ready || {
        cannot "$job: a root of $bare_suite"
        return
    }
    for who in root user; do
        log=build-bare/$bare_suite-$who.log
        bare_in "$bare_suite-$who" sh tools/bare/typed.sh $who >"$log" 2>&1
        tally_tap "$bare_suite, docs/install.md typed by $who" "$log" $?
    done
}

# Makes the release, and sets $bare_root, its folder.
bare_ready() {
    [ "$(id -u)" = 0 ] || {
        say "$job: it takes root (debootstrap, chroot)"
        return 1
    }
    mkdir -p build-bare
    bare_root=${BARE_ROOTS:-build-bare}/$bare_suite
    [ ! -d "$bare_root" ] || return 0
    bring debootstrap:debootstrap /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring || return 1
    say "$job: making a root of $bare_suite in $bare_root"
    debootstrap --variant=minbase "$bare_suite" "$bare_root.new" ${DEBIAN_MIRROR:-} >build-bare/debootstrap.log 2>&1 || {
        tail -n 20 build-bare/debootstrap.log >&2
        rm -rf "$bare_root.new"
        return 1
    }
    mv "$bare_root.new" "$bare_root"
}

# Runs a command as root, in the tree, in a fresh copy of the release.
bare_in() { # NAME COMMAND...
    copy=$PWD/build-bare/$1.copy
    shift
    rm -rf "$copy"
    cp -a "$bare_root" "$copy" && cp -L /etc/resolv.conf "$copy/etc/" && mkdir "$copy/root/posenc" &&
        tar -cf - --exclude='./build*' --exclude=./.git --exclude=./posenc-report . |
        tar -xf - --no-same-owner -C "$copy/root/posenc" || return 1
    # The mounts are in a namespace that ends with the command.
    unshare --mount sh -c '
        copy=$1 && shift && mount -t proc proc "$copy/proc" && mount --rbind /dev "$copy/dev" &&
            exec chroot "$copy" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
                ${http_proxy:+"http_proxy=$http_proxy"} sh -c "cd /root/posenc && exec \"\$@\"" sh "$@"' \
        sh "$copy" "$@"
    status=$?
    rm -rf "$copy"
    return $status
}
