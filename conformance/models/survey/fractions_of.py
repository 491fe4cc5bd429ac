"""Towers whose positions are fractions of a picture (DINOv3): their modules are run on pictures."""
import re

import sizes
import torch
from truth import again, build
from values import some

ENCODINGS = ("rope_half",)
FLAG = "fractions"
PATCHES = ((0, 0), (0, 1), (1, 0), (2, 3), (-1, -1))


def ask(cls, seen, config):
    """Cosines and sines of some patches of a picture, and the sizes of attention."""
    model, why = build(cls, config)
    if model is None:
        raise ValueError(why)
    module = again(next(m for m in model.modules() if re.search(r"RopePositionEmbedding|RotaryEmbedding", type(m).__name__))).eval()
    side = config.image_size // config.patch_size
    cos, sin = (t.double().reshape(side, side, -1) for t in module(torch.zeros(1, 3, side * config.patch_size, side * config.patch_size)))
    return {"side": side, "heads": sizes.of_built(model, config)["heads"], "layers": config.num_hidden_layers,
            "cos": [cos[y, x].tolist() for y, x in PATCHES], "sin": [sin[y, x].tolist() for y, x in PATCHES]}


def judge(said, answer):
    p = said["parts"][0]
    side, omega = int(p["length"]), torch.tensor(p["omega"], dtype=torch.float64)
    if len(said["parts"]) != 1 or side != answer["side"] or [[p["heads"], p["key_heads"], p["head_dim"]]] != answer["heads"] or \
            p["layers"] != answer["layers"] or p["rotary_dim"] != p["head_dim"]:
        return f"side {side}, heads {p['heads']} of {p['head_dim']} and {p['layers']} layers are read, there are {answer['side']}, " \
               f"{answer['heads']} and {answer['layers']}"
    for (y, x), cos, sin in zip(PATCHES, answer["cos"], answer["sin"]):
        half = torch.cat([(2 * (at % side) + 1 - side) * omega for at in (y, x)])
        angles = torch.cat([half, half])
        if (torch.cos(angles) - torch.tensor(cos)).abs().max() > 1e-4 or (torch.sin(angles) - torch.tensor(sin)).abs().max() > 1e-4:
            return f"patch {y}, {x} turns by other angles"
    return ""


NUMBERS = {
    "hidden_size": [384, 768], "num_attention_heads": [6, 12], "num_hidden_layers": [4, 12],
    "image_size": [224, 448, 512], "patch_size": [14, 16, 32], "rope_theta": [50.0, 100.0],
}


def mutate(rng, plain, seen):
    return some(rng, plain, NUMBERS)
