"""Rows of types.txt: what the modules of each type showed, in the words of the loader."""
import json
import re

HERE = __file__.rsplit("/", 2)[0]
TEXT = ["text_config", "language_config", "llm_config", "thinker_config", "talker_config", "decoder", "text_encoder",
        "generator", "backbone_config", "encoder"]
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
    """Every spelling that members.txt knows."""
    words = set(WORDS)
    for line in open(f"{HERE}/members.txt"):
        columns = [c.strip() for c in line.split("|")]
        if not line.startswith("#") and len(columns) > 3 and columns[1] not in ("refuse", "note"):
            words |= {w for w in columns[2].split() if "." not in w and w != "/"}
    return words


def by_hand(whole=False):
    """The rows of types.txt that people wrote, or all: {type: [encoding, flags, members, besides]}."""
    rows = {}
    for line in open(f"{HERE}/types.txt"):
        if line.startswith("# ---- seen by the survey") and not whole:
            break
        if not line.startswith("#") and line.strip():
            columns = [c.strip() for c in line.rstrip("\n").split("|", 4)] + [""] * 4
            rows[columns[0]] = columns[1:5]
    return rows


def derived(cls, config, keys):
    """Members that change where another does: their defaults follow from it."""
    plain, found = config.to_dict(), set()
    for key in ("hidden_size", "num_attention_heads", "n_embd", "d_model", "num_hidden_layers", "n_head", "qk_rope_head_dim"):
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


def learned(cls, truth, plain):
    """(flags, reason) of a model whose positions are one learned table."""
    import inspect
    import sys
    shapes = [(t["path"], t["shape"], t["class"]) for t in truth.get("tables", [])]
    for o in truth.get("other", []):
        for name, shape in o["shapes"].items():
            if "bias" in name or "index" in name or "ids" in name:
                continue
            if not re.search("pos", name):
                return None
            shapes.append((o["path"] + "." + name, shape[-2:] if len(shape) == 3 and shape[0] == 1 else shape, o["class"]))
        if not o["shapes"] and re.search(r"Conv|Sin|Rel|Bias", o["class"]):
            return None
    shapes = [s for s in shapes if len(s[1]) == 2]
    if not shapes or len({tuple(s[1]) for s in shapes}) != 1 or len(shapes) > 2:
        return None
    if len(shapes) == 2 and not {"encoder", "decoder"} <= {s[0].split(".")[0] for s in shapes}:
        return None
    if any("Sinus" in s[2] or "Sine" in s[2] for s in shapes):
        return None
    rows, width = shapes[0][1]
    hidden = next((plain[k] for k in ("hidden_size", "n_embd", "d_model", "emb_dim") if isinstance(plain.get(k), int)), None)
    length = next((plain[k] for k in ("max_position_embeddings", "n_positions") if isinstance(plain.get(k), int)), None)
    source = inspect.getsource(sys.modules[cls.__module__.replace("configuration_", "modeling_")])
    flags = []
    if width != hidden:
        if width != plain.get("embedding_size"):
            return None
        flags.append("by_embedding")
    if length and "create_position_ids_from_input_ids" in source and "padding_idx" in source:
        return flags + ["pad_offset"] if rows == length else None
    if length and rows == length:
        return flags
    if length and rows == length + 2 and "offset = 2" in source:
        return flags + ["two_offset"]
    image, patch = plain.get("image_size"), plain.get("patch_size")
    if isinstance(image, int) and isinstance(patch, int) and not flags and not length:
        extra = rows - (image // patch) ** 2
        if extra in (0, 1, 2):
            return ["patches", ["", "class_token", "two_tokens"][extra]]
    return None


def buckets(truth, plain):
    """Whether its bias by relative position is T5's."""
    shapes = [o["shapes"].get("weight") for o in truth["other"] if o["path"].endswith("relative_attention_bias")]
    return bool(shapes) and not truth["tables"] and all(
        s == [plain.get("relative_attention_num_buckets"), plain.get("num_heads")] for s in shapes)


BASES = {"rope_theta": 321.0, "rotary_emb_base": 321, "rotary_pct": 0.5, "partial_rotary_factor": 0.5, "rotary_dim": 12,
         "qk_rope_head_dim": 24, "head_dim": 48, "rope_local_base_freq": 321.0, "local_rope_theta": 321.0,
         "global_rope_theta": 321.0, "global_head_dim": 48, "kv_channels": 48}


def effects(cls, modules, known, plain):
    """Adds to `known` what changes frequencies, and says of what does not that it is ignored."""
    from compare import rotary_truth
    usual = rotary_truth(modules, cls())
    for key, value in BASES.items():
        moved = False
        for other in (value, value / 2 if isinstance(value, float) else value):
            try:
                moved |= rotary_truth(modules, cls(**{key: other})) != usual
            except Exception:
                moved |= key in known
        if key == "partial_rotary_factor":
            if any(isinstance(v, dict) for v in (plain.get("rope_parameters") or {}).values()):
                known.setdefault(key, None)
                continue
            moved &= shares(cls, modules)
        if moved:
            known.setdefault(key, plain.get(key) if isinstance(plain.get(key), (int, float)) else None)
        elif key in known or key in ("partial_rotary_factor", "rope_theta"):
            known[key] = "ignored"
    if known.get("rope_theta") == "ignored" and isinstance(known.get("rope_parameters"), dict):
        known["rope_theta"] = None
    if known.get("rope_theta") == "ignored" and known.get("rotary_emb_base") is None and "rotary_emb_base" in known:
        known["rotary_emb_base"] = (plain.get("rope_parameters") or {}).get("rope_theta", 10000.0)
    if "rotary_pct" in known and known["rotary_pct"] is None:
        known["rotary_pct"] = (plain.get("rope_parameters") or {}).get("partial_rotary_factor")
        if known.get("partial_rotary_factor") != "ignored":
            known["partial_rotary_factor"] = None
    return known


def shares(cls, modules):
    """Whether a share in an object that scales nothing counts."""
    from compare import rotary_truth
    def pairs(share):
        rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": share}
        return [len(f) for f, _ in rotary_truth(modules, cls(rope_parameters=rope)).values()]
    try:
        return pairs(0.25) != pairs(0.75)
    except Exception:
        return False


def rotary_classes(truth):
    import sys
    found = []
    for e in truth["rotary"]:
        pair = (getattr(sys.modules[e["module"]], e["class"]), "local" in e["path"])
        if pair not in found:
            found.append(pair)
    return found


def decodes(cls):
    import sys
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


def layered(truth):
    """Types of layers have objects of their own."""
    return ["layered"] if any(len(e.get("freqs", {})) > 1 or any(e.get("freqs", {})) for e in truth["rotary"]) else []


def rotary(truth):
    """(encoding, reason) of the rotations of a model."""
    kinds = {}
    for entry in truth["rotary"]:
        if "error" in entry:
            return None, f"{entry['class']} cannot be made apart from its model"
        if not entry.get("freqs"):
            return None, f"the angles of {entry['class']} are of a kind of its own"
        kinds[entry.get("pairs")] = entry["class"]
    if len(kinds) > 1:
        return None, "its rotations are of several kinds: " + ", ".join(sorted(f"{k} ({v})" for k, v in kinds.items()))
    kind = next(iter(kinds))
    if kind not in ("half", "interleaved"):
        return None, f"{kinds[kind]}: {kind}"
    if truth["tables"] or any("pos" in n for o in truth["other"] for n in o["shapes"]):
        return "rope_" + kind, "besides"
    return "rope_" + kind, None


def compose(truth, composite_of):
    keys = sorted(truth["subs"], key=lambda k: (TEXT.index(k) if k in TEXT else 99, k))
    keys = [k for k in keys if truth["subs"][k]]
    return keys, {k: truth["subs"][k] for k in keys}


def print_members(members):
    text = json.dumps(members)[1:-1]
    return text.replace("|", " ")


def make(types, truths):
    words, old, rows = vocabulary(), by_hand(), {}
    for name in sorted(truths):
        truth, cls, hand = truths[name], types[name], old.get(name)
        if truth.get("subs"):
            keys, subs = compose(truth, truths)
            flat = ""
            try:
                probe = cls(hidden_size=7168)
                flat = "flat" if getattr(getattr(probe, keys[0]), "hidden_size", 0) == 7168 else ""
            except Exception:
                pass
            if keys:
                rows[name] = ["composite", flat, json.dumps(subs)[1:-1], ""]
                continue
        try:
            config = cls()
            plain = config.to_dict()
            known = members(cls, config, words - NEVER)
            if truth.get("rotary") and all("freqs" in e and e["freqs"] for e in truth["rotary"]):
                known = effects(cls, rotary_classes(truth), known, plain)
        except Exception as e:
            truth = {"error": str(e)}
        if hand and "unsupported" in hand[1].split():
            rows[name] = hand
            continue
        if hand:
            rows[name] = [hand[0], hand[1].replace("surveyed", "").split(), known if "error" not in truth or "config" in truth else None, hand[3], hand[2]]
            continue
        if "error" in truth:
            rows[name] = ["none", "unsupported", "", reason(truth)]
        elif truth["rotary"]:
            encoding, why = rotary(truth)
            if encoding and why is None:
                rows[name] = [encoding, ([] if decodes(cls) else ["encoder"]) + layered(truth), known, "", ""]
            elif encoding:
                rows[name] = [encoding, [] if decodes(cls) else ["encoder"], known, "It adds positions of another kind, too: not covered", ""]
            else:
                rows[name] = ["none", "unsupported", "", why]
        else:
            flags = learned(cls, truth, plain) if truth["tables"] or truth["other"] else None
            if flags is not None:
                extra = words & {"image_size", "patch_size"} if "patches" in flags else set()
                known.update({k: plain[k] for k in extra if isinstance(plain.get(k), int)})
                rows[name] = ["learned", flags + ([] if decodes(cls) else ["encoder"]), known, "", ""]
            elif buckets(truth, plain):
                rows[name] = ["t5", [], {**known, "relative_attention_max_distance": plain.get(
                    "relative_attention_max_distance", 128)}, "", ""]
            elif not truth["tables"] and not any(o["shapes"] and any("pos" in n or "rel" in n for n in o["shapes"]) or
                                                 re.search(r"Pos|Rel|Sin|alibi", o["class"] + o["path"], re.I)
                                                 for o in truth["other"]):
                rows[name] = ["none", "", "", ""]
            else:
                rows[name] = ["none", "unsupported", "", reason(truth)]
    return rows, {n: r for n, r in old.items() if n not in truths}
