"""Texts without what a terminal obeys, and counts. units.py has numbers with a unit."""

import re

# Controls, the soft hyphen, marks of direction, blanks without width, separators of lines, marks of annotations, the
# byte order mark, tags, noncharacters and halves of surrogate pairs.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\U000e0000-\U000e007f"
    + "".join(f"{chr(p << 16 | 0xFFFE)}{chr(p << 16 | 0xFFFF)}" for p in range(1, 17))
    + "]"
)


def is_plain(text: str) -> bool:
    """Returns whether a text has no control and no invisible characters."""
    return not _HIDDEN.search(text)


def plain(text: str) -> str:
    """Returns a text on one line with control and invisible characters escaped, as others may have written it."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def count(number: float) -> str:
    """Returns a count with its thousands apart: 16 666."""
    return f"{number:,.0f}".replace(",", " ") if abs(number) < 1e15 else f"{number:.3g}"


def many(number: int, noun: str) -> str:
    """Returns a count with its noun: 1 check, 16 666 checks."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"
