"""Reads terms that are added to scores: ALiBi, buckets of T5, terms by relative position, biases in windows.

config.py calls these functions by the encoding and the flags of a model type. {"model_type": "t5",
"relative_attention_num_buckets": 32} sets num_buckets 32 of a part. Notes tell which products are left to the model's
code: problems of these encodings begin with the products of queries and the terms.
"""

from dataclasses import replace
from typing import List, Optional

from .embeddings import SIDE, read_patches
from .members import MOST, Member, Members, Default, Range
from .part import Part

PARTS = 4  # ways in which the stages of a model may differ, at most
LONG = 1 << 20  # largest distance


def read_alibi(members: Members, part: Part) -> None:
    """Reads slopes of ALiBi."""
    members.read_number(part, "alibi_bias_max", "attn_config.alibi_bias_max", 1e-3, 64, 8)


def read_t5(members: Members, part: Part) -> None:
    """Reads buckets of distances (T5), or those of WavLM, which gates them."""
    members.read_even(part, "num_buckets", "relative_attention_num_buckets", 4, 4096, 32)
    members.read_whole(part, "decoder_layers", "num_decoder_layers", 0, 65536, Default(part.layers, "layers"))
    members.read_whole(
        part, "max_distance", "relative_attention_max_distance", part.num_buckets // 2 + 1, MOST - 1, 128
    )
    if "gated" in members.flags:
        members.read_even(part, "num_buckets", "num_buckets", 4, 4096, 320)
        members.read_whole(part, "max_distance", "max_bucket_distance", part.num_buckets // 2 + 1, MOST - 1, 800)
        members.note("Its code multiplies the bias by gates that it makes of queries, and takes the table of the first "
                     "layer for all: what is checked and timed here gathers and adds it")  # fmt: skip


# ---- terms by relative position ----


def _read_terms(members: Members) -> List[str]:
    """Returns the terms that DeBERTa adds: a list, or a text with bars between them."""
    value = members.find_value("pos_att_type")
    terms = value.split("|") if isinstance(value, str) else value if isinstance(value, list) else []
    terms = [term if isinstance(term, str) else "(no text)" for term in terms if term != ""]
    for term in terms:
        if term not in ("c2p", "p2c"):
            members.reject(f"pos_att_type '{term}' is unknown; known: c2p, p2c")
    if not terms:
        members.reject("pos_att_type is missing or empty: c2p, p2c or both are needed")
    return terms


def read_deberta(members: Members, part: Part) -> None:
    """Reads terms of queries and keys by bucket of the distance (He et al., 2006.03654)."""
    members.read_whole(part, "max_distance", "max_relative_positions", -1, MOST, 0)
    members.read_whole(part, "num_buckets", "position_buckets", -1, MOST, 0)
    part.num_buckets = max(part.num_buckets, 0)
    members.note("The buckets' own products with queries and keys (c2p, p2c before they are gathered) are its code's "
                 "matrix products: what is checked and timed here gathers and adds them")  # fmt: skip
    members.read_truth(part, "biased", "position_biased_input", True)
    if part.biased:
        members.note("The learned positions it also adds to its input (position_biased_input) are not covered")
    terms = _read_terms(members)
    part.without_c2p, part.with_p2c = "c2p" not in terms, "p2c" in terms
    if part.max_distance < 1:
        part.max_distance = part.length
        part.origins["max_distance"] = part.origins["length"]
    buckets, most = part.num_buckets, part.max_distance
    if buckets and (buckets % 2 or not 4 <= buckets <= 4096 or buckets > most):
        members.reject(f"position_buckets is {buckets} with {most} relative positions: an even number from 4 to 4096 "
                       "below them, or -1, is needed")  # fmt: skip


def read_transformer_xl(members: Members, part: Part) -> None:
    """Reads a term of queries by distance (Dai et al., 1901.02860)."""
    members.read_whole(part, "length", "mem_len", 1, 8388608)
    part.set("length", part.length + 1, "length + 1")
    members.read_whole(part, "head_dim", "d_head", default=Default(part.head_dim, "head_dim"))
    members.note("Of its two terms by position, (q + v) R is gathered here; R, a sinusoidal table of distances, sines "
                 "first, and the products are its code's")  # fmt: skip


def read_xlnet(members: Members, part: Part) -> None:
    """Reads a term by distance of earlier and of later keys (XLNet, conformers)."""
    part.both_ways = True
    members.read_whole(part, "head_dim", "d_head", default=Default(part.head_dim, "head_dim"))
    members.read_whole(part, "step", "clamp_len", -1, MOST, 0)
    if part.step > 0:
        members.reject(f"clamp_len is {part.step}: distances beyond it share a row, which is not read: -1 is needed")
    part.set("decodes", False)
    part.set("max_distance", max(part.length - 1, 1), "length - 1")
    members.note("Its table of distances, a sinusoid, and the products of queries, with a learned bias, and of what it "
                 "makes of that table are its code's matrix products: what is checked and timed here are the table, "
                 "and gathering the products of each distance, in both directions")  # fmt: skip


def read_shaw_blocks(members: Members, part: Part) -> None:
    """Reads Shaw's terms in attention that stays within blocks."""
    members.read_whole(part, "width", "hidden_dim hidden_size")
    members.read_whole(part, "heads", "num_heads num_attention_heads", 1, 65536)
    members.read_whole(part, "layers", "num_layers num_hidden_layers", 0, 65536)
    width = max(part.width // part.heads, 1)
    members.read_whole(part, "head_dim", "dim_head head_dim", default=Default(width, "width / heads"))
    members.read_whole(part, "length", "context_size", 1, LONG)
    members.read_whole(part, "max_distance", "max_pos_emb max_position_embeddings", part.length, LONG)
    members.note("Its attention stays within blocks of context_size tokens")
    members.note("The products of queries and the embeddings of distances are its code's: what is checked and timed "
                 "here gathers those of each distance")  # fmt: skip


def _read_sizes(members: Members, part: Part, heads: str, layers: str) -> None:
    """Reads width, heads and layers; `heads` and `layers` are names of members."""
    members.read_whole(part, "width", "hidden_size")
    members.read_divisor(part, "heads", heads, "width")
    members.read_whole(part, "layers", layers, 0, 65536)
    part.set("head_dim", part.width // part.heads, "width / heads")


def read_vits(members: Members, part: Part) -> None:
    """Reads embeddings of near distances, for keys and for values (VITS)."""
    _read_sizes(members, part, "num_attention_heads", "num_hidden_layers")
    members.read_whole(part, "max_distance", "window_size", 1, LONG)
    part.set("max_distance", part.max_distance + 1, "max_distance + 1")
    part.of_values = True
    members.note("Keys farther than window_size have no embedding: what is checked and timed here takes rows of zeros "
                 "for them, at both ends of its table.  The products of queries and embeddings, and of the sums of "
                 "weights by distance and those of values, are its code's")  # fmt: skip


def read_inkling(members: Members, part: Part) -> None:
    """Reads terms of the distances behind the query, which differ by type of layers (Inkling)."""
    part.bare = True
    part.layers = 0
    members.note("Its terms are of the distances behind the query, and none are from rel_extent, or the window of "
                 "layers that slide, on: what is checked and timed here takes rows of zeros for these.  They are not "
                 "scaled, and scores are by 1 / head_dim; the products of queries and what is learned for distances "
                 "are its code's.  How many layers slide is not read")  # fmt: skip


def read_clipped_shaw(members: Members, part: Part) -> None:
    """Reads Shaw's terms of distances that are clipped on each side at its own limit."""
    if "limits" in members.flags:
        members.read_whole(part, "left", "left_max_position_embeddings", 1, LONG)
        members.read_whole(part, "right", "right_max_position_embeddings", 1, LONG)
    else:
        members.read_whole(part, "left", "encoder_max_relative_position", 2, LONG)
        part.set("right", part.left - 1, "left - 1")
    heads, layers = "num_attention_heads / encoder_attention_heads", "num_hidden_layers / encoder_layers"
    _read_sizes(members, part, heads, layers)
    wider = "left" if part.left >= part.right else "right"
    part.set("max_distance", getattr(part, wider), wider)
    members.note(f"Distances are clipped to {part.left} on one side and to {part.right} on the other: what is checked "
                 "and timed here clips both to the greater, where the last row of the shorter side is that of all "
                 "beyond.  The products of queries and the embeddings of distances are its code's")  # fmt: skip


def read_own_terms(members: Members, part: Part, stack: str) -> None:
    """Reads the heads of a stack or of a type of layers."""
    if stack in ("encoder", "decoder"):
        members.read_divisor(part, "heads", f"{stack}_num_attention_heads", "width", Default(part.heads, "heads"))
        members.read_whole(part, "layers", f"{stack}_layers", 0, 65536, Default(part.layers, "layers"))
    elif stack in ("full", "sliding"):
        prefix, extent = ("", "rel_extent") if stack == "full" else ("swa_", "sliding_window_size")
        members.read_whole(part, "heads", f"{prefix}num_attention_heads", 1, 65536)
        members.read_whole(part, "head_dim", f"{prefix}head_dim")
        members.read_whole(part, "max_distance", extent, 1, LONG)


# ---- terms by rows and by columns of a picture: SAM ----


def _add_terms(
    members: Members, template: Part, name: str, layers: int, window: Optional[int], parts: List[Part]
) -> None:
    """Adds layers that see windows of `window` patches a side, or the whole picture if it is None."""
    if layers == 0:
        return
    image_side = template.side
    across = -(-image_side // window) if window else 1
    part = replace(template, name=name, layers=layers, window=window or image_side, windows=across * across,
                   origins=dict(template.origins))  # fmt: skip
    part.set_origin("layers", "num_hidden_layers less global_attn_indexes" if window else "global_attn_indexes")
    part.set_origin("window", "window_size" if window else "image_size / patch_size")
    part.set_origin("windows", f"({image_side} patches a side / window, rounded up) squared")
    if not 2 <= part.window <= 256:
        bound = "two are needed" if part.window < 2 else "at most 256 are possible"
        members.reject(f"pictures, or windows, have {part.window} patches a side: {bound}")
    part.set("length", part.window * part.window, "window * window")
    parts.append(part)


def read_decomposed(members: Members, part: Part) -> List[Part]:
    """Reads learned terms by rows and by columns, in windows and over a picture (Kirillov et al., 2304.02643)."""
    _read_sizes(members, part, "num_attention_heads", "num_hidden_layers")
    members.read_truth(part, "relative", "use_rel_pos", True)
    if not part.relative:
        members.reject("use_rel_pos is false: its scores have no terms by rows and columns, and this loader reads no "
                       "such model")  # fmt: skip
    members.read_truth(part, "tabled", "use_abs_pos", True)
    members.read_whole(part, "window", "window_size", 0, 256)
    part.set("decodes", False)
    members.note("Its terms by rows and by columns are two calls, whose sum for each pair of patches is its code's, as "
                 "are the products of queries with what is learned for each distance; it counts distances from the key "
                 "to the query, so that columns are those of its table from the last to the first")  # fmt: skip
    whole_picture = members.find_value("global_attn_indexes")
    if not isinstance(whole_picture, list):
        members.reject("global_attn_indexes is no list: the layers whose attention is over all of a picture are needed")
    whole_layers = sum(layer in whole_picture for layer in range(part.layers)) if part.window else part.layers
    table = Part(encoding="learned", name="table", decodes=False)
    table.set("tabled", True)
    read_patches(members, table, ["patches"])
    if table.side != table.columns:
        members.reject("its pictures are not square: rows and columns are as many in those that this loader reads")
    part.side, part.image, part.patch = table.side, table.image, table.patch
    for quantity in ("image", "patch"):
        part.origins[quantity] = table.origins[quantity]
    parts = [table] if part.tabled else []
    _add_terms(members, part, "windows", part.layers - whole_layers, part.window, parts)
    _add_terms(members, part, "whole", whole_layers, None, parts)
    return parts


# ---- biases in windows ----

MADE_BIAS = (
    "A network makes its table of biases of the distances of rows and columns, and a sigmoid bounds it: what is "
    "checked and timed here is what then gathers and adds them"
)


def _read_picture(members: Members, part: Part) -> None:
    """Reads how many patches a side of the picture has."""
    members.read_whole(part, "image", "image_size spec_size", 1, SIDE, 224)
    members.read_whole(part, "patch", "patch_stride.0 / patch_size", 1, SIDE)
    if part.image % part.patch:
        members.reject(f"image_size is {part.image}: a multiple of patch_size, {part.patch}, is needed")
    part.set("side", part.image // part.patch, "image / patch")


def _check_window(members: Members, part: Part) -> None:
    """Rejects a window that is too large. Sets the length: its patches, and the class token."""
    if part.window > 256:
        members.reject(f"a window of {part.window} x {part.window} patches: at most 256 x 256 is possible")
    part.set("length", part.window * part.window + part.window_class, "window * window")


def read_window(members: Members, part: Part) -> None:
    """Reads a bias in one window of the whole picture (BEiT)."""
    members.read_truth(part, "own_bias", "use_relative_position_bias")
    members.read_truth(part, "shared_bias", "use_shared_relative_position_bias")
    if part.own_bias == part.shared_bias:
        members.reject("use_relative_position_bias and use_shared_relative_position_bias are both "
                       f"{str(part.own_bias).lower()}: exactly one of them has to be true")  # fmt: skip
    _read_picture(members, part)
    part.set("window", part.side, "side")
    part.window_class = True
    part.set("windows", 1)
    if "made_bias" in members.flags:
        members.note(MADE_BIAS)
    _check_window(members, part)


def _read_stage(members: Members, template: Part, heads: List[object], stage: int) -> Part:
    """Returns the part of a stage, from 0 on. Each stage has twice the width and half the side of the one before."""
    flags = members.flags
    part = replace(template, name=f"stage{min(stage, PARTS - 1) + 1}", origins=dict(template.origins))
    if "flat" not in flags:
        part.width <<= stage
        part.side = max(part.side >> stage, 1)
    stated = Member(heads[stage], f"num_heads of stage {stage + 1}")
    part.heads = int(members.check_value(stated, Range(1, part.width, divides="width")))
    depths = members.find_value("depths")
    depth = depths[stage] if isinstance(depths, list) and stage < len(depths) else 0
    part.layers = depth if isinstance(depth, int) else 0
    part.head_dim = part.width // part.heads
    part.set_origin("heads", f"num_heads[{stage}]")
    part.set_origin("layers", f"depths[{stage}]")
    if "clips" in flags:
        part.window = min(part.window, part.side)
    if "crops" in flags and part.window > part.side:
        members.reject(f"a window of {part.window} x {part.window} patches where a stage has {part.side} a side: its "
                       "code takes no such picture")  # fmt: skip
    part.windows = ((part.side + part.window - 1) // part.window) ** 2
    part.set_origin("windows", f"({part.side} patches a side / window, rounded up) squared")
    _check_window(members, part)
    return part


def read_stages(members: Members, part: Part) -> List[Part]:
    """Reads a bias in windows, whose heads and counts differ by stage (Liu et al., 2103.14030)."""
    members.read_whole(part, "width", "embed_dim patch_embeds_hidden_size")
    _read_picture(members, part)
    members.read_whole(part, "window", "window_size", 1, 256, 7)
    if "made_bias" in members.flags:
        members.note(MADE_BIAS)
    members.note("The masks of its shifted windows are not covered")
    heads = members.find_value("num_heads num_attention_heads")
    if not isinstance(heads, list) or not heads:
        members.reject("num_heads is no list of numbers: the heads of each stage are needed")
    parts: List[Part] = []
    for stage in range(len(heads)):
        if stage == PARTS and "flat" not in members.flags:
            members.reject(f"num_heads has {len(heads)} stages: at most {PARTS} are read")
        own = _read_stage(members, part, heads, stage)
        last = parts[-1] if parts else None
        if last and (last.heads, last.side, last.width) == (own.heads, own.side, own.width):
            last.layers += own.layers
        elif len(parts) == PARTS:
            members.reject(f"its stages differ in more than {PARTS} ways")
        else:
            parts.append(own)
    if len(parts) == 1:
        parts[0].name = ""
    return parts
