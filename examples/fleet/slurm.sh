#!/bin/sh
# Checks and times posenc on a partition of a Slurm cluster: an array of shards, a timing, then a job that merges them.
#
#     fleet/slurm.sh [OPTIONS OF SBATCH...]          e.g. --partition=zen5 --account=me
#
# Unpack a bundle (./run bundle) in a folder that every node sees, and start this script of the bundle. Results come into
# posenc-slurm in the current folder. Started again there, it runs what is missing. Ask for nodes with one kind of CPU. For
# several kinds, start it once for each in a folder of its own; then "posenc results merge */posenc-slurm/results.jsonl"
# makes one file of all.
#
# ---- To be adapted ----
# SHARDS=8 sets how many jobs share the checks, VERIFY and BENCH what is run; an empty BENCH times nothing.
# The next lines are options of every job, before those of the command line.
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

# Ends a job whose file is complete: the job was requeued, or the script started again.
unless_whole() {
    [ ! -f "$1" ] || ! tail -n 1 "$1" | grep -q '"complete":true' || exit 0
}

# Slurm runs copies of this script; ROLE is the task of each. A check that fails (exit code 1) is a result, and the job has
# succeeded.
case ${ROLE:-} in
shard)
    file=$OUT/$SLURM_ARRAY_TASK_ID.jsonl
    unless_whole "$file"
    "$POSENC" $verify --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --out "jsonl:$file" || [ $? = 1 ]
    exit
    ;;
bench)
    unless_whole "$OUT/bench.jsonl"
    exec "$POSENC" $bench --out "jsonl:$OUT/bench.jsonl"
    ;;
merge) # refuses, with exit code 6, where a shard is missing
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

# submit ROLE OPTIONS...: prints the number of the job.
submit() {
    role=$1
    shift
    ROLE=$role sbatch --parsable --export=ALL --output="$OUT/$role-%j.log" "$@" "$0"
}
array=$(submit shard --array="0-$((shards - 1))" "$@")
# Timed alone on a node, when no shard of ours runs.
timing=
[ -z "$bench" ] || timing=:$(submit bench --exclusive --dependency="afterany:$array" "$@")
merge=$(submit merge --dependency="afterany:$array$timing" "$@")
echo "shards: job $array${timing:+, timing: job ${timing#:}}, report: job $merge; results come into $OUT"
