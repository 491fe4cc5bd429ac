"""Numbers as people read them: times, rates, sizes, ratios and errors, with the digits that mean something."""

import math
from typing import Optional


def _three(value: float) -> str:
    """Returns three significant digits, without an exponent."""
    size = abs(value)
    return f"{value:.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"


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
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    at = 0
    while count >= 1024 and at < len(units) - 1:
        count /= 1024
        at += 1
    return f"{count:.3g} {units[at]}"


def times(ratio: Optional[float]) -> str:
    """Returns a ratio as 1.24×, 8.8×, 75×."""
    if ratio is None or not ratio > 0:
        return "–"
    return f"{ratio:.{0 if ratio >= 9.95 else 1 if ratio >= 1.995 else 2}f}×"


def percent(share: Optional[float]) -> str:
    """Returns a share as 84 %."""
    return f"{100 * share:.0f} %" if share is not None and share > 0 else "–"


def change(ratio: float) -> str:
    """Returns a ratio of times as +7.5 %, or as 697× where a percentage says nothing."""
    return f"{ratio:.3g}×" if ratio >= 10 else f"{100 * (ratio - 1):+.1f} %"


def error(largest: float, metric: str) -> str:
    """Returns a largest error as 0.50 ulp, same bits, 3 differ."""
    if metric == "exact":
        if math.isinf(largest):
            return "differs"
        return f"{largest:.3g} differ" if largest > 0 else "same bits"
    unit = {"pair_ulp": "pair ulp"}.get(metric, metric)
    if math.isnan(largest) or math.isinf(largest):
        return f"{'NaN' if math.isnan(largest) else 'infinite'} {unit}"
    if largest == 0:
        return f"0 {unit}"
    if metric == "abs":
        return f"{largest:.2g} {unit}" if largest >= 0.01 else f"{largest:.1e} {unit}"
    if largest < 99.995:
        return f"{largest:.2f} {unit}"
    return f"{largest:.0f} {unit}" if largest < 9999.5 else f"{largest:.1e} {unit}"


def printed_time(ns: float) -> float:
    """Returns the time that `time` prints, in nanoseconds."""
    number, unit = time(ns).split()
    return float(number) * {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]


def printed_rate(gbps: float) -> float:
    """Returns the rate that `rate` prints."""
    return float(rate(gbps))


def judged(largest: float, limit: float, metric: str) -> "tuple[str, str]":
    """Returns an error and its limit, with as many digits as show on which side of the limit it lies."""
    shown, most = error(largest, metric), f"{limit:.3g}"
    if metric == "exact" or not math.isfinite(largest):
        return shown, most
    unit = shown.partition(" ")[2]
    for digits in range(3, 18):
        if (float(shown.split()[0]) <= float(most)) == (largest <= limit):
            break
        shown, most = f"{largest:.{digits}g} {unit}", f"{limit:.{digits}g}"
    return shown, most
