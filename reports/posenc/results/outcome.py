"""The outcome of all records: for a heading, a badge, a summary."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, List

from .. import show, units
from ..convert import Record
from ..ranking import Timing, timing, timings
from ..runs import Machine, machines, member, number
from . import comparison

FAILED = ("fail", "crash")

# ---- single results ----


def error_words(check: Record) -> str:
    """Returns the largest error of a check: 31.70 pair ulp, limit 1.5, token 3; got -0x1.9p-3, want -0x1.88p-3."""
    metric = member(check, "error.metric") or ""
    largest, limit = (number(check, f"error.{name}") or 0.0 for name in ("max", "limit"))
    shown, most = units.judged(largest, limit, metric)
    where, got, want = (member(check, f"error.{name}") or "" for name in ("worst_at", "got", "want"))
    return f"{shown}, limit {most}, {where}; got {got}, want {want}"


def check_words(check: Record) -> str:
    """Returns what went wrong in a check, or why it was not made."""
    reason = str(check.get("reason") or "")
    if not member(check, "error.metric") or check["status"] == "crash":
        return reason or str(check["status"])
    return error_words(check) + (f"; {reason}" if reason and not reason.startswith("got ") else "")


def wrong_outputs(machine: Machine) -> List[Timing]:
    """Returns the outputs that were wrong and therefore not timed."""
    return [row for row in map(timing, machine.of("bench")) if row.wrong]


def vectors_note(*headers: Record) -> str:
    """Returns a note if golden vectors were used that are not the program's own."""
    unofficial = any(member(header, "vectors.official") is False for header in headers)
    return "not the official vectors" if unofficial else ""


# ---- all of them ----


@dataclass
class Outcome:
    """What all machines found: checks by status, pairs by verdict, and what a reader has to know."""

    checks: Dict[str, int] = field(default_factory=Counter)
    pairs: Dict[str, int] = field(default_factory=Counter)
    compared: int = 0
    timed: int = 0
    wrong: int = 0
    grade: str = ""  # of the worst machine that doctor measured
    quick: bool = False
    partial: bool = False
    vectors: str = ""

    @property
    def failed(self) -> int:
        return sum(self.checks[status] for status in FAILED)

    @property
    def is_good(self) -> bool:
        """Whether nothing failed, is wrong, fails a gate, got worse or is missing."""
        bad = self.failed + self.checks["inconclusive"] + self.wrong
        return not self.partial and not bad and not any(self.pairs[name] for name in ("failing", "broken", "worse"))


def outcome_of(records: List[Record]) -> Outcome:
    """Returns the outcome of records."""
    found = Outcome()
    for machine in machines(records):
        for check in machine.of("check"):
            found.checks[check["status"]] += 1
        for name, number_ in comparison.tally(machine).items():
            found.pairs[name] += number_
        found.compared += len(machine.of("pair"))
        found.wrong += len(wrong_outputs(machine))
        found.timed += len(timings(machine))
        for doctor in machine.of("doctor")[-1:]:
            found.grade = max(found.grade, str(member(doctor, "quality.grade") or ""))
        found.quick |= machine.header.get("mode") == "quick"
        found.partial |= machine.partial
        found.vectors = found.vectors or vectors_note(machine.header, *machine.headers)
    return found


def outcome_words(found: Outcome) -> str:
    """Returns the outcome in a line, what is bad first: 2 of 16 666 checks failed, 1 slower."""
    checks, pairs = found.checks, found.pairs
    ran = sum(checks.values()) - checks["skipped"] - checks["unsupported"]
    words = [
        "incomplete" if found.partial else "",
        found.vectors,
        f"{show.count(found.failed)} of {show.count(ran)} checks failed" if found.failed else "",
        f"{show.count(checks['inconclusive'])} inconclusive" if checks["inconclusive"] else "",
        f"{show.many(found.wrong, 'output')} wrong" if found.wrong else "",
        f"{pairs['broken']} of {show.many(found.compared, 'pair')} fail" if pairs["broken"] else "",
        f"{show.many(pairs['worse'], 'result')} worse" if pairs["worse"] else "",
        f"{pairs['slower']} slower" if pairs["slower"] else "",
        f"{show.many(checks['pass'], 'check')} passed" if checks["pass"] and not found.failed else "",
        f"{show.count(found.compared)} compared, none slower" if found.compared and not pairs["slower"] else "",
        f"{pairs['faster']} faster" if pairs["faster"] else "",
        f"{pairs['unclear']} unclear" if pairs["unclear"] else "",
        f"{show.many(pairs['better'], 'result')} better" if pairs["better"] else "",
        f"{pairs['moved']} moved" if pairs["moved"] else "",
        show.many(found.timed, "timing") if found.timed and not checks and not found.compared else "",
        f"measurement quality {found.grade}" if found.grade else "",
    ]
    return ", ".join(filter(None, words)) or "nothing was checked"


# ---- badge ----


def _color(found: Outcome) -> str:
    if not found.is_good:
        return "red"
    if found.vectors:
        return "lightgrey"
    if found.checks["pass"]:
        return "green" if found.quick else "brightgreen"
    if found.compared:
        return "orange" if found.pairs["slower"] else "brightgreen"
    return {"": "lightgrey", "A": "brightgreen", "B": "green", "C": "yellow"}.get(found.grade, "orange")


def to_badge(records: List[Record]) -> str:
    """Returns what shields.io asks an endpoint for. Bright green is for a full run."""
    found = outcome_of(records)
    label = "posenc (quick)" if found.quick and any(found.checks.values()) else "posenc"
    badge = {"schemaVersion": 1, "label": label, "message": outcome_words(found), "color": _color(found),
             "isError": not found.is_good}  # fmt: skip
    return json.dumps(badge, ensure_ascii=False, separators=(",", ":")) + "\n"
