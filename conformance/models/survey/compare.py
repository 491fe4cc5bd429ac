"""What the reader of model files makes of configurations, with the frequencies that the engine makes of it."""
import csv
import functools
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../reports"))
from posenc.models.calls import frequencies_of
from posenc.models.members import Rejected
from posenc.models.model import read_json

SIZES = ("length width heads key_heads head_dim rotary_dim layers first rows num_buckets scaled decoder_layers "
         "max_distance window window_class alibi_bias_max sin_cos cos_first shrunk norms column_first origin both_ways "
         "backward of_values halves bare left right side windows").split()


@functools.lru_cache(None)
def columns(program, problem):
    """The frequencies of a problem: {"omega": [...], "axes": [...], "attention": 1.0}; None where the engine refuses it."""
    words = [program, "table", "frequencies", "--problem", problem, "--out", "csv"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return None
    rows = list(csv.DictReader(done.stdout.splitlines()))
    return {"omega": [float(r["radians"]) for r in rows], "axes": [int(r["axis"]) for r in rows],
            "attention": float(rows[0]["attention_factor"])}


def part_of(program, part):
    """A part of a model: its encoding, the sizes that are there, and its frequencies, for one token and beyond its length."""
    said = {"name": part.name, "encoding": part.encoding}
    if part.stack:
        said["stack"] = part.stack
    said.update((name, float(getattr(part, name))) for name in SIZES if getattr(part, name))
    if not part.rotates and part.encoding != "sinusoidal":
        return said
    own, beyond = (columns(program, str(frequencies_of(part, length))) for length in (1, 2 * part.length))
    if own:
        said.update(omega=own["omega"], attention=own["attention"])
        if any(own["axes"]):
            said["axes"] = own["axes"]
    if beyond and own and beyond["omega"] != own["omega"]:
        said["beyond"] = beyond["omega"]
    return said


def read(program, config):
    """{"parts": [...], "notes": "..."} of a configuration, or {"refused": "..."}."""
    try:
        reading = read_json(json.dumps(config))
    except Rejected as why:
        return {"refused": str(why)}
    return {"parts": [part_of(program, part) for part in reading.parts], "notes": ".  ".join(reading.notes)}
