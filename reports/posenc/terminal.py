"""Consoles and tables, and escaping of text that a terminal or a CI runner would execute.

console().print(table(["case", ">time"], [["rope_half", "1.20 ms"]])) prints a table, with the times aligned right.
Rich is imported when something is printed: it takes a third of the time to start.
"""

import re
from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, TextIO

if TYPE_CHECKING:
    from rich.console import Console as Console
    from rich.table import Table as Table
else:
    Console = Table = Any

RUNNER = "##["  # begins a command of GitHub's runners anywhere in a line
WIDEST = 10_000  # columns of a file or a pipe, where no line is cut
# Controls, the soft hyphen, marks of direction, blanks without width, separators of lines, marks of annotations, the
# byte order mark, tags, noncharacters and halves of surrogate pairs.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f"
    + "".join(f"{chr(p << 16 | 0xFFFE)}{chr(p << 16 | 0xFFFF)}" for p in range(1, 17))
    + "]"
)


def is_visible(text: str) -> bool:
    """Returns whether a text has neither control nor invisible characters."""
    return not _HIDDEN.search(text)


def escape_hidden(text: str) -> str:
    """Returns a text on one line, with control and invisible characters escaped."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape_runner_commands(text: str) -> str:
    """Returns a text that GitHub's runners do not execute as a command."""
    text = text.replace(RUNNER, "#\\#[")
    return f"\\{text}" if text.lstrip().startswith("::") else text


def console(stderr: bool = False, file: Optional[TextIO] = None) -> Console:
    """Returns a console that respects NO_COLOR and the terminal's width, and escapes commands of GitHub's runners."""
    from rich.console import Console

    class Terminal(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            super().print(
                *(escape_runner_commands(item) if isinstance(item, str) else item for item in objects), **options
            )

    terminal = Terminal(stderr=stderr, file=file, highlight=False, markup=False, emoji=False)
    if not terminal.is_terminal:
        terminal.width = WIDEST
    return terminal


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Returns a table. A column whose name begins with > is aligned right."""
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        side: Literal["left", "right"] = "right" if name.startswith(">") else "left"
        drawn.add_column(escape_runner_commands(name.lstrip(">")), justify=side, overflow="fold")
    for row in rows:
        drawn.add_row(*map(escape_runner_commands, row))
    return drawn
