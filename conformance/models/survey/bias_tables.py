"""Compares biases of scores from learned tables: T5's buckets of distances, and the windows of Swin and BEiT."""
import collections
import math

import torch
from comparer import SIZES, Comparer
from transformers_models import build_model, rebuild


class T5Comparer(Comparer):
    """Comparer of the sizes of T5's tables."""
    encodings = ("t5",)
    values = {
        **SIZES, "relative_attention_num_buckets": [16, 32, 64], "relative_attention_max_distance": [64, 128, 256],
        "num_buckets": [64, 160], "max_bucket_distance": [200, 400], "num_heads": [4, 8], "num_layers": [2, 4],
        "d_kv": [32, 64],
    }

    def compute(self, cls, inspected, config):
        """Returns {path: [buckets, heads]} of the tables."""
        return {path: list(m.weight.shape) for path, m in build_model(cls, config).named_modules()
                if path.endswith(("relative_attention_bias", "rel_attn_embed")) and hasattr(m, "weight")}

    def compare(self, reading, expected):
        mine = [[int(p["num_buckets"]), int(p["heads"])] for p in reading["parts"] if p["encoding"] == "t5"]
        same = mine and all(shape in mine for shape in expected.values())
        return "" if same else f"{mine} are read, there are {expected}"


class WindowComparer(Comparer):
    """Comparer of windows, heads and layers of each stage, and of the index of rows by query and key.

    Swin has stages of windows. BEiT has one window with a class token.
    """
    encodings = ("window",)
    values = {
        "image_size": [224, 256, 384], "patch_size": [2, 4, 8], "window_size": [4, 7, 8, 14], "embed_dim": [96, 192],
        "depths": [[2, 2, 18, 2], [1, 1]], "num_heads": [[4, 8, 16, 32], [2, 4]],
        "num_attention_heads": [[2, 4, 8, 16]], "patch_embeds_hidden_size": [64, 96],
        "use_relative_position_bias": [True], "use_shared_relative_position_bias": [True],
    }

    def __init__(self):
        self.index_is_right = {}  # {(class of a module, window): result of has_right_index()}

    def compute(self, cls, inspected, config):
        """Returns {"stages": [[height, width, heads, layers], ...], "right": true if indices are those of the formula,
        "rows": [(window, rows of its table), ...], "made": true if a network makes the table}."""
        stages, rows, right, made = collections.Counter(), set(), True, None
        for module in build_model(cls, config).modules():
            table = getattr(module, "relative_position_bias_table", None)
            network = getattr(module, "continuous_position_bias_mlp", None)
            if table is None and network is None:
                continue
            size = module.window_size
            window = tuple(int(side) for side in (size if isinstance(size, (tuple, list)) else (size, size)))
            heads = table.shape[1] if table is not None else network[-1].out_features
            stages[window[0], window[1], heads] += 1
            if table is not None:
                rows.add((window, table.shape[0]))
            made = network is not None if made is None else made
            key = type(module), window
            if key not in self.index_is_right:
                self.index_is_right[key] = has_right_index(module, window)
            right = right and self.index_is_right[key]
        return {"stages": sorted([*stage, layers] for stage, layers in stages.items()), "right": right,
                "rows": sorted(rows), "made": bool(made)}

    def compare(self, reading, expected):
        """Compares all stages. BEiT may share one module among all layers."""
        parts, mine = [p for p in reading["parts"] if p["encoding"] == "window"], collections.Counter()
        for part in parts:
            mine[int(part["window"]), int(part["heads"])] += int(part.get("layers", 0))
        shared = len(expected["stages"]) == 1 and expected["stages"][0][3] == 1
        theirs = {(height, heads): layers for height, _, heads, layers in expected["stages"]}
        my_rows = {(p["window"], (2 * p["window"] - 1) ** 2 + 3 * p.get("window_class", 0)) for p in parts}
        rows = {(window[0], n) for window, n in expected["rows"]}
        same = dict(mine) == theirs or (shared and set(mine) == set(theirs))
        square = all(height == width for height, width, *_ in expected["stages"])
        if not same or not expected["right"] or not square or not rows <= my_rows:
            return f"windows, heads and layers {dict(mine)} are read, there are {expected}"
        return ""

    def mutate(self, rng, defaults, inspected):
        members = super().mutate(rng, defaults, inspected)
        depths = members.get("depths")
        for name in ("num_heads", "num_attention_heads"):
            if isinstance(defaults.get(name), (list, tuple)) and (depths or name in members):
                members[name] = [2 * 2 ** stage for stage in range(len(depths or defaults["depths"]))]
        if not isinstance(defaults.get("num_attention_heads"), (list, tuple)) and "depths" not in defaults:
            members.pop("num_attention_heads", None)
            if "patch_size" in members:
                members["patch_size"] = rng.choice([16, 32])
            members[rng.choice(["use_relative_position_bias", "use_shared_relative_position_bias"])] = True
        return members


def has_right_index(module, window):
    """Returns true if the index of a module for its window is that of the formula."""
    own = rebuild(module)
    if hasattr(own, "generate_relative_position_index"):
        return bool(torch.equal(own.generate_relative_position_index(window), beit_index(*window)))
    return bool(torch.equal(own.relative_position_index.reshape(math.prod(window), -1), swin_index(*window)))


def swin_index(height, width):
    """Returns row (dy + height - 1) (2 width - 1) + dx + width - 1 for each query and key."""
    y, x = (t.flatten() for t in torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"))
    return (y[:, None] - y[None, :] + height - 1) * (2 * width - 1) + x[:, None] - x[None, :] + width - 1


def beit_index(height, width):
    """Returns the same with a class token first: three more rows are for pairs with it."""
    rows = (2 * height - 1) * (2 * width - 1)
    out = torch.zeros(height * width + 1, height * width + 1, dtype=torch.int64)
    out[1:, 1:] = swin_index(height, width)
    out[0, :], out[:, 0], out[0, 0] = rows, rows + 1, rows + 2
    return out
