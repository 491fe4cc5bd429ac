"""posenc results trend: histories of runs, the changes of level in them, and the table of both."""

import json
import math
import random
from pathlib import Path
from typing import Any, Dict, List

import programs
import pytest
from programs import FOOTER, HEADER, result, write_records

from posenc.command import CommandError
from posenc.results import changepoints, main
from posenc.results.trend import History, Series, Wanted, histories, sparkline
from posenc.records import Record

DECODE = "alibi/f32/given/decode"


# ---- changes of level ----


def test_noise_is_seldom_called_a_change() -> None:
    draw = random.Random(4)
    series = [[draw.gauss(0.0, 0.02) for _ in range(30)] for _ in range(100)]
    assert sum(bool(changepoints.find(values)) for values in series) <= 1
    wild = [[math.tan(math.pi * (draw.random() - 0.5)) for _ in range(50)] for _ in range(30)]
    assert not any(changepoints.find(values) for values in wild)


def test_values_that_stand_alone_are_no_change() -> None:
    draw = random.Random(5)
    values = [draw.gauss(0.0, 0.02) for _ in range(40)]
    values[11] += 1.0
    values[27] -= 3.0
    assert not changepoints.find(values)


# ---- histories ----


def run(number: int, commit: str, value: float, error: Any, key: str = "paper", kind: str = "release") -> List[Record]:
    """Returns a run of a day: two cases at a share of the roofline, one that is rejected, and a check with an error."""
    def timing(case: str, share: float, **members: Any) -> Record:
        roofline = {"share": share}
        return result("bench", case, family="native", median_ns=100.0, threads=1, roofline=roofline, **members)

    return [
        {**HEADER, "started": f"2026-11-{number + 1:02d}T10:00:00Z", "mode": "quick",
         "tool": {"version": "0.1.0", "commit": commit, "dirty": number == 2}},
        {"t": "env", "env_id": key, "cpu": {"key": key, "name": "a CPU of paper"}, "build": {"type": kind}},
        timing(DECODE, value), timing("alibi/f32/given/prefill", value / 2),
        timing("alibi/f32/given/rejected", value, rejected="not provided"),
        result("check", "alibi/f32/given/far", family="native", suite="accuracy", status="pass",
               error={"metric": "ulp", "max": error}),
        FOOTER,
    ]  # fmt: skip


def steps() -> Dict[str, List[Record]]:
    """Returns 24 runs, of which the last 8 are 10 % slower, and those from the 10th on err more. Files are shuffled."""
    files = {}
    for at in range(24):
        number = at * 7 % 24
        value = (0.8 if number < 16 else 0.72) * (1.0 + 0.001 * (number * 5 % 7))
        files[f"r{at}.jsonl"] = run(number, f"abc{number:04x}00000", value, 0.5 if number < 10 else 0.75)
    return files


def of_case(history: History, case: str) -> Series:
    """Returns the series of a case; that of the mean has no case."""
    (found,) = [series for series in [*history.shares, *history.means, *history.errors] if series.case == case]
    return found


def test_one_step() -> None:
    (history,) = histories(steps())
    series = of_case(history, DECODE)
    assert [one.name for one in history.runs][:4] == ["abc0000", "abc0001", "abc0002+", "abc0003"]
    assert [point.run for point in series.points] == list(range(24)) and len(history.shares) == 2
    (change,) = series.changes
    assert change.at == 16 and change.after / change.before == pytest.approx(0.9, abs=0.01) and change.p < 0.001
    mean = of_case(history, "")
    assert mean.cases == 2 and mean.points[0].value == pytest.approx(0.8 * math.sqrt(0.5), abs=1e-9)
    error = of_case(history, "alibi/f32/given/far")
    assert [(point.run, point.value) for point in error.points] == [(0, 0.5), (10, 0.75)] and history.checked == 1
    assert {series.case for series, _ in history.changes} == {"", DECODE, "alibi/f32/given/prefill"}


def test_means_are_of_the_cases_of_the_same_runs() -> None:
    files = {f"r{at}.jsonl": run(at, "", 0.8, 0.5) for at in range(5)}
    del files["r3.jsonl"][3]  # prefill
    (history,) = histories(files)
    assert not history.means and len(of_case(history, "alibi/f32/given/prefill").points) == 4


def test_numbers_of_threads_are_apart() -> None:
    files = {}
    for at in range(3):
        records = run(at, "", 0.8, 0.5)
        files[f"r{at}"] = [*records, *({**one, "threads": 4} for one in records if one["t"] == "bench")]
    (history,) = histories(files)
    assert [(series.threads, len(series.points)) for series in history.shares] == [(1, 3), (1, 3), (4, 3), (4, 3)]
    assert [(series.threads, series.cases) for series in history.means] == [(1, 2), (4, 2)]
    assert history.means[1].name == "alibi, 2 cases, 4 threads"


def test_machines_and_types_of_build_are_apart() -> None:
    files = {**steps(), "other": run(3, "1" * 12, 0.1, 0.5, "other"), "debug": run(4, "2" * 12, 0.1, 0.5, kind="debug")}
    found = histories(files)
    assert [(history.machine, len(history.runs)) for history in found] == [
        ("other", 1), ("paper", 24), ("paper, debug", 1)
    ]  # fmt: skip


def test_results_by_pattern() -> None:
    files = steps()
    del files["r3.jsonl"][2]  # the only one that is wanted of this run
    (history,) = histories(files, Wanted(cases=["*decode"]))
    assert len(history.runs) == 23
    assert [series.case for series in history.shares] == [DECODE] and not history.means and not history.checked
    (history,) = histories(steps(), Wanted(backends=["nat*"], kernels=["alibi", "t5"]))
    assert len(history.shares) == 2
    with pytest.raises(CommandError, match="no file has a result of that kernel, backend or case"):
        histories(steps(), Wanted(backends=["sse*"]))


def test_errors_that_are_no_numbers() -> None:
    files = {f"r{at}": run(at, "", 0.5, error) for at, error in enumerate(["nan", "nan", "inf", 1.0, 1.0])}
    (history,) = histories(files)
    assert [(point.run, str(point.value)) for point in history.errors[0].points] == [(0, "nan"), (2, "inf"), (3, "1.0")]


# ---- the table ----


@pytest.mark.parametrize("values, text", [
    ([0.5, 0.75, 1.0], "▁▅█"), ([0.5, 0.5], "▅▅"), ([1.0, 0.99, 1.01], "▅▄▅"),
    ([1.0] * 20 + [2.0] * 20, "▁" * 10 + "█" * 10),
])  # fmt: skip
def test_sparkline(values: List[float], text: str) -> None:
    assert sparkline(values) == text


def shown(files: Dict[str, List[Record]], folder: Path, capsys: Any, *options: str) -> str:
    """Returns what the command prints about files, with single spaces."""
    paths = [write_records(folder / name, records) for name, records in files.items()]
    assert main.main(["trend", *paths, *options]) == 0
    return "\n".join(" ".join(line.split()) for line in capsys.readouterr().out.splitlines())


def test_the_table(tmp_path: Path, capsys: Any) -> None:
    text = shown(steps(), tmp_path, capsys)
    assert text.startswith("History on paper, a CPU of paper\n24 runs from abc0000 to abc0017; 2 cases timed.")
    assert f"{DECODE} avx2 abc000f and abc0010 0.80 0.72 -10 %" in text
    assert "far avx2 accuracy abc000a 0.50 ulp 0.75 ulp worse" in text and "A trend is no gate" in text
    assert "alibi, 2 cases avx2" in text and "fewer than 14" not in text
    data = json.loads(shown(steps(), tmp_path, capsys, "--json"))
    assert data[0]["shares"][0]["changes"][0]["at"] == 16


def test_the_table_of_few_runs(tmp_path: Path, capsys: Any) -> None:
    few = {f"r{at}": run(at, "", 0.8 if at < 7 else 0.4, 0.5) for at in range(13)}
    text = shown(few, tmp_path, capsys)
    assert "2 of them have fewer than 14 runs" in text and "Changes of level" not in text
    errors = shown({f"r{at}": run(at, "", 0.5, one) for at, one in enumerate([1.0, "nan", 0.5])}, tmp_path, capsys)
    assert "1.00 ulp NaN ulp worse" in errors and "NaN ulp 0.50 ulp better" in errors
    assert "13 runs from 2026-11-01 to 2026-11-13" in text and "No change of level" not in text
    assert "The largest errors of all 1 checks are the same in all runs, to the last digit." in text


def test_many_cases_are_listed_with_all(tmp_path: Path, capsys: Any) -> None:
    records = run(0, "", 0.8, 0.5)
    more = [{**records[2], "case": f"alibi/f32/given/c{at}"} for at in range(50)]
    files = {"r0": [*records[:-1], *more, records[-1]]}
    text = shown(files, tmp_path, capsys)
    assert "12 more cases are shown with --all." in text and "/c49 " not in text
    assert "/c49 " in shown(files, tmp_path, capsys, "--all")


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    path = write_records(tmp_path / "r.jsonl", run(0, "", 0.8, 0.5))
    words, latin = ["results", "trend", path], {"PYTHONIOENCODING": "latin-1"}
    done = programs.run(Path("not used"), *words, env=latin, encoding="latin-1")
    assert done.returncode == 0 and " avx2     ? " in done.stdout
