"""One file of a model, read here and asked of transformers: pairs, frequencies, heads and layers of its model."""
import copy
import json

import compare
import kinds
import sizes
from look import look
from truth import NEEDED, PARAMETERS, model_classes

AGREES, DIFFERS, REJECTED, UNASKED = "agrees", "differs", "rejected", "not asked"


def text_part(types, told, name):
    """(key, type) of the part of a model of several that is read as its text; None where it has none of a known class."""
    row = told[name]
    key, part = next(iter(row.members.items()), (None, None))
    inner = told.get(part)
    return (key, part) if key and part in types and inner and inner.encoding != "composite" else None


def asked(types, told, file, seen):
    """(kind, what transformers computes of a file), or a text where it cannot be asked. `seen` keeps what was seen of types."""
    name = file.get("model_type")
    row, cls = told.get(name), types.get(name)
    if not row or not cls:
        return f"transformers has no model_type {name}"
    if not PARAMETERS and "rope_parameters" in json.dumps(file):
        return "this release does not read rope_parameters"
    key = None
    if row.encoding == "composite":
        key = (text_part(types, told, name) or (None,))[0]
        if not key:
            return "its parts are models of several parts"
    try:
        config = cls(**{**NEEDED.get(name, {}), **{k: v for k, v in copy.deepcopy(file).items() if k != "model_type"}})
        own = getattr(config, key) if key else config
        part = own.model_type
        row, cls = told.get(part), types.get(part, type(own))
        kind = row and not row.rejected and kinds.kind_of(row)
        if not kind:
            return f"nothing is asked of model_type {part}"
        if part not in seen:
            seen[part] = look(cls, cls())
        if "error" in seen[part]:
            return f"no model of it can be made: {seen[part]['error']}"
        model_classes(type(own))  # imports their module, whoever kept what was seen
        answer = kind.ask(type(own), seen[part], own)
        if not answer:  # its class rotates where a file says so, not by default
            answer = kind.ask(type(own), look(type(own), own), own)
        if isinstance(answer, dict) and answer.get("sizes", 0) is None:
            answer["sizes"] = sizes.of_model(type(own), own)
    except Exception as error:
        return f"transformers: {type(error).__name__}: {str(error)[:160]}"
    return (kind, answer) if answer else f"nothing is asked of model_type {part}"


def judge(kind, said, answer):
    """What parts are read otherwise in; "" where they are as the model has them. A tower beside its text is another model."""
    text = [part for part in said["parts"] if part.get("stack") != "vision"]
    try:
        return kind.judge({**said, "parts": text or said["parts"]}, answer)
    except KeyError as error:
        return f"no {error.args[0]} was read"


def check(types, told, program, file, seen):
    """(what became of the file, in words)."""
    said = compare.read(program, file)
    if "refused" in said:
        return REJECTED, said["refused"]
    answer = asked(types, told, file, seen)
    if isinstance(answer, str):
        return UNASKED, answer
    why = judge(answer[0], said, answer[1])
    return (DIFFERS, why) if why else (AGREES, "")
