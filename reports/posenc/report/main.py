"""posenc report: which backend is fastest here, how sure that is, and is it right."""

import argparse
import sys
from pathlib import Path
from typing import List, Sequence, TextIO

from .. import units
from ..command import CommandError, Parser, file_path, positive, write_file
from ..compare.outputs import Output, outputs_of, render, write_outputs
from ..engine import Engine
from ..records import Record, load, machines
from ..results.outcome import check_words
from ..terminal import Console, console, table
from .folder import FILES, ReportFolder
from .measure import SELECTING, SHAPES, Measurement
from .view import Host, View

FOLDER = "posenc-report"
CONSOLE = Output("console", None)
SHOWN, FAILURES = 12, 4  # rows on a terminal
CERTAINTY = {"clear": "clear", "tied": "tie", "noisy": "too noisy to tell"}

EPILOG = """Examples
  posenc report                               check and time this machine
  posenc report --model llama-3.1-8b          one model
  posenc report a.jsonl b.jsonl -o fleet.html records of other runs and machines

Exit code 1 if a check fails or an output is wrong, 77 if nothing can run here. Files are rendered with 0."""


def _parser() -> Parser:
    about = "Shows which backend is fastest here, how sure that is, and if it is right."
    parser = Parser("posenc report", about, EPILOG)
    parser.add_argument("files", metavar="FILE", nargs="*", help="records to render; none: check and time this machine")
    parser.add_outputs("overwrite any file or folder")
    parser.add_argument("--dir", metavar="FOLDER", type=file_path, help=f"folder of the report (default: {FOLDER})")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the tables as well")
    parser.add_selection("every case, dense scans, more rounds", *SELECTING, *SHAPES)
    parser.add_argument("--jobs", metavar="N", help="kernels checked at once (default: CPUs)")
    parser.add_argument("--time-limit", metavar="SECONDS", type=positive(86400), help="stop timing after SECONDS")
    return parser


# ---- the terminal ----


def _answer_rows(host: Host) -> List[List[str]]:
    rows = []
    for answer in host.answers:
        best, step, tied = answer.best, answer.step, answer.tied
        named = [str(step.model.get("title") or step.model["name"]), step.name]
        if not best:
            why = f"wrong: {', '.join(answer.wrong)}" if answer.wrong else "not timed"
            rows.append([*named, "–", why, *[""] * 4])
            continue
        sure = CERTAINTY[answer.certainty]
        if answer.certainty == "tied":
            sure += f" with {tied[0].backend}" + (f" + {len(tied) - 1}" if len(tied) > 1 else "")
        rows.append([
            *named, best.backend + (" (default)" if best.backend == answer.default else ""), sure, units.time(best.ns),
            units.times(answer.speedup("libm")), units.times(answer.speedup("autovec")), units.percent(best.share),
        ])  # fmt: skip
    return rows


def _print_host(host: Host, out: Console, verbose: bool) -> None:
    checked, grade = host.checked, host.quality.grade
    out.print(f"{host.cpu} ({host.name})" + (f", measurement quality {grade}" if grade else ""), style="bold")
    if checked.counts:
        number, word = (checked.failed, "failed") if checked.failed else (checked.passed, "passed")
        out.print(f"{units.count(number)} of {units.many(checked.ran, 'check')} {word}{checked.and_inconclusive}")
    for note in host.notes:
        out.print(note, style="yellow")
    for checks in host.failures[:FAILURES]:
        backends = ", ".join(check["backend"] for check in checks)
        what = f"{checks[0]['status'].upper()} {checks[0]['case']} on {backends}: {check_words(checks[0])}"
        out.print(what, style="red")
    if len(host.failures) > FAILURES:
        out.print(f"… and {len(host.failures) - FAILURES} other failures")
    rows = _answer_rows(host)
    if rows:
        head = ("Model", "Step", "Fastest", "How sure", ">Time", ">vs C", ">vs compiler", ">% of roofline")
        out.print(table(head, rows if verbose else rows[:SHOWN]))
    if len(rows) > SHOWN and not verbose:
        out.print(f"… and {len(rows) - SHOWN} more: -v prints them")


def _print_tables(host: Host, out: Console) -> None:
    timed = [(row, ranking.place(row)) for ranking in host.ranked.cases.values() for row in ranking.rows]
    if timed:
        head = ("Case", "Backend", ">Time", ">±", ">% of roofline", ">vs C", ">vs compiler", "Place")
        out.print()
        out.print(table(head, [
            [row.case, row.backend, row.rejected or units.time(row.median),
             "" if row.rejected else units.percent(row.width), units.percent(row.share), units.times(row.speedup_libm),
             units.times(row.speedup_autovec), place]
            for row, place in timed
        ]))  # fmt: skip
    if host.checked.counts:
        rows = []
        for kernel in host.kernels:
            cells = [host.cell(kernel, backend) for backend in host.backends]
            rows.append([kernel] + [f"{c.failed}/{c.ran} failed" if c.failed else str(c.ran or "-") for c in cells])
        out.print()
        out.print(table(["Kernel", *host.backends], rows))


def print_summary(records: List[Record], file: TextIO, verbose: bool) -> None:
    """Prints the answer: at most 30 lines for a machine; `verbose`: and the tables."""
    hosts, out = View(records).hosts, console(file=file)
    for host in hosts:
        _print_host(host, out, verbose)
        if verbose:
            _print_tables(host, out)
    answers = [answer for host in hosts for answer in host.answers]
    forced = dict.fromkeys(answer.forced for answer in answers if answer.forced)
    if forced:
        out.print("To use it: " + " or ".join(f"POSENC_BACKEND={backend}" for backend in forced))
    elif any(answer.best for answer in answers):
        out.print("Nothing to type: the default backends stay. POSENC_BACKEND=NAME forces another.")


# ---- files ----


def _render(args: argparse.Namespace, outputs: Sequence[Output]) -> int:
    """Renders files."""
    measuring = (*SELECTING, *SHAPES, "dir", "quick", "full", "jobs", "time-limit")
    idle = [f"--{name}" for name in measuring if getattr(args, name.replace("-", "_"))]
    if idle:
        raise CommandError(f"{idle[0]} has no effect on files of records. Leave it out.")
    records = [record for path in args.files for record in load(path)]
    if not machines(records):
        raise CommandError(f"the records name no machine (got '{args.files[0]}').")
    _write(args, outputs, records)
    return 0


def _write(args: argparse.Namespace, outputs: Sequence[Output], records: List[Record]) -> None:
    write_outputs(outputs, records, lambda shown, out: print_summary(shown, out, args.verbose), args.force)


def _measure(args: argparse.Namespace, argv: List[str], outputs: Sequence[Output]) -> int:
    """Checks and times this machine, and writes its report."""
    engine, folder = Engine(), ReportFolder(args.dir or Path(FOLDER), args.force)
    try:
        inside = [output.path for output in outputs if output.path and folder.has(output.path)]
        if inside:
            raise CommandError(f"-o lies in the folder of the report, which is replaced (got '{inside[0]}').")
        measurement = Measurement(engine, folder.partial, args)
        measurement.all()
        records = measurement.records(["posenc", "report", *argv])
        if not records:
            return measurement.status
        for kind, name in FILES.items():
            write_file(folder.partial / name, render(kind, records).encode(), None, force=True)
        if measurement.interrupted and folder.has_files():
            folder.kept = True
            _write(args, outputs, records)
            print(f"posenc report: interrupted. The report in {folder.folder} stays as it is; "
                  f"{folder.partial} holds the results until then.", file=sys.stderr)  # fmt: skip
            return measurement.status
        previous = folder.publish()
        _write(args, outputs, records)
        if CONSOLE in outputs:
            before = f" (the report before: {previous})" if previous else ""
            print(f"Page: {folder.folder / FILES['html']}{before}")
        return measurement.status
    except OSError as error:
        raise CommandError(f"the report cannot be written: {error.strerror} (got '{folder.folder}').") from None
    finally:
        if not folder.kept:
            folder.discard()


def main(arguments: List[str]) -> int:
    """Runs posenc report. Returns the exit code."""
    args = _parser().parse_args(arguments)
    outputs = outputs_of(args.out, args.output, force=args.force)
    return _render(args, outputs) if args.files else _measure(args, arguments, outputs)
