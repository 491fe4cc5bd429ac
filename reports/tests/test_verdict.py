"""The rule for verdicts: cases by hand, and simulated machines with the verdicts of the former rule in C.

    judge(timings([5.0, 5.1, 4.9], [0.0, 0.1, -0.1])).kind == "slower"    medians of three processes, in percent
"""

import csv
import gzip
import math
from pathlib import Path
from typing import Dict, Iterator, List, Sequence

import pytest
import simulated
from simulated import MACHINES, ROUNDS, Draw, simulate

from posenc.results.outcome import fails_gate
from posenc.verdict import Pair, Verdict, coverage, judge, machine_moved, median_interval, student

FROZEN = Path(__file__).with_name("verdicts.csv.gz")


def timings(head: Sequence[float], control: Sequence[float], **settings: object) -> Pair:
    """Returns processes by their medians in percent, with rounds 0.1 % around them."""
    around = [0.0002 * ((r * 7) % ROUNDS - ROUNDS // 2) / 3.0 for r in range(ROUNDS)]
    return Pair(
        [[math.log1p(h / 100) + a for a in around] for h in head],
        [[math.log1p(c / 100) - a for a in around] for c in control[: len(head)]],
        **settings,  # type: ignore[arg-type]
    )


def fails(verdict: Verdict, threshold: float = 0.03) -> bool:
    """Returns whether the record of a verdict fails a gate."""
    return fails_gate({"verdict": verdict.kind, "confirmed": verdict.confirmed, "ratio": verdict.ratio,
                       "threshold": threshold})  # fmt: skip


NONE = [0.0, 0.1, -0.1, 0.1, -0.1]
UP = [5.0, 5.1, 4.9, 5.1, 5.0]
DOWN = [-value for value in UP]


def test_slower_and_faster() -> None:
    first = judge(timings(UP[:3], NONE))
    assert first.kind == "slower" and not first.confirmed and not fails(first)
    assert first.reason == "at or over the threshold of 3 %; 3/3 processes; not confirmed yet"
    assert first.ratio == pytest.approx(1.05, abs=1e-3) and first.lo < 1.05 < first.hi and first.level == 0.99
    confirmed = judge(timings(UP, NONE, confirming=2))
    assert confirmed.confirmed and fails(confirmed) and confirmed.reason.endswith("5/5 processes; confirmed")
    below = judge(timings(UP, NONE, confirming=2, threshold=0.08))
    assert below.kind == "slower" and not fails(below, 0.08) and below.reason.startswith("under the threshold of 8 %")
    faster = judge(timings(DOWN, NONE, confirming=2))
    assert faster.kind == "faster" and faster.confirmed and not fails(faster)
    same_code = judge(timings(UP, NONE, confirming=2, same_code=True))
    assert same_code.kind == "identical" and same_code.reason == "the same machine code: +5.0 % is layout or noise"


UNCLEAR = [
    (UP[:2], NONE, 0, "2 processes; 3 are the least"),
    ([9.0, 1.2, 5.0], NONE, 0, "noisy: "),
    ([5.0, 5.1, 4.9, 5.0, 0.2], NONE, 2, "not confirmed: 1 of 2 further processes said slower"),
    ([5.0, 5.1, 4.9, 5.0, 5.1, 5.0, 4.8, 5.2], [6.0, -6.0, 5.8, -6.2, 6.0, -5.9, 6.1, -6.0], 0, ""),
    (UP, [4.0, -4.5, 5.0, -5.0, 4.4], 0, ""),
    ([6.0, 6.0, 6.1, 5.9, 6.0, 6.1, 6.0, 0.5, 0.5, 0.5], [0.0, 0.1, -0.1, 0.1, 0.0, 0.0, 0.1, 1.5, 1.5, 1.5], 0,
     "processes disagree: slower than both copies in 7/10"),
    ([-4.5, 0.5, -1.5], NONE, 0, "noisy: "),
    ([], [], 0, "no process has timed both"),
]  # fmt: skip


@pytest.mark.parametrize("head, control, confirming, words", UNCLEAR)
def test_unclear(head: List[float], control: List[float], confirming: int, words: str) -> None:
    verdict = judge(timings(head, control, confirming=confirming))
    assert verdict.kind == "unclear" and words in verdict.reason and verdict.more != 0


def test_same_and_noise() -> None:
    assert judge(timings([0.2, -0.1, 0.1], NONE)).reason == "within the threshold of 3 %"
    # A copy that is always 1.5 % off doubles the noise threshold.
    assert judge(timings([4.0] * 3, [1.5] * 3)).noise_threshold == pytest.approx(0.0302, abs=1e-3)


def test_gaps_and_looks() -> None:
    pair = timings([5.0, 5.5, 4.6, 5.0], [0.1, 0.2, -0.2, 0.1])
    first, second = judge(pair), judge(Pair(pair.head, pair.control, look=2))
    assert second.level == 0.995 and second.hi - second.lo > first.hi - first.lo
    nan = float("nan")
    head = [[nan, *pair.head[0][1:]], pair.head[1], pair.head[2], [nan] * ROUNDS]
    gaps = judge(Pair(head, pair.control))
    assert gaps.processes == 3 and gaps.kind == "slower" and "3/3" in gaps.reason


def test_statistics() -> None:
    # Tables of Student's t: two-sided 99 % of 5 degrees, 99.5 % of 1 and of 30.
    assert student(0.99, 5) == pytest.approx(4.0321, abs=1e-4)
    assert student(0.995, 1) == pytest.approx(127.32, abs=1e-2)
    assert student(0.995, 30) == pytest.approx(3.0298, abs=1e-4)
    # Of five samples the whole range covers the median but for all on one side: 1 - 2/32.
    assert coverage(5, 1) == pytest.approx(0.9375) and median_interval([3, 1, 2, 5, 4], 0.99) == (1, 5)
    assert median_interval(list(range(31)), 0.99) == (7, 23)


def test_the_machine_moved() -> None:
    rows = [0.10, 0.12, 0.11, 0.0, 0.01, -0.02, 0.10]
    assert machine_moved(rows, [0.10, 0.09, 0.07, 0, 0, 0, 0]) == 3
    assert machine_moved(rows, [0.0, 0.01, -0.1, 0, 0, 0, 0]) == 0
    assert machine_moved(rows, [-0.10, -0.09, -0.07, 0, 0, 0, -0.1]) == 0
    assert machine_moved(rows[:2], [0.10, 0.09]) == 0


# ---- simulated machines ----


def simulated_verdicts() -> Iterator[Verdict]:
    """Yields the verdicts on the comparisons of the frozen file, in its order."""
    for machine in MACHINES:
        for processes in (3, 5, 10):
            for slower_pct in (0.0, -5.0, 3.0, 8.0):
                draw = Draw()
                for i in range(3):
                    pair = simulate(draw, machine, slower_pct, processes + 2)
                    for more in (0, 2):
                        n = processes + more
                        yield judge(Pair(pair.head[:n], pair.control[:n], more, 2 if i % 3 == 2 else 1))


def test_verdicts_are_those_of_the_program() -> None:
    """The file was written by the rule in C that verdict.py replaced on the same machines."""
    with gzip.open(FROZEN, "rt", encoding="utf-8") as file:
        frozen: List[Dict[str, str]] = list(csv.DictReader(file))
    assert len(frozen) == 504 and {row["kind"] for row in frozen} == {"slower", "faster", "same", "unclear"}
    for row, verdict in zip(frozen, simulated_verdicts()):
        assert row["kind"] == verdict.kind, row
        assert (row["confirmed"] == "1", row["fails"] == "1") == (verdict.confirmed, fails(verdict)), row
        assert int(row["agree"]) == verdict.agree, row
        for name in ("ratio", "lo", "hi", "noise_threshold", "control_ratio", "more"):
            assert float(row[name]) == pytest.approx(getattr(verdict, name), rel=1e-9, nan_ok=True), (name, row)


@pytest.mark.parametrize("row", simulated.frozen(), ids=lambda row: f"{row.machine}-{row.processes}-{row.slower_pct:g}")
def test_simulated_comparisons_are_as_frozen(row: simulated.Row) -> None:
    """A share of the table of docs/verdicts.md; simulated.py --all runs all of it."""
    assert simulated.share_is_frozen(row)


def test_the_frozen_table() -> None:
    """Identical code is confirmed slower or faster 3 times in 420 000; the rule by rounds does so 84 times."""
    rows = [row for row in simulated.frozen() if row.slower_pct == 0]
    assert sum(row.comparisons for row in rows) == 420_000
    flagged, confirmed = ([sum(row.counts[rule][0] for row in rows) for rule in (0, 1)],
                          [sum(sum(row.counts[rule][1:]) for row in rows) for rule in (0, 1)])  # fmt: skip
    assert (flagged, confirmed) == ([656, 79], [84, 3])
    assert sum(len(row.alarms) for row in rows) == 662
