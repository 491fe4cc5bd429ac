"""Prints a comparison: the verdicts, then the changes with their reasons, and the options of a rerun.

    VERDICT  SLOWER 1    FASTER 0    SAME 11    UNCLEAR 0    identical code 3
    Results of 214 checks: 0 worse, 0 better, 0 otherwise changed.

main.py calls Printer.summary() for the format console.
"""

import math
import shlex
from collections import Counter
from statistics import median
from typing import Dict, List, Optional, Sequence, TextIO, Tuple

from .. import units
from ..quality import disturbances
from ..results.outcome import (
    WORDS, build_name, change_words, changes, direction, interval, is_broken, pair_word, pairs, ratio, verdict,
)  # fmt: skip
from ..records import Machine, Record, grouped, member, number
from ..terminal import console, table
from ..verdict import machine_moved

SHOWN = 5  # rows of a table, without --verbose
WORTH_SHOWING = 0.1  # change of the share of the roofline in a trend
FOLDED = ("same", "identical")  # verdicts of rows that only --verbose shows


class Printer:
    """Prints the records of a comparison to `out`; with `verbose` all rows."""

    def __init__(self, records: Sequence[Record], out: TextIO, verbose: bool) -> None:
        self.by_kind: Dict[str, List[Record]] = grouped(records, lambda record: record["t"])
        self.header, self.verbose = records[0], verbose
        self.env = (self.by_kind.get("env") or [{}])[0]
        machine = Machine(self.env, kinds=self.by_kind)
        self.pairs, self.changed = pairs(machine), changes(machine)
        self.console = console(file=out)

    def line(self, text: str = "", style: Optional[str] = None) -> None:
        """Prints a line."""
        self.console.print(text, style=style)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Prints the first rows of a table, or all with --verbose, and the number of rows that are left out."""
        shown = rows if self.verbose else rows[:SHOWN]
        if shown:
            self.line()
            self.console.print(table(columns, shown))
        if len(rows) > len(shown):
            self.line(f"{units.many(len(rows) - len(shown), 'more row')}: --verbose prints all.")

    def heading(self) -> None:
        """Prints the builds, the machine, its disturbances, and differences that prevent a comparison."""
        compare = self.header["compare"]
        base, head = (build_name(compare.get(name) or {}) for name in ("base", "head"))
        grade, mode = member(self.env, "quality.grade"), self.header["mode"]
        facts = [self.env.get("env_id"), f"measurement quality {grade}" if grade else ""]
        facts.append("files of records" if mode == "files" else f"{mode} run")
        self.line(f"posenc compare: base {base}, head {head}", "bold")
        self.line(", ".join(filter(None, facts)))
        noise = self.by_kind["footer"][-1].get("noise") or {}
        causes = disturbances(self.env, noise) if noise else []
        if causes:
            self.line(f"While it was timed, {', and '.join(causes)}.", "yellow")
        self.line()
        if compare.get("machine"):
            self.line(f"The machine: {compare['machine']}.")
        for difference in compare.get("incomparable", []):
            words = "{what}: {base} in base, {head} in head".format(**difference)
            self.line(f"Not comparable, {words}.", "bold red")

    def summary(self, outcome: Tuple[int, str]) -> None:
        """Prints the whole comparison. `outcome` is the exit code and its reason."""
        self.heading()
        self._verdicts()
        self._results()
        self._control()
        self._rows()
        self.table(["result", "of", "case and backend"], [
            [direction(change).replace("moved", "changed"), change["what"],
             _case_and_backend(change, change_words(change))] for change in self.changed
        ])  # fmt: skip
        self._trends()
        self._ending(*outcome)

    def _verdicts(self) -> None:
        words = [pair_word(pair) for pair in self.pairs]
        always = [WORDS[name] for name in ("slower", "faster", "same", "unclear", "identical")]
        shown = dict.fromkeys((["FAILED"] if "FAILED" in words else []) + always + words)
        style = "bold red" if {"FAILED", "SLOWER"} & set(words) else "bold green"
        if words:
            self.line("VERDICT  " + "    ".join(f"{name} {words.count(name)}" for name in shown), style)

    def _results(self) -> None:
        checks, agreements = member(self.header, "compare.results"), self.by_kind.get("agreement", [])
        compared = f" of {units.many(checks, 'check')}" if checks is not None else ""
        if agreements:
            names = ("cases", "values", "problems")
            totals = {name: units.count(sum(agreement[name] for agreement in agreements)) for name in names}
            compared = " of {cases} cases, and {values} values of {problems} problems".format(**totals)
        if compared or self.changed:
            ways = Counter(map(direction, self.changed))
            counts = f"{ways['worse']} worse, {ways['better']} better, {ways['moved']}"
            self.line(f"Results{compared}: {counts} otherwise changed.", "bold red" if ways["worse"] else None)

    def _control(self) -> None:
        timed = [pair for pair in self.pairs if ratio(pair) > 0]
        if not timed:
            return
        controls = [number(pair, "control_ratio") or 1.0 for pair in timed]
        differences = [abs(control - 1) for control in controls]
        self.line(
            f"{units.many(len(timed), 'pair')} timed. A/A control: base differs from its own copy by "
            f"{100 * median(differences):.1f} % (median; at most {100 * max(differences):.1f} %)."
        )
        together = machine_moved([math.log(ratio(pair)) for pair in timed], list(map(math.log, controls)))
        if together:
            moved = f"The machine: {together} of {len(timed)} rows moved together with their A/A control."
            self.line(f"{moved} Compare again.", "bold red")

    def _rows(self) -> None:
        shown = [pair for pair in self.pairs if self.verbose or verdict(pair) not in FOLDED or is_broken(pair)]
        columns = ["verdict", "case and backend", ">base", ">head", ">change", ">99 % interval", ">instructions"]
        self.table(columns, [self._cells(pair) for pair in shown])
        for pair in shown if self.verbose else shown[:SHOWN]:
            more = number(pair, "more_seconds") or 0.0
            longer = f"; about {math.ceil(more)} s more" if verdict(pair) == "unclear" and more > 0 else ""
            self.line(f"{_case_and_backend(pair)}: {pair['reason']}{longer}")
        if len(self.pairs) > len(shown):
            self.line(f"{len(self.pairs) - len(shown)} the same or of identical code: --verbose prints them.")
        unknown = Counter(pair["code_unknown"] for pair in self.pairs if "code_unknown" in pair)
        for reason, count in unknown.items() if self.verbose else ():
            self.line(f"Machine code of {units.many(count, 'pair')} not compared: {reason}.")

    def _cells(self, pair: Record) -> List[str]:
        change, apart = (units.change(ratio(pair)), interval(pair)) if ratio(pair) > 0 else ("", "")
        return [pair_word(pair), _case_and_backend(pair), *_times(pair), change, apart, self.instructions(pair)]

    def instructions(self, pair: Record) -> str:
        """Returns instructions per element of head, and the change: 13.0 (+4.0 %)."""
        names = ("kernel", "dtype", "numerics", "backend")
        found = {
            counted["build"]: counted["instructions"] / counted["elements"]
            for counted in self.by_kind.get("count", [])
            if counted.get("elements") and all(counted[name] == pair[name] for name in names)
        }
        if "head" not in found or not ratio(pair) > 0:
            return ""
        change = f" ({units.change(found['head'] / found['base'])})" if found.get("base") else ""
        return f"{found['head']:.3g}{change}"

    def _trends(self) -> None:
        trends = sorted(self.by_kind.get("trend", []), key=lambda trend: -abs(_log_ratio(trend)))
        if not trends:
            return
        large = [trend for trend in trends if abs(math.expm1(_log_ratio(trend))) >= WORTH_SHOWING]
        mean = math.fsum(map(_log_ratio, trends)) / len(trends)
        self.line()
        self.line(
            f"Trend of {units.many(len(trends), 'timing')} in both: {100 * math.expm1(mean):+.1f} % of time to "
            f"roofline (geometric mean), {len(large)} by 10 % or more."
        )
        self.line("This is no verdict: two runs are two states of a machine. posenc compare of two builds gives one.")
        columns = ["case and backend", ">base", ">of roofline", ">head", ">of roofline", ">time to roofline"]
        rows = []
        for trend in trends if self.verbose else large:
            times, shares = _times(trend), [units.percent(trend[side]["share"]) for side in ("base", "head")]
            change = f"{100 * math.expm1(_log_ratio(trend)):+.0f} %"
            rows.append([_case_and_backend(trend), times[0], shares[0], times[1], shares[1], change])
        self.table(columns, rows)

    def _ending(self, code: int, reason: str) -> None:
        self.line()
        if self.by_kind["footer"][-1]["complete"]:
            self.line(f"Exit code {code}: {reason}.", "bold red" if code else None)
        else:
            self.line("Interrupted: this is what there was.", "bold red")
        first = self.pairs[0] if self.pairs else {}
        if ratio(first) > 0 and (verdict(first) not in FOLDED or is_broken(first)):
            case, backend = shlex.quote(first["case"]), shlex.quote(first["backend"])
            self.line(f"Add these to the command to rerun only the first case:  --case {case} --backend {backend}")


def _case_and_backend(record: Record, why: str = "") -> str:
    """Returns a case and its backend, with the reason on a line of its own."""
    return f"{record['case']} {record['backend']}" + (f"\n  {why}" if why else "")


def _times(record: Record) -> List[str]:
    """Returns the times of base and head; "-" if one is not known."""
    times = [number(record, f"{side}.ns") or 0.0 for side in ("base", "head")]
    return [units.time(ns) if ns > 0 else "-" for ns in times]


def _log_ratio(trend: Record) -> float:
    """Returns ln of the ratio of times to the roofline, or of times."""
    return math.log(number(trend, "roofline_ratio") or number(trend, "ratio") or 1.0)
