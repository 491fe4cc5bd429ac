"""How a model pairs the channels that it turns."""
import sys

import torch
from truth import frequencies


def positions_of(module, n):
    """cos and sin of positions 0 ... n - 1, in any of the ways that rotary modules are called."""
    dim = 256
    x = torch.zeros(1, n, dim)
    row = torch.arange(n)[None]
    layers = [None] + [l for l in frequencies(module) if l]
    for ids in (row, row.expand(3, 1, n), row.expand(4, 1, n)):
        for layer in layers[::-1]:
            try:
                out = module(x, ids, layer_type=layer) if layer else module(x, ids)
                if isinstance(out, tuple) and len(out) == 2:
                    return out, layer or ""
                if isinstance(out, torch.Tensor) and out.is_complex():
                    return (out,), layer or ""
            except Exception:
                continue
    return angles_of(module, x), ""


def angles_of(module, x):
    """The same of a module that is given rows of numbers alone and returns the angles of their positions."""
    try:
        angles = module(x)[0]
        return (angles.cos(), angles.sin()) if angles.shape[0] == x.shape[1] else None
    except Exception:
        return None


APPLY = ["apply_rotary_pos_emb_interleave", "apply_multimodal_rotary_pos_emb", "apply_rotary_pos_emb_vision",
         "apply_rotary_pos_emb", "apply_rotary_emb", "apply_rotary_emb_vision"]


def functions_of(config, rotary):
    """The functions of its file by which a model rotates, the likeliest first."""
    module = sys.modules[type(rotary).__module__]
    there = [name for name in APPLY if hasattr(module, name)]
    if "apply_rotary_pos_emb_interleave" in there and not getattr(config, "rope_interleave", True):
        there.remove("apply_rotary_pos_emb_interleave")
    if "Vision" not in type(rotary).__name__:
        there = [name for name in there if "vision" not in name] or there
    return [getattr(module, name) for name in there]


def pairing(config, rotary):
    """half or interleaved, by what becomes of each channel of a query; and how many turn."""
    out, layers = positions_of(rotary, 4)
    if out is None:
        return "its cosines and sines are not made from positions alone"
    freqs = frequencies(rotary)[layers][0]
    turned = 2 * len(freqs)
    for function in functions_of(config, rotary):
        for extra in (8, 0):
            q = torch.zeros(1, turned + extra, 4, turned + extra)
            for channel in range(turned + extra):
                q[0, channel, :, channel] = 1.0
            got = turned_by(function, q, out)
            if got is not None:
                return name_pairs(got[0, :, 3, :], turned, freqs)
    return "no function of its file takes them"


def turned_by(function, q, out):
    """What a function makes of queries, in any of the ways that such functions are called, or None."""
    later, ids = q.transpose(1, 2), torch.arange(q.shape[2])[None]
    for call in (lambda: function(q, q, *out), lambda: function(later, later, *out)[0].transpose(1, 2),
                 lambda: function(q, *out), lambda: function(q, q, q, *out, ids)):
        try:
            got = call()
            got = got[0] if isinstance(got, tuple) else got
            if got.shape == q.shape:
                return got
        except Exception:
            continue
    return None


def name_pairs(turns, turned, freqs):
    """turns[i][o]: what channel i adds to channel o at position 3."""
    still = [c for c in range(turns.shape[0]) if float(turns[c].count_nonzero()) == 1.0 and float(turns[c].max()) == 1.0
             and (freqs[0] != 0 or c >= turned)]
    if any(c < turned for c in still) and all(f != 0.0 for f in freqs):
        return "the last channels of a head turn, or not all pairs"
    half, side = turned // 2, []
    for name, first, second in (("half", 0, half), ("interleaved", 0, 1)):
        support = (turns[first].abs() > 0) == (turns[second].abs() > 0)
        if bool(support.all()) and (turned > 2 or name == "half"):
            side.append(name)
    if len(side) != 1:
        return "pairs of another kind"
    for pair in range(min(half, len(freqs))):
        a = pair if side[0] == "half" else 2 * pair
        row = turns[a].abs()
        want = abs(float(torch.cos(torch.tensor(3.0 * freqs[pair], dtype=torch.float64))))
        scale = float(torch.sqrt((row * row).sum()))
        if abs(float(row.max()) / scale - max(want, (1 - want * want) ** 0.5)) > 2e-3:
            return f"{side[0]}, but pair {pair} turns by another frequency"
    return side[0]
