"""Grades the measurement quality of a machine from A to D, and lists the disturbances of its timings.

Reports call of_machine() with all records of a machine, posenc doctor calls quality_of() with what it measured. A
virtual machine whose timings detect 3.5 % in cache has grade C, with a reason for each of the two.
"""

from statistics import median
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .ranking import Timing, timings
from .records import Machine, Record, member, number

NOT_EXPOSED = "not exposed"

MUCH_STEAL_PCT = 1.0  # more CPU time than this, stolen by a hypervisor, is too much
DISTURBING_SHARE = 0.1  # other programs disturb if they take more than this share of the CPUs
FAR_PCT = 3.0  # a larger difference of the A/A control means a disturbance

# Differences in percent that timings still detect with quality A, B and C. A gate of posenc compare fails
# at 3 %: B is for a machine that can hold to that in cache.
DETECTABLE = (("cache_pct", "in cache", (1.5, 3.0, 6.0)), ("dram_pct", "in DRAM", (5.0, 10.0, 20.0)))


class Quality(NamedTuple):
    """A grade from A to D, and the reasons why it is not better."""

    grade: str
    reasons: List[str]


def exposed(record: Record, path: str) -> str:
    """Returns the text at a path; empty if there is none or the system does not expose it."""
    text = member(record, path)
    return text if isinstance(text, str) and text != NOT_EXPOSED else ""


def is_unoptimised(env: Record) -> bool:
    """Returns whether the program was built without optimisation."""
    return member(env, "build.optimised") is False or member(env, "build.type") == "debug"


def other_programs(env: Record, noise: Record) -> Tuple[bool, str]:
    """Returns whether other programs disturbed, and a sentence about them.

    They disturb if they take a tenth of the CPUs; if only the load average is known, if it exceeds the number of CPUs.
    """
    cpus = number(env, "cpus.online") or 1.0
    taken = number(noise, "others")
    if taken is not None and taken >= 0:
        return taken > DISTURBING_SHARE * cpus, f"other programs took {taken:.1f} of its {cpus:.0f} CPUs"
    loads = (number(noise, "load1"), number(env, "noise.load1"), -1.0)
    load = next(load for load in loads if load is not None)
    return load > cpus, f"the load average was {load:.1f} on {cpus:.0f} CPUs"


def quality_of(
    env: Record, noise: Record, control_pct: Optional[float] = None, detectable: Optional[Mapping[str, Any]] = None
) -> Quality:
    """Grades a machine.

    `noise` is what a run saw (its footer). `control_pct` is how far the A/A control was off, in the median.
    `detectable` is what posenc doctor measured.
    """
    found = [
        *_grade_setting(env),
        *_grade_control(control_pct),
        *_grade_noise(env, noise),
        *_grade_detectable(detectable or {}),
    ]
    return Quality(max([grade for grade, _ in found], default="A"), [reason for _, reason in found])


def disturbances(env: Record, noise: Record) -> List[str]:
    """Returns clauses about the disturbances of a run, other programs first, to follow "while it was measured"."""
    return [reason for grade, reason in [*_grade_noise(env, noise)][::-1] if grade == "D"]


# ---- reasons of a grade ----

Reasons = Iterator[Tuple[str, str]]  # the best grade that is left, and why


def _grade_setting(env: Record) -> Reasons:
    """Yields reasons that are known before anything is timed."""
    virtualization, governor = exposed(env, "virtualization"), member(env, "frequency.governor")
    source, quota = exposed(env, "timer.source"), number(env, "limits.quota") or 0.0
    if is_unoptimised(env):
        yield "D", "the build is not optimised"
    if exposed(env, "build.sanitizer"):
        yield "D", f"the build has the {exposed(env, 'build.sanitizer')} sanitizer"
    if member(env, "emulator"):
        yield "D", "the CPU is emulated, and its times mean nothing"
    if virtualization:
        yield "C", f"virtual machine ({virtualization}): its neighbours cannot be seen"
    if quota > 0:
        yield "C", f"a control group allows {quota:.3g} CPUs and stalls a program that uses more"
    if governor == NOT_EXPOSED:
        yield "B", "the control of the CPU's frequency is not exposed"
    elif governor and governor != "performance":
        yield "B", f"the frequency governor is {governor}, not performance"
    if member(env, "limits.power") == "battery":
        yield "B", "the machine runs on battery power"
    if source and source not in ("tsc", "arch_sys_counter"):
        yield "B", f"the clock source is {source}"


def _grade_control(pct: Optional[float]) -> Reasons:
    """Yields a reason if base and its copy differ."""
    if pct is not None and pct > 0.5:
        yield "D" if pct > FAR_PCT else "C" if pct > 1.5 else "B", f"the A/A control is off by {pct:.1f} % (median)"


def _grade_noise(env: Record, noise: Record) -> Reasons:
    """Yields disturbances that a run saw, other programs last."""
    steal, stalled = number(noise, "steal_pct") or 0.0, number(noise, "throttled_pct") or 0.0
    others_disturb, words = other_programs(env, noise)
    if steal > 0.1:
        yield "D" if steal > MUCH_STEAL_PCT else "C", f"a hypervisor gave {steal:.1f} % of its time to others"
    if stalled > 0.1:
        yield "D", f"a quota of CPU time stalled it for {stalled:.1f} % of the time"
    if others_disturb:
        yield "D", words


def _grade_detectable(detectable: Mapping[str, Any]) -> Reasons:
    """Yields a reason for each memory level whose timings detect less than those of grade A."""
    for name, place, limits in DETECTABLE:
        pct = number(detectable, name)
        exceeded = sum(pct > limit for limit in limits) if pct is not None else 0
        if exceeded:
            yield "ABCD"[exceeded], f"{place} it detects no difference below {pct:.1f} %"


# ---- a machine's runs ----


def _noise_of(machine: Machine) -> Record:
    """Returns the noise of a machine's runs: of the last one, unless only an earlier one was disturbed."""
    seen: List[Record] = [footer["noise"] for footer in machine.of("footer") if footer.get("noise")]
    disturbed = [noise for noise in seen if other_programs(machine.env, noise)[0]]
    return (disturbed or seen or [{}])[-1]


def _control_pct(timed: Sequence[Timing]) -> Optional[float]:
    """Returns the median over cases of the A/A control's difference; None if nothing was timed."""
    by_case = {timing.case: 100 * timing.control for timing in reversed(timed)}
    return median(by_case.values()) if by_case else None


def of_machine(machine: Machine) -> Quality:
    """Returns the measurement quality of a machine's runs; no grade if none is known."""
    timed, known = timings(machine), machine.env.get("quality") or {}
    if timed:
        return quality_of(machine.env, _noise_of(machine), _control_pct(timed))
    return Quality(known.get("grade", ""), known.get("reasons", []))


def warning(machine: Machine) -> str:
    """Returns a warning about the timings of a machine, in Markdown; "" if there is no reason for one."""
    timed = timings(machine)
    noisy = sum(timing.noisy for timing in timed)
    control_pct, causes = _control_pct(timed) or 0.0, disturbances(machine.env, _noise_of(machine))
    words = []
    if timed and (causes or control_pct > FAR_PCT or 4 * noisy >= len(timed)):
        words += [f"**The machine was {'busy' if causes else 'not quiet'}.**"]
        if causes:
            words += [f"While it was measured {', and '.join(causes)}."]
        if control_pct > FAR_PCT:
            words += [f"The A/A control differed by {control_pct:.1f} % (median over cases)."]
        words += ["Repeat the run when the machine is quiet (`top` shows other programs), or allow more time. "
                  "`posenc doctor` measures disturbances."]  # fmt: skip
    if noisy:
        words += [f"{noisy} of {len(timed)} timings are too noisy to rank backends: an interval wider than 10 %, an "
                  "A/A control that differs by more, or a rate beyond 1.2 times the roofline."]  # fmt: skip
    return " ".join(words)


def emulator(machine: Machine) -> str:
    """Returns a note on a machine that is emulated."""
    name = member(machine.env, "emulator")
    return f"Nothing was timed: {name}. Times under an emulator say nothing about a CPU." if name else ""
