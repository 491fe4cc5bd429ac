"""Writes docstrings of the kernels for the extension (docs.h) and the types of the extension (_core.pyi).

generate.py KERNELS ARGUMENTS DOCS PYI HEADER...: the text comes from the comments of the headers.
"""

import json
import re
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple

LINE = 100
TOKENS = "the position of token 0, which the others follow (None: 0); a range; or an array, int32 or int64"
# Types, by kinds of parameters. Kinds that are required have no default.
TYPES = {
    "X": "A", "TENSOR": "Array", "TERM": "Optional[Array]", "FREQS": "Frequencies", "BUCKETS": "T5Buckets",
    "SLOPES": "Array", "INDEX": "Array", "POSITIONS": "Positions", "SIZE": "Optional[int]", "BOOL": "bool",
    "I64": "int", "F32": "float", "F64": "float", "LAYOUT": "str", "X_SCALE": "float", "OUT": "Optional[A]",
    "BACKEND": "Optional[str]",
}  # fmt: skip
REQUIRED = ("X", "TENSOR", "FREQS", "BUCKETS", "SLOPES", "INDEX")
KEYWORDS = ("SIZE", "BOOL", "I64", "F32", "F64", "LAYOUT", "X_SCALE", "OUT", "BACKEND")
STUB_BEGINS = '''"""Types of the extension."""

from typing import Any, List, Optional, Protocol, Sequence, Tuple, TypeVar, Union

Array = Any  # the buffer protocol or DLPack
Positions = Union[None, int, range, Any]
A = TypeVar("A")
__version__: str

class T5Buckets(Protocol):
    @property
    def num_buckets(self) -> int: ...
    @property
    def bidirectional(self) -> bool: ...
    @property
    def thresholds(self) -> Array: ...

class Frequencies:
    def __init__(
        self, dim: int, *, rope_theta: float = ..., scaling: str = ..., factor: float = ...,
        original_max_position_embeddings: float = ..., low_freq_factor: float = ..., high_freq_factor: float = ...,
        beta_fast: float = ..., beta_slow: float = ..., truncate: bool = ..., attention_factor: float = ...,
        mscale: float = ..., mscale_all_dim: float = ..., max_position_embeddings: float = ..., seq_len: int = ...,
        partial_rotary_factor: float = ..., short_factor: Optional[Sequence[float]] = ...,
        long_factor: Optional[Sequence[float]] = ..., mrope_section: Optional[Sequence[int]] = ...,
        mrope_layout: str = ..., xpos_scale_base: float = ..., xpos_centre: float = ..., xpos_inverse: bool = ...,
        values: Optional[Sequence[float]] = ..., numerics: str = ..., spacing: str = ...
    ) -> None: ...
    @property
    def inv_freq(self) -> Any: ...
    @property
    def dim(self) -> int: ...
    @property
    def attention_factor(self) -> float: ...
    @property
    def n_axes(self) -> int: ...
    @property
    def axis(self) -> Optional[Tuple[int, ...]]: ...

class Rotation:
    def __init__(self, dim: int, *, pairing: str = ..., **parameters: Any) -> None: ...
    def apply(self, q: Array, k: Optional[Array], positions: Positions = ..., /) -> None: ...
    def reserve(self, n: int, /) -> None: ...
    @property
    def freqs(self) -> Frequencies: ...

def backends() -> List[str]: ...
def select(text: Optional[str] = ..., /) -> None: ...
def __getattr__(name: str) -> Any: ...  # builders: see builders.py
'''


class Kernel(NamedTuple):
    """A line of posenc_kernels.def."""

    name: str
    signature: str
    x: str


class Parameter(NamedTuple):
    """A line of arguments.def."""

    kind: str
    name: str


def read_kernels(text: str) -> List[Kernel]:
    """Returns the kernels."""
    lines = re.findall(r'^POSENC_KERNEL\(\w+, (\w+), (\w+), ".*?",\s+\w+, (\w+),', text, re.M)
    return [Kernel(*line) for line in lines]


def read_parameters(text: str, kernel: Kernel) -> List[Parameter]:
    """Returns the parameters of a kernel."""
    lines = re.findall(r"^POSENC_(PARAMETER|SIZE)\((\w+), (?:(\w+), )?(\w+)\)", text, re.M)
    own = [Parameter(kind or "SIZE", name) for _, signature, kind, name in lines if signature == kernel.signature]
    left_out = {"NONE": ("X", "X_SCALE"), "APART": (), "IN_PLACE": ("SIZE",)}[kernel.x]
    return [one for one in own if one.kind not in left_out] + [Parameter("BACKEND", "backend")]


def words(comment: str) -> str:
    """Returns the text of a comment with the names that Python has."""
    text = re.sub(r"^\s*\*? ?", "", comment, flags=re.M).strip()
    text = re.sub(r"POSENC_(?:LAYOUT|MROPE_LAYOUT|SPACING|ERR)_(\w+)", lambda m: f"'{m[1].lower()}'", text)
    text = re.sub(r"enum posenc_(\w+)", r"\1", text)
    return re.sub(r"\bposenc_(\w+\(\))", r"\1", text)


def members(headers: str, signature: str) -> Dict[str, str]:
    """Returns the comment of each member of the struct of arguments."""
    body = re.search(rf"^struct posenc_{signature}_args {{\n(.*?)^}};", headers, re.M | re.S)
    assert body, signature
    found = {}
    pattern = r"(?:/\*\*\s(?P<before>(?:(?!\*/).)*)\*/\s*)?(?P<names>[^;/]+);(?:\s*/\*\*<(?P<after>(?:(?!\*/).)*)\*/)?"
    for match in re.finditer(pattern, body[1], re.S):
        comment = " ".join(words(match["before"] or match["after"] or "").split())
        for name in re.findall(r"(\w+)(?:,|$)", match["names"]):
            found[name] = comment
    return found


def comment_of(headers: str, kernel: str) -> str:
    """Returns the comment of a function, which it may share with the one after it."""
    declared = re.search(rf"\bposenc_{kernel}\(\s*const struct posenc_backend", headers)
    assert declared, kernel
    before = headers[: declared.start()]
    return before[before.rindex("/**") + 3 :].partition("*/")[0]


def statuses(headers: str, kernel: str) -> List[str]:
    """Returns the words of the statuses that a call returns."""
    returned = comment_of(headers, kernel).partition("@return")[2].partition("Source:")[0]
    found = [(a or b).lower() for a, b in re.findall(r"POSENC_ERR_(\w+)|\b_([A-Z_]+)\b", returned)]
    for other in re.findall(r"posenc_(\w+)\(\)", returned):
        found += statuses(headers, other)
    return list(dict.fromkeys(found))


def default_of(parameter: Parameter, comment: str) -> str:
    """Returns the default in a signature."""
    if parameter.kind in ("BOOL", "I64"):
        return {"BOOL": "False", "I64": "0"}[parameter.kind]
    if parameter.kind in ("F32", "F64", "X_SCALE"):
        stated = re.search(r"\(default: ([^)]*)\)", comment)
        return repr(float(stated[1])) if stated else "1.0"
    return "'interleaved'" if parameter.kind == "LAYOUT" else "None"


def describe(kernel: Kernel, parameter: Parameter, comments: Dict[str, str]) -> str:
    """Returns the line about a parameter."""
    takes_freqs = "freqs" in comments
    fixed = {
        "FREQS": "posenc.Frequencies", "BUCKETS": "of posenc.t5_buckets()",
        "SIZE": "size of the result, if out is not given", "LAYOUT": "'interleaved', 'sin_cos' or 'cos_sin'",
        "BACKEND": "a name of posenc.backends(); None: the selected one",
        "POSITIONS": TOKENS + (", or float32; [tokens], [batch, tokens], or [axes, ...]" if takes_freqs
                               else "; [tokens] or [batch, tokens]"),
    }  # fmt: skip
    if parameter.kind in fixed:
        return fixed[parameter.kind]
    if parameter.kind == "X" and kernel.x == "IN_PLACE":
        return comments["out"]
    if parameter.kind == "OUT":
        like = "like x; may be x itself" if kernel.x == "IN_PLACE" else comments[parameter.name]
        return f"{like}; None: a new array"
    return comments[parameter.name]


def wrap(name: str, text: str, width: int) -> List[str]:
    """Returns lines that begin with a name."""
    lines, line = [], f"    {name:<{width}}"
    for word in text.split():
        if len(line) + len(word) >= LINE:
            lines.append(line.rstrip())
            line = " " * (4 + width)
        line += " " + word
    return [*lines, line.rstrip()]


def signature_of(parameters: List[Parameter], comments: Dict[str, str], typed: bool) -> str:
    """Returns the parameters between parentheses, with types for a stub."""
    parts: List[str] = []
    for one in parameters:
        if one.kind in KEYWORDS and "*" not in parts:
            parts.append("*")
        kind = f": {TYPES[one.kind]}" if typed else ""
        default = "" if one.kind in REQUIRED else default_of(one, comments.get(one.name, ""))
        parts.append(one.name + kind + (f" = {default}" if default and typed else f"={default}" if default else ""))
    return ", ".join(parts)


def docstring(kernel: Kernel, parameters: List[Parameter], headers: str) -> str:
    """Returns the docstring of a kernel, with its signature as CPython reads it."""
    comments = members(headers, kernel.signature)
    text = comment_of(headers, kernel.name)
    body, _, rest = words(text.partition("@brief")[2]).partition("@param")
    width = max(len(one.name) for one in parameters)
    lines = [f"{kernel.name}({signature_of(parameters, comments, False)})", "--", "", body.strip(), ""]
    for one in parameters:
        lines += wrap(one.name, describe(kernel, one, comments), width)
    lines += ["", "Raises posenc.Error: status " + ", ".join(statuses(headers, kernel.name)) + "."]
    _, source, where = rest.partition("Source:")
    return "\n".join([*lines, source + where.rstrip()] if source else lines)


def main(kernels: str, arguments: str, docs: str, stub: str, *headers: str) -> None:
    """Writes both files."""
    header = "".join(Path(one).read_text(encoding="utf-8") for one in headers)
    table = Path(arguments).read_text(encoding="utf-8")
    definitions, functions = [], []
    for kernel in read_kernels(Path(kernels).read_text(encoding="utf-8")):
        parameters = read_parameters(table, kernel)
        text = docstring(kernel, parameters, header)
        definitions.append(f"#define DOC_{kernel.name} {json.dumps(text)}\n")
        result = "A" if kernel.x == "IN_PLACE" else "Tuple[Any, Any]" if kernel.signature == "rope_table" else "Any"
        typed = signature_of(parameters, members(header, kernel.signature), True)
        typed = typed if result == "A" else re.sub(r"\bA\b", "Any", typed)
        functions.append(f"def {kernel.name}({typed}) -> {result}: ...\n")
    Path(docs).write_text("".join(definitions), encoding="utf-8")
    Path(stub).write_text(STUB_BEGINS + "".join(functions), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
