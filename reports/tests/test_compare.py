"""posenc compare of builds. Made stands in for the program that times them, so no test depends on the clock.

    bench.prepare(row(head=[5.0, 5.1, 4.9]))    one case; head is so many percent slower, by process
    assert bench.compare("--gate") == 3         posenc compare base.so head.so --gate
    bench.records("pair")                       the verdicts that it wrote
"""

import json
import math
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import pytest
from programs import FOOTER, HEADER, result
from test_records import errors_of

from posenc import engine
from posenc.command import CommandError
from posenc.compare import builds
from posenc.compare import main as command
from posenc.compare.builds import Row, Schedule, Settings, sum_noise
from posenc.compare.main import main
from posenc.compare.same_code import Unknown
from posenc.records import load

Json = Dict[str, Any]
L2, DRAM = "alibi/f32/given/l2", "alibi/f32/given/dram"
TYPICAL = "sinusoidal_add/f32/exact/l2"
ROUNDS = 31
NOISE = {"wall_s": 1.0, "steal_pct": 2.0, "load1": 1.5, "swapped": 3}
FACTS: List[Json] = [
    {"t": "env", "env_id": "made-up", "cpu": {"key": "made-up"}, "quality": {"grade": "A", "reasons": []}},
    {"t": "agreement", "kernel": "alibi", "backend": "avx2", "family": "native", "problems": 3, "values": 400,
     "moved": 0, "cases": 12, "failed": 0},
]  # fmt: skip


def header(sha256: str) -> Json:
    compared = {name: {"path": f"{name}.so", "version": "0.1.0", "abi": 4, "sha256": f"{first}{sha256}", "plugin": True}
                for name, first in (("base", "0"), ("head", "1"))}  # fmt: skip
    return {**HEADER, "run_id": "0", "started": "2026-11-28T00:00:00Z", "tool": {"version": "0.1.0"},
            "vectors": {"sha256": None}, "mode": "quick", "command": "pair", "options": {}, "argv": ["posenc"],
            "seed": "0x0", "compare": compared}  # fmt: skip


def row(case: str = L2, backend: str = "avx2", **more: Any) -> Json:
    """Returns a row of Made."""
    return {"case": case, "backend": backend, **more}


def record_of(kind: str, row: Json, **members: Any) -> Json:
    return result(kind, row["case"], row["backend"], stage="apply", **members)


def planned(row: Json) -> Json:
    """Returns what the program prints about a row before it times it."""
    footprint = {"name": row.get("footprint", "L2"), "bytes": 262144}
    record = record_of("planned", row, footprint=footprint, builds=row.get("builds", "both"))
    if "code" in row:
        record["entries"] = {name: [entry] for name, entry in zip(("base", "head"), row["code"])}
    return record


def rounds(median_pct: float, sign: int) -> List[float]:
    """Returns ln of the ratios of rounds, 0.1 % around their median."""
    around = [0.0002 * ((r * 7) % ROUNDS - ROUNDS // 2) / 3.0 for r in range(ROUNDS)]
    return [math.log1p(median_pct / 100) + sign * value for value in around]


def timed(row: Json, process: int) -> Json:
    """Returns the samples of a row in a process."""
    medians, controls = row.get("head", [0.0]), row.get("control", [0.1, -0.1, 0.0])
    head, control = medians[min(process, len(medians) - 1)], controls[process % len(controls)]
    if "wrong" in row:
        return record_of("samples", row, outcome="wrong", who=row["who"], reason=row["wrong"])
    ratios = {"head": rounds(head, 1), "control": rounds(control, -1)}
    return record_of("samples", row, outcome="timed", base={"ns": 100.0}, head={"ns": 100.0 + head}, ratios=ratios,
                     roofline={"kind": "store", "variant": "memset", "ns": 40.0})  # fmt: skip


class Made:
    """Stands in for engine.Program: processes whose records are made up, and take `took_s` by a clock of their own.

    A row has a case, a backend, and optionally builds, code (entries of base and head), footprint, and `head` and
    `control`: medians in percent by process, the last of which goes on. One that fails has `wrong`, or `ended`, how it
    ends its process, and `who`, the build that does.
    """

    def __init__(self, *rows: Json, **more: Any) -> None:
        self.rows, self.more, self.took_s, self.now_s = rows, more, 0.0, 100.0
        self.arguments: List[str] = []
        self.runs: List[Json] = []  # processes: part, pairs, and options by name

    def timed(self) -> List[Json]:
        return [run for run in self.runs if run["part"] == "times"]

    def run(
        self, options: Sequence[str], take: Callable[[Json], None], stop: Callable[[], bool] = lambda: False,
        pairs: Sequence[Tuple[str, str]] = (), watched: bool = False,
    ) -> engine.Ended:  # fmt: skip
        process, part, wanted = len(self.timed()), options[1], [list(pair) for pair in pairs]
        given = dict(zip(options[::2], options[1::2]))
        self.runs.append({"part": part, "pairs": wanted, "rows_only": "--rows-only" in options,
                          "seed": given.get("--seed"), "limit_s": float(given.get("--time-limit", 0))})  # fmt: skip
        self.now_s += self.took_s
        if "message" in self.more:
            return engine.Ended("the process was ended by exit(1)", self.more["message"], 1)
        take(header(self.more.get("sha256", "0" * 63) if process else "0" * 63))
        for record in [] if wanted else [*FACTS, *self.more.get("changes", []), *map(planned, self.rows)]:
            take(record)
        for one in self.rows if part == "times" else ():
            if [one["case"], one["backend"]] in wanted:
                take({"t": "running", "case": one["case"], "backend": one["backend"], "who": one.get("who", "head")})
                if "ended" in one:
                    return engine.Ended(one["ended"], "", -1)
                take(timed(one, process))
        for record in self.more.get("counts", []) if part == "counts" else []:
            take(record)
        take({**FOOTER, "noise": NOISE})
        return engine.Ended("", "", 0)


class Bench:
    """A folder in which posenc compare runs Made in place of the program."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = Made()
        monkeypatch.setenv("POSENC_PROGRAM", "not run")
        monkeypatch.setattr(command, "Program", self._program)

    def _program(self, path: str, arguments: List[str]) -> Made:
        self.made.arguments = arguments
        return self.made

    def prepare(self, *rows: Json, **more: Any) -> None:
        self.made = Made(*rows, **more)

    def compare(self, *options: str) -> int:
        return main(["base.so", "head.so", "--time-limit", "3600", "-o", "out.jsonl", *options])

    def timed(self) -> List[Json]:
        return self.made.timed()

    def records(self, kind: str) -> List[Json]:
        return [record for record in load("out.jsonl") if record["t"] == kind]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(builds, "code_digest", lambda path, entries: f"{entries[0]:x}" * 64)
    monkeypatch.chdir(tmp_path)
    return Bench(monkeypatch)


def counts_of(base: int, head: int) -> List[Json]:
    """Returns records of instructions for ten elements in both builds."""
    return [result("count", "alibi/f32/given/count", build=build, elements=10, instructions=instructions)
            for build, instructions in (("base", base), ("head", head))]  # fmt: skip


UP, NOISY = [5.0, 5.1, 4.9, 5.1, 5.0], [9.0, 1.2, 5.0, -4.0, 8.0, 0.5, 9.0, 1.0, 7.0]


# ---- verdicts and exit codes ----


def test_slower_is_confirmed_and_fails_a_gate(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.prepare(row(head=UP), row(backend="scalar"))
    assert bench.compare("--gate") == 3
    slower, same = bench.records("pair")
    assert (slower["verdict"], slower["confirmed"], slower["processes"], slower["confirming"]) == ("slower", True, 5, 2)
    assert slower["reason"] == "at or over the threshold of 3 %; 5/5 processes; confirmed"
    assert slower["ratio"] == pytest.approx(1.05, abs=1e-3) and slower["rounds"] == 5 * 31
    assert (same["verdict"], same["processes"], same["look"]) == ("same", 3, 1)
    out = capsys.readouterr().out
    assert "While it was timed, " in out and "a hypervisor gave 2.0 % of its time to others." in out
    assert "VERDICT  SLOWER 1    FASTER 0    SAME 1    UNCLEAR 0    identical code 0" in out
    assert "Exit code 3: 1 confirmed slowdown." in out
    assert f"to rerun only the first case:  --case {L2} --backend avx2" in out
    assert "1 the same or of identical code: --verbose prints them." in out
    assert "A/A control: base differs from its own copy by 0.0 % (median; at most 0.0 %)." in out
    bench.prepare(row(head=UP))
    assert bench.compare() == 0
    assert "Exit code 0: 1 confirmed slowdown; --gate would exit with 3." in capsys.readouterr().out
    bench.prepare(row(head=UP))
    assert bench.compare("--gate", "--threshold", "8") == 0
    assert bench.records("pair")[0]["reason"].startswith("under the threshold of 8 %")


def test_faster_is_confirmed_too(bench: Bench) -> None:
    bench.prepare(row(head=[-value for value in UP]))
    assert bench.compare("--gate") == 0
    assert [(pair["verdict"], pair["confirmed"]) for pair in bench.records("pair")] == [("faster", True)]


def test_what_is_not_confirmed_is_unclear(bench: Bench) -> None:
    bench.prepare(row(head=[5.0, 5.1, 4.9, 5.0, 0.2]))
    assert bench.compare("--gate") == 0
    pair = bench.records("pair")[0]
    assert pair["verdict"] == "unclear" and pair["reason"].startswith("not confirmed: 1 of 2")
    assert pair["processes"] == 5, "a denied row is not looked at again"


def test_unclear_is_looked_at_three_times(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.prepare(row(head=NOISY))
    assert bench.compare("--strict", "--gate") == 4
    pair = bench.records("pair")[0]
    assert (pair["verdict"], pair["look"], pair["processes"], pair["ci"]["level"]) == ("unclear", 3, 7, 0.995)
    assert "Exit code 4: 1 unclear verdict." in capsys.readouterr().out
    bench.prepare(row(head=NOISY))
    assert bench.compare() == 0


def test_no_time_is_no_verdict(bench: Bench) -> None:
    bench.prepare(row(head=UP))
    assert main(["base.so", "head.so", "--time-limit", "1e-9", "-o", "out.jsonl"]) == 0
    pair = bench.records("pair")[0]
    assert (pair["verdict"], pair["reason"], pair["processes"]) == ("unclear", "no process has timed both", 0)
    assert "ratio" not in pair and not bench.timed()


def test_identical_code_is_not_timed(bench: Bench) -> None:
    same = row(code=[1, 1], head=UP)
    bench.prepare(same, row(TYPICAL, code=[1, 2]))
    assert bench.compare("--gate") == 0
    assert [pair["verdict"] for pair in bench.records("pair")] == ["identical", "same"]
    assert all(pairs == [[TYPICAL, "avx2"]] for pairs in (run["pairs"] for run in bench.timed()))
    bench.prepare(same)
    assert bench.compare("--identical", "--gate") == 0
    pair = bench.records("pair")[0]
    assert pair["verdict"] == "identical" and pair["reason"].startswith("the same machine code: +5.0 %")


def test_unknown_code_is_timed(bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def unknown(path: str, entries: Sequence[int]) -> str:
        raise Unknown("a computed jump at 0x1234")

    monkeypatch.setattr(builds, "code_digest", unknown)
    bench.prepare(row(code=[1, 1]))
    assert bench.compare() == 0
    (pair,) = bench.records("pair")
    assert pair["verdict"] == "same" and "code" not in pair["base"]
    assert not errors_of([pair])
    assert "computed jump" not in capsys.readouterr().out
    bench.compare("-v")
    assert "Machine code of 1 pair not compared: a computed jump at 0x1234." in capsys.readouterr().out


def test_new_and_removed(bench: Bench) -> None:
    bench.prepare(row(builds="head"), row(TYPICAL, builds="base"))
    assert bench.compare() == 5
    assert [pair["verdict"] for pair in bench.records("pair")] == ["new", "removed"]
    bench.prepare(row(builds="head"), row(TYPICAL))
    assert bench.compare() == 0


# ---- results ----


def change(what: str, worse: Optional[bool], status: str = "fail") -> Json:
    sides = {"status": {"status": status}, "error": {"max": 1.5}, "bits": {"value": "0x1p0"}}[what]
    return result("change", L2, suite="accuracy", what=what, worse=worse, base=sides, head=sides, metric="ulp",
                  worst_at="key 3")  # fmt: skip


@pytest.mark.parametrize(
    "found, gate, code",
    [
        (change("status", True), False, 1), (change("status", True, "unsupported"), True, 0),
        (change("error", True), True, 3), (change("error", True), False, 0), (change("error", False), True, 0),
        (change("bits", None), True, 0), (change("bits", True), True, 0),
    ],
)  # fmt: skip
def test_changes_of_results(bench: Bench, found: Json, gate: bool, code: int) -> None:
    bench.prepare(row(), changes=[found])
    assert bench.compare(*(["--gate"] if gate else [])) == code
    assert bench.records("change") == [found]


def test_changes_are_printed_worst_first(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.prepare(row(), changes=[change("bits", False), change("error", True)])
    bench.compare()
    out = capsys.readouterr().out
    assert "Results of 12 cases, and 400 values of 3 problems: 1 worse, 1 better, 0 otherwise changed." in out
    assert out.index("worse ") < out.index("better ") and "1.50 ulp" in out and "key 3" in out


# ---- processes that end ----


CRASHED, WRONG = {"ended": "signal 11"}, {"wrong": "wrong: at key 3"}


@pytest.mark.parametrize(
    "failure, who, code, words",
    [
        (CRASHED, "head", 1, "head: signal 11"), (CRASHED, "rounds", 1, "base or head: signal 11"),
        (CRASHED, "base", 0, "base: signal 11"), (WRONG, "head", 1, "head: wrong: at key 3"),
        (WRONG, "base", 0, "base: wrong: at key 3"),
    ],
)  # fmt: skip
def test_a_failure_is_named_and_not_the_end(bench: Bench, failure: Json, who: str, code: int, words: str) -> None:
    bench.prepare(row(TYPICAL, "scalar"), row(**failure, who=who), row(head=UP, backend="scalar"))
    assert bench.compare() == code
    first, failed, slower = bench.records("pair")
    assert (first["verdict"], failed["verdict"], slower["verdict"]) == ("same", "incomparable", "slower")
    assert failed["reason"] == words
    how = "wrong" if "wrong" in failure else "crashed"
    assert failed["failed"] == {"who": "base or head" if who == "rounds" else who, "how": how}


def test_a_build_that_changes_is_rejected(bench: Bench) -> None:
    bench.prepare(row(), sha256="1" * 63)
    with pytest.raises(CommandError, match="base changed while it was compared"):
        bench.compare()
    assert not Path("out.jsonl").exists()


def test_errors_of_the_program_are_reported(bench: Bench) -> None:
    bench.prepare(message="build: base.so: is incomparable")
    with pytest.raises(CommandError, match="^build: base.so: is incomparable$"):
        bench.compare()


# ---- the schedule ----


def test_the_schedule(bench: Bench) -> None:
    bench.prepare(row(DRAM, footprint="DRAM"), row(head=UP), row(TYPICAL))
    assert bench.compare("--seed", "7") == 0
    caches, memory, more = bench.timed()[:3], bench.timed()[3:6], bench.timed()[6:]
    assert [run["pairs"] for run in caches] == [[[L2, "avx2"], [TYPICAL, "avx2"]]] * 3
    assert [run["pairs"] for run in memory] == [[[DRAM, "avx2"]]] * 3
    assert [run["pairs"] for run in more] == [[[L2, "avx2"]]] * 2
    # All of an output is checked once, in the first process of each group.
    assert [run["rows_only"] for run in bench.timed()] == [False, True, True, False, True, True, True, True]
    seeds = [run["seed"] for run in bench.timed()]
    assert len(set(seeds)) == len(seeds)
    bench.prepare(row(DRAM, footprint="DRAM"), row(head=UP), row(TYPICAL))
    bench.compare("--seed", "7")
    assert [run["seed"] for run in bench.timed()] == seeds
    bench.prepare(row(head=UP))
    bench.compare("--seed", "8")
    assert not {run["seed"] for run in bench.timed()} & set(seeds)


def schedule(took_s: float, limit_s: float, *rows: Json) -> Tuple[List[Row], List[float]]:
    """Runs a schedule whose processes take so many seconds each. Returns its rows, and the time limits of processes."""
    made, plan = Made(*rows), [Row(planned(one)) for one in rows]
    made.took_s = took_s
    Schedule(made, plan, {}, Settings(limit_s), lambda: made.now_s).run()  # type: ignore[arg-type]
    return plan, [run["limit_s"] for run in made.runs]


def test_looks_end_with_the_time() -> None:
    """An unclear row is looked at again only if two more processes fit."""
    for limit_s, processes, look in ((45.0, 3, 1), (51.0, 5, 2), (1000.0, 7, 3)):
        (first,), limits_s = schedule(10.0, limit_s, row(head=NOISY))
        assert (len(limits_s), first.look) == (processes, look)
    # Two rows: a look at each takes 10 s, of which 15 s are left.
    (first, second), limits_s = schedule(10.0, 45.0, row(head=NOISY), row(TYPICAL, head=NOISY))
    assert len(limits_s) == 5 and (first.look, second.look) == (2, 1)


def test_confirmation_takes_what_it_takes() -> None:
    (first,), limits_s = schedule(10.0, 35.0, row(head=[5.0]))
    assert len(limits_s) == 5 and first.verdict.confirmed


def test_shares_of_the_time() -> None:
    """The first processes have 70 % of the limit, those in caches half of that if there are others."""
    _, limits_s = schedule(1.0, 100.0, row())
    # 70 s for three; then what is left, less the overhead of the one before, which took a second.
    assert limits_s[0] == pytest.approx(70 / 3) and limits_s[1] == pytest.approx(69 / 2)
    _, limits_s = schedule(1.0, 100.0, row(), row(DRAM, footprint="DRAM"))
    assert limits_s[0] == pytest.approx(35 / 3) and limits_s[3] == pytest.approx((70 - 3) / 3)


# ---- records and words ----


def test_records_are_as_the_schema_has_them(bench: Bench) -> None:
    bench.prepare(row(head=UP, code=[10, 11]), row(TYPICAL, **CRASHED), row(DRAM, builds="head"),
                  counts=counts_of(130, 140), changes=[change("error", True)])  # fmt: skip
    assert bench.compare("-o", "out.csv") == 1
    records = load("out.jsonl")
    assert not errors_of(records)
    header, footer = records[0], records[-1]
    assert header["schema"] == "posenc.results/2" and header["argv"][:3] == ["posenc", "compare", "base.so"]
    assert header["options"] == {"time-limit": 3600.0} and header["compare"]["head"]["path"] == "head.so"
    assert footer["counts"] == {"header": 1, "env": 1, "agreement": 1, "change": 1, "count": 2, "pair": 3}
    finished = len(bench.timed()) - 1
    assert (footer["noise"]["steal_pct"], footer["noise"]["swapped"]) == (2.0, 3 * finished), "one ended early"
    assert "pair,alibi" in Path("out.csv").read_text(encoding="utf-8")


def test_instructions_are_counted_of_what_is_flagged_first(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.prepare(row(TYPICAL), row(head=UP), row(DRAM, code=[1, 1]), counts=counts_of(130, 143))
    bench.compare()
    assert bench.made.runs[-1]["part"] == "counts" and bench.made.runs[-1]["pairs"] == [[L2, "avx2"], [TYPICAL, "avx2"]]
    assert "14.3 (+10.0 %)" in capsys.readouterr().out


def test_noise_of_processes_is_one() -> None:
    first = {"wall_s": 1.0, "steal_pct": 4.0, "load1": 1.0, "heat": 2}
    second = {"wall_s": 3.0, "steal_pct": 0.0, "load1": 2.0}
    assert sum_noise([first, second]) == {"wall_s": 4.0, "steal_pct": 1.0, "load1": 2.0, "heat": 2}


def test_the_machine_is_named(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.prepare(*[row(f"alibi/f32/given/x{i}", head=[10.0], control=[9.0]) for i in range(4)])
    bench.compare()
    assert "The machine: 4 of 4 rows moved together with their A/A control." in capsys.readouterr().out


# ---- options ----

BAD = [
    (["base.so"], "expected two builds, two plug-ins, or two files of records (got 1)"),
    (["base.so", "head.so", "x.so"], "expected two builds"),
    (["--rev"], "expected one or two git revisions beside --rev (got 0)"),
    (["a", "b", "--build", "make"], "--build has no effect without --rev"),
    (["a", "--rev", "--build", "make"], "--library is missing beside --build"),
    (["a", "--rev", "--library", "x.so"], "--build is missing beside --library"),
    (["a", "b", "--threshold", "0"], "expected a number above 0, at most 1000 (got '0')"),
    (["a", "b", "--threshold", "x"], "(got 'x')"),
    (["a", "b", "--processes", "10"], "expected an integer from 1 to 9 (got '10')"),
    (["a", "b", "--time-limit", "nan"], "(got 'nan')"),
    (["a", "b", "--quick", "--full"], "argument --full: not allowed with argument --quick"),
    (["a", "b", "--out", "cvs"], "--out has no such format (got 'cvs'). Did you mean csv?"),
    (["a", "b", "--out", "jsonl:"], "--out lacks a path (got 'jsonl:')"),
    (["a", "b", "-o", "x.doc"], "the format is not clear from the name (got 'x.doc')"),
    (["a", "b", "-o", "/nowhere/x.jsonl"], "No such file or directory (got '/nowhere/x.jsonl')"),
    (["a", "b", "-o", "base.so.jsonl"], "the file exists and is no earlier output (got 'base.so.jsonl')"),
    (["a", "b", "-o", "x.jsonl", "--out", "csv:./x.jsonl"], "two outputs go to one file"),
    (["a", "b", "--out", "jsonl", "--out", "csv"], "two outputs go to standard output"),
]  # fmt: skip


@pytest.mark.parametrize("arguments, words", BAD)
def test_bad_input_is_rejected_before_anything_runs(bench: Bench, arguments: List[str], words: str) -> None:
    Path("base.so.jsonl").write_text("mine", encoding="utf-8")
    bench.prepare(row())
    with pytest.raises(CommandError, match=re.escape(words)) as caught:
        main(arguments)
    assert caught.value.status == 2 and not bench.made.runs


def test_outputs(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.prepare(row(), row(TYPICAL, head=UP))
    assert main(["base.so", "head.so", "--json"]) == 0
    assert [json.loads(line)["t"] for line in capsys.readouterr().out.splitlines()][-3:] == ["pair", "pair", "footer"]
    for _ in range(2):  # its own files are replaced
        assert main(["base.so", "head.so", "--out", "jsonl:x.jsonl", "--out", "console:x.txt"]) == 0
        assert capsys.readouterr().out == ""
        assert Path("x.txt").read_text(encoding="utf-8").startswith("posenc compare: base ")
