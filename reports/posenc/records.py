"""Reads and writes records: JSON Lines, which results.schema.json describes."""

import json
from typing import Any, List, NoReturn

from .command import CommandError, read_text
from .convert import convert_all
from .runs import Record
from .terminal import is_visible, escape_hidden

SCHEMAS = ("posenc.results/1", "posenc.results/2")
MARKER = b'"posenc.results/'  # in the first record of every file


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


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return escape_hidden(value)
    if isinstance(value, list):
        return [_escape(item) for item in value]
    if isinstance(value, dict):
        return {escape_hidden(name): _escape(member) for name, member in value.items()}
    return value


def parse(text: str, path: str) -> List[Record]:
    """Returns the records of a text, of either schema, as posenc.results/2. Messages name its `path`.

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
    return convert_all(records)


def load(path: str) -> List[Record]:
    """Reads the records of a file, or of standard input (-): see parse()."""
    return parse(read_text(path, "records"), path)


def dump(records: List[Record]) -> str:
    """Returns records as JSON Lines."""
    return "".join(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n" for record in records)
