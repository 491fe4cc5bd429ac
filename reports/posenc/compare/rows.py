"""A row of a comparison: a case on a backend, its samples by process, and the verdict on them."""

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Dict, List, Optional, Tuple

from ..convert import Record
from ..runs import member, number
from ..verdict import CONFIRMING, USUAL_THRESHOLD, Pair, Verdict, judge

MOST_PROCESSES = 24


@dataclass
class Failure:
    """Why a pair is not timed: which build, what it did, and in which words."""

    who: str
    how: str
    reason: str


@dataclass
class Row:
    """A case on a backend."""

    planned: Record
    head: List[List[float]] = field(default_factory=list)  # ln(head / base), by process and round
    control: List[List[float]] = field(default_factory=list)  # ln(second copy of base / base)
    base_ns: List[float] = field(default_factory=list)
    head_ns: List[float] = field(default_factory=list)
    roofline: Optional[Record] = None
    failure: Optional[Failure] = None
    code: Dict[str, str] = field(default_factory=dict)  # digests of base and head, if both are known
    code_unknown: str = ""  # why they are not
    spent_s: float = 0.0
    confirming: int = 0
    look: int = 1
    threshold: float = USUAL_THRESHOLD
    verdict: Verdict = Verdict("unclear", "no process has timed both", 0.99, more=math.nan)

    @property
    def key(self) -> Tuple[str, str]:
        """Case and backend."""
        return self.planned["case"], self.planned["backend"]

    @property
    def in_both(self) -> bool:
        """Whether both builds have it."""
        return bool(self.planned["builds"] == "both")

    @property
    def in_memory(self) -> bool:
        """Whether a call takes more memory than any cache has."""
        return bool(member(self.planned, "footprint.name") == "DRAM")

    @property
    def same_code(self) -> bool:
        """Whether the machine code is known to be the same in both builds."""
        return "base" in self.code and self.code["base"] == self.code.get("head")

    @property
    def timed(self) -> bool:
        """Whether both builds have it, and neither failed so far."""
        return self.in_both and self.failure is None

    @property
    def flagged(self) -> bool:
        """Whether the verdict is slower or faster."""
        return self.verdict.kind in ("slower", "faster")

    def take(self, samples: Record) -> None:
        """Takes the samples of a process, or why there are none."""
        if samples["outcome"] != "timed":
            self.failure = Failure(*(str(samples[name]) for name in ("who", "outcome", "reason")))
            return
        head, control = (list(map(float, samples["ratios"][name])) for name in ("head", "control"))
        if len(head) == len(control) and len(self.head) < MOST_PROCESSES:
            self.head.append(head)
            self.control.append(control)
            self.base_ns.append(number(samples, "base.ns") or math.nan)
            self.head_ns.append(number(samples, "head.ns") or math.nan)
            self.roofline = samples.get("roofline")

    def judge(self, again: bool = False) -> None:
        """Sets the verdict on the samples so far; `again`: further processes confirmed it, or had another look."""
        if again and self.flagged:
            self.confirming = CONFIRMING
        elif again:
            self.look += 1
        pair = Pair(self.head, self.control, self.confirming, self.look, self.threshold, self.same_code)
        self.verdict = judge(pair)

    def record(self) -> Record:
        """Returns its record."""
        names = ("kernel", "dtype", "numerics", "stage", "case", "backend", "family", "footprint")
        record: Record = {"t": "pair", **{name: self.planned[name] for name in names if name in self.planned}}
        if not self.in_both:
            new = self.planned["builds"] == "head"
            reason = f"only {self.planned['builds']} provides it"
            return {**record, "verdict": "new" if new else "removed", "reason": reason}
        if self.failure:
            failure = self.failure
            return {
                **record, "verdict": "incomparable", "reason": f"{failure.who}: {failure.reason}",
                "failed": {"who": failure.who, "how": failure.how},
            }  # fmt: skip
        for name, times in (("base", self.base_ns), ("head", self.head_ns)):
            record[name] = {"ns": plain(median_of(times))}
            record[name].update({"code": self.code[name]} if name in self.code else {})
        record.update({"code_unknown": self.code_unknown} if self.code_unknown else {})
        record.update(verdict=self.verdict.kind, reason=self.verdict.reason, processes=len(self.head))
        return {**record, **self._measured()} if self.head else record

    def _measured(self) -> Record:
        verdict = self.verdict
        measured: Record = {
            "ratio": plain(verdict.ratio),
            "ci": {"level": verdict.level, "lo": plain(verdict.lo), "hi": plain(verdict.hi)},
            "process_ratios": [plain(math.exp(median_of(process))) for process in self.head],
            "noise_threshold": plain(verdict.noise_threshold), "threshold": self.threshold,
            "confirmed": verdict.confirmed, "confirming": self.confirming, "look": self.look,
            "rounds": sum(len(process) for process in self.head), "control_ratio": plain(verdict.control_ratio),
        }  # fmt: skip
        if math.isfinite(verdict.more):
            measured["more_seconds"] = plain(verdict.more * self.spent_s)
        measured["samples"] = {
            name: [list(map(plain, process)) for process in processes]
            for name, processes in (("head", self.head), ("control", self.control))
        }
        if self.roofline:
            measured["roofline"] = self.roofline
        return measured


def median_of(values: List[float]) -> float:
    """Returns the median of those that are known."""
    known = [value for value in values if not math.isnan(value)]
    return median(known) if known else math.nan


def plain(value: float) -> object:
    """Returns a number as a record holds it: ten digits, and the strings nan, inf and -inf."""
    return float(f"{value:.10g}") if math.isfinite(value) else str(value)
