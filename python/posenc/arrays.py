"""Errors, and the arrays that the extension allocates: each result belongs to the framework of the arguments."""

from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple

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


def _size(given: Given, *names: str) -> Tuple[int, ...]:
    for name in names:
        if name not in given:
            raise TypeError(f"lacks {' and '.join(names)}, the shape of the result, or an array for it")
    return tuple(int(given[name]) for name in names)


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
        raise TypeError("lacks c2p and p2c: at least one is needed")
    own = int(term.shape[-2])
    queries, keys = (own, n + 1 - own) if "c2p" in given else (n + 1 - own, own)
    return (*term.shape[:-2], queries, keys)


# The shape of the result of each kernel whose result is not like x, and the argument that decides its framework.
# The dtype is that of the argument, or float32.
SHAPES: Dict[str, Tuple[Callable[[Given], Tuple[int, ...]], str, bool]] = {
    "sinusoidal": (lambda given: (*_tokens(given), given["freqs"].dim), "positions", False),
    "rope_table": (lambda given: (*_tokens(given), given["freqs"].dim // 2), "positions", False),
    "learned_grad": (lambda given: (*_size(given, "rows"), given["x"].shape[-1]), "x", False),
    "alibi": (lambda given: (*given["slopes"].shape, *_size(given, "queries", "keys")), "slopes", False),
    "t5_bias": (lambda given: (given["table"].shape[1], *_size(given, "queries", "keys")), "table", False),
    "distance_bias": (lambda given: (given["values"].shape[0], *_size(given, "queries", "keys")), "values", False),
    "window_bias": (lambda given: (given["table"].shape[1], *given["index"].shape), "table", False),
    "relative_bias": (_relative, "c2p", True),
    "relative_sum": (lambda given: (*given["x"].shape[:-1], *_size(given, "columns")), "x", True),
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
    if kernel in SHAPES:
        shape, name, typed = SHAPES[kernel]
        decides = given.get(name, given.get("p2c"))
        framework = framework_of(decides)
        try:
            sizes = shape(given)
        except IndexError:
            raise Error(f"{kernel}: an array has too few dimensions", "shape", name) from None
        made = tuple(_empty_of(framework, sizes, decides if typed else None) for _ in OUTPUTS.get(kernel, ("out",)))
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
