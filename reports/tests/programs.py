"""Helpers of tests: commands run with a script in place of the C program, and files of records."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, List

TESTS = Path(__file__).parent
Completed = subprocess.CompletedProcess


def make_program(path: Path, script: str) -> Path:
    """Writes a shell script that stands in for the C program."""
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def start(program: Path, *words: str, env: Dict[str, str] = {}, **options: Any) -> "subprocess.Popen[str]":
    """Starts posenc WORDS with such a program. Its output and its messages are pipes, unless options say otherwise."""
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


def read_json_lines(path: Path) -> List[Any]:
    """Returns the values of a file of JSON Lines, which may be compressed."""
    data = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()]


def write_records(path: Path, records: Iterable[Dict[str, Any]]) -> str:
    """Writes records, one a line, and returns the path as a word of a command."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)
