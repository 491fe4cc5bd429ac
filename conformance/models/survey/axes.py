"""Which of the three axes of a multimodal rotation each pair follows: time, height or width."""
import inspect

import torch
from pairing import functions_of, turned_by
from truth import frequencies


def axes(config, rotary, kind):
    """The axis of each pair, of a rotary module that takes positions on three axes; else None."""
    freqs = frequencies(rotary).get("")
    if not freqs or kind not in ("half", "interleaved"):
        return None
    found = [None] * len(freqs[0])
    for axis in range(3):
        ids = torch.zeros(3, 1, 4, dtype=torch.long)
        ids[axis] = torch.arange(4)
        try:
            turned = pairs_turned(config, rotary, kind, ids, len(found))
        except Exception:
            return None
        if turned is None:
            return None
        for pair in turned:
            if found[pair] is not None:
                return None  # by two axes, or by all alike
            found[pair] = axis
    return found if len(set(found)) > 1 and None not in found else None


def pairs_turned(config, rotary, kind, ids, pairs):
    """The pairs that turn at such positions."""
    cos, sin = rotary(torch.zeros(1, 4, 8), ids)
    if sin.dim() == 3:
        step = 1 if kind == "half" or sin.shape[-1] == pairs else 2
        return [i for i in range(pairs) if float(sin[0, 3, i * step].abs()) > 0.0]
    sections = getattr(rotary, "mrope_section", None) or (config.rope_parameters or {}).get("mrope_section")
    q = torch.eye(2 * pairs)[None, :, None].expand(1, -1, 4, -1).clone()
    for function in functions_of(config, rotary):
        if "mrope_section" not in inspect.signature(function).parameters:
            continue
        got = turned_by(lambda *of: function(*of, mrope_section=sections), q, (cos, sin))
        if got is not None:
            first = [i if kind == "half" else 2 * i for i in range(pairs)]
            return [i for i, c in enumerate(first) if float((got[0, c, 3] - q[0, c, 3]).abs().sum()) > 0.0]
    return None
