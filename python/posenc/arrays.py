"""posenc.Error, and the arrays of calls without `out`: allocate("rope_half", {"x": x, ...}) returns an array like x.

A result belongs to the framework of the arguments. The extension calls Error, bits_of_bfloat16() and allocate().
"""

from typing import TYPE_CHECKING, Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

if TYPE_CHECKING:
    import numpy


class Error(ValueError):
    """A call that the library rejects. Every output is unchanged.

    status  word of enum posenc_status: "argument", "shape", "stride", "dtype", "odd", "rotary_dim", "theta",
            "parameter", "position", "overlap", "overflow", "unknown", "unsupported", "not_provided"
    what    name of the value that is wrong
    value   the value that was passed; NaN if it is no number
    """

    def __init__(self, text: str, status: str = "argument", what: str = "", value: float = float("nan")) -> None:
        super().__init__(text)
        self.status, self.what, self.value = status, what, value


def framework_of(array: Any) -> str:
    """Returns "torch", "jax" or "numpy", which stands for all others."""
    module = type(array).__module__.partition(".")[0]
    return "torch" if module == "torch" else "jax" if module in ("jax", "jaxlib") else "numpy"


def as_numpy(buffer: Any) -> "numpy.ndarray[Any, Any]":
    """Returns a view of a buffer, or of an array that has DLPack alone."""
    import numpy

    alone = hasattr(buffer, "__dlpack__") and not hasattr(buffer, "__array__")
    return numpy.from_dlpack(buffer) if alone else numpy.asarray(buffer)


def bits_of_bfloat16(array: Any) -> Any:
    """Returns the 16-bit integers of an array of bfloat16 (ml_dtypes), or None for other arrays."""
    return array.view("uint16") if str(getattr(array, "dtype", "")) == "bfloat16" and hasattr(array, "view") else None


def empty_numpy(shape: Sequence[int], dtype: str) -> "numpy.ndarray[Any, Any]":
    """Returns an uninitialised NumPy array. A negative size counts as 0, for the library to reject."""
    import numpy

    return numpy.empty([max(size, 0) for size in shape], dtype)


# ---- Outputs of kernels ----

Arguments = Dict[str, Any]  # by parameter, without those that are None
Converter = Optional[Callable[..., Any]]  # of the outputs, after the call; None: they are the result


def _tokens(arguments: Arguments) -> Tuple[int, ...]:
    """Returns [tokens] or [batch, tokens] of an array or a range of positions."""
    positions = arguments.get("positions")
    if isinstance(positions, range):
        return (len(positions),)
    shape = tuple(getattr(positions, "shape", ()))
    if not shape:
        raise TypeError("positions: without an array for the result, expected a range or an array")
    has_axes = arguments["freqs"].n_axes > 1 and len(shape) > 1
    return shape[1:] if has_axes else shape


def _relative_scores(arguments: Arguments) -> Tuple[int, ...]:
    """Returns [batch, heads, queries, keys] of a term, and of an index with queries + keys - 1 elements."""
    term, n = arguments.get("c2p", arguments.get("p2c")), len(arguments["index"])
    if term is None:
        raise TypeError("relative_bias() lacks c2p and p2c. Pass at least one.")
    rows = int(term.shape[-2])  # queries of c2p, keys of p2c
    queries, keys = (rows, n + 1 - rows) if "c2p" in arguments else (n + 1 - rows, rows)
    return (*term.shape[:-2], queries, keys)


class Result(NamedTuple):
    """Result of a kernel: its shape, and the arguments on which shape, framework and dtype depend."""

    shape: Callable[..., Tuple[int, ...]]  # of the arguments and the values of `sizes`
    like: Tuple[str, ...]  # the first of these arguments that is given determines the framework
    sizes: Tuple[str, ...] = ()  # arguments that are integers
    keeps_dtype: bool = False  # the dtype is that of `like`, not float32
    n_outputs: int = 1


# Results that do not have the shape and the dtype of x.
RESULTS = {
    "sinusoidal": Result(lambda given: (*_tokens(given), given["freqs"].dim), ("positions",)),
    "rope_table": Result(lambda given: (*_tokens(given), given["freqs"].dim // 2), ("positions",), n_outputs=2),
    "learned_grad": Result(lambda given, rows: (rows, given["x"].shape[-1]), ("x",), ("rows",)),
    "alibi": Result(lambda given, *sizes: (*given["slopes"].shape, *sizes), ("slopes",), ("queries", "keys")),
    "t5_bias": Result(lambda given, *sizes: (given["table"].shape[1], *sizes), ("table",), ("queries", "keys")),
    "distance_bias": Result(lambda given, *sizes: (given["values"].shape[0], *sizes), ("values",), ("queries", "keys")),
    "window_bias": Result(lambda given: (given["table"].shape[1], *given["index"].shape), ("table",)),
    "relative_bias": Result(_relative_scores, ("c2p", "p2c"), keeps_dtype=True),
    "relative_sum": Result(lambda given, columns: (*given["x"].shape[:-1], columns), ("x",), ("columns",), True),
}


def _empty(framework: str, shape: Sequence[int], dtype_of: Any) -> Any:
    """Returns an uninitialised array with the dtype of `dtype_of`, or float32 if that is None."""
    if framework == "torch":
        import torch

        return torch.empty(tuple(shape), dtype=torch.float32 if dtype_of is None else dtype_of.dtype)
    return empty_numpy(shape, "float32" if dtype_of is None else as_numpy(dtype_of).dtype)


def _empty_like(framework: str, array: Any) -> Any:
    if framework == "torch":
        import torch

        return torch.empty_like(array)
    import numpy

    return numpy.empty_like(as_numpy(array))


def _to_jax(first: Any, second: Any = None) -> Any:
    import jax.numpy

    return jax.numpy.asarray(first) if second is None else (jax.numpy.asarray(first), jax.numpy.asarray(second))


def _allocate_result(kernel: str, arguments: Arguments) -> Tuple[str, Tuple[Any, ...]]:
    """Returns the framework and the outputs of a kernel of RESULTS."""
    result = RESULTS[kernel]
    like = next((arguments[name] for name in result.like if name in arguments), None)
    for name in result.sizes:
        if name not in arguments:
            raise TypeError(f"{kernel}() lacks the argument '{name}'. Pass it, or an array for the result.")
    try:
        shape = result.shape(arguments, *(int(arguments[name]) for name in result.sizes))
    except IndexError:
        raise Error(f"{kernel}: an array has too few dimensions", "shape", result.like[0]) from None
    framework, dtype_of = framework_of(like), like if result.keeps_dtype else None
    return framework, tuple(_empty(framework, shape, dtype_of) for _ in range(result.n_outputs))


def allocate(kernel: str, arguments: Arguments) -> Tuple[Tuple[Any, ...], Converter]:
    """Returns the outputs of a kernel, for the call to write, and their converter.

    JAX has no writable arrays, so calls write those of NumPy.
    """
    if kernel in RESULTS:
        framework, outputs = _allocate_result(kernel, arguments)
    else:
        framework = framework_of(arguments["x"])
        outputs = (_empty_like(framework, arguments["x"]),)
    return outputs, _to_jax if framework == "jax" else None


def copy_of(array: Any) -> Tuple[Any, Converter]:
    """Returns a copy that can be written, and its converter."""
    framework = framework_of(array)
    if framework == "torch":
        return array.clone(), None  # one that requires gradients is rejected, as by kernels
    return as_numpy(array).copy(), _to_jax if framework == "jax" else None
