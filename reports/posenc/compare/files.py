"""Compares two files of records, machine by machine.

main.py calls compare_files(), builds.py calls compare_builds() for the checks of two builds. Checks are compared
exactly: status, error, digest, and presence. A largest error of 0.50 ulp in base and 0.94 ulp in head is a record
"change", what "error", worse true. Times are shown as a trend and never as a verdict, because a machine changes more
between two runs than code does.
"""

import math
import uuid
from typing import Dict, List, Optional, Tuple

from ..ranking import Ranked, Timing
from ..records import SCHEMA, Machine, Record, load, machines, member, members_expected, number
from ..results.outcome import NOT_PASSED
from ..verdict import machine_moved

# How bad a status is. A status that is not listed, such as skipped, has a severity of 1.
SEVERITY = {"pass": 0, "inconclusive": 2, "fail": 3, "crash": 4}
# Options of a run that do not change what it checks.
IRRELEVANT_OPTIONS = ("--out", "-o", "--output", "--jobs", "--dir", "--time-limit", "--seed")
NAMES = ("kernel", "dtype", "numerics", "case", "backend", "family")
# Members of env that must be equal before times are compared, and their names in messages.
MACHINE_MEMBERS = (("CPU", "cpu.key"), ("virtual machine", "virtualization"), ("type of the build", "build.type"),
                   ("emulator", "emulator"))  # fmt: skip


class _Differences:
    """Result of comparing two files of records."""

    def __init__(self) -> None:
        self.records: List[Record] = []  # machines, changes and trends
        self.incomparable: List[Record] = []  # differences that prevent a comparison
        self.compare: Record = {"incomparable": self.incomparable, "results": 0}  # for the header

    def add_incomparable(self, what: str, base: object, head: object) -> None:
        """Adds a difference that makes the files incomparable."""
        self.incomparable.append({"what": what, "base": str(base or "unknown"), "head": str(head or "unknown")})

    def agree(self, what: str, base: object, head: object) -> bool:
        """Returns true if both sides are equal or one is unknown; otherwise adds why they cannot be compared."""
        if base == head or not base or not head:
            return True
        self.add_incomparable(what, base, head)
        return False

    def add_change(
        self, row: Record, what: str, worse: Optional[bool], base: Record, head: Record, **more: object
    ) -> None:  # fmt: skip
        """Adds a changed result. `worse` is None if neither side is better."""
        names = {name: row.get(name, "") for name in NAMES}
        change = {"suite": row["suite"], "what": what, "worse": worse, "base": base, "head": head, **more}
        self.records.append({"t": "change", **names, **change})


def _selection_of(header: Record) -> List[str]:
    """Returns the selection of a run: its mode, and its command line without IRRELEVANT_OPTIONS."""
    words, skip = [str(header.get("mode"))], False
    for word in header.get("argv") or []:
        if skip:
            skip = False
        elif word.partition("=")[0] in IRRELEVANT_OPTIONS:
            skip = "=" not in word
        else:
            words.append(word)
    return words


def _compare_machines(out: _Differences, base: Machine, head: Machine) -> None:
    """Compares the results of one machine in both files."""
    out.records += [side.env for side in (head, base) if "env_id" in side.env][:1]
    ended = ["ended early" if side.finished < side.runs else "whole" for side in (base, head)]
    whole = "ended early" not in ended
    if not whole:
        out.add_incomparable("run", *ended)
    same_machine = [out.agree(what, member(base.env, path), member(head.env, path)) for what, path in MACHINE_MEMBERS]
    old, new = (member(side.env, "cpu.features") or [] for side in (base, head))
    if old != new:
        same_machine.append(out.agree("features of the CPU", old and f"{len(old)} of them",
                                      new and f"{len(new)}, not the same"))  # fmt: skip
    vectors = out.agree("golden vectors", *(member(side.header, "vectors.sha256") for side in (base, head)))
    # A check that head lacks counts as lost if both runs had the same selection and ended.
    lost = whole and _selection_of(base.header) == _selection_of(head.header)
    _compare_checks(out, base.of("check"), head.of("check"), vectors, lost)
    _compare_timings(out, base, head, all(same_machine))


# ---- checks ----


def compare_builds(base: List[Record], head: List[Record]) -> List[Record]:
    """Returns the changes between the checks of two builds that ran in one process."""
    out = _Differences()
    _compare_checks(out, base, head, vectors=True, lost=False)
    return out.records


def _key(check: Record) -> Tuple[str, str, str]:
    """Returns the key by which checks of base and head are paired. The end of a process belongs to no suite."""
    return check["case"], check["backend"], "" if check["case"].endswith("/ended") else check["suite"]


def _compare_checks(out: _Differences, base: List[Record], head: List[Record], vectors: bool, lost: bool) -> None:
    """Compares checks. Without `vectors` the suite of golden vectors is left out; with `lost` head has to have all."""
    bases, heads = ({_key(check): check for check in side} for side in (base, head))
    for key in sorted({*bases, *heads}):
        old, new = bases.get(key), heads.get(key)
        if not vectors and key[2] == "vectors":
            continue
        if old and new:
            out.compare["results"] += 1
            _compare_status(out, new, old["status"], new["status"])
            if old["status"] != new["status"]:
                continue  # the status says why errors and bits differ
            _compare_error(out, old, new)
            old_bits, new_bits = old.get("digest"), new.get("digest")
            if old_bits and new_bits and old_bits != new_bits:
                out.add_change(new, "bits", None, {"value": old_bits}, {"value": new_bits})
        elif new:
            _compare_status(out, new, "absent", new["status"])
        elif old and lost:
            _compare_status(out, old, old["status"], "absent")


def _compare_status(out: _Differences, row: Record, base: str, head: str) -> None:
    """Adds a change of status; "absent" stands for a check that one side lacks."""
    if base == head or (base == "absent" and head not in NOT_PASSED):
        return  # an additional check is no change
    before, after = SEVERITY.get(base, 1), SEVERITY.get(head, 1)
    worse = True if after > before else False if after < before and head != "absent" else None
    more = {}
    if head in NOT_PASSED:
        more = {"reason": row["reason"]} if row.get("reason") else {}
        more["worst_at"] = member(row, "error.worst_at") or row.get("reason", "")
    out.add_change(row, "status", worse, {"status": base}, {"status": head}, **more)


def _compare_error(out: _Differences, base: Record, head: Record) -> None:
    """Adds a change of the largest error."""
    metric = member(head, "error.metric")
    old, new = number(base, "error.max"), number(head, "error.max")
    if not metric or metric != member(base, "error.metric") or old is None or new is None:
        return
    if old == new or (math.isnan(old) and math.isnan(new)):
        return
    sides = ({"max": member(side, "error.max")} for side in (base, head))
    out.add_change(head, "error", new > old or math.isnan(new), *sides, metric=metric,
                   limit=member(head, "error.limit"), worst_at=member(head, "error.worst_at") or "")  # fmt: skip


# ---- times ----


def _timings(machine: Machine) -> Dict[Tuple[str, str, int], Timing]:
    """Returns timings by case, backend and threads."""
    rows = [row for ranking in Ranked(machine).cases.values() for row in ranking.rows]
    return {(row.case, row.backend, row.record.get("threads", 1)): row for row in rows}


def _compare_timings(out: _Differences, base: Machine, head: Machine, same_machine: bool) -> None:
    """Compares whether outputs were right, and adds trends of times if the machine is the same."""
    bases, moved, rooflines = _timings(base), [], []
    for key, new in _timings(head).items():
        old = bases.get(key)
        before = "absent" if old is None else "fail" if old.wrong else "pass"
        row = {**new.record, "suite": "bench", "reason": new.rejected}
        _compare_status(out, row, before, "fail" if new.wrong else "pass")
        if not same_machine or old is None or old.record.get("rejected") or new.record.get("rejected"):
            continue
        timed = old.median > 0 and new.median > 0
        if not timed and not (old.share and new.share):  # a baseline has shares alone
            continue
        out.records.append(_trend(old, new))
        gbps = [number(side.record, "roofline.gbps") or 0.0 for side in (old, new)]
        if timed and min(gbps) > 0:
            moved.append(math.log(new.median / old.median))
            rooflines.append(math.log(gbps[0] / gbps[1]))
    together = machine_moved(moved, rooflines)
    if together:
        words = f"{together} of {len(moved)} rows moved together with their rooflines: the machine changed"
        out.compare["machine"] = words


def _trend(base: Timing, head: Timing) -> Record:
    """Returns the record of a timing in both files: times, shares of the roofline, and their ratios."""
    record: Record = {"t": "trend", **{name: head.record.get(name, "") for name in NAMES}}
    for name, side in (("base", base), ("head", head)):
        record[name] = {"ns": side.median if side.median > 0 else None, "share": side.share or 0.0}
    if base.median > 0 and head.median > 0:
        record["ratio"] = head.median / base.median
    if base.share and head.share:
        record["roofline_ratio"] = base.share / head.share
    return record


# ---- files ----


def _read(path: str) -> List[Machine]:
    """Returns the machines of a file; a file without env records has one machine without a name."""
    records = load(path)
    return machines(records) or machines([records[0], {"t": "env"}, *records[1:]])


def _describe_side(path: str, machine: Machine) -> Record:
    """Returns the member base or head of the header."""
    header = machine.header
    return {"path": path, "version": member(header, "tool.version") or "", "started": header.get("started") or ""}


def compare_files(base_path: str, head_path: str) -> List[Record]:
    """Compares two files of records. Returns the records of the comparison, without the footer."""
    out = _Differences()
    bases, heads = _read(base_path), _read(head_path)
    names = {head.env.get("env_id"): head for head in heads}
    with members_expected():
        for base in bases:
            single = len(bases) == len(heads) == 1
            head = heads[0] if single else names.get(base.env.get("env_id"))
            if head is None:
                out.add_incomparable("machine", base.env.get("env_id"), "absent")
                continue
            if "base" not in out.compare:
                out.compare.update(base=_describe_side(base_path, base), head=_describe_side(head_path, head))
            _compare_machines(out, base, head)
    timed = any(record["t"] == "trend" for record in out.records)
    if not timed and not out.compare["results"] and not out.incomparable:
        out.add_incomparable("results", "none that head has", "none that base has")
    compare = {"base": {"path": base_path}, "head": {"path": head_path}, **out.compare}
    header = {"t": "header", "schema": SCHEMA, "run_id": uuid.uuid4().hex, "mode": "files"}
    return [{**header, "compare": compare}, *out.records]
