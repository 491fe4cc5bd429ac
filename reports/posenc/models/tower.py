"""Reads vision towers that rotate: each pair of a head rotates by the row, the column or the time of a patch.

config.py calls read_tower() for a file of a tower alone, and for the vision_config of a model of several parts. Heads
of 80 channels have 40 pairs: in Qwen2-VL the first 20 rotate by the row, the others by the column.
"""

import math
from typing import Any

from .embeddings import SIDE
from .layers import count_attending_by_step
from .members import Members, Default
from .part import Part
from .rotation import find_rope
from .scaling import PICTURE, check_frequencies

EXPERTS = ("num_local_experts", "num_experts_per_tok")  # members that do not concern positions


def _check_rule(members: Members) -> None:
    """Rejects scaling of frequencies, which no known tower has."""
    for key, value in (members.rope or {}).items():
        if key != "rope_theta" and not (key in ("rope_type", "type") and value in ("axial", "default")):
            members.reject(f"{key[:40]} of {members.rope_name} is {value!r:.40}: of a tower only rope_theta, and the "
                           "rope_type axial or default, are known")  # fmt: skip


def _check_layers(members: Members) -> None:
    """Rejects members of single layers, unless they concern experts."""
    layers: Any = members.file.get("per_layer_config")
    for layer, own in layers.items() if isinstance(layers, dict) else ():
        for key in own if isinstance(own, dict) else ():
            if key not in EXPERTS:
                members.reject(f"per_layer_config has '{key[:40]}' for layer {layer[:10]}: of a tower this is not "
                               "known")  # fmt: skip


def _read_heads(members: Members, part: Part) -> None:
    """Reads heads, their width, and the layers."""
    flags = members.flags
    if "hidden_size" in flags:
        members.read_whole(part, "width", "hidden_size embed_dim")
    if "embed_dim" in flags:
        members.read_whole(part, "width", "embed_dim")
    members.read_whole(part, "heads", "num_heads num_attention_heads", 1, 65536)
    members.read_divisor(part, "key_heads", "num_key_value_heads", "heads", Default(part.heads, "heads"))
    width = Default(max(part.width // part.heads, 1), "width / heads")
    members.read_whole(part, "head_dim", "head_dim", default=width)
    if "whole_head" in flags:
        members.read_whole(part, "heads", "num_attention_heads", 8, 8)
        part.set("heads", 1)
        part.set("key_heads", 1)
        part.set("head_dim", part.width, "width")
        members.note("Its code turns the whole width of a patch, before it is cut into heads: one head as wide is what "
                     "is checked and timed here.  Patches are those that its aggregation leaves")  # fmt: skip
    if "free_width" in flags:
        part.set("width", part.heads * part.head_dim, "heads * head_dim")
    if part.heads * part.head_dim != part.width:
        members.reject(f"{part.heads} heads of {part.head_dim} are not as wide as the tower, {part.width}: they must "
                       "be")  # fmt: skip
    members.read_whole(part, "layers", "depth num_hidden_layers", 0, 65536, 0)
    if "whole_head" in flags:
        members.read_whole(part, "layers", "num_attention_layers", 0, 65536)
    if "hybrid" in flags:
        count_attending_by_step(members, part)


def _share_pairs(members: Members, part: Part) -> None:
    """Splits the pairs of a head among the axes."""
    flags = members.flags
    part.axes = 3 if "three_axes" in flags else 2
    step = 2 * part.axes
    part.rotary_dim = part.head_dim // step * step
    rest = f", rounded down to a multiple of {step}" if part.rotary_dim < part.head_dim else ""
    part.set_origin("rotary_dim", f"all of head_dim{rest}")
    if "halves" in flags:
        part.halves = True
        part.rotary_dim //= 2
        part.set_origin("rotary_dim", "half of head_dim")
        members.note("Each half of a head turns as a head of its own: two calls, each of which leaves the other half "
                     "as it is")  # fmt: skip
    if part.axes == 2 and part.head_dim % 4:
        members.reject(f"its heads are of {part.head_dim} channels: a multiple of 4 is needed, for as many pairs of "
                       "rows as of columns")  # fmt: skip
    if part.rotary_dim == 0:
        members.reject(f"its heads are of {part.head_dim} channels: {part.axes} pairs are needed")
    if "column_first" in flags:
        part.column_first = True
        members.note("Its positions are the column of a patch and its row, in this order")
    if "three_axes" in flags:
        members.note("Its positions are the time, the row and the column of a patch")
    if "fractions" in flags:
        part.fractions = True
        members.note("Patches are at the middles of n parts of a picture from -1 to 1, times 2 pi: at 2 i + 1 - n for "
                     "patch i of n, where frequencies are times 2 pi / n.  Tables of rows and of columns are repeated "
                     "for each patch by its code, side by side; its class token and registers do not turn")  # fmt: skip
    part.dealt, part.alternating = "dealt" in flags, "alternating" in flags


def _read_picture(members: Members, part: Part) -> None:
    """Counts the patches along a side: by image_size, or else by the tokens that the text model takes of a picture."""
    members.read_whole(part, "merged", "spatial_merge_size merge_size", 1, 16, 1)
    members.read_whole(part, "image", "image_size", 1, SIDE, 0)
    members.read_whole(part, "patch", "patch_size", 1, SIDE, 1)
    part.set("side", part.image // part.patch, "image / patch")
    part.set("length", part.side if part.image else part.picture * part.merged, "image / patch" if part.image else "")
    if part.length == 0:
        members.reject(f"image_size is {part.image} where patch_size is {part.patch}: one patch is needed")
    if part.fractions and part.length < 7:
        members.reject(f"its pictures have {part.length} patches a side: 7 are needed")
    part.picture = part.length
    if "from_one" in members.flags:
        part.origin = 1
        part.set("length", part.length + 1, "length + 1")
        members.note("Its rows and columns count from 1")
    members.read_number(part, "rope_theta", "rope_theta", 1e-6, 1e30)


def read_tower(members: Members, part: Part) -> None:
    """Reads a tower into a part, whose encoding is set: rope_half or rope_interleaved."""
    part.tower, part.decodes, part.picture = True, False, PICTURE
    members = find_rope(members)
    _check_rule(members)
    _check_layers(members)
    _read_heads(members, part)
    _share_pairs(members, part)
    _read_picture(members, part)
    part.dim = part.rotary_dim
    if part.fractions:
        part.dim //= 2
        part.scaling, part.factor = "linear", part.length / (2 * math.pi)
        part.set_origin("scaling", "frequencies of fractions, times 2 pi, are those of patches")
        part.set_origin("factor", "patches a side / 2 pi")
    elif not part.halves:
        part.mrope_section = (part.rotary_dim // 2 // part.axes,) * part.axes
        part.mrope_layout = "pixtral" if part.dealt else "kimi" if part.alternating else "qwen2_vl_vision"
    check_frequencies(members, part)
