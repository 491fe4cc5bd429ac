"""The diagnosis of a machine as text for a terminal."""

import textwrap
from typing import List, Optional

from rich.console import Console
from rich.text import Text

from .. import units
from ..convert import Record
from ..quality import exposed
from ..runs import member, number
from ..terminal import table
from .findings import COSTS, FINE, HIDDEN, NOTE

TITLES = {COSTS: "Conditions that disturb timings", NOTE: "Conditions that may disturb timings"}
COST = 9  # columns
LEGEND = """Detects: the smallest difference that 99 of 100 comparisons of 3 x 31 rounds find. Typical, largest:
difference between a call and its copy in a round. posenc compare calls a smaller difference SAME if it is sure of
less than 3 %, and UNCLEAR if not."""


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
        console.print(Text(line, style), soft_wrap=True)


def _answer(console: Console, env: Record, doctor: Record) -> None:
    cpu = number(doctor, "cpu")
    where = f"CPU {cpu:.0f}" if cpu is not None and cpu >= 0 else "any CPU"
    name = f"{exposed(env, 'cpu.name') or 'a CPU'} ({env.get('env_id')}), {number(env, 'cpus.online') or 0:.0f} CPUs; "
    took = f"measured on {where} for {number(doctor, 'seconds') or 0:.0f} s."
    _print(console, name + (took if "measured" in doctor else "its noise was not measured (posenc doctor does that)."))
    console.print()
    grade, reasons = member(doctor, "quality.grade") or "D", member(doctor, "quality.reasons") or []
    detected = [
        f"{percent(pct)} {place}"
        for name, place in (("cache_pct", "in cache"), ("dram_pct", "in DRAM"))
        if (pct := number(doctor, f"detectable.{name}")) is not None
    ]
    text = f": timings detect differences of more than {' and '.join(detected)}" if detected else ""
    _print(console, f"Measurement quality {grade}{text}.", style="bold red" if grade in "CD" else "bold green")
    if reasons:
        _print(console, f"Not better because: {'; '.join(reasons)}.")


def _floor(doctor: Record, floor: Record) -> List[str]:
    cpu = number(doctor, "cpu")
    return [
        f"{floor.get('place')}, {units.size(number(floor, 'bytes') or 0)}",
        f"{cpu:.0f}" if floor.get("pinned") and cpu is not None and cpu >= 0 else "any",
        *(percent(number(floor, name)) for name in ("detectable_pct", "typical_pct", "largest_pct")),
        f"{number(floor, 'rounds') or 0:.0f}",
        units.time(number(floor, "call_ns") or 0),
    ]


def _finding(console: Console, finding: Record) -> None:
    cost, fix, command = number(finding, "cost_pct"), finding.get("fix"), finding.get("command")
    first = f"{percent(cost) if cost is not None else 'unknown':>{COST}}  "
    margin = " " * len(first)
    _print(console, f"{finding.get('what')}: {finding.get('evidence')}.", first)
    if fix:
        _print(console, str(fix), margin)
    if command:  # in one piece, to be copied
        console.print(Text(f"{margin}$ {command}", "cyan"), soft_wrap=True)


def show(console: Console, env: Record, doctor: Record, verbose: bool = False) -> None:
    """Prints a diagnosis: the answer, then the conditions by their cost, with the command that fixes each."""
    _answer(console, env, doctor)
    floors = [_floor(doctor, floor) for floor in member(doctor, "measured.floors") or []]
    if floors:
        columns = ["a kernel and its copy", "CPU", ">detects", ">typical", ">largest", ">rounds", ">a call"]
        console.print()
        console.print(table(columns, floors))
        _print(console, LEGEND, style="dim")
    levels = {
        level: [one for one in doctor.get("findings") or [] if one.get("level") == level]
        for level in (COSTS, NOTE, FINE, HIDDEN)
    }
    for level, title in TITLES.items():
        if levels[level]:
            console.print()
            console.print(Text(f"{title}, by cost", "bold"))
        for finding in levels[level]:
            _finding(console, finding)
    console.print()
    for finding in levels[FINE] if verbose else ():
        _print(console, f"{finding.get('what')}: {finding.get('evidence')}.", "Fine: ")
    if levels[FINE] and not verbose:
        _print(console, f"{', '.join(str(one.get('what')) for one in levels[FINE])} (-v prints them).", "Fine: ")
    if levels[HIDDEN]:
        words = "; ".join(f"{one.get('what')} ({one.get('evidence')})" for one in levels[HIDDEN])
        _print(console, f"{words}.", "Not known: ")
