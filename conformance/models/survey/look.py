"""What there is in the model of a type that has to do with positions."""
import re

import sizes
from axes import axes
from pairing import pairing
from truth import again, build, frequencies, nn

ROTARY = re.compile(r"Rotary|RoPE|ROPE|Rope(?![a-z])|RoPe")

NAMED = re.compile(r"pos(?!t)|relative|alibi|sinus|sine|buckets", re.I)
UNRELATED = re.compile(r"transposed?|positionwise|cosine", re.I)


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
            args, named = module.made_of
            made_of = args[0] if args else named.get("config", config)
            entry["of"] = getattr(made_of, "model_type", None)
            try:
                own = again(module)
                entry["freqs"] = frequencies(own)
                if entry["freqs"]:
                    entry["pairs"] = pairing(made_of, own)
                    entry["axes"] = axes(made_of, own, entry["pairs"])
                    entry["sections"] = getattr(own, "mrope_section", None)
            except Exception as e:
                entry["error"] = f"{type(e).__name__}: {str(e)[:120]}"
            rotary.append(entry)
        elif isinstance(module, nn.Embedding) and re.search(r"pos|wpe", (plain + name).rsplit(".", 1)[-1], re.I):
            tables.append({"path": plain, "class": name, "shape": [module.num_embeddings, module.embedding_dim]})
        elif NAMED.search(UNRELATED.sub("", name + " " + plain.rsplit(".", 1)[-1] + " " + " ".join(params))):
            hit = {n: s for n, s in params.items() if re.search(r"pos|rel|bias_table|alibi|slopes|index|weight", n, re.I)}
            other.append({"path": plain, "class": name, "shapes": hit})
    return {"of": cls.model_type, "causal": any(getattr(m, "is_causal", False) is True for m in model.modules()),
            "attention": sizes.of_built(model, config)["attention"], "model": type(model).__name__, "rotary": rotary, "tables": tables, "other": other}


def tables_of(model):
    """The tables of a model that may be of positions, with their sizes [rows, width]."""
    found = []
    for path, module in model.named_modules():
        place, name = path.rsplit(".", 1)[-1], type(module).__name__
        if isinstance(module, nn.Embedding) and re.search(r"pos|wpe|^(row|column)_embedder", place + name, re.I):
            found.append({"path": path, "shape": [module.num_embeddings, module.embedding_dim]})
            continue
        for own, p in module.named_parameters(recurse=False):
            shape = [n for n in p.shape if n != 1]
            shape = shape if len(shape) == 2 else [n for k, n in enumerate(p.shape) if n != 1 or k >= len(p.shape) - 2]
            of_module = isinstance(module, nn.ParameterList) and "position" in path or "Embedding" in name and re.search(r"pos", place + name, re.I) and not isinstance(module, nn.Linear)
            if ("pos" in own or of_module) and "bias" not in own and len(shape) == 2:
                found.append({"path": f"{path}.{own}", "shape": shape})
    return found
