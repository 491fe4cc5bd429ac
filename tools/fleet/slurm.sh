#!/bin/sh
# slurm.sh BUNDLE: examples/fleet/slurm.sh on a cluster of one node, which is this machine: slurmctld, slurmd and munged on
# loopback, with a configuration and a key of their own. TAP.
bundle=$1
tree=$(cd "$(dirname "$0")/../.." && pwd)
. "$tree/cli/tests/tap.sh"

# ---- A cluster ----

daemons=
stop_daemons() {
    [ ! -f slurm.conf ] || scancel --quiet --user="$(id -un)" 2>/dev/null
    [ -z "$daemons" ] || kill $daemons 2>/dev/null
    daemons=
}
trap 'stop_daemons; sleep 1; sed "s/^/# /" "$scratch/complaints"; rm -rf "$scratch"' EXIT
port=$((20000 + $$ % 20000)) node=$(hostname -s)
mkdir -m 755 munge spool state
chmod 755 "$scratch"
(umask 077 && head -c 128 /dev/urandom >munge.key)
munged --foreground --socket="$scratch/munge/socket" --key-file="$scratch/munge.key" --pid-file="$scratch/munge/pid" \
    --log-file="$scratch/munge/log" --seed-file="$scratch/munge/seed" --num-threads=2 >munged.log 2>&1 &
daemons="$daemons $!"
cat >slurm.conf <<CONF
ClusterName=posenc
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket=$scratch/munge/socket
CredType=cred/munge
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
SlurmctldLogFile=$scratch/slurmctld.log
SlurmdLogFile=$scratch/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2
MinJobAge=600
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=test Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
# The cluster does without control groups, which has an option since 23.02.
case $(slurmd -V) in
*' 2'[012].*) printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=%s\n' "$scratch/cgroup" >cgroup.conf ;;
*) echo 'CgroupPlugin=disabled' >cgroup.conf ;;
esac
export SLURM_CONF="$scratch/slurm.conf"
sleep 1
slurmctld -D -i >slurmctld.out 2>&1 &
daemons="$daemons $!"
slurmd -D >slurmd.out 2>&1 &
daemons="$daemons $!"

node_is_idle() {
    sinfo --noheader --format=%T 2>/dev/null | grep -q '^idle'
}
await node_is_idle || ! tail -n 5 slurmctld.out slurmd.out slurmctld.log slurmd.log munged.log >stdout
verdict 'a node is idle'
listening=$(ss -Hltn "sport >= :$port and sport <= :$((port + 1))" | awk '{ print $4 }' | sort | tr '\n' ' ')
same 'and listens on loopback alone' "$listening" "127.0.0.1:$port 127.0.0.1:$((port + 1)) "

# ---- The script ----

tar -xzf "$bundle" -C work
unpacked=$(echo "$scratch"/work/posenc-*)
program=$unpacked/bin/posenc results=$scratch/work/posenc-slurm
all_jobs_ended() { # no job is waiting or running
    [ -z "$(squeue --noheader 2>&1)" ]
}
export SHARDS=4 VERIFY='verify --quick' BENCH='bench --quick --kernel alibi --backend scalar --case */l2'
run "$unpacked/fleet/slurm.sh" --time=10
ended 'three jobs are submitted' 0 '^shards: job [0-9]*, timing: job [0-9]*, report: job [0-9]*;'
await all_jobs_ended || ! squeue >stdout
verdict 'they end'
same 'each with success' "$(scontrol show job --oneliner | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p' | sort | uniq -c | tr -s ' ')" ' 6 COMPLETED'
[ -s "$results/report.md" ] || fail 'a report is made' "$(cat "$results"/*.log)"
same_checks 'four shards by Slurm' "$results/results.jsonl" "$program" verify --quick

# A requeued job does nothing if the file of its shard is complete, and runs the shard again if the file was cut.
printf '#!/bin/sh\necho again >>"%s/again"\n' "$scratch" >runs_again
chmod +x runs_again
requeue_shard() { # sets $again, how often the program was started
    rm -f again
    run env ROLE=shard OUT="$results" POSENC="$scratch/runs_again" SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_COUNT=4 "$unpacked/fleet/slurm.sh"
    again=$(cat again 2>none | wc -l)
}
requeue_shard
same 'a shard that is whole is not run again' "$status $again" '0 0'
sed -i '$d' "$results/0.jsonl"
requeue_shard
same 'one that was cut is' "$status $again" '0 1'

# A node that dies: its shard is missing, and the job that merges fails and says which.
rm -r "$results"
run env BENCH= VERIFY='verify --quick --kernel alibi' "$unpacked/fleet/slurm.sh" --hold
array=$(sed -n 's/^shards: job \([0-9]*\),.*/\1/p' stdout)
scancel "${array}_2"
squeue --noheader --format=%A | sort -u | xargs scontrol release 
await all_jobs_ended && ! [ -e "$results/results.jsonl" ] && grep -q 'missing: shard 2 of 4' "$results"/merge-*.log
verdict 'a shard that was cancelled is named by the job that merges'
stop_daemons
finish
