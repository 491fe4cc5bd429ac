"""Sinusoids: types whose embeddings add a table of sines and cosines that nobody learns.

Their modules are built again on the CPU and run on as many tokens as the model takes; what comes out says how the
table is laid out, how its frequencies end, and which position the first token has.
"""
import copy
import math
import re

import torch
from truth import TooLong, again, build, in_time, nn
from values import SIZES, some

ENCODINGS = ("sinusoidal",)
CLASSES = re.compile(r"Sinus|Sine|Position(al)?(Embedding|Encoding)")
WIDTHS = ("d_model", "hidden_size", "n_embd", "embed_dim")
LENGTHS = ("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions", "context_length")
MOST = 4096  # tokens on which a module is run
MUTATIONS = 12  # some modules take seconds for a table
made = {}


def ways(module, n, width):
    """Calls that such modules take."""
    ids = torch.full((1, n), 7)
    return [lambda: module(ids), lambda: module(torch.Size([1, n])), lambda: module(torch.Size([1, n]), 0), lambda: module(ids, 0),
            lambda: module(torch.zeros(1, n, width)), lambda: module(torch.full((1, 1, n), 7)), lambda: module(n),
            lambda: module(torch.arange(n)[None]), lambda: module(torch.arange(n)), lambda: module(torch.zeros(1, n))]


def run(module, way, n, width):
    """What it adds to tokens 0 ... n - 1 by one of the ways, [n, width]; None where that is no call of it."""
    try:
        with torch.no_grad():
            out = in_time(2, ways(module, n, width)[way])
    except (Exception, TooLong):
        return None
    fits = isinstance(out, torch.Tensor) and out.dim() > 1 and out.dtype.is_floating_point and out.numel() == n * width \
        and out.shape[-1] == width
    table = out.reshape(n, width).double() if fits else None
    return table if fits and not torch.equal(table[0], table[1]) else None  # its input was taken for positions


def table_of(module, length, width):
    """What it adds to as many tokens as it takes, or to fewer; None where no call gives that."""
    if hasattr(module, "create_weight"):
        module.weight.data = module.create_weight()
    elif hasattr(module, "get_embedding") and isinstance(module, nn.Embedding):
        module.weight.data = module.get_embedding(*module.weight.shape, module.padding_idx)
    for way in range(len(ways(module, 4, width))):
        if run(module, way, 4, width) is not None:
            longer = run(module, way, length, width)
            return longer if longer is not None else run(module, way, 4, width)
    return None


KEPT = ("pos_encoding", "position_embeddings", "position_embedding")


def kept(module):
    """A table that a module keeps beside its weights."""
    found = [vars(module).get(name) for name in KEPT] + [module._buffers.get(name) for name in KEPT]
    return next((t for t in found if isinstance(t, torch.Tensor) and not isinstance(t, nn.Parameter) and t.dim() in (2, 3)), None)


def small(config):
    """The same model with few weights, where these change no position."""
    plain = copy.deepcopy(config)
    for name, value in (("n_layer", 1), ("num_hidden_layers", 1), ("vocab_size", 8), ("dff", 8), ("intermediate_size", 8)):
        if isinstance(getattr(plain, name, None), int):
            setattr(plain, name, value)
    return plain


def kept_tables(model, config):
    """{path: table} of those that modules keep, made by the model without most of its weights on the CPU."""
    if not any(kept(m) is not None for m in model.modules()):
        return {}
    key = (type(model), repr(sorted((k, v) for k, v in config.to_dict().items() if isinstance(v, int))))
    if key not in made:
        own = type(model)(small(config))
        made[key] = {path: kept(m) for path, m in own.named_modules() if kept(m) is not None}
    return {path: t.reshape(-1, t.shape[-1]).double() for path, t in made[key].items()}


def tables(model, config):
    """{path: table} of the modules of a model that make sinusoids."""
    width = next((getattr(config, k) for k in WIDTHS if isinstance(getattr(config, k, None), int)), None)
    length = min([getattr(config, k) for k in LENGTHS if isinstance(getattr(config, k, None), int)] + [MOST])
    found = kept_tables(model, config)
    for path, module in model.named_modules():
        if not CLASSES.search(type(module).__name__) or not hasattr(module, "made_of") or width is None:
            continue
        try:
            own = again(module)
        except Exception:
            continue
        if isinstance(own, nn.Embedding) and own.weight.requires_grad and "Sinus" not in type(own).__name__:
            continue
        channels = getattr(own, "channels", None) or width
        key = (type(own), repr(module.made_of), length, channels)
        if key not in made:
            made[key] = table_of(own, length, channels)
        table = made[key]
        if table is not None:
            found[path] = table
    return found


def row_at(position, width, endpoint, sines_first, theta=10000.0, cosines_first=False):
    half = width // 2
    omega = torch.exp(-math.log(theta) * torch.arange(half, dtype=torch.float64) / (half - 1 if endpoint else half))
    angles = position * omega
    if cosines_first:
        return torch.cat([torch.cos(angles), torch.sin(angles)])
    if sines_first:
        return torch.cat([torch.sin(angles), torch.cos(angles)])
    return torch.stack([torch.sin(angles), torch.cos(angles)], -1).flatten()


def same(a, b):
    return bool((a - b).abs().max() < 5e-3)


def keeps(cls):
    model, _ = build(cls, cls())
    return model is not None and any(kept(m) is not None for m in model.modules())


def ask(cls, seen, config):
    """Rows of the tables that the modules of a configuration make: {path: {token: row}}."""
    if not (keeps(cls) or any(CLASSES.search(o["class"]) for o in seen.get("other", []) + seen.get("tables", []))):
        return None
    for key in ("num_hidden_layers", "encoder_layers", "decoder_layers", "num_layers"):
        if isinstance(getattr(config, key, None), int):
            setattr(config, key, 1)
    model, why = build(cls, config)
    if model is None:
        raise ValueError(why)
    found = tables(model, config)
    return {path: {str(k): t[k].tolist() for k in sorted({0, 1, len(t) // 2, len(t) - 1})} for path, t in found.items()} or None


def judge(said, answer):
    parts = [p for p in said["parts"] if p["encoding"] == "sinusoidal"]
    if not parts:
        return "no sinusoid is read"
    for path, some_rows in answer.items():
        for token, theirs in some_rows.items():
            mine = [said_row(p, int(token)) for p in parts]
            if not any(len(m) == len(theirs) and same(m, torch.tensor(theirs, dtype=torch.float64)) for m in mine):
                return f"{path}: token {token} is given another row"
    return ""


def said_row(part, token):
    angles = (token + part.get("first", 0)) * torch.tensor(part["omega"], dtype=torch.float64)
    amplitude = len(angles) ** -0.5 * 2 ** -0.5 if part.get("shrunk") else 1.0
    pair = [amplitude * torch.sin(angles), amplitude * torch.cos(angles)]
    if part.get("cos_first"):
        return torch.cat(pair[::-1])
    return torch.cat(pair) if part.get("sin_cos") else torch.stack(pair, -1).flatten()


NUMBERS = {
    **SIZES, "d_model": [128, 256], "hidden_size": [256, 512], "max_position_embeddings": [200, 512],
    "pad_token_id": [0, 1, 5], "max_source_positions": [600, 1500], "max_target_positions": [256, 448],
    "encoder_layers": [2], "decoder_layers": [2], "context_length": [48, 96], "prediction_length": [12, 48],
    "num_frames": [8, 32], "image_size": [112, 224], "patch_size": [8, 16], "n_positions": [128, 512],
    "max_timescale": [10000, 20000], "use_positional_embedding": [True],
}


def mutate(rng, plain, seen):
    return some(rng, plain, NUMBERS)
