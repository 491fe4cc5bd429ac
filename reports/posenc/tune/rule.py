"""Chooses the backend of a kernel for one dtype and memory level.

The narrowest of the backends within 2 % of the fastest is chosen, native backends before plain loops: their bits are
those of the other native backends. Up to 3 % count as equal if the interval of the ratio does not exclude 1.
"""

from dataclasses import dataclass, field
from functools import cached_property, reduce
from statistics import median
from typing import Dict, Iterable, List, Optional, Tuple

from ..records import Record
from ..verdict import median_interval

TIE, PERHAPS = 1.02, 1.03
SLOWER = 1.05  # than the fastest: what a choice may be
LEVEL = 0.99  # of intervals
PLAIN = ("autovec", "libm")  # families of plain loops


@dataclass(frozen=True)
class Candidate:
    """A backend and its time of a call in each round, in nanoseconds."""

    name: str
    plain: bool
    width: int
    samples: List[float]

    @property
    def ns(self) -> float:
        """Median time of a call."""
        return median(self.samples)

    def ratio(self, other: "Candidate") -> float:
        """Returns how many times as long it takes as another: the median over rounds."""
        return median(self._ratios(other))

    def interval(self, other: "Candidate") -> Tuple[float, float]:
        """Returns the interval of that ratio."""
        return median_interval(self._ratios(other), LEVEL)

    def equals(self, fastest: "Candidate") -> bool:
        """Returns whether it counts as equal to the fastest."""
        ratio = self.ratio(fastest)
        return ratio <= TIE or (ratio <= PERHAPS and self.interval(fastest)[0] <= 1.0)

    def _ratios(self, other: "Candidate") -> List[float]:
        return [own / theirs for own, theirs in zip(self.samples, other.samples)]


@dataclass
class Choice:
    """A kernel, a dtype and a memory level, with the backends that came near the fastest, in the library's order.

    `most` is up to how many bytes a call counts as one of this level; None for the last level. `in_force` is the
    backend that the selection in force chooses there, such as one by a tuning file.
    """

    kernel: str
    dtype: str
    level: str
    most: Optional[int]
    in_force: str = ""
    candidates: List[Candidate] = field(default_factory=list)
    rejected: List[Tuple[str, str]] = field(default_factory=list)  # backends and reasons

    def __str__(self) -> str:
        return f"{self.kernel}, {self.dtype}, {self.level}"

    @cached_property
    def chosen(self) -> Candidate:
        """The backend to use. There is one if there are candidates."""
        near = [one for one in self.candidates if one.equals(self._fastest)]
        return min(reversed(near), key=lambda one: (one.plain, one.width))

    @property
    def tie(self) -> bool:
        """True if the backend to use is not the fastest, but as good, and narrower."""
        return self.chosen is not self._fastest

    @cached_property
    def _fastest(self) -> Candidate:
        return reduce(lambda best, one: one if one.ratio(best) < 1.0 else best, self.candidates)

    def slowness(self) -> Tuple[float, float]:
        """Returns how many times as long as the fastest the backend in force takes, and at least so.

        Both are infinite if it was rejected after a few calls.
        """
        least = min(one.ratio(self.chosen) for one in self.candidates)
        for one in self.candidates:
            if one.name == self.in_force:
                return one.ratio(self.chosen) / least, one.interval(self.chosen)[0] / least
        return float("inf"), float("inf")


def choices_of(records: Iterable[Record]) -> List[Choice]:
    """Returns the places of records of posenc bench --tune, in their order."""
    widths: Dict[str, int] = {}
    choices: Dict[str, Choice] = {}
    for record in records:
        if record["t"] == "backend":
            widths[record["id"]] = record.get("vector_width") or 1
        if record["t"] != "bench":
            continue
        name, footprint = record["backend"], record["footprint"]
        choice = Choice(record["kernel"], record["dtype"], footprint["name"], footprint.get("most"))
        choice = choices.setdefault(record["case"], choice)
        if record.get("chosen"):
            choice.in_force = name
        if record.get("samples"):
            plain = record["family"] in PLAIN
            choice.candidates.append(Candidate(name, plain, widths.get(name, 1), record["samples"]))
        else:
            choice.rejected.append((name, record.get("rejected") or "not timed"))
    return list(choices.values())
