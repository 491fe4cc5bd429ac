"""posenc compare of two files of records: equal to what the former program in C printed.

run.jsonl is edited in many ways, such as "slower" or "another CPU". Pairs of edits are compared. Changes, exit codes,
and what makes two files incomparable are those in compared_files.json.gz.
"""

import copy
import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Union

import pytest
from programs import FOOTER, read_json, read_json_lines, result, write_records
from test_records import errors_of

from posenc.command import CommandError
from posenc.compare.files import compare_files
from posenc.compare.main import main
from posenc.records import load
from posenc.results.outcome import exit_code_of

HERE = Path(__file__).parent
Json = Dict[str, Any]
Edit = Callable[[List[Json], int], None]  # changes records; takes how often pairs before have used it
RUN: List[Json] = read_json_lines(HERE / "run.jsonl")
EXPECTED: Dict[str, Json] = read_json(HERE / "compared_files.json.gz")  # by "base / head"


def edit(kind: str, change: Union[None, Json, Callable[[Json], Any]], every: int = 1) -> Edit:
    """Returns an edit of one record of a kind in `every`: members to set, a function, or None, which removes it.

    Frozen results come from edits that went on counting from pair to pair, but for removals.
    """

    def apply(records: List[Json], used: int) -> None:
        chosen = [record for record in records if record["t"] == kind]
        for record in chosen[(-1 - (used * len(chosen) if change else 0)) % every :: every]:
            if change is None:
                records[:] = [one for one in records if one is not record]
            elif callable(change):
                change(record)
            else:
                record.update(change)

    return apply


def scale_times(factor: float, roofline: float = 1.0) -> Callable[[Json], None]:
    """Returns a change of times by a factor, and of rooflines."""

    def change(record: Json) -> None:
        for name in ("median_ns", "min_ns"):
            if name in record:
                record[name] *= factor
        record["gbps"] = record.get("gbps", 0) / factor
        if "roofline" in record:
            record["roofline"]["gbps"] /= roofline

    return change


def set_error(value: Any) -> Callable[[Json], None]:
    """Returns a change of the largest error."""

    def change(record: Json) -> None:
        if "error" in record:
            record["error"]["max"] = value

    return change


def rename_machine(name: str) -> Edit:
    """Returns an edit of the machine's name."""
    return edit("env", lambda env: (env.update(env_id=name), env["cpu"].update(key=name)))


EDITS: Dict[str, Edit] = {
    "none": lambda records, used: None,
    "larger errors": edit("check", set_error(0.75), 3),
    "errors that are no numbers": edit("check", set_error("nan"), 4),
    "endless errors": edit("check", set_error("inf"), 5),
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
    "another CPU": rename_machine("paper"),
    "other features": edit("env", lambda env: env["cpu"].update(features=["avx2"])),
    "another hypervisor": edit("env", {"virtualization": "VMware"}),
    "another build": edit("env", lambda env: env["build"].update(type="debug")),
    "emulated": edit("env", {"emulator": "qemu"}),
    "slower": edit("bench", scale_times(1.3)),
    "some slower": edit("bench", scale_times(1.2), 4),
    "a slower machine": edit("bench", scale_times(1.3, 1.3)),
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
    """Returns the run after one of EDITS."""
    records = copy.deepcopy(RUN)
    EDITS[name](records, used)
    return records


def rounded(value: Any) -> Any:
    """Returns a value with numbers of ten digits, as the C program wrote them."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.10g}") if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def in_any_order(records: List[Json]) -> List[str]:
    return sorted(json.dumps(rounded(record), sort_keys=True) for record in records)


@pytest.mark.parametrize("base, head", PAIRS)
def test_it_says_what_the_program_said(base: str, head: str, tmp_path: Path) -> None:
    before = [name for pair in PAIRS[: PAIRS.index((base, head))] for name in pair]
    paths = [write_records(tmp_path / f"{side}.jsonl", edited(name, before.count(name)))
             for side, name in (("base", base), ("head", head))]  # fmt: skip
    records = compare_files(*paths)
    found, expected = records[0]["compare"], EXPECTED[f"{base} / {head}"]
    results = [record for record in records if record["t"] in ("change", "trend")]
    assert in_any_order(results) == in_any_order(expected["results"])
    assert [list(obstacle.values()) for obstacle in found["incomparable"]] == expected["obstacles"]
    codes = [exit_code_of(records, gate, strict=False)[0] for gate in (False, True)]
    assert codes == [expected["code"], expected["gated"]]
    assert (found["results"], "machine" in found) == (expected["checks"], expected["machine"])
    assert not errors_of([record for record in records[1:] if record["t"] != "env"])


def fleet(*names: str) -> List[Json]:
    """Returns the records of machines in one file, as posenc results merge puts them together."""
    records = []
    for name in names:
        part = edited("none")
        rename_machine(name)(part, 0)
        records += part
    return records


def test_machines_are_compared_by_name(tmp_path: Path) -> None:
    base = write_records(tmp_path / "base.jsonl", fleet("a", "b", "c"))
    head = fleet("c", "a")
    edit("check", set_error(0.75), 3)(head, 0)
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
    def timed(gbps: float, **members: Any) -> List[Json]:
        roofline = {"gbps": 100, "share": gbps / 100}
        timing: Json = {"gbps": gbps, "roofline": roofline, "threads": 1, "family": "native", **members}
        return [*RUN[:2], result("bench", "alibi/f32/given/l2", **timing), FOOTER]

    ci = {"lo": 990, "hi": 1010, "level": 0.99}
    base = write_records(tmp_path / "base.jsonl", timed(80))
    head = write_records(tmp_path / "head.jsonl", timed(40, median_ns=1000, ci=ci, rounds=31))
    assert main([base, head, "--gate"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("alibi/f32/given/l2"))
    assert line.split() == "alibi/f32/given/l2 avx2 - 80 % 1.00 µs 40 % +100 %".split()


@pytest.mark.parametrize("line", ["--kernel alibi", "--time-limit 5", "--strict", "--seed 0", "--full"])
def test_options_of_timings_are_rejected(line: str, tmp_path: Path) -> None:
    path, (option, *values) = write_records(tmp_path / "base.jsonl", RUN), line.split()
    with pytest.raises(CommandError, match=f"{option} has no effect here: files of records are compared as they are"):
        main([path, path, option, *values])


def test_records_that_lack_members_are_rejected(tmp_path: Path) -> None:
    base = write_records(tmp_path / "base.jsonl", RUN)
    broken = write_records(tmp_path / "broken.jsonl", [*RUN[:2], {"t": "check", "case": "x"}])
    with pytest.raises(CommandError, match="a record lacks a member"):
        compare_files(base, broken)
