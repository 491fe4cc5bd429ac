"""The formats of records and where they go: the options -o and --out, and posenc results.

The commands report and compare call outputs_of() before they measure, and write_outputs() after. With -o page.html
they print text and write a page; with --out csv:all.csv they write that file alone.
"""

import argparse
import io
import os
import sys
from functools import partial
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, TextIO

from ..command import CommandError, Parser, check_output, suggest, write_output
from ..records import MARKER, Record, dump, load, members_expected
from .exports import to_baseline, to_bmf, to_csv, to_gbench, to_gha, to_junit
from .github import COMMENT, SUMMARY, to_annotations, to_page
from .outcome import to_badge


class Format(NamedTuple):
    """A format of records."""

    suffix: str  # of its files
    write: Callable[[List[Record]], str]
    about: str  # a line of --help
    marker: bytes  # a text near the beginning of its files, by which an earlier output is recognised


PAGE = b"## posenc: "
FORMATS: Dict[str, Format] = {
    "csv": Format("csv", to_csv, "a line for each result", b"cpu,"),
    "junit": Format("xml", to_junit, "JUnit XML: a test for each result", b'<testsuites name="posenc"'),
    "annotations": Format("txt", to_annotations, "failures, for a workflow of GitHub", b" title="),
    "summary": Format("md", partial(to_page, limit=SUMMARY), "summary of a job on GitHub, within 1024 KiB", PAGE),
    "comment": Format("md", partial(to_page, limit=COMMENT), "the same for a comment, within 64 KiB", PAGE),
    "md": Format("md", to_page, "the same, whole", PAGE),
    "badge": Format("json", to_badge, "the outcome, for shields.io", b'{"schemaVersion":1'),
    "baseline": Format("jsonl", to_baseline, "errors and shares of the roofline, to compare with", MARKER),
    "gha": Format("json", to_gha, "github-action-benchmark, customSmallerIsBetter: ratios", b"["),
    "gbench": Format("json", to_gbench, "Google Benchmark, for its compare.py", b'"executable":"posenc"'),
    "bmf": Format("json", to_bmf, "Bencher Metric Format", b"{"),
}
# Markers of all formats of --out.
MARKERS: Dict[str, bytes] = {
    "console": b"posenc compare", "jsonl": MARKER, "html": b"<!DOCTYPE html>",
    **{name: format.marker for name, format in FORMATS.items()},
}  # fmt: skip
SUFFIXES = {".jsonl": "jsonl", ".html": "html", ".md": "md", ".csv": "csv", ".xml": "junit"}


class Output(NamedTuple):
    """A format and its file; None: standard output."""

    format: str
    path: Optional[Path]


def outputs_of(out: Sequence[str], paths: Sequence[Path], *, json: bool = False, force: bool) -> List[Output]:
    """Returns the outputs of --out, -o (`paths`) and --json. Rejects one that cannot be written."""
    outputs: List[Output] = []
    default = ["jsonl"] if json else [] if out else ["console"]
    for text in [*out, *default]:
        name, colon, path = text.partition(":")
        if name not in MARKERS:
            raise CommandError(f"--out has no such format (got '{name}'). {suggest(name, list(MARKERS))}")
        if colon and not path:
            raise CommandError(f"--out lacks a path (got '{text}'). Expected FORMAT or FORMAT:PATH.")
        outputs.append(Output(name, None if path in ("", "-") else Path(path)))
    for given in paths:
        if given.suffix not in SUFFIXES:
            raise CommandError(
                f"the format is not clear from the name (got '{given}'). "
                f"Use a name that ends in {', '.join(SUFFIXES)}, or --out FORMAT:PATH."
            )
        outputs.append(Output(SUFFIXES[given.suffix], given))
    files = [os.path.realpath(file) for _, file in outputs if file]
    if len(files) < len(outputs) - 1:
        raise CommandError("two outputs go to standard output. Use --out FORMAT:PATH.")
    if len(set(files)) < len(files):
        raise CommandError("two outputs go to one file. Use another path.")
    for name, file in outputs:
        if file:
            check_output(file, MARKERS[name], force=force)
    return outputs


def render(name: str, records: List[Record]) -> str:
    """Returns records in a format other than console."""
    if name == "jsonl":
        return dump(records)
    if name == "html":
        from ..report.page import to_html  # takes a while to load
        from ..report.view import View

        return to_html(View(records))
    return FORMATS[name].write(records)


def write_outputs(
    outputs: Sequence[Output], records: List[Record], print_text: Callable[[List[Record], TextIO], None], force: bool
) -> None:
    """Writes records, whose control characters are escaped, to all outputs. `print_text` writes the format console."""
    for name, path in outputs:
        if name == "console" and not path:
            print_text(records, sys.stdout)
        elif name == "console":
            text = io.StringIO()
            print_text(records, text)
            write_output(path, text.getvalue(), MARKERS[name], force=force)
        else:
            write_output(path, render(name, records), MARKERS[name], force=force)


# ---- posenc results ----

USAGE = """\
usage: posenc results COMMAND FILE... [OPTIONS]

Files of records.

  export  another format
  merge   shards of a run, or runs of several machines, as one file
  trend   many runs in their order: share of the roofline, changes of level, errors

Formats of export
{formats}

Examples
  posenc results export results.jsonl -o results.csv
  posenc results export results.jsonl --format gha -o ratios.json
  posenc results merge 0.jsonl 1.jsonl -o whole.jsonl
  posenc results trend results/*.jsonl --kernel rope_half

posenc results COMMAND --help lists its options."""


def _choose_format(args: argparse.Namespace) -> str:
    """Returns the name of the format that --format or the suffix of -o states; csv without both."""
    if args.format:
        if args.format not in FORMATS:
            raise CommandError(f"no such format (got '{args.format}'). {suggest(args.format, list(FORMATS))}")
        return str(args.format)
    suffix = args.output.suffix[1:] if args.output else "csv"
    names = [name for name, known in FORMATS.items() if known.suffix == suffix]
    if len(names) != 1:
        options = f"one of {', '.join(names)}" if names else f"a name that ends in .csv, or one of {', '.join(FORMATS)}"
        raise CommandError(f"the format is not clear from the name (got '{args.output}'). Give --format: {options}.")
    return names[0]


def export(arguments: List[str]) -> int:
    """Writes records in another format. Returns the exit code."""
    parser = Parser("posenc results export", "Writes records in a format of other programs.")
    parser.add_records()
    parser.add_argument("--format", metavar="NAME",
                        help=f"one of these: {', '.join(FORMATS)} (default: by the name of -o)")  # fmt: skip
    parser.add_output()
    args = parser.parse_args(arguments)
    chosen = FORMATS[_choose_format(args)]
    text = chosen.write([record for path in args.files for record in load(path)])
    write_output(args.output, text, chosen.marker, force=args.force)
    return 0


def main(arguments: List[str]) -> int:
    """Runs posenc results. Returns the exit code."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE.format(formats="\n".join(f"  {name:<12} {f.about} (.{f.suffix})" for name, f in FORMATS.items())))
        return 0
    from . import merge, trend  # other commands load this module for its formats

    commands = {"export": export, "merge": merge.main, "trend": trend.main}
    if not arguments or arguments[0] not in commands:
        got = f" (got '{arguments[0]}')" if arguments else ""
        raise CommandError(f"expected a subcommand{got}: {', '.join(commands)}. See posenc results --help.")
    with members_expected():
        return commands[arguments[0]](arguments[1:])
