"""Records: JSON Lines, which results.schema.json describes. Reads and writes them, and groups them by machine.

The member t of a record is its kind. A run writes a header, env (the machine), results such as check and bench, and a
footer. number({"t": "bench", "ci": {"lo": 98.0}}, "ci.lo") is 98.0.
"""

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, Iterator, List, NoReturn, Optional, Sequence, TypeVar

from .command import CommandError, read_text
from .terminal import escape_hidden, is_visible

Item = TypeVar("Item")
Record = Dict[str, Any]
# Members that identify a result, by kind of record.
KEYS: Dict[str, Sequence[str]] = {
    "check": ("case", "backend", "suite"), "bench": ("case", "backend", "threads"), "pair": ("case", "backend"),
    "count": ("case", "backend", "build", "vector_width"), "overhead": ("case",), "model": ("name",),
    "kernel": ("id",), "backend": ("id",), "change": ("case", "backend", "what", "suite"),
}  # fmt: skip
# Defaults of members that results of other programs may lack.
DEFAULTS: Record = {"dtype": "f32", "numerics": "given", "family": ""}
SCHEMA = "posenc.results/2"
MARKER = b'"posenc.results/'  # in the first record of every file

# ---- files ----


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _parse(line: str, number: int, path: str) -> Record:
    """Returns the record of a line. Messages name the number of the line and the path."""
    try:
        record = json.loads(line, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} in column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise CommandError(
            f"line {number} is no record: {why} (got '{path}'). "
            "Expected JSON Lines, as posenc bench -o results.jsonl writes them."
        ) from None
    if not isinstance(record, dict) or not isinstance(record.get("t"), str):
        raise CommandError(f"line {number} is no record: it has no member t (got '{path}').")
    if record["t"] == "header" and record.get("schema") != SCHEMA:
        raise CommandError(
            f"the schema of the records is unknown (got '{record.get('schema')}' in '{path}'). Expected {SCHEMA}."
        )
    return record


def _escape(value: Any) -> Any:
    """Returns a value with the control characters and invisible characters of its texts escaped."""
    if isinstance(value, str):
        return escape_hidden(value)
    if isinstance(value, list):
        return [_escape(item) for item in value]
    if isinstance(value, dict):
        return {escape_hidden(name): _escape(item) for name, item in value.items()}
    return value


def parse(text: str, path: str) -> List[Record]:
    """Returns the records of a text. Messages name its `path`.

    The last line may be incomplete, as a run that was killed leaves it. Control characters and invisible characters
    are escaped.
    """
    path, lines = escape_hidden(path), text.split("\n")
    records: List[Record] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                record = _parse(line, number, path)
            except CommandError:
                if number < len(lines):
                    raise
            else:
                records.append(record if "\\" not in line and is_visible(line) else _escape(record))
    if not records:
        raise CommandError(f"the file holds no records (got '{path}').")
    if records[0]["t"] != "header":
        raise CommandError(f"the first record is no header (got '{path}').")
    return records


def load(path: str) -> List[Record]:
    """Reads the records of a file, or of standard input (-): see parse()."""
    return parse(read_text(path, "records"), path)


@contextmanager
def members_expected() -> Iterator[None]:
    """Turns errors of code that reads records into a message: a member is missing, or of another type."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CommandError(
            f"a record lacks a member or has one of another type: {error!r}. results.schema.json describes records."
        ) from None


def dump(records: List[Record]) -> str:
    """Returns records as JSON Lines."""
    return "".join(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n" for record in records)


# ---- machines and members ----


@dataclass
class Machine:
    """The results of one machine. If a result occurs twice, its last record counts."""

    env: Record
    header: Record = field(default_factory=dict)  # of the last run
    headers: List[Record] = field(default_factory=list)  # of all runs
    kinds: Dict[str, List[Record]] = field(default_factory=dict)  # other records by kind: of() returns them
    runs: int = 0
    finished: int = 0  # runs with a complete footer
    label: str = ""  # name of the machine; "" if there is only one

    @property
    def partial(self) -> bool:
        """True if a run of this machine ended early."""
        return self.finished < self.runs

    def of(self, kind: str) -> List[Record]:
        """Returns the records of a kind, in their order."""
        return self.kinds.get(kind, [])


def grouped(items: Iterable[Item], key: Callable[[Item], Any]) -> Dict[Any, List[Item]]:
    """Groups items by the value of `key`. Groups and items keep their order."""
    groups: Dict[Any, List[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def member(record: Any, path: str) -> Any:
    """Returns the member at a path of names joined by dots; None where there is none."""
    for name in path.split("."):
        if not isinstance(record, dict):
            return None
        record = record.get(name)
    return record


def number(record: Any, path: str) -> Optional[float]:
    """Returns the number at a path, from the strings nan, inf and -inf as well; None where there is none."""
    value = member(record, path)
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _keep_last(records: List[Record], names: Sequence[str]) -> List[Record]:
    """Returns the last of the records whose members `names` are equal, in the order of the records."""
    last = {tuple(record.get(name) for name in names): at for at, record in enumerate(records)}
    return [records[at] for at in sorted(last.values())]


def machines(records: List[Record]) -> List[Machine]:
    """Returns the machines of records, in the order of their first runs."""
    found: Dict[str, Machine] = {}
    header: Record = {}
    current: Optional[Machine] = None
    for record in records:
        kind = record["t"]
        if kind == "header":
            header, current = record, None
        elif kind == "env":
            key = str(record.get("env_id", ""))
            current = found.setdefault(key, Machine(record))
            current.env = record
            if current.header is not header:
                current.header = header
                current.headers.append(header)
                current.runs += 1
        elif current is not None:
            current.finished += kind == "footer" and bool(record.get("complete"))
            complete = {**DEFAULTS, **record} if kind in ("check", "bench", "pair", "change", "count") else record
            current.kinds.setdefault(kind, []).append(complete)
    for name, machine in found.items():
        machine.label = name if len(found) > 1 else ""
        for kind, names in KEYS.items():
            if kind in machine.kinds:
                machine.kinds[kind] = _keep_last(machine.kinds[kind], names)
    return list(found.values())
