"""Progress on the terminal."""

import shutil
import sys
import time


class Progress:
    """Shows on stderr, if that is a terminal, how far a comparison is."""

    def __init__(self) -> None:
        self.total, self.done, self.notes, self.where = 0, 0, "", ""
        self.begun = self.last = time.monotonic()
        self.shown = False

    def step(self, case: str, backend: str) -> None:
        """Counts a result."""
        self.done += 1
        self.where = f"{backend} {case}"
        self.show()

    def show(self) -> None:
        """Shows the state, at most five times a second."""
        now = time.monotonic()
        if not sys.stderr.isatty() or now < self.last + 0.2:
            return
        self.last, self.shown = now, True
        of = f" of {self.total}" if self.total else ""
        line = f"posenc compare: {self.done}{of}{self.notes}, {now - self.begun:.0f} s  {self.where}"
        width = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r{line[: width - 1]:<{width - 1}}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Removes the line."""
        if self.shown:
            width = shutil.get_terminal_size().columns
            sys.stderr.write(f"\r{'':<{width - 1}}\r")
            sys.stderr.flush()
            self.shown = False
