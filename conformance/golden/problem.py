"""Reads problems, their inputs, and the results of the oracle and the library from the shared object of problems.c.

For example, read_problem("rope_half head_dim=4 rotary_dim=4 heads=1 tokens=2 rows=2") has the attribute head_dim and
the inputs "x", "cos" and "sin". The fields of a problem that determine its frequencies are a spec (FreqsSpec).
"""

import ctypes
import dataclasses
import itertools
import json
import sys
from array import array
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple


class Failure(Exception):
    """A problem that cannot be made, or a file that cannot be read."""


class Disagreement(Exception):
    """A value that differs from MPFR."""


class GoldenCase(NamedTuple):
    """A golden case."""

    group: str
    id: str
    flags: List[str]
    hashes: List[str]  # SHA-256 of the committed tensors of its outputs, if read_cases() read them
    line: str  # the problem in the notation, with its name and seed

    @property
    def name(self) -> str:
        """The last part of the id."""
        return self.id.split("/")[3]

    @property
    def kernel(self) -> str:
        """The first part of the id."""
        return self.id.split("/")[0]

    @property
    def dtype(self) -> str:
        """The second part of the id: the dtype of inputs and outputs."""
        return self.id.split("/")[1]

    @property
    def id_without_dtype(self) -> str:
        """The id without the dtype, which cases share that differ in dtype alone."""
        return self.id.replace(f"/{self.dtype}/", "/", 1)


@dataclass
class Output:
    """An output tensor of a call, with its values by the oracle and, if requested, by the library."""

    name: str
    rows: int
    width: int
    oracle: "array[float]"
    library: "array[float]"


class Problem:
    """A problem with its inputs. Fields are attributes by their names in the notation."""

    kernel: str
    outputs: List[Output]
    inputs: Dict[str, "array[float]"]  # by the name of the tensor
    times: List["array[float]"]  # by axis: the position of each token, batch by batch

    def __init__(self, answer: Dict[str, Any]) -> None:
        self.kernel = answer["kernel"]
        self.fields: Dict[str, Any] = answer["fields"]
        self.times = [floats("d", answer[f"times{axis}"]) for axis in range(3) if f"times{axis}" in answer]
        self.outputs = [
            Output(o["name"], o["rows"], o["width"], floats("d", o["oracle"]), floats("f", o.get("library", "")))
            for o in answer["outputs"]
        ]
        self.inputs = {
            name: floats("f", digits)
            for name, digits in answer.items()
            if isinstance(digits, str) and name != "kernel" and not name.startswith("times")
        }

    def __getattr__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(f"{self.kernel} has no {name}") from None


def floats(code: str, digits: str) -> "array[float]":
    """Returns numbers from the hexadecimal digits of their bytes."""
    return array(code, bytes.fromhex(digits))


def little_endian(values: "array[float]") -> bytes:
    """Returns the bytes of numbers in little-endian order, as in files."""
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


# ---- The shared object ----


@lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """Returns the shared object that the command line names."""
    functions = ctypes.CDLL(sys.argv[2])
    functions.posenc_kernel_name.restype = ctypes.c_char_p
    return functions


def call_text(function: str, *arguments: Any) -> str:
    """Returns the text that a function of problems.c returns. Raises Failure for an error."""
    c_function = library()[function]
    c_function.restype = ctypes.c_char_p
    text = str(c_function(*(a.encode() if isinstance(a, str) else a for a in arguments)).decode())
    if text.startswith("error: "):
        raise Failure(f"{arguments[0]}: {text[7:]}")
    return text


def read_cases(root: Path, tensors: bool = False) -> List[GoldenCase]:
    """Returns the golden cases of a folder, group by group; with `tensors`, also the hashes of their tensors."""
    words = [line.split("\t") for line in call_text("golden_cases", str(root), tensors).splitlines()]
    return [GoldenCase(group, name, flags.split(), hashes.split(), line) for group, name, flags, hashes, line in words]


def read_lines(path: Path) -> List[str]:
    """Returns the problems of a file of the notation."""
    return call_text("golden_lines", str(path)).splitlines()


def random_line(kernel: str, seed: int) -> str:
    """Returns a random problem of a kernel."""
    return call_text("golden_random_line", kernel, ctypes.c_uint64(seed)).strip()


def read_problem(line: str, with_library: bool = False) -> Problem:
    """Returns a problem with the outputs of the oracle and, if `with_library`, of the library's scalar backend."""
    return Problem(json.loads(call_text("golden_problem", line, with_library)))


def read_freqs(line: str) -> Dict[str, Any]:
    """Returns the frequencies of a problem: {"oracle": {...}, "library": {...}}."""
    found: Dict[str, Any] = json.loads(call_text("golden_freqs", line))
    return found


def kernel_names() -> List[str]:
    """Returns the names of all kernels."""
    names = map(library().posenc_kernel_name, itertools.count())
    return [name.decode() for name in itertools.takewhile(lambda name: name is not None, names)]


# ---- Fields that determine frequencies ----
#
# Before scaling, omega_i = theta^(-2i/d), or theta^(-i/(n-1)) with n = d/2 for the spacing `endpoint`. If positions
# have several axes (2409.12191), each pair rotates with one of them. mrope_layout is one of:
#
#     qwen2_vl         the pairs of an axis follow each other: a section
#     qwen3_vl         pair k of axis a is pair 3k + a of all; the rest rotates with axis 0
#     qwen2_vl_vision  as qwen2_vl, but a section of n pairs has omega_j = theta^(-2j/(2n))
#     pixtral          as qwen2_vl, but axes take turns: pair j of an axis has the frequency of that turn
#     kimi             as qwen2_vl_vision, but axes take turns: pair j of an axis is at the place of that turn
#
# Axes take turns as long as they have pairs.


@dataclass(frozen=True)
class FreqsSpec:
    """The fields of a problem that determine its frequencies, by their names in the notation."""

    dim: int = 0  # rotary_dim, if the kernel has that field
    numerics: str = "exact"
    freq_spacing: str = "exponent"
    scaling: str = "none"
    rope_theta: float = 10000.0
    factor: float = 1.0
    original_max_position_embeddings: float = 0.0
    low_freq_factor: float = 0.0
    high_freq_factor: float = 0.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float = 0.0
    mscale: float = 0.0
    mscale_all_dim: float = 0.0
    max_position_embeddings: float = 0.0
    seq_len: int = 0
    partial_rotary_factor: float = 1.0
    mrope_section: Tuple[int, ...] = ()
    mrope_layout: str = "qwen2_vl"
    xpos_scale_base: float = 0.0
    xpos_centre: float = 0.0
    xpos_inverse: bool = False
    short_factor: Tuple[float, ...] = ()
    long_factor: Tuple[float, ...] = ()
    inv_freq: Tuple[float, ...] = ()

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> "FreqsSpec":
        """Returns the spec of the fields of a problem."""
        values = {"dim": fields["rotary_dim" if "rotary_dim" in fields else "dim"]}
        for field in dataclasses.fields(cls):
            if field.name != "dim" and field.name in fields:
                value = fields[field.name]
                values[field.name] = tuple(value) if isinstance(value, list) else value
        return cls(**values)

    @property
    def n_pairs(self) -> int:
        """The number of frequencies."""
        return (self.dim + 1) // 2

    def notation(self) -> str:
        """Returns the fields that differ from their defaults, in the notation."""
        words = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            if isinstance(value, tuple):
                value = ",".join(map(repr, value))
            name = "rotary_dim" if field.name == "dim" and self.dim % 2 == 0 else field.name
            words.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}")
        return " ".join(words)


class Pair(NamedTuple):
    """The axis with which a pair rotates, and its exponent."""

    axis: int
    numerator: int  # omega = theta^(-numerator / denominator)
    denominator: int


@lru_cache(maxsize=None)
def pairs_of(spec: FreqsSpec) -> List[Pair]:
    """Returns the pairs of a spec."""
    layout, dim = spec.mrope_layout if spec.mrope_section else "", spec.dim
    sizes = (*spec.mrope_section, 0, 0)[:3] if layout else (spec.n_pairs,)
    # Pair j of an axis, in both orders: one axis after the other, or axes taking turns.
    in_sections = [(axis, j) for axis, size in enumerate(sizes) for j in range(size)]
    by_turns = sorted(in_sections, key=lambda place: (place[1], place[0]))
    pairs = []
    for i, (axis, j) in enumerate(by_turns if layout == "kimi" else in_sections):
        exponent = 2 * i, dim
        if layout == "qwen2_vl_vision":
            exponent = 2 * j, 2 * sizes[axis]
        elif spec.freq_spacing == "endpoint":
            exponent = (i, dim // 2 - 1) if dim // 2 > 1 else (0, 1)
        elif layout == "pixtral":
            exponent = 2 * by_turns.index((axis, j)), dim
        elif layout == "kimi":
            exponent = 2 * j, 2 * sizes[axis]
        elif layout == "qwen3_vl":
            axis = i % 3 if i // 3 < sizes[i % 3] else 0
        pairs.append(Pair(axis, *exponent))
    return pairs


def section(spec: FreqsSpec, i: int) -> Tuple[int, int]:
    """Returns the first pair of the section of pair i, and the number of its pairs. One axis has one section."""
    first = n = 0
    for n in spec.mrope_section or (spec.dim // 2,):
        if i < first + n:
            return first, n
        first += n
    return first - n, n
