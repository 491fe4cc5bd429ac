"""Towers: types whose attention turns a patch by its row and its column, and what their modules compute."""
from patches import DEPTH, asked_positions, axes_of, turning
from truth import PARAMETERS
from values import near, some

ENCODINGS = ("rope_half", "rope_interleaved")
FLAG = "tower"
asked = {}


def positions_of(cls):
    if cls not in asked:
        asked[cls] = asked_positions(cls)
    return asked[cls]


def depth_of(plain):
    return next((plain[k] for k in DEPTH if isinstance(plain.get(k), int)), 0)


def ask(cls, seen, config):
    """What the attention of a configuration does, with the names of the axes of its pairs."""
    positions = positions_of(cls)
    names, first = axes_of(positions) if positions is not None else (None, None)
    if first is None:
        return None
    found = turning(config, positions)
    if isinstance(found, str):
        raise ValueError(found)
    return {**found, "axes": [names[a] for a in found["axes"]], "origin": found.get("origin", first), "layers": depth_of(config.to_dict())}


def judge(said, answer):
    """"" where the tower that is read is this one."""
    if len(said["parts"]) != 1:
        return f"{len(said['parts'])} parts are read"
    p = said["parts"][0]
    if p["encoding"] != "rope_" + answer["kind"]:
        return f"it is read as {p['encoding']}"
    if bool(p.get("halves")) != answer["halves"]:
        return "pairs are taken of other channels"
    if p.get("halves"):
        p = {**p, "omega": 2 * p["omega"], "axes": [a for a in (0, 1) for _ in p["omega"]]}
    names = ["column", "row"] if p.get("column_first") else ["time", "row", "column"][-(max(p["axes"]) + 1):]
    if [names[a] for a in p["axes"]] != answer["axes"]:
        return "pairs turn by other axes"
    at = next((i for i, (a, b) in enumerate(zip(p["omega"], answer["omega"])) if not near(a, b)), None)
    if at is not None:
        return f"pair {at} is {p['omega'][at]:.9g}, not {answer['omega'][at]:.9g}"
    for key in ("heads", "key_heads", "head_dim", "origin", "layers"):
        if p.get(key, 0) != answer[key] and (key != "layers" or key in p):
            return f"{key} is {p.get(key, 0):.0f}, not {answer[key]}"
    return ""


NUMBERS = {
    "hidden_size": [512, 768, 1280], "embed_dim": [512, 768], "num_attention_heads": [4, 8, 16],
    "num_heads": [4, 8, 16], "num_key_value_heads": [2, 4], "head_dim": [32, 64, 48], "depth": [4, 12],
    "num_hidden_layers": [4, 12], "patch_size": [8, 14, 32], "image_size": [224, 448],
    "spatial_merge_size": [1, 2, 4], "window_size": [56], "num_position_embeddings": [1024],
}
THETAS = [100.0, 500.0, 1000000.0]


def mutate(rng, plain, seen):
    """A file that says some of its class's members, and the base in one of the ways that there are."""
    out = some(rng, plain, NUMBERS)
    roll = rng.random()
    if not PARAMETERS:
        pass
    elif roll < 0.3:
        out["rope_parameters"] = {"rope_theta": rng.choice(THETAS), "rope_type": rng.choice(["axial", "default"])}
    elif roll < 0.5:
        out[rng.choice(["rope_parameters", "rope_scaling"])] = rng.choice(
            [{"rope_theta": rng.choice(THETAS)}, {"rope_type": "linear", "factor": 2.0}, {"type": "default"},
             {"rope_type": "axial", "rope_theta": 100.0, "partial_rotary_factor": 0.5}])
    if rng.random() < 0.3:
        out["rope_theta"] = rng.choice(THETAS)
    if rng.random() < 0.2:
        key = rng.choice(["head_dim", "num_key_value_heads", "hidden_size", "embed_dim", "num_heads", "num_attention_heads"])
        out.setdefault(key, rng.choice(NUMBERS[key]))
    return out
