"""Reads reports/posenc/models/types.txt, and drafts rows of types that it lacks.

A draft has the members that a class reads with their defaults, or the parts of a model of several parts. A person adds
encoding and flags, and the survey then compares files that are read by this row with the model.
"""
import dataclasses
import json
import re
from pathlib import Path

TABLE = Path(__file__).parents[3] / "reports/posenc/models/types.txt"
# Parts of a composite model, the one that posenc reads first.
PARTS = ("text_config language_config llm_config thinker_config talker_config decoder text_encoder generator "
         "global_config semantic_config decoder_config model_config backbone_config encoder vision_config").split()
# Members of drafts, beside those of the table's rows; and members of the table that no draft has.
MORE_MEMBERS = set("rope_scaling rope_parameters layer_types no_rope_layers position_embedding_type mrope_section "
                   "mrope_interleaved rope_local_base_freq local_rope_theta global_rope_theta sliding_window_pattern "
                   "_sliding_window_pattern pos_att_type depths num_heads original_max_position_embeddings".split())
NO_MEMBERS = {"image_size", "patch_size", "every", "rope_interleave", "truncate", "factor", "rms_norm_eps"}
# Sizes that a class may accept under another name than it keeps.
ALIASES = set("n_embed n_embd hidden_size d_model n_head n_heads num_heads num_attention_heads n_layer n_layers n_ctx "
              "n_positions num_kv_heads n_head_kv num_key_value_heads".split())
# Members from which a class may derive others.
SOURCES = ("hidden_size", "num_attention_heads", "n_embd", "d_model", "num_hidden_layers", "n_head", "qk_rope_head_dim",
           "hidden_dim", "num_heads", "prediction_length")


@dataclasses.dataclass
class Row:
    """A row of the table."""
    encoding: str
    flags: list
    members: dict  # for the encoding composite: {member: type of this part}
    remark: str = ""  # the last column: what the code does besides
    more: dict = dataclasses.field(default_factory=dict)  # "unread", "fills" and "changed", see the head of the table

    @property
    def rejected(self):
        return "unsupported" in self.flags

    def line(self, name):
        """Returns the row as a line of the table."""
        members = json.dumps({**self.members, **self.more})[1:-1].replace("|", " ")
        return f"{name} | {self.encoding} | {' '.join(self.flags)} | {members} | {self.remark}".rstrip(" |")


def read_table():
    """Returns the rows of the table: {type: Row}."""
    rows = {}
    for line in TABLE.read_text().split("\n"):
        if not line.startswith("#") and line.strip():
            name, encoding, flags, members, remark = ([c.strip() for c in line.split("|", 4)] + [""] * 4)[:5]
            members = json.loads("{" + members + "}")
            more = {key: members.pop(key) for key in ("unread", "fills", "changed") if key in members}
            rows[name] = Row(encoding, flags.split(), members, remark, more)
    return rows


# ---- Drafts ----

def draft_row(cls, inspected):
    """Returns the row of a type that the table lacks, with ? for an encoding that a person has to find."""
    if "error" in inspected:
        reason = f"its model cannot be made from the defaults of its class ({inspected['error'][:80]})"
        return Row("none", ["unsupported"], {}, reason)
    if inspected.get("subs") and not has_own_model(cls, inspected):
        return draft_composite(cls, inspected)
    without = {**inspected, "other": [o for o in inspected["other"] if not is_convolution(o)]}
    if has_no_positions(without):
        remark = "" if has_no_positions(inspected) else "they come from a convolution over the sequence"
        return Row("none", [], {}, remark)
    found = sorted({module["class"] for group in ("rotary", "tables", "other") for module in inspected[group]})
    known = set().union(*(row.members for row in read_table().values() if row.encoding != "composite"))
    members = draft_members(cls, cls(), (known | MORE_MEMBERS) - NO_MEMBERS)
    return Row("?", ["surveyed"], members, f"seen: {', '.join(found)}")


def has_own_model(cls, inspected):
    """Returns true if a model with sizes of its own stands beside the parts of a type."""
    members = set(cls().to_dict()) | set(cls.attribute_map)
    return not set(PARTS) & set(inspected["subs"]) and {"hidden_size", "num_attention_heads"} <= members


def draft_composite(cls, inspected):
    """Returns the row of a model of several parts. It is `flat` if its class takes the first part's sizes itself."""
    parts = inspected["subs"]
    keys = sorted(parts, key=lambda k: (PARTS.index(k) if k in PARTS else 99, k))
    try:
        flat = getattr(getattr(cls(hidden_size=7168), keys[0]), "hidden_size", 0) == 7168
    except Exception:
        flat = False
    return Row("composite", ["flat"] if flat else [], {k: parts[k] for k in keys})


def is_convolution(module):
    """Returns true if a module encodes positions by a convolution over the sequence."""
    return "PositionalConv" in module["class"] or "pos_conv" in module["path"]


def has_no_positions(inspected):
    """Returns true if no module of a type encodes positions."""
    named = [o for o in inspected["other"] if any("pos" in n or "rel" in n for n in o["shapes"])
             or re.search(r"Pos|Rel|Sin|alibi", o["class"] + o["path"], re.I)]
    return not (inspected["tables"] or inspected["rotary"] or named)


def draft_members(cls, config, names):
    """Returns those of the members that a class reads, with their defaults; None if a default follows from others."""
    defaults, members = config.to_dict(), {}
    derived = derived_members(cls, defaults, names)
    for name in sorted(names & ALIASES - set(defaults) - set(cls.attribute_map)):
        if is_alias(cls, defaults, name):
            members[name] = None
    for name in sorted(names & (set(defaults) | set(cls.attribute_map))):
        value = defaults.get(name)
        scalar = isinstance(value, (int, float)) and value == value
        members[name] = value if scalar and name not in derived else None
    if "qk_rope_head_dim" in members:
        members.pop("num_key_value_heads", None)
    rope = defaults.get("rope_parameters") or {}
    if "rope_parameters" in defaults or "rope_scaling" in defaults:
        members["rope_parameters"] = members["rope_scaling"] = None
        members.setdefault("rope_theta", None)
        members.setdefault("original_max_position_embeddings", None)
    unscaled = set(rope) <= {"rope_type", "rope_theta", "type", "partial_rotary_factor"}
    if unscaled and rope.get("rope_type") == "default" and not any(isinstance(value, dict) for value in rope.values()):
        members["rope_theta"] = rope["rope_theta"]
        if "partial_rotary_factor" in rope:
            members["partial_rotary_factor"] = rope["partial_rotary_factor"]
    elif rope:
        members["rope_parameters"] = rope
    return members


def derived_members(cls, defaults, names):
    """Returns the members whose default changes with another member."""
    derived = set()
    for key in SOURCES:
        value = defaults.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            derived |= changed_members(cls, defaults, key, 2 * value) & names
    return derived


def is_alias(cls, defaults, name):
    """Returns true if the class stores a member of this name as another member."""
    return any(changed_members(cls, defaults, name, value) for value in (48, 0.5))


def changed_members(cls, defaults, name, value):
    """Returns the other members that change if a member has this value; none if the class rejects it."""
    try:
        members = cls(**{name: value}).to_dict()
    except Exception:
        return set()
    return {k for k in defaults if k != name and defaults[k] != members.get(k)}
