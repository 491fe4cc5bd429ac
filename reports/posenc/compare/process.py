"""Runs `posenc pair`, one process of a comparison, and reads its records as they come.

If a process crashes or hangs, that is the result of the pair that it was timing.
"""

import json
import math
import os
import re
import select
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..command import CommandError
from ..engine import SIGNALS, handled
from ..records import Record

POLL_S = 0.1  # interval at which a silent process is polled
SILENCE_S = 300.0  # a process that prints nothing for longer hangs; no first call and its check take as long
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS)


class Interrupted(BaseException):
    """Raised by a signal. Its argument is the number; the command ends after it has written the results so far."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Turns the first SIGINT, SIGTERM or SIGHUP into Interrupted; the second one ends the program."""

    def interrupt(number: int, frame: Optional[FrameType]) -> None:
        for other in SIGNALS:
            if signal.getsignal(other) is interrupt:
                signal.signal(other, signal.SIG_DFL)
        raise Interrupted(number)

    with handled(interrupt):
        yield


class Ended(NamedTuple):
    """End of a process: how it failed ("" if it was stopped or complete), its error message and its exit status."""

    how: str
    message: str
    status: int


def _describe_end(status: int) -> str:
    if status >= 0:
        return f"the process was ended by exit({status})"
    name = signal.strsignal(-status) if -status in signal.valid_signals() else "unknown"
    outside = "" if -status in FAULTS else ", which came from outside"
    return f"the process ended by signal {-status} ({name}){outside}"


class Program(NamedTuple):
    """The C program, and its arguments for a comparison: the selection and both builds."""

    path: str
    arguments: List[str]

    def run(
        self, options: Sequence[str], take: Callable[[Record], None], stop: Callable[[], bool] = lambda: False,
        pairs: Sequence[Tuple[str, str]] = (), watched: bool = False,
    ) -> Ended:  # fmt: skip
        """Runs `posenc pair` once and hands its records to `take`.

        `pairs` are the cases and backends to time or count. The process is killed when `stop` returns true, which is
        called several times per second, and if it is `watched` and prints nothing for SILENCE_S.
        """
        reader, writer = os.pipe()
        command = [self.path, "pair", *options, "--parent", str(os.getpid()), "--out", f"jsonl:/dev/fd/{writer}"]
        command += ["--pairs", "-"] if pairs else []
        with tempfile.TemporaryFile("w+", errors="replace") as errors, tempfile.TemporaryFile("w+") as orders:
            orders.write("".join(f"{case} {backend}\n" for case, backend in pairs))
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
            try:
                how = _read(child, reader, take, stop, SILENCE_S if watched else math.inf)
            finally:
                if child.poll() is None:
                    with suppress(OSError):  # it has just ended
                        os.killpg(child.pid, signal.SIGKILL)
                os.close(reader)
                status = child.wait()
            errors.seek(0)
            messages = re.findall(r"^posenc pair: (?:error: )?(.*)", errors.read(), re.MULTILINE)
            return Ended(_describe_end(status) if how is None else how, messages[-1] if messages else "", status)


def _read(
    child: "subprocess.Popen[bytes]", reader: int, take: Callable[[Record], None], stop: Callable[[], bool],
    silence_s: float,
) -> Optional[str]:  # fmt: skip
    """Reads records until a process has ended, is stopped or hangs.

    Returns how it failed, "" if it was stopped or printed its footer, or None if it ended before its footer.
    """
    partial_line, last_output, finished = b"", time.monotonic(), False
    while not stop():
        has_exited = child.poll() is not None  # one of its children may keep the pipe open
        if select.select([reader], [], [], 0 if has_exited else POLL_S)[0]:
            block = os.read(reader, 1 << 16)
            if not block:
                child.wait()
                break
            last_output = time.monotonic()
            *lines, partial_line = (partial_line + block).split(b"\n")
            for line in lines:
                try:
                    record = json.loads(line)
                except ValueError:
                    return "printed a line that is no record"
                finished = record["t"] == "footer" and record["complete"]
                take(record)
        elif has_exited:
            break
        elif time.monotonic() - last_output > silence_s:
            return f"printed nothing for {silence_s:g} s"
    else:
        return ""
    return "" if finished else None
