"""Compares tables: learned ones and sinusoids, which are added to embeddings, and biases of scores from learned tables.

Biases are those of T5's buckets of distances, and of the windows of Swin and BEiT.
"""
import collections
import copy
import math
import re

import torch
from comparer import SIZES, Comparer
from inspection import list_position_tables
from torch import nn
from transformers_models import TooLong, build_model, limit_time, rebuild

LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "num_layers")

# ---- Learned tables ----

# Names of tables by something else than the place of a token or a patch in its sequence.
OTHER_TABLES = re.compile(r"^(x|y|h|w|box|visual|entity|mid|time|temporal|tile|cell|window|rel|relative)_"
                          r"|entity|relative|rel_pos")


class LearnedComparer(Comparer):
    """Comparer of the sizes of learned tables."""
    encodings = ("learned",)
    values = {
        **SIZES, "pad_token_id": [0, 1, 5], "image_size": [96, 224, 384], "patch_size": [8, 16, 32],
        "embedding_size": [64, 128], "n_positions": [256, 2048], "num_layers": [2, 4],
        "max_source_positions": [600, 1500], "max_encoder_position_embeddings": [512, 4096],
        "max_decoder_position_embeddings": [256, 2048], "num_patches": [64, 196], "num_detection_tokens": [50, 100],
        "n_cls_tokens": [4, 8], "input_embedding_size": [64, 128], "emb_dim": [512, 1024], "block_size": [512, 2048],
        "embed_dim": [256, 512], "max_img_size": [1024, 2048], "max_image_size": [1024, 2048],
        "pretrain_image_size": [224, 384], "input_size": [224, 384], "num_frames": [8, 16],
        "num_hash_buckets": [16384, 20000],
        "vision_config": [{"image_size": 384, "patch_size": 32}, {"hidden_size": 1024, "num_attention_heads": 16}],
        "hidden_sizes": [[32, 64, 160, 256]], "seq_len": [1024, 2048], "max_num_patches": [1024, 2048],
        "axial_pos_shape": [[32, 64], [16, 16]], "axial_pos_embds_dim": [[128, 128], [32, 224]],
        "context_length": [64, 100], "patch_length": [4, 8], "patch_stride": [2, 4], "use_cls_token": [True],
        "num_mel_bins": [64, 128], "max_length": [512, 1024], "frequency_stride": [8, 10], "time_stride": [8, 10],
    }

    def compute(self, cls, inspected, config):
        """Returns {path: [rows, width]} of the tables; "made" is one that the model resizes to its picture."""
        members = config.to_dict()
        for key in LAYER_COUNTS:  # few layers, which have no tables of their own
            if isinstance(members.get(key), int) and members[key] > 1:
                try:
                    setattr(config, key, 1)
                except Exception:
                    continue
        model = build_model(cls, config)
        shapes = {}
        for table in list_position_tables(model):
            path = table["path"]
            leaf = path.rsplit(".weight", 1)[0].rsplit(".", 1)[-1]
            if not OTHER_TABLES.search(leaf) and "entity" not in path and "tile" not in path:
                shapes[path] = table["shape"]
        for module in model.modules():
            if hasattr(module, "_get_pos_embed") and hasattr(module, "pos_embed_window"):
                patches = tuple(size // stride for size, stride in zip(config.image_size, config.patch_stride))
                shape = module._get_pos_embed(patches).shape
                shapes["made"] = [shape[1] * shape[2], shape[3]]
                break
        return shapes

    def compare(self, reading, expected):
        """Compares the sizes of all tables; one reading may stand for several tables of the same size."""
        mine = collections.Counter((int(part.get("rows", 0)), int(part["width"])) for part in reading["parts"]
                                   if part["encoding"] == "learned")
        theirs = collections.Counter(tuple(shape) for shape in expected.values())
        same = set(mine) == set(theirs) and sum(mine.values()) in (1, sum(theirs.values()))
        return "" if same else f"tables of {sorted(mine)} are read, there are {expected}"

    def mutate(self, rng, defaults, inspected):
        members = super().mutate(rng, defaults, inspected)
        if isinstance(defaults.get("patch_stride"), (list, tuple)) and "patch_stride" in members:
            members["patch_stride"] = [members["patch_stride"]] * 2
        for key in ("image_size", "patch_size"):
            if key in members and isinstance(defaults.get(key), (list, tuple)) and len(defaults[key]) == 2:
                members[key] = [members[key], rng.choice(self.values[key])]
        return members


# ---- Sinusoids ----

SINUSOID_CLASS = re.compile(r"Sinus|Sine|Position(al)?(Embedding|Encoding)")
WIDTHS = ("d_model", "hidden_size", "n_embd", "embed_dim")
LENGTHS = ("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions", "context_length")
MAX_TOKENS = 4096
STORED_TABLES = ("pos_encoding", "position_embeddings", "position_embedding")  # attributes beside the weights
TOLERANCE = 5e-3


class SinusoidComparer(Comparer):
    """Comparer of rows of sinusoidal tables, which show frequencies, order of channels and the first position."""
    encodings = ("sinusoidal",)
    max_mutations = 12  # some modules take seconds for a table
    values = {
        **SIZES, "d_model": [128, 256], "hidden_size": [256, 512], "max_position_embeddings": [200, 512],
        "pad_token_id": [0, 1, 5], "max_source_positions": [600, 1500], "max_target_positions": [256, 448],
        "encoder_layers": [2], "decoder_layers": [2], "context_length": [48, 96], "prediction_length": [12, 48],
        "num_frames": [8, 32], "image_size": [112, 224], "patch_size": [8, 16], "n_positions": [128, 512],
        "max_timescale": [10000, 20000], "use_positional_embedding": [True],
    }

    def __init__(self):
        self.tables = {}  # cache of list_sinusoids()

    def compute(self, cls, inspected, config):
        """Returns {path: {token: row}}: the first two rows, the middle and the last of each table, or None."""
        for key in ("num_hidden_layers", "encoder_layers", "decoder_layers", "num_layers"):
            if isinstance(getattr(config, key, None), int):
                setattr(config, key, 1)
        found = list_sinusoids(build_model(cls, config), config, self.tables)
        return {path: {str(k): t[k].tolist() for k in sorted({0, 1, len(t) // 2, len(t) - 1})}
                for path, t in found.items()} or None

    def compare(self, reading, expected):
        """Compares each row with the same row of every sinusoid that was read: one of them has to agree."""
        parts = [part for part in reading["parts"] if part["encoding"] == "sinusoidal"]
        if not parts:
            return "no sinusoid is read"
        for path, rows in expected.items():
            for token, row in rows.items():
                mine = [row_of_part(part, int(token)) for part in parts]
                if not any(len(m) == len(row) and agree(m, row) for m in mine):
                    return f"{path}: token {token} is given another row"
        return ""


def sinusoid_row(angles, order="interleaved"):
    """Returns the sines and cosines of angles: interleaved, or all sines or all cosines first."""
    pair = [torch.sin(angles), torch.cos(angles)]
    if order == "interleaved":
        return torch.stack(pair, -1).flatten()
    return torch.cat(pair if order == "sin_cos" else pair[::-1])


def row_of_part(part, token):
    """Returns the row of a token by a part that posenc read."""
    omega = torch.tensor(part["omega"], dtype=torch.float64)
    amplitude = (2 * len(omega)) ** -0.5 if part.get("shrunk") else 1.0
    order = "cos_sin" if part.get("cos_first") else "sin_cos" if part.get("sin_cos") else "interleaved"
    return amplitude * sinusoid_row((token + part.get("first", 0)) * omega, order)


def agree(row, numbers):
    """Returns true if a row agrees with numbers of a table in f32."""
    return bool((row - torch.tensor(numbers, dtype=torch.float64)).abs().max() < TOLERANCE)


def list_sinusoids(model, config, cache):
    """Returns {path: table} of a model's modules that make or store sinusoids; tables are [rows, width]."""
    width = next((getattr(config, k) for k in WIDTHS if isinstance(getattr(config, k, None), int)), None)
    length = min([getattr(config, k) for k in LENGTHS if isinstance(getattr(config, k, None), int)] + [MAX_TOKENS])
    found = list_stored_tables(model, config, cache)
    for path, module in model.named_modules():
        if not SINUSOID_CLASS.search(type(module).__name__) or not hasattr(module, "made_of") or width is None:
            continue
        try:
            own = rebuild(module)
        except Exception:
            continue
        if isinstance(own, nn.Embedding) and own.weight.requires_grad and "Sinus" not in type(own).__name__:
            continue  # a learned table
        channels = getattr(own, "channels", None) or width
        key = (type(own), repr(module.made_of), length, channels)
        if key not in cache:
            cache[key] = make_table(own, length, channels)
        if cache[key] is not None:
            found[path] = cache[key]
    return found


def possible_calls(module, n, width):
    """Returns the calls with n tokens that such modules take."""
    ids = torch.full((1, n), 7)
    return [lambda: module(ids), lambda: module(torch.Size([1, n])), lambda: module(torch.Size([1, n]), 0),
            lambda: module(ids, 0), lambda: module(torch.zeros(1, n, width)), lambda: module(torch.full((1, 1, n), 7)),
            lambda: module(n), lambda: module(torch.arange(n)[None]), lambda: module(torch.arange(n)),
            lambda: module(torch.zeros(1, n))]


def run_call(module, index, n, width):
    """Returns the rows [n, width] that one of possible_calls() gives, or None if it does not fit the module."""
    try:
        with torch.no_grad():
            out = limit_time(2, possible_calls(module, n, width)[index])
    except (Exception, TooLong):
        return None
    if not (isinstance(out, torch.Tensor) and out.dim() > 1 and out.dtype.is_floating_point
            and out.numel() == n * width and out.shape[-1] == width):
        return None
    table = out.reshape(n, width).double()
    return None if torch.equal(table[0], table[1]) else table  # equal rows: the ids were taken for positions


def make_table(module, length, width):
    """Returns the rows of `length` tokens, or of 4 if that fails; None if no call fits the module."""
    if hasattr(module, "create_weight"):
        module.weight.data = module.create_weight()
    elif hasattr(module, "get_embedding") and isinstance(module, nn.Embedding):
        module.weight.data = module.get_embedding(*module.weight.shape, module.padding_idx)
    for index in range(len(possible_calls(module, 4, width))):
        few = run_call(module, index, 4, width)
        if few is not None:
            all_rows = run_call(module, index, length, width)
            return few if all_rows is None else all_rows
    return None


def stored_table(module):
    """Returns the table that a module stores beside its weights, or None."""
    found = [vars(module).get(name) for name in STORED_TABLES] + [module._buffers.get(name) for name in STORED_TABLES]
    found = [tensor for tensor in found if isinstance(tensor, torch.Tensor) and not isinstance(tensor, nn.Parameter)]
    return next((tensor for tensor in found if tensor.dim() in (2, 3)), None)


def list_stored_tables(model, config, cache):
    """Returns {path: table} of the modules that store one. They need a model on the CPU, which gets few weights."""
    if all(stored_table(module) is None for module in model.modules()):
        return {}
    key = (type(model), repr(sorted((k, v) for k, v in config.to_dict().items() if isinstance(v, int))))
    if key not in cache:
        small = copy.deepcopy(config)
        for name, value in (("n_layer", 1), ("num_hidden_layers", 1), ("vocab_size", 8), ("dff", 8),
                            ("intermediate_size", 8)):
            if isinstance(getattr(small, name, None), int):
                setattr(small, name, value)
        modules = type(model)(small).named_modules()
        cache[key] = {path: table for path, module in modules if (table := stored_table(module)) is not None}
    return {path: table.reshape(-1, table.shape[-1]).double() for path, table in cache[key].items()}


# ---- Biases of scores ----

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
