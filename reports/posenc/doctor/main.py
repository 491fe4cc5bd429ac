"""posenc doctor: measures disturbances of timings on this machine, or diagnoses records of other machines.

The C program measures (posenc bench --probe). quality.py grades the machine, findings.py finds the conditions, and this
file prints both, or writes them as the record "doctor".
"""

import textwrap
from typing import Dict, List, Optional, Tuple

from .. import units
from ..command import CommandError, Parser, check_output, write_output
from ..engine import Engine
from ..quality import DETECTABLE, quality_of
from ..records import MARKER, Record, dump, load, member, number
from ..terminal import Console, console, table
from .findings import COSTS, FINE, HIDDEN, LEVELS, NOTE, Run, findings_of

ABOUT = """Lists conditions that disturb timings on this machine, their measured cost, and
the command that fixes each. It changes nothing on the machine."""
EPILOG = """Run it where nothing else runs. Keep it to a CPU as you keep the program that you
measure. The exit code is 77 under an emulator.

Examples
  posenc doctor
  taskset -c 1 posenc doctor --quick -o doctor.jsonl
  posenc doctor node1.jsonl node2.jsonl
"""
TITLES = {COSTS: "Conditions that disturb timings", NOTE: "Conditions that may disturb timings"}
COST_COLUMNS = 9
LEGEND = """Detects: the smallest difference that 99 of 100 comparisons of 3 x 31 rounds find. Typical, largest:
difference between a call and its copy in a round. posenc compare calls a smaller difference SAME if it is sure of
less than 3 %, and UNCLEAR if not."""


def _parser() -> Parser:
    parser = Parser("posenc doctor", ABOUT, EPILOG)
    add = parser.add_argument
    add("files", metavar="FILE", nargs="*", help="records to diagnose (default: measure this machine)")
    add("--quick", action="store_true", help="measure for 3 seconds (default: 13)")
    add("--json", action="store_true", help="print the doctor record")
    parser.add_output("write records to PATH, a .jsonl file")
    add("-v", "--verbose", action="store_true", help="print also what was seen of fine conditions")
    return parser


def diagnosis(run: Run) -> Record:
    """Returns the doctor record of a run, with measurement quality and findings."""
    quality = quality_of(run.env, run.noise, number(run.doctor, "control_pct"), run.doctor.get("detectable"))
    return {"t": "doctor", **run.doctor, "quality": quality._asdict(), "findings": findings_of(run)}


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


def _measure(quick: bool, arguments: List[str]) -> Tuple[List[Record], int]:
    """Probes this machine. Returns its records with the diagnosis, and the exit code."""
    records, status = Engine().measurements("bench", "--probe", *(["--quick"] if quick else []))
    for at, record in enumerate(records):
        if record["t"] == "header":
            record["argv"] = ["posenc", "doctor", *arguments]
        elif record["t"] == "doctor":
            records[at] = diagnosis(runs_of(records)[0])
    return records, status


# ---- text ----


def percent(pct: Optional[float]) -> str:
    """Returns percent with the digits that mean something, and a factor if there are many."""
    if pct is None:
        return "-"
    if pct >= 1000:
        return f"{1 + pct / 100:.0f}x"
    return f"{pct:.{2 if pct < 1 else 1 if pct < 10 else 0}f} %"


def _print(console: Console, text: str, first: str = "", style: str = "") -> None:
    """Prints a paragraph behind its first words. Its lines fit the console, and are flush with the text."""
    for line in textwrap.wrap(text, console.width, initial_indent=first, subsequent_indent=" " * len(first)):
        console.print(line, style=style, soft_wrap=True)


def _print_quality(console: Console, run: Run, quality: Record) -> None:
    """Prints the machine, its grade, and what limits it."""
    name = f"{run.fact('cpu.name') or 'a CPU'} ({run.env.get('env_id')}), {run.amount('cpus.online'):.0f} CPUs; "
    where = "any CPU" if run.cpu is None else f"CPU {run.cpu}"
    took = f"measured on {where} for {number(run.doctor, 'seconds') or 0:.0f} s."
    unknown = "its noise was not measured (posenc doctor does that)."
    _print(console, name + (took if "measured" in run.doctor else unknown))
    console.print()
    grade, reasons = quality["grade"], quality["reasons"]
    limits = ((number(run.doctor, f"detectable.{name}"), place) for name, place, _ in DETECTABLE)
    detected = " and ".join(f"{percent(pct)} {place}" for pct, place in limits if pct is not None)
    text = f": timings detect differences of more than {detected}" if detected else ""
    _print(console, f"Measurement quality {grade}{text}.", style="bold red" if grade in "CD" else "bold green")
    if reasons:
        _print(console, f"Not better because: {'; '.join(reasons)}.")


def _floor_row(run: Run, floor: Record) -> List[str]:
    """Returns the row of the table about the smallest difference that timings detect."""
    return [
        f"{floor.get('place')}, {units.size(number(floor, 'bytes') or 0)}",
        "any" if run.cpu is None or not floor.get("pinned") else str(run.cpu),
        *(percent(number(floor, name)) for name in ("detectable_pct", "typical_pct", "largest_pct")),
        f"{number(floor, 'rounds') or 0:.0f}",
        units.time(number(floor, "call_ns") or 0),
    ]


def _print_finding(console: Console, finding: Record) -> None:
    """Prints a condition beside its cost, its fix and the command."""
    cost = finding["cost_pct"]
    first = f"{percent(cost) if cost is not None else 'unknown':>{COST_COLUMNS}}  "
    margin = " " * len(first)
    _print(console, f"{finding['what']}: {finding['evidence']}.", first)
    if finding["fix"]:
        _print(console, finding["fix"], margin)
    if finding["command"]:  # in one piece, to be copied
        console.print(f"{margin}$ {finding['command']}", style="cyan", soft_wrap=True)


def show(console: Console, run: Run, verbose: bool = False) -> None:
    """Prints a diagnosis: the answer, then the conditions by their cost, with the command that fixes each."""
    doctor = diagnosis(run)
    _print_quality(console, run, doctor["quality"])
    floors = [_floor_row(run, floor) for floor in member(doctor, "measured.floors") or []]
    if floors:
        columns = ["a kernel and its copy", "CPU", ">detects", ">typical", ">largest", ">rounds", ">a call"]
        console.print()
        console.print(table(columns, floors))
        _print(console, LEGEND, style="dim")
    levels = {level: [finding for finding in doctor["findings"] if finding["level"] == level] for level in LEVELS}
    for level, title in TITLES.items():
        if levels[level]:
            console.print()
            console.print(f"{title}, by cost", style="bold")
        for finding in levels[level]:
            _print_finding(console, finding)
    console.print()
    for finding in levels[FINE] if verbose else ():
        _print(console, f"{finding['what']}: {finding['evidence']}.", "Fine: ")
    if levels[FINE] and not verbose:
        _print(console, f"{', '.join(finding['what'] for finding in levels[FINE])} (-v prints them).", "Fine: ")
    if levels[HIDDEN]:
        words = "; ".join(f"{finding['what']} ({finding['evidence']})" for finding in levels[HIDDEN])
        _print(console, f"{words}.", "Not known: ")


# ---- the command ----


def main(arguments: List[str]) -> int:
    """Runs posenc doctor. Returns the exit code."""
    args = _parser().parse_args(arguments)
    if args.output and args.output.suffix != ".jsonl":
        raise CommandError(f"the format of the output is unknown (got '{args.output}'). Use a name like x.jsonl.")
    if args.files and (args.quick or args.output):
        raise CommandError(f"{'--quick' if args.quick else '-o'} has no effect on files. Leave one of them out.")
    if args.output:
        check_output(args.output, MARKER, force=args.force)
    if args.files:
        records, status = [record for path in args.files for record in load(path)], 0
    else:
        records, status = _measure(args.quick, arguments)
    if args.output and records:
        write_output(args.output, dump(records), MARKER, force=args.force)
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
        show(terminal, run, args.verbose)
    return status
