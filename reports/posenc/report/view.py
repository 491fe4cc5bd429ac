"""All that a report shows, as plain data for its templates."""

import shlex
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Dict, List, Optional, Sequence

from .. import quality, units
from ..colors import color_of
from ..convert import Record
from ..ranking import Ranked
from ..runs import Machine, machines, member
from .answers import Advice, Answer, advice, answers
from .errors import ByRange, Errors, Worst, worst_in

FAILED = ("fail", "crash")
RAN = ("pass", "fail", "crash", "inconclusive")


@dataclass
class Cell:
    """Checks of a kernel on a backend."""

    counts: Dict[str, int]

    @property
    def ran(self) -> int:
        """Checks that ran."""
        return sum(self.counts.get(status, 0) for status in RAN)

    @property
    def failed(self) -> int:
        """Checks that failed or crashed."""
        return sum(self.counts.get(status, 0) for status in FAILED)

    @property
    def kind(self) -> str:
        """One word for it: none, unsupported, crash, fail, inconclusive or pass."""
        if not self.ran:
            return "unsupported" if self.counts else "none"
        return next((kind for kind in ("crash", "fail", "inconclusive") if self.counts.get(kind)), "pass")


@dataclass
class Failure:
    """A check that failed, on all backends that fail it in the same way."""

    check: Record
    backends: List[str]
    worst: Optional[Worst]


@dataclass
class Host:
    """The results of one machine."""

    machine: Machine
    ranked: Ranked = field(init=False)
    errors: Errors = field(init=False)
    answers: List[Answer] = field(init=False)

    def __post_init__(self) -> None:
        self.ranked = Ranked(self.machine)
        self.errors = Errors(self.machine)
        self.answers = answers(self.ranked)

    @property
    def env(self) -> Record:
        """What it is."""
        return self.machine.env

    @cached_property
    def advice(self) -> Optional[Advice]:
        """Its answers in short."""
        return advice(self.answers)

    @property
    def name(self) -> str:
        """Its key: CPU and hypervisor."""
        return str(self.env.get("env_id", "unknown machine"))

    @property
    def cpu(self) -> str:
        """The name of its CPU."""
        return str(member(self.env, "cpu.name") or self.name)

    @property
    def grade(self) -> str:
        """Measurement quality, A to D; empty if it is not known."""
        return quality.of_machine(self.machine).grade

    @cached_property
    def backends(self) -> List[str]:
        """Backends in the order of the records, then those that only results name."""
        kinds = ("check", "bench", "pair", "change")
        named = [str(backend["id"]) for backend in self.machine.of("backend")]
        named += [record["backend"] for kind in kinds for record in self.machine.of(kind)]
        return list(dict.fromkeys(named))

    @cached_property
    def families(self) -> Dict[str, str]:
        """The family of each backend."""
        kinds = ("check", "bench", "pair")
        found = {record["backend"]: record["family"] for kind in kinds for record in self.machine.of(kind)}
        found.update({backend["id"]: backend["family"] for backend in self.machine.of("backend")})
        return found

    @cached_property
    def kernels(self) -> List[str]:
        """Kernels with results; those with failures first."""
        kinds = ("check", "bench")
        named = dict.fromkeys(record["kernel"] for kind in kinds for record in self.machine.of(kind))
        return sorted(named, key=lambda kernel: not any(self.cell(kernel, b).failed for b in self.backends))

    def cell(self, kernel: str, backend: str) -> Cell:
        """Returns the checks of a kernel on a backend."""
        return Cell(self.ranked.counts.get((kernel, backend), {}))

    @cached_property
    def checked(self) -> Cell:
        """All checks."""
        total: Dict[str, int] = {}
        for counts in self.ranked.counts.values():
            for status, count in counts.items():
                total[status] = total.get(status, 0) + count
        return Cell(total)

    @cached_property
    def failures(self) -> List[Failure]:
        """Checks that failed, each once for all backends that fail it alike."""
        found: Dict[Any, Failure] = {}
        for check in self.machine.of("check"):
            if check["status"] in FAILED:
                error = check.get("error", {})
                alike = (check["case"], check["suite"], check["status"], error.get("worst_at"), error.get("got"),
                         check.get("reason"))  # fmt: skip
                found.setdefault(alike, Failure(check, [], worst_in(check))).backends.append(check["backend"])
        return list(found.values())

    @cached_property
    def wrong_outputs(self) -> List[Record]:
        """Outputs that were wrong before they were to be timed."""
        return [row.record for ranking in self.ranked.cases.values() for row in ranking.rows if row.wrong]

    @cached_property
    def by_range(self) -> List[ByRange]:
        """Errors of tables by range of positions."""
        pairs = [(kernel, mode) for mode in ("exact", "hf_f32") for kernel in ("sinusoidal", "rope_table")]
        found = (self.errors.by_range(kernel, mode, self.backends) for kernel, mode in pairs)
        return [table for table in found if table]

    @cached_property
    def notes(self) -> List[str]:
        """What a reader has to know first: disturbances, parts that are missing."""
        return [note for note in (_disturbed(self), _vectors(self), _emulated(self), _partial(self)) if note]


def _disturbed(host: Host) -> str:
    return quality.warning(host.machine).replace("**", "").replace("`", "")


def _vectors(host: Host) -> str:
    if member(host.machine.header, "vectors.official") is not False:
        return ""
    return "These are not the official vectors: the checks are as good as the vectors that were given."


def _emulated(host: Host) -> str:
    return quality.emulator(host.machine)


def _partial(host: Host) -> str:
    unfinished = host.machine.runs - host.machine.finished
    if unfinished > 0:
        return f"{unfinished} of {host.machine.runs} runs did not finish. Their results until then are shown."
    shard = host.machine.header.get("shard")
    if shard:
        return f"This is shard {shard['i']} of {shard['n']}: posenc results merge puts shards together."
    return ""


@dataclass
class View:
    """A report: of one machine, or of several."""

    records: List[Record]
    hosts: List[Host] = field(init=False)

    def __post_init__(self) -> None:
        self.hosts = [Host(machine) for machine in machines(self.records)]

    @property
    def failed(self) -> int:
        """Checks that failed on any machine."""
        return sum(host.checked.failed for host in self.hosts)

    @property
    def wrong(self) -> int:
        """Outputs that were wrong before they were to be timed."""
        return sum(len(host.wrong_outputs) for host in self.hosts)

    @property
    def checked(self) -> int:
        """Checks that ran on any machine."""
        return sum(host.checked.ran for host in self.hosts)

    @cached_property
    def pairs(self) -> List[Record]:
        """Comparisons of two builds."""
        return [pair for host in self.hosts for pair in host.machine.of("pair")]

    @cached_property
    def changes(self) -> List[Record]:
        """Results that differ between two builds."""
        return [change for host in self.hosts for change in host.machine.of("change")]

    @cached_property
    def steps(self) -> List["FleetRow"]:
        """The answers of all machines by model and step."""
        rows: Dict[Any, FleetRow] = {}
        for at, host in enumerate(self.hosts):
            for answer in host.answers:
                key = (answer.step.model["name"], answer.step.name, answer.step.dtype)
                row = rows.setdefault(key, FleetRow(answer, [None] * len(self.hosts)))
                row.answers[at] = answer
        return list(rows.values())

    @cached_property
    def colors(self) -> Dict[str, str]:
        """The colour of each backend."""
        names = list(dict.fromkeys(name for host in self.hosts for name in host.backends))
        return {name: color_of(name, names) for name in names}

    @property
    def command(self) -> str:
        """The command that made the records."""
        headers = [record for record in self.records if record["t"] == "header"]
        return " ".join(shlex.quote(word) for word in headers[0].get("argv", [])) if headers else ""


@dataclass
class FleetRow:
    """The answers of several machines to one step of a model."""

    first: Answer
    answers: List[Optional[Answer]]


def shape(record: Record, models: Sequence[Record]) -> str:
    """Returns the shape of a case in words: that of its model, or the end of its id."""
    for model in models:
        for one in model["cases"]:
            if one["case"] == record["case"]:
                return f"{model['title']}: {one.get('label') or one['case']}"
    return str(record["case"].rpartition("/")[2])


def label(record: Record) -> str:
    """Returns the memory level and the bytes of a call."""
    footprint = record.get("footprint", {})
    return f"{footprint.get('name') or '–'} ({units.size(footprint.get('bytes', 0))})"
