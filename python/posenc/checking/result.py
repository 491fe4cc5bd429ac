"""The result of a check, which prints as a report of at most fifteen lines:

    FAIL  rope_half by rotate (numpy, f32): 3 passed, 52 failed
      mistake            the sine has the other sign
      case               rope_half/f32/random/...
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

Record = Dict[str, Any]
RANGES = (10, 17, 20, 24, 31)  # exponents of two, as those of the error limits
FAILED = ("fail", "crash")
WIDEST = 150  # characters of a printed line
PREFIX = "not offered: "  # of the reason why a check was skipped, which the report leaves out
WRONG_VALUE = re.compile(r"got (\S+) want (\S+) error (\S+) (\w+) limit (\S+) at (.*)")  # the reason of a failure


@dataclass
class Run:
    """The records of the checks in one numerics mode, "given" if the kernel has none."""

    numerics: str
    records: List[Record]
    notes: Dict[str, str] = field(default_factory=dict)  # further rows of the printed result

    def with_status(self, *statuses: str) -> List[Record]:
        """Returns the records with one of these statuses."""
        return [record for record in self.records if record["status"] in statuses]

    @property
    def ok(self) -> bool:
        """Is true if something passed and nothing failed."""
        return bool(self.with_status("pass")) and not self.with_status(*FAILED)

    def share_failed(self) -> float:
        """Returns the share of failures among the checks that passed or failed; 1 without any."""
        failed, passed = len(self.with_status(*FAILED)), len(self.with_status("pass"))
        return failed / (failed + passed) if failed + passed else 1.0

    def counts(self) -> str:
        """Returns the number of checks by status, as text."""
        counts = Counter(record["status"] for record in self.records)
        failed = counts["fail"] + counts["crash"]
        left_out = len(self.records) - failed - counts["pass"]
        parts = ((counts["pass"], "passed"), (failed, "failed"), (left_out, "skipped"))
        return ", ".join(f"{n} {word}" for n, word in parts if n) or "nothing was checked"

    def failures(self) -> str:
        """Returns the number of failures as text."""
        failed, passed = len(self.with_status(*FAILED)), len(self.with_status("pass"))
        return f"{failed} of {failed + passed} failed" if failed + passed else "nothing was checked"

    def skipped(self) -> Iterator[Tuple[str, str]]:
        """Yields the reasons why checks were skipped, if any were, the most frequent ones first."""
        reasons = Counter(record.get("reason", record["status"]) for record in self.with_status("skipped"))
        if reasons:
            yield "skipped", "; ".join(f"{n}: {text.replace(PREFIX, '')}" for text, n in reasons.most_common(3))

    def worst_by_range(self) -> Iterator[Tuple[str, Record]]:
        """Yields the record of the largest error, relative to its limit, for each range of positions."""
        best: Dict[int, Record] = {}
        for record in self.records:
            error: Record = record.get("error", {})
            if not error.get("worst_at") or not error.get("limit"):
                continue
            exponent = _range_of(error["worst_at"])
            if exponent not in best or _share_of_limit(record) > _share_of_limit(best[exponent]):
                best[exponent] = record
        for exponent in sorted(best):
            yield f"|position| < 2^{exponent}" if exponent else "worst error", best[exponent]


def _range_of(place: str) -> int:
    """Returns the range of a place such as "position 131071 pair 2", as an exponent; 0 without a position."""
    position = re.match(r"position (-?\d+)", place)
    return next((n for n in RANGES if abs(int(position[1])) < 2**n), RANGES[-1]) if position else 0


def _share_of_limit(record: Record) -> float:
    error = record["error"]
    return float(error["max"] or 0.0) / float(error["limit"])


def _decimal(value: str) -> str:
    """Returns a hexadecimal number, inf or nan in decimal digits."""
    return f"{float.fromhex(value):.9g}"


def _first_failure(failures: List[Record]) -> Optional[Record]:
    """Returns the failure that explains most: one with the most frequent mistake, and a small problem."""
    if not failures:
        return None
    mistakes = Counter(record.get("mistake") for record in failures if record.get("mistake"))
    # Problems of the suite random have been shrunk.
    return max(failures, key=lambda failure: (
        mistakes[failure.get("mistake")], bool(failure.get("problem")), failure["suite"] == "random",
        -len(failure.get("problem", "")),
    ))  # fmt: skip


def _lines(rows: Iterable[Tuple[str, str]]) -> Iterator[str]:
    """Yields rows as lines of a terminal. Problems and calls are never cut, so that they can be copied."""
    for label, text in rows:
        for number, part in enumerate(text.splitlines() or [""]):
            line = f"  {'' if number else label:<19}{part}"
            cut = len(line) > WIDEST and label not in ("problem", "repeat")
            yield line[: WIDEST - 3] + "..." if cut else line


@dataclass
class CheckResult:
    """The result of posenc.check(). It is true if the function passed, in at least one numerics mode."""

    kernel: str
    name: str  # of the function
    setting: str  # "numpy, f32"
    call: str  # that repeats the check, without its closing parenthesis
    repeats: bool = True  # the call takes a problem or a case
    runs: List[Run] = field(default_factory=list)
    traces: Dict[str, str] = field(default_factory=dict)  # ends of tracebacks, by a part of the reason

    def __bool__(self) -> bool:
        return any(run.ok for run in self.runs)

    @property
    def best(self) -> Run:
        """The run that passed, or the one with the smallest share of failures."""
        return min(self.runs, key=lambda run: (not run.ok, run.share_failed()))

    @property
    def modes(self) -> List[str]:
        """Numerics modes that the function matches."""
        return [run.numerics for run in self.runs if run.ok]

    @property
    def records(self) -> List[Record]:
        """Records of all checks of the best run, as `posenc verify --json` prints them."""
        return self.best.records

    @property
    def failures(self) -> List[Record]:
        """Records of the failed checks of the best run."""
        return self.best.with_status(*FAILED)

    @property
    def mistake(self) -> Optional[str]:
        """The known mistake that reproduces the wrong values, or None."""
        failure = _first_failure(self.failures)
        return failure.get("mistake") if failure else None

    def _rows(self) -> Iterator[Tuple[str, str]]:
        """Yields the lines below the title, each a label and a text."""
        best = self.best
        if len(self.runs) > 1:
            yield "numerics", "; ".join(f"{run.numerics}: {'match' if run.ok else run.failures()}" for run in self.runs)
        yield from best.notes.items()
        failure = _first_failure(self.failures)
        if failure:
            yield from self._explain(failure)
        else:
            yield from best.skipped()
            for label, record in best.worst_by_range():
                error = record["error"]
                yield label, f"{error['max']:.3g} {error['metric']} (limit {error['limit']:.3g}) at {error['worst_at']}"

    def _explain(self, failure: Record) -> Iterator[Tuple[str, str]]:
        """Yields the lines that explain a failed check."""
        reason = failure.get("reason", "")
        mistake = failure.get("mistake")
        if mistake:
            n = sum(record.get("mistake") == mistake for record in self.failures)
            where = "" if n == len(self.failures) else f" (in {n} of {len(self.failures)} failures)"
            yield "mistake", mistake + where
        yield "case", failure["case"]
        if failure.get("problem"):
            yield "problem", failure["problem"]
        value = WRONG_VALUE.match(reason)
        if value:
            got, want, error, metric, limit, place = value.groups()
            yield "got", f"{_decimal(got)} instead of {_decimal(want)} at {place}"
            yield "error", f"{error} {metric} (limit {limit})"
        else:
            yield "reason", reason
        trace = next((trace for text, trace in self.traces.items() if text[:60] in reason), None)
        if trace:
            yield "traceback", trace
        given = f"problem={failure['problem']!r}" if failure.get("problem") else f"case={failure['case']!r}"
        yield "repeat", f"{self.call}, {given})" if self.repeats else f"{self.call})"

    def __str__(self) -> str:
        mode = f", {self.best.numerics}" if len(self.runs) > 1 else ""
        checked = f"{self.kernel} by {self.name} ({self.setting}{mode})"
        title = f"{'PASS' if self else 'FAIL'}  {checked}: {self.best.counts()}"
        return "\n".join([title, *_lines(self._rows())])

    def explain(self, failure: Record) -> str:
        """Returns the explanation of a failed check as text."""
        return "\n".join(_lines(self._explain(failure)))

    __repr__ = __str__
