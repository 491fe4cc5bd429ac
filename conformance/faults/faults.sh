#!/bin/sh
# Each faulty kernel here, a plug-in, fails the suite that its source names, with every seed.  FAULTS is the folder of the
# plug-ins; right.so, the same loops without a fault, passes all of these suites.
sources=$(cd "$(dirname "$0")" && pwd)
. "$(dirname "$0")/../../cli/tests/tap.sh"

# Random problems depend on the seed; the problems of the other suites do not.
seeds_of() { if [ "$1" = random ]; then echo 0 1 2 3 4; else echo 0; fi; }

# verifies PLUGIN KERNEL SUITE SEED: sets $status, and $failed, how many cases failed or crashed.
verifies() {
    run "$POSENC" verify --full --plugin "$FAULTS/$1.so" --backend faulty --kernel "$2" --suite "$3" --seed "$4" --out csv
    failed=$(grep -Ec ',(fail|crash),' stdout)
}

demands() { sed -n 's/^ \* detected by: //p' "$1"; }

for source in "$sources"/*.c; do
    name=$(basename "$source" .c)
    demands "$source" >wanted
    [ -s wanted ] || [ "$name" = right ] || fail "$name" 'its source does not say which suite detects it'
    while read -r kernel suite; do
        for seed in $(seeds_of "$suite"); do
            verifies "$name" "$kernel" "$suite" "$seed"
            if [ $status = 1 ] && [ "$failed" != 0 ]; then
                pass "$name: $suite, seed $seed"
            else
                fail "$name: $suite, seed $seed" "exit $status, $failed cases failed"
            fi
        done
    done <wanted
done

cat "$sources"/*.c | demands - | LC_ALL=C sort -u >wanted
while read -r kernel suite; do
    for seed in $(seeds_of "$suite"); do
        verifies right "$kernel" "$suite" "$seed"
        same "without a fault: $kernel, $suite, seed $seed" "$status $failed" '0 0'
    done
done <wanted
finish
