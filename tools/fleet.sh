# shellcheck shell=sh
# ./run fleet [PART...]: runs the bundle and the scripts of examples/fleet on machines that this one imitates. Sourced by run,
# with bundle.sh (bundle), bare.sh (bare_ready), count.sh (cannot, tally, tally_tap) and packages.sh (bring, absent).
#
#     bundle      the archive: two builds give the same bytes; runs from a folder with a space, moved, in a root with glibc
#                 alone, and on Debian 11, 12 and 13; opens no file outside
#     parallel    this machine twice under two names: an sshd on loopback, with keys of its own
#     slurm       a cluster of one node on loopback: slurmctld, slurmd and munged with a configuration of their own
#     matrix      the workflow for GitHub: read as YAML, its shell parts run, its artefacts handed on
#     container   the recipe, by buildah, on a Debian made by debootstrap in place of the image that is pulled elsewhere
#
# Each part is a script of tools/fleet that prints TAP. Its services listen on loopback alone and end with it; keys and
# configurations lie in a temporary folder. parallel, slurm and container take root. Packages with services are not installed:
# a message names those that are missing, and the part is skipped.
all_fleet='bundle parallel slurm matrix container'

fleet() {
    bundle '' || {
        cannot "$job: the bundle"
        return
    }
    bundle_made=$PWD/$bundle_file
    for part in $fleet_parts; do
        case " $all_fleet " in *" $part "*) ;; *)
            say "fleet has no part $part; its parts: $all_fleet"
            tally "$job: $part" 0 1 0
            continue
            ;;
        esac
        fleet_ready "$part" || {
            tally "$job: $part: what it takes is missing" 0 0 1
            continue
        }
        # The script takes the archive and the absolute paths of the roots.
        log=build-bundle/fleet-$part.log status=0
        set -- "$bundle_made"
        for suite in $fleet_suites; do
            set -- "$@" "$(cd "${BARE_ROOTS:-build-bare}/$suite" && pwd -P)"
        done
        "$fleet_shell" "tools/fleet/$part".* "$@" >"$log" 2>&1 || status=$?
        tally_tap "$part" "$log" "$status"
    done
}

# Succeeds if this machine has what a part takes; installs tools that start no service. Sets $fleet_suites, the Debian
# releases whose roots its script takes, and $fleet_shell, which runs it.
fleet_ready() { # PART
    fleet_suites='' fleet_shell=sh
    case $1 in
    bundle) fleet_roots bullseye bookworm trixie && bring strace:strace ;;
    parallel) fleet_root "$1" && fleet_services parallel:parallel /usr/sbin/sshd:openssh-server ssh:openssh-client ;;
    slurm) fleet_root "$1" && fleet_services slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client munged:munge ;;
    matrix) fleet_shell=/usr/bin/python3 && bring /usr/lib/python3/dist-packages/yaml/__init__.py:python3-yaml ;;
    container) fleet_root "$1" && bring buildah:buildah && fleet_roots bookworm ;;
    esac
}

fleet_root() { # PART
    [ "$(id -u)" = 0 ] || {
        say "$job: $1: it takes root"
        return 1
    }
}

# Fails if a package is missing that starts services, and prints the command that installs it.
fleet_services() { # COMMAND:PACKAGE...
    absent "$@" || return 0
    say "missing for $job:$missing"
    say "to install them: $(install_line $packages); that starts services on this machine, which the tests do not use"
    return 1
}

# Makes roots of Debian releases by bare_ready, and adds to $fleet_suites those that can be made here. Succeeds without any.
fleet_roots() { # SUITE...
    for bare_suite in "$@"; do
        if bare_ready; then # of $bare_suite
            fleet_suites="$fleet_suites $bare_suite"
        fi
    done
}
