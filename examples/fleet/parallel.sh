#!/bin/sh
# Checks and times posenc on many machines over ssh, by GNU parallel, and makes one report of all results.
#
#     fleet/parallel.sh HOSTS BUNDLE...
#
# HOSTS is a file of logins, one a line: a name of ~/.ssh/config, or user@machine. Hosts need sshd, tar, gzip and perl; this
# machine needs parallel. BUNDLE is an archive of ./run bundle, one for each architecture of the hosts. Results come into
# fleet-results. Run again, the script runs what is missing; other settings or bundles need another folder.
#
# Machines with the same CPU share the checks, a shard at a time. Then the first machine of each kind in HOSTS times, and does
# nothing else meanwhile. Hosts keep the folder posenc-fleet in the home directory.
set -eu

# ---- Settings ----
out=${OUT:-fleet-results}          # folder for results, on this machine
there=${THERE:-posenc-fleet}       # folder for the bundle, in the home directory of each host
shards=${SHARDS:-8}                # number of shards for each kind of CPU: a few for each machine
jobs=${JOBS:-1}                    # shards at once on one machine; 100%: one for each of its CPUs
verify=${VERIFY-verify --full}     # command that checks
bench=${BENCH-bench --quick}       # command that times; empty: no timing
ssh=${PARALLEL_SSH:-ssh}           # ssh with options, e.g. "ssh -F config"; GNU parallel reads PARALLEL_SSH, too

[ $# -ge 2 ] && [ -r "$1" ] || {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
hosts=$1
shift
case $there in
'' | . | .. | /* | ../*) # it is removed on each host
    echo "parallel.sh: THERE is '$there', expected a folder in the home directory" >&2
    exit 2
    ;;
esac
mkdir -p "$out"
# GNU parallel knows jobs of a run before by their number alone, and would take their results for those of other settings.
settings="$shards, $verify, $bench, $(cat "$@" | cksum)"
if [ -e "$out/settings" ] && [ "$(cat "$out/settings")" != "$settings" ]; then
    echo "parallel.sh: $out has results of other settings or bundles. Remove it, or set OUT to another folder." >&2
    exit 2
fi
printf '%s\n' "$settings" >"$out/settings"
pids=
trap 'kill $pids 2>/dev/null; exit 130' HUP INT TERM

# Prints the bundle for an architecture.
bundle_for() { # ARCHITECTURE BUNDLE...
    machine=$1
    shift
    for bundle; do
        case $bundle in *-"$machine".tar.gz) echo "$bundle" && return ;; esac
    done
    echo "parallel.sh: no bundle for $machine among: $*" >&2
    return 1
}

# Unpack the bundle on each host and here. Write a line "KIND HOST" for each host to $out/kinds; KIND is the env_id of its
# records.
unpack="rm -rf '$there' && mkdir '$there' && tar -xzf - -C '$there' --strip-components=1"
grep -v '^ *\(#\|$\)' "$hosts" >"$out/hosts"
: >"$out/kinds"
while read -r host; do
    architecture=$($ssh -n "$host" uname -m)
    bundle=$(bundle_for "$architecture" "$@")
    $ssh "$host" "$unpack" <"$bundle"
    kind=$($ssh -n "$host" "$there/bin/posenc" verify --quick --kernel alibi --backend scalar --out jsonl |
        sed -n 's/.*"env_id": *"\([^"]*\)".*/\1/p' | head -n 1 | tr / -)
    echo "${kind:?the program does not run on $host} $host" >>"$out/kinds"
    echo "$host: $kind, $(basename "$bundle")" >&2
done <"$out/hosts"
rm -rf "$out/posenc" && mkdir "$out/posenc"
tar -xzf "$(bundle_for "$(uname -m)" "$@")" -C "$out/posenc" --strip-components=1

# Run the shards of each kind on its machines. A check that fails (exit code 1) is a result. A shard with any other exit code
# runs again the next time.
for kind in $(cut -d ' ' -f 1 "$out/kinds" | sort -u); do
    logins=$(sed -n "s/^$kind //p" "$out/kinds" | paste -sd , -)
    parallel --sshlogin "$logins" --jobs "$jobs" --joblog "$out/$kind.jobs" --resume-failed \
        --results "$out/$kind-{}of$shards.jsonl" "$there/bin/posenc $verify --shard {}/$shards --out jsonl" '; [ $? -le 1 ]' \
        ::: $(seq 0 $((shards - 1))) >/dev/null &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid" || :; done # the merge below reports missing shards

# Time on one machine of each kind, all at once.
awk '!timed[$1]++ { print $2 }' "$out/kinds" >"$out/timed"
if [ -n "$bench" ]; then
    log=$out/bench.$(cksum <"$out/timed" | cut -d ' ' -f 1).jobs # the numbers in it are those of these machines
    parallel --jobs 0 --joblog "$log" --resume-failed --results "$out/bench-{}.jsonl" \
        "$ssh -n {} $there/bin/posenc $bench --out jsonl" :::: "$out/timed" >/dev/null || :
    awk 'NR == FNR { host[FNR] = $1; next } FNR > 1 { code[$1] = $7 }
        END { for (i in code) if (code[i]) print "parallel.sh: timing on " host[i] " ended with exit code " code[i] }' "$out/timed" "$log" >&2
fi
find "$out" -maxdepth 1 -name '*.jsonl' -empty -delete # files of runs that did not start

# Merge the files, which fails if a shard is missing, and report every CPU.
mkdir -p "$out/all"
"$out/posenc/bin/posenc" results merge "$out"/*.jsonl -o "$out/all/results.jsonl"
"$out/posenc/bin/posenc" report "$out/all/results.jsonl" --out console --out "html:$out/all/report.html"
