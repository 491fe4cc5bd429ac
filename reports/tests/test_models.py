"""The reader of model files against what the readers in C made of 2 164 files before they went."""

import gzip
import io
import json
import struct
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from posenc.models.members import Refused
from posenc.models.model import Model, read_file
from posenc.models.places import name_of

HERE = Path(__file__).parent
PRESETS = HERE.parents[1] / "conformance" / "models"
SINGLE = ("x_scale", "scale", "alibi_bias_max", "epsilon", "weight_offset", "time_step")  # fields that are f32
LABEL = 63  # bytes that C kept of a label
# Refusals that say it in other words now, by a piece of the old ones.
REWORDED = (
    "invalid token", "real number overflow", "too big integer", "duplicate object key", "frequencies cannot be made",
    "near to it: llama", "unexpected token", "it holds a NUL", "maximum parsing depth",
)  # fmt: skip
# Shapes too large for a machine are the engine's to refuse.
TOO_LARGE = "a sixteenth of this machine's memory"


def frozen(kind: str) -> List[Any]:
    """Returns what was kept of files with text, of GGUF files or of presets."""
    with gzip.open(HERE / "models.jsonl.gz", "rt", encoding="utf-8") as file:
        return [record for record in map(json.loads, file) if kind in record]


def fields_of(line: str) -> Tuple[str, Dict[str, Any]]:
    """Returns kernel and fields of a problem. Numbers compare as the engine stores them."""
    kernel, *words = line.split()
    fields: Dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            value: Any = [float(one) for one in text.split(",")]
        except ValueError:
            value = text
        if name in SINGLE:
            value = [struct.unpack("f", struct.pack("f", one))[0] for one in value]
        if name != "seed":  # which is 1 in each
            fields[name] = value
    return kernel, fields


def check(record: Dict[str, Any], data: bytes, name: str) -> None:
    """Compares what becomes of a file with what became of it."""
    try:
        model = read_file(io.BytesIO(data), name)
    except Refused as why:
        assert "refused" in record, why
        if not any(piece in record["refused"] for piece in REWORDED):
            assert record["refused"].split(": ", 1)[1] == str(why)
        return
    if "refused" in record:
        assert TOO_LARGE in record["refused"]
        return
    compare(record, model)


def compare(record: Dict[str, Any], model: Model) -> None:
    """Compares the calls, the notes and the facts of a model."""
    made = model.record()
    for name in ("notes", "encoding", "max_position_embeddings", "storage", "storage_from", "trained_profile", "name"):
        assert made[name] == record[name], name
    assert len(made["cases"]) == len(record["cases"])
    for new, old in zip(made["cases"], record["cases"]):
        assert fields_of(new.pop("problem")) == fields_of(old.pop("problem")), old["id"]
        new["label"] = new["label"][:LABEL]
        assert new == old
    assert [fields_of(line) for line in made["verify"]] == [fields_of(line) for line in record["verify"]]


@pytest.mark.parametrize("part", range(8))
def test_a_configuration_makes_the_calls_that_it_made(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PRESETS)  # a config.json is named after its folder
    for record in frozen("text")[part::8]:
        check(record, record["text"].encode(), name_of(Path(record["path"])))


def test_presets_make_the_calls_that_they_made() -> None:
    for record in frozen("model"):
        if "cases" in record:
            check(record, (PRESETS / f"{record['model']}.json").read_bytes(), record["model"])


# ---- GGUF ----


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _kind(value: Any) -> int:
    kinds = {str: 8, bool: 7, float: 6, list: 9}
    return kinds.get(type(value), 5 if isinstance(value, int) and value < 0 else 4)


def _value(value: Any, kind: int) -> bytes:
    if kind == 9:
        inner = _kind(value[0])
        return struct.pack("<IQ", inner, len(value)) + b"".join(_value(one, inner) for one in value)
    if kind == 8:
        return _text(value)
    return struct.pack({7: "<?", 6: "<f", 5: "<i", 4: "<I"}[kind], value)


def gguf_bytes(text: str, less: int = 0) -> bytes:
    """Returns a GGUF file with the keys of an object, without its last bytes. "tensor NAME" is a tensor of f32."""
    said = json.loads(text)
    version = said.pop("version", 3) & 0xFFFFFFFF
    tensors = {name[7:]: said.pop(name) for name in list(said) if name.startswith("tensor ")}
    file = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(said))
    for key, value in said.items():
        file += _text(key) + struct.pack("<I", _kind(value)) + _value(value, _kind(value))
    data = b""
    for name, factors in tensors.items():
        file += _text(name) + struct.pack("<IQIQ", 1, len(factors), 0, len(data))
        data += struct.pack(f"<{len(factors)}f", *factors)
        data += bytes(-len(data) % 32)
    file += bytes(-len(file) % 32) + data
    return file[: len(file) - less]


def test_a_gguf_file_makes_the_calls_that_it_made() -> None:
    for record in frozen("gguf"):
        check(record, gguf_bytes(record["gguf"], record["less"]), name_of(Path(record["path"])))
