#!/usr/bin/env python3
"""Stands in for the C program: prints made-up records. FAKE is wrong, inconclusive, hang, crash, reject, or nothing."""

import json
import os
import signal
import sys
import time
import uuid
from typing import Any

FAKE = os.environ.get("FAKE", "")


def record(kind: str, **members: Any) -> str:
    return json.dumps({"t": kind, **members}) + "\n"


def head(command: str) -> str:
    backends = "".join(
        record("backend", id=name, family=family, available=True, default_for={"alibi": "fastest"} if not at else {})
        for at, (name, family) in enumerate((("avx2", "native"), ("autovec_v3", "autovec"), ("libm", "libm")))
    )
    tool = {"version": "0.1.0", "commit": "0123456789ab"}
    return (
        record("header", schema="posenc.results/2", run_id=uuid.uuid4().hex, mode="quick", command=command,
               started="2026-01-01T00:00:00Z", tool=tool, argv=["posenc", command])
        + record("env", env_id="fake-1/none", cpu={"key": "fake-1", "name": "A made-up CPU"},
                 quality={"grade": "A", "reasons": []})
        + backends
        + record("model", name="bloom-176b", title="BLOOM 176B", source="made up",
                 cases=[{"case": "alibi/f32/given/bloom-decode", "kernel": "alibi", "step": "decode", "calls": 70}])
    )  # fmt: skip


def check(backend: str, status: str) -> str:
    names = {"avx2": "native", "autovec_v3": "autovec", "libm": "libm"}
    error = {"metric": "exact", "max": float(status == "fail"), "limit": 0, "worst_at": "key 3", "got": "0x1p+0",
             "want": "0x1p+1", "coverage": "sampled", "checked": 9, "misrounded": 0}  # fmt: skip
    return record("check", kernel="alibi", dtype="f32", numerics="given", case="alibi/f32/given/h8", backend=backend,
                  family=names[backend], suite="vectors", status=status, error=error)  # fmt: skip


def timing(backend: str, ns: float) -> str:
    names = {"avx2": "native", "autovec_v3": "autovec", "libm": "libm"}
    return record("bench", kernel="alibi", dtype="f32", numerics="given", case="alibi/f32/given/bloom-decode",
                  backend=backend, family=names[backend], footprint={"name": "L2", "bytes": 1000}, threads=1,
                  rounds=9, median_ns=ns, ci={"level": 0.99, "lo": ns * 0.99, "hi": ns * 1.01}, gbps=1000 / ns,
                  roofline={"kind": "store", "gbps": 20.0, "share": 50 / ns}, control_pct=0.5)  # fmt: skip


def main() -> int:
    command, words = sys.argv[1], sys.argv[2:]
    if command == "table":
        print("numerics,storage,backend,position,error")
        return 0
    if "--case" in words:  # the places of memory: nothing to run
        return 77
    if FAKE == "reject":
        print("posenc verify: --kernel: rope: no kernel", file=sys.stderr)
        return 2
    print(head(command), end="", flush=True)
    if FAKE == "hang":
        stopped = []
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: stopped.append(number))
        print("hanging", file=sys.stderr, flush=True)
        while not stopped:
            time.sleep(0.01)
        print(check("avx2", "pass") + record("footer", complete=False, counts={}), end="")
        return 128 + stopped[0]
    if FAKE == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    first = {"wrong": "fail", "inconclusive": "inconclusive"}.get(FAKE, "pass")  # status of the first check
    if command == "verify":
        results = [check("avx2", first), check("autovec_v3", "pass"), check("libm", "pass")]
    else:
        results = [timing("avx2", 100), timing("autovec_v3", 200), timing("libm", 400)]
    print("".join(results) + record("footer", complete=True, counts={}, wall_s=1.0), end="")
    return int(first != "pass" and command == "verify")


if __name__ == "__main__":
    sys.exit(main())
