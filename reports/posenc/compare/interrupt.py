"""Signals that end a command after it has tidied up."""

import signal
from contextlib import contextmanager
from types import FrameType
from typing import Iterator, Optional


class Interrupted(BaseException):
    """A signal that ends the command after it has written what there is."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def interruptible() -> Iterator[None]:
    """Turns the first SIGINT, SIGTERM or SIGHUP into Interrupted; the second one ends the program."""
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {name: signal.getsignal(name) for name in names}

    def interrupt(number: int, frame: Optional[FrameType]) -> None:
        for name in names:
            signal.signal(name, signal.SIG_DFL)
        raise Interrupted(number)

    for name in names:
        if before[name] != signal.SIG_IGN:  # nohup keeps its promise
            signal.signal(name, interrupt)
    try:
        yield
    finally:
        for name in names:
            signal.signal(name, before[name])
