"""posenc tune: measures which backend to use for which call, and writes a tuning file that the library reads.

A line of the file names a kernel, a backend, a dtype, and the most bytes of tensors for which it holds:

    rope_half          avx2         f32  1048576    # L2: 12.3 us; avx512 takes 1.01 times as long [1.00, 1.02], a tie

The narrowest of the backends within 2 % of the fastest is chosen, native backends before plain loops: their bits are
those of the other native backends. Up to 3 % count as equal if the interval of the ratio does not exclude 1.
"""

import argparse
import math
import os
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from statistics import median
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ..command import CommandError, Parser, check_output, file_path, positive, words_of, write_file
from ..engine import Engine
from ..records import Record, member
from ..terminal import console, table
from ..verdict import median_interval

ABOUT = """Times the backends of the library for each kernel, dtype and memory level, in
about a minute, and writes a tuning file that names the backend to use."""
EPILOG = """The library reads the file that POSENC_TUNING names, or posenc_load_tuning().
The program also reads the default one. Of the backends within 2 % of the fastest
the narrowest is chosen, native backends before plain loops. Run it where nothing
else runs.

Exit codes: 1 an output is wrong · 3 (--check) a choice is known to be more than
5 % slower than another, twice · 5 (--check) the file is of another CPU or build ·
77 nothing can be timed here

Examples
  posenc tune
  posenc tune --kernel rope_half --dtype bf16 mine.tune
  posenc tune --check
"""
HEAD = "posenc.tune/1"  # first line of a tuning file
SECONDS = 50.0
TIE, MAYBE_TIE = 1.02, 1.03  # times as long as the fastest: a tie; a tie if the interval includes 1
SLOWER = 1.05  # times as long as the fastest: a choice is too slow
LEVEL = 0.99  # of intervals
PLAIN = ("autovec", "libm")  # families of plain loops


def _parser() -> Parser:
    parser = Parser("posenc tune", ABOUT, EPILOG)
    add = parser.add_argument
    add("file", metavar="FILE", nargs="?", type=file_path, help="tuning file (default: ~/.config/posenc/tuning)")
    add("--check", action="store_true", help="write nothing: check that the choices of FILE still hold")
    add("--kernel", metavar="NAME", action="append", default=[], help="only these kernels (posenc list kernels)")
    add("--dtype", metavar="NAME", action="append", default=[], help="only these element types: f32, f16 or bf16")
    add("--time-limit", metavar="SECONDS", type=positive(86400), default=SECONDS,
        help=f"time of all measurements, about (default: {SECONDS:.0f})")  # fmt: skip
    add("--seed", metavar="N", type=int, default=0, help="seed for the order of rounds (default: 0)")
    add("--force", action="store_true", help="overwrite any file at FILE")
    return parser


def default_path() -> Path:
    """Returns the path of the user's tuning file, which the program reads."""
    config, home = os.environ.get("XDG_CONFIG_HOME"), os.environ.get("HOME")
    if not config and not home:
        raise CommandError("there is no folder for a tuning file. Set XDG_CONFIG_HOME or HOME, or name a FILE.")
    return (Path(config) if config else Path(str(home), ".config")) / "posenc" / "tuning"


# ---- the choice of a backend ----


@dataclass(frozen=True)
class Candidate:
    """A backend that may be chosen."""

    name: str
    is_plain: bool  # of a family of plain loops
    width: int  # of its vectors
    samples: List[float]  # time of a call in each round, in nanoseconds

    @property
    def ns(self) -> float:
        """Median time of a call in nanoseconds."""
        return median(self.samples)

    def ratio(self, other: "Candidate") -> float:
        """Returns how many times as long a call takes as that of another: the median over rounds."""
        return median(self._ratios(other))

    def interval(self, other: "Candidate") -> Tuple[float, float]:
        """Returns the interval of that ratio."""
        return median_interval(self._ratios(other), LEVEL)

    def equals(self, fastest: "Candidate") -> bool:
        """Returns whether it counts as equal to the fastest."""
        ratio = self.ratio(fastest)
        return ratio <= TIE or (ratio <= MAYBE_TIE and self.interval(fastest)[0] <= 1.0)

    def _ratios(self, other: "Candidate") -> List[float]:
        return [own / theirs for own, theirs in zip(self.samples, other.samples)]


@dataclass
class Choice:
    """A kernel, a dtype and a memory level, with the backends that came near the fastest, in the library's order."""

    kernel: str
    dtype: str
    level: str  # L1, L2, L3 or DRAM
    most: Optional[int]  # bytes up to which a call is of this level; None for the last level
    in_force: str = ""  # backend that the library now chooses, by a tuning file for example
    candidates: List[Candidate] = field(default_factory=list)
    rejected: List[Tuple[str, str]] = field(default_factory=list)  # backends and reasons

    def __str__(self) -> str:
        return f"{self.kernel}, {self.dtype}, {self.level}"

    @cached_property
    def chosen(self) -> Candidate:
        """The backend to use. There is one if there are candidates."""
        near = [candidate for candidate in self.candidates if candidate.equals(self._fastest)]
        return min(reversed(near), key=lambda candidate: (candidate.is_plain, candidate.width))

    @property
    def is_tie(self) -> bool:
        """True if the backend to use is not the fastest, but as good, and narrower."""
        return self.chosen is not self._fastest

    @cached_property
    def _fastest(self) -> Candidate:
        return reduce(lambda best, one: one if one.ratio(best) < 1.0 else best, self.candidates)

    def slowness(self) -> Tuple[float, float]:
        """Returns how many times as long as the fastest the backend in force takes, and the lower end of the interval.

        Both are infinite if it was rejected after a few calls.
        """
        least = min(candidate.ratio(self.chosen) for candidate in self.candidates)
        for candidate in self.candidates:
            if candidate.name == self.in_force:
                return candidate.ratio(self.chosen) / least, candidate.interval(self.chosen)[0] / least
        return float("inf"), float("inf")


def choices_of(records: Iterable[Record]) -> List[Choice]:
    """Returns the choices that records of posenc bench --tune leave, in their order."""
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
            is_plain = record["family"] in PLAIN
            choice.candidates.append(Candidate(name, is_plain, widths.get(name, 1), record["samples"]))
        else:
            choice.rejected.append((name, record.get("rejected") or "not timed"))
    return list(choices.values())


# ---- measurement ----


class Benchmark(NamedTuple):
    """A benchmark that ran: its machine, its choices, and its exit code."""

    env: Record
    choices: List[Choice]
    status: int

    @property
    def ended(self) -> bool:
        """True if the benchmark ended early. Its exit code is then that of the command."""
        return self.status not in (0, 1)

    def slow(self) -> Dict[str, Choice]:
        """Returns the choices for which the backend in force is too slow, by their names."""
        return {str(choice): choice for choice in self.choices if choice.slowness()[0] > SLOWER}


def _bench(args: argparse.Namespace, tuning: Optional[Path] = None) -> Benchmark:
    """Times kernels and dtypes, or all if none is named. Reports wrong outputs, and kernels without a timing."""
    options = ["--tune", "--out", "jsonl", "--time-limit", str(args.time_limit), "--seed", str(args.seed)]
    options += [*words_of("kernel", args.kernel), *words_of("dtype", args.dtype)]
    options += ["--tuning", str(tuning)] if tuning else []
    records, status = Engine().measurements("bench", *options)
    choices = choices_of(records)
    wrong = [f"{choice.kernel}, {choice.dtype}: {name} is rejected: {reason}" for choice in choices
             for name, reason in choice.rejected if reason.startswith(("wrong: ", "crashed: "))]  # fmt: skip
    empty = [f"{choice}: no backend could be timed" for choice in choices if not choice.candidates]
    for text in dict.fromkeys(wrong + empty):
        _report(text)
    timed = [choice for choice in choices if choice.candidates]
    if status in (0, 1) and not timed:
        raise CommandError("nothing could be timed here.", status or 2)
    return Benchmark(next((record for record in records if record["t"] == "env"), {}), timed, status)


def _report(text: str) -> None:
    print(f"posenc tune: {text}", file=sys.stderr)


# ---- writing a tuning file ----


def line_of(choice: Choice) -> str:
    """Returns the line of a tuning file about a choice."""
    chosen, most = choice.chosen, "" if choice.most is None else choice.most
    line = f"{choice.kernel:<18} {chosen.name:<12} {choice.dtype:<4} {most:<10}"
    line += f" # {choice.level}: {chosen.ns * 1e-3:.4g} us"
    rivals = [candidate for candidate in choice.candidates if candidate is not chosen]
    rival = min(rivals, key=lambda candidate: candidate.ns, default=None)
    if not rival:
        return f"{line}; no other comes near\n"
    low, high = rival.interval(chosen)
    line += f"; {rival.name} takes {rival.ratio(chosen):.2f} times as long [{low:.2f}, {high:.2f}]"
    return f"{line}{', a tie' if choice.is_tie else ''}\n"


def tuning_file(env: Record, choices: Sequence[Choice], when: str) -> str:
    """Returns the text of a tuning file."""
    cpu = " ".join([str(member(env, "cpu.key")), *(member(env, "cpu.features") or [])])
    head = (
        f"{HEAD}\n# Written by posenc tune at {when}: kernel, backend, type, and the most bytes of its tensors\n"
        f"cpu {cpu}\nbuild {member(env, 'build.id')}\n"
    )
    return head + "".join(line_of(choice) for choice in choices)


def _print_choices(choices: Sequence[Choice]) -> None:
    """Prints a table with a row for each kernel and dtype, and a column for each memory level."""
    levels = list(dict.fromkeys(choice.level for choice in choices))
    rows: Dict[Tuple[str, str], Dict[str, str]] = {}
    for choice in choices:
        row = rows.setdefault((choice.kernel, choice.dtype), dict.fromkeys(levels, "-"))
        row[choice.level] = choice.chosen.name + ("=" if choice.is_tie else "")
    console().print(table(["kernel", "dtype", *levels], [[*names, *row.values()] for names, row in rows.items()]))


def _tune(args: argparse.Namespace) -> int:
    """Writes a tuning file. Returns the exit code."""
    path = args.file or default_path()
    if not args.file:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandError(f"the output cannot be written: {error.strerror} (got '{path}').") from None
    check_output(path, HEAD.encode(), force=args.force)
    run = _bench(args)
    if run.status > 128:
        _report("interrupted. No file is written.")
    if run.ended:
        return run.status
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_file(path, tuning_file(run.env, run.choices, when).encode(), HEAD.encode(), force=args.force)
    print(f"{len(run.choices)} choices, {sum(choice.is_tie for choice in run.choices)} ties (=), written to {path}\n")
    _print_choices(run.choices)
    use = "This program uses it from now on (posenc list tuning). The library uses it if POSENC_TUNING names it."
    print(f"\nThe library uses it if POSENC_TUNING={path} is set." if args.file else f"\n{use}")
    return run.status


# ---- checking a tuning file ----


def _check(args: argparse.Namespace) -> int:
    """Checks a tuning file. Returns the exit code."""
    path = args.file or default_path()
    first = last = _bench(args, path)
    slow = first.slow()
    if slow and not first.ended:  # a choice that was slower once may be noise
        args.kernel = sorted({choice.kernel for choice in slow.values()})
        args.dtype = sorted({choice.dtype for choice in slow.values()})
        args.seed += 1
        last = _bench(args, path)
        slow = {name: choice for name, choice in last.slow().items() if name in slow}
    if last.ended:
        return last.status
    slower = 0
    for name, choice in slow.items():
        ratio, low = choice.slowness()
        slower += low > SLOWER
        times = "far longer than" if ratio == math.inf else f"{ratio:.2f} times as long as"
        doubt = "" if low > SLOWER else ", which may be noise"
        fastest = min(choice.candidates, key=lambda candidate: candidate.ns).name
        print(f"{name}: {choice.in_force or 'no backend'} takes {times} {fastest}{doubt}")
    within = f"{len(first.choices) - len(slow)} of {len(first.choices)} choices are within 5 % of the fastest"
    unclear = f", {len(slow) - slower} not known to be slower" if len(slow) > slower else ""
    print(f"{path}: {within}{unclear}{': posenc tune writes a new file' if slower else ', the file holds'}")
    return 3 if slower else first.status


def main(arguments: List[str]) -> int:
    """Runs posenc tune. Returns the exit code."""
    args = _parser().parse_args(arguments)
    os.environ.pop("POSENC_TUNING", None)  # a file of another CPU or build is rejected: this command is the cure
    return _check(args) if args.check else _tune(args)
