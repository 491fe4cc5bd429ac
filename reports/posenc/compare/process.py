"""Runs `posenc pair`, one process of a comparison, and reads its records as they come.

A process that ends before its last record, or that hangs, is a result: of the pair that it was at.
"""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import IO, Callable, Optional, Sequence, Tuple

from ..command import CommandError
from ..convert import Record, convert

LOOK_S = 0.1  # between looks at a process that prints nothing
SILENCE_S = 120.0  # of its own time: longer than any first call and its check
FAULTS = tuple(
    getattr(signal, name) for name in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS")
)


@dataclass
class Ended:
    """How a process ended: with its last record, stopped by the caller, or `how`."""

    finished: bool = False
    stopped: bool = False
    how: str = ""
    message: str = ""  # its error message
    status: int = 0


class _Silence:
    """Measures how long a process prints nothing: CPU time that it used, or time in which it slept.

    A process that waits for a CPU uses neither.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.begin()

    def begin(self) -> None:
        """Starts again: the process printed something."""
        self.cpu_s, self.slept_s = self._look()[0], 0.0
        self.last_cpu_s, self.last = self.cpu_s, time.monotonic()

    def _look(self) -> Tuple[float, bool]:
        try:
            with open(f"/proc/{self.pid}/stat", encoding="latin-1") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # no Linux: all time counts
            return time.monotonic(), False
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), fields[0] in "STZ"

    def lasts(self, most_s: float) -> str:
        """Returns words if it has lasted too long."""
        cpu_s, asleep = self._look()
        now = time.monotonic()
        if asleep and cpu_s == self.last_cpu_s:
            self.slept_s += min(now - self.last, 1.0)
        self.last_cpu_s, self.last = cpu_s, now
        if cpu_s - self.cpu_s > most_s:
            return f"did not return within {cpu_s - self.cpu_s:.3g} s of CPU time"
        return f"did not return within {self.slept_s:.3g} s, in which it slept" if self.slept_s > most_s else ""


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
    lines = [line for line in errors.read().splitlines() if line.startswith("posenc pair: ")]
    return lines[-1][len("posenc pair: ") :].removeprefix("error: ") if lines else ""


class Program:
    """The C program with the builds and the selection of a comparison."""

    def __init__(self, path: str, arguments: Sequence[str], silence_s: float = SILENCE_S) -> None:
        self.path, self.arguments, self.silence_s = path, list(arguments), silence_s

    def run(
        self,
        options: Sequence[str],
        take: Callable[[Record], None],
        stop: Callable[[], bool] = lambda: False,
        pairs: Optional[Sequence[Tuple[str, str]]] = None,
        watched: bool = False,
    ) -> Ended:
        """Runs `posenc pair` once and hands its records to `take`, in the names of posenc.results/2.

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
                    _kill(child)
                os.close(reader)
                ended.status = child.wait()
            if not ended.finished and not ended.how:
                ended.how = _how(ended.status)
            ended.message = _message(errors)
            return ended

    def _read(
        self,
        child: "subprocess.Popen[bytes]",
        reader: int,
        take: Callable[[Record], None],
        stop: Callable[[], bool],
        watched: bool,
        ended: Ended,
    ) -> None:
        """Reads records until the process has ended, is stopped or hangs."""
        part, old = b"", False
        silence = _Silence(child.pid)
        while True:
            gone = child.poll() is not None  # a process that it left may hold the pipe
            if select.select([reader], [], [], 0 if gone else LOOK_S)[0]:
                block = os.read(reader, 1 << 16)
                if not block:
                    child.wait()
                    return
                silence.begin()
                *lines, part = (part + block).split(b"\n")
                for line in lines:
                    try:
                        record = json.loads(line)
                    except ValueError:
                        ended.how = "printed a line that is no record"
                        return
                    if record["t"] == "header":
                        old = record["schema"] == "posenc.results/1"
                    ended.finished = ended.finished or (record["t"] == "footer" and record["complete"])
                    take(convert(record) if old else record)
            elif gone:
                return
            if stop():
                ended.stopped = True
                return
            ended.how = silence.lasts(self.silence_s) if watched else ""
            if ended.how:
                return


def _kill(child: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        child.kill()
