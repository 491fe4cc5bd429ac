"""posenc compare of two files of records, held to what the C program said that it replaced."""

import copy
import gzip
import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Union

import pytest
from programs import read_json_lines, write_records
from test_records import errors_of

from posenc.command import CommandError
from posenc.compare.files import compare_files
from posenc.compare.main import main
from posenc.records import load
from posenc.results.outcome import exit_code_of

HERE = Path(__file__).parent
Json = Dict[str, Any]
Edit = Callable[[List[Json], int], None]  # of records, and how many pairs before have used it
RUN: List[Json] = read_json_lines(HERE / "run.jsonl")
FROZEN = HERE / "compared_files.json.gz"


def edit(kind: str, change: Union[None, Json, Callable[[Json], Any]], at: int = 1) -> Edit:
    """An edit of one record of a kind in so many: members to set, a function, or None, which removes the record.

    Frozen results come from edits that went on counting from pair to pair, but for removals.
    """

    def apply(records: List[Json], used: int) -> None:
        chosen = [record for record in records if record["t"] == kind]
        for record in chosen[(-1 - (used * len(chosen) if change else 0)) % at :: at]:
            if change is None:
                records[:] = [one for one in records if one is not record]
            elif callable(change):
                change(record)
            else:
                record.update(change)

    return apply


def scale(factor: float, roofline: float = 1.0) -> Callable[[Json], None]:
    """A change of times, and of the rooflines."""

    def change(record: Json) -> None:
        for name in ("median_ns", "min_ns"):
            if name in record:
                record[name] *= factor
        record["gbps"] = record.get("gbps", 0) / factor
        if "roofline" in record:
            record["roofline"]["gbps"] /= roofline

    return change


def error(value: Any) -> Callable[[Json], None]:
    """A change of the largest error."""

    def change(record: Json) -> None:
        if "error" in record:
            record["error"]["max"] = value

    return change


def machine(name: str) -> Edit:
    """An edit of the machine's name."""
    return edit("env", lambda env: (env.update(env_id=name), env["cpu"].update(key=name)))


EDITS: Dict[str, Edit] = {
    "none": lambda records, used: None,
    "larger errors": edit("check", error(0.75), 3),
    "errors that are no numbers": edit("check", error("nan"), 4),
    "endless errors": edit("check", error("inf"), 5),
    "failures": edit("check", {"status": "fail", "reason": "wrong at 3"}, 7),
    "crashes and weak ones": edit("check", {"status": "inconclusive"}, 6),
    "skipped": edit("check", {"status": "skipped"}, 6),
    "bits": edit("check", {"digest": "e" * 64}, 4),
    "other bits": edit("check", {"digest": "f" * 64}, 5),
    "fewer checks": edit("check", None, 9),
    "no checks": edit("check", None),
    "fewer timings": edit("bench", None, 4),
    "no footer": edit("footer", None),
    "no env": edit("env", None),
    "another command": edit("header", {"argv": ["posenc", "verify"]}),
    "the same command elsewhere": edit("header", lambda h: h["argv"].extend(["--out", "x.jsonl", "--seed=3"])),
    "another mode": edit("header", {"mode": "full"}),
    "other vectors": edit("header", {"vectors": {"sha256": "0" * 64}}),
    "another CPU": machine("paper"),
    "other features": edit("env", lambda env: env["cpu"].update(features=["avx2"])),
    "another hypervisor": edit("env", {"virtualization": "VMware"}),
    "another build": edit("env", lambda env: env["build"].update(type="debug")),
    "emulated": edit("env", {"emulator": "qemu"}),
    "slower": edit("bench", scale(1.3)),
    "some slower": edit("bench", scale(1.2), 4),
    "a slower machine": edit("bench", scale(1.3, 1.3)),
    "wrong outputs": edit("bench", {"rejected": "wrong: at 3"}, 6),
    "rejected": edit("bench", {"rejected": "no memory"}, 6),
}
PAIRS = [("none", name) for name in EDITS] + [(name, "none") for name in EDITS if name != "none"]
PAIRS += [
    ("bits", "other bits"), ("skipped", "failures"), ("other vectors", "no footer"),
    ("failures", "crashes and weak ones"), ("fewer checks", "the same command elsewhere"),
    ("another mode", "fewer checks"),
]  # fmt: skip


def edited(name: str, used: int = 0) -> List[Json]:
    records = copy.deepcopy(RUN)
    EDITS[name](records, used)
    return records


def rounded(value: Any) -> Any:
    """Numbers with the ten digits that the C program wrote."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.10g}") if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def key(record: Json) -> str:
    return json.dumps(record, sort_keys=True)


with gzip.open(FROZEN, "rt", encoding="utf-8") as file:
    EXPECTED: Dict[str, Json] = json.load(file)


@pytest.mark.parametrize("base, head", PAIRS)
def test_it_says_what_the_program_said(base: str, head: str, tmp_path: Path) -> None:
    before = [name for pair in PAIRS[: PAIRS.index((base, head))] for name in pair]
    paths = [write_records(tmp_path / f"{side}.jsonl", edited(name, before.count(name)))
             for side, name in (("base", base), ("head", head))]  # fmt: skip
    records = compare_files(*paths)
    found, expected = records[0]["compare"], EXPECTED[f"{base} / {head}"]
    results = [rounded(record) for record in records if record["t"] in ("change", "trend")]
    assert sorted(map(key, results)) == sorted(map(key, rounded(expected["results"])))
    assert [list(obstacle.values()) for obstacle in found["incomparable"]] == expected["obstacles"]
    codes = [exit_code_of(records, gate, strict=False)[0] for gate in (False, True)]
    assert codes == [expected["code"], expected["gated"]]
    assert (found["results"], "machine" in found) == (expected["checks"], expected["machine"])
    assert not errors_of([record for record in records[1:] if record["t"] != "env"])


def fleet(*names: str) -> List[Json]:
    """The records of machines in one file, as posenc merge puts them together."""
    records = []
    for name in names:
        part = edited("none")
        machine(name)(part, 0)
        records += part
    return records


def test_machines_are_compared_by_name(tmp_path: Path) -> None:
    base = write_records(tmp_path / "base.jsonl", fleet("a", "b", "c"))
    head = fleet("c", "a")
    edit("check", error(0.75), 3)(head, 0)
    records, alone = compare_files(base, write_records(tmp_path / "head.jsonl", head)), compare_files(base, base)
    found, itself = records[0]["compare"], alone[0]["compare"]
    assert found["incomparable"] == [{"what": "machine", "base": "b", "head": "absent"}]
    assert [record["env_id"] for record in records if record["t"] == "env"] == ["a", "c"]
    assert not itself["incomparable"] and found["results"] * 3 == itself["results"] * 2
    assert not any(record["t"] == "change" for record in alone)


def test_a_comparison_is_a_file_of_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, head = (write_records(tmp_path / f"{name}.jsonl", edited(edit)) for name, edit in
                  (("base", "none"), ("head", "larger errors")))  # fmt: skip
    assert main([base, head, "-o", str(tmp_path / "c.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "Exit code 0: " in out and "--gate would exit with 3" in out and "This is no verdict" in out
    records = load(str(tmp_path / "c.jsonl"))
    assert [records[0]["mode"], records[-1]["complete"]] == ["files", True] and not errors_of(records[:1] + records[2:])
    assert main([base, head, "--gate"]) == 3


def test_a_share_that_fell_is_a_trend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def timed(gbps: float, **more: Any) -> List[Json]:
        bench = {"t": "bench", "kernel": "alibi", "dtype": "f32", "numerics": "given", "case": "alibi/f32/given/l2",
                 "backend": "avx2", "family": "native", "gbps": gbps, "roofline": {"gbps": 100, "share": gbps / 100},
                 "threads": 1, **more}  # fmt: skip
        return [*RUN[:2], bench, {"t": "footer", "complete": True}]

    ci = {"lo": 990, "hi": 1010, "level": 0.99}
    base = write_records(tmp_path / "base.jsonl", timed(80))
    head = write_records(tmp_path / "head.jsonl", timed(40, median_ns=1000, ci=ci, rounds=31))
    assert main([base, head, "--gate"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("alibi/f32/given/l2"))
    assert line.split() == "alibi/f32/given/l2 avx2 - 80 % 1.00 µs 40 % +100 %".split()


BAD = [
    (["--kernel", "alibi"], "--kernel has no effect here: files of records are compared as they are"),
    (["--time-limit", "5"], "--time-limit has no effect here"),
    (["--strict"], "--strict has no effect here"),
    (["--seed", "0"], "--seed has no effect here"),
    (["--full"], "--full has no effect here"),
]


@pytest.mark.parametrize("options, words", BAD)
def test_options_of_timings_are_rejected(options: List[str], words: str, tmp_path: Path) -> None:
    path = write_records(tmp_path / "base.jsonl", RUN)
    with pytest.raises(CommandError) as caught:
        main([path, path, *options])
    assert words in str(caught.value)


def test_records_that_lack_members_are_rejected(tmp_path: Path) -> None:
    base = write_records(tmp_path / "base.jsonl", RUN)
    broken = write_records(tmp_path / "broken.jsonl", [*RUN[:2], {"t": "check", "case": "x"}])
    with pytest.raises(CommandError, match="a record lacks a member"):
        compare_files(base, broken)
