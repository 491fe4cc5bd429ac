"""Rows of types.txt: those that are there, and drafts of rows for types that it lacks.

A draft has what a class shows by itself: its parts, or the members that it reads with their defaults. A person adds the
encoding and the flags, and the survey then compares what is read by that row with the model.
"""
import dataclasses
import json
import re

HERE = __file__.rsplit("/", 2)[0]
TABLE = f"{HERE}/../../reports/posenc/models/types.txt"
TEXT = ["text_config", "language_config", "llm_config", "thinker_config", "talker_config", "decoder", "text_encoder",
        "generator", "global_config", "semantic_config", "decoder_config", "model_config", "backbone_config", "encoder",
        "vision_config"]
WORDS = ("rope_scaling rope_parameters layer_types no_rope_layers position_embedding_type mrope_section "
         "mrope_interleaved rope_local_base_freq local_rope_theta global_rope_theta sliding_window_pattern "
         "_sliding_window_pattern pos_att_type depths num_heads original_max_position_embeddings").split()
NEVER = {"image_size", "patch_size", "every", "rope_interleave", "truncate", "factor", "rms_norm_eps"}
PROBED = set("n_embed n_embd hidden_size d_model n_head n_heads num_heads num_attention_heads n_layer n_layers n_ctx "
             "n_positions num_kv_heads n_head_kv num_key_value_heads".split())


def vocabulary():
    """Every member that a row of the table has: what no type had before is added to it by hand."""
    return set(WORDS).union(*(row.members for row in written().values() if row.encoding != "composite"))


@dataclasses.dataclass
class Row:
    """A line of types.txt."""
    encoding: str
    flags: list
    members: dict  # of a composite its parts
    besides: str = ""
    more: dict = dataclasses.field(default_factory=dict)  # "unread", "fills" and "changed", see the head of the table

    @property
    def rejected(self):
        return "unsupported" in self.flags

    def line(self, name):
        """Returns the row as it stands in the table."""
        members = json.dumps({**self.members, **self.more})[1:-1].replace("|", " ")
        return f"{name} | {self.encoding} | {' '.join(self.flags)} | {members} | {self.besides}".rstrip(" |")


def written():
    """The rows of types.txt: {type: Row}."""
    found = {}
    for line in open(TABLE):
        if not line.startswith("#") and line.strip():
            name, encoding, flags, members, besides = ([c.strip() for c in line.rstrip("\n").split("|", 4)] + [""] * 4)[:5]
            members = json.loads("{" + members + "}")
            more = {key: members.pop(key) for key in ("unread", "fills", "changed") if key in members}
            found[name] = Row(encoding, flags.split(), members, besides, more)
    return found


def derived(cls, config, keys):
    """Members that change where another does: their defaults follow from it."""
    plain, found = config.to_dict(), set()
    for key in ("hidden_size", "num_attention_heads", "n_embd", "d_model", "num_hidden_layers", "n_head", "qk_rope_head_dim", "hidden_dim", "num_heads", "prediction_length"):
        value = plain.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        try:
            other = cls(**{key: 2 * value}).to_dict()
        except Exception:
            continue
        found |= {k for k in keys if k != key and k in plain and plain[k] != other.get(k)}
    return found


def takes(cls, plain, key):
    """Whether the class makes another member of one that it does not keep."""
    for value in (48, 0.5):
        try:
            other = cls(**{key: value}).to_dict()
        except Exception:
            continue
        if any(k != key and plain[k] != other.get(k) for k in plain):
            return True
    return False


def members(cls, config, words):
    """The members that the class reads, and what it takes of them."""
    plain = config.to_dict()
    follow = derived(cls, config, words)
    out = {}
    for key in sorted(words & PROBED - set(plain) - set(cls.attribute_map)):
        if takes(cls, plain, key):
            out[key] = None
    for key in sorted(words & (set(plain) | set(cls.attribute_map))):
        value = plain.get(key)
        scalar = isinstance(value, (int, float)) and value == value
        out[key] = value if scalar and key not in follow else None
    if "qk_rope_head_dim" in out:
        out.pop("num_key_value_heads", None)
    rope = plain.get("rope_parameters") or {}
    if "rope_parameters" in plain or "rope_scaling" in plain:
        out["rope_parameters"] = out["rope_scaling"] = None
        out.setdefault("rope_theta", None)
        out.setdefault("original_max_position_embeddings", None)
    flat = not any(isinstance(v, dict) for v in rope.values())
    if rope and flat and set(rope) <= {"rope_type", "rope_theta", "type", "partial_rotary_factor"} and \
            rope.get("rope_type") == "default":
        out["rope_theta"] = rope["rope_theta"]
        if "partial_rotary_factor" in rope:
            out["partial_rotary_factor"] = rope["partial_rotary_factor"]
    elif rope:
        out["rope_parameters"] = rope
    return out


def composite(cls, seen):
    """The row of a model of several parts, that of text first."""
    subs = seen["subs"]
    keys = sorted(subs, key=lambda k: (TEXT.index(k) if k in TEXT else 99, k))
    try:
        flat = getattr(getattr(cls(hidden_size=7168), keys[0]), "hidden_size", 0) == 7168
    except Exception:
        flat = False
    return Row("composite", ["flat"] if flat else [], {k: subs[k] for k in keys})


def has_own(cls, seen):
    """Whether a model of its own, with sizes of its own, stands beside its parts."""
    return not set(TEXT) & set(seen["subs"]) and {"hidden_size", "num_attention_heads"} <= set(cls().to_dict()) | set(cls.attribute_map)


def nothing(seen):
    """Whether nothing in a model encodes positions."""
    named = [o for o in seen["other"] if any("pos" in n or "rel" in n for n in o["shapes"])
             or re.search(r"Pos|Rel|Sin|alibi", o["class"] + o["path"], re.I)]
    return not (seen["tables"] or seen["rotary"] or named)


def convolved(seen):
    """Whether what encodes positions is a convolution over the sequence, and nothing else."""
    def by_convolution(o):
        return "PositionalConv" in o["class"] or "pos_conv" in o["path"]
    rest = {**seen, "other": [o for o in seen["other"] if not by_convolution(o)]}
    return len(rest["other"]) < len(seen["other"]) and nothing(rest)


def draft(cls, seen):
    """The row of a type that the table lacks, with ? for an encoding that a person has to say."""
    if "error" in seen:
        return Row("none", ["unsupported"], {}, f"its model cannot be made from the defaults of its class ({seen['error'][:80]})")
    if seen.get("subs") and not has_own(cls, seen):
        return composite(cls, seen)
    if nothing(seen) or convolved(seen):
        return Row("none", [], {}, "" if nothing(seen) else "they come from a convolution over the sequence")
    found = sorted({one["class"] for part in ("rotary", "tables", "other") for one in seen[part]})
    return Row("?", ["surveyed"], members(cls, cls(), vocabulary() - NEVER), f"seen: {', '.join(found)}")
