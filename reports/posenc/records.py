"""Files of records: JSON Lines, as results.schema.json has them."""

import json
from pathlib import Path
from typing import List

from .command import CommandError
from .convert import Record, convert_all


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
    return parse(text, path)


def parse(text: str, path: str) -> List[Record]:
    """Returns the records of a text, of either schema, as posenc.results/2. Messages name its `path`."""
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
        records.append(record)
    if not records:
        raise CommandError(f"the file holds no records (got '{path}').")
    schema = records[0].get("schema")
    if schema not in ("posenc.results/1", "posenc.results/2"):
        raise CommandError(
            f"the schema of the records is unknown (got '{schema}' in '{path}'). "
            "Expected posenc.results/2 or posenc.results/1."
        )
    return convert_all(records)


def size(count: float) -> str:
    """Returns bytes as people write them: 512 KiB."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    at = 0
    while count >= 1024 and at < len(units) - 1:
        count /= 1024
        at += 1
    return f"{count:.3g} {units[at]}"


def times(ratio: float) -> str:
    """Returns a ratio with the digits that mean something: 1.24x, 8.8x, 75x."""
    return f"{ratio:.{2 if ratio < 2 else 1 if ratio < 10 else 0}f}x"
