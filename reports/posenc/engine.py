"""The C program: finding it and asking it for numbers."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence

from .command import CommandError


class Rows(NamedTuple):
    """Rows of numbers by the name of their array, such as cos and sin: {name: [row][column]}."""

    places: List[List[float]]
    arrays: Dict[str, List[List[float]]]


class Engine:
    """The C program. It is POSENC_PROGRAM, which it sets when it starts this package, or `posenc` on PATH."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        """`options` are added to each request, such as --backend NAME."""
        found = os.environ.get("POSENC_PROGRAM") or shutil.which("posenc")
        if not found:
            raise CommandError("the program posenc is not on PATH. Install it, or set POSENC_PROGRAM=PATH.")
        self.program = Path(found)
        self.options = list(options)

    def run(self, *arguments: str) -> str:
        """Runs the program and returns its standard output. What it rejects is a CommandError."""
        try:
            done = subprocess.run(
                [str(self.program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                check=False,
            )
        except OSError as error:
            raise CommandError(f"the program cannot be run: {error.strerror} (got '{self.program}').") from None
        if done.returncode != 0:
            reason = done.stderr.strip().removeprefix(f"posenc {arguments[0]}: ")
            reason = reason or f"{self.program} ended without a message"
            raise CommandError(reason, done.returncode if done.returncode > 0 else 128 - done.returncode)
        sys.stderr.write(done.stderr)
        return done.stdout

    def columns(self, table: str, *options: str) -> List[Dict[str, str]]:
        """Returns the lines of `posenc table frequencies` or `errors`, by the names of their columns."""
        return list(csv.DictReader(self.run("table", table, *options).splitlines()))

    def rows(self, *arguments: str) -> Rows:
        """Returns what `posenc table` computes: rows of arrays, and where each row is."""
        lines = csv.reader(self.run("table", *arguments, *self.options).splitlines())
        heads = [name.partition("[")[0] for name in next(lines)]
        table = [[float(cell) for cell in line] for line in lines]
        arrays: Dict[str, List[List[float]]] = {}
        for name in dict.fromkeys(heads):
            first, count = heads.index(name), heads.count(name)
            arrays[name] = [line[first : first + count] for line in table]
        places = arrays.pop(heads[0])
        return Rows(places, arrays)

    def problem(self, line: str) -> List[List[float]]:
        """Returns the one output of a problem, [rows][columns]."""
        (output,) = self.rows("--problem", line).arrays.values()
        return output
