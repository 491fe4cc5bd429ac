"""Finds the fastest backend for each step of each model, with its certainty and the command that selects it.

A step (prefill, decode) consists of all calls of a model, each as often as its layers make it. Its time is the sum of
the medians of these calls, and its interval the sum of their ends, as for one thread that makes them one after another.

answers(ranked) is what the report shows: for "BLOOM 176B, decode", avx2 takes 7 µs, clear, no need to force it.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Set, Tuple

from .. import units
from ..ranking import WIDEST, Ranked, Standing, Timing
from ..records import Record, grouped


@dataclass
class Step:
    """A step of a model, with tables in one numerics mode."""

    model: Record
    name: str
    dtype: str
    numerics: str  # of the tables; empty if it makes none
    calls: List[Record] = field(default_factory=list)  # cases of the model: each with how often it is called


@dataclass
class Cost:
    """Time of a step on one backend."""

    backend: str
    family: str  # native, libm, autovec or own
    ns: float
    lo: float  # ends of the interval, in ns
    hi: float
    control: float  # relative difference of the A/A control
    share: float  # of the roofline
    conforms: bool  # all of its kernels were checked, and passed

    @property
    def width(self) -> float:
        """The wider half of the interval, as a share."""
        return max(self.hi - self.ns, self.ns - self.lo) / self.ns

    @property
    def noisy(self) -> bool:
        """True if the time is too noisy to be ranked."""
        return self.width > WIDEST or self.control > WIDEST

    def overlaps(self, other: "Cost") -> bool:
        """Returns whether the intervals overlap, widened by the A/A control."""
        noise = 1 + max(self.control, other.control)
        return self.lo <= other.hi * noise and other.lo <= self.hi * noise


@dataclass
class Answer:
    """The fastest backend of a step."""

    step: Step
    costs: List[Cost]  # of backends that conform and ran every call, fastest first
    wrong: List[str]  # backends that ran it and are wrong
    default: str  # the backend of all its kernels by default; empty if there are several

    @property
    def best(self) -> Optional[Cost]:
        """The lowest cost, even if it is noisy; None if there is none."""
        return self.costs[0] if self.costs else None

    @property
    def tied(self) -> List[Cost]:
        """The other backends whose intervals overlap that of the fastest."""
        return [cost for cost in self.costs[1:] if cost.overlaps(self.costs[0])]

    @property
    def next(self) -> Optional[Cost]:
        """The fastest of those that are slower beyond doubt."""
        return next((cost for cost in self.costs[1:] if cost not in self.tied), None)

    @property
    def certainty(self) -> str:
        """Certainty of the answer: clear, tied, noisy or none."""
        if not self.best:
            return "none"
        if self.best.noisy or any(cost.noisy and cost.lo < self.best.lo for cost in self.costs):
            return "noisy"
        return "tied" if self.tied else "clear"

    def speedup(self, family: str) -> Optional[float]:
        """Returns how many times as fast as the best of a family (libm, autovec) it is."""
        others = [cost.ns for cost in self.costs if cost.family == family]
        return units.printed_time(min(others)) / units.printed_time(self.best.ns) if self.best and others else None

    @property
    def forced(self) -> str:
        """The backend to force; empty if the default is to stay, as it does unless another is better beyond doubt."""
        if not self.best:
            return ""
        as_fast = [cost.backend for cost in (self.best, *self.tied)]
        default_stays = self.default not in self.wrong and (self.certainty == "noisy" or self.default in as_fast)
        return "" if default_stays else self.best.backend


class Advice:
    """The answers of a machine in short: which backend is the default, how sure that is, and what to force."""

    def __init__(self, timed: Sequence[Answer]) -> None:
        self.steps = len(timed)
        self.backend = _only({answer.default for answer in timed})  # the default of all steps; empty if they differ
        self.counts = Counter(answer.certainty for answer in timed)  # steps by how sure it is
        self.others = Counter(answer.forced for answer in timed if answer.forced)  # steps by the backend to force
        # The backend to force for all steps; empty if there is none.
        self.forced = _only(set(self.others)) if sum(self.others.values()) == self.steps else ""


def _only(names: Set[str]) -> str:
    """Returns the one name of a set; empty if there are several."""
    return next(iter(names)) if len(names) == 1 else ""


def steps(model: Record, ranked: Ranked) -> List[Step]:
    """Returns the steps of a model that were timed, decoding last. A call without tables belongs to each mode."""
    found: Dict[Tuple[str, str, str], Step] = {}  # by name, dtype and numerics
    timed = [(call, ranked.cases[call["case"]].rows[0].record) for call in model["cases"]
             if call.get("step") and call["case"] in ranked.cases]  # fmt: skip
    for call, record in timed:
        if record["numerics"] != "given":
            key = (call["step"], record["dtype"], record["numerics"])
            found.setdefault(key, Step(model, *key)).calls.append(call)
    for call, record in timed:
        if record["numerics"] == "given":
            modes = [step for step in found.values() if (step.name, step.dtype) == (call["step"], record["dtype"])]
            key = (call["step"], record["dtype"], "")
            for step in modes or [found.setdefault(key, Step(model, *key))]:
                step.calls.append(call)
    return sorted(found.values(), key=lambda step: step.name.endswith("decode"))


def cost_of(step: Step, ranked: Ranked, backend: str) -> Optional[Cost]:
    """Returns the cost of a step with one backend; None unless it ran every call."""
    timed: List[Tuple[int, Timing]] = []
    for call in step.calls:
        row = ranked.cases[call["case"]].of(backend)
        if not row or row.standing == Standing.NOT_TIMED or row.rejected or not call.get("calls"):
            return None
        timed.append((call["calls"], row))
    ns = sum(count * units.printed_time(row.median) for count, row in timed)  # the sum of the times as they are printed
    return Cost(
        backend, family=timed[0][1].record["family"], ns=ns,
        lo=sum(count * (row.lo or row.median) for count, row in timed),
        hi=sum(count * (row.hi if row.width < math.inf else math.inf) for count, row in timed),
        control=sum(count * row.median * row.control for count, row in timed) / ns,
        share=sum(count * row.median * (row.share or 0.0) for count, row in timed) / ns,
        conforms=all(ranked.conforms(row.kernel, backend) for _, row in timed),
    )  # fmt: skip


def answer_for(step: Step, ranked: Ranked) -> Answer:
    """Returns the answer for a step."""
    rows = [row for call in step.calls for row in ranked.cases[call["case"]].rows]
    wrong = dict.fromkeys(row.backend for row in rows if row.standing == Standing.WRONG)
    names = [name for name in dict.fromkeys(row.backend for row in rows) if name not in wrong]
    costs = [cost for cost in (cost_of(step, ranked, name) for name in names) if cost]
    default = _only({ranked.default(call["kernel"]) for call in step.calls})
    return Answer(step, sorted(costs, key=lambda cost: cost.ns), list(wrong), default)


def answers(ranked: Ranked) -> List[Answer]:
    """Returns the answers for each model and step, in the numerics mode that the model was trained with."""
    found = []
    for model in ranked.machine.of("model"):
        for modes in grouped(steps(model, ranked), lambda step: step.name).values():
            trained = [step for step in modes if step.numerics in (model.get("trained_numerics", ""), "")]
            found.append(answer_for((trained or modes)[0], ranked))
    return found
