"""Formats for other programs: the numbers of the formats in C, cell by cell, as long as both are there."""

import csv
import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Dict, List

import pytest

from posenc.command import CommandError
from posenc.convert import FAMILIES, KINDS, NAMES, STATUS
from posenc.records import load
from posenc.results import exports, main
from posenc.runs import machines

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "reports").glob("*/*.jsonl")) + [ROOT / "docs" / "speed.jsonl"]
FLAT = {"grade": "quality.grade"}


def by_the_program(path: Path, form: str) -> str:
    program = os.environ["POSENC_PROGRAM"]
    done = subprocess.run([program, "report", str(path), "--out", form], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def renamed(kind: str, path: str) -> str:
    """A member's path in the newer schema: each name on the way."""
    names, new = NAMES.get(kind, {}), []
    parts = path.split(".")
    for at, part in enumerate(parts):
        new.append(names.get(".".join(parts[: at + 1]), part))
    return FLAT.get(path, ".".join(new))


def cells(line: Dict[str, str]) -> Dict[str, str]:
    """A line of the C program's CSV, by the newer names and words; without what is empty."""
    kind = KINDS.get(line["t"], line["t"])
    found = {}
    for name, cell in line.items():
        if not cell or (kind == "doctor" and name == "reason"):
            continue
        new = {"t": kind, "family": FAMILIES.get(cell, cell)}.get(name, cell)
        found[renamed(kind, name)] = STATUS.get(new, new) if name.endswith("status") else new
    return found


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_csv_has_the_cells_of_the_program(path: Path) -> None:
    old = list(csv.DictReader(io.StringIO(by_the_program(path, "csv"))))
    new = list(csv.DictReader(io.StringIO(exports.to_csv(load(str(path))))))
    assert len(old) == len(new)
    for before, after in zip(old, new):
        if after["t"] == "check":  # the C program's CSV lacks the command that repeats a check
            del after["command"]
        assert {name: cell for name, cell in after.items() if cell} == cells(before)


def close(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return bool(a == pytest.approx(b, rel=1e-7))
    return bool(a == b)


def words(text: str) -> str:
    """Words of formats in C that have become others."""
    for old, new in (
        ("time/roof", "time/roofline"),
        (" of the roof (", " of the roofline ("),
        ('"roof-share"', '"roofline-share"'),
        ('"roof_share"', '"roofline_share"'),
        ('"null_pct"', '"control_pct"'),
        ("max-pair_ulp", "max-pair-ulp"),
    ):
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("form", ["gha", "bmf", "gbench"])
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_json_has_the_numbers_of_the_program(path: Path, form: str) -> None:
    old = json.loads(words(by_the_program(path, form)))
    new = json.loads(exports.FORMATS[form][1](load(str(path))))
    assert close(old, new)


def test_csv_quotes_and_formulas() -> None:
    records: List[Dict[str, Any]] = [
        {"t": "header", "schema": "posenc.results/2", "vectors": {"official": False}}, {"t": "env", "env_id": "m"},
        {"t": "check", "case": '=cmd("a"),b', "reason": "-1.5", "status": "fail", "error": {"max": "inf", "limit": 2}},
        {"t": "doctor", "quality": {"grade": "C"}, "findings": []},
    ]  # fmt: skip
    lines = list(csv.DictReader(io.StringIO(exports.to_csv(records))))
    assert lines[0]["case"] == '\'=cmd("a"),b' and lines[0]["reason"] == "-1.5"
    assert lines[0]["error.max"] == "inf" and lines[0]["vectors"] == "not the official vectors"
    assert lines[1]["t"] == "doctor" and lines[1]["quality.grade"] == "C"
    assert exports.to_csv(records).count("\r\n") == 3


def test_names_begin_with_the_machine_only_where_there_are_several() -> None:
    one: List[Dict[str, Any]] = [
        {"t": "header", "schema": "posenc.results/2"}, {"t": "env", "env_id": "a"},
        {"t": "bench", "case": "c", "backend": "b", "median_ns": 2.0, "threads": 4},
        {"t": "bench", "case": "c", "backend": "b", "median_ns": 3.0, "threads": 4}, {"t": "footer", "complete": True},
    ]  # fmt: skip
    two = one + [{**record, "env_id": "z"} if record["t"] == "env" else record for record in one]
    assert list(json.loads(exports.to_bmf(one))) == ["c/b/threads:4"]
    assert list(json.loads(exports.to_bmf(two))) == ["a: c/b/threads:4", "z: c/b/threads:4"]
    assert json.loads(exports.to_bmf(one))["c/b/threads:4"]["latency"] == {"value": 3.0}
    assert [machine.finished for machine in machines(two)] == [1, 1]


def test_export_to_files(tmp_path: Path, capsys: Any) -> None:
    source = str(FILES[-1])
    assert main.main(["export", source, "-o", str(tmp_path / "x.csv")]) == 0
    assert (tmp_path / "x.csv").read_text().startswith("cpu,t,kernel")
    assert main.main(["export", source, "--format", "gha", "-o", str(tmp_path / "x.json")]) == 0
    assert main.main(["export", source, "--format", "gha", "-o", str(tmp_path / "x.json")]) == 0
    capsys.readouterr()
    assert main.main(["export", source]) == 0 and capsys.readouterr().out.startswith("cpu,")


@pytest.mark.parametrize("to", [">&-", ">/dev/full"])
def test_standard_output_that_cannot_be_written(to: str) -> None:
    command = f'"$POSENC_PROGRAM" results export {FILES[-1]} {to}'
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 2 and done.stderr.startswith("posenc results: error: standard output cannot be written")
    assert len(done.stderr.splitlines()) == 1


def test_records_of_other_types_are_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    lines = ['{"t":"header","schema":"posenc.results/2"}', '{"t":"env","env_id":"m"}', '{"t":"bench","median_ns":3}']
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(CommandError, match="a record lacks a member"):
        main.main(["export", str(path), "--format", "bmf"])


REJECTED = [
    ([], "expected a subcommand: export"),
    (["imports"], "expected a subcommand (got 'imports')"),
    (["export"], "the following arguments are required: FILE"),
    (["export", "x", "--format", "ghq"], "no such format (got 'ghq'). Did you mean gha"),
    (["export", "x", "-o", "y.json"], "not clear from the name (got 'y.json'). Give --format: one of gha, gbench, bmf"),
    (["export", "x", "-o", "y.xyz"], "a name that ends in .csv"),
    (["export", "/nowhere.jsonl"], "No such file or directory"),
]


@pytest.mark.parametrize("arguments, text", REJECTED)
def test_bad_input_is_named(arguments: List[str], text: str) -> None:
    with pytest.raises(CommandError) as error:
        main.main(arguments)
    assert text in str(error.value)
