"""Prints TAP where pytest's own reporter is off (-p no:terminal), for Meson to count. conftest.py imports its hooks."""

from typing import List

import pytest

LINES: List[str] = []


def pytest_configure(config: pytest.Config) -> None:
    """Sets an option of that reporter, which pytest 7 reads to explain a failed assertion."""
    if not hasattr(config.option, "verbose"):
        config.option.verbose = 0


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds the line of a test that has run, failed in its set-up or tear-down, or was skipped."""
    if report.when != "call" and report.outcome == "passed":
        return
    number, name = len(LINES) + 1, report.nodeid.rpartition("::")[2].replace("#", "")
    if report.outcome == "skipped":
        LINES.append(f"ok {number} - {name} # SKIP")
    else:
        LINES.append(f"{'ok' if report.outcome == 'passed' else 'not ok'} {number} - {name}")
        LINES[-1] += "".join(f"\n# {line}" for line in report.longreprtext.splitlines())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Prints all lines, and their number."""
    if not session.config.pluginmanager.hasplugin("terminalreporter"):
        print(*LINES, f"1..{len(LINES)}", sep="\n")
