"""Annotations of GitHub's workflows.

https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

import re
from typing import Iterator, List, Tuple

from .. import quality
from ..runs import Machine, Record, grouped, machines
from . import outcome
from .junit import tests_of

SHOWN = 10  # of each kind, by GitHub, which drops the others in silence


def _escape(text: str, more: str = "") -> str:
    """Escapes a message of a workflow command; of a property, which ends at a colon or comma, those as well."""
    return re.sub(f"[%\r\n{more}]", lambda found: f"%{ord(found[0]):02X}", text)


def findings(machine: Machine, level: str) -> List[Record]:
    """Returns what doctor found on a machine, of one level."""
    return [finding for doctor in machine.of("doctor")[-1:] for finding in doctor.get("findings", [])
            if finding.get("level") == level]  # fmt: skip


def _of_machine(machine: Machine) -> Iterator[Tuple[str, str, str]]:
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
        found += [(level, prefix + title, text) for level, title, text in _of_machine(machine)]
    lines, words = [], outcome.outcome_words(total)
    for level, some in grouped(sorted(found, key=lambda one: one[0]), key=lambda one: one[0]).items():
        lines += [f"::{level} title={_escape(title, ':,')}::{_escape(text)}\n" for _, title, text in some[:SHOWN]]
        if len(some) > SHOWN:
            words += f"; GitHub shows {SHOWN} of {len(some)} {level}s, all are in the records (--out jsonl)"
    return "".join(lines) + f"::notice title=posenc::{_escape(words)}\n"
