"""Formats for other programs. docs/exports.md says who reads each.

Such a program keeps numbers by name over months and machines. A name is the case and the backend, with the
threads or lanes where there are several: rope_half/f32/given/llama-3.1-8b-decode/avx2. Only if a file has the
results of several machines, names begin with the machine's.
"""

import csv
import io
import json
import math
import re
from itertools import groupby
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .. import units
from ..convert import Record
from ..ranking import Timing, timings
from ..runs import Machine, machines, member, number
from .outcome import vectors_note

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


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"{value:.10g}"
    if not isinstance(value, str):
        return ""
    # A spreadsheet takes other texts that begin so for formulas (OWASP, "CSV Injection").
    return f"'{value}" if value[:1] in tuple("=+-@\t\r") and not _is_number(value) else value


def _is_number(text: str) -> bool:
    try:
        float.fromhex(text) if "x" in text else float(text)
    except ValueError:
        return False
    return True


def _lines(records: List[Record]) -> Iterator[Tuple[str, Record, str]]:
    """Yields the machine, the record and the note on golden vectors of each line."""
    machine = note = ""
    for record in records:
        if record["t"] == "env":
            machine = str(record.get("env_id", ""))
        elif record["t"] == "header":
            note = vectors_note(record)
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
    prefix = f"{machine.label}: " if machine.label else ""
    threads, lanes = number(record, "threads") or 1, number(record, "vector_width") or 0
    team = f"/threads:{threads:.0f}" if record["t"] == "bench" and threads > 1 else ""
    width = f"/lanes:{lanes:.0f}" if record["t"] == "count" and lanes > 0 else ""
    return f"{prefix}{record['case']}/{record['backend']}{width}{team}"


def _round(value: float) -> float:
    """Returns a number with more digits than any clock has, and no tail like 0.30000000000000004."""
    return float(f"{value:.8g}")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _dump_lines(entries: List[str], begin: str, end: str) -> str:
    return begin + ",".join(f"\n{entry}" for entry in entries) + f"\n{end}\n"


def _timed(machine: Machine) -> List[Timing]:
    return [row for row in timings(machine) if math.isfinite(row.median)]


def _interval(record: Record) -> Tuple[Optional[float], Optional[float]]:
    return number(record, "ci.lo") or None, number(record, "ci.hi") or None


def _per_element(count: Record) -> Optional[float]:
    """Returns instructions per element; None if not counted, or of the base of a comparison."""
    elements, instructions = number(count, "elements"), number(count, "instructions")
    if count.get("build") == "base":
        return None
    known = instructions / elements if elements and instructions is not None else None
    given = number(count, "per_element")
    return known if given is None else given


# ---- github-action-benchmark ----


def _ratios(machine: Machine) -> Iterator[Tuple[str, str, Optional[float], List[Optional[float]], str]]:
    """Yields the name, the unit, the value, the interval and a remark of each entry."""
    for row in _timed(machine):
        share = number(row.record, "roofline.share") or 0.0
        if share > 0:
            level, note = number(row.record, "ci.level") or 0.0, vectors_note(machine.header)
            extra = (
                f"{units.time(row.median)}, {100 * level:.0f} % interval {units.time(row.lo)} to {units.time(row.hi)}\n"
                f"{100 * share:.0f} % of the roofline ({member(row.record, 'roofline.kind') or ''})\n"
                f"on {machine.env.get('env_id', '')}" + (f"\n{note}" if note else "")
            )
            interval: List[Optional[float]] = [end / share / row.median for end in (row.lo, row.hi)]
            yield _name(machine, row.record), "time/roofline", 1.0 / share, interval, extra
    for pair in machine.of("pair"):
        name, reason = f"{_name(machine, pair)} head/base", str(pair.get("reason", ""))
        yield name, "head/base", number(pair, "ratio"), list(_interval(pair)), reason
    for count in machine.of("count"):
        name = f"{_name(machine, count)} instructions"
        yield name, "instructions/element", _per_element(count), [], str(count.get("by", ""))


def to_gha(records: List[Record]) -> str:
    """Returns JSON for github-action-benchmark (customSmallerIsBetter): ratios, never times."""
    entries = []
    for name, unit, value, interval, extra in (ratio for machine in machines(records) for ratio in _ratios(machine)):
        if value is None or not 0 < value < math.inf:
            continue
        entry = {"name": name, "unit": unit, "value": _round(value)}
        half = max((abs(end - value) for end in interval if end is not None), default=math.inf)
        if half < 1e6:
            entry["range"] = f"± {half:.3g}"
        if extra:
            entry["extra"] = extra
        entries.append(_dump(entry))
    return _dump_lines(entries, "[", "]")


# ---- Bencher ----


def _measures(machine: Machine) -> Iterator[Tuple[Record, str, List[Optional[float]]]]:
    """Yields the result, the name, and the value with its interval of each measure."""
    for row in _timed(machine):
        yield row.record, "latency", [row.median, *_interval(row.record)]
        yield row.record, "roofline-share", [number(row.record, "roofline.share") or None]
    for pair in machine.of("pair"):
        yield pair, "head-to-base", [number(pair, "ratio"), *_interval(pair)]
    for count in machine.of("count"):
        yield count, "instructions-per-element", [_per_element(count)]
    for check in machine.of("check"):
        metric, error = member(check, "error.metric"), number(check, "error.max")
        if metric not in (None, "exact") and error is not None:
            yield check, f"max-{metric.lower().replace('_', '-')}", [error]


def to_bmf(records: List[Record]) -> str:
    """Returns Bencher Metric Format: benchmarks, each with measures. Of errors the largest of all suites counts."""
    benchmarks: Dict[str, Dict[str, Dict[str, float]]] = {}
    for machine in machines(records):
        for record, measure, numbers in _measures(machine):
            names = zip(("value", "lower_value", "upper_value"), numbers)
            metric = {name: _round(value) for name, value in names if value is not None and math.isfinite(value)}
            known = benchmarks.setdefault(_name(machine, record), {})
            before = known.get(measure, {}).get("value", 0.0) if record["t"] == "check" else 0.0
            if "value" in metric and not before > metric["value"]:
                known[measure] = metric
    entries = [f"{_dump(name)}:{_dump(measures)}" for name, measures in benchmarks.items() if measures]
    return _dump_lines(entries, "{", "}")


# ---- Google Benchmark ----


def _cpus(text: str) -> int:
    """Returns how many CPUs a list such as 0-3,8 has."""
    return sum(int(last or first) - int(first) + 1 for first, last in re.findall(r"(\d+)(?:-(\d+))?", text))


def _context(found: List[Machine]) -> Dict[str, Any]:
    env, header = found[0].env, found[0].header
    governor, load = member(env, "frequency.governor") or "", number(env, "noise.load1")
    caches = [
        {"type": cache.get("type", ""), "level": cache.get("level", 0), "size": cache.get("bytes", 0),
         "num_sharing": _cpus(cache.get("shared_by", ""))}
        for cache in env.get("caches", [])
    ]  # fmt: skip
    return {
        "executable": "posenc", "date": header.get("started", ""), "host_name": env.get("env_id", ""),
        "num_cpus": member(env, "cpus.online") or 0, "mhz_per_cpu": 0,
        "cpu_scaling_enabled": governor not in ("", "performance", "not exposed"), "caches": caches,
        "load_avg": [] if load is None else [_round(load)], "library_version": member(header, "tool.version") or "",
        "library_build_type": "debug" if member(env, "build.type") == "debug" else "release", "json_schema_version": 1,
        "cpu": member(env, "cpu.name") or "", "cpu_key": member(env, "cpu.key") or "", "mode": header.get("mode", ""),
        "finished": "no" if found[0].partial else "yes",
        "cpu_time": "not measured: real_time stands in its place",
        "machines": "several: names begin with theirs, this is of the first" if len(found) > 1 else "1",
        "vectors": vectors_note(header) or member(header, "vectors.sha256") or "",
    }  # fmt: skip


def _instructions(machine: Machine, record: Record) -> Optional[float]:
    names = ("kernel", "dtype", "numerics", "backend")
    alike = [count for count in machine.of("count") if all(count.get(n) == record.get(n) for n in names)]
    found = [value for value in map(_per_element, alike) if value is not None]
    return found[-1] if found else None


def _times(machine: Machine) -> Iterator[Tuple[str, float, Record]]:
    """Yields the case, the time, and the members of each entry that others do not follow from."""
    for row in _timed(machine):
        record, rounds, gbps = row.record, row.record.get("rounds", 0), number(row.record, "gbps")
        counters = {
            "bytes_per_second": gbps * 1e9 if gbps else None, "min_ns": number(record, "min_ns"),
            "ci_low_ns": row.lo, "ci_high_ns": row.hi, "ci_level": number(record, "ci.level"),
            "roofline_share": number(record, "roofline.share"),
            "control_pct": abs(number(record, "control_pct") or 0.0),
            "instructions_per_element": _instructions(machine, record),
        }  # fmt: skip
        yield row.case, row.median, {
            "name": _name(machine, record), "threads": record.get("threads", 1), "iterations": rounds,
            "label": f"{row.backend}, median of {rounds} rounds",
            "counters": {key: _round(v) for key, v in counters.items() if v is not None and 0 < v < math.inf},
        }  # fmt: skip
    for pair in machine.of("pair"):
        for build in ("base", "head"):
            ns = number(pair, f"{build}.ns")
            if ns is not None and 0 < ns < math.inf:
                yield pair["case"], ns, {"name": f"{_name(machine, pair)}/{build}", "threads": 1, "counters": {},
                                         "iterations": pair.get("rounds", 0), "label": pair["verdict"]}  # fmt: skip


def to_gbench(records: List[Record]) -> str:
    """Returns JSON as Google Benchmark writes it: an entry for each timing, with its median as the time."""
    found = machines(records)
    cases = groupby((time for machine in found for time in _times(machine)), key=lambda time: time[0])
    entries = [
        _dump({
            "name": entry["name"], "family_index": family, "per_family_instance_index": instance,
            "run_name": entry["name"], "run_type": "iteration", "repetitions": 1, "repetition_index": 0,
            "threads": entry["threads"], "iterations": entry["iterations"], "real_time": _round(ns),
            "cpu_time": _round(ns), "time_unit": "ns", **entry["counters"], "label": entry["label"],
        })
        for family, (_, times) in enumerate(cases) for instance, (_, ns, entry) in enumerate(times)
    ]  # fmt: skip
    context = _dump(_context(found or [Machine({})]))
    return _dump_lines(entries, f'{{\n"context":{context},\n"benchmarks":[', "]\n}")
