"""Reads records of the older schema: posenc.results/1 becomes posenc.results/2.

NAMES has a table for each kind of record: the path of a member, and the new name of this member. Members that are not
in the table keep their names.
"""

import re
from typing import Any, List, Mapping

from .runs import Record

KINDS = {"conf": "check", "machine": "doctor"}
STATUS = {"weak": "inconclusive"}
FAMILIES = {"template": "native"}
NOTATION = {
    "profile": "numerics", "freq_convention": "freq_spacing", "chunked": "qwen2_vl", "interleaved": "qwen3_vl",
    "restarted": "qwen2_vl_vision", "dealt": "pixtral", "alternating": "kimi",
}  # fmt: skip
WORDS = {"status": STATUS, "family": FAMILIES}

_RESULT = {"profile": "numerics"}
_ROOFLINE = {"roof": "roofline", "roof.ratio": "share"}
NAMES: Mapping[str, Mapping[str, str]] = {
    "env": {"virt": "virtualization", "freq": "frequency", "mem": "memory", "trust": "quality"},
    "backend": {
        "isa": "required_features", "reason": "unavailable_reason", "fused": "fma", "lanes": "vector_width",
        "serves": "default_for",
    },
    "model": {"trained_profile": "trained_numerics", "cases.times": "calls"},
    "check": {
        **_RESULT, "classes.met": "reached", "classes.of": "total", "err": "error", "err.witness": "worst_at",
        "err.n": "checked", "repro": "command",
    },
    "bench": {
        **_RESULT, **_ROOFLINE, "refused": "rejected", "limit": "bound", "limit.ratio": "share",
        "vs_libm": "speedup_libm", "vs_autovec": "speedup_autovec", "vs_apart": "speedup_separate",
        "null_pct": "control_pct",
    },
    "overhead": {**_RESULT, "front": "frontend", "null": "control"},
    "count": {**_RESULT, "lanes": "vector_width", "refused": "rejected"},
    "pair": {
        **_RESULT, **_ROOFLINE, "launches": "processes", "launch_ratios": "process_ratios",
        "floor": "noise_threshold", "budget": "threshold", "null_ratio": "control_ratio", "more_s": "more_seconds",
        "samples.null": "control",
    },
    "change": {**_RESULT, "witness": "worst_at", "first.witness": "worst_at"},
    "doctor": {
        "tells_apart": "detectable", "measured.floors.launch_pct": "process_pct",
        "measured.floors.apart_pct": "detectable_pct", "null_pct": "control_pct",
    },
}  # fmt: skip


def _notation(problem: str) -> str:
    """Returns a problem with the present names of its fields and of the values of mrope_layout."""
    return re.sub(
        r"\b(profile|freq_convention)(?==)|(?<=\bmrope_layout=)\w+", lambda m: NOTATION.get(m[0], m[0]), problem
    )


def _rename(value: Any, path: str, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_rename(item, path, names) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {}
    for name, member in value.items():
        inner = f"{path}.{name}" if path else name
        if name in WORDS and isinstance(member, str):
            member = WORDS[name].get(member, member)
        if name == "problem" and isinstance(member, str):
            member = _notation(member)
        renamed[names.get(inner, name)] = _rename(member, inner, names)
    return renamed


def convert(record: Record) -> Record:
    """Returns a record of posenc.results/1 as posenc.results/2 has it."""
    kind = KINDS.get(record["t"], record["t"])
    renamed: Record = _rename(record, "", NAMES.get(kind, {}))
    renamed["t"] = kind
    if kind == "header":
        renamed["schema"] = "posenc.results/2"
    elif kind == "env" and "virt" in record:
        renamed["virtualization"] = (record.get("virt") or {}).get("kind")
    elif kind == "doctor" and "grade" in renamed:
        renamed["quality"] = {"grade": renamed.pop("grade"), "reasons": renamed.pop("reasons", [])}
    elif kind == "footer" and "counts" in renamed:
        counts = record["counts"].items()
        renamed["counts"] = {STATUS.get(name, KINDS.get(name, name)): count for name, count in counts}
    return renamed


def convert_all(records: List[Record]) -> List[Record]:
    """Returns records of either schema as posenc.results/2 has them."""
    converted, old = [], False
    for record in records:
        if record["t"] == "header":
            old = record.get("schema") == "posenc.results/1"
        converted.append(convert(record) if old else record)
    return converted
