# shellcheck shell=sh
# ./run mutate [N | all] [FILE...]: does the suite notice mistakes?  Makes them in the kernels, one at a time, and lists
# those that nobody noticed; --right: is there an alarm where there is no mistake?  Sourced by run.
# jobs/mutate/mutate.py says what else it takes, docs/trust.md what came of it.

mutate() {
    build || return 1
    python3 jobs/mutate/mutate.py build "$@"
}
