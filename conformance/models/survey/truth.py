"""What the modules of transformers themselves compute of positions.

A model is built without memory for its weights (device meta), with the arguments of every module's
constructor kept, and the modules that encode positions are built again on the CPU and run.
"""
import importlib
import inspect
import logging
import os
import re
import signal
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import transformers
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

transformers.logging.set_verbosity(50)
logging.disable(logging.CRITICAL)
torch.set_num_threads(1)


def keep_arguments(cls, *args, **kwargs):
    made = object.__new__(cls)
    object.__setattr__(made, "made_of", (args, kwargs))
    return made


nn.Module.__new__ = keep_arguments


def config_classes():
    """The configuration classes by model_type; of several classes of a type the first."""
    types = {}
    root = os.path.join(os.path.dirname(transformers.__file__), "models")
    for folder in sorted(os.listdir(root)):
        path = os.path.join(root, folder)
        names = sorted(os.listdir(path)) if os.path.isdir(path) else []
        for name in names:
            if not re.fullmatch(r"configuration_\w+\.py", name):
                continue
            try:
                module = importlib.import_module(f"transformers.models.{folder}.{name[:-3]}")
            except Exception:
                continue
            for cls in vars(module).values():
                if (inspect.isclass(cls) and issubclass(cls, PretrainedConfig) and cls.model_type
                        and cls.__module__ == module.__name__ and "deprecated" not in (cls.__doc__ or "")[:60]):
                    types.setdefault(cls.model_type, cls)
    return types


def model_classes(cls):
    """Classes of models that take such a configuration, those of the plainest name first."""
    folder = cls.__module__.rsplit(".", 1)[0]
    found = []
    path = os.path.dirname(sys.modules[cls.__module__].__file__)
    for name in sorted(os.listdir(path)):
        if not re.fullmatch(r"modeling_(?!tf_|flax_)\w+\.py", name):
            continue
        try:
            module = importlib.import_module(f"{folder}.{name[:-3]}")
        except Exception:
            continue
        for model in vars(module).values():
            if (inspect.isclass(model) and issubclass(model, PreTrainedModel) and model.__module__ == module.__name__
                    and getattr(model, "config_class", None) is cls and "PreTrained" not in model.__name__):
                found.append(model)
    return sorted(found, key=lambda m: (not m.__name__.endswith("Model"), "For" in m.__name__, len(m.__name__)))


class TooLong(BaseException):
    pass


def in_time(seconds, call):
    def stop(*_):
        raise TooLong(f"more than {seconds} s")
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return call()
    finally:
        signal.alarm(0)


def build(cls, config, seconds=20):
    """The model of a configuration on the meta device, or the last reason why there is none."""
    why = "no model class takes this configuration"
    for model in model_classes(cls)[:4]:
        try:
            with torch.device("meta"):
                return in_time(seconds, lambda: model(config)), None
        except (Exception, TooLong) as e:
            why = f"{type(e).__name__}: {str(e)[:160]}"
    return None, why


ROTARY = re.compile(r"Rotary|RoPE|ROPE|Rope(?![a-z])|RoPe")


def again(module):
    """The same module on the CPU."""
    args, kwargs = module.made_of
    return type(module)(*args, **kwargs)


def numbers(tensor):
    return [float(x) for x in tensor.detach().to(torch.float64).flatten().tolist()]


def frequencies(module):
    """{layers: (frequencies, factor)} of a rotary module that holds inv_freq; layers "" of all."""
    found = {}
    for name, buffer in list(module.named_buffers(recurse=False)) + [
            (k, v) for k, v in vars(module).items() if isinstance(v, torch.Tensor)]:
        if name.endswith("inv_freq") and not name.endswith("original_inv_freq"):
            layers = name[:-len("inv_freq")].rstrip("_")
            factor = getattr(module, f"{layers}_attention_scaling" if layers else "attention_scaling", 1.0)
            found[layers] = (numbers(buffer), float(factor), list(buffer.shape))
    return found


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
    return None, ""


APPLY = ["apply_rotary_pos_emb_interleave", "apply_multimodal_rotary_pos_emb", "apply_rotary_pos_emb_vision",
         "apply_rotary_pos_emb", "apply_rotary_emb", "apply_rotary_emb_vision"]


def functions_of(model, config, rotary):
    """The functions of its file by which a model rotates, the likeliest first."""
    module = sys.modules[type(rotary).__module__]
    there = [name for name in APPLY if hasattr(module, name)]
    if "apply_rotary_pos_emb_interleave" in there and not getattr(config, "rope_interleave", True):
        there.remove("apply_rotary_pos_emb_interleave")
    if "Vision" not in type(rotary).__name__:
        there = [name for name in there if "vision" not in name] or there
    return [getattr(module, name) for name in there]


def pairing(model, config, rotary):
    """half or interleaved, by what becomes of each channel of a query; and how many turn."""
    out, layers = positions_of(rotary, 4)
    if out is None:
        return "its cosines and sines are not made from positions alone"
    freqs = frequencies(rotary)[layers][0]
    turned = 2 * len(freqs)
    for function in functions_of(model, config, rotary):
        for extra in (8, 0):
            q = torch.zeros(1, turned + extra, 4, turned + extra)
            for channel in range(turned + extra):
                q[0, channel, :, channel] = 1.0
            try:
                got = function(q, q, *out)
                got = got[0] if isinstance(got, tuple) else got
            except Exception:
                try:
                    got = function(q.transpose(1, 2), q.transpose(1, 2), *out)[0].transpose(1, 2)
                except Exception:
                    continue
            return name_pairs(got[0, :, 3, :], turned, freqs)
    return "no function of its file takes them"


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


def look(cls, config):
    """Everything in a model that has to do with positions."""
    model, why = build(cls, config)
    if model is None:
        return {"error": why}
    rotary, tables, other, seen = [], [], [], set()
    for path, module in model.named_modules():
        name = type(module).__name__
        params = {n: list(p.shape) for n, p in list(module.named_parameters(recurse=False))
                  + list(module.named_buffers(recurse=False))}
        plain = re.sub(r"\.\d+(?=\.|$)", ".*", path)
        key = (name, plain, str(params))
        if key in seen:
            continue
        seen.add(key)
        if ROTARY.search(name):
            entry = {"path": plain, "class": name, "shapes": params, "module": type(module).__module__}
            try:
                own = again(module)
                entry["freqs"] = frequencies(own)
                if entry["freqs"]:
                    entry["pairs"] = pairing(model, module.made_of[0][0] if module.made_of[0] else config, own)
            except Exception as e:
                entry["error"] = f"{type(e).__name__}: {str(e)[:120]}"
            rotary.append(entry)
        elif isinstance(module, nn.Embedding) and re.search(r"pos|wpe", (plain + name).rsplit(".", 1)[-1], re.I):
            tables.append({"path": plain, "class": name, "shape": [module.num_embeddings, module.embedding_dim]})
        elif re.search(r"pos(?!t)|relative|alibi|sinus|buckets", name + " " + plain.rsplit(".", 1)[-1] + " " + " ".join(params), re.I):
            hit = {n: s for n, s in params.items() if re.search(r"pos|rel|bias_table|alibi|slopes|index|weight", n, re.I)}
            other.append({"path": plain, "class": name, "shapes": hit})
    return {"model": type(model).__name__, "rotary": rotary, "tables": tables, "other": other}
