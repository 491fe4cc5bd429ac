#!/bin/sh
# Checks and times posenc on a partition of a Slurm cluster: an array of shards, a timing, then a job that merges them.
#
#     fleet/slurm.sh [OPTIONS OF SBATCH...]          e.g. --partition=zen5 --account=me
#
# Unpack a bundle (./run bundle) in a folder that every node can read, and start the script fleet/slurm.sh in it. Results
# come into posenc-slurm in the current folder. A second start there runs what is missing. Request nodes with one kind of
# CPU. For several kinds, start the script once for each in its own folder. Then merge the results:
# posenc results merge */posenc-slurm/results.jsonl
#
# ---- Settings ----
# Variables: SHARDS is the number of jobs that share the checks (8); VERIFY and BENCH are the commands; an empty BENCH
# means no timing. The next lines are sbatch options of every job; those of the command line follow them.
#SBATCH --job-name=posenc
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --time=00:30:00
##SBATCH --partition=zen5
##SBATCH --constraint=zen5
set -eu
shards=${SHARDS:-8}
verify=${VERIFY-verify --full}
bench=${BENCH-bench --quick}

# Ends this job if its result file is complete, because the job was requeued or the script was started again.
exit_if_complete() {
    [ ! -f "$1" ] || ! tail -n 1 "$1" | grep -q '"complete":true' || exit 0
}

# Slurm runs copies of this script, with the job's task in ROLE. A job whose checks fail (exit code 1) has a result, and so
# succeeds.
case ${ROLE:-} in
shard)
    file=$OUT/$SLURM_ARRAY_TASK_ID.jsonl
    exit_if_complete "$file"
    "$POSENC" $verify --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --out "jsonl:$file" || [ $? = 1 ]
    exit
    ;;
bench)
    exit_if_complete "$OUT/bench.jsonl"
    exec "$POSENC" $bench --out "jsonl:$OUT/bench.jsonl"
    ;;
merge) # fails with exit code 6 if a shard is missing
    "$POSENC" results merge "$OUT"/[0-9]*.jsonl ${bench:+"$OUT/bench.jsonl"} -o "$OUT/results.jsonl"
    exec "$POSENC" report "$OUT/results.jsonl" --out "md:$OUT/report.md" --out "html:$OUT/report.html"
    ;;
esac

POSENC=${POSENC:-$(cd "$(dirname "$0")/.." && pwd)/bin/posenc} OUT=$PWD/posenc-slurm
[ -x "$POSENC" ] || {
    echo "slurm.sh: $POSENC is not there: expected this script in an unpacked bundle, or POSENC=PATH" >&2
    exit 2
}
export POSENC OUT
mkdir -p "$OUT"

# Submits a job, and prints its number.
submit() { # ROLE OPTIONS...
    role=$1
    shift
    ROLE=$role sbatch --parsable --export=ALL --output="$OUT/$role-%j.log" "$@" "$0"
}
array=$(submit shard --array="0-$((shards - 1))" "$@")
# Time on a node of its own, after all shards.
timing=
[ -z "$bench" ] || timing=:$(submit bench --exclusive --dependency="afterany:$array" "$@")
merge=$(submit merge --dependency="afterany:$array$timing" "$@")
echo "shards: job $array${timing:+, timing: job ${timing#:}}, report: job $merge; results come into $OUT"
