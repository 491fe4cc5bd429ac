"""Processes of a comparison: how they end, hang and are ended. Shell scripts stand in for the program."""

import signal
import subprocess
import time
from pathlib import Path
from typing import List

import pytest
from programs import make_program, start, write_records
from test_compare import L2, TYPICAL, Json, Made, row, timed

from posenc import engine
from posenc.records import load

# Opens the output of such a script, --out jsonl:FILE, as descriptor 3.
OUTPUT = 'for word; do case $word in jsonl:*) exec 3>"${word#jsonl:}" ;; esac; done'
FOOTER = """echo '{"t":"footer","complete":true}' >&3"""


@pytest.mark.parametrize(
    "script, how, message",
    [
        (FOOTER, "", ""),
        (f"{FOOTER}; exit 1", "", ""),
        ("kill -SEGV $$", "the process ended by signal 11 (Segmentation fault)", ""),
        ("kill -KILL $$", "the process ended by signal 9 (Killed), which came from outside", ""),
        ("echo '{\"t\":\"header\"}' >&3; exit 0", "the process was ended by exit(0)", ""),
        ("printf '{' >&3; exit 3", "the process was ended by exit(3)", ""),
        ("echo nonsense >&3; sleep 600", "printed a line that is no record", ""),
        ("read -r pair; echo \"posenc pair: error: $pair\" >&2; exit 2", "the process was ended by exit(2)", "c b"),
    ],
)
def test_how_a_process_ends(tmp_path: Path, script: str, how: str, message: str) -> None:
    program = engine.Program(str(make_program(tmp_path / "posenc", f"{OUTPUT}\n{script}")), ["--"])
    ended = program.run([], lambda record: None, pairs=[("c", "b")])
    assert (ended.how, ended.message) == (how, message)


@pytest.mark.parametrize("script", ["while :; do :; done", "sleep 600"])
def test_a_process_that_hangs_is_ended(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "hanging"

    class Clock:
        """100 s pass at each look while the process hangs, and none before or after: load changes nothing."""

        now_s = 0.0

        def monotonic(self) -> float:
            self.now_s += 100.0 if hanging.exists() else 0.0
            return self.now_s

    monkeypatch.setattr(engine, "time", Clock())
    path = make_program(tmp_path / "posenc", f"{OUTPUT}\necho $$ >{hanging}\n{script}")
    ended = engine.Program(str(path), []).run([], lambda record: None, watched=True)
    assert ended.how == "printed nothing for 300 s" and ended.status == -signal.SIGKILL
    assert not Path("/proc", hanging.read_text().strip()).exists()


def test_a_signal_ends_it_with_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found: List[Json] = []
    Made(row(), row(TYPICAL)).run(["--part", "results,code"], found.append)
    write_records(Path("results"), found)
    write_records(Path("times"), [found[0], timed(row(), 0)])
    answers = "*'--part results,code'*) cat results >&3 ;; *) cat times >&3; touch timing; sleep 600 ;;"
    program = make_program(tmp_path / "posenc", f'{OUTPUT}\ncase "$*" in {answers} esac')
    words = ["compare", "base.so", "head.so", "--time-limit", "36000", "-o", "out.jsonl"]
    child = start(program, *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not Path("timing").exists():
        assert child.poll() is None
        time.sleep(0.05)
    child.terminate()
    assert child.wait() == 143
    records = load("out.jsonl")
    assert not records[-1]["complete"] and records[0]["command"] == "compare"
    assert [(one["case"], one["processes"]) for one in records if one["t"] == "pair"] in ([], [(L2, 1)])
