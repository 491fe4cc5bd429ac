"""posenc report: which backend is fastest here, how sure that is, and is it right.

Without files it runs posenc verify and posenc bench, makes one run of their records, and writes the page of that into a
folder. With files it renders their records.
"""

import argparse
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import List, Optional, Sequence

from ..command import CommandError, Parser, check_output, file_path, positive, words_of, write_file
from ..engine import SIGNALS, Engine
from ..records import Record, load, machines, members_expected
from ..results.main import MARKERS, Output, outputs_of, render, write_outputs
from .page import print_summary

FOLDER, CONSOLE = "posenc-report", Output("console", None)  # defaults
FILES = {"html": "report.html", "md": "report.md", "jsonl": "results.jsonl"}  # of the folder
INTERRUPTED = "interrupted.jsonl"  # records of a run that must not replace the report before
# Options that select what is measured; --model and --config give shapes.
SELECTING, SHAPES = ("kernel", "backend", "dtype", "case", "plugin", "vectors", "limit"), ("model", "config")
# A model of each encoding: added sinusoids, learned rows, a rotation with scaled frequencies, ALiBi, T5.
MODELS = ("transformer-base", "gpt2", "llama-3.1-8b", "bloom-176b", "t5-base")
# Kernels that are timed at these places of memory as well, if no model is named.
MAIN_KERNELS, PLACES = ("sinusoidal", "rope_table", "rope_half"), ("*/l2", "*/dram")
SECONDS, OF_MODELS = 110.0, 0.75  # of timing, and the share of models
WRONG, BAD_INPUT, NOTHING = 1, 2, 77  # exit codes

EPILOG = """Examples
  posenc report                               check and time this machine
  posenc report --model llama-3.1-8b          one model
  posenc report a.jsonl b.jsonl -o fleet.html records of other runs and machines

Exit code 1 if a check fails or an output is wrong, 77 if nothing can run here. Files are rendered with 0."""


def _parser() -> Parser:
    about = "Shows which backend is fastest here, how sure that is, and if it is right."
    parser = Parser("posenc report", about, EPILOG)
    parser.add_argument("files", metavar="FILE", nargs="*", help="records to render; none: check and time this machine")
    parser.add_outputs()
    parser.add_argument("--dir", metavar="FOLDER", type=file_path, help=f"folder of the report (default: {FOLDER})")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every step of every model")
    parser.add_selection("every case, dense scans, more rounds", *SELECTING, *SHAPES)
    parser.add_argument("--jobs", metavar="N", help="kernels checked at once (default: CPUs)")
    parser.add_argument("--time-limit", metavar="SECONDS", type=positive(86400), help="stop timing after SECONDS")
    return parser


# ---- measurement ----


class Measurement:
    """Commands that check and time this machine, and their results."""

    def __init__(self, engine: Engine, args: argparse.Namespace) -> None:
        self.engine, self.args = engine, args
        self.select, self.models = (  # words for all commands, and for those that take models
            [word for name in names for word in words_of(name, getattr(args, name))] for names in (SELECTING, SHAPES)
        )
        self.runs: List[List[Record]] = []
        self.statuses: List[int] = []
        self.interrupted = False

    def run_all(self) -> None:
        """Checks every backend, then times the models and some places of memory."""
        args = self.args
        print("Checking every backend …", file=sys.stderr)
        self._run("verify", *self.models, *(["--jobs", args.jobs] if args.jobs else []))
        seconds = args.time_limit or (None if args.full else SECONDS)
        share = 1.0 if self.models else OF_MODELS
        if not self.interrupted:
            print("Timing …", file=sys.stderr)
            self._run("bench", *(self.models or words_of("model", MODELS)), *_limit(seconds, share))
        if not self.interrupted and not self.models and not args.case:
            kernels = [] if args.kernel else words_of("kernel", MAIN_KERNELS)
            self._run("bench", *kernels, *words_of("case", PLACES), *_limit(seconds, 1 - OF_MODELS))

    def _run(self, command: str, *options: str) -> None:
        """Runs a command of the program, and keeps its records and its exit code."""
        full = ["--full"] if self.args.full else []
        records, status = self.engine.records(command, *self.select, *options, "--out", "jsonl", *full)
        self.interrupted = status - 128 in SIGNALS
        if status == BAD_INPUT:
            raise CommandError(f"posenc {command} could not run; its message is above.")
        self.runs += [records] if records else []
        self.statuses.append(status)

    @property
    def status(self) -> int:
        """The exit code: 128 and the signal, the worst of the commands, 77 if none had anything to run."""
        worst = [status for status in self.statuses if status not in (0, WRONG, NOTHING)]
        worst += [WRONG] if WRONG in self.statuses else []
        return (worst or [NOTHING if set(self.statuses) == {NOTHING} else 0])[0]

    def records(self, argv: Sequence[str]) -> List[Record]:
        """Returns all runs as one, with the errors by position of the backends that make tables."""
        timed = {record["backend"] for run in self.runs for record in run
                 if record["t"] == "bench" and record["kernel"] == "rope_table"}  # fmt: skip
        wanted = words_of("backend", sorted(timed))
        curves = self.engine.error_curves(*wanted) if timed and not self.interrupted else []
        return one_run(self.runs, argv, curves)


def _limit(seconds: Optional[float], share: float) -> List[str]:
    return [] if seconds is None else ["--time-limit", f"{seconds * share:g}"]


def one_run(runs: Sequence[Sequence[Record]], argv: Sequence[str], extra: Sequence[Record]) -> List[Record]:
    """Returns several runs on this machine as one: a header, an env, all results, a footer."""
    records = [record for run in runs for record in run]
    headers, envs, footers = ([r for r in records if r["t"] == kind] for kind in ("header", "env", "footer"))
    if not headers or not envs:
        return []
    header: Record = {**headers[0], "command": "report", "argv": list(argv)}
    results, seen = [], set()
    for record in records:
        key = (record["t"], record.get("id") or record.get("name"))
        if record["t"] not in ("header", "env", "footer") and not (key[1] and key in seen):
            seen.add(key)
            results.append(record)
    counts = Counter(record["status"] if record["t"] == "check" else record["t"] for record in results)
    last = footers[-1] if footers else {}
    footer: Record = {
        "t": "footer", "complete": len(footers) == len(runs) and all(each["complete"] for each in footers),
        "counts": counts, "wall_s": sum(each.get("wall_s", 0) for each in footers),
        **{name: last[name] for name in ("finished", "noise") if name in last},
    }  # fmt: skip
    return [header, envs[-1], *results, *extra, footer]


# ---- files ----


def _render(args: argparse.Namespace, outputs: Sequence[Output]) -> int:
    """Renders files of records. Returns the exit code."""
    measuring = (*SELECTING, *SHAPES, "dir", "quick", "full", "jobs", "time-limit")
    idle = [f"--{name}" for name in measuring if getattr(args, name.replace("-", "_"))]
    if idle:
        raise CommandError(f"{idle[0]} has no effect on files of records. Leave it out.")
    records = [record for path in args.files for record in load(path)]
    if not machines(records):
        raise CommandError(f"the records name no machine (got '{args.files[0]}').")
    with members_expected():
        _write(args, outputs, records)
    return 0


def _write(args: argparse.Namespace, outputs: Sequence[Output], records: List[Record]) -> None:
    write_outputs(outputs, records, lambda shown, out: print_summary(shown, out, args.verbose), args.force)


def _measure(args: argparse.Namespace, argv: List[str], outputs: List[Output]) -> int:
    """Checks and times this machine, and writes its report. Returns the exit code."""
    engine, folder = Engine(), args.dir or Path(FOLDER)
    report = [(kind, folder / name) for kind, name in FILES.items()]
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise CommandError(f"the folder cannot be made: {error.strerror} (got '{folder}').") from None
    try:
        for kind, path in report:
            check_output(path, MARKERS[kind], force=args.force)
        stays = (folder / FILES["jsonl"]).exists()
        measurement = Measurement(engine, args)
        measurement.run_all()
        records = measurement.records(["posenc", "report", *argv])
        if not records:
            return measurement.status
        stays = stays and measurement.interrupted
        for kind, path in [("jsonl", folder / INTERRUPTED)] if stays else report:
            write_file(path, render(kind, records).encode(), MARKERS[kind], force=args.force)
        _write(args, outputs, records)
        if stays:
            print(f"posenc report: interrupted. The report in {folder} stays as it is; "
                  f"{folder / INTERRUPTED} holds the results until then.", file=sys.stderr)  # fmt: skip
        elif CONSOLE in outputs:
            print(f"Page: {folder / FILES['html']}")
        return measurement.status
    finally:
        with suppress(OSError):  # a folder with files is kept
            folder.rmdir()


def main(arguments: List[str]) -> int:
    """Runs posenc report. Returns the exit code."""
    args = _parser().parse_args(arguments)
    outputs = outputs_of(args.out, args.output, force=args.force)
    return _render(args, outputs) if args.files else _measure(args, arguments, outputs)
