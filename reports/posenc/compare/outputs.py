"""Where the records of a comparison go: -o PATH, --out FORMAT[:PATH] and standard output."""

import io
import os
import sys
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, TextIO

from ..command import CommandError, check_output, suggest, write_file
from ..convert import Record
from ..records import dump, parse
from ..results.main import FORMATS

BEGINS: Dict[str, bytes] = {
    "console": b"posenc compare", "jsonl": b'"posenc.results/', "html": b"<!DOCTYPE html>", "md": b"# posenc",
    **{name: format.begins for name, format in FORMATS.items()},
}  # fmt: skip
SUFFIXES = {".jsonl": "jsonl", ".html": "html", ".md": "md", ".csv": "csv", ".xml": "junit"}


class Output(NamedTuple):
    """A format and its file; None: standard output."""

    format: str
    path: Optional[Path]


def _requested(text: str) -> Output:
    name, colon, path = text.partition(":")
    if name not in BEGINS:
        raise CommandError(f"--out has no such format (got '{name}'). {suggest(name, list(BEGINS))}")
    if colon and not path:
        raise CommandError(f"--out lacks a path (got '{text}'). Expected FORMAT or FORMAT:PATH.")
    return Output(name, None if path in ("", "-") else Path(path))


def _by_suffix(path: Path) -> Output:
    if path.suffix not in SUFFIXES:
        raise CommandError(
            f"the format is not clear from the name (got '{path}'). "
            f"Use a name that ends in {', '.join(SUFFIXES)}, or --out FORMAT:PATH."
        )
    return Output(SUFFIXES[path.suffix], path)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def outputs_of(out: Sequence[str], paths: Sequence[Path], json: bool, force: bool) -> List[Output]:
    """Returns the outputs of a command, which can be written."""
    outputs = [_requested(text) for text in out] + [_by_suffix(path) for path in paths]
    if json or not out:
        outputs.append(Output("jsonl" if json else "console", None))
    files = [os.path.realpath(output.path) for output in outputs if output.path]
    if len(files) < len(outputs) - 1:
        raise CommandError("two outputs go to standard output. Use --out FORMAT:PATH.")
    for file in files:
        if files.count(file) > 1:
            raise CommandError(f"two outputs go to one file (got '{file}'). Use another path.")
    for output in outputs:
        if output.path and not _is_device(output.path):
            check_output(output.path, BEGINS[output.format], force)
    return outputs


def _render(format: str, records: List[Record]) -> str:
    if format == "jsonl":
        return dump(records)
    if format in ("html", "md"):
        from ..report.page import to_html, to_markdown  # takes a while to load
        from ..report.view import View

        return (to_html if format == "html" else to_markdown)(View(records))
    return FORMATS[format].write(records)


def write_outputs(
    outputs: Sequence[Output], records: List[Record], print_text: Callable[[List[Record], TextIO], None], force: bool
) -> None:
    """Writes records to all outputs. `print_text` prints them for people."""
    records = parse(dump(records), "the comparison")  # without what a terminal obeys
    for output in outputs:
        if output.format == "console" and not output.path:
            print_text(records, sys.stdout)
            continue
        text = io.StringIO()
        if output.format == "console":
            print_text(records, text)
        else:
            text.write(_render(output.format, records))
        if not output.path:
            sys.stdout.write(text.getvalue())
        elif _is_device(output.path):
            output.path.write_text(text.getvalue(), encoding="utf-8")
        else:
            write_file(output.path, text.getvalue().encode(), BEGINS[output.format], force)
