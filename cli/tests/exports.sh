#!/bin/sh
# Programs of others take the formats that are made for them: Google Benchmark's compare.py, jsonschema, xmllint. What is
# not installed is skipped. reports/tests/test_results.py holds the numbers to frozen ones.
saved=$(cd "$(dirname "$0")/../../reports/tests" && pwd)/run.jsonl
. "$(dirname "$0")/tap.sh"

# Records of a run, of one that is half as fast at one case, and of a run with a comparison.
sed 's/"median_ns":134908.0/"median_ns":269816.0/' "$saved" >work/slow.jsonl
cat "$saved" - >work/pairs.jsonl <<'JSON'
{"t":"pair","kernel":"rope_half","dtype":"f32","numerics":"given","case":"rope_half/f32/given/paper","backend":"avx2","family":"native","base":{"ns":50.0,"code":"a"},"head":{"ns":55.0,"code":"b"},"ratio":1.1,"ci":{"level":0.99,"lo":1.09,"hi":1.12},"noise_threshold":0.01,"threshold":0.03,"verdict":"slower","reason":"3 of 3 processes, \"sure\"","confirmed":true,"processes":3,"rounds":31}
JSON
while read -r records format file; do
    run "$POSENC" results export "$records" --format "$format" -o "$file"
    [ $status = 0 ] || fail "$format of $records is written" "exit $status"
done <<FILES
$saved gbench old.json
slow.jsonl gbench new.json
pairs.jsonl gbench pairs.json
pairs.jsonl gha ratios.json
pairs.jsonl bmf bencher.json
pairs.jsonl junit r.xml
FILES
run "$POSENC" verify --out gha:x.json
ended 'a run without timings has no ratios' 2 '--out: gha: ' stderr

# ---- compare.py ----

python=/usr/bin/python3
compare=/usr/share/benchmark/compare.py
if [ -f $compare ] && $python -c 'import importlib.util as u; assert u.find_spec("scipy")'; then
    run $python $compare --no-color benchmarks old.json new.json
    ended 'compare.py finds the slower case' 0 '^rope_half/f32/given/llama-3.1-8b-prefill/avx512 .*\+1\.0000 .*134908 +269816'
    ended 'and no other' 0 '^rope_half/f32/given/llama-3.1-8b-prefill/avx2 .*\+0\.0000'
    run $python $compare --no-color filters pairs.json /base /head
    ended 'compare.py compares the sides of a pair' 0 '^rope_half/f32/given/paper/avx2.*\+0\.1000 .*50 +55'
else
    skip 'compare.py of Google Benchmark' 'libbenchmark-tools or scipy is not installed'
fi

# ---- Schemas of JSON formats, and counts in JUnit's XML ----

cat >schemas.py <<'PY'
import json, sys, jsonschema
number, text = {"type": "number"}, {"type": "string", "minLength": 1}
def objects(properties, additional=False, **more):
    return {"type": "object", "required": list(properties), "properties": properties, "additionalProperties": additional, **more}
metric = objects({"value": number}, number)
bencher = {"type": "object", "minProperties": 60, "additionalProperties": False, "patternProperties": {"^.{1,1024}$": {
    "type": "object", "minProperties": 1, "patternProperties": {"^[a-z0-9-]{1,64}$": metric}, "additionalProperties": False}}}
ratio = objects({"name": text, "unit": {"enum": ["time/roofline", "head/base", "instructions/element"]},
    "value": {"type": "number", "exclusiveMinimum": 0}}, text)
row = objects({"name": text, "run_name": text, "run_type": {"const": "iteration"}, "repetitions": number,
    "repetition_index": number, "threads": number, "iterations": number, "real_time": number, "cpu_time": number,
    "time_unit": {"const": "ns"}, "label": text}, number)
context = objects(dict.fromkeys(["date", "executable", "num_cpus", "mhz_per_cpu", "library_build_type"], {}), {})
rows = lambda items: {"type": "array", "minItems": 60, "items": items}
schemas = {"bencher.json": bencher, "ratios.json": rows(ratio),
    "pairs.json": objects({"context": context, "benchmarks": rows(row)}, {})}
for name, schema in schemas.items():
    jsonschema.Draft7Validator(schema).validate(json.load(open(name)))
pair = json.load(open("bencher.json"))["rope_half/f32/given/paper/avx2"]
assert pair["head-to-base"] == {"value": 1.1, "lower_value": 1.09, "upper_value": 1.12}
ratios = json.load(open("ratios.json"))
assert len({one["name"] for one in ratios}) == len(ratios)
assert all(float(one["range"].lstrip("±")) >= 0 for one in ratios)
PY
if python3 -c 'import jsonschema' 2>no-jsonschema; then
    run python3 "$scratch/schemas.py"
    same 'jsonschema takes the formats of Bencher, github-action-benchmark and Google Benchmark' $status 0
else
    skip 'jsonschema takes the JSON formats' 'it is not installed'
fi
if command -v xmllint >found; then
    run xmllint --xpath 'concat(/testsuites/@tests - count(//testcase), " ", /testsuites/@failures - count(//failure), " ",
        /testsuites/@errors - count(//error), " ", sum(//testsuite/@skipped) - count(//skipped))' r.xml
    same 'xmllint reads the JUnit file, whose totals are those of its tests' "$status $(cat stdout)" '0 0 0 0 0'
else
    skip 'xmllint takes the JUnit file' 'it is not installed (libxml2-utils)'
fi
finish
