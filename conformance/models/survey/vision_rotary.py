"""Compares rotations in vision towers, where a patch has a position on each axis of a picture."""
import re

import attention_sizes
import torch
from comparer import Comparer, choose_members, near
from patch_probe import LAYER_COUNTS, find_positions, name_axes, probe_rotation
from transformers_models import HAS_ROPE_PARAMETERS, build_model, rebuild

PATCHES = ((0, 0), (0, 1), (1, 0), (2, 3), (-1, -1))  # (row, column), compared by FractionComparer
THETAS = [100.0, 500.0, 1000000.0]


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
        return {"side": side, "heads": attention_sizes.sizes_of_built(model, config)["heads"],
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
