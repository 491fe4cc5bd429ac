#!/bin/sh
# Each faulty kernel here, a plug-in, fails the cases that its source names, with every seed.  FAULTS is the folder of the
# plug-ins; right.so, the same loops without a fault, passes all of these cases.
sources=$(cd "$(dirname "$0")" && pwd)
. "$(dirname "$0")/../../cli/tests/tap.sh"

# Random problems depend on the seed; the problems of the other suites do not.
seeds_of() { case $1 in */random*) echo 0 1 2 3 4 ;; *) echo 0 ;; esac; }

# verifies PLUGIN CASE SEED: sets $status, and $failed, how many cases failed or crashed.
verifies() {
    run "$POSENC" verify --full --plugin "$FAULTS/$1.so" --backend faulty --case "$2" --seed "$3" --out csv
    failed=$(grep -Ec ',(fail|crash),' stdout)
}

demands() { sed -n 's/^ \* detected by: //p' "$1"; }

for source in "$sources"/*.c; do
    name=$(basename "$source" .c)
    demands "$source" >wanted
    [ -s wanted ] || [ "$name" = right ] || fail "$name" 'its source does not say which case detects it'
    while read -r case; do
        for seed in $(seeds_of "$case"); do
            verifies "$name" "$case" "$seed"
            if [ $status = 1 ] && [ "$failed" != 0 ]; then
                pass "$name: $case, seed $seed"
            else
                fail "$name: $case, seed $seed" "exit $status, $failed cases failed"
            fi
        done
    done <wanted
done

cat "$sources"/*.c | demands - | LC_ALL=C sort -u >wanted
while read -r case; do
    verifies right "$case" 0
    same "without a fault: $case" "$status $failed" '0 0'
done <wanted
finish
