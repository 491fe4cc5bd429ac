"""Reads and writes the messages of docs/protocol.md, and converts their tensors to arrays of any framework and back.

A message is a safetensors file; on a stream, one follows another. An answer, for example, is

    Message({"prompt": "1"}, {"out": Tensor("F32", (2,), bytes(8))})
"""

import importlib
import json
import math
import struct
from types import ModuleType
from typing import IO, Any, Callable, Dict, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt

# ---- Messages ----

WIDTHS = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I32": 4, "I64": 8}  # bytes of an element


class Tensor(NamedTuple):
    """A dense tensor: element type as safetensors names it, shape, and its elements in row-major order."""

    dtype: str
    shape: Tuple[int, ...]
    data: bytes


class Message(NamedTuple):
    """A message: its metadata and its tensors by name."""

    metadata: Mapping[str, str]
    tensors: Mapping[str, Tensor] = {}


def _read(stream: IO[bytes], n: int) -> bytes:
    """Reads n bytes. Raises EOFError if there are fewer."""
    data = stream.read(n)
    if len(data) < n:
        raise EOFError("the stream ended within a message")
    return data


def read_message(stream: IO[bytes]) -> Optional[Message]:
    """Reads the next message. Returns None at the end of the stream."""
    start = stream.read(8)  # the length of the header, little-endian
    if not start:
        return None
    (length,) = struct.unpack("<Q", start + _read(stream, 8 - len(start)))
    header = json.loads(_read(stream, length))
    metadata = header.pop("__metadata__", {})
    end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    data = memoryview(_read(stream, end))
    tensors = {
        name: Tensor(entry["dtype"], tuple(entry["shape"]), bytes(data[slice(*entry["data_offsets"])]))
        for name, entry in header.items()
    }
    return Message(metadata, tensors)


def write_message(stream: IO[bytes], message: Message) -> None:
    """Writes a message and flushes the stream."""
    header: Dict[str, object] = {"__metadata__": dict(message.metadata)}
    end = 0
    for name, tensor in message.tensors.items():
        begin, end = end, end + math.prod(tensor.shape) * WIDTHS[tensor.dtype]
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": (begin, end)}
    text = json.dumps(header).encode()
    stream.write(b"".join([struct.pack("<Q", len(text)), text, *(tensor.data for tensor in message.tensors.values())]))
    stream.flush()


# ---- Arrays ----

NAMES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64", "I32": "int32", "I64": "int64"}
DTYPES = {name: dtype for dtype, name in NAMES.items()}
INFINITY = {"F32": 0x7F800000, "F16": 0x7C00, "BF16": 0x7F80}  # bits; larger ones are NaN
SMALLEST = Tensor("F32", (1,), (0x00800000).to_bytes(4, "little"))  # the smallest normal number
BFLOAT16 = "bfloat16 of NumPy takes the package ml_dtypes. Install it, or check another dtype."


def describe(dtype: str, shape: Tuple[int, ...]) -> str:
    """Returns the element type and the shape of an array as text."""
    return f"{NAMES.get(dtype, dtype)} {list(shape)}"


def _numpy_type(dtype: str) -> "np.dtype[Any]":
    if dtype != "BF16":
        return np.dtype(NAMES[dtype]).newbyteorder("<")
    try:
        return np.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ModuleNotFoundError:
        raise ValueError(BFLOAT16) from None


def _to_numpy(tensor: Tensor) -> npt.NDArray[Any]:
    """Returns a new array that may be written."""
    return np.frombuffer(bytearray(tensor.data), _numpy_type(tensor.dtype)).reshape(tensor.shape)


def _to_torch(torch: ModuleType, tensor: Tensor, device: Any) -> Any:
    if not tensor.data:  # torch.frombuffer() rejects it
        return torch.empty(tensor.shape, dtype=getattr(torch, NAMES[tensor.dtype]), device=device)
    flat = torch.frombuffer(bytearray(tensor.data), dtype=getattr(torch, NAMES[tensor.dtype]))
    return flat.reshape(tensor.shape).to(device)


def converter(framework: Union[str, ModuleType, None], device: Any) -> Callable[[Tensor], Any]:
    """Returns the function that makes a tensor an array of a framework on a device.

    The framework is "numpy", "torch", "jax", or the name of a module, or a module. Others than these three need
    asarray(), as the array API standard has it, or from_dlpack().
    """
    name = framework if isinstance(framework, str) else framework.__name__ if framework else "numpy"
    if name == "numpy":
        return _to_numpy
    module = importlib.import_module("jax.numpy" if name == "jax" else name)
    if name == "torch":
        return lambda tensor: _to_torch(module, tensor, device)
    if name == "jax":
        jax = importlib.import_module("jax")
        place = jax.devices(device)[0] if isinstance(device, str) else device
        return lambda tensor: jax.device_put(_to_numpy(tensor), place)
    as_array = getattr(module, "asarray", None) or getattr(module, "from_dlpack")
    options = {} if device is None else {"device": device}
    return lambda tensor: as_array(_to_numpy(tensor), **options)


def tensor_of(value: Any) -> Tensor:
    """Returns an array of any framework as a tensor. Raises TypeError for a value that is no array."""
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        raise TypeError(f"a value of type {type(value).__name__} is no array")
    if hasattr(value, "detach"):  # PyTorch
        name = str(value.dtype).rpartition(".")[2]
        value = value.detach().cpu().contiguous()
        array = (value.view(importlib.import_module("torch").int16) if name == "bfloat16" else value).numpy()
    else:
        array = np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
        name = array.dtype.name
    data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return Tensor(DTYPES.get(name, name), array.shape, data)


def _bits(tensor: Tensor) -> npt.NDArray[Any]:
    return np.frombuffer(tensor.data, "<u4" if tensor.dtype == "F32" else "<u2")


def _magnitudes(tensor: Tensor) -> npt.NDArray[Any]:
    """Returns the bits of numbers of 16 or 32 bits, without their sign."""
    bits = _bits(tensor)
    return np.bitwise_and(bits, bits.dtype.type(2 ** (8 * bits.itemsize - 1) - 1))


def restore_nans(result: Tensor, x: Tensor) -> Tensor:
    """Returns a result with the bits of x where both are NaN.

    A copy of x must keep its bits, but conversions between types change those of a NaN in most languages.
    """
    if (result.dtype, result.shape) != (x.dtype, x.shape):
        return result
    are_nan = (_magnitudes(result) > INFINITY[x.dtype]) & (_magnitudes(x) > INFINITY[x.dtype])
    return result._replace(data=np.where(are_nan, _bits(x), _bits(result)).tobytes())


def has_tiny(tensor: Tensor) -> bool:
    """Returns whether a tensor of f32 has a number so small that its product with another may be subnormal."""
    if tensor.dtype != "F32":
        return False
    return bool(((_magnitudes(tensor) > 0) & (_magnitudes(tensor) < 0x20000000)).any())  # below 2^-63
