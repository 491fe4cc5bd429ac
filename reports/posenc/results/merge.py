"""posenc results merge: shards become the run that they are shares of; other runs follow one another as they are.

"posenc verify --shard 0/2" and "--shard 1/2" write a file each, whose headers have shard {"i": 0, "n": 2} and
{"i": 1, "n": 2}. Merged, they have the records of "posenc verify". Files that do not belong together are rejected by
name.
"""

import json
import sys
from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from ..command import CommandError, Parser, write_output
from ..records import KEYS, MARKER, Record, dump, grouped, load, member, number
from ..terminal import escape_hidden

MISSING = 6  # exit code: shards are missing
MOST_SHARDS = 1_000_000
_FACT_KINDS = ("env", "kernel", "backend", "model")  # kinds of records that are written once for all shards
# Members of headers that all shards of a run share.
_SHARED_MEMBERS = ("mode", "tool.version", "tool.commit", "tool.dirty", "vectors.sha256", "shard.n", "seed")


class Run(NamedTuple):
    """A run in a file: its header, its records and its footer."""

    path: str
    header: Record
    records: List[Record]
    footer: Record

    @property
    def machine(self) -> str:
        """The env_id of its machine; "" if no record states it."""
        return next((str(record["env_id"]) for record in self.records if record["t"] == "env"), "")

    @property
    def command(self) -> str:
        """The command of posenc that made it, such as verify."""
        return str(self.header.get("command") or "run")

    @property
    def is_complete(self) -> bool:
        """True if it was not interrupted."""
        return self.footer.get("complete") is True

    def group(self, mixed: bool) -> Any:
        """Returns a key that all shards of a run share, and no other run. With `mixed` they may be of several CPUs."""
        return (self.command, "" if mixed else self.machine) if "shard" in self.header else id(self.header)


def find_runs(path: str, records: List[Record]) -> Iterator[Run]:
    """Yields the runs of a file. Rejects one that names no machine or has a shard that there is not."""
    starts = [at for at, record in enumerate(records) if record["t"] == "header"]
    for start, end in zip(starts, [*starts[1:], len(records)]):
        header, *results = records[start:end]
        footer = results.pop() if results and results[-1]["t"] == "footer" else {}
        run = Run(path, header, results, footer)
        if any(record["t"] == "footer" for record in results):
            raise CommandError(f"{path}: records follow the footer of a run. Merge files as posenc writes them.")
        if not run.machine:
            raise CommandError(f"{path}: nothing says which machine it is of. Merge files with their env records.")
        i, n = member(header, "shard.i"), member(header, "shard.n")
        if "shard" in header and not (type(i) is type(n) is int and 0 <= i < n <= MOST_SHARDS):
            got = json.dumps(header["shard"])
            raise CommandError(f"{path}: there is no such shard (got {got}). Expected i from 0 to n - 1.")
        yield run


# ---- checks that files belong together ----


def _settings_of(run: Run, mixed: bool) -> Dict[str, Any]:
    """Returns the settings that all shards of a run must share, by name."""
    found = {name: member(run.header, name) for name in _SHARED_MEMBERS}
    found.update({f"--{name}": value for name, value in (run.header.get("options") or {}).items()})
    builds = [record.get("build") for record in run.records if record["t"] == "env"]
    return found if mixed else {**found, "build": builds[0]}


def _check_alike(first: Run, other: Run, mixed: bool) -> None:
    """Rejects two shards that are not of one run."""
    expected, found = _settings_of(first, mixed), _settings_of(other, mixed)
    for name in {**expected, **found}:
        values = (found.get(name), expected.get(name))
        if values[0] != values[1]:
            here, there = ("none" if v is None else json.dumps(v, separators=(",", ":")) for v in values)
            raise CommandError(
                f"{other.path}: its {name} is {here}, that of {first.path} is {there}. "
                f"Merge shards of one run on {other.machine}."
            )


def _check_distinct(runs: List[Run]) -> None:
    """Rejects a run that is there twice, and runs with other golden vectors."""
    seen: Dict[Any, Run] = {}
    for run in runs:
        name = run.header.get("run_id")
        if name and name in seen:
            raise CommandError(f"{seen[name].path} and {run.path} hold the same run. Give it once.")
        seen[name] = run
    vectors = [(str(digest), run.path) for run in runs if (digest := member(run.header, "vectors.sha256"))]
    for digest, path in vectors[1:]:
        first_digest, first_path = vectors[0]
        if digest != first_digest:
            raise CommandError(
                f"{path}: its vectors are {digest:.12}, those of {first_path} are {first_digest:.12}. "
                "Merge runs with the same golden vectors."
            )


def _check_results(runs: List[Run]) -> None:
    """Rejects a result of a machine that is there twice with other values."""
    seen: Dict[Any, Tuple[Record, Run]] = {}
    for run in runs:
        for record in run.records:
            if record["t"] not in ("check", "bench") or record["case"].endswith("/ended"):  # ends may be many
                continue
            values = {name: value for name, value in record.items() if name != "place"}
            key = (run.machine, record["t"], *(record.get(name) for name in KEYS[record["t"]]))
            first_values, first_run = seen.setdefault(key, (values, run))
            if first_values != values:
                raise CommandError(
                    f"{run.path}: {record['case']} of {record['backend']} on {run.machine} differs from the same in "
                    f"{first_run.path}. Give each result of a machine once."
                )


def _check_complete(shards: List[Run], mixed: bool) -> Iterator[str]:
    """Rejects a run that lacks shards. Yields notes on attempts at a shard that was finished elsewhere."""
    attempts = grouped(shards, lambda run: member(run.header, "shard.i") or 0)
    n = int(member(shards[0].header, "shard.n") or 1)
    what = f"{shards[0].command} on {shards[0].machine}"
    for i, runs in attempts.items():
        complete = [run for run in runs if run.is_complete]
        if not complete:
            again = f"Run posenc {runs[-1].command} again"
            raise CommandError(f"{runs[-1].path}: is partial: its run was interrupted, or goes on. {again}.")
        if len(complete) > 1:
            places = f"{complete[0].path} and in {complete[1].path}"
            raise CommandError(f"shard {i}/{n} of {what} is in {places}. Give it once.")
        for run in runs:
            if not run.is_complete:
                yield f"{run.path} is passed over: shard {i}/{n} did not finish there; {complete[0].path} has it"
    missing = [str(i) for i in range(n) if i not in attempts]
    if missing:
        hint = "" if mixed else " If others ran on another CPU, --mixed accepts what each of them found."
        raise CommandError(
            f"missing: shard{'s' if len(missing) > 1 else ''} {', '.join(missing)} of {n} of {what}. "
            f"Expected 0 to {n - 1}.{hint}", MISSING
        )  # fmt: skip


# ---- the merged records ----


def _join_shards(shards: List[Run], argv: Sequence[str]) -> List[Record]:
    """Returns the shards of a machine as one run: results in its order, and the footer of the noisiest shard."""
    first = shards[0]
    facts: List[Record] = []
    results: List[Record] = []
    for run in shards:
        for record in run.records:
            if record["t"] not in _FACT_KINDS:
                results.append(record)
            elif record["t"] == "backend" and record not in facts and run is not first:
                raise CommandError(
                    f"{run.path}: its backend {record['id']} differs from that of {first.path}. "
                    "Merge shards of one run on one kind of machine."
                )
            elif record not in facts and (record["t"] != "env" or run is first):  # what env measures differs
                facts.append(record)
    facts.sort(key=lambda record: _FACT_KINDS.index(record["t"]))
    results.sort(key=lambda record: record.get("place", 0))
    footers = [run.footer for run in shards]
    noisiest = max(footers, key=lambda footer: number(footer, "noise.others") or number(footer, "noise.load1") or 0.0)
    counts = Counter(record["status"] if record["t"] == "check" else record["t"] for record in results)
    return [
        {**{name: value for name, value in first.header.items() if name != "shard"}, "argv": ["posenc", *argv]},
        *facts,
        *({name: value for name, value in record.items() if name != "place"} for record in results),
        {**noisiest, "counts": counts},
    ]


def merge(
    files: List[Tuple[str, List[Record]]], argv: Sequence[str] = (), *, mixed: bool = False
) -> Tuple[List[Record], List[str]]:
    """Returns the merged records of files, and notes on runs that are passed over.

    `files` are paths with records, `argv` the arguments for the header of merged shards.
    """
    runs = [run for path, found in files for run in find_runs(path, found)]
    records: List[Record] = []
    notes: List[str] = []
    _check_distinct(runs)
    _check_results([run for run in runs if run.is_complete])
    for shards in grouped(runs, lambda run: run.group(mixed)).values():
        complete = [run for run in shards if run.is_complete]
        for run in complete[1:]:
            _check_alike(complete[0], run, mixed)
        notes += _check_complete(shards, mixed)
        for of_machine in grouped(complete, lambda run: run.machine).values():
            first = of_machine[0]
            if "shard" in first.header:
                records += _join_shards(of_machine, argv)
            else:
                records += [first.header, *first.records, first.footer]
    return records, notes


def main(arguments: List[str]) -> int:
    """Runs posenc results merge. Returns the exit code."""
    parser = Parser(
        "posenc results merge",
        "Merges the shards of a run, or runs of several machines, into one file.",
        "Exit code 6: shards are missing.\n\nExamples\n  posenc results merge [0-3].jsonl -o whole.jsonl\n"
        "  posenc results merge */results.jsonl -o fleet.jsonl",
    )
    parser.add_records()
    parser.add_output()
    parser.add_argument("--mixed", action="store_true", help="accept shards of one run from several CPUs")
    args = parser.parse_args(arguments)
    files = [(escape_hidden(path), load(path)) for path in args.files]
    records, notes = merge(files, ["results", "merge", *arguments], mixed=args.mixed)
    for note in notes:
        print(f"posenc results merge: {note}", file=sys.stderr)
    write_output(args.output, dump(records), MARKER, force=args.force)
    return 0
