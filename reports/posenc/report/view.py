"""All that a report shows, as plain data for its templates."""

from collections import Counter
from dataclasses import dataclass
from typing import Dict, List, Mapping, Tuple

from .. import quality, units
from ..colors import color_of
from ..ranking import Ranked
from ..results import comparison, outcome
from ..records import Machine, Record, machines, member
from .answers import Advice, Answer, answers
from .errors import Errors
from .glossary import METHOD, METHOD_OF_COMPARISONS

RAN = ("pass", "fail", "crash", "inconclusive")


@dataclass
class Cell:
    """Checks of a kernel on a backend, counted by status."""

    counts: Mapping[str, int]

    @property
    def ran(self) -> int:
        """Checks that ran."""
        return sum(self.counts.get(status, 0) for status in RAN)

    @property
    def failed(self) -> int:
        """Checks that failed or crashed."""
        return sum(self.counts.get(status, 0) for status in outcome.FAILED)

    @property
    def passed(self) -> int:
        """Checks that passed, on enough evidence."""
        return self.counts.get("pass", 0)

    @property
    def and_inconclusive(self) -> str:
        """The end of a sentence about the checks: ", 3 inconclusive", or nothing if none is."""
        inconclusive = self.counts.get("inconclusive", 0)
        return f", {units.count(inconclusive)} inconclusive" if inconclusive else ""

    @property
    def kind(self) -> str:
        """One word for it: none, unsupported, crash, fail, inconclusive or pass."""
        if not self.ran:
            return "unsupported" if self.counts else "none"
        return next((kind for kind in ("crash", "fail", "inconclusive") if self.counts.get(kind)), "pass")


class Host:
    """The results of one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.env = machine, machine.env
        self.name = str(self.env.get("env_id", "unknown machine"))  # CPU and hypervisor
        self.cpu = str(member(self.env, "cpu.name") or self.name)
        self.quality = quality.of_machine(machine)
        self.notes = _notes(machine)
        # Timings, and what to make of them.
        self.ranked, self.errors = Ranked(machine), Errors(machine)
        self.answers = answers(self.ranked)
        timed = [answer for answer in self.answers if answer.best]
        self.advice = Advice(timed) if timed else None
        self.wrong_outputs = outcome.wrong_outputs(machine)
        # Checks. Kernels with failures stand first, backends in the order of the records.
        results = [result for kind in ("check", "bench", "pair", "change") for result in machine.of(kind)]
        named = [str(backend["id"]) for backend in machine.of("backend")]
        self.backends = list(dict.fromkeys(named + [result["backend"] for result in results]))
        self.kernels = sorted(
            dict.fromkeys(result["kernel"] for result in results if result["t"] in ("check", "bench")),
            key=lambda kernel: not any(self.cell(kernel, backend).failed for backend in self.backends),
        )
        self.checked = Cell(Counter(check["status"] for check in machine.of("check")))
        self.failures = outcome.failures(machine)
        tables = [(kernel, mode) for mode in ("exact", "hf_f32") for kernel in ("sinusoidal", "rope_table")]
        ranges = (self.errors.by_range(kernel, mode, self.backends) for kernel, mode in tables)
        self.by_range = [table for table in ranges if table]

    def cell(self, kernel: str, backend: str) -> Cell:
        """Returns the checks of a kernel on a backend."""
        return Cell(self.ranked.counts.get((kernel, backend), {}))


def _notes(machine: Machine) -> List[str]:
    """Returns warnings: disturbances, unofficial vectors, and parts that are missing."""
    unfinished, shard = machine.runs - machine.finished, machine.header.get("shard")
    notes = [quality.warning(machine).replace("**", "").replace("`", ""), quality.emulator(machine)]
    if member(machine.header, "vectors.official") is False:
        notes.append("These are not the official vectors: the checks are as good as the vectors that were given.")
    if unfinished > 0:
        notes.append(f"{unfinished} of {machine.runs} runs did not finish. Their results until then are shown.")
    elif shard:
        notes.append(f"This is shard {shard['i']} of {shard['n']}: posenc results merge puts shards together.")
    return [note for note in notes if note]


class View:
    """A report: of one machine, or of several."""

    def __init__(self, records: List[Record]) -> None:
        found = machines(records)
        self.records, self.hosts = records, [Host(machine) for machine in found]
        self.checked = Cell(sum((Counter(host.checked.counts) for host in self.hosts), Counter[str]()))
        self.header: Record = next((record for record in records if record["t"] == "header"), {})
        self.pairs, self.changes = comparison.pairs(*found), comparison.changes(*found)
        self.conclusion = comparison.conclusion(records, *found) if "compare" in self.header else ""
        self.method = METHOD_OF_COMPARISONS if self.pairs else METHOD
        names = list(dict.fromkeys(name for host in self.hosts for name in host.backends))
        self.colors = {name: color_of(name, names) for name in names}
        # The answers of all machines, by model, step and type, and by machine.
        self.steps: Dict[Tuple[str, str, str], Dict[str, Answer]] = {}
        for host in self.hosts:
            for answer in host.answers:
                key = (answer.step.model["name"], answer.step.name, answer.step.dtype)
                self.steps.setdefault(key, {})[host.name] = answer
