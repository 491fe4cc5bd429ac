"""Reads a Hugging Face config.json: the model type, its sizes, and the ways in which it encodes positions.

model.py calls read_config() with the JSON value of a file. {"model_type": "gpt2", "n_embd": 768, "n_head": 12,
"n_positions": 1024} has one part: learned, width 768, heads 12, length 1024. The flags of a model type in types.txt
select the functions that read it.

Unknown members about positions are rejected, never guessed. Known members that are not covered are noted.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import embeddings, scores
from .members import Members, Rejected, member_of, path_of
from .part import Part
from .rotation import read_rotations
from .tower import read_tower
from .types import ModelType, find_text, find_tower, type_of, unknown_type_message, without_unread
from .uncovered import check_unread, note_besides, note_neutral

# Accepted values of position_embedding_type by encoding. ModernBERT rotates and has "absolute", which it inherits from
# its parent class and no code reads.
EMBEDDING_TYPES = {
    "sinusoidal": "absolute sinusoidal", "learned": "absolute learned", "rope_half": "rope rotary absolute",
    "rope_interleaved": "rope rotary absolute rope_gptj", "alibi": "alibi", "t5": "relative", "deberta": "relative",
    "transformer_xl": "relative", "shaw": "relative relative_key", "decomposed": "", "window": "relative",
}  # fmt: skip
# Values that name an encoding, even if the classes of a type do not read them.
KNOWN_WORDS = {*" ".join(EMBEDDING_TYPES.values()).split(), "relative_key_query", "sine", "rope_2d", "none", "nope"}
STORAGE = {"float32": "f32", "float": "f32", "float16": "f16", "half": "f16", "bfloat16": "bf16"}
# Stacks and tables that may have a part of their own: the flag own_encoder is for "encoder".
STACKS = (
    "encoder decoder text image rows columns spatial temporal stage1 stage2 stage3 stage4 seen full sliding".split()
)
# Functions that read the sizes of model types with these flags, in this order.
OWN_SIZES = {
    "series": embeddings.read_series, "patched_series": embeddings.read_patched_series,
    "frames": embeddings.read_frames, "pyramid": embeddings.read_pyramid, "spread": embeddings.read_spread,
    "in_blocks": scores.read_shaw_blocks,
}  # fmt: skip
# Functions that read members of an encoding, and further ones of model types with these flags, in this order.
READ_ENCODING = {
    "alibi": scores.read_alibi, "t5": scores.read_t5, "deberta": scores.read_deberta,
    "transformer_xl": scores.read_transformer_xl,
}  # fmt: skip
READ_TERMS = {
    "both_ways": scores.read_xlnet, "nearest": scores.read_vits, "behind": scores.read_inkling,
    "limits": scores.read_clipped_shaw, "limits_backward": scores.read_clipped_shaw,
}  # fmt: skip
# Flags of model types with a row for each patch.
PATCHED = ("patches", "counted", "tubelets", "spectrogram")
# Members of layers of full attention, by their names in per_layer_config.
GLOBAL_MEMBERS = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}


@dataclass
class Reading:
    """Result of reading a model file of any format."""

    parts: List[Part] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)
    facts: Dict[str, str] = field(default_factory=dict)  # title, source, checked, trained_numerics
    type: str = ""  # model type, architecture or class
    type_from: str = ""  # key that states it
    storage: str = "f32"  # dtype of stored tensors
    storage_from: str = ""  # key that states it; "" if none does


# ---- which encoding ----


def _set_encoding_of_type(members: Members, kind: ModelType, part: Part) -> None:
    """Sets the encoding of a model type. In some types a member selects one of two."""
    part.encoding = kind.encoding
    if "chatglm" in kind.flags and members.find_value("position_encoding_2d") is True:
        members.reject("position_encoding_2d is true: in the first ChatGLM each half of a head turns by a position of "
                       "its own, which is not read")  # fmt: skip
    if "by_width" in kind.flags:
        members.read_whole(part, "width", "hidden_size")
        if part.width not in (4096, 5120):
            members.reject(f"hidden_size is {part.width}: of a baichuan model 4096 (a rotation) or 5120 (ALiBi) is "
                           "needed to know its encoding")  # fmt: skip
        part.encoding = "alibi" if part.width == 5120 else "rope_half"
    if "maybe_relative" in kind.flags:
        members.read_truth(part, "relative", "relative_attention")
        if not part.relative:
            members.mark_read("max_relative_positions", "position_biased_input")
            if members.file.get("position_biased_input") is False:
                members.reject("relative_attention and position_biased_input are false: such a model has no positions")
            part.encoding = "learned"


def _read_encoding(members: Members, named: Any, kind: Optional[ModelType], name: Optional[str], part: Part) -> None:
    """Sets the encoding: that of _posenc.encoding if the file has it, otherwise that of its model_type."""
    if isinstance(named, str):
        if named not in EMBEDDING_TYPES:
            members.reject(f"_posenc.encoding '{named[:60]}' is unknown; known: {', '.join(EMBEDDING_TYPES)}")
        part.encoding = named
        return
    if not kind:
        members.reject(unknown_type_message(name))
    if kind.rejected:
        members.reject(f"model_type '{kind.name}' is not supported yet: {kind.note}")
    if kind.encoding == "none":
        why = f" ({kind.note})" if kind.note else ""
        members.reject(f"model_type '{kind.name}' has no positions in its attention or embeddings{why}: there is "
                       "nothing to check or to time")  # fmt: skip
    _set_encoding_of_type(members, kind, part)


def _refine_encoding(members: Members, kind: Optional[ModelType], part: Part) -> None:
    """Reads members that select an encoding, in model types with several."""
    is_alibi_type = part.encoding == "alibi"
    part.alibi, part.adjacent = is_alibi_type, part.encoding == "rope_interleaved"
    members.read_truth(part, "alibi", "attn_config.alibi alibi")
    members.read_truth(part, "adjacent", "rope_interleave")
    if is_alibi_type and not part.alibi:
        members.reject(f"{members.find('attn_config.alibi alibi').name} is false: such a model has no ALiBi, and this "
                       "loader knows no other encoding of its type")  # fmt: skip
    if part.alibi and not is_alibi_type:
        if "alibi" not in members.defaults:
            members.reject("alibi is true: this loader does not know what that means for model_type "
                           f"'{kind.name if kind else '(none)'}'")  # fmt: skip
        members.note("Its code adds ALiBi in bf16 before it scales the scores: what is checked and timed here is the "
                     "bias in f32 onto scaled scores")  # fmt: skip
        part.encoding = "alibi"
    if part.rotates:
        part.encoding = "rope_interleaved" if part.adjacent else "rope_half"


def _check_embedding_type(members: Members, encoding: str) -> None:
    """Rejects a position_embedding_type that is not the encoding that was read, such as relative positions of BERT."""
    stated, flags = members.find_value("position_embedding_type"), members.flags
    fitting = "rotary" if "where_rotary" in flags else EMBEDDING_TYPES[encoding]
    class_reads = not members.surveyed or "position_embedding_type" in members.defaults
    if isinstance(stated, str) and stated not in KNOWN_WORDS and not class_reads:
        members.note("position_embedding_type is not read by the classes of this model_type, whatever it says")
        return
    if stated == "nope":
        members.reject("position_embedding_type is nope: such a model has no positions in its attention or embeddings")
    needed = stated is not None or "where_rotary" in flags or "where_said" in flags
    if needed and stated not in fitting.split():
        word = f"'{stated[:60]}'" if isinstance(stated, str) else "(missing)" if stated is None else "(no text)"
        members.reject(f"position_embedding_type {word} is not supported here; supported: {fitting}")
    plural = members.file.get("position_embeddings_type")
    wanted = "relative_key" if "limits" in flags else "relative"
    if "position_embeddings_type" in members.file and encoding == "shaw" and plural != wanted:
        word = plural[:60] if isinstance(plural, str) else "no text"
        members.reject(f"position_embeddings_type is {word}: {wanted} is what is read of this model_type")


def _set_encoding_origin(extension: Dict[str, Any], part: Part) -> None:
    """Sets the key that decides the encoding. `extension` is the member _posenc."""
    key = "_posenc.encoding" if "encoding" in extension else "model_type"
    for quantity in ("alibi", "adjacent", "relative"):
        origin = part.origins.get(quantity)
        if origin and origin.kind == "file":
            key = origin.key
    part.set_origin("encoding", key, 0)


# ---- parts ----


def _split_stacks(members: Members, template: Part, read_own: Callable[[Members, Part, str], None]) -> List[Part]:
    """Returns a part for each stack that flags such as own_encoder name, or one part for all stacks."""
    parts = []
    for stack in STACKS:
        if f"own_{stack}" not in members.flags:
            continue
        part = replace(template, name=stack, stack=stack, origins=dict(template.origins))
        part.decodes = template.decodes and stack in ("decoder", "full", "sliding")
        read_own(members, part, stack)
        parts.append(part)
    return parts or [template]


def _split_speech(members: Members, part: Part) -> List[Part]:
    """Returns the parts of Whisper: sinusoids to the endpoint in the encoder, a learned table in the decoder."""
    decoder = replace(part, name="decoder", stack="decoder", encoding="learned", length=part.rows,
                      origins={**part.origins, "length": part.origins["rows"]})  # fmt: skip
    encoder = replace(part, name="encoder", stack="encoder", freq_spacing="endpoint", decodes=False, dim=part.width)
    return [encoder, decoder]


def _read_sizes(members: Members, part: Part) -> None:
    """Reads sizes that are one number each, and further members of the encoding."""
    flags = members.flags
    embeddings.read_sizes(members, part)
    embeddings.set_by_flags(members, part)
    if part.encoding == "learned":
        part.set("tabled", True)
    embeddings.read_offsets(members, part)
    if "hashed" in flags:
        members.read_whole(part, "rows", "num_hash_buckets", part.length)  # positions are hashed to rows (CANINE)
    if "by_input" in flags:
        members.read_whole(part, "width", "input_embedding_size")
    if part.encoding == "sinusoidal":
        embeddings.read_theta(members, part)
    elif part.encoding in READ_ENCODING:
        READ_ENCODING[part.encoding](members, part)
    for flag, read in READ_TERMS.items():
        if flag in flags:
            read(members, part)
    part.backward |= "backward" in flags


def _read_own_sizes(members: Members, part: Part) -> None:
    """Reads sizes that the model type states in a way of its own."""
    flags = members.flags
    embeddings.set_by_flags(members, part)
    embeddings.read_offsets(members, part)
    if any(flag in flags for flag in PATCHED):
        embeddings.read_patches(members, part, flags)
    for flag, read in OWN_SIZES.items():
        if flag in flags:
            read(members, part)
    if "placed" in flags:
        embeddings.read_placed(members, part)
    part.backward |= "backward" in flags


def _read_parts(members: Members, template: Part) -> List[Part]:
    """Reads the sizes of the encoding that the template has. Returns the parts of the model."""
    flags = members.flags
    if "tower" in flags:
        read_tower(members, template)
        return [template]
    if template.encoding == "decomposed":
        embeddings.set_by_flags(members, template)
        return scores.read_decomposed(members, template)
    if "stages" in flags:
        embeddings.set_by_flags(members, template)
        return scores.read_stages(members, template)
    if "speech" in flags:
        embeddings.set_by_flags(members, template)
        embeddings.read_speech(members, template)
        embeddings.read_theta(members, template)
        return _split_speech(members, template)
    if any(flag in flags for flag in (*PATCHED, *OWN_SIZES, "placed", "stacked_frames")):
        _read_own_sizes(members, template)
    elif template.encoding == "window":
        embeddings.read_sizes(members, template)
        embeddings.set_by_flags(members, template)
        scores.read_window(members, template)
    else:
        _read_sizes(members, template)
    if template.rotates:
        return read_rotations(members, template)
    if template.encoding == "sinusoidal":
        template.dim = template.width
        template.freq_spacing = "endpoint" if "endpoint" in flags else "exponent"
        return [template]
    if template.encoding == "learned":
        return _split_stacks(members, template, embeddings.read_own_table)
    template.dim = template.width if template.both_ways else 0
    return _split_stacks(members, template, scores.read_own_terms)


# ---- beside the text ----


def _read_vision(members: Members) -> List[Part]:
    """Reads the first rotating vision tower of a model of several parts."""
    found = find_tower(members)
    if not found:
        return []
    kind = found.type
    tower = Members(members.root, found.file, kind.defaults, kind.flags, surveyed=True, within=f"{found.key}.")
    part = Part(name="vision", stack="vision", encoding=kind.encoding)
    part.set_origin("encoding", found.key, 0)
    try:
        read_tower(tower, part)
    except Rejected as why:
        members.reject(f"{found.key}: {why}")
    if kind.note:
        tower.note(kind.note)
    if tower.assumed:
        tower.note(f"Not in the file, and taken as the classes of {kind.name} do: {', '.join(tower.assumed)}")
    if tower.notes:
        members.note(f"Of {found.key}: {'.  '.join(tower.notes)}")
    return [part]


def _one_line(value: Any, default: str) -> str:
    """Returns a text on one line; `default` if it is missing or empty."""
    text = value if isinstance(value, str) and value else default
    return "".join(" " if c < " " or c == "\x7f" else c for c in text[:400])


def _read_storage(members: Members, reading: Reading) -> None:
    """Reads the dtype of stored tensors. A member at the top of the file overrides that of text_config."""
    paths = ("dtype", "torch_dtype", "text_config.dtype", "text_config.torch_dtype")
    values = {path: value for path in paths if (value := member_of(members.root, path).value) is not None}
    first = first_name = ""
    for path, value in values.items():
        name = _one_line(value, "no text")[:47]
        name = name[6:] if name.startswith("torch.") else name
        if not first:
            first, first_name = path, name
            if name in STORAGE:
                reading.storage, reading.storage_from = STORAGE[name], path
            else:
                members.note(f"{path} is {name}, which is no type of storage here (float32, float16, bfloat16): f32 is "
                             "taken")  # fmt: skip
        elif name != first_name:
            members.note(f"{path} is {name} where {first} is {first_name}: {first} counts")


def _apply_per_layer_config(members: Members) -> None:
    """Moves members of per_layer_config (transformers 5) to the members for layers of full attention."""
    stated = members.file.get("per_layer_config")
    if stated is None:
        return
    if not isinstance(stated, dict):
        members.reject('per_layer_config is no object: one such as {"5": {"head_dim": 512}}, or null, is needed')
    layers = {key: own for key, own in stated.items() if not isinstance(own, dict) or set(own) - {"sliding_window"}}
    if not layers:
        return
    layer, first = next(iter(layers.items()))
    types = members.file.get("layer_types")
    full = [at for at, kind in enumerate(types if isinstance(types, list) else []) if kind == "full_attention"]
    known = isinstance(first, dict) and set(first) <= set(GLOBAL_MEMBERS)
    alike = known and all(own == first for own in layers.values())
    if not alike or sorted(int(key) if key.isdecimal() else -1 for key in layers) != full:
        members.reject(f"per_layer_config has {len(layers)} layers, such as '{layer[:20]}': the same head_dim or "
                       f"num_key_value_heads for each of {len(full)} layers of full attention, and no other member, is "
                       "needed")  # fmt: skip
    members.file = {**members.file, **{GLOBAL_MEMBERS[name]: value for name, value in first.items()}}
    members.moved = {GLOBAL_MEMBERS[name]: f"per_layer_config.{layer}.{name}" for name in first}


# ---- all of it ----


def _find_model(root: Dict[str, Any]) -> Tuple[Members, Optional[str]]:
    """Returns the members of the model, or of its text model, with the defaults of its type, and the type's name."""
    members = Members(root=root, file=root)
    name = find_text(members)
    kind = type_of(name)
    if kind:
        members.defaults, members.flags, members.changed = {**kind.defaults, **members.fills}, kind.flags, kind.changed
    members.surveyed = "surveyed" in members.flags
    members.kind = name or ""
    members.within = path_of(root, members.file) or ""
    return members, name


def _set_facts(members: Members, extension: Dict[str, Any], name: Optional[str], reading: Reading) -> None:
    """Sets the type of a model, and its facts for people: those of _posenc, or defaults."""
    reading.type = (name or "(none)")[:60]
    if name:
        is_stated = member_of(members.file, "model_type").value == name
        assumed = "assumed: what the class of the whole has for text"
        reading.type_from = members.path("model_type") if is_stated else assumed
    defaults = {"title": _one_line(members.root.get("_name_or_path"), ""), "source": "the configuration given",
                "checked": "", "trained_numerics": ""}  # fmt: skip
    reading.facts = {fact: _one_line(extension.get(fact), default) for fact, default in defaults.items()}


def read_config(root: Any) -> Reading:
    """Reads a configuration. Its member _posenc may name the encoding, and has facts about presets."""
    if not isinstance(root, dict):
        holds = "an array" if isinstance(root, list) else "no object"
        raise Rejected(f'it holds {holds}: an object, {{"model_type": ...}}, is needed')
    dropped: Dict[str, Any] = {}
    root = without_unread(root, dropped)
    members, name = _find_model(root)
    kind = type_of(name)
    reading = Reading(notes=members.notes)
    extension = root["_posenc"] if isinstance(root.get("_posenc"), dict) else {}
    _set_facts(members, extension, name, reading)
    if "tower" not in members.flags:
        _apply_per_layer_config(members)
    template = Part(decodes=extension.get("decodes") is not False)
    _read_encoding(members, extension.get("encoding"), kind, name, template)
    _refine_encoding(members, kind, template)
    _check_embedding_type(members, template.encoding)
    _set_encoding_origin(extension, template)
    if kind and kind.note:
        members.note(kind.note)
    reading.parts = _read_parts(members, template)
    reading.parts += _read_vision(members)
    if members.find_value("dual_chunk_attention_config") is not None:
        members.note("dual_chunk_attention_config is not covered: positions are those of short sequences")
    if template.rotates or template.encoding == "alibi":
        note_besides(members, reading.type)
    _read_storage(members, reading)
    members.mark_read("rope_scaling", "rope_parameters", "position_embedding_type", "position_embeddings_type",
                      "per_layer_config", "original_max_position_embeddings")  # fmt: skip
    check_unread(members, reading.type)
    for key, value in dropped.items():
        note_neutral(members, key, value)
    if members.assumed:
        members.note(f"Not in the file, and taken as the classes of this model_type do: {', '.join(members.assumed)}")
    return reading
