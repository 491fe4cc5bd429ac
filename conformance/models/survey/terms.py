"""Terms of scores by relative position that queries give: Shaw's, Transformer-XL's in both directions, SAM's by rows and by columns.

What a module adds at query i and key j is the product of the query and of one of the rows that it has for distances.  Which one is found
by running what shifts, or indexes, those products on numbers that say their own column.
"""
import collections
import copy
import re
import sys

import torch
from sinusoid import row_at, same
from truth import TooLong, again, build, in_time, model_classes, nn
from values import SIZES, some

ENCODINGS = ("shaw", "decomposed")
TOKENS = 5
FLAT = re.compile(r"rel.*shift|shift_rel", re.I)
made = {}


def own_parameters(module):
    return {n: list(p.shape) for n, p in list(module.named_parameters(recurse=False)) + list(module.named_buffers(recurse=False))}


# ---- Transformer-XL's, in both directions ----

def biases(module):
    """[heads, head_dim] of the bias that queries take before they meet the table of distances."""
    return next((s for n, s in own_parameters(module).items() if n in ("bias_v", "pos_bias_v") and len(s) == 2), None)


class Fake:
    """In the place of an attention module whose products are numbers: each column of the table is its own number."""
    def __init__(self, heads):
        self.head_size, self.scaling, self.pos_bias_u = 1, 1.0, torch.zeros(heads, 1)
        self.pos_bias_v = torch.zeros(heads, 1)

    def linear_pos(self, table):
        return torch.arange(table.shape[1], dtype=torch.float32)[None, :, None]


def columns_of(module):
    """The column of the products that query i and key j take, [TOKENS, TOKENS]; None where nothing tells it."""
    numbers = torch.arange(2 * TOKENS - 1, dtype=torch.float32).expand(1, 1, TOKENS, 2 * TOKENS - 1)
    shift = next((getattr(module, n) for n in dir(type(module)) if FLAT.search(n)), None)
    if shift is not None:
        return shift(numbers.clone())[0, 0, :, :TOKENS].to(torch.int64).tolist()
    apply = getattr(sys.modules[type(module).__module__], "_apply_relative_position_encoding", None)
    if apply is None:
        return by_running(module)
    query = torch.ones(1, 1, TOKENS, 1)
    return apply(Fake(1), query, query, torch.zeros(1, 2 * TOKENS - 1, 1))[1][0, 0].to(torch.int64).tolist()


def by_running(module):
    """The same of a module whose one method gives the scores: what it adds to those of the content."""
    method = getattr(module, "_apply_relative_embeddings", None)
    if method is None:
        return None
    fake = Fake(1)
    fake.num_heads = 1
    fake.pos_bias_u = fake.pos_bias_v = torch.zeros(1, 1)
    query = torch.ones(1, TOKENS, 1, 1).transpose(1, 2)
    try:
        scores = type(module)._apply_relative_embeddings(fake, query, torch.zeros(1, 1, TOKENS, 1), torch.zeros(1, 2 * TOKENS - 1, 1))
    except Exception:
        return None
    return scores[0, 0].round().to(torch.int64).tolist()


def distances_of(module, width):
    """The table that it gives for TOKENS tokens, [2 TOKENS - 1, width], or None."""
    try:
        own = again(module).eval()
        out = in_time(5, lambda: own(torch.zeros(1, TOKENS, width)))
    except (Exception, TooLong):
        return None
    for one in out if isinstance(out, tuple) else (out,):
        if isinstance(one, torch.Tensor) and one.shape[-1] == width and one.numel() == (2 * TOKENS - 1) * width:
            return one.reshape(-1, width).double()
    return None


def stacks(model):
    """[heads, layers] of each stack of such modules."""
    found = collections.Counter()
    for path, module in model.named_modules():
        if biases(module):
            found[re.sub(r"\.\d+\..*", "", path), biases(module)[0]] += 1
    return [[heads, layers] for (_, heads), layers in found.items()]


def both_ways(model, config):
    width = getattr(config, "hidden_size", None)
    found = [(m, biases(m)) for m in model.modules() if biases(m)]
    if not found or not isinstance(width, int):
        return None
    tables = [m for m in model.modules() if re.search(r"Rel\w*Position", type(m).__name__) and hasattr(m, "made_of")]
    key = (type(found[0][0]), tuple(type(t) for t in tables), width)
    if key not in made:
        made[key] = (columns_of(found[0][0]), next((t for t in (distances_of(m, width) for m in tables) if t is not None), None))
    columns, table = made[key]
    if columns is None or table is None:
        return None
    return {"kind": "both_ways", "width": width, "stacks": sorted(stacks(model)),
            "columns": columns, "table": [table[0].tolist(), table[TOKENS - 1].tolist(), table[-1].tolist()]}


# ---- Shaw's, in blocks ----

def dists_of(cls, config):
    """The distances of a block, as the encoder has or gives them: [block, block]."""
    key = (cls, repr({k: getattr(config, k, None) for k in ("context_size", "max_pos_emb", "max_position_embeddings")}))
    if key not in made:
        small = copy.deepcopy(config)
        for name in ("num_layers", "num_hidden_layers"):
            if hasattr(small, name):
                setattr(small, name, 1)
        model = model_classes(cls)[0](small)
        made[key] = next((p for n, p in model.named_buffers() if p.dtype == torch.int64 and list(p.shape) == [config.context_size] * 2), None)
    return made[key]


def in_blocks(model, config):
    found = [m.rel_pos_emb for m in model.modules() if isinstance(getattr(m, "rel_pos_emb", None), nn.Embedding)]
    dists = dists_of(type(config), config) if found else None
    if dists is None:
        return None
    return {"kind": "in_blocks", "layers": len(found), "rows": found[0].num_embeddings, "head_dim": found[0].embedding_dim,
            "block": list(dists.shape), "heads": first(config, "num_heads", "num_attention_heads"),
            "columns": [int(dists[0, 0]), int(dists[0, -1]), int(dists[-1, 0])]}


def first(config, *names):
    return next(v for v in (getattr(config, n, None) for n in names) if v is not None)


# ---- SAM's ----

def decomposed(model, config):
    found = [own_parameters(m) for m in model.modules() if {"rel_pos_h", "rel_pos_w"} <= set(own_parameters(m))]
    table = next((list(p.shape) for n, p in model.named_parameters() if n.endswith("pos_embed") and p.dim() == 4), None)
    if not found:
        return None
    sides = [[(p["rel_pos_h"][0] + 1) // 2, (p["rel_pos_w"][0] + 1) // 2, p["rel_pos_h"][1]] for p in found]
    return {"kind": "decomposed", "sides": sides, "table": table, "backward": counts_backward(model)}


def counts_backward(model):
    """Whether the row of a pair is that of query - key."""
    module = next(m for m in model.modules() if hasattr(m, "get_rel_pos"))
    numbers = torch.arange(2 * TOKENS - 1, dtype=torch.float32)[:, None]
    columns = module.get_rel_pos(TOKENS, TOKENS, numbers)[..., 0].round().to(torch.int64)
    seq = torch.arange(TOKENS)
    return bool((columns == seq[:, None] - seq[None, :] + TOKENS - 1).all())


# ---- those of the nearest distances, of keys and of values ----

def nearest(model, config):
    found = [m for m in model.modules() if "emb_rel_k" in own_parameters(m)]
    if not found:
        return None
    rows, head_dim = own_parameters(found[0])["emb_rel_k"][1:]
    one, numbers = found[0], torch.arange(1.0, rows + 1)[None, :, None]
    of_distances = one._get_relative_embeddings(numbers, TOKENS)
    columns = one._relative_position_to_absolute_position(of_distances.transpose(1, 2).expand(1, TOKENS, -1))
    weights = torch.arange(1.0, TOKENS * TOKENS + 1).reshape(1, TOKENS, TOKENS)
    return {"kind": "nearest", "layers": len(found), "heads": config.num_attention_heads, "head_dim": head_dim, "rows": rows,
            "columns": columns[0].to(torch.int64).tolist(),
            "sums": torch.matmul(one._absolute_position_to_relative_position(weights), of_distances)[0, :, 0].tolist()}


# ---- those of distances clipped on either side ----

def limited(model, config):
    keyed = [m for m in model.modules() if isinstance(getattr(m, "distance_embedding", None), nn.Embedding) and hasattr(m, "left_max_position_embeddings")]
    given = next((m for m in model.modules() if isinstance(getattr(m, "pe_k", None), nn.Embedding)), None)
    if keyed:
        one, table = keyed[0], keyed[0].distance_embedding
        layers, columns = len(keyed), columns_keyed(one)
    elif given is not None:
        table, layers, columns = given.pe_k, config.num_hidden_layers, columns_given(given)
    else:
        return None
    return None if columns is None else {"kind": "limited", "layers": layers, "heads": config.num_attention_heads,
                                         "head_dim": table.embedding_dim, "rows": table.num_embeddings, "columns": columns}


def far(module):
    """A length at which all rows of a module's table are used."""
    rows = (module.distance_embedding if hasattr(module, "distance_embedding") else module.pe_k).num_embeddings
    return min(rows + 2, 2200)


def columns_keyed(module):
    """Columns of the first query, and of the last, of a module that clips to two limits of its own."""
    apply = getattr(sys.modules[type(module).__module__], "_apply_relative_key_position_encoding", None)
    if apply is None:
        return None
    n, fake = far(module), Fake(1)
    fake.left_max_position_embeddings, fake.right_max_position_embeddings = module.left_max_position_embeddings, module.right_max_position_embeddings
    fake.distance_embedding = lambda at: at[..., None].double()
    query = torch.ones(1, 1, n, 1, dtype=torch.float64)
    scores = apply(fake, query, query)[1][0, 0].to(torch.int64)
    return [scores[0].tolist(), scores[-1].tolist()]


def columns_given(module):
    """The same of a module that gives the embeddings of all distances."""
    n, own = far(module), again(module)
    own._modules["pe_k"] = lambda at: at
    columns = own(torch.zeros(1, n, 1))
    return [columns[0].tolist(), columns[-1].tolist()]


# ---- those of distances behind the query, up to one ----

def behind(model, config):
    found = [(m, m.rel_logits_proj) for m in model.modules() if hasattr(m, "rel_logits_proj")]
    if not found:
        return None
    kinds = collections.Counter((m.num_heads, m.head_dim, terms.rel_extent) for m, terms in found)
    extent, fake = min(k[2] for k in kinds), Fake(1)
    n = torch.arange(extent + 2)
    fake.rel_extent, fake.proj = extent, torch.arange(1.0, extent + 1)[None]
    columns = type(found[0][1]).forward(fake, torch.ones(1, extent + 2, 1, 1), n, n)[0, 0].to(torch.int64)
    return {"kind": "behind", "stacks": sorted([*k, layers] for k, layers in kinds.items()), "extent": extent, "last": columns[-1].tolist(),
            "first": columns[0].tolist()}


FORMS = [both_ways, in_blocks, decomposed, nearest, limited, behind]


def ask(cls, seen, config):
    model, why = build(cls, config)
    if model is None:
        raise ValueError(why)
    return next((found for found in (form(model, config) for form in FORMS) if found), None)


# ---- whether the reader says the same ----

def judge(said, answer):
    """"" where the terms that are read are those of the model, else what differs."""
    judges = {"both_ways": judge_both_ways, "in_blocks": judge_blocks, "decomposed": judge_decomposed,
              "nearest": judge_nearest, "limited": judge_limited, "behind": judge_behind}
    return judges[answer["kind"]](said["parts"], answer)


def judge_both_ways(parts, answer):
    part, mine = parts[0], sorted([p.get("heads"), p.get("layers", 0)] for p in parts)
    if not all(p["encoding"] == "shaw" and p.get("both_ways") for p in parts):
        return "terms in both directions are not read"
    if mine != answer["stacks"] or part["width"] != answer["width"]:
        return f"heads and layers {mine} and width {part['width']} are read; there are {answer['stacks']} and {answer['width']}"
    for distance, theirs in zip((TOKENS - 1, 0, 1 - TOKENS), answer["table"]):
        if not same(row_at(distance, int(part["width"]), False, False), torch.tensor(theirs, dtype=torch.float64)):
            return f"the row of distance {distance} is another"
    mine = [[TOKENS - 1 - (i - j) for j in range(TOKENS)] for i in range(TOKENS)]
    return "" if mine == answer["columns"] else f"columns of distances are {answer['columns']}"


def judge_blocks(parts, answer):
    part = parts[0]
    block, middle = part["length"], part["max_distance"]
    mine = [part.get("layers", 0), part["heads"], part["head_dim"], 2 * middle + 1, [block] * 2, [middle, middle - block + 1, middle + block - 1]]
    theirs = [answer[k] for k in ("layers", "heads", "head_dim", "rows", "block", "columns")]
    return "" if mine == theirs and part.get("backward") else f"{mine} are read, there are {theirs}"


def judge_nearest(parts, answer):
    part, seq = parts[0], torch.arange(TOKENS)
    mine = [part.get("layers", 0), part["heads"], part["head_dim"], 2 * part["max_distance"] - 1]
    theirs = [answer[k] for k in ("layers", "heads", "head_dim", "rows")]
    last = int(part["max_distance"])
    columns = (seq[None, :] - seq[:, None]).clamp(-last, last) + last
    columns[columns == 2 * last] = 0
    sums = (torch.arange(1, TOKENS * TOKENS + 1).reshape(TOKENS, TOKENS) * columns).sum(1).double()
    if columns.tolist() != answer["columns"] or sums.tolist() != answer["sums"] or part.get("backward") or not part.get("of_values"):
        return f"columns of distances are {answer['columns']}"
    return "" if mine == theirs else f"{mine} are read, there are {theirs}"


def judge_limited(parts, answer):
    part, n = parts[0], len(answer["columns"][0])
    left, right = int(part["left"]), int(part["right"])
    mine = [part.get("layers", 0), part["heads"], part["head_dim"], left + right + 1]
    theirs = [answer[k] for k in ("layers", "heads", "head_dim", "rows")]
    sign = -1 if part.get("backward") else 1
    columns = [[max(-left, min(right, sign * (j - i))) + left for j in range(n)] for i in (0, n - 1)]
    if columns != answer["columns"] or part["max_distance"] != max(left, right):
        return "columns of distances are others"
    return "" if mine == theirs else f"{mine} are read, there are {theirs}"


def judge_behind(parts, answer):
    mine, theirs = {(p["heads"], p["head_dim"], p["max_distance"]) for p in parts}, {tuple(k[:3]) for k in answer["stacks"]}
    extent = answer["extent"]
    last = [0 if extent + 1 - j >= extent else extent + 2 - j for j in range(extent + 2)]
    if answer["last"] != last or any(answer["first"][1:]) or not all(p.get("backward") and p.get("bare") for p in parts):
        return "columns of distances are others"
    return "" if theirs <= mine else f"{mine} are read, there are {theirs}"


def judge_decomposed(parts, answer):
    terms, tables = [p for p in parts if p["encoding"] == "decomposed"], [p for p in parts if p["encoding"] == "learned"]
    mine = sorted([p["window"], p["window"], p["head_dim"]] for p in terms for _ in range(int(p.get("layers", 0))))
    table = answer["table"] and [answer["table"][1] * answer["table"][2], answer["table"][3]]
    if mine != sorted(answer["sides"]) or not answer["backward"]:
        return f"{mine} are read, there are {answer['sides']}"
    return "" if [[t["rows"], t["width"]] for t in tables] == ([table] if table else []) else f"the table is {table}"


NUMBERS = {
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


def mutate(rng, plain, seen):
    return some(rng, plain, NUMBERS)
