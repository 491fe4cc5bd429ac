"""What a comparison prints: the verdicts first, then what changed, why, and what to type next."""

import fnmatch
import math
import shlex
from statistics import median
from typing import Any, Dict, List, Optional, Sequence, TextIO, Tuple

from rich.console import Console

from .. import show, units
from ..convert import Record
from ..quality import disturbances
from ..results.comparison import WORDS, changes, direction, is_broken, moved, pair_word, pairs, ratio, side, verdict
from ..runs import Machine, member, number
from ..terminal import WIDEST, table
from ..verdict import machine_moved
from .evidence import explain

SHOWN = 20  # rows of a table, without --verbose
WORTH_SHOWING = 0.1  # change of the share of the roofline in a trend
STYLES = {"SLOWER": "bold red", "FAILED": "bold red", "FASTER": "bold green"}
FOLDED = ("same", "identical")
# Options that a command to rerun does not repeat.
VALUES = ("--out", "-o", "--output", "--case", "--backend", "--explain")
FLAGS = ("--force", "--gate", "--strict", "--all", "--verbose", "-v", "--json")

Outcome = Tuple[int, str]


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
        self.console = Console(file=out, highlight=False, markup=False, emoji=False)
        if not self.console.is_terminal:
            self.console.width = WIDEST

    def line(self, text: str = "", style: Optional[str] = None) -> None:
        self.console.print(text, style=style)

    # ---- what was compared ----

    def heading(self) -> None:
        base, head = (_side(member(self.header, f"compare.{name}") or {}) for name in ("base", "head"))
        grade = member(self.env, "quality.grade")
        machine = f"{self.env['env_id']}, " if self.env.get("env_id") else ""
        quality = f"measurement quality {grade}, " if grade else ""
        mode = "files of records" if self.header["mode"] == "files" else f"{self.header['mode']} run"
        self.line(f"posenc compare: base {base}, head {head}", "bold")
        self.line(f"{machine}{quality}{mode}")
        noise = self.of["footer"][-1].get("noise") or {}
        causes = disturbances(self.env, noise) if noise else []
        if causes:
            self.line(f"While it was timed, {', and '.join(causes)}.", "yellow")
        self.line()
        if member(self.header, "compare.machine"):
            self.line(f"The machine: {member(self.header, 'compare.machine')}.")
        for one in member(self.header, "compare.incomparable") or []:
            self.line(f"Not comparable, {one['what']}: {one['base']} in base, {one['head']} in head.", "bold red")

    # ---- the verdicts ----

    def verdicts(self) -> None:
        if not self.pairs:
            return
        words = [pair_word(pair) for pair in self.pairs]
        always = [WORDS[name] for name in ("slower", "faster", "same", "unclear", "identical")]
        shown = (["FAILED"] if "FAILED" in words else []) + always
        shown += [name for name in dict.fromkeys(words) if name not in shown]
        style = "bold red" if {"FAILED", "SLOWER"} & set(words) else "bold green"
        self.line("VERDICT  " + "    ".join(f"{name} {words.count(name)}" for name in shown), style)

    def control(self) -> None:
        timed = [pair for pair in self.pairs if ratio(pair) > 0]
        if not timed:
            return
        processes = max(pair["processes"] for pair in timed)
        rounds = max(pair["rounds"] // pair["processes"] for pair in timed)
        apart = [abs((number(pair, "control_ratio") or 1.0) - 1) for pair in timed]
        known = [math.log(ratio(pair)) for pair in timed if verdict(pair) != "unclear"]
        total = math.exp(math.fsum(known) / len(known)) if known else math.nan
        mean = f" Geometric mean of what is known: {units.change(total)}." if known else ""
        many = f"{processes} process{'' if processes == 1 else 'es'} of up to {rounds} rounds"
        self.line(f"{show.many(len(timed), 'pair')} timed, in up to {many}.{mean}")
        self.line(
            f"A/A control: base differs from its own copy by {100 * median(apart):.1f} % "
            f"(median; at most {100 * max(apart):.1f} %)."
        )
        changed = [math.log(ratio(pair)) for pair in timed]
        yardstick = [math.log(number(pair, "control_ratio") or 1.0) for pair in timed]
        together = machine_moved(changed, yardstick)
        if together:
            self.line(
                f"The machine: {together} of {len(timed)} rows moved together with their A/A control. Compare again.",
                "bold red",
            )

    def rows(self) -> None:
        shown = [pair for pair in self.pairs if self.verbose or verdict(pair) not in FOLDED or is_broken(pair)]
        folded = len(self.pairs) - len(shown)
        cut = shown if self.verbose else shown[:SHOWN]
        if cut:
            self.line()
            counted = {id(pair): self._instructions(pair) for pair in cut}
            some = any(counted.values())
            columns = ["verdict", "case and backend", ">base", ">head", ">change", "99 % interval"]
            drawn = table(columns + ([">instructions"] if some else []), [])
            for pair in cut:
                cells = _cells(pair) + ([counted[id(pair)] or "-"] if some else [])
                drawn.add_row(*cells, style=None)
            self.console.print(drawn)
        if len(shown) > len(cut):
            self.line(f"{len(shown) - len(cut)} more rows: --verbose prints them.")
        if folded:
            self.line(f"{folded} the same or of identical code: --verbose prints them.")

    def _instructions(self, pair: Record) -> str:
        """Returns instructions per element of head, and the change: 13.0 (+4.0 %)."""
        found: Dict[str, float] = {}
        if not ratio(pair) > 0:
            return ""
        for counted in self.of.get("count", []):
            elements, instructions = (number(counted, name) or 0.0 for name in ("elements", "instructions"))
            if _is_count_of(counted, pair) and elements > 0 and instructions > 0:
                found[str(counted.get("build"))] = instructions / elements
        if "head" not in found:
            return ""
        change = f" ({units.change(found['head'] / found['base'])})" if found.get("base") else ""
        return f"{found['head']:.3g}{change}"

    # ---- results ----

    def results(self) -> None:
        agreements = self.of.get("agreement", [])
        checks = member(self.header, "compare.results")
        of = ""
        if agreements:
            cases, values, problems = (
                sum(a.get(name, 0) for a in agreements) for name in ("cases", "values", "problems")
            )
            of = f" of {show.count(cases)} cases, and {show.count(values)} values of {show.count(problems)} problems"
        elif checks is not None:
            of = f" of {show.count(checks)} checks"
        elif not self.changed:
            return
        ways = [direction(change) for change in self.changed]
        self.line(
            f"Results{of}: {ways.count('worse')} worse, {ways.count('better')} better, "
            f"{ways.count('moved')} otherwise changed.",
            "bold red" if "worse" in ways else None,
        )

    def changes(self) -> None:
        if not self.changed:
            return
        cut = self.changed if self.verbose else self.changed[:SHOWN]
        drawn = table(["result", "case and backend", "what", ">base", ">head", ">limit"], [])
        for change in cut:
            where = f"\n  {change['worst_at']}" if change.get("worst_at") else ""
            limit, sides = number(change, "limit"), [side(change, name) for name in ("base", "head")]
            name, what = (
                f"{change['case']} {change['backend']}{where}",
                f"{change['what']}{': ' if moved(change) else ''}{moved(change)}",
            )
            drawn.add_row(
                "changed" if direction(change) == "moved" else direction(change),
                name,
                what,
                *sides,
                f"{limit:.3g}" if limit is not None else "",
            )
        self.line()
        self.console.print(drawn)
        if len(self.changed) > len(cut):
            self.line(f"{len(self.changed) - len(cut)} more: --verbose prints them.")

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
        shown = trends if self.verbose else large
        if shown:
            columns = ["case and backend", ">base", ">of roofline", ">head", ">of roofline", ">time to roofline"]
            self.console.print(table(columns, [_trend_cells(trend) for trend in shown]))

    # ---- what to type next ----

    def ending(self, outcome: Outcome) -> None:
        code, reason = outcome
        self.line()
        if self.of["footer"][-1]["complete"]:
            self.line(f"Exit code {code}: {reason}.", "bold red" if code else None)
        else:
            self.line("Interrupted: this is what there was.", "bold red")
        first = self.pairs[0] if self.pairs else None
        if first and not (verdict(first) in FOLDED and not is_broken(first)) and ratio(first) > 0:
            command = _rerun(self.header.get("argv") or [])
            self.line(f"Rerun only {'this case' if len(self.pairs) == 1 else 'the first case'}:")
            self.line(f"  {command} --case {shlex.quote(first['case'])} --backend {shlex.quote(first['backend'])}")
            self.line("See what its verdict rests on:")
            self.line(f"  {command} --explain {shlex.quote(first['case'])}")


def _side(side: Record) -> str:
    """Returns a build as main (1f3c2abdef), or base/libposenc.so (0.1.0)."""
    rev, commit = side.get("rev"), str(side.get("commit") or "")
    if side.get("dirty"):
        return f"{rev} with changes that are not committed"
    if rev:
        return f"{rev} ({commit[:10]})" if commit else str(rev)
    version = side.get("version")
    return f"{side.get('path', '?')}" + (f" ({version})" if version else "")


def _cells(pair: Record) -> List[Any]:
    from rich.text import Text

    why = str(pair.get("reason") or "")
    more = number(pair, "more_seconds") or 0.0
    if verdict(pair) == "unclear" and more > 0:
        why += f"; about {math.ceil(more)} s more"
    name = Text(f"{pair['case']} {pair['backend']}")
    if why:
        name.append(f"\n  {why}", style="dim")
    told = Text(pair_word(pair), style=STYLES.get(pair_word(pair), ""))
    change, interval = "-", "-"
    if ratio(pair) > 0:
        lo, hi = (100 * ((number(pair, f"ci.{end}") or math.nan) - 1) for end in ("lo", "hi"))
        change, interval = units.change(ratio(pair)), f"[{lo:+.1f}, {hi:+.1f}]"
        if pair["processes"] == 1:
            interval = "one process"  # whose rounds are one sample
    return [told, name, _time(pair, "base.ns"), _time(pair, "head.ns"), change, interval]


def _time(record: Record, path: str) -> str:
    ns = number(record, path) or 0.0
    return units.time(ns) if ns > 0 else "-"


def _is_count_of(counted: Record, pair: Record) -> bool:
    """Returns whether instructions are those of a pair's case, or of its kernel on a shape of their own."""
    if not counted["case"].endswith("/count"):
        return bool(counted["case"] == pair["case"] and counted["backend"] == pair["backend"])
    return all(counted.get(name) == pair.get(name) for name in ("kernel", "dtype", "numerics", "backend"))


def _trend(trend: Record) -> float:
    value = number(trend, "roofline_ratio") or number(trend, "ratio") or 0.0
    return math.log(value) if value > 0 else 0.0


def _trend_cells(trend: Record) -> List[str]:
    cells = [f"{trend['case']} {trend['backend']}"]
    for name in ("base", "head"):
        cells += [_time(trend, f"{name}.ns"), units.percent(number(trend, f"{name}.share"))]
    return [*cells, f"{100 * math.expm1(_trend(trend)):+.0f} %"]


def _rerun(argv: Sequence[str]) -> str:
    """Returns the command without the options that choose rows and outputs."""
    kept, skip = [], False
    for given in argv:
        name, equals, _ = given.partition("=")
        if skip:
            skip = False
        elif name in VALUES:
            skip = not equals
        elif given not in FLAGS:
            kept.append(given)
    return shlex.join(kept)


def print_comparison(
    records: Sequence[Record], outcome: Outcome, out: TextIO, explained: Optional[str], verbose: bool
) -> None:
    """Prints the records of a comparison, or the evidence of the verdicts on the cases that are `explained`."""
    printer = _Printer(records, out, verbose)
    printer.heading()
    if explained:
        found = [pair for pair in printer.pairs if fnmatch.fnmatchcase(pair["case"], explained)]
        for pair in found:
            explain(pair, pair_word(pair), printer._instructions(pair), printer.line)
        if not found:
            first = f"; the first is {printer.pairs[0]['case']}" if printer.pairs else ""
            printer.line(f"No pair is called {explained}. There are {len(printer.pairs)}{first}.")
        return
    printer.verdicts()
    printer.results()
    printer.control()
    printer.rows()
    printer.changes()
    printer.trends()
    printer.ending(outcome)
