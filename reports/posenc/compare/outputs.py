"""Where the records of a comparison go: -o PATH, --out FORMAT[:PATH] and standard output."""

import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, TextIO

from ..command import CommandError, check_output, suggest, write_file
from ..convert import Record
from ..records import dump
from ..results.formats import FORMATS

BEGINS: Dict[str, bytes] = {
    "console": b"posenc compare",
    "jsonl": b'"posenc.results/',
    "html": b"<!DOCTYPE html>",
    "md": b"# posenc",
}
SUFFIXES = {".jsonl": "jsonl", ".html": "html", ".md": "md", ".csv": "csv", ".xml": "junit"}


class Output(NamedTuple):
    """A format and its file; None: standard output."""

    format: str
    path: Optional[Path]


def _requested(text: str) -> Output:
    name, colon, path = text.partition(":")
    names = [*BEGINS, *FORMATS]
    if name not in names:
        raise CommandError(f"--out has no such format (got '{name}'). {suggest(name, names)}")
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


class Outputs:
    """All outputs of a command. They are checked before anything runs."""

    def __init__(self, out: Sequence[str], paths: Sequence[Path], json: bool, force: bool) -> None:
        self.force = force
        self.all = [_requested(text) for text in out] + [_by_suffix(path) for path in paths]
        if json:
            self.all.append(Output("jsonl", None))
        elif not out:
            self.all.append(Output("console", None))
        if sum(output.path is None for output in self.all) > 1:
            raise CommandError("two outputs go to standard output. Use --out FORMAT:PATH.")
        paths = [Path(os.path.realpath(output.path)) for output in self.all if output.path]
        for path in paths:
            if paths.count(path) > 1:
                raise CommandError(f"two outputs go to one file (got '{path}'). Use another path.")
        for output in self.all:
            if output.path and output.path.exists() and not output.path.is_file() and not output.path.is_dir():
                continue  # a device or a pipe
            if output.path:
                check_output(output.path, BEGINS.get(output.format, b""), force)

    def write(self, records: List[Record], print_text: Callable[[TextIO], None]) -> None:
        """Writes all outputs. `print_text` prints the records for people."""
        for output in self.all:
            if output.format == "console":
                text = io.StringIO()
                print_text(text if output.path else sys.stdout)
                if output.path:
                    self._put(output.path, text.getvalue())
            elif output.format == "jsonl" and output.path is None:
                sys.stdout.write(dump(records))
            elif output.format == "jsonl" and output.path:
                self._put(output.path, dump(records), BEGINS["jsonl"])
            else:
                self._render(output, records)

    def _put(self, path: Path, text: str, begins: bytes = b"posenc compare") -> None:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            write_file(path, text.encode(), begins, self.force)

    def _render(self, output: Output, records: List[Record]) -> None:
        """Has posenc report or posenc results export write the records."""
        force = ["--force"] if self.force else []
        to = ["-o", str(output.path)] if output.path else []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "compare.jsonl"
            file.write_text(dump(records), encoding="utf-8")
            if output.format in ("html", "md"):
                from ..report.main import main as report

                page = output.path or Path(folder) / f"page.{output.format}"
                report([str(file), "-o", str(page), *force])
                if not output.path:
                    sys.stdout.write(page.read_text(encoding="utf-8"))
            else:
                from ..results.main import export

                export([str(file), "--format", output.format, *to, *force])
