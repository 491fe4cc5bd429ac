"""posenc results merge: shards become the run that they are shares of; what does not belong together is rejected.

    merge([("r0", records of shard 0/3), ("r1", ...), ("r2", ...)]) -> the records of one run, and notes
"""

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest
from programs import FOOTER, HEADER, result, write_records

from posenc.command import CommandError
from posenc.results import main
from posenc.results.merge import merge
from posenc.records import Record

File = Tuple[str, List[Record]]  # its name, and its records
AVX512, AVX2, ARM = "amd-1a-02-1/KVM", "intel-06-9e-d", "arm-41-d4f-r0p1"
BACKENDS = {AVX512: ("avx512", "avx2"), AVX2: ("avx2",), ARM: ("neon",)}


def run(
    name: str,
    shard: Optional[Tuple[int, int]] = None,
    machine: str = AVX512,
    cases: int = 10,
    run_id: str = "",
    ends: Optional[bool] = True,
    cc: str = "gcc",
    **header: Any,
) -> File:
    """Returns a file of one run, as verify --shard writes it: each check with its place in the whole run.

    `ends` is whether it is complete; None: it has no footer.
    """
    records: List[Record] = [
        {**HEADER, "run_id": run_id or name, "started": "2026-11-22T10:00:00Z", "mode": "quick", "command": "verify",
         "tool": {"version": "0.1.0", "commit": "abc"}, "vectors": {"sha256": "91c4"}, "seed": "0x0",
         "options": {"suite": "memory"}, "later": {"member": [1, None]},
         **({"shard": {"i": shard[0], "n": shard[1]}} if shard else {}), **header},
        {"t": "env", "env_id": machine, "cpu": {"key": machine[:-4]}, "build": {"cc": cc},
         "timer": {"overhead_ns": 20.0 + (shard or (0, 0))[0]}},
        {"t": "kernel", "id": "alibi", "stage": "apply"},
    ]  # fmt: skip
    records += [{"t": "backend", "id": backend, "family": backend, "available": True} for backend in BACKENDS[machine]]
    for place, (backend, case) in enumerate(itertools.product(BACKENDS[machine], range(cases))):
        if not shard or case * 7 % shard[1] == shard[0]:
            error = {"max": 1e-300, "digits": 0.1234567890123}
            check = result("check", f"alibi/f32/given/case-{case}", backend, suite="memory", status="pass", error=error)
            records.append({**check, "place": place} if shard else check)
    records += [] if ends is None else [{**FOOTER, "complete": ends}]
    return name, records


def shards(*which: int) -> List[File]:
    """Returns some shards of three."""
    return [run(f"r{i}", (i, 3)) for i in which]


def checks_of(records: Sequence[Record]) -> List[Record]:
    return [record for record in records if record["t"] == "check"]


def kinds(records: Sequence[Record]) -> Dict[str, int]:
    """Returns how many records of each kind there are."""
    return dict(Counter(record["t"] for record in records))


def as_file(records: List[Record]) -> File:
    return "merged", json.loads(json.dumps(records))


def test_shards_become_the_results_of_one_run_in_its_order() -> None:
    merged, notes = merge(shards(2, 0, 1), ["results", "merge"])
    assert checks_of(merged) == checks_of(run("whole")[1]) and not notes
    assert kinds(merged) == {"header": 1, "env": 1, "kernel": 1, "backend": 2, "check": 20, "footer": 1}
    header = dict(run("r2")[1][0], argv=["posenc", "results", "merge"])
    assert merged[0] == header and "shard" not in header and header["later"] == {"member": [1, None]}
    assert merged[-1]["complete"] is True and merged[-1]["counts"] == {"pass": 20}


def test_a_run_of_shards_is_as_noisy_as_the_noisiest() -> None:
    files = shards(0, 1, 2)
    for load, (_, records) in zip((0.1, 3.0, 0.2), files):
        records[-1]["noise"] = {"load1": load}
    assert merge(files)[0][-1]["noise"] == {"load1": 3.0}


def test_what_was_merged_is_merged_again_with_another_machine() -> None:
    merged, _ = merge(shards(0, 1, 2))
    arm = run("arm", machine=ARM, cases=4)
    both, _ = merge([as_file(merged), arm])
    assert both == merged + arm[1]
    assert merge([as_file(both)])[0] == both
    with pytest.raises(CommandError, match="merged and r0 hold the same run"):
        merge([as_file(merged), run("r0", (0, 3))])


def test_attempts_are_passed_over() -> None:
    attempt = run("attempt", (1, 3), ends=None, mode="full")
    merged, notes = merge([*shards(0, 2), attempt, *shards(1)])
    assert checks_of(merged) == checks_of(run("whole")[1])
    assert notes == ["attempt is passed over: shard 1/3 did not finish there; r1 has it"]


def test_shards_of_two_cpus_only_if_mixed() -> None:
    files = [*shards(0, 2), run("r1", (1, 3), machine=AVX2)]
    merged, _ = merge(files, mixed=True)
    assert kinds(merged)["env"] == kinds(merged)["header"] == 2
    assert merge([as_file(merged)])[0] == merged
    with pytest.raises(CommandError, match=f"missing: shard 1 of 3 of verify on {AVX512}.*--mixed") as error:
        merge(files)
    assert error.value.status == 6
    with pytest.raises(CommandError, match="missing: shard 2 of 3"):
        merge([run("r0", (0, 3)), run("r1", (1, 3), machine=AVX2)], mixed=True)


def test_a_process_may_end_in_several_shards() -> None:
    files = shards(0, 1, 2)
    ended = {"t": "check", "case": "alibi/ended", "backend": "avx2", "suite": "memory", "status": "crash"}
    for at, (_, records) in enumerate(files):
        records.insert(-1, {**ended, "reason": f"after case {at}"})
    assert kinds(merge(files)[0])["check"] == 23


def otherwise(file: File, at: int, **members: Any) -> File:
    """Returns a file of which a record has other members."""
    file[1][at].update(members)
    return file


REJECTED = [
    (shards(0, 2), 6, "missing: shard 1 of 3 of verify on amd-1a-02-1/KVM. Expected 0 to 2."),
    (shards(1), 6, "missing: shards 0, 2 of 3"),
    ([*shards(0, 1, 2), run("again", (1, 3))], 2, "shard 1/3 of verify on amd-1a-02-1/KVM is in r1 and in again"),
    ([run("a"), run("copy", run_id="a")], 2, "a and copy hold the same run"),
    ([*shards(0, 2), run("r1", (1, 3), ends=False)], 2,
     "r1: is partial: its run was interrupted, or goes on. Run posenc verify again."),
    ([*shards(0, 2), run("r1", (1, 3), ends=None)], 2, "r1: is partial"),
    ([run("w", ends=None)], 2, "w: is partial"),
    ([("x", run("x")[1][:1])], 2, "x: nothing says which machine it is of"),
    ([("x", [*run("x")[1], {"t": "env"}])], 2, "x: records follow the footer of a run"),
    ([run("w", machine=ARM), otherwise(run("x", machine=ARM), 5, status="fail")], 2,
     "x: alibi/f32/given/case-1 of neon on arm-41-d4f-r0p1 differs from the same in w"),
    ([*shards(0, 2), otherwise(run("r1", (1, 3)), 3, available=False)], 2,
     "r1: its backend avx512 differs from that of r0"),
    ([run("r4", (4, 3))], 2, 'r4: there is no such shard (got {"i": 4, "n": 3})'),
    ([run("r", (-1, 3))], 2, 'r: there is no such shard (got {"i": -1, "n": 3})'),
    ([run("r", (0, 10**9))], 2, 'r: there is no such shard (got {"i": 0, "n": 1000000000})'),
    ([otherwise(run("r"), 0, shard={"i": 0, "n": "a"})], 2, 'r: there is no such shard (got {"i": 0, "n": "a"})'),
    ([otherwise(run("r"), 0, shard="0/3")], 2, 'r: there is no such shard (got "0/3")'),
    ([run("w", ends=False)], 2, "w: is partial"),
    ([*shards(0, 2), run("r1", (1, 3), vectors={"sha256": "77aa"})], 2,
     "r1: its vectors are 77aa, those of r0 are 91c4"),
    ([run("w", vectors={"sha256": "77aa"}), run("x", machine=ARM)], 2, "x: its vectors are 91c4"),
    ([*shards(0, 2), run("r1", (1, 3), mode="full")], 2, 'r1: its mode is "full", that of r0 is "quick"'),
    ([*shards(0, 2), run("r1", (1, 3), options={})], 2, 'r1: its --suite is none, that of r0 is "memory"'),
    ([*shards(0, 2), run("r1", (1, 3), options={"suite": "memory", "kernel": 1})], 2,
     "r1: its --kernel is 1, that of r0 is none"),
    ([*shards(0, 2), run("r1", (1, 3), tool={"version": "0.2.0"})], 2, 'r1: its tool.version is "0.2.0"'),
    ([*shards(0, 2), run("r1", (1, 3), tool={"version": "0.1.0", "commit": "d"})], 2, 'r1: its tool.commit is "d"'),
    ([*shards(0, 2), run("r1", (1, 3), cc="clang")], 2, 'r1: its build is {"cc":"clang"}, that of r0 is {"cc":"gcc"}'),
    ([*shards(0, 2), run("r1", (1, 3), seed="0x1")], 2, 'r1: its seed is "0x1"'),
    ([*shards(0, 1, 2), run("r3", (3, 4))], 2, "r3: its shard.n is 4, that of r0 is 3"),
]  # fmt: skip


@pytest.mark.parametrize("files, status, text", REJECTED, ids=[text[:40] for _, _, text in REJECTED])
def test_what_does_not_belong_together_is_rejected(files: List[File], status: int, text: str) -> None:
    with pytest.raises(CommandError) as error:
        merge(files)
    assert text in str(error.value) and error.value.status == status


def test_the_command_writes_whole_files_only(tmp_path: Path, capsys: Any) -> None:
    paths = [write_records(tmp_path / f"{name}.jsonl", records) for name, records in shards(0, 1, 2)]
    out = tmp_path / "out.jsonl"
    with pytest.raises(CommandError, match="missing: shard 2"):
        main.main(["merge", *paths[:2], "-o", str(out)])
    assert not out.exists()
    for _ in range(2):  # over itself
        assert main.main(["merge", *paths, "-o", str(out)]) == 0
    assert checks_of([json.loads(line) for line in out.read_text().splitlines()]) == checks_of(run("whole")[1])
    out.write_text("buy milk")
    with pytest.raises(CommandError, match="no earlier output"):
        main.main(["merge", *paths, "-o", str(out)])
    capsys.readouterr()
    assert main.main(["merge", *paths]) == 0 and capsys.readouterr().out.count("\n") == 26
