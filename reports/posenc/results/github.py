"""Writes annotations for GitHub, and the report in Markdown, within the sizes that GitHub accepts.

main.py has both as formats. Annotations are workflow commands:
https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions

    ::error title=avx2%3A rope_half/f32/given/hd128-t7::31.70 pair ulp, limit 1.5, token 3; got ...

page.md.j2 is the page: the outcome in the heading, notes, comparisons, failures and answers, then the evidence, folded.
If the page is too long, tables lose rows and evidence is left out, section by section; a note names what is missing.
"""

import re
import shlex
import sys
from typing import Any, Iterator, List, Tuple

from .. import quality, units
from ..records import Machine, Record, machines, number
from . import outcome
from .exports import tests_of

ANNOTATIONS = 10  # of each level: GitHub drops the others silently
SUMMARY, COMMENT = 1024 * 1024, 64 * 1024  # bytes of the summary of a job, and of a comment
NOTE_BYTES = 1024  # reserved for the note on sections that are left out
NAMED_SECTIONS = 8  # that this note names
ROWS = (10_000, 1_000, 250, 50, 20, 5, 0)  # of each table, until the page fits
FOLDED = "<details><summary>"


# ---- annotations ----


def _escape(text: str, special: str = "") -> str:
    """Escapes text for a workflow command. A property ends at a colon or comma: pass these in `special`."""
    return re.sub(f"[%\r\n{special}]", lambda found: f"%{ord(found[0]):02X}", text)


def findings(machine: Machine, level: str) -> List[Record]:
    """Returns the findings of doctor of one level."""
    return [finding for doctor in machine.of("doctor")[-1:] for finding in doctor.get("findings", [])
            if finding.get("level") == level]  # fmt: skip


def _annotations(machine: Machine) -> Iterator[Tuple[str, str, str]]:
    """Yields the level, the title and the text of each annotation."""
    for test in tests_of(machine):
        if test.level:
            repeat = f"\nrepeat with: {test.command}" if test.command else ""
            yield test.level, f"{test.record['backend']}: {test.record['case']}", test.message + repeat
    disturbed = quality.warning(machine)
    if disturbed:
        yield "warning", "posenc: timings", re.sub("[*`]", "", disturbed)
    for finding in findings(machine, "costs"):
        parts = (finding.get(name) for name in ("evidence", "fix", "command"))
        yield "warning", f"doctor: {finding['what']}", "\n".join(str(part) for part in parts if part)


def to_annotations(records: List[Record]) -> str:
    """Returns annotations: errors and warnings, of each as many as GitHub shows, and a line of counts."""
    total, found = outcome.outcome_of(records), []
    if total.counts["partial"]:
        found.append(("error", "posenc: incomplete", "a run ended early: this is what was finished"))
    for machine in machines(records):
        prefix = f"{machine.label}: " if machine.label else ""
        found += [(level, prefix + title, text) for level, title, text in _annotations(machine)]
    lines, words = [], outcome.outcome_words(total)
    for level in ("error", "warning"):
        of_level = [(title, text) for found_level, title, text in found if found_level == level]
        for title, text in of_level[:ANNOTATIONS]:
            lines.append(f"::{level} title={_escape(title, ':,')}::{_escape(text)}\n")
        if len(of_level) > ANNOTATIONS:
            words += f"; GitHub shows {ANNOTATIONS} of {len(of_level)} {level}s, all are in the records (--out jsonl)"
    return "".join(lines) + f"::notice title=posenc::{_escape(words)}\n"


# ---- functions for the template ----


def _time(record: Record, path: str) -> str:
    """Returns the time at a path of a record."""
    ns = number(record, path) or 0.0
    return units.time(ns) if ns > 0 else "-"


def _sides(machine: Machine) -> str:
    """Returns the builds of a comparison: ": base main (1f3c2abdef), head work tree"."""
    builds = machine.header.get("compare") or {}
    sides = [f"{name} {outcome.build_name(builds[name])}" for name in ("base", "head") if builds.get(name)]
    return f": {', '.join(sides)}" if sides else ""


def _entities(text: str) -> str:
    """Returns a text for a line of HTML, in which a backslash would stay."""
    return re.sub(r"[^\w ,.:;()/%-]", lambda found: f"&#{ord(found[0])};", text)


# ---- the page ----


def _template() -> Any:
    """Returns the template of the page."""
    from ..report.page import Code, environment  # which takes Jinja2; other formats do not

    env = environment(markdown=True)
    env.filters.update(raw=Code, entities=lambda text: Code(_entities(text)), many=units.many, count=units.count)
    env.globals.update(
        findings=findings, number=lambda record, path: number(record, path) or 0.0, time=_time, sides=_sides,
        join=lambda words: shlex.join(map(str, words)),
    )  # fmt: skip
    return env.get_template("page.md.j2")


def _sections(page: str) -> List[str]:
    """Returns the sections of the page, which a form feed separates. The first has the heading."""
    sections = [re.sub("\n{3,}", "\n\n", section.strip()) for section in page.split("\f")]
    return [f"{section}\n\n" for section in sections if section]


def _title(section: str) -> str:
    """Returns the title of a section without its markup."""
    return re.sub("^(### |<details><summary>)|</summary>$", "", section.partition("\n")[0])


def to_page(records: List[Record], limit: int = sys.maxsize) -> str:
    """Returns the page, in at most `limit` bytes."""
    import jinja2

    from ..report.view import View

    template, view, bytes_left = _template(), View(records), limit - NOTE_BYTES
    words = outcome.outcome_words(outcome.outcome_of(records))
    for most in ROWS:
        try:
            sections = _sections(template.render(view=view, words=words, most=most))
        except jinja2.UndefinedError as error:  # a member of a record is missing
            raise LookupError(str(error)) from None
        evidence = [section for section in sections if section.startswith(FOLDED)]
        essential = [section for section in sections if not section.startswith(FOLDED)]
        if len("".join(essential).encode()) <= bytes_left:
            break
    page = ""
    missing: List[str] = []
    for section in essential + evidence:  # a short one may follow a long one that is left out
        size = len(section.encode())
        if size > bytes_left:
            missing.append(_title(section)[:60])
            continue
        page += section
        bytes_left -= size
    if missing:
        page += f"> Left out, to stay within {limit // 1024} KiB: {', '.join(missing[:NAMED_SECTIONS])}"
        page += f" and {len(missing) - NAMED_SECTIONS} more" if len(missing) > NAMED_SECTIONS else ""
        page += ". `posenc report RESULTS.jsonl` has all of it.\n"
    return page
