"""Markdown for the summary of a job on GitHub and for comments, within the sizes that GitHub takes.

summary.md.j2 is the page: the outcome in the heading, notes, comparisons and failures, then the evidence, folded. Here
tables lose rows and evidence is left out, section by section, until the page fits; a note names what is missing.
"""

import re
import shlex
from functools import lru_cache
from pathlib import Path
from typing import Any, List

from .. import quality, show, units
from ..ranking import timings
from ..runs import Machine, Record, machines, number
from . import comparison, outcome
from .annotations import findings

SUMMARY, COMMENT = 1024 * 1024, 64 * 1024
NOTE = 1024  # bytes kept for the note on what is missing
NAMED = 8  # sections that are named there
ROWS = (10_000, 1_000, 250, 50, 20, 5, 0)  # of each table, until the page fits
FOLDED = "<details><summary>"


# ---- what the template calls ----


def _time(record: Record, path: str) -> str:
    ns = number(record, path) or 0.0
    return units.time(ns) if ns > 0 else "-"


def _sides(machine: Machine) -> str:
    builds = machine.header.get("compare") or {}
    sides = [f"{name} {comparison.build_name(builds[name])}" for name in ("base", "head") if builds.get(name)]
    return f": {', '.join(sides)}" if sides else ""


def _caches(machine: Machine) -> List[str]:
    caches = [cache for cache in machine.env.get("caches", []) if cache["type"] != "Instruction"]
    return [f"L{cache['level']} {units.size(cache['bytes'])}" for cache in caches]


def _entities(text: str) -> str:
    """Returns a text for a line of HTML, in which a backslash would stay."""
    return re.sub(r"[^\w ,.:;()/%-]", lambda found: f"&#{ord(found[0])};", text)


# ---- the page ----


@lru_cache(maxsize=None)
def _template() -> Any:
    from ..report.page import Code, environment  # which takes Jinja2; other formats do not

    env = environment(markdown=True)
    env.filters.update(
        raw=Code, entities=lambda text: Code(_entities(text)), many=show.many, count=show.count, rate=units.rate
    )
    env.globals.update(
        comparison=comparison, outcome=outcome, quality=quality, findings=findings, timings=timings,
        number=lambda record, path: number(record, path) or 0.0, time=_time, sides=_sides, caches=_caches,
        join=lambda words: shlex.join(map(str, words)),
    )  # fmt: skip
    return env.from_string((Path(__file__).parent / "summary.md.j2").read_text(encoding="utf-8"))


def _sections(found: List[Machine], words: str, most: int) -> List[str]:
    """Returns the sections of the page, with at most so many rows in each table. The first has the heading."""
    import jinja2

    try:
        page = _template().render(machines=found, words=words, most=most)
    except jinja2.UndefinedError as error:
        raise LookupError(str(error)) from None
    sections = [re.sub("\n{3,}", "\n\n", section.strip()) for section in page.split("\f")]
    return [f"{section}\n\n" for section in sections if section]


def _title(section: str) -> str:
    return re.sub("^(### |<details><summary>)|</summary>$", "", section.partition("\n")[0])


def to_page(records: List[Record], limit: int) -> str:
    """Returns a page of at most `limit` bytes."""
    found, words, left = machines(records), outcome.outcome_words(outcome.outcome_of(records)), limit - NOTE
    for most in ROWS:
        sections = _sections(found, words, most)
        evidence = [section for section in sections if section.startswith(FOLDED)]
        first = [section for section in sections if not section.startswith(FOLDED)]
        if len("".join(first).encode()) <= left:
            break
    page = ""
    missing: List[str] = []
    for section in first + evidence:
        size = len(section.encode())
        if size > left:
            missing.append(_title(section)[:60])
            continue
        page += section
        left -= size
    if missing:
        page += f"> Left out, to stay within {limit // 1024} KiB: {', '.join(missing[:NAMED])}"
        page += f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        page += ". `posenc report RESULTS.jsonl` has all of it.\n"
    return page


def to_summary(records: List[Record]) -> str:
    """Returns the summary of a job on GitHub."""
    return to_page(records, SUMMARY)


def to_comment(records: List[Record]) -> str:
    """Returns the same page, short enough for a comment."""
    return to_page(records, COMMENT)
