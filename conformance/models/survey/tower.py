"""Towers: rows of types whose attention turns a patch by its row and its column, and what their modules compute."""
import inspect
import sys

from patches import COLUMNS, DEPTH, ROWS, asked_positions, attentions_of, axes_of, models, turning
from truth import PARAMETERS
from values import near, some

ENCODINGS = ("rope_half", "rope_interleaved")
FLAG = "tower"
KEYS = ("hidden_size embed_dim head_dim num_heads num_attention_heads num_key_value_heads depth num_hidden_layers image_size "
        "patch_size spatial_merge_size merge_size").split()
PROBES = ("hidden_size", "embed_dim", "head_dim", "num_key_value_heads")
ORDERS = {"row column": [], "column row": ["column_first"], "time row column": ["three_axes"]}
CLASS_TOKEN = "Its class token does not turn."
asked = {}


def positions_of(cls):
    if cls not in asked:
        asked[cls] = asked_positions(cls)
    return asked[cls]


def row(cls, seen, plain, known):
    """Its reasons stand where nothing else turns."""
    if not seen["rotary"] or any("freqs" in e and e.get("pairs") in ("half", "interleaved") for e in seen["rotary"]):
        return None
    if not any("patch" in key for key in plain):
        return None  # no pictures are asked of it
    positions = positions_of(cls)
    if positions is None:
        return None
    names, first = axes_of(positions)
    if first is None:
        return f"it turns by {names}"
    found = turning(cls(), positions)
    if isinstance(found, str):
        return found
    theta = (plain.get("rope_parameters") or {}).get("rope_theta", 10000.0)
    flags = layout(found, names, theta)
    if isinstance(flags, str):
        return flags
    flags += ["from_one"] if found.get("origin", first) == 1 else []
    turning_layers, depth = len(attentions_of(next(models(cls(), "meta", True)))), depth_of(plain)
    flags += ["hybrid"] if turning_layers != depth else []
    known = {**{k: known.get(k, plain.get(k)) for k in KEYS if k in known or isinstance(plain.get(k), int)},
             **moved(cls, plain, positions), "rope_theta": theta, "rope_parameters": None, "rope_scaling": None}
    free = known["hidden_size"] == known.get("embed_dim") == "ignored"
    flags.insert(1, "free_width" if free else "embed_dim" if known["hidden_size"] == "ignored" else "hidden_size")
    known = {**known, "hidden_size": None} if free else known
    return "rope_" + found["kind"], flags, known, "  ".join(
        ([f"{turning_layers} of {depth} layers turn, by default."] if turning_layers != depth else []) + ([CLASS_TOKEN] if "origin" in found or positions.reshape(-1, len(names)).shape[0] > ROWS * COLUMNS else []) +
        besides(cls, seen))


def depth_of(plain):
    return next((plain[k] for k in DEPTH if isinstance(plain.get(k), int)), 0)


def layout(found, names, theta):
    """Flags of a tower whose pairs have these frequencies and axes; a text where it is none that is read."""
    n, axes = len(found["omega"]), [names[a] for a in found["axes"]]
    k = n // len(names)
    sections, turns = axes[::k], axes[:len(names)]
    ways = {"": (sections, [(s, j / k) for s in sections for j in range(k)]),
            "alternating": (turns, [(s, j / k) for j in range(k) for s in turns]),
            "dealt": (sections, [(s, (len(sections) * j + i) / n) for i, s in enumerate(sections) for j in range(k)])}
    for way, (order, pairs) in ways.items():
        order = ORDERS.get(" ".join(order))
        if order is not None and len(pairs) == n and all(
                a == axis and near(theta ** -e, omega) for (a, e), axis, omega in zip(pairs, axes, found["omega"])):
            return ["tower"] + order + ([way] if way else []) + (["halves"] if found["halves"] else [])
    return "frequencies and axes of its pairs are laid out in a way of their own"


def moved(cls, plain, positions):
    """{member: what the class takes of it, "ignored" where a tower does not change with it}."""
    usual, out = turning(cls(), positions), {}
    for key in PROBES:
        value = plain.get(key)
        try:
            other = 2 * value if isinstance(value, int) and key != "num_key_value_heads" else usual["heads"] // 4
            found = turning(cls(**{key: other}), positions)
            changed = key in plain if isinstance(found, str) else found != usual
        except Exception:
            changed = key in plain or key in cls.attribute_map
        if not changed:
            out[key] = "ignored"
    return out


def besides(cls, seen):
    """What it learns of positions besides."""
    names = [t["path"].rsplit(".", 1)[-1] for t in seen["tables"]]
    names += [n for o in seen["other"] for n in o["shapes"] if "pos" in n and not n.endswith("_ids")]
    if not names:
        return []
    source = inspect.getsource(sys.modules[cls.__module__.replace("configuration_", "modeling_")])
    how = ", interpolated to each picture," if seen["tables"] and "interpol" in source else ""
    return [f"What it learns of positions besides ({', '.join(sorted(set(names)))}){how} is not covered"]


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


NUMBERS = {"hidden_size": [512, 768, 1280], "embed_dim": [512, 768], "num_attention_heads": [4, 8, 16], "num_heads": [4, 8, 16],
           "num_key_value_heads": [2, 4], "head_dim": [32, 64, 48], "depth": [4, 12], "num_hidden_layers": [4, 12],
           "patch_size": [8, 14, 32], "image_size": [224, 448], "spatial_merge_size": [1, 2, 4], "window_size": [56],
           "num_position_embeddings": [1024]}
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
