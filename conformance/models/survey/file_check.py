"""Compares one file: what posenc reads from it, and what the model that transformers makes of it computes."""
import copy
import csv
import functools
import json
import subprocess
import sys
from pathlib import Path

import attention_sizes
from bias_tables import T5Comparer, WindowComparer
from inspection import inspect_type
from position_tables import LearnedComparer, SinusoidComparer
from relative_terms import RelativeTermsComparer
from rotary import RotaryComparer
from transformers_models import HAS_ROPE_PARAMETERS, REQUIRED_MEMBERS, model_classes
from vision_rotary import FractionComparer, PatchComparer

sys.path.insert(0, str(Path(__file__).parents[3] / "reports"))
from posenc.models.calls import frequencies_of
from posenc.models.members import Rejected
from posenc.models.model import read_json

AGREES, DIFFERS, REJECTED, UNASKED = "agrees", "differs", "rejected", "not asked"
# Comparers that need a flag come before others of the same encoding.
COMPARERS = [FractionComparer(), PatchComparer(), RotaryComparer(), WindowComparer(), RelativeTermsComparer(),
             SinusoidComparer(), LearnedComparer(), T5Comparer()]
# Members of a part that comparers use.
MEMBERS = ("length width heads key_heads head_dim rotary_dim layers first rows num_buckets scaled decoder_layers "
           "max_distance window window_class alibi_bias_max sin_cos cos_first shrunk norms column_first origin "
           "both_ways backward of_values halves bare left right side windows").split()


# ---- What posenc reads ----

def read(program, config):
    """Returns {"parts": [...], "notes": text} of a configuration, or {"rejected": reason}."""
    try:
        reading = read_json(json.dumps(config))
    except Rejected as error:
        return {"rejected": str(error)}
    return {"parts": [describe_part(program, part) for part in reading.parts], "notes": ".  ".join(reading.notes)}


def describe_part(program, part):
    """Returns the members of a part that are set, and its frequencies for one token ("omega") and past its length."""
    members = {"name": part.name, "encoding": part.encoding}
    if part.stack:
        members["stack"] = part.stack
    members.update((name, float(getattr(part, name))) for name in MEMBERS if getattr(part, name))
    if not part.rotates and part.encoding != "sinusoidal":
        return members
    own, beyond = (read_frequencies(program, str(frequencies_of(part, length))) for length in (1, 2 * part.length))
    if own:
        members.update(omega=own["omega"], attention=own["attention"])
        if any(own["axes"]):
            members["axes"] = own["axes"]
    if beyond and own and beyond["omega"] != own["omega"]:
        members["beyond"] = beyond["omega"]
    return members


@functools.lru_cache(None)
def read_frequencies(program, problem):
    """Returns {"omega": [...], "axes": [...], "attention": 1.0} of a problem, or None if the program rejects it."""
    words = [program, "table", "frequencies", "--problem", problem, "--out", "csv"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return None
    rows = list(csv.DictReader(done.stdout.splitlines()))
    return {"omega": [float(row["radians"]) for row in rows], "axes": [int(row["axis"]) for row in rows],
            "attention": float(rows[0]["attention_factor"])}


# ---- What transformers computes ----

def find_comparer(row):
    """Returns the comparer of a row of types.txt; None without a row, for rejected types and for other encodings."""
    if not row or row.rejected:
        return None
    return next((c for c in COMPARERS if row.encoding in c.encodings and c.flag in (None, *row.flags)), None)


def text_part(types, table, name):
    """Returns (member, type) of the part that posenc reads of a composite model, or None if it is no known class."""
    key, part = next(iter(table[name].members.items()), (None, None))
    inner = table.get(part)
    return (key, part) if key and part in types and inner and inner.encoding != "composite" else None


def compute(types, table, file, inspections):
    """Returns (comparer, expected numbers) of a file, or the reason why transformers cannot compute them.

    `inspections` caches inspect_type() by type.
    """
    name = file.get("model_type")
    row, cls = table.get(name), types.get(name)
    if not row or not cls:
        return f"transformers has no model_type {name}"
    if not HAS_ROPE_PARAMETERS and "rope_parameters" in json.dumps(file):
        return "this release does not read rope_parameters"
    key = None
    if row.encoding == "composite":
        key = (text_part(types, table, name) or (None,))[0]
        if not key:
            return "its parts are models of several parts"
    try:
        members = {k: v for k, v in copy.deepcopy(file).items() if k != "model_type"}
        config = cls(**{**REQUIRED_MEMBERS.get(name, {}), **members})
        own = getattr(config, key) if key else config
        part = own.model_type
        comparer = find_comparer(table.get(part))
        if not comparer:
            return f"nothing is asked of model_type {part}"
        if part not in inspections:
            cls = types.get(part, type(own))
            inspections[part] = inspect_type(cls, cls())
        if "error" in inspections[part]:
            return f"no model of it can be made: {inspections[part]['error']}"
        model_classes(type(own))  # imports the modules that a cached inspection names
        expected = comparer.compute(type(own), inspections[part], own)
        if not expected:  # a class that rotates only if the file says so
            expected = comparer.compute(type(own), inspect_type(type(own), own), own)
        if isinstance(expected, dict) and expected.get("sizes", 0) is None:
            expected["sizes"] = attention_sizes.sizes_of_config(type(own), own)
    except Exception as error:
        return f"transformers: {type(error).__name__}: {str(error)[:160]}"
    return (comparer, expected) if expected else f"nothing is asked of model_type {part}"


# ---- Comparison ----

def compare(comparer, reading, expected):
    """Returns "" if a file was rejected, or its parts are those of the model; else the first difference.

    A vision tower beside the text is another model.
    """
    if "rejected" in reading:
        return ""
    text = [part for part in reading["parts"] if part.get("stack") != "vision"]
    try:
        return comparer.compare({**reading, "parts": text or reading["parts"]}, expected)
    except KeyError as error:
        return f"no {error.args[0]} was read"


def check_file(types, table, program, file, inspections):
    """Returns the outcome of a file (AGREES, DIFFERS, REJECTED or UNASKED) and the reason."""
    reading = read(program, file)
    if "rejected" in reading:
        return REJECTED, reading["rejected"]
    computed = compute(types, table, file, inspections)
    if isinstance(computed, str):
        return UNASKED, computed
    difference = compare(computed[0], reading, computed[1])
    return (DIFFERS, difference) if difference else (AGREES, "")
