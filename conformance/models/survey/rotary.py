"""Compares rotations of queries and keys (RoPE): frequencies by layer type, attention factor, axes, heads, layers."""
import copy
import json
import re
import sys
import zlib

import inspection
from comparer import SIZES, Comparer, choose_members, near
from transformers_models import HAS_ROPE_PARAMETERS, build_model, rebuild, rotary_frequencies

LAYER_TYPES = {"full": "full_attention", "sliding": "sliding_attention", "chunked": "chunked_attention"}
# Examples of each scaling rule.
SCALINGS = {
    "linear": {"factor": 4.0}, "dynamic": {"factor": 2.0},
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 2048},
    "longrope": {"original_max_position_embeddings": 4096}, "default": {}, "proportional": {},
}
# Members that are also put into files of types whose class does not have them.
FOREIGN = [
    "rotary_emb_base", "rotary_pct", "rotary_dim", "n_embd", "head_dim", "partial_rotary_factor", "qk_rope_head_dim",
    "rope_local_base_freq", "global_head_dim", "original_max_position_embeddings",
]


class RotaryComparer(Comparer):
    """Comparer of rotations by the position of a token."""
    encodings = ("rope_half", "rope_interleaved")
    values = {
        **SIZES, "num_key_value_heads": [1, 2, 4], "head_dim": [32, 64, 96, 128, 256],
        "rope_theta": [500.0, 10000.0, 1000000.0], "rotary_emb_base": [500, 25000], "rotary_pct": [0.25, 0.5, 1.0],
        "partial_rotary_factor": [0.25, 0.5, 0.75, 1.0], "rotary_dim": [16, 32], "qk_rope_head_dim": [32, 64, 128],
        "global_head_dim": [128, 512], "rope_local_base_freq": [5000.0, 10000.0], "local_rope_theta": [5000.0],
        "global_rope_theta": [80000.0], "qk_nope_head_dim": [64, 128], "original_max_position_embeddings": [1024, 4096],
        "kv_channels": [64], "qk_head_dim": [96],
    }

    def compute(self, cls, inspected, config):
        """Returns {"turns": {layer type: (frequencies, attention factor)}, "sizes": ..., "axes": ..., "pairs": ...}.

        "sizes" (inspection.sizes_of_built()) is None but for one file in twelve, as a forward pass takes long. "pairs"
        has the names of inspection.find_pairing().
        """
        if not inspected["rotary"]:
            return None
        members = json.dumps(config.to_dict(), sort_keys=True, default=str)
        with_sizes = zlib.crc32(members.encode()) % 12 == 0
        layers = frequencies_by_layer(cls, inspected, config) or frequencies_by_module(inspected, config)
        if not layers:  # its module makes frequencies in its forward pass
            return None
        check_heads(config, layers)
        sizes = inspection.sizes_of_config(cls, config) if with_sizes else None
        rotated = max((2 * len(freqs) for freqs, _ in layers.values()), default=0)
        dims = [dim for _, _, dim in sizes["heads"]] if sizes else []
        if dims and (rotated > max(dims) or (rotated == getattr(config, "head_dim", None) and rotated not in dims)):
            raise ValueError(f"{rotated} channels turn of heads of {sizes['heads'][-1][-1]}")
        pairs = {entry["pairs"] for entry in own_entries(inspected) if entry.get("pairs") in ("half", "interleaved")}
        return {"turns": layers, "sizes": sizes, "axes": axes_of(inspected, config), "pairs": sorted(pairs)}

    def compare(self, reading, expected):
        """Compares each part that is not a vision tower with the layers of its type."""
        layers = expected["turns"]
        parts = {LAYER_TYPES.get(p["name"], p["name"]): p for p in reading["parts"] if p.get("stack") != "vision"}
        for name, part in parts.items():
            difference = compare_part(name, part, layers)
            if difference:
                return difference
            if expected["pairs"] and part["encoding"].replace("rope_", "") not in expected["pairs"]:
                return f"pairs are read as {part['encoding']}, and are {' or '.join(expected['pairs'])}"
        missing = set(layers) - set(parts) - {""} if "" not in parts else set()
        if missing:
            return f"layers of type {sorted(missing)[0]} are not read"
        if expected["axes"] and parts and expected["axes"] != next(iter(parts.values())).get("axes"):
            return "its pairs follow other axes"
        return inspection.compare_sizes(parts, expected["sizes"]) if expected["sizes"] else ""

    def mutate(self, rng, defaults, inspected):
        """Returns members with other sizes, bases and scalings, and in one file of eight one of another family."""
        n_pairs = len(next(iter(inspected["rotary"][0]["freqs"].values()))[0])
        members = choose_members(rng, defaults, self.values)
        if rng.random() < 0.5:
            members["rope_theta"] = rng.choice(self.values["rope_theta"])
        choice = rng.random()
        if choice < 0.6:
            rule = rng.choice(list(SCALINGS))
            theta = members.get("rope_theta") or rng.choice(self.values["rope_theta"])
            types = [t for t in (defaults.get("layer_types") or []) if isinstance(t, str)]
            name = rng.choice(["rope_scaling", "rope_parameters"] if HAS_ROPE_PARAMETERS else ["rope_scaling"])
            if types and rng.random() < 0.4 and HAS_ROPE_PARAMETERS:
                members[name] = {t: random_scaling(rng, rng.choice(list(SCALINGS)), n_pairs, theta)
                                 for t in sorted(set(types))}
            else:
                members[name] = random_scaling(rng, rule, n_pairs, theta)
        elif choice < 0.7:
            members["rope_scaling"] = None
        if rng.random() < 0.12:
            key = rng.choice(FOREIGN)
            members.setdefault(key, rng.choice(self.values[key]))
        return members


def random_scaling(rng, rule, n_pairs, theta):
    """Returns the object of a scaling rule with some of its optional members."""
    scaling = dict(SCALINGS[rule])
    scaling[rng.choice(["rope_type", "rope_type", "type"])] = rule
    if rule == "longrope":
        scaling["short_factor"] = [1.0 + 0.01 * i for i in range(n_pairs)]
        scaling["long_factor"] = [1.0 + 0.5 * i for i in range(n_pairs)]
    if rule == "yarn":
        for key, value in (("beta_fast", 16.0), ("beta_slow", 2.0), ("attention_factor", 1.25), ("mscale", 0.707),
                           ("mscale_all_dim", 1.0), ("truncate", False)):
            if rng.random() < 0.3:
                scaling[key] = value
        if rng.random() < 0.3:
            del scaling["original_max_position_embeddings"]
    if rule == "llama3" and rng.random() < 0.3:
        scaling["factor"] = 32.0
    if theta and rng.random() < 0.7 and HAS_ROPE_PARAMETERS:
        scaling["rope_theta"] = theta
    if rng.random() < 0.1 and HAS_ROPE_PARAMETERS:
        scaling["partial_rotary_factor"] = 0.5
    return scaling


# ---- Numbers of the model ----

def own_entries(inspected):
    """Returns the rotary modules made from the type's own configuration; all if none is."""
    own = [entry for entry in inspected["rotary"] if entry.get("of") == inspected.get("of")]
    return own or inspected["rotary"]


def rotary_class(entry):
    """Returns the class of a rotary module; model_classes() has imported its file."""
    return getattr(sys.modules[entry["module"]], entry["class"])


def axes_of(inspected, config):
    """Returns the axis of each pair of a configuration's rotation, or None."""
    entry = next((entry for entry in own_entries(inspected) if entry.get("axes")), None)
    return entry and inspection.find_axes(config, rotary_class(entry)(config=config), entry["pairs"])


def check_heads(config, layers):
    """Raises ValueError if the model can be built, and its attention cannot run."""
    heads, key_heads = (getattr(config, k, None) for k in ("num_attention_heads", "num_key_value_heads"))
    latent = getattr(config, "qk_rope_head_dim", None)
    if isinstance(heads, int) and isinstance(key_heads, int) and key_heads and heads % key_heads and not latent:
        raise ValueError(f"{heads} query heads cannot share {key_heads} key heads")
    try:
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        head_dim = max(head_dim, getattr(config, "global_head_dim", None) or 0)
    except (AttributeError, TypeError):
        return
    for freqs, _ in layers.values():
        if 2 * len(freqs) > head_dim or (latent and 2 * len(freqs) != latent):
            raise ValueError(f"{2 * len(freqs)} channels turn of heads of {latent or head_dim}")


def frequencies_by_module(inspected, config):
    """Returns {layer type: (frequencies, attention factor)} of rotary modules for all layers, or for one type."""
    found = {}
    classes = dict.fromkeys((rotary_class(entry), "local" in entry["path"]) for entry in own_entries(inspected))
    for cls, local in classes:
        own = config
        if local and not HAS_ROPE_PARAMETERS:  # as models of releases before 5 do
            own = copy.deepcopy(config)
            own.rope_theta = (getattr(config, "rope_local_base_freq", None) or getattr(config, "local_rope_theta", None)
                              or config.rope_theta)
            own.rope_scaling = {"rope_type": "default"}
        for layers, (freqs, factor, _) in rotary_frequencies(cls(config=own)).items():
            found[layers or ("sliding_attention" if local else "")] = freqs, factor
    return found


def frequencies_by_layer(cls, inspected, config):
    """Returns the same of releases before 5 in which each layer has a rotary module; {} for other models."""
    found = {}
    if HAS_ROPE_PARAMETERS or not any(layer_type(config, entry["path"]) for entry in inspected["rotary"]):
        return found
    for path, module in build_model(cls, config).named_modules():
        layers = "otary" in type(module).__name__ and layer_type(config, path)
        if layers and layers not in found:
            found.update((layers, values[:2]) for values in rotary_frequencies(rebuild(module)).values())
    return found


def layer_type(config, path):
    """Returns the layer type of a module by its path; None if all layers have one type."""
    number, every = re.search(r"layers\.(\d+|\*)\.", path), getattr(config, "global_attn_every_n_layers", None)
    named = next((layers for layers in LAYER_TYPES.values() if layers in path), None)
    if named or not number or not (every or getattr(config, "layer_types", None)):
        return named
    layer = 0 if number[1] == "*" else int(number[1])
    return config.layer_types[layer] if not every else "sliding_attention" if layer % every else "full_attention"


# ---- Comparison ----

def compare_part(name, part, layers):
    """Returns "" if a part for layers of this type has their frequencies and attention factor, else the difference."""
    if "omega" not in part:
        return f"it is read as {part['encoding']}"
    candidates = [layers[name]] if name in layers else list(layers.values()) if name == "" else []
    if name == "full_attention" and set(layers) == {"", "sliding_attention"}:
        candidates = [layers[""]]  # releases before 5 have a module of its own for sliding attention
    if not candidates and layers and "" not in layers and not part.get("layers"):
        return ""  # no layer is of this type
    if not candidates:
        return f"no layers of type {name} rotate"
    label = name or "all layers"
    for freqs, factor in candidates:
        at = next((i for i, (a, b) in enumerate(zip(part["omega"], freqs)) if not near(a, b)), None)
        if at is not None:
            return f"{label}: pair {at} is {part['omega'][at]:.9g}, not {freqs[at]:.9g}"
        if len(part["omega"]) != len(freqs):
            return f"{label}: {len(part['omega'])} and {len(freqs)} pairs"
        if not near(part["attention"], factor):
            return f"{label}: the factor is {part['attention']:.9g}, not {factor:.9g}"
    return ""
