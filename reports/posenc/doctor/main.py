"""posenc doctor: measures what disturbs timings on this machine, or diagnoses the records of others."""

import argparse
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

from ..command import CommandError, Parser, check_output, write_file
from ..convert import Record
from ..engine import Engine
from ..quality import quality_of
from ..records import dump, load
from ..runs import number
from ..terminal import console
from .findings import Machine, findings_of
from .text import show

ABOUT = """Lists conditions that disturb timings on this machine, their measured cost, and
the command that fixes each. It changes nothing on the machine."""
EPILOG = """Run it where nothing else runs. Keep it to a CPU as you keep the program that you
measure. The exit code is 77 under an emulator.

Examples
  posenc doctor
  taskset -c 1 posenc doctor --quick -o doctor.jsonl
  posenc doctor node1.jsonl node2.jsonl
"""
BEGINS = b'"posenc.results/'


class Run(NamedTuple):
    """Records of one run on one machine, which may lack all but the first."""

    env: Record
    doctor: Record
    footer: Record


def _parser() -> Parser:
    parser = Parser("posenc doctor", ABOUT, EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("files", metavar="FILE", nargs="*", help="records to diagnose (default: measure this machine)")
    add("--quick", action="store_true", help="measure for 3 seconds (default: 13)")
    add("--json", action="store_true", help="print the doctor record")
    add("-o", "--output", metavar="PATH", type=Path, help="write records to PATH, a .jsonl file")
    add("--force", action="store_true", help="overwrite any file at PATH")
    add("-v", "--verbose", action="store_true", help="print also what was seen of fine conditions")
    return parser


def diagnosis(run: Run) -> Record:
    """Returns the doctor record of a run, with measurement quality and findings."""
    noise: Dict[str, Any] = run.footer.get("noise") or {}
    quality = quality_of(run.env, noise, number(run.doctor, "control_pct"), run.doctor.get("detectable"))
    found = [finding.record() for finding in findings_of(Machine(run.env, noise, run.doctor))]
    return {"t": "doctor", **run.doctor, "quality": quality._asdict(), "findings": found}


def runs_of(records: List[Record]) -> List[Run]:
    """Returns the last run of each machine; one that was probed comes before one that was not."""
    last: Dict[str, Run] = {}
    run = Run({}, {}, {})
    for record in records:
        if record["t"] == "header":
            run = Run({}, {}, {})
        elif record["t"] in Run._fields:
            run = run._replace(**{record["t"]: record})
        machine = run.env.get("env_id")
        if machine and (run.doctor or not last.get(machine, run).doctor):
            last[machine] = run
    return list(last.values())


def _measure(quick: bool, arguments: List[str]) -> "tuple[List[Record], int]":
    """Probes this machine. Returns its records with the diagnosis, and the exit code."""
    records, status = Engine().records("bench", "--probe", *(["--quick"] if quick else []))
    for at, record in enumerate(records):
        if record["t"] == "header":
            record["argv"] = ["posenc", "doctor", *arguments]
        elif record["t"] == "doctor":
            records[at] = diagnosis(runs_of(records)[0])
    return records, status


def main(arguments: List[str]) -> int:
    """Runs posenc doctor. Returns the exit code."""
    args = _parser().parse_args(arguments)
    if args.output and args.output.suffix != ".jsonl":
        raise CommandError(f"the format of the output is unknown (got '{args.output}'). Use a name like x.jsonl.")
    if args.files and (args.quick or args.output):
        raise CommandError(f"{'--quick' if args.quick else '-o'} has no effect on files. Leave one of them out.")
    if args.output:
        check_output(args.output, BEGINS, args.force)
    if args.files:
        records, status = [record for path in args.files for record in load(path)], 0
    else:
        records, status = _measure(args.quick, arguments)
    if args.output and records:
        write_file(args.output, dump(records).encode(), BEGINS, args.force)
        print(f"written: {args.output}", file=sys.stderr)
    runs = runs_of(records)
    if args.files and not runs:
        raise CommandError("the files hold no machine (no record env).")
    terminal = console()
    for at, run in enumerate(run for run in runs if args.files or run.doctor):
        if args.json:
            print(dump([diagnosis(run)]), end="")
            continue
        if at:
            terminal.rule()
        show(terminal, run.env, diagnosis(run), args.verbose)
    return status
