"""Runs the C program, and reads its tables and records."""

import csv
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from .command import CommandError
from .records import Record, grouped, parse

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handled(handler: Callable[[int, Optional[FrameType]], None]) -> Iterator[None]:
    """Installs a handler of signals. Ignored signals stay ignored, as under nohup."""
    before = {number: was for number in SIGNALS if (was := signal.getsignal(number)) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


def _run_to_end(words: Sequence[str]) -> Tuple[bytes, int]:
    """Runs a program and forwards signals to it, so that it can end in order. Returns its output and its status.

    The program has a session of its own, so that Ctrl-C reaches it once. A signal that arrives while it starts is
    forwarded later. Python handles a signal that arrives just before a wait only when the wait ends, so each wait lasts
    a second.
    """
    child: Optional["subprocess.Popen[bytes]"] = None
    early: List[int] = []

    def hand_on(number: int, _: Optional[FrameType]) -> None:
        if child:
            child.send_signal(number)
        else:
            early.append(number)

    with handled(hand_on):
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
        of_wheel = shutil.which("posenc", path=str(Path(__file__).parent / "program"))
        found = os.environ.get("POSENC_PROGRAM") or of_wheel or shutil.which("posenc")
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
        """Returns the lines of `posenc table frequencies` or `errors`, by the names of their columns."""
        return list(csv.DictReader(self.run("table", table, *options).splitlines()))

    def error_curves(self, *options: str) -> List[Record]:
        """Returns the largest errors of rope_table by position: a record for each curve.

        Backends of a numerics mode share one curve, the larger, if their errors differ by less than the width of a line
        or, in f32 modes, by less than the rounding of a cosine.
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
        for name, of in grouped(curves, lambda curve: curve["curve"]).items():
            for curve in of:
                backends = curve.pop("backends")
                shared = len(of) == 1 and len(backends) > 1  # a curve of the mode rather than of a backend
                curve["backend"] = "" if shared else backends[0]
                more = f" and {len(backends) - 3} more" if len(backends) > 4 else ""
                curve["curve"] += ": " + ", ".join(backends[:3] if more else backends) + more if backends[0] else ""
        return curves


def _alike(some: Sequence[float], others: Sequence[float], rounding: float) -> bool:
    return all(abs(a - b) <= 0.01 * max(a, b) + rounding for a, b in zip(some, others))
