"""Learned tables: rows of types whose embeddings add one, and their sizes."""
import inspect
import re
import sys

import rows
from values import SIZES, some
from look import tables_of
from truth import build

ENCODINGS = ("learned",)
WORDS = {"image_size", "patch_size"}


def row(cls, seen, plain, known):
    if seen["rotary"] or not (seen["tables"] or seen["other"]):
        return None
    flags = learned(cls, seen, plain)
    if flags is None:
        return None
    known = dict(known)
    if "patches" in flags:
        known.update({k: plain[k] for k in sorted(WORDS) if isinstance(plain.get(k), int)})
    return "learned", flags + ([] if rows.decodes(cls) else ["encoder"]), known, ""


def learned(cls, truth, plain):
    """(flags, reason) of a model whose positions are one learned table."""
    shapes = [(t["path"], t["shape"], t["class"]) for t in truth.get("tables", [])]
    for o in truth.get("other", []):
        for name, shape in o["shapes"].items():
            if "bias" in name or "index" in name or "ids" in name:
                continue
            if not re.search("pos", name):
                return None
            shapes.append((o["path"] + "." + name, shape[-2:] if len(shape) == 3 and shape[0] == 1 else shape, o["class"]))
        if not o["shapes"] and re.search(r"Conv|Sin|Rel|Bias", o["class"]):
            return None
    shapes = [s for s in shapes if len(s[1]) == 2]
    if not shapes or len({tuple(s[1]) for s in shapes}) != 1 or len(shapes) > 2:
        return None
    if len(shapes) == 2 and not {"encoder", "decoder"} <= {s[0].split(".")[0] for s in shapes}:
        return None
    if any("Sinus" in s[2] or "Sine" in s[2] for s in shapes):
        return None
    rows, width = shapes[0][1]
    hidden = next((plain[k] for k in ("hidden_size", "n_embd", "d_model", "emb_dim") if isinstance(plain.get(k), int)), None)
    length = next((plain[k] for k in ("max_position_embeddings", "n_positions") if isinstance(plain.get(k), int)), None)
    source = inspect.getsource(sys.modules[cls.__module__.replace("configuration_", "modeling_")])
    flags = []
    if width != hidden:
        if width != plain.get("embedding_size"):
            return None
        flags.append("by_embedding")
    if length and "create_position_ids_from_input_ids" in source and "padding_idx" in source:
        return flags + ["pad_offset"] if rows == length else None
    if length and rows == length:
        return flags
    if length and rows == length + 2 and "offset = 2" in source:
        return flags + ["two_offset"]
    image, patch = plain.get("image_size"), plain.get("patch_size")
    if isinstance(image, int) and isinstance(patch, int) and not flags and not length:
        extra = rows - (image // patch) ** 2
        if extra in (0, 1, 2):
            return ["patches"] + [[], ["class_token"], ["two_tokens"]][extra]
    return None


def ask(cls, seen, config):
    """The sizes of the tables that the model of a configuration has, [rows, width] by path."""
    model, why = build(cls, config)
    if model is None:
        raise ValueError(why)
    return {t["path"]: t["shape"] for t in tables_of(model)}


def judge(said, answer):
    """"" where the table read is one of those that the model has."""
    mine = [p for p in said["parts"] if p["encoding"] == "learned"]
    if len(mine) != 1:
        return f"{len(mine)} learned tables are read"
    shape = [int(mine[0].get("rows", 0)), int(mine[0]["width"])]
    return "" if shape in answer.values() else f"a table of {shape} is read, there are {answer}"


NUMBERS = {**SIZES, "pad_token_id": [0, 1, 5], "image_size": [96, 224, 384], "patch_size": [8, 16, 32],
           "embedding_size": [64, 128], "n_positions": [256, 2048], "num_layers": [2, 4]}


def mutate(rng, plain, seen):
    return some(rng, plain, NUMBERS)
