"""Configurations: keys about positions, layers, heads, bases and scalings, and what is rejected."""

import io
import json
from typing import Any, Dict, List, Tuple

import pytest

from posenc.models.members import Refused
from posenc.models.model import Model, read_file
from posenc.models.part import Part

# ---- keys that speak of positions ----

SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 100}
STRANGE = {
    "rope_ratio": 50, "rotary_scaling_factor": 2, "use_alibi": True, "rotary_emb_scale_base": 512, "xpos_scale": 512,
    "position_encoding_2d": True, "num_attention_heads_per_layer": [4, 2], "swa_rope_theta": 1e6,
    "compress_rope_base": 9,
    "rope_mode": "3d",
}  # fmt: skip


def read(**members: Any) -> Model:
    """Reads a configuration with these members."""
    return read_file(io.BytesIO(json.dumps(members).encode()), "made")


@pytest.mark.parametrize("kind", ["llama", "bert", "gpt_oss", "bloom", "opt"])
@pytest.mark.parametrize("key", STRANGE)
def test_a_key_that_speaks_of_positions_refuses_the_file(key: str, kind: str) -> None:
    sizes = {**SIZES, "head_dim": 16, "num_key_value_heads": 2} if kind == "gpt_oss" else SIZES
    assert not any(key in note for note in read(model_type=kind, **sizes).reading.notes)
    with pytest.raises(Refused, match=f"^{key} is "):
        read(model_type=kind, **sizes, **{key: STRANGE[key]})


@pytest.mark.parametrize("value", [None, False, [], ""])
def test_a_value_that_changes_nothing_is_noted(value: Any) -> None:
    assert any("rope_ratio" in note for note in read(model_type="llama", **SIZES, rope_ratio=value).reading.notes)


def test_a_neutral_value_is_noted_and_another_refused() -> None:
    assert "rope_ratio is 1, which changes nothing" in read(model_type="llama", **SIZES, rope_ratio=1).notes
    with pytest.raises(Refused, match="rope_ratio is 2: a key about positions"):
        read(model_type="llama", **SIZES, rope_ratio=2)


@pytest.mark.parametrize(
    "key, value", [("rotary_emb_fraction", 0), ("use_rope", False), ("rotary", 1), ("rope_ratio", 0)]
)
def test_what_may_switch_a_rotation_off_is_not_neutral(key: str, value: Any) -> None:
    with pytest.raises(Refused, match=f"^{key} is "):
        read(model_type="llama", **SIZES, **{key: value})


def test_members_of_a_rule_without_its_name_are_refused() -> None:
    for member in ("beta_fast", "long_factor", "max_position_embeddings"):
        with pytest.raises(Refused, match="rope_scaling has no rope_type"):
            read(model_type="llama", **SIZES, rope_scaling={member: 32})
    scaling = {"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 50}
    notes = read(model_type="llama", **SIZES, rope_scaling=scaling).notes
    assert "max_position_embeddings of rope_scaling does not change a rotation of type dynamic" in notes


def test_a_key_of_the_whole_may_say_what_its_text_says() -> None:
    text = {"model_type": "llama", **SIZES, "rope_theta": 5e5}
    assert read(model_type="llava", text_config=text, rope_theta=5e5).reading.parts[0].rope_theta == 5e5
    with pytest.raises(Refused, match="rope_theta is 10000.0: a key about positions"):
        read(model_type="llava", text_config=text, rope_theta=1e4)


# ---- what the readers in C got wrong ----


def part_of(**members: Any) -> Part:
    """Returns the first part of a configuration."""
    return read(**members).reading.parts[0]


def test_no_key_heads_are_as_many_as_heads_whatever_the_class_has() -> None:
    assert part_of(model_type="csm", **SIZES, num_key_value_heads=None, head_dim=16).key_heads == 4
    assert part_of(model_type="qwen3_vl_text", **SIZES, num_key_value_heads=None).key_heads == 4


def test_an_empty_object_keeps_the_scaling_of_the_class() -> None:
    sizes = {**SIZES, "num_key_value_heads": 2}
    assert part_of(model_type="gpt_oss", **sizes, rope_scaling={}).scaling == "yarn"
    assert part_of(model_type="gpt_oss", **sizes, rope_scaling={"rope_type": "default"}).scaling == "none"


@pytest.mark.parametrize("kind", ["llama", "nanochat", "esmc"])
def test_one_rotation_is_not_read_as_two(kind: str) -> None:
    rope = {"full_attention": {"rope_theta": 1e4}, "sliding_attention": {"rope_theta": 1e6}}
    with pytest.raises(Refused, match="know none: one for all is needed"):
        read(model_type=kind, **SIZES, rope_parameters=rope)


@pytest.mark.parametrize("key, value", [("no_rope_layers", [1, 0]), ("no_rope_layer_interval", 2)])
def test_layers_rest_for_types_alone_whose_classes_read_it(key: str, value: Any) -> None:
    assert part_of(model_type="smollm3", **SIZES, num_key_value_heads=2, **{key: value}).layers == 1
    with pytest.raises(Refused, match=f"^{key} is "):
        read(model_type="llama", **SIZES, **{key: value})


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
    with pytest.raises(Refused, match="none of its 2 layers rotates"):
        read(model_type=kind, layer_types=listed[2:] * 2, num_hidden_layers=2)


def test_layers_without_a_window_rotate_where_their_class_says_so() -> None:
    listed = ["full_attention"] * 3
    for kind in ("exaone4", "exaone_moe", "kolibri1"):
        assert part_of(model_type=kind, layer_types=listed, num_hidden_layers=3, sliding_window=None).layers == 3
    for kind in ("cohere2", "cohere2_moe", "flint"):
        with pytest.raises(Refused, match="sliding_window is null"):
            read(model_type=kind, sliding_window=None)


SAVED = {  # as the class saves its layers
    "layer_types": ["full_attention"] * 9 + ["sliding_attention"] * 31,
    "mlp_layer_types": ["dense"] * 2 + ["sparse"] * 38,
}  # fmt: skip


@pytest.mark.parametrize(
    "keys, rotating",
    [({}, 30), ({"first_k_dense_replace": 1}, 31), ({"first_k_dense_replace": 2}, 31),
     ({"sliding_window_pattern": 2}, 20), (SAVED, 33),
     ({"first_k_dense_replace": 2, "prefix_dense_sliding_window_pattern": 2}, 30)],
)  # fmt: skip
def test_dense_layers_of_cohere2_moe_have_a_pattern_of_their_own(keys: Dict[str, Any], rotating: int) -> None:
    assert part_of(model_type="cohere2_moe", **keys).layers == rotating


@pytest.mark.parametrize("pattern", [0, -4, 2.5, True, "LX", ""])
def test_a_pattern_of_layers_is_a_whole_number(pattern: Any) -> None:
    with pytest.raises(Refused, match="^sliding_window_pattern is "):
        read(model_type="exaone_moe", sliding_window_pattern=pattern)


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


LAGUNA: Dict[str, Any] = {
    "model_type": "laguna", "hidden_size": 2048, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
}  # fmt: skip
LAGUNA_ROPE: Dict[str, Any] = {
    "full_attention": {"rope_type": "yarn", "rope_theta": 5e5, "factor": 64, "original_max_position_embeddings": 4096},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}  # fmt: skip


def test_laguna_has_heads_by_layer_and_a_number_beside_its_objects() -> None:
    rope = {**LAGUNA_ROPE, "original_max_position_embeddings": 4096}
    model = read(**LAGUNA, rope_parameters=rope, num_attention_heads_per_layer=[48, 64, 64])
    assert [(part.name, part.heads) for part in model.reading.parts] == [("full", 48), ("sliding", 64)]
    assert "original_max_position_embeddings of rope_parameters does not count" in model.notes
    with pytest.raises(Refused, match="original_max_position_embeddings of rope_parameters stands beside objects"):
        read(**LAGUNA, rope_parameters={**LAGUNA_ROPE, "original_max_position_embeddings": 8192})
    with pytest.raises(Refused, match="has other numbers for layers of one type"):
        read(**LAGUNA, rope_parameters=LAGUNA_ROPE, num_attention_heads_per_layer=[48, 64, 32])


def test_layers_that_attend_are_counted() -> None:
    model = read(
        model_type="bamba", **{**SIZES, "num_hidden_layers": 32}, num_key_value_heads=2, attn_layer_indices=[9, 18]
    )
    assert model.reading.parts[0].layers == 2 and "2 of 32 layers attend (attn_layer_indices)" in model.notes


def test_layers_that_mix_in_another_way_are_not_counted() -> None:
    mixed = {"layer_types": ["mamba", "attention", "mamba", "attention"], "position_embedding_type": "rope"}
    model = read(model_type="granitemoehybrid", **{**SIZES, "num_hidden_layers": 4}, **mixed)
    assert model.reading.parts[0].layers == 2 and "2 of 4 layers attend (layer_types)" in model.notes
    assert part_of(model_type="bailing_hybrid").layers == 42 // 6


def test_zamba2_rotates_where_its_file_says_so() -> None:
    sizes = {"hidden_size": 2048, "num_attention_heads": 32, "num_hidden_layers": 38, "kv_channels": 64}
    blocks = (["mamba"] * 5 + ["hybrid"]) * 6 + ["mamba"] * 2
    part = part_of(model_type="zamba2", **sizes, attention_head_dim=128, layers_block_type=blocks, use_mem_rope=True)
    assert (part.heads, part.head_dim, part.rotary_dim, part.layers) == (32, 128, 128, 6)
    with pytest.raises(Refused, match="use_mem_rope is not true: none of its layers rotates"):
        read(model_type="zamba2", **sizes)
    assert part_of(model_type="zamba2", **sizes, use_mem_rope=True, use_long_context=True).length == 16384


def test_recurrent_gemma_has_no_longest_position() -> None:
    model = read(model_type="recurrent_gemma", num_hidden_layers=26, num_key_value_heads=1)
    part = model.reading.parts[0]
    assert (part.layers, part.key_heads, part.rotary_dim, part.length) == (8, 1, 128, 2048)
    assert (
        "no longest position: shapes are those of 2048 positions.  8 of 26 layers attend (block_types)" in model.notes
    )


CHATGLM: Dict[str, Any] = {
    "model_type": "chatglm", "hidden_size": 4096, "num_attention_heads": 32, "num_layers": 28, "kv_channels": 128,
    "seq_length": 8192, "multi_query_attention": True, "multi_query_group_num": 2,
}  # fmt: skip


def test_chatglm_turns_half_of_each_head() -> None:
    part = part_of(**CHATGLM, original_rope=True, rotary_percent=0.5)
    assert (part.encoding, part.heads, part.key_heads, part.head_dim) == ("rope_interleaved", 32, 2, 128)
    assert (part.rotary_dim, part.dim, part.rope_theta, part.layers) == (64, 64, 10000, 28)
    assert part_of(**{**CHATGLM, "multi_query_attention": False}).key_heads == 32
    stranger: List[Dict[str, Any]] = [{"rope_ratio": 50}, {"position_encoding_2d": True}, {"rotary_percent": 0.25}]
    for strange in stranger:
        with pytest.raises(Refused, match=next(iter(strange))):
            read(**CHATGLM, **strange)


def test_names_of_custom_code_are_read_as_the_type_whose_code_it_is() -> None:
    sizes = {**SIZES, "num_key_value_heads": 2, "rope_theta": 5e5}
    for name, like in (("mimo", "qwen2"), ("hunyuan", "hunyuan_v1_moe"), ("exaone4_5_text", "exaone4")):
        models = [read(model_type=kind, **sizes) for kind in (name, like)]
        assert models[0].record()["cases"] == models[1].record()["cases"]
    with pytest.raises(Refused, match="num_attention_heads is missing"):
        read(model_type="bailing_moe", hidden_size=64, max_position_embeddings=100)  # no class to take it from


def test_a_model_of_pictures_is_read_by_its_tower() -> None:
    model = read(model_type="sam2")
    assert model.reading.parts[0].encoding == "learned"
    assert "mask_decoder_config" not in model.notes and "text alone" not in model.notes
    model = read(model_type="sam", vision_config={"hidden_size": 768}, mask_decoder_config={})
    assert "mask_decoder_config is not covered: this is the model of vision_config alone" in model.notes


def test_a_share_of_another_head_that_says_the_same_is_accepted() -> None:
    sizes = {"model_type": "bailing_hybrid", "head_dim": 128, "qk_rope_head_dim": 64, "rotary_dim": 64}
    assert part_of(**sizes, partial_rotary_factor=0.5).rotary_dim == 64
    with pytest.raises(Refused, match="partial_rotary_factor is 0.25"):
        read(**sizes, partial_rotary_factor=0.25)


def test_bloom_needs_no_longest_position() -> None:
    assert part_of(model_type="bloom", n_embed=64, n_head=4, n_layer=2).length == 2048
    assert part_of(model_type="bloom", n_embed=64, n_head=4, n_layer=2, seq_length=4096).length == 4096


def test_a_member_of_the_whole_that_says_what_its_part_has_is_accepted() -> None:
    text = {"model_type": "llama", "max_position_embeddings": 4096}
    assert part_of(model_type="llava", text_config=text, max_position_embeddings=4096).length == 4096
    with pytest.raises(Refused, match="max_position_embeddings is 8192"):
        read(model_type="llava", text_config=text, max_position_embeddings=8192)


def test_a_member_beside_that_of_the_text_is_noted_where_the_class_may_have_it_there() -> None:
    text = {"model_type": "persimmon", "rope_theta": 25000, "partial_rotary_factor": 0.25}
    model = read(model_type="fuyu", text_config=text, partial_rotary_factor=0.5)
    assert "partial_rotary_factor is 0.5 beside that of the text, which counts" in model.notes
    assert model.reading.parts[0].rotary_dim == 16
    with pytest.raises(Refused, match="rope_theta is missing"):
        read(model_type="fuyu", text_config={"model_type": "persimmon"}, rope_theta=25000)


def test_layers_of_bamba_attend_where_a_list_says_so() -> None:
    with pytest.raises(Refused, match="attn_layer_indices is not there: then none of its layers attends"):
        read(model_type="bamba", **SIZES)


STEP: Dict[str, Any] = {
    "model_type": "step3p5", "num_hidden_layers": 4, "num_nextn_predict_layers": 1, "num_attention_heads": 64,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
    "rope_theta": [5e6, 1e4, 1e4, 1e4, 5e6], "partial_rotary_factors": [0.5, 1.0, 1.0, 1.0, 0.5],
    "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 96},
}  # fmt: skip


def test_lists_with_a_number_for_each_layer_are_read_by_type_of_layers() -> None:
    full, sliding = read(**STEP).reading.parts
    assert (full.heads, full.rotary_dim, full.rope_theta, full.scaling, full.layers) == (64, 64, 5e6, "linear", 1)
    assert (sliding.heads, sliding.rotary_dim, sliding.rope_theta, sliding.layers) == (96, 128, 1e4, 3)
    assert sliding.scaling == "none"


def test_the_part_that_a_class_has_other_sizes_for_is_asked_for() -> None:
    with pytest.raises(Refused, match="text_config is not there, and the class of mistral3 has other sizes for it"):
        read(model_type="mistral3")
    assert part_of(model_type="mistral3", text_config={"model_type": "mistral"}).key_heads == 8


def test_what_a_class_of_several_parts_takes_for_its_text_counts() -> None:
    part = part_of(model_type="voxtral", text_config={"num_attention_heads": 16})
    assert (part.heads, part.key_heads, part.head_dim, part.rope_theta) == (16, 8, 128, 1e8)
    assert part.origins["rope_theta"].kind == "class"


def test_what_a_class_saves_and_never_uses_is_read_as_if_it_were_not_there() -> None:
    sizes = {"model_type": "minimax_m3_vl_text", "head_dim": 128}
    assert part_of(**sizes, rotary_dim=64).rotary_dim == part_of(**sizes).rotary_dim
    assert "rotary_dim is 64, which changes nothing: it is not read" in read(**sizes, rotary_dim=64).notes
    with pytest.raises(Refused, match="rotary_dim is 32"):
        read(**sizes, rotary_dim=32)


LONG: Dict[str, Any] = {
    "type": "longrope",
    "short_factor": [1.0] * 8,
    "long_factor": [2.0] * 8,
    "original_max_position_embeddings": 50,
}


def test_one_attention_factor_of_phi_3_5_moe_is_read() -> None:
    sizes: Dict[str, Any] = {
        "model_type": "phimoe",
        **SIZES,
        "num_key_value_heads": 4,
        "original_max_position_embeddings": 50,
    }
    assert part_of(**sizes, rope_scaling={**LONG, "short_mscale": 1.25, "long_mscale": 1.25}).attention_factor == 1.25
    with pytest.raises(Refused, match="short_mscale is 1.25 and long_mscale 1.5: one attention factor"):
        read(**sizes, rope_scaling={**LONG, "short_mscale": 1.25, "long_mscale": 1.5})
    with pytest.raises(Refused, match="short_mscale is 1.25, which the classes of this model_type do not read"):
        read(**{**sizes, "model_type": "phi3"}, rope_scaling={**LONG, "short_mscale": 1.25, "long_mscale": 1.25})


def test_a_word_for_an_encoding_that_no_class_reads_is_noted_unless_it_names_one() -> None:
    assert "position_embedding_type is not read" in read(model_type="bert", position_embedding_type="sans_pos").notes
    with pytest.raises(Refused, match="position_embedding_type 'relative_key'"):
        read(model_type="bert", position_embedding_type="relative_key")


def test_a_group_with_more_layers_than_the_model_has_is_rejected() -> None:
    with pytest.raises(Refused, match="none of its 4 layers attends: one in 6 would"):
        read(model_type="bailing_hybrid", num_hidden_layers=4)


@pytest.mark.parametrize("count", [3, 5])
def test_a_type_for_each_layer_is_needed(count: int) -> None:
    with pytest.raises(Refused, match=f"layer_types has {count} items: one for each of 4 layers is needed"):
        read(**{"model_type": "qwen3", **SIZES, "num_hidden_layers": 4}, layer_types=["full_attention"] * count)


@pytest.mark.parametrize("rule", ["yarn", "llama3"])
def test_two_original_lengths_must_agree(rule: str) -> None:
    rope: Dict[str, Any] = {"rope_type": rule, "factor": 4}
    if rule == "llama3":
        rope = {**rope, "low_freq_factor": 1, "high_freq_factor": 4}
    rope["original_max_position_embeddings"] = 50
    file: Dict[str, Any] = {"model_type": "llama", **SIZES, "rope_scaling": rope}
    for length in (25, 100):
        with pytest.raises(Refused, match=f"original_max_position_embeddings is {length}, and 50 in rope_scaling"):
            read(**file, original_max_position_embeddings=length)
    if rule == "yarn":
        del rope["original_max_position_embeddings"]
        with pytest.raises(Refused, match="original_max_position_embeddings is 50 beside a rope_scaling without it"):
            read(**file, original_max_position_embeddings=50)
        rope["original_max_position_embeddings"] = 50
    assert part_of(**file, original_max_position_embeddings=50).original_max_position_embeddings == 50


@pytest.mark.parametrize("name", ["cohere", "falcon_h1", "persimmon", "kyutai_speech_to_text", "olmo3"])
def test_a_default_that_releases_differ_in_is_asked_for(name: str) -> None:
    with pytest.raises(Refused, match="rope_theta is missing, and its default is .* or .*, by the release of the lib"):
        read(model_type=name)
    assert part_of(model_type=name, rope_theta=500000).rope_theta == 500000


@pytest.mark.parametrize("name", ["layer_types", "rope_theta", "partial_rotary_factors"])
def test_lists_by_layer_that_are_too_short_are_rejected(name: str) -> None:
    with pytest.raises(Refused, match=f"{name} has 1 items: one for each of 4 layers is needed"):
        read(**{**STEP, name: STEP[name][:1]})
    with pytest.raises(Refused, match="attention_other_setting is no object"):
        read(**{**STEP, "attention_other_setting": 5})


def test_a_list_in_which_no_layer_attends_is_rejected() -> None:
    with pytest.raises(Refused, match="none of its 4 layers attends .block_types."):
        read(model_type="recurrent_gemma", num_hidden_layers=4, block_types=["recurrent"])


def test_layers_that_a_list_leaves_out_of_scaling_are_not_passed_over() -> None:
    sizes = {"model_type": "molmo2_text", "num_hidden_layers": 3}
    assert part_of(**sizes, rope_scaling_layers=[0, 1, 2]).scaling == "none"
    for said in ([0, 1], 3, True):
        with pytest.raises(Refused, match="rope_scaling_layers is .*: a key about positions that is not read"):
            read(**sizes, rope_scaling_layers=said)


def test_a_window_by_layer_changes_no_position() -> None:
    rope = {kind: {"rope_type": "default", "rope_theta": 1e4} for kind in ("full_attention", "sliding_attention")}
    file = {"layer_types": ["sliding_attention", "full_attention"], "rope_parameters": rope, "num_hidden_layers": 2}
    model = read(model_type="gemma3_text", **file, per_layer_config={"00": {"sliding_window": 8}})
    assert [part.layers for part in model.reading.parts] == [1, 1]


def test_t5gemma_rotates_as_gemma_2_does() -> None:
    decoder = {"model_type": "t5_gemma_module", "num_attention_heads": 16, "head_dim": 128, "num_hidden_layers": 42}
    part = part_of(model_type="t5gemma", decoder=decoder, encoder={"model_type": "t5_gemma_module"})
    assert (part.encoding, part.heads, part.key_heads, part.layers) == ("rope_half", 16, 4, 42)


@pytest.mark.parametrize("kind", ["nomic_bert", "jina_embeddings_v3"])
def test_a_buffer_of_positions_is_no_encoding(kind: str) -> None:
    assert "positions of another kind" not in read(model_type=kind).notes


def test_a_share_that_no_key_says_is_what_its_code_does() -> None:
    part = part_of(model_type="bamba", **SIZES, num_key_value_heads=2, attn_layer_indices=[1])
    assert part.origins["rotary_dim"].formula == "0.5 of head_dim (what its code does)"


@pytest.mark.parametrize("head_dim", [64, 192])
def test_the_channels_that_turn_count_for_a_latent_head(head_dim: int) -> None:
    model = read(model_type="glm_moe_dsa", hidden_size=6144, num_attention_heads=64, head_dim=head_dim)
    assert (model.reading.parts[0].head_dim, model.reading.parts[0].rotary_dim) == (64, 64)
    assert ("head_dim is 192, which does not count: qk_rope_head_dim does" in model.notes) == (head_dim == 192)


def test_alpha_of_hunyuan_is_a_larger_base() -> None:
    scaling = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "mscale": 1.0}
    model = read(model_type="hunyuan_v1_dense", **SIZES, rope_scaling=scaling)
    assert (model.reading.parts[0].scaling, model.reading.parts[0].factor) == ("ntk", 1000)
    assert "factor of rope_scaling does not change a rotation" in model.notes
    assert any({"profile=hf_f32", "scaling=ntk", "factor=1000"} <= set(case.problem.split()) for case in model.cases)
    with pytest.raises(Refused, match="has 'alpha', which this loader does not know"):
        read(model_type="llama", **SIZES, rope_scaling=scaling)


# ---- diffusers ----


@pytest.mark.parametrize(
    "said, sections, theta, layers",
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
def test_patches_of_diffusers_turn_by_three_axes(
    said: Dict[str, Any], sections: Tuple[int, ...], theta: float, layers: int
) -> None:
    model = read(**said)
    part = model.reading.parts[0]
    assert (part.mrope_section, part.mrope_layout, part.rope_theta) == (sections, "restarted", theta)
    assert (part.encoding, part.head_dim, part.layers) == ("rope_interleaved", 128, layers)
    assert all("hf_f32" not in case.problem for case in model.cases)  # its angles are formed in f64


def test_other_classes_of_diffusers_are_refused_for_what_they_do() -> None:
    with pytest.raises(Refused, match="SD3Transformer2DModel.* adds a table of sines of rows and columns"):
        read(_class_name="SD3Transformer2DModel", num_attention_heads=24)
    with pytest.raises(Refused, match="axes_dims_rope adds up to 96 channels: 128"):
        read(
            _class_name="FluxTransformer2DModel",
            num_attention_heads=2,
            attention_head_dim=128,
            axes_dims_rope=[16, 40, 40],
        )
