"""The answer: for each model and step the fastest backend, how sure that is, and what to type.

A step (prefill, decode) of a model is all of its calls, each as often as its layers make it. Its time is the sum
of the medians of these calls, its interval the sum of their ends: what one thread needs that makes them one
after the other.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple

from .. import units
from ..convert import Record
from ..ranking import WIDEST, Ranked, Standing, Timing


@dataclass
class Call:
    """Calls of one kernel in a step."""

    kernel: str
    case: str
    label: str
    count: int


@dataclass
class Step:
    """A step of a model, with tables in one numerics mode."""

    model: Record
    name: str
    dtype: str
    numerics: str  # of the tables; empty if it makes none
    calls: List[Call] = field(default_factory=list)


@dataclass
class Cost:
    """Time of a step on one backend."""

    backend: str
    ns: float
    lo: float
    hi: float
    control: float
    share: float  # of the roofline
    conforms: Optional[bool]

    @property
    def width(self) -> float:
        """The wider half of the interval, as a share."""
        return max(self.hi - self.ns, self.ns - self.lo) / self.ns

    @property
    def noisy(self) -> bool:
        """Whether it decides nothing."""
        return self.width > WIDEST or self.control > WIDEST

    def meets(self, other: "Cost") -> bool:
        """Whether the two cannot be told apart."""
        noise = 1 + max(self.control, other.control)
        return self.lo <= other.hi * noise and other.lo <= self.hi * noise


@dataclass
class Answer:
    """The fastest backend of a step."""

    step: Step
    costs: List[Cost]  # of backends that conform and ran every call, fastest first
    wrong: List[str]  # backends that ran it and are wrong
    default: str  # the backend of all its kernels by default; empty if there are several
    certainty: str = ""  # clear, tied, noisy, none

    @property
    def best(self) -> Optional[Cost]:
        """The cost of the fastest: of what was measured, if it is noisy."""
        return self.costs[0] if self.costs else None

    def of(self, backend: str) -> Optional[Cost]:
        """Returns the cost with one backend."""
        return next((cost for cost in self.costs if cost.backend == backend), None)

    @property
    def tied(self) -> List[Cost]:
        """The others that cannot be told from the fastest."""
        return [cost for cost in self.costs[1:] if self.best and cost.meets(self.best)]

    @property
    def next(self) -> Optional[Cost]:
        """The fastest of those that are slower beyond doubt."""
        return next((cost for cost in self.costs[1:] if cost not in self.tied), None)

    def speedup(self, family: str, names: Dict[str, str]) -> Optional[float]:
        """Returns how many times as fast as the best of a family (libm, autovec) it is."""
        others = [cost.ns for cost in self.costs if names.get(cost.backend) == family]
        return units.printed_time(min(others)) / units.printed_time(self.best.ns) if self.best and others else None

    @property
    def default_is_best(self) -> bool:
        """Whether the default is the fastest, or cannot be told from it."""
        return bool(self.best) and (self.default in [cost.backend for cost in [*self.costs[:1], *self.tied]])

    @property
    def forced(self) -> str:
        """The backend to force; empty if the default is to stay, as it does unless another is better beyond doubt."""
        if not self.best or (self.default not in self.wrong and (self.certainty == "noisy" or self.default_is_best)):
            return ""
        return self.best.backend


@dataclass
class Advice:
    """The answers of a machine in short."""

    backend: str
    others: Dict[str, int]  # backends to force, and for how many steps
    counts: Dict[str, int]  # how sure it is, and for how many steps
    steps: int

    @property
    def forced(self) -> str:
        """The backend to force for all steps; empty if there is none."""
        return next(iter(self.others)) if list(self.others.values()) == [self.steps] else ""


def advice(found: Sequence[Answer]) -> Optional[Advice]:
    """Returns the answers in short; None if no step was timed."""
    timed = [one for one in found if one.best]
    if not timed:
        return None
    usual = {one.default for one in timed}
    others = Counter(one.forced for one in timed if one.forced)
    counts = Counter(one.certainty for one in timed)
    return Advice(usual.pop() if len(usual) == 1 else "", dict(others), dict(counts), len(timed))


def steps(model: Record, ranked: Ranked) -> List[Step]:
    """Returns the steps of a model that were timed, decoding last. A call without tables belongs to each mode."""
    found: Dict[Tuple[str, str, str], Step] = {}
    plain: List[Tuple[Tuple[str, str], Call]] = []
    for one in model["cases"]:
        ranking = ranked.cases.get(one["case"])
        if not ranking or not one.get("step"):
            continue
        record = ranking.rows[0].record
        call = Call(one["kernel"], one["case"], one.get("label", ""), int(one.get("calls", 0)))
        if record["numerics"] == "given":
            plain.append(((one["step"], record["dtype"]), call))
        else:
            key = (one["step"], record["dtype"], record["numerics"])
            found.setdefault(key, Step(model, *key)).calls.append(call)
    for (name, dtype), call in plain:
        hosts = [step for step in found.values() if (step.name, step.dtype) == (name, dtype)]
        if not hosts:
            hosts = [found.setdefault((name, dtype, ""), Step(model, name, dtype, ""))]
        for step in hosts:
            step.calls.append(call)
    return sorted(found.values(), key=lambda step: step.name.endswith("decode"))


def cost_of(step: Step, ranked: Ranked, backend: str) -> Optional[Cost]:
    """Returns the cost of a step with one backend; None unless it ran every call."""
    timed: List[Tuple[int, Timing]] = []
    for call in step.calls:
        row = ranked.cases[call.case].of(backend)
        if not row or row.standing == Standing.NOT_TIMED or row.rejected or not call.count:
            return None
        timed.append((call.count, row))
    ns = sum(count * units.printed_time(row.median) for count, row in timed)  # as who adds up what is printed
    known = [ranked.conforms(row.kernel, backend) for _, row in timed]
    return Cost(
        backend,
        ns,
        sum(count * (row.lo or row.median) for count, row in timed),
        sum(count * (row.hi if row.width < math.inf else math.inf) for count, row in timed),
        sum(count * row.median * row.control for count, row in timed) / ns,
        sum(count * row.median * (row.share or 0.0) for count, row in timed) / ns,
        False if False in known else None if None in known else True,
    )


def _is_wrong(step: Step, ranked: Ranked, backend: str) -> bool:
    rows = [ranked.cases[call.case].of(backend) for call in step.calls]
    return any(row is not None and row.standing == Standing.WRONG for row in rows)


def answer(step: Step, ranked: Ranked) -> Answer:
    """Returns the answer for a step."""
    names = list(dict.fromkeys(row.backend for call in step.calls for row in ranked.cases[call.case].rows))
    wrong = [name for name in names if _is_wrong(step, ranked, name)]
    costs = [cost for cost in (cost_of(step, ranked, name) for name in names if name not in wrong) if cost]
    costs.sort(key=lambda cost: cost.ns)
    usual = {ranked.default(call.kernel) for call in step.calls}
    found = Answer(step, costs, wrong, usual.pop() if len(usual) == 1 else "")
    if not found.best:
        found.certainty = "none"
    elif found.best.noisy or any(cost.noisy and cost.lo < found.best.lo for cost in costs):
        found.certainty = "noisy"
    else:
        found.certainty = "tied" if found.tied else "clear"
    return found


def answers(ranked: Ranked) -> List[Answer]:
    """Returns the answers for each model and step, in the numerics mode that the model was trained with."""
    found = []
    for model in ranked.machine.of("model"):
        of_model = steps(model, ranked)
        trained = model.get("trained_numerics", "")
        for name in dict.fromkeys(step.name for step in of_model):
            modes = [step for step in of_model if step.name == name]
            usual = [step for step in modes if step.numerics in (trained, "")] or modes
            found.append(answer(usual[0], ranked))
    return found
