"""Runs `posenc pair`, one process of a comparison, and reads its records as they come.

A process that ends before its last record, or that hangs, is a result: of the pair that it was at.
"""

import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import IO, Callable, Iterator, List, Optional, Sequence, Tuple

from ..command import CommandError
from ..convert import Record
from ..engine import SIGNALS

LOOK_S = 0.1  # between looks at a process that prints nothing
SILENCE_S = 120.0  # of its own time: longer than any first call and its check
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS)


class Interrupted(BaseException):
    """A signal that ends the command after it has written what there is."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def interruptible() -> Iterator[None]:
    """Turns the first SIGINT, SIGTERM or SIGHUP into Interrupted; the second one ends the program."""
    # nohup keeps its promise
    before = {number: handler for number in SIGNALS if (handler := signal.getsignal(number)) != signal.SIG_IGN}

    def interrupt(number: int, frame: Optional[FrameType]) -> None:
        for other in before:
            signal.signal(other, signal.SIG_DFL)
        raise Interrupted(number)

    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class Ended:
    """How a process ended: with its last record, stopped by the caller, or `how`."""

    finished: bool = False
    stopped: bool = False
    how: str = ""
    message: str = ""  # its error message
    status: int = 0


class _Silence:
    """Measures how long a process prints nothing: CPU time that it used, and time in which it slept.

    A process that waits for a CPU uses neither.
    """

    def __init__(self, pid: int) -> None:
        self.pid, self.seconds = pid, 0.0
        self.last = self._look()

    def _look(self) -> Tuple[float, float, bool]:
        """Returns the time, the CPU time that the process used, and whether it sleeps."""
        now = time.monotonic()
        try:
            with open(f"/proc/{self.pid}/stat", encoding="latin-1") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # no Linux: all time counts
            return now, now, False
        return now, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), fields[0] in "STZ"

    def grow(self) -> float:
        """Adds the time since the last look. Returns all seconds."""
        (before, cpu_before, _), self.last = self.last, self._look()
        now, cpu, asleep = self.last
        self.seconds += cpu - cpu_before
        if asleep and cpu == cpu_before:
            self.seconds += min(now - before, 1.0)
        return self.seconds


def _how(status: int) -> str:
    """Returns words for the end of a process that had not finished."""
    if status >= 0:
        return f"the process was ended by exit({status})"
    name = signal.strsignal(-status) if -status in signal.valid_signals() else "unknown"
    outside = "" if -status in FAULTS else ", which came from outside"
    return f"the process ended by signal {-status} ({name}){outside}"


def _message(errors: IO[str]) -> str:
    """Returns the error message of a process: its line that begins with the command."""
    errors.seek(0)
    found = re.findall(r"^posenc pair: (?:error: )?(.*)", errors.read(), re.MULTILINE)
    return str(found[-1]) if found else ""


@dataclass(frozen=True)
class Program:
    """The C program with the builds and the selection of a comparison."""

    path: str
    arguments: List[str]
    silence_s: float = SILENCE_S

    def run(
        self, options: Sequence[str], take: Callable[[Record], None], stop: Callable[[], bool] = lambda: False,
        pairs: Optional[Sequence[Tuple[str, str]]] = None, watched: bool = False,
    ) -> Ended:  # fmt: skip
        """Runs `posenc pair` once and hands its records to `take`.

        `pairs` are those that are timed or counted. `stop` is asked several times per second. A process
        that is `watched` may not be silent for long.
        """
        reader, writer = os.pipe()
        command = [self.path, "pair", *options, "--parent", str(os.getpid()), "--out", f"jsonl:/dev/fd/{writer}"]
        command += ["--pairs", "-"] if pairs is not None else []
        with tempfile.TemporaryFile("w+", errors="replace") as errors, tempfile.TemporaryFile("w+") as orders:
            orders.write("".join(f"{case} {backend}\n" for case, backend in pairs or ()))
            orders.seek(0)
            try:
                child = subprocess.Popen(
                    [*command, *self.arguments], stdin=orders, stdout=subprocess.DEVNULL, stderr=errors,
                    pass_fds=(writer,), start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                os.close(reader)
                raise CommandError(f"the program cannot be run: {error.strerror} (got '{self.path}').") from None
            finally:
                os.close(writer)
            ended = Ended()
            try:
                self._read(child, reader, take, stop, watched, ended)
            finally:
                if child.poll() is None and (ended.stopped or ended.how or not ended.finished):
                    with suppress(OSError):  # it has just ended
                        os.killpg(child.pid, signal.SIGKILL)
                os.close(reader)
                ended.status = child.wait()
            if not ended.finished and not ended.how:
                ended.how = _how(ended.status)
            ended.message = _message(errors)
            return ended

    def _read(
        self, child: "subprocess.Popen[bytes]", reader: int, take: Callable[[Record], None],
        stop: Callable[[], bool], watched: bool, ended: Ended,
    ) -> None:  # fmt: skip
        """Reads records until the process has ended, is stopped or hangs."""
        part, silence = b"", _Silence(child.pid)
        while True:
            gone = child.poll() is not None  # a process that it left may hold the pipe
            if select.select([reader], [], [], 0 if gone else LOOK_S)[0]:
                block = os.read(reader, 1 << 16)
                if not block:
                    child.wait()
                    return
                silence = _Silence(child.pid)
                *lines, part = (part + block).split(b"\n")
                for line in lines:
                    try:
                        record = json.loads(line)
                    except ValueError:
                        ended.how = "printed a line that is no record"
                        return
                    ended.finished = ended.finished or (record["t"] == "footer" and record["complete"])
                    take(record)
            elif gone:
                return
            if stop():
                ended.stopped = True
                return
            if watched and silence.grow() > self.silence_s:
                ended.how = f"did not return within {silence.seconds:.3g} s of CPU time or sleep"
                return
