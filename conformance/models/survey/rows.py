"""Rows of types.txt: what the modules of each type showed, in the words of the loader."""
import dataclasses
import json
import re
import sys

import kinds
from truth import NEEDED, NO_MODEL

MARK = "# ---- seen by the survey"
HERE = __file__.rsplit("/", 2)[0]
TABLE = f"{HERE}/../../reports/posenc/models/types.txt"
TEXT = ["text_config", "language_config", "llm_config", "thinker_config", "talker_config", "decoder", "text_encoder",
        "generator", "global_config", "semantic_config", "decoder_config", "model_config", "backbone_config", "encoder",
        "vision_config"]
WORDS = ("rope_scaling rope_parameters layer_types no_rope_layers position_embedding_type mrope_section "
         "mrope_interleaved rope_local_base_freq local_rope_theta global_rope_theta sliding_window_pattern "
         "_sliding_window_pattern pos_att_type depths num_heads original_max_position_embeddings").split()
NEVER = {"image_size", "patch_size", "every", "rope_interleave", "truncate", "factor", "rms_norm_eps"}
REASONS = [
    (r"PositionalConvEmbedding", "its positions come from a convolution over the sequence"),
    (r"rel_pos_h", "its scores have decomposed relative positions, of rows and of columns"),
    (r"continuous_position_bias|relative_coords", "a network that makes the bias of a window"),
    (r"RelPos|RelativePositional|rel_attn|RelativeAttention", "its scores have relative positions of a kind of its own"),
    (r"Sinus|Sine", "its sines and cosines are laid out, or its positions counted, in a way of its own"),
    (r"pos_embed|position_emb|Position|pos_emb", "its learned table is not one of positions or of square patches alone"),
]


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
    by_hand: bool = False
    more: dict = dataclasses.field(default_factory=dict)  # "unread", "fills" and "changed", see the head of the table

    @property
    def refused(self):
        return "unsupported" in self.flags


def written():
    """The rows of types.txt: {type: Row}."""
    found, by_hand = {}, True
    for line in open(TABLE):
        by_hand &= not line.startswith(MARK)
        if not line.startswith("#") and line.strip():
            name, encoding, flags, members, besides = ([c.strip() for c in line.rstrip("\n").split("|", 4)] + [""] * 4)[:5]
            members = json.loads("{" + members + "}")
            more = {key: members.pop(key) for key in ("unread", "fills", "changed") if key in members}
            found[name] = Row(encoding, flags.split(), members, besides, by_hand, more)
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


def without_needed(cls, known):
    """The same, less what its class has no default of."""
    return {k: None if k in NEEDED.get(cls.model_type, {}) else v for k, v in known.items()}


def decodes(cls):
    module = sys.modules.get(cls.__module__.replace("configuration_", "modeling_"))
    return bool(module) and any(n.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration"))
                                and getattr(c, "config_class", None) is cls for n, c in vars(module).items())


def reason(truth):
    if "error" in truth:
        return "its model cannot be made from the defaults of its class (" + re.sub(r"[|\n\"\\]", " ", truth["error"])[:80].strip() + ")"
    said = " ".join(o["path"] + " " + o["class"] + " " + " ".join(o["shapes"]) for o in truth["other"]) + \
        " ".join(t["path"] + " " + t["class"] for t in truth["tables"])
    for pattern, words in REASONS:
        if re.search(pattern, said):
            return words
    return "its positions are of a kind this loader does not read"


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


def make(cls, seen, old, words):
    """The row of a type, of what was seen and what people wrote of it (or None)."""
    if seen.get("subs") and old and old.encoding != "composite":
        return old
    if seen.get("subs") and not has_own(cls, seen):
        return composite(cls, seen)
    if old and old.refused:
        return old
    try:
        plain = cls().to_dict()
        known = members(cls, cls(), words - NEVER)
        found = kinds.find(cls, seen, plain, known) if "error" not in seen else None
    except Exception as error:
        seen = {"error": f"{type(error).__name__}: {error}"}
    if old:
        return old if "error" in seen else Row(old.encoding, [w for w in old.flags if w != "surveyed"] + ["surveyed"],
                                               merged(old.members, without_needed(cls, known)), old.besides, True)
    if seen.get("error") == NO_MODEL:
        return Row("none", [], {}, "no model of that library takes such a configuration alone")
    if "error" in seen:
        return Row("none", ["unsupported"], {}, reason(seen))
    if isinstance(found, tuple):
        encoding, flags, known, besides = found
        if seen.get("subs"):
            besides = ".  ".join(filter(None, [besides, f"Its parts {', '.join(seen['subs'])} are not covered"]))
        return Row(encoding, flags + ["surveyed"], without_needed(cls, known), besides)
    if found is None and nothing(seen):
        return Row("none", [], {})
    if found is None and convolved(seen):
        return Row("none", [], {}, "they come from a convolution over the sequence")
    return Row("none", ["unsupported"], {}, found or reason(seen))


def merged(own, known):
    """Members that people wrote go before those of the class that follow from others."""
    out = {**own, **{k: v for k, v in known.items() if k not in own or
                     (v is not None and v != "ignored" and own[k] != "ignored")}}
    if "rope_theta" in own and own["rope_theta"] is None:
        out["rope_theta"] = None
    elif own.get("rope_theta") is not None and own.get("rope_parameters", 0) is None and isinstance(out.get("rope_parameters"), dict):
        out["rope_parameters"] = None
        out["rope_theta"] = own["rope_theta"]
    return out
