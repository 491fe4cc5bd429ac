"""posenc report as a whole: its answer, its files, what it replaces and what it keeps.

The program is made up (fake_program.py): no test depends on the clock.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

from posenc.records import load
from posenc.report.view import View

ROOT = Path(__file__).resolve().parents[2]
FAKE = ROOT / "reports" / "tests" / "fake_program.py"


class Result:
    """What a command printed, and its exit code."""

    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr


def words(*arguments: str) -> List[str]:
    return [sys.executable, "-m", "posenc", "report", *arguments]


def environment(program: Path, fake: str = "") -> Dict[str, str]:
    return {**os.environ, "POSENC_PROGRAM": str(program), "PYTHONPATH": str(ROOT / "reports"), "FAKE": fake,
            "NO_COLOR": "1"}  # fmt: skip


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{FAKE}' \"$@\"\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


def report(work: Path, program: Path, *arguments: str, fake: str = "") -> Result:
    return Result(
        subprocess.run(
            words(*arguments), cwd=work, env=environment(program, fake), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, encoding="utf-8", check=False,
        )
    )  # fmt: skip


def names(folder: Path) -> List[str]:
    return sorted(path.name for path in folder.iterdir())


def run_id(folder: Path) -> Any:
    return json.loads((folder / "results.jsonl").read_text().split("\n")[0])["run_id"]


# ---- the answer ----


def test_answer_and_files(work: Path, program: Path) -> None:
    done = report(work, program, "--dir", "rep")
    assert done.status == 0, done.err
    assert names(work) == ["rep"] and names(work / "rep") == ["report.html", "report.md", "results.jsonl"]
    assert "A made-up CPU (fake-1/none), measurement quality A\n3 of 3 checks passed" in done.out
    line = next(line for line in done.out.splitlines() if line.startswith("BLOOM"))
    assert line.split() == "BLOOM 176B decode avx2 (default) clear 7.00 µs 4.0× 2.0× 50 %".split()
    assert done.out.endswith("Page: rep/report.html\n") and len(done.out.splitlines()) <= 30


def test_records_are_one_run(work: Path, program: Path) -> None:
    report(work, program, "--dir", "rep")
    records = load(str(work / "rep" / "results.jsonl"))
    kinds = [record["t"] for record in records]
    assert kinds == [
        "header",
        "env",
        "backend",
        "backend",
        "backend",
        "model",
        *["check"] * 3,
        *["bench"] * 3,
        "footer",
    ]
    assert records[0]["command"] == "report" and records[0]["argv"] == ["posenc", "report", "--dir", "rep"]
    assert records[-1]["complete"] and records[-1]["counts"]["pass"] == 3 and records[-1]["wall_s"] == 2.0


def test_wrong_backend_is_never_the_answer(work: Path, program: Path) -> None:
    done = report(work, program, fake="wrong")
    assert done.status == 1
    assert "1 of 3 checks failed" in done.out and "FAIL alibi/f32/given/h8 on avx2" in done.out
    assert "autovec_v3" in next(line for line in done.out.splitlines() if line.startswith("BLOOM"))
    assert "To use it: POSENC_BACKEND=autovec_v3" in done.out
    page = (work / "posenc-report" / "report.html").read_text()
    assert "avx2: no" in page and "1 of 3 checks failed" in page


def test_verbose_prints_tables(work: Path, program: Path) -> None:
    report(work, program, "--dir", "rep")
    done = report(work, program, "rep/results.jsonl", "-v")
    assert "alibi/f32/given/bloom-decode  autovec_v3  200 ns" in done.out and "Kernel  avx2" in done.out


def test_pages_of_files(work: Path, program: Path) -> None:
    report(work, program, "--dir", "rep")
    done = report(work, program, "rep/results.jsonl", "-o", "x.html", "-o", "x.md", "-o", "x.jsonl", "-o", "x.csv")
    assert done.status == 0, done.err
    assert names(work) == ["rep", "x.csv", "x.html", "x.jsonl", "x.md"]
    assert load(str(work / "x.jsonl")) == load(str(work / "rep" / "results.jsonl"))


def test_formats(work: Path, program: Path) -> None:
    """As examples/fleet and docs/exports.md ask for them; also of a run of this machine."""
    assert report(work, program, "--dir", "rep", "-o", "x.csv").status == 0
    done = report(work, program, "rep/results.jsonl", "--out", "console", "--out", "html:x.html", "--out", "bmf:x.json")
    assert done.status == 0 and "3 of 3 checks passed" in done.out
    assert names(work) == ["rep", "x.csv", "x.html", "x.json"]
    assert report(work, program, "rep/results.jsonl", "--out", "md").out == (work / "rep" / "report.md").read_text()


def test_failures_of_the_program(work: Path, program: Path) -> None:
    done = report(work, program, fake="crash")
    assert done.status == 128 + signal.SIGSEGV and names(work) == []
    done = report(work, program, fake="reject")
    assert done.status == 2 and "posenc verify: --kernel: rope: no kernel" in done.err and names(work) == []


# ---- the folder ----


def test_report_before_is_kept(work: Path, program: Path) -> None:
    report(work, program, "--dir", "rep")
    first = run_id(work / "rep")
    done = report(work, program, "--dir", "rep/")
    second = run_id(work / "rep")
    assert names(work) == ["rep", "rep.previous"] and run_id(work / "rep.previous") == first
    assert "(the report before: rep.previous)" in done.out
    report(work, program, "--dir", "rep")
    assert names(work) == ["rep", "rep.previous"] and run_id(work / "rep.previous") == second


@pytest.mark.parametrize(
    "folder, problem",
    [("mine", "holds notes.txt, which no report wrote"), (".", "current folder"), ("file", "no folder"),
     ("link", "link to a folder that does not exist"), ("no/such", "No such file or directory"),
     ("kept", "kept.previous holds notes.txt")],
)  # fmt: skip
def test_nothing_of_others_is_lost(work: Path, program: Path, folder: str, problem: str) -> None:
    for name in ("mine", "kept", "kept.previous"):
        (work / name).mkdir()
    (work / "mine" / "notes.txt").write_text("buy milk")
    (work / "kept.previous" / "notes.txt").write_text("buy milk")
    (work / "kept" / "results.jsonl").touch()
    (work / "file").write_text("buy milk")
    (work / "link").symlink_to("nowhere")
    before = names(work)
    done = report(work, program, "--dir", folder)
    assert done.status == 2 and problem in done.err and names(work) == before


def test_force_moves_a_folder(work: Path, program: Path) -> None:
    (work / "mine").mkdir()
    (work / "mine" / "notes.txt").write_text("buy milk")
    assert report(work, program, "--dir", "mine", "--force").status == 0
    assert (work / "mine.previous" / "notes.txt").read_text() == "buy milk" and "report.html" in names(work / "mine")


def test_link_to_a_folder(work: Path, program: Path) -> None:
    report(work, program, "--dir", "rep")
    (work / "to").symlink_to("rep")
    done = report(work, program, "--dir", "to")
    assert f"(the report before: {work / 'rep.previous'})" in done.out and (work / "to").is_symlink()


def test_output_into_the_folder_is_rejected(work: Path, program: Path) -> None:
    report(work, program, "--dir", "rep")
    done = report(work, program, "--dir", "rep", "-o", "rep/x.csv")
    assert done.status == 2 and "lies in the folder of the report" in done.err and names(work) == ["rep"]


def test_other_files_are_kept(work: Path, program: Path) -> None:
    report(work, program, "--dir", "rep")
    (work / "x.html").write_text("buy milk")
    done = report(work, program, "rep/results.jsonl", "-o", "x.html")
    assert done.status == 2 and "no earlier output" in done.err and (work / "x.html").read_text() == "buy milk"
    assert report(work, program, "rep/results.jsonl", "-o", "x.html", "--force").status == 0


# ---- signals ----


def interrupted(work: Path, program: Path, number: int, *arguments: str) -> Result:
    """Runs a report that hangs, and sends it a signal when it does, which tests under nohup would ignore."""
    child = subprocess.Popen(
        words(*arguments), cwd=work, env=environment(program, "hang"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8", start_new_session=True, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )  # fmt: skip
    while child.poll() is None and not list(work.glob("*.partial-*/hanging")):
        time.sleep(0.01)
    os.killpg(child.pid, number)  # as a terminal does
    out, err = child.communicate()
    return Result(subprocess.CompletedProcess([], child.returncode, out, err))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_without_a_report_before(work: Path, program: Path, number: int) -> None:
    done = interrupted(work, program, number, "--dir", "rep")
    assert done.status == 128 + number and names(work) == ["rep"], done.err
    view = View(load(str(work / "rep" / "results.jsonl")))
    assert view.hosts[0].checked.ran == 1 and not view.records[-1]["complete"]
    assert "1 of 1 runs did not finish" in done.out


def test_interrupted_with_a_report_before(work: Path, program: Path) -> None:
    report(work, program, "--dir", "rep")
    before = run_id(work / "rep")
    done = interrupted(work, program, signal.SIGTERM, "--dir", "rep")
    partial: Optional[Path] = next(iter(work.glob("rep.partial-*")), None)
    assert done.status == 143 and run_id(work / "rep") == before and "stays as it is" in done.err
    assert partial and {"report.html", "report.md", "results.jsonl"} <= set(names(partial))


# ---- bad input ----


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (["gone.jsonl"], "No such file or directory (got 'gone.jsonl')"),
        (["r.jsonl", "--kernel", "alibi"], "--kernel has no effect on files of records"),
        (["r.jsonl", "--dir", "x"], "--dir has no effect on files of records"),
        (["--time-limit", "soon"], "invalid float value: 'soon'"),
        (["--quick", "--full"], "not allowed with argument"),
    ],
)
def test_bad_input(work: Path, program: Path, arguments: List[str], problem: str) -> None:
    done = report(work, program, *arguments)
    assert done.status == 2 and problem in done.err and done.err.startswith("posenc report: error: ")
    assert names(work) == []


def test_records_that_were_cut(work: Path, program: Path) -> None:
    (work / "cut.jsonl").write_text('{"t":"header","schema":"posenc.results/1","mode":"quick"}\n{"t":"conf","case":')
    done = report(work, program, "cut.jsonl")
    assert done.status == 2 and "no machine" in done.err
