# shellcheck shell=sh
# ./run survey [--write]: asks two releases of transformers how their model types encode positions, compares that with what
# --config reads, and writes docs/models.md; with --write first the table of types, of the newer release, until it stays
# as it is.  conformance/models/survey.py says how.  Takes what PyPI has into build-survey, and then half an hour.  Sourced by
# run.

survey_torch=2.13.0 survey_newer=5.23.0 survey_older=4.57.6

survey() {
    case $* in
    '' | --write) ;;
    *)
        say "survey takes --write, or nothing; there are: $*"
        return 2
        ;;
    esac
    survey_build || return 1
    for release in $survey_newer $survey_older; do
        survey_environment $release || return 1
    done
    [ $# = 0 ] || survey_write || return 1
    for release in $survey_newer $survey_older; do
        survey_of $release || {
            say "survey: files are read wrongly: build-survey/$release.log"
            return 1
        }
    done
    build-survey/$survey_newer/bin/python conformance/models/survey/page.py build-survey/$survey_newer.json \
        build-survey/$survey_older.json >build-survey/models.md && cp build-survey/models.md docs/models.md
}

survey_build() {
    configure build && ninja -C build posenc >build/run-build.log
}

survey_environment() { # RELEASE
    [ ! -f "build-survey/$1/complete" ] || return 0
    bring /usr/share/doc/python3-venv:python3-venv || return 1
    say "survey: transformers $1 comes into build-survey/$1"
    python3 -m venv "build-survey/$1" && build-survey/"$1"/bin/pip install -q "torch==$survey_torch" "transformers==$1" \
        pillow scipy >&2 && touch "build-survey/$1/complete"
}

# survey_of RELEASE ARGUMENTS...: what a model has is asked once.
survey_of() {
    release=$1
    shift
    OMP_NUM_THREADS=1 build-survey/"$release"/bin/python conformance/models/survey.py --seen "build-survey/$release.jsonl" \
        --published reports/tests/published.jsonl.gz --figures "build-survey/$release.json" "$@" 2>"build-survey/$release.log"
}

survey_write() {
    rm -f "build-survey/$survey_newer.jsonl"
    for round in 1 2 3 4 5; do
        cp reports/posenc/models/types.txt build-survey/types.txt
        survey_of $survey_newer --write
        cmp -s reports/posenc/models/types.txt build-survey/types.txt && return 0
        say "survey: the table of types is another after round $round"
        survey_build || return 1
    done
    say 'survey: the table of types changes in each round'
    return 1
}
