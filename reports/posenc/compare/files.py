"""Two files of records side by side.

What was checked is compared exactly: statuses, errors, bits, and what is there at all. Times are a trend and
never a verdict: between two runs a machine changes by more than code does.
"""

import math
import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Dict, List, Optional, Sequence, Tuple

from ..command import CommandError
from ..convert import Record
from ..ranking import Ranked, Timing
from ..records import load
from ..runs import Machine, machines, member, number
from ..verdict import machine_moved
from .builds import finish

WORST = {"pass": 0, "inconclusive": 2, "fail": 3, "crash": 4}  # other statuses say nothing: 1
# Options that say where results go and how fast, not what is checked.
ASIDE = ("--out", "-o", "--output", "--jobs", "--dir", "--budget", "--time-limit", "--seed")
NAMES = ("kernel", "dtype", "numerics", "case", "backend", "family")


def _badness(status: str) -> int:
    return WORST.get(status, 1)


def _fails(status: str) -> bool:
    return _badness(status) >= 2


def _words(header: Record) -> List[str]:
    """Returns the words of a command line that say what is checked."""
    words, skip = [], False
    for word in header.get("argv") or []:
        if skip:
            skip = False
        elif word.partition("=")[0] in ASIDE:
            skip = "=" not in word
        else:
            words.append(word)
    return words


@dataclass
class FilesCompared:
    """What comparing two files found."""

    paths: Tuple[str, str]
    sides: List[Record] = field(default_factory=list)
    records: List[Record] = field(default_factory=list)  # machines, changes and trends
    obstacles: List[Record] = field(default_factory=list)  # that make them incomparable
    results: int = 0  # checks in both
    times: int = 0  # timings in both
    failed: int = 0  # of head, which did not fail in base
    moved: str = ""  # words if the machine changed
    begun: float = field(default_factory=time.monotonic)

    def obstacle(self, what: str, base: object, head: object) -> None:
        """Notes what cannot be compared."""
        unknown = "unknown"
        self.obstacles.append({"what": what, "base": str(base or unknown), "head": str(head or unknown)})

    def count(self, worse: Optional[bool]) -> int:
        """Returns how many results got worse (true), better (false) or are otherwise changed (null)."""
        return sum(record["t"] == "change" and record["worse"] is worse for record in self.records)

    def outcome(self, gate: bool) -> Tuple[int, str]:
        """Returns the exit code and its reason."""
        if self.failed:
            return 1, f"{self.failed} new failure{'' if self.failed == 1 else 's'}"
        if self.obstacles:
            return 5, "the files cannot be compared in full"
        worse = self.count(True)
        words = f"{worse} result{'' if worse == 1 else 's'} got worse"
        if worse and gate:
            return 3, words
        return 0, f"{words}; --gate would exit with 3" if worse else "no failure, no result got worse"

    def run(self, argv: Sequence[str], options: Record) -> List[Record]:
        """Returns the comparison as the records of a run."""
        sides = self.sides or [{"path": path} for path in self.paths]
        compare: Record = {"base": sides[0], "head": sides[1], "incomparable": self.obstacles, "results": self.results}
        if self.moved:
            compare["machine"] = self.moved
        header: Record = {
            "t": "header", "schema": "posenc.results/2", "run_id": uuid.uuid4().hex,
            "started": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "mode": "files",
            "command": "compare", "argv": ["posenc", "compare", *argv], "options": options, "compare": compare,
        }  # fmt: skip
        return finish([header, *self.records], True, self.begun)


class _Joined:
    """The results of one machine in both files."""

    def __init__(self, out: FilesCompared, base: Machine, head: Machine) -> None:
        self.out, self.base, self.head = out, base, head
        self.whole = base.finished >= base.runs and head.finished >= head.runs
        self.vectors = self.times = True
        # What is missing in head was lost if the same was asked for, and both runs ended.
        same = _words(base.header) == _words(head.header) and base.header.get("mode") == head.header.get("mode")
        self.same_run = same and self.whole

    def compare(self) -> None:
        env = self.head.env or self.base.env
        if env:
            self.out.records.append(env)
        self._find_obstacles()
        self._checks()
        self._timings()

    # ---- what cannot be compared ----

    def _agree(self, what: str, path: str, base: Record, head: Record) -> bool:
        old, new = member(base, path), member(head, path)
        if old == new or not old or not new:
            return True
        self.out.obstacle(what, old, new)
        return False

    def _find_obstacles(self) -> None:
        base, head = self.base, self.head
        if not self.whole:
            ended = ["ended early" if side.finished < side.runs else "whole" for side in (base, head)]
            self.out.obstacle("run", *ended)
        cpu = self._agree("CPU", "cpu.key", base.env, head.env)
        self.times = cpu and self._same_features()
        for what, path in (("virtual machine", "virtualization"), ("type of the build", "build.type"),
                           ("emulator", "emulator")):  # fmt: skip
            self.times = self._agree(what, path, base.env, head.env) and self.times
        self.vectors = self._agree("golden vectors", "vectors.sha256", base.header, head.header)

    def _same_features(self) -> bool:
        old, new = (member(side.env, "cpu.features") for side in (self.base, self.head))
        if not old or not new or old == new:
            return True
        self.out.obstacle("features of the CPU", f"{len(old)} of them", f"{len(new)}, not the same")
        return False

    # ---- checks ----

    def _change(
        self, row: Record, what: str, worse: Optional[bool], base: Record, head: Record, **more: object
    ) -> None:
        names = {name: row.get(name, "") for name in NAMES}
        self.out.records.append(
            {
                "t": "change",
                **names,
                "suite": row["suite"],
                "what": what,
                "base": base,
                "head": head,
                **more,
                "worse": worse,
            }
        )

    def _status(self, row: Record, base: str, head: str) -> None:
        lost, gained = head == "absent", base == "absent"
        if base == head or (gained and not _fails(head)) or (lost and not self.same_run):
            return  # what is checked besides, or was not asked for, is no change
        before, after = _badness(base), _badness(head)
        worse = True if after > before else False if after < before and not lost else None
        self.out.failed += _fails(head) and not _fails(base)
        more = {}
        if _fails(head):
            more = {"reason": row["reason"]} if row.get("reason") else {}
            more["worst_at"] = member(row, "error.worst_at") or row.get("reason", "")
        self._change(row, "status", worse, {"status": base}, {"status": head}, **more)

    def _error(self, base: Record, head: Record) -> None:
        metric = member(head, "error.metric")
        old, new = number(base, "error.max"), number(head, "error.max")
        if not metric or metric != member(base, "error.metric") or old is None or new is None:
            return
        if old == new or (math.isnan(old) and math.isnan(new)):
            return
        self._change(
            head, "error", new > old or math.isnan(new), {"max": member(base, "error.max")},
            {"max": member(head, "error.max")}, metric=metric, limit=member(head, "error.limit"),
            worst_at=member(head, "error.worst_at") or "",
        )  # fmt: skip

    def _bits(self, base: Record, head: Record) -> None:
        old, new = base.get("digest"), head.get("digest")
        if old and new and old != new:
            self._change(head, "bits", None, {"value": old}, {"value": new})

    def _checks(self) -> None:
        sides: List[Dict[Tuple[str, ...], Record]] = [
            {tuple(str(check.get(name)) for name in ("case", "backend", "suite")): check for check in side.of("check")}
            for side in (self.base, self.head)
        ]
        for key in sorted({*sides[0], *sides[1]}):
            base, head = sides[0].get(key), sides[1].get(key)
            if not self.vectors and key[2] == "vectors":
                continue
            row = head or base or {}
            self._status(row, base["status"] if base else "absent", head["status"] if head else "absent")
            if base and head:
                self.out.results += 1
                self._error(base, head)
                if base["status"] == head["status"]:  # else that says why
                    self._bits(base, head)

    # ---- times ----

    def _timings(self) -> None:
        base, head = (_timings(side) for side in (self.base, self.head))
        moved: List[float] = []
        rooflines: List[float] = []
        for key, new in head.items():
            old = base.get(key)
            before = "absent" if old is None else "fail" if old.wrong else "pass"
            self._status(
                {**new.record, "suite": "bench", "reason": new.rejected}, before, "fail" if new.wrong else "pass"
            )
            if not self.times or old is None or not _has_trend(old, new):
                continue
            self._trend(old, new)
            gbps = [number(side.record, "roofline.gbps") or 0.0 for side in (old, new)]
            if min(gbps) > 0 and old.median > 0 and new.median > 0:
                moved.append(math.log(new.median / old.median))
                rooflines.append(math.log(gbps[0] / gbps[1]))
        together = machine_moved(moved, rooflines)
        if together:
            self.out.moved = f"{together} of {len(moved)} rows moved together with their rooflines: the machine changed"

    def _trend(self, base: Timing, head: Timing) -> None:
        record: Record = {"t": "trend", **{name: head.record.get(name, "") for name in NAMES}}
        for name, side in (("base", base), ("head", head)):
            record[name] = {"ns": side.median if side.median > 0 else None, "share": side.share or 0.0}
        if base.median > 0 and head.median > 0:
            record["ratio"] = head.median / base.median
        if base.share and head.share:
            record["roofline_ratio"] = base.share / head.share
        self.out.records.append(record)
        self.out.times += 1


def _timings(machine: Machine) -> Dict[Tuple[str, str, int], Timing]:
    rows = [row for ranking in Ranked(machine).cases.values() for row in ranking.rows]
    return {(row.case, row.backend, row.record.get("threads", 1)): row for row in rows}


def _has_trend(base: Timing, head: Timing) -> bool:
    """Returns whether there is something to compare: times, or shares of the roofline, which a baseline has."""
    if base.record.get("rejected") or head.record.get("rejected"):
        return False
    return (base.median > 0 and head.median > 0) or bool(base.share and head.share)


def _side(path: str, machine: Machine) -> Record:
    header = machine.header
    return {"path": path, "version": member(header, "tool.version") or "", "started": header.get("started") or ""}


def _read(path: str) -> List[Machine]:
    """Returns the machines of a file; one without a name if it says nothing of machines."""
    records = load(path)
    found = machines(records)
    if not found and records[0].get("mode") != "estimate":
        nameless: List[Record] = [{"t": "env"}]
        found = machines([records[0], *nameless, *records[1:]])
        for machine in found:
            machine.env = {}
    return found


def compare_files(base_path: str, head_path: str) -> FilesCompared:
    """Compares two files of records, machine by machine."""
    out = FilesCompared((base_path, head_path))
    bases, heads = _read(base_path), _read(head_path)
    names = {str(head.env.get("env_id")): head for head in heads}
    try:
        for base in bases:
            single = len(bases) == len(heads) == 1
            head = heads[0] if single else names.get(str(base.env.get("env_id")))
            if head is None:
                out.obstacle("machine", base.env.get("env_id"), "absent")
                continue
            out.sides = out.sides or [_side(base_path, base), _side(head_path, head)]
            _Joined(out, base, head).compare()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CommandError(
            f"a record lacks a member or has one of another type: {error!r}. results.schema.json describes records."
        ) from None
    if not out.results + out.times + len(out.obstacles):
        out.obstacle("results", "none that head has", "none that base has")
    return out
