"""Pictures of what was measured: errors by position, and speeds."""

import argparse
from typing import List, Tuple

import numpy as np

from ..command import CommandError
from ..engine import Engine
from ..records import Record, grouped, load, member
from ..units import color_of, size, times
from .picture import DASHES, SERIES, Picture, describe, kind, legend_below, plain_ticks, problem_of

HALF_ULP = 2.0**-25  # of a value in [1/2, 1)
ENDS = (10, 17, 20, 24, 31)  # of ranges of positions, as powers of two
MOST_CASES = 12  # in a picture of speeds


@kind("error", forwards=True)
def draw_error(args: argparse.Namespace) -> Picture:
    """error against position: backends and numerics modes, and what 16 bits make of it

    The dotted line is correct rounding to f32. Solid curves, numerics mode `exact`, stay on it or just above. The f32
    modes climb by a decade for each decade of positions, until they are off by 2, the opposite direction. Curves of 16
    bits begin where a table, a position or a frequency in bf16 or f16 ends.
    """
    line, options = problem_of(args.forwarded, "rope_table rotary_dim=128")
    curves = Engine().error_curves("--problem", line, *options)
    errors = {curve["curve"]: np.array(curve["errors"]) for curve in curves}
    positions = np.array(curves[0]["positions"])
    bottom = min(float(error[error > 0].min(initial=HALF_ULP)) for error in errors.values()) / 3

    parameters = describe(line, options)
    title = "Error of cosines and sines by position, against real mathematics"
    picture = Picture((12, 6.5 + 0.22 * len(curves)), title, parameters, [["errors"]])
    axes = picture.panel("errors", "", "position", "largest absolute error")
    modes = list(dict.fromkeys(curve["numerics"] for curve in curves))
    others = iter(SERIES[:7] * 4)
    for k, curve in enumerate(curves):
        name, backend, mode = curve["curve"], curve["backend"], modes.index(curve["numerics"])
        axes.loglog(
            positions, np.maximum(errors[name], bottom), label=name,
            color=color_of(backend) if backend else next(others), linestyle=DASHES[mode % len(DASHES)],
            marker="os^vDPX*"[k % 8], markersize=5, markevery=(2 * k, 11 + 3 * (k % 4)),
        )  # fmt: skip
    axes.axhline(HALF_ULP, color="#888888", linestyle=":", linewidth=1.2)
    rounding = "half an ulp just below 1: correct rounding"
    axes.annotate(rounding, (1, HALF_ULP), (4, -12), textcoords="offset points", color="#555555")
    axes.set(xlim=(0.9, 3e9), ylim=(bottom / 2, 4))
    legend_below(axes, 1 if len(curves) < 8 else 2)

    picture.facts[0] += ": largest |error| of cos and sin"
    picture.facts.append(" " * 46 + "".join(f"   <2^{power}" for power in ENDS))
    for name, by_position in errors.items():
        largest = (by_position[positions < 2.0**power].max() for power in ENDS)
        picture.facts.append(f"{name:<46}" + "".join(f" {value:7.1e}" for value in largest))
    return picture


@kind("speed")
def draw_speed(args: argparse.Namespace) -> Picture:
    """speed of each backend against plain C, from FILE: records of posenc bench

    A bar is how many times as fast as plain C (libm) a backend is in one case, by their medians; the line on it is the
    99 % interval. Bars that begin at 1 and go down are slower than plain C.
    """
    records = load(args.file)
    timed = [record for record in records if record["t"] == "bench" and record.get("speedup_libm", 0) > 0]
    cases = [{row["backend"]: row for row in rows} for rows in grouped(timed, lambda row: row["case"]).values()]
    cases = [rows for rows in cases if "libm" in rows and len(rows) > 1]
    if not cases:
        raise CommandError(
            f"no case was timed with plain C and another backend (got '{args.file}'). "
            "Time them: posenc bench --backend libm --backend NAME --out jsonl:FILE."
        )
    shown = cases[:MOST_CASES]
    order = [record["id"] for record in records if record["t"] == "backend"]
    backends = [name for name in order if name != "libm" and any(name in rows for rows in shown)]

    title = "Speed against plain C loops over the C library (libm = 1); 99 % intervals"
    picture = Picture((max(8.0, 3.6 * len(shown)), 6.5), title, _machine(records, shown[0]["libm"]), [["speeds"]])
    axes = picture.panel("speeds", "", "", "times as fast as plain C (logarithmic)")
    for place, rows in enumerate(shown):
        present = [name for name in backends if name in rows]
        width = 0.84 / len(present)
        for i, name in enumerate(present):
            faster, less, more = _speedup(rows[name], rows["libm"])
            in_legend = not any(name in before for before in shown[:place])
            bar = axes.bar(
                place - 0.42 + width * (i + 0.5), faster - 1, 0.92 * width, bottom=1, color=color_of(name, backends),
                label=name if in_legend else None, yerr=[[less], [more]],
                error_kw={"ecolor": "#222222", "elinewidth": 1.5},
            )  # fmt: skip
            axes.bar_label(bar, [times(faster)[:-1]], padding=4, fontsize=9)
            picture.facts.append(f"{rows[name]['case']} {name} {times(faster)}")
    axes.axhline(1, color="black", linewidth=1)
    axes.set_yscale("log")
    plain_ticks(axes.yaxis)
    axes.margins(y=0.08)
    axes.set(xlim=(-0.5, len(shown) - 0.5))
    axes.set_xticks(range(len(shown)), [_label(rows["libm"]) for rows in shown])
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")
    legend_below(axes, 6, lines=2)
    if len(cases) > len(shown):
        picture.facts.append(f"left out: {len(cases) - len(shown)} further cases; posenc bench --case chooses")
    return picture


def _speedup(row: Record, plain: Record) -> Tuple[float, float, float]:
    """Returns the speed against plain C, and how much less and more the ends of both intervals allow."""
    speed, own, base = row["speedup_libm"], row.get("ci"), plain.get("ci")
    if not own or not base:
        return speed, 0, 0
    return speed, max(0, speed - base["lo"] / own["hi"]), max(0, base["hi"] / own["lo"] - speed)


def _label(row: Record) -> str:
    """Returns the name of a case below its bars: kernel, place in memory, and what is not usual."""
    footprint = row.get("footprint", {})
    words = [footprint.get("name") or row["case"].rpartition("/")[2], size(footprint.get("bytes", 0))]
    words += [row[name] for name, usual in (("dtype", "f32"), ("numerics", "given")) if row[name] != usual]
    return f"{row['kernel']}\n{', '.join(words)}"


def _machine(records: List[Record], row: Record) -> str:
    """Returns CPU, compiler, date and number of threads of a run."""
    by_type = {record["t"]: record for record in records}
    env, started = by_type.get("env", {}), str(member(by_type, "header.started") or "")
    compiler = f"{member(env, 'build.cc') or ''} {member(env, 'build.version') or ''}"
    name = member(env, "cpu.name") or "unknown CPU"
    return f"{name}, {compiler}, {started[:10]}, threads: {row.get('threads', 1)}"
