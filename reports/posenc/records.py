"""Files of records: JSON Lines, as results.schema.json has them."""

import json
from dataclasses import dataclass
from typing import Any, List, NoReturn, Optional

from .command import CommandError, read_text
from .convert import Record, convert_all
from .show import is_plain, plain

SCHEMAS = ("posenc.results/1", "posenc.results/2")


@dataclass(frozen=True)
class File:
    """What a file holds: its records as they were written, the number of its lines, and whether the last was cut."""

    path: str
    records: List[Record]
    lines: int
    cut: bool


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _parse(line: str, number: int, path: str) -> Record:
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
    if record["t"] == "header" and record.get("schema") not in SCHEMAS:
        raise CommandError(
            f"the schema of the records is unknown (got '{record.get('schema')}' in '{path}'). "
            f"Expected {' or '.join(reversed(SCHEMAS))}."
        )
    return record


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {plain(name): _plain(member) for name, member in value.items()}
    return value


def read(path: str) -> File:
    """Reads the records of a file, or of standard input (-), as they were written."""
    return parse(read_text(path, "records"), path)


def parse(text: str, path: str) -> File:
    """Returns the records of a text as they were written. Messages name its `path`.

    The last line may be incomplete, as a run that was killed leaves it. Characters that a terminal obeys, and
    those that a reader does not see, are escaped.
    """
    path_shown, lines = plain(path), text.split("\n")
    records = []
    last = lines.pop()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            record = _parse(line, number, path_shown)
            records.append(record if "\\" not in line and is_plain(line) else _plain(record))
    cut: Optional[bool] = bool(last.strip())
    if cut:
        try:
            records.append(_plain(_parse(last, len(lines) + 1, path_shown)))
            cut = False
        except CommandError:
            pass
    if not records:
        raise CommandError(f"the file holds no records (got '{path_shown}').")
    return File(path_shown, records, len(lines) + bool(last), bool(cut))


def load(path: str) -> List[Record]:
    """Reads the records of a file, of either schema, as posenc.results/2: see read()."""
    return newest(read(path))


def newest(file: File) -> List[Record]:
    """Returns the records of a file, of either schema, as posenc.results/2."""
    if file.records[0]["t"] != "header":
        raise CommandError(f"the first record is no header (got '{file.path}').")
    return convert_all(file.records)


def dump(records: List[Record]) -> str:
    """Returns records as JSON Lines."""
    return "".join(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n" for record in records)
