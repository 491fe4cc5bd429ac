"""Compares rotations in vision towers, where a patch has a position on each axis of a picture.

An experiment finds how the attention of a tower rotates a patch: pairs of channels, frequencies and axes. No formula of
its code is used. A model of one layer is called with a picture until it calls its rotary module, which shows the
positions of patches. The rotary module, and the function by which the attention applies its result, then rotate the
unit vector of each channel of a head.
"""
import copy
import inspect
import math
import re
import sys

import torch
from comparer import Comparer, choose_members, near
from inspection import ROTARY_CLASS, sizes_of_built
from transformers_models import HAS_ROPE_PARAMETERS, TooLong, build_model, limit_time, model_classes, rebuild

ROWS, COLUMNS = 8, 12  # patches of the picture
LAYER_COUNTS = ("depth", "num_hidden_layers", "n_layers", "num_layers")
PATCHES = ((0, 0), (0, 1), (1, 0), (2, 3), (-1, -1))  # (row, column), compared by FractionComparer
THETAS = [100.0, 500.0, 1000000.0]


class RotaryCalled(BaseException):
    """A model called its rotary module with these positions. It is no Exception, which models may handle."""


def build_towers(config, device, one_layer=True):
    """Yields the models with a rotary module, of one layer or whole, by each class that takes the configuration.

    Raises ValueError if the last of them cannot be built.
    """
    config, failure = copy.deepcopy(config), None
    for key in LAYER_COUNTS if one_layer else ():
        if isinstance(config.to_dict().get(key), int):
            setattr(config, key, 1)
    for cls in model_classes(type(config))[:4]:
        try:
            with torch.device(device):
                model = limit_time(30, lambda: cls(config)).eval()
        except (Exception, TooLong) as error:
            failure = error
            continue
        if find_rotary(model) is not None:
            yield model
            failure = None
    if failure:
        raise ValueError(f"{type(failure).__name__}: {failure}")


def find_rotary(model):
    """Returns the first module that takes positions or has a table of all patches, or None."""
    for module in model.modules():
        if ROTARY_CLASS.search(type(module).__name__):
            arguments = inspect.signature(module.forward).parameters
            if has_table(module) or hasattr(module, "inv_freq") and "position_ids" in arguments:
                return module
    return None


def has_table(rotary):
    """Returns true if a rotary module has a table of all patches in their order, then a class token (Llama 4)."""
    return hasattr(rotary, "freqs_ci")


# ---- Positions of patches ----

def grid_positions():
    """Returns [patches, (column, row)] of the picture, row by row."""
    y, x = torch.meshgrid(torch.arange(ROWS), torch.arange(COLUMNS), indexing="ij")
    return torch.stack([x.flatten(), y.flatten()], -1)


def possible_pictures(config):
    """Yields (pixels, grid) of one picture in each shape that a tower may take."""
    c = next((getattr(config, k) for k in ("in_channels", "in_chans", "num_channels") if hasattr(config, k)), 3)
    p, n, m = config.patch_size, ROWS * COLUMNS, getattr(config, "spatial_merge_size", 1) or 1
    grid = torch.tensor([[1, ROWS, COLUMNS]])
    yield torch.zeros(1, c, ROWS * p, COLUMNS * p), grid
    for t in (1, 2):
        for shape in ((n, c * t * p * p), (n, c, p, p), (1, n, c, p, p), (1, n, c * p * p), (n, c, t, p, p)):
            yield torch.zeros(*shape), grid
    yield torch.zeros(n // m ** 2, p * m, p * m, c), grid // torch.tensor([[1, m, m]])


def possible_arguments(model, config):
    """Yields arguments for a model's forward() by their names."""
    names = list(inspect.signature(model.forward).parameters)
    for pixels, grid in possible_pictures(config):
        known = {"pixel_position_ids": grid_positions()[None], "grid_thw": grid, "image_grid_thw": grid,
                 "merge_sizes": torch.tensor([1])}
        arguments = {names[0]: pixels, **{k: v for k, v in known.items() if k in names}}
        yield arguments
        if "image_sizes" in names:
            yield {**arguments, "image_sizes": [(ROWS * config.patch_size, COLUMNS * config.patch_size)]}


def find_positions(cls):
    """Returns the positions [patches, axes] that a model passes to its rotary module for the picture, or None.

    A model whose table has all patches passes none: the result is (row, column) of each patch.
    """
    found = None

    def stop(module, args, kwargs):
        raise RotaryCalled(kwargs["position_ids"] if "position_ids" in kwargs else args[1])
    for model in build_towers(cls(), "cpu"):
        if has_table(find_rotary(model)):
            return grid_positions().flip(-1)
        find_rotary(model).register_forward_pre_hook(stop, with_kwargs=True)
        for arguments in possible_arguments(model, model.config):
            try:
                model(**arguments)
            except RotaryCalled as called:
                found = called.args[0]
                if isinstance(name_axes(found)[0], list):
                    return found
            except Exception:
                continue
    return found


def name_axes(positions):
    """Returns the names of the axes and the position of the first patch, or a sentence and None."""
    flat, names, firsts = positions.reshape(-1, positions.shape[-1]).double(), [], set()
    if sorted(flat.amax(0).tolist()) == [ROWS, COLUMNS]:
        flat = flat[flat.amax(1) > 0]  # a class token lies at 0, before patches that count from 1
    for column in flat.T:
        values = sorted(set(column.tolist()))
        counted = values == [values[0] + i for i in range(len(values))]
        name = {ROWS: "row", COLUMNS: "column", 1: "time"}.get(len(values)) if counted else None
        if name is None:
            return "positions that are not those of the patches of a whole picture", None
        names.append(name)
        if name != "time":
            firsts.add(int(values[0]))
    if len(set(names)) < len(names) or not {"row", "column"} <= set(names) or len(firsts) > 1:
        return "positions that are not one of rows and one of columns", None
    return names, firsts.pop()


# ---- Rotation of channels ----

def find_attention(models):
    """Returns (model, attention module, function by which it applies the rotation), or None."""
    for model in models:
        for module in model.modules():
            if "ttention" in type(module).__name__:
                name = re.search(r"\b(\w*apply_\w*(?:rot|rope)\w*)\(", inspect.getsource(type(module).forward))
                if name:
                    return model, module, getattr(sys.modules[type(module).__module__], name[1])
    return None


def heads_of(module, config):
    """Returns (heads, key heads, head_dim) of an attention module."""
    heads = next(getattr(o, k) for o in (module, config) for k in ("num_heads", "num_attention_heads")
                 if isinstance(getattr(o, k, None), int))
    names = [name for name in ("qkv", "qkv_proj", "q_proj", "k_proj", "q", "k") if hasattr(module, name)]
    projections = {name: getattr(module, name) for name in names}
    width = {name: getattr(p, "linear", p).out_features for name, p in projections.items()}
    fused, q, k = (width.get(a, width.get(b)) for a, b in (("qkv", "qkv_proj"), ("q_proj", "q"), ("k_proj", "k")))
    head_dim = getattr(module, "head_dim", None) or (fused // 3 if fused else q) // heads
    key_heads = (fused // head_dim - heads) // 2 if fused else k // head_dim
    if (fused or q + 2 * k) != (heads + 2 * key_heads) * head_dim:
        raise ValueError("the heads of its attention are not as wide as its projections")
    return heads, key_heads, head_dim


def rotate_channels(function, angles, head_dim, tokens, positions):
    """Returns response[token][i][o], the part of channel i in output channel o, or None if no known layout fits.

    Token 0 is at position 0, where nothing rotates.
    """
    eye = torch.eye(head_dim)
    with_ids = "position_ids" in inspect.signature(function).parameters
    for batched, heads_first in ((True, False), (False, False), (True, True)):
        queries = eye.expand(tokens, head_dim, head_dim)
        queries = queries.transpose(0, 1) if heads_first else queries
        queries = queries[None] if batched else queries
        try:
            rotated = function(queries, *angles, positions) if with_ids else function(queries, queries, *angles)
        except Exception:
            continue
        rotated = (rotated[0] if isinstance(rotated, tuple) else rotated).reshape(queries.shape)
        rotated = rotated[0] if rotated.dim() == 4 else rotated
        rotated = rotated.transpose(0, 1) if heads_first else rotated
        if bool((rotated[0] - eye).abs().max() < 1e-6) and bool((rotated.square().sum(-1) - 1).abs().max() < 1e-4):
            return rotated
    return None


def find_partners(response):
    """Returns {channel: the other channel of its pair} of rotated channels, or None if some mix with several."""
    moved = ((response - torch.eye(response.shape[-1])).abs() > 0).any(0)
    partners = {}
    for channel in range(moved.shape[0]):
        others = [int(o) for o in moved[channel].nonzero().flatten() if o != channel]
        if len(others) > 1:
            return None
        if others:
            partners[channel] = others[0]
    return partners


def name_pairing(partners):
    """Returns the pairing and the first channel of each pair, or None and a sentence.

    The pairing is half, interleaved, or halves: half within each half of a head.
    """
    if not partners or set(partners) != set(range(len(partners))):
        return None, "the channels that turn are not the first of a head"
    n = len(partners) // 2
    if all(partners[c] == c + n for c in range(n)):
        return "half", list(range(n))
    if all(partners[c] == c + 1 for c in range(0, 2 * n, 2)):
        return "interleaved", list(range(0, 2 * n, 2))
    if n % 2 == 0 and all(partners[at + c] == at + c + n // 2 for at in (0, n) for c in range(n // 2)):
        return "halves", [at + c for at in (0, n) for c in range(n // 2)]
    return None, "the channels of each axis are paired among themselves, half of them apart"


def run_rotary(rotary, positions, head_dim, config):
    """Returns the result of a rotary module for some tokens, and the index of the one at the first patch.

    The tokens are one that is not rotated, one at the first patch, and one that is a step further on each axis. A
    module that takes positions has its first patch at 0, where nothing rotates: one token is both.
    """
    axes = positions.shape[-1]
    if has_table(rotary):
        side = config.image_size // config.patch_size
        return (rotary(torch.zeros(1))[[-1, 0, side, 1]],), 1
    at = torch.cat([torch.zeros(1, axes), torch.eye(axes), torch.zeros(2, axes)]).to(positions.dtype)
    return rotary(torch.zeros(1, 1, head_dim), at.reshape([1] * (positions.dim() - 2) + [-1, axes])), 0


def probe_rotation(config, positions):
    """Returns the pairing, the frequency and axis of each pair, and the heads of a configuration's attention.

    Returns a sentence if rotations of pairs do not describe it. Raises an exception if the model cannot be built.
    """
    found = find_attention(build_towers(config, "meta")) or find_attention(build_towers(config, "meta", False))
    if found is None:
        return "its attention applies its angles in a way of its own"
    model, module, function = found
    heads, key_heads, head_dim = heads_of(module, model.config)
    n_axes, rotary = positions.shape[-1], rebuild(find_rotary(model))
    angles, first_patch = run_rotary(rotary, positions, head_dim, model.config)
    tokens = angles[0].shape[-2 if first_patch == 0 else 0]
    response = rotate_channels(function, angles, head_dim, tokens, positions[:1])
    if response is None:
        return "its attention does something else to channels than to turn them by its angles"
    partners = find_partners(response)
    if partners is None:
        return "a channel turns with several others"
    pairing, channels = name_pairing(partners)
    if pairing is None:
        return channels
    omega, axes, origins = [], [], set()
    for c in channels:
        tokens = response[first_patch:first_patch + n_axes + 1, c]
        here, *steps = [math.atan2(float(token[partners[c]]), float(token[c])) for token in tokens]
        steps = [abs(math.remainder(step - here, 2 * math.pi)) for step in steps]
        axis = max(range(n_axes), key=lambda a: steps[a])
        if any(step > 1e-6 * steps[axis] for a, step in enumerate(steps) if a != axis):
            return "a pair turns by several positions"
        omega.append(steps[axis])
        axes.append(axis)
        origins.add(round(abs(here) / steps[axis]))
    return {"kind": "half" if pairing == "halves" else pairing, "halves": pairing == "halves", "omega": omega,
            "axes": axes, "heads": heads, "key_heads": key_heads, "head_dim": head_dim,
            **({"origin": max(origins)} if first_patch else {})}


# ---- Comparers ----

class PatchComparer(Comparer):
    """Comparer of towers that rotate a patch by its row and its column, counted in patches."""
    encodings, flag = ("rope_half", "rope_interleaved"), "tower"
    values = {
        "hidden_size": [512, 768, 1280], "embed_dim": [512, 768], "num_attention_heads": [4, 8, 16],
        "num_heads": [4, 8, 16], "num_key_value_heads": [2, 4], "head_dim": [32, 64, 48], "depth": [4, 12],
        "num_hidden_layers": [4, 12], "patch_size": [8, 14, 32], "image_size": [224, 448],
        "spatial_merge_size": [1, 2, 4], "window_size": [56], "num_position_embeddings": [1024],
    }

    def __init__(self):
        self.positions = {}  # {class: positions that its model gives to its rotary module}

    def compute(self, cls, inspected, config):
        """Returns probe_rotation() with names of axes, the position of the first patch, and the number of layers."""
        if cls not in self.positions:
            self.positions[cls] = find_positions(cls)
        positions = self.positions[cls]
        names, first = name_axes(positions) if positions is not None else (None, None)
        if first is None:
            return None
        found = probe_rotation(config, positions)
        if isinstance(found, str):
            raise ValueError(found)
        members = config.to_dict()
        layers = next((members[k] for k in LAYER_COUNTS if isinstance(members.get(k), int)), 0)
        return {**found, "axes": [names[axis] for axis in found["axes"]], "origin": found.get("origin", first),
                "layers": layers}

    def compare(self, reading, expected):
        """Compares the only part with the tower."""
        if len(reading["parts"]) != 1:
            return f"{len(reading['parts'])} parts are read"
        part = reading["parts"][0]
        if part["encoding"] != "rope_" + expected["kind"]:
            return f"it is read as {part['encoding']}"
        if bool(part.get("halves")) != expected["halves"]:
            return "pairs are taken of other channels"
        if part.get("halves"):
            part = {**part, "omega": 2 * part["omega"], "axes": [axis for axis in (0, 1) for _ in part["omega"]]}
        names = ["column", "row"] if part.get("column_first") else ["time", "row", "column"][-(max(part["axes"]) + 1):]
        if [names[axis] for axis in part["axes"]] != expected["axes"]:
            return "pairs turn by other axes"
        for pair, (a, b) in enumerate(zip(part["omega"], expected["omega"])):
            if not near(a, b):
                return f"pair {pair} is {a:.9g}, not {b:.9g}"
        for key in ("heads", "key_heads", "head_dim", "origin", "layers"):
            if part.get(key, 0) != expected[key] and (key != "layers" or key in part):
                return f"{key} is {part.get(key, 0):.0f}, not {expected[key]}"
        return ""

    def mutate(self, rng, defaults, inspected):
        """Returns members with other sizes, and other bases in each of the members that may state it."""
        members = choose_members(rng, defaults, self.values)
        choice = rng.random()
        if HAS_ROPE_PARAMETERS and choice < 0.3:
            rule = {"rope_theta": rng.choice(THETAS), "rope_type": rng.choice(["axial", "default"])}
            members["rope_parameters"] = rule
        elif HAS_ROPE_PARAMETERS and choice < 0.5:
            members[rng.choice(["rope_parameters", "rope_scaling"])] = rng.choice(
                [{"rope_theta": rng.choice(THETAS)}, {"rope_type": "linear", "factor": 2.0}, {"type": "default"},
                 {"rope_type": "axial", "rope_theta": 100.0, "partial_rotary_factor": 0.5}])
        if rng.random() < 0.3:
            members["rope_theta"] = rng.choice(THETAS)
        if rng.random() < 0.2:
            key = rng.choice(["head_dim", "num_key_value_heads", "hidden_size", "embed_dim", "num_heads",
                              "num_attention_heads"])
            members.setdefault(key, rng.choice(self.values[key]))
        return members


class FractionComparer(Comparer):
    """Comparer of towers whose positions are fractions of a picture from -1 to 1 (DINOv3), run on a picture."""
    encodings, flag = ("rope_half",), "fractions"
    values = {
        "hidden_size": [384, 768], "num_attention_heads": [6, 12], "num_hidden_layers": [4, 12],
        "image_size": [224, 448, 512], "patch_size": [14, 16, 32], "rope_theta": [50.0, 100.0],
    }

    def compute(self, cls, inspected, config):
        """Returns cosines and sines of PATCHES, the side of the picture in patches, heads and layers."""
        model = build_model(cls, config)
        named = re.compile(r"RopePositionEmbedding|RotaryEmbedding")
        module = rebuild(next(m for m in model.modules() if named.search(type(m).__name__))).eval()
        side = config.image_size // config.patch_size
        pixels = torch.zeros(1, 3, side * config.patch_size, side * config.patch_size)
        cos, sin = (tensor.double().reshape(side, side, -1) for tensor in module(pixels))
        return {"side": side, "heads": sizes_of_built(model, config)["heads"],
                "layers": config.num_hidden_layers,
                "cos": [cos[y, x].tolist() for y, x in PATCHES], "sin": [sin[y, x].tolist() for y, x in PATCHES]}

    def compare(self, reading, expected):
        """Compares the only part with the tower: patch k of n is at (2k + 1 - n) omega radians of an axis."""
        part = reading["parts"][0]
        side, omega = int(part["length"]), torch.tensor(part["omega"], dtype=torch.float64)
        heads = [[part["heads"], part["key_heads"], part["head_dim"]]]
        if len(reading["parts"]) != 1 or side != expected["side"] or heads != expected["heads"] or \
                part["layers"] != expected["layers"] or part["rotary_dim"] != part["head_dim"]:
            return f"side {side}, heads {part['heads']} of {part['head_dim']} and {part['layers']} layers are read, " \
                   f"there are {expected['side']}, {expected['heads']} and {expected['layers']}"
        for (y, x), cos, sin in zip(PATCHES, expected["cos"], expected["sin"]):
            half = torch.cat([(2 * (at % side) + 1 - side) * omega for at in (y, x)])
            angles = torch.cat([half, half])
            if (torch.cos(angles) - torch.tensor(cos)).abs().max() > 1e-4 or \
                    (torch.sin(angles) - torch.tensor(sin)).abs().max() > 1e-4:
                return f"patch {y}, {x} turns by other angles"
        return ""
