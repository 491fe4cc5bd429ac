"""Merges files of records: shards of a run, which become that run again, and runs of several machines.

A merged file begins with one header, which names its parts, and ends with one footer. Between them are sections, one
for each run of each machine: its env, a "part" for each file that it comes from, and its results in the order of an
undivided run. Files that do not belong together are rejected by name.
"""

import json
import sys
import uuid
from collections import Counter
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, Tuple

from ..command import CommandError, Parser, write_output
from ..convert import Record
from ..records import dump, load
from ..runs import grouped, member
from ..show import plain

MISSING = 6  # exit code: shards are missing
FACTS = ("kernel", "backend", "model")  # said once for all shards
_OUTSIDE = ("header", "env", "part", "footer", *FACTS)  # all other records are results
_IDENTITY = ("env_id", "cpu", "virtualization", "os", "build")  # of a machine; the rest of env is measured
_ALIKE = ("mode", "tool.version", "tool.commit", "tool.dirty", "vectors.sha256", "shard.n", "seed")  # in all shards


class Run:
    """A run of a file, or a section of a file that was merged before, which has parts of its own."""

    def __init__(self, path: str, records: List[Record], header: Record, footer: Record) -> None:
        self.path, self.records = path, records
        self.machine = next((str(record["env_id"]) for record in self.of("env")), "")
        part = {"t": "part", "file": path, "env_id": self.machine, "header": header, "footer": footer}
        self.parts = self.of("part") or [part]
        self.header = self.parts[0]["header"]
        self.command = str(self.header.get("command") or "run")
        self.vectors = str(member(self.header, "vectors.sha256") or "")
        self.complete = footer.get("complete") is True
        shard = {} if "merged" in header else header.get("shard") or {}
        self.shard, self.shards = shard.get("i", 0), shard.get("n", 1)

    def of(self, kind: str) -> List[Record]:
        """Returns the records of a kind."""
        return [record for record in self.records if record["t"] == kind]

    def whole(self, mixed: bool) -> Any:
        """Returns what tells the run that this is a shard of from others."""
        return (self.command, "" if mixed else self.machine) if self.shards > 1 else id(self)


# ---- finding runs ----


def _cut(records: List[Record], kind: str) -> Iterator[List[Record]]:
    """Yields the records from each of a kind to the next, without what stands before the first."""
    kinds = ["", *(record["t"] for record in records)]
    starts = [at for at, (before, here) in enumerate(zip(kinds, kinds[1:])) if here == kind != before]
    for start, end in zip(starts, [*starts[1:], len(records)]):
        yield records[start:end]


def find_runs(path: str, records: List[Record]) -> Iterator[Run]:
    """Yields the runs of a file, and the sections of those that were merged before."""
    for header, *run in _cut(records, "header"):
        footer = next((record for record in run if record["t"] == "footer"), {})
        for section in _cut(run, "env") if "merged" in header else [run]:
            yield Run(path, section, header, footer)


# ---- whether they belong together ----


def _set_up(run: Run, mixed: bool) -> Dict[str, Any]:
    """Returns by name what all shards of a run have alike."""
    found = {name: member(run.header, name) for name in _ALIKE}
    found.update({f"--{name}": value for name, value in (run.header.get("options") or {}).items()})
    return found if mixed else {**found, "build": run.of("env")[0].get("build")}


def _check_alike(a: Run, b: Run, mixed: bool) -> None:
    """Rejects two shards that are not of one run."""
    of_a, of_b = _set_up(a, mixed), _set_up(b, mixed)
    for name in {**of_a, **of_b}:
        values = (of_b.get(name), of_a.get(name))
        if values[0] != values[1]:
            here, there = ("none" if v is None else json.dumps(v, separators=(",", ":")) for v in values)
            raise CommandError(
                f"{b.path}: its {name} is {here}, that of {a.path} is {there}. Merge shards of one run on {b.machine}."
            )


def _check_distinct(runs: List[Run]) -> None:
    """Rejects a run that is there twice, and runs with other golden vectors."""
    seen: Dict[str, Run] = {}
    for run in runs:
        for name in {part["header"].get("run_id") for part in run.parts} - {None}:
            if name in seen:
                raise CommandError(f"{seen[name].path} and {run.path} hold the same run. Give it once.")
            seen[name] = run
    first, *others = [run for run in runs if run.vectors] or runs[:1]
    for run in others:
        if run.vectors != first.vectors:
            raise CommandError(
                f"{run.path}: its vectors are {run.vectors:.12}, those of {first.path} are {first.vectors:.12}. "
                "Merge runs with the same golden vectors."
            )


def _check_whole(shards: List[Run], mixed: bool) -> Iterator[str]:
    """Rejects a run that lacks shards. Yields notes on attempts at a shard that was finished elsewhere."""
    attempts, n = grouped(shards, lambda run: run.shard), shards[0].shards
    what = f"{shards[0].command} on {shards[0].machine}"
    for i, runs in attempts.items():
        complete = [run for run in runs if run.complete]
        if not complete:
            again = f"Run posenc {runs[-1].command} again"
            raise CommandError(f"{runs[-1].path}: is partial: its run was interrupted, or goes on. {again}.")
        if len(complete) > 1:
            a, b = complete[0].path, complete[1].path
            raise CommandError(f"shard {i}/{n} of {what} is in {a} and in {b}. Give it once.")
        for run in runs:
            if not run.complete:
                yield f"{run.path} is passed over: shard {i}/{n} did not finish there; {complete[0].path} has it"
    missing = [str(i) for i in range(n) if i not in attempts]
    if missing:
        hint = "" if mixed else " If others ran on another CPU, --mixed accepts what each of them found."
        raise CommandError(
            f"missing: shard{'s' if len(missing) > 1 else ''} {', '.join(missing)} of {n} of {what}. "
            f"Expected 0 to {n - 1}.{hint}",
            MISSING,
        )


def check(runs: List[Run], mixed: bool) -> Iterator[str]:
    """Rejects runs that do not belong together. Yields notes on what is passed over: all that is not complete."""
    _check_distinct(runs)
    for shards in grouped(runs, lambda run: run.whole(mixed)).values():
        complete = [run for run in shards if run.complete]
        for run in complete[1:]:
            _check_alike(complete[0], run, mixed)
        yield from _check_whole(shards, mixed)


# ---- the merged records ----

Seen = Dict[Any, Tuple[Record, Run]]


def _key(machine: str, record: Record) -> Any:
    """Returns what a result is of. A process may end in several shards, each time after another case."""
    if record["t"] not in ("check", "bench", "overhead"):
        return id(record)  # there may be many alike
    ended = record.get("reason") if record["case"].endswith("/ended") else None
    return (machine, ended, *(record.get(name) for name in ("t", "case", "backend", "suite", "threads")))


def _results(shards: List[Run], seen: Seen) -> Iterator[Record]:
    """Yields the results of a run, each once, in the order of the undivided run."""
    results = [(record, run) for run in shards for record in run.records if record["t"] not in _OUTSIDE]
    for record, run in sorted(results, key=lambda result: result[0].get("place", 0)):
        record = {name: value for name, value in record.items() if name != "place"}
        before, where = seen.setdefault(_key(run.machine, record), (record, run))
        if before is record:
            yield record
        elif before != record:
            raise CommandError(
                f"{run.path}: {record['case']} of {record['backend']} on {run.machine} differs from the same in "
                f"{where.path}. Give each result of a machine once."
            )


def _facts(shards: List[Run], kind: str) -> Iterator[Record]:
    """Yields what shards say of their machine, of kernels, backends and models, each once."""
    found: List[Record] = []
    for record in (record for run in shards for record in run.of(kind)):
        fact = {name: record.get(name) for name in _IDENTITY} if kind == "env" else record
        if fact not in found:
            found.append(fact)
            yield record


def _section(shards: List[Run], seen: Seen) -> Iterator[Record]:
    """Yields a run of a machine, of all its shards there."""
    yield from _facts(shards, "env")
    for run in shards:
        yield from run.parts
    for kind in FACTS:
        yield from _facts(shards, kind)
    yield from _results(shards, seen)


def _source(part: Record) -> Record:
    header = part["header"]
    names = {name: str(header.get(name) or "") for name in ("run_id", "started", "command")}
    return {"file": part["file"], **names, "env_id": part["env_id"], "shard": header.get("shard")}


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _header(runs: List[Run], mixed: bool, argv: List[str]) -> Record:
    tools = [run.header.get("tool", {}) for run in runs]
    tool = {name: value for name, value in tools[0].items() if all(other.get(name) == value for other in tools)}
    modes = {run.header.get("mode", "") for run in runs}
    return {
        "t": "header", "schema": "posenc.results/2", "run_id": uuid.uuid4().hex, "started": _now(),
        "tool": {"version": "mixed", **tool},
        "vectors": next((run.header["vectors"] for run in runs if run.vectors), {"sha256": None}),
        "command": "merge", "argv": ["posenc", *argv], "options": {"mixed": True} if mixed else {},
        "mode": modes.pop() if len(modes) == 1 else "mixed",
        "merged": [_source(part) for run in runs for part in run.parts],
    }  # fmt: skip


def merge(files: List[Tuple[str, List[Record]]], mixed: bool, argv: List[str]) -> Tuple[List[Record], List[str]]:
    """Returns the merged records of files, each with its path, and notes on what was passed over."""
    runs = [run for path, records in files for run in find_runs(path, records)]
    notes = list(check(runs, mixed))
    runs = [run for run in runs if run.complete]
    records = [_header(runs, mixed, argv)]
    seen: Seen = {}
    for of_machine in grouped(runs, lambda run: run.machine).values():
        for shards in grouped(of_machine, lambda run: run.whole(mixed)).values():
            records += _section(shards, seen)
    counts = Counter(record["status"] if record["t"] == "check" else record["t"] for record in records)
    return [*records, {"t": "footer", "complete": True, "counts": counts, "finished": _now()}], notes


# ---- the command ----


def main(arguments: List[str]) -> int:
    """Merges files. Returns the exit code."""
    parser = Parser(
        "posenc results merge",
        "Merges the shards of a run, or runs of several machines, into one file of records.",
        "Exit code 6: shards are missing. Examples: posenc results merge [0-3].jsonl -o whole.jsonl; "
        "posenc results merge */results.jsonl -o fleet.jsonl",
    )
    parser.add_records()
    parser.add_output()
    parser.add_argument("--mixed", action="store_true", help="accept shards of one run from several CPUs")
    args = parser.parse_args(arguments)
    files = [(plain(path), load(path)) for path in args.files]
    records, notes = merge(files, args.mixed, ["results", "merge", *arguments])
    for note in notes:
        print(f"posenc results merge: {note}", file=sys.stderr)
    write_output(args.output, dump(records), b'"posenc.results/', args.force)
    return 0
