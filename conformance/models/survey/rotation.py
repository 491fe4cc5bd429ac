"""Rotations: types whose attention turns queries and keys, and what their modules compute."""
import copy
import json
import re
import sys
import zlib

import axes
import sizes
from values import SIZES, near, same_numbers, some
from truth import PARAMETERS, again, build, frequencies

ENCODINGS = ("rope_half", "rope_interleaved")
LAYERS = {"full": "full_attention", "sliding": "sliding_attention", "chunked": "chunked_attention"}

def head_dim(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def own_of(truth):
    """The rotary modules that are made of the type's own configuration, not of that of a part of it."""
    own = [e for e in truth["rotary"] if e.get("of") == truth.get("of")]
    return own or truth["rotary"]


def rotary_classes(truth):
    found = []
    for e in own_of(truth):
        pair = (getattr(sys.modules[e["module"]], e["class"]), "local" in e["path"])
        if pair not in found:
            found.append(pair)
    return found


def ask(cls, seen, config):
    """{"turns": {layers: (frequencies, factor)}, "sizes": those of its model, of one file in twelve, or None}."""
    if not seen["rotary"]:
        return None
    measured = zlib.crc32(json.dumps(config.to_dict(), sort_keys=True, default=str).encode()) % 12 == 0
    truth = of_layers(cls, seen, config) or rotary_truth(rotary_classes(seen), config)
    if not truth:  # its module makes frequencies as it runs
        return None
    check_runs(config, truth)
    measured = sizes.of_model(cls, config) if measured else None
    most = max((2 * len(freqs) for freqs, _ in truth.values()), default=0)
    dims = [dim for _, _, dim in measured["heads"]] if measured else []
    if dims and (most > max(dims) or (most == getattr(config, "head_dim", None) and most not in dims)):
        raise ValueError(f"{most} channels turn of heads of {measured['heads'][-1][-1]}")
    return {"turns": truth, "sizes": measured, "axes": axes_of(seen, config)}


def axes_of(seen, config):
    """The axis of each pair of a configuration's rotation, or None."""
    entry = next((e for e in own_of(seen) if e.get("axes")), None)
    if not entry:
        return None
    return axes.axes(config, getattr(sys.modules[entry["module"]], entry["class"])(config=config), entry["pairs"])


def check_runs(config, truth):
    """Raises where such a model can be made, and its attention cannot run."""
    heads, keys = (getattr(config, k, None) for k in ("num_attention_heads", "num_key_value_heads"))
    latent = getattr(config, "qk_rope_head_dim", None)
    if isinstance(heads, int) and isinstance(keys, int) and keys and heads % keys and not latent:
        raise ValueError(f"{heads} query heads cannot share {keys} key heads")
    try:
        most = max(head_dim(config), getattr(config, "global_head_dim", None) or 0)
    except (AttributeError, TypeError):
        return
    for freqs, _ in truth.values():
        if 2 * len(freqs) > most or (latent and 2 * len(freqs) != latent):
            raise ValueError(f"{2 * len(freqs)} channels turn of heads of {latent or most}")


def rotary_truth(modules, config):
    found = {}
    for cls, local in modules:
        own = config
        if local and not PARAMETERS:  # as the models of these releases do it
            own = copy.deepcopy(config)
            own.rope_theta = next((v for k in ("rope_local_base_freq", "local_rope_theta") if (v := getattr(config, k, None))), config.rope_theta)
            own.rope_scaling = {"rope_type": "default"}
        made = cls(config=own)
        for layers, (freqs, factor, shape) in frequencies(made).items():
            name = layers or ("sliding_attention" if local else "")
            found[name] = (freqs, factor)
    return found


def of_layers(cls, seen, config):
    """The same in releases before 5 whose layers have a module each, or types of layers one: {type of layers: ...}."""
    found = {}
    if PARAMETERS or not any(layers_of(config, entry["path"]) for entry in seen["rotary"]):
        return found
    model, why = build(cls, config)
    if model is None:
        raise ValueError(why)
    for path, module in model.named_modules():
        layers = "otary" in type(module).__name__ and layers_of(config, path)
        if layers and layers not in found:
            found.update((layers, turns[:2]) for turns in frequencies(again(module)).values())
    return found


def layers_of(config, path):
    """The type of the layers that a module's path names, or that its layer is of; None where all layers are of one."""
    number, every = re.search(r"layers\.(\d+|\*)\.", path), getattr(config, "global_attn_every_n_layers", None)
    named = next((layers for layers in LAYERS.values() if layers in path), None)
    if named or not number or not (every or getattr(config, "layer_types", None)):
        return named
    at = 0 if number[1] == "*" else int(number[1])
    return config.layer_types[at] if not every else "sliding_attention" if at % every else "full_attention"


def judge(said, answer):
    """"" where all parts agree, else what does not."""
    truth = answer["turns"]
    parts = [p for p in said["parts"] if p.get("stack") != "vision"]
    mine = {LAYERS.get(p["name"], p["name"]): p for p in parts}
    for name, p in mine.items():
        if "omega" not in p:
            return f"it is read as {p['encoding']}"
        theirs = [truth[name]] if name in truth else list(truth.values()) if name == "" else []
        if name == "full_attention" and set(truth) == {"", "sliding_attention"}:
            theirs = [truth[""]]  # releases before 5: a module of its own for the layers that slide
        if not theirs and truth and "" not in truth and not p.get("layers"):
            continue  # a type of layers that no layer is of
        if not theirs:
            return f"no layers of type {name} rotate"
        for freqs, factor in theirs:
            if not same_numbers(p["omega"], freqs):
                at = next((i for i, (a, b) in enumerate(zip(p["omega"], freqs)) if not near(a, b)), -1)
                return (f"{name or 'all layers'}: {len(p['omega'])} and {len(freqs)} pairs" if at < 0 else
                        f"{name or 'all layers'}: pair {at} is {p['omega'][at]:.9g}, not {freqs[at]:.9g}")
            if not near(p["attention"], factor):
                return f"{name or 'all layers'}: the factor is {p['attention']:.9g}, not {factor:.9g}"
    missing = set(truth) - set(mine) - {""} if "" not in mine else set()
    if missing:
        return f"layers of type {sorted(missing)[0]} are not read"
    if answer["axes"] and mine and answer["axes"] != next(iter(mine.values())).get("axes"):
        return "its pairs follow other axes"
    return sizes.judge(mine, answer["sizes"]) if answer["sizes"] else ""

FACTORS = {
    "linear": {"factor": 4.0}, "dynamic": {"factor": 2.0},
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 2048},
    "longrope": {"original_max_position_embeddings": 4096}, "default": {}, "proportional": {},
}


def rope_object(rng, rule, pairs, theta):
    """An object for scaling, with some of the members that its rule has."""
    rope = dict(FACTORS[rule])
    rope[rng.choice(["rope_type", "rope_type", "type"])] = rule
    if rule == "longrope":
        rope["short_factor"] = [1.0 + 0.01 * i for i in range(pairs)]
        rope["long_factor"] = [1.0 + 0.5 * i for i in range(pairs)]
    if rule == "yarn":
        for key, value in (("beta_fast", 16.0), ("beta_slow", 2.0), ("attention_factor", 1.25), ("mscale", 0.707),
                           ("mscale_all_dim", 1.0), ("truncate", False)):
            if rng.random() < 0.3:
                rope[key] = value
        if rng.random() < 0.3:
            del rope["original_max_position_embeddings"]
    if rule == "llama3" and rng.random() < 0.3:
        rope["factor"] = 32.0
    if theta and rng.random() < 0.7 and PARAMETERS:
        rope["rope_theta"] = theta
    if rng.random() < 0.1 and PARAMETERS:
        rope["partial_rotary_factor"] = 0.5
    return rope


NUMBERS = {
    **SIZES, "num_key_value_heads": [1, 2, 4], "head_dim": [32, 64, 96, 128, 256],
    "rope_theta": [500.0, 10000.0, 1000000.0], "rotary_emb_base": [500, 25000], "rotary_pct": [0.25, 0.5, 1.0],
    "partial_rotary_factor": [0.25, 0.5, 0.75, 1.0], "rotary_dim": [16, 32], "qk_rope_head_dim": [32, 64, 128],
    "global_head_dim": [128, 512], "rope_local_base_freq": [5000.0, 10000.0], "local_rope_theta": [5000.0],
    "global_rope_theta": [80000.0], "qk_nope_head_dim": [64, 128], "original_max_position_embeddings": [1024, 4096],
    "kv_channels": [64], "qk_head_dim": [96],
}
FOREIGN = [
    "rotary_emb_base", "rotary_pct", "rotary_dim", "n_embd", "head_dim", "partial_rotary_factor", "qk_rope_head_dim",
    "rope_local_base_freq", "global_head_dim", "original_max_position_embeddings",
]


def mutate(rng, plain, seen):
    """A file that says some of its class's members, others otherwise, and some of another family."""
    pairs = len(next(iter(seen["rotary"][0]["freqs"].values()))[0])
    out = some(rng, plain, NUMBERS)
    if rng.random() < 0.5:
        out["rope_theta"] = rng.choice(NUMBERS["rope_theta"])
    roll = rng.random()
    if roll < 0.6:
        rule = rng.choice(list(FACTORS))
        theta = out.get("rope_theta") or rng.choice(NUMBERS["rope_theta"])
        nested = [l for l in (plain.get("layer_types") or []) if isinstance(l, str)]
        name = rng.choice(["rope_scaling", "rope_parameters"] if PARAMETERS else ["rope_scaling"])
        if nested and rng.random() < 0.4 and PARAMETERS:
            out[name] = {l: rope_object(rng, rng.choice(list(FACTORS)), pairs, theta) for l in sorted(set(nested))}
        else:
            out[name] = rope_object(rng, rule, pairs, theta)
    elif roll < 0.7:
        out["rope_scaling"] = None
    if rng.random() < 0.12:
        key = rng.choice(FOREIGN)
        out.setdefault(key, rng.choice(NUMBERS[key]))
    return out
