"""Counts heads and rotating layers of a model from shapes and a forward pass on the meta device, without weights.

Heads are the input width of the projection after attention (o_proj, out_proj or dense) divided by head_dim, and key
heads the output width of k_proj divided by it. Attention without these modules has no heads to compare: latent
attention, or a fused QKV projection.
"""
import collections
import contextlib
import re
import sys
from unittest import mock

from transformers_models import TooLong, build_model, limit_time, nn, torch

OUTPUT_PROJECTIONS = ("o_proj", "out_proj", "dense")
OTHER_ATTENTION = re.compile(r"vision|visual|audio|encoder_attn|cross|indexer|mtp")
# Modules that rotate nothing, and may fail on the meta device: they are replaced by the identity.
SKIPPED = re.compile(r"Experts$|Mamba\w*Mixer|DeltaNet|Delta(Rule)?Attention")
APPLY = re.compile(r"apply_\w*(rot|rope)")

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
    attention  largest number of attention modules in a stack of layers
    layers     numbers of rotating layers of its stacks
    types      {layer type: number of layers}
    """
    if getattr(config, "qk_rope_head_dim", None):
        return {"turning": count_rotating(model), "heads": [], "attention": 0, "layers": [], "types": {}}
    modules = [(path, module) for path, module in model.named_modules() if not OTHER_ATTENTION.search(path)]
    found = [(re.sub(r"\d+", "*", path), heads) for path, module in modules if (heads := heads_of(module))]
    stacks = collections.Counter(stack for stack, _ in found)
    rotates = getattr(config, "no_rope_layers", None) or getattr(config, "layer_rope_theta", None) or []
    n_unrotated = sum(not rotated for rotated in rotates)
    types = getattr(config, "layer_types", None)
    return {"turning": count_rotating(model), "heads": sorted(map(list, {tuple(heads) for _, heads in found})),
            "attention": max(stacks.values(), default=0), "layers": sorted({n - n_unrotated for n in stacks.values()}),
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
    file, call, rotating = sys.modules[type(model).__module__], [0], set()

    def wrap(function):
        def wrapper(*args, **kwargs):
            rotating.add(call[0])
            return function(*args, **kwargs)
        return wrapper
    hooks = [m.register_forward_pre_hook(lambda *_: call.__setitem__(0, call[0] + 1))
             for m in model.modules() if "ttention" in type(m).__name__]
    make_runnable(model)
    names = [n for n, f in vars(file).items() if APPLY.match(n) and callable(f)]
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
