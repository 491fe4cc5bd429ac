"""Annotations of GitHub's workflows.

https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

import re
from typing import Iterator, List, NamedTuple

from .. import quality
from ..convert import Record
from ..runs import Machine, machines
from . import comparison, outcome

SHOWN = 10  # of each kind, by GitHub, which drops the others in silence


class _Annotation(NamedTuple):
    level: str
    title: str
    text: str


def _escape(text: str, more: str = "") -> str:
    """Escapes a message of a workflow command; of a property, which ends at a colon or comma, those as well."""
    return re.sub(f"[%\r\n{more}]", lambda found: f"%{ord(found[0]):02X}", text)


def _of_checks(machine: Machine) -> Iterator[_Annotation]:
    for check in machine.of("check"):
        if check["status"] in (*outcome.FAILED, "inconclusive"):
            level = "warning" if check["status"] == "inconclusive" else "error"
            repeat = f"\nrepeat with: {check['command']}" if check.get("command") else ""
            yield _Annotation(level, f"{check['backend']}: {check['case']}", outcome.check_words(check) + repeat)
    for wrong in outcome.wrong_outputs(machine):
        yield _Annotation("error", f"{wrong.backend}: {wrong.case}", f"{wrong.rejected}, and was not timed")


def _of_comparison(machine: Machine) -> Iterator[_Annotation]:
    for change in comparison.changes(machine):
        if change.get("worse") is True:
            problem = f"\nproblem: {change['problem']}" if change.get("problem") else ""
            words = comparison.change_words(change) + problem
            yield _Annotation("error", f"{change['backend']}: {change['case']}", words)
    for pair in comparison.pairs(machine):
        broken = comparison.is_broken(pair)
        if broken or comparison.verdict(pair) == "slower":
            level = "error" if broken or comparison.fails_gate(pair) else "warning"
            words = f"{comparison.pair_word(pair)} {comparison.pair_words(pair)}"
            yield _Annotation(level, f"{pair['backend']}: {pair['case']}", words)


def findings(machine: Machine, level: str) -> List[Record]:
    """Returns what doctor found on a machine, of one level."""
    return [finding for doctor in machine.of("doctor")[-1:] for finding in doctor.get("findings", [])
            if finding.get("level") == level]  # fmt: skip


def _of_machine(machine: Machine) -> Iterator[_Annotation]:
    yield from _of_checks(machine)
    yield from _of_comparison(machine)
    noise = quality.warning(machine)
    if noise:
        yield _Annotation("warning", "posenc: timings", re.sub("[*`]", "", noise))
    for finding in findings(machine, "costs"):
        parts = (finding.get(name) for name in ("evidence", "fix", "command"))
        yield _Annotation("warning", f"doctor: {finding['what']}", "\n".join(str(part) for part in parts if part))


def to_annotations(records: List[Record]) -> str:
    """Returns annotations: errors and warnings, of each as many as GitHub shows, and a line of counts."""
    found, total = machines(records), outcome.outcome_of(records)
    all_: List[_Annotation] = []
    if total.partial:
        all_.append(_Annotation("error", "posenc: incomplete", "a run ended early: this is what was finished"))
    for machine in found:
        prefix = f"{machine.env.get('env_id')}: " if len(found) > 1 else ""
        all_ += [_Annotation(one.level, prefix + one.title, one.text) for one in _of_machine(machine)]
    lines, words = [], outcome.outcome_words(total)
    for level in ("error", "warning"):
        some = [one for one in all_ if one.level == level]
        lines += [f"::{level} title={_escape(one.title, ':,')}::{_escape(one.text)}\n" for one in some[:SHOWN]]
        if len(some) > SHOWN:
            words += f"; GitHub shows {SHOWN} of {len(some)} {level}s, all are in the records (--out jsonl)"
    return "".join(lines) + f"::notice title=posenc::{_escape(words)}\n"
