"""posenc report: which backend is fastest here, how sure that is, and is it right."""

import argparse
import sys
from pathlib import Path
from typing import Callable, Dict, List, Tuple

from .. import units
from ..command import CommandError, Parser, write_file
from ..convert import Record
from ..engine import Engine
from ..records import dump, load
from ..results.outcome import check_words
from ..terminal import console, table
from .folder import FILES, ReportFolder
from .measure import Measurement, one_run
from .page import d3_source, to_html, to_markdown
from .view import Host, View

FOLDER = "posenc-report"
SHOWN, FAILURES = 12, 4  # rows on a terminal
CERTAINTY = {"clear": "clear", "tied": "tie", "noisy": "too noisy to tell"}
# Options of the C commands that select what is checked and timed.
SELECT = (
    ("--kernel", "NAME", "only these kernels (posenc list kernels)"),
    ("--backend", "NAME", "only these backends or families"),
    ("--dtype", "NAME", "only this element type: f32, f16 or bf16"),
    ("--case", "GLOB", "only cases whose id matches"),
    ("--plugin", "LIB", "a shared library with a backend of your own"),
    ("--vectors", "PATH", "other golden vectors"),
    ("--limit", "SECONDS", "CPU time after which a call counts as hung"),
)
MODELS = (("--model", "NAME", "shapes of this model (posenc list models)"),
          ("--config", "FILE", "shapes of a model file or folder"))  # fmt: skip

EPILOG = """examples:
  posenc report                               check and time this machine
  posenc report --model llama-3.1-8b          one model
  posenc report a.jsonl b.jsonl -o fleet.html records of other runs and machines

Exit code 1 if a check fails or an output is wrong, 77 if nothing can run here. Files are rendered with 0."""


def _parser() -> Parser:
    parser = Parser("posenc report", "Which backend is fastest here, how sure that is, and is it right.", EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", metavar="FILE", nargs="*", help="records to render; none: check and time this machine")
    parser.add_argument("-o", "--output", metavar="PATH", type=Path, action="append", default=[],
                        help="write .html, .md or .jsonl; .csv and others as posenc results export")  # fmt: skip
    parser.add_argument("--format", choices=("html", "md", "jsonl"), help="print this to standard output")
    parser.add_argument("--dir", metavar="FOLDER", type=Path, help=f"folder of the report (default: {FOLDER})")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the tables as well")
    parser.add_argument("--force", action="store_true", help="overwrite any file or folder")
    for name, value, text in SELECT + MODELS:
        parser.add_argument(name, metavar=value, action="append", default=[], help=text)
    parser.add_argument("--jobs", metavar="N", help="kernels checked at once (default: CPUs)")
    parser.add_argument("--time-limit", metavar="SECONDS", type=float, help="stop timing after SECONDS")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--quick", action="store_true", help="the short run (default)")
    modes.add_argument("--full", action="store_true", help="every case, dense scans, more rounds")
    return parser


# ---- the terminal ----


def _answer_rows(host: Host) -> List[List[str]]:
    rows = []
    for answer in host.answers:
        best, step = answer.best, answer.step
        name = f"{step.model.get('title') or step.model['name']}"
        if not best:
            rows.append([name, step.name, "–", "wrong: " + ", ".join(answer.wrong) if answer.wrong else "not timed"])
            rows[-1] += [""] * 4
            continue
        sure = CERTAINTY[answer.certainty]
        if answer.certainty == "tied":
            sure += f" with {answer.tied[0].backend}" + (f" + {len(answer.tied) - 1}" if len(answer.tied) > 1 else "")
        rows.append([
            name, step.name, best.backend + (" (default)" if best.backend == answer.default else ""), sure,
            units.time(best.ns), units.times(answer.speedup("libm")),
            units.times(answer.speedup("autovec")), units.percent(best.share),
        ])  # fmt: skip
    return rows


HEAD = ("Model", "Step", "Fastest", "How sure", ">Time", ">vs C", ">vs compiler", ">% of roofline")


def _print_host(host: Host, verbose: bool) -> None:
    out = console()
    checked = host.checked
    quality = f", measurement quality {host.quality.grade}" if host.quality.grade else ""
    out.print(f"{host.cpu} ({host.name}){quality}", style="bold")
    if checked.counts:
        word = "failed" if checked.failed else "passed"
        out.print(f"{(checked.failed or checked.ran):,} of {checked.ran:,} checks {word}".replace(",", "\u202f"))
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
        out.print(table(HEAD, rows if verbose else rows[:SHOWN]))
    if len(rows) > SHOWN and not verbose:
        out.print(f"… and {len(rows) - SHOWN} more: -v prints them")
    if verbose:
        _print_tables(host)


def _print_tables(host: Host) -> None:
    out = console()
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


def print_summary(view: View, verbose: bool) -> None:
    """Prints the answer: at most 30 lines for a machine."""
    for host in view.hosts:
        _print_host(host, verbose)
    forced = list(dict.fromkeys(answer.forced for host in view.hosts for answer in host.answers if answer.forced))
    if forced:
        print("To use it: " + " or ".join(f"POSENC_BACKEND={backend}" for backend in forced))
    elif any(answer.best for host in view.hosts for answer in host.answers):
        print("Nothing to type: the default backends stay. POSENC_BACKEND=NAME forces another.")


# ---- files ----


def _jsonl(view: View) -> str:
    return dump(view.records)


WRITERS: Dict[str, Tuple[Callable[[View], str], bytes]] = {
    ".html": (to_html, b"<!DOCTYPE html>"),
    ".md": (to_markdown, b"# posenc"),
    ".jsonl": (_jsonl, b'"posenc.results/'),
}


def write(view: View, path: Path, force: bool) -> None:
    """Writes a report in the format that the name of its file says."""
    make, begins = WRITERS[path.suffix]
    if path.suffix == ".html" and d3_source() is None:
        print("posenc report: the page has no charts: D3 is missing. Install libjs-d3 (Debian), or: "
              "pip install XStatic-D3", file=sys.stderr)  # fmt: skip
    write_file(path, make(view).encode(), begins, force)


def _render(args: argparse.Namespace) -> int:
    """Renders files."""
    others = [path for path in args.output if path.suffix not in WRITERS]
    idle = [name for name, value, _ in SELECT + MODELS if getattr(args, name[2:])]
    if idle or args.dir:
        raise CommandError(f"{idle[0] if idle else '--dir'} has no effect on files of records. Leave it out.")
    view = View([record for path in args.files for record in load(path)])
    if not view.hosts:
        raise CommandError(f"the records name no machine (got '{args.files[0]}').")
    for path in args.output:
        if path not in others:
            write(view, path, args.force)
    for path in others:
        from ..results.main import export

        export([*args.files, "-o", str(path)] + (["--force"] if args.force else []))
    if args.format:
        sys.stdout.write(WRITERS[f".{args.format}"][0](view))
    elif not args.output:
        print_summary(view, args.verbose)
    return 0


def _measure(args: argparse.Namespace, argv: List[str]) -> int:
    """Checks and times this machine, and writes its report."""
    engine, folder = Engine(), ReportFolder(args.dir or Path(FOLDER), args.force)
    try:
        return _measure_into(folder, engine, args, argv)
    except OSError as error:
        raise CommandError(f"the report cannot be written: {error.strerror} (got '{folder.folder}').") from None
    finally:
        if not folder.kept:
            folder.discard()


def _measure_into(folder: ReportFolder, engine: Engine, args: argparse.Namespace, argv: List[str]) -> int:
    inside = [path for path in args.output if folder.has(path)]
    if inside:
        raise CommandError(f"-o lies in the folder of the report, which is replaced (got '{inside[0]}').")
    words = {name: [word for value in getattr(args, name[2:]) for word in (name, value)]
             for name, _, _ in SELECT + MODELS}  # fmt: skip
    models = words.pop("--model") + words.pop("--config")
    measurement = Measurement(
        engine, folder.partial, [word for some in words.values() for word in some], models,
        ["--jobs", args.jobs] if args.jobs else [], args.time_limit, args.full,
    )  # fmt: skip
    measurement.all()
    command = ["posenc", "report", *argv]
    records: List[Record] = one_run(measurement.runs, command, [])
    if not records:
        return measurement.status
    timed = {record["backend"] for record in records if record["t"] == "bench" and record["kernel"] == "rope_table"}
    if timed and not measurement.interrupted:
        records = one_run(measurement.runs, command, measurement.curves(sorted(timed)))
    view = View(records)
    for name in FILES:
        write(view, folder.partial / name, True)
    for path in args.output:
        write(view, path, args.force)
    if measurement.interrupted and folder.target.exists():
        folder.kept = True
        print(f"posenc report: interrupted. The report in {folder.folder} stays as it is; "
              f"{folder.partial} holds the results until then.", file=sys.stderr)  # fmt: skip
        return measurement.status
    previous = folder.publish()
    print_summary(view, args.verbose)
    print(f"Page: {folder.folder / FILES[0]}" + (f" (the report before: {previous})" if previous else ""))
    return measurement.status


def main(arguments: List[str]) -> int:
    """Runs posenc report. Returns the exit code."""
    args = _parser().parse_args(arguments)
    return _render(args) if args.files else _measure(args, arguments)
