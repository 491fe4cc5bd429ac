"""Reads sinusoids and learned tables that are added to embeddings of tokens, patches or time series.

config.py calls these functions by the flags of a model type. ViT with {"image_size": 224, "patch_size": 16} and the
flags "patches class_token" has a table of 14 x 14 rows for patches and one for the class: length 197.
"""

from typing import Sequence

from .members import KEEP, MOST, Members, Default, member_of
from .part import Part

# Names of members, in the notation of members.py.
LENGTH = (
    "max_position_embeddings n_positions seq_length max_seq_len model_max_length n_ctx max_source_positions "
    "max_encoder_position_embeddings max_speech_positions / block_size"
)
WIDTH = "hidden_size n_embd n_embed d_model dim emb_dim embed_dim"
HEADS = "num_attention_heads n_head n_heads num_heads"
LAYERS = "num_hidden_layers n_layer n_layers num_layers decoder_num_hidden_layers / encoder_layers"
IMAGE = "pretrain_image_size max_img_size max_image_size / image_size.{0} image_size input_size"  # {0}: the axis
PATCH = "patch_stride.{0} / patch_size.{0} patch_size"

ENDLESS = 2048  # positions in cases of a model without a longest position
SIDE = 16384  # pixels, patches or frames at most


def read_sizes(members: Members, part: Part) -> None:
    """Reads length, width, heads and layers of a model that has them as one number each."""
    if "endless" in members.flags and member_of(members.file, LENGTH.replace("/", "")).value is None:
        part.length = ENDLESS
        part.set_origin("length", "its class has none")
        members.note(f"Its class has no longest position: shapes are those of {ENDLESS} positions")
    else:
        members.read_whole(part, "length", LENGTH)
    members.read_whole(part, "width", WIDTH)
    if part.encoding in ("learned", "sinusoidal"):
        members.read_whole(part, "heads", HEADS, 1, 65536, 1)
    else:
        members.read_whole(part, "heads", f"{HEADS} decoder_num_attention_heads / encoder_attention_heads", 1, 65536)
    members.read_truth(part, "scaled", "scale_embedding")
    if "by_embedding" in members.flags:
        members.read_whole(part, "width", "embedding_size")
    if part.encoding not in ("learned", "sinusoidal"):
        members.read_whole(part, "layers", LAYERS, 0, 65536, 0)
    members.read_whole(part, "head_dim", "d_kv", default=Default(max(part.width // part.heads, 1), "width / heads"))


def set_by_flags(members: Members, part: Part) -> None:
    """Sets members that the code of a model type fixes, regardless of the file."""
    flags = members.flags
    if "encoder" in flags:
        part.set("decodes", False)
    if "cos_first" in flags:
        part.cos_first = True
        members.note("Its sinusoids have cosines first: a table that rope_table makes, of whose rows it adds one to "
                     "each token")  # fmt: skip
    if "shrunk" in flags:
        part.shrunk = True
        members.note("Its code divides sinusoids by the square root of their width")
    part.sin_cos |= "sin_then_cos" in flags or "speech" in flags
    part.norms |= "head_norm" in flags or "token_norm" in flags
    part.across_heads |= "token_norm" in flags
    part.unit |= "unit_norm" in flags
    if part.norms:
        members.read_number(part, "epsilon", "rms_norm_eps", 1e-19, 1, 1e-6)


# ---- learned tables of tokens ----


def read_offsets(members: Members, part: Part) -> None:
    """Reads positions, or rows of a table, before the first token's."""
    flags = members.flags
    if "two_offset" in flags and part.tabled:  # OPT and BART
        part.set("first", 2)
    if "padded" in flags:  # M2M-100: sinusoids begin after the position of padding
        members.read_whole(part, "first", "pad_token_id", 0, MOST - 1, 0)
        part.set("first", part.first + 1, "first + 1")
    if "stacked_frames" in flags:
        read_stacked_frames(members, part)
    if "counts_from_one" in flags:
        part.set("first", 1)
    if "from_two" in flags:  # XGLM
        part.set("first", 2)
    if part.tabled:
        part.set("rows", part.length + part.first, "length + first")
    if "pad_offset" in flags:  # RoBERTa: of 514 rows two come before the first token's
        members.read_whole(part, "first", "pad_token_id", 0, part.length - 2, 1)
        part.set("first", part.first + 1 if part.tabled else 0, "first + 1")
        part.set("length", part.length - part.first, "length - first")


def read_stacked_frames(members: Members, part: Part) -> None:
    """Reads a spectrogram of which several frames are one token."""
    members.read_whole(part, "image", "num_mel_bins", 1, SIDE)
    members.read_whole(part, "patch", "num_stacked_frames", 1, SIDE)
    part.set("width", part.image * part.patch, "image * patch")
    members.read_whole(part, "length", "max_position_embeddings", 2)
    part.set("length", part.length - 1, "length - 1")


# ---- learned tables of patches ----


def _read_side(members: Members, part: Part, image: str, patch: str, quantity: str) -> None:
    """Counts the patches along one side of a picture."""
    members.read_whole(part, "image", image, 1, SIDE)
    members.read_whole(part, "patch", patch, 1, SIDE)
    part.set(quantity, part.image // part.patch, "image / patch")


def _read_extra_tokens(members: Members, part: Part, flags: Sequence[str]) -> None:
    """Reads tokens before the patches, such as that of the class."""
    if "class_token" in flags:
        part.set("first", 1)
    if "two_tokens" in flags:  # DeiT: of the class and of distillation
        part.set("first", 2)
    if "class_tokens" in flags:
        members.read_whole(part, "first", "n_cls_tokens num_cls_tokens", 1, 4096)
    if "detected" in flags:  # YOLOS: of detected objects, and of the class
        members.read_whole(part, "first", "num_detection_tokens", 1, 4096)
        part.set("first", part.first + 1, "first + 1")


def _count_patches(members: Members, part: Part, flags: Sequence[str]) -> None:
    """Counts rows and columns of patches: of a picture, of all frames of a video side by side, or of a spectrogram."""
    if "patches" in flags or "image_table" in flags:
        _read_side(members, part, IMAGE.format(0), PATCH.format(0), "side")
        _read_side(members, part, IMAGE.format(1), PATCH.format(1), "columns")
    if "tubelets" in flags:
        _read_side(members, part, IMAGE.format(0), "tubelet_size.1", "side")
        _read_side(members, part, IMAGE.format(1), "tubelet_size.2", "columns")
        members.read_whole(part, "image", "num_frames", 1, SIDE)
        members.read_whole(part, "patch", "tubelet_size.0", 1, SIDE)
        part.set("columns", part.image // part.patch * part.columns, "image / patch * columns")
    if "spectrogram" in flags:
        members.read_whole(part, "patch", "patch_size", 1, SIDE)
        for names, strides, most, quantity in (
            ("num_mel_bins", "frequency_stride", SIDE, "side"), ("max_length", "time_stride", MOST, "columns"),
        ):  # fmt: skip
            members.read_whole(part, "image", names, part.patch, most)
            members.read_whole(part, "step", strides, 1, SIDE)
            part.set(quantity, (part.image - part.patch) // part.step + 1, "(image - patch) / step + 1")


def read_patches(members: Members, part: Part, flags: Sequence[str]) -> None:
    """Reads a table with a row for each patch, and some rows for other tokens.

    `flags` say of which kind the patches are: those of the model type, or of a table that is one of several.
    """
    if {"patches", "counted", "spectrogram", "tubelets"} & set(flags):
        members.read_whole(part, "width", "hidden_size hidden_sizes.0")
    if "by_embed_dim" in flags:
        members.read_whole(part, "width", "embed_dim")
    if "image_table" in flags:
        part.set("first", 1)
    _count_patches(members, part, flags)
    _read_extra_tokens(members, part, flags)
    if "counted" in flags:
        members.read_whole(part, "length", "num_patches num_position_embeddings")
        part.set("length", part.length + part.first, "length + first")
    else:
        part.set("length", part.side * part.columns + part.first, "side * columns + first")
        if part.length > MOST:
            members.reject(f"image_size is {part.image} where patch_size is {part.patch}: at most {MOST} patches are "
                           "possible")  # fmt: skip
    part.set("rows", part.length, "length")
    part.set("first", 0)


# ---- tables of time series, of frames and of axes ----


def read_series(members: Members, part: Part) -> None:
    """Reads sinusoids of a time series, for its context and its prediction."""
    members.read_whole(part, "width", "d_model")
    members.read_whole(part, "heads", "encoder_attention_heads", 1, 65536, 1)
    members.read_whole(part, "image", "prediction_length", 1, 1 << 20)
    members.read_whole(part, "length", "context_length", 1, 1 << 20, Default(part.image, "image"))
    part.set("length", part.length + part.image, "length + image")
    members.note("Its decoder counts on from the last of context_length")


def read_patched_series(members: Members, part: Part) -> None:
    """Reads sinusoids of the patches of a time series (TimesFM)."""
    members.read_truth(part, "relative", "use_positional_embedding", False)
    if not part.relative:
        members.reject("use_positional_embedding is false: such a model has no positions in its attention or "
                       "embeddings")  # fmt: skip
    members.read_whole(part, "width", "hidden_size")
    members.read_whole(part, "patch", "patch_length", 1, 1 << 20)
    members.read_whole(part, "length", "context_length")
    part.set("length", max(part.length // part.patch, 1), "length / patch")
    members.read_whole(part, "step", "min_timescale", 1, 1, 1)
    members.read_number(part, "rope_theta", "max_timescale", 1, 1e30)


def read_frames(members: Members, part: Part) -> None:
    """Reads sinusoids of the patches of a video."""
    members.read_whole(part, "width", "hidden_size")
    _read_side(members, part, "image_size.0 / image_size", "patch_size.0 / patch_size", "side")
    _read_side(members, part, "image_size.1 / image_size", "patch_size.1 / patch_size", "columns")
    members.read_whole(part, "image", "num_frames", 1, SIDE)
    members.read_whole(part, "patch", "tubelet_size", 1, SIDE)
    part.set("length", part.image // part.patch * part.side * part.columns, "image / patch * side * columns")


def read_placed(members: Members, part: Part) -> None:
    """Reads tables whose rows a processor chooses: by row and by column of a patch, or by place in a series."""
    flags = members.flags
    members.read_whole(part, "width", "hidden_size d_model")
    if "grid_tables" in flags:
        members.read_whole(part, "length", "seq_len max_num_patches")
        members.note("Its processor says the row and the column of each patch: a row of each table is added")
    if "axial_tables" in flags:
        members.read_truth(part, "relative", "axial_pos_embds", True)
        if not part.relative:
            members.reject("axial_pos_embds is false: this loader reads such a model with tables of rows and of "
                           "columns")  # fmt: skip
        members.note("Token t has row t / n of the first table and row t % n of the second, side by side, where n is "
                     "the second number of axial_pos_shape")  # fmt: skip
    if "series_table" in flags:
        members.read_whole(part, "image", "context_length")
        members.read_whole(part, "patch", "patch_length")
        members.read_whole(part, "step", "patch_stride")
        members.read_truth(part, "single", "use_cls_token", False)
        part.set("length", (max(part.image, part.patch) - part.patch) // part.step + 1, "(image - patch) / step + 1")
        part.set("length", part.length + part.single, "length + single")
    if "grid_tables" in flags or "series_table" in flags:
        part.set("rows", part.length, "length")


def read_pyramid(members: Members, part: Part) -> None:
    """Reads stages with tables of their own (PVT)."""
    members.read_whole(part, "step", "num_encoder_blocks", 4, 4, 4)
    members.read_whole(part, "width", "hidden_sizes.0")


def read_spread(members: Members, part: Part) -> None:
    """Reads a table as large as the picture, made of a small one and of one of a window (Hiera)."""
    members.read_whole(part, "width", "hidden_size")
    _read_side(members, part, "image_size.0", "patch_stride.0", "side")
    members.read_whole(part, "image", "image_size.1", 1, SIDE)
    members.read_whole(part, "patch", "patch_stride.1", 1, SIDE)
    part.set("length", part.image // part.patch * part.side, "image / patch * side")
    part.set("rows", part.length, "length")
    members.note("Its code makes a table as large as the picture of a small one, interpolated, and of one of a window, "
                 "repeated: what is checked and timed here adds its rows")  # fmt: skip


# ---- tables of stacks ----


def read_stage_table(members: Members, part: Part, stage: int) -> None:
    """Reads the table of one of four stages, whose pictures are half as large from stage to stage."""
    shrunk = (1, 4, 8, 16)[stage]
    members.read_whole(part, "image", "image_size", shrunk, SIDE)
    members.read_whole(part, "patch", f"patch_sizes.{stage}", 1, SIDE)
    members.read_whole(part, "width", f"hidden_sizes.{stage}")
    part.set("side", part.image // shrunk // part.patch, f"image / {shrunk} / patch" if stage else "image / patch")
    members.read_whole(part, "length", "", default=Default(part.side * part.side, "side * side"))
    if stage == 3:
        part.set("length", part.length + 1, "length + 1")


def read_own_table(members: Members, part: Part, stack: str) -> None:
    """Reads the table of a stack that has one of its own."""
    if stack.startswith("stage"):
        read_stage_table(members, part, int(stack[-1]) - 1)
    elif stack in ("encoder", "decoder"):
        members.read_whole(part, "length", f"max_{stack}_position_embeddings", default=Default(part.length, "length"))
        part.set("rows", part.length + part.first, "length + first")
    elif stack in ("rows", "columns") and "axial_tables" in members.flags:
        axis = int(stack == "columns")
        members.read_whole(part, "width", f"axial_pos_embds_dim.{axis}")
        members.read_whole(part, "length", f"axial_pos_shape.{axis}")
    elif stack == "seen":
        _read_side(members, part, "vision_config.image_size", "vision_config.patch_size", "side")
        members.read_whole(part, "width", "vision_config.hidden_size")
        part.set("length", part.side * part.side + 1, "side * side + 1")
    elif stack == "spatial":
        _read_side(members, part, "image_size.0 / image_size", "tubelet_size.1", "side")
        members.read_whole(part, "image", "image_size.1 / image_size", 1, SIDE)
        members.read_whole(part, "patch", "tubelet_size.2", 1, SIDE)
        part.set("length", part.image // part.patch * part.side, "image / patch * side")
    elif stack == "temporal":
        members.read_whole(part, "length", "num_frames", 1, SIDE)
    elif stack == "image":
        read_patches(members, part, ["image_table"])
    if stack not in ("encoder", "decoder", "text", "image"):
        part.set("rows", part.length, "length")


def read_speech(members: Members, part: Part) -> None:
    """Reads the sizes of Whisper: sinusoids in its encoder, a learned table in its decoder."""
    members.read_whole(part, "width", "d_model")
    members.read_whole(part, "length", "max_source_positions")
    members.read_whole(part, "rows", "max_target_positions")


def read_theta(members: Members, part: Part) -> None:
    """Reads the base of sinusoids, if the file has one."""
    members.read_number(part, "rope_theta", "rope_theta", 1e-6, 1e30, KEEP)
