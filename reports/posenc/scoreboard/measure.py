"""Measures the rows of one adapter: verdict, error by decade of position, NaN, speed.

`python -m posenc.scoreboard.measure FILE FIRST` prints a JSON line about the adapter, and one for each row from FIRST
on. The scoreboard runs it in a process of its own, on one CPU. A row is what @implements declares in the adapter: a
function of a library that computes a kernel of posenc.
"""

import contextlib
import gc
import importlib
import importlib.metadata
import importlib.util
import itertools
import json
import math
import os
import sys
import time
import traceback
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np
import numpy.typing as npt

from posenc.checking.arrays import converter, tensor_of
from posenc.checking.client import Call
from posenc.checking.module import RotaryModule

from . import ROWS, Row

posenc: Any = importlib.import_module("posenc")  # with the kernels, which the tree of the reports lacks
Array = npt.NDArray[Any]
Choices = Dict[str, str]  # layout and freq_spacing of sinusoids
Table = Callable[[Array], Array]  # positions [n] to [n, columns]
LIMITS = (1e-3, 1e-2, 1e-1)  # errors whose first position is reported
DENSE, FARTHEST = 1 << 17, 10**7  # all positions below the first are compared, and 64 of each part up to the second
CHUNK = 4096  # positions of a call
DIM, ROPE_THETA = 128, 10000.0  # of a table that is no module's
TOKENS, HEADS = 512, 32  # of a timed rotation: a prompt of Llama 3.1 8B
ROUNDS, CALLS_S = 15, 0.02  # of timing, and seconds of calls in a round


def load(path: Path) -> Tuple[List[Row], Dict[str, str]]:
    """Loads an adapter. Returns its rows, and the versions of the packages that it calls."""
    ROWS.clear()
    spec = importlib.util.spec_from_file_location(f"posenc_adapter_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not ROWS:
        raise ValueError("no function is below @implements")
    names = [package.partition("==")[0] for package in getattr(module, "PACKAGES", [])]
    known = getattr(module, "VERSIONS", None)  # of what is no package
    return list(ROWS), known or {name: importlib.metadata.version(name) for name in names}


# ---- Error by position ----


def _chunks(most: int) -> Iterator[Array]:
    """Yields positions below `most`: all below DENSE, then 64 of each fifteenth of a decade."""
    for first in range(0, min(DENSE, most), CHUNK):
        yield np.arange(first, min(first + CHUNK, most))
    parts = np.geomspace(DENSE, FARTHEST, 29)
    for least, end in zip(parts, parts[1:]):
        positions = np.unique(np.linspace(least, end - 1, 64).astype(np.int64))
        if positions[0] < most:
            yield positions[positions < most]


def errors_by_position(table: Table, exact: Table, most: int) -> Dict[str, Any]:
    """Compares tables at positions below `most`.

    Returns the worst error of each decade with its place, and the first position with an error above each of LIMITS.
    """
    decades: Dict[int, Dict[str, Any]] = {}  # by the number of digits of a position
    above: Dict[str, Optional[int]] = {f"{limit:g}": None for limit in LIMITS}
    for positions in _chunks(most):
        got, want = table(positions), exact(positions)
        error = np.abs(got.astype(np.float64) - want)
        error[np.isnan(error)] = math.inf
        worst = error.max(1)
        for name, place in above.items():
            found = np.flatnonzero(worst > float(name))
            if place is None and len(found):
                above[name] = int(positions[found[0]])
        digits = np.char.str_len(positions.astype(str))
        for decade in np.unique(digits):
            row = int(np.where(digits == decade, worst, -1).argmax())
            if worst[row] > decades.get(int(decade), {"error": -1})["error"]:
                column = int(error[row].argmax())
                decades[int(decade)] = {"error": float(worst[row]), "position": int(positions[row]), "column": column,
                                        "got": float(got[row, column]), "want": float(want[row, column])}  # fmt: skip
    return {"decades": [{"digits": digits, **worst} for digits, worst in sorted(decades.items())], "above": above}


def _as_numpy(value: Any) -> Array:
    """Returns an array of any framework as f32 of NumPy, without a copy if there is none to make."""
    tensor = tensor_of(value)
    return np.frombuffer(tensor.data, np.float32).reshape(tensor.shape)


def _table_of(call: Callable[..., Any], row: Row, frequencies: Any, modes: List[str], choices: Choices) -> Table:
    """Returns cosines and sines side by side, or sinusoids, as a function of positions."""
    element = np.float64 if "exact" in modes else np.float32
    function, convert = Call(call, row.kernel), converter(row.framework, None)
    parameters = {"rotary_dim": frequencies.dim, "dim": frequencies.dim, "rope_theta": ROPE_THETA, "scaling": "none",
                  "factor": 1.0, "attention_factor": 1.0, "scale": 1.0, "dtype": "f32",
                  "numerics": "hf_f32", **dict(choices)}  # fmt: skip

    def table(positions: Array) -> Array:
        inputs = {"positions": positions, "inv_freq": np.asarray(frequencies.inv_freq, element)}
        value = function({name: convert(tensor_of(array)) for name, array in inputs.items()}, parameters)
        parts = value if isinstance(value, (tuple, list)) else [value]
        return np.concatenate([_as_numpy(part) for part in parts], 1)

    return table


def _exact_table(frequencies: Any, kernel: str, choices: Choices) -> Table:
    """Returns the table of posenc, in the numerics mode exact."""
    def table(positions: Array) -> Array:
        if kernel == "sinusoidal":
            return np.asarray(posenc.sinusoidal(frequencies, positions, layout=choices["layout"]))
        return np.concatenate(posenc.rope_table(frequencies, positions), 1)

    return table


# ---- NaN and speed of rotations ----


def _rotation_inputs(tokens: int, heads: int) -> Dict[str, Array]:
    """Returns random x [tokens, heads, DIM], and cosines and sines [tokens, DIM/2]."""
    draw = np.random.default_rng(0)
    cos, sin = posenc.rope_table(posenc.Frequencies(dim=DIM), np.arange(tokens))
    return {"x": draw.standard_normal((tokens, heads, DIM), dtype=np.float32), "cos": cos, "sin": sin}


def spreads_nan(row: Row) -> Optional[bool]:
    """Returns whether a NaN in one pair of channels changes another pair."""
    inputs = _rotation_inputs(2, 2)
    call, convert = Call(row.fn, row.kernel), converter(row.framework, None)
    inputs["x"][0, 0, 0] = math.nan
    out = _as_numpy(call({name: convert(tensor_of(array)) for name, array in inputs.items()}, {}))
    partner = DIM // 2 if row.kernel == "rope_half" else 1
    return int(np.isnan(out).sum()) != 2 or not np.isnan(out[0, 0, [0, partner]]).all()


def _seconds_per_call(call: Callable[[], Any], count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def speed(theirs: Callable[[], Any], ours: Callable[[], Any]) -> Dict[str, float]:
    """Times two calls in turn. Returns medians in seconds and the median ratio with its quartiles."""
    calls = (theirs, ours)
    times: Tuple[List[float], List[float]] = ([], [])
    ratios: List[float] = []
    counts = [max(1, int(CALLS_S / max(_seconds_per_call(call, 3), 1e-7))) for call in calls]  # and warm caches
    gc.disable()
    for turn in range(ROUNDS):
        for which in (0, 1) if turn % 2 else (1, 0):
            times[which].append(_seconds_per_call(calls[which], counts[which]))
        ratios.append(times[0][-1] / times[1][-1])
    gc.enable()
    ordered = sorted(ratios)
    return {"theirs_s": median(times[0]), "ours_s": median(times[1]), "ratio": median(ratios),
            "low": ordered[len(ordered) // 4], "high": ordered[-1 - len(ordered) // 4]}  # fmt: skip


def time_rotation(row: Row) -> Dict[str, Dict[str, float]]:
    """Times a rotation of a prompt and one of a single head, both to new arrays, beside posenc's on the same values."""
    found = {}
    for name, tokens, heads in (("prompt", TOKENS, HEADS), ("call", 1, 1)):
        arrays = _rotation_inputs(tokens, heads)
        convert = converter(row.framework, None)
        converted = [convert(tensor_of(array)) for array in arrays.values()]
        rotate = getattr(posenc, row.kernel)

        def theirs() -> Any:
            out = row.fn(*converted)
            return out.block_until_ready() if hasattr(out, "block_until_ready") else out  # of JAX

        found[name] = speed(theirs, lambda: rotate(*arrays.values()))
    return found


# ---- A row ----


def _add_table(
    record: Dict[str, Any], row: Row, call: Callable[..., Any], frequencies: Any, most: int, modes: List[str]
) -> None:
    """Adds the errors of a table to a record, in the first layout and spacing that the library offers."""
    for layout, spacing in itertools.product(("interleaved", "sin_cos", "cos_sin"), ("exponent", "endpoint")):
        if row.kernel == "sinusoidal":
            frequencies = posenc.Frequencies(dim=DIM, rope_theta=ROPE_THETA, spacing=spacing)
        choices = {"layout": layout, "freq_spacing": spacing}
        table, exact = (_table_of(call, row, frequencies, modes, choices),
                        _exact_table(frequencies, row.kernel, choices))  # fmt: skip
        with contextlib.suppress(NotImplementedError):  # a library may offer one of them
            record.update(errors_by_position(table, exact, min(most, FARTHEST)))
            return


def _check_module(record: Dict[str, Any], row: Row) -> Any:
    """Checks a rotary module, and adds the errors of its table. Returns the result of posenc.check_module()."""
    module, config = row.fn()
    rope = posenc.Rope.from_config(config, row.layer_type)
    result = posenc.check_module(module, config, layer_type=row.layer_type)
    members = config if isinstance(config, dict) else config.to_dict()
    parameters = members.get("rope_parameters") or {}
    if parameters.get("rope_type") not in ("dynamic", "longrope"):  # whose frequencies depend on the length
        call = RotaryModule(module, row.layer_type or "")
        _add_table(record, row, call, rope.freqs, members["max_position_embeddings"], [])
    return result


def _check_function(record: Dict[str, Any], row: Row) -> Any:
    """Checks a function, and adds what its kernel has besides. Returns the result of posenc.check()."""
    result = posenc.check(row.fn, row.kernel, framework=row.framework, max_position=row.max_position)
    if row.kernel in ("rope_table", "sinusoidal"):
        frequencies = posenc.Frequencies(dim=DIM, rope_theta=ROPE_THETA)
        _add_table(record, row, row.fn, frequencies, row.max_position or FARTHEST, result.modes)
    if row.kernel in ("rope_half", "rope_interleaved"):
        record.update(spreads_nan=spreads_nan(row))
        if result:
            record.update(speed=time_rotation(row))
    return result


def text_of(error: Exception) -> str:
    """Returns an exception as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def measure(row: Row) -> Dict[str, Any]:
    """Returns the record of a row."""
    record: Dict[str, Any] = {"kernel": row.kernel, "title": row.title}
    try:
        result = (_check_module if row.is_module else _check_function)(record, row)
        worst = [{"range": name, "case": one["case"], **one["error"]} for name, one in result.best.worst_by_range()]
        record.update(ok=bool(result), modes=[mode for mode in result.modes if mode != "given"], worst=worst,
                      counts=result.best.counts(), mistake=result.mistake,
                      reason=result.failures[0].get("reason", "") if result.failures else "")  # fmt: skip
    except Exception as error:  # pylint: disable=broad-except  # a row that cannot be measured is a result
        record["error"] = text_of(error)
        traceback.print_exc()
    return record


def main(words: List[str]) -> None:
    """Prints the versions of an adapter's packages and its rows, then the records of rows."""
    path, first = Path(words[0]), int(words[1])
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # for whatever else prints

    def write(record: Dict[str, Any]) -> None:
        print(json.dumps({"adapter": path.stem, **record}), file=lines, flush=True)

    try:
        rows, versions = load(path)
    except Exception as error:  # pylint: disable=broad-except  # whatever an adapter does
        write({"skipped": text_of(error)})
        if not isinstance(error, ModuleNotFoundError):
            traceback.print_exc()
        return
    write({"versions": versions, "rows": [{"kernel": row.kernel, "title": row.title} for row in rows]})
    for row in rows[first:]:
        write(measure(row))


if __name__ == "__main__":
    main(sys.argv[1:])
