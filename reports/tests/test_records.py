"""Records: the schema (results.schema.json), files that posenc writes, and files that hold no records."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from posenc.command import CommandError
from posenc.records import load

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "reports" / "posenc" / "results.schema.json").read_text())
FILES = sorted((ROOT / "reports").glob("*/*.jsonl")) + [ROOT / "docs" / "speed.jsonl"]


def closed(schema: Any) -> Any:
    """Returns the schema with objects that allow no members but those that it describes."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {name: closed(part) for name, part in schema.items()}
    is_object = schema.get("type") == "object" and schema.get("properties")
    if is_object and "description" in schema and "allOf" not in schema:
        copy.setdefault("additionalProperties", False)
    return copy


VALIDATOR = jsonschema.Draft202012Validator(closed(SCHEMA))


def members_of(schema: Any) -> Iterator[Dict[str, Any]]:
    """Yields every member that the schema has."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).values()
    if isinstance(schema, (dict, list)):
        for part in schema.values() if isinstance(schema, dict) else schema:
            yield from members_of(part)


def errors_of(records: List[Dict[str, Any]]) -> List[str]:
    """Returns how records break the schema: "bench: $.dtype: 'f64' is not one of ..."."""
    return [f"{record['t']}: {error.json_path}: {error.message}"
            for record in records for error in VALIDATOR.iter_errors(record)]  # fmt: skip


def test_the_schema_is_one_and_describes_each_member() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    members = list(members_of(SCHEMA))
    assert len(members) > 200
    assert not [member for member in members if "const" not in member and not member.get("description")]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_committed_files_are_valid(path: Path) -> None:
    records = [record for record in load(str(path)) if record["t"] != "from-a-later-release"]
    for record in records:
        record.pop("from_a_later_release", None)
    assert not errors_of(records)[:5]


def test_the_validator_rejects_what_is_wrong() -> None:
    bench = next(record for record in load(str(FILES[-1])) if record["t"] == "bench")
    wrong: List[Dict[str, Any]] = [
        {**bench, "profile": "exact"}, {**bench, "threads": "2"}, {**bench, "dtype": "f64"},
        {**bench, "median_ns": "fast"}, {**bench, "ci": {"level": 0.99, "lo": 1.0}},
        {**bench, "footprint": {"bytes": -1}}, {name: bench[name] for name in bench if name != "numerics"},
    ]  # fmt: skip
    assert not errors_of([bench])
    assert not errors_of([{**bench, "median_ns": "inf"}])
    for record in wrong:
        assert errors_of([record]), record


COMMANDS = [
    "verify --quick --kernel alibi --suite vectors",
    "verify --quick --kernel rope_half --suite random --shard 0/2",
    "bench --quick --case alibi/f32/given/l2 --time-limit 1",
    "bench --instructions --kernel alibi --backend scalar",
    "pair LIBRARY LIBRARY --case alibi/f32/given/l2 --backend scalar --part results,code,times,counts --time-limit 0.1",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_the_program_writes_is_valid(command: str, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    program = os.environ["POSENC_PROGRAM"]
    library = Path(program).parent / "impl" / "libposenc.so"
    if "LIBRARY" in command and not library.exists():
        pytest.skip("no shared library beside the program")
    words = command.replace("LIBRARY", str(library)).split()
    done = subprocess.run([program, *words, "--out", f"jsonl:{path}"], stderr=subprocess.PIPE, encoding="utf-8")
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    records = load(str(path))
    assert not errors_of(records)[:5]
    assert {"header", "env", "footer"} <= {record["t"] for record in records}


HEAD = '{"t":"header","schema":"posenc.results/2"}\n'
BROKEN = [
    ("", "holds no records"),
    ("{}\n", "line 1 is no record: it has no member t"),
    ('{"t":"header"}\n', "schema of the records is unknown (got 'None'"),
    ('{"t":"header","schema":"posenc.results/1"}\n', "unknown (got 'posenc.results/1' in "),
    (f'{HEAD}{{"t":"header","schema":"3"}}\n', "unknown (got '3'"),
    *((f"{HEAD}{line}\n", "line 2 is no record")
      for line in ("nonsense", '{"t":"x","v":NaN}', "[" * 100_000, "[]", '{"t":1}')),
]  # fmt: skip


@pytest.mark.parametrize("text, words", BROKEN)
def test_files_without_records_are_rejected(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(text)
    with pytest.raises(CommandError, match=re.escape(words)):
        load(str(path))


@pytest.mark.parametrize("last, n", [('{"t":"x"}', 2), ('{"t":"x"', 1), ('{"t":"x"}\n', 2), ("\n", 1)])
def test_the_last_line_may_be_cut(tmp_path: Path, last: str, n: int) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(HEAD + last)
    assert len(load(str(path))) == n
