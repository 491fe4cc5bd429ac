"""Findings: conditions that disturb timings, with their measured cost and the command that fixes each.

main.py calls findings_of() with the records of a run, from which alone they are made:

    what "governor"   level "costs"   cost_pct 3.1   evidence "the frequency governor is powersave (intel_pstate)"
    fix "Keep the frequency up, or ..."   command "sudo cpupower frequency-set -g performance"   root true

A function _check_*() checks a condition, or some that belong together. It yields no finding if nothing is known of
them.
"""

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..quality import NOT_EXPOSED, exposed, is_unoptimised, other_programs
from ..records import Record, member, number

# Levels: it disturbs now; it may disturb; it does not disturb; the system does not expose it.
COSTS, NOTE, FINE, HIDDEN = LEVELS = ("costs", "note", "fine", "hidden")

SAMPLE_NS = 100_000  # the least that a sample lasts
SLOW_READING_NS = 200  # a clock that takes longer to read makes a system call
STEADY_PCT = 1.0  # a frequency that varies by less is steady
PINNING_PCT = 0.5  # smallest gain of pinning that counts
BUSY = 0.05  # a CPU is busy if it works for a larger share of the time

Findings = Iterator[Record]


class Run(NamedTuple):
    """Records of one run on one machine. `doctor` is empty without a probe, `footer` if the run ended early."""

    env: Record
    doctor: Record
    footer: Record

    @property
    def noise(self) -> Record:
        """Noise that the run saw on the machine."""
        noise: Dict[str, Any] = self.footer.get("noise") or {}
        return noise

    @property
    def cpu(self) -> Optional[int]:
        """The CPU that was measured."""
        cpu = number(self.doctor, "cpu")
        return int(cpu) if cpu is not None and cpu >= 0 else None

    def fact(self, path: str) -> str:
        """Returns a text of the env record; empty if it is not exposed."""
        return exposed(self.env, path)

    def amount(self, path: str) -> float:
        """Returns a number of the env record, or 0."""
        return number(self.env, path) or 0.0

    def measured(self, path: str) -> Optional[float]:
        """Returns a number that the probe measured."""
        return number(self.doctor, f"measured.{path}")

    def select(self, name: str, **wanted: object) -> Record:
        """Returns the measurement of a list whose members have the wanted values: select("beside", sibling=True)."""
        listed = member(self.doctor, f"measured.{name}") or []
        return next((dict(item) for item in listed if wanted.items() <= item.items()), {})

    def busy(self, cpu: int) -> float:
        """Returns the share of the time in which a CPU was busy."""
        shares = member(self.doctor, "neighbours.busy") or []
        return float(shares[cpu]) if 0 <= cpu < len(shares) else 0.0


def _finding(
    level: str, what: str, seen: str, cost: Optional[float] = None, fix: str = "", command: str = ""
) -> Record:
    """Returns a finding: a condition, and its fix in words and as a command. Fine conditions need no fix.

    `seen` is the evidence. `cost` is how much longer or less certain timings are, in percent; None if unknown.
    """
    if level in (FINE, HIDDEN):
        fix = command = ""
    return {"what": what, "level": level, "cost_pct": cost, "evidence": seen, "fix": fix or None,
            "command": command or None, "root": "sudo " in command}  # fmt: skip


def _fine(what: str, seen: str, cost: Optional[float] = 0.0) -> Record:
    """Returns the finding that a condition does not disturb."""
    return _finding(FINE, what, seen, cost)


def _hidden(what: str, source: str) -> Record:
    """Returns the finding that the system does not expose a condition."""
    return _finding(HIDDEN, what, f"{source} is missing or cannot be read")


def cpus_of(text: str) -> List[int]:
    """Returns the CPUs of a list such as 0-3,8."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
    return [cpu for first, last in ranges for cpu in range(int(first), min(int(last or first), int(first) + 4096) + 1)]


def findings_of(run: Run) -> List[Record]:
    """Returns all findings by level, those that disturb now first, and by cost within a level."""

    def order(finding: Record) -> Tuple[int, float]:
        cost = finding["cost_pct"]
        return LEVELS.index(finding["level"]), 1.0 if cost is None else -cost

    return sorted((finding for check in CHECKS for finding in check(run)), key=order)


# ---- build, other programs, limits ----


def _check_build(run: Run) -> Findings:
    """Finds a build whose times are not those of the kernels."""
    sanitizer = run.fact("build.sanitizer")
    if sanitizer or is_unoptimised(run.env):
        how = f" the {sanitizer} sanitizer" if sanitizer else "out optimisation"
        yield _finding(COSTS, "build", f"posenc was built with{how}", None,
                       "Measure with an optimised build without sanitizers.",
                       "meson setup build-release --buildtype=release && ninja -C build-release")  # fmt: skip
    else:
        yield _fine("build", f"{run.fact('build.cc')}, optimised")


def _check_others(run: Run) -> Findings:
    """Finds other programs. Their cost is the time that a loop missed while they ran."""
    lost = run.measured("gaps.lost_pct")
    disturb, words = other_programs(run.env, run.noise)
    programs = member(run.doctor, "neighbours.taken") or []
    names = ", ".join(f"{program.get('name')} {number(program, 'cpus') or 0:.2f}" for program in programs)
    words = words.replace("other programs took", "they took") + (f": {names}" if names else "")
    if all((number(run.noise, name) or -1.0) < 0 for name in ("others", "load1")):
        yield _hidden("other programs", "/proc/stat")
    elif disturb:
        words += "" if lost is None else f"; a loop that reads the clock missed {lost:.2f} % of the time"
        fix = "End them and run this again: all other measurements were taken beside them."
        yield _finding(COSTS, "other programs", words, lost, fix, "top")
    else:
        yield _fine("other programs", words)


def _check_host(run: Run) -> Findings:
    """Finds a hypervisor, and the CPU time that it took."""
    pct, name = number(run.noise, "steal_pct"), run.fact("virtualization")
    fix = "Use an instance with CPUs of its own (dedicated, bare metal), or another hour."
    if pct is not None and pct > 0.1:
        yield _finding(COSTS, "steal", f"a hypervisor gave {pct:.1f} % of its CPU time to others", pct, fix)
    elif pct is not None and pct >= 0 and name:
        yield _fine("steal", f"{pct:.2f} % of its CPU time", pct)
    if name:
        words = f"{name}: the effect of other guests on caches, memory and frequency cannot be seen"
        yield _finding(NOTE, "virtual machine", words, None, fix)
    elif member(run.env, "virtualization") == NOT_EXPOSED:
        yield _finding(HIDDEN, "virtual machine", "the system does not say if it is one")


def _check_quota(run: Run) -> Findings:
    """Finds a quota of CPU time."""
    cpus, container = run.amount("limits.quota"), run.fact("limits.container")
    stalled = number(run.noise, "throttled_pct") or 0.0
    fix, command = "Run it outside that control group, or lift the quota.", "sudo systemd-run --scope posenc doctor"
    if container in ("docker", "podman"):
        fix = "Give the container whole CPUs instead of a share of their time."
        command = f"{container} run --cpuset-cpus=2,3 IMAGE     # not --cpus"
    elif container == "kubernetes":
        fix = ("Make the pod Guaranteed: requests equal to limits, in whole CPUs, on a node whose kubelet has "
               "--cpu-manager-policy=static.")  # fmt: skip
        command = "kubectl set resources deployment/NAME --requests=cpu=2,memory=4Gi --limits=cpu=2,memory=4Gi"
    limit = f"a control group allows {cpus:.3g} CPUs" if cpus > 0 else "a control group has a quota"
    if stalled > 0.1:
        words = f"{limit} and stalled this program for {stalled:.1f} % of the time"
        yield _finding(COSTS, "quota", words, stalled, fix, command)
    elif cpus > 0:
        words = f"{limit}; it stalls a program whose threads use more"
        yield _finding(NOTE, "quota", words, None, fix, command)
    elif container:
        yield _fine("quota", f"in a container ({container}) without one")


def _check_interruptions(run: Run) -> Findings:
    """Finds interruptions of a loop. Skipped beside other programs, which cause most of them."""
    lost = run.measured("gaps.lost_pct")
    if lost is None or other_programs(run.env, run.noise)[0]:
        return
    longest, count = run.measured("gaps.longest_us") or 0.0, run.measured("gaps.over_100us") or 0.0
    cpu = 1 if run.cpu is None else run.cpu
    yield _finding(
        COSTS if lost > 0.5 or longest > 1000.0 else FINE,
        "interruptions",
        f"a loop that reads the clock missed {lost:.2f} % of the time, {longest:.0f} us at most, "
        f"over 100 us {count:.0f} times",
        lost,
        f"Measure on a CPU that the kernel leaves alone: boot with isolcpus={cpu} nohz_full={cpu} rcu_nocbs={cpu}, "
        "and keep interrupts on CPU 0.",
        "sudo systemctl stop irqbalance; echo 0 | sudo tee /proc/irq/*/smp_affinity_list",
    )


def _check_disks(run: Run) -> Findings:
    """Finds programs that wait for disks."""
    io = number(run.noise, "wait_io_pct")
    if io is not None and io > 5.0:
        words = f"for {io:.0f} % of the time a program waited for a disk"
        yield _finding(COSTS, "disks", words, None, "Let copies and indexing end.", "sudo iotop -o")
    elif io is not None:
        yield _fine("disks", f"programs waited for them for {io:.1f} % of the time")


# ---- the CPU that was measured, and those beside it ----


def _check_pinning(run: Run) -> Findings:
    """Finds the cost of letting the system choose the CPU."""
    cpu, gains = run.cpu, []
    for place in ("cache", "DRAM"):
        floors = [run.select("floors", place=place, pinned=pinned) for pinned in (False, True)]
        compared = all((number(floor, "comparisons") or 0) >= 1 for floor in floors)
        free, pinned = (number(floor, "detectable_pct") for floor in floors)
        if compared and free is not None and pinned is not None:
            gains.append((free - pinned, place, free, pinned))
    if run.doctor and cpu is None:
        yield _hidden("pinning", "a way to keep a program on one CPU")
    elif run.doctor and number(run.env, "cpus.pinned") is not None:
        yield _fine("pinning", f"started on CPU {cpu} alone")
    elif gains:
        gain, place, free, pinned = max(gains, key=lambda gain: gain[0])
        if gain <= PINNING_PCT:
            yield _fine("pinning", f"kept to CPU {cpu} or not, it detects the same")
        else:
            words = f"on any CPU it detects {free:.1f} % in {place}; kept to CPU {cpu}, {pinned:.1f} %"
            command = f"taskset -c {cpu} posenc compare BASE HEAD"
            yield _finding(COSTS, "pinning", words, gain, "Keep the program on one CPU.", command)


def _check_siblings(run: Run) -> Findings:
    """Finds the other thread of the core."""
    best = number(run.env, "cpus.best")
    cpu = run.cpu if run.doctor else int(best) if best is not None else None
    core = cpus_of(run.fact("cpus.siblings"))
    other = min((sibling for sibling in core if sibling != cpu), default=None) if cpu in core else None
    words, cost = _slowdown(run.select("beside", sibling=True))
    if other is not None:
        text = f"CPU {other} is a thread of the same core"
        text += f" and was busy for {100 * run.busy(other):.0f} % of the time" if run.doctor else ""
        text += f"; with a program on it a call takes {words}" if words else ""
        yield _finding(COSTS if run.busy(other) > BUSY else NOTE, "SMT", text, cost,
                       "Keep the other thread of the core idle, or switch SMT off.",
                       "echo off | sudo tee /sys/devices/system/cpu/smt/control")  # fmt: skip
    elif core or run.fact("cpus.smt"):
        yield _fine("SMT", "no other thread shares the core, as far as the system says")
    else:
        yield _hidden("SMT", "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")


def _check_shared_memory(run: Run) -> Findings:
    """Finds the cost of programs on other cores, which share caches and memory."""
    beside = run.select("beside", sibling=False)
    words, cost = _slowdown(beside)
    if cost is not None:
        other = int(number(beside, "cpu") or 0)
        busy = run.busy(other) > BUSY or other_programs(run.env, run.noise)[0]
        level = FINE if cost <= 2.0 else COSTS if busy else NOTE
        text = f"while CPU {other} does the same a call takes {words}"
        fix = "Let nothing run on the other cores during measurements."
        yield _finding(level, "shared memory", text, cost, fix, "top")


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


def _check_cores(run: Run) -> Findings:
    """Finds cores of several kinds, and CPUs that the kernel keeps free."""
    kinds, best, isolated = run.amount("cpus.kinds"), run.amount("cpus.best"), run.fact("cpus.isolated")
    if kinds > 1:
        words = f"it has {kinds:.0f} kinds of cores of different speed; CPU {best:.0f} is of the fastest kind"
        fix = "Keep the program on a core of one kind."
        yield _finding(NOTE, "kinds of core", words, None, fix, f"taskset -c {best:.0f} posenc bench")
    if isolated:
        yield _fine("isolation", f"the scheduler puts nothing on CPU {isolated}")


# ---- frequency, clock, power ----


def _check_governor(run: Run) -> Findings:
    """Finds a frequency governor that lets the clock fall; without one, a core that wakes slowly."""
    share = run.measured("frequency.after_sleep") or 0.0
    pct = max(100.0 * (1.0 - share), 0.0) if share > 0 else None
    name, details = run.fact("frequency.governor"), member(run.env, "frequency.driver") or ""
    if not name:
        yield _hidden("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    elif name == "performance":
        yield _fine("governor", f"{name} ({details})")
    else:
        preference = run.fact("frequency.preference")
        details += f", preference {preference}" if preference else ""
        yield _finding(COSTS, "governor", f"the frequency governor is {name} ({details})", pct,
                       "Keep the frequency up, or warm up longer than it takes to rise.",
                       "sudo cpupower frequency-set -g performance")  # fmt: skip
    if pct is not None and name in ("", "performance"):
        words = (
            f"after a sleep of 30 ms the core begins at {100 - pct:.0f} % of its frequency and takes "
            f"{run.measured('frequency.settled_ms') or 0.0:.1f} ms to settle"
        )
        yield _finding(NOTE if pct > 3.0 else FINE, "waking", words, pct,
                       "Keep the core from deep sleep; bench and compare warm up before each sample.",
                       "sudo cpupower idle-set -D 10")  # fmt: skip


def _check_frequency(run: Run) -> Findings:
    """Finds a frequency that varies, or that falls with 512-bit arithmetic."""
    ghz, low, high, wide = (
        run.measured(f"frequency.{name}") or 0.0 for name in ("ghz", "low", "high", "after_vectors")
    )
    if ghz > 0:
        pct, boost = 100.0 * (high - low) / ghz, run.fact("frequency.boost")
        turbo = {"": NOT_EXPOSED, "1": "on"}.get(boost, "off")
        words = f"{ghz:.2f} GHz, between {low:.2f} and {high:.2f} in nine of ten samples; turbo is {turbo}"
        fix, command = "Rely on ratios within a run, as compare does, not on times of different days.", ""
        if boost == "1":
            fix = "Switch turbo (boost) off: it depends on heat and on other cores."
            intel = run.fact("frequency.driver").startswith("intel")
            switch = "echo 1 | sudo tee {}/intel_pstate/no_turbo" if intel else "echo 0 | sudo tee {}/cpufreq/boost"
            command = switch.format("/sys/devices/system/cpu")
        level = COSTS if pct > STEADY_PCT else NOTE if boost == "1" else FINE
        yield _finding(level, "frequency", words, pct, fix, command)
    elif run.doctor:
        yield _hidden("frequency", "a chain of additions for this architecture")
    if wide >= 0.97:
        yield _fine("AVX-512", "lowers the frequency by less than 3 %")
    elif wide > 0:
        words = f"after 512-bit arithmetic the core runs at {100 * wide:.0f} % of its frequency"
        fix = "Time wide and narrow backends in separate runs, or use at most 256 bits."
        yield _finding(COSTS, "AVX-512", words, 100.0 * (1.0 - wide), fix, "POSENC_MAX_ISA=avx2 posenc bench")


def _check_clock(run: Run) -> Findings:
    """Finds a clock that is slow to read, or runs backwards."""
    reading, step = run.measured("clock.reading_ns"), run.measured("clock.step_ns") or 0.0
    if reading is None:
        return
    source = str(member(run.env, "timer.source") or "")
    backwards = member(run.doctor, "measured.clock.backwards") is True
    slow = backwards or reading > SLOW_READING_NS or source in ("hpet", "acpi_pm", "jiffies")
    words = f"{source}: a reading takes {reading:.0f} ns, in steps of {step:.0f} ns"
    words += ", and it ran backwards" if backwards else ""
    fix = "The kernel distrusts the CPU's counter (dmesg says why). If it is wrong, boot with tsc=reliable."
    command = "sudo dmesg | grep -i tsc"
    if source == "tsc":
        fix, command = "Its readings leave the guest. Use a host that passes the CPU's counter on.", ""
    elif "tsc" in run.fact("timer.sources"):
        fix = "Use the CPU's own counter."
        command = "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
    yield _finding(COSTS if slow else FINE, "clock", words, 100.0 * reading / SAMPLE_NS, fix, command)


def _check_power(run: Run) -> Findings:
    """Finds a battery, and a CPU that is slowed by heat."""
    source, times = run.fact("limits.power"), number(run.noise, "heat")
    if source == "battery":
        yield _finding(COSTS, "power", "the machine runs on battery power", None, "Plug it in.")
    elif source == "mains":
        yield _fine("power", "from the mains")
    if times is not None and times > 0:
        words = f"the CPU was slowed {times:.0f} times because it was hot"
        fix = "Let it cool, or keep it below the frequency at which it gets hot."
        yield _finding(COSTS, "heat", words, None, fix, "sudo cpupower frequency-set -u 2GHz")
    elif times is not None:
        yield _fine("heat", "the CPU was not slowed by it")


# ---- memory ----


def _check_huge_pages(run: Run) -> Findings:
    """Finds huge pages that come by chance."""
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    mode, times = run.fact("memory.thp"), run.measured("pages.small_over_huge") or 0.0
    cost = max(100.0 * (times - 1.0), 0.0) if times > 0 else None
    words = f"; in DRAM a call takes {times:.2f} times as long in small ones" if times > 0 else ""
    if times == 1.0:
        words = "; in DRAM no difference between small and huge is detected"
    if not mode:
        yield _hidden("huge pages", path)
    elif mode == "always":
        words = f"always: chance decides if a buffer gets them{words}"
        fix = "Let programs ask for huge pages, so that chance decides nothing."
        yield _finding(COSTS, "huge pages", words, cost, fix, f"echo madvise | sudo tee {path}")
    else:
        yield _fine("huge pages", f"{mode}, the same in all measurements{words}", cost)


def _check_nodes(run: Run) -> Findings:
    """Finds memory of several nodes."""
    count, moved = run.amount("memory.nodes"), run.amount("memory.balancing") > 0
    words, command = f"memory has {count:.0f} nodes", "numactl --cpunodebind=0 --membind=0 posenc bench"
    if count > 1 and moved:
        words += ", and the kernel moves pages between them"
        fix = "Keep the program and its memory on one node, and pages where they are."
        yield _finding(COSTS, "NUMA", words, None, fix, f"sudo sysctl kernel.numa_balancing=0 && {command}")
    elif count > 1:
        yield _finding(COSTS, "NUMA", words, None, "Keep the program and its memory on one node.", command)
    elif count > 0:
        yield _fine("NUMA", "one node")


def _check_swap(run: Run) -> Findings:
    """Finds memory that lies on disk."""
    moved, used = number(run.noise, "swapped") or 0.0, number(run.env, "memory.swap_used")
    if moved > 0 or (used or 0.0) > 0:
        words = f"{moved:.0f} pages were moved to or from disk during the run"
        if moved <= 0:
            words = f"{(used or 0.0) / 2**20:.0f} MiB lie on disk; none moved during the run"
        yield _finding(
            COSTS if moved > 0 else NOTE, "swap", words, None, "Keep everything in memory.", "sudo swapoff -a"
        )
    elif used is not None:
        yield _fine("swap", "not used")


def _check_process(run: Run) -> Findings:
    """Finds denormal numbers that are flushed to zero, and memory at the same addresses in all processes."""
    flushed, times = member(run.doctor, "measured.denormals.flushed"), run.measured("denormals.times") or 0.0
    if flushed is True:
        yield _finding(COSTS, "denormals", "flushed to zero (FTZ or DAZ is set), unlike in the checks", None,
                       "Find the library that switches them off: one linked with -ffast-math does.",
                       "ldd $(command -v posenc); echo $LD_PRELOAD")  # fmt: skip
    elif flushed is False:
        cost = f"; a product that is one takes {times:.1f} times as long" if times else ""
        yield _fine("denormals", f"kept{cost}")
    aslr = number(run.env, "limits.aslr")
    if aslr == 0:
        words = "all processes get the same: the cost of a layout is in each time alike"
        fix = "Let each process have its own addresses: one layout may be lucky."
        yield _finding(NOTE, "addresses", words, None, fix, "sudo sysctl kernel.randomize_va_space=2")
    elif aslr is not None:
        yield _fine("addresses", "random in each process: compare runs several, and layout becomes noise")


CHECKS = (
    _check_build, _check_others, _check_host, _check_quota, _check_interruptions, _check_disks, _check_pinning,
    _check_siblings, _check_shared_memory, _check_cores, _check_governor, _check_frequency, _check_clock, _check_power,
    _check_huge_pages, _check_nodes, _check_swap, _check_process,
)  # fmt: skip
