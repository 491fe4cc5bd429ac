#!/bin/sh
# What programs of other people make of the formats that are for them, where they are installed: Google Benchmark's
# compare.py, jsonschema, xmllint, Python's csv.
saved=$(cd "$(dirname "$0")/../../reports/tests" && pwd)/run.jsonl
. "$(dirname "$0")/tap.sh"

# Records of two runs, of which the second is half as fast at one case, and a comparison.
sed 's/"median_ns":134908.0/"median_ns":269816.0/' "$saved" >work/slow.jsonl
cat "$saved" >work/pairs.jsonl
cat >>work/pairs.jsonl <<'JSON'
{"t":"pair","kernel":"rope_half","dtype":"f32","profile":"given","case":"rope_half/f32/given/paper","backend":"avx2","family":"template","base":{"ns":50.0,"code":"a"},"head":{"ns":55.0,"code":"b"},"ratio":1.1,"ci":{"level":0.99,"lo":1.09,"hi":1.12},"floor":0.01,"budget":0.03,"verdict":"slower","reason":"3 of 3 launches, \"sure\"","confirmed":true,"launches":3,"rounds":31}
JSON
export_to() { # RECORDS FORMAT:FILE
    run "$POSENC" results export "$1" --format "${2%%:*}" -o "${2#*:}"
    [ $status = 0 ] || fail "$2" "exit $status"
}
export_to "$saved" gbench:old.json
export_to slow.jsonl gbench:new.json
export_to pairs.jsonl gbench:pairs.json
export_to pairs.jsonl gha:ratios.json
export_to pairs.jsonl bmf:bencher.json
export_to pairs.jsonl junit:r.xml
export_to pairs.jsonl csv:r.csv
export_to pairs.jsonl badge:badge.json
run "$POSENC" verify --out gha:x.json
if [ $status = 2 ] && grep -q -e '--out: gha: ' stderr; then pass 'a run without timings has no ratios'; else fail 'a run without timings has no ratios' "exit $status"; fi

# ---- compare.py, which takes a second to begin ----

compare=/usr/share/benchmark/compare.py
python=/usr/bin/python3
[ -f $compare ] && $python -c 'import importlib.util as u; assert u.find_spec("scipy")' || compare=
compared() { # NAME PATTERN: of the last run
    if [ -z "$compare" ]; then
        skip "$1" 'no compare.py (libbenchmark-tools), or no scipy for it'
    elif [ $status = 0 ] && grep -Eq -e "$2" stdout; then
        pass "$1"
    else
        fail "$1" "exit $status, or no $2"
    fi
}
[ -z "$compare" ] || run $python $compare --no-color benchmarks old.json new.json
compared 'compare.py finds what is slower' \
    '^rope_half/f32/given/llama-3.1-8b-prefill/avx512 .*\+1\.0000 .*134908 +269816'
compared 'and what is not' '^rope_half/f32/given/llama-3.1-8b-prefill/avx2 .*\+0\.0000'
[ -z "$compare" ] || run $python $compare --no-color filters pairs.json /base /head
compared 'compare.py compares the sides of a pair' '^rope_half/f32/given/paper/avx2.*\+0\.1000 .*50 +55'

# ---- schemas ----

python=$(command -v python3 || :)
checked() { # NAME MODULE: a Python script on stdin, which is quiet about what is right
    if [ -z "$python" ] || ! "$python" -c "import $2" 2>/dev/null; then
        skip "$1" "no python3 with $2"
        return
    fi
    cat >script.py
    run "$python" "$scratch/script.py"
    if [ $status = 0 ]; then pass "$1"; else fail "$1" "exit $status"; fi
}
checked 'jsonschema takes the Bencher Metric Format' jsonschema <<'PY'
import json, jsonschema
metric = {"type": "object", "required": ["value"], "additionalProperties": False,
          "properties": {name: {"type": "number"} for name in ("value", "lower_value", "upper_value")}}
schema = {"type": "object", "minProperties": 60, "patternProperties": {"^.{1,1024}$": {
    "type": "object", "minProperties": 1, "patternProperties": {"^[a-z0-9-]{1,64}$": metric}, "additionalProperties": False}},
    "additionalProperties": False}
jsonschema.Draft7Validator.check_schema(schema)
results = json.load(open("bencher.json"))
jsonschema.Draft7Validator(schema).validate(results)
assert results["rope_half/f32/given/paper/avx2"]["head-to-base"] == {"value": 1.1, "lower_value": 1.09, "upper_value": 1.12}
PY
checked 'jsonschema takes the list for github-action-benchmark, and each name stands there once' jsonschema <<'PY'
import json, jsonschema
entry = {"type": "object", "required": ["name", "unit", "value"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "minLength": 1}, "unit": {"enum": ["time/roofline", "head/base", "instructions/element"]},
    "value": {"type": "number", "exclusiveMinimum": 0}, "range": {"type": "string", "pattern": r"^(\+-|±)\s*\d[0-9.e-]*$"},
    "extra": {"type": "string"}}}
results = json.load(open("ratios.json"))
jsonschema.Draft7Validator({"type": "array", "minItems": 60, "items": entry}).validate(results)
names = [r["name"] for r in results]
assert len(names) == len(set(names)), names
for r in results:
    float(r["range"].lstrip("±").strip())
PY
checked 'jsonschema takes what Google Benchmark writes' jsonschema <<'PY'
import json, jsonschema
number, integer, text = {"type": "number"}, {"type": "integer"}, {"type": "string", "minLength": 1}
entry = {"type": "object", "properties": {"name": text, "run_name": text, "run_type": {"const": "iteration"},
    "repetitions": integer, "repetition_index": integer,
    "threads": integer, "iterations": integer, "real_time": number, "cpu_time": number, "time_unit": {"const": "ns"},
    "label": text}, "additionalProperties": number}
entry["required"] = [name for name in entry["properties"]]
context = {"type": "object", "required": ["date", "executable", "num_cpus", "mhz_per_cpu", "library_build_type"]}
jsonschema.Draft7Validator({"type": "object", "required": ["context", "benchmarks"], "properties": {
    "context": context, "benchmarks": {"type": "array", "minItems": 60, "items": entry}}}).validate(json.load(open("pairs.json")))
PY
checked 'Python reads the table, with numbers where there are some' csv <<'PY'
import csv
rows = list(csv.DictReader(open("r.csv", newline="")))
assert all(None not in r and None not in r.values() for r in rows)
pair = [r for r in rows if r["t"] == "pair"]
assert len(pair) == 1 and float(pair[0]["ratio"]) == 1.1 and pair[0]["reason"] == '3 of 3 launches, "sure"', pair
times = [float(r["median_ns"]) for r in rows if r["t"] == "bench" and not r["rejected"]]
assert len(times) > 60 and min(times) > 0
PY
checked 'a badge' json <<'PY'
import json
badge = json.load(open("badge.json"))
assert badge["schemaVersion"] == 1 and badge["label"] and badge["message"] and badge["color"] == "red", badge
PY
if command -v xmllint >/dev/null; then
    run xmllint --noout r.xml
    same 'xmllint takes the JUnit file' "$status" 0
    run xmllint --xpath 'concat(/testsuites/@tests - count(//testcase), " ", /testsuites/@failures - count(//failure), " ",
        /testsuites/@errors - count(//error), " ", sum(//testsuite/@skipped) - count(//skipped))' r.xml
    same 'its totals are those of what stands there' "$(cat stdout)" '0 0 0 0'
else
    skip 'xmllint takes the JUnit file' 'no xmllint (libxml2-utils)'
fi
finish
