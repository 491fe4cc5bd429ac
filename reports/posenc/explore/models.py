"""Returns properties of the presets as plain data for the views of the page."""

from dataclasses import fields
from typing import Any, Dict, List

from ..models.model import model_of, preset, presets, read_json
from ..models.part import Frequencies

LEFT_OUT = ("dim", "freq_spacing", "mrope_section", "mrope_layout")  # of the frequencies
KIMI = '{"model_type": "kimi_k25_vision"}'  # no preset, and the one layout that no preset has
# The kind of an encoding in the view "bias", and the member of a part for each of the view's controls.
BIASES: Dict[str, Any] = {
    "alibi": ("alibi", {"heads": "heads"}),
    "t5": ("t5", {"num_buckets": "num_buckets", "max_distance": "max_distance"}),
    "deberta": ("deberta", {"buckets": "num_buckets", "most": "max_distance"}),
    "window": ("swin", {"height": "window", "width": "window"}),
}


def rotating_models() -> List[Dict[str, Any]]:
    """Returns the rotations of the presets: a row for each type of layers, without towers for pictures."""
    defaults = Frequencies()
    rows: List[Dict[str, Any]] = []
    for name in presets():
        facts, parts = preset(name).reading.facts, preset(name).reading.parts
        for part in parts:
            if not part.rotates or part.tower:
                continue
            stated = {one.name: getattr(part, one.name) for one in fields(Frequencies) if one.name not in LEFT_OUT}
            spec = {key: value for key, value in stated.items() if value != getattr(defaults, key)}
            rows.append({
                "name": name, "title": facts["title"], "layers": part.name, "length": part.length,
                "numerics": facts.get("trained_numerics", ""),
                "spec": {"dim": part.dim, "rope_theta": part.rope_theta, **spec},
            })  # fmt: skip
    return rows


def gridded_models() -> List[Dict[str, Any]]:
    """Returns rotations with several axes: those of the presets, and of the vision tower of Kimi K2.5."""
    models = [(preset(name).reading.facts["title"], preset(name)) for name in presets()]
    models.append(("Kimi K2.5", model_of(read_json(KIMI), "kimi-k2.5")))
    return [
        {
            "title": title, "tower": part.tower, "pairing": part.encoding.replace("rope_", ""),
            "columnFirst": part.column_first,
            "spec": {"dim": part.rotary_dim, "rope_theta": part.rope_theta,
                     "mrope_section": list(part.mrope_section), "mrope_layout": part.mrope_layout},
        }
        for title, model in models for part in model.reading.parts if part.mrope_section
    ]  # fmt: skip


def biased_models() -> List[Dict[str, Any]]:
    """Returns the biases of the presets: the kind, the model's title and the values of the view's controls."""
    rows: List[Dict[str, Any]] = []
    for name in presets():
        reading = preset(name).reading
        for part in reading.parts:
            if part.encoding not in BIASES or part.window_class:  # a class token has three rows more (BEiT)
                continue
            kind, members = BIASES[part.encoding]
            values = {control: getattr(part, member) for control, member in members.items()}
            row = {"kind": kind, "title": reading.facts["title"], "values": values}
            rows += [] if row in rows else [row]
    return rows
