"""posenc compare: compares the speed and the results of two builds, two git revisions or two files of records.

builds.py compares builds, which revisions.py makes of git revisions, and files.py compares files. Both return the
records of a comparison: a header, pairs, changes, and here a footer. text.py prints them.
"""

import argparse
import math
import sys
from datetime import datetime, timezone
from typing import Counter, List

from ..command import CommandError, Parser, positive, within, words_of
from ..engine import Engine, Program
from ..records import Record, dump, parse
from ..results.main import outputs_of, write_outputs
from ..results.outcome import exit_code_of
from ..verdict import LEAST_PROCESSES, DEFAULT_THRESHOLD
from .builds import Comparison, Settings
from .files import compare_files
from .revisions import take_revision
from .text import Printer

TIME_LIMIT_S, KERNEL_TIME_LIMIT_S = 200.0, 12.0  # of a comparison; of each kernel if --kernel names some

# Options that change the result of a comparison, which the header records. The first ones select what is compared.
# Of all these only --gate has an effect on files of records.
SELECTING_OPTIONS = ("kernel", "backend", "dtype", "model", "config", "case")
OTHER_OPTIONS = ("problem", "quick", "full", "seed", "processes", "threshold", "strict", "time-limit", "rev", "build",
                 "library", "identical", "gate")  # fmt: skip

EPILOG = """Examples
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


def _parser() -> Parser:
    parser = Parser("posenc compare", "Compares two builds or two runs: speed and results.", EPILOG)
    add = parser.add_argument
    add("builds", metavar="BASE HEAD", nargs="*", help="what is compared; with --rev HEAD may be left out")
    parser.add_selection("every case, more rounds, also what has the same code", *SELECTING_OPTIONS)
    add("--problem", metavar="LINE", help="only this problem, such as 'alibi heads=2 queries=16 keys=16'")
    add("--rev", action="store_true", help="BASE and HEAD are git revisions; no HEAD: the work tree")
    add("--build", metavar="COMMAND", help="shell command that builds a revision (default: posenc's)")
    add("--library", metavar="PATH", help="the shared object that --build makes")
    add("--gate", action="store_true", help="exit 3 if a confirmed slowdown reaches --threshold")
    add("--strict", action="store_true", help="exit 4 if a verdict is unclear")
    add("--threshold", metavar="PERCENT", type=positive(1000), help="slowdown that fails --gate (default: 3)")
    add("--processes", metavar="N", type=within(1, 9), help="processes that time every pair (default: 3)")
    add("--time-limit", metavar="SECONDS", type=positive(86400), dest="time_limit",
        help="stop adding rounds after SECONDS (default: 200; 12 for each --kernel)")  # fmt: skip
    add("--seed", metavar="N", type=within(0, 1 << 53), help="seed for the order of rounds")
    add("--identical", action="store_true", help="time also what has the same machine code")
    add("-v", "--verbose", "--all", action="store_true", dest="verbose", help="print all rows")
    parser.add_outputs()
    add("--json", action="store_true", help="print records instead of text")
    return parser


# ---- options ----


def _options(args: argparse.Namespace) -> Record:
    """Returns the options that change the result, by name, for the header."""
    options: Record = {}
    for name in (*SELECTING_OPTIONS, *OTHER_OPTIONS):
        value = getattr(args, name.replace("-", "_"))
        if value is not None and value is not False and value != []:
            options[name] = ",".join(value).split(",") if name in SELECTING_OPTIONS else value
    return options


def _check_options(args: argparse.Namespace, are_files: bool) -> None:
    """Rejects combinations of options that have no meaning."""
    count = len(args.builds)
    if args.rev and count not in (1, 2):
        raise CommandError(f"expected one or two git revisions beside --rev (got {count}).")
    if not args.rev and count != 2:
        raise CommandError(f"expected two builds, two plug-ins, or two files of records (got {count}).")
    if not args.rev and (args.build or args.library):
        raise CommandError(f"{'--build' if args.build else '--library'} has no effect without --rev. Add --rev.")
    if bool(args.build) != bool(args.library):
        missing, given = ("--library", "--build") if args.build else ("--build", "--library")
        raise CommandError(f"{missing} is missing beside {given}. Give both: a command, and the path of what it makes.")
    for name in _options(args) if are_files else ():
        if name != "gate":
            raise CommandError(f"--{name} has no effect here: files of records are compared as they are. Leave it out.")


def _selection(args: argparse.Namespace) -> List[str]:
    """Returns the arguments of posenc pair that select cases."""
    words = [word for name in SELECTING_OPTIONS for word in words_of(name, getattr(args, name))]
    words += ["--problem", args.problem] if args.problem else []
    return words + (["--full"] if args.full else [])


def _settings(args: argparse.Namespace) -> Settings:
    """Returns the settings that options state, or their defaults."""
    kernels = ",".join(args.kernel).count(",") + 1 if args.kernel else math.inf
    limit_s = args.time_limit or min(KERNEL_TIME_LIMIT_S * kernels, TIME_LIMIT_S)
    threshold = args.threshold / 100 if args.threshold else DEFAULT_THRESHOLD
    times_same_code = args.identical or args.full
    return Settings(limit_s, args.processes or LEAST_PROCESSES, args.seed or 0, threshold, times_same_code)


# ---- the comparison ----


def _is_records(path: str) -> bool:
    """Returns whether a path names a file of records: it begins with an object; a library does not."""
    try:
        with open(path, "rb") as file:
            return file.read(1) == b"{"
    except OSError:
        return False


def _compare_builds(args: argparse.Namespace) -> Comparison:
    """Compares two builds."""
    program, paths = Engine().program, args.builds
    sides: List[Record] = [{}, {}]
    if args.rev:
        revisions = [take_revision(name, args.build, args.library) for name in [*args.builds, None][:2]]
        paths = [str(revision.path) for revision in revisions]
        sides = [{"rev": revision.name, "commit": revision.commit, "dirty": revision.dirty} for revision in revisions]
    comparison = Comparison(Program(str(program), [*_selection(args), "--", *paths]), _settings(args))
    comparison.run()
    for name, side in zip(("base", "head"), sides):
        comparison.header.get("compare", {}).get(name, {}).update(side)
    return comparison


def main(arguments: List[str]) -> int:
    """Runs posenc compare. Returns the exit code."""
    args = _parser().parse_args(arguments)
    are_files = not args.rev and len(args.builds) == 2 and all(map(_is_records, args.builds))
    _check_options(args, are_files)
    outputs = outputs_of(args.out, args.output, json=args.json, force=args.force)
    signalled, footer_members = 0, {}
    if are_files:
        records = compare_files(*args.builds)
    else:
        comparison = _compare_builds(args)
        signalled = comparison.interrupted
        if signalled:
            print("posenc compare: interrupted: writing what there is", file=sys.stderr)
        if not comparison.header:
            return 128 + signalled
        records, footer_members = comparison.records(), comparison.footer_members()
    finished = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    records[0].setdefault("started", finished)  # two files need no time
    records[0].update(command="compare", argv=["posenc", "compare", *arguments], options=_options(args))
    counts = Counter(record["t"] for record in records)
    records.append({"t": "footer", "complete": not signalled, "counts": counts, "finished": finished, **footer_members})
    outcome = exit_code_of(records, args.gate, args.strict)

    records = parse(dump(records), "the comparison")  # escapes control characters
    write_outputs(outputs, records, lambda shown, out: Printer(shown, out, args.verbose).summary(outcome), args.force)
    return 128 + signalled if signalled else outcome[0]
