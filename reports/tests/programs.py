"""Helpers of tests: records that are made up, files of them, and commands run with a script in place of the C program.

    program = make_program(tmp_path / "posenc", "echo $*")    a program that prints its arguments
    run(program, "plot", "rope").stdout                       posenc plot rope beside that program
"""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, List

TESTS = Path(__file__).parent
Completed = subprocess.CompletedProcess
Record = Dict[str, Any]
HEADER: Record = {"t": "header", "schema": "posenc.results/2"}
FOOTER: Record = {"t": "footer", "complete": True}


def result(kind: str, case: str, backend: str = "avx2", **members: Any) -> Record:
    """Returns a check, a timing, a pair or the like of a case, whose name begins with kernel, dtype and numerics."""
    names = dict(zip(("kernel", "dtype", "numerics"), case.split("/")))
    return {"t": kind, "case": case, **names, "backend": backend, "family": backend, **members}


# ---- commands ----


def make_program(path: Path, script: str) -> Path:
    """Writes a shell script that stands in for the C program."""
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def start(program: Path, *words: str, env: Dict[str, str] = {}, **options: Any) -> "subprocess.Popen[str]":
    """Starts posenc WORDS beside such a program. Output and messages are pipes, unless options say otherwise."""
    environment = {**os.environ, "POSENC_PROGRAM": str(program), "PYTHONPATH": str(TESTS.parent), **env}
    settings: Dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", **options}
    child: "subprocess.Popen[str]" = subprocess.Popen(
        [sys.executable, "-m", "posenc", *words], env=environment, **settings
    )
    return child


def run(program: Path, *words: str, env: Dict[str, str] = {}, **options: Any) -> "Completed[str]":
    """Runs posenc WORDS to its end."""
    child = start(program, *words, env=env, **options)
    out, err = child.communicate()
    return Completed(words, child.returncode, out, err)


# ---- files ----


def read_json(path: Path) -> Any:
    """Returns the value of a compressed JSON file."""
    return json.loads(gzip.decompress(path.read_bytes()))


def freeze_json(path: Path, value: Any) -> None:
    """Writes a compressed JSON file. The same value gives the same bytes."""
    path.write_bytes(gzip.compress(json.dumps(value, separators=(",", ":")).encode(), 9, mtime=0))


def read_json_lines(path: Path) -> List[Any]:
    """Returns the records of a file, which may be compressed."""
    data = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()]


def write_records(path: Path, records: Iterable[Record]) -> str:
    """Writes records, one a line, and returns the path as a word of a command."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)
