"""Runs the C program, and reads its tables and records: at its end, or as they come.

Engine().records("bench", "--quick") returns the records of posenc bench and its exit code. posenc compare uses Program,
which hands each record on when it comes, and survives a crash or a hang of the C program.
"""

import csv
import json
import math
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .command import CommandError
from .records import Record, grouped, parse

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
POLL_S = 0.1  # interval at which a silent process is polled
SILENCE_S = 300.0  # a process that prints nothing for longer hangs; no first call and its check take as long
# Signals that a fault of the program itself raises.
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS)

# ---- signals ----


@contextmanager
def handled(handler: Callable[[int, Optional[FrameType]], None]) -> Iterator[None]:
    """Installs a handler of signals. Ignored signals stay ignored, as under nohup."""
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    replaced = {number: known for number, known in previous.items() if known != signal.SIG_IGN}
    for number in replaced:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, known in replaced.items():
            signal.signal(number, known)


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


# ---- runs to their end ----


def _run_to_end(words: Sequence[str]) -> Tuple[bytes, int]:
    """Runs a program and forwards signals to it, so that it can end in order. Returns its output and its status.

    The program has a session of its own, so that Ctrl-C reaches it once. A signal that arrives while it starts is
    forwarded later. Python handles a signal that arrives just before a wait only when the wait ends, so each wait lasts
    a second.
    """
    child: Optional["subprocess.Popen[bytes]"] = None
    early: List[int] = []  # signals that came before the child

    def forward(number: int, _: Optional[FrameType]) -> None:
        if child:
            child.send_signal(number)
        else:
            early.append(number)

    with handled(forward):
        try:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise CommandError(f"the program cannot be run: {error.strerror} (got '{words[0]}').") from None
        for missed in early:
            child.send_signal(missed)
        while True:
            try:
                return child.communicate(timeout=1)[0], child.returncode
            except subprocess.TimeoutExpired:
                pass


class Engine:
    """The C program: POSENC_PROGRAM, which it sets when it starts this package, that of a wheel, or posenc on PATH."""

    def __init__(self) -> None:
        in_wheel = shutil.which("posenc", path=str(Path(__file__).parent / "program"))
        found = os.environ.get("POSENC_PROGRAM") or in_wheel or shutil.which("posenc")
        if not found:
            raise CommandError(
                "the program posenc is not on PATH. Install it, or set POSENC_PROGRAM=PATH. "
                "A package of pip has it if jansson and pkg-config were there: libjansson-dev, pkg-config."
            )
        self.program = Path(found)

    def run(self, *arguments: str) -> str:
        """Runs the program and returns its standard output. Raises CommandError if it fails."""
        try:
            done = subprocess.run(
                [str(self.program), *arguments], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                check=False,
            )  # fmt: skip
        except OSError as error:
            raise CommandError(f"the program cannot be run: {error.strerror} (got '{self.program}').") from None
        if done.returncode != 0:
            reason = done.stderr.strip().removeprefix(f"posenc {arguments[0]}: ")
            reason = reason or f"{self.program} ended without a message"
            raise CommandError(reason, done.returncode if done.returncode > 0 else 128 - done.returncode)
        sys.stderr.write(done.stderr)
        return done.stdout

    def records(self, *arguments: str) -> Tuple[List[Record], int]:
        """Runs a command that prints records. Returns them, and its exit code.

        Its messages and its progress go to standard error. If a signal ends it, it still prints its records so far
        and a footer; the exit code is then 128 plus the signal's number.
        """
        words = [str(self.program), *arguments]
        output, status = _run_to_end(words)
        if status < 0:
            raise CommandError(f"the program was ended by signal {-status} (got '{self.program}').", 128 - status)
        if status and not output:
            return [], status  # the program gave the reason
        return parse(output.decode("utf-8", "replace"), " ".join(words)), status

    def measurements(self, *arguments: str) -> Tuple[List[Record], int]:
        """Runs a command that times this machine, as records() does. Rejects an emulated one."""
        emulator = os.environ.get("POSENC_EMULATOR")  # set by the program that started this package
        if emulator:
            raise CommandError(f"nothing is measured here: {emulator}.", 77)
        return self.records(*arguments)

    def columns(self, table: str, *options: str) -> List[Dict[str, str]]:
        """Returns the lines of `posenc table TABLE`, such as frequencies, by the names of their columns."""
        return list(csv.DictReader(self.run("table", table, *options).splitlines()))

    def error_curves(self, *options: str) -> List[Record]:
        """Returns the largest errors of rope_table by position: a record for each curve.

        Backends of a numerics mode share one curve, the larger, if their errors differ by less than the width of a line
        or, in f32 modes, by less than the rounding of a cosine. The curve is then called "exact: avx2, scalar".
        """
        curves: List[Record] = []
        lines = self.columns("errors", *options)
        groups = grouped(lines, lambda row: (row["numerics"], row["storage"], row["backend"]))
        for (numerics, storage, backend), rows in groups.items():
            errors, rounding = [float(row["error"]) for row in rows], 0.0 if numerics == "exact" else 2.0**-22
            mode, name = ("storage", f"{numerics}, {storage}") if storage else (numerics, numerics)
            like = [curve for curve in curves if curve["curve"] == name and _alike(curve["errors"], errors, rounding)]
            if like:
                like[0]["errors"] = [*map(max, like[0]["errors"], errors)]
                like[0]["backends"].append(backend)
                continue
            positions = [float(row["position"]) for row in rows]
            curves.append({"t": "curve", "kernel": "rope_table", "curve": name, "numerics": mode,
                           "positions": positions, "errors": errors, "backends": [backend]})  # fmt: skip
        for of_name in grouped(curves, lambda curve: curve["curve"]).values():
            for curve in of_name:
                _name_curve(curve, is_only=len(of_name) == 1)
        return curves


def _alike(some: Sequence[float], others: Sequence[float], rounding: float) -> bool:
    """Returns whether errors at the same positions differ by at most 1 % and the rounding."""
    return all(abs(a - b) <= 0.01 * max(a, b) + rounding for a, b in zip(some, others))


def _name_curve(curve: Record, is_only: bool) -> None:
    """Adds the first backends to the name of a curve. The only one of its mode has no backend if several share it."""
    backends = curve.pop("backends")
    curve["backend"] = "" if is_only and len(backends) > 1 else backends[0]
    if backends[0]:
        more = f" and {len(backends) - 3} more" if len(backends) > 4 else ""
        curve["curve"] += ": " + ", ".join(backends[:3] if more else backends) + more


# ---- records as they come: one process of a comparison ----


class Ended(NamedTuple):
    """End of a process."""

    how: str  # how it failed; "" if it was stopped or complete
    message: str  # its last message on standard error
    status: int  # exit code; negative: the signal that ended it


def _describe_end(status: int) -> str:
    """Returns how a process ended that should not have."""
    if status >= 0:
        return f"the process was ended by exit({status})"
    name = signal.strsignal(-status) if -status in signal.valid_signals() else "unknown"
    outside = "" if -status in FAULTS else ", which came from outside"
    return f"the process ended by signal {-status} ({name}){outside}"


class Program(NamedTuple):
    """The C program, and its arguments for a comparison: the selection and both builds.

    If a process crashes or hangs, that is the result of the pair that it was timing.
    """

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
