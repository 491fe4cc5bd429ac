"""Baselines: of results what does not depend on the day, for posenc compare BASELINE RESULTS.

Largest errors, and shares of the roofline of what was timed and is not noisy; no time, date, commit or version, so
that the file of a CPU differs in version control only if a result does. Only native backends: the others are what a
compiler and its library make of them. A line for each case, backend and suite, sorted, and a footer if the run was
finished: posenc compare rejects a baseline without one.
"""

from typing import Iterator, List

from ..convert import Record
from ..ranking import timings
from ..records import dump
from ..runs import Machine, machines, member, number

_RESULT = ("case", "backend", "suite", "kernel", "dtype", "numerics", "family", "status", "threads")


def _number(value: float) -> object:
    """Returns a number as records have it: of ten digits, or a string if it is not finite."""
    return float(f"{value:.10g}") if abs(value) < float("inf") else f"{value}"


def _of(kind: str, record: Record) -> Record:
    return {"t": kind, **{name: record[name] for name in _RESULT if name in record}}


def _lines(machine: Machine) -> Iterator[Record]:
    yield {"t": "header", "schema": "posenc.results/2", "mode": "baseline", "vectors": machine.header.get("vectors")}
    key = member(machine.env, "cpu.key") or ""
    build = {"type": member(machine.env, "build.type") or ""}
    yield {"t": "env", "env_id": key, "cpu": {"key": key}, "build": build}
    checks = [
        check for check in machine.of("check") if check.get("family") == "native" and member(check, "error.metric")
    ]
    for check in sorted(checks, key=lambda check: (check["case"], check["backend"], check["suite"])):
        error = {"metric": check["error"]["metric"], "max": _number(number(check, "error.max") or 0.0)}
        yield {**_of("check", check), "error": error}
    shares = [row for row in timings(machine) if row.record["family"] == "native" and row.share and not row.noisy]
    for row in sorted(shares, key=lambda row: (row.case, row.backend, row.record.get("threads", 1))):
        yield {**_of("bench", row.record), "roofline": {"share": _number(row.share or 0.0)}}
    if not machine.partial:
        yield {"t": "footer", "complete": True}


def to_baseline(records: List[Record]) -> str:
    """Returns the baseline of each machine."""
    return dump([line for machine in machines(records) for line in _lines(machine)])
