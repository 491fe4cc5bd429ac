"""Rotations: rows of types whose attention turns queries and keys, and what their modules compute."""
import sys

import rows
from values import SIZES, near, same_numbers, some
from truth import frequencies

ENCODINGS = ("rope_half", "rope_interleaved")
LAYERS = {"full": "full_attention", "sliding": "sliding_attention", "chunked": "chunked_attention"}

BASES = {"rope_theta": 321.0, "rotary_emb_base": 321, "rotary_pct": 0.5, "partial_rotary_factor": 0.5, "rotary_dim": 12,
         "qk_rope_head_dim": 24, "head_dim": 48, "rope_local_base_freq": 321.0, "local_rope_theta": 321.0,
         "global_rope_theta": 321.0, "global_head_dim": 48, "kv_channels": 48}


def effects(cls, modules, known, plain):
    """Adds to `known` what changes frequencies, and says of what does not that it is ignored."""
    usual = rotary_truth(modules, cls())
    for key, value in BASES.items():
        moved = False
        for other in (value, value / 2 if isinstance(value, float) else value):
            try:
                moved |= rotary_truth(modules, cls(**{key: other})) != usual
            except Exception:
                moved |= key in known
        if key == "partial_rotary_factor":
            if any(isinstance(v, dict) for v in (plain.get("rope_parameters") or {}).values()):
                known.setdefault(key, None)
                continue
            moved &= shares(cls, modules)
        if moved:
            known.setdefault(key, plain.get(key) if isinstance(plain.get(key), (int, float)) else None)
        elif key in known or key in ("partial_rotary_factor", "rope_theta"):
            known[key] = "ignored"
    if known.get("rope_theta") == "ignored" and isinstance(known.get("rope_parameters"), dict):
        known["rope_theta"] = None
    if known.get("rope_theta") == "ignored" and known.get("rotary_emb_base") is None and "rotary_emb_base" in known:
        known["rotary_emb_base"] = (plain.get("rope_parameters") or {}).get("rope_theta", 10000.0)
    if "rotary_pct" in known and known["rotary_pct"] is None:
        known["rotary_pct"] = (plain.get("rope_parameters") or {}).get("partial_rotary_factor")
        if known.get("partial_rotary_factor") != "ignored":
            known["partial_rotary_factor"] = None
    return known


def shares(cls, modules):
    """Whether a share in an object that scales nothing counts."""
    def pairs(share):
        rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": share}
        return [len(f) for f, _ in rotary_truth(modules, cls(rope_parameters=rope)).values()]
    try:
        return pairs(0.25) != pairs(0.75)
    except Exception:
        return False


def rotary_classes(truth):
    found = []
    for e in truth["rotary"]:
        pair = (getattr(sys.modules[e["module"]], e["class"]), "local" in e["path"])
        if pair not in found:
            found.append(pair)
    return found

def layered(truth):
    """Types of layers have objects of their own."""
    return ["layered"] if any(len(e.get("freqs", {})) > 1 or any(e.get("freqs", {})) for e in truth["rotary"]) else []


def row(cls, seen, plain, known):
    if not seen["rotary"]:
        return None
    encoding, why = rotary(seen)
    if not encoding:
        return why
    effects(cls, rotary_classes(seen), known, plain)
    flags = ([] if rows.decodes(cls) else ["encoder"]) + ([] if why else layered(seen))
    return encoding, flags, known, "It adds positions of another kind, too: not covered" if why else ""


def rotary(truth):
    """(encoding, reason) of the rotations of a model."""
    kinds = {}
    for entry in truth["rotary"]:
        if "error" in entry:
            return None, f"{entry['class']} cannot be made apart from its model"
        if not entry.get("freqs"):
            return None, f"the angles of {entry['class']} are of a kind of its own"
        kinds[entry.get("pairs")] = entry["class"]
    if len(kinds) > 1:
        return None, "its rotations are of several kinds: " + ", ".join(sorted(f"{k} ({v})" for k, v in kinds.items()))
    kind = next(iter(kinds))
    if kind not in ("half", "interleaved"):
        return None, f"{kinds[kind]}: {kind}"
    if truth["tables"] or any("pos" in n for o in truth["other"] for n in o["shapes"]):
        return "rope_" + kind, "besides"
    return "rope_" + kind, None

def ask(cls, seen, config):
    """{layers: (frequencies, factor)} of a configuration, by the classes of rotary modules its type has."""
    if not seen["rotary"]:
        return None
    return rotary_truth(rotary_classes(seen), config)


def rotary_truth(modules, config):
    found = {}
    for cls, local in modules:
        made = cls(config=config)
        for layers, (freqs, factor, shape) in frequencies(made).items():
            name = layers or ("sliding_attention" if local else "")
            found[name] = (freqs, factor)
    return found


def judge(said, truth):
    """"" where all parts agree, else what does not."""
    parts = [p for p in said["parts"] if p.get("stack") != "vision"]
    mine = {LAYERS.get(p["name"], p["name"]): p for p in parts}
    for name, p in mine.items():
        if "omega" not in p:
            return f"it is read as {p['encoding']}"
        theirs = [truth[name]] if name in truth else list(truth.values()) if name == "" else []
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
    return f"layers of type {sorted(missing)[0]} are not read" if missing else ""

FACTORS = {"linear": {"factor": 4.0}, "dynamic": {"factor": 2.0},
           "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
           "yarn": {"factor": 4.0, "original_max_position_embeddings": 2048},
           "longrope": {"original_max_position_embeddings": 4096}, "default": {}, "proportional": {}}


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
    if theta and rng.random() < 0.7:
        rope["rope_theta"] = theta
    if rng.random() < 0.1:
        rope["partial_rotary_factor"] = 0.5
    return rope


NUMBERS = {**SIZES, "num_key_value_heads": [1, 2, 4],
           "head_dim": [32, 64, 96, 128, 256], "rope_theta": [500.0, 10000.0, 1000000.0], "rotary_emb_base": [500, 25000],
           "rotary_pct": [0.25, 0.5, 1.0], "partial_rotary_factor": [0.25, 0.5, 0.75, 1.0], "rotary_dim": [16, 32],
           "qk_rope_head_dim": [32, 64, 128], "global_head_dim": [128, 512], "rope_local_base_freq": [5000.0, 10000.0],
           "local_rope_theta": [5000.0], "global_rope_theta": [80000.0], "qk_nope_head_dim": [64, 128],
           "original_max_position_embeddings": [1024, 4096], "kv_channels": [64], "qk_head_dim": [96]}
FOREIGN = ["rotary_emb_base", "rotary_pct", "rotary_dim", "n_embd", "head_dim", "partial_rotary_factor", "qk_rope_head_dim",
           "rope_local_base_freq", "global_head_dim", "original_max_position_embeddings"]


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
        name = rng.choice(["rope_scaling", "rope_parameters"])
        if nested and rng.random() < 0.4:
            out[name] = {l: rope_object(rng, rng.choice(list(FACTORS)), pairs, theta) for l in sorted(set(nested))}
        else:
            out[name] = rope_object(rng, rule, pairs, theta)
    elif roll < 0.7:
        out["rope_scaling"] = None
    if rng.random() < 0.12:
        key = rng.choice(FOREIGN)
        out.setdefault(key, rng.choice(NUMBERS[key]))
    return out
