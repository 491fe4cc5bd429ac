"""Merges files of records: shards of a run, which become that run again, and runs of several machines.

A merged file begins with one header, which names its parts, and ends with one footer. Between them are sections, one
for each run of each machine: its env, a "part" for each file that it comes from, and its results in the order of an
undivided run. Records are kept as they were written, but for their member place. Files that do not belong together
are rejected by name.
"""

import argparse
import json
import sys
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from ..command import CommandError, Parser, write_file
from ..convert import Record, convert_all
from ..records import File, read
from ..runs import member

MISSING = 6  # exit code: shards are missing
MOST_SHARDS = 1_000_000
FACTS = ("kernel", "backend", "model")  # said once for all shards
_OUTSIDE = ("header", "env", "part", "footer", *FACTS)  # all other records are results
_IDENTITY = ("env_id", "cpu", "virt", "virtualization", "os", "build")  # of a machine; the rest of env is measured
_ALIKE = ("mode", "tool.version", "tool.commit", "tool.dirty", "vectors.sha256", "shard.n", "seed")  # in all shards


@dataclass(eq=False)
class Run:
    """A run of a file, or a section of a file that was merged before."""

    file: File
    header: Record
    records: List[Record] = field(default_factory=list)  # without header and footer
    footer: Record = field(default_factory=dict)
    merged: bool = False
    passed_over: bool = False  # it was not finished, and the same shard was elsewhere
    group: int = 0  # the same for all shards of a run

    @property
    def machine(self) -> str:
        return str(next((record.get("env_id") for record in self.records if record["t"] == "env"), ""))

    @property
    def command(self) -> str:
        return str(self.header.get("command") or "run")

    @property
    def shard(self) -> int:
        return int(member(self.header, "shard.i") or 0)

    @property
    def shards(self) -> int:
        """How many shards the run has; 0 if it is whole."""
        number = 0 if self.merged else member(self.header, "shard.n") or 0
        return int(number) if 1 <= number <= MOST_SHARDS else 0

    @property
    def complete(self) -> bool:
        return self.footer.get("complete") is True

    @property
    def headers(self) -> List[Record]:
        """The headers of its parts."""
        return [part["header"] for part in self.of("part")] if self.merged else [self.header]

    def of(self, kind: str) -> List[Record]:
        return [record for record in self.records if record["t"] == kind]


# ---- finding runs ----


def _sections(run: Run) -> Iterator[Run]:
    """Cuts what was merged before into its sections: an env that follows other records begins one."""
    before = ""
    section: Optional[Run] = None
    for record in run.records:
        if record["t"] == "env" and before != "env":
            if section:
                yield section
            section = Run(run.file, {}, footer=run.footer, merged=True)
        before = record["t"]
        if section:
            section.records.append(record)
            if before == "part" and not section.header:
                section.header = record.get("header") or {}
    if section:
        yield section


def _runs(file: File) -> Iterator[Run]:
    run: Optional[Run] = None
    for record in file.records:
        if record["t"] == "header":
            if run:
                yield run
            run = Run(file, record)
        elif run is None or run.footer:
            raise CommandError(f"{file.path}: a record of kind {record['t']} stands outside of any run.")
        elif record["t"] == "footer":
            run.footer = record
        else:
            run.records.append(record)
    if run:
        yield run


def find_runs(file: File) -> List[Run]:
    """Returns the runs of a file, and the sections of those that were merged before."""
    found: List[Run] = []
    for run in _runs(file):
        if not run.of("env"):
            raise CommandError(f"{file.path}: line {file.lines} ends early: nothing says which machine it is of.")
        if run.shards and not 0 <= run.shard < run.shards:
            raise CommandError(f"{file.path}: there is no shard {run.shard}/{run.shards}.")
        found += _sections(run) if "merged" in run.header else [run]
    if not all(run.header for run in found):
        raise CommandError(f"{file.path}: nothing says what it was merged of. Merge the files of its runs instead.")
    return found


# ---- whether they belong together ----


def _partial(run: Run) -> CommandError:
    path, line = run.file.path, f"line {run.file.lines}"
    again = f"Run posenc {run.command} again."
    if run.footer:
        return CommandError(f"{path}: is partial: its run was interrupted. {again}")
    within = ", within that line" if run.file.cut else ""
    return CommandError(
        f"{path}: {line}: ends early{within}: it has no footer, so the run was killed or goes on. {again}"
    )


def _differ(a: Run, b: Run, name: str, of_a: Any, of_b: Any) -> None:
    if of_a != of_b:
        here, there = (
            json.dumps(value, separators=(",", ":")) if value is not None else "none" for value in (of_b, of_a)
        )
        raise CommandError(
            f"{b.file.path}: its {name} is {here}, that of {a.file.path} is {there}. "
            f"Merge shards of one run on {b.machine}."
        )


def _check_alike(a: Run, b: Run, mixed: bool) -> None:
    """Rejects two shards that are not of one run."""
    for name in _ALIKE:
        _differ(a, b, name, member(a.header, name), member(b.header, name))
    options = [run.header.get("options") or {} for run in (a, b)]
    for name in dict.fromkeys([*options[0], *options[1]]):
        _differ(a, b, f"--{name}", options[0].get(name), options[1].get(name))
    if not mixed:
        _differ(a, b, "build", *(run.of("env")[0].get("build") for run in (a, b)))


def _check_distinct(runs: List[Run]) -> None:
    """Rejects a run that is there twice, and runs with other golden vectors."""
    seen: Dict[str, Run] = {}
    vectors: Optional[Tuple[str, Run]] = None
    for run in runs:
        for name in {str(header.get("run_id") or "") for header in run.headers} - {""}:
            if name in seen:
                raise CommandError(f"{seen[name].file.path} and {run.file.path} hold the same run. Give it once.")
            seen[name] = run
        digest = member(run.header, "vectors.sha256")
        if digest and vectors and digest != vectors[0]:
            raise CommandError(
                f"{run.file.path}: its vectors are {digest:.12}, those of {vectors[1].file.path} are {vectors[0]:.12}. "
                "Merge runs with the same golden vectors."
            )
        vectors = vectors or ((str(digest), run) if digest else None)


def _choose(shards: List[Run]) -> Optional[Run]:
    """Returns the one of several attempts at a shard that was finished; the others are passed over."""
    whole = [run for run in shards if run.complete]
    if len(whole) > 1:
        a, b = whole[:2]
        raise CommandError(
            f"shard {a.shard}/{a.shards} of {a.command} on {a.machine} is in {a.file.path} and in {b.file.path}. "
            "Give it once."
        )
    if shards and not whole:
        raise _partial(shards[-1])
    for run in shards:
        run.passed_over = not run.complete
    return whole[0] if whole else None


def _check_shards(group: List[Run], runs: List[Run], mixed: bool) -> List[str]:
    """Rejects a run that lacks shards. Returns notes on what is passed over."""
    first, notes, missing = group[0], [], []
    for i in range(first.shards):
        attempts = [run for run in group if run.shard == i]
        chosen = _choose(attempts)
        missing += [] if chosen else [str(i)]
        for run in attempts:
            if chosen and run.passed_over:
                notes.append(f"{run.file.path} is passed over: shard {i}/{first.shards} did not finish there; "
                             f"{chosen.file.path} has it")  # fmt: skip
    if missing:
        others = [run for run in runs if run not in group and run.command == first.command]
        elsewhere = any(run.shards == first.shards for run in others)
        hint = " Others ran on another CPU: --mixed accepts what each of them found." if elsewhere and not mixed else ""
        raise CommandError(
            f"missing: shard{'s' if len(missing) > 1 else ''} {', '.join(missing)} of {first.shards} of "
            f"{first.command} on {first.machine}. Expected 0 to {first.shards - 1}.{hint}", MISSING
        )  # fmt: skip
    return notes


def check(runs: List[Run], mixed: bool) -> List[str]:
    """Rejects runs that do not belong together. Returns notes on what is passed over."""
    _check_distinct(runs)
    groups: Dict[Any, List[Run]] = {}
    for at, run in enumerate(runs):
        key: Any = at if not run.shards else (run.command, "" if mixed else run.machine)
        groups.setdefault(key, []).append(run)
    for number, group in enumerate(groups.values()):
        complete = [run for run in group if run.complete]
        for run in group:
            run.group = number
            if not run.shards and not run.complete:
                raise _partial(run)
        for run in complete[1:]:
            _check_alike(complete[0], run, mixed)
    return [note for group in groups.values() if group[0].shards for note in _check_shards(group, runs, mixed)]


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


class _Writer:
    def __init__(self) -> None:
        self.records: List[Record] = []
        self.seen: Dict[Tuple[Any, ...], Tuple[Record, Run]] = {}
        self.again = 0  # results that are there more than once, with the same values

    def add_results(self, runs: List[Run]) -> None:
        results = [(record, run) for run in runs for record in run.records if record["t"] not in _OUTSIDE]
        results.sort(key=lambda result: result[0].get("place", 0))
        for record, run in results:
            record = {name: value for name, value in record.items() if name != "place"}
            key = _key(run.machine, record)
            before = self.seen.get(key) if key else None
            if before and before[0] != record:
                raise CommandError(
                    f"{run.file.path}: {record.get('case')} of {record.get('backend')} on {run.machine} differs from "
                    f"the same in {before[1].file.path}. Give each result of a machine once."
                )
            self.again += before is not None
            if key:
                self.seen.setdefault(key, (record, run))
            if not before:
                self.records.append(record)

    def add_facts(self, runs: List[Run], kind: str) -> None:
        """Adds what shards say of machines, kernels, backends and models, each once."""
        told: List[Record] = []
        for run in runs:
            for record in run.of(kind):
                fact = {name: record.get(name) for name in _IDENTITY} if kind == "env" else record
                if fact in told:
                    continue
                if kind == "backend" and run is not runs[0]:
                    raise CommandError(
                        f"{run.file.path}: its backend {record.get('id')} differs from that of {runs[0].file.path}. "
                        "Merge shards of one run on one kind of machine."
                    )
                told.append(fact)
                self.records.append(record)

    def add_section(self, runs: List[Run]) -> None:
        """Adds a run of a machine, of all its shards there."""
        self.add_facts(runs, "env")
        for run in runs:
            part = {
                "t": "part",
                "file": run.file.path,
                "env_id": run.machine,
                "header": run.header,
                "footer": run.footer,
            }
            self.records += run.of("part") if run.merged else [part]
        for kind in FACTS:
            self.add_facts(runs, kind)
        self.add_results(runs)


def _source(file: str, header: Record, machine: str) -> Record:
    found = {name: str(header.get(name) or "") for name in ("run_id", "started", "command")}
    return {"file": file, **found, "env_id": machine, "shard": header.get("shard")}


def _sources(runs: List[Run]) -> Iterator[Record]:
    for run in runs:
        if run.merged:
            for part in run.of("part"):
                yield _source(str(part.get("file", "")), part["header"], run.machine)
        else:
            yield _source(run.file.path, run.header, run.machine)


def _common(values: Iterable[Any], otherwise: Any) -> Any:
    first, *others = values
    return first if all(value == first for value in others) else otherwise


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _header(runs: List[Run], kept: List[Run], mixed: bool, argv: List[str]) -> Record:
    tools = [run.header.get("tool") or {} for run in runs]
    vectors = [run.header["vectors"] for run in runs if member(run.header, "vectors.sha256")]
    return {
        "t": "header", "schema": runs[0].header["schema"], "run_id": uuid.uuid4().hex, "started": _now(),
        "tool": {name: value for name, value in tools[0].items() if all(tool.get(name) == value for tool in tools)}
        | {"version": str(_common([tool.get("version", "") for tool in tools], "mixed"))},
        "vectors": vectors[0] if vectors else {"sha256": None}, "command": "merge", "argv": ["posenc", *argv],
        "options": {"mixed": True} if mixed else {},
        "mode": _common([run.header.get("mode", "") for run in runs], "mixed"),
        "by_model": all(run.header.get("by_model") is True for run in runs), "merged": list(_sources(kept)),
    }  # fmt: skip


def _footer(records: List[Record]) -> Record:
    counts = Counter(
        str(record.get("status")) if record["t"] in ("conf", "check") else record["t"] for record in records
    )
    return {"t": "footer", "complete": True, "counts": counts, "finished": _now()}


def merge(files: List[File], mixed: bool, argv: List[str]) -> Tuple[List[Record], List[str]]:
    """Returns the merged records of files, and notes on what was passed over.

    They are posenc.results/2 if one of the files is.
    """
    if any(record.get("schema") == "posenc.results/2" for file in files for record in file.records):
        files = [File(file.path, convert_all(file.records), file.lines, file.cut) for file in files]
    runs = [run for file in files for run in find_runs(file)]
    notes = check(runs, mixed)
    kept = [run for run in runs if not run.passed_over]
    writer = _Writer()
    writer.records.append(_header(runs, kept, mixed, argv))
    sections: Dict[str, Dict[Tuple[str, int], List[Run]]] = {}
    for run in kept:
        sections.setdefault(run.machine, {}).setdefault((run.machine, run.group), []).append(run)
    for machine in sections.values():
        for section in machine.values():
            writer.add_section(section)
    if writer.again:
        notes.append(f"{writer.again} results are there more than once, with the same values: each is kept once")
    return [*writer.records, _footer(writer.records)], notes


# ---- the command ----


def _parser() -> Parser:
    parser = Parser(
        "posenc results merge",
        "Merges the shards of a run, or runs of several machines, into one file of records.",
        "Exit code 6: shards are missing. Examples: posenc results merge [0-3].jsonl -o whole.jsonl; "
        "posenc results merge */results.jsonl -o fleet.jsonl",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="records, as --out jsonl:FILE writes them")
    parser.add_argument("-o", "--output", metavar="PATH", type=Path, help="where it goes (default: standard output)")
    parser.add_argument("--mixed", action="store_true", help="accept shards of one run from several CPUs")
    parser.add_argument("--force", action="store_true", help="overwrite any file at PATH")
    return parser


def main(arguments: List[str]) -> int:
    """Merges files. Returns the exit code."""
    args: argparse.Namespace = _parser().parse_args(arguments)
    records, notes = merge([read(path) for path in args.files], args.mixed, ["results", "merge", *arguments])
    for note in notes:
        print(f"posenc results merge: {note}", file=sys.stderr)
    lines = (json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records)
    data = "".join(f"{line}\n" for line in lines).encode()
    if args.output:
        write_file(args.output, data, b'"posenc.results/', args.force)
        print(f"written: {args.output}", file=sys.stderr)
    else:
        sys.stdout.buffer.write(data)
    return 0
