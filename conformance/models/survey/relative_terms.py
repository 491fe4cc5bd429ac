"""Compares terms of scores that are products of a query and a row for its distance to a key: Shaw's and their like.

A module computes the products with all rows, then shifts or indexes them to columns of keys. Each form below runs that
step on numbers that name their own row. The result shows which row a query and a key take: the row of the pair. With
TOKENS = 5, the rows of the first query may be 4, 3, 2, 1 and 0.

The forms are both_ways, in_blocks, decomposed, nearest, limited and behind. Each has a probe, which returns numbers of
a model or None, and a comparison with what posenc read. FORMS at the end lists them.
"""
import collections
import copy
import re
import sys

import torch
from comparer import SIZES, Comparer
from inspection import tensor_shapes
from tables import agree, sinusoid_row
from torch import nn
from transformers_models import TooLong, build_model, limit_time, model_classes, rebuild

TOKENS = 5  # queries and keys of most experiments
SHIFT = re.compile(r"rel.*shift|shift_rel", re.I)


class RelativeTermsComparer(Comparer):
    """Comparer of relative terms, by the first of FORMS that a model has."""
    encodings = ("shaw", "decomposed")
    values = {
        **SIZES, "max_source_positions": [600, 1500], "context_size": [100, 200], "max_pos_emb": [256, 512],
        "num_layers": [2, 4], "num_heads": [4, 16], "dim_head": [32, 64], "hidden_dim": [512, 1024],
        "image_size": [512, 1024, 224], "patch_size": [16, 32], "window_size": [0, 2, 7, 14],
        "left_max_position_embeddings": [4, 64], "right_max_position_embeddings": [8, 16],
        "encoder_max_relative_position": [20, 160], "rel_extent": [64, 1024], "sliding_window_size": [32, 512],
        "swa_num_attention_heads": [8, 32], "swa_head_dim": [64, 128], "encoder_attention_heads": [4, 12],
        "position_embeddings_type": ["relative_key"], "global_attn_indexes": [[2, 5], [1], []],
        "use_abs_pos": [True, False], "use_rel_pos": [True], "encoder_layers": [2, 3], "decoder_layers": [1, 2],
        "encoder_num_attention_heads": [2, 4], "decoder_num_attention_heads": [2, 8],
    }

    def compute(self, cls, inspected, config):
        """Returns the result of the first form's probe that is not None, with the form's name as "kind"."""
        model = build_model(cls, config)
        for name, (probe, _) in FORMS.items():
            found = probe(model, config)
            if found:
                return {"kind": name, **found}
        return None

    def compare(self, reading, expected):
        return FORMS[expected["kind"]][1](reading["parts"], expected)


class Stub:
    """A stand-in for a module, with the attributes that a method of its class reads when it runs on numbers."""
    def __init__(self, **attributes):
        vars(self).update(attributes)


def compare_numbers(part, expected, rows):
    """Returns "" if layers, heads, head_dim and rows of the table are those of the model, else the difference."""
    mine = [part.get("layers", 0), part["heads"], part["head_dim"], rows]
    theirs = [expected[key] for key in ("layers", "heads", "head_dim", "rows")]
    return "" if mine == theirs else f"{mine} are read, there are {theirs}"


# ---- both_ways: Transformer-XL's sinusoids of distances to earlier and to later keys ----

BOTH_WAYS = {}  # cache of the experiments of probe_both_ways()


def bias_shape(module):
    """Returns [heads, head_dim] of the bias that is added to queries for this term, or None."""
    shapes = tensor_shapes(module).items()
    return next((s for n, s in shapes if n in ("bias_v", "pos_bias_v") and len(s) == 2), None)


def probe_both_ways(model, config):
    """Returns the width, the stacks [heads, layers], the rows of pairs, and three rows of the table."""
    width = getattr(config, "hidden_size", None)
    found = {path: m for path, m in model.named_modules() if bias_shape(m)}
    if not found or not isinstance(width, int):
        return None
    attention = next(iter(found.values()))
    tables = [m for m in model.modules() if re.search(r"Rel\w*Position", type(m).__name__) and hasattr(m, "made_of")]
    key = (type(attention), tuple(map(type, tables)), width)
    if key not in BOTH_WAYS:
        columns, made = columns_of(attention), (distance_table(module, width) for module in tables)
        BOTH_WAYS[key] = columns, next((table for table in made if table is not None), None)
    columns, table = BOTH_WAYS[key]
    if columns is None or table is None:
        return None
    stacks = collections.Counter((re.sub(r"\.\d+\..*", "", path), bias_shape(m)[0]) for path, m in found.items())
    return {"width": width, "stacks": sorted([heads, layers] for (_, heads), layers in stacks.items()),
            "columns": columns, "table": [table[0].tolist(), table[TOKENS - 1].tolist(), table[-1].tolist()]}


def columns_of(module):
    """Returns the rows of pairs [TOKENS][TOKENS], or None if the module has no step that shows them."""
    rows = torch.arange(2 * TOKENS - 1, dtype=torch.float32)
    shift = next((getattr(module, name) for name in dir(type(module)) if SHIFT.search(name)), None)
    if shift is not None:
        return shift(rows.expand(1, 1, TOKENS, -1).clone())[0, 0, :, :TOKENS].to(torch.int64).tolist()
    query, table, zero = torch.ones(1, 1, TOKENS, 1), torch.zeros(1, 2 * TOKENS - 1, 1), torch.zeros(1, 1)
    stub = Stub(head_size=1, scaling=1.0, pos_bias_u=zero, pos_bias_v=zero, num_heads=1,
                linear_pos=lambda table: torch.arange(table.shape[1], dtype=torch.float32)[None, :, None])
    apply = getattr(sys.modules[type(module).__module__], "_apply_relative_position_encoding", None)
    if apply is not None:
        return apply(stub, query, query, table)[1][0, 0].to(torch.int64).tolist()
    method = getattr(type(module), "_apply_relative_embeddings", None)
    if method is None:
        return None
    try:
        scores = method(stub, query, torch.zeros(1, 1, TOKENS, 1), table)
    except Exception:
        return None
    return scores[0, 0].round().to(torch.int64).tolist()


def distance_table(module, width):
    """Returns the table of distances [2 TOKENS - 1, width] that a module makes for TOKENS tokens, or None."""
    try:
        own = rebuild(module).eval()
        out = limit_time(5, lambda: own(torch.zeros(1, TOKENS, width)))
    except (Exception, TooLong):
        return None
    tensors = [t for t in (out if isinstance(out, tuple) else (out,)) if isinstance(t, torch.Tensor)]
    fits = (t for t in tensors if t.shape[-1] == width and t.numel() == (2 * TOKENS - 1) * width)
    return next((t.reshape(-1, width).double() for t in fits), None)


def compare_both_ways(parts, expected):
    mine = sorted([p.get("heads"), p.get("layers", 0)] for p in parts)
    if not all(p["encoding"] == "shaw" and p.get("both_ways") for p in parts):
        return "terms in both directions are not read"
    widths = sorted({p["width"] for p in parts})
    if mine != expected["stacks"] or widths != [expected["width"]]:
        return f"heads and layers {mine} and widths {widths} are read; there are {expected['stacks']} and " \
               f"{expected['width']}"
    half = int(expected["width"]) // 2
    omega = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    for distance, row in zip((TOKENS - 1, 0, 1 - TOKENS), expected["table"]):
        if not agree(sinusoid_row(distance * omega), row):
            return f"the row of distance {distance} is another"
    mine = [[TOKENS - 1 - (i - j) for j in range(TOKENS)] for i in range(TOKENS)]
    return "" if mine == expected["columns"] else f"columns of distances are {expected['columns']}"


# ---- in_blocks: Shaw's terms within blocks of keys ----

BLOCK_DISTANCES = {}  # {(class, members): distances [block, block]}


def block_distances(cls, config):
    """Returns the distances of a block [block, block], a buffer of the encoder, which is built with one layer."""
    key = (cls, repr({k: getattr(config, k, None) for k in ("context_size", "max_pos_emb", "max_position_embeddings")}))
    if key not in BLOCK_DISTANCES:
        small = copy.deepcopy(config)
        for name in ("num_layers", "num_hidden_layers"):
            if hasattr(small, name):
                setattr(small, name, 1)
        shape, buffers = [config.context_size] * 2, model_classes(cls)[0](small).buffers()
        BLOCK_DISTANCES[key] = next((b for b in buffers if b.dtype == torch.int64 and list(b.shape) == shape), None)
    return BLOCK_DISTANCES[key]


def probe_blocks(model, config):
    """Returns sizes of the terms, those of a block, and the rows at three of its corners."""
    found = [m.rel_pos_emb for m in model.modules() if isinstance(getattr(m, "rel_pos_emb", None), nn.Embedding)]
    distances = block_distances(type(config), config) if found else None
    if distances is None:
        return None
    heads = getattr(config, "num_heads", None)
    return {"layers": len(found), "rows": found[0].num_embeddings, "head_dim": found[0].embedding_dim,
            "block": list(distances.shape), "heads": config.num_attention_heads if heads is None else heads,
            "columns": [int(distances[0, 0]), int(distances[0, -1]), int(distances[-1, 0])]}


def compare_blocks(parts, expected):
    part = parts[0]
    block, middle = part["length"], part["max_distance"]
    mine = [part.get("layers", 0), part["heads"], part["head_dim"], 2 * middle + 1, [block] * 2,
            [middle, middle - block + 1, middle + block - 1]]
    theirs = [expected[key] for key in ("layers", "heads", "head_dim", "rows", "block", "columns")]
    return "" if mine == theirs and part.get("backward") else f"{mine} are read, there are {theirs}"


# ---- decomposed: SAM's terms by rows and by columns of patches ----

def probe_decomposed(model, config):
    """Returns [height, width, head_dim] of each module, the shape of the table of positions, and the direction."""
    shapes = [s for s in map(tensor_shapes, model.modules()) if {"rel_pos_h", "rel_pos_w"} <= set(s)]
    if not shapes:
        return None
    absolute = (p for name, p in model.named_parameters() if name.endswith("pos_embed") and p.dim() == 4)
    module = next(m for m in model.modules() if hasattr(m, "get_rel_pos"))
    rows = torch.arange(2 * TOKENS - 1, dtype=torch.float32)[:, None]
    columns, seq = module.get_rel_pos(TOKENS, TOKENS, rows)[..., 0].round().to(torch.int64), torch.arange(TOKENS)
    return {"sides": [[(s["rel_pos_h"][0] + 1) // 2, (s["rel_pos_w"][0] + 1) // 2, s["rel_pos_h"][1]] for s in shapes],
            "table": next((list(p.shape) for p in absolute), None),
            "backward": bool((columns == seq[:, None] - seq[None, :] + TOKENS - 1).all())}  # the row of query - key


def compare_decomposed(parts, expected):
    terms, tables = ([p for p in parts if p["encoding"] == encoding] for encoding in ("decomposed", "learned"))
    mine = sorted([p["window"], p["window"], p["head_dim"]] for p in terms for _ in range(int(p.get("layers", 0))))
    table = expected["table"] and [expected["table"][1] * expected["table"][2], expected["table"][3]]
    if not expected["backward"]:
        return "the rows are not those of query - key"
    if mine != sorted(expected["sides"]):
        return f"{mine} are read, there are {expected['sides']}"
    return "" if [[t["rows"], t["width"]] for t in tables] == ([table] if table else []) else f"the table is {table}"


# ---- nearest: rows of the nearest distances, for keys and for values (VITS) ----

def probe_nearest(model, config):
    """Returns sizes of the terms, the rows of pairs, and sums of rows weighted by the pairs' numbers."""
    found = [m for m in model.modules() if "emb_rel_k" in tensor_shapes(m)]
    if not found:
        return None
    n_rows, head_dim = tensor_shapes(found[0])["emb_rel_k"][1:]
    by_distance = found[0]._get_relative_embeddings(torch.arange(1.0, n_rows + 1)[None, :, None], TOKENS)
    products = by_distance.transpose(1, 2).expand(1, TOKENS, -1)
    columns = found[0]._relative_position_to_absolute_position(products)[0]
    weights = torch.arange(1.0, TOKENS * TOKENS + 1).reshape(1, TOKENS, TOKENS)
    sums = torch.matmul(found[0]._absolute_position_to_relative_position(weights), by_distance)[0, :, 0]
    return {"layers": len(found), "heads": config.num_attention_heads, "head_dim": head_dim, "rows": n_rows,
            "columns": columns.to(torch.int64).tolist(), "sums": sums.tolist()}


def compare_nearest(parts, expected):
    part, seq = parts[0], torch.arange(TOKENS)
    # Rows count from 1, and 0 stands for no row.
    last = int(part["max_distance"])
    columns = (seq[None, :] - seq[:, None]).clamp(-last, last) + last
    columns[columns == 2 * last] = 0
    sums = (torch.arange(1, TOKENS * TOKENS + 1).reshape(TOKENS, TOKENS) * columns).sum(1).double()
    if columns.tolist() != expected["columns"]:
        return f"columns of distances are {expected['columns']}"
    if sums.tolist() != expected["sums"]:
        return f"sums by distance are {expected['sums']}"
    if part.get("backward") or not part.get("of_values"):
        return "distances from query to key are not read, or not for values"
    return compare_numbers(part, expected, 2 * part["max_distance"] - 1)


# ---- limited: distances clipped to a limit on either side (Wav2Vec2-BERT, SpeechT5) ----

def probe_limited(model, config):
    """Returns sizes of the terms, and the rows of the first query and of the last."""
    clipping = [m for m in model.modules() if hasattr(m, "left_max_position_embeddings")
                and isinstance(getattr(m, "distance_embedding", None), nn.Embedding)]
    encoder = next((m for m in model.modules() if isinstance(getattr(m, "pe_k", None), nn.Embedding)), None)
    if clipping:
        table, layers, columns = clipping[0].distance_embedding, len(clipping), columns_of_limits(clipping[0])
    elif encoder is not None:
        n, own = far_tokens(encoder.pe_k), rebuild(encoder)
        own._modules["pe_k"] = lambda at: at
        table, layers, columns = encoder.pe_k, config.num_hidden_layers, own(torch.zeros(1, n, 1))[[0, -1]].tolist()
    else:
        return None
    return columns and {"layers": layers, "heads": config.num_attention_heads, "head_dim": table.embedding_dim,
                        "rows": table.num_embeddings, "columns": columns}


def far_tokens(table):
    """Returns a number of tokens whose distances take all rows of a table."""
    return min(table.num_embeddings + 2, 2200)


def columns_of_limits(module):
    """Returns the rows of the first query and of the last by a module with both limits; None if nothing shows them."""
    apply = getattr(sys.modules[type(module).__module__], "_apply_relative_key_position_encoding", None)
    if apply is None:
        return None
    stub = Stub(left_max_position_embeddings=module.left_max_position_embeddings, scaling=1.0, head_size=1,
                right_max_position_embeddings=module.right_max_position_embeddings,
                distance_embedding=lambda at: at[..., None].double())
    query = torch.ones(1, 1, far_tokens(module.distance_embedding), 1, dtype=torch.float64)
    return apply(stub, query, query)[1][0, 0][[0, -1]].to(torch.int64).tolist()


def compare_limited(parts, expected):
    part, n = parts[0], len(expected["columns"][0])
    left, right = int(part["left"]), int(part["right"])
    sign = -1 if part.get("backward") else 1
    columns = [[max(-left, min(right, sign * (j - i))) + left for j in range(n)] for i in (0, n - 1)]
    if columns != expected["columns"] or part["max_distance"] != max(left, right):
        return "columns of distances are others"
    return compare_numbers(part, expected, left + right + 1)


# ---- behind: distances of earlier keys, up to a limit (Inkling) ----

def probe_behind(model, config):
    """Returns the stacks [heads, head_dim, extent, layers], and rows of the first query and of the last."""
    found = [(m, m.rel_logits_proj) for m in model.modules() if hasattr(m, "rel_logits_proj")]
    if not found:
        return None
    stacks = collections.Counter((m.num_heads, m.head_dim, terms.rel_extent) for m, terms in found)
    extent = min(stack[2] for stack in stacks)
    n, stub = torch.arange(extent + 2), Stub(rel_extent=extent, proj=torch.arange(1.0, extent + 1)[None])
    columns = type(found[0][1]).forward(stub, torch.ones(1, extent + 2, 1, 1), n, n)[0, 0].to(torch.int64)
    return {"stacks": sorted([*stack, layers] for stack, layers in stacks.items()), "extent": extent,
            "last": columns[-1].tolist(), "first": columns[0].tolist()}


def compare_behind(parts, expected):
    mine = {(part["heads"], part["head_dim"], part["max_distance"]) for part in parts}
    theirs, extent = {tuple(stack[:3]) for stack in expected["stacks"]}, expected["extent"]
    # Rows count from 1, and 0 stands for no row.
    last = [0 if distance >= extent else distance + 1 for distance in range(extent + 1, -1, -1)]
    bare = all(part.get("backward") and part.get("bare") for part in parts)
    if expected["last"] != last or any(expected["first"][1:]) or not bare:
        return "columns of distances are others"
    # posenc does not read how many layers slide, and keeps a type of layers that a model lacks.
    return "" if theirs <= mine else f"{mine} are read, there are {theirs}"


# {name: (probe(model, config), compare(parts, expected))}; a probe returns None if the model has not this form.
FORMS = {
    "both_ways": (probe_both_ways, compare_both_ways), "in_blocks": (probe_blocks, compare_blocks),
    "decomposed": (probe_decomposed, compare_decomposed), "nearest": (probe_nearest, compare_nearest),
    "limited": (probe_limited, compare_limited), "behind": (probe_behind, compare_behind),
}
