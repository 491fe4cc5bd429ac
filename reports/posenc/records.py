"""Files of records: JSON Lines, as results.schema.json has them."""

import json
import re
from pathlib import Path
from typing import Any, List

from .command import CommandError
from .convert import Record, convert_all


# Controls of a terminal and of the direction of writing, in a string and as JSON writes them.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
SUSPICIOUS = re.compile(CONTROLS.pattern + r"|\\[bfnrtu]")


def _clean(value: Any) -> Any:
    """Returns a value whose strings hold no controls: what others write reaches no terminal as more than text."""
    if isinstance(value, str):
        return CONTROLS.sub(lambda found: " " if found.group() in "\t\n\r" else "\ufffd", value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {_clean(name): _clean(item) for name, item in value.items()} if isinstance(value, dict) else value


def load(path: str) -> List[Record]:
    """Reads the records of a file, of either schema, as posenc.results/2.

    The last line may be incomplete, as a run that was killed leaves it.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"the records cannot be read: {error.strerror} (got '{path}').") from None
    except UnicodeDecodeError:
        raise CommandError(f"the file holds no records: it is not UTF-8 (got '{path}').") from None
    lines = text.split("\n")
    records = []
    for number, line in enumerate(lines[:-1], start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise CommandError(
                f"line {number} is no record: {error} (got '{path}'). "
                "Expected JSON Lines, as posenc bench --out jsonl writes them."
            ) from None
        if not isinstance(record, dict) or not isinstance(record.get("t"), str):
            raise CommandError(f"line {number} is no record: it has no member t (got '{path}').")
        records.append(_clean(record) if SUSPICIOUS.search(line) else record)
    if not records:
        raise CommandError(f"the file holds no records (got '{path}').")
    schema = records[0].get("schema")
    if schema not in ("posenc.results/1", "posenc.results/2"):
        raise CommandError(
            f"the schema of the records is unknown (got '{schema}' in '{path}'). "
            "Expected posenc.results/2 or posenc.results/1."
        )
    return convert_all(records)


def dump(records: List[Record]) -> str:
    """Returns records as JSON Lines."""
    return "".join(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n" for record in records)
