"""Reads problems, their inputs, and the results of the oracle and the library from the shared object of problems.c."""

import ctypes
import itertools
import json
import sys
from array import array
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, NamedTuple


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
