"""Outputs of posenc compare and posenc report: -o PATH, --out FORMAT[:PATH], and standard output."""

import io
import os
import sys
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, TextIO

from ..command import CommandError, check_output, suggest, write_output
from ..records import MARKER, Record, dump
from ..results.main import FORMATS

MARKERS: Dict[str, bytes] = {
    "console": b"posenc compare", "jsonl": MARKER, "html": b"<!DOCTYPE html>", "md": b"# posenc",
    **{name: format.marker for name, format in FORMATS.items()},
}  # fmt: skip
SUFFIXES = {".jsonl": "jsonl", ".html": "html", ".md": "md", ".csv": "csv", ".xml": "junit"}


class Output(NamedTuple):
    """A format and its file; None: standard output."""

    format: str
    path: Optional[Path]


def outputs_of(out: Sequence[str], paths: Sequence[Path], *, json: bool = False, force: bool) -> List[Output]:
    """Returns the outputs that options ask for. Rejects one that cannot be written."""
    outputs: List[Output] = []
    for text in [*out, *(["jsonl"] if json else [] if out else ["console"])]:
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
    if name in ("html", "md"):
        from ..report.page import to_html, to_markdown  # takes a while to load
        from ..report.view import View

        return (to_html if name == "html" else to_markdown)(View(records))
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
