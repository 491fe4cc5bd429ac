"""posenc tune: choices equal to those of the program in C that it replaced, the tuning file, and the check of one."""

import signal
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
from programs import Completed, make_program, read_json_lines, run, start, write_records

from posenc.tune.main import PLAIN, Candidate, Choice, choices_of, line_of, tuning_file

Record = Dict[str, Any]

# Made-up samples of backends, with the choices and numbers that the program in C computed from them.
FROZEN = read_json_lines(Path(__file__).with_name("choices.jsonl.gz"))


def test_choices_are_those_of_the_program_in_c() -> None:
    assert sum(one["tie"] for one in FROZEN) > 30
    for one in FROZEN:
        candidates = [
            Candidate(row["id"], row["family"] in PLAIN, row["vector_width"] or 1, row["samples"])
            for row in one["rows"]
        ]
        choice = Choice("rope_half", "f32", "L1", None, "", candidates)
        assert (choice.chosen.name, choice.is_tie) == (one["chosen"], one["tie"])
        for standing in one["standings"]:
            (row,) = (row for row in candidates if row.name == standing["id"])
            choice.in_force = row.name
            got = [row.ns, row.ratio(choice.chosen), *row.interval(choice.chosen), *choice.slowness()]
            assert got == pytest.approx([standing[key] for key in ("ns", "ratio", "lo", "hi", "slowness", "known")])


# ---- records that are made up ----

WIDTHS = {"avx512": ("native", 16), "avx2": ("native", 8), "libm": ("libm", 0)}
CPU = {"key": "paper-1", "features": ["sse", "avx2"]}
ENV = {"t": "env", "env_id": "paper", "cpu": CPU, "build": {"id": "1.2.3 cc"}}


def bench(backend: str, ns: Optional[float], level: str = "l1", chosen: bool = False, reason: str = "slow") -> Record:
    """A backend of rope_half whose samples are about `ns`; None: rejected."""
    footprint: Record = {"name": level.upper(), "bytes": 5}
    record = {"t": "bench", "kernel": "rope_half", "dtype": "f32", "case": f"rope_half/f32/given/{level}",
              "backend": backend, "family": WIDTHS[backend][0], "footprint": footprint, "chosen": chosen}  # fmt: skip
    if level != "dram":
        footprint["most"] = 36864
    outcome: Record = {"rejected": reason} if ns is None else {"samples": [ns + step for step in range(9)]}
    return {**record, **outcome}


def run_of(*rows: Record) -> List[Record]:
    backends = [{"t": "backend", "id": name, "family": family, "vector_width": width}
                for name, (family, width) in WIDTHS.items()]  # fmt: skip
    header = {"t": "header", "schema": "posenc.results/2", "mode": "quick"}
    return [header, ENV, *backends, *rows, {"t": "footer", "complete": True}]


def test_a_tuning_file() -> None:
    choices = choices_of(run_of(
        bench("avx512", 12345.0), bench("avx2", 20000.0), bench("libm", None),
        bench("avx512", 5000000.0, "dram"), bench("avx2", 5050000.0, "dram"), bench("libm", 5000000.0, "dram"),
        bench("avx2", None, "l2"), bench("avx512", 700.0, "l2"),
    ))  # fmt: skip
    assert tuning_file(ENV, choices, "2026-01-02T03:04:05Z") == (
        "posenc.tune/1\n"
        "# Written by posenc tune at 2026-01-02T03:04:05Z: kernel, backend, type, and the most bytes of its tensors\n"
        "cpu paper-1 sse avx2\n"
        "build 1.2.3 cc\n"
        "rope_half          avx512       f32  36864      # L1: 12.35 us; avx2 takes 1.62 times as long [1.62, 1.62]\n"
        "rope_half          avx2         f32             # DRAM: 5050 us; avx512 takes 0.99 times as long [0.99, 0.99]"
        ", a tie\n"
        "rope_half          avx512       f32  36864      # L2: 0.704 us; no other comes near\n"
    )


def test_native_backends_come_before_plain_loops_and_narrow_ones_before_wide_ones() -> None:
    def chosen(*rows: Tuple[str, float]) -> str:
        return choices_of(run_of(*(bench(name, ns) for name, ns in rows)))[0].chosen.name

    assert chosen(("avx512", 100000), ("avx2", 101900)) == "avx2"
    assert chosen(("avx512", 100000), ("avx2", 103100)) == "avx512"
    assert chosen(("avx512", 101900), ("libm", 100000)) == "avx512"
    assert chosen(("avx512", 103100), ("libm", 100000)) == "libm"
    assert chosen(("avx2", 100000), ("avx512", 98500)) == "avx2"


def test_up_to_3_percent_are_a_tie_if_the_interval_does_not_exclude_it() -> None:
    def chosen(middle: float, least: float) -> str:
        samples = [least, *[middle] * 3, middle, *[middle + 0.01] * 4]
        candidates = [Candidate("wide", False, 16, [1.0] * 9), Candidate("narrow", False, 8, samples)]
        return Choice("alibi", "f32", "L1", None, "", candidates).chosen.name

    assert chosen(1.025, 0.99) == "narrow" and chosen(1.025, 1.001) == "wide"
    assert chosen(1.031, 0.99) == "wide" and chosen(1.019, 1.001) == "narrow"


def test_the_rival_is_the_fastest_of_the_others() -> None:
    (choice,) = choices_of(run_of(bench("libm", 900.0), bench("avx512", 100.0), bench("avx2", 200.0)))
    assert "; avx2 takes " in line_of(choice)


# ---- the command, with a program that is made up ----


def program(tmp_path: Path, *runs: List[Record], ends: str = "exit 0") -> Path:
    """A program that prints the records of its first call, its second, and so on, and notes its arguments."""
    for number, records in enumerate(runs, start=1):
        write_records(tmp_path / f"run{number}", records)
    script = f'cd {tmp_path}\necho "$@" >>calls\ncat run$(wc -l <calls | tr -d " ")\n{ends}'
    return make_program(tmp_path / "program", script)


def tune(path: Path, *arguments: str) -> "Completed[str]":
    choices = {"XDG_CONFIG_HOME": str(path.parent / "config"), "COLUMNS": "80"}
    return run(path, "tune", *arguments, env=choices, cwd=path.parent)


GOOD = run_of(bench("avx512", 100000.0, chosen=True), bench("avx2", 150000.0))
SLOW = run_of(bench("avx512", 100000.0), bench("avx2", 150000.0, chosen=True), bench("libm", None))
FAR = run_of(bench("avx512", 100000.0), bench("libm", None, chosen=True))


def test_the_default_file_and_one_that_is_named(tmp_path: Path) -> None:
    done = tune(program(tmp_path, GOOD, GOOD), "--kernel", "rope_half", "--time-limit", "7", "--seed", "3")
    assert done.returncode == 0 and done.stdout.startswith("1 choices, 0 ties (=), written to ")
    own = tmp_path / "config" / "posenc" / "tuning"
    assert own.read_text().startswith("posenc.tune/1\n") and own.stat().st_mode & 0o777 == 0o644
    assert "This program uses it from now on" in done.stdout and "rope_half  f32    avx512" in done.stdout
    calls = (tmp_path / "calls").read_text()
    assert calls == "bench --tune --out jsonl --time-limit 7.0 --seed 3 --kernel rope_half\n"
    done = tune(tmp_path / "program", "mine")
    assert done.returncode == 0 and "if POSENC_TUNING=mine is set" in done.stdout and (tmp_path / "mine").exists()


def test_a_check(tmp_path: Path) -> None:
    for runs, status, words in (
        ((GOOD,), 0, "f: 1 of 1 choices are within 5 % of the fastest, the file holds"),
        ((SLOW, GOOD), 0, "f: 1 of 1 choices are within 5 % of the fastest, the file holds"),
        ((SLOW, SLOW), 3, "rope_half, f32, L1: avx2 takes 1.50 times as long as avx512\nf: 0 of 1 choices"),
        ((FAR, FAR), 3, "rope_half, f32, L1: libm takes far longer than avx512\n"),
    ):
        (tmp_path / "calls").write_text("")
        done = tune(program(tmp_path, *runs), "--check", "f")
        assert done.returncode == status and words in done.stdout, done
        calls = (tmp_path / "calls").read_text().splitlines()
        assert len(calls) == len(runs) and all(call.endswith("--tuning f") for call in calls)
        assert len(calls) == 1 or "--seed 1 --kernel rope_half --dtype f32" in calls[1]
    assert not (tmp_path / "f").exists()


def test_a_slow_choice_that_may_be_noise_passes(tmp_path: Path) -> None:
    noisy = bench("avx2", 150000.0, chosen=True)
    noisy["samples"] = [90000.0, 95000.0, 99000.0, 107000.0, 108000.0, 109000.0, 110000.0, 150000.0, 160000.0]
    noise = run_of(bench("avx512", 100000.0), noisy)
    done = tune(program(tmp_path, noise, noise), "--check", "f")
    assert done.returncode == 0 and ", which may be noise\n" in done.stdout
    assert "1 not known to be slower" in done.stdout


def test_wrong_outputs(tmp_path: Path) -> None:
    wrong = run_of(bench("avx512", None, reason="wrong: 3 ulp"), bench("avx2", 5000.0),
                   bench("avx512", None, "l2", reason="wrong in a smaller case"))  # fmt: skip
    done = tune(program(tmp_path, wrong, ends="exit 1"), "f")
    assert done.returncode == 1 and " avx2 " in (tmp_path / "f").read_text()
    assert "posenc tune: rope_half, f32: avx512 is rejected: wrong: 3 ulp\n" in done.stderr
    assert "posenc tune: rope_half, f32, L2: no backend could be timed\n" in done.stderr


@pytest.mark.parametrize("ends, status", [("exit 77", 77), ("exit 130", 130), ("kill -11 $$", 139)])
def test_nothing_is_written_if_the_benchmark_ends_early(ends: str, status: int, tmp_path: Path) -> None:
    done = tune(program(tmp_path, GOOD, ends=ends), "f")
    assert (done.returncode, done.stdout) == (status, "") and "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls", "program", "run1"]


def test_what_exists_is_kept(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.write_text("mine\n")
    for arguments, words in (
        (["notes"], "the file exists and is no earlier output (got 'notes')"),
        (["none/f"], "the output cannot be written: No such file or directory (got 'none/f')"),
        ([str(tmp_path)], "the output is no ordinary file"),
        (["a", "b"], "unrecognized arguments: b"),
        (["--time-limit", "0"], "expected a number above 0, at most 86400 (got '0')"),
    ):
        done = tune(program(tmp_path, GOOD), *arguments)
        assert done.returncode == 2 and f"posenc tune: error: {words}" in done.stderr.replace(
            "argument --time-limit: ", ""
        )
    assert notes.read_text() == "mine\n" and not (tmp_path / "calls").exists()
    assert tune(program(tmp_path, GOOD), "notes", "--force").returncode == 0


def test_a_folder_that_cannot_be_made_and_a_stale_file_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("")
    done = tune(program(tmp_path, GOOD))
    assert done.returncode == 2 and "posenc tune: error: the output cannot be written: " in done.stderr
    assert not (tmp_path / "calls").exists()
    monkeypatch.setenv("POSENC_TUNING", "stale")
    done = tune(program(tmp_path, GOOD, ends='[ -z "${POSENC_TUNING+set}" ]'), "f")
    assert done.returncode == 0


def test_a_signal_ends_it_in_order(tmp_path: Path) -> None:
    path = program(tmp_path, GOOD, ends="trap 'exit 143' TERM; echo begun >&2; while :; do sleep 0.05; done")
    with start(path, "tune", str(tmp_path / "f")) as done:
        assert done.stderr and done.stderr.readline() == "begun\n"
        done.send_signal(signal.SIGTERM)
        assert done.wait() == 143
    assert not (tmp_path / "f").exists()
