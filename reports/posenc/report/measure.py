"""Checks and times this machine by the C program, and makes one run of it."""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import List, Optional, Sequence

from ..command import CommandError, words_of
from ..engine import SIGNALS, Engine, output_of, started
from ..records import Record, load

SELECTING, SHAPES = ("kernel", "backend", "dtype", "case", "plugin", "vectors", "limit"), ("model", "config")
# A model of each encoding: added sinusoids, learned rows, a rotation with scaled frequencies, ALiBi, T5.
MODELS = ("transformer-base", "gpt2", "llama-3.1-8b", "bloom-176b", "t5-base")
# Kernels that are timed at these places of memory as well, if no model is named.
MAIN_KERNELS, PLACES = ("sinusoidal", "rope_table", "rope_half"), ("*/l2", "*/dram")
SECONDS, OF_MODELS = 110.0, 0.75  # of timing, and the share of models
WRONG, BAD_INPUT, NOTHING = 1, 2, 77


class Measurement:
    """Commands that check and time this machine, and their results."""

    def __init__(self, engine: Engine, folder: Path, args: argparse.Namespace) -> None:
        """`folder` takes the records as they come."""
        self.engine, self.folder, self.args = engine, folder, args
        self.select, self.models = (
            [word for name in names for word in words_of(name, getattr(args, name))] for names in (SELECTING, SHAPES)
        )
        self.runs: List[List[Record]] = []
        self.statuses: List[int] = []
        self.interrupted = 0  # the signal that ended it

    def all(self) -> None:
        """Checks every backend, then times the models and some places of memory."""
        args = self.args
        print("Checking every backend …", file=sys.stderr)
        if not self._run("verify", *self.models, *(["--jobs", args.jobs] if args.jobs else [])):
            return
        print("Timing …", file=sys.stderr)
        seconds = args.time_limit or (None if args.full else SECONDS)
        share = 1.0 if self.models else OF_MODELS
        if not self._run("bench", *(self.models or words_of("model", MODELS)), *_limit(seconds, share)):
            return
        if not self.models and not args.case:
            kernels = [] if args.kernel else words_of("kernel", MAIN_KERNELS)
            self._run("bench", *kernels, *words_of("case", PLACES), *_limit(seconds, 1 - OF_MODELS))

    def _run(self, command: str, *options: str) -> bool:
        """Runs a command of the program. Returns false if the rest is not to be run."""
        path = self.folder / f"{command}-{len(self.statuses)}.jsonl"
        words = [str(self.engine.program), command, *self.select, *options, "--out", f"jsonl:{path}"]
        with started(words + (["--full"] if self.args.full else [])) as child:
            output_of(child)
        status = child.returncode if child.returncode >= 0 else 128 - child.returncode
        self.interrupted = status - 128 if status - 128 in SIGNALS else 0
        if path.exists():
            if path.stat().st_size:
                self.runs.append(load(str(path)))
            path.unlink()
        if status == BAD_INPUT and not self.interrupted:
            raise CommandError(f"posenc {command} could not run; its message is above.")
        self.statuses.append(status)
        return not self.interrupted

    @property
    def status(self) -> int:
        """The exit code: 128 and the signal, the worst of the commands, 77 if none had anything to run."""
        if self.interrupted:
            return 128 + self.interrupted
        crashed = [status for status in self.statuses if status not in (0, WRONG, NOTHING)]
        if crashed or WRONG in self.statuses:
            return crashed[0] if crashed else WRONG
        return NOTHING if self.statuses and all(status == NOTHING for status in self.statuses) else 0

    def records(self, argv: Sequence[str]) -> List[Record]:
        """Returns all runs as one, with the errors by position of the backends that make tables."""
        timed = {record["backend"] for run in self.runs for record in run
                 if record["t"] == "bench" and record["kernel"] == "rope_table"}  # fmt: skip
        wanted = words_of("backend", sorted(timed))
        curves = self.engine.error_curves(*wanted) if timed and not self.interrupted else []
        return one_run(self.runs, argv, curves)


def _limit(seconds: Optional[float], share: float) -> List[str]:
    return [] if seconds is None else ["--time-limit", f"{seconds * share:g}"]


def one_run(runs: Sequence[Sequence[Record]], argv: Sequence[str], extra: Sequence[Record]) -> List[Record]:
    """Returns several runs on this machine as one: a header, an env, all results, a footer."""
    records = [record for run in runs for record in run]
    headers, envs, footers = ([r for r in records if r["t"] == kind] for kind in ("header", "env", "footer"))
    if not headers or not envs:
        return []
    header: Record = {**headers[0], "command": "report", "argv": list(argv)}
    results, seen = [], set()
    for record in records:
        key = (record["t"], record.get("id") or record.get("name"))
        if record["t"] not in ("header", "env", "footer") and not (key[1] and key in seen):
            seen.add(key)
            results.append(record)
    counts = Counter(record["status"] if record["t"] == "check" else record["t"] for record in results)
    last = footers[-1] if footers else {}
    footer: Record = {
        "t": "footer", "complete": len(footers) == len(runs) and all(each["complete"] for each in footers),
        "counts": counts, "wall_s": sum(each.get("wall_s", 0) for each in footers),
        **{name: last[name] for name in ("finished", "noise") if name in last},
    }  # fmt: skip
    return [header, envs[-1], *results, *extra, footer]
