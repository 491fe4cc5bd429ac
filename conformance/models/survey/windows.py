"""Biases in windows of a picture: Swin's, in stages, and BEiT's, in one window with a class token.

What is compared are the windows, heads and layers of each stage, and the index of a small window of such a module: which row of the table
each query and key take.
"""
import collections
import math

import torch
from truth import again, build
from values import some

ENCODINGS = ("window",)
indexed = {}


def swin_index(h, w):
    """Row (dy + h - 1) (2w - 1) + dx + w - 1 for each query and key."""
    y, x = (t.flatten() for t in torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"))
    return (y[:, None] - y[None, :] + h - 1) * (2 * w - 1) + x[:, None] - x[None, :] + w - 1


def beit_index(h, w):
    """The same with a class token first, whose rows are three more."""
    rows, out = (2 * h - 1) * (2 * w - 1), torch.zeros(h * w + 1, h * w + 1, dtype=torch.int64)
    out[1:, 1:] = swin_index(h, w)
    out[0, :], out[:, 0], out[0, 0] = rows, rows + 1, rows + 2
    return out


def biases(model):
    """Modules that gather a bias, with their window, heads, and whether a network makes the table."""
    for path, module in model.named_modules():
        table = getattr(module, "relative_position_bias_table", None)
        network = getattr(module, "continuous_position_bias_mlp", None)
        if table is None and network is None:
            continue
        window = module.window_size if isinstance(module.window_size, (tuple, list)) else (module.window_size,) * 2
        heads = table.shape[1] if table is not None else network[-1].out_features
        yield module, [int(w) for w in window], heads, network is not None, table.shape[0] if table is not None else None


def is_right(module, window):
    """Whether the index of such a module, of its own window, is that of the formula."""
    key = (type(module), tuple(window))
    if key not in indexed:
        own = again(module)
        if hasattr(own, "generate_relative_position_index"):
            indexed[key] = bool(torch.equal(own.generate_relative_position_index(tuple(window)), beit_index(*window)))
        else:
            indexed[key] = bool(torch.equal(own.relative_position_index.reshape(math.prod(window), -1), swin_index(*window)))
    return indexed[key]


def ask(cls, seen, config):
    model, why = build(cls, config)
    if model is None:
        raise ValueError(why)
    found, counted = list(biases(model)), collections.Counter()
    for module, window, heads, _, _ in found:
        counted[window[0], window[1], heads] += 1
    return {"stages": sorted([*k, n] for k, n in counted.items()), "right": all(is_right(m, w) for m, w, *_ in found),
            "rows": sorted({(tuple(w), r) for _, w, _, _, r in found if r}), "made": bool(found and found[0][3])}


def judge(said, answer):
    parts, mine = [p for p in said["parts"] if p["encoding"] == "window"], collections.Counter()
    for p in parts:
        mine[int(p["window"]), int(p["heads"])] += int(p.get("layers", 0))
    shared = answer["stages"] and len(answer["stages"]) == 1 and answer["stages"][0][3] == 1
    theirs = {(w, h): n for w, _, h, n in answer["stages"]}
    rows = {(p["window"], (2 * p["window"] - 1) ** 2 + 3 * p.get("window_class", 0)) for p in parts}
    said_rows = {(w[0], n) for w, n in answer["rows"]}
    same = dict(mine) == theirs or (shared and set(mine) == set(theirs))  # one bias for all layers, where BEiT shares it
    if not same or not answer["right"] or any(w != v for w, v, *_ in answer["stages"]) or not said_rows <= rows:
        return f"windows, heads and layers {dict(mine)} are read, there are {answer}"
    return ""


NUMBERS = {
    "image_size": [224, 256, 384], "patch_size": [2, 4, 8], "window_size": [4, 7, 8, 14], "embed_dim": [96, 192],
    "depths": [[2, 2, 18, 2], [1, 1]], "num_heads": [[4, 8, 16, 32], [2, 4]], "num_attention_heads": [[2, 4, 8, 16]],
    "patch_embeds_hidden_size": [64, 96], "use_relative_position_bias": [True],
    "use_shared_relative_position_bias": [True],
}


def mutate(rng, plain, seen):
    out = some(rng, plain, NUMBERS)
    stages = out.get("depths")
    for name in ("num_heads", "num_attention_heads"):
        if isinstance(plain.get(name), (list, tuple)) and (stages or name in out):
            wanted = len(stages or plain["depths"])
            out[name] = [2 * 2 ** k for k in range(wanted)]
    if not isinstance(plain.get("num_attention_heads"), (list, tuple)) and "depths" not in plain:
        out.pop("num_attention_heads", None)
        out.update({"patch_size": rng.choice([16, 32])} if "patch_size" in out else {})
        out[rng.choice(["use_relative_position_bias", "use_shared_relative_position_bias"])] = True
    return out
