"""Findings: conditions that disturb timings, with their measured cost and the command that fixes each.

They are made from records alone: the env record of a machine, the noise of a run, and what the probe measured.
A function checks one condition and returns its finding, or None if nothing is known of it.
"""

import re
from dataclasses import dataclass, replace
from typing import Callable, List, Optional, Tuple

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
class Finding:
    """A condition, and what to do about it: in words, and the command that does it.

    `cost` is how much longer or less certain timings are, in percent; None if unknown.
    """

    level: str
    evidence: str
    cost: Optional[float] = None
    fix: Optional[str] = None
    command: Optional[str] = None
    what: str = ""

    def record(self) -> Record:
        """Returns the finding as a member of a doctor record. What is fine needs no fix."""
        fix, command = (self.fix, self.command) if self.level in (COSTS, NOTE) else (None, None)
        return {
            "what": self.what, "level": self.level, "cost_pct": self.cost, "evidence": self.evidence, "fix": fix,
            "command": command, "root": "sudo " in (command or ""),
        }  # fmt: skip


def fine(evidence: str, cost: Optional[float] = 0.0) -> Finding:
    """Returns a condition that does not disturb."""
    return Finding(FINE, evidence, cost)


def hidden(source: str) -> Finding:
    """Returns a condition of which the system does not say."""
    return Finding(HIDDEN, f"{source} is missing or cannot be read", None)


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

    def one(self, name: str, **wanted: object) -> Record:
        """Returns the one of several measurements that was taken so: of floors and neighbours."""
        found = (one for one in member(self.doctor, f"measured.{name}") or [] if wanted.items() <= one.items())
        return next((dict(one) for one in found), {})

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
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
    return [cpu for first, last in ranges for cpu in range(int(first), min(int(last or first), int(first) + 4096) + 1)]


Check = Callable[[Machine], Optional[Finding]]
CHECKS: List[Check] = []


def checks(what: str, fix: Optional[str] = None, command: Optional[str] = None) -> Callable[[Check], Check]:
    """Adds a function to the checks of conditions. Its findings have this fix unless they bring their own."""

    def add(check: Check) -> Check:
        def named(machine: Machine) -> Optional[Finding]:
            found = check(machine)
            return found and replace(found, what=what, fix=found.fix or fix, command=found.command or command)

        CHECKS.append(named)
        return named

    return add


def findings_of(machine: Machine) -> List[Finding]:
    """Returns all findings: what disturbs now first, and of each level what costs most."""
    found = [finding for check in CHECKS if (finding := check(machine))]
    return sorted(found, key=lambda one: (LEVELS.index(one.level), 1.0 if one.cost is None else -one.cost))


# ---- build, other programs, limits ----


@checks(
    "build",
    "Measure with an optimised build without sanitizers.",
    "meson setup build-release --buildtype=release && ninja -C build-release",
)
def build(machine: Machine) -> Optional[Finding]:
    """Finds a build whose times are not those of the kernels."""
    sanitizer = machine.fact("build.sanitizer")
    if not sanitizer and not is_unoptimised(machine.env):
        return fine(f"{machine.fact('build.cc')}, optimised")
    return Finding(COSTS, f"posenc was built with{f' the {sanitizer} sanitizer' if sanitizer else 'out optimisation'}")


@checks("other programs", "End them and run this again: all other measurements were taken beside them.", "top")
def others(machine: Machine) -> Optional[Finding]:
    """Finds other programs. They cost what a loop missed while they ran."""
    lost = machine.measured("gaps.lost_pct")
    felt, words = other_programs(machine.env, machine.noise)
    taken = member(machine.doctor, "neighbours.taken") or []
    names = ", ".join(f"{one.get('name')} {number(one, 'cpus') or 0:.2f}" for one in taken)
    words = words.replace("other programs took", "they took") + (f": {names}" if names else "")
    if all((number(machine.noise, name) or -1.0) < 0 for name in ("others", "load1")):
        return hidden("/proc/stat")
    if not felt:
        return fine(words)
    words += "" if lost is None else f"; a loop that reads the clock missed {lost:.2f} % of the time"
    return Finding(COSTS, words, lost)


ANOTHER_HOST = "Use an instance with CPUs of its own (dedicated, bare metal), or another hour."


@checks("steal", ANOTHER_HOST)
def steal(machine: Machine) -> Optional[Finding]:
    """Finds CPU time that a hypervisor took."""
    pct = number(machine.noise, "steal_pct")
    if pct is not None and pct > 0.1:
        return Finding(COSTS, f"a hypervisor gave {pct:.1f} % of its CPU time to others", pct)
    if pct is not None and pct >= 0 and machine.fact("virtualization"):
        return fine(f"{pct:.2f} % of its CPU time", pct)
    return None


@checks("virtual machine", ANOTHER_HOST)
def virtual_machine(machine: Machine) -> Optional[Finding]:
    """Finds a hypervisor."""
    name = machine.fact("virtualization")
    if name:
        words = f"{name}: the effect of other guests on caches, memory and frequency cannot be seen"
        return Finding(NOTE, words)
    unknown = member(machine.env, "virtualization") == NOT_EXPOSED
    return Finding(HIDDEN, "the system does not say if it is one") if unknown else None


WHOLE_CPUS = "Give the container whole CPUs instead of a share of their time."
QUOTA_FIXES = {
    "docker": (WHOLE_CPUS, "docker run --cpuset-cpus=2,3 IMAGE     # not --cpus"),
    "podman": (WHOLE_CPUS, "podman run --cpuset-cpus=2,3 IMAGE     # not --cpus"),
    "kubernetes": (
        "Make the pod Guaranteed: requests equal to limits, in whole CPUs, on a node whose kubelet has "
        "--cpu-manager-policy=static.",
        "kubectl set resources deployment/NAME --requests=cpu=2,memory=4Gi --limits=cpu=2,memory=4Gi",
    ),
    "": ("Run it outside that control group, or lift the quota.", "sudo systemd-run --scope posenc doctor"),
}


@checks("quota")
def quota(machine: Machine) -> Optional[Finding]:
    """Finds a quota of CPU time."""
    cpus, container = machine.amount("limits.quota"), machine.fact("limits.container")
    stalled = number(machine.noise, "throttled_pct") or 0.0
    fix = QUOTA_FIXES.get(container, QUOTA_FIXES[""])
    limit = f"a control group allows {cpus:.3g} CPUs" if cpus > 0 else "a control group has a quota"
    if stalled > 0.1:
        return Finding(COSTS, f"{limit} and stalled this program for {stalled:.1f} % of the time", stalled, *fix)
    if cpus > 0:
        return Finding(NOTE, f"{limit}; it stalls a program whose threads use more", None, *fix)
    return fine(f"in a container ({container}) without one") if container else None


@checks("interruptions")
def interruptions(machine: Machine) -> Optional[Finding]:
    """Finds what interrupts a loop. Beside other programs most of it is theirs."""
    lost = machine.measured("gaps.lost_pct")
    if lost is None or other_programs(machine.env, machine.noise)[0]:
        return None
    longest, count = machine.measured("gaps.longest_us") or 0.0, machine.measured("gaps.over_100us") or 0.0
    cpu = 1 if machine.cpu is None else machine.cpu
    return Finding(
        COSTS if lost > 0.5 or longest > 1000.0 else FINE,
        f"a loop that reads the clock missed {lost:.2f} % of the time, {longest:.0f} us at most, "
        f"over 100 us {count:.0f} times",
        lost,
        f"Measure on a CPU that the kernel leaves alone: boot with isolcpus={cpu} nohz_full={cpu} rcu_nocbs={cpu}, "
        "and keep interrupts on CPU 0.",
        "sudo systemctl stop irqbalance; echo 0 | sudo tee /proc/irq/*/smp_affinity_list",
    )


@checks("disks", "Let copies and indexing end.", "sudo iotop -o")
def disks(machine: Machine) -> Optional[Finding]:
    """Finds programs that wait for disks."""
    io = number(machine.noise, "wait_io_pct")
    if io is not None and io > 5.0:
        return Finding(COSTS, f"for {io:.0f} % of the time a program waited for a disk")
    return fine(f"programs waited for them for {io:.1f} % of the time") if io is not None else None


# ---- the CPU that was measured, and those beside it ----


@checks("pinning")
def pinning(machine: Machine) -> Optional[Finding]:
    """Finds what it costs that the system chooses the CPU."""
    cpu = machine.cpu
    if not machine.doctor:
        return None
    if cpu is None:
        return hidden("a way to keep a program on one CPU")
    if number(machine.env, "cpus.pinned") is not None:
        return fine(f"started on CPU {cpu} alone")
    gains = []
    for place in ("cache", "DRAM"):
        floors = [machine.one("floors", place=place, pinned=pinned) for pinned in (False, True)]
        detects = [number(floor, "detectable_pct") for floor in floors if (number(floor, "comparisons") or 0.0) >= 1]
        if len(detects) == 2 and detects[0] is not None and detects[1] is not None:
            gains.append((detects[0] - detects[1], place, detects[0], detects[1]))
    if not gains:
        return None
    gain, place, free, pinned = max(gains, key=lambda one: one[0])
    if gain <= PINNING_PCT:
        return fine(f"kept to CPU {cpu} or not, it detects the same")
    words = f"on any CPU it detects {free:.1f} % in {place}; kept to CPU {cpu}, {pinned:.1f} %"
    return Finding(COSTS, words, gain, "Keep the program on one CPU.", f"taskset -c {cpu} posenc compare BASE HEAD")


def _slowdown(beside: Record) -> Tuple[str, Optional[float]]:
    """Returns how much longer a call takes beside a busy CPU, in words and in percent."""
    cache, dram = number(beside, "cache") or 0.0, number(beside, "dram") or 0.0
    most = max(cache, dram)
    if most <= 0:
        return "", None
    words = f"{most:.2f} times as long"
    if most == 1.0:
        words = "no longer, as far as timings show"
    elif cache > 0 and dram > 0:
        words = f"{cache:.2f} times as long in cache and {dram:.2f} times in DRAM"
    return words, max(100.0 * (most - 1.0), 0.0)


@checks(
    "SMT",
    "Keep the other thread of the core idle, or switch SMT off.",
    "echo off | sudo tee /sys/devices/system/cpu/smt/control",
)
def siblings(machine: Machine) -> Optional[Finding]:
    """Finds the other thread of the core."""
    best = number(machine.env, "cpus.best")
    cpu = machine.cpu if machine.doctor else int(best) if best is not None else None
    core = cpus_of(machine.fact("cpus.siblings"))
    other = min((one for one in core if one != cpu), default=None) if cpu in core else None
    if other is None and not core and not machine.fact("cpus.smt"):
        return hidden("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    if other is None:
        return fine("no other thread shares the core, as far as the system says")
    words, cost = _slowdown(machine.one("beside", sibling=True))
    busy = machine.busy(other) or 0.0
    text = f"CPU {other} is a thread of the same core"
    text += f" and was busy for {100 * busy:.0f} % of the time" if machine.doctor else ""
    text += f"; with a program on it a call takes {words}" if words else ""
    return Finding(COSTS if busy > BUSY else NOTE, text, cost)


@checks("shared memory", "Let nothing run on the other cores during measurements.", "top")
def shared_memory(machine: Machine) -> Optional[Finding]:
    """Finds what a program on another core takes of caches and memory."""
    beside = machine.one("beside", sibling=False)
    words, cost = _slowdown(beside)
    if cost is None:
        return None
    cpu = int(number(beside, "cpu") or 0)
    busy = (machine.busy(cpu) or 0.0) > BUSY or other_programs(machine.env, machine.noise)[0]
    level = FINE if cost <= 2.0 else COSTS if busy else NOTE
    words = f"while CPU {cpu} does the same a call takes {words}"
    return Finding(level, words, cost)


@checks("kinds of core")
def kinds_of_core(machine: Machine) -> Optional[Finding]:
    """Finds cores of several kinds."""
    kinds, best = machine.amount("cpus.kinds"), int(machine.amount("cpus.best"))
    if kinds <= 1:
        return None
    words = f"it has {kinds:.0f} kinds of cores of different speed; CPU {best} is of the fastest kind"
    return Finding(NOTE, words, None, "Keep the program on a core of one kind.", f"taskset -c {best} posenc bench")


@checks("isolation")
def isolation(machine: Machine) -> Optional[Finding]:
    """Finds CPUs that the kernel keeps free."""
    isolated = machine.fact("cpus.isolated")
    return fine(f"the scheduler puts nothing on CPU {isolated}") if isolated else None


# ---- frequency, clock, power ----


def _waking_pct(machine: Machine) -> Optional[float]:
    """Returns what a core lacks of its frequency after a sleep, in percent."""
    share = machine.measured("frequency.after_sleep")
    return max(100.0 * (1.0 - share), 0.0) if share is not None and share > 0 else None


@checks(
    "governor",
    "Keep the frequency up, or warm up longer than it takes to rise.",
    "sudo cpupower frequency-set -g performance",
)
def governor(machine: Machine) -> Optional[Finding]:
    """Finds a frequency governor that lets the clock fall."""
    name, driver = machine.fact("frequency.governor"), member(machine.env, "frequency.driver") or ""
    preference = machine.fact("frequency.preference")
    if not name:
        return hidden("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if name == "performance":
        return fine(f"{name} ({driver})")
    details = f"{driver}, preference {preference}" if preference else driver
    return Finding(COSTS, f"the frequency governor is {name} ({details})", _waking_pct(machine))


@checks("frequency")
def drift(machine: Machine) -> Optional[Finding]:
    """Finds a frequency that varies."""
    if not machine.doctor:
        return None
    ghz = machine.measured("frequency.ghz") or 0.0
    if ghz <= 0:
        return hidden("a chain of additions for this architecture")
    low, high = machine.measured("frequency.low") or 0.0, machine.measured("frequency.high") or 0.0
    pct, boost = 100.0 * (high - low) / ghz, machine.fact("frequency.boost")
    turbo = {"": NOT_EXPOSED, "1": "on"}.get(boost, "off")
    words = f"{ghz:.2f} GHz, between {low:.2f} and {high:.2f} in nine of ten samples; turbo is {turbo}"
    level = COSTS if pct > STEADY_PCT else NOTE if boost == "1" else FINE
    if boost != "1":
        return Finding(
            level, words, pct, "Rely on ratios within a run, as compare does, not on times of different days."
        )
    intel = machine.fact("frequency.driver").startswith("intel")
    switch = "echo 1 | sudo tee {}/intel_pstate/no_turbo" if intel else "echo 0 | sudo tee {}/cpufreq/boost"
    return Finding(level, words, pct, "Switch turbo (boost) off: it depends on heat and on other cores.",
                   switch.format("/sys/devices/system/cpu"))  # fmt: skip


@checks(
    "waking",
    "Keep the core from deep sleep; bench and compare warm up before each sample.",
    "sudo cpupower idle-set -D 10",
)
def waking(machine: Machine) -> Optional[Finding]:
    """Finds a core that wakes slowly, if that is not the governor's doing."""
    pct = _waking_pct(machine)
    if pct is None or machine.fact("frequency.governor") not in ("", "performance"):
        return None
    return Finding(
        NOTE if pct > 3.0 else FINE,
        f"after a sleep of 30 ms the core begins at {100 - pct:.0f} % of its frequency and takes "
        f"{machine.measured('frequency.settled_ms') or 0.0:.1f} ms to settle",
        pct,
    )


@checks(
    "AVX-512",
    "Time wide and narrow backends in separate runs, or use at most 256 bits.",
    "POSENC_MAX_ISA=avx2 posenc bench",
)
def wide_vectors(machine: Machine) -> Optional[Finding]:
    """Finds a frequency that falls with 512-bit arithmetic."""
    share = machine.measured("frequency.after_vectors") or 0.0
    if share <= 0:
        return None
    if share >= 0.97:
        return fine("lowers the frequency by less than 3 %")
    words = f"after 512-bit arithmetic the core runs at {100 * share:.0f} % of its frequency"
    return Finding(COSTS, words, 100.0 * (1.0 - share))


@checks("clock")
def clock(machine: Machine) -> Optional[Finding]:
    """Finds a clock that is slow to read, or runs backwards."""
    reading, step = machine.measured("clock.reading_ns"), machine.measured("clock.step_ns") or 0.0
    if reading is None:
        return None
    source = str(member(machine.env, "timer.source") or "")
    backwards = member(machine.doctor, "measured.clock.backwards") is True
    slow = backwards or reading > SLOW_READING_NS or source in ("hpet", "acpi_pm", "jiffies")
    words = f"{source}: a reading takes {reading:.0f} ns, in steps of {step:.0f} ns"
    words += ", and it ran backwards" if backwards else ""
    return Finding(COSTS if slow else FINE, words, 100.0 * reading / SAMPLE_NS, *_faster_clock(machine))


def _faster_clock(machine: Machine) -> Tuple[str, Optional[str]]:
    if machine.fact("timer.source") == "tsc":
        return "Its readings leave the guest. Use a host that passes the CPU's counter on.", None
    if "tsc" in machine.fact("timer.sources"):
        folder = "/sys/devices/system/clocksource/clocksource0"
        return "Use the CPU's own counter.", f"echo tsc | sudo tee {folder}/current_clocksource"
    fix = "The kernel distrusts the CPU's counter (dmesg says why). If it is wrong, boot with tsc=reliable."
    return fix, "sudo dmesg | grep -i tsc"


@checks("power", "Plug it in.")
def power(machine: Machine) -> Optional[Finding]:
    """Finds a battery."""
    source = machine.fact("limits.power")
    if source == "battery":
        return Finding(COSTS, "it runs on its battery")
    return fine("from the mains") if source == "mains" else None


@checks(
    "heat", "Let it cool, or keep it below the frequency at which it gets hot.", "sudo cpupower frequency-set -u 2GHz"
)
def heat(machine: Machine) -> Optional[Finding]:
    """Finds a CPU that is slowed by heat."""
    times = number(machine.noise, "heat")
    if times is not None and times > 0:
        return Finding(COSTS, f"the CPU was slowed {times:.0f} times because it was hot")
    return fine("the CPU was not slowed by it") if times is not None else None


# ---- memory ----


HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"


@checks(
    "huge pages",
    "Let programs ask for huge pages, so that chance decides nothing.",
    f"echo madvise | sudo tee {HUGE_PAGES}",
)
def huge_pages(machine: Machine) -> Optional[Finding]:
    """Finds huge pages that come by chance."""
    mode, times = machine.fact("memory.thp"), machine.measured("pages.small_over_huge")
    cost, words = None, ""
    if times is not None and times > 0:
        cost = max(100.0 * (times - 1.0), 0.0)
        words = f"; in DRAM a call takes {times:.2f} times as long in small ones"
    if times == 1.0:
        words = "; in DRAM no difference between small and huge is detected"
    if not mode:
        return hidden(HUGE_PAGES)
    if mode != "always":
        return fine(f"{mode}, the same in all measurements{words}", cost)
    return Finding(COSTS, f"always: chance decides if a buffer gets them{words}", cost)


@checks("NUMA")
def nodes(machine: Machine) -> Optional[Finding]:
    """Finds memory of several nodes."""
    count, moved = machine.amount("memory.nodes"), machine.amount("memory.balancing") > 0
    if count <= 1:
        return fine("one node") if count > 0 else None
    words, command = f"memory has {count:.0f} nodes", "numactl --cpunodebind=0 --membind=0 posenc bench"
    if not moved:
        return Finding(COSTS, words, None, "Keep the program and its memory on one node.", command)
    fix = "Keep the program and its memory on one node, and pages where they are."
    words += ", and the kernel moves pages between them"
    return Finding(COSTS, words, None, fix, f"sudo sysctl kernel.numa_balancing=0 && {command}")


@checks("swap", "Keep everything in memory.", "sudo swapoff -a")
def swap(machine: Machine) -> Optional[Finding]:
    """Finds memory that lies on disk."""
    moved, used = number(machine.noise, "swapped") or 0.0, number(machine.env, "memory.swap_used")
    if moved > 0:
        return Finding(COSTS, f"{moved:.0f} pages were moved to or from disk during the run")
    if used is not None and used > 0:
        return Finding(NOTE, f"{used / 2**20:.0f} MiB lie on disk; none moved during the run")
    return fine("not used") if used is not None else None


@checks(
    "denormals",
    "Find the library that switches them off: one linked with -ffast-math does.",
    "ldd $(command -v posenc); echo $LD_PRELOAD",
)
def denormals(machine: Machine) -> Optional[Finding]:
    """Finds denormal numbers that are flushed to zero."""
    flushed = member(machine.doctor, "measured.denormals.flushed")
    if flushed is True:
        return Finding(COSTS, "flushed to zero (FTZ or DAZ is set), unlike in the checks")
    times = machine.measured("denormals.times") or 0.0
    return fine(f"kept; a product that is one takes {times:.1f} times as long") if flushed is False else None


@checks(
    "addresses",
    "Let each process have its own addresses: one layout may be lucky.",
    "sudo sysctl kernel.randomize_va_space=2",
)
def addresses(machine: Machine) -> Optional[Finding]:
    """Finds processes that all get the same addresses."""
    aslr = number(machine.env, "limits.aslr")
    if aslr == 0:
        return Finding(NOTE, "all processes get the same: the cost of a layout is in each time alike")
    random = aslr is not None and aslr > 0
    return fine("random in each process: compare runs several, and layout becomes noise") if random else None
