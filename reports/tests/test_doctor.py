"""posenc doctor: findings and measurement quality, and the command.

machines.jsonl.gz has machines that are made up, with the findings of the former program in C. Words may differ from
those; numbers, costs, commands and grades may not. A script stands in for the program where the machine must be known.
"""

import io
import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from programs import make_program, read_json_lines, run, start
from rich.console import Console
from test_records import errors_of

from posenc.command import CommandError
from posenc.doctor.findings import Run, cpus_of, findings_of
from posenc.doctor.main import diagnosis, main, runs_of, show
from posenc.quality import quality_of
from posenc.records import load

Record = Dict[str, Any]

RECORDS = read_json_lines(Path(__file__).with_name("machines.jsonl.gz"))
MACHINES = [RECORDS[at : at + 4] for at in range(0, len(RECORDS), 4)]  # header, env, doctor and footer of each
QUIET, LAPTOP, SILENT = ([json.dumps(record) for record in MACHINES[number]] for number in (0, 4, 9))  # lines


def without_findings(doctor: Record) -> Record:
    """Returns what the program measured, of which findings and quality are made."""
    return {name: value for name, value in doctor.items() if name not in ("findings", "quality")}


def numbers(text: str) -> List[str]:
    return re.findall(r"\d+(?:\.\d+)?", text.replace("100 us", ""))


def essence(finding: Record) -> Tuple[Any, ...]:
    """Returns all of a finding but its wording."""
    cost, evidence = finding["cost_pct"], finding["evidence"]
    places = re.findall("in (cache|DRAM)", evidence)
    return (finding["what"], finding["level"], None if cost is None else round(cost, 6), finding["command"],
            finding["root"], finding["fix"] is not None, numbers(evidence), places)  # fmt: skip


def test_findings_and_quality_are_those_of_the_program_in_c() -> None:
    seen = set()
    for _, env, expected, footer in MACHINES:
        run = Run(env, without_findings(expected), footer)
        found = findings_of(run)
        assert list(map(essence, found)) == list(map(essence, expected["findings"]))
        quality = quality_of(run.env, run.noise, run.doctor.get("control_pct"), run.doctor["detectable"])
        assert quality.grade == expected["quality"]["grade"]
        assert list(map(numbers, quality.reasons)) == list(map(numbers, expected["quality"]["reasons"]))
        assert all(one["fix"] for one in found if one["level"] == "costs")
        seen |= {(one["what"], one["level"]) for one in found}
    assert len(seen) == 57  # every finding on every level that it can have


def test_of_several_threads_of_a_core_the_first_is_named() -> None:
    found = findings_of(Run({"cpus": {"siblings": "1-4", "best": 3}}, {}, {}))
    (smt,) = (finding for finding in found if finding["what"] == "SMT")
    assert smt["evidence"] == "CPU 1 is a thread of the same core" and smt["cost_pct"] is None


def test_lists_of_cpus() -> None:
    assert cpus_of("0-2,7") == [0, 1, 2, 7] and cpus_of("17") == [17]
    assert cpus_of("") == cpus_of("none") == []


# ---- text ----


def printed(lines: List[str], width: int = 80, verbose: bool = False) -> str:
    """Returns what the command prints about a machine on a terminal of so many columns."""
    file, (found,) = io.StringIO(), runs_of([json.loads(line) for line in lines])
    show(Console(file=file, width=width, highlight=False, markup=False), found, verbose)
    return file.getvalue()


def test_the_answer_comes_first_and_commands_stay_in_one_piece() -> None:
    text = printed(LAPTOP)
    answer = "Measurement quality B: timings detect differences of more than 2.0 % in cache and 8.0 % in DRAM."
    assert answer in " ".join(text.split())
    order = ("Measurement quality B", "Conditions that disturb timings", " 40 %  governor: ", "huge pages: ",
             "Conditions that may", "Fine: ")  # fmt: skip
    assert list(map(text.index, order)) == sorted(map(text.index, order))
    assert "$ sudo cpupower frequency-set -g performance\n" in text
    assert all(len(line) <= 80 for line in text.splitlines() if "$ " not in line)
    silent = " ".join(printed(SILENT).split())
    assert "Not known: pinning (a way to" in silent and "; governor (/sys/devices/system/cpu/" in silent
    assert "-v prints them" in text and "-v prints them" not in printed(LAPTOP, verbose=True)
    assert "Fine: clock: tsc: a reading takes 24 ns" in " ".join(printed(QUIET, 200, True).split())
    assert "Measurement quality A" in printed(QUIET) and "Conditions" not in printed(QUIET)


# ---- files ----


def save(path: Path, lines: List[str]) -> str:
    """Writes lines, and returns the path as a word of a command."""
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_files_of_other_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = [line.replace('"paper-0"', '"other"') for line in QUIET]
    files = save(tmp_path / "a.jsonl", QUIET + other), save(tmp_path / "b.jsonl", LAPTOP)
    assert main([*files, "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["quality"]["grade"] for record in records] == ["A", "A", "B"]
    assert main(list(files)) == 0
    assert capsys.readouterr().out.count("Measurement quality") == 3


def test_a_run_with_measurements_comes_before_one_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, env, doctor, footer = QUIET
    later = footer.replace('"noise": {', '"noise": {"heat":5,')
    assert later != footer
    path = save(tmp_path / "a.jsonl", [header, env, doctor, footer, header, env, later])
    assert main([path, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert "measured" in record and record["quality"]["grade"] == "A"
    path = save(tmp_path / "b.jsonl", [header, env, later])
    assert main([path, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    conditions = [finding["what"] for finding in record["findings"]]
    assert conditions[0] == "heat" and not {"pinning", "frequency", "interruptions", "clock"} & set(conditions)
    assert main([path]) == 0
    assert "its noise was not measured" in capsys.readouterr().out


def test_what_is_rejected(tmp_path: Path) -> None:
    path, table = save(tmp_path / "a.jsonl", QUIET), save(tmp_path / "table.jsonl", ["mine"])
    for arguments, words in (
        (["none.jsonl"], "the records cannot be read"),
        ([path, "--quick"], "--quick has no effect on files"),
        ([path, "-o", "b.jsonl"], "-o has no effect on files"),
        (["-o", "page.html"], "the format of the output is unknown"),
        (["--kernel"], "unrecognized arguments"),
        (["-o", str(tmp_path / "none" / "a.jsonl")], "the output cannot be written"),
        (["-o", table], "the file exists and is no earlier output"),
        ([save(tmp_path / "c.jsonl", QUIET[:1])], "the files hold no machine"),
    ):
        with pytest.raises(CommandError, match=re.escape(words)):
            main(arguments)
    assert Path(table).read_text() == "mine\n" and not (tmp_path / "none").exists()


# ---- the command, with a program that is made up ----


def make_quiet(tmp_path: Path, script: str) -> Path:
    """Makes a program that prints the records of a quiet server, and goes on with a shell script."""
    return make_program(tmp_path / "program", f"cat {save(tmp_path / 'quiet', QUIET[:3])}\n{script}")


def test_a_program_that_fails_half_way(tmp_path: Path) -> None:
    for body, status, words in (
        ("kill -9 $$", 137, "the program was ended by signal 9"),
        ("echo nonsense; exit 0", 2, "line 4 is no record"),
    ):
        done = run(make_quiet(tmp_path, body), "doctor", "-o", str(tmp_path / "r.jsonl"))
        assert (done.returncode, done.stdout) == (status, "") and words in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "r.jsonl").exists()
    silent = make_program(tmp_path / "silent", "echo 'posenc doctor: nothing could be measured' >&2; exit 77")
    done = run(silent, "doctor")
    assert (done.stdout, done.stderr) == ("", "posenc doctor: nothing could be measured\n") and done.returncode == 77


def test_nothing_is_measured_under_an_emulator(tmp_path: Path) -> None:
    done = run(make_quiet(tmp_path, "exit 0"), "doctor", env={"POSENC_EMULATOR": "qemu runs this"})
    assert (done.returncode, done.stdout) == (77, "") and "nothing is measured here: qemu runs this" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_what_there_is(number: int, tmp_path: Path) -> None:
    footer = json.dumps({"t": "footer", "complete": False, "noise": {}})
    body = f"trap 'echo \"$footer\"; exit {128 + number}' {number}; echo begun >&2; while :; do sleep 0.05; done"
    program = make_quiet(tmp_path, f"footer='{footer}'\n{body}")
    done = start(program, "doctor", "-o", str(tmp_path / "r.jsonl"))
    assert done.stderr and done.stderr.readline() == "begun\n"
    done.send_signal(number)
    out, _ = done.communicate()
    assert done.returncode == 128 + number and "Measurement quality" in out
    assert [record.get("complete") for record in load(str(tmp_path / "r.jsonl"))][-1] is False


# ---- the command ----


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Tuple[Record, List[Record]]:
    """Returns the record that posenc doctor --quick prints about this machine, and the records that it writes."""
    path = tmp_path_factory.mktemp("doctor") / "r.jsonl"
    program = os.environ["POSENC_PROGRAM"]
    done = subprocess.run([program, "doctor", "--quick", "--json", "-o", str(path)], capture_output=True)
    if done.returncode == 77:
        pytest.skip(done.stderr.decode().strip())
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout), load(str(path))


def test_records_of_this_machine(measured: Tuple[Record, List[Record]]) -> None:
    doctor, records = measured
    assert [record["t"] for record in records] == ["header", "env", "doctor", "footer"]
    assert not errors_of(records) and records[2] == doctor and records[3]["complete"] is True
    assert records[0]["command"] == "doctor" and records[0]["argv"][:3] == ["posenc", "doctor", "--quick"]
    assert len(doctor["findings"]) > 8 and doctor["quality"]["grade"] in "ABCD"
    assert diagnosis(Run(records[1], without_findings(doctor), records[3])) == doctor


def test_a_terminal_shows_how_far_it_is(measured: Tuple[Record, List[Record]], tmp_path: Path) -> None:
    screen, terminal = pty.openpty()
    program, path = Path(os.environ["POSENC_PROGRAM"]), str(tmp_path / "r.jsonl")
    done = start(program, "doctor", "-o", path, stderr=terminal, env={"TERM": "xterm"})
    os.close(terminal)
    shown = ""
    while not re.search(r"doctor \d+/13 seconds, about \d+ s left", shown):
        shown += os.read(screen, 4096).decode()
    done.send_signal(signal.SIGTERM)
    done.communicate()
    assert done.returncode == 143
    assert load(path)[-1]["complete"] is False
