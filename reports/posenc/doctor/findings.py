"""Findings: conditions that disturb timings, with their measured cost and the command that fixes each.

They are made from records alone: the env record of a machine, the noise of a run, and what the probe measured.
A check is a function that yields its findings; CHECKS lists them all.
"""

from dataclasses import dataclass
from typing import Iterator, List, Optional, Tuple

from ..convert import Record
from ..quality import NOT_EXPOSED, exposed, is_unoptimised, other_programs
from ..runs import member, number

# It disturbs now; it may; it does not; the system does not say.
COSTS, NOTE, FINE, HIDDEN = LEVELS = ("costs", "note", "fine", "hidden")

SAMPLE_NS = 100_000  # the least that a sample lasts
SLOW_READING_NS = 200  # of a clock whose readings are system calls
STEADY_PCT = 1.0  # a frequency that varies by less is steady
PINNING_PCT = 0.5  # what pinning to a CPU must gain
BUSY = 0.05  # share of the time from which a CPU is busy


@dataclass(frozen=True)
class Remedy:
    """What to do about a condition, and the command that does it."""

    fix: str
    command: Optional[str] = None


@dataclass(frozen=True)
class Finding:
    """A condition. `cost` is how much longer or less certain timings are, in percent; None if unknown."""

    what: str
    level: str
    evidence: str
    cost: Optional[float] = 0.0
    remedy: Optional[Remedy] = None

    def record(self) -> Record:
        """Returns the finding as a member of a doctor record."""
        fix, command = (self.remedy.fix, self.remedy.command) if self.remedy else (None, None)
        return {
            "what": self.what, "level": self.level, "cost_pct": self.cost, "evidence": self.evidence, "fix": fix,
            "command": command, "root": "sudo " in (command or ""),
        }  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """What records say of a machine. `doctor` is empty if it was not probed."""

    env: Record
    noise: Record
    doctor: Record

    def fact(self, path: str) -> str:
        """Returns a text of the env record; empty if it is not exposed."""
        return exposed(self.env, path)

    def amount(self, path: str) -> float:
        """Returns a number of the env record, or 0."""
        return number(self.env, path) or 0.0

    def measured(self, path: str) -> Optional[float]:
        """Returns a number that the probe measured."""
        return number(self.doctor, f"measured.{path}")

    def floor(self, place: str, pinned: bool) -> Record:
        """Returns the noise of a kernel against its own copy, in cache or DRAM, on one CPU or any."""
        for floor in member(self.doctor, "measured.floors") or []:
            if floor.get("place") == place and floor.get("pinned") is pinned:
                return dict(floor)
        return {}

    def beside(self, sibling: bool) -> Record:
        """Returns what was measured beside a busy CPU, of the same core or of another."""
        for beside in member(self.doctor, "measured.beside") or []:
            if beside.get("sibling") is sibling:
                return dict(beside)
        return {}

    def busy(self, cpu: Optional[int]) -> Optional[float]:
        """Returns the share of the time in which a CPU was busy."""
        shares = member(self.doctor, "neighbours.busy") or []
        return float(shares[cpu]) if cpu is not None and 0 <= cpu < len(shares) else None

    @property
    def cpu(self) -> Optional[int]:
        """The CPU that was measured."""
        cpu = number(self.doctor, "cpu")
        return int(cpu) if cpu is not None and cpu >= 0 else None


def cpus_of(text: str) -> List[int]:
    """Returns the CPUs of a list such as 0-3,8."""
    cpus: List[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not (first.isdigit() and (last or first).isdigit()):
            break
        cpus += range(int(first), min(int(last or first), int(first) + 4096) + 1)
    return cpus


def hidden(what: str, source: str) -> Finding:
    """Returns the finding of what the system does not say."""
    return Finding(what, HIDDEN, f"{source} is missing or cannot be read", None)


# ---- build, other programs, limits ----


def build(machine: Machine) -> Iterator[Finding]:
    """Finds a build whose times are not those of the kernels."""
    release = Remedy(
        "Measure with an optimised build without sanitizers.",
        "meson setup build-release --buildtype=release && ninja -C build-release",
    )
    sanitizer = machine.fact("build.sanitizer")
    if sanitizer:
        yield Finding("build", COSTS, f"posenc was built with the {sanitizer} sanitizer", None, release)
    elif is_unoptimised(machine.env):
        yield Finding("build", COSTS, "posenc was built without optimisation", None, release)
    else:
        yield Finding("build", FINE, f"{machine.fact('build.cc')}, optimised")


def others(machine: Machine) -> Iterator[Finding]:
    """Finds other programs. They cost what a loop missed while they ran."""
    lost = machine.measured("gaps.lost_pct")
    felt, words = other_programs(machine.env, machine.noise)
    taken = member(machine.doctor, "neighbours.taken") or []
    words = words.replace("other programs took", "they took")
    names = ", ".join(f"{one.get('name')} {number(one, 'cpus') or 0:.2f}" for one in taken)
    words += f": {names}" if names else ""
    seen = [number(machine.noise, name) for name in ("others", "load1")]
    if all(value is None or value < 0 for value in seen):
        yield hidden("other programs", "/proc/stat")
    elif felt:
        words += "" if lost is None else f"; a loop that reads the clock missed {lost:.2f} % of the time"
        end = Remedy("End them and run this again: all other measurements were taken beside them.", "top")
        yield Finding("other programs", COSTS, words, lost, end)
    else:
        yield Finding("other programs", FINE, words)


def hypervisor(machine: Machine) -> Iterator[Finding]:
    """Finds a hypervisor and the time that it took."""
    alone = Remedy("Use an instance with CPUs of its own (dedicated, bare metal), or another hour.")
    steal, name = number(machine.noise, "steal_pct"), machine.fact("virtualization")
    if steal is not None and steal > 0.1:
        yield Finding("steal", COSTS, f"a hypervisor gave {steal:.1f} % of its CPU time to others", steal, alone)
    elif steal is not None and steal >= 0 and name:
        yield Finding("steal", FINE, f"{steal:.2f} % of its CPU time", steal)
    if name:
        words = f"{name}: the effect of other guests on caches, memory and frequency cannot be seen"
        yield Finding("virtual machine", NOTE, words, None, alone)
    elif member(machine.env, "virtualization") == NOT_EXPOSED:
        yield Finding("virtual machine", HIDDEN, "the system does not say if it is one", None)


WHOLE_CPUS = "Give the container whole CPUs instead of a share of their time."
QUOTA_REMEDIES = {
    "docker": Remedy(WHOLE_CPUS, "docker run --cpuset-cpus=2,3 IMAGE     # not --cpus"),
    "podman": Remedy(WHOLE_CPUS, "podman run --cpuset-cpus=2,3 IMAGE     # not --cpus"),
    "kubernetes": Remedy(
        "Make the pod Guaranteed: requests equal to limits, in whole CPUs, on a node whose kubelet has "
        "--cpu-manager-policy=static.",
        "kubectl set resources deployment/NAME --requests=cpu=2,memory=4Gi --limits=cpu=2,memory=4Gi",
    ),
    "": Remedy("Run it outside that control group, or lift the quota.", "sudo systemd-run --scope posenc doctor"),
}


def quota(machine: Machine) -> Iterator[Finding]:
    """Finds a quota of CPU time."""
    cpus, container = machine.amount("limits.quota"), machine.fact("limits.container")
    stalled = number(machine.noise, "throttled_pct") or 0.0
    remedy = QUOTA_REMEDIES.get(container, QUOTA_REMEDIES[""])
    limit = f"a control group allows {cpus:.3g} CPUs" if cpus > 0 else "a control group has a quota"
    if stalled > 0.1:
        words = f"{limit} and stalled this program for {stalled:.1f} % of the time"
        yield Finding("quota", COSTS, words, stalled, remedy)
    elif cpus > 0:
        yield Finding("quota", NOTE, f"{limit}; it stalls a program whose threads use more", None, remedy)
    elif container:
        yield Finding("quota", FINE, f"in a container ({container}) without one")


def interruptions(machine: Machine) -> Iterator[Finding]:
    """Finds what interrupts a loop. Beside other programs most of it is theirs."""
    lost = machine.measured("gaps.lost_pct")
    if lost is None or other_programs(machine.env, machine.noise)[0]:
        return
    longest, count = machine.measured("gaps.longest_us") or 0.0, machine.measured("gaps.over_100us") or 0.0
    cpu = 1 if machine.cpu is None else machine.cpu
    quiet = Remedy(
        f"Measure on a CPU that the kernel leaves alone: boot with isolcpus={cpu} nohz_full={cpu} rcu_nocbs={cpu}, "
        "and keep interrupts on CPU 0.",
        "sudo systemctl stop irqbalance; echo 0 | sudo tee /proc/irq/*/smp_affinity_list",
    )
    costs = lost > 0.5 or longest > 1000.0
    words = (
        f"a loop that reads the clock missed {lost:.2f} % of the time, {longest:.0f} us at most, "
        f"over 100 us {count:.0f} times"
    )
    yield Finding("interruptions", COSTS if costs else FINE, words, lost, quiet if costs else None)


def disks(machine: Machine) -> Iterator[Finding]:
    """Finds programs that wait for disks."""
    io = number(machine.noise, "wait_io_pct")
    if io is None:
        return
    if io > 5.0:
        remedy = Remedy("Let copies and indexing end.", "sudo iotop -o")
        yield Finding("disks", COSTS, f"for {io:.0f} % of the time a program waited for a disk", None, remedy)
    else:
        yield Finding("disks", FINE, f"programs waited for them for {io:.1f} % of the time")


# ---- the CPU that was measured, and those beside it ----


def pinning(machine: Machine) -> Iterator[Finding]:
    """Finds what it costs that the system chooses the CPU."""
    cpu = machine.cpu
    if not machine.doctor:
        return
    if cpu is None:
        yield hidden("pinning", "a way to keep a program on one CPU")
        return
    if number(machine.env, "cpus.pinned") is not None:
        yield Finding("pinning", FINE, f"started on CPU {cpu} alone")
        return
    gains = []
    for place in ("cache", "DRAM"):
        pair = machine.floor(place, False), machine.floor(place, True)
        free, pinned = (number(floor, "detectable_pct") for floor in pair)
        if (
            all((number(floor, "comparisons") or 0.0) >= 1 for floor in pair)
            and free is not None
            and pinned is not None
        ):
            gains.append((free - pinned, place, free, pinned))
    if not gains:
        return
    gain, place, free, pinned = max(gains, key=lambda one: one[0])
    if gain > PINNING_PCT:
        words = f"on any CPU it detects {free:.1f} % in {place}; kept to CPU {cpu}, {pinned:.1f} %"
        remedy = Remedy("Keep the program on one CPU.", f"taskset -c {cpu} posenc compare BASE HEAD")
        yield Finding("pinning", COSTS, words, gain, remedy)
    else:
        yield Finding("pinning", FINE, f"kept to CPU {cpu} or not, it detects the same")


def _slowdown(beside: Record) -> Tuple[str, Optional[float]]:
    """Returns how much longer a call takes beside a busy CPU, in words and in percent."""
    cache, dram = number(beside, "cache") or 0.0, number(beside, "dram") or 0.0
    most = max(cache, dram)
    if most <= 0:
        return "", None
    if most == 1.0:
        words = "no longer, as far as timings show"
    elif cache > 0 and dram > 0:
        words = f"{cache:.2f} times as long in cache and {dram:.2f} times in DRAM"
    else:
        words = f"{most:.2f} times as long"
    return words, max(100.0 * (most - 1.0), 0.0)


def siblings(machine: Machine) -> Iterator[Finding]:
    """Finds the other thread of the core."""
    best = number(machine.env, "cpus.best")
    cpu = machine.cpu if machine.doctor else int(best) if best is not None else None
    core = cpus_of(machine.fact("cpus.siblings"))
    other = min((one for one in core if one != cpu), default=None) if cpu in core else None
    words, cost = _slowdown(machine.beside(True))
    busy = machine.busy(other) or 0.0
    if other is not None:
        off = Remedy(
            "Keep the other thread of the core idle, or switch SMT off.",
            "echo off | sudo tee /sys/devices/system/cpu/smt/control",
        )
        text = f"CPU {other} is a thread of the same core"
        text += f" and was busy for {100 * busy:.0f} % of the time" if machine.doctor else ""
        text += f"; with a program on it a call takes {words}" if words else ""
        yield Finding("SMT", COSTS if busy > BUSY else NOTE, text, cost, off)
    elif not core and not machine.fact("cpus.smt"):
        yield hidden("SMT", "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    else:
        yield Finding("SMT", FINE, "no other thread shares the core, as far as the system says")


def shared_memory(machine: Machine) -> Iterator[Finding]:
    """Finds what a program on another core takes of caches and memory."""
    beside = machine.beside(False)
    words, cost = _slowdown(beside)
    if cost is None:
        return
    cpu = int(number(beside, "cpu") or 0)
    busy = (machine.busy(cpu) or 0.0) > BUSY or other_programs(machine.env, machine.noise)[0]
    level = FINE if cost <= 2.0 else COSTS if busy else NOTE
    quiet = Remedy("Let nothing run on the other cores during measurements.", "top") if level != FINE else None
    yield Finding("shared memory", level, f"while CPU {cpu} does the same a call takes {words}", cost, quiet)


def kinds_of_core(machine: Machine) -> Iterator[Finding]:
    """Finds cores of several kinds."""
    kinds, best = machine.amount("cpus.kinds"), int(machine.amount("cpus.best"))
    if kinds > 1:
        words = f"it has {kinds:.0f} kinds of cores of different speed; CPU {best} is of the fastest kind"
        remedy = Remedy("Keep the program on a core of one kind.", f"taskset -c {best} posenc bench")
        yield Finding("kinds of core", NOTE, words, None, remedy)


def isolation(machine: Machine) -> Iterator[Finding]:
    """Finds CPUs that the kernel keeps free."""
    isolated = machine.fact("cpus.isolated")
    if isolated:
        yield Finding("isolation", FINE, f"the scheduler puts nothing on CPU {isolated}")


# ---- frequency, clock, power ----


def _waking_pct(machine: Machine) -> Optional[float]:
    """Returns what a core lacks of its frequency after a sleep, in percent."""
    share = machine.measured("frequency.after_sleep")
    return max(100.0 * (1.0 - share), 0.0) if share is not None and share > 0 else None


def governor(machine: Machine) -> Iterator[Finding]:
    """Finds a frequency governor that lets the clock fall."""
    name, driver = machine.fact("frequency.governor"), member(machine.env, "frequency.driver") or ""
    preference = machine.fact("frequency.preference")
    if not name:
        yield hidden("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    elif name == "performance":
        yield Finding("governor", FINE, f"{name} ({driver})")
    else:
        remedy = Remedy(
            "Keep the frequency up, or warm up longer than it takes to rise.",
            "sudo cpupower frequency-set -g performance",
        )
        details = f"{driver}, preference {preference}" if preference else driver
        words = f"the frequency governor is {name} ({details})"
        yield Finding("governor", COSTS, words, _waking_pct(machine), remedy)


def drift(machine: Machine) -> Iterator[Finding]:
    """Finds a frequency that varies."""
    if not machine.doctor:
        return
    ghz = machine.measured("frequency.ghz") or 0.0
    if ghz <= 0:
        yield hidden("frequency", "a chain of additions for this architecture")
        return
    low, high = machine.measured("frequency.low") or 0.0, machine.measured("frequency.high") or 0.0
    pct, boost = 100.0 * (high - low) / ghz, machine.fact("frequency.boost")
    if boost != "1":
        remedy = Remedy("Rely on ratios within a run, as compare does, not on times of different days.")
    elif machine.fact("frequency.driver").startswith("intel"):
        remedy = Remedy(
            "Switch turbo off: it depends on heat and on other cores.",
            "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
        )
    else:
        remedy = Remedy(
            "Switch boost off: it depends on heat and on other cores.",
            "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost",
        )
    level = COSTS if pct > STEADY_PCT else NOTE if boost == "1" else FINE
    turbo = {"": NOT_EXPOSED, "1": "on"}.get(boost, "off")
    words = f"{ghz:.2f} GHz, between {low:.2f} and {high:.2f} in nine of ten samples; turbo is {turbo}"
    yield Finding("frequency", level, words, pct, remedy if level != FINE else None)


def waking(machine: Machine) -> Iterator[Finding]:
    """Finds a core that wakes slowly, if that is not the governor's doing."""
    pct = _waking_pct(machine)
    if pct is None or machine.fact("frequency.governor") not in ("", "performance"):
        return
    settled = machine.measured("frequency.settled_ms") or 0.0
    words = (
        f"after a sleep of 30 ms the core begins at {100 - pct:.0f} % of its frequency and takes {settled:.1f} ms "
        "to settle"
    )
    awake = Remedy(
        "Keep the core from deep sleep; bench and compare warm up before each sample.", "sudo cpupower idle-set -D 10"
    )
    deep = pct > 3.0
    yield Finding("waking", NOTE if deep else FINE, words, pct, awake if deep else None)


def wide_vectors(machine: Machine) -> Iterator[Finding]:
    """Finds a frequency that falls with 512-bit arithmetic."""
    share = machine.measured("frequency.after_vectors") or 0.0
    if 0 < share < 0.97:
        remedy = Remedy(
            "Time wide and narrow backends in separate runs, or use at most 256 bits.",
            "POSENC_MAX_ISA=avx2 posenc bench",
        )
        words = f"after 512-bit arithmetic the core runs at {100 * share:.0f} % of its frequency"
        yield Finding("AVX-512", COSTS, words, 100.0 * (1.0 - share), remedy)
    elif share > 0:
        yield Finding("AVX-512", FINE, "lowers the frequency by less than 3 %")


def clock(machine: Machine) -> Iterator[Finding]:
    """Finds a clock that is slow to read, or runs backwards."""
    reading, step = machine.measured("clock.reading_ns"), machine.measured("clock.step_ns") or 0.0
    if reading is None:
        return
    source = str(member(machine.env, "timer.source") or "")
    backwards = member(machine.doctor, "measured.clock.backwards") is True
    costs = backwards or reading > SLOW_READING_NS or source in ("hpet", "acpi_pm", "jiffies")
    words = f"{source}: a reading takes {reading:.0f} ns, in steps of {step:.0f} ns"
    words += ", and it ran backwards" if backwards else ""
    remedy = _faster_clock(machine) if costs else None
    yield Finding("clock", COSTS if costs else FINE, words, 100.0 * reading / SAMPLE_NS, remedy)


def _faster_clock(machine: Machine) -> Remedy:
    if machine.fact("timer.source") == "tsc":
        return Remedy("Its readings leave the guest. Use a host that passes the CPU's counter on.")
    if "tsc" in machine.fact("timer.sources"):
        folder = "/sys/devices/system/clocksource/clocksource0"
        return Remedy("Use the CPU's own counter.", f"echo tsc | sudo tee {folder}/current_clocksource")
    return Remedy(
        "The kernel distrusts the CPU's counter (dmesg says why). If it is wrong, boot with tsc=reliable.",
        "sudo dmesg | grep -i tsc",
    )


def power(machine: Machine) -> Iterator[Finding]:
    """Finds a battery, and a CPU that is slowed by heat."""
    source, heat = machine.fact("limits.power"), number(machine.noise, "heat")
    if source == "battery":
        yield Finding("power", COSTS, "it runs on its battery", None, Remedy("Plug it in."))
    elif source == "mains":
        yield Finding("power", FINE, "from the mains")
    if heat is not None and heat > 0:
        cooler = Remedy(
            "Let it cool, or keep it below the frequency at which it gets hot.", "sudo cpupower frequency-set -u 2GHz"
        )
        yield Finding("heat", COSTS, f"the CPU was slowed {heat:.0f} times because it was hot", None, cooler)
    elif heat is not None:
        yield Finding("heat", FINE, "the CPU was not slowed by it")


# ---- memory ----


def huge_pages(machine: Machine) -> Iterator[Finding]:
    """Finds huge pages that come by chance."""
    mode, times = machine.fact("memory.thp"), machine.measured("pages.small_over_huge")
    cost, words = None, ""
    if times is not None and times > 0:
        cost = max(100.0 * (times - 1.0), 0.0)
        words = f"; in DRAM a call takes {times:.2f} times as long in small ones"
    if times == 1.0:
        words = "; in DRAM no difference between small and huge is detected"
    if not mode:
        yield hidden("huge pages", "/sys/kernel/mm/transparent_hugepage/enabled")
    elif mode == "always":
        madvise = Remedy(
            "Let programs ask for huge pages, so that chance decides nothing.",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )
        yield Finding("huge pages", COSTS, f"always: chance decides if a buffer gets them{words}", cost, madvise)
    else:
        yield Finding("huge pages", FINE, f"{mode}, the same in all measurements{words}", cost)


def nodes(machine: Machine) -> Iterator[Finding]:
    """Finds memory of several nodes."""
    count, moved = machine.amount("memory.nodes"), machine.amount("memory.balancing") > 0
    one_node = "numactl --cpunodebind=0 --membind=0 posenc bench"
    if count > 1:
        remedy = Remedy("Keep the program and its memory on one node.", one_node)
        if moved:
            remedy = Remedy(
                "Keep the program and its memory on one node, and pages where they are.",
                f"sudo sysctl kernel.numa_balancing=0 && {one_node}",
            )
        words = f"memory has {count:.0f} nodes" + (", and the kernel moves pages between them" if moved else "")
        yield Finding("NUMA", COSTS, words, None, remedy)
    elif count > 0:
        yield Finding("NUMA", FINE, "one node")


def swap(machine: Machine) -> Iterator[Finding]:
    """Finds memory that lies on disk."""
    off = Remedy("Keep everything in memory.", "sudo swapoff -a")
    moved, used = number(machine.noise, "swapped") or 0.0, number(machine.env, "memory.swap_used")
    if moved > 0:
        yield Finding("swap", COSTS, f"{moved:.0f} pages were moved to or from disk during the run", None, off)
    elif used is not None and used > 0:
        yield Finding("swap", NOTE, f"{used / 2**20:.0f} MiB lie on disk; none moved during the run", None, off)
    elif used is not None:
        yield Finding("swap", FINE, "not used")


def denormals(machine: Machine) -> Iterator[Finding]:
    """Finds denormal numbers that are flushed to zero."""
    flushed = member(machine.doctor, "measured.denormals.flushed")
    if flushed is True:
        remedy = Remedy(
            "Find the library that switches them off: one linked with -ffast-math does.",
            "ldd $(command -v posenc); echo $LD_PRELOAD",
        )
        yield Finding("denormals", COSTS, "flushed to zero (FTZ or DAZ is set), unlike in the checks", None, remedy)
    elif flushed is False:
        times = machine.measured("denormals.times") or 0.0
        yield Finding("denormals", FINE, f"kept; a product that is one takes {times:.1f} times as long")


def addresses(machine: Machine) -> Iterator[Finding]:
    """Finds processes that all get the same addresses."""
    aslr = number(machine.env, "limits.aslr")
    if aslr == 0:
        remedy = Remedy(
            "Let each process have its own addresses: one layout may be lucky.",
            "sudo sysctl kernel.randomize_va_space=2",
        )
        words = "all processes get the same: the cost of a layout is in each time alike"
        yield Finding("addresses", NOTE, words, None, remedy)
    elif aslr is not None and aslr > 0:
        yield Finding("addresses", FINE, "random in each process: compare runs several, and layout becomes noise")


CHECKS = (
    build, others, hypervisor, quota, interruptions, disks,
    pinning, siblings, shared_memory, kinds_of_core, isolation,
    governor, drift, waking, wide_vectors, clock, power,
    huge_pages, nodes, swap, denormals, addresses,
)  # fmt: skip


def findings_of(machine: Machine) -> List[Finding]:
    """Returns all findings: what disturbs now first, and of each level what costs most."""
    found = [finding for check in CHECKS for finding in check(machine)]
    return sorted(found, key=lambda one: (LEVELS.index(one.level), 1.0 if one.cost is None else -one.cost))
