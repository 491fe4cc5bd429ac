"""Disturbance of a run, in a sentence: how far timings are to be believed."""

from statistics import median
from typing import Dict, List, Optional

from ..convert import Record
from ..quality import Quality, quality_of
from ..runs import Machine, member, number
from .outcome import is_noisy, is_timed

FELT = 0.1  # share of a machine that other programs take
STOLEN_PCT = 1.0  # of the time, by a hypervisor
FAR_PCT = 3.0  # of the A/A control


def others(env: Record, noise: Record) -> Optional[str]:
    """Returns what other programs took of a machine; None if that was little."""
    cpus, taken = number(env, "cpus.online") or 1.0, number(noise, "others")
    if taken is not None and taken >= 0:
        return f"other programs took {taken:.1f} of its {cpus:.0f} CPUs" if taken > FELT * cpus else None
    load = number(noise, "load1")
    load = number(env, "noise.load1") if load is None else load
    return f"the load average was {load:.1f} on {cpus:.0f} CPUs" if load is not None and load > cpus else None


def of_run(machine: Machine) -> Record:
    """Returns the noise of a machine's runs: of the last one, unless only an earlier one was disturbed."""
    footers = [part.get("footer") or {} for part in machine.of("part")] + machine.of("footer")
    found: Record = {}
    for noise in (footer["noise"] for footer in footers if footer.get("noise")):
        if not found or others(machine.env, noise) or not others(machine.env, found):
            found = noise
    return found


def control_pct(timed: List[Record]) -> Optional[float]:
    """Returns the median over cases of the A/A control's difference; None if nothing was timed."""
    by_case: Dict[str, float] = {}
    for bench in timed:
        by_case.setdefault(bench["case"], abs(number(bench, "control_pct") or 0.0))
    return median(by_case.values()) if by_case else None


def _disturbance(machine: Machine, timed: List[Record], many_noisy: bool) -> str:
    noise = of_run(machine)
    taken, stolen = others(machine.env, noise), number(noise, "steal_pct") or 0.0
    apart = control_pct(timed) or 0.0
    if not (taken or stolen > STOLEN_PCT or apart > FAR_PCT or many_noisy):
        return ""
    causes = [taken] if taken else []
    causes += [f"a hypervisor gave {stolen:.1f} % of its time to others"] if stolen > STOLEN_PCT else []
    words = f"**The machine was {'busy' if causes else 'not quiet'}.** "
    words += f"While it was measured {', and '.join(causes)}. " if causes else ""
    words += f"The A/A control differed by {apart:.1f} % (median over cases). " if apart > FAR_PCT else ""
    advice = "Stop the other programs (`top` shows them)" if taken else "Repeat the run when the machine is quiet"
    return f"{words}{advice}, or allow more time with `--budget SECONDS`. `posenc doctor` measures disturbances. "


def warning(machine: Machine) -> str:
    """Returns what a reader has to know of a machine's timings; empty if they are quiet."""
    timed = [bench for bench in machine.of("bench") if is_timed(bench)]
    noisy = sum(map(is_noisy, timed))
    words = _disturbance(machine, timed, 4 * noisy >= len(timed)) if timed else ""
    if noisy:
        words += (
            f"{noisy} of {len(timed)} timings are noisy: an interval wider than 10 %, an A/A control that differs by "
            "more, or a rate beyond 1.2 times the roofline. They decide nothing."
        )
    return words.strip()


def quality(machine: Machine) -> Quality:
    """Returns the measurement quality of a machine's runs, and its reasons."""
    timed = [bench for bench in machine.of("bench") if is_timed(bench)]
    if not timed and machine.env.get("quality"):
        return Quality(str(machine.env["quality"].get("grade", "")), list(machine.env["quality"].get("reasons", [])))
    return quality_of(machine.env, of_run(machine), control_pct(timed)) if timed else Quality("", [])


def emulator(machine: Machine) -> str:
    """Returns a note on a machine that is emulated."""
    name = member(machine.env, "emulator")
    return f"Nothing was timed: {name}. Times under an emulator say nothing about a CPU." if name else ""
