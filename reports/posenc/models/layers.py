"""Counts the layers that rotate, by the lists and patterns of the file or the rule of the class.

Other layers attend without a rotation, or mix tokens without attention. rotation.py calls these functions, which reduce
part.layers: with 48 layers and no_rope_layer_interval 4, 36 rotate.
"""

from typing import Any, Callable, Dict, List, Tuple

from .members import MOST, Member, Members, is_number, member_of
from .part import Origin, Part


def count_attending_by_step(members: Members, part: Part) -> None:
    """Counts the layers that attend, of which one in every `step` does; the others mix tokens in another way."""
    members.read_whole(part, "step", "full_attention_interval layer_group_size", default=MOST)
    if part.layers < part.step < MOST:
        members.reject(f"none of its {part.layers} layers attends: one in {part.step} would")
    part.set("layers", part.layers // part.step, "layers / step")


def _attends(kind: Any) -> bool:
    """Returns whether layers of a type attend: "full_attention" and "hybrid" do, "linear_attention" does not."""
    return isinstance(kind, str) and ("hybrid" in kind or ("attention" in kind and "linear" not in kind))


# Members that list which layers attend. Each function takes the list and the number of layers, and returns for every
# layer whether it attends.
ATTENDING: Dict[str, Callable[[List[Any], int], List[bool]]] = {
    "attn_layer_indices": lambda indices, layers: [layer in indices for layer in range(layers)],
    "layers_block_type": lambda kinds, layers: [_attends(kind) for kind in kinds],
    "layer_types": lambda kinds, layers: [_attends(kind) for kind in kinds],
    "block_types": lambda kinds, layers: [_attends(kinds[layer % len(kinds)]) for layer in range(layers)],
}


def count_attending_layers(members: Members, part: Part) -> None:
    """Counts the layers that attend, in a model type with a list of them."""
    layers = part.layers
    listed = members.find_in_file("layer_types").value
    if isinstance(listed, list) and members.find_in_file("num_hidden_layers").value and len(listed) != layers:
        members.reject(f"layer_types has {len(listed)} items: one for each of {layers} layers is needed")
    if "hybrid" in members.flags:
        count_attending_by_step(members, part)
    for name, attending_layers in ATTENDING.items():
        found = members.find(name) if name in members.defaults else Member(None, name)
        if found.value is None and name == "attn_layer_indices" in members.defaults:
            members.reject("attn_layer_indices is not there: then none of its layers attends, and positions come from "
                           "its state spaces alone")  # fmt: skip
        attend = attending_layers(found.value, layers) if isinstance(found.value, list) and found.value else []
        if attend and not any(attend):
            members.reject(f"none of its {len(attend)} layers attends ({name}): one that does is needed")
        if not all(attend):
            members.note(f"{sum(attend)} of {len(attend)} layers attend ({name})")
            part.layers = sum(attend)
            kind = "file" if found.path else "class"
            part.origins["layers"] = Origin(kind, found.path or found.name, value=part.layers)


def count_unrotated_layers(members: Members, part: Part) -> None:
    """Subtracts the layers that do not rotate: those that the file lists, or one in every `step`."""
    found = members.find("no_rope_layers layer_rope_theta")
    layers = found.value if isinstance(found.value, list) else []
    unrotated = sum(not rotates or (not is_number(rotates) and rotates is not True) for rotates in layers)
    if unrotated:
        members.note(f"{unrotated} of {len(layers)} layers do not rotate ({found.name})")
    if layers:
        if members.reads("no_rope_layer_interval", ["no_rope_layer_interval"]):
            members.mark_read("no_rope_layer_interval")  # the list was made from it
        part.layers = len(layers) - unrotated
        part.origins["layers"] = part.origin_in(found.path or found.name, part.layers)
        return
    members.read_whole(part, "step", "no_rope_layer_interval", default=0)
    if part.step:
        backwards = part.step - 1 if "last_rests" in members.flags else 0
        unrotated = (part.layers + backwards) // part.step
        if part.layers:
            members.note(f"{unrotated} of {part.layers} layers do not rotate (no_rope_layer_interval)")
        else:
            members.note(f"One layer in {part.step} does not rotate (no_rope_layer_interval)")
        part.layers -= unrotated


# Rules of classes that fix which layers attend to all positions, for files without a list of layers: each takes the
# number of a layer, and how many there are.
FULL_ATTENTION: Dict[str, Callable[[int, int], bool]] = {
    "flint": lambda layer, layers: layer < 2 or layer % 4 == 1 or layer == layers - 1,
    "kolibri1": lambda layer, layers: layer % 5 == 4,
}


def _always_rotates(members: Members, layers: int) -> List[bool]:
    """Returns for each layer whether it rotates in any case: the dense layers of cohere2_moe do."""
    if members.kind != "cohere2_moe" or members.file.get("prefix_dense_sliding_window_pattern", 1) != 1:
        return [False] * layers
    listed, first = (members.file.get(key) for key in ("mlp_layer_types", "first_k_dense_replace"))
    if isinstance(listed, list):
        return [kind == "dense" for kind in listed[:layers]] + [False] * (layers - len(listed))
    return [is_number(first) and layer < first for layer in range(layers)]


def _attends_fully(members: Members, part: Part) -> Tuple[List[bool], str]:
    """Returns for each layer whether it attends to all positions, and the name of the member that states it."""
    listed, layers = member_of(members.file, "layer_types"), range(part.layers)
    if isinstance(listed.value, list) and listed.value:
        return [kind != "sliding_attention" for kind in listed.value], listed.name
    rule_of_class = FULL_ATTENTION.get(members.kind)
    if rule_of_class:
        return [rule_of_class(layer, part.layers) for layer in layers], "its class"
    names = "sliding_window_pattern global_attn_every_n_layers"
    pattern = members.find(names)
    marks = pattern.value
    if isinstance(marks, str) and marks and set(marks) <= set("LG"):  # the last layer attends to all, whatever it says
        return [marks[layer % len(marks)] == "G" or layer == part.layers - 1 for layer in layers], pattern.name
    members.read_whole(part, "step", names, default=4)
    if part.step < 1:
        members.reject(f"{pattern.name} is {part.step}: a whole number of layers, from 1, is needed")
    dense, dense_step = _dense_pattern(members, part.layers)
    full = [layer % dense_step == dense_step - 1 for layer in range(dense)]
    full += [layer % part.step == part.step - 1 for layer in range(part.layers - dense)]
    return full, pattern.name or "its class"


def _dense_pattern(members: Members, layers: int) -> Tuple[int, int]:
    """Returns how many dense layers cohere2_moe begins with, and the step of the pattern that these have."""
    stated = members.file.get("first_k_dense_replace") if members.kind == "cohere2_moe" else 0
    dense = int(max(0, min(stated, layers))) if is_number(stated) else 0
    step = members.file.get("prefix_dense_sliding_window_pattern", 1)
    if not isinstance(step, int) or step < 1:
        members.reject(f"prefix_dense_sliding_window_pattern is {step}: a whole number of layers, from 1, is needed")
    return dense, step


def count_sliding_layers(members: Members, part: Part) -> None:
    """Counts the layers that rotate, in a model type whose layers with full attention do not."""
    if members.file.get("sliding_window", 0) is None:
        if "without_window" in members.flags:
            return  # all layers rotate
        if "needs_window" in members.flags:
            members.reject("sliding_window is null, and only layers with a window rotate: a number is needed")
    full, source = _attends_fully(members, part)
    always = _always_rotates(members, len(full))
    unrotated = sum(is_full and not rotates for is_full, rotates in zip(full, always))
    if unrotated == len(full):
        members.reject(f"none of its {len(full)} layers rotates: all attend to all positions ({source})")
    if unrotated:
        members.note(f"{unrotated} of {len(full)} layers do not rotate: those that attend to all positions ({source})")
        part.layers = len(full) - unrotated
        part.set_origin("layers", f"layers with a window ({source})")
