"""Heads and layers of the attention that rotates, from the shapes of a model built without memory.

Heads are what enters the projection after attention (o_proj, out_proj or dense) by the channels of a head that the
module states; key heads what leaves k_proj.  Attention of which these cannot be found, such as latent attention or
one projection for queries, keys and values, is not compared.
"""
import collections
import contextlib
import re
import sys

from truth import TooLong, build, in_time, nn, torch

AFTER = ("o_proj", "out_proj", "dense")
OTHER = re.compile(r"vision|visual|audio|encoder_attn|cross|indexer|mtp")


def of_module(module):
    """[heads, key heads, channels of a head] of a module of attention, or None; raises where it cannot run."""
    after = next((getattr(module, n) for n in AFTER if isinstance(getattr(module, n, None), nn.Linear)), None)
    query, key, dim = (getattr(module, n, None) for n in ("q_proj", "k_proj", "head_dim"))
    if after is None or not isinstance(key, nn.Linear) or not isinstance(dim, int) or dim < 1:
        return None
    values = getattr(module, "v_head_dim", dim)  # a head may have other values than queries
    wide = after.in_features // values * dim
    if isinstance(query, nn.Linear) and query.out_features not in (wide, 2 * wide):
        raise ValueError(f"{query.out_features} channels of queries become {after.in_features}")
    return [wide // dim, key.out_features // dim, dim]


def of_model(cls, config):
    """Those of the model of a configuration."""
    model, why = build(cls, config)
    if model is None:
        raise ValueError(why)
    return of_built(model, config)


def resting(config):
    """The layers that a list of the configuration keeps from rotating."""
    listed = getattr(config, "no_rope_layers", None) or getattr(config, "layer_rope_theta", None) or []
    return [i for i, turns in enumerate(listed) if not turns]


try:  # a mask is then made without a look at values, which there are none of
    import transformers.masking_utils
    transformers.masking_utils.is_tracing = lambda *_: True
except (ImportError, AttributeError):
    pass
IDLE = re.compile(r"Experts$|Mamba\w*Mixer|DeltaNet|Delta(Rule)?Attention")  # which turn nothing, and may not run so
TURNS = re.compile(r"apply_\w*(rot|rope)")


@contextlib.contextmanager
def replaced(module, names, wrap):
    """Functions of a module, each wrapped."""
    plain = {name: getattr(module, name) for name in names}
    for name, function in plain.items():
        setattr(module, name, wrap(function))
    try:
        yield
    finally:
        for name, function in plain.items():
            setattr(module, name, function)


def no_autocast(*_, **__):
    """Releases before 5 open torch.autocast on the device meta, which torch rejects."""
    return contextlib.nullcontext()


def turning(model):
    """How many calls of a module of attention turn queries and keys in a forward pass; None where that cannot run without weights."""
    module, now, turned = sys.modules[type(model).__module__], [0], set()

    def wrap(function):
        def counted(*args, **kwargs):
            turned.add(now[0])
            return function(*args, **kwargs)
        return counted
    hooks = [m.register_forward_pre_hook(lambda *_: now.__setitem__(0, now[0] + 1))
             for m in model.modules() if "ttention" in type(m).__name__]
    for m in model.modules():  # frequencies that depend on the length ask for values, which there are none of
        rule = getattr(m, "rope_type", None)
        if isinstance(rule, (str, dict)):
            m.rope_type = "default" if isinstance(rule, str) else dict.fromkeys(rule, "default")
        if IDLE.search(type(m).__name__):
            m.forward = lambda hidden_states, *args, **kwargs: hidden_states
        if hasattr(m, "_update_causal_mask"):  # releases before 5
            m._update_causal_mask = lambda *args, **kwargs: None
    tokens = torch.zeros((1, 4), dtype=torch.long, device="meta")
    try:
        names = [n for n, f in vars(module).items() if TURNS.match(n) and callable(f)]
        with replaced(module, names, wrap), replaced(torch, ["autocast"], lambda _: no_autocast), torch.no_grad():
            in_time(20, lambda: model(input_ids=tokens, use_cache=False))
    except (Exception, TooLong):
        return None
    finally:
        for hook in hooks:
            hook.remove()
    return len(turned) if names else None


def of_built(model, config):
    """{"heads": those of its layers, each once, "attention": how many modules of attention its stacks have, "layers":
    how many of each rotate, "types": {type of layers: how many}}."""
    if getattr(config, "qk_rope_head_dim", None):
        return {"turning": turning(model), "heads": [], "attention": 0, "layers": [], "types": {}}
    found = [(re.sub(r"\d+", "*", path), of_module(m)) for path, m in model.named_modules() if not OTHER.search(path)]
    found = [(stack, s) for stack, s in found if s]
    stacks = collections.Counter(stack for stack, _ in found)
    types = getattr(config, "layer_types", None)
    return {"turning": turning(model), "heads": sorted(map(list, {tuple(s) for _, s in found})), "attention": max(stacks.values(), default=0),
            "layers": sorted({n - len(resting(config)) for n in stacks.values()}),
            "types": {t: types.count(t) for t in sorted(set(types))} if isinstance(types, (list, tuple)) else {}}


def judge(parts, sizes):
    """"" where the parts by the names of their layers have such heads and are as many, else what differs."""
    layers = [part.get("layers") for part in parts.values()]
    if sizes["turning"] is not None and all(layers) and sum(layers) != sizes["turning"]:
        return f"{sum(layers):.0f} layers are said to rotate, and {sizes['turning']} do"
    for name, part in parts.items():
        mine = [int(part.get(k, 0)) for k in ("heads", "key_heads", "head_dim")]
        if sizes["heads"] and part.get("layers") and mine not in sizes["heads"]:
            return f"{name or 'all layers'}: heads, key heads and their channels are {mine}, not {sizes['heads']}"
        layers = [sizes["types"].get(name, 0)] if name else sizes["layers"]
        if sizes["heads"] and sizes["turning"] is None and part.get("layers") and part["layers"] not in layers:
            return f"{name or 'all layers'}: {part['layers']:.0f} layers rotate, not {layers}"
    return ""
