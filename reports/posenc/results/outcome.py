"""Outcome of all records, for headings, badges and summaries."""

import json
from collections import Counter
from typing import List, NamedTuple

from .. import units
from ..ranking import Timing, timings
from ..records import Machine, Record, grouped, machines, member, number
from . import comparison

FAILED = ("fail", "crash")

# ---- single results ----


def check_words(check: Record) -> str:
    """Describes the failure of a check, or the reason why it did not run.

    31.70 pair ulp, limit 1.5, token 3; got -0x1.9p-3, want -0x1.88p-3; matches: the sine has the other sign
    """
    reason, metric = str(check.get("reason") or ""), member(check, "error.metric")
    mistake = f"; matches: {check['mistake']}" if check.get("mistake") else ""
    if not metric or check["status"] == "crash":
        return (reason or str(check["status"])) + mistake
    largest, limit = (number(check, f"error.{name}") or 0.0 for name in ("max", "limit"))
    where, got, want = (member(check, f"error.{name}") or "" for name in ("worst_at", "got", "want"))
    words = "{}, limit {}".format(*units.error_and_limit(largest, limit, metric)) + f", {where}; got {got}, want {want}"
    return words + (f"; {reason}" if reason and not reason.startswith("got ") else "") + mistake


def failures(machine: Machine) -> List[List[Record]]:
    """Returns the checks that failed or are inconclusive: those of backends that fail in the same way together."""
    paths = ("case", "suite", "status", "error.worst_at", "error.got", "reason")
    failed = [check for check in machine.of("check") if check["status"] in (*FAILED, "inconclusive")]
    return list(grouped(failed, lambda check: repr([member(check, path) for path in paths])).values())


def wrong_outputs(machine: Machine) -> List[Timing]:
    """Returns the outputs that were wrong and therefore not timed."""
    return [row for row in map(Timing, machine.of("bench")) if row.wrong]


def vectors_note(*headers: Record) -> str:
    """Returns a note if golden vectors were used that are not the program's own."""
    unofficial = any(member(header, "vectors.official") is False for header in headers)
    return "not the official vectors" if unofficial else ""


# ---- all of them ----


class Outcome(NamedTuple):
    """Outcome of all machines."""

    counts: Counter[str]  # of statuses, verdicts and directions; of machines that are quick or partial
    grade: str  # of the worst machine that doctor measured
    vectors: str

    @property
    def is_good(self) -> bool:
        """True if nothing failed, is wrong, fails a gate, got worse or is missing."""
        bad = ("failed", "inconclusive", "wrong", "failing", "broken", "worse", "partial")
        return not any(self.counts[name] for name in bad)


def outcome_of(records: List[Record]) -> Outcome:
    """Returns the outcome of records."""
    found, counts = machines(records), Counter[str]()
    for machine in found:
        statuses = Counter(str(check["status"]) for check in machine.of("check"))
        counts += statuses + comparison.tally(machine)
        counts["failed"] += sum(statuses[status] for status in FAILED)
        counts["ran"] += sum(statuses.values()) - statuses["skipped"] - statuses["unsupported"]
        counts["checks"] += sum(statuses.values())
        counts["compared"] += len(machine.of("pair"))
        counts["wrong"] += len(wrong_outputs(machine))
        counts["timed"] += len(timings(machine))
        counts["quick"] += machine.header.get("mode") == "quick"
        counts["partial"] += machine.partial
    grades = [str(member(doctor, "quality.grade") or "") for one in found for doctor in one.of("doctor")[-1:]]
    vectors = vectors_note(*(header for machine in found for header in machine.headers))
    return Outcome(counts, max(grades, default=""), vectors)


def outcome_words(found: Outcome) -> str:
    """Returns the outcome on one line, failures first: 2 of 16 666 checks failed, 1 slower."""
    n = found.counts

    def some(name: str, words: str = "", noun: str = "") -> str:
        count = units.many(n[name], noun) if noun else units.count(n[name])
        return f"{count} {words or name}".strip() if n[name] else ""

    words = [
        "incomplete" if n["partial"] else "",
        found.vectors,
        some("failed", f"of {units.count(n['ran'])} checks failed"),
        some("inconclusive"),
        some("wrong", noun="output"),
        some("broken", f"of {units.many(n['compared'], 'pair')} fail"),
        some("worse", noun="result"),
        some("slower"),
        "" if n["failed"] else some("pass", "passed", "check"),
        "" if n["slower"] else some("compared", "compared, none slower"),
        some("faster"),
        some("unclear"),
        some("better", noun="result"),
        some("moved"),
        "" if n["checks"] or n["compared"] or not n["timed"] else units.many(n["timed"], "timing"),
        f"measurement quality {found.grade}" if found.grade else "",
    ]
    return ", ".join(filter(None, words)) or "nothing was checked"


# ---- badge ----


def _color(found: Outcome) -> str:
    if not found.is_good:
        return "red"
    if found.vectors:
        return "lightgrey"
    if found.counts["pass"]:
        return "green" if found.counts["quick"] else "brightgreen"
    if found.counts["compared"]:
        return "orange" if found.counts["slower"] else "brightgreen"
    return {"": "lightgrey", "A": "brightgreen", "B": "green", "C": "yellow"}.get(found.grade, "orange")


def to_badge(records: List[Record]) -> str:
    """Returns JSON for an endpoint badge of shields.io. Bright green stands for a full run."""
    found = outcome_of(records)
    label = "posenc (quick)" if found.counts["quick"] and found.counts["checks"] else "posenc"
    badge = {"schemaVersion": 1, "label": label, "message": outcome_words(found), "color": _color(found),
             "isError": not found.is_good}  # fmt: skip
    return json.dumps(badge, ensure_ascii=False, separators=(",", ":")) + "\n"
