"""Formats for other programs. docs/exports.md says who reads each.

Such a program keeps numbers by name over months and machines. A name is the case and the backend, with the
threads or lanes where there are several: rope_half/f32/given/llama-3.1-8b-decode/avx2. Only if a file has the
results of several machines, names begin with the machine's.
"""

import csv
import io
import json
import math
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .. import units
from ..convert import Record
from ..ranking import timings
from ..runs import Machine, machines, member, number

# ---- CSV ----

COLUMNS = """t kernel dtype numerics stage case backend family suite status reason
error.metric error.max error.limit error.worst_at error.got error.want error.coverage error.checked error.misrounded
footprint.name footprint.bytes threads rounds median_ns min_ns ci.level ci.lo ci.hi bytes gbps
roofline.kind roofline.variant roofline.gbps roofline.share
bound.resource bound.kind bound.variant bound.gbps bound.share
speedup_libm speedup_autovec speedup_separate control_pct rejected
base.ns head.ns ratio verdict noise_threshold threshold confirmed processes failed.who failed.how control_ratio
base.code head.code what worse metric base.status head.status base.max head.max base.value head.value
limit worst_at want moved of problem build instructions loads stores branches vector elements per_element per_call by
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
            note = "not the official vectors" if member(record, "vectors.official") is False else ""
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


class Named(NamedTuple):
    """A machine, and the word that its names begin with."""

    machine: Machine
    prefix: str


def _named(records: List[Record]) -> List[Named]:
    found = machines(records)
    return [Named(m, f"{m.env.get('env_id')}: " if len(found) > 1 else "") for m in found]


def _name(named: Named, record: Record) -> str:
    threads, lanes = number(record, "threads") or 1, number(record, "vector_width") or 0
    team = f"/threads:{threads:.0f}" if record["t"] == "bench" and threads > 1 else ""
    width = f"/lanes:{lanes:.0f}" if record["t"] == "count" and lanes > 0 else ""
    return f"{named.prefix}{record['case']}/{record['backend']}{width}{team}"


def _round(value: float) -> float:
    """Returns a number with more digits than any clock has, and no tail like 0.30000000000000004."""
    return float(f"{value:.8g}")


def _json_lines(entries: List[str], begin: str, end: str) -> str:
    return begin + ",".join(f"\n{entry}" for entry in entries) + f"\n{end}\n"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _timed(machine: Machine) -> List[Record]:
    return [row.record for row in timings(machine) if math.isfinite(row.median)]


def _time_over_roofline(record: Record) -> float:
    """Returns the time as a multiple of the roofline's, the median over the rounds; 0: not known."""
    share = number(record, "roofline.share") or 0.0
    return 1.0 / share if share > 0 else 0.0


def _per_element(count: Record) -> Optional[float]:
    """Returns instructions per element; None if not counted, or of the base of a comparison."""
    if count.get("build") == "base":
        return None
    elements, instructions = number(count, "elements"), number(count, "instructions")
    given = number(count, "per_element")
    if given is None and elements and instructions is not None:
        return instructions / elements
    return given


# ---- github-action-benchmark ----


def _gha_entry(name: str, unit: str, value: Optional[float], ends: Tuple[Optional[float], Optional[float]], extra: str,
               ) -> Iterator[Dict[str, Any]]:  # fmt: skip
    if value is None or not math.isfinite(value) or value <= 0:
        return
    entry: Dict[str, Any] = {"name": name, "unit": unit, "value": _round(value)}
    if ends[0] is not None and ends[1] is not None:
        half = max(value - ends[0], ends[1] - value)
        if 0 <= half < 1e6:
            entry["range"] = f"± {half:.3g}"
    if extra:
        entry["extra"] = extra
    yield entry


def _gha_machine(named: Named) -> Iterator[Dict[str, Any]]:
    machine = named.machine
    note = "not the official vectors" if member(machine.header, "vectors.official") is False else ""
    for record in _timed(machine):
        value, median = _time_over_roofline(record), number(record, "median_ns") or 0.0
        if not value:
            continue
        lo, hi, level = (number(record, f"ci.{end}") or 0.0 for end in ("lo", "hi", "level"))
        extra = (
            f"{units.time(median)}, {100 * level:.0f} % interval {units.time(lo)} to {units.time(hi)}\n"
            f"{100 / value:.0f} % of the roofline ({member(record, 'roofline.kind') or ''})\n"
            f"on {machine.env.get('env_id', '')}" + (f"\n{note}" if note else "")
        )
        interval = (value * lo / median, value * hi / median)
        yield from _gha_entry(_name(named, record), "time/roofline", value, interval, extra)
    for record in machine.of("pair"):
        ends = (number(record, "ci.lo"), number(record, "ci.hi"))
        name = f"{_name(named, record)} head/base"
        yield from _gha_entry(name, "head/base", number(record, "ratio"), ends, str(record.get("reason", "")))
    for record in machine.of("count"):
        name = f"{_name(named, record)} instructions"
        per_element = _per_element(record)
        yield from _gha_entry(name, "instructions/element", per_element, (None, None), str(record.get("by", "")))


def to_gha(records: List[Record]) -> str:
    """Returns JSON for github-action-benchmark (customSmallerIsBetter): ratios, never times."""
    entries = [_dump(entry) for named in _named(records) for entry in _gha_machine(named)]
    return _json_lines(entries, "[", "]")


# ---- Bencher ----


def to_bmf(records: List[Record]) -> str:
    """Returns Bencher Metric Format: benchmarks, each with measures."""
    benchmarks: Dict[str, Dict[str, Dict[str, float]]] = {}

    def add(name: str, measure: str, value: Optional[float], *ends: Optional[float]) -> None:
        if value is None or not math.isfinite(value):
            return
        metric = benchmarks.setdefault(name, {}).setdefault(measure, {})
        metric.clear()
        for key, number_ in zip(("value", "lower_value", "upper_value"), (value, *ends)):
            if number_ is not None and math.isfinite(number_):
                metric[key] = _round(number_)

    for named in _named(records):
        machine = named.machine
        for record in _timed(machine):
            name, share = _name(named, record), number(record, "roofline.share") or 0.0
            ends = (number(record, "ci.lo") or None, number(record, "ci.hi") or None)
            add(name, "latency", number(record, "median_ns"), *ends)
            add(name, "roofline-share", share if share > 0 else None)
        for record in machine.of("pair"):
            ends = (number(record, "ci.lo"), number(record, "ci.hi"))
            add(_name(named, record), "head-to-base", number(record, "ratio"), *ends)
        for record in machine.of("count"):
            add(_name(named, record), "instructions-per-element", _per_element(record))
        for record in machine.of("check"):
            metric, largest = member(record, "error.metric"), number(record, "error.max")
            if metric in (None, "exact") or largest is None:
                continue
            name, measure = _name(named, record), f"max-{metric.lower().replace('_', '-')}"
            before = benchmarks.get(name, {}).get(measure, {}).get("value", 0.0)
            if not before > largest:  # of another suite
                add(name, measure, largest)
    return _json_lines([f"{_dump(name)}:{_dump(value)}" for name, value in benchmarks.items()], "{", "}")


# ---- Google Benchmark ----


def _cpus(text: str) -> int:
    """Returns how many CPUs a list such as 0-3,8 has."""
    count = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            break
        count += max(int(last or first) - int(first) + 1, 0)
    return count


def _context(found: List[Machine]) -> Dict[str, Any]:
    env, header = found[0].env, found[0].header
    governor, load = member(env, "frequency.governor") or "", number(env, "noise.load1")
    caches = [
        {"type": cache.get("type", ""), "level": cache.get("level", 0), "size": cache.get("bytes", 0),
         "num_sharing": _cpus(cache.get("shared_by", ""))}
        for cache in env.get("caches", [])
    ]  # fmt: skip
    note = "not the official vectors" if member(header, "vectors.official") is False else ""
    return {
        "executable": "posenc", "date": header.get("started", ""), "host_name": env.get("env_id", ""),
        "num_cpus": member(env, "cpus.online") or 0, "mhz_per_cpu": 0,
        "cpu_scaling_enabled": governor not in ("", "performance", "not exposed"), "caches": caches,
        "load_avg": [] if load is None else [_round(load)], "library_version": member(header, "tool.version") or "",
        "library_build_type": "debug" if member(env, "build.type") == "debug" else "release", "json_schema_version": 1,
        "cpu": member(env, "cpu.name") or "", "cpu_key": member(env, "cpu.key") or "", "mode": header.get("mode", ""),
        "finished": "no" if found[0].finished < found[0].runs else "yes",
        "cpu_time": "not measured: real_time stands in its place",
        "machines": "several: names begin with theirs, this is of the first" if len(found) > 1 else "1",
        "vectors": note or member(header, "vectors.sha256") or "",
    }  # fmt: skip


def _instructions(machine: Machine, record: Record) -> Optional[float]:
    names = ("kernel", "dtype", "numerics", "backend")
    alike = [count for count in machine.of("count") if all(count.get(n) == record.get(n) for n in names)]
    found = [value for value in map(_per_element, alike) if value is not None]
    return found[-1] if found else None


def _gbench_entries(named: Named) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """Yields the case of each timing, and what its entry has besides indices."""
    machine = named.machine
    for record in _timed(machine):
        rounds = record.get("rounds", 0)
        entry = {"name": _name(named, record), "threads": record.get("threads", 1), "iterations": rounds}
        entry["ns"] = record["median_ns"]
        gbps = number(record, "gbps")
        counters = {
            "bytes_per_second": gbps * 1e9 if gbps else None, "min_ns": number(record, "min_ns"),
            "ci_low_ns": number(record, "ci.lo"), "ci_high_ns": number(record, "ci.hi"),
            "ci_level": number(record, "ci.level"), "roofline_share": number(record, "roofline.share"),
            "control_pct": abs(number(record, "control_pct") or 0.0),
            "instructions_per_element": _instructions(machine, record),
        }  # fmt: skip
        entry["counters"] = {
            key: _round(v) for key, v in counters.items() if v is not None and v > 0 and math.isfinite(v)
        }
        entry["label"] = f"{record['backend']}, median of {rounds} rounds"
        yield record["case"], entry
    for record in machine.of("pair"):
        for build in ("base", "head"):
            ns = number(record, f"{build}.ns")
            if ns is not None and 0 < ns < math.inf:
                entry = {"name": f"{_name(named, record)}/{build}", "threads": 1, "ns": ns, "counters": {}}
                yield record["case"], {**entry, "iterations": record.get("rounds", 0), "label": record["verdict"]}


def to_gbench(records: List[Record]) -> str:
    """Returns JSON as Google Benchmark writes it: an entry for each timing, with its median as the time."""
    named = _named(records)
    entries, family, instance, last = [], -1, 0, None
    for case, entry in (pair for one in named for pair in _gbench_entries(one)):
        family, instance, last = (family, instance, last) if case == last else (family + 1, 0, case)
        entries.append(_dump({
            "name": entry["name"], "family_index": family, "per_family_instance_index": instance,
            "run_name": entry["name"], "run_type": "iteration", "repetitions": 1, "repetition_index": 0,
            "threads": entry["threads"], "iterations": entry["iterations"], "real_time": _round(entry["ns"]),
            "cpu_time": _round(entry["ns"]), "time_unit": "ns", **entry["counters"], "label": entry["label"],
        }))  # fmt: skip
        instance += 1
    context = _dump(_context([one.machine for one in named] or [Machine({})]))
    return _json_lines(entries, f'{{\n"context":{context},\n"benchmarks":[', "]\n}")
