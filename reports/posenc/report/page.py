"""Writes a report as one HTML file that loads nothing, and as Markdown."""

import base64
import gzip
import importlib.util
import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import jinja2
from markupsafe import Markup  # a part of Jinja2

from .. import quality, units
from ..convert import Record
from ..ranking import Ranking, Standing, Timing
from ..runs import member, number
from .errors import Worst, text_of, worst_in
from .glossary import METHOD, METHOD_OF_COMPARISONS, TERMS
from .view import RAN, Host, View, shape

HERE = Path(__file__).parent
# D3, to be inlined: in a bundle, from PyPI (XStatic-D3), from Debian (libjs-d3).
D3 = (HERE / "d3.min.js", Path("/usr/share/javascript/d3/d3.min.js"))
VERDICTS = ("slower", "unclear", "faster", "same", "identical", "incomparable", "new", "removed")


def d3_source() -> Optional[str]:
    """Returns the chart library; None if it is not installed."""
    paths = list(D3)
    try:
        found = importlib.util.find_spec("xstatic.pkg.d3")
    except ModuleNotFoundError:
        found = None
    if found and found.origin:
        paths.insert(1, Path(found.origin).parent / "data" / "d3.js")
    return next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), None)


# ---- the data that the page carries ----

TIMING = ("machine", "kernel", "dtype", "numerics", "case", "shape", "level", "backend", "ns", "lo", "hi",
          "gbps", "share", "roof", "bound", "libm", "autovec", "error", "errorText", "metric", "standing",
          "rejected")  # fmt: skip


def _digits(value: Optional[float], many: int = 5) -> Optional[float]:
    return None if value is None else float(f"{value:.{many}g}")


def _standing(row: Timing, ranking: Ranking) -> str:
    words = {
        Standing.FASTEST: "fastest",
        Standing.TIED: "tie",
        Standing.NOISY: "noisy",
        Standing.WRONG: "wrong",
        Standing.NOT_TIMED: "not timed",
    }
    if row.standing == Standing.SLOWER and ranking.fastest:
        return f"{units.times(row.median / ranking.fastest.median)} as long"
    return words.get(row.standing, "")


def _timing(host: Host, row: Timing, ranking: Ranking) -> List[Any]:
    record, models = row.record, host.machine.of("model")
    found = host.errors.of(record)
    judged = next((worst for worst in found if worst.metric != "exact"), found[0] if found else None)
    bound = member(record, "bound.resource") or ("memory" if row.share else None)
    level = member(record, "footprint.name")
    return [
        host.name, row.kernel, record["dtype"], record["numerics"], row.case,
        shape(record, models), level, row.backend, _digits(row.median) if not row.rejected else None,
        _digits(row.lo or row.median), _digits(row.hi or row.median), _digits(number(record, "gbps")),
        _digits(row.share, 3), _digits(number(record, "roofline.gbps")), bound, _digits(row.speedup_libm, 4),
        _digits(row.speedup_autovec, 4), _finite(judged), text_of(found), judged.metric if judged else None,
        _standing(row, ranking), row.rejected,
    ]  # fmt: skip


def _finite(worst: Optional[Worst]) -> Optional[float]:
    return float(f"{worst.largest:.4g}") if worst and abs(worst.largest) < float("inf") else None


def _pair(record: Record) -> Dict[str, Any]:
    ratio = number(record, "ratio")
    return {
        "name": f"{record['case']} {record['backend']}", "ratio": _digits(ratio), "verdict": record["verdict"],
        "lo": _digits(number(record, "ci.lo") or ratio), "hi": _digits(number(record, "ci.hi") or ratio),
        "control": _digits(number(record, "control_ratio")), "noise": number(record, "noise_threshold"),
        "reason": record["reason"],
    }  # fmt: skip


def page_data(view: View) -> Dict[str, Any]:
    """Returns what the charts and filters of the page read."""
    timings = [
        _timing(host, row, ranking)
        for host in view.hosts
        for ranking in host.ranked.cases.values()
        for row in ranking.rows
    ]
    curves = [
        {"machine": host.name, "name": curve["curve"], "backend": curve.get("backend", ""),
         "numerics": curve.get("numerics", ""), "positions": curve["positions"],
         "errors": [_digits(error, 3) for error in curve["errors"]]}
        for host in view.hosts
        for curve in host.machine.of("curve")
    ]  # fmt: skip
    pairs = sorted(map(_pair, view.pairs), key=lambda pair: (VERDICTS.index(pair["verdict"]), -(pair["ratio"] or 0)))
    # A text is stored once. Rows hold -1 - its place; their own numbers are never negative.
    texts: Dict[str, int] = {}
    rows = [[-1 - texts.setdefault(value, len(texts)) if isinstance(value, str) else value for value in row]
            for row in timings]  # fmt: skip
    return {"colors": view.colors, "columns": TIMING, "texts": list(texts), "timings": rows, "curves": curves,
            "pairs": pairs}  # fmt: skip


CHECK = ("case", "suite", "status", "reason", "problem", "shown", "limit", "worst_at", "got", "want", "coverage",
         "checked", "misrounded", "command")  # fmt: skip


def _check(check: Record) -> Tuple[Any, ...]:
    error, worst = check.get("error", {}), worst_in(check)
    shown, limit = worst.judged if worst else ("", "")
    return (
        check["case"], _suite(check["suite"]), check["status"], check.get("reason"), check.get("problem"), shown, limit,
        error.get("worst_at"), error.get("got"), error.get("want"), error.get("coverage"), error.get("checked"),
        error.get("misrounded"), check.get("command"),
    )  # fmt: skip


def packed_checks(view: View) -> str:
    """Returns all checks by machine, kernel and backend: JSON, compressed, in base64.

    Many backends return the same bits, so each check is there once. A cell has the place of each of its checks, less
    the place before.
    """
    places: Dict[Tuple[Any, ...], int] = {}
    cells: Dict[str, List[int]] = {}
    for host in view.hosts:
        before: Dict[str, int] = {}
        for check in host.machine.of("check"):
            cell = f"{host.name} {check['kernel']} {check['backend']}"
            place = places.setdefault(_check(check), len(places))
            cells.setdefault(cell, []).append(place - before.get(cell, 0))
            before[cell] = place
    data = {"columns": CHECK, "checks": list(places), "cells": cells}
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


# ---- templates ----


def _has(*kinds: str) -> Callable[[View], bool]:
    return lambda view: any(host.machine.of(kind) for host in view.hosts for kind in kinds)


# The sections of the page in their order: name, title, and whether a view has it. To add one, write
# templates/sections/NAME.j2, which sees what _common() returns, and a line here; test it in test_page.py.
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


def facts(host: Host) -> Iterable[Tuple[str, str]]:
    """Yields what a machine is, with which quality it was measured, and why."""
    env = host.env
    cpus, caches = env.get("cpus", {}), env.get("caches", [])
    yield "CPU", f"{host.cpu} ({member(env, 'cpu.key')})"
    yield "Features", ", ".join(member(env, "cpu.features") or [])
    yield "CPUs", f"{cpus.get('online')} online, {cpus.get('allowed')} for this process" if cpus else ""
    yield "Caches", ", ".join(f"L{c['level']} {c['type'].lower()} {units.size(c['bytes'])}" for c in caches)
    yield "Hypervisor", str(env.get("virtualization") or "")
    yield "Frequency", ", ".join(f"{name} {value}" for name, value in env.get("frequency", {}).items())
    yield "System", ", ".join(str(value) for value in env.get("os", {}).values())
    build = env.get("build", {})
    yield "Build", f"{build.get('cc', '')} {build.get('version', '')} {build.get('flags', '')}".strip()
    tool = host.machine.header.get("tool", {})
    changed = ", with changes that are not committed" if tool.get("dirty") else ""
    yield "posenc", f"{tool.get('version', '')} {tool.get('commit', '')}{changed}".strip()
    vectors = member(host.machine.header, "vectors.sha256")
    yield "Golden vectors", f"SHA-256 {vectors[:16]}…" if vectors else ""
    yield "Run", f"{host.machine.header.get('mode', '')}, {host.machine.header.get('started', '')}"
    reasons = quality.of_machine(host.machine).reasons
    yield "Measurement quality", f"{host.grade}: {'; '.join(reasons) or 'nothing disturbs it'}" if host.grade else ""


def _forced(hosts: Sequence[Host]) -> str:
    """Returns an example of a backend to force: the fastest that is not the default."""
    for host in hosts:
        for answer in host.answers:
            for cost in answer.costs:
                if cost.backend != answer.default:
                    return cost.backend
    return next((backend for host in hosts for backend in host.backends), "") if hosts else ""


def _side(side: Record) -> str:
    if side.get("rev"):
        return f"{side['rev']} ({side.get('commit', '')[:10]})"
    return f"{side.get('path', '?')} {side.get('version', '')}".strip()


def _result(side: Optional[Record], change: Record) -> str:
    side = side or {}
    largest = number(side, "max")
    if largest is not None and change.get("metric"):
        return units.error(largest, change["metric"])
    return str(side.get("status") or side.get("value") or "–")


def _spread(width: float) -> str:
    """Returns half of an interval as ±6 %. A wide one has no digits that mean something."""
    return f"±{100 * width:.0f} %" if width <= 1 else "> ±100 %"


def _suite(name: str) -> str:
    """Returns the name of a suite as people read it."""
    return TERMS[f"suite-{name}"].name if f"suite-{name}" in TERMS else name


def _change(ratio: float) -> str:
    """Returns a ratio of times as +7.5 %, or as 697× where a percentage says nothing."""
    return units.times(ratio) if ratio >= 10 else units.change(ratio)


def _count(value: float) -> str:
    return f"{int(value):,}".replace(",", "\u202f")


class Code(str):
    """Markdown that is not escaped."""


def _code(text: Any) -> Code:
    """Returns a code span, whatever the text holds."""
    return Code("`" + str(text).replace("`", "'").replace("|", "\\|") + "`")


def _block(text: Any) -> Code:
    """Returns the inside of a block of code."""
    return Code(str(text).replace("`" * 3, "'" * 3))


def _plain(value: Any) -> Any:
    """Returns a text of which Markdown takes nothing for its own."""
    own = isinstance(value, Code) or not isinstance(value, str)
    return value if own else re.sub(r"([\\`*\[<|])", r"\\\1", value)


def environment(markdown: bool = False) -> jinja2.Environment:
    """Returns the templates of this folder, with the filters that they use."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=not markdown,
        finalize=_plain if markdown else None,
        undefined=jinja2.ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        time=units.time, spread=_spread, times=units.times, percent=units.percent, size=units.size,
        change=_change, count=_count, errors=text_of, suite=_suite,
        side=_side, result=_result, forced_backend=_forced,
        by_verdict=lambda pairs: sorted(pairs, key=lambda pair: VERDICTS.index(pair["verdict"])),
        code=_code, block=_block,
    )  # fmt: skip
    return env


def suites(host: Host) -> List[str]:
    """Returns the suites of a machine's checks that ran."""
    return list(dict.fromkeys(check["suite"] for check in host.machine.of("check") if check["status"] in RAN))


def _common(view: View) -> Dict[str, Any]:
    headers = [record for record in view.records if record["t"] == "header"]
    return {
        "view": view, "facts": facts, "suites": suites, "glossary": TERMS,
        "method": METHOD_OF_COMPARISONS if view.pairs else METHOD,
        "tables": [(host, table) for host in view.hosts for table in host.by_range],
        "version": member(headers[0], "tool.version") if headers else "",
        "started": headers[0].get("started", "") if headers else "",
    }  # fmt: skip


def _script(data: Any) -> str:
    """Returns JSON that may stand in a script element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def to_html(view: View) -> str:
    """Returns the page."""
    sections = [(name, title) for name, title, wanted in SECTIONS if wanted(view)]
    raw = {name: (HERE / "templates" / f"page.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
    return environment().get_template("page.html.j2").render(
        **_common(view), sections=sections, css=Markup(raw["css"]), script=Markup(raw["js"]),
        d3=Markup((d3_source() or "").replace("</script", "<\\/script")), data=Markup(_script(page_data(view))),
        checks=packed_checks(view),
    )  # fmt: skip


def to_markdown(view: View) -> str:
    """Returns the report as Markdown."""
    return environment(markdown=True).get_template("report.md.j2").render(**_common(view))
