"""Describes records in words: single checks, the pairs and changes of a comparison, and the outcome of all.

Pages, exports, badges and posenc compare take their sentences and exit codes from here. outcome_words(outcome_of(
records)) is "2 of 16 666 checks failed, measurement quality B".
"""

import json
import math
from collections import Counter
from typing import List, NamedTuple, Sequence, Tuple

from .. import units
from ..ranking import Timing, timings
from ..records import Machine, Record, grouped, machines, member, number
from ..units import many

FAILED = ("fail", "crash")
NOT_PASSED = ("inconclusive", *FAILED)  # the exit code counts these as failures

# ---- single results ----


def check_words(check: Record) -> str:
    """Describes the failure of a check, or the reason why it did not run.

    31.70 pair ulp, limit 1.5, token 3; got -0x1.9p-3, want -0x1.88p-3; matches: the sine has the other sign
    """
    reason, metric = str(check.get("reason") or ""), member(check, "error.metric")
    mistake = f"; matches: {check['mistake']}" if check.get("mistake") else ""
    if not metric or check["status"] == "crash":
        return (reason or str(check["status"])) + mistake
    largest, limit = units.error_and_limit(
        number(check, "error.max") or 0.0, number(check, "error.limit") or 0.0, metric
    )
    where, got, want = (member(check, f"error.{name}") or "" for name in ("worst_at", "got", "want"))
    more = f"; {reason}" if reason and not reason.startswith("got ") else ""
    return f"{largest}, limit {limit}, {where}; got {got}, want {want}{more}{mistake}"


def failures(machine: Machine) -> List[List[Record]]:
    """Returns the checks that failed or are inconclusive: those of backends that fail in the same way together."""
    paths = ("case", "suite", "status", "error.worst_at", "error.got", "reason")
    failed = [check for check in machine.of("check") if check["status"] in NOT_PASSED]
    return list(grouped(failed, lambda check: repr([member(check, path) for path in paths])).values())


def wrong_outputs(machine: Machine) -> List[Timing]:
    """Returns the outputs that were wrong and therefore not timed."""
    return [row for row in map(Timing, machine.of("bench")) if row.wrong]


def vectors_note(*headers: Record) -> str:
    """Returns a note if golden vectors were used that are not the program's own."""
    unofficial = any(member(header, "vectors.official") is False for header in headers)
    return "not the official vectors" if unofficial else ""


# ---- the pairs and changes of a comparison ----

# Verdicts as people read them, in the order of tables.
WORDS = {
    "slower": "SLOWER", "faster": "FASTER", "unclear": "UNCLEAR", "same": "SAME", "identical": "identical code",
    "incomparable": "incomparable", "new": "new", "removed": "removed",
}  # fmt: skip


def verdict(pair: Record) -> str:
    """Returns the verdict on a pair; unclear if it is one of a later release."""
    kind = str(pair.get("verdict"))
    return kind if kind in WORDS else "unclear"


def ratio(pair: Record) -> float:
    """Returns head / base; NaN if it was not timed."""
    value = number(pair, "ratio") or 0.0
    return value if value > 0 else math.nan


def is_broken(pair: Record) -> bool:
    """Returns whether head fails, rejects or crashes where base does not."""
    return "failed" in pair and member(pair, "failed.who") != "base" and member(pair, "failed.how") != "lacks it"


def fails_gate(pair: Record) -> bool:
    """Returns whether a pair is slower by the threshold or more, and confirmed."""
    threshold = number(pair, "threshold")
    slower = verdict(pair) == "slower" and pair.get("confirmed") is True
    return slower and threshold is not None and ratio(pair) - 1.0 >= threshold


def pairs(*machines: Machine) -> List[Record]:
    """Returns the pairs by verdict, those that changed most first."""

    def place(pair: Record) -> Tuple[bool, int, float, str, str]:
        change = abs(math.log(ratio(pair))) if ratio(pair) > 0 else 0.0
        return not is_broken(pair), list(WORDS).index(verdict(pair)), -change, pair["case"], pair["backend"]

    return sorted((pair for machine in machines for pair in machine.of("pair")), key=place)


def direction(change: Record) -> str:
    """Returns whether a result got worse or better; moved if neither is known."""
    worse = change.get("worse")
    return "moved" if worse is None else "worse" if worse else "better"


def changes(*machines: Machine) -> List[Record]:
    """Returns the results that changed: worse ones first, then those that are neither; statuses, errors, bits."""

    def place(change: Record) -> Tuple[int, int, str, str, str]:
        way = ("worse", "moved", "better").index(direction(change))
        what = {"status": 0, "error": 1}.get(str(change.get("what")), 2)
        return way, what, change["case"], change["backend"], change.get("suite", "")

    return sorted((change for machine in machines for change in machine.of("change")), key=place)


def tally(machine: Machine) -> Counter[str]:
    """Returns how many pairs have each verdict, are broken, or fail a gate; how many results got worse or better."""
    found = Counter("broken" if is_broken(pair) else verdict(pair) for pair in machine.of("pair"))
    found["failing"] = sum(map(fails_gate, machine.of("pair")))
    return found + Counter(map(direction, machine.of("change")))


def pair_word(pair: Record) -> str:
    """Returns the verdict as people read it."""
    return "FAILED" if is_broken(pair) else WORDS[verdict(pair)]


def interval(pair: Record) -> str:
    """Returns the interval of a change in percent: 6.9 to 8.2."""
    lo, hi = (100.0 * ((number(pair, f"ci.{end}") or math.nan) - 1.0) for end in ("lo", "hi"))
    return f"{lo:.1f} to {hi:.1f}"


def pair_words(pair: Record) -> str:
    """Returns the change of a pair and why: +7.5 % (6.9 to 8.2): at or over the threshold of 3 %."""
    words = str(pair.get("reason") or "")
    if math.isnan(ratio(pair)):
        return words
    return f"{units.change(ratio(pair))} ({interval(pair)}){': ' if words else ''}{words}"


def build_name(build: Record) -> str:
    """Returns a build as main (1f3c2abdef), or base/libposenc.so (0.1.0)."""
    rev, commit, version = (str(build.get(name) or "") for name in ("rev", "commit", "version"))
    if build.get("dirty"):
        return f"{rev} with changes that are not committed"
    name, detail = (rev, commit[:10]) if rev else (str(build.get("path") or "?"), version)
    return f"{name} ({detail})" if detail else name


def side(change: Record, name: str) -> str:
    """Returns one side of a change: pass, 0.94 ulp, 8 of 4096."""
    largest = number(change, f"{name}.max")
    if member(change, f"{name}.max") is not None:
        return units.error(largest or 0.0, change.get("metric", ""))
    return member(change, f"{name}.status") or member(change, f"{name}.value") or "-"


def moved(change: Record) -> str:
    """Returns how many values moved; empty if that is not known."""
    total = number(change, "of") or 0.0
    return f"{units.count(number(change, 'moved') or 0.0)} of {units.count(total)}" if total > 0 else ""


def change_words(change: Record) -> str:
    """Describes a change: 0.94 ulp, was 0.50 ulp (limit 1.00 ulp), 3 of 64 values moved, at position 7."""
    words = f"{side(change, 'head')}, was {side(change, 'base')}"
    limit = number(change, "limit")
    if limit is not None and limit >= 0:
        words += f" (limit {units.error(limit, change.get('metric', ''))})"
    words += f", {moved(change)} values moved" if moved(change) else ""
    return words + (f", at {change['worst_at']}" if change.get("worst_at") else "")


# ---- the outcome of a comparison ----


def exit_code_of(records: Sequence[Record], gate: bool, strict: bool) -> Tuple[int, str]:
    """Returns the exit code of a comparison, and its reason."""
    header, compared = records[0], [record for record in records if record["t"] == "pair"]
    worse = [record for record in records if record["t"] == "change" and record["worse"] and record["what"] != "bits"]
    failing = sum(map(is_broken, compared)) + sum(member(record, "head.status") in NOT_PASSED for record in worse)
    if failing:
        return 1, f"head is wrong or fails where base does not ({many(failing, 'result')})"
    if member(header, "compare.incomparable"):
        return 5, "the files cannot be compared in full"
    if header.get("mode") != "files" and all(verdict(pair) in ("new", "removed") for pair in compared):
        return 5, "the builds have nothing in common"
    slower = sum(map(fails_gate, compared))
    grown = sum(member(record, "head.status") != "unsupported" for record in worse)
    unclear = sum(verdict(pair) == "unclear" for pair in compared)
    reasons = [many(slower, "confirmed slowdown")] if slower else []
    reasons += [f"{many(grown, 'result')} got worse"] if grown else []
    if gate and reasons:
        return 3, " and ".join(reasons)
    if strict and unclear:
        return 4, many(unclear, "unclear verdict")
    return 0, f"{' and '.join(reasons)}; --gate would exit with 3" if reasons else "no failure, no confirmed slowdown"


def conclusion(records: Sequence[Record], *machines: Machine) -> str:
    """Returns the conclusion of a comparison: results that are worse, or else other changes, and the exit code."""
    found = grouped([*pairs(*machines), *changes(*machines)], _kind)
    bad = [kind for kind in ("failing", "worse", "slower") if kind in found]
    others = ("faster", "better", "otherwise changed", "unclear", "incomparable", "new", "removed")
    parts = [_example(kind, found[kind]) for kind in bad or [kind for kind in others if kind in found]]
    if not parts:
        parts = ["nothing changed beyond noise" if "same" in found or "identical" in found else "no result changed"]
    if sum(record["t"] == "header" for record in records) == 1 and not any(machine.partial for machine in machines):
        options = records[0].get("options") or {}
        code, reason = exit_code_of(records, bool(options.get("gate")), bool(options.get("strict")))
        parts.append(f"exit code {code}: {reason}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _kind(result: Record) -> str:
    """Returns the effect of a pair or a change on head, in a word or two."""
    if result["t"] == "change":
        return {"moved": "otherwise changed"}.get(direction(result), direction(result))
    return "failing" if is_broken(result) else verdict(result)


def _example(kind: str, results: Sequence[Record]) -> str:
    """Returns how many results are of a kind, and the first of them: 1 pair is slower (CASE on BACKEND: +7.5 %)."""
    example = results[0]
    if example["t"] == "change":
        noun, detail = "result", f"{side(example, 'head')}, was {side(example, 'base')}"
    else:
        noun, detail = "pair", units.change(ratio(example)) if ratio(example) > 0 else str(example.get("reason"))
    verb, first = ("is", "") if len(results) == 1 else ("are", "first: ")
    return f"{many(len(results), noun)} {verb} {kind} ({first}{example['case']} on {example['backend']}: {detail})"


# ---- all of them ----


class Outcome(NamedTuple):
    """Outcome of all machines."""

    counts: Counter[str]  # of statuses, verdicts and directions; of machines that are quick or partial
    grade: str  # of the worst machine that doctor measured
    vectors: str  # note on golden vectors: see vectors_note()

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
        counts += statuses + tally(machine)
        counts["failed"] += sum(statuses[status] for status in FAILED)
        counts["ran"] += sum(statuses.values()) - statuses["skipped"] - statuses["unsupported"]
        counts["checks"] += sum(statuses.values())
        counts["compared"] += len(machine.of("pair"))
        counts["wrong"] += len(wrong_outputs(machine))
        counts["timed"] += len(timings(machine))
        counts["quick"] += machine.header.get("mode") == "quick"
        counts["partial"] += machine.partial
    grades = [str(member(doctor, "quality.grade") or "") for machine in found for doctor in machine.of("doctor")[-1:]]
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
    """Returns the colour of a badge."""
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
