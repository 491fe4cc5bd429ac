"""Inspects a model for all that has to do with positions: rotary modules, tables by position, sizes of attention.

A rotary module is rebuilt on the CPU and run at positions 0 to 3. The functions of its file that apply a rotation then
show which channels form a pair, and which of three axes (time, height, width) each pair follows.

Heads are the input width of the projection after attention (o_proj, out_proj or dense) divided by head_dim, and key
heads the output width of k_proj divided by it. Attention without these modules has no heads to compare: latent
attention, or a fused QKV projection. A forward pass on the meta device, without weights, counts rotating layers.
"""
import collections
import contextlib
import inspect
import re
import sys
from unittest import mock

import torch
from torch import nn
from transformers_models import TooLong, build_model, limit_time, rebuild, rotary_frequencies, try_build

ROTARY_CLASS = re.compile(r"Rotary|RoPE|ROPE|Rope(?![a-z])|RoPe")
POSITION_WORD = re.compile(r"pos(?!t)|wpe|relative|alibi|sinus|sine|buckets", re.I)
UNRELATED_WORD = re.compile(r"transposed?|positionwise|cosine", re.I)
# Functions that apply a rotation, the likeliest first.
APPLY = ["apply_rotary_pos_emb_interleave", "apply_multimodal_rotary_pos_emb", "apply_rotary_pos_emb_vision",
         "apply_rotary_pos_emb", "apply_rotary_emb", "apply_rotary_emb_vision"]
LAST = 3  # the last of the positions at which modules are run


def inspect_type(cls, config):
    """Returns a dict for JSON with the relevant modules of a configuration's model, or {"error": reason}.

    of       the model_type
    rotary   rotary modules: frequencies, pairing of channels, axes of pairs
    modules  classes of other modules whose names, or names of parameters, suggest positions

    Modules of repeated layers appear once, with * for the number of the layer.
    """
    model, reason = try_build(cls, config)
    if model is None:
        return {"error": reason}
    rotary, modules = {}, set()
    for path, module in model.named_modules():
        name, path = type(module).__name__, re.sub(r"\.\d+(?=\.|$)", ".*", path)
        words = UNRELATED_WORD.sub("", " ".join([name, path.rsplit(".", 1)[-1], *tensor_shapes(module)]))
        if ROTARY_CLASS.search(name):
            if (name, path) not in rotary:
                rotary[name, path] = describe_rotary(module, path, config)
        elif POSITION_WORD.search(words):
            modules.add(name)
    return {"of": cls.model_type, "rotary": list(rotary.values()), "modules": sorted(modules)}


def tensor_shapes(module):
    """Returns the shapes of a module's own parameters and buffers by name."""
    tensors = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    return {name: list(tensor.shape) for name, tensor in tensors}


def describe_rotary(module, path, config):
    """Returns the entry of a rotary module; "of" is the model_type of the configuration that it was made from.

    For example, {"path": "model.rotary_emb", "class": "LlamaRotaryEmbedding", "module": "transformers...",
    "of": "llama", "freqs": {"": ([1.0, ...], 1.0, [64])}, "pairs": "half", "axes": None}.
    """
    args, kwargs = module.made_of
    own_config = args[0] if args else kwargs.get("config", config)
    entry = {"path": path, "class": type(module).__name__, "module": type(module).__module__,
             "of": getattr(own_config, "model_type", None)}
    try:
        rebuilt = rebuild(module)
        entry["freqs"] = rotary_frequencies(rebuilt)
        if entry["freqs"]:
            entry["pairs"] = find_pairing(own_config, rebuilt)
            entry["axes"] = find_axes(own_config, rebuilt, entry["pairs"])
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


# ---- Heads and layers ----

OUTPUT_PROJECTIONS = ("o_proj", "out_proj", "dense")
OTHER_ATTENTION = re.compile(r"vision|visual|audio|encoder_attn|cross|indexer|mtp")
# Modules that rotate nothing, and may fail on the meta device: they are replaced by the identity.
SKIPPED = re.compile(r"Experts$|Mamba\w*Mixer|DeltaNet|Delta(Rule)?Attention")
APPLY_ANY = re.compile(r"apply_\w*(rot|rope)")

try:  # masks are made without a look at values, which tensors on the meta device lack
    import transformers.masking_utils
    transformers.masking_utils.is_tracing = lambda *_: True
except (ImportError, AttributeError):
    pass


def heads_of(module):
    """Returns [heads, key heads, head_dim] of an attention module, or None. Raises ValueError if it cannot run."""
    outputs = (getattr(module, name, None) for name in OUTPUT_PROJECTIONS)
    output = next((linear for linear in outputs if isinstance(linear, nn.Linear)), None)
    query, key, dim = (getattr(module, name, None) for name in ("q_proj", "k_proj", "head_dim"))
    if output is None or not isinstance(key, nn.Linear) or not isinstance(dim, int) or dim < 1:
        return None
    width = output.in_features // getattr(module, "v_head_dim", dim) * dim
    if isinstance(query, nn.Linear) and query.out_features not in (width, 2 * width):
        raise ValueError(f"{query.out_features} channels of queries become {output.in_features}")
    return [width // dim, key.out_features // dim, dim]


def sizes_of_config(cls, config):
    """Returns sizes_of_built() of the model of a configuration."""
    return sizes_of_built(build_model(cls, config), config)


def sizes_of_built(model, config):
    """Returns the sizes of a model's attention:

    turning    number of attention calls that rotate in a forward pass, or None if it cannot run
    heads      sorted heads_of() of its layers, without duplicates
    layers     numbers of rotating layers of its stacks
    types      {layer type: number of layers}
    """
    if getattr(config, "qk_rope_head_dim", None):
        return {"turning": count_rotating(model), "heads": [], "layers": [], "types": {}}
    modules = [(path, module) for path, module in model.named_modules() if not OTHER_ATTENTION.search(path)]
    found = [(re.sub(r"\d+", "*", path), heads) for path, module in modules if (heads := heads_of(module))]
    stacks = collections.Counter(stack for stack, _ in found)
    rotates = getattr(config, "no_rope_layers", None) or getattr(config, "layer_rope_theta", None) or []
    n_unrotated = sum(not rotated for rotated in rotates)
    types = getattr(config, "layer_types", None)
    return {"turning": count_rotating(model), "heads": sorted(map(list, {tuple(heads) for _, heads in found})),
            "layers": sorted({n - n_unrotated for n in stacks.values()}),
            "types": {t: types.count(t) for t in sorted(set(types))} if isinstance(types, (list, tuple)) else {}}


def make_runnable(model):
    """Removes from a model on the meta device the steps that need values of tensors."""
    for module in model.modules():
        rule = getattr(module, "rope_type", None)  # some rules read the largest position
        if isinstance(rule, (str, dict)):
            module.rope_type = "default" if isinstance(rule, str) else dict.fromkeys(rule, "default")
        if SKIPPED.search(type(module).__name__):
            module.forward = lambda hidden_states, *args, **kwargs: hidden_states
        if hasattr(module, "_update_causal_mask"):  # releases before 5
            module._update_causal_mask = lambda *args, **kwargs: None


def count_rotating(model):
    """Returns the number of attention calls that rotate in a forward pass, or None if it cannot run without weights."""
    file, rotating = sys.modules[type(model).__module__], set()
    n_calls = 0  # of attention modules so far

    def count_call(*_):
        nonlocal n_calls
        n_calls += 1

    def wrap(function):
        def wrapper(*args, **kwargs):
            rotating.add(n_calls)
            return function(*args, **kwargs)
        return wrapper
    hooks = [m.register_forward_pre_hook(count_call) for m in model.modules() if "ttention" in type(m).__name__]
    make_runnable(model)
    names = [n for n, f in vars(file).items() if APPLY_ANY.match(n) and callable(f)]
    tokens = torch.zeros((1, 4), dtype=torch.long, device="meta")
    try:
        with contextlib.ExitStack() as stack, torch.no_grad():
            for name in names:
                stack.enter_context(mock.patch.object(file, name, wrap(getattr(file, name))))
            # Releases before 5 open torch.autocast on the meta device, which torch rejects.
            stack.enter_context(mock.patch.object(torch, "autocast", lambda *_, **__: contextlib.nullcontext()))
            limit_time(20, lambda: model(input_ids=tokens, use_cache=False))
    except (Exception, TooLong):
        return None
    finally:
        for hook in hooks:
            hook.remove()
    return len(rotating) if names else None


def compare_sizes(parts, sizes):
    """Returns "" if the parts {layer type: part} have the heads and numbers of layers of a model, else a difference."""
    layers = [part.get("layers") for part in parts.values()]
    if sizes["turning"] is not None and all(layers) and sum(layers) != sizes["turning"]:
        return f"{sum(layers):.0f} layers are said to rotate, and {sizes['turning']} do"
    for name, part in parts.items():
        heads = [int(part.get(k, 0)) for k in ("heads", "key_heads", "head_dim")]
        if sizes["heads"] and part.get("layers") and heads not in sizes["heads"]:
            return f"{name or 'all layers'}: heads, key heads and their channels are {heads}, not {sizes['heads']}"
        layers = [sizes["types"].get(name, 0)] if name else sizes["layers"]
        if sizes["heads"] and sizes["turning"] is None and part.get("layers") and part["layers"] not in layers:
            return f"{name or 'all layers'}: {part['layers']:.0f} layers rotate, not {layers}"
    return ""
