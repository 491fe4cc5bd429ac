"""Writes numbers with the digits that mean something, and texts without what a terminal obeys."""

import math
import re

EXACT = 17  # significant digits that tell any two f64 apart

# Controls, the soft hyphen, marks of direction, blanks without width, separators of lines, marks of annotations, the
# byte order mark, tags, noncharacters and halves of surrogate pairs.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\U000e0000-\U000e007f"
    + "".join(f"{chr(p << 16 | 0xFFFE)}{chr(p << 16 | 0xFFFF)}" for p in range(1, 17))
    + "]"
)
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(found: "re.Match[str]") -> str:
    code = ord(found[0])
    form = "\\x{:02x}" if code < 0x80 else "\\u{:04x}" if code < 0x10000 else "\\U{:06x}"
    return _ESCAPES.get(found[0]) or form.format(code)


def is_plain(text: str) -> bool:
    """Returns whether a text has no control and no invisible characters."""
    return not _HIDDEN.search(text)


def plain(text: str) -> str:
    """Returns a text on one line with control and invisible characters escaped, as others may have written it."""
    return _HIDDEN.sub(_escape, text)


def _three(value: float) -> str:
    """Returns three significant digits without an exponent."""
    return f"{value:.{0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2}f}"


def time(ns: float) -> str:
    """Returns a time: 27.2 us."""
    for least, scale, unit in ((999.5e6, 1e-9, "s"), (999.5e3, 1e-6, "ms"), (999.5, 1e-3, "us")):
        if ns >= least:
            return f"{_three(ns * scale)} {unit}"
    return f"{_three(ns)} ns"


def rate(gbps: float) -> str:
    """Returns GB/s without the unit."""
    return _three(gbps)


def count(number: float) -> str:
    """Returns a count with its thousands apart: 16 666."""
    return f"{number:,.0f}".replace(",", " ") if abs(number) < 1e15 else f"{number:.3g}"


def many(number: int, noun: str) -> str:
    """Returns a count with its noun: 1 check, 16 666 checks."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def _unit(metric: str) -> str:
    return "pair ulp" if metric == "pair_ulp" else metric


def error(largest: float, metric: str) -> str:
    """Returns the largest error in its metric: 0.94 ulp, 2.2e-07 abs, 3 differ."""
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
    return f"{digits} {_unit(metric)}"


def judged(largest: float, limit: float, metric: str) -> "tuple[str, str]":
    """Returns an error and its limit with as many digits as it takes to see which of them is larger."""
    shown, most = error(largest, metric), f"{limit:.3g}"
    if metric in ("", "exact") or not math.isfinite(largest):
        return shown, most
    for digits in range(3, EXACT + 1):
        if (float(shown.split()[0]) <= float(most)) == (largest <= limit):
            break
        shown, most = f"{largest:.{digits}g} {_unit(metric)}", f"{limit:.{digits}g}"
    return shown, most
