"""The reader of model files against what the readers in C made of 2 164 files before they went."""

import copy
import gzip
import io
import json
import random
import re
import struct
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import pytest
from test_config import read

from posenc.models.members import Refused
from posenc.models.model import Model, read_file
from posenc.models.places import name_of
from posenc.models.presets import presets

HERE = Path(__file__).parent
PRESETS = HERE.parents[1] / "conformance" / "models"  # where the files were read
SINGLE = ("x_scale", "scale", "alibi_bias_max", "epsilon", "weight_offset", "time_step")  # fields that are f32
LABEL = 63  # bytes that C kept of a label
# Types that are read otherwise now.
CORRECTED = (
    "mimo_v2_flash", "t5gemma\"", "t5_gemma_module", "recurrent_gemma", "zamba2\"", "nomic_bert", "jina_embeddings_v3",
    "bailing_hybrid", "chatglm", '"bloom"', "edgetam_video", '"sam"', '"sam2"', "sam2_video", "sam_hq", "nope",
    "step3p", "bamba", '"glmasr"', '"pe_', '"voxtral', "depth_pro",
    '"original_max_position_embeddings": 20,',
    '"per_layer_config": {"1": {"sliding_window"',
)  # fmt: skip
# Refusals that say it in other words now, by a piece of the old ones.
REWORDED = (
    "rope_local_base_freq is missing for layers",
    "invalid token", "real number overflow", "duplicate object key", "frequencies cannot be made",
    "near to it: llama", "has 'short_mscale'", "unexpected token", "it holds a NUL", "maximum parsing depth",
)  # fmt: skip
# Sizes given to types that read them in a part, or under another name: refused by the key that they do not read.
UNREAD = '"hidden_size": 1024, "num_attention_heads": 32, "max_position_embeddings": 2000}'
# Said since of types whose layers of full attention rest: correction 6, tested below.
RESTS = re.compile(r"\d+ of \d+ layers do not rotate: those that attend to all positions \(\w+(?: class)?\)(?:[.]  |$)")
# Said in other words since, the same ones whatever kind of file says it: correction 9, tested below.
ALIKE = re.compile(
    r"(\d+ of \d+ layers|One layer in \d+) do(es)? not (rotate|turn)[^.]*|\w+ of \d+ tokens are not covered \([^)]*\)|"
    r"Scores that are scaled by position[^)]*\)|Attention sinks are not covered|"
    r"(llama_4_scaling|attn_temperature_tuning|floor_scale|attn_scale) is not covered"
)  # fmt: skip
# A default that differs between releases of transformers is asked for since.
CHANGED = re.compile(r"(\w+) is missing.* by the release of the library: state it$")
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
        if "has other sizes for it than that of" in str(why):
            return  # correction 3
        changed = CHANGED.match(str(why))
        if changed:
            assert '"%s"' % changed[1] not in data.decode()
            return
        if record.get("text", "").endswith(UNREAD) and "refused" not in record:
            assert re.search("max_position_embeddings is 2000: a key about|which the classes .* do not read", str(why))
            return
        assert "refused" in record, why
        if not any(piece in record["refused"] for piece in REWORDED) and "stands beside objects" not in str(why):
            old, new = (re.sub(r"among \d+ types", "", text) for text in (record["refused"], str(why)))
            assert old.split(": ", 1)[1] == new
        return
    if "refused" in record:
        assert TOO_LARGE in record["refused"] or "too big integer" in record["refused"]  # read as f64 now
        return
    compare(record, model)


def compare(record: Dict[str, Any], model: Model) -> None:
    """Compares the calls, the notes and the facts of a model."""
    made = model.record()
    rest = RESTS.search(made["notes"])
    if rest:
        pattern = r", (sliding_window_pattern|global_attn_every_n_layers) 4\b"  # assumed, and said
        made["notes"] = re.sub(pattern, "", RESTS.sub("", made["notes"]))
    for said in (made, record):
        said["notes"] = [note for note in said["notes"].split(".  ") if note and not ALIKE.fullmatch(note)]
    for name in ("notes", "encoding", "max_position_embeddings", "storage", "storage_from", "trained_profile", "name"):
        assert made[name] == record[name], name
    assert len(made["cases"]) == len(record["cases"])
    for new, old in zip(made["cases"], record["cases"]):
        assert fields_of(new.pop("problem")) == fields_of(old.pop("problem")), old["id"]
        new["label"] = new["label"][:LABEL]
        new.pop("column_first")
        if rest:  # all layers were counted, or none
            assert new.pop("times") <= (old.pop("times") or 1 << 24)
        assert new == old
    assert [fields_of(line) for line in made["verify"]] == [fields_of(line) for line in record["verify"]]


@pytest.mark.parametrize("part", range(8))
def test_a_configuration_makes_the_calls_that_it_made(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PRESETS)  # a config.json is named after its folder
    for record in frozen("text")[part::8]:
        if any(name in record["text"] for name in CORRECTED):
            continue  # see the tests below
        check(record, record["text"].encode(), name_of(Path(record["path"])))


def test_presets_make_the_calls_that_they_made() -> None:
    for record in frozen("model"):
        if "cases" in record:
            check(record, presets()[record["model"]].encode(), record["model"])


# ---- published files ----


def published_files() -> List[Any]:
    """Returns what published files say."""
    with gzip.open(HERE / "published.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_published_files_are_read_or_refused_for_a_reason() -> None:
    published = published_files()
    refused = 0
    for one in published:
        try:
            assert read(**one["config"]).cases
        except Refused as why:
            refused += 1
            assert len(str(why)) > 20, one["model"]
    assert len(published) >= 300 and refused <= 79  # a ratchet: fewer with each type that is read


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
        if '"llama4"' in record["gguf"] and "sliding_window" not in record["gguf"]:
            continue  # one layer in four does not turn: see below
        check(record, gguf_bytes(record["gguf"], record["less"]), name_of(Path(record["path"])))


def gguf(architecture: str, **keys: Any) -> Model:
    """Reads a GGUF file of an architecture with 48 layers. "__" in a key stands for a dot."""
    said = {"context_length": 100, "embedding_length": 64, "block_count": 48, "attention.head_count": 4}
    said.update({key.replace("__", "."): value for key, value in keys.items()})
    text = json.dumps({"general.architecture": architecture, **{f"{architecture}.{k}": v for k, v in said.items()}})
    return read_file(io.BytesIO(gguf_bytes(text)), "made")


LEFT_OUT = (
    "12 of 48 layers do not rotate", "Chunks of 8192 tokens are not covered",
    "Scores that are scaled by position are not covered",
)  # fmt: skip


def test_what_is_left_out_is_said_in_the_same_words_whatever_file_says_it() -> None:
    chunks = {"attention_chunk_size": 8192, "attn_temperature_tuning": True}
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 48, "max_position_embeddings": 100,
             "num_key_value_heads": 4}  # fmt: skip
    meta = {"dim": 64, "n_heads": 4, "n_layers": 48, "multiple_of": 256, "nope_layer_interval": 4}
    for model in (
        read(model_type="llama4_text", **sizes, **chunks), read(**meta, **chunks),
        gguf("llama4", attention__chunk_size=8192, attention__temperature_scale=0.1),
    ):  # fmt: skip
        for words in LEFT_OUT:
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


def test_llama4_rests_unless_its_file_says_that_nothing_slides() -> None:
    assert gguf("llama4").reading.parts[0].layers == 36
    assert gguf("llama4", attention__sliding_window=8192).reading.parts[0].layers == 36
    assert gguf("llama4", attention__sliding_window=0).reading.parts[0].layers == 48


def test_phi3_without_factors_says_that_nothing_is_scaled() -> None:
    long = gguf("phi3", rope__scaling__original_context_length=50)
    assert "llama.cpp then scales nothing" in long.notes
    assert "llama.cpp then scales nothing" not in gguf("phi3", rope__scaling__original_context_length=100).notes


def test_key_heads_by_layer_are_those_of_its_kind() -> None:
    slides = [layer % 6 != 0 for layer in range(48)]
    heads = [4 if not one else 2 for one in slides]
    model = gguf("mimo2", attention__head_count_kv=heads, attention__sliding_window_pattern=slides)
    found = [(part.name, part.key_heads, part.layers) for part in model.reading.parts]
    assert found == [("full", 4, 8), ("sliding", 2, 40)]
    assert "other numbers of heads" not in model.notes


# ---- files that nobody wrote ----

ODD: Sequence[Any] = (
    None, True, False, 0, -1, 2, 1e-9, 1e30, float("inf"), float("nan"), "", "yarn", [], {}, [None], [1.5, 2], {"a": 1},
    2**63, 10**400, {"full_attention": None}, {"rope_type": []},
)  # fmt: skip


def _places(where: Any) -> Iterator[Tuple[Any, Any]]:
    """Yields every member of an object, and of those within it."""
    for key in list(where) if isinstance(where, dict) else range(len(where)) if isinstance(where, list) else ():
        yield where, key
        yield from _places(where[key])


def _spoilt(text: str, rng: random.Random) -> bytes:
    """Returns a configuration with some members of odd values."""
    said = json.loads(text)
    for _ in range(rng.randint(1, 4)):
        places = list(_places(said))
        if places:
            where, key = rng.choice(places)
            where[key] = copy.deepcopy(rng.choice(ODD))
    return json.dumps(said).encode()


def _damaged(data: bytes, rng: random.Random) -> bytes:
    """Returns a file with some bytes changed, lost or more."""
    file = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at, count = rng.randrange(len(file)), rng.randint(0, 9)
        file[at : at + rng.choice((1, count))] = rng.randbytes(rng.choice((1, count)))
    return bytes(file)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_file_holds_it_is_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    texts = [one["text"] for one in frozen("text") if one["text"].startswith("{") and "refused" not in one]
    published = [json.dumps(one["config"]) for one in published_files()]
    files = [gguf_bytes(one["gguf"]) for one in frozen("gguf")]
    outcomes = set()
    for _ in range(1000):
        for data in (_spoilt(rng.choice(rng.choice((texts, published))), rng), _damaged(rng.choice(files), rng)):
            try:
                outcomes.add(bool(read_file(io.BytesIO(data), "spoilt").cases))
            except Refused:
                outcomes.add(False)
    assert outcomes == {True, False}
