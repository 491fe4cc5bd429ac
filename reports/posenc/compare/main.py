"""posenc compare: whether a change made a kernel slower or faster, or its results others."""

import argparse
import math
import sys
from pathlib import Path
from typing import List, Sequence, TextIO, Tuple

from ..command import CommandError, Parser, within
from ..convert import Record
from ..engine import Engine
from ..verdict import LEAST_PROCESSES, USUAL_THRESHOLD
from .builds import Comparison, Settings
from .files import compare_files
from .outputs import Outputs
from .process import Program
from .revisions import Revision, take_revision

USUAL_S, KERNEL_S = 200.0, 12.0  # the time limit: of all; of a kernel that is named

# Options of posenc pair that select what is compared.
SELECT = (
    ("--kernel", "NAME", "only these kernels (posenc list kernels)"),
    ("--backend", "NAME", "only these backends or families"),
    ("--dtype", "NAME", "only this element type: f32, f16 or bf16"),
    ("--model", "NAME", "shapes of this model (posenc list models)"),
    ("--config", "FILE", "shapes of a model file or folder"),
    ("--case", "GLOB", "only cases whose id matches"),
)
# Their options that take effect on builds alone.
TIMED = ("--problem", "--seed", "--processes", "--threshold", "--strict", "--quick", "--full", "--time-limit")

EPILOG = """examples:
  posenc compare base/libposenc.so head/libposenc.so --gate
  posenc compare --rev main --kernel rope_half
  posenc compare --rev main HEAD --build 'make mine.so' --library mine.so -o compare.html
  posenc compare old.jsonl new.jsonl

BASE and HEAD are builds of the library or plug-ins; with --rev git revisions, which are
built once and kept in ~/.cache/posenc/builds (XDG_CACHE_HOME); or two files of records.

Every backend of both builds is timed on the same tensors by at least three processes, with a
second copy of BASE as the A/A control. Further processes confirm what is slower or faster.
Results and machine code are compared exactly, before. By default: f32, one shape in L2 per
kernel; for kernels that are named one in memory as well. docs/verdicts.md explains the rule.

Files of records are compared exactly in what was checked. Their times are shown as a trend,
which is no verdict. Exit 5 if they are of other CPUs, build types or vectors.

Exit codes: 0 success, 1 HEAD fails or is wrong where BASE is not, 2 bad input, 3 confirmed
slowdown or larger error (--gate), 4 unclear (--strict), 5 nothing comparable, 77 nothing can
be timed here."""


class _Number:
    """Reads a number of an option, above one bound and up to another."""

    def __init__(self, above: float, most: float) -> None:
        self.above, self.most = above, most

    def __call__(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not self.above < value <= self.most:
            raise argparse.ArgumentTypeError(
                f"expected a number above {self.above:g}, at most {self.most:g} (got '{text}')"
            )
        return value


def _parser() -> Parser:
    parser = Parser("posenc compare", "Whether a change made a kernel slower or faster, or its results others.", EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "builds", metavar="BASE HEAD", nargs="*", help="what is compared; with --rev HEAD may be left out"
    )
    for name, value, text in SELECT:
        parser.add_argument(name, metavar=value, action="append", default=[], help=text)
    add = parser.add_argument
    add("--problem", metavar="LINE", help="only this problem, such as 'alibi heads=2 queries=16 keys=16'")
    add("--quick", action="store_true", help="the short run (default)")
    add("--full", action="store_true", help="every case, more rounds, also what has the same code")
    add("--rev", action="store_true", help="BASE and HEAD are git revisions; no HEAD: the work tree")
    add("--build", metavar="COMMAND", help="shell command that builds a revision (default: posenc's)")
    add("--library", metavar="PATH", help="the shared object that --build makes")
    add("--gate", action="store_true", help="exit 3 if a confirmed slowdown reaches --threshold")
    add("--strict", action="store_true", help="exit 4 if a verdict is unclear")
    add("--threshold", metavar="PERCENT", type=_Number(0, 1000), help="slowdown that fails --gate (default: 3)")
    add("--processes", "--launches", metavar="N", type=within(1, 9), help="processes that time every pair (default: 3)")
    add("--time-limit", "--budget", metavar="SECONDS", type=_Number(0, 86400), dest="time_limit",
        help="stop adding rounds after SECONDS (default: 200; 12 for each --kernel)")  # fmt: skip
    add("--seed", metavar="N", type=within(0, 1 << 53), help="seed for the order of rounds")
    add("--identical", action="store_true", help="time also what has the same machine code")
    add("--explain", metavar="GLOB", help="print the evidence of the verdicts on these cases")
    add("-v", "--verbose", "--all", action="store_true", dest="verbose", help="print all rows")
    add("-o", "--output", metavar="PATH", type=Path, action="append", default=[],
        help="write .html, .jsonl, .csv or .xml as well")  # fmt: skip
    add(
        "--out",
        metavar="FORMAT[:PATH]",
        action="append",
        default=[],
        help="write this format, to standard output or PATH",
    )
    add("--json", action="store_true", help="print records instead of text")
    add("--force", action="store_true", help="overwrite any file")
    return parser


# ---- options ----


def _given(args: argparse.Namespace, name: str) -> bool:
    value = getattr(args, name[2:].replace("-", "_"))
    return value is not None and value is not False and value != []


def _check(args: argparse.Namespace) -> None:
    """Rejects options that do not go together."""
    count = len(args.builds)
    if args.rev and count not in (1, 2):
        raise CommandError(f"expected one or two git revisions beside --rev (got {count}).")
    if not args.rev and count != 2:
        raise CommandError(f"expected two builds, two plug-ins, or two files of records (got {count}).")
    if not args.rev and (args.build or args.library):
        raise CommandError(f"{'--build' if args.build else '--library'} has no effect without --rev. Add --rev.")
    if bool(args.build) != bool(args.library):
        lacking, given = ("--library", "--build") if args.build else ("--build", "--library")
        raise CommandError(f"{lacking} is missing beside {given}. Give both: a command, and the path of what it makes.")
    if args.quick and args.full:
        raise CommandError("--quick and --full exclude each other. Give one of them.")


def _selection(args: argparse.Namespace) -> List[str]:
    """Returns the options that select what is compared, for posenc pair."""
    words = [word for name, _, _ in SELECT for value in getattr(args, name[2:]) for word in (name, value)]
    words += ["--problem", args.problem] if args.problem else []
    if args.explain and not args.case and not args.problem:
        words += ["--case", args.explain]
    return words + (["--full"] if args.full else [])


def _options(args: argparse.Namespace) -> Record:
    """Returns the options that decide what is found, for the header."""
    names = [name for name, _, _ in SELECT] + [name for name in TIMED if name not in ("--quick", "--full")]
    names += ["--rev", "--build", "--library", "--gate", "--identical"]
    given = [name for name in names if _given(args, name)]
    options: Record = {name[2:]: getattr(args, name[2:].replace("-", "_")) for name in given}
    for name in ("kernel", "backend", "dtype", "model", "config", "case"):
        if name in options:
            options[name] = [part for value in options[name] for part in value.split(",")]
    return options


def _limit_s(args: argparse.Namespace) -> float:
    if args.time_limit is not None:
        return float(args.time_limit)
    kernels = [kernel for value in args.kernel for kernel in value.split(",")]
    return min(KERNEL_S * len(kernels), USUAL_S) if kernels else USUAL_S


# ---- what is compared ----


def is_records(path: str) -> bool:
    """Returns whether a path names a file of records: it begins with an object; a library does not."""
    try:
        with open(path, "rb") as file:
            return file.read(1) == b"{"
    except OSError:
        return False


Outcome = Tuple[int, str]


def _files(args: argparse.Namespace, argv: Sequence[str]) -> Tuple[List[Record], Outcome]:
    for name in [name for name, _, _ in SELECT] + list(TIMED):
        if _given(args, name):
            raise CommandError(f"{name} has no effect here: files of records are compared as they are. Leave it out.")
    found = compare_files(args.builds[0], args.builds[1])
    return found.run(argv, _options(args)), found.outcome(args.gate)


def _sides(revisions: Sequence[Revision]) -> List[Record]:
    named = [{"rev": r.name, "commit": r.commit, "dirty": r.dirty} for r in revisions]
    return named or [{}, {}]


def _builds(args: argparse.Namespace, argv: Sequence[str]) -> Tuple[List[Record], Outcome, int]:
    revisions: List[Revision] = []
    program = Engine().program
    if args.rev:
        for name in (args.builds[0], args.builds[1] if len(args.builds) > 1 else None):
            revisions.append(take_revision(name, args.build, args.library))
    paths = [str(revision.path) for revision in revisions] or args.builds
    threshold = args.threshold / 100 if args.threshold is not None else USUAL_THRESHOLD
    settings = Settings(
        _limit_s(args), args.processes or LEAST_PROCESSES, args.seed or 0, threshold, args.identical or args.full
    )
    comparison = Comparison(Program(str(program), [*_selection(args), "--", *paths]), settings)
    comparison.run()
    if comparison.interrupted and not comparison.header:
        return [], (0, ""), comparison.interrupted
    records = comparison.records(argv, _options(args), _sides(revisions))
    return records, comparison.outcome(args.gate, args.strict), comparison.interrupted


def main(arguments: List[str]) -> int:
    """Runs posenc compare. Returns the exit code."""
    args = _parser().parse_args(arguments)
    _check(args)
    outputs = Outputs(args.out, args.output, args.json, args.force)
    signalled = 0
    if not args.rev and all(is_records(path) for path in args.builds):
        records, outcome = _files(args, arguments)
    else:
        records, outcome, signalled = _builds(args, arguments)
    if signalled:
        print("posenc compare: interrupted: writing what there is", file=sys.stderr)

    def print_text(out: TextIO) -> None:
        from .text import print_comparison  # its packages take a while to load

        print_comparison(records, outcome, out, args.explain, args.verbose)

    if records:
        outputs.write(records, print_text)
    return 128 + signalled if signalled else outcome[0]
