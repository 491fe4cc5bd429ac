"""Reads rotations: heads, rotated channels and the base, for each type of layers that has its own.

config.py calls read_rotations(). Llama has one part, for all layers. Gemma 3 has two: "full" with a base of 1e6 and a
scaling, "sliding" with a base of 1e4. "The object for scaling" is the member rope_scaling or rope_parameters of a file:

    "rope_parameters": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}
    "rope_parameters": {"full_attention": {"rope_theta": 1e6, ...}, "sliding_attention": {"rope_theta": 1e4}}
"""

from dataclasses import replace
from typing import Any, Dict, List, NamedTuple

from .layers import count_attending_layers, count_unrotated_layers, count_sliding_layers
from .members import Member, Members, Default, Range, is_number, member_of
from .part import Part
from .scaling import read_scaling

OF_CLASS = "the rope_parameters that its class takes"  # name of an object for scaling that is a default
LOCALS = "rope_local_base_freq local_rope_theta"  # members with the base of layers of sliding attention
HEAD_DIM = "head_dim kv_channels"
KEY_HEADS = "num_key_value_heads num_kv_heads n_head_kv decoder_num_key_value_heads"


class Layers(NamedTuple):
    """A type of layers."""

    type: str  # in layer_types of a file
    name: str  # of its part
    rules: str  # names of members that count: those for "every_layer", or those for "full", "sliding" or "chunked"


ALL = Layers("", "", "every_layer")
TYPES = (
    Layers("full_attention", "full", "full"), Layers("sliding_attention", "sliding", "sliding"),
    Layers("chunked_attention", "chunked", "chunked"), Layers("hybrid", "hybrid", "every_layer"),
    Layers("hybrid_sliding", "hybrid_sliding", "every_layer"),
)  # fmt: skip
BY_NAME = {known.name: known for known in TYPES}
BY_TYPE = {known.type: known for known in TYPES}


# ---- model types with sizes of their own ----


def _read_zamba2(members: Members, part: Part) -> None:
    """Reads Zamba2, whose heads share twice the width, and rotate where a member says so."""
    if members.find_value("use_mem_rope") is not True:
        members.reject("use_mem_rope is not true: none of its layers rotates, and positions come from its state spaces "
                       "alone")  # fmt: skip
    part.set("width", 2 * part.width, "2 * width")
    computed = ("kv_channels", "attention_head_dim", "head_dim")  # by the class, whatever the file says
    members.file = {key: value for key, value in members.file.items() if key not in computed}
    if members.find_value("layers_block_type") is None:
        part.layers = 9
        part.set_origin("layers", "what its class has")
    if members.find_value("use_long_context") is True:
        part.length = 16384
        part.set_origin("length", "what its class takes where use_long_context is true")


def _read_chatglm(members: Members, part: Part) -> None:
    """Reads ChatGLM: half of each head rotates, and heads share keys in groups."""
    ratio = members.find_value("rope_ratio")
    if ratio not in (None, 1):
        members.reject(f"rope_ratio is {ratio}: releases of its code differ in whether it multiplies the base or "
                       "divides positions; 1, or the file of the same model for the type glm, is needed")  # fmt: skip
    members.read_whole(part, "head_dim", "kv_channels")
    if members.find_value("multi_query_attention") is True:
        members.read_divisor(part, "key_heads", "multi_query_group_num", "heads")
    else:
        part.set("key_heads", part.heads, "heads")
    part.set("rotary_dim", part.head_dim // 2, "head_dim / 2")
    part.dim = part.rotary_dim
    if members.file.get("rotary_percent") == 0.5:
        members.mark_read("rotary_percent")
    part.set("rope_theta", 10000.0, "rope_theta")


def _read_clvp(members: Members, part: Part) -> None:
    """Reads CLVP, which rotates a part of its projection."""
    members.read_number(part, "rope_theta", "rope_theta", 1e4, 1e4)
    members.read_truth(part, "relative", "use_rotary_embedding", True)
    if not part.relative:
        members.reject("use_rotary_embedding is false: such a model has no positions in its attention or embeddings")
    members.note("Its code turns values, too: what is checked and timed here turns queries and keys")


# ---- one type of layers ----


def _read_sizes(members: Members, part: Part, rules: str) -> None:
    """Reads the base, heads and their width for a type of layers."""
    theta_names = {
        "every_layer": "rope_theta rotary_emb_base", "full": "rope_theta global_rope_theta", "chunked": "rope_theta",
        "sliding": LOCALS,
    }[rules]  # fmt: skip
    members.read_number(part, "rope_theta", theta_names, 1e-6, 1e30)
    latent = members.find_value("qk_rope_head_dim")
    if latent and not members.reads("head_dim", ["head_dim"]):
        _read_latent_head(members, part, latent)
    else:
        own_name = {"full": "global_head_dim / ", "sliding": "swa_head_dim / "}.get(rules, "")
        width = Default(part.width // part.heads, "width / heads")
        members.read_whole(part, "head_dim", own_name + HEAD_DIM, default=width)
    if latent:
        part.key_heads = 1  # for the channels that rotate
    else:
        _read_key_heads(members, part, rules)
    members.read_truth(part, "single", "multi_query")
    members.read_truth(part, "grouped", "new_decoder_architecture")
    members.read_whole(part, "latent", "qk_rope_head_dim", default=0)


def _read_key_heads(members: Members, part: Part, rules: str) -> None:
    """Reads the key heads of a type of layers."""
    first_name, all_heads = KEY_HEADS.split()[0], Default(part.heads, "heads")
    if members.file.get("num_key_value_heads", 0) is None:  # null stands for all heads, whatever the default
        part.set("key_heads", part.heads, "heads")
    elif rules == "sliding" and "twice_sliding" in members.flags:
        members.read_divisor(part, "key_heads", first_name, "heads", all_heads)
        stated, twice = member_of(members.file, "swa_num_key_value_heads").value, 2 * part.key_heads
        if stated not in (None, twice):
            members.reject(f"swa_num_key_value_heads is {stated}, where its class takes twice num_key_value_heads, "
                           f"{twice}: they must agree")  # fmt: skip
        part.set("key_heads", twice, "2 * key_heads")
    else:
        names = {"full": f"num_global_key_value_heads / {first_name}",
                 "sliding": f"swa_num_key_value_heads / {KEY_HEADS}"}.get(rules, KEY_HEADS)  # fmt: skip
        members.read_divisor(part, "key_heads", names, "heads", all_heads)


def _read_latent_head(members: Members, part: Part, latent: int) -> None:
    """Sets head_dim to the rotated channels, in model types whose classes do not read head_dim."""
    part.head_dim = latent
    stated = member_of(members.file, HEAD_DIM)
    if stated.value is not None and stated.value != latent:
        members.note(f"{stated.name} is {stated.value}, which does not count: qk_rope_head_dim does")


def _read_heads_by_layer(members: Members, part: Part, layers: Layers) -> None:
    """Reads the query heads of a type of layers from a list with a number for each layer."""
    name = "num_attention_heads_per_layer"
    counts, types = (member_of(members.file, key).value for key in (name, "layer_types"))
    if not isinstance(counts, list) or not members.reads(name, []):
        return
    members.mark_read(name)
    types = types if isinstance(types, list) else [layers.type] * len(counts)
    own_counts = [count for count, kind in zip(counts, types) if kind == layers.type]
    if not own_counts:
        return
    if any(count != own_counts[0] for count in own_counts):
        members.reject(f"{name} has other numbers for layers of one type: one for each type is needed")
    part.heads = int(members.check_value(Member(own_counts[0], name), Range(1, 65536)))
    part.origins["heads"] = part.origin_in(members.path(name), part.heads)


def _add_rotation(members: Members, template: Part, layers: Layers, rope: Any, parts: List[Part]) -> None:
    """Adds the rotation of a type of layers to `parts`; `rope` is its object for scaling."""
    if layers.name and isinstance(rope, dict) and rope.get("truncate") is False:
        members.reject("truncate stands in the object for one type of layers: releases of that library differ in "
                       "whether it counts there")  # fmt: skip
    whose = f" for layers of type {layers.type}" if layers.name else ""
    own = replace(members, rope=rope, whose=whose)
    part = replace(template, name=layers.name, origins=dict(template.origins))
    parts.append(part)
    _read_heads_by_layer(own, part, layers)
    _read_sizes(own, part, layers.rules)
    head, unrotated = own.find_value("head_dim"), own.find_value("qk_nope_head_dim")
    whole = part.latent + unrotated if isinstance(unrotated, int) else part.latent
    if part.latent and isinstance(head, int) and head not in (part.latent, whole):
        members.reject(f"head_dim is {head} and qk_rope_head_dim {part.latent}: they must agree (releases of that "
                       "library differ in which turns)")  # fmt: skip
    if part.latent:
        part.head_dim = part.latent
        part.origins["head_dim"] = part.origins["latent"]
    if part.latent or (part.single and not part.grouped):
        part.key_heads = 1
        part.set_origin(
            "key_heads", f"one for all, as {part.origins['latent' if part.latent else 'single'].key} is there"
        )
    read_scaling(own, part)


# ---- the object for scaling ----


def find_rope(members: Members) -> Members:
    """Returns the members with the object for scaling, of the file or of the class, and its name."""
    found = replace(members, rope=None, rope_name="rope_scaling")
    names = ("rope_scaling", "rope_parameters")
    for i, name in enumerate(names):
        value = member_of(members.file, name).value
        if value is None or value == {}:  # its class keeps its own
            continue
        if not isinstance(value, dict):
            members.reject(f'{name} is no object: one such as {{"rope_type": "linear", "factor": 2}}, or null, is '
                           "needed")  # fmt: skip
        if isinstance(members.defaults.get(name), str):
            members.reject(f"{name} is there, which the classes of this model_type do not read: {names[1 - i]} is "
                           "needed")  # fmt: skip
        if found.rope is not None and value != found.rope:
            members.reject("rope_scaling and rope_parameters differ: one of them, or the same twice, is needed")
        if found.rope is None:
            found.rope, found.rope_name = value, name
    if found.rope is None:
        default = members.defaults.get(names[1])
        found.rope, found.rope_name = default if isinstance(default, dict) else None, OF_CLASS
    _drop_beside(found)
    return found


def _drop_beside(members: Members) -> None:
    """Drops numbers that stand beside objects for types of layers and repeat one of theirs; no class reads them."""
    objects = {key: value for key, value in (members.rope or {}).items() if key in BY_TYPE and isinstance(value, dict)}
    if not objects or members.rope is None:
        return
    for key, value in list(members.rope.items()):
        if key not in BY_TYPE and not isinstance(value, dict) and value is not None:
            if all(of_type.get(key) != value for of_type in objects.values()):
                members.reject(f"{key} of {members.rope_name} stands beside objects for types of layers, none of which "
                               "says the same: leave it out")  # fmt: skip
            members.note(f"{key} of {members.rope_name} does not count: those of types of layers do")
            members.rope = {name: stated for name, stated in members.rope.items() if name != key}


def _is_by_layer_type(rope: Any) -> bool:
    """Returns whether an object for scaling has one for each type of layers; null: such layers do not rotate."""
    values = rope.values() if isinstance(rope, dict) else []
    return any(isinstance(v, dict) for v in values) and all(v is None or isinstance(v, dict) for v in values)


def _use_two_bases(members: Members) -> None:
    """Converts the two bases in published files of MiMo-V2-Flash to objects for types of layers."""
    sliding_base = member_of(members.file, "swa_rope_theta").value
    if sliding_base is None or members.rope_name != OF_CLASS or not members.reads("swa_rope_theta", []):
        return
    members.mark_read("swa_rope_theta", "rope_theta", "partial_rotary_factor")
    share = member_of(members.file, "partial_rotary_factor").value
    bases = {"full_attention": member_of(members.file, "rope_theta").value, "sliding_attention": sliding_base}
    members.rope = {kind: {"rope_theta": base, "partial_rotary_factor": share} for kind, base in bases.items()}
    members.rope_name = "rope_parameters"
    members.file = {k: v for k, v in members.file.items() if k not in ("rope_theta", "partial_rotary_factor")}
    pattern = members.file.get("hybrid_layer_pattern")
    if isinstance(pattern, list) and "layer_types" not in members.file:
        members.file["layer_types"] = ["sliding_attention" if slides else "full_attention" for slides in pattern]


def _check_beside(members: Members) -> None:
    """Rejects a member that contradicts one of the objects for types of layers beside it."""
    objects = members.rope if _is_by_layer_type(members.rope) else {}
    of_class = members.rope_name == OF_CLASS
    for name in ("rope_theta", "partial_rotary_factor"):
        own = member_of(members.file, name).value
        for layers, rope in (objects or {}).items():
            if own is None and of_class and isinstance(rope, dict) and name in rope:
                members.check_default(name, rope[name])
            if not is_number(own) or not isinstance(rope, dict) or (name in rope and not of_class):
                continue
            if own == (rope[name] if name in rope else 1.0):
                continue
            has = ", which its class has," if of_class else ""
            members.reject(f"{name} is {own:.9g} beside an object for layers of type {layers[:40]}{has} that says "
                           f"otherwise or nothing: rope_parameters with one for each type of layers, with its {name}, "
                           "is needed")  # fmt: skip


def _class_has_layer_types(members: Members) -> bool:
    """Returns whether the classes of the model type distinguish types of layers."""
    return "layer_types" in members.defaults or _is_by_layer_type(members.defaults.get("rope_parameters"))


def _check_form(members: Members, has_local_base: bool) -> None:
    """Rejects forms of the object for scaling that the classes of the type misread."""
    name, is_old = members.rope_name, members.rope_name == "rope_scaling"
    if members.rope is None or name == OF_CLASS:
        return
    scales_full_alone = "full_scaled" in members.flags or (members.surveyed and has_local_base)
    if _is_by_layer_type(members.rope):
        takes_one = members.surveyed and not has_local_base and not _class_has_layer_types(members)
        misread = takes_one or f"one_{name}" in members.flags or (scales_full_alone and is_old)
        form = "an object for each type"
        needed = "rope_parameters, with the same," if is_old and not takes_one else "one for all"
    else:
        misread = "layered" in members.flags or (scales_full_alone and not is_old)
        form, needed = "one object for all types", "rope_parameters, with one for each type of layers,"
    if misread:
        members.reject(f"{name} has {form} of layers, which the classes of this model_type take in another way or not "
                       f"at all: {needed} is needed")  # fmt: skip


# ---- types of layers ----


def _check_lists(members: Members, count: int) -> None:
    """Rejects lists with a number for each layer that have fewer, or none."""
    other = members.file.get("attention_other_setting")
    if other is not None and not isinstance(other, dict):
        members.reject("attention_other_setting is no object: one with num_attention_heads, or null, is needed")
    for name in ("layer_types", "rope_theta", "partial_rotary_factors"):
        listed = members.file.get(name)
        if name == "layer_types" and isinstance(listed, list) and not all(isinstance(kind, str) for kind in listed):
            members.reject(f"{name} has an item that is no text: names of types of layers are needed")
        if isinstance(listed, list) and len(listed) < count:
            members.reject(f"{name} has {len(listed)} items: one for each of {count} layers is needed")


def _group_lists_by_type(members: Members) -> Members:
    """Returns the members with an object for each type of layers in place of lists with a number for each layer.

    Step 3.5 has such lists: "rope_theta": [5e6, 1e4, 1e4, 1e4, ...]. They go on with the layers that guess further
    tokens, which are not covered. As in its class, a type of layers has the numbers of its first layer, and
    rope_scaling is for those of full attention.
    """
    file = dict(members.file)
    count = int(members.find_value("num_hidden_layers"))
    _check_lists(members, count)
    types = file.get("layer_types")
    types = types[:count] if isinstance(types, list) else ["full_attention"] * count
    file["layer_types"] = types
    scaling, rope = file.pop("rope_scaling", None), file.get("rope_parameters")
    rope = rope if isinstance(rope, dict) else {}
    if all(isinstance(rope.get(kind), dict) for kind in types):
        file["rope_parameters"] = {kind: rope[kind] for kind in types}
    else:
        theta, shares = file.pop("rope_theta", 10000.0), file.pop("partial_rotary_factors", None)
        by_type: Dict[str, Dict[str, Any]] = {}
        for kind in dict.fromkeys(types):
            first = types.index(kind)
            by_type[kind] = {"rope_theta": theta[first] if isinstance(theta, list) else theta}
            if isinstance(shares, list):
                by_type[kind]["partial_rotary_factor"] = shares[first]
        if "full_attention" in by_type and isinstance(scaling, dict):
            by_type["full_attention"].update(scaling)
        file["rope_parameters"] = by_type
    other = file.get("attention_other_setting")
    sliding = file.get("num_sliding_attention_heads") or (other or {}).get("num_attention_heads")
    if sliding is not None:
        heads = members.find_value("num_attention_heads")
        file["num_attention_heads_per_layer"] = [sliding if kind == "sliding_attention" else heads for kind in types]
    members.mark_read("rope_theta", "partial_rotary_factors", "rope_scaling")
    return replace(members, file=file)


def _drop_repeated(members: Members) -> Members:
    """Returns the members without a base or share that repeats that of an object for a type of layers."""
    objects = [rope for rope in (members.rope or {}).values() if isinstance(rope, dict)]
    repeated = []
    for name in ("rope_theta", "partial_rotary_factor"):
        beside = member_of(members.file, name).value
        values = [rope.get(name) for rope in objects if name in rope]
        if beside is not None and len(values) == len(objects) and beside in values:
            repeated.append(name)
    members.mark_read(*repeated)
    return replace(members, file={key: stated for key, stated in members.file.items() if key not in repeated})


def _add_each_type(members: Members, template: Part, parts: List[Part]) -> None:
    """Adds the rotations of a file with an object for each type of layers."""
    for key in members.rope or {}:
        if key not in BY_TYPE:
            members.reject(f"{members.rope_name} has layers of type '{key[:40]}': known are full_attention, "
                           "sliding_attention, chunked_attention, hybrid and hybrid_sliding")  # fmt: skip
    members = _drop_repeated(members)
    for known in TYPES:
        rope = (members.rope or {}).get(known.type)
        if isinstance(rope, dict):
            _add_rotation(members, template, known, rope, parts)
        elif known.type in (members.rope or {}):
            members.note(f"Layers of type {known.type} do not rotate")


def _add_full_and_sliding(members: Members, template: Part, local: Member, parts: List[Part]) -> None:
    """Adds the rotations of a model type that scales only layers of full attention."""
    rope = members.rope
    if members.surveyed and rope and "type" in rope and "rope_type" not in rope:
        members.reject(f"type stands in {members.rope_name} without rope_type: releases of that library differ in "
                       "whether it counts; rope_type is needed")  # fmt: skip
    is_local = local.value is not None
    if rope is not None and is_local and local.name == "local_rope_theta":
        members.reject(f"{members.rope_name} beside local_rope_theta: releases of that library differ in which layers "
                       "it scales; an object for each type of layers is needed")  # fmt: skip
    theta, default = (member_of(where, "rope_theta").value for where in (members.file, members.defaults))
    if not is_local and is_number(theta) and is_number(default) and theta != default:
        members.reject(f"rope_theta is {theta:.9g}: releases of that library differ in whether layers of sliding "
                       f"attention have it, too; {default:.9g}, or rope_parameters with an object for each type of "
                       "layers, is needed")  # fmt: skip
    _add_rotation(members, template, BY_NAME["full"], rope, parts)
    sliding = BY_NAME["sliding"] if is_local else BY_NAME["sliding"]._replace(rules="every_layer")
    _add_rotation(members, template, sliding, None, parts)


def _count_by_pattern(members: Members, template: Part, parts: List[Part]) -> None:
    """Counts layers by a pattern: every sixth of Gemma has full attention, the first of every three of ModernBERT."""
    names = "sliding_window_pattern _sliding_window_pattern global_attn_every_n_layers"
    members.read_whole(template, "step", names, default=0)
    if template.step:
        members.note(f"One layer in {template.step} has full attention, the others slide")
    first = members.find_value("global_attn_every_n_layers") is not None
    full = (template.layers + (template.step - 1 if first else 0)) // template.step if template.step else 0
    for part in parts:
        part.layers = 0 if not full else full if part.name == "full" else template.layers - full
        if full:
            layers, step = template.origins["layers"], template.origins["step"]
            source = step.key if step.kind == "file" else f"assumed: {step.key}"
            part.set_origin("layers", f"{layers.key or layers.formula}, one in {template.step} full ({source})")


def _count_layers(members: Members, template: Part, parts: List[Part]) -> None:
    """Counts the layers of each part, and notes the layers of other types."""
    layers = member_of(members.file, "layer_types").value
    layers = layers if isinstance(layers, list) else []
    if not layers:
        _count_by_pattern(members, template, parts)
        return
    left = len(layers)
    for part in parts:
        type_name = BY_NAME[part.name].type
        part.layers = layers.count(type_name)
        left -= part.layers
        part.origins["layers"] = part.origin_in(members.path("layer_types"), part.layers)
        members.note(f"{type_name} is the rotation of {part.layers} of {len(layers)} layers")
    if left:
        members.note(f"{left} layers are of types without a rotation here")


def read_rotations(members: Members, template: Part) -> List[Part]:
    """Reads the rotations of a model, one for each type of layers."""
    if "chatglm" in members.flags:
        _read_chatglm(members, template)
        return [template]
    if "by_lists" in members.flags:
        members = _group_lists_by_type(members)
    if "full_rests" in members.flags:
        count_sliding_layers(members, template)
    else:
        count_attending_layers(members, template)
    if "shared_blocks" in members.flags:
        _read_zamba2(members, template)
    if "projected" in members.flags:
        _read_clvp(members, template)
    count_unrotated_layers(members, template)
    local, stated = members.find(LOCALS), member_of(members.file, LOCALS)
    has_local_base = local.value is not None
    if stated.value is not None and not has_local_base:
        members.reject(f"{stated.name} is there, which the classes of this model_type do not read: leave it out")
    members = find_rope(members)
    _use_two_bases(members)
    _check_form(members, has_local_base)
    if not has_local_base:
        _check_beside(members)
    parts: List[Part] = []
    if _is_by_layer_type(members.rope):
        _add_each_type(members, template, parts)
    elif has_local_base or "full_scaled" in members.flags:
        _add_full_and_sliding(members, template, local, parts)
    else:
        _add_rotation(members, template, ALL, members.rope, parts)
        return parts
    _count_layers(members, template, parts)
    return parts
