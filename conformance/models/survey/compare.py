"""Compares what parts_of reads of configurations with what the modules of transformers compute."""
import copy
import json
import math
import random
import subprocess

import torch
from truth import ROTARY, frequencies, look

LAYERS = {"full": "full_attention", "sliding": "sliding_attention", "chunked": "chunked_attention"}


def read_all(program, configs):
    """What parts_of says of each configuration."""
    lines = "".join(json.dumps(c) + "\n" for c in configs)
    done = subprocess.run([program], input=lines, capture_output=True, text=True)
    answers = [json.loads(l) for l in done.stdout.splitlines()]
    if len(answers) != len(configs):
        raise SystemExit(f"{program} ended after {len(answers)} of {len(configs)}: {lines.splitlines()[len(answers)][:3000]}")
    return answers


def near(a, b):
    return abs(a - b) <= 2e-5 * max(abs(a), abs(b)) + 1e-30


def same_numbers(ours, theirs):
    return len(ours) == len(theirs) and all(near(a, b) for a, b in zip(ours, theirs))


def rotary_truth(modules, config):
    """{layers: (frequencies, factor)} of a configuration, by the classes of rotary modules its type has."""
    found = {}
    for cls, local in modules:
        made = cls(config=config)
        for layers, (freqs, factor, shape) in frequencies(made).items():
            name = layers or ("sliding_attention" if local else "")
            found[name] = (freqs, factor)
    return found


def judge_rotary(said, truth):
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


NUMBERS = {"hidden_size": [512, 1024, 3072], "n_embd": [512, 1024], "d_model": [512, 1024],
           "num_attention_heads": [4, 8, 16], "n_head": [4, 8], "num_key_value_heads": [1, 2, 4],
           "head_dim": [32, 64, 96, 128, 256], "max_position_embeddings": [512, 8192, 131072],
           "rope_theta": [500.0, 10000.0, 1000000.0], "rotary_emb_base": [500, 25000], "rotary_pct": [0.25, 0.5, 1.0],
           "partial_rotary_factor": [0.25, 0.5, 0.75, 1.0], "rotary_dim": [16, 32], "qk_rope_head_dim": [32, 64, 128],
           "global_head_dim": [128, 512], "rope_local_base_freq": [5000.0, 10000.0], "local_rope_theta": [5000.0],
           "global_rope_theta": [80000.0], "num_hidden_layers": [4, 12], "qk_nope_head_dim": [64, 128],
           "original_max_position_embeddings": [1024, 4096], "kv_channels": [64], "qk_head_dim": [96]}
FOREIGN = ["rotary_emb_base", "rotary_pct", "rotary_dim", "n_embd", "head_dim", "partial_rotary_factor", "qk_rope_head_dim",
           "rope_local_base_freq", "global_head_dim", "original_max_position_embeddings"]


def mutate(rng, plain, pairs):
    """A file that says some of its class's members, others otherwise, and some of another family."""
    out = {}
    keys = [k for k in NUMBERS if k in plain]
    for key in keys:
        if rng.random() < 0.35:
            out[key] = rng.choice(NUMBERS[key])
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
