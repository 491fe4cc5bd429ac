"""Reads and writes the messages of docs/protocol.md: safetensors files, one after another on a stream."""

import json
import math
import struct
from typing import IO, Dict, Mapping, NamedTuple, Optional, Tuple

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
    data = stream.read(n)
    if len(data) < n:
        raise EOFError("the stream ended within a message")
    return data


def read_message(stream: IO[bytes]) -> Optional[Message]:
    """Reads the next message. Returns None at the end of the stream."""
    start = stream.read(8)
    if not start:
        return None
    header = json.loads(_read(stream, *struct.unpack("<Q", start + _read(stream, 8 - len(start)))))
    metadata = header.pop("__metadata__", {})
    data = memoryview(_read(stream, max((entry["data_offsets"][1] for entry in header.values()), default=0)))
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
