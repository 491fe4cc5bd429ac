"""Text and tables for a terminal. Rich is imported when something is printed: it takes a third of the time to start."""

from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, TextIO

if TYPE_CHECKING:
    from rich.console import Console as Console
    from rich.table import Table as Table
else:
    Console = Table = Any

RUNNER = "##["  # begins a command of GitHub's runners, wherever it stands
WIDEST = 10_000  # of what is no terminal: a file or a pipe, which cuts nothing


def guarded(text: str) -> str:
    """Returns a text that no runner of GitHub takes for a command."""
    text = text.replace(RUNNER, "#\\#[")
    return f"\\{text}" if text.lstrip().startswith("::") else text


def console(stderr: bool = False, file: Optional[TextIO] = None) -> Console:
    """Returns a console that respects NO_COLOR and the terminal's width, and gives GitHub's runners no commands."""
    from rich.console import Console

    class Terminal(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*(guarded(item) if isinstance(item, str) else item for item in objects), **options)

    terminal = Terminal(stderr=stderr, file=file, highlight=False, markup=False, emoji=False)
    if not terminal.is_terminal:
        terminal.width = WIDEST
    return terminal


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Returns a table. Columns that begin with > are flush right."""
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        side: Literal["left", "right"] = "right" if name.startswith(">") else "left"
        drawn.add_column(guarded(name.lstrip(">")), justify=side, overflow="fold")
    for row in rows:
        drawn.add_row(*map(guarded, row))
    return drawn
