"""The reader of config.json: keys about positions, layers, heads, bases and scalings, and what is rejected.

read(model_type="llama", rope_theta=5e5) reads a configuration with these members. READ and REJECTED are tables: a
title, the members of a file, and members of the part that is read or the reason of the rejection.
"""

import io
import json
from typing import Any, Dict, List, Tuple

import pytest

from posenc.models.members import Rejected
from posenc.models.model import Model, read_file
from posenc.models.part import Part

File = Dict[str, Any]
SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 100}
STRANGE = {  # keys that no class reads
    "rope_ratio": 50, "rotary_scaling_factor": 2, "use_alibi": True, "rotary_emb_scale_base": 512, "xpos_scale": 512,
    "position_encoding_2d": True, "num_attention_heads_per_layer": [4, 2], "swa_rope_theta": 1e6,
    "compress_rope_base": 9, "rope_mode": "3d",
}  # fmt: skip


def read(**members: Any) -> Model:
    """Reads a configuration with these members."""
    return read_file(io.BytesIO(json.dumps(members).encode()), "made")


def part_of(**members: Any) -> Part:
    """Returns the first part of a configuration."""
    return read(**members).reading.parts[0]


def file(model_type: str, **members: Any) -> File:
    """Returns the members of a configuration without sizes."""
    return {"model_type": model_type, **members}


def small(model_type: str, **members: Any) -> File:
    """Returns the members of a configuration of a small model."""
    return {"model_type": model_type, **SIZES, **members}


@pytest.mark.parametrize("kind", ["llama", "bert", "gpt_oss", "bloom", "opt"])
@pytest.mark.parametrize("key", STRANGE)
def test_an_unknown_key_about_positions_rejects_the_file(key: str, kind: str) -> None:
    sizes = {**SIZES, "head_dim": 16, "num_key_value_heads": 2} if kind == "gpt_oss" else SIZES
    assert not any(key in note for note in read(model_type=kind, **sizes).reading.notes)
    with pytest.raises(Rejected, match=f"^{key} is "):
        read(model_type=kind, **sizes, **{key: STRANGE[key]})


# ---- what is read ----

TEXT = {"model_type": "llama", **SIZES, "rope_theta": 5e5}
LONG_TEXT = {"model_type": "llama", "max_position_embeddings": 4096}
ZAMBA: File = {
    "model_type": "zamba2", "hidden_size": 2048, "num_attention_heads": 32, "num_hidden_layers": 38, "kv_channels": 64,
}  # fmt: skip
CHATGLM: File = {
    "model_type": "chatglm", "hidden_size": 4096, "num_attention_heads": 32, "num_layers": 28, "kv_channels": 128,
    "seq_length": 8192, "multi_query_attention": True, "multi_query_group_num": 2,
}  # fmt: skip
LONG: File = {
    "type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8, "original_max_position_embeddings": 50,
}  # fmt: skip
PHI_MOE = small("phimoe", num_key_value_heads=4, original_max_position_embeddings=50)
SAVED = {  # as the class saves its layers
    "layer_types": ["full_attention"] * 9 + ["sliding_attention"] * 31,
    "mlp_layer_types": ["dense"] * 2 + ["sparse"] * 38,
}  # fmt: skip
LATENT = file("bailing_hybrid", head_dim=128, qk_rope_head_dim=64, rotary_dim=64)
FUYU = {"model_type": "persimmon", "rope_theta": 25000, "partial_rotary_factor": 0.25}
MIXED = {"layer_types": ["mamba", "attention", "mamba", "attention"], "position_embedding_type": "rope"}
DECODER = {"model_type": "t5_gemma_module", "num_attention_heads": 16, "head_dim": 128, "num_hidden_layers": 42}
EMPTY: List[Any] = [None, False, [], ""]
DENSE: List[Tuple[File, int]] = [  # of layers with a pattern of their own: keys, and the layers that rotate
    ({}, 30), ({"first_k_dense_replace": 1}, 31), ({"first_k_dense_replace": 2}, 31),
    ({"sliding_window_pattern": 2}, 20), (SAVED, 33),
    ({"first_k_dense_replace": 2, "prefix_dense_sliding_window_pattern": 2}, 30),
]  # fmt: skip
OTHER_CHATGLM: List[File] = [{"rope_ratio": 50}, {"position_encoding_2d": True}, {"rotary_percent": 0.25}]
DIFFERENT = ("cohere", "falcon_h1", "persimmon", "kyutai_speech_to_text", "olmo3")  # defaults, by the release

# A title, a file, and expected members of its first part; "note" is a text in the notes of the model.
READ: List[Tuple[str, File, Dict[str, Any]]] = [
    *(("a value that changes nothing", small("llama", rope_ratio=value), {"note": "rope_ratio"}) for value in EMPTY),
    ("a neutral value", small("llama", rope_ratio=1), {"note": "rope_ratio is 1, which changes nothing"}),
    ("a length in the object of dynamic scaling",
     small("llama", rope_scaling={"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 50}),
     {"note": "max_position_embeddings of rope_scaling does not change a rotation of type dynamic"}),
    ("a key of the whole that its text has", file("llava", text_config=TEXT, rope_theta=5e5), {"rope_theta": 5e5}),
    ("a length of the whole that its text has",
     file("llava", text_config=LONG_TEXT, max_position_embeddings=4096), {"length": 4096}),
    ("no key heads are as many as heads", small("csm", num_key_value_heads=None, head_dim=16), {"key_heads": 4}),
    ("whatever the class has", small("qwen3_vl_text", num_key_value_heads=None), {"key_heads": 4}),
    ("an empty object keeps the scaling of the class", small("gpt_oss", num_key_value_heads=2, rope_scaling={}),
     {"scaling": "yarn"}),
    ("one of the default rule does not",
     small("gpt_oss", num_key_value_heads=2, rope_scaling={"rope_type": "default"}), {"scaling": "none"}),
    ("a list of layers that rest", small("smollm3", num_key_value_heads=2, no_rope_layers=[1, 0]), {"layers": 1}),
    ("one layer in so many rests", small("smollm3", num_key_value_heads=2, no_rope_layer_interval=2), {"layers": 1}),
    *(("dense layers of a pattern", file("cohere2_moe", **keys), {"layers": layers}) for keys, layers in DENSE),
    ("layers that attend are counted",
     small("bamba", num_hidden_layers=32, num_key_value_heads=2, attn_layer_indices=[9, 18]),
     {"layers": 2, "note": "2 of 32 layers attend (attn_layer_indices)"}),
    ("layers that mix in another way are not", {**small("granitemoehybrid"), **MIXED, "num_hidden_layers": 4},
     {"layers": 2, "note": "2 of 4 layers attend (layer_types)"}),
    ("one layer in six attends", file("bailing_hybrid"), {"layers": 42 // 6}),
    ("Zamba2 rotates where its file says so",
     {**ZAMBA, "attention_head_dim": 128, "use_mem_rope": True,
      "layers_block_type": (["mamba"] * 5 + ["hybrid"]) * 6 + ["mamba"] * 2},
     {"heads": 32, "head_dim": 128, "rotary_dim": 128, "layers": 6}),
    ("its long context", {**ZAMBA, "use_mem_rope": True, "use_long_context": True}, {"length": 16384}),
    ("RecurrentGemma has no longest position",
     file("recurrent_gemma", num_hidden_layers=26, num_key_value_heads=1),
     {"layers": 8, "key_heads": 1, "rotary_dim": 128, "length": 2048,
      "note": "no longest position: shapes are those of 2048 positions.  8 of 26 layers attend (block_types)"}),
    ("ChatGLM turns half of each head", {**CHATGLM, "original_rope": True, "rotary_percent": 0.5},
     {"encoding": "rope_interleaved", "heads": 32, "key_heads": 2, "head_dim": 128, "rotary_dim": 64, "dim": 64,
      "rope_theta": 10000, "layers": 28}),
    ("without groups of heads", {**CHATGLM, "multi_query_attention": False}, {"key_heads": 32}),
    ("a share of another head that says the same", {**LATENT, "partial_rotary_factor": 0.5}, {"rotary_dim": 64}),
    ("Bloom needs no longest position", file("bloom", n_embed=64, n_head=4, n_layer=2), {"length": 2048}),
    ("it may have one", file("bloom", n_embed=64, n_head=4, n_layer=2, seq_length=4096), {"length": 4096}),
    ("a member beside that of the text, where the class may have it there",
     file("fuyu", text_config=FUYU, partial_rotary_factor=0.5),
     {"rotary_dim": 16, "note": "partial_rotary_factor is 0.5 beside that of the text, which counts"}),
    ("a part that has to be there", file("mistral3", text_config={"model_type": "mistral"}), {"key_heads": 8}),
    ("what a class of several parts takes for its text", file("voxtral", text_config={"num_attention_heads": 16}),
     {"heads": 16, "key_heads": 8, "head_dim": 128, "rope_theta": 1e8}),
    ("what a class saves and never uses", file("minimax_m3_vl_text", head_dim=128, rotary_dim=64),
     {"rotary_dim": part_of(**file("minimax_m3_vl_text", head_dim=128)).rotary_dim,
      "note": "rotary_dim is 64, which changes nothing: it is not read"}),
    ("one attention factor of Phi 3.5 MoE",
     {**PHI_MOE, "rope_scaling": {**LONG, "short_mscale": 1.25, "long_mscale": 1.25}}, {"attention_factor": 1.25}),
    ("a word for an encoding that no class reads", file("bert", position_embedding_type="sans_pos"),
     {"note": "position_embedding_type is not read"}),
    *(("a default that releases differ in", file(name, rope_theta=500000), {"rope_theta": 500000})
      for name in DIFFERENT),
    ("a list of all layers for scaling", file("molmo2_text", num_hidden_layers=3, rope_scaling_layers=[0, 1, 2]),
     {"scaling": "none"}),
    ("T5Gemma rotates as Gemma 2 does", file("t5gemma", decoder=DECODER, encoder={"model_type": "t5_gemma_module"}),
     {"encoding": "rope_half", "heads": 16, "key_heads": 4, "layers": 42}),
]  # fmt: skip


@pytest.mark.parametrize("members, expected", [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_file_is_read(members: File, expected: Dict[str, Any]) -> None:
    model, part = read(**members), {name: value for name, value in expected.items() if name != "note"}
    assert expected.get("note", "") in model.notes
    assert {name: getattr(model.reading.parts[0], name) for name in part} == part


# ---- what is rejected ----

BY_LAYERS = {"full_attention": {"rope_theta": 1e4}, "sliding_attention": {"rope_theta": 1e6}}
LAGUNA: File = {
    "model_type": "laguna", "hidden_size": 2048, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
}  # fmt: skip
LAGUNA_ROPE: File = {
    "full_attention": {"rope_type": "yarn", "rope_theta": 5e5, "factor": 64, "original_max_position_embeddings": 4096},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}  # fmt: skip
STEP: File = {
    "model_type": "step3p5", "num_hidden_layers": 4, "num_nextn_predict_layers": 1, "num_attention_heads": 64,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
    "rope_theta": [5e6, 1e4, 1e4, 1e4, 5e6], "partial_rotary_factors": [0.5, 1.0, 1.0, 1.0, 0.5],
    "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 96},
}  # fmt: skip
ALPHA = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "mscale": 1.0}

# A title, a file, and a pattern of the reason.
REJECTED: List[Tuple[str, File, str]] = [
    ("a value that is not neutral", small("llama", rope_ratio=2), "rope_ratio is 2: a key about positions"),
    *(("what may switch a rotation off is not neutral", small("llama", **{key: value}), f"^{key} is ")
      for key, value in (("rotary_emb_fraction", 0), ("use_rope", False), ("rotary", 1), ("rope_ratio", 0))),
    *(("members of a rule without its name", small("llama", rope_scaling={member: 32}), "rope_scaling has no rope_type")
      for member in ("beta_fast", "long_factor", "max_position_embeddings")),
    ("a key of the whole that its text lacks", file("llava", text_config=TEXT, rope_theta=1e4),
     "rope_theta is 10000.0: a key about positions"),
    ("a length of the whole that its text lacks", file("llava", text_config=LONG_TEXT, max_position_embeddings=8192),
     "max_position_embeddings is 8192"),
    *(("one rotation is not read as two", small(kind, rope_parameters=BY_LAYERS), ": one for all is needed")
      for kind in ("llama", "nanochat", "esmc")),
    *(("layers rest for types alone whose classes read it", small("llama", **{key: value}), f"^{key} is ")
      for key, value in (("no_rope_layers", [1, 0]), ("no_rope_layer_interval", 2))),
    *(("a pattern of layers is a whole number", file("exaone_moe", sliding_window_pattern=pattern),
       "^sliding_window_pattern is ") for pattern in (0, -4, 2.5, True, "LX", "")),
    ("a number beside objects that none of them says",
     {**LAGUNA, "rope_parameters": {**LAGUNA_ROPE, "original_max_position_embeddings": 8192}},
     "original_max_position_embeddings of rope_parameters stands beside objects"),
    ("other heads for layers of one type",
     {**LAGUNA, "rope_parameters": LAGUNA_ROPE, "num_attention_heads_per_layer": [48, 64, 32]},
     "has other numbers for layers of one type"),
    ("Zamba2 that does not rotate", ZAMBA, "use_mem_rope is not true: none of its layers rotates"),
    *(("ChatGLM in another way", {**CHATGLM, **other}, next(iter(other))) for other in OTHER_CHATGLM),
    ("custom code that has no class to take it from",
     file("bailing_moe", hidden_size=64, max_position_embeddings=100), "num_attention_heads is missing"),
    ("a share of another head that is no number", {**LATENT, "partial_rotary_factor": "half"},
     "partial_rotary_factor is .half."),
    ("a share of another head that says otherwise", {**LATENT, "partial_rotary_factor": 0.25},
     "partial_rotary_factor is 0.25"),
    ("a base beside a text without it", file("fuyu", text_config={"model_type": "persimmon"}, rope_theta=25000),
     "rope_theta is missing"),
    ("no list of layers that attend", small("bamba"),
     "attn_layer_indices is not there: then none of its layers attends"),
    ("a part for which the class has other sizes", file("mistral3"),
     "text_config is not there, and the class of mistral3 has other sizes for it"),
    ("another value of what a class saves", file("minimax_m3_vl_text", head_dim=128, rotary_dim=32),
     "rotary_dim is 32"),
    ("two attention factors", {**PHI_MOE, "rope_scaling": {**LONG, "short_mscale": 1.25, "long_mscale": 1.5}},
     "short_mscale is 1.25 and long_mscale 1.5: one attention factor"),
    ("an attention factor that the classes do not read",
     {**PHI_MOE, "model_type": "phi3", "rope_scaling": {**LONG, "short_mscale": 1.25, "long_mscale": 1.25}},
     "short_mscale is 1.25, which the classes of this model_type do not read"),
    ("the name of another encoding", file("bert", position_embedding_type="relative_key"),
     "position_embedding_type 'relative_key'"),
    ("a group with more layers than the model has", file("bailing_hybrid", num_hidden_layers=4),
     "none of its 4 layers attends: one in 6 would"),
    *(("a type for each layer is needed",
       {**small("qwen3", layer_types=["full_attention"] * count), "num_hidden_layers": 4},
       f"layer_types has {count} items: one for each of 4 layers is needed") for count in (3, 5)),
    *(("a default that releases differ in", file(name),
       "rope_theta is missing, and its default is .* or .*, by the release of the lib") for name in DIFFERENT),
    *(("a list by layer that is too short", {**STEP, name: STEP[name][:1]},
       f"{name} has 1 items: one for each of 4 layers is needed")
      for name in ("layer_types", "rope_theta", "partial_rotary_factors")),
    ("another setting that is no object", {**STEP, "attention_other_setting": 5},
     "attention_other_setting is no object"),
    ("a list in which no layer attends", file("recurrent_gemma", num_hidden_layers=4, block_types=["recurrent"]),
     "none of its 4 layers attends .block_types."),
    *(("layers that a list leaves out of scaling",
       file("molmo2_text", num_hidden_layers=3, rope_scaling_layers=said),
       "rope_scaling_layers is .*: a key about positions that is not read") for said in ([0, 1], 3, True)),
    ("alpha of another type", small("llama", rope_scaling=ALPHA), "has 'alpha', which this loader does not know"),
    ("another class of diffusers", {"_class_name": "SD3Transformer2DModel", "num_attention_heads": 24},
     "SD3Transformer2DModel.* adds a table of sines of rows and columns"),
    ("axes of another head",
     {"_class_name": "FluxTransformer2DModel", "num_attention_heads": 2, "attention_head_dim": 128,
      "axes_dims_rope": [16, 40, 40]}, "axes_dims_rope adds up to 96 channels: 128"),
]  # fmt: skip


@pytest.mark.parametrize("members, reason", [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED])
def test_file_is_rejected(members: File, reason: str) -> None:
    with pytest.raises(Rejected, match=reason):
        read(**members)


# ---- several types of layers, and what a row cannot say ----


@pytest.mark.parametrize(
    "kind, rotating, layers",
    [("afmoe", 24, 32), ("exaone_moe", 24, 32), ("exaone4", 24, 32), ("cohere2", 30, 40), ("cohere2_moe", 30, 40),
     ("flint", 35, 49), ("kolibri1", 40, 50)],
)  # fmt: skip
def test_layers_that_attend_to_all_positions_rest(kind: str, rotating: int, layers: int) -> None:
    reading = read(model_type=kind).reading
    assert reading.parts[0].layers == rotating
    assert any(f"{layers - rotating} of {layers} layers do not rotate" in note for note in reading.notes)
    listed = ["sliding_attention", "sliding_attention", "full_attention"]
    assert part_of(model_type=kind, layer_types=listed, num_hidden_layers=3).layers == 2
    with pytest.raises(Rejected, match="none of its 2 layers rotates"):
        read(model_type=kind, layer_types=listed[2:] * 2, num_hidden_layers=2)


def test_layers_without_a_window_rotate_where_their_class_says_so() -> None:
    listed = ["full_attention"] * 3
    for kind in ("exaone4", "exaone_moe", "kolibri1"):
        assert part_of(model_type=kind, layer_types=listed, num_hidden_layers=3, sliding_window=None).layers == 3
    for kind in ("cohere2", "cohere2_moe", "flint"):
        with pytest.raises(Rejected, match="sliding_window is null"):
            read(model_type=kind, sliding_window=None)


def test_mimo_v2_flash_has_bases_and_key_heads_by_type_of_layers() -> None:
    sizes: Dict[str, Any] = {"hidden_size": 4096, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 192}
    slides = [layer % 6 != 0 for layer in range(48)]
    published = read(
        model_type="mimo_v2_flash", **sizes, rope_theta=5e6, swa_rope_theta=1e4, partial_rotary_factor=0.334,
        swa_num_key_value_heads=8, swa_head_dim=192, hybrid_layer_pattern=list(map(int, slides)),
    )  # fmt: skip
    found = [(p.name, p.layers, p.key_heads, p.rotary_dim, p.rope_theta) for p in published.reading.parts]
    assert found == [("full", 8, 4, 64, 5e6), ("sliding", 40, 8, 64, 1e4)]
    assert [part.key_heads for part in read(model_type="mimo_v2_flash").reading.parts] == [4, 8]


def test_laguna_has_heads_by_layer_and_a_number_beside_its_objects() -> None:
    rope = {**LAGUNA_ROPE, "original_max_position_embeddings": 4096}
    model = read(**LAGUNA, rope_parameters=rope, num_attention_heads_per_layer=[48, 64, 64])
    assert [(part.name, part.heads) for part in model.reading.parts] == [("full", 48), ("sliding", 64)]
    assert "original_max_position_embeddings of rope_parameters does not count" in model.notes


def test_names_of_custom_code_are_read_as_the_type_whose_code_it_is() -> None:
    sizes = {**SIZES, "num_key_value_heads": 2, "rope_theta": 5e5}
    for name, like in (("mimo", "qwen2"), ("hunyuan", "hunyuan_v1_moe"), ("exaone4_5_text", "exaone4")):
        models = [read(model_type=kind, **sizes) for kind in (name, like)]
        assert models[0].record()["cases"] == models[1].record()["cases"]


def test_a_model_of_pictures_is_read_by_its_tower() -> None:
    model = read(model_type="sam2")
    assert model.reading.parts[0].encoding == "learned"
    assert "mask_decoder_config" not in model.notes and "text alone" not in model.notes
    model = read(model_type="sam", vision_config={"hidden_size": 768}, mask_decoder_config={})
    assert "mask_decoder_config is not covered: this is the model of vision_config alone" in model.notes


def test_lists_with_a_number_for_each_layer_are_read_by_type_of_layers() -> None:
    full, sliding = read(**STEP).reading.parts
    assert (full.heads, full.rotary_dim, full.rope_theta, full.scaling, full.layers) == (64, 64, 5e6, "linear", 1)
    assert (sliding.heads, sliding.rotary_dim, sliding.rope_theta, sliding.layers) == (96, 128, 1e4, 3)
    assert sliding.scaling == "none"


def test_what_a_class_of_several_parts_takes_for_its_text_counts() -> None:
    part = part_of(model_type="voxtral", text_config={"num_attention_heads": 16})
    assert part.origins["rope_theta"].kind == "class"


@pytest.mark.parametrize("rule", ["yarn", "llama3"])
def test_two_original_lengths_must_agree(rule: str) -> None:
    rope: Dict[str, Any] = {"rope_type": rule, "factor": 4, "original_max_position_embeddings": 50}
    rope.update({"low_freq_factor": 1, "high_freq_factor": 4} if rule == "llama3" else {})
    file: Dict[str, Any] = {"model_type": "llama", **SIZES, "rope_scaling": rope}
    for length in (25, 100):
        with pytest.raises(Rejected, match=f"original_max_position_embeddings is {length}, and 50 in rope_scaling"):
            read(**file, original_max_position_embeddings=length)
    if rule == "yarn":
        del rope["original_max_position_embeddings"]
        with pytest.raises(Rejected, match="original_max_position_embeddings is 50 beside a rope_scaling without it"):
            read(**file, original_max_position_embeddings=50)
        rope["original_max_position_embeddings"] = 50
    assert part_of(**file, original_max_position_embeddings=50).original_max_position_embeddings == 50


def test_a_window_by_layer_changes_no_position() -> None:
    rope = {kind: {"rope_type": "default", "rope_theta": 1e4} for kind in ("full_attention", "sliding_attention")}
    file = {"layer_types": ["sliding_attention", "full_attention"], "rope_parameters": rope, "num_hidden_layers": 2}
    model = read(model_type="gemma3_text", **file, per_layer_config={"00": {"sliding_window": 8}})
    assert [part.layers for part in model.reading.parts] == [1, 1]


@pytest.mark.parametrize("kind", ["nomic_bert", "jina_embeddings_v3"])
def test_a_buffer_of_positions_is_no_encoding(kind: str) -> None:
    assert "positions of another kind" not in read(model_type=kind).notes


@pytest.mark.parametrize("left, right, wider", [(64, 8, "left"), (8, 64, "right"), (8, 8, "left")])
def test_clipped_distances_follow_the_wider_side(left: int, right: int, wider: str) -> None:
    sides = {"left_max_position_embeddings": left, "right_max_position_embeddings": right}
    part = part_of(model_type="wav2vec2-bert", position_embeddings_type="relative_key", **sides)
    assert part.max_distance == max(left, right)
    assert part.origins["max_distance"].formula == f"{wider}_max_position_embeddings"


def test_a_share_that_no_key_says_is_what_its_code_does() -> None:
    part = part_of(model_type="bamba", **SIZES, num_key_value_heads=2, attn_layer_indices=[1])
    assert part.origins["rotary_dim"].formula == "0.5 of head_dim (what its code does)"


@pytest.mark.parametrize("head_dim", [64, 192])
def test_the_channels_that_turn_count_for_a_latent_head(head_dim: int) -> None:
    model = read(model_type="glm_moe_dsa", hidden_size=6144, num_attention_heads=64, head_dim=head_dim)
    assert (model.reading.parts[0].head_dim, model.reading.parts[0].rotary_dim) == (64, 64)
    assert ("head_dim is 192, which does not count: qk_rope_head_dim does" in model.notes) == (head_dim == 192)


def test_alpha_of_hunyuan_is_a_larger_base() -> None:
    model = read(**small("hunyuan_v1_dense", rope_scaling=ALPHA))
    assert (model.reading.parts[0].scaling, model.reading.parts[0].factor) == ("ntk", 1000)
    assert "factor of rope_scaling does not change a rotation" in model.notes
    assert any({"numerics=hf_f32", "scaling=ntk", "factor=1000"} <= set(case.problem.split()) for case in model.cases)


@pytest.mark.parametrize(
    "members, sections, theta, layers",
    [
        ({"_class_name": "FluxTransformer2DModel", "num_attention_heads": 24, "attention_head_dim": 128,
          "num_layers": 19, "num_single_layers": 38}, (8, 28, 28), 1e4, 57),
        ({"_class_name": "QwenImageTransformer2DModel", "num_attention_heads": 24, "attention_head_dim": 128,
          "axes_dims_rope": [16, 56, 56], "num_layers": 60}, (8, 28, 28), 1e4, 60),
        ({"_class_name": "ZImageTransformer2DModel", "dim": 3840, "n_heads": 30, "n_kv_heads": 30, "n_layers": 30,
          "axes_dims": [32, 48, 48], "rope_theta": 256.0}, (16, 24, 24), 256.0, 30),
        ({"_class_name": "WanTransformer3DModel", "num_attention_heads": 40, "attention_head_dim": 128,
          "num_layers": 40}, (22, 21, 21), 1e4, 40),
        ({"_class_name": "WanModel", "model_type": "t2v", "dim": 1536, "num_heads": 12, "num_layers": 30},
         (22, 21, 21), 1e4, 30),
    ],
)  # fmt: skip
def test_patches_of_diffusers_turn_by_three_axes(members: File, sections: Any, theta: float, layers: int) -> None:
    model = read(**members)
    part = model.reading.parts[0]
    assert (part.mrope_section, part.mrope_layout, part.rope_theta) == (sections, "qwen2_vl_vision", theta)
    assert (part.encoding, part.head_dim, part.layers) == ("rope_interleaved", 128, layers)
    assert all("hf_f32" not in case.problem for case in model.cases)  # its angles are formed in f64
