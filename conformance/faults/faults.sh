#!/bin/sh
# Each faulty kernel here, a plug-in, fails the cases that its source names, with every seed.  FAULTS is the folder of the
# plug-ins; right.so, the same loops without a fault, passes all of these cases.
sources=$(cd "$(dirname "$0")" && pwd)
. "$(dirname "$0")/../../cli/tests/tap.sh"

# Random problems depend on the seed; the problems of the other suites do not.
seeds_of() { case $1 in */random*) echo 0 1 2 3 4 ;; *) echo 0 ;; esac; }

# verifies PLUGIN GLOB SEED: sets $status, and $failed, how many cases failed or crashed.
verifies() {
    run "$POSENC" verify --full --plugin "$FAULTS/$1.so" --backend faulty --case "$2" --seed "$3" --out csv
    failed=$(grep -Ec ',(fail|crash),' stdout)
}

demands() { sed -n 's/^ \* detected by: //p' "$1"; }

for source in "$sources"/*.c; do
    name=$(basename "$source" .c)
    demands "$source" >wanted
    [ -s wanted ] || [ "$name" = right ] || fail "$name" 'its source does not say which case detects it'
    while read -r glob; do
        for seed in $(seeds_of "$glob"); do
            verifies "$name" "$glob" "$seed"
            if [ $status = 1 ] && [ "$failed" != 0 ]; then
                pass "$name: $glob, seed $seed"
            else
                fail "$name: $glob, seed $seed" "exit $status, $failed cases failed"
            fi
        done
    done <wanted
done

cat "$sources"/*.c | demands - | LC_ALL=C sort -u >wanted
while read -r glob; do
    for seed in $(seeds_of "$glob"); do
        verifies right "$glob" "$seed"
        same "without a fault: $glob, seed $seed" "$status $failed" '0 0'
    done
done <wanted
finish
