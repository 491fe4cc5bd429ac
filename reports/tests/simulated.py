"""Verdicts on simulated machines, and their frozen table, which docs/verdicts.md shows.

    python3 reports/tests/simulated.py          a share of it, in seconds
    python3 reports/tests/simulated.py --all    483 063 comparisons, on all CPUs: an hour or more on two

Each prints the table, and fails if a count is not the frozen one. test_verdict.py runs the share. For each machine the
table says how often two rules call identical code slower, and how often they find code that is slower. One rule is that
of posenc compare, which takes processes for samples. The other takes all rounds for independent samples, as a first
attempt would. Draws and counts are those of the program in C that posenc/verdict.py replaced.
"""

import math
import sys
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path
from statistics import median
from typing import Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from posenc.verdict import CONFIRMING, Pair, judge, median_interval
from programs import read_json

ROUNDS = 31
FROZEN = Path(__file__).with_name("simulated.json.gz")
SHARE = 3  # comparisons of each row in a test, and one alarm in so many
HEAD, BASE, CONTROL = range(3)  # what a round times; the control is a second copy of base


class Machine(NamedTuple):
    """Disturbances of a machine, in percent of a time, and how often they happen."""

    name: str
    process: float  # standard deviation of a copy over processes
    sample: float  # standard deviation of one sample
    tail_share: float  # share of samples that are five times as far off
    drift: float  # of the machine from the first round of a process to the last
    burst: float = 0.0  # of a neighbour that comes and goes
    burst_share: float = 0.0  # share of samples in a burst
    odd: float = 0.0  # how far a copy is off in an odd process
    odd_share: float = 0.0  # share of odd processes


MACHINES = [
    Machine("quiet, in cache", 0.2, 0.8, 0.02, 0.0),
    Machine("drifting clock", 0.2, 0.8, 0.02, 8.0),
    Machine("noisy neighbour, in cache", 0.3, 1.0, 0.05, 2.0, burst=15.0, burst_share=0.3),
    Machine("memory", 0.8, 3.0, 0.05, 2.0),
    Machine("memory, noisy neighbour", 1.2, 4.0, 0.1, 3.0, burst=25.0, burst_share=0.3),
    Machine("processes differ by 2 %", 2.0, 0.8, 0.02, 1.0),
    Machine("one process in ten is off by 15 %", 0.3, 0.8, 0.02, 1.0, odd=15.0, odd_share=0.1),
]


class Draw:
    """Uniform numbers of splitmix64 (Steele, Lea and Flood 2014), and normal ones of these by Box and Muller."""

    def __init__(self, state: int = 1) -> None:
        self.state = state

    def uniform(self) -> float:
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = ((self.state ^ self.state >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        return (((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0

    def normal(self) -> float:
        radius = math.sqrt(-2.0 * math.log(self.uniform()))
        return radius * math.cos(2.0 * math.acos(-1.0) * self.uniform())


def simulate(draw: Draw, machine: Machine, slower_pct: float, processes: int) -> Pair:
    """Returns made-up timings of a head that is slower than base by so much."""
    heads, controls = [], []
    for _ in range(processes):
        offsets = [_offset(draw, machine) for _ in (HEAD, BASE, CONTROL)]
        in_burst, head, control = False, [], []
        for number in range(ROUNDS):
            times = []
            for offset in offsets:
                in_burst = _is_in_burst(draw, machine, in_burst)
                noise = machine.sample * draw.normal()
                noise *= 5.0 if draw.uniform() < machine.tail_share else 1.0
                burst = machine.burst * (0.5 + draw.uniform()) if in_burst else 0.0
                times.append(offset + machine.drift * number / ROUNDS + noise + burst)
            head.append((times[HEAD] - times[BASE] + slower_pct) / 100.0)
            control.append((times[CONTROL] - times[BASE]) / 100.0)
        heads.append(head)
        controls.append(control)
    return Pair(heads, controls)


def _offset(draw: Draw, machine: Machine) -> float:
    """Returns how far a copy is off for a whole process, in percent."""
    usual = machine.process * draw.normal()
    return usual + (machine.odd if draw.uniform() < machine.odd_share else 0.0)


def _is_in_burst(draw: Draw, machine: Machine, before: bool) -> bool:
    """Returns whether the next sample falls into a burst, which ends with a probability of 0.15."""
    if machine.burst_share == 0:
        return False
    return draw.uniform() > 0.15 if before else draw.uniform() < 0.15 * machine.burst_share / (1 - machine.burst_share)


# ---- the two rules. They return 1 for slower, -1 for faster, 0 for neither ----


def by_processes(pair: Pair) -> int:
    """Applies the rule of posenc compare."""
    return {"slower": 1, "faster": -1}.get(judge(pair).kind, 0)


def by_rounds(pair: Pair) -> int:
    """Applies the rule of a first attempt: all rounds are one sample, and processes agree in sign."""
    medians = [median(process) for process in pair.head]
    above, below = sum(y > 0 for y in medians), sum(y < 0 for y in medians)
    controls = [value for process in pair.control for value in process]
    largest = max([abs(median(process)) for process in pair.control] + [2.0 * abs(median(controls)), 0.01])
    low, high = median_interval([value for process in pair.head for value in process], 0.99)
    limit, n = math.log1p(largest), len(pair.head)
    most = n if n <= 3 else 0.8 * n
    return 1 if low > limit and above >= most else -1 if high < -limit and below >= most else 0


Rule = Callable[[Pair], int]
RULES: Tuple[Rule, ...] = (by_rounds, by_processes)


def verdicts_of(rule: Rule, pair: Pair, processes: int) -> Tuple[int, int]:
    """Returns the verdict of a rule on the first processes, and the one after CONFIRMING more; 0 without a first."""
    first = rule(Pair(pair.head[:processes], pair.control[:processes]))
    return first, rule(Pair(pair.head, pair.control, CONFIRMING)) if first else 0


# ---- the table ----


@dataclass
class Row:
    """Comparisons on a machine, of a head that is slower by so much."""

    machine: int  # index in MACHINES
    processes: int
    slower_pct: float
    comparisons: int
    counts: List[List[int]]  # by rule: flagged at first; slower, faster when confirmed
    first: List[List[int]]  # the same of the first SHARE comparisons
    alarms: List[List[int]] = field(default_factory=list)  # of identical code: state of the draws, all verdicts

    def run(self, comparisons: int) -> List[List[int]]:
        """Returns the counts of so many comparisons."""
        draw, counts = Draw(), [[0, 0, 0] for _ in RULES]
        for _ in range(comparisons):
            pair = simulate(draw, MACHINES[self.machine], self.slower_pct, self.processes + CONFIRMING)
            for count, rule in zip(counts, RULES):
                first, confirmed = verdicts_of(rule, pair, self.processes)
                count[0] += first != 0
                count[1] += confirmed > 0
                count[2] += confirmed < 0
        return counts

    def rerun(self, alarm: Sequence[int]) -> List[int]:
        """Returns the verdicts on a comparison that one of the rules called slower or faster."""
        pair = simulate(Draw(alarm[0]), MACHINES[self.machine], self.slower_pct, self.processes + CONFIRMING)
        return [verdict for rule in RULES for verdict in verdicts_of(rule, pair, self.processes)]


def frozen() -> List[Row]:
    """Returns the frozen table."""
    return [Row(**row) for row in read_json(FROZEN)]


def all_is_frozen(row: Row) -> bool:
    """Returns whether all comparisons of a row give the frozen counts."""
    return row.run(row.comparisons) == row.counts


def share_is_frozen(row: Row) -> bool:
    """Returns whether a share of the comparisons of a row gives the frozen counts."""
    return row.run(SHARE) == row.first and all(row.rerun(alarm) == alarm[1:] for alarm in row.alarms[::SHARE])


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yields the table of docs/verdicts.md."""
    yield (
        "| machine | processes | false alarms, %: rounds | processes | 5 % found, %: rounds | processes "
        "| 10 % found, %: rounds | processes |"
    )
    yield "|---|" + "---:|" * 7
    found: Dict[Tuple[int, int], List[str]] = {}
    for row in rows:
        cells = found.setdefault((row.machine, row.processes), [])
        for _, slower, faster in row.counts if row.slower_pct != 3 else ():
            share = 100 * (slower + faster if row.slower_pct == 0 else slower) / row.comparisons
            cells.append(f"{share:.3f}" if row.slower_pct == 0 and share else f"{share:.0f}")
    for (machine, processes), cells in found.items():
        yield f"| {MACHINES[machine].name} | {processes} | {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> int:
    """Runs a share of the table or all of it."""
    rows = frozen()
    print("\n".join(_lines(rows)))
    with Pool() as pool:
        equal = pool.map(all_is_frozen if "--all" in arguments else share_is_frozen, rows, chunksize=1)
    identical = sum(row.comparisons for row in rows if row.slower_pct == 0)
    print(f"{sum(equal)} of {len(rows)} rows are as frozen; {identical} comparisons are of identical code")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
