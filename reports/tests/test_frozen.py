"""The numbers of real runs, cell by cell, as the reports in C printed them before Python replaced them.

tests/frozen has the records of each run (NAME.jsonl.gz), and what the C program made of them: NAME.csv.gz and
NAME.md.gz, the report as Markdown. Words have changed since; every number has to come out again. So do the changes of
level in series (changepoints.json.gz). It takes a while, and is part of ./run test-certify.
"""

import csv
import gzip
import io
import json
import math
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import pytest

from posenc import units
from posenc.convert import FAMILIES, KINDS, NAMES, STATUS, Record, convert_all
from posenc.ranking import Ranking, Standing, Timing
from posenc.report.answers import Step, cost_of, steps
from posenc.report.errors import Worst, text_of
from posenc.report.page import to_html, to_markdown
from posenc.report.view import Cell, Host, View
from posenc.results import changepoints, exports

FROZEN = Path(__file__).parent / "frozen"
# Series, and the changes found in them: at, start, stop, medians, p.
SERIES = json.loads(gzip.decompress((Path(__file__).parent / "changepoints.json.gz").read_bytes()))
RUNS = sorted(path.name.partition(".")[0] for path in FROZEN.glob("*.jsonl.gz"))
MODES = {"profile": "numerics"}


def text(name: str, suffix: str) -> str:
    return gzip.decompress((FROZEN / f"{name}.{suffix}.gz").read_bytes()).decode()


def records(name: str) -> List[Record]:
    return convert_all([json.loads(line) for line in text(name, "jsonl").splitlines()])


class Table(NamedTuple):
    """A table of the report in C."""

    section: str
    head: List[str]
    rows: List[List[str]]


def tables(page: str) -> Iterator[Table]:
    """Yields the tables of a page of Markdown."""
    section, lines = "", page.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("#"):
            section = line.lstrip("# ")
        if line.startswith("|---") and at:
            end = at + 1
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            yield Table(section, cells(lines[at - 1]), [cells(row) for row in lines[at + 1 : end]])


def cells(row: str) -> List[str]:
    inner = row.strip()[1:-1]
    return [re.sub(r"[\\`*]", "", cell.strip()) for cell in re.split(r"(?<!\\)\|", inner)]


def old(shown: str) -> str:
    """Returns a cell as the report in C wrote it."""
    return re.sub(r"^–$", "-", shown.replace("µs", "us").replace("×", "x"))


# ---- what Python makes of the same records ----


def timing_rows(host: Host, kernel: str) -> List[List[str]]:
    words = {Standing.WRONG: "does not conform", Standing.NOISY: "noisy", Standing.TIED: "= fastest",
             Standing.FASTEST: "fastest"}  # fmt: skip
    rows = []
    for ranking in host.ranked.cases.values():
        for row in ranking.rows if ranking.rows[0].kernel == kernel else []:
            if row.rejected:
                rows.append([row.backend, row.rejected])
                continue
            width = "-" if math.isinf(row.width) else f"{100 * row.width:.{1 if row.width < 9.995 else 0}f} %"
            rows.append([row.backend, old(units.time(row.median)), width, units.rate(row.record["gbps"]),
                         old(units.percent(row.share)), old(units.times(row.speedup_libm)),
                         old(units.times(row.speedup_autovec)), words.get(row.standing, "")])  # fmt: skip
    return rows


def speed(host: Host, table: Table) -> "Tuple[Any, Any]":
    at = {name: table.head.index(name) for name in table.head}
    wanted = [at[name] for name in ("backend", "time", "+-", "GB/s", "of roof", "vs libm", "vs autovec")]
    expected = []
    for row in table.rows:
        expected.append([row[at] for at in wanted] + [row[-1]] if row[at["time"]] else [row[at["backend"]], row[-1]])
    return expected, timing_rows(host, table.section)


def telling(host: Host, case: str) -> Optional[Timing]:
    """Returns the timing that stands for a case: the fastest, else the default, else the first that conforms."""
    ranking = host.ranked.cases[case]
    if ranking.fastest or not ranking.rows:
        return ranking.fastest
    usual = ranking.of(host.ranked.default(ranking.rows[0].kernel))
    right = [row for row in ranking.rows if row.standing >= Standing.NOISY]
    return usual if usual in right else right[0] if right else None


def answer_row(host: Host, model: Record, one: Record) -> List[str]:
    ranking = host.ranked.cases[one["case"]]
    row = telling(host, one["case"])
    assert row
    return [
        one["kernel"], fastest(ranking), old(units.time(row.median)), units.rate(row.record["gbps"]),
        old(units.percent(row.share)), old(units.times(row.speedup_libm)), old(units.times(row.speedup_autovec)),
        with_limits(host.errors.of(row.record)),
    ]  # fmt: skip


def fastest(ranking: Ranking) -> str:
    names = [row.backend for row in ranking.rows if row.standing >= Standing.TIED]
    return " = ".join(names) or "too noisy to tell"


def with_limits(found: Sequence[Worst]) -> str:
    said = []
    for worst in found:
        shown, limit = worst.judged
        since = f" from 2^{worst.since}" if worst.since else ""
        said.append((worst.text if worst.metric == "exact" else f"{shown} (limit {limit})") + since)
    return ", ".join(said) or "not measured"


def answers_of(host: Host, table: Table) -> "Tuple[Any, Any]":
    model = next(model for model in host.machine.of("model") if model["title"] == table.section)
    mine = [answer_row(host, model, one) for one in model["cases"]
            if one["case"] in host.ranked.cases and telling(host, one["case"])]  # fmt: skip
    expected = [[row[0], row[2].partition(";")[0], *row[3:9]] for row in table.rows]
    return expected, mine


def costs(host: Host, model: Record, table: Table) -> "Tuple[Any, Any]":
    found = steps(model, host.ranked)

    def named(head: str) -> Step:
        name, *words = head.split()
        fits = [step for step in found if step.name == name and all(w in (step.dtype, step.numerics) for w in words)]
        return next(step for step in fits if words or step.dtype == "f32" or len(fits) == 1)

    expected, mine = [], []
    for row in table.rows:
        backend = row[0].partition(" ")[0]
        if backend == "default":
            continue
        for head, shown in zip(table.head[1:], row[1:]):
            cost = cost_of(named(head), host.ranked, backend)
            expected.append((backend, head, re.sub(" (±.*|noisy)$", "", shown)))
            mine.append((backend, head, old(units.time(cost.ns)) if cost else "-"))
            if cost and "±" in shown:
                assert shown.endswith(f"±{100 * cost.width:.0f} %"), (backend, head)
    return expected, mine


def tally(cell: Cell) -> str:
    counts = cell.counts
    if not counts:
        return "·"
    if not cell.ran:
        return "cannot run" if counts.get("unsupported") else "skipped"
    if cell.failed:
        return f"{'☠' if counts.get('crash') else '✗'} {counts.get('crash') or counts.get('fail')}/{cell.ran}"
    passed = f"● {counts.get('pass', 0)}"
    return passed + (f", {counts['inconclusive']} weak" if counts.get("inconclusive") else "")


def matrix(host: Host, table: Table) -> "Tuple[Any, Any]":
    suites, mine = table.head[0] == "evidence", []
    models = host.machine.of("model") if host.machine.header.get("by_model") else []
    used = {one["kernel"] for model in models for one in model["cases"]} or set(host.kernels)
    for name, *_ in table.rows:
        row = [name]
        for backend in table.head[1:]:
            counts: Dict[str, int] = {}
            for check in host.machine.of("check"):
                if (
                    check["backend"] == backend
                    and check["kernel"] in used
                    and name == check["suite" if suites else "kernel"]
                ):
                    counts[check["status"]] = counts.get(check["status"], 0) + 1
            cell = Cell(counts)
            if not suites:
                assert host.cell(name, backend).counts == counts
            row.append(tally(cell))
        mine.append(row)
    return table.rows, mine


def by_position(host: Host, kernel: str, numerics: str, table: Table) -> "Tuple[Any, Any]":
    found = host.errors.by_range(kernel, numerics, host.backends)
    assert found and [f"<2^{end}" for end in found.ends] == table.head[1:-1]
    mine = [
        [backend, *(text_of(row.get(end, [])).replace("not measured", "-") for end in found.ends),
         found.exact_until(backend)]
        for backend, row in found.cells.items()
    ]  # fmt: skip
    return table.rows, mine


def worst_errors(host: Host, table: Table) -> "Tuple[Any, Any]":
    mine = []
    for (kernel, dtype, numerics, backend), found in host.errors.rows():
        for worst in found:
            error = worst.check["error"]
            where = error.get("worst_at", "") + (f"; judged so from 2^{worst.since}" if worst.since else "")
            checked = f", {error['checked']:,} values".replace(",", " ").replace("  ", ", ", 1)
            evidence = error["coverage"] + (checked if error.get("checked") else "")
            mine.append([kernel, dtype, numerics, backend, *worst.judged, where, evidence])
    shown = {(row[0], row[1]) for row in table.rows}  # a report by model has the kernels of its models alone
    return sorted(table.rows), sorted(row for row in mine if (row[0], row[1]) in shown)


def verdicts(host: Host, table: Table) -> "Tuple[Any, Any]":
    mine = sorted(pair["verdict"].upper() for pair in host.machine.of("pair"))
    at = table.head.index("verdict")
    return sorted(row[at].rstrip("*") for row in table.rows), mine


@pytest.mark.parametrize("name", RUNS)
def test_numbers_of_the_report(name: str, record_property: Any) -> None:
    hosts = View(records(name)).hosts
    compared, model, page = 0, None, text(name, "md")
    positions = iter(re.findall(r"Largest error of `(\w+)`, profile `(\w+)`", page))
    for table in tables(page) if len(hosts) == 1 else []:
        host, head = hosts[0], table.head
        if "default here" in head:
            model = next(model for model in host.machine.of("model") if model["title"] == table.section)
            expected, mine = answers_of(host, table)
        elif head[0] == "backend" and table.section.startswith("What a token") and model:
            expected, mine = costs(host, model, table)
        elif head[0] in ("kernel", "evidence") and set(head[1:]) <= set(host.backends):
            expected, mine = matrix(host, table)
        elif head[0] == "backend" and "within 1 ulp" in head:
            kernel, numerics = next(positions)
            expected, mine = by_position(host, kernel, numerics, table)
        elif head[:4] == ["kernel", "type", "profile", "backend"]:
            expected, mine = worst_errors(host, table)
        elif head[:2] == ["shape", "size"]:
            expected, mine = speed(host, table)
        else:
            continue
        assert mine == expected, table.section
        compared += sum(len(row) for row in expected)
    record_property("cells", compared)
    print(f"{name}: {compared} cells of the report are equal")


# ---- the CSV ----

FLAT = {"grade": "quality.grade"}
GONE = ("loads", "stores", "branches", "vector")  # classes of instructions, which are no longer counted


def renamed(kind: str, path: str) -> str:
    """Returns a member's path in the newer schema: each name on the way."""
    names, new, parts = NAMES.get(kind, {}), [], path.split(".")
    for at, part in enumerate(parts):
        new.append(names.get(".".join(parts[: at + 1]), part))
    return FLAT.get(path, ".".join(new))


def newer(line: Dict[str, str]) -> Dict[str, str]:
    """Returns the cells of a line of the CSV by the newer names and words, without what is empty."""
    kind = KINDS.get(line["t"], line["t"])
    found = {}
    for name, cell in line.items():
        if not cell or name in GONE or (kind == "doctor" and name == "reason"):
            continue
        new = {"t": kind, "family": FAMILIES.get(cell, cell)}.get(name, cell)
        found[renamed(kind, name)] = STATUS.get(new, new) if name.endswith("status") else new
    return found


@pytest.mark.parametrize("name", RUNS)
def test_csv(name: str) -> None:
    before = list(csv.DictReader(io.StringIO(text(name, "csv"))))
    after = list(csv.DictReader(io.StringIO(exports.to_csv(records(name)))))
    assert len(before) == len(after)
    compared = 0
    for old_line, line in zip(before, after):
        if line["t"] == "check":  # the CSV of the C program lacked the command that repeats a check
            del line["command"]
        expected = newer(old_line)
        assert {name: cell for name, cell in line.items() if cell} == expected
        compared += len(expected)
    print(f"{name}: {compared} cells of the CSV are equal")


@pytest.mark.parametrize("name", RUNS)
def test_pages(name: str) -> None:
    """Every run becomes a page, whatever it lacks: a clear answer, checks, timings."""
    view = View(records(name))
    if not view.hosts:
        pytest.skip("it names no machine")
    assert to_html(view).rstrip().endswith("</html>")
    assert to_markdown(view).startswith("# posenc")


@pytest.mark.parametrize("at", range(len(SERIES)))
def test_changes_of_level(at: int) -> None:
    found = changepoints.find(SERIES[at]["values"])
    assert [[one.at, one.start, one.stop, one.before, one.after, one.p] for one in found] == SERIES[at]["changes"]
