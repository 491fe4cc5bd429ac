"""Pictures of what was measured: errors by position, and speeds."""

import argparse
from typing import Any, Dict, List

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
import numpy as np

from ..colors import color_of
from ..command import CommandError
from ..engine import Engine
from ..convert import Record
from ..records import load
from ..units import size, times
from .kinds import describe, kind
from .style import DASHES, SERIES, Picture, legend_below, new_figure

HALF_ULP = 2.0**-25  # of a value in [1/2, 1)
DECADES = (10, 17, 20, 24, 31)  # powers of two


@kind("error", "error against position: backends and numerics modes, and what 16 bits make of it", forwards=True)
def draw_error(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws the largest error of cosines and sines by position, both axes logarithmic."""
    options = args.frequencies + engine.options
    curves: Dict[str, List[Dict[str, str]]] = {}
    for line in engine.columns("errors", *options):
        curves.setdefault(line["curve"], []).append(line)
    errors = {name: np.array([float(line["error"]) for line in lines]) for name, lines in curves.items()}
    positions = np.array([float(line["position"]) for line in next(iter(curves.values()))])
    bottom = min(float(error[error > 0].min()) for error in errors.values() if (error > 0).any()) / 3
    caption = describe(options) or "rope_table, dim 128, rope_theta 10000"
    figure = new_figure(
        12, 6.5 + 0.22 * len(curves), "Error of cosines and sines by position, against real mathematics", caption
    )
    axes = figure.subplots()
    modes = list(dict.fromkeys(lines[0]["numerics"] for lines in curves.values()))
    others = iter([color for color in SERIES if color != SERIES[7]] * 4)
    for k, (name, lines) in enumerate(curves.items()):
        backend = lines[0]["backend"]
        axes.loglog(
            positions,
            np.maximum(errors[name], bottom),
            label=name,
            marker="os^vDPX*"[k % 8],
            markersize=5,
            markevery=(2 * k, 11 + 3 * (k % 4)),
            linestyle=DASHES[modes.index(lines[0]["numerics"]) % len(DASHES)],
            color=color_of(backend) if backend else next(others),
        )
    axes.axhline(HALF_ULP, color="#888888", linestyle=":", linewidth=1.2)
    axes.annotate(
        "half an ulp just below 1: correct rounding",
        (1, HALF_ULP),
        xytext=(4, -12),
        textcoords="offset points",
        color="#555555",
    )
    axes.set(xlabel="position", ylabel="largest absolute error", xlim=(0.9, 3e9), ylim=(bottom / 2, 4))
    axes.grid(True)
    legend_below(axes, 1 if len(curves) < 8 else 2)
    facts = [f"{caption}: largest |error| of cos and sin", " " * 46 + "".join(f"   <2^{power}" for power in DECADES)]
    facts += [
        f"{name:<46}" + "".join(f" {error[positions < 2.0 ** power].max():7.1e}" for power in DECADES)
        for name, error in errors.items()
    ]
    return Picture(figure, "\n".join(facts))


# ---- speed ----


def _speed_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="records of posenc bench --out jsonl:FILE")


@kind("speed", "speed of each backend against plain C, from FILE: records of posenc bench", _speed_options)
def draw_speed(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws how many times as fast as plain C (libm) each backend is, in each case."""
    del engine
    records = load(args.file)
    cases: Dict[str, List[Record]] = {}
    for record in records:
        if record["t"] == "bench" and record.get("speedup_libm", 0) > 0:
            cases.setdefault(record["case"], []).append(record)
    plain = {case: next((row for row in rows if row["family"] == "libm"), None) for case, rows in cases.items()}
    cases = {case: rows for case, rows in cases.items() if plain[case] and len(rows) > 1}
    if not cases:
        raise CommandError(
            f"no case was timed with plain C and another backend (got '{args.file}'). "
            "Time them: posenc bench --backend libm --backend NAME --out jsonl:FILE."
        )
    shown = dict(list(cases.items())[:12])
    order = [record["id"] for record in records if record["t"] == "backend"]
    backends = [name for name in order if any(row["backend"] == name for rows in shown.values() for row in rows)]
    figure = new_figure(
        max(8.0, 3.6 * len(shown)),
        6.5,
        "Speed against plain C loops over the C library (libm = 1); 99 % intervals",
        _machine(records, next(iter(shown.values()))[0]),
    )
    axes = figure.subplots()
    for k, (case, rows) in enumerate(shown.items()):
        others = [row for name in backends for row in rows if row["backend"] == name and row["family"] != "libm"]
        width = 0.84 / len(others)
        for i, row in enumerate(others):
            _bar(axes, k - 0.42 + width * (i + 0.5), 0.92 * width, row, plain[case], color_of(row["backend"], backends))
    axes.axhline(1, color="black", linewidth=1)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    least, most = axes.get_ylim()
    axes.set(ylabel="times as fast as plain C (logarithmic)", xlim=(-0.5, len(shown) - 0.5), ylim=(least, most * 1.25))
    axes.set_xticks(range(len(shown)), [_label(rows[0]) for rows in shown.values()])
    axes.tick_params(axis="x", length=0)
    axes.grid(True, axis="y")
    for name in backends:
        if color_of(name) and any(
            row["backend"] == name and row["family"] != "libm" for rows in shown.values() for row in rows
        ):
            axes.bar([0], [0], color=color_of(name, backends), label=name)
    legend_below(axes, 6)
    facts = [
        f"{row['case']} {row['backend']} {times(row['speedup_libm'])}"
        for rows in shown.values()
        for row in rows
        if row["family"] != "libm"
    ]
    if len(cases) > len(shown):
        facts.append(f"left out: {len(cases) - len(shown)} further cases; posenc bench --case chooses")
    return Picture(figure, "\n".join(facts))


def _bar(axes: Axes, x: float, width: float, row: Record, plain: Any, color: str) -> None:
    """Draws a bar from 1 to the speed, with the quotients that the ends of both intervals allow."""
    speed = row["speedup_libm"]
    own, base = row.get("ci", {}), plain.get("ci", {})
    low = base["lo"] / own["hi"] if own.get("hi") and base.get("lo") else speed
    high = base["hi"] / own["lo"] if own.get("lo") and base.get("hi") else speed
    axes.bar(x, speed - 1, width, bottom=1, color=color)
    axes.vlines(x, min(low, speed), max(high, speed), color="#222222", linewidth=1.5)
    axes.annotate(
        times(speed)[:-1], (x, max(high, speed, 1)), xytext=(0, 4), textcoords="offset points", ha="center", fontsize=9
    )


def _label(row: Record) -> str:
    footprint = row.get("footprint", {})
    words = [footprint.get("name") or row["case"].rpartition("/")[2], size(footprint.get("bytes", 0))]
    words += [row["dtype"]] if row["dtype"] != "f32" else []
    words += [row["numerics"]] if row["numerics"] != "given" else []
    return f"{row['kernel']}\n{', '.join(words)}"


def _machine(records: List[Record], row: Record) -> str:
    header: Record = next((record for record in records if record["t"] == "header"), {})
    env: Record = next((record for record in records if record["t"] == "env"), {})
    build = env.get("build", {})
    return (
        f"{env.get('cpu', {}).get('name', 'unknown CPU')}, {build.get('cc', '')} {build.get('version', '')}, "
        f"{str(header.get('started', ''))[:10]}, threads: {row.get('threads', 1)}"
    )
