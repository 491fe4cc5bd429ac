"""Inspects a model for all that has to do with positions: rotary modules, tables by position, other candidates.

A rotary module is rebuilt on the CPU and run at positions 0 to 3. The functions of its file that apply a rotation then
show which channels form a pair, and which of three axes (time, height, width) each pair follows.
"""
import inspect
import re
import sys

import attention_sizes
import torch
from torch import nn
from transformers_models import rebuild, rotary_frequencies, try_build

ROTARY_CLASS = re.compile(r"Rotary|RoPE|ROPE|Rope(?![a-z])|RoPe")
POSITION_WORD = re.compile(r"pos(?!t)|relative|alibi|sinus|sine|buckets", re.I)
UNRELATED_WORD = re.compile(r"transposed?|positionwise|cosine", re.I)
# Functions that apply a rotation, the likeliest first.
APPLY = ["apply_rotary_pos_emb_interleave", "apply_multimodal_rotary_pos_emb", "apply_rotary_pos_emb_vision",
         "apply_rotary_pos_emb", "apply_rotary_emb", "apply_rotary_emb_vision"]
LAST = 3  # the last of the positions at which modules are run


def inspect_type(cls, config):
    """Returns a dict for JSON with the relevant modules of a configuration's model, or {"error": reason}.

    rotary  rotary modules: frequencies, pairing of channels, axes of pairs
    tables  embeddings whose names suggest positions
    other   other modules whose names, or names of parameters, do so

    Modules of repeated layers appear once, with * for the number of the layer.
    """
    model, reason = try_build(cls, config)
    if model is None:
        return {"error": reason}
    rotary, tables, other, seen = [], [], [], set()
    for path, module in model.named_modules():
        name, path = type(module).__name__, re.sub(r"\.\d+(?=\.|$)", ".*", path)
        leaf, shapes = path.rsplit(".", 1)[-1], tensor_shapes(module)
        if (name, path, str(shapes)) in seen:
            continue
        seen.add((name, path, str(shapes)))
        if ROTARY_CLASS.search(name):
            rotary.append(describe_rotary(module, path, shapes, config))
        elif isinstance(module, nn.Embedding) and re.search(r"pos|wpe", leaf + name, re.I):
            tables.append({"path": path, "class": name, "shape": [module.num_embeddings, module.embedding_dim]})
        elif POSITION_WORD.search(UNRELATED_WORD.sub("", " ".join([name, leaf, *shapes]))):
            kept = re.compile(r"pos|rel|bias_table|alibi|slopes|index|weight", re.I)
            other.append({"path": path, "class": name, "shapes": {n: s for n, s in shapes.items() if kept.search(n)}})
    return {"of": cls.model_type, "causal": any(getattr(m, "is_causal", False) is True for m in model.modules()),
            "attention": attention_sizes.sizes_of_built(model, config)["attention"], "model": type(model).__name__,
            "rotary": rotary, "tables": tables, "other": other}


def tensor_shapes(module):
    """Returns the shapes of a module's own parameters and buffers by name."""
    tensors = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    return {name: list(tensor.shape) for name, tensor in tensors}


def describe_rotary(module, path, shapes, config):
    """Returns the entry of a rotary module; "of" is the model_type of the configuration that it was made from."""
    args, kwargs = module.made_of
    own_config = args[0] if args else kwargs.get("config", config)
    entry = {"path": path, "class": type(module).__name__, "shapes": shapes, "module": type(module).__module__,
             "of": getattr(own_config, "model_type", None)}
    try:
        rebuilt = rebuild(module)
        entry["freqs"] = rotary_frequencies(rebuilt)
        if entry["freqs"]:
            entry["pairs"] = find_pairing(own_config, rebuilt)
            entry["axes"] = find_axes(own_config, rebuilt, entry["pairs"])
            entry["sections"] = getattr(rebuilt, "mrope_section", None)
    except Exception as error:
        entry["error"] = f"{type(error).__name__}: {str(error)[:120]}"
    return entry


def list_position_tables(model):
    """Returns path and shape [rows, width] of the tables of a model that may hold a row for each position."""
    found = []
    for path, module in model.named_modules():
        names = path.rsplit(".", 1)[-1] + type(module).__name__
        if isinstance(module, nn.Embedding) and re.search(r"pos|wpe|^(row|column)_embedder", names, re.I):
            found.append({"path": path, "shape": [module.num_embeddings, module.embedding_dim]})
            continue
        named = isinstance(module, nn.ParameterList) and "position" in path
        named = named or ("Embedding" in type(module).__name__ and re.search(r"pos", names, re.I)
                          and not isinstance(module, nn.Linear))
        for own, parameter in module.named_parameters(recurse=False):
            shape = [n for n in parameter.shape if n != 1]
            if len(shape) != 2:
                last = len(parameter.shape) - 2
                shape = [n for k, n in enumerate(parameter.shape) if n != 1 or k >= last]
            if ("pos" in own or named) and "bias" not in own and len(shape) == 2:
                found.append({"path": f"{path}.{own}", "shape": shape})
    return found


# ---- Pairs of channels ----

def find_pairing(config, rotary):
    """Returns "half" or "interleaved", or a sentence about a rotation of another kind."""
    cos_sin, layers = run_at_positions(rotary, LAST + 1)
    if cos_sin is None:
        return "its cosines and sines are not made from positions alone"
    freqs = rotary_frequencies(rotary)[layers][0]
    n_rotated = 2 * len(freqs)
    for function in apply_functions(config, rotary):
        for unrotated in (8, 0):
            dim = n_rotated + unrotated
            unit_queries = torch.zeros(1, dim, LAST + 1, dim)
            unit_queries.diagonal(dim1=1, dim2=3).fill_(1.0)
            rotated = try_rotation(function, unit_queries, cos_sin)
            if rotated is not None:
                return name_pairing(rotated[0, :, LAST, :], n_rotated, freqs)
    return "no function of its file takes them"


def run_at_positions(rotary, n):
    """Returns the result of a rotary module at positions 0 to n - 1, and the layer type that it was called with.

    The result is (cosines, sines) or (complex numbers,), or None if no known signature fits.
    """
    x, row = torch.zeros(1, n, 256), torch.arange(n)[None]
    layer_types = [None] + [layers for layers in rotary_frequencies(rotary) if layers]
    for ids in (row, row.expand(3, 1, n), row.expand(4, 1, n)):
        for layers in layer_types[::-1]:
            try:
                out = rotary(x, ids, layer_type=layers) if layers else rotary(x, ids)
                if isinstance(out, tuple) and len(out) == 2:
                    return out, layers or ""
                if isinstance(out, torch.Tensor) and out.is_complex():
                    return (out,), layers or ""
            except Exception:
                continue
    try:  # a module that takes no positions and returns the angles of all tokens
        angles = rotary(x)[0]
        return ((angles.cos(), angles.sin()) if angles.shape[0] == n else None), ""
    except Exception:
        return None, ""


def apply_functions(config, rotary):
    """Returns the functions of a rotary module's file that may apply its rotation, the likeliest first."""
    module = sys.modules[type(rotary).__module__]
    names = [name for name in APPLY if hasattr(module, name)]
    if "apply_rotary_pos_emb_interleave" in names and not getattr(config, "rope_interleave", True):
        names.remove("apply_rotary_pos_emb_interleave")
    if "Vision" not in type(rotary).__name__:
        names = [name for name in names if "vision" not in name] or names
    return [getattr(module, name) for name in names]


def try_rotation(function, queries, cos_sin):
    """Returns queries [1, heads, tokens, channels] as rotated by a function, or None if no known signature fits."""
    tokens_first, ids = queries.transpose(1, 2), torch.arange(queries.shape[2])[None]
    for call in (lambda: function(queries, queries, *cos_sin),
                 lambda: function(tokens_first, tokens_first, *cos_sin)[0].transpose(1, 2),
                 lambda: function(queries, *cos_sin), lambda: function(queries, queries, queries, *cos_sin, ids)):
        try:
            rotated = call()
            rotated = rotated[0] if isinstance(rotated, tuple) else rotated
            if rotated.shape == queries.shape:
                return rotated
        except Exception:
            continue
    return None


def name_pairing(response, n_rotated, freqs):
    """Returns the pairing by response[i][o], the part of channel i in output channel o at position LAST."""
    fixed = [c for c in range(response.shape[0]) if float(response[c].count_nonzero()) == 1.0
             and float(response[c].max()) == 1.0 and (freqs[0] != 0 or c >= n_rotated)]
    if any(c < n_rotated for c in fixed) and all(f != 0.0 for f in freqs):
        return "the last channels of a head turn, or not all pairs"
    half, names = n_rotated // 2, []
    for name, partner in (("half", half), ("interleaved", 1)):  # of channel 0
        same_outputs = (response[0].abs() > 0) == (response[partner].abs() > 0)
        if bool(same_outputs.all()) and (n_rotated > 2 or name == "half"):
            names.append(name)
    if len(names) != 1:
        return "pairs of another kind"
    for pair in range(min(half, len(freqs))):
        row = response[pair if names[0] == "half" else 2 * pair].abs()
        cosine = abs(float(torch.cos(torch.tensor(LAST * freqs[pair], dtype=torch.float64))))
        scale = float(torch.sqrt((row * row).sum()))
        if abs(float(row.max()) / scale - max(cosine, (1 - cosine * cosine) ** 0.5)) > 2e-3:
            return f"{names[0]}, but pair {pair} turns by another frequency"
    return names[0]


# ---- Axes of pairs ----

def find_axes(config, rotary, pairing):
    """Returns the axis of each pair (0 time, 1 height, 2 width), or None if positions have no three axes."""
    freqs = rotary_frequencies(rotary).get("")
    if not freqs or pairing not in ("half", "interleaved"):
        return None
    axes = [None] * len(freqs[0])
    for axis in range(3):
        ids = torch.zeros(3, 1, LAST + 1, dtype=torch.long)
        ids[axis] = torch.arange(LAST + 1)
        try:
            pairs = rotated_pairs(config, rotary, pairing, ids, len(axes))
        except Exception:
            return None
        if pairs is None or any(axes[pair] is not None for pair in pairs):
            return None
        for pair in pairs:
            axes[pair] = axis
    return axes if len(set(axes)) > 1 and None not in axes else None


def rotated_pairs(config, rotary, pairing, ids, n_pairs):
    """Returns the pairs that rotate at positions ids[axis][0][token], or None if nothing shows them."""
    cos, sin = rotary(torch.zeros(1, LAST + 1, 8), ids)
    if sin.dim() == 3:
        step = 1 if pairing == "half" or sin.shape[-1] == n_pairs else 2
        return [i for i in range(n_pairs) if float(sin[0, LAST, i * step].abs()) > 0.0]
    sections = getattr(rotary, "mrope_section", None) or (config.rope_parameters or {}).get("mrope_section")
    queries = torch.eye(2 * n_pairs)[None, :, None].expand(1, -1, LAST + 1, -1).clone()
    for function in apply_functions(config, rotary):
        if "mrope_section" not in inspect.signature(function).parameters:
            continue
        rotated = try_rotation(lambda *args: function(*args, mrope_section=sections), queries, (cos, sin))
        if rotated is not None:
            first = [i if pairing == "half" else 2 * i for i in range(n_pairs)]
            change = rotated[0, :, LAST] - queries[0, :, LAST]
            return [i for i, channel in enumerate(first) if float(change[channel].abs().sum()) > 0.0]
    return None
