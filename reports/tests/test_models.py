"""The reader of model files: frozen outcomes of 2 164 files, GGUF files, and files with random damage.

models.jsonl.gz has files and presets, with the record of each or the reason of its rejection. Freeze again only if a
change of an outcome is meant:

PYTHONPATH=reports python3 reports/tests/test_models.py    freezes the present outcomes
"""

import copy
import gzip
import io
import json
import os
import random
import re
import struct
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import pytest
from programs import read_json_lines
from test_config import read

from posenc.models.members import Rejected
from posenc.models.model import Model, name_of, preset, read_file

HERE = Path(__file__).parent
PRESETS = HERE.parents[1] / "conformance" / "models"  # where the files were read
COUNTS = {"text": 1927, "gguf": 183, "model": 54}
FROZEN, PUBLISHED = HERE / "models.jsonl.gz", HERE / "published.jsonl.gz"


def frozen(kind: str) -> List[Any]:
    """Returns the frozen records of text files, GGUF files or presets (`kind` is text, gguf or model)."""
    found = [record for record in read_json_lines(FROZEN) if kind in record]
    assert len(found) == COUNTS[kind]
    return found


def outcome(record: Dict[str, Any]) -> Any:
    """Returns the record of a file for the C program, or the reason of its rejection without lists of known names."""
    try:
        if "model" in record:
            model = preset(record["model"])
        else:
            data = gguf_bytes(record["gguf"], record["less"]) if "gguf" in record else record["text"].encode()
            model = read_file(io.BytesIO(data), name_of(Path(record["path"])))
    except Rejected as why:  # "... among 131 types" and "... known: yarn" grow with what is read
        return re.sub(r"among \d+ types|(known|Known): .*", r"\1", str(why))
    return json.loads(json.dumps(model.record()))


@pytest.mark.parametrize("kind", COUNTS)
def test_files_make_the_calls_that_they_made(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PRESETS)  # a config.json is named after its folder
    for record in frozen(kind):
        assert outcome(record) == record["outcome"], record


# ---- published files ----


def test_published_files_are_read_or_rejected_with_a_reason() -> None:
    published = read_json_lines(PUBLISHED)
    rejected = 0
    for record in published:
        try:
            assert read(**record["config"]).cases
        except Rejected as why:
            rejected += 1
            assert len(str(why)) > 20, record["model"]
    assert len(published) >= 300 and rejected <= 79  # a ratchet: fewer with each type that is read


# ---- GGUF: a string is its length and its bytes, a value follows the number of its type ----

ARRAY, STRING, BOOL, F32, I32, U32 = 9, 8, 7, 6, 5, 4  # types


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _type_of(value: Any) -> int:
    types = {str: STRING, bool: BOOL, float: F32, list: ARRAY}
    return types.get(type(value), I32 if isinstance(value, int) and value < 0 else U32)


def _bytes_of(value: Any, kind: int) -> bytes:
    if kind == ARRAY:
        inner = _type_of(value[0])
        return struct.pack("<IQ", inner, len(value)) + b"".join(_bytes_of(element, inner) for element in value)
    if kind == STRING:
        return _string(value)
    return struct.pack({BOOL: "<?", F32: "<f", I32: "<i", U32: "<I"}[kind], value)


def gguf_bytes(text: str, less: int = 0) -> bytes:
    """Returns a GGUF file with the keys of a JSON object, without its last bytes. "tensor NAME" is a tensor of f32."""
    keys = json.loads(text)
    version = keys.pop("version", 3) & 0xFFFFFFFF
    tensors = {name[7:]: keys.pop(name) for name in list(keys) if name.startswith("tensor ")}
    file = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for key, value in keys.items():
        file += _string(key) + struct.pack("<I", _type_of(value)) + _bytes_of(value, _type_of(value))
    data = b""
    for name, factors in tensors.items():
        file += _string(name) + struct.pack("<IQIQ", 1, len(factors), 0, len(data))
        data += struct.pack(f"<{len(factors)}f", *factors)
        data += bytes(-len(data) % 32)
    file += bytes(-len(file) % 32) + data
    return file[: len(file) - less]


def gguf(architecture: str, **keys: Any) -> Model:
    """Reads a GGUF file of an architecture with 48 layers. "__" in a key stands for a dot."""
    members = {"context_length": 100, "embedding_length": 64, "block_count": 48, "attention.head_count": 4}
    members.update({key.replace("__", "."): value for key, value in keys.items()})
    text = json.dumps({"general.architecture": architecture, **{f"{architecture}.{k}": v for k, v in members.items()}})
    return read_file(io.BytesIO(gguf_bytes(text)), "made")


NOTES = (
    "12 of 48 layers do not rotate", "Chunks of 8192 tokens are not covered",
    "Scores that are scaled by position are not covered",
)  # fmt: skip


def test_notes_have_the_same_words_for_each_kind_of_file() -> None:
    chunks = {"attention_chunk_size": 8192, "attn_temperature_tuning": True}
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 48, "max_position_embeddings": 100,
             "num_key_value_heads": 4}  # fmt: skip
    meta = {"dim": 64, "n_heads": 4, "n_layers": 48, "multiple_of": 256, "nope_layer_interval": 4}
    for model in (
        read(model_type="llama4_text", **sizes, **chunks), read(**meta, **chunks),
        gguf("llama4", attention__chunk_size=8192, attention__temperature_scale=0.1),
    ):  # fmt: skip
        for words in NOTES:
            assert words in model.notes, model.notes
    meta["nope_layer_interval"] = 0
    for model in (
        read(model_type="mistral", **sizes, sliding_window=64), read(**meta, sliding_window=64),
        gguf("gemma2", attention__sliding_window=64),
    ):  # fmt: skip
        assert "Windows of 64 tokens are not covered" in model.notes, model.notes
    for model in (read(model_type="gpt_oss"), gguf("gpt-oss", attention__sliding_window=64)):
        assert "Attention sinks are not covered" in model.notes, model.notes
    assert "Windows" not in read(model_type="qwen2", **sizes, sliding_window=64, use_sliding_window=False).notes


def test_llama4_has_12_layers_without_rope_unless_its_window_is_0() -> None:
    assert gguf("llama4").reading.parts[0].layers == 36
    assert gguf("llama4", attention__sliding_window=8192).reading.parts[0].layers == 36
    assert gguf("llama4", attention__sliding_window=0).reading.parts[0].layers == 48


def test_phi3_without_factors_says_that_nothing_is_scaled() -> None:
    long = gguf("phi3", rope__scaling__original_context_length=50)
    assert "llama.cpp then scales nothing" in long.notes
    assert "llama.cpp then scales nothing" not in gguf("phi3", rope__scaling__original_context_length=100).notes


def test_key_heads_are_read_per_layer() -> None:
    slides = [layer % 6 != 0 for layer in range(48)]
    heads = [2 if sliding else 4 for sliding in slides]
    model = gguf("mimo2", attention__head_count_kv=heads, attention__sliding_window_pattern=slides)
    found = [(part.name, part.key_heads, part.layers) for part in model.reading.parts]
    assert found == [("full", 4, 8), ("sliding", 2, 40)]
    assert "other numbers of heads" not in model.notes


# ---- random damage ----

ODD: Sequence[Any] = (
    None, True, False, 0, -1, 2, 1e-9, 1e30, float("inf"), float("nan"), "", "yarn", [], {}, [None], [1.5, 2], {"a": 1},
    2**63, 10**400, {"full_attention": None}, {"rope_type": []},
)  # fmt: skip


def _members(where: Any) -> Iterator[Tuple[Any, Any]]:
    """Yields every member of an object or a list, and of those within it: what holds it, and its key."""
    for key in list(where) if isinstance(where, dict) else range(len(where)) if isinstance(where, list) else ():
        yield where, key
        yield from _members(where[key])


def _with_odd_values(text: str, rng: random.Random) -> bytes:
    """Returns a configuration with some members of odd values."""
    config = json.loads(text)
    for _ in range(rng.randint(1, 4)):
        members = list(_members(config))
        if members:
            where, key = rng.choice(members)
            where[key] = copy.deepcopy(rng.choice(ODD))
    return json.dumps(config).encode()


def _with_changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """Returns a file with some bytes changed, removed or inserted."""
    file = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at, count = rng.randrange(len(file)), rng.randint(0, 9)
        file[at : at + rng.choice((1, count))] = rng.randbytes(rng.choice((1, count)))
    return bytes(file)


@pytest.mark.parametrize("seed", range(4))
def test_changed_files_are_read_or_rejected(seed: int) -> None:
    rng = random.Random(seed)
    texts = [r["text"] for r in frozen("text") if r["text"].startswith("{") and isinstance(r["outcome"], dict)]
    published = [json.dumps(record["config"]) for record in read_json_lines(PUBLISHED)]
    files = [gguf_bytes(record["gguf"]) for record in frozen("gguf")]
    outcomes = set()
    for _ in range(1000):
        config = _with_odd_values(rng.choice(rng.choice((texts, published))), rng)
        for data in (config, _with_changed_bytes(rng.choice(files), rng)):
            try:
                outcomes.add(bool(read_file(io.BytesIO(data), "spoilt").cases))
            except Rejected:
                outcomes.add(False)
    assert outcomes == {True, False}


if __name__ == "__main__":
    records = read_json_lines(FROZEN)
    os.chdir(PRESETS)
    lines = "".join(json.dumps({**record, "outcome": outcome(record)}) + "\n" for record in records)
    FROZEN.write_bytes(gzip.compress(lines.encode(), 9, mtime=0))
