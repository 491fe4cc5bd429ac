"""Text and tables for a terminal."""

from typing import Sequence

from rich.console import Console
from rich.table import Table

WIDEST = 10_000  # of what is no terminal: a file or a pipe, which cuts nothing


def console(stderr: bool = False) -> Console:
    """Returns a console. It respects NO_COLOR and the width of the terminal, and changes no word."""
    terminal = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not terminal.is_terminal:
        terminal.width = WIDEST
    return terminal


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Returns a table. Columns that begin with > are flush right."""
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        drawn.add_column(name.lstrip(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    return drawn
