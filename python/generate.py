"""Writes the parameters and docstrings of the kernels for the extension (functions.h), and its types (_core.pyi).

    generate.py posenc_kernels.def functions.h _core.pyi posenc.h relative.h

The parameters of a kernel are the members of struct posenc_<signature>_args in the headers, and their text comes from
the comments. "bool causal" of struct posenc_alibi_args becomes this line of functions.h, and "causal: bool = False" in
_core.pyi:

    { POSENC_KERNEL_ALIBI, KIND_BOOL, "causal", offsetof(struct posenc_alibi_args, causal) },
"""

import json
import re
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

LINE = 100
TOKENS = "the position of token 0, which the others follow (None: 0); a range; or an array, int32 or int64"


class Kind(NamedTuple):
    """A kind of parameters: enum kind in kernels.c."""

    python_type: str
    default: Optional[str]  # None: required; "": that of the comment in C
    is_keyword: bool = False


KINDS = {
    "X": Kind("A", None), "TENSOR": Kind("Array", None), "TERM": Kind("Optional[Array]", "None"),
    "FREQS": Kind("Frequencies", None), "BUCKETS": Kind("T5Buckets", None), "SLOPES": Kind("Array", None),
    "INDEX": Kind("Array", None), "POSITIONS": Kind("Positions", "None"), "SIZE": Kind("Optional[int]", "None", True),
    "BOOL": Kind("bool", "False", True), "I64": Kind("int", "0", True), "F32": Kind("float", "", True),
    "F64": Kind("float", "", True), "LAYOUT": Kind("str", "'interleaved'", True), "X_SCALE": Kind("float", "", True),
    "OUT": Kind("Optional[A]", "None", True), "BACKEND": Kind("Optional[str]", "None", True),
}  # fmt: skip
# Kinds by types of members. The names x and x_scale have kinds of their own; a tensor that may be left zero is a TERM.
KINDS_OF_TYPES = {
    "const struct posenc_freqs *": "FREQS", "struct posenc_t5_buckets": "BUCKETS", "const float *": "SLOPES",
    "const int32_t *": "INDEX", "struct posenc_const_tensor": "TENSOR", "struct posenc_positions": "POSITIONS",
    "bool": "BOOL", "int64_t": "I64", "float": "F32", "double": "F64", "enum posenc_layout": "LAYOUT",
    "struct posenc_tensor": "OUT",
}  # fmt: skip
LEFT_OUT = ("size", "slopes_stride_batch")  # members that are no parameters
# Sizes of the result by signatures, which are needed if `out` is not given.
SIZES = {"learned_grad": ("rows",), "alibi": ("queries", "keys"), "t5": ("queries", "keys"),
         "distance": ("queries", "keys"), "relative_sum": ("columns",)}  # fmt: skip
STUB_BEGINS = '''"""Types of the extension."""

from typing import Any, List, Optional, Tuple, TypeVar, Union

from .builders import T5Buckets
from .rope import Frequencies

Array = Any  # the buffer protocol or DLPack
Positions = Union[None, int, range, Any]
A = TypeVar("A")
__version__: str

def backends() -> List[str]: ...
def select(text: Optional[str] = ..., /) -> None: ...
def __getattr__(name: str) -> Any: ...  # see builders.py and rope.py
'''


class Kernel(NamedTuple):
    """A line of posenc_kernels.def."""

    id: str  # ROPE_HALF
    name: str  # rope_half
    signature: str  # rope
    x: str  # NONE; IN_PLACE if out may be x; APART if it may not


class Parameter(NamedTuple):
    """A parameter in Python."""

    kind: str  # key of KINDS
    name: str
    comment: str = ""


def read_kernels(text: str) -> List[Kernel]:
    """Returns the kernels of posenc_kernels.def."""
    lines = re.findall(r'^POSENC_KERNEL\((\w+), (\w+), (\w+), ".*?",\s+\w+, (\w+),', text, re.M)
    return [Kernel(*line) for line in lines]


def words(comment: str) -> str:
    """Returns the text of a comment with the names that Python has: 'cos_sin' for POSENC_LAYOUT_COS_SIN."""
    text = re.sub(r"^\s*\*? ?", "", comment, flags=re.M).strip()
    text = re.sub(r"POSENC_(?:LAYOUT|MROPE_LAYOUT|SPACING|ERR)_(\w+)", lambda m: f"'{m[1].lower()}'", text)
    text = re.sub(r"enum posenc_(\w+)", r"\1", text)
    return re.sub(r"\bposenc_(\w+\(\))", r"\1", text)


def members(headers: str, signature: str) -> List[Parameter]:
    """Returns the members of the struct of arguments as parameters."""
    body = re.search(rf"^struct posenc_{signature}_args {{\n(.*?)^}};", headers, re.M | re.S)
    assert body, signature
    found = []
    # "/** before */ type names; /**< after */"
    pattern = (r"(?:/\*\*\s(?P<before>(?:(?!\*/).)*)\*/\s*)?(?P<type>[\w ]+[ *])(?P<names>\w+(?:,\s*\w+)*);"
               r"(?:\s*/\*\*<(?P<after>(?:(?!\*/).)*)\*/)?")  # fmt: skip
    for match in re.finditer(pattern, body[1], re.S):
        comment = " ".join(words(match["before"] or match["after"] or "").split())
        for name in re.findall(r"\w+", match["names"]):
            if name not in LEFT_OUT:
                kind = name.upper() if name in ("x", "x_scale") else KINDS_OF_TYPES[match["type"].strip()]
                is_optional = kind == "TENSOR" and "left zero" in comment
                found.append(Parameter("TERM" if is_optional else kind, name, comment))
    return found


def parameters_of(headers: str, kernel: Kernel) -> List[Parameter]:
    """Returns the parameters of a kernel in their order: x, other inputs, positions, and keywords."""
    sizes = [Parameter("SIZE", name) for name in SIZES.get(kernel.signature, ())]
    left_out = {"NONE": ("X", "X_SCALE"), "APART": (), "IN_PLACE": ("SIZE",)}[kernel.x]
    order = {"X": 0, "POSITIONS": 2, "SIZE": 3, "OUT": 5}
    found = [one for one in sizes + members(headers, kernel.signature) if one.kind not in left_out]
    found.sort(key=lambda one: order.get(one.kind, 4 if KINDS[one.kind].is_keyword else 1))
    return [*found, Parameter("BACKEND", "backend")]


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


def default_of(parameter: Parameter) -> Optional[str]:
    """Returns the default in a signature; None for a required parameter."""
    default = KINDS[parameter.kind].default
    if default != "":
        return default
    stated = re.search(r"\(default: ([^)]*)\)", parameter.comment)
    return repr(float(stated[1])) if stated else "1.0"


def describe(kernel: Kernel, parameter: Parameter, comments: Dict[str, str]) -> str:
    """Returns the text about a parameter. `comments` are those of the members, by name."""
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
    """Returns a name and its text, which begins after `width` characters, as lines of a docstring."""
    lines, line = [], f"    {name:<{width}}"
    for word in text.split():
        if len(line) + len(word) >= LINE:
            lines.append(line.rstrip())
            line = " " * (4 + width)
        line += " " + word
    return [*lines, line.rstrip()]


def signature_of(parameters: List[Parameter], typed: bool) -> str:
    """Returns the parameters between parentheses, with types for a stub."""
    parts: List[str] = []
    for one in parameters:
        if KINDS[one.kind].is_keyword and "*" not in parts:
            parts.append("*")
        default = default_of(one)
        text = f"{one.name}: {KINDS[one.kind].python_type}" if typed else one.name
        if default is not None:
            text += f" = {default}" if typed else f"={default}"
        parts.append(text)
    return ", ".join(parts)


def docstring(kernel: Kernel, parameters: List[Parameter], headers: str) -> str:
    """Returns the docstring of a kernel, with its signature as CPython reads it."""
    comments = {one.name: one.comment for one in members(headers, kernel.signature)}
    text = comment_of(headers, kernel.name)
    body, _, rest = words(text.partition("@brief")[2]).partition("@param")
    width = max(len(one.name) for one in parameters)
    lines = [f"{kernel.name}({signature_of(parameters, False)})", "--", "", body.strip(), ""]
    for one in parameters:
        lines += wrap(one.name, describe(kernel, one, comments), width)
    lines += ["", "Raises posenc.Error: status " + ", ".join(statuses(headers, kernel.name)) + "."]
    _, source, where = rest.partition("Source:")
    return "\n".join([*lines, source + where.rstrip()] if source else lines)


def entry(kernel: Kernel, parameter: Parameter) -> str:
    """Returns the line of a parameter in functions.h."""
    is_member = parameter.kind not in ("SIZE", "BACKEND")
    offset = f"offsetof(struct posenc_{kernel.signature}_args, {parameter.name})" if is_member else "0"
    return f'    {{ POSENC_KERNEL_{kernel.id}, KIND_{parameter.kind}, "{parameter.name}", {offset} }},\n'


def typed_function(kernel: Kernel, parameters: List[Parameter]) -> str:
    """Returns the line of a kernel in _core.pyi. The result has the type A of x, if out may be x."""
    typed = signature_of(parameters, True)
    if kernel.x == "IN_PLACE":
        return f"def {kernel.name}({typed}) -> A: ...\n"
    typed = re.sub(r"\bA\b", "Any", typed)
    result = "Tuple[Any, Any]" if kernel.signature == "rope_table" else "Any"
    return f"def {kernel.name}({typed}) -> {result}: ...\n"


def main(kernels: str, functions: str, stub: str, *headers: str) -> None:
    """Writes the files `functions` and `stub`."""
    text = "".join(Path(header).read_text(encoding="utf-8") for header in headers)
    docs, entries, types = [], [], []
    for kernel in read_kernels(Path(kernels).read_text(encoding="utf-8")):
        parameters = parameters_of(text, kernel)
        docs.append(f"#define DOC_{kernel.name} {json.dumps(docstring(kernel, parameters, text))}\n")
        entries += [entry(kernel, parameter) for parameter in parameters]
        types.append(typed_function(kernel, parameters))
    table = ["static const struct parameter parameters[] = {\n", *entries, "};\n"]
    Path(functions).write_text("".join(docs + table), encoding="utf-8")
    Path(stub).write_text(STUB_BEGINS + "".join(types), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
