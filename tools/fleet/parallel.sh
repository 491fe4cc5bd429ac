#!/bin/sh
# parallel.sh BUNDLE: runs examples/fleet/parallel.sh on two machines, which are this one under two names: two sshds on
# loopback with keys and configurations of their own. Prints TAP.
bundle=$1
tree=$(cd "$(dirname "$0")/../.." && pwd)
. "$tree/cli/tests/tap.sh"

# ---- Two machines: alpha and beta ----

daemons=
stop_daemons() {
    [ -z "$daemons" ] || kill $daemons 2>/dev/null
    [ -z "$made" ] || rmdir /run/sshd 2>/dev/null
}
trap 'stop_daemons; sed "s/^/# /" "$scratch/complaints"; rm -rf "$scratch"' EXIT
made=
[ -d /run/sshd ] || { mkdir /run/sshd && made=yes; }
for key in host user; do
    ssh-keygen -q -t ed25519 -N '' -C posenc -f $key
done
# Starts an sshd whose users are in the folder NAME and not at home.
start_machine() { # NAME PORT
    mkdir "$1"
    cat >"$1.conf" <<CONF
ListenAddress 127.0.0.1
Port $2
HostKey $scratch/host
AuthorizedKeysFile $scratch/user.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
SetEnv HOME=$scratch/$1
ForceCommand cd "\$HOME" && exec sh -c "\$SSH_ORIGINAL_COMMAND"
CONF
    /usr/sbin/sshd -D -e -f "$scratch/$1.conf" 2>"$1.log" &
    daemons="$daemons $!"
    cat >>ssh.conf <<CONF
Host $1
    HostName 127.0.0.1
    Port $2
CONF
    echo "[127.0.0.1]:$2 $(cut -d ' ' -f 1,2 host.pub)" >>known
}
port=$((20000 + $$ % 20000))
start_machine alpha $port
start_machine beta $((port + 1))
cat >>ssh.conf <<CONF
Host *
    User $(id -un)
    IdentityFile $scratch/user
    IdentitiesOnly yes
    UserKnownHostsFile $scratch/known
    StrictHostKeyChecking yes
CONF
export PARALLEL_SSH="ssh -F $scratch/ssh.conf"
for name in alpha beta; do
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        run $PARALLEL_SSH -n $name pwd
        [ $status != 0 ] || break
        sleep 0.3
    done
    same "$name answers" "$(cat stdout)" "$scratch/$name"
done
listening=$(ss -Hltn "sport >= :$port and sport <= :$((port + 1))" | awk '{ print $4 }' | sort | tr '\n' ' ')
same 'and listens on loopback alone' "$listening" "127.0.0.1:$port 127.0.0.1:$((port + 1)) "

# ---- The script ----

printf '# two machines\nalpha\nbeta\n' >hosts
export SHARDS=4 VERIFY='verify --quick --kernel rope_half,alibi' BENCH="bench --quick --kernel alibi --backend scalar --case '*/l2'"
run sh "$tree/examples/fleet/parallel.sh" "$scratch/hosts" "$bundle"
results=$scratch/work/fleet-results
[ $status = 0 ]
verdict 'it checks, times, merges and reports'
cp stdout shown
program=$results/posenc/bin/posenc
same 'each machine had a part' "$(awk 'FNR > 1 { print $2 }' "$results"/*-*.jobs | sort -u | tr '\n' ' ')" 'alpha beta '
same 'and the first of its kind timed' "$(grep -l '"t": *"bench"' "$results"/bench-*.jsonl | sed 's,.*/,,' | tr '\n' ' ')" 'bench-alpha.jsonl '
same_checks 'four shards by ssh' "$results/all/results.jsonl" "$program" verify --quick --kernel rope_half,alibi

# Again: what is there is not run again.
run sh "$tree/examples/fleet/parallel.sh" "$scratch/hosts" "$bundle"
same 'again it runs nothing that is there' "$status $(cat "$results"/*.jobs | grep -c '^[0-9]')" '0 5'
same 'and prints the same' "$(cksum <stdout)" "$(cksum <shown)"
run env SHARDS=2 sh "$tree/examples/fleet/parallel.sh" "$scratch/hosts" "$bundle"
ended 'but with other settings nothing, as it would mix results' 2 'has results of other settings' stderr
stop_daemons
daemons='' made=''
finish
