"""Markdown for the summary of a job on GitHub and for comments, within the sizes that GitHub takes.

summary.md.j2 is the page: the outcome in the heading, notes, comparisons and failures, then the evidence, folded. Here
tables lose rows and evidence is left out, section by section, until the page fits; a note names what is missing.
"""

import re
import shlex
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterable, List

from .. import quality, show, units
from ..convert import Record
from ..ranking import timings
from ..runs import Machine, grouped, machines, number
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
    kinds = {"Data": "d"}
    return [
        f"L{cache.get('level')}{kinds.get(cache.get('type'), '')} {units.size(number(cache, 'bytes') or 0.0)}"
        for cache in machine.env.get("caches", [])
        if cache.get("type") != "Instruction"
    ]


def _passed(checks: List[Record], backend: str) -> str:
    statuses = [check["status"] for check in checks if check["backend"] == backend]
    failed, passed = sum(statuses.count(status) for status in outcome.FAILED), statuses.count("pass")
    return f"**{failed} failed**, {passed} passed" if failed else str(passed or "-")


CALLED: Dict[str, Any] = {
    "comparison": comparison, "outcome": outcome, "quality": quality, "findings": findings, "timings": timings,
    "number": lambda record, path: number(record, path) or 0.0, "time": _time, "sides": _sides, "caches": _caches,
    "passed": _passed, "join": lambda words: shlex.join(map(str, words)),
    "grouped": lambda records, name: grouped(records, lambda record: record[name]),
}  # fmt: skip


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
    env.globals.update(CALLED)
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


def _size(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def _title(section: str) -> str:
    return re.sub("^(### |<details><summary>)|</summary>$", "", section.partition("\n")[0])


def to_page(records: List[Record], limit: int) -> str:
    """Returns a page of at most `limit` bytes."""
    found, words = machines(records), outcome.outcome_words(outcome.outcome_of(records))
    for most in ROWS:
        sections = _sections(found, words, most)
        texts = [section for section in sections if not section.startswith(FOLDED)]
        if _size(texts) <= limit - NOTE:
            break
    missing: List[str] = []
    while _size(texts) > limit - NOTE:
        missing.insert(0, texts.pop())
    for section in (section for section in sections if section.startswith(FOLDED)):
        if _size([*texts, section]) <= limit - NOTE:
            texts.append(section)
        else:
            missing.append(section)
    page = "".join(texts)
    if missing:
        named = [_title(section)[:60] for section in missing if section.startswith(("### ", FOLDED))]
        page += f"> Left out, to stay within {limit // 1024} KiB: {', '.join(named[:NAMED])}"
        page += f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
        page += ". `posenc report RESULTS.jsonl` has all of it.\n"
    return page


def to_summary(records: List[Record]) -> str:
    """Returns the summary of a job on GitHub."""
    return to_page(records, SUMMARY)


def to_comment(records: List[Record]) -> str:
    """Returns the same page, short enough for a comment."""
    return to_page(records, COMMENT)
