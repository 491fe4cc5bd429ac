"""What a comparison prints: the verdicts first, then what changed, why, and what to type next."""

import fnmatch
import math
import shlex
from collections import Counter
from statistics import median
from typing import Dict, List, Optional, Sequence, TextIO, Tuple

from .. import show, units
from ..convert import Record
from ..quality import disturbances
from ..results.comparison import (
    WORDS, build_name, change_words, changes, direction, interval, is_broken, pair_word, pairs, ratio, verdict,
)  # fmt: skip
from ..runs import Machine, member, number
from ..terminal import console, table
from ..verdict import machine_moved
from .evidence import explain

SHOWN = 5  # rows of a table, without --verbose
WORTH_SHOWING = 0.1  # change of the share of the roofline in a trend
FOLDED = ("same", "identical")


class _Printer:
    """Prints the records of a comparison."""

    def __init__(self, records: Sequence[Record], out: TextIO, verbose: bool) -> None:
        self.of: Dict[str, List[Record]] = {}
        for record in records:
            self.of.setdefault(record["t"], []).append(record)
        self.header, self.verbose = records[0], verbose
        self.env = (self.of.get("env") or [{}])[0]
        machine = Machine(self.env, kinds=self.of)
        self.pairs, self.changed = pairs(machine), changes(machine)
        self.console = console(file=out)

    def line(self, text: str = "", style: Optional[str] = None) -> None:
        self.console.print(text, style=style)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Prints the first rows of a table, and how many there are besides."""
        shown = rows if self.verbose else rows[:SHOWN]
        if shown:
            self.line()
            self.console.print(table(columns, shown))
        if len(rows) > len(shown):
            self.line(f"{show.many(len(rows) - len(shown), 'more row')}: --verbose prints all.")

    def heading(self) -> None:
        base, head = (build_name(member(self.header, f"compare.{name}") or {}) for name in ("base", "head"))
        grade, mode = member(self.env, "quality.grade"), self.header["mode"]
        facts = [self.env.get("env_id"), f"measurement quality {grade}" if grade else ""]
        facts.append("files of records" if mode == "files" else f"{mode} run")
        self.line(f"posenc compare: base {base}, head {head}", "bold")
        self.line(", ".join(filter(None, facts)))
        noise = self.of["footer"][-1].get("noise") or {}
        causes = disturbances(self.env, noise) if noise else []
        if causes:
            self.line(f"While it was timed, {', and '.join(causes)}.", "yellow")
        self.line()
        if member(self.header, "compare.machine"):
            self.line(f"The machine: {member(self.header, 'compare.machine')}.")
        for one in member(self.header, "compare.incomparable") or []:
            self.line(f"Not comparable, {one['what']}: {one['base']} in base, {one['head']} in head.", "bold red")

    def verdicts(self) -> None:
        words = [pair_word(pair) for pair in self.pairs]
        always = [WORDS[name] for name in ("slower", "faster", "same", "unclear", "identical")]
        shown = dict.fromkeys((["FAILED"] if "FAILED" in words else []) + always + words)
        style = "bold red" if {"FAILED", "SLOWER"} & set(words) else "bold green"
        if words:
            self.line("VERDICT  " + "    ".join(f"{name} {words.count(name)}" for name in shown), style)

    def results(self) -> None:
        checks, agreements = member(self.header, "compare.results"), self.of.get("agreement", [])
        of = f" of {show.many(checks, 'check')}" if checks is not None else ""
        if agreements:
            cases, values, problems = (
                show.count(sum(agreement.get(name, 0) for agreement in agreements))
                for name in ("cases", "values", "problems")
            )
            of = f" of {cases} cases, and {values} values of {problems} problems"
        if of or self.changed:
            ways = [direction(change) for change in self.changed]
            counts = f"{ways.count('worse')} worse, {ways.count('better')} better, {ways.count('moved')}"
            self.line(f"Results{of}: {counts} otherwise changed.", "bold red" if "worse" in ways else None)

    def control(self) -> None:
        timed = [pair for pair in self.pairs if ratio(pair) > 0]
        if not timed:
            return
        controls = [number(pair, "control_ratio") or 1.0 for pair in timed]
        apart = [abs(control - 1) for control in controls]
        self.line(
            f"{show.many(len(timed), 'pair')} timed. A/A control: base differs from its own copy by "
            f"{100 * median(apart):.1f} % (median; at most {100 * max(apart):.1f} %)."
        )
        together = machine_moved([math.log(ratio(pair)) for pair in timed], list(map(math.log, controls)))
        if together:
            self.line(
                f"The machine: {together} of {len(timed)} rows moved together with their A/A control. Compare again.",
                "bold red",
            )

    def rows(self) -> None:
        shown = [pair for pair in self.pairs if self.verbose or verdict(pair) not in FOLDED or is_broken(pair)]
        columns = ["verdict", "case and backend", ">base", ">head", ">change", ">99 % interval", ">instructions"]
        self.table(columns, [self._cells(pair) for pair in shown])
        for pair in shown if self.verbose else shown[:SHOWN]:
            self.line(f"{pair['case']} {pair['backend']}: {_reason(pair)}")
        folded = len(self.pairs) - len(shown)
        if folded:
            self.line(f"{folded} the same or of identical code: --verbose prints them.")
        unknown = Counter(pair["code_unknown"] for pair in self.pairs if pair.get("code_unknown"))
        for reason, count in unknown.items() if self.verbose else ():
            self.line(f"Machine code of {show.many(count, 'pair')} not compared: {reason}.")

    def _cells(self, pair: Record) -> List[str]:
        change, apart = (units.change(ratio(pair)), interval(pair)) if ratio(pair) > 0 else ("", "")
        return [pair_word(pair), _named(pair), *_times(pair), change, apart, self.instructions(pair)]

    def instructions(self, pair: Record) -> str:
        """Returns instructions per element of head, and the change: 13.0 (+4.0 %)."""
        found: Dict[str, float] = {}
        for counted in self.of.get("count", []) if ratio(pair) > 0 else []:
            elements, instructions = (number(counted, name) or 0.0 for name in ("elements", "instructions"))
            if _is_count_of(counted, pair) and elements > 0 and instructions > 0:
                found[str(counted.get("build"))] = instructions / elements
        if "head" not in found:
            return ""
        change = f" ({units.change(found['head'] / found['base'])})" if found.get("base") else ""
        return f"{found['head']:.3g}{change}"

    def changes(self) -> None:
        words = {"worse": "worse", "better": "better", "moved": "changed"}
        rows = [
            [words[direction(change)], change["what"], _named(change, change_words(change))] for change in self.changed
        ]
        self.table(["result", "of", "case and backend"], rows)

    def trends(self) -> None:
        trends = sorted(self.of.get("trend", []), key=lambda trend: -abs(_trend(trend)))
        if not trends:
            return
        large = [trend for trend in trends if abs(math.expm1(_trend(trend))) >= WORTH_SHOWING]
        mean = math.fsum(map(_trend, trends)) / len(trends)
        self.line()
        self.line(
            f"Trend of {show.many(len(trends), 'timing')} in both: {100 * math.expm1(mean):+.1f} % of time to roofline "
            f"(geometric mean), {len(large)} by 10 % or more."
        )
        self.line("This is no verdict: two runs are two states of a machine. posenc compare of two builds gives one.")
        columns = ["case and backend", ">base", ">of roofline", ">head", ">of roofline", ">time to roofline"]
        self.table(columns, [_trend_cells(trend) for trend in (trends if self.verbose else large)])

    def ending(self, outcome: Tuple[int, str]) -> None:
        code, reason = outcome
        self.line()
        if self.of["footer"][-1]["complete"]:
            self.line(f"Exit code {code}: {reason}.", "bold red" if code else None)
        else:
            self.line("Interrupted: this is what there was.", "bold red")
        first = self.pairs[0] if self.pairs else {}
        if ratio(first) > 0 and (verdict(first) not in FOLDED or is_broken(first)):
            case, backend = shlex.quote(first["case"]), shlex.quote(first["backend"])
            self.line(f"Add these to the command to rerun only the first case:  --case {case} --backend {backend}")
            self.line(f"Or this, to see what its verdict rests on:  --explain {case}")


def _reason(pair: Record) -> str:
    more = number(pair, "more_seconds") or 0.0
    return str(pair["reason"]) + (
        f"; about {math.ceil(more)} s more" if verdict(pair) == "unclear" and more > 0 else ""
    )


def _named(record: Record, why: str = "") -> str:
    """Returns a case and its backend, with the reason on a line of its own."""
    return f"{record['case']} {record['backend']}" + (f"\n  {why}" if why else "")


def _times(record: Record) -> List[str]:
    times = [number(record, f"{side}.ns") or 0.0 for side in ("base", "head")]
    return [units.time(ns) if ns > 0 else "-" for ns in times]


def _is_count_of(counted: Record, pair: Record) -> bool:
    """Returns whether instructions are those of a pair's case, or of its kernel on a shape of their own."""
    if not counted["case"].endswith("/count"):
        return bool(counted["case"] == pair["case"] and counted["backend"] == pair["backend"])
    return all(counted.get(name) == pair.get(name) for name in ("kernel", "dtype", "numerics", "backend"))


def _trend(trend: Record) -> float:
    value = number(trend, "roofline_ratio") or number(trend, "ratio") or 0.0
    return math.log(value) if value > 0 else 0.0


def _trend_cells(trend: Record) -> List[str]:
    base, head = _times(trend)
    old, new = (units.percent(number(trend, f"{side}.share")) for side in ("base", "head"))
    return [f"{trend['case']} {trend['backend']}", base, old, head, new, f"{100 * math.expm1(_trend(trend)):+.0f} %"]


def print_comparison(
    records: Sequence[Record], outcome: Tuple[int, str], out: TextIO, explained: Optional[str], verbose: bool
) -> None:
    """Prints the records of a comparison, or the evidence of the verdicts on the cases that are `explained`."""
    printer = _Printer(records, out, verbose)
    printer.heading()
    if not explained:
        printer.verdicts()
        printer.results()
        printer.control()
        printer.rows()
        printer.changes()
        printer.trends()
        printer.ending(outcome)
        return
    found = [pair for pair in printer.pairs if fnmatch.fnmatchcase(pair["case"], explained)]
    for pair in found:
        explain(pair, pair_word(pair), printer.instructions(pair), printer.console)
    if not found:
        first = f"; the first is {printer.pairs[0]['case']}" if printer.pairs else ""
        printer.line(f"No pair is called {explained}. There are {len(printer.pairs)}{first}.")
