"""The arguments of functions that implement a kernel: client.py calls them as this table says.

A function for "learned_add", for example, is called as function(x, positions, table, x_scale=2.0) if it has a parameter
x_scale. `python3 -m posenc.checking.kernels` prints the table of docs/check.md.
"""

from typing import Dict, NamedTuple


class Kernel(NamedTuple):
    """Arguments and results of a function that implements a kernel. Shapes are texts, by the name of the array."""

    arrays: Dict[str, str]  # positional arguments in their order
    outputs: Dict[str, str]
    parameters: str = ""  # names of the values that decide the result; `shape` is that of the result
    named: Dict[str, str] = {}  # arrays that some problems lack, which are therefore passed by name
    features: str = ""  # parameters; a problem in which one is not zero takes a function that has it
    has_modes: bool = False  # its angles are formed in a numerics mode


# Texts and kernels that several lines of the table share.
_SCORES = "[batch, heads, queries, keys]"
_PAIRS = "[tokens, rotary_dim/2]"


def _scores(arrays: Dict[str, str], parameters: str, named: Dict[str, str] = {}) -> Kernel:
    """Returns a kernel whose result is added to scores."""
    return Kernel(arrays, {"out": _SCORES}, f"queries keys {parameters}".rstrip(), named)


def _add(kernel: Kernel) -> Kernel:
    """Returns the kernel that adds its result to scaled scores or activations."""
    shape = kernel.outputs["out"]
    parameters = " ".join(name for name in kernel.parameters.split() if name not in ("queries", "keys", "batch"))
    return kernel._replace(
        arrays={"x": shape, **kernel.arrays}, outputs={"out": "like x"}, parameters=f"{parameters} x_scale".lstrip()
    )


_ROPE = Kernel(
    {"x": "[tokens, heads, head_dim]", "cos": _PAIRS, "sin": _PAIRS}, {"out": "like x"}, "head_dim rotary_dim"
)
_SINUSOIDAL = Kernel({"positions": "[tokens]", "inv_freq": "[dim/2]"}, {"out": "[tokens, dim]"}, "dim layout scale",
                     has_modes=True)  # fmt: skip
_ALIBI = _scores({"slopes": "[heads] or [batch, heads]"}, "query_offset causal batch")
_T5 = _scores({"table": "[num_buckets, heads]"}, "query_offset num_buckets max_distance bidirectional")
_DISTANCE = _scores({"values": "[heads, distances]"}, "query_offset first")
_WINDOW = Kernel({"table": "[rows, heads]", "index": "[queries, keys]"}, {"out": _SCORES})
_RELATIVE = _scores(
    {"index": "[queries + keys - 1]"}, "query_offset scale",
    {"c2p": "[batch, heads, queries, columns]", "p2c": "[batch, heads, keys, columns]"},
)  # fmt: skip

KERNELS: Dict[str, Kernel] = {
    "rope_half": _ROPE,
    "rope_interleaved": _ROPE,
    "rope_qk_norm": _ROPE._replace(
        arrays={**_ROPE.arrays, "weight": "[heads, head_dim]"},
        parameters="head_dim rotary_dim rotary_offset epsilon weight_offset across_heads",
    ),
    "rope_table": Kernel(
        {"positions": "[tokens] or [axes, tokens]", "inv_freq": "[rotary_dim/2]"}, {"cos": _PAIRS, "sin": _PAIRS},
        "rotary_dim attention_factor rope_theta scaling factor seq_len", {"axis": "[rotary_dim/2]"},
        "xpos_scale_base", True,
    ),
    "sinusoidal": _SINUSOIDAL,
    "sinusoidal_add": _add(_SINUSOIDAL),
    "learned_add": Kernel(
        {"x": "[tokens, dim]", "positions": "[tokens]", "table": "[rows, dim]"}, {"out": "like x"}, "x_scale"
    ),
    "learned_grad": Kernel(
        {"x": "[tokens, dim]", "positions": "[tokens]"}, {"out": "[rows, dim]"}, "rows accumulate",
        {"init": "[rows, dim]"},
    ),
    "alibi": _ALIBI,
    "alibi_add": _add(_ALIBI),
    "t5_bias": _T5,
    "t5_bias_add": _add(_T5),
    "distance_bias": _DISTANCE,
    "distance_bias_add": _add(_DISTANCE),
    "window_bias": _WINDOW,
    "window_bias_add": _add(_WINDOW),
    "relative_bias": _RELATIVE,
    "relative_bias_add": _add(_RELATIVE),
    "relative_sum": Kernel(
        {"x": _SCORES, "index": "[queries + keys - 1]"}, {"out": "[batch, heads, queries, columns]"}, "shape"
    ),
}  # fmt: skip


def markdown() -> str:
    """Returns the table of kernels. Kernels that share a row differ in x alone, which the page explains."""

    def cell(shapes: Dict[str, str]) -> str:
        return "<br>".join(f"`{name}` {shape}" for name, shape in shapes.items())

    lines = ["| kernel | arrays, in their order | by name | results | parameters |", "|---|---|---|---|---|"]
    for name, kernel in KERNELS.items():
        if name == "rope_interleaved" or name[: -len("_add")] in KERNELS:  # in the row of the other
            continue
        other = "rope_interleaved" if name == "rope_half" else f"{name}_add"
        names = ", ".join(f"`{each}`" for each in (name, other) if each in KERNELS)
        parameters = ", ".join(f"`{each}`" for each in f"{kernel.parameters} {kernel.features}".split())
        cells = (names, *map(cell, (kernel.arrays, kernel.named, kernel.outputs)), parameters)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown())
