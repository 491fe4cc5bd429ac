"""JUnit XML: a suite for each backend, a test for each check, output, pair and change.

failure  a check that failed or is inconclusive, a wrong output, a result that got worse, what fails a gate
error    a crash; a run that ended early, as a suite of its own
skipped  what cannot run here; UNCLEAR and what cannot be compared

Attributes are those of junit-10.xsd of Jenkins' xUnit plug-in. The command that repeats a failure stands in its
text, as few programs read properties of tests. The class name begins with the backend, and with the machine if
there are several: GitLab knows a test by class and name alone.
"""

import xml.etree.ElementTree as ET
from collections import Counter
from typing import Dict, Iterator, List, NamedTuple

from .. import units
from ..convert import Record
from ..ranking import timing
from ..runs import Machine, machines, member, number
from ..show import plain
from . import comparison
from .outcome import check_words, vectors_note


class Test(NamedTuple):
    """A test: its result is passed, failure, error or skipped."""

    record: Record
    kind: str
    result: str = "passed"
    type: str = ""
    message: str = ""
    detail: str = ""
    command: str = ""


def _check(check: Record) -> Test:
    words, status = check_words(check), check["status"]
    result = {"pass": "passed", "skipped": "skipped", "unsupported": "skipped", "crash": "error"}.get(status, "failure")
    kind = status if status in ("crash", "inconclusive") else member(check, "error.metric") or check["suite"]
    return Test(check, check["suite"], result, kind, words, words, check.get("command", ""))


def _output(bench: Record) -> Iterator[Test]:
    row = timing(bench)
    if row.wrong:
        yield Test(bench, "bench", "failure", "wrong output", row.rejected, "it was not timed")
    elif not row.rejected:
        yield Test(bench, "bench")


def _pair(pair: Record) -> Test:
    words, broken = comparison.pair_words(pair), comparison.is_broken(pair)
    message = f"{comparison.pair_word(pair)} {words}".strip()
    head, base = (units.time(number(pair, f"{name}.ns") or 0.0) for name in ("head", "base"))
    threshold = number(pair, "threshold")
    detail = f"{head}, was {base}" + ("" if threshold is None else f"; threshold {100 * threshold:.1f} %")
    if broken or comparison.fails_gate(pair):
        kind = "broken" if broken else "slower"
        return Test(pair, "compare", "failure", kind, message, words if broken else detail)
    open_ = comparison.verdict(pair) in ("unclear", "incomparable", "removed")
    return Test(pair, "compare", "skipped" if open_ else "passed", message=message)


def _change(change: Record) -> Test:
    problem = change.get("problem")
    command = f"posenc verify --backend {change['backend']} --problem '{problem}'" if problem else ""
    worse = "failure" if change.get("worse") is True else "passed"
    kind = f"{change['suite']}, change of {change['what']}"
    return Test(change, kind, worse, change["what"], comparison.change_words(change), "", command)


def _tests(machine: Machine, backend: str) -> Iterator[Test]:
    def of(records: List[Record]) -> Iterator[Record]:
        return (record for record in records if record.get("backend") == backend)

    yield from map(_check, of(machine.of("check")))
    for bench in of(machine.of("bench")):
        yield from _output(bench)
    yield from map(_change, of(comparison.changes(machine)))
    yield from map(_pair, of(comparison.pairs(machine)))


def _backends(machine: Machine) -> Dict[str, str]:
    """Returns backends by name, with their families."""
    found = {record["id"]: record["family"] for record in machine.of("backend")}
    for kind in ("check", "bench", "pair", "change"):
        for record in machine.of(kind):
            found.setdefault(record["backend"], record.get("family", ""))
    return found


def _add_test(suite: ET.Element, test: Test, machine: str) -> None:
    record = test.record
    names = [machine, *(str(record.get(name, "")) for name in ("backend", "kernel", "numerics", "dtype"))]
    names = names if machine else names[1:]
    case = ET.SubElement(suite, "testcase", name=plain(f"{record['case']} [{test.kind}]"),
                         classname=plain(".".join(names)))  # fmt: skip
    if test.result == "passed":
        return
    end = ET.SubElement(case, test.result, message=plain(test.message))
    if test.result != "skipped":
        end.set("type", plain(test.type))
        end.text = plain(test.detail) + (f"\n repeat with: {plain(test.command)}" if test.command else "")


def _add_suite(suites: ET.Element, machine: Machine, name: str, backend: str, family: str, tests: List[Test]) -> None:
    count = Counter(test.result for test in tests)
    suite = ET.SubElement(suites, "testsuite", name=plain(f"{name}: {backend}" if name else backend))
    suite.set("tests", str(len(tests)))
    for attribute, result in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(count[result]))
    if machine.header.get("started"):
        suite.set("timestamp", plain(machine.header["started"]))
    properties = ET.SubElement(suite, "properties")
    header = machine.header
    quality = [member(doctor, "quality.grade") for doctor in machine.of("doctor")][-1:]
    for key, value in (
        ("family", family), ("cpu", member(machine.env, "cpu.key")), ("mode", header.get("mode")),
        ("version", member(header, "tool.version")), ("vectors", member(header, "vectors.sha256")),
        ("note", vectors_note(machine.header, *machine.headers)), ("quality", quality and quality[0]),
    ):  # fmt: skip
        if value:
            ET.SubElement(properties, "property", name=key, value=plain(str(value)))
    for test in tests:
        _add_test(suite, test, name)


_INCOMPLETE: Record = {
    "case": "the run is complete",
    "backend": "posenc",
    "kernel": "posenc",
    "numerics": "run",
    "dtype": "all",
}


def to_junit(records: List[Record]) -> str:
    """Returns checks, outputs, pairs and changes as JUnit XML."""
    suites = ET.Element("testsuites", name="posenc")
    found = machines(records)
    for machine in found:
        name = str(machine.env.get("env_id", "")) if len(found) > 1 else ""
        if machine.partial:
            message = "a run ended early: this file has what was finished"
            _add_suite(suites, machine, name, "posenc", "", [Test(_INCOMPLETE, "run", "error", "incomplete", message)])
        for backend, family in _backends(machine).items():
            tests = list(_tests(machine, backend))
            if tests:
                _add_suite(suites, machine, name, backend, family, tests)
    for total in ("tests", "failures", "errors"):
        suites.set(total, str(sum(int(suite.get(total, "0")) for suite in suites)))
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'
