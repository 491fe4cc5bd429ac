"""Learned tables: rows of types whose embeddings add one, and their sizes.

How a table's rows follow from the members of its class is found by trying: of the candidates below the first
that says the rows and the width of each of some mutated configurations is the one.
"""
import collections
import copy
import inspect
import random
import re
import sys

import rows
from look import tables_of
from truth import build
from values import SIZES, some

ENCODINGS = ("learned",)
LENGTHS = ("max_position_embeddings", "n_positions", "max_source_positions", "block_size", "seq_length", "n_ctx", "max_seq_len")
WIDTHS = [("by_embedding", "embedding_size"), ("by_input", "input_embedding_size"), 
          ("by_embed_dim", "embed_dim"), ("", "hidden_size"), ("", "n_embd"), ("", "d_model"), ("", "dim"), ("", "emb_dim")]
OF_PATCHES = [([], 0), (["class_token"], 1), (["two_tokens"], 2), (["class_tokens"], "n_cls_tokens"),
              (["class_tokens"], "num_cls_tokens"), (["detected"], "num_detection_tokens")]
# Tables that are not of the places of tokens, or of patches, in their sequence.
BESIDES = re.compile(r"^(x|y|h|w|box|visual|entity|mid|time|temporal|tile|cell|window|rel|relative)_|entity|relative|rel_pos")


def pair(value):
    return list(value) if isinstance(value, (list, tuple)) and len(value) == 2 else [value, value]


IMAGES = ("pretrain_image_size", "max_img_size", "max_image_size", "image_size", "input_size")


def first_of(get, names):
    return next((get(name) for name in names if get(name) is not None), None)


def numbers(*values):
    return all(isinstance(v, int) and v > 0 for v in values)


def of_pictures(get):
    """Tables of frames and of spectrograms."""
    tube, image, frames = get("tubelet_size"), pair(get("image_size")), get("num_frames")
    if isinstance(tube, (list, tuple)) and len(tube) == 3 and numbers(frames, *image):
        patches = (frames // tube[0]) * (image[0] // tube[1]) * (image[1] // tube[2])
        yield ["tubelets"], patches
        yield ["tubelets", "class_token"], patches + 1
    size, mel, length, up, on = (get(k) for k in ("patch_size", "num_mel_bins", "max_length", "frequency_stride", "time_stride"))
    if numbers(size, mel, length, up, on):
        yield ["spectrogram", "two_tokens"], ((mel - size) // up + 1) * ((length - size) // on + 1) + 2


def candidates(get, source):
    """(flags, rows) by the members of a configuration, `get` giving them."""
    for words, more in OF_PATCHES:
        more = get(more) if isinstance(more, str) else more
        more = more + 1 if words == ["detected"] and isinstance(more, int) else more
        image, patch = pair(first_of(get, IMAGES)), pair(first_of(get, ("patch_stride", "patch_size")))
        if isinstance(more, int) and all(isinstance(v, int) and v > 0 for v in image + patch):
            yield ["patches"] + words, (image[0] // patch[0]) * (image[1] // patch[1]) + more
        counted = next((get(k) for k in ("num_patches", "num_position_embeddings") if isinstance(get(k), int)), None)
        if counted and isinstance(more, int):
            yield ["counted"] + words, counted + more
    yield from of_pictures(get)
    if isinstance(get("num_hash_buckets"), int):
        yield ["hashed"], get("num_hash_buckets")
    length = next((get(k) for k in LENGTHS if isinstance(get(k), int)), None)
    if length:
        padded = "create_position_ids_from_input_ids" in source and "padding_idx" in source
        yield (["pad_offset"] if padded else []), length
        if re.search(r"offset = 2|\+ 2", source):
            yield ["two_offset"], length + 2
    for part in ("encoder", "decoder"):
        own = get(f"max_{part}_position_embeddings")
        if isinstance(own, int):
            yield [f"own_{part}"], own


def width_flags(get):
    for flag, name in WIDTHS:
        if isinstance(get(name), int):
            yield ([flag] if flag else []), get(name)
    sizes = get("hidden_sizes")
    if isinstance(sizes, (list, tuple)):
        yield [], sizes[0]


def shallow(plain):
    """Members that make a model of few layers, where that changes no position."""
    return {k: 1 for k in ("num_hidden_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "num_layers")
            if isinstance(plain.get(k), int) and plain[k] > 1}


def main_tables(tables):
    """{path: shape} of those that are of positions in the sequence; and the names of the others."""
    own = {t["path"]: t["shape"] for t in tables if not BESIDES.search(t["path"].rsplit(".weight", 1)[0].rsplit(".", 1)[-1])
           and "entity" not in t["path"] and "tile" not in t["path"]}
    return own, sorted({t["path"].rsplit(".", 1)[-1] for t in tables if t["path"] not in own})


def tables_with(cls, members):
    model, why = build(cls, cls(**copy.deepcopy(members)))
    if model is None:
        raise ValueError(why)
    return main_tables(tables_of(model))[0]


def trials(cls, seen, plain, count=7):
    """(configuration, tables) of the defaults and of mutated members."""
    rng, found = random.Random(cls.model_type), []
    for k in range(4 * count):
        members = {**shallow(plain), **(mutate(rng, plain, seen) if k else {})}
        try:
            found.append((cls(**copy.deepcopy(members)), tables_with(cls, members)))
        except Exception:
            continue
        if len(found) == count:
            break
    return found


def holds(flags, shape_of, found, source):
    """Whether a candidate says the sizes of a table in all trials."""
    for config, tables in found:
        get = lambda name: getattr(config, name, None)
        rows_said = {tuple(f): n for f, n in candidates(get, source)}
        widths = {tuple(f): n for f, n in width_flags(get)}
        shape = shape_of(tables)
        words = tuple(f for f in flags if f not in {w for w, _ in WIDTHS if w})
        width = tuple(f for f in flags if f in {w for w, _ in WIDTHS if w})
        if shape is None or shape[0] != rows_said.get(words) or shape[1] not in ([widths[width]] if width else [
                n for f, n in widths.items() if not f]):
            return False
    return True


def flags_for(path, found, source):
    config = found[0][0]
    get = lambda name: getattr(config, name, None)
    for words, _ in candidates(get, source):
        for width, _ in width_flags(get):
            if holds(words + width, lambda tables: tables.get(path), found, source):
                return words + [w for w in width if w not in words]
    return None


def several(kinds):
    """The flags of a model with tables of two sizes: of encoder and decoder, or of text and of a picture."""
    both = sorted(set(sum(kinds, [])))
    if {"own_encoder", "own_decoder"} <= set(both):
        return both
    picture = ["patches", "class_token"]
    others = [k for k in kinds if k != picture]
    if picture in kinds and len(others) == 1 and "patches" not in others[0]:
        return others[0] + ["own_text", "own_image"]
    return None


def row(cls, seen, plain, known):
    if seen["rotary"]:
        return None
    try:
        found = trials(cls, seen, plain)
    except Exception:
        return None
    if len(found) < 2 or not found[0][1]:
        return None
    source = inspect.getsource(sys.modules[cls.__module__.replace("configuration_", "modeling_")])
    flags = {path: flags_for(path, found, source) for path in found[0][1]}
    if None in flags.values():
        return None
    kinds = [list(f) for f in dict.fromkeys(tuple(f) for f in flags.values())]
    if len(kinds) > 1:
        both = several(kinds)
        if both is None:
            return None
        kinds = [both]
    known = dict(known)
    for key in IMAGES + ("patch_size", "patch_stride", "tubelet_size", "num_frames", "num_mel_bins", "max_length",
                         "frequency_stride", "time_stride", "num_hash_buckets", "num_patches", "num_position_embeddings", "num_detection_tokens", "n_cls_tokens", "num_cls_tokens",
                "hidden_sizes", "embed_dim", "input_embedding_size", "dim", "emb_dim", "max_encoder_position_embeddings",
                "max_decoder_position_embeddings", "max_source_positions", "block_size"):
        if isinstance(plain.get(key), (int, list, tuple)) and known.get(key) is None:
            known[key] = plain[key]
    others = main_tables([{"path": t["path"], "shape": t["shape"]} for t in seen["tables"]] +
                         [{"path": o["path"] + "." + n, "shape": s} for o in seen["other"] for n, s in o["shapes"].items()
                          if "pos" in n and not re.search(r"ids|index|bias", n)])[1]
    biases = any(re.search(r"relative_attention|relative_pos|rel_pos", o["path"]) for o in seen["other"])
    besides = (f"It has more learned tables, {', '.join(others)}: not covered" if others else "") + \
        ("; its scores have a bias by relative position, too: not covered" if biases and others else
         "Its scores have a bias by relative position, too: not covered" if biases else "")
    return "learned", kinds[0] + ([] if rows.decodes(cls) else ["encoder"]), known, besides


def ask(cls, seen, config):
    """The sizes of the tables of positions that the model of a configuration has, [rows, width] by path."""
    plain = config.to_dict()
    for key, value in shallow(plain).items():
        try:
            setattr(config, key, value)
        except Exception:
            continue
    model, why = build(cls, config)
    if model is None:
        raise ValueError(why)
    return {**main_tables(tables_of(model))[0], **made_tables(model, config)}


def made_tables(model, config):
    """Those that a model makes as large as its picture."""
    maker = next((m for m in model.modules() if hasattr(m, "_get_pos_embed") and hasattr(m, "pos_embed_window")), None)
    if maker is None:
        return {}
    made = maker._get_pos_embed(tuple(i // s for i, s in zip(config.image_size, config.patch_stride)))
    return {"made": [made.shape[1] * made.shape[2], made.shape[3]]}


def judge(said, answer):
    """"" where the tables read are those that the model has."""
    mine = collections.Counter((int(p.get("rows", 0)), int(p["width"])) for p in said["parts"] if p["encoding"] == "learned")
    theirs = collections.Counter(tuple(shape) for shape in answer.values())
    same = set(mine) == set(theirs) and sum(mine.values()) in (1, sum(theirs.values()))
    return "" if same else f"tables of {sorted(mine)} are read, there are {answer}"


NUMBERS = {**SIZES, "pad_token_id": [0, 1, 5], "image_size": [96, 224, 384], "patch_size": [8, 16, 32],
           "embedding_size": [64, 128], "n_positions": [256, 2048], "num_layers": [2, 4], "max_source_positions": [600, 1500],
           "max_encoder_position_embeddings": [512, 4096], "max_decoder_position_embeddings": [256, 2048],
           "num_patches": [64, 196], "num_detection_tokens": [50, 100], "n_cls_tokens": [4, 8], "input_embedding_size": [64, 128],
           "emb_dim": [512, 1024], "block_size": [512, 2048], "embed_dim": [256, 512], "max_img_size": [1024, 2048], "max_image_size": [1024, 2048],
           "pretrain_image_size": [224, 384], "input_size": [224, 384], "num_frames": [8, 16], "num_hash_buckets": [16384, 20000],
           "vision_config": [{"image_size": 384, "patch_size": 32}, {"hidden_size": 1024, "num_attention_heads": 16}], "hidden_sizes": [[32, 64, 160, 256]],
           "seq_len": [1024, 2048], "max_num_patches": [1024, 2048], "axial_pos_shape": [[32, 64], [16, 16]],
           "axial_pos_embds_dim": [[128, 128], [32, 224]], "context_length": [64, 100], "patch_length": [4, 8], "patch_stride": [2, 4],
           "use_cls_token": [True], "num_mel_bins": [64, 128], "max_length": [512, 1024], "frequency_stride": [8, 10], "time_stride": [8, 10]}


def mutate(rng, plain, seen):
    out = some(rng, plain, NUMBERS)
    if isinstance(plain.get("patch_stride"), (list, tuple)) and "patch_stride" in out:
        out["patch_stride"] = [out["patch_stride"]] * 2
    for key in ("image_size", "patch_size"):
        if key in out and isinstance(plain.get(key), (list, tuple)) and len(plain[key]) == 2:
            out[key] = [out[key], rng.choice(NUMBERS[key])]
    return out
