"""Stands in for the C program in tests of posenc compare: prints made-up records of `posenc pair`.

FAKE_PAIR names a JSON file: {"rows": [row, ...], "changes": [...], "counts": [...], "log": PATH}. A row has a
case, a backend, and optionally builds, code (entries of base and head), footprint, and `head` and `control`: medians in
percent by process, the last of which goes on. In place of a median stands a failure: {"signal": N}, {"exit": N},
{"wrong": TEXT}, {"spin": PATH} or {"sleep": PATH}; the last two write the process ID to that file. Each run is noted in
the log, a JSON line.
"""

import argparse
import json
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, TextIO

ROUNDS = 31
Json = Dict[str, Any]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    for name in ("part", "out", "pairs", "seed", "time-limit", "parent", "kernel", "case", "problem"):
        parser.add_argument(f"--{name}")
    for name in ("rows-only", "full"):
        parser.add_argument(f"--{name}", action="store_true")
    at = sys.argv.index("--")
    parsed = parser.parse_args(sys.argv[1:at])
    parsed.builds = sys.argv[at + 1 :]
    return parsed


def header(args: argparse.Namespace, sha256: str) -> Json:
    builds = {name: {"path": path, "version": "0.1.0", "abi": 4, "sha256": f"{first}{sha256}", "plugin": True}
              for name, path, first in zip(("base", "head"), args.builds, "01")}  # fmt: skip
    return {"t": "header", "schema": "posenc.results/2", "run_id": "0", "started": "2026-11-28T00:00:00Z",
            "tool": {"version": "0.1.0"}, "vectors": {"sha256": None}, "mode": "quick", "command": "pair",
            "options": {}, "argv": ["posenc"], "seed": "0x0", "compare": builds}  # fmt: skip


def names(row: Json) -> Json:
    kernel, dtype, numerics = row["case"].split("/")[:3]
    return {"kernel": kernel, "dtype": dtype, "numerics": numerics, "stage": "apply", "case": row["case"],
            "backend": row["backend"], "family": row["backend"]}  # fmt: skip


def planned(row: Json) -> Json:
    footprint = {"name": row.get("footprint", "L2"), "bytes": 262144}
    record = {"t": "planned", **names(row), "footprint": footprint, "builds": row.get("builds", "both")}
    if "code" in row:
        record["entries"] = {name: [entry] for name, entry in zip(("base", "head"), row["code"])}
    return record


def rounds(median_pct: float, sign: int) -> List[float]:
    """Rounds 0.1 % around their median."""
    around = [0.0002 * ((r * 7) % ROUNDS - ROUNDS // 2) / 3.0 for r in range(ROUNDS)]
    return [math.log1p(median_pct / 100) + sign * value for value in around]


def time_row(row: Json, process: int, put: Any) -> None:
    medians, controls = row.get("head", [0.0]), row.get("control", [0.1, -0.1, 0.0])
    head, control = medians[min(process, len(medians) - 1)], controls[process % len(controls)]
    put({"t": "running", "case": row["case"], "backend": row["backend"], "who": row.get("who", "head")})
    if isinstance(head, dict):
        for hanging in {"spin", "sleep"} & set(head):
            Path(head[hanging]).write_text(str(os.getpid()), encoding="utf-8")
        if "signal" in head:
            os.kill(os.getpid(), head["signal"])
        elif "exit" in head:
            os._exit(head["exit"])
        elif "sleep" in head:
            time.sleep(600)
        elif "stop" in head:  # another one is to end this program
            os.kill(os.getpid(), signal.SIGSTOP)
        while "spin" in head:
            pass
        who, reason = row.get("who", "head"), head.get("wrong")
        put({"t": "samples", **names(row), "outcome": "wrong", "who": who, "reason": reason})
        return
    put({"t": "samples", **names(row), "outcome": "timed", "base": {"ns": 100.0}, "head": {"ns": 100.0 + head},
         "ratios": {"head": rounds(head, 1), "control": rounds(control, -1)},
         "roofline": {"kind": "store", "variant": "memset", "ns": 40.0}})  # fmt: skip


def run(args: argparse.Namespace, out: TextIO) -> None:
    scenario: Json = json.loads(Path(os.environ["FAKE_PAIR"]).read_text(encoding="utf-8"))
    log = Path(scenario["log"])
    before = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    process = sum(one["part"] == "times" for one in before)
    wanted = [line.split() for line in sys.stdin] if args.pairs == "-" else []
    note = {"part": args.part, "seed": args.seed, "rows_only": args.rows_only, "pairs": wanted, "argv": sys.argv[1:]}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(note) + "\n")

    def put(record: Json) -> None:
        out.write(json.dumps(record) + "\n")
        out.flush()

    if "message" in scenario:
        sys.exit(f"posenc pair: {scenario['message']}")
    put(header(args, scenario["sha256"] if process and "sha256" in scenario else "0" * 63))
    if not wanted:
        put({"t": "env", "env_id": "made-up", "cpu": {"key": "made-up"}, "quality": {"grade": "A", "reasons": []}})
        put({"t": "agreement", "kernel": "alibi", "backend": "avx2", "family": "native", "problems": 3, "values": 400,
             "moved": 0, "cases": 12, "failed": 0})  # fmt: skip
        for record in scenario.get("changes", []) + [planned(row) for row in scenario["rows"]]:
            put(record)
    for row in scenario["rows"] if args.part == "times" else []:
        if [row["case"], row["backend"]] in wanted:
            time_row(row, process, put)
    for record in scenario.get("counts", []) if args.part == "counts" else []:
        put(record)
    put({"t": "footer", "complete": True, "noise": {"wall_s": 1.0, "steal_pct": 2.0, "load1": 1.5, "swapped": 3}})


if __name__ == "__main__":
    parsed = arguments()
    with open(parsed.out.partition(":")[2], "w", encoding="utf-8") as stream:
        run(parsed, stream)
