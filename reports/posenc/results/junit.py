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
from typing import List, NamedTuple

from .. import units
from ..ranking import Timing
from ..records import Machine, Record, grouped, machines, member, number
from ..terminal import escape_hidden
from . import comparison
from .outcome import check_words, vectors_note


class Test(NamedTuple):
    """A test of JUnit XML. Its result is passed, failure, error or skipped."""

    record: Record
    kind: str
    result: str
    type: str = ""
    message: str = ""
    detail: str = ""
    command: str = ""

    @property
    def level(self) -> str:
        """The level of its annotation; empty if it has none. A warning is inconclusive, or slower without failing."""
        if self.type == "inconclusive" or (self.type == "slower" and self.result == "passed"):
            return "warning"
        return "error" if self.result in ("failure", "error") else ""


def _check(check: Record) -> Test:
    words, status = check_words(check), check["status"]
    result = {"pass": "passed", "skipped": "skipped", "unsupported": "skipped", "crash": "error"}.get(status, "failure")
    kind = status if status in ("crash", "inconclusive") else member(check, "error.metric") or check["suite"]
    return Test(check, check["suite"], result, kind, words, words, check.get("command", ""))


def _output(row: Timing) -> Test:
    if row.wrong:
        return Test(row.record, "bench", "failure", "wrong output", row.rejected, "it was not timed")
    return Test(row.record, "bench", "passed")


def _pair(pair: Record) -> Test:
    words, kind = comparison.pair_words(pair), "broken" if comparison.is_broken(pair) else comparison.verdict(pair)
    head, base = (units.time(number(pair, f"{name}.ns") or 0.0) for name in ("head", "base"))
    threshold = number(pair, "threshold")
    detail = f"{head}, was {base}" + ("" if threshold is None else f"; threshold {100 * threshold:.1f} %")
    result = "skipped" if kind in ("unclear", "incomparable", "removed") else "passed"
    if kind == "broken" or comparison.fails_gate(pair):
        result = "failure"
    message = f"{comparison.pair_word(pair)} {words}".strip()
    return Test(pair, "compare", result, kind, message, words if kind == "broken" else detail)


def _change(change: Record) -> Test:
    problem = change.get("problem")
    command = f"posenc verify --backend {change['backend']} --problem '{problem}'" if problem else ""
    result = "failure" if change.get("worse") is True else "passed"
    kind = f"{change['suite']}, change of {change['what']}"
    return Test(change, kind, result, change["what"], comparison.change_words(change), "", command)


def tests_of(machine: Machine) -> List[Test]:
    """Returns the checks, outputs, changes and pairs of a machine as tests."""
    outputs = [row for row in map(Timing, machine.of("bench")) if row.wrong or not row.rejected]
    changes, pairs = comparison.changes(machine), comparison.pairs(machine)
    of_results = [*map(_check, machine.of("check")), *map(_output, outputs)]
    return [*of_results, *map(_change, changes), *map(_pair, pairs)]


def _add(parent: ET.Element, tag: str, **attributes: object) -> ET.Element:
    return ET.SubElement(parent, tag, {name: escape_hidden(str(value)) for name, value in attributes.items()})


def _add_test(suite: ET.Element, test: Test, machine: str) -> None:
    record = test.record
    names = [str(record.get(name, "")) for name in ("backend", "kernel", "numerics", "dtype")]
    name, classname = f"{record['case']} [{test.kind}]", ".".join([machine, *names] if machine else names)
    case = _add(suite, "testcase", name=name, classname=classname)
    if test.result == "skipped":
        _add(case, "skipped", message=test.message)
    elif test.result != "passed":
        end = _add(case, test.result, message=test.message, type=test.type)
        end.text = escape_hidden(test.detail) + (
            f"\n repeat with: {escape_hidden(test.command)}" if test.command else ""
        )


def _add_suite(suites: ET.Element, machine: Machine, backend: str, family: str, tests: List[Test]) -> None:
    count, header = Counter(test.result for test in tests), machine.header
    suite = _add(suites, "testsuite", name=f"{machine.label}: {backend}" if machine.label else backend,
                 tests=len(tests), failures=count["failure"], errors=count["error"], skipped=count["skipped"],
                 **({"timestamp": header["started"]} if header.get("started") else {}))  # fmt: skip
    properties = _add(suite, "properties")
    facts = {
        "family": family, "cpu": member(machine.env, "cpu.key"), "mode": header.get("mode"),
        "version": member(header, "tool.version"), "vectors": member(header, "vectors.sha256"),
        "note": vectors_note(*machine.headers),
        "quality": "".join(str(member(doctor, "quality.grade") or "") for doctor in machine.of("doctor")[-1:]),
    }  # fmt: skip
    for name, value in facts.items():
        if value:
            _add(properties, "property", name=name, value=value)
    for test in tests:
        _add_test(suite, test, machine.label)


_INCOMPLETE = Test(
    {"case": "the run is complete", "backend": "posenc", "kernel": "posenc", "numerics": "run", "dtype": "all"},
    "run", "error", "incomplete", "a run ended early: this file has what was finished",
)  # fmt: skip


def to_junit(records: List[Record]) -> str:
    """Returns checks, outputs, pairs and changes as JUnit XML."""
    suites = ET.Element("testsuites", name="posenc")
    for machine in machines(records):
        if machine.partial:
            _add_suite(suites, machine, "posenc", "", [_INCOMPLETE])
        tests = grouped(tests_of(machine), lambda test: test.record["backend"])
        families = {record["id"]: record["family"] for record in machine.of("backend") if record["id"] in tests}
        for backend in {**families, **tests}:
            family = families.get(backend, tests[backend][0].record.get("family", ""))
            _add_suite(suites, machine, backend, family, tests[backend])
    for total in ("tests", "failures", "errors"):
        suites.set(total, str(sum(int(suite.get(total, "0")) for suite in suites)))
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'
