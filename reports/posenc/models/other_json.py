"""Reads JSON files other than those of transformers: params.json of Meta's and Mistral's own releases, and diffusers.

model.py calls read_params() and read_diffusers() if is_params() or is_diffusers() recognises a file.

A params.json such as {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "rope_theta": 500000.0} has a
rotation of adjacent channels. Sources: meta-llama/llama-models, models/llama3/model.py and
models/llama4/model.py; mistralai/mistral-inference, rope.py; YaRN's keys as vllm-project/vllm reads them,
transformers_utils/configs/mistral.py.

Transformers of diffusers rotate patches by their frame, row and column. The channels of a head are split among the
axes, and the frequencies restart with each axis. Sources: huggingface/diffusers, models/transformers:
transformer_flux.py, transformer_qwenimage.py, transformer_z_image.py and transformer_wan.py.
"""

import math
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from .config import Reading
from .members import MOST, Members, Default, Range, member_of, read_numbers
from .part import Part
from .scaling import check_frequencies
from .uncovered import note_besides

# ---- params.json ----

# Keys of Meta's files, of Mistral's files, of both, keys without an effect on positions, and keys that are not covered.
META = (
    "multiple_of ffn_dim_multiplier use_scaled_rope rope_scaling_factor rope_high_freq_factor nope_layer_interval"
).split()
MISTRAL = "head_dim hidden_dim yarn llama_4_scaling qk_rope_head_dim".split()
BOTH = (
    "dim n_layers n_heads n_kv_heads rope_theta max_seq_len norm_eps vocab_size max_batch_size model_parallel_size"
).split()
HARMLESS = (
    "ffn_exp use_qk_norm quantization_args lora_args moe_args max_position_embeddings model_type moe lora "
    "sliding_window tied_embeddings q_lora_rank kv_lora_rank qk_nope_head_dim v_head_dim qk_head_dim quantization "
    "activation causal use_biases attention_chunk_size dtype llama_4_scaling "
    "attn_temperature_tuning floor_scale attn_scale"
).split()
UNCOVERED = (
    "vision_encoder multimodal vision_args vision_chunk_size vision_max_num_chunks vision_num_cross_attention_layers "
    "vision_model"
).split()
POSITION_WORDS = ("rope", "rotary", "theta", "yarn", "scal", "pos", "head", "alibi", "nope")


def is_params(root: Any) -> bool:
    """Returns whether it is a params.json. DistilBERT's config.json has dim and n_layers, too, and its own type."""
    if not isinstance(root, dict):
        return False
    named = root.get("model_type", "transformer")
    return "dim" in root and "n_layers" in root and "hidden_size" not in root and named in ("transformer", "mamba")


def _check_keys(members: Members, own: Sequence[str]) -> None:
    """Rejects an unknown key whose name concerns positions or heads; notes other unknown keys."""
    for key, value in members.file.items():
        if value is None:
            continue
        if key in UNCOVERED:
            members.note(f"{key} is not covered")
        elif key not in own and key not in BOTH and key not in HARMLESS:
            if any(word in key for word in POSITION_WORDS):
                members.reject(f"'{key[:60]}' is a key that this reader does not know: it may change the numbers")
            members.note(f"{key[:60]} is not read")


def _read_sizes(members: Members, part: Part) -> None:
    members.read_whole(part, "width", "dim")
    members.read_whole(part, "layers", "n_layers")
    members.read_whole(part, "heads", "n_heads", 1, 65536)
    members.read_divisor(part, "key_heads", "n_kv_heads", "heads", Default(part.heads, "heads"))


def _read_meta(members: Members, part: Part) -> None:
    """Reads a file of Meta: Llama 1 to 4."""
    _read_sizes(members, part)
    members.read_even(part, "head_dim", "", 2, MOST, Default(part.width // part.heads, "width / heads"))
    members.read_whole(part, "length", "max_seq_len", default=2048)
    members.read_number(part, "rope_theta", "rope_theta", 1e-6, 1e30, 10000.0)
    members.read_whole(part, "step", "nope_layer_interval", 0, 65536, 0)
    if part.step:
        unrotated = part.layers // part.step
        members.note(f"{unrotated} of {part.layers} layers do not rotate (nope_layer_interval)")
        part.layers -= part.layers // part.step
    part.set("rotary_dim", part.head_dim, "head_dim")
    if members.find_value("rope_theta") is None:
        members.note("rope_theta is missing: 10000 is taken, the constant of Llama 2's code")
    if members.find_value("max_seq_len") is None:
        members.note("max_seq_len is missing: 2048 positions are taken, the default of Meta's code")
    scaled = members.find_value("use_scaled_rope")
    if scaled is not None and not isinstance(scaled, bool):
        members.reject("use_scaled_rope is neither true nor false: one of them is needed")
    if scaled:
        _read_llama3_scaling(members, part)


def _read_llama3_scaling(members: Members, part: Part) -> None:
    """Reads the scaling of Llama 3.1 and later."""
    part.scaling = "llama3"
    part.set_origin("scaling", "use_scaled_rope")
    if members.find_value("rope_scaling_factor") is None:
        members.note("use_scaled_rope scales by 8, the constant of Meta's code (Hugging Face's files of Llama 3.2 say "
                     "32)")  # fmt: skip
    members.read_number(part, "factor", "rope_scaling_factor", 1, 1e6, 8.0)
    members.read_number(part, "high_freq_factor", "rope_high_freq_factor", 1e-6, 1e6, 4.0)
    part.set("low_freq_factor", 1.0)
    part.set("original_max_position_embeddings", 8192.0)


def _read_yarn(members: Members, part: Part) -> None:
    """Reads YaRN in a file of Mistral, whose alpha and beta are beta_slow and beta_fast here."""
    yarn: Dict[str, Any] = members.find_value("yarn")
    if yarn is None:
        return
    if not isinstance(yarn, dict):
        members.reject('yarn is no object: one such as {"factor": 16, "original_max_position_embeddings": 16384}, or '
                       "null, is needed")  # fmt: skip
    for key in yarn:
        if key not in ("alpha", "beta", "factor", "original_max_position_embeddings", "apply_scale"):
            members.reject(f"yarn has '{key[:60]}', which this reader does not know: it may change the numbers")
    scales = yarn.get("apply_scale", True)
    if not isinstance(scales, bool):
        members.reject("yarn.apply_scale is neither true nor false: one of them is needed")
    part.scaling = "yarn"
    members.read_number(part, "factor", "yarn.factor", 1, 1e6)
    original = "original_max_position_embeddings"
    members.read_number(part, original, f"yarn.{original}", 1, 1e9)
    members.read_number(part, "beta_fast", "yarn.beta", 1e-3, 1e6, 32.0)
    members.read_number(part, "beta_slow", "yarn.alpha", 1e-3, 1e6, 1.0)
    part.attention_factor = 0.1 * math.log(part.factor) + 1 if scales else 1.0
    part.set_origin("scaling", "yarn")
    part.set_origin("attention_factor", "0.1 ln(yarn.factor) + 1" if scales else "yarn.apply_scale")


def _read_mistral(members: Members, part: Part) -> None:
    """Reads a file of Mistral."""
    kind = members.find_value("model_type")
    if kind is not None and kind != "transformer":
        word = kind if isinstance(kind, str) else "(no text)"
        members.reject(f"model_type is '{word[:60]}': only 'transformer' has positions in attention")
    _read_sizes(members, part)
    members.read_even(part, "head_dim", "head_dim", 2, MOST)
    members.read_whole(part, "length", "max_position_embeddings max_seq_len", default=128000)
    members.read_number(part, "rope_theta", "rope_theta", 1e-6, 1e30)
    members.read_even(part, "latent", "qk_rope_head_dim", 0, MOST, 0)
    part.set("rotary_dim", part.head_dim, "head_dim")
    if members.find_value("max_position_embeddings max_seq_len") is None:
        members.note("max_position_embeddings is missing: 128000 positions are taken, as vLLM does")
    if part.latent:
        part.head_dim = part.rotary_dim = part.latent
        part.key_heads = 1
        part.set_origin("head_dim", "qk_rope_head_dim")
        part.set_origin("rotary_dim", "qk_rope_head_dim")
        part.set_origin("key_heads", "one for all, as qk_rope_head_dim is there")
    _read_yarn(members, part)


def read_params(root: Dict[str, Any]) -> Reading:
    """Reads a params.json."""
    members = Members(root=root, file=root)
    stated = [key for key, value in root.items() if value is not None]
    meta = next((key for key in stated if key in META), None)
    mistral = next((key for key in stated if key in MISTRAL), None)
    if meta and mistral:
        members.reject(f"it has {meta}, as Meta's params.json has, and {mistral}, as Mistral's has: one of them is "
                       "needed")  # fmt: skip
    if not meta and not mistral:
        members.reject(f"it is like a params.json, but has none of the keys by which Meta's ({' '.join(META)}) and "
                       f"Mistral's ({' '.join(MISTRAL)}) are told apart")  # fmt: skip
    part = Part(encoding="rope_interleaved")
    part.set_origin("encoding", meta or mistral or "", 0)
    members.note(f"As {'Meta' if meta else 'Mistral'}'s own code reads it (params.json)")
    _check_keys(members, META if meta else MISTRAL)
    if meta:
        _read_meta(members, part)
    else:
        _read_mistral(members, part)
    part.dim = part.rotary_dim
    note_besides(members, "")
    return Reading([part], members.notes, {"source": "the params.json given"}, "params.json", meta or mistral or "")


# ---- diffusers ----

PICTURE = 64  # side in patches of the picture in cases: 1024 x 1024 pixels, 16 x 16 a patch


class Kind(NamedTuple):
    """Properties of a class of diffusers: above all, how it splits the channels of a head among the axes."""

    axes: str  # member with the channels of each axis; "": two sixths each for rows and columns, the rest for frames
    layers: Tuple[str, ...]  # members whose sum is the number of layers
    note: str
    theta: float = 10000.0


MIDDLE = "It counts rows and columns from the middle of a picture, which is not covered: here they count from 0"
REFINERS = "The layers that refine text and noise are not counted"
FLUX = Kind("axes_dims_rope", ("num_layers", "num_single_layers"), "Its first axis is 0 for the patches of a picture")
WAN = Kind("", ("num_layers",), "Its positions are the frame, the row and the column of a patch")
KINDS = {
    "FluxTransformer2DModel": FLUX, "ChromaTransformer2DModel": FLUX,
    "QwenImageTransformer2DModel": Kind("axes_dims_rope", ("num_layers",), MIDDLE),
    "ZImageTransformer2DModel": Kind("axes_dims", ("n_layers",), REFINERS, 256.0),
    "WanTransformer3DModel": WAN, "WanModel": WAN, "VaceWanModel": WAN,
}  # fmt: skip
DEFAULT_AXES = [16, 56, 56]  # channels by frame, row and column: the default of Flux and Qwen-Image
REJECTED = {
    "SD3Transformer2DModel": "it adds a table of sines of rows and columns to patches",
    "PixArtTransformer2DModel": "it adds a table of sines of rows and columns to patches",
    "SanaTransformer2DModel": "its attention has no positions",
    "AuraFlowTransformer2DModel": "it adds a part of a learned table that depends on the size of the picture",
}  # fmt: skip


def is_diffusers(root: Any) -> bool:
    """Returns whether it is a configuration of diffusers."""
    return isinstance(root, dict) and isinstance(root.get("_class_name"), str)


def _read_axes(members: Members, kind: Kind, part: Part) -> List[int]:
    """Returns the numbers of channels that rotate by frame, by row and by column."""
    if not kind.axes:
        sixths = part.head_dim // 6 * 2
        return [part.head_dim - 2 * sixths, sixths, sixths]
    stated = member_of(members.file, kind.axes)
    if stated.value is None:
        members.note(f"Not in the file, and taken as its class does: {kind.axes} {DEFAULT_AXES}")
        stated = stated._replace(value=DEFAULT_AXES)
    accepted = Range(2, part.head_dim, even=True)
    channels = read_numbers(members, stated, 3, " of channels, such as [16, 56, 56],", accepted)
    return list(map(int, channels))


def read_diffusers(root: Dict[str, Any]) -> Reading:
    """Reads a configuration of diffusers."""
    members = Members(root=root, file=root)
    name = root["_class_name"]
    kind = KINDS.get(name)
    if kind is None:
        why = REJECTED.get(name, f"known of diffusers are {', '.join(KINDS)}")
        members.reject(f"_class_name '{name[:60]}' is not read: {why}")
    part = Part(
        encoding="rope_interleaved", tower=True, decodes=False, in_f64=True, axes=3, picture=PICTURE, length=PICTURE
    )
    members.read_whole(part, "heads", "num_attention_heads num_heads n_heads", 1, 65536)
    members.read_whole(part, "width", "dim", default=0)
    width = Default(part.width // part.heads, "width / heads")
    members.read_whole(part, "head_dim", "attention_head_dim", default=width)
    members.read_divisor(part, "key_heads", "n_kv_heads", "heads", Default(part.heads, "heads"))
    members.read_number(part, "rope_theta", "rope_theta", 1e-6, 1e30, kind.theta)
    layers = 0
    for name_of_layers in kind.layers:
        members.read_whole(part, "layers", name_of_layers, 0, 65536, 0)
        layers += part.layers
    part.set("layers", layers)
    part.set_origin("layers", " + ".join(kind.layers))
    axes = _read_axes(members, kind, part)
    if sum(axes) != part.head_dim:
        members.reject(f"{kind.axes} adds up to {sum(axes)} channels: {part.head_dim}, those of a head, are needed")
    part.rotary_dim = part.dim = part.head_dim
    part.mrope_section, part.mrope_layout = tuple(channels // 2 for channels in axes), "qwen2_vl_vision"
    part.set_origin("encoding", "_class_name", 0)
    part.set_origin("rotary_dim", "all of head_dim")
    members.note(kind.note)
    check_frequencies(members, part)
    return Reading([part], members.notes, {"source": "the configuration given"}, name, "_class_name")
