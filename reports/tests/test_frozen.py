"""The numbers in reports of real runs, frozen when each cell equalled that of the former reports in C.

tests/frozen has the records of each run (NAME.jsonl.gz) and its reports (NAME.json.gz): the CSV as it stands; of the
pages the numbers alone, as their words may change. changepoints.json.gz has series, and the changes of level in them.
The tests take a while, and are part of ./run test-certify.

PYTHONPATH=reports python3 reports/tests/test_frozen.py    freezes the present reports
"""

import json
import re
from pathlib import Path
from typing import Any, Dict, List

import pytest
from programs import freeze_json, read_json, read_json_lines

from posenc.report.answers import cost_of, steps
from posenc.report.page import page_data, to_html
from posenc.report.view import Host, View
from posenc.results import changepoints, exports, github
from posenc.records import Record

FROZEN = Path(__file__).parent / "frozen"
# Series, and the changes found in them: at, start, stop, medians, p.
SERIES = read_json(Path(__file__).with_name("changepoints.json.gz"))
RUNS = sorted(path.name.partition(".")[0] for path in FROZEN.glob("*.jsonl.gz"))


def numbers_of(page: str) -> List[str]:
    """Returns the words of a page that have digits. Scripts and tags of HTML do not count."""
    return re.findall(r"\S*\d\S*", re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.S))


def costs(host: Host) -> List[Any]:
    """Returns what each step of each model costs with each backend, of which pages show the least."""
    found = []
    for step in (step for model in host.machine.of("model") for step in steps(model, host.ranked)):
        for cost in filter(None, (cost_of(step, host.ranked, backend) for backend in host.backends)):
            found.append([step.model["name"], step.name, step.dtype, step.numerics, cost.backend, f"{cost.ns:.9g}",
                          f"{cost.width:.9g}"])  # fmt: skip
    return found


def numbers_of_reports(run: List[Record]) -> Dict[str, List[Any]]:
    """Returns all numbers that the reports of a run show."""
    view, csv = View(run), exports.to_csv(run).splitlines()
    if not view.hosts:  # records of no machine make no page
        return {"csv": csv}
    data = json.loads(page_data(view))
    return {
        "csv": csv, "html": numbers_of(to_html(view)), "markdown": numbers_of(github.to_page(run)),
        "charts": [*data["timings"], *data["curves"], *data["pairs"]],
        "costs": [cost for host in view.hosts for cost in costs(host)],
    }  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_numbers_of_the_reports(name: str) -> None:
    frozen = read_json(FROZEN / f"{name}.json.gz")
    found = numbers_of_reports(read_json_lines(FROZEN / f"{name}.jsonl.gz"))
    assert found.keys() == frozen.keys()
    for part, expected in frozen.items():
        assert len(found[part]) == len(expected), part
        for got, want in zip(found[part], expected):
            assert got == want, part


@pytest.mark.parametrize("series", SERIES)
def test_changes_of_level(series: Dict[str, Any]) -> None:
    found = changepoints.find(series["values"])
    assert [[one.at, one.start, one.stop, one.before, one.after, one.p] for one in found] == series["changes"]


if __name__ == "__main__":
    for name in RUNS:
        freeze_json(FROZEN / f"{name}.json.gz", numbers_of_reports(read_json_lines(FROZEN / f"{name}.jsonl.gz")))
