"""Formats for other programs. main.py has the list of formats; docs/exports.md says which program reads each.

Each function to_*() returns the text of a file. Programs that keep a history track numbers by name over months and
machines. A name is the case and the backend, with threads or lanes if there are several:
rope_half/f32/given/llama-3.1-8b-decode/avx2. If a file has results of several machines, names begin with the machine.
"""

import csv
import io
import json
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .. import units
from ..ranking import Timing, timings
from ..records import SCHEMA, Machine, Record, dump, grouped, machines, member, number
from ..terminal import escape_hidden
from . import outcome

# ---- CSV ----

COLUMNS = """t kernel dtype numerics stage case backend family suite status reason
error.metric error.max error.limit error.worst_at error.got error.want error.coverage error.checked error.misrounded
footprint.name footprint.bytes threads rounds median_ns min_ns ci.level ci.lo ci.hi bytes gbps
roofline.kind roofline.variant roofline.gbps roofline.share
bound.resource bound.kind bound.variant bound.gbps bound.share
speedup_libm speedup_autovec speedup_separate control_pct rejected
base.ns head.ns ratio verdict noise_threshold threshold confirmed processes failed.who failed.how control_ratio
base.code head.code what worse metric base.status head.status base.max head.max base.value head.value
limit worst_at want moved of problem build instructions elements per_element per_call by
quality.grade level cost_pct evidence fix command""".split()
_NUMBER = re.compile(r"[+-]?(inf|nan|\d[\d.]*(e[+-]?\d+)?|0x[\da-f.]+(p[+-]?\d+)?)")


def _cell(value: Any) -> str:
    """Returns a value for CSV."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"{value:.10g}"
    if not isinstance(value, str):
        return ""
    # A spreadsheet takes other texts that begin so for formulas (OWASP, "CSV Injection").
    return f"'{value}" if re.match("[=+@\t\r-]", value) and not _NUMBER.fullmatch(value) else value


def _lines(records: List[Record]) -> Iterator[Tuple[str, Record, str]]:
    """Yields the machine, the record and the note on golden vectors of each line."""
    machine = note = ""
    for record in records:
        if record["t"] == "env":
            machine = str(record.get("env_id", ""))
        elif record["t"] == "header":
            note = outcome.vectors_note(record)
        elif record["t"] == "doctor":
            for finding in record.get("findings") or [{}]:
                yield machine, {**finding, "t": "doctor", "quality": record.get("quality")}, note
        elif record["t"] in ("check", "bench", "pair", "change", "count"):
            yield machine, record, note


def to_csv(records: List[Record]) -> str:
    """Returns CSV as RFC 4180 has it: a line for each check, timing, pair, change, count and finding."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["cpu", *COLUMNS, "vectors"])
    for machine, record, note in _lines(records):
        writer.writerow([_cell(machine), *(_cell(member(record, name)) for name in COLUMNS), note])
    return out.getvalue()


# ---- names and numbers ----


def _name(machine: Machine, record: Record) -> str:
    """Returns the name by which other programs track a result."""
    prefix = f"{machine.label}: " if machine.label else ""
    threads, lanes = number(record, "threads") or 1, number(record, "vector_width") or 0
    of_threads = f"/threads:{threads:.0f}" if record["t"] == "bench" and threads > 1 else ""
    of_lanes = f"/lanes:{lanes:.0f}" if record["t"] == "count" and lanes > 0 else ""
    return f"{prefix}{record['case']}/{record['backend']}{of_lanes}{of_threads}"


def _round(value: float) -> float:
    """Returns a number with more digits than any clock has, and no tail like 0.30000000000000004."""
    return float(f"{value:.8g}")


def _dump(value: Any) -> str:
    """Returns JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _dump_lines(entries: List[str], begin: str, end: str) -> str:
    """Returns entries in JSON, one on each line, between two brackets."""
    return begin + ",".join(f"\n{entry}" for entry in entries) + f"\n{end}\n"


def _interval(record: Record) -> List[Optional[float]]:
    """Returns the ends of the interval; None if there is none."""
    return [number(record, "ci.lo") or None, number(record, "ci.hi") or None]


def _per_element(machine: Machine) -> Iterator[Tuple[Record, Optional[float]]]:
    """Yields counts of instructions, without those of the base of a comparison, with their instructions per element."""
    for count in machine.of("count"):
        elements, instructions = number(count, "elements"), number(count, "instructions")
        per_element = number(count, "per_element")
        if per_element is None and elements and instructions:  # the two builds of a comparison state these alone
            per_element = instructions / elements
        if count.get("build") != "base":
            yield count, per_element


# ---- github-action-benchmark ----


class _Ratio(NamedTuple):
    """An entry of github-action-benchmark, with the ends of its interval."""

    name: str
    unit: str
    value: Optional[float]
    interval: List[Optional[float]]
    remark: str


def _describe_timing(machine: Machine, row: Timing, share: float) -> str:
    """Returns the remark on a timing: its time, its share of the roofline, and the machine."""
    level, note = number(row.record, "ci.level") or 0.0, outcome.vectors_note(machine.header)
    return (
        f"{units.time(row.median)}, {100 * level:.0f} % interval {units.time(row.lo)} to {units.time(row.hi)}\n"
        f"{100 * share:.0f} % of the roofline ({member(row.record, 'roofline.kind') or ''})\n"
        f"on {machine.env.get('env_id', '')}" + (f"\n{note}" if note else "")
    )


def _ratios(machine: Machine) -> Iterator[_Ratio]:
    """Yields ratios of times to the roofline, of head to base, and of instructions to elements."""
    for row in timings(machine):
        share = number(row.record, "roofline.share") or 0.0
        if share > 0:
            interval: List[Optional[float]] = [end / share / row.median for end in (row.lo, row.hi)]
            remark = _describe_timing(machine, row, share)
            yield _Ratio(_name(machine, row.record), "time/roofline", 1.0 / share, interval, remark)
    for pair in machine.of("pair"):
        name, reason = f"{_name(machine, pair)} head/base", str(pair.get("reason", ""))
        yield _Ratio(name, "head/base", number(pair, "ratio"), _interval(pair), reason)
    for count, per_element in _per_element(machine):
        name = f"{_name(machine, count)} instructions"
        yield _Ratio(name, "instructions/element", per_element, [], str(count.get("by", "")))


def to_gha(records: List[Record]) -> str:
    """Returns JSON for github-action-benchmark (customSmallerIsBetter): ratios, never times."""
    entries = []
    for machine in machines(records):
        for name, unit, value, interval, remark in _ratios(machine):
            if value is None or not 0 < value < math.inf:
                continue
            entry = {"name": name, "unit": unit, "value": _round(value)}
            half = max((abs(end - value) for end in interval if end is not None), default=math.inf)
            if half < 1e6:
                entry["range"] = f"± {half:.3g}"
            if remark:
                entry["extra"] = remark
            entries.append(_dump(entry))
    return _dump_lines(entries, "[", "]")


# ---- Bencher ----


def _measures(machine: Machine) -> Iterator[Tuple[Record, str, List[Optional[float]]]]:
    """Yields the result, the name, and the value with its interval of each measure."""
    for row in timings(machine):
        yield row.record, "latency", [row.median, *_interval(row.record)]
        yield row.record, "roofline-share", [number(row.record, "roofline.share") or None]
    for pair in machine.of("pair"):
        yield pair, "head-to-base", [number(pair, "ratio"), *_interval(pair)]
    for count, per_element in _per_element(machine):
        yield count, "instructions-per-element", [per_element]
    for check in machine.of("check"):
        metric, error = member(check, "error.metric"), number(check, "error.max")
        if metric not in (None, "exact") and error is not None:
            yield check, f"max-{metric.lower().replace('_', '-')}", [error]


def to_bmf(records: List[Record]) -> str:
    """Returns Bencher Metric Format: benchmarks, each with measures. The largest error of all suites counts."""
    benchmarks: Dict[str, Dict[str, Dict[str, float]]] = {}
    for machine in machines(records):
        for record, measure, numbers in _measures(machine):
            names = zip(("value", "lower_value", "upper_value"), numbers)
            metric = {name: _round(value) for name, value in names if value is not None and math.isfinite(value)}
            measures = benchmarks.setdefault(_name(machine, record), {})
            largest = measures.get(measure, {}).get("value", 0.0) if record["t"] == "check" else 0.0
            if "value" in metric and not largest > metric["value"]:
                measures[measure] = metric
    entries = [f"{_dump(name)}:{_dump(measures)}" for name, measures in benchmarks.items() if measures]
    return _dump_lines(entries, "{", "}")


# ---- Google Benchmark ----


def _entry(name: str, ns: float, threads: int, rounds: int, label: str, **counters: Optional[float]) -> str:
    """Returns an entry of Google Benchmark. Unknown counters are left out."""
    known = {name: _round(value) for name, value in counters.items() if value is not None and 0 < value < math.inf}
    return _dump({
        "name": name, "run_name": name, "run_type": "iteration", "repetitions": 1, "repetition_index": 0,
        "threads": threads, "iterations": rounds, "real_time": _round(ns), "cpu_time": _round(ns), "time_unit": "ns",
        **known, "label": label,
    })  # fmt: skip


def _times(machine: Machine) -> Iterator[str]:
    """Yields an entry for each timing, and for each build of a pair."""
    for row in timings(machine):
        record, rounds = row.record, row.record.get("rounds", 0)
        yield _entry(
            _name(machine, record), row.median, record.get("threads", 1), rounds,
            f"{row.backend}, median of {rounds} rounds",
            bytes_per_second=(number(record, "gbps") or 0.0) * 1e9, min_ns=number(record, "min_ns"),
            ci_low_ns=row.lo, ci_high_ns=row.hi, ci_level=number(record, "ci.level"),
            roofline_share=number(record, "roofline.share"), control_pct=100 * row.control,
        )  # fmt: skip
    for pair in machine.of("pair"):
        for build in ("base", "head"):
            ns = number(pair, f"{build}.ns") or 0.0
            if 0 < ns < math.inf:
                yield _entry(f"{_name(machine, pair)}/{build}", ns, 1, pair.get("rounds", 0), pair["verdict"])


def to_gbench(records: List[Record]) -> str:
    """Returns JSON as Google Benchmark writes it: an entry for each timing, with its median as the time."""
    found = machines(records)
    env, header = (found[0].env, found[0].header) if found else ({}, {})
    context = _dump({
        "executable": "posenc", "date": header.get("started", ""), "host_name": env.get("env_id", ""),
        "num_cpus": member(env, "cpus.online") or 0, "mhz_per_cpu": 0,
        "library_version": member(header, "tool.version") or "",
        "library_build_type": "debug" if member(env, "build.type") == "debug" else "release", "json_schema_version": 1,
        "cpu": member(env, "cpu.name") or "", "mode": header.get("mode", ""),
        "finished": "no" if any(machine.partial for machine in found) else "yes",
        "cpu_time": "not measured: real_time stands in its place",
        "vectors": outcome.vectors_note(header) or member(header, "vectors.sha256") or "",
    })  # fmt: skip
    entries = [entry for machine in found for entry in _times(machine)]
    return _dump_lines(entries, f'{{\n"context":{context},\n"benchmarks":[', "]\n}")


# ---- baselines ----

_IDENTITY = ("case", "backend", "suite", "kernel", "dtype", "numerics", "family", "status", "threads")


def _identity(record: Record) -> Record:
    """Returns the members that identify a result, and its status."""
    return {"t": record["t"], **{name: record[name] for name in _IDENTITY if name in record}}


def _baseline(machine: Machine) -> Iterator[Record]:
    """Yields the records of a baseline."""
    yield {"t": "header", "schema": SCHEMA, "mode": "baseline", "vectors": machine.header.get("vectors")}
    key, build = member(machine.env, "cpu.key") or "", member(machine.env, "build.type") or ""
    yield {"t": "env", "env_id": key, "cpu": {"key": key}, "build": {"type": build}}
    checks = [check for check in machine.of("check") if check["family"] == "native" and member(check, "error.metric")]
    for check in sorted(checks, key=lambda check: (check["case"], check["backend"], check["suite"])):
        yield {**_identity(check), "error": {"metric": check["error"]["metric"], "max": check["error"]["max"]}}
    shares = [row for row in timings(machine) if row.record["family"] == "native" and row.share and not row.noisy]
    for row in sorted(shares, key=lambda row: (row.case, row.backend, row.record.get("threads", 1))):
        yield {**_identity(row.record), "roofline": {"share": float(f"{row.share:.10g}")}}
    if not machine.partial:
        yield {"t": "footer", "complete": True}


def to_baseline(records: List[Record]) -> str:
    """Returns results of each machine that do not depend on the day, for posenc compare BASELINE RESULTS.

    A baseline has the largest errors, and the shares of the roofline of timings that are not noisy. It has no time,
    date, commit or version, so that it changes in version control only if a result does. It covers native backends
    alone, as the others depend on a compiler and its library. Lines are sorted by case, backend and suite. The footer
    is there if the run was finished; posenc compare rejects a baseline without one.
    """
    return dump([line for machine in machines(records) for line in _baseline(machine)])


# ---- JUnit XML ----


class Test(NamedTuple):
    """A test of JUnit XML."""

    record: Record  # a check, a timing, a change or a pair
    kind: str  # suite of a check, "bench", "compare"
    result: str  # passed, failure, error or skipped
    type: str = ""  # kind of failure, such as ulp, crash or slower
    message: str = ""
    detail: str = ""
    command: str = ""  # repeats the failure

    @property
    def level(self) -> str:
        """Level of its annotation; empty if it has none. A warning is inconclusive, or slower without failing."""
        if self.type == "inconclusive" or (self.type == "slower" and self.result == "passed"):
            return "warning"
        return "error" if self.result in ("failure", "error") else ""


def _test_of_check(check: Record) -> Test:
    words, status = outcome.check_words(check), check["status"]
    result = {"pass": "passed", "skipped": "skipped", "unsupported": "skipped", "crash": "error"}.get(status, "failure")
    kind = status if status in ("crash", "inconclusive") else member(check, "error.metric") or check["suite"]
    return Test(check, check["suite"], result, kind, words, words, check.get("command", ""))


def _test_of_output(row: Timing) -> Test:
    if row.wrong:
        return Test(row.record, "bench", "failure", "wrong output", row.rejected, "it was not timed")
    return Test(row.record, "bench", "passed")


def _test_of_pair(pair: Record) -> Test:
    words, kind = outcome.pair_words(pair), "broken" if outcome.is_broken(pair) else outcome.verdict(pair)
    head, base = (units.time(number(pair, f"{name}.ns") or 0.0) for name in ("head", "base"))
    threshold = number(pair, "threshold")
    detail = f"{head}, was {base}" + ("" if threshold is None else f"; threshold {100 * threshold:.1f} %")
    result = "skipped" if kind in ("unclear", "incomparable", "removed") else "passed"
    if kind == "broken" or outcome.fails_gate(pair):
        result = "failure"
    message = f"{outcome.pair_word(pair)} {words}".strip()
    return Test(pair, "compare", result, kind, message, words if kind == "broken" else detail)


def _test_of_change(change: Record) -> Test:
    problem = change.get("problem")
    command = f"posenc verify --backend {change['backend']} --problem '{problem}'" if problem else ""
    result = "failure" if change.get("worse") is True else "passed"
    kind = f"{change['suite']}, change of {change['what']}"
    return Test(change, kind, result, change["what"], outcome.change_words(change), "", command)


def tests_of(machine: Machine) -> List[Test]:
    """Returns the checks, outputs, changes and pairs of a machine as tests."""
    outputs = [row for row in map(Timing, machine.of("bench")) if row.wrong or not row.rejected]
    changes, pairs = outcome.changes(machine), outcome.pairs(machine)
    of_results = [*map(_test_of_check, machine.of("check")), *map(_test_of_output, outputs)]
    return [*of_results, *map(_test_of_change, changes), *map(_test_of_pair, pairs)]


def _add(parent: ET.Element, tag: str, **attributes: object) -> ET.Element:
    """Adds an element whose attributes hold no control characters."""
    return ET.SubElement(parent, tag, {name: escape_hidden(str(value)) for name, value in attributes.items()})


def _add_test(suite: ET.Element, test: Test, machine: str) -> None:
    record = test.record
    names = [str(record.get(name, "")) for name in ("backend", "kernel", "numerics", "dtype")]
    name, classname = f"{record['case']} [{test.kind}]", ".".join([machine, *names] if machine else names)
    case = _add(suite, "testcase", name=name, classname=classname)
    if test.result == "skipped":
        _add(case, "skipped", message=test.message)
    elif test.result != "passed":
        repeat = f"\n repeat with: {escape_hidden(test.command)}" if test.command else ""
        _add(case, test.result, message=test.message, type=test.type).text = escape_hidden(test.detail) + repeat


def _add_suite(suites: ET.Element, machine: Machine, backend: str, family: str, tests: List[Test]) -> None:
    count, header = Counter(test.result for test in tests), machine.header
    suite = _add(suites, "testsuite", name=f"{machine.label}: {backend}" if machine.label else backend,
                 tests=len(tests), failures=count["failure"], errors=count["error"], skipped=count["skipped"],
                 **({"timestamp": header["started"]} if header.get("started") else {}))  # fmt: skip
    properties = _add(suite, "properties")
    facts = {
        "family": family, "cpu": member(machine.env, "cpu.key"), "mode": header.get("mode"),
        "version": member(header, "tool.version"), "vectors": member(header, "vectors.sha256"),
        "note": outcome.vectors_note(*machine.headers),
        "quality": "".join(str(member(doctor, "quality.grade") or "") for doctor in machine.of("doctor")[-1:]),
    }  # fmt: skip
    for name, value in facts.items():
        if value:
            _add(properties, "property", name=name, value=value)
    for test in tests:
        _add_test(suite, test, machine.label)


_INCOMPLETE = Test(
    {"case": "the run is complete", "backend": "posenc", "kernel": "posenc", "numerics": "run", "dtype": "all"},
    "run", "error", "incomplete", "a run ended early: this file has what was finished",
)  # fmt: skip


def to_junit(records: List[Record]) -> str:
    """Returns JUnit XML: a suite for each backend, a test for each check, output, pair and change.

    failure  a check that failed or is inconclusive, a wrong output, a result that got worse, what fails a gate
    error    a crash; a run that ended early, as a suite of its own
    skipped  what cannot run here; UNCLEAR and what cannot be compared

    Attributes are those of junit-10.xsd of Jenkins' xUnit plug-in. The command that repeats a failure stands in its
    text, as few programs read properties of tests. The class name begins with the backend, and with the machine if
    there are several: GitLab knows a test by class and name alone.
    """
    suites = ET.Element("testsuites", name="posenc")
    for machine in machines(records):
        if machine.partial:
            _add_suite(suites, machine, "posenc", "", [_INCOMPLETE])
        tests = grouped(tests_of(machine), lambda test: test.record["backend"])
        families = {record["id"]: record["family"] for record in machine.of("backend") if record["id"] in tests}
        for backend in {**families, **tests}:
            family = families.get(backend, tests[backend][0].record.get("family", ""))
            _add_suite(suites, machine, backend, family, tests[backend])
    for total in ("tests", "failures", "errors"):
        suites.set(total, str(sum(int(suite.get(total, "0")) for suite in suites)))
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'
