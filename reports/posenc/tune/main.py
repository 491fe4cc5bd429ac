"""posenc tune: measures which backend to use for which call, and writes a tuning file that the library reads."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Set, Tuple

from ..command import CommandError, Parser, check_output, write_file
from ..convert import Record
from ..engine import Engine
from ..runs import member
from ..terminal import console, table
from .rule import SLOWER, Choice, choose, places_of

ABOUT = """Times the backends of the library for each kernel, dtype and memory level, in
about a minute, and writes a tuning file that names the backend to use."""
EPILOG = """The library reads the file that POSENC_PROFILE names, or posenc_select_profile().
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
HEAD = "posenc.tune/1"
SECONDS = 50.0


def _parser() -> Parser:
    parser = Parser("posenc tune", ABOUT, EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("file", metavar="FILE", nargs="?", help="tuning file (default: ~/.config/posenc/profile)")
    add("--check", action="store_true", help="write nothing: check that the choices of FILE still hold")
    add("--kernel", metavar="NAME", action="append", default=[], help="only this kernel; may be repeated")
    add("--dtype", metavar="NAME", action="append", default=[], help="only f32, f16 or bf16; may be repeated")
    add("--time-limit", "--budget", metavar="SECONDS", type=_seconds, default=SECONDS,
        help=f"time of all measurements, about (default: {SECONDS:.0f})")  # fmt: skip
    add("--seed", metavar="N", type=int, default=0, help="seed for the order of rounds (default: 0)")
    add("--force", action="store_true", help="overwrite any file at FILE")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds <= 86400.0:
        raise argparse.ArgumentTypeError(f"expected seconds, up to 86400 (got '{text}')")
    return seconds


def default_path() -> Path:
    """Returns the path of the user's tuning file, which the program reads."""
    config, home = os.environ.get("XDG_CONFIG_HOME"), os.environ.get("HOME")
    if not config and not home:
        raise CommandError("there is no folder for a tuning file. Set XDG_CONFIG_HOME or HOME, or name a FILE.")
    return (Path(config) if config else Path(str(home), ".config")) / "posenc" / "profile"


class Bench:
    """Runs the benchmark in the program."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.engine = Engine()

    def run(self, kernels: Sequence[str], dtypes: Sequence[str], seed: int, tuning: Optional[Path] = None) -> "Run":
        """Times kernels and dtypes; all of them if none is named."""
        options = ["--tune", "--out", "jsonl", "--budget", str(self.args.time_limit), "--seed", str(seed)]
        options += [word for name in kernels for word in ("--kernel", name)]
        options += [word for name in dtypes for word in ("--dtype", name)]
        options += ["--tuning", str(tuning)] if tuning else []
        return Run(*self.engine.records("bench", *options))


class Run:
    """What a benchmark found. Places without a candidate, and wrong outputs, are reported."""

    def __init__(self, records: List[Record], status: int) -> None:
        self.status = status
        self.env: Record = next((record for record in records if record["t"] == "env"), {})
        places = places_of(records)
        reported: Set[Tuple[str, str, str]] = set()
        for place in places:
            for name, reason in place.rejected:
                key = (place.kernel, place.dtype, name)
                if reason.startswith(("wrong: ", "crashed: ")) and key not in reported:
                    reported.add(key)
                    _report(f"{place.kernel}, {place.dtype}: {name} is rejected: {reason}")
            if not place.candidates:
                _report(f"{place}: no backend could be timed")
        self.choices = [choose(place) for place in places if place.candidates]
        if status in (0, 1) and not self.choices:
            raise CommandError("nothing could be timed here.", status or 2)

    @property
    def ended(self) -> bool:
        """Whether the benchmark ended early: its exit code is that of the command."""
        return self.status not in (0, 1)


def _report(text: str) -> None:
    print(f"posenc tune: {text}", file=sys.stderr)


# ---- writing a tuning file ----


def line_of(choice: Choice) -> str:
    """Returns the line of a tuning file about a choice."""
    place, rival = choice.place, choice.rival
    most = "" if place.most is None else str(place.most)
    line = f"{place.kernel:<18} {choice.chosen.name:<12} {place.dtype:<4} {most:<10}"
    line += f" # {place.level}: {choice.chosen.ns * 1e-3:.4g} us"
    if not rival:
        return f"{line}; no other comes near\n"
    low, high = rival.interval(choice.chosen)
    ratio = rival.ratio(choice.chosen)
    tie = ", a tie" if choice.tie else ""
    return f"{line}; {rival.name} takes {ratio:.2f} times as long [{low:.2f}, {high:.2f}]{tie}\n"


def tuning_file(env: Record, choices: Sequence[Choice], when: str) -> str:
    """Returns the text of a tuning file."""
    cpu = " ".join([str(member(env, "cpu.key")), *(member(env, "cpu.features") or [])])
    head = (
        f"{HEAD}\n# Written by posenc tune at {when}: kernel, backend, type, and the most bytes of its tensors\n"
        f"cpu {cpu}\nbuild {member(env, 'build.id')}\n"
    )
    return head + "".join(line_of(choice) for choice in choices)


def _print_choices(choices: Sequence[Choice]) -> None:
    rows: Dict[Tuple[str, str], Dict[str, str]] = {}
    levels = list(dict.fromkeys(choice.place.level for choice in choices))
    for choice in choices:
        row = rows.setdefault((choice.place.kernel, choice.place.dtype), {})
        row[choice.place.level] = choice.chosen.name + ("=" if choice.tie else "")
    cells = [[*names, *(row.get(level, "-") for level in levels)] for names, row in rows.items()]
    console().print(table(["kernel", "dtype", *levels], cells))


def _tune(args: argparse.Namespace) -> int:
    own = args.file is None
    path = default_path() if own else Path(args.file)
    if own:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandError(f"the output cannot be written: {error.strerror} (got '{path}').") from None
    check_output(path, HEAD.encode(), args.force)
    run = Bench(args).run(args.kernel, args.dtype, args.seed)
    if run.ended:
        if run.status > 128:
            _report("interrupted. No file is written.")
        return run.status
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_file(path, tuning_file(run.env, run.choices, when).encode(), HEAD.encode(), args.force)
    ties = sum(choice.tie for choice in run.choices)
    print(f"{len(run.choices)} choices, {ties} ties (=), written to {path}\n")
    _print_choices(run.choices)
    if own:
        print(
            "\nThis program uses it from now on (posenc list tuning). The library uses it if POSENC_PROFILE names it."
        )
    else:
        print(f"\nThe library uses it if POSENC_PROFILE={path} is set.")
    return run.status


# ---- checking one ----


def _slow(run: Run) -> Dict[Tuple[str, str, str], Choice]:
    """Returns the choices whose backend by the tuning file is too slow."""
    return {
        (choice.place.kernel, choice.place.dtype, choice.place.level): choice
        for choice in run.choices
        if choice.slowness()[0] > SLOWER
    }


def _check(args: argparse.Namespace) -> int:
    path = default_path() if args.file is None else Path(args.file)
    bench = Bench(args)
    first = bench.run(args.kernel, args.dtype, args.seed, path)
    if first.ended:
        return first.status
    slow = _slow(first)
    if slow:  # a choice that was slower once may be noise
        kernels, dtypes = ({key[at] for key in slow} for at in (0, 1))
        second = bench.run(sorted(kernels), sorted(dtypes), args.seed + 1, path)
        if second.ended:
            return second.status
        slow = {key: choice for key, choice in _slow(second).items() if key in slow}
    slower = 0
    for choice in slow.values():
        ratio, low = choice.slowness()
        known = low > SLOWER
        slower += known
        times = "far longer than" if ratio == float("inf") else f"{ratio:.2f} times as long as"
        doubt = "" if known else ", which may be noise"
        print(f"{choice.place}: {choice.place.in_force or 'no backend'} takes {times} {choice.fastest.name}{doubt}")
    unclear = len(slow) - slower
    within = f"{len(first.choices) - len(slow)} of {len(first.choices)} choices are within 5 % of the fastest"
    print(f"{path}: {within}" + (f", {unclear} not known to be slower" if unclear else ""), end="")
    print(": posenc tune writes a new file" if slower else ", the file holds")
    return 3 if slower else first.status


def main(arguments: List[str]) -> int:
    """Runs posenc tune. Returns the exit code."""
    args = _parser().parse_args(arguments)
    os.environ.pop("POSENC_PROFILE", None)  # a file of another CPU or build is rejected: this command is the cure
    return _check(args) if args.check else _tune(args)
