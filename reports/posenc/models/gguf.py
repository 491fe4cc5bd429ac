"""Reads the metadata of a GGUF file, of versions 2 and 3: its keys, and the tensors that divide frequencies.

model.py calls read_gguf(), and llama_cpp.py reads its result. The keys general.architecture "llama" and
llama.rope.freq_base 10000 become {"architecture": "llama", "rope": {"freq_base": 10000.0}, "tensors": {}, "name": ""}.

Source: ggml-org/ggml, docs/gguf.md. A file is untrusted: each count is checked against the bytes that are left before
they are read.
"""

import math
import struct
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Dict, List, NamedTuple, Tuple

from .members import Rejected

# Limits of keys and of tensors, of names and texts (bytes), factors, list items, axes.
COUNT, NAME, TEXT, FACTORS, LIST, AXES = 65536, 256, 1024, 32768, 4096, 4
# Formats of struct by the type of a value in the file; two types are no numbers.
FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
U32, F32, U64 = 4, 6, 10
TENSORS = ("rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight")


class Tensor(NamedTuple):
    """A list of factors."""

    length: int
    offset: int  # bytes from the beginning of the data


@dataclass
class Reader:
    """A file that is being read, with the keys and tensors so far. `what` names a value in messages."""

    file: BinaryIO
    size: int  # bytes
    at: int = 0  # place of the next byte
    keys: Dict[str, Any] = field(default_factory=dict)
    tensors: Dict[str, Tensor] = field(default_factory=dict)

    def _check(self, count: int, what: str) -> None:
        """Rejects a file with fewer bytes left."""
        left = self.size - self.at
        if count > left:
            raise Rejected(f"{what} at byte {self.at}: {count} bytes are needed, {left} are left")

    def bytes(self, count: int, what: str) -> bytes:
        """Returns the next bytes."""
        self._check(count, what)
        taken = self.file.read(count)
        if len(taken) < count:
            raise Rejected(f"{what} at byte {self.at} cannot be read")
        self.at += count
        return taken

    def skip(self, count: int, what: str) -> None:
        """Goes past bytes."""
        self._check(count, what)
        self.at += count
        self.file.seek(self.at)

    def number(self, kind: int, what: str) -> Any:
        """Returns a number, true or false. A number that is not finite becomes text, which is rejected later."""
        form = "<" + FORMATS[kind]
        value = struct.unpack(form, self.bytes(struct.calcsize(form), what))[0]
        return "not finite" if isinstance(value, float) and not math.isfinite(value) else value

    def count(self, what: str, kind: int = U64) -> int:
        """Returns a whole number."""
        return int(self.number(kind, what))

    def name(self, what: str) -> str:
        """Returns a short text."""
        length = self.count(what)
        if length >= NAME:
            raise Rejected(f"{what} at byte {self.at} has {length} bytes: at most {NAME - 1} are read")
        text = self.bytes(length, what)
        if 0 in text:
            raise Rejected(f"{what} before byte {self.at} holds a NUL")
        return text.decode("utf-8", "replace")

    def text(self, key: str) -> Any:
        """Returns a text, or None for one that is too long to matter."""
        length = self.count(key)
        if length >= TEXT:
            self.skip(length, key)
            return None
        return self.bytes(length, key).decode("utf-8", "replace")

    def array(self, key: str) -> Any:
        """Returns a list of numbers, or None for one of texts or one that is too long to matter."""
        kind, length = self.count(key, U32), self.count(key)
        if kind not in FORMATS and kind != STRING:
            raise Rejected(f"{key} is a list of values of kind {kind}: 0 to 8 and 10 to 12 are known")
        item_size = 8 if kind == STRING else struct.calcsize("<" + FORMATS[kind])  # at least
        if length > (self.size - self.at) // item_size:
            raise Rejected(f"{key} is a list of {length} values, more than the file has bytes for")
        if kind == STRING:
            for _ in range(length):
                self.skip(self.count(key), key)
            return None
        if length > LIST:
            self.skip(length * item_size, key)
            return None
        return [self.number(kind, key) for _ in range(length)]

    def pair(self) -> None:
        """Reads a key and its value."""
        key = self.name("a key")
        kind = self.count(key, U32)
        if kind not in FORMATS and kind not in (STRING, ARRAY):
            raise Rejected(f"{key} has a value of kind {kind}: 0 to 12 are known")
        value = self.text(key) if kind == STRING else self.array(key) if kind == ARRAY else self.number(kind, key)
        if key in self.keys:
            raise Rejected(f"the key {key} is there twice")
        self.keys[key] = value

    def tensor(self) -> None:
        """Reads name, sizes, type (0 is f32) and offset of a tensor."""
        name = self.name("a tensor's name")
        axes = self.count("a tensor's number of axes", U32)
        if axes > AXES:
            raise Rejected(f"the tensor {name} has {axes} axes: at most {AXES} are known")
        sizes = [self.count("a tensor's size") for _ in range(axes)]
        kind, offset = self.count("a tensor's type", U32), self.count("a tensor's place")
        if name not in TENSORS:
            return
        if name in self.tensors:
            raise Rejected(f"the tensor {name} is there twice")
        if kind != 0:
            raise Rejected(f"the tensor {name} is of type {kind}: 0, f32, is needed")
        if len(sizes) != 1 or not 1 <= sizes[0] <= FACTORS:
            raise Rejected(f"the tensor {name} is no list of 1 to {FACTORS} factors")
        self.tensors[name] = Tensor(sizes[0], offset)

    def factors(self, name: str, data: int) -> List[Any]:
        """Returns the numbers of a tensor. `data` is where the data of tensors begin."""
        tensor = self.tensors[name]
        if data + tensor.offset > self.size:
            raise Rejected(f"the tensor {name} begins past the end of the file")
        self.at = data + tensor.offset
        self.file.seek(self.at)
        return [self.number(F32, name) for _ in range(tensor.length)]


def _nest(root: Dict[str, Any], key: str, value: Any) -> None:
    """Puts a value where the dots of its key say: rope.freq_base becomes root["rope"]["freq_base"]."""
    *folders, name = key.split(".")
    for folder in folders:
        root = root.setdefault(folder, {})
        if not isinstance(root, dict):
            raise Rejected(f"{key}: what its dots part is a value as well")
    if name in root:
        raise Rejected(f"{key} is a value, and the beginning of other keys")
    root[name] = value


def _read_header(reader: Reader) -> Tuple[int, int]:
    """Returns the numbers of tensors and of keys."""
    reader.bytes(4, "GGUF")
    version = reader.count("the version", U32)
    if version and not version & 0xFFFF:  # 2 or 3 in the upper bytes
        raise Rejected("it is a GGUF file of a big-endian machine: one of little endian is needed")
    if version not in (2, 3):
        raise Rejected(f"it is a GGUF file of version {version}: 2 and 3 are read")
    tensors, pairs = reader.count("the number of tensors"), reader.count("the number of keys")
    if max(tensors, pairs) > COUNT:
        raise Rejected(f"it has {tensors} tensors and {pairs} keys: at most {COUNT} of each are read")
    return tensors, pairs


def read_gguf(file: BinaryIO) -> Dict[str, Any]:
    """Returns the keys of the architecture as objects within each other, its name, that of the model, and "tensors"."""
    reader = Reader(file, size=file.seek(0, 2))
    file.seek(0)
    tensors, pairs = _read_header(reader)
    for _ in range(pairs):
        reader.pair()
    align = reader.keys.get("general.alignment", 32)
    if not isinstance(align, int) or not 1 <= align <= 65536 or align & (align - 1):
        raise Rejected(f"general.alignment is {align}: a power of two up to 65536 is needed")
    for _ in range(tensors):
        reader.tensor()
    data = -(-reader.at // align) * align  # rounded up
    factors = {name: reader.factors(name, data) for name in TENSORS if name in reader.tensors}
    found: Dict[str, Any] = {"tensors": factors}
    architecture = reader.keys.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        what = "no text" if "general.architecture" in reader.keys else "missing"
        raise Rejected(f"general.architecture is {what}: the name of an architecture is needed")
    prefix = f"{architecture}."
    for key, value in reader.keys.items():
        if key.startswith(prefix) and value is not None:
            _nest(found, key[len(prefix) :], value)
    title = reader.keys.get("general.name")
    return {**found, "architecture": architecture, "name": title if isinstance(title, str) else ""}
