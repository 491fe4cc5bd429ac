"""Checks and times this machine by the C program, and makes one run of it."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from ..command import CommandError
from ..convert import Record
from ..engine import SIGNALS, Engine, output_of, started
from ..records import load

# A model of each encoding: added sinusoids, learned rows, a rotation with scaled frequencies, ALiBi, T5.
MODELS = ("transformer-base", "gpt2", "llama-3.1-8b", "bloom-176b", "t5-base")
# Kernels that are timed at these places of memory as well, if no model is named.
MAIN_KERNELS, PLACES = ("sinusoidal", "rope_table", "rope_half"), ("*/l2", "*/dram")
SECONDS, OF_MODELS = 110.0, 0.75  # of timing, and the share of models
WRONG, BAD_INPUT, NOTHING = 1, 2, 77


@dataclass
class Measurement:
    """What to check and time, and what came of it."""

    engine: Engine
    folder: Path  # takes the records as they come
    select: List[str]  # options for verify and bench: --kernel, --backend, --plugin ...
    models: List[str]  # --model and --config, with their values
    only_verify: List[str] = field(default_factory=list)  # --jobs
    time_limit: Optional[float] = None
    full: bool = False
    runs: List[List[Record]] = field(default_factory=list)
    statuses: List[int] = field(default_factory=list)
    interrupted: int = 0  # the signal that ended it

    def all(self) -> None:
        """Checks every backend, then times the models and some places of memory, then measures errors by position."""
        print("Checking every backend …", file=sys.stderr)
        if not self._run("verify", *self.models, *self.only_verify):
            return
        print("Timing …", file=sys.stderr)
        seconds = self.time_limit or (None if self.full else SECONDS)
        models = self.models or [word for name in MODELS for word in ("--model", name)]
        share = 1.0 if self.models else OF_MODELS
        if self._run("bench", *models, *_limit(seconds, share)) and not self.models:
            places = [word for glob in PLACES for word in ("--case", glob)]
            kernels = [] if "--kernel" in self.select else [word for k in MAIN_KERNELS for word in ("--kernel", k)]
            if "--case" not in self.select:
                self._run("bench", *kernels, *places, *_limit(seconds, 1 - OF_MODELS))

    def _run(self, command: str, *options: str) -> bool:
        """Runs a command of the program. Returns false if the rest is not to be run."""
        path = self.folder / f"{command}-{len(self.statuses)}.jsonl"
        words = [str(self.engine.program), command, *self.select, *options, "--out", f"jsonl:{path}"]
        with started(words + (["--full"] if self.full else [])) as child:
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

    def curves(self, backends: Sequence[str]) -> List[Record]:
        """Returns the largest errors of cosines and sines by position: a record for each curve."""
        named = [word for name in backends for word in ("--backend", name)]
        found: Dict[str, Record] = {}
        for line in self.engine.columns("errors", *named):
            new: Record = {"t": "curve", "kernel": "rope_table", "curve": line["curve"], "numerics": line["numerics"],
                           "backend": line["backend"], "positions": [], "errors": []}  # fmt: skip
            curve = found.setdefault(line["curve"], new)
            curve["positions"].append(float(line["position"]))
            curve["errors"].append(float(line["error"]))
        return list(found.values())

    @property
    def status(self) -> int:
        """The exit code: 128 and the signal, the worst of the commands, 77 if none had anything to run."""
        if self.interrupted:
            return 128 + self.interrupted
        crashed = [status for status in self.statuses if status not in (0, WRONG, NOTHING)]
        if crashed or WRONG in self.statuses:
            return crashed[0] if crashed else WRONG
        return NOTHING if self.statuses and all(status == NOTHING for status in self.statuses) else 0


def _limit(seconds: Optional[float], share: float) -> List[str]:
    return [] if seconds is None else ["--budget", f"{seconds * share:g}"]


def one_run(runs: Sequence[Sequence[Record]], argv: Sequence[str], extra: Sequence[Record]) -> List[Record]:
    """Returns several runs on this machine as one: a header, an env, all results, a footer."""
    records = [record for run in runs for record in run]
    headers = [record for record in records if record["t"] == "header"]
    envs = [record for record in records if record["t"] == "env"]
    footers = [record for record in records if record["t"] == "footer"]
    if not headers or not envs:
        return []
    header: Record = {**headers[0], "command": "report", "argv": list(argv)}
    results, seen = [], set()
    for record in records:
        key = (record["t"], record.get("id") or record.get("name"))
        if record["t"] in ("header", "env", "footer") or (key[1] and key in seen):
            continue
        seen.add(key)
        results.append(record)
    counts: Dict[str, int] = {}
    for record in results:
        name = record["status"] if record["t"] == "check" else record["t"]
        counts[name] = counts.get(name, 0) + 1
    footer: Record = {"t": "footer", "complete": len(footers) == len(runs) and all(f["complete"] for f in footers),
                      "counts": counts, "wall_s": sum(f.get("wall_s", 0) for f in footers)}  # fmt: skip
    if footers:
        footer["finished"] = footers[-1].get("finished", headers[0]["started"])
        footer.update({"noise": footers[-1]["noise"]} if "noise" in footers[-1] else {})
    return [header, envs[-1], *results, *extra, footer]
