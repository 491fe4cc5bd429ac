"""Rotations: rows of types whose attention turns queries and keys, and what their modules compute."""
import copy
import json
import re
import sys
import zlib

import axes
import rows
import sizes
from values import SIZES, near, same_numbers, some
from truth import PARAMETERS, again, build, frequencies

ENCODINGS = ("rope_half", "rope_interleaved")
LAYERS = {"full": "full_attention", "sliding": "sliding_attention", "chunked": "chunked_attention"}

BASES = {"rope_theta": 321.0, "rotary_emb_base": 321, "rotary_pct": 0.5, "partial_rotary_factor": 0.5, "rotary_dim": 12,
         "qk_rope_head_dim": 24, "head_dim": 48, "rope_local_base_freq": 321.0, "local_rope_theta": 321.0,
         "global_rope_theta": 321.0, "global_head_dim": 48, "kv_channels": 48}


def moves(modules, cls, usual, key, known):
    """Whether frequencies differ where a member is another, or such a configuration cannot be made."""
    value, moved = BASES[key], False
    for other in (value, value / 2 if isinstance(value, float) else value):
        try:
            moved |= rotary_truth(modules, cls(**{key: other})) != usual
        except Exception:
            moved |= key in known
    return moved


def effects(cls, modules, known, plain):
    """Adds to `known` what changes frequencies, says of what does not that it is ignored, and gives flags."""
    usual = rotary_truth(modules, cls())
    rope = plain.get("rope_parameters") or {}
    for key in BASES:
        if key == "partial_rotary_factor":
            continue
        if moves(modules, cls, usual, key, known):
            known.setdefault(key, plain.get(key) if isinstance(plain.get(key), (int, float)) else None)
        elif key in known or key == "rope_theta":
            known[key] = "ignored"
    bases = [k for k in ("rotary_emb_base", "global_rope_theta") if k in known]
    if known.get("rope_theta") == "ignored" and rope and not bases:
        known["rope_parameters"], known["rope_theta"] = rope, usual_theta(cls)
    if known.get("rope_theta") == "ignored" and known.get("rotary_emb_base") is None and "rotary_emb_base" in known:
        known["rotary_emb_base"] = rope.get("rope_theta", 10000.0)
    return share_effects(cls, modules, known, plain, usual) + scaling_effects(cls, modules, known, rope, usual)


def usual_theta(cls):
    """What a class takes where an object for scaling has no rope_theta, or None."""
    try:
        return cls(rope_parameters={"rope_type": "default"}).rope_parameters.get("rope_theta")
    except Exception:
        return None


def size_effects(cls, known, seen, plain):
    """The same of key heads, which some classes have and do not use, and of layers that do not rotate."""
    keys, layers, flags = plain.get("num_key_value_heads"), plain.get("num_hidden_layers"), []
    if seen.get("attention") and isinstance(keys, int) and "num_key_value_heads" in known:
        try:
            other = cls(num_key_value_heads=1 if keys > 1 else plain.get("num_attention_heads"))
            if sizes.of_model(cls, other)["heads"] == sizes.of_model(cls, cls())["heads"]:
                known["num_key_value_heads"] = "ignored"
        except Exception:
            pass  # others than its own cannot be told, so they count
    rest = sizes.resting(cls())
    for every in range(2, 9) if rest and known.get("no_rope_layer_interval") is None else ():
        if rest == list(range(every - 1, layers, every)):
            known["no_rope_layer_interval"] = every
        elif rest == [i for i in range(layers) if (layers - 1 - i) % every == 0]:
            known["no_rope_layer_interval"], flags = every, ["last_rests"]
    return flags


def scaling_effects(cls, modules, known, rope, usual):
    """The same of rope_scaling: whether it is read, and for which layers one object for all of them."""
    linear, layers = {"rope_type": "linear", "factor": 4.0}, [k for k, v in rope.items() if isinstance(v, dict)]
    found = []
    for scaling in (linear, {k: {**rope[k], **linear} for k in layers}):
        try:
            found.append(rotary_truth(modules, cls(rope_scaling=copy.deepcopy(scaling))))
        except Exception:
            found.append(None)
    if found[0] == usual and (not layers or found[1] == usual):
        known["rope_scaling"] = "ignored"
    moved = {k for k in usual if found[0] and found[0].get(k) != usual[k]}
    thetas = {rope[k].get("rope_theta") for k in layers}
    if moved == {"full_attention"} and set(usual) == {"full_attention", "sliding_attention"} and len(thetas) == 1:
        known["rope_theta"] = thetas.pop()
        return ["full_scaled"]
    return []


def share_effects(cls, modules, known, plain, usual):
    """The same of the share of a head that turns."""
    key, rope = "partial_rotary_factor", plain.get("rope_parameters") or {}
    layers = [k for k, v in rope.items() if isinstance(v, dict)]
    said = any(key in (rope[k] if k in layers else rope) for k in layers or [None])
    pairs = [pairs_with(cls, modules, layers, share) for share in (0.25, 0.75, None)]
    counts, flags = pairs[0] != pairs[1], []
    if counts and (layers or moves(modules, cls, usual, key, known)):
        known.setdefault(key, plain.get(key) if isinstance(plain.get(key), (int, float)) else None)
        flags = ["needs_share"] if layers and pairs[2] != pairs_with(cls, modules, layers, 1.0) else []
    elif counts and said and pairs[2] == [len(f) for f, _ in usual.values()] == [head_dim(cls()) // 4]:
        known[key], flags = "ignored", ["half"]
    elif counts and said:
        known[key] = "ignored" if "rotary_pct" in known else None
    elif layers and said:
        known.setdefault(key, None)
        flags = ["scaled_share"]
    else:
        known[key] = "ignored"
    if said and "qk_rope_head_dim" in known and isinstance(known.get("rope_parameters"), dict) and not layers:
        known["rope_parameters"] = {k: v for k, v in known["rope_parameters"].items() if k != key}
        flags = ["latent_share"]
    if "rotary_pct" in known and known["rotary_pct"] is None:
        known["rotary_pct"] = rope.get(key)
        if known.get(key) != "ignored":
            known[key] = None
    return flags


def head_dim(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def pairs_with(cls, modules, layers, share):
    """The numbers of pairs that turn by an object that scales nothing, with a share in it, or None without."""
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    rope = {**rope, "partial_rotary_factor": share} if share else rope
    rope = {k: dict(rope) for k in layers} if layers else rope
    try:
        return [len(f) for f, _ in rotary_truth(modules, cls(rope_parameters=rope)).values()]
    except Exception:
        return None


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


def row(cls, seen, plain, known):
    if not seen["rotary"]:
        return None
    encoding, why = rotary(seen)
    if not encoding:
        return why
    flags = effects(cls, rotary_classes(seen), known, plain)
    flags += [] if rows.decodes(cls) or seen.get("causal") else ["encoder"]
    flags += size_effects(cls, known, seen, plain)
    flags += ["hybrid"] if 0 < seen.get("attention", 0) < (plain.get("num_hidden_layers") or 0) else []
    besides = ["It adds positions of another kind, too: not covered"] if why else []
    others = sorted({e["class"] for e in seen["rotary"]} - {e["class"] for e in own_of(seen)})
    besides += [f"Another part of it rotates, too ({', '.join(others)}): not covered"] if others else []
    besides += [said for said in [axis_effects(seen, known)] if said]
    return encoding, flags, known, ".  ".join(besides)


def rotary(truth):
    """(encoding, reason) of the rotations of a model."""
    kinds = {}
    for entry in own_of(truth):
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
    if truth["tables"] or any("pos" in n and n != "position_ids" for o in truth["other"] for n in o["shapes"]):
        return "rope_" + kind, "besides"
    return "rope_" + kind, None

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


def axis_effects(seen, known):
    """The sections of a rotation on three axes in `known`; what is to be said where they are not known."""
    said = ""
    for entry in own_of(seen):
        if entry.get("axes"):
            known["mrope_interleaved"] = entry["axes"] != sorted(entry["axes"])
            if isinstance(entry["sections"], list):
                known["mrope_section"] = entry["sections"]
        elif entry.get("sections"):
            said = "Its pairs may follow positions on several axes: those of text alone are covered"
    return said


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
    if theta and rng.random() < 0.7 and PARAMETERS:
        rope["rope_theta"] = theta
    if rng.random() < 0.1 and PARAMETERS:
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
