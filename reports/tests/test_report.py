"""posenc report as a whole: its answer, its files, what it replaces and what it keeps.

A script stands in for the program, so no test depends on the clock: report("--dir", "rep", fake="wrong") runs
posenc report --dir rep where a check fails.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from programs import FOOTER, HEADER, Completed, make_program, result, start, write_records

from posenc.__main__ import main
from posenc.records import load
from posenc.report.view import ByRange, View, Worst

Record = Dict[str, Any]
Report = Callable[..., "Completed[str]"]
FILES = ["report.html", "report.md", "results.jsonl"]
FAMILIES = {"avx2": "native", "autovec_v3": "autovec", "libm": "libm"}  # by backend
# Prints the records of verify or bench. $FAKE is wrong or inconclusive, how a check ends; or hang, crash or reject.
PROGRAM = """
case "$*" in
table*) echo numerics,storage,backend,position,error; exit ;;
*' --case '*) exit 77 ;; # the places of memory: nothing to run
esac
stop() { cat FOLDER/stopped; exit $((128 + $1)); }
case $FAKE in
reject) echo 'posenc verify: --kernel: rope: no kernel' >&2; exit 2 ;;
crash) kill -SEGV $$ ;;
hang)
    trap 'stop 1' HUP; trap 'stop 2' INT; trap 'stop 15' TERM
    echo hanging >&2
    while :; do sleep 0.05; done ;;
esac
sed "s/RUN/$$/" "FOLDER/$1$FAKE" 2>/dev/null || sed "s/RUN/$$/" "FOLDER/$1"
[ -z "$FAKE" ] || [ "$1" != verify ]
"""


def run_of(command: str, results: List[Record], **footer: Any) -> List[Record]:
    """Returns the records of a command: those of the machine, and its results."""
    case = {"case": "alibi/f32/given/bloom-decode", "kernel": "alibi", "step": "decode", "calls": 70}
    return [
        {**HEADER, "run_id": "RUN", "mode": "quick", "command": command, "started": "2026-01-01T00:00:00Z",
         "tool": {"version": "0.1.0"}, "argv": ["posenc", command]},
        {"t": "env", "env_id": "fake-1/none", "cpu": {"key": "fake-1", "name": "A made-up CPU"},
         "quality": {"grade": "A", "reasons": []}},
        *({"t": "backend", "id": name, "family": family, "available": True,
           "default_for": {"alibi": "fastest"} if name == "avx2" else {}} for name, family in FAMILIES.items()),
        {"t": "model", "name": "bloom-176b", "title": "BLOOM 176B", "source": "made up", "cases": [case]},
        *results,
        {**FOOTER, "counts": {}, "wall_s": 1.0, **footer},
    ]  # fmt: skip


def check(backend: str, status: str = "pass") -> Record:
    error = {"metric": "exact", "max": float(status == "fail"), "limit": 0, "worst_at": "key 3", "got": "0x1p+0",
             "want": "0x1p+1", "coverage": "sampled", "checked": 9, "misrounded": 0}  # fmt: skip
    return result("check", "alibi/f32/given/h8", backend, family=FAMILIES[backend], suite="vectors", status=status,
                  error=error)  # fmt: skip


def timing(backend: str, ns: float) -> Record:
    return result(
        "bench", "alibi/f32/given/bloom-decode", backend, family=FAMILIES[backend], threads=1, rounds=9, median_ns=ns,
        footprint={"name": "L2", "bytes": 1000}, ci={"level": 0.99, "lo": ns * 0.99, "hi": ns * 1.01}, gbps=1000 / ns,
        roofline={"kind": "store", "gbps": 20.0, "share": 50 / ns}, control_pct=0.5,
    )  # fmt: skip


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Returns the script that stands in for the program, beside the records that it prints."""
    for fake, status in (("", "pass"), ("wrong", "fail"), ("inconclusive", "inconclusive")):
        checks = [check("avx2", status), check("autovec_v3"), check("libm")]
        write_records(tmp_path / f"verify{fake}", run_of("verify", checks))
    timings = [timing("avx2", 100), timing("autovec_v3", 200), timing("libm", 400)]
    write_records(tmp_path / "bench", run_of("bench", timings))
    write_records(tmp_path / "stopped", run_of("verify", [check("avx2")], complete=False))
    return make_program(tmp_path / "program", PROGRAM.replace("FOLDER", str(tmp_path)))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def report(work: Path, program: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Report:
    """Returns a function that runs posenc report ARGUMENTS in the folder, beside a program that does `fake`."""
    monkeypatch.chdir(work)
    monkeypatch.setenv("POSENC_PROGRAM", str(program))

    def run(*arguments: str, fake: str = "") -> "Completed[str]":
        monkeypatch.setenv("FAKE", fake)
        status = main("report", list(arguments))
        return Completed(arguments, status, *capfd.readouterr())

    return run


def names(folder: Path) -> List[str]:
    return sorted(path.name for path in folder.iterdir())


def run_id(folder: Path) -> Any:
    return json.loads((folder / "results.jsonl").read_text().split("\n")[0])["run_id"]


# ---- the answer ----


def test_answer_and_files(work: Path, report: Report) -> None:
    done = report("--dir", "rep")
    assert done.returncode == 0, done.stderr
    assert names(work) == ["rep"] and names(work / "rep") == FILES
    assert "A made-up CPU (fake-1/none), measurement quality A\n3 of 3 checks passed" in done.stdout
    line = next(line for line in done.stdout.splitlines() if line.startswith("BLOOM"))
    assert line.split() == "BLOOM 176B decode avx2 (default) clear 7.00 µs 4.0× 2.0× 50 %".split()
    assert done.stdout.endswith("Page: rep/report.html\n") and len(done.stdout.splitlines()) <= 30
    markdown = (work / "rep" / "report.md").read_text()
    assert "| BLOOM 176B | decode | **avx2** | clear (±1 %) | 7.00 µs | 4.0× | 2.0× | 50 % | yes | nothing" in markdown
    assert "- Backend: **avx2, the default**\n- How sure: clear in 1 of 1 steps\n" in markdown
    assert "| alibi | ✓ 1 | ✓ 1 | ✓ 1 |" in markdown
    # The records of all commands become one run.
    records = load(str(work / "rep" / "results.jsonl"))
    kinds = [record["t"] for record in records]
    assert kinds == ["header", "env", *["backend"] * 3, "model", *["check"] * 3, *["bench"] * 3, "footer"]
    assert records[0]["command"] == "report" and records[0]["argv"] == ["posenc", "report", "--dir", "rep"]
    assert records[-1]["complete"] and records[-1]["counts"]["pass"] == 3 and records[-1]["wall_s"] == 2.0


def test_wrong_backend_is_never_the_answer(work: Path, report: Report) -> None:
    done = report(fake="wrong")
    assert done.returncode == 1
    assert "1 of 3 checks failed" in done.stdout and "FAIL alibi/f32/given/h8 on avx2" in done.stdout
    assert "autovec_v3" in next(line for line in done.stdout.splitlines() if line.startswith("BLOOM"))
    assert "To use it: POSENC_BACKEND=autovec_v3" in done.stdout
    page = (work / "posenc-report" / "report.html").read_text()
    assert "avx2: no" in page and "1 of 3 checks failed" in page


def test_inconclusive_checks_are_no_passes(work: Path, report: Report) -> None:
    done = report(fake="inconclusive")
    assert done.returncode == 1 and "2 of 3 checks passed, 1 inconclusive" in done.stdout
    assert "INCONCLUSIVE alibi/f32/given/h8 on avx2" in done.stdout
    assert "2 checks passed, 1 inconclusive" in (work / "posenc-report" / "report.html").read_text()
    assert "0 of 3 checks failed, 1 inconclusive" in (work / "posenc-report" / "report.md").read_text()
    fleet = (work / "posenc-report" / "results.jsonl").read_text()
    (work / "fleet.jsonl").write_text(fleet + fleet.replace("fake-1", "fake-2"))
    assert report("fleet.jsonl", "-o", "fleet.html").returncode == 0
    page = (work / "fleet.html").read_text()
    assert "4 checks passed, 2 inconclusive" in page and page.count("2 checks passed, 1 inconclusive") == 2


def test_formats(work: Path, report: Report) -> None:
    """Writes the formats that examples/fleet and docs/exports.md ask for, of a run of this machine and of files."""
    assert report("--dir", "rep", "-o", "x.csv").returncode == 0
    done = report("rep/results.jsonl", "--out", "console", "--out", "html:x.html", "--out", "bmf:x.json",
                  "-o", "y.html", "-o", "y.md", "-o", "y.jsonl", "-o", "y.csv")  # fmt: skip
    assert done.returncode == 0 and "3 of 3 checks passed" in done.stdout, done.stderr
    assert names(work) == ["rep", "x.csv", "x.html", "x.json", "y.csv", "y.html", "y.jsonl", "y.md"]
    assert load(str(work / "y.jsonl")) == load(str(work / "rep" / "results.jsonl"))
    assert report("rep/results.jsonl", "--out", "md").stdout == (work / "rep" / "report.md").read_text()


def test_failures_of_the_program(work: Path, report: Report) -> None:
    done = report(fake="crash")
    assert done.returncode == 128 + signal.SIGSEGV and names(work) == []
    done = report(fake="reject")
    assert done.returncode == 2 and "posenc verify: --kernel: rope: no kernel" in done.stderr and names(work) == []


# ---- the folder ----


@pytest.mark.parametrize(
    "folder, problem",
    [("mine", "the file exists and is no earlier output (got 'mine/report.md')"), ("no/such", "No such file or"),
     ("file", "File exists (got 'file')"), ("link", "File exists (got 'link')")],
)  # fmt: skip
def test_nothing_of_others_is_lost(work: Path, report: Report, folder: str, problem: str) -> None:
    (work / "mine").mkdir()
    for name in ("mine/report.md", "mine/notes.txt", "file"):
        (work / name).write_text("buy milk")
    (work / "link").symlink_to("nowhere")
    before = names(work) + names(work / "mine")
    done = report("--dir", folder)
    assert done.returncode == 2 and problem in done.stderr and names(work) + names(work / "mine") == before
    assert report("--dir", "mine", "--force").returncode == 0
    assert run_id(work / "mine") and (work / "mine" / "notes.txt").read_text() == "buy milk"


def test_a_report_is_replaced(work: Path, report: Report) -> None:
    report("--dir", "rep")
    first = run_id(work / "rep")
    (work / "to").symlink_to("rep")
    report("--dir", "to/")
    assert names(work) == ["rep", "to"] and names(work / "rep") == FILES and run_id(work / "rep") != first


def test_other_files_are_kept(work: Path, report: Report) -> None:
    report("--dir", "rep")
    (work / "x.html").write_text("buy milk")
    done = report("rep/results.jsonl", "-o", "x.html")
    assert done.returncode == 2 and "no earlier output" in done.stderr and (work / "x.html").read_text() == "buy milk"
    assert report("rep/results.jsonl", "-o", "x.html", "--force").returncode == 0


# ---- signals ----


def interrupted(work: Path, program: Path, number: int, *arguments: str) -> "Completed[str]":
    """Runs a report whose program hangs, and sends both a signal, even if it was ignored before, as under nohup."""
    child = start(program, "report", *arguments, env={"FAKE": "hang", "NO_COLOR": "1"}, cwd=work,
                  start_new_session=True, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # fmt: skip
    assert child.stderr and child.stderr.readline() == "Checking every backend …\n"
    assert child.stderr.readline() == "hanging\n"
    os.killpg(child.pid, number)  # as a terminal does
    out, err = child.communicate()
    return Completed([], child.returncode, out, err)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_without_a_report_before(work: Path, program: Path, number: int) -> None:
    (work / "rep").mkdir()  # an empty folder holds no report that could stay
    done = interrupted(work, program, number, "--dir", "rep")
    assert done.returncode == 128 + number and names(work / "rep") == FILES, done.stderr
    view = View(load(str(work / "rep" / "results.jsonl")))
    assert view.hosts[0].checked.ran == 1 and not view.records[-1]["complete"]
    assert "1 of 1 run did not finish" in done.stdout


def test_interrupted_with_a_report_before(work: Path, program: Path, report: Report) -> None:
    report("--dir", "rep")
    before = run_id(work / "rep")
    done = interrupted(work, program, signal.SIGTERM, "--dir", "rep", "--out", "console", "-o", "x.csv")
    assert done.returncode == 143 and run_id(work / "rep") == before and "stays as it is" in done.stderr
    assert (work / "x.csv").exists() and "1 of 1 check passed" in done.stdout
    assert not load(str(work / "rep" / "interrupted.jsonl"))[-1]["complete"]


# ---- bad input ----


BAD = [
    ("gone.jsonl", "No such file or directory (got 'gone.jsonl')"),
    *((f"r.jsonl {words}", f"{words.split()[0]} has no effect on files of records")
      for words in ("--kernel alibi", "--dir x", "--jobs 2", "--time-limit 5", "--quick", "--full")),
    ("--time-limit soon", "expected a number above 0, at most 86400 (got 'soon')"),
    ("--time-limit 0", "expected a number above 0, at most 86400 (got '0')"),
    ("--quick --full", "not allowed with argument"),
]  # fmt: skip


@pytest.mark.parametrize("line, problem", BAD)
def test_bad_input(work: Path, report: Report, line: str, problem: str) -> None:
    done = report(*line.split())
    assert done.returncode == 2 and problem in done.stderr and done.stderr.startswith("posenc report: error: ")
    assert names(work) == []


def test_records_that_were_cut(work: Path, report: Report) -> None:
    (work / "cut.jsonl").write_text('{"t":"header","schema":"posenc.results/2","mode":"quick"}\n{"t":"check","case":')
    done = report("cut.jsonl")
    assert done.returncode == 2 and "no machine" in done.stderr


@pytest.mark.parametrize("record", ['{"t":"bench","median_ns":3}', '{"t":"check","status":[]}'])
@pytest.mark.parametrize("form", ["console", "html", "md"])
def test_records_that_lack_members(work: Path, report: Report, record: str, form: str) -> None:
    header = '{"t":"header","schema":"posenc.results/2"}\n{"t":"env","env_id":"m"}'
    (work / "odd.jsonl").write_text(f"{header}\n{record}\n")
    done = report("odd.jsonl", "--out", form)
    assert done.returncode == 2 and "a record lacks a member" in done.stderr


@pytest.mark.parametrize(
    "ulp, claim",
    [({10: 0.5, 20: 0.5, 31: 0.5}, "everywhere"), ({10: 0.5, 20: 9.0, 31: 0.5}, "below 2^10"),
     ({10: 0.5, 31: 0.5}, "below 2^10"), ({10: 2.0, 20: 0.5, 31: 0.5}, "nowhere"), ({}, "nowhere")],
)  # fmt: skip
def test_within_one_ulp_until_the_first_gap(ulp: Dict[int, float], claim: str) -> None:
    cells = {"mine": {end: [Worst("ulp", value, 1.0, {})] for end, value in ulp.items()}}
    assert ByRange("rope_table", "exact", [10, 20, 31], cells).within_ulp_until("mine") == claim
