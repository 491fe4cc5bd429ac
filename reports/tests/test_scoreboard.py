"""posenc scoreboard: the page of a run, which RUN is in records, and files that are no run."""

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from posenc.command import CommandError
from posenc.scoreboard import main as scoreboard

ROOT = Path(__file__).resolve().parents[2]
TABLE: Dict[str, Any] = {
    "adapter": "a", "kernel": "rope_table", "title": "table()", "ok": True, "modes": ["hf_f32"], "mistake": None,
    "reason": "", "worst": [], "above": {"0.001": 16000, "0.01": None, "0.1": None},
    "decades": [{"digits": 1, "position": 9, "error": 3e-7}, {"digits": 5, "position": 99000, "error": 0.0068}],
}  # fmt: skip
ROTATION: Dict[str, Any] = {
    "adapter": "b", "kernel": "rope_half", "title": "rotate()", "ok": True, "modes": [], "mistake": None, "reason": "",
    "worst": [{"max": 1.93, "limit": 2.0, "metric": "pair_ulp"}], "spreads_nan": False,
    "speed": {"prompt": {"theirs_s": 4e-3, "ours_s": 1e-3, "ratio": 4.0, "low": 3.9, "high": 4.2},
              "call": {"theirs_s": 2e-5, "ours_s": 1e-6, "ratio": 20.0, "low": 19.0, "high": 21.0}},
}  # fmt: skip
WRONG = {**ROTATION, "title": "wrong()", "ok": False, "mistake": "the sine has the other sign", "speed": {}}
BIAS = {"adapter": "c", "kernel": "alibi", "title": "bias()", "ok": False, "modes": [], "mistake": None,
        "reason": "got 1 want 2", "worst": []}  # fmt: skip
RUN: List[Dict[str, Any]] = [
    {"scoreboard": "posenc scoreboard", "date": "2026-01-02", "cpu": "CPU <1>", "python": "3.11", "posenc": "0.1.0"},
    {"adapter": "a", "versions": {"torch": "2"}}, TABLE, ROTATION, WRONG, BIAS,
    {"adapter": "d", "skipped": "No module named 'd'", "install": "pip install d"},
]  # fmt: skip


def page(suffix: str) -> str:
    return scoreboard.render(RUN, suffix).decode()


def row_of(title: str) -> List[str]:
    """Returns the cells of a row of the Markdown page."""
    line = next(line for line in page(".md").splitlines() if title in line)
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_table_has_an_error_for_each_decade_and_the_first_position() -> None:
    cells = row_of("table()")
    assert cells[:4] == ["a", "table()", "hf_f32", "3e-7"]
    assert cells[7] == "7e-3" and cells[10:] == ["16 000", "–", "–"]


def test_table_with_errors_of_f32_angles_is_not_called_wrong() -> None:
    row = {**TABLE, "ok": False, "reason": "got 1 want 2"}
    assert scoreboard.verdict_of(row) == "f32 angles, in no mode to the bit"
    row = {**row, "decades": [{"digits": 1, "position": 9, "error": 1e-4}]}
    assert scoreboard.verdict_of(row) == "differs: got 1 want 2"


def test_rotation_has_times_and_a_wrong_one_has_none() -> None:
    times = ["4.00 ms", "1.00 ms", "4.0 (3.9 to 4.2)", "20.0 µs", "1.00 µs"]
    assert row_of("rotate()")[3:] == ["1.93 pair_ulp", "no", *times]
    cells = row_of("wrong()")
    assert cells[2] == "differs: the sine has the other sign" and cells[5:] == ["–"] * 5


def test_missing_library_is_named_with_the_command_that_installs_it() -> None:
    assert "pip install d" in page(".md") and "pip install d" in page(".html")


def test_page_escapes_what_it_shows() -> None:
    assert "CPU &lt;1&gt;" in page(".html") and "CPU \\<1>" in page(".md")


def test_page_loads_nothing() -> None:
    assert "src=" not in page(".html") and "href=" not in page(".html")


def test_records_make_the_same_page_again(tmp_path: Path) -> None:
    records = tmp_path / "run.jsonl"
    records.write_bytes(scoreboard.render(RUN, ".jsonl"))
    assert scoreboard.main(["--from", str(records), "-o", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text() == page(".md")


def test_bad_output_is_rejected_before_a_run(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="unknown suffix .got '.*x.pdf'"):
        scoreboard.main(["-o", str(tmp_path / "x.pdf")])
    with pytest.raises(CommandError, match="no .py file .got 'no.py'"):
        scoreboard.main(["no.py", "-o", str(tmp_path / "x.md")])


@pytest.mark.parametrize("text", ["", "not json", "[1]", '{"t": "header"}', '{"scoreboard": ""}\n{"kernel": "alibi"}'])
def test_file_that_is_no_run_is_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(CommandError, match="no run of posenc scoreboard"):
        scoreboard.main(["--from", str(path), "-o", str(tmp_path / "page.md")])
    assert not (tmp_path / "page.md").exists()


def test_every_adapter_lists_its_packages() -> None:
    for path in (ROOT / "adapters").glob("*.py"):
        assert scoreboard.packages_of(path), path
        assert json.dumps(scoreboard.packages_of(path))
