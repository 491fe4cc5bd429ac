"""Merges files of records: shards of a run, which become that run again, and runs of several machines.

A merged file begins with one header, which names its parts, and ends with one footer. Between them are sections, one
for each run of each machine: its env, a "part" for each file that it comes from, and its results in the order of an
undivided run. Records are kept as they were written, but for their member place. Files that do not belong together
are rejected by name.
"""

import json
import sys
import uuid
from collections import Counter
from datetime import datetime, timezone
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from ..command import CommandError, Parser, write_output
from ..convert import Record, convert_all
from ..records import File, dump, read
from ..runs import grouped, member

MISSING = 6  # exit code: shards are missing
MOST_SHARDS = 1_000_000
FACTS = ("kernel", "backend", "model")  # said once for all shards
_OUTSIDE = ("header", "env", "part", "footer", *FACTS)  # all other records are results
_IDENTITY = ("env_id", "cpu", "virt", "virtualization", "os", "build")  # of a machine; the rest of env is measured
_ALIKE = ("mode", "tool.version", "tool.commit", "tool.dirty", "vectors.sha256", "shard.n", "seed")  # in all shards


class Run:
    """A run of a file, or a section of a file that was merged before, which has parts of its own."""

    def __init__(self, file: File, header: Record, records: List[Record], footer: Record, merged: bool = False) -> None:
        self.file, self.header, self.records, self.footer = file, header, records, footer
        self.machine = next((str(record.get("env_id")) for record in records if record["t"] == "env"), "")
        self.command = str(header.get("command") or "run")
        self.complete = footer.get("complete") is True
        part = {"t": "part", "file": file.path, "env_id": self.machine, "header": header, "footer": footer}
        self.parts = self.of("part") if merged else [part]
        number = 0 if merged else int(member(header, "shard.n") or 0)
        self.shards = number if 1 <= number <= MOST_SHARDS else 0  # 0: it is whole
        self.shard = int(member(header, "shard.i") or 0)

    def of(self, kind: str) -> List[Record]:
        """Returns the records of a kind."""
        return [record for record in self.records if record["t"] == kind]


# ---- finding runs ----


def _cut(records: List[Record], starts: List[int]) -> Iterator[List[Record]]:
    """Yields the records from each start to the next."""
    for start, end in zip(starts, [*starts[1:], len(records)]):
        yield records[start:end]


def _sections(file: File, records: List[Record], footer: Record) -> Iterator[Run]:
    """Yields the sections of what was merged before: an env that follows other records begins one."""
    kinds = ["", *(record["t"] for record in records)]
    starts = [at for at, (before, kind) in enumerate(zip(kinds, kinds[1:])) if kind == "env" and before != "env"]
    for section in _cut(records, starts):
        header = next((record["header"] for record in section if record["t"] == "part" and record.get("header")), None)
        if header is None:
            raise CommandError(f"{file.path}: nothing says what it was merged of. Merge the files of its runs instead.")
        yield Run(file, header, section, footer, merged=True)


def find_runs(file: File) -> Iterator[Run]:
    """Yields the runs of a file, and the sections of those that were merged before."""
    starts = [at for at, record in enumerate(file.records) if record["t"] == "header"]
    outside = file.records[: starts[0] if starts else None]
    for header, *records in _cut(file.records, starts):
        end = next((at for at, record in enumerate(records) if record["t"] == "footer"), len(records))
        footer = records[end] if end < len(records) else {}
        outside += records[end + 1 :]
        if outside:
            break
        run = Run(file, header, records[:end], footer)
        if not run.of("env"):
            raise CommandError(f"{file.path}: line {file.lines} ends early: nothing says which machine it is of.")
        if run.shards and not 0 <= run.shard < run.shards:
            raise CommandError(f"{file.path}: there is no shard {run.shard}/{run.shards}.")
        yield from _sections(file, records[:end], footer) if "merged" in header else [run]
    if outside:
        raise CommandError(f"{file.path}: a record of kind {outside[0]['t']} stands outside of any run.")


# ---- whether they belong together ----


def _partial(run: Run) -> CommandError:
    again = f"Run posenc {run.command} again."
    if run.footer:
        return CommandError(f"{run.file.path}: is partial: its run was interrupted. {again}")
    within = ", within that line" if run.file.cut else ""
    return CommandError(
        f"{run.file.path}: line {run.file.lines}: ends early{within}: it has no footer, so the run was killed or goes "
        f"on. {again}"
    )


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
                f"{b.file.path}: its {name} is {here}, that of {a.file.path} is {there}. "
                f"Merge shards of one run on {b.machine}."
            )


def _check_distinct(runs: List[Run]) -> None:
    """Rejects a run that is there twice, and runs with other golden vectors."""
    seen: Dict[str, Run] = {}
    vectors: Dict[str, Run] = {}
    for run in runs:
        for name in {str(part["header"].get("run_id") or "") for part in run.parts} - {""}:
            if name in seen:
                raise CommandError(f"{seen[name].file.path} and {run.file.path} hold the same run. Give it once.")
            seen[name] = run
        digest = member(run.header, "vectors.sha256")
        if digest:
            vectors.setdefault(str(digest), run)
    if len(vectors) > 1:
        (first, a), (other, b) = list(vectors.items())[:2]
        raise CommandError(
            f"{b.file.path}: its vectors are {other:.12}, those of {a.file.path} are {first:.12}. "
            "Merge runs with the same golden vectors."
        )


def _check_shards(group: List[Run], hint: str) -> List[str]:
    """Rejects a run that lacks shards. Returns notes on attempts at a shard that was finished elsewhere."""
    first, notes, missing = group[0], [], []
    attempts = grouped(group, lambda run: run.shard)
    for i in range(first.shards):
        whole = [run for run in attempts.get(i, []) if run.complete]
        if len(whole) > 1:
            raise CommandError(
                f"shard {i}/{first.shards} of {first.command} on {whole[0].machine} is in {whole[0].file.path} and in "
                f"{whole[1].file.path}. Give it once."
            )
        if i in attempts and not whole:
            raise _partial(attempts[i][-1])
        missing += [] if whole else [str(i)]
        notes += [f"{run.file.path} is passed over: shard {i}/{first.shards} did not finish there; "
                  f"{whole[0].file.path} has it" for run in attempts.get(i, []) if not run.complete]  # fmt: skip
    if missing:
        raise CommandError(
            f"missing: shard{'s' if len(missing) > 1 else ''} {', '.join(missing)} of {first.shards} of "
            f"{first.command} on {first.machine}. Expected 0 to {first.shards - 1}.{hint}", MISSING
        )  # fmt: skip
    return notes


def _whole(run: Run, mixed: bool) -> Any:
    """Returns what tells the run that a shard is of from others."""
    return (run.command, "" if mixed else run.machine) if run.shards else id(run)


def check(runs: List[Run], mixed: bool) -> List[str]:
    """Rejects runs that do not belong together. Returns notes on what is passed over: all that is not complete."""
    notes = []
    _check_distinct(runs)
    for group in grouped(runs, lambda run: _whole(run, mixed)).values():
        complete, first = [run for run in group if run.complete], group[0]
        for run in complete[1:]:
            _check_alike(complete[0], run, mixed)
        if first.shards:
            others = [run for run in runs if run not in group and run.command == first.command]
            elsewhere = not mixed and any(run.shards == first.shards for run in others)
            accepts = " Others ran on another CPU: --mixed accepts what each of them found."
            notes += _check_shards(group, accepts if elsewhere else "")
        elif not complete:
            raise _partial(first)
    return notes


# ---- the merged records ----


def _key(machine: str, record: Record) -> Optional[Tuple[Any, ...]]:
    """Returns what a result is of; None if there may be many alike.

    A process may end in several shards, each time after another case.
    """
    if record["t"] not in ("conf", "check", "bench", "overhead"):
        return None
    case = str(record.get("case", ""))
    ended = record.get("reason") if case.endswith("/ended") else None
    return (machine, record["t"], case, record.get("backend"), record.get("suite"), record.get("threads", 1), ended)


class _Results:
    """The results of all sections, each once."""

    def __init__(self) -> None:
        self.seen: Dict[Tuple[Any, ...], Tuple[Record, Run]] = {}
        self.again = 0  # results that are there more than once, with the same values

    def of(self, runs: List[Run]) -> Iterator[Record]:
        """Yields the results of a run's shards, in the order of the undivided run."""
        results = [(record, run) for run in runs for record in run.records if record["t"] not in _OUTSIDE]
        for record, run in sorted(results, key=lambda result: result[0].get("place", 0)):
            record = {name: value for name, value in record.items() if name != "place"}
            key = _key(run.machine, record)
            if key not in self.seen:
                yield record
                if key:
                    self.seen[key] = (record, run)
                continue
            before, where = self.seen[key]
            if before != record:
                raise CommandError(
                    f"{run.file.path}: {record.get('case')} of {record.get('backend')} on {run.machine} differs from "
                    f"the same in {where.file.path}. Give each result of a machine once."
                )
            self.again += 1


def _facts(runs: List[Run], kind: str) -> Iterator[Record]:
    """Yields what shards say of machines, kernels, backends and models, each once."""
    found: List[Record] = []
    for run in runs:
        for record in run.of(kind):
            fact = {name: record.get(name) for name in _IDENTITY} if kind == "env" else record
            if fact in found:
                continue
            if kind == "backend" and run is not runs[0]:
                raise CommandError(
                    f"{run.file.path}: its backend {record.get('id')} differs from that of {runs[0].file.path}. "
                    "Merge shards of one run on one kind of machine."
                )
            found.append(fact)
            yield record


def _section(runs: List[Run], results: _Results) -> Iterator[Record]:
    """Yields a run of a machine, of all its shards there."""
    yield from _facts(runs, "env")
    for run in runs:
        yield from run.parts
    for kind in FACTS:
        yield from _facts(runs, kind)
    yield from results.of(runs)


def _source(part: Record, machine: str) -> Record:
    header = part["header"]
    names = {name: str(header.get(name) or "") for name in ("run_id", "started", "command")}
    return {"file": str(part.get("file", "")), **names, "env_id": machine, "shard": header.get("shard")}


def _common(values: Iterable[Any], otherwise: Any) -> Any:
    first, *others = values
    return first if all(value == first for value in others) else otherwise


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _header(runs: List[Run], mixed: bool, argv: List[str]) -> Record:
    tools = [run.header.get("tool") or {} for run in runs]
    vectors = [run.header["vectors"] for run in runs if member(run.header, "vectors.sha256")]
    return {
        "t": "header", "schema": runs[0].header["schema"], "run_id": uuid.uuid4().hex, "started": _now(),
        "tool": {name: value for name, value in tools[0].items() if all(tool.get(name) == value for tool in tools)}
        | {"version": str(_common([tool.get("version", "") for tool in tools], "mixed"))},
        "vectors": vectors[0] if vectors else {"sha256": None}, "command": "merge", "argv": ["posenc", *argv],
        "options": {"mixed": True} if mixed else {},
        "mode": _common([run.header.get("mode", "") for run in runs], "mixed"),
        "merged": [_source(part, run.machine) for run in runs for part in run.parts],
    }  # fmt: skip


def merge(files: List[File], mixed: bool, argv: List[str]) -> Tuple[List[Record], List[str]]:
    """Returns the merged records of files, and notes on what was passed over.

    They are posenc.results/2 if one of the files is.
    """
    if any(record.get("schema") == "posenc.results/2" for file in files for record in file.records):
        files = [File(file.path, convert_all(file.records), file.lines, file.cut) for file in files]
    runs = [run for file in files for run in find_runs(file)]
    notes = check(runs, mixed)
    runs = [run for run in runs if run.complete]
    records, results = [_header(runs, mixed, argv)], _Results()
    for of_machine in grouped(runs, lambda run: run.machine).values():
        for shards in grouped(of_machine, lambda run: _whole(run, mixed)).values():
            records += _section(shards, results)
    if results.again:
        notes.append(f"{results.again} results are there more than once, with the same values: each is kept once")
    counts = Counter(str(r.get("status")) if r["t"] in ("conf", "check") else r["t"] for r in records)
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
    records, notes = merge([read(path) for path in args.files], args.mixed, ["results", "merge", *arguments])
    for note in notes:
        print(f"posenc results merge: {note}", file=sys.stderr)
    write_output(args.output, dump(records), b'"posenc.results/', args.force)
    return 0
