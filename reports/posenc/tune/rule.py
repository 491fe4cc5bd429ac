"""The rule of a tuning: which backend a kernel uses in one memory level.

Of the backends within 2 % of the fastest the narrowest is chosen, native backends before plain loops: their bits are
those of the other native backends. Up to 3 % count as equal if the interval of the ratio does not exclude 1.
"""

from dataclasses import dataclass, field
from statistics import median
from typing import Dict, Iterable, List, Optional, Tuple

from ..convert import Record
from ..runs import member
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

    def _ratios(self, other: "Candidate") -> List[float]:
        return [own / theirs for own, theirs in zip(self.samples, other.samples)]


@dataclass
class Place:
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


@dataclass(frozen=True)
class Choice:
    """The backend to use in a place. `tie`: it is not the fastest, but as good, and narrower."""

    place: Place
    chosen: Candidate
    tie: bool

    @property
    def fastest(self) -> Candidate:
        """The candidate with the least time."""
        return min(self.place.candidates, key=lambda one: one.ns)

    @property
    def rival(self) -> Optional[Candidate]:
        """The fastest of the others; None if no other came near."""
        others = [one for one in self.place.candidates if one is not self.chosen]
        return min(others, key=lambda one: one.ns) if others else None

    def slowness(self) -> Tuple[float, float]:
        """Returns how many times as long as the fastest the backend in force takes, and at least so.

        Both are infinite if it was rejected after a few calls.
        """
        least = min(one.ratio(self.chosen) for one in self.place.candidates)
        for one in self.place.candidates:
            if one.name == self.place.in_force:
                return one.ratio(self.chosen) / least, one.interval(self.chosen)[0] / least
        return float("inf"), float("inf")


def choose(place: Place) -> Choice:
    """Returns the choice of a place, which has candidates."""
    candidates = place.candidates
    fastest = 0
    for at, one in enumerate(candidates):
        if one.ratio(candidates[fastest]) < 1.0:
            fastest = at
    chosen = fastest
    for at, one in enumerate(candidates):
        ratio = one.ratio(candidates[fastest])
        equal = ratio <= TIE or (ratio <= PERHAPS and one.interval(candidates[fastest])[0] <= 1.0)
        mine, best = ((each.plain, each.width) for each in (one, candidates[chosen]))
        if equal and (mine < best or (mine == best and at > chosen and at != fastest)):
            chosen = at
    return Choice(place, candidates[chosen], chosen != fastest)


def places_of(records: Iterable[Record]) -> List[Place]:
    """Returns the places of records of posenc bench --tune, in their order."""
    widths: Dict[str, int] = {}
    places: Dict[str, Place] = {}
    for record in records:
        if record["t"] == "backend":
            widths[str(record.get("id"))] = int(record.get("vector_width") or 1)
        if record["t"] != "bench":
            continue
        level, most = member(record, "footprint.name"), member(record, "footprint.most")
        place = Place(str(record["kernel"]), str(record["dtype"]), str(level), most)
        place = places.setdefault(str(record["case"]), place)
        name = str(record["backend"])
        if record.get("chosen"):
            place.in_force = name
        if record.get("samples"):
            plain = record.get("family") in PLAIN
            samples = [float(one) for one in record["samples"]]
            place.candidates.append(Candidate(name, plain, widths.get(name, 1), samples))
        else:
            place.rejected.append((name, str(record.get("rejected") or "not timed")))
    return list(places.values())
