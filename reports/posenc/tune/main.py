"""posenc tune: measures which backend to use for which call, and writes a tuning file that the library reads."""

import argparse
import math
import os
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..command import CommandError, Parser, check_output, positive, words_of, write_file
from ..engine import Engine
from ..runs import Record, member
from ..terminal import console, table
from .rule import SLOWER, Place, places_of

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
    add = parser.add_argument
    add("file", metavar="FILE", nargs="?", type=Path, help="tuning file (default: ~/.config/posenc/profile)")
    add("--check", action="store_true", help="write nothing: check that the choices of FILE still hold")
    add("--kernel", metavar="NAME", action="append", default=[], help="only this kernel; may be repeated")
    add("--dtype", metavar="NAME", action="append", default=[], help="only f32, f16 or bf16; may be repeated")
    add("--time-limit", "--budget", metavar="SECONDS", type=positive(86400), default=SECONDS,
        help=f"time of all measurements, about (default: {SECONDS:.0f})")  # fmt: skip
    add("--seed", metavar="N", type=int, default=0, help="seed for the order of rounds (default: 0)")
    add("--force", action="store_true", help="overwrite any file at FILE")
    return parser


def default_path() -> Path:
    """Returns the path of the user's tuning file, which the program reads."""
    config, home = os.environ.get("XDG_CONFIG_HOME"), os.environ.get("HOME")
    if not config and not home:
        raise CommandError("there is no folder for a tuning file. Set XDG_CONFIG_HOME or HOME, or name a FILE.")
    return (Path(config) if config else Path(str(home), ".config")) / "posenc" / "profile"


class Benchmark(NamedTuple):
    """A benchmark that ran: its machine, the places with a choice, and its exit code."""

    env: Record
    places: List[Place]
    status: int

    @property
    def ended(self) -> bool:
        """Whether the benchmark ended early: its exit code is that of the command."""
        return self.status not in (0, 1)

    def slow(self) -> Dict[str, Place]:
        """Returns the places where the backend by the tuning file is too slow, by their names."""
        return {str(place): place for place in self.places if place.slowness()[0] > SLOWER}


def _bench(args: argparse.Namespace, tuning: Optional[Path] = None) -> Benchmark:
    """Times kernels and dtypes; all of them if none is named. Reports wrong outputs, and what could not be timed."""
    options = ["--tune", "--out", "jsonl", "--budget", str(args.time_limit), "--seed", str(args.seed)]
    options += [*words_of("kernel", args.kernel), *words_of("dtype", args.dtype)]
    options += ["--tuning", str(tuning)] if tuning else []
    records, status = Engine().records("bench", *options)
    places = places_of(records)
    wrong = [f"{place.kernel}, {place.dtype}: {name} is rejected: {reason}" for place in places
             for name, reason in place.rejected if reason.startswith(("wrong: ", "crashed: "))]  # fmt: skip
    empty = [f"{place}: no backend could be timed" for place in places if not place.candidates]
    for text in dict.fromkeys(wrong + empty):
        _report(text)
    timed = [place for place in places if place.candidates]
    if status in (0, 1) and not timed:
        raise CommandError("nothing could be timed here.", status or 2)
    return Benchmark(next((record for record in records if record["t"] == "env"), {}), timed, status)


def _report(text: str) -> None:
    print(f"posenc tune: {text}", file=sys.stderr)


# ---- writing a tuning file ----


def line_of(place: Place) -> str:
    """Returns the line of a tuning file about a place."""
    chosen, most = place.chosen, "" if place.most is None else place.most
    line = f"{place.kernel:<18} {chosen.name:<12} {place.dtype:<4} {most:<10}"
    line += f" # {place.level}: {chosen.ns * 1e-3:.4g} us"
    rival = min((one for one in place.candidates if one is not chosen), key=lambda one: one.ns, default=None)
    if not rival:
        return f"{line}; no other comes near\n"
    low, high = rival.interval(chosen)
    line += f"; {rival.name} takes {rival.ratio(chosen):.2f} times as long [{low:.2f}, {high:.2f}]"
    return f"{line}{', a tie' if place.tie else ''}\n"


def tuning_file(env: Record, places: Sequence[Place], when: str) -> str:
    """Returns the text of a tuning file."""
    cpu = " ".join([str(member(env, "cpu.key")), *(member(env, "cpu.features") or [])])
    head = (
        f"{HEAD}\n# Written by posenc tune at {when}: kernel, backend, type, and the most bytes of its tensors\n"
        f"cpu {cpu}\nbuild {member(env, 'build.id')}\n"
    )
    return head + "".join(line_of(place) for place in places)


def _print_choices(places: Sequence[Place]) -> None:
    levels = list(dict.fromkeys(place.level for place in places))
    rows: Dict[Tuple[str, str], Dict[str, str]] = {}
    for place in places:
        row = rows.setdefault((place.kernel, place.dtype), dict.fromkeys(levels, "-"))
        row[place.level] = place.chosen.name + ("=" if place.tie else "")
    console().print(table(["kernel", "dtype", *levels], [[*names, *row.values()] for names, row in rows.items()]))


def _tune(args: argparse.Namespace) -> int:
    path = args.file or default_path()
    if not args.file:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandError(f"the output cannot be written: {error.strerror} (got '{path}').") from None
    check_output(path, HEAD.encode(), args.force)
    run = _bench(args)
    if run.status > 128:
        _report("interrupted. No file is written.")
    if run.ended:
        return run.status
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_file(path, tuning_file(run.env, run.places, when).encode(), HEAD.encode(), args.force)
    print(f"{len(run.places)} choices, {sum(place.tie for place in run.places)} ties (=), written to {path}\n")
    _print_choices(run.places)
    use = "This program uses it from now on (posenc list tuning). The library uses it if POSENC_PROFILE names it."
    print(f"\nThe library uses it if POSENC_PROFILE={path} is set." if args.file else f"\n{use}")
    return run.status


# ---- checking one ----


def _check(args: argparse.Namespace) -> int:
    path = args.file or default_path()
    first = last = _bench(args, path)
    slow = first.slow()
    if slow and not first.ended:  # a choice that was slower once may be noise
        args.kernel = sorted({place.kernel for place in slow.values()})
        args.dtype = sorted({place.dtype for place in slow.values()})
        args.seed += 1
        last = _bench(args, path)
        slow = {name: place for name, place in last.slow().items() if name in slow}
    if last.ended:
        return last.status
    slower = 0
    for name, place in slow.items():
        ratio, low = place.slowness()
        slower += low > SLOWER
        times = "far longer than" if ratio == math.inf else f"{ratio:.2f} times as long as"
        doubt = "" if low > SLOWER else ", which may be noise"
        fastest = min(place.candidates, key=lambda one: one.ns).name
        print(f"{name}: {place.in_force or 'no backend'} takes {times} {fastest}{doubt}")
    within = f"{len(first.places) - len(slow)} of {len(first.places)} choices are within 5 % of the fastest"
    unclear = f", {len(slow) - slower} not known to be slower" if len(slow) > slower else ""
    print(f"{path}: {within}{unclear}{': posenc tune writes a new file' if slower else ', the file holds'}")
    return 3 if slower else first.status


def main(arguments: List[str]) -> int:
    """Runs posenc tune. Returns the exit code."""
    args = _parser().parse_args(arguments)
    os.environ.pop("POSENC_PROFILE", None)  # a file of another CPU or build is rejected: this command is the cure
    return _check(args) if args.check else _tune(args)
