"""Formats numbers with the digits that are significant; the colours of backends, the same in every picture."""

import math
from typing import Dict, Optional, Sequence


def _three(value: float) -> str:
    """Returns three significant digits, without an exponent."""
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{digits}f}"


def count(number: float) -> str:
    """Returns a count with its thousands apart: 16 666."""
    return f"{number:,.0f}".replace(",", " ") if abs(number) < 1e15 else f"{number:.3g}"


def many(number: int, noun: str) -> str:
    """Returns a count with its noun: 1 check, 16 666 checks."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def time(ns: float) -> str:
    """Returns nanoseconds as 320 ns, 4.21 µs, 1.20 ms."""
    for limit, scale, unit in ((999.5, 1.0, "ns"), (999.5e3, 1e-3, "µs"), (999.5e6, 1e-6, "ms")):
        if ns < limit:
            return f"{_three(ns * scale)} {unit}"
    return f"{_three(ns * 1e-9)} s"


def rate(gbps: float) -> str:
    """Returns GB/s without the unit."""
    return _three(gbps)


def size(count: float) -> str:
    """Returns bytes as 512 KiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


def times(ratio: Optional[float]) -> str:
    """Returns a ratio as 1.24×, 8.8×, 75×."""
    if ratio is None or not ratio > 0:
        return "–"
    digits = 0 if ratio >= 9.95 else 1 if ratio >= 1.995 else 2
    return f"{ratio:.{digits}f}×"


def percent(share: Optional[float]) -> str:
    """Returns a share as 84 %."""
    return f"{100 * share:.0f} %" if share is not None and share > 0 else "–"


def change(ratio: float) -> str:
    """Returns a ratio of times as +7.5 %."""
    return f"{100 * (ratio - 1):+.1f} %"


def error(largest: float, metric: str) -> str:
    """Returns a largest error as 0.50 ulp, 2.2e-07 abs, same bits, 3 differ; - if it was not measured."""
    if not metric:
        return "-"
    if metric == "exact":
        return "differs" if math.isinf(largest) else f"{largest:.3g} differ" if largest > 0 else "same bits"
    if not math.isfinite(largest):
        digits = "NaN" if math.isnan(largest) else "infinite"
    elif largest == 0:
        digits = "0"
    elif metric == "abs":
        digits = f"{largest:.2g}" if largest >= 0.01 else f"{largest:.1e}"
    else:
        digits = f"{largest:.2f}" if largest < 99.995 else f"{largest:.0f}" if largest < 9999.5 else f"{largest:.1e}"
    return f"{digits} {metric.replace('_', ' ')}"


def printed_time(ns: float) -> float:
    """Returns the time that `time` prints, in nanoseconds."""
    number, unit = time(ns).split()
    return float(number) * {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]


def error_and_limit(largest: float, limit: float, metric: str) -> "tuple[str, str]":
    """Returns an error and its limit, with as many digits as show on which side of the limit it lies.

    1.5004 ulp is above the limit 1.5, and is shown as 1.5004 rather than as 1.50.
    """
    shown, shown_limit = error(largest, metric), f"{limit:.3g}"
    if metric in ("", "exact") or not math.isfinite(largest):
        return shown, shown_limit
    unit = shown.partition(" ")[2]
    for digits in range(3, 18):
        if (float(shown.split()[0]) <= float(shown_limit)) == (largest <= limit):
            break
        shown, shown_limit = f"{largest:.{digits}g} {unit}", f"{limit:.{digits}g}"
    return shown, shown_limit


# ---- colours ----

# A colour for each backend: blue and green have the same bits everywhere, purple is SLEEF, orange and yellow
# are the compiler's, grey is libm. Backends of one colour never run on one machine. To colour-blind eyes any two
# colours still differ by at least 25 in CIELAB.
COLORS = {
    "#132B79": "avx512_bf16", "#005FD9": "avx512 sve rvv", "#A9D3FA": "avx2 neon", "#25A55C": "scalar",
    "#960056": "sleef_avx512", "#BF56AF": "sleef_avx2 sleef_neon", "#EE7219": "autovec_v4 autovec_sve autovec_rvv",
    "#F7D312": "autovec_v3 autovec_neon", "#9E9E9E": "libm",
}  # fmt: skip
BACKENDS: Dict[str, str] = {name: color for color, names in COLORS.items() for name in names.split()}
PLUGINS = ("#665600", "#551711")  # of backends that are not posenc's own


def color_of(backend: str, others: Sequence[str] = ()) -> str:
    """Returns the colour of a backend; those that are not posenc's own take turns, in the order of `others`."""
    unknown = [name for name in others if name not in BACKENDS]
    place = unknown.index(backend) if backend in unknown else 0
    return BACKENDS.get(backend) or PLUGINS[place % len(PLUGINS)]
