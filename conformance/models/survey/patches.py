"""What the attention of a tower does to a patch: which channels turn together, how fast, and by which of its positions.

Nothing is taken from the formulas of its code.  A model of one layer is called with a picture until it asks its rotary
module for angles, which shows the positions that it hands over; the module, and the function by which the attention
uses what it gives, then turn every channel of a head.
"""
import copy
import inspect
import math
import re
import sys

import torch
from look import ROTARY
from truth import TooLong, again, in_time, model_classes

ROWS, COLUMNS = 8, 12
DEPTH = ("depth", "num_hidden_layers", "n_layers", "num_layers")


class Asked(BaseException):
    """A model asked its rotary module for angles: with these positions."""


def shallow(config):
    """The same of one layer."""
    less = copy.deepcopy(config)
    for key in DEPTH:
        if isinstance(config.to_dict().get(key), int):
            setattr(less, key, 1)
    return less


def has_table(module):
    """Whether it makes one table, of all patches of a picture in their order and then a class token (Llama 4)."""
    return bool(ROTARY.search(type(module).__name__) and hasattr(module, "freqs_ci"))


def takes_positions(module):
    return bool(ROTARY.search(type(module).__name__) and hasattr(module, "inv_freq")
                and "position_ids" in inspect.signature(module.forward).parameters)


def rotary_of(model):
    return next((m for m in model.modules() if takes_positions(m) or has_table(m)), None)


def models(config, device, whole=False):
    """Models of one layer, or whole ones, on a device, by each class that takes such a configuration."""
    less, why = config if whole else shallow(config), None
    for made in model_classes(type(config))[:4]:
        try:
            with torch.device(device):
                model = in_time(30, lambda: made(less)).eval()
        except (Exception, TooLong) as error:
            why = error
            continue
        if rotary_of(model) is not None:
            yield model
            why = None
    if why:
        raise ValueError(f"{type(why).__name__}: {why}")


# ---- the positions that a model hands over ----

def pictures(config):
    """(pixels, grid) of one picture in every shape that a tower may want."""
    c = next((getattr(config, k) for k in ("in_channels", "in_chans", "num_channels") if hasattr(config, k)), 3)
    p, n, m = config.patch_size, ROWS * COLUMNS, getattr(config, "spatial_merge_size", 1) or 1
    grid = torch.tensor([[1, ROWS, COLUMNS]])
    yield torch.zeros(1, c, ROWS * p, COLUMNS * p), grid
    for t in (1, 2):
        for shape in ((n, c * t * p * p), (n, c, p, p), (1, n, c, p, p), (1, n, c * p * p), (n, c, t, p, p)):
            yield torch.zeros(*shape), grid
    yield torch.zeros(n // m ** 2, p * m, p * m, c), grid // torch.tensor([[1, m, m]])


def calls(model, config):
    """Arguments for its forward, by their names."""
    names = list(inspect.signature(model.forward).parameters)
    size = [(ROWS * config.patch_size, COLUMNS * config.patch_size)]
    for pixels, grid in pictures(config):
        places = torch.stack(torch.meshgrid(torch.arange(ROWS), torch.arange(COLUMNS), indexing="ij")[::-1], -1)
        known = {"pixel_position_ids": places.reshape(1, -1, 2), "grid_thw": grid, "image_grid_thw": grid, "merge_sizes": torch.tensor([1])}
        said = {names[0]: pixels, **{k: v for k, v in known.items() if k in names}}
        yield said
        if "image_sizes" in names:
            yield {**said, "image_sizes": size}


def asked_positions(cls):
    """[tokens, axes]: the positions a model hands to its rotary module for a picture of ROWS x COLUMNS; or None.

    Of a model with a table that of all patches is itself what it is asked for.
    """
    found = None

    def stop(module, args, kwargs):
        raise Asked(kwargs["position_ids"] if "position_ids" in kwargs else args[1])
    for model in models(cls(), "cpu"):
        if has_table(rotary_of(model)):
            y, x = torch.meshgrid(torch.arange(ROWS), torch.arange(COLUMNS), indexing="ij")
            return torch.stack([y.flatten(), x.flatten()], -1)
        rotary_of(model).register_forward_pre_hook(stop, with_kwargs=True)
        for arguments in calls(model, model.config):
            try:
                model(**arguments)
            except Asked as asked:
                found = asked.args[0]
                if isinstance(axes_of(found)[0], list):
                    return found
            except Exception:
                continue
    return found


def axes_of(positions):
    """(names of its axes, the position of the first patch), or a text."""
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


# ---- what it does with them ----

def attentions_of(model):
    """[(module, function)] of each attention that applies a rotation."""
    return [(m, f) for m, f in ((m, applies(m)) for m in model.modules()) if f]


def applies(module):
    """The function by which an attention applies a rotation, or None."""
    if "ttention" not in type(module).__name__:
        return None
    source = inspect.getsource(type(module).forward)
    found = re.search(r"\b(\w*apply_\w*(?:rot|rope)\w*)\(", source)
    return found and getattr(sys.modules[type(module).__module__], found[1])


def sizes_of(module, config):
    """(heads, key heads, size of a head) of an attention."""
    heads = next(getattr(o, k) for o in (module, config) for k in ("num_heads", "num_attention_heads")
                 if isinstance(getattr(o, k, None), int))
    proj = {k: getattr(module, k) for k in ("qkv", "qkv_proj", "q_proj", "k_proj", "q", "k") if hasattr(module, k)}
    width = {k: getattr(p, "linear", p).out_features for k, p in proj.items()}
    fused, q, k = (width.get(one, width.get(other)) for one, other in (("qkv", "qkv_proj"), ("q_proj", "q"), ("k_proj", "k")))
    head = getattr(module, "head_dim", None) or (fused // 3 if fused else q) // heads
    keys = (fused // head - heads) // 2 if fused else k // head
    if (fused or q + 2 * k) != (heads + 2 * keys) * head:
        raise ValueError("the heads of its attention are not as wide as its projections")
    return heads, keys, head


def turned(function, angles, head, tokens, at):
    """[tokens, channel, channel]: what becomes of each channel of a head, by any order of tokens and heads."""
    eye = torch.eye(head).expand(tokens, head, head)
    for there, back in (((0, 1), None), ((0,), None), ((1,), "swap"), ((0, 1), "swap")):
        q = eye.transpose(0, 1) if back else eye
        q = q[None] if 0 in there and len(there) > 1 or back else q
        try:
            got = function(q, *angles, at) if "position_ids" in inspect.signature(function).parameters else function(q, q, *angles)
        except Exception:
            continue
        got = got[0] if isinstance(got, tuple) else got
        got = got.reshape(q.shape)
        got = got[0] if got.dim() == 4 else got
        got = got.transpose(0, 1) if back else got
        if bool((got[0] - torch.eye(head)).abs().max() < 1e-6) and bool((got.square().sum(-1) - 1).abs().max() < 1e-4):
            return got
    return None


def pairs_of(turns):
    """{channel: the channel it turns with}, of channels that turn; None where some turn with several."""
    moved = ((turns - torch.eye(turns.shape[-1])).abs() > 0).any(0)
    found = {}
    for c in range(moved.shape[0]):
        to = [int(o) for o in moved[c].nonzero().flatten() if o != c]
        if len(to) > 1:
            return None
        if to:
            found[c] = to[0]
    return found


def named(pairs):
    """(half, interleaved, or halves where each half of a head is paired so by itself; the first channels of its pairs), or (None, why)."""
    if not pairs or set(pairs) != set(range(len(pairs))):
        return None, "the channels that turn are not the first of a head"
    n = len(pairs) // 2
    if all(pairs[c] == c + n for c in range(n)):
        return "half", list(range(n))
    if all(pairs[c] == c + 1 for c in range(0, 2 * n, 2)):
        return "interleaved", list(range(0, 2 * n, 2))
    if n % 2 == 0 and all(pairs[at + c] == at + c + n // 2 for at in (0, n) for c in range(n // 2)):
        return "halves", [at + c for at in (0, n) for c in range(n // 2)]
    return None, "the channels of each axis are paired among themselves, half of them apart"


def angles_of(rotary, positions, head, config):
    """(what it gives for a token at 0, [one at the first patch,] and one a step further on each axis, where these begin)."""
    axes = positions.shape[-1]
    if has_table(rotary):
        side = config.image_size // config.patch_size
        return (rotary(torch.zeros(1))[[-1, 0, side, 1]],), 1
    at = torch.cat([torch.zeros(1, axes), torch.eye(axes), torch.zeros(2, axes)]).to(positions.dtype)
    return rotary(torch.zeros(1, 1, head), at.reshape([1] * (positions.dim() - 2) + [-1, axes])), 0


def turning(config, positions):
    """What the attention of a configuration does: pairing, frequencies and axes of its pairs, heads.

    A text where this is nothing that pairs can tell.  Raises where the model cannot be made.
    """
    found = ((m, attentions_of(m)) for whole in (False, True) for m in models(config, "meta", whole))
    model, attentions = next((one for one in found if one[1]), (None, None))
    if model is None:
        return "its attention applies its angles in a way of its own"
    module, function = attentions[0]
    heads, keys, head = sizes_of(module, model.config)
    axes, rotary = positions.shape[-1], again(rotary_of(model))
    angles, base = angles_of(rotary, positions, head, model.config)
    turns = turned(function, angles, head, angles[0].shape[-2 if base == 0 else 0], positions[:1])
    if turns is None:
        return "its attention does something else to channels than to turn them by its angles"
    pairs = pairs_of(turns)
    kind, first = named(pairs) if pairs is not None else (None, "a channel turns with several others")
    if kind is None:
        return first
    omega, axis, channels, first = [], [], first, set()
    for c in channels:
        still, *steps = [math.atan2(float(turns[base + a, c, pairs[c]]), float(turns[base + a, c, c])) for a in range(axes + 1)]
        steps = [abs(math.remainder(step - still, 2 * math.pi)) for step in steps]
        by = max(range(axes), key=lambda a: steps[a])
        if any(steps[a] > 1e-6 * steps[by] for a in range(axes) if a != by):
            return "a pair turns by several positions"
        omega.append(steps[by])
        axis.append(by)
        first.add(round(abs(still) / steps[by]))
    return {"kind": "half" if kind == "halves" else kind, "halves": kind == "halves", "omega": omega, "axes": axis, "heads": heads, "key_heads": keys, "head_dim": head,
            **({"origin": max(first)} if base else {})}
