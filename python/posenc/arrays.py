"""Errors, and the arrays that the extension allocates: each result belongs to the framework of the arguments."""

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


def empty(shape: Sequence[int], dtype: str) -> "numpy.ndarray[Any, Any]":
    """Returns an uninitialised NumPy array. A negative size counts as 0, for the library to reject."""
    import numpy

    return numpy.empty([max(size, 0) for size in shape], dtype)


# ---- outputs ----

Given = Dict[str, Any]
Finish = Optional[Callable[..., Any]]


def _tokens(given: Given) -> Tuple[int, ...]:
    """Returns the sizes of batch and tokens that an array or a range of positions has."""
    positions = given.get("positions")
    if isinstance(positions, range):
        return (len(positions),)
    shape = tuple(getattr(positions, "shape", ()))
    if not shape:
        raise TypeError("positions: without an array for the result, expected a range or an array")
    return shape[1:] if given["freqs"].n_axes > 1 and len(shape) > 1 else shape


def _relative(given: Given) -> Tuple[int, ...]:
    """Returns [batch, heads, queries, keys] of a term, and of an index with queries + keys - 1 elements."""
    term, n = given.get("c2p", given.get("p2c")), len(given["index"])
    if term is None:
        raise TypeError("relative_bias() lacks c2p and p2c. Pass at least one.")
    own = int(term.shape[-2])
    queries, keys = (own, n + 1 - own) if "c2p" in given else (n + 1 - own, own)
    return (*term.shape[:-2], queries, keys)


class Result(NamedTuple):
    """Result of a kernel: its shape, and the arguments on which shape, framework and dtype depend."""

    shape: Callable[..., Tuple[int, ...]]  # of the arguments and the values of `sizes`
    like: Tuple[str, ...]  # the first that is given determines the framework
    sizes: Tuple[str, ...] = ()  # integers
    keeps_dtype: bool = False  # the dtype is that of `like`, not float32


# Results that do not have the shape and the dtype of x.
RESULTS = {
    "sinusoidal": Result(lambda given: (*_tokens(given), given["freqs"].dim), ("positions",)),
    "rope_table": Result(lambda given: (*_tokens(given), given["freqs"].dim // 2), ("positions",)),
    "learned_grad": Result(lambda given, rows: (rows, given["x"].shape[-1]), ("x",), ("rows",)),
    "alibi": Result(lambda given, *sizes: (*given["slopes"].shape, *sizes), ("slopes",), ("queries", "keys")),
    "t5_bias": Result(lambda given, *sizes: (given["table"].shape[1], *sizes), ("table",), ("queries", "keys")),
    "distance_bias": Result(lambda given, *sizes: (given["values"].shape[0], *sizes), ("values",), ("queries", "keys")),
    "window_bias": Result(lambda given: (given["table"].shape[1], *given["index"].shape), ("table",)),
    "relative_bias": Result(_relative, ("c2p", "p2c"), keeps_dtype=True),
    "relative_sum": Result(lambda given, columns: (*given["x"].shape[:-1], columns), ("x",), ("columns",), True),
}


OUTPUTS = {"rope_table": ("cos", "sin")}  # of other kernels: out


def _empty_of(framework: str, shape: Sequence[int], like: Any) -> Any:
    """Returns an uninitialised array with the dtype of `like`, or float32 if that is None."""
    if framework == "torch":
        import torch

        return torch.empty(tuple(shape), dtype=torch.float32 if like is None else like.dtype)
    return empty(shape, "float32" if like is None else as_numpy(like).dtype)


def _to_jax(first: Any, second: Any = None) -> Any:
    import jax.numpy

    return jax.numpy.asarray(first) if second is None else (jax.numpy.asarray(first), jax.numpy.asarray(second))


def allocate(kernel: str, given: Given) -> Tuple[Tuple[Any, ...], Finish]:
    """Returns the outputs of a kernel, and a function that converts them after the call.

    `given` has the arguments that are not None. JAX arrays are immutable, so the kernel writes a NumPy array.
    """
    if kernel in RESULTS:
        result = RESULTS[kernel]
        like = next((given[name] for name in result.like if name in given), None)
        framework = framework_of(like)
        for name in result.sizes:
            if name not in given:
                raise TypeError(f"{kernel}() lacks the argument '{name}'. Pass it, or an array for the result.")
        try:
            shape = result.shape(given, *(int(given[name]) for name in result.sizes))
        except IndexError:
            raise Error(f"{kernel}: an array has too few dimensions", "shape", result.like[0]) from None
        typed = like if result.keeps_dtype else None
        made = tuple(_empty_of(framework, shape, typed) for _ in OUTPUTS.get(kernel, ("out",)))
    else:
        framework = framework_of(given["x"])
        made = (_like(framework, given["x"]),)
    return made, _to_jax if framework == "jax" else None


def _like(framework: str, array: Any) -> Any:
    if framework == "torch":
        import torch

        return torch.empty_like(array)
    import numpy

    return numpy.empty_like(as_numpy(array))


def copy_of(array: Any) -> Tuple[Any, Finish]:
    """Returns a copy that can be written, and a function that converts it to the framework of the array."""
    framework = framework_of(array)
    if framework == "torch":
        return array.clone(), None  # one that needs gradients is rejected, as by kernels
    return as_numpy(array).copy(), _to_jax if framework == "jax" else None
