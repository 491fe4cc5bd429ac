"""Reads configurations of diffusers' transformers, which rotate patches by their frame, row and column.

The channels of a head are split among the axes, and the frequencies restart with each axis. Sources:
huggingface/diffusers, models/transformers/transformer_flux.py, transformer_qwenimage.py, transformer_z_image.py and
transformer_wan.py.
"""

from typing import Any, Dict, List, NamedTuple, Tuple

from .config import Reading
from .members import Members, Default, Range, member_of, read_numbers
from .part import Part
from .scaling import check_frequencies

PICTURE = 64  # side in patches of the picture in cases: 1024 x 1024 pixels, 16 x 16 a patch


class Kind(NamedTuple):
    """Properties of a class: above all, how it splits the channels of a head among the axes."""

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


def _axes(members: Members, kind: Kind, part: Part) -> List[int]:
    """Returns the numbers of channels that rotate by frame, by row and by column."""
    if not kind.axes:
        sixths = part.head_dim // 6 * 2
        return [part.head_dim - 2 * sixths, sixths, sixths]
    stated = member_of(members.file, kind.axes)
    if stated.value is None:
        members.note(f"Not in the file, and taken as its class does: {kind.axes} {DEFAULT_AXES}")
        stated = stated._replace(value=DEFAULT_AXES)
    accepted = Range(2, part.head_dim, even=True)
    return [int(n) for n in read_numbers(members, stated, 3, " of channels, such as [16, 56, 56],", accepted)]


def read_diffusers(root: Dict[str, Any]) -> Reading:
    """Reads a configuration."""
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
    axes = _axes(members, kind, part)
    if sum(axes) != part.head_dim:
        members.reject(f"{kind.axes} adds up to {sum(axes)} channels: {part.head_dim}, those of a head, are needed")
    part.rotary_dim = part.dim = part.head_dim
    part.mrope_section, part.mrope_layout = tuple(n // 2 for n in axes), "qwen2_vl_vision"
    part.set_origin("encoding", "_class_name", 0)
    part.set_origin("rotary_dim", "all of head_dim")
    members.note(kind.note)
    check_frequencies(members, part)
    return Reading([part], members.notes, {"source": "the configuration given"}, name, "_class_name")
