"""Writes a report: one HTML file that loads nothing, and the answer on a terminal.

to_html(View(records)) fills templates/page.html.j2, whose sections are macros of sections.j2. page.js draws charts and
filters from page_data(), and the cases of a cell from packed_checks().
"""

import base64
import gzip
import json
import math
import re
import shlex
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, TextIO, Tuple

import jinja2
from markupsafe import Markup  # a part of Jinja2

from .. import quality, units
from ..records import Machine, Record, member, number
from ..results import outcome
from ..terminal import Console, console, table
from .glossary import TERMS
from .view import RAN, Host, View, text_of, worst_in

HERE = Path(__file__).parent
SHOWN, FAILURES = 12, 4  # rows on a terminal
CERTAINTY = {"clear": "clear", "tied": "tie", "noisy": "too noisy to tell"}  # words for Answer.certainty
# D3, to be inlined: in a bundle, from PyPI (XStatic-D3), from Debian (libjs-d3).
D3 = (HERE / "d3.min.js", *(Path(folder, "xstatic/pkg/d3/data/d3.js") for folder in sys.path),
      Path("/usr/share/javascript/d3/d3.min.js"))  # fmt: skip


def d3_source() -> Optional[str]:
    """Returns the chart library; None if it is not installed."""
    return next((path.read_text(encoding="utf-8") for path in D3 if path.is_file()), None)


# ---- the data that the page carries ----


def _timings(host: Host) -> Iterable[Record]:
    """Yields the timings of a machine by the names of their columns."""
    shapes = {one["case"]: f"{model['title']}: {one.get('label') or one['case']}"
              for model in reversed(host.machine.of("model")) for one in reversed(model["cases"])}  # fmt: skip
    for ranking in host.ranked.cases.values():
        for row in ranking.rows:
            record, found = row.record, host.errors.of(row.record)
            judged = next((worst for worst in found if worst.metric != "exact"), found[0] if found else None)
            yield {
                "machine": host.name, "kernel": row.kernel, "dtype": record["dtype"], "numerics": record["numerics"],
                "case": row.case, "shape": shapes.get(row.case, row.case.rpartition("/")[2]),
                "level": member(record, "footprint.name"), "backend": row.backend,
                "ns": row.median if not row.rejected else None, "lo": row.lo or row.median, "hi": row.hi or row.median,
                "gbps": number(record, "gbps"), "share": row.share, "roof": number(record, "roofline.gbps"),
                "bound": member(record, "bound.resource") or ("memory" if row.share else None),
                "libm": row.speedup_libm, "autovec": row.speedup_autovec,
                "error": judged.largest if judged else None, "metric": judged.metric if judged else None,
                "errorText": text_of(found), "standing": ranking.place(row), "rejected": row.rejected,
            }  # fmt: skip


def _pair(pair: Record) -> Record:
    """Returns a pair as the plot of ratios takes it."""
    ratio = number(pair, "ratio")
    return {
        "name": f"{pair['case']} {pair['backend']}", "verdict": outcome.verdict(pair), "reason": pair["reason"],
        "ratio": ratio, "lo": number(pair, "ci.lo") or ratio, "hi": number(pair, "ci.hi") or ratio,
        "control": number(pair, "control_ratio"), "noise": number(pair, "noise_threshold"),
    }  # fmt: skip


def _finite(value: Any) -> Any:
    """Returns data with numbers of five digits, and none that JSON lacks."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value


def page_data(view: View) -> str:
    """Returns the data of charts and filters, as JSON that is safe in a script element."""
    curves = [{**curve, "machine": host.name} for host in view.hosts for curve in host.machine.of("curve")]
    timings = [timing for host in view.hosts for timing in _timings(host)]
    data = _finite({"colors": view.colors, "timings": timings, "curves": curves, "pairs": [*map(_pair, view.pairs)]})
    return _json(data).replace("<", "\\u003c")


def _json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def _check(check: Record) -> Record:
    """Returns the members of a check that the page shows."""
    error, worst = check.get("error", {}), worst_in(check)
    shown, limit = worst.judged if worst else ("", "")
    measured = ("worst_at", "got", "want", "coverage", "checked", "misrounded")
    return {
        "suite": suite(check["suite"]), "shown": shown, "limit": limit, **{name: error.get(name) for name in measured},
        **{name: check.get(name) for name in ("case", "status", "reason", "mistake", "problem", "command")},
    }  # fmt: skip


def packed_checks(view: View) -> str:
    """Returns all checks: JSON, compressed, in base64.

    Many backends return the same bits, so each check is there once, with the numbers of its cells.
    """
    cells: Dict[str, int] = {}
    found: Dict[Tuple[Any, ...], List[int]] = {}
    columns: List[str] = []
    for host in view.hosts:
        for check in host.machine.of("check"):
            cell = cells.setdefault(f"{host.name} {check['kernel']} {check['backend']}", len(cells))
            shown = _check(check)
            found.setdefault(tuple(shown.values()), []).append(cell)
            columns = [*shown, "cells"]
    checks = [[*values, numbers] for values, numbers in found.items()]
    text = _json({"cells": cells, "columns": columns, "checks": checks})
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


# ---- templates ----


def _has(*kinds: str) -> Callable[[View], bool]:
    """Returns a function: whether a view has records of one of these kinds."""
    return lambda view: any(host.machine.of(kind) for host in view.hosts for kind in kinds)


# The sections of the page in their order: name, title, and whether a view has it. To add one, write the macro
# section_NAME in templates/sections.j2, which sees what environment() and to_html() name, and a line here, and test it
# in test_page.py.
SECTIONS: Tuple[Tuple[str, str, Callable[[View], bool]], ...] = (
    ("comparison", "Comparison", _has("pair", "change")),
    ("fleet", "Fleet", lambda view: len(view.hosts) > 1),
    ("answer", "Answer", lambda view: _has("bench")(view) or not _has("check", "pair", "change", "count")(view)),
    ("explore", "Explore", _has("bench", "curve")),
    ("cost", "Cost of a call", _has("overhead")),
    ("instructions", "Instructions", _has("count")),
    ("conformance", "Conformance", _has("check")),
    ("environment", "Environment and method", lambda view: True),
)


def facts(machine: Machine) -> Dict[str, str]:
    """Returns facts about a machine and its measurement quality, by title. Unknown facts are empty."""
    env, header = machine.env, machine.header
    cpus, build, tool = env.get("cpus", {}), env.get("build", {}), header.get("tool", {})
    caches = (f"L{one['level']} {one['type'].lower()} {units.size(one['bytes'])}" for one in env.get("caches", []))
    changed = ", with changes that are not committed" if tool.get("dirty") else ""
    vectors, (grade, reasons) = member(header, "vectors.sha256"), quality.of_machine(machine)
    return {
        "CPU": f"{member(env, 'cpu.name') or env.get('env_id')} ({member(env, 'cpu.key')})",
        "Features": ", ".join(member(env, "cpu.features") or []),
        "CPUs": f"{cpus.get('online')} online, {cpus.get('allowed')} for this process" if cpus else "",
        "Caches": ", ".join(caches),
        "Hypervisor": str(env.get("virtualization") or ""),
        "Frequency": ", ".join(f"{name} {value}" for name, value in env.get("frequency", {}).items()),
        "System": ", ".join(str(value) for value in env.get("os", {}).values()),
        "Build": f"{build.get('cc', '')} {build.get('version', '')} {build.get('flags', '')}".strip(),
        "posenc": f"{tool.get('version', '')} {tool.get('commit', '')}{changed}".strip(),
        "Golden vectors": f"SHA-256 {vectors[:16]}…" if vectors else "",
        "Run": f"{header.get('mode', '')}, {header.get('started', '')}",
        "Measurement quality": f"{grade}: {'; '.join(reasons) or 'nothing disturbs it'}" if grade else "",
    }


def suite(name: str) -> str:
    """Returns the name of a suite as people read it."""
    return TERMS[f"suite-{name}"].name if f"suite-{name}" in TERMS else name


def _spread(width: float) -> str:
    """Returns half of an interval as ±6 %. A wide one has no digits that mean something."""
    return f"±{100 * width:.0f} %" if width <= 1 else "> ±100 %"


def _change(ratio: float) -> str:
    """Returns a ratio of times as +7.5 %, or as 697× where a percentage says nothing."""
    return units.times(ratio) if ratio >= 10 else units.change(ratio)


class Code(str):
    """Markdown that is not escaped."""


def _span(text: Any) -> Code:
    """Returns a span of code, whatever the text holds."""
    return Code("`" + str(text).replace("`", "'").replace("|", "\\|") + "`")


def _block(text: Any) -> Code:
    """Returns the inside of a block of code."""
    return Code(str(text).replace("`" * 3, "'" * 3))


def _escape_markdown(value: Any) -> Any:
    """Returns a text of which Markdown takes nothing for its own."""
    is_safe = isinstance(value, Code) or not isinstance(value, str)
    return value if is_safe else re.sub(r"([\\`*\[<|])", r"\\\1", value)


def environment(markdown: bool = False) -> jinja2.Environment:
    """Returns the templates of this folder, with the filters that they use."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=not markdown,
        finalize=_escape_markdown if markdown else None, undefined=jinja2.ChainableUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    env.filters.update(
        time=units.time, times=units.times, percent=units.percent, size=units.size, change=_change, spread=_spread,
        count=lambda value: units.count(value).replace(" ", "\u202f"), errors=text_of, worst=worst_in, suite=suite,
        shell=lambda words: shlex.join(map(str, words)), code=_span, block=_block,
    )  # fmt: skip
    env.globals.update(outcome=outcome, facts=facts, glossary=TERMS, CERTAINTY=CERTAINTY)
    return env


def to_html(view: View) -> str:
    """Returns the page."""
    d3 = d3_source()
    if d3 is None:
        print("posenc: the page has no charts: D3 is missing. Install libjs-d3 (Debian), or: pip install XStatic-D3",
              file=sys.stderr)  # fmt: skip
    sections = [(name, title) for name, title, wanted in SECTIONS if wanted(view)]
    raw = {name: (HERE / "templates" / f"page.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
    return environment().get_template("page.html.j2").render(
        view=view, sections=sections, ran=RAN, css=Markup(raw["css"]), script=Markup(raw["js"]),
        d3=Markup((d3 or "").replace("</script", "<\\/script")), data=Markup(page_data(view)),
        checks=packed_checks(view),
    )  # fmt: skip


# ---- the terminal ----


def _answer_rows(host: Host) -> List[List[str]]:
    """Returns the rows of the table of answers, one for each step of each model."""
    rows = []
    for answer in host.answers:
        best, step, tied = answer.best, answer.step, answer.tied
        named = [str(step.model.get("title") or step.model["name"]), step.name]
        if not best:
            why = f"wrong: {', '.join(answer.wrong)}" if answer.wrong else "not timed"
            rows.append([*named, "–", why, *[""] * 4])
            continue
        sure = CERTAINTY[answer.certainty]
        if answer.certainty == "tied":
            sure += f" with {tied[0].backend}" + (f" + {len(tied) - 1}" if len(tied) > 1 else "")
        rows.append([
            *named, best.backend + (" (default)" if best.backend == answer.default else ""), sure, units.time(best.ns),
            units.times(answer.speedup("libm")), units.times(answer.speedup("autovec")), units.percent(best.share),
        ])  # fmt: skip
    return rows


def _print_host(host: Host, out: Console, verbose: bool) -> None:
    checked, grade = host.checked, host.quality.grade
    out.print(f"{host.cpu} ({host.name})" + (f", measurement quality {grade}" if grade else ""), style="bold")
    if checked.counts:
        number, word = (checked.failed, "failed") if checked.failed else (checked.passed, "passed")
        out.print(f"{units.count(number)} of {units.many(checked.ran, 'check')} {word}{checked.and_inconclusive}")
    for note in host.notes:
        out.print(note, style="yellow")
    for checks in host.failures[:FAILURES]:
        backends = ", ".join(check["backend"] for check in checks)
        what = f"{checks[0]['status'].upper()} {checks[0]['case']} on {backends}: {outcome.check_words(checks[0])}"
        out.print(what, style="red")
    if len(host.failures) > FAILURES:
        out.print(f"… and {len(host.failures) - FAILURES} other failures")
    rows = _answer_rows(host)
    if rows:
        head = ("Model", "Step", "Fastest", "How sure", ">Time", ">vs C", ">vs compiler", ">% of roofline")
        out.print(table(head, rows if verbose else rows[:SHOWN]))
    if len(rows) > SHOWN and not verbose:
        out.print(f"… and {len(rows) - SHOWN} more: -v prints them")


def print_summary(records: List[Record], file: TextIO, verbose: bool) -> None:
    """Prints the answer: at most 30 lines for a machine; `verbose`: every step of every model."""
    hosts, out = View(records).hosts, console(file=file)
    for host in hosts:
        _print_host(host, out, verbose)
    answers = [answer for host in hosts for answer in host.answers]
    forced = dict.fromkeys(answer.forced for answer in answers if answer.forced)
    if forced:
        out.print("To use it: " + " or ".join(f"POSENC_BACKEND={backend}" for backend in forced))
    elif any(answer.best for answer in answers):
        out.print("Nothing to type: the default backends stay. POSENC_BACKEND=NAME forces another.")
