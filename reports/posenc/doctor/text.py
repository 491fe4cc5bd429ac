"""The diagnosis of a machine as text for a terminal."""

import textwrap
from typing import Any, Dict, List, Optional

from rich.console import Console
from rich.text import Text

from ..convert import Record
from ..quality import exposed
from ..runs import member, number
from ..terminal import table
from .findings import COSTS, FINE, HIDDEN, NOTE

TITLES = {COSTS: "Conditions that disturb timings", NOTE: "Conditions that may disturb timings"}
COST = 9  # columns


def percent(pct: Optional[float]) -> str:
    """Returns percent with the digits that mean something, and a factor if there are many."""
    if pct is None:
        return "-"
    if pct >= 1000:
        return f"{1 + pct / 100:.0f}x"
    return f"{pct:.{2 if pct < 1 else 1 if pct < 10 else 0}f} %"


def _bytes(count: float) -> str:
    return f"{count / 2**20:.0f} MiB" if count >= 2**20 else f"{count / 1024:.0f} KiB"


def _duration(ns: float) -> str:
    return f"{ns / 1e6:.1f} ms" if ns >= 1e6 else f"{ns / 1e3:.1f} us"


def _print(console: Console, text: str, indent: int = 0, style: str = "", first: str = "") -> None:
    """Prints a paragraph. Its lines fit the console, and all but the first are indented."""
    margin = " " * indent
    for line in textwrap.wrap(text, console.width, initial_indent=first or margin, subsequent_indent=margin):
        console.print(Text(line, style), soft_wrap=True)


def _machine(console: Console, env: Record, doctor: Record) -> None:
    cpu = number(doctor, "cpu")
    where = f"CPU {cpu:.0f}" if cpu is not None and cpu >= 0 else "any CPU"
    name = f"{exposed(env, 'cpu.name') or 'a CPU'} ({env.get('env_id')}), {number(env, 'cpus.online') or 0:.0f} CPUs; "
    took = f"measured on {where} for {number(doctor, 'seconds') or 0:.0f} s."
    _print(console, name + (took if doctor else "its noise was not measured (posenc doctor does that)."))


def _answer(console: Console, doctor: Record) -> None:
    grade, reasons = member(doctor, "quality.grade") or "D", member(doctor, "quality.reasons") or []
    detected = [
        f"{percent(pct)} {place}"
        for name, place in (("cache_pct", "in cache"), ("dram_pct", "in DRAM"))
        if (pct := number(doctor, f"detectable.{name}")) is not None
    ]
    text = f"Measurement quality {grade}"
    text += f": timings detect differences of more than {' and '.join(detected)}." if detected else "."
    console.print()
    _print(console, text, style="bold red" if grade in "CD" else "bold green")
    if reasons:
        _print(console, f"Not better because: {'; '.join(reasons)}.")


def _floors(console: Console, doctor: Record) -> None:
    cpu = number(doctor, "cpu")
    rows = [
        [
            f"{floor.get('place')}, {_bytes(number(floor, 'bytes') or 0)}",
            f"{cpu:.0f}" if floor.get("pinned") and cpu is not None and cpu >= 0 else "any",
            *(percent(number(floor, name)) for name in ("detectable_pct", "typical_pct", "largest_pct")),
            f"{number(floor, 'rounds') or 0:.0f}",
            _duration(number(floor, "call_ns") or 0),
        ]
        for floor in member(doctor, "measured.floors") or []
    ]
    if not rows:
        return
    console.print()
    console.print(
        table(["a kernel and its copy", "CPU", ">detects", ">typical", ">largest", ">rounds", ">a call"], rows)
    )
    _print(
        console,
        "Detects: the smallest difference that 99 of 100 comparisons of 3 x 31 rounds find. Typical, largest: "
        "difference between a call and its copy in a round. posenc compare calls a smaller difference SAME if it is "
        "sure of less than 3 %, and UNCLEAR if not.",
        style="dim",
    )


def _finding(console: Console, finding: Dict[str, Any]) -> None:
    cost, fix, command = number(finding, "cost_pct"), finding.get("fix"), finding.get("command")
    first = f"{percent(cost) if cost is not None else 'unknown':>{COST}}  "
    _print(console, f"{finding.get('what')}: {finding.get('evidence')}.", len(first), first=first)
    if fix:
        _print(console, str(fix), len(first))
    if command:  # in one piece, to be copied
        console.print(Text(f"{' ' * len(first)}$ {command}", "cyan"), soft_wrap=True)


def show(console: Console, env: Record, doctor: Record, verbose: bool = False) -> None:
    """Prints a diagnosis: the answer, then the conditions by their cost, with the command that fixes each."""
    findings: List[Dict[str, Any]] = doctor.get("findings") or []
    levels = {level: [one for one in findings if one.get("level") == level] for level in (COSTS, NOTE, FINE, HIDDEN)}
    probed = doctor if "measured" in doctor else {}
    _machine(console, env, probed)
    _answer(console, doctor)
    _floors(console, doctor)
    for level, title in TITLES.items():
        if levels[level]:
            console.print()
            console.print(Text(f"{title}, by cost", "bold"))
        for finding in levels[level]:
            _finding(console, finding)
    console.print()
    if verbose:
        for finding in levels[FINE]:
            _print(console, f"{finding.get('what')}: {finding.get('evidence')}.", 6, first="Fine: ")
    elif levels[FINE]:
        names = ", ".join(str(finding.get("what")) for finding in levels[FINE])
        _print(console, f"{names} (-v prints them).", 6, first="Fine: ")
    if levels[HIDDEN]:
        words = "; ".join(f"{one.get('what')} ({one.get('evidence')})" for one in levels[HIDDEN])
        _print(console, f"{words}.", 6, first="Not known: ")
