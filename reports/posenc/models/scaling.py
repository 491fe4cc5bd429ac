"""Reads the rule that scales frequencies from rope_scaling or rope_parameters.

rotation.py calls read_scaling() for each type of layers, with the object in members.rope. The object
{"rope_type": "linear", "factor": 4.0} sets scaling "linear" and factor 4 of the part.

Unknown rules and members are rejected. A member of another rule is ignored and noted. Source: huggingface/transformers,
modeling_rope_utils.py.
"""

import math
from dataclasses import replace
from typing import Any, Dict, List, NamedTuple

from .members import KEEP, REQUIRED, Members, Default, Range, is_number, member_of, read_numbers, path_of
from .part import Origin, Part

PICTURE = 32  # side in tokens of the picture in cases: 896 x 896 pixels in patches of 14 x 14, two and two merged

YARN = (
    "factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow", "mscale",
    "mscale_all_dim", "truncate",
)  # fmt: skip
# The members that each rule takes.
RULES: Dict[str, List[str]] = {
    "none": [],
    "linear": ["factor"],
    "llama3": ["factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"],
    "yarn": [*YARN],
    "dynamic": ["factor", "max_position_embeddings"],
    "ntk": ["alpha"],
    "longrope": ["factor", "original_max_position_embeddings", "attention_factor", "short_factor", "long_factor",
                 "short_mscale", "long_mscale"],
    "proportional": ["factor", "partial_rotary_factor"],
    "resonance_yarn": [*YARN],
}  # fmt: skip
# Rules by their names in files. No file names ntk, which is a form of dynamic.
NAMES = {"default": "none", **{rule: rule for rule in RULES if rule not in ("none", "ntk")}, "su": "longrope",
         "mrope": "none"}  # fmt: skip
KNOWN = ", ".join(NAMES)
# Members of the object for scaling that any rule reads, that some rules read, and that none reads.
COUNTING_IN_ANY_RULE = (
    "rope_type", "type", "rope_theta", "partial_rotary_factor", "mrope_section", "mrope_interleaved",
)  # fmt: skip
COUNTING_BY_RULE = {name for members in RULES.values() for name in members} - {
    "alpha", "partial_rotary_factor", "max_position_embeddings"
}  # fmt: skip
COUNTING_IN_NO_RULE = ("finetuned", "llama_4_scaling_beta", "max_position_embeddings", "interleaved")
# Model types whose dynamic scaling with alpha enlarges the base at any length, to theta alpha^(d / (d - 2)).
ALPHA = ("hunyuan_v1_dense", "hunyuan", "hunyuan_v1_moe")


class Rule(NamedTuple):
    """A rule that scales frequencies."""

    name: str  # in the file, such as "su"
    scaling: str  # in RULES and in problems, such as "longrope"

    def takes(self, member: str) -> bool:
        """Returns whether a member counts with this rule."""
        return member in RULES[self.scaling]


def _find_rule(members: Members) -> Rule:
    """Finds the rule by rope_type or type; both must agree. Without them the object may have no member of a rule."""
    found = None
    rope = members.rope or {}
    if rope.get("alpha") and members.kind in ALPHA and rope.get("type", rope.get("rope_type")) == "dynamic":
        return Rule("dynamic", "ntk")
    for key in ("rope_type", "type"):
        name = rope.get(key)
        if name is None:
            continue
        if not isinstance(name, str):
            members.reject(f"{key} of {members.rope_name} is no text; known: {KNOWN}")
        renamed = name == "yarn" and "yarn_is_longrope" in members.flags
        if name not in NAMES:
            members.reject(f"{key} '{name[:60]}' of {members.rope_name} is unknown; known: {KNOWN}")
        rule = Rule(name, "longrope" if renamed else NAMES[name])
        if found and found.scaling != rule.scaling:
            members.reject(f"{members.rope_name} has rope_type '{found.name}' and type '{rule.name}': they must agree")
        if not found or name == "mrope":
            found = rule
    if not found and any(rope.get(name) is not None for name in (*COUNTING_BY_RULE, *COUNTING_IN_NO_RULE)):
        members.reject(f"{members.rope_name} has no rope_type; known: {KNOWN}")
    return found or Rule("default", "none")


def _check_members(members: Members, rule: Rule) -> None:
    """Rejects unknown members of the object for scaling, and notes those of other rules."""
    for name, value in (members.rope or {}).items():
        counts = name in COUNTING_IN_ANY_RULE or (name in (*COUNTING_BY_RULE, "alpha") and rule.takes(name))
        if counts or value is None:
            continue
        if name not in COUNTING_BY_RULE and name not in COUNTING_IN_NO_RULE:
            members.reject(f"{members.rope_name} has '{name[:60]}', which this loader does not know: it may change the "
                           f"numbers; the rule is {rule.name}")  # fmt: skip
        members.note(f"{name} of {members.rope_name} does not change a rotation of type {rule.name}")


# ---- channels that rotate ----


def _check_latent(members: Members, part: Part) -> None:
    """Rejects a partial_rotary_factor that contradicts qk_rope_head_dim."""
    unrotated = members.find_value("qk_nope_head_dim")
    channels = (unrotated if is_number(unrotated) else 0) + part.latent
    for where in (members.rope, members.file):
        share = member_of(where, "partial_rotary_factor").value
        if share is not None and math.floor(channels * (share if is_number(share) else 0)) != part.latent:
            members.reject(f"partial_rotary_factor is {share!r:.60}, where qk_rope_head_dim is {part.latent} of the "
                           f"{channels} channels of a head: they must agree")  # fmt: skip


def _read_share(members: Members, rule: Rule, part: Part) -> None:
    """Reads partial_rotary_factor, the share of a head that rotates."""
    flags = members.flags
    if part.name and "needs_share" in flags and member_of(members.rope, "partial_rotary_factor").value is None:
        members.reject(f"partial_rotary_factor is missing{members.whose}, of which the classes of this model_type take "
                       "different ones: a number from 0 to 1 is needed")  # fmt: skip
    if "latent_share" in flags:
        _check_latent(members, part)
    else:
        if "half" in flags:
            part.set("partial_rotary_factor", 0.5)
        names = "partial_rotary_factor rotary_pct rope_pct"
        head, stated = (member_of(members.file, name).value for name in ("head_dim", "partial_rotary_factor"))
        if part.latent and is_number(head) and is_number(stated) and head * stated == part.latent:
            names = "rotary_pct"  # the share is that of another head, and says the same
            members.mark_read("partial_rotary_factor")
        members.read_number(part, "partial_rotary_factor", names, 0, 1, KEEP)
    share = part.partial_rotary_factor
    if rule.scaling == "none" and "scaled_share" in flags and share < 1:
        members.reject(f"partial_rotary_factor is {share:.9g} with rope_type {rule.name}, with which the classes of "
                       "this model_type do not read it: leave it out")  # fmt: skip


def _read_rotary_dim(members: Members, rule: Rule, part: Part) -> None:
    """Sets how many channels rotate: a share of a head, or all if the rule itself uses the share."""
    share, rule_takes_share = part.partial_rotary_factor, rule.takes("partial_rotary_factor")
    part.rotary_dim = part.head_dim if rule_takes_share else int(part.head_dim * share)
    part.set_origin("rotary_dim", "all of head_dim")
    if part.rotary_dim < part.head_dim:
        origin = part.origins.get("partial_rotary_factor")
        source = "what its code does"
        if origin and origin.key:
            assumed = f"assumed: the default of its class, as {origin.key} is not there"
            source = origin.key if origin.kind == "file" else assumed
        part.set_origin("rotary_dim", f"{share:.10g} of head_dim ({source})")
    if not rule_takes_share:
        part.partial_rotary_factor = 1.0
    if "projected" in members.flags:
        members.read_whole(part, "image", "projection_dim")
        part.set("rotary_dim", max(part.image // part.heads // 2, 32), "image / heads / 2")
    else:
        members.read_even(part, "rotary_dim", "rotary_dim", 2, part.head_dim, Default(part.rotary_dim, "rotary_dim"))
    part.dim = part.rotary_dim


# ---- parameters of a rule ----


def _complete_yarn(members: Members, part: Part) -> None:
    """Computes the factor of YaRN or the original length if the file lacks one of them, which is 0 then."""
    is_stated = part.factor > 0
    original = part.original_max_position_embeddings
    if not is_stated and original <= 0:
        members.reject(f"factor is missing{members.whose}: a number, or original_max_position_embeddings, to divide "
                       "max_position_embeddings by, is needed")  # fmt: skip
    if not is_stated:
        part.factor = max(1.0, part.length / original)
        part.set_origin("factor", "max_position_embeddings / original_max_position_embeddings")
    elif original > 0 and abs(part.factor * original - part.length) > 0.5:
        members.note(f"factor is {part.factor:.9g} where max_position_embeddings / original_max_position_embeddings is "
                     f"{part.length / original:.9g}: the factor counts")  # fmt: skip
    if original <= 0:
        part.original_max_position_embeddings = float(part.length)
        part.origins["original_max_position_embeddings"] = part.origins["length"]


def _complete_longrope(members: Members, part: Part) -> None:
    """Computes the factor of longrope, and reads the factors of each pair. `members` are those of the object."""
    stated_factor, original = part.factor, part.original_max_position_embeddings
    part.factor = max(1.0, part.length / original)
    part.set_origin("factor", "max_position_embeddings / original_max_position_embeddings")
    if stated_factor > 0 and abs(stated_factor - part.factor) > 1e-6 * part.factor:
        members.reject(
            f"factor is {stated_factor:.9g} where max_position_embeddings / original_max_position_embeddings is "
            f"{part.factor:.9g}: they must agree (releases of that library differ in which they take)"
        )
    short, long = (member_of(members.file, name).value for name in ("short_mscale", "long_mscale"))
    if short is not None and members.kind != "phimoe":
        members.reject(f"short_mscale is {short}, which the classes of this model_type do not read: leave it out")
    if short != long or not isinstance(short, (int, float, type(None))):
        members.reject(f"short_mscale is {short} and long_mscale {long}: one attention factor, for sequences of any "
                       "length, is needed")  # fmt: skip
    if short is not None:
        part.attention_factor = float(short)
        part.origins["attention_factor"] = part.origin_in(members.path("short_mscale"), part.attention_factor)
    for name in ("short_factor", "long_factor"):
        found = member_of(members.file, name)
        accepted = Range(0.0009765625, 1e9, whole=False)
        factors = read_numbers(members, found, part.rotary_dim // 2, ", half of rotary_dim,", accepted)
        setattr(part, name, tuple(factors))
        part.origins[name] = part.origin_in(members.path(name))


def _read_axes(members: Members, rule: Rule, part: Part) -> None:
    """Reads how the axes time, height and width share the pairs of a head: in sections, or interleaved."""
    sections, found = members.find("mrope_section"), members.find("mrope_interleaved")
    interleaved = found.value is not None and bool(members.check_value(found, None))
    default = members.defaults.get("mrope_interleaved")
    if default is not None and bool(default) != interleaved:
        members.reject(f"mrope_interleaved is {str(interleaved).lower()}: the code of this model_type takes "
                       f"{'interleaved' if default else 'chunked'} sections, whatever it says")  # fmt: skip
    stated = member_of(members.file, "mrope_interleaved").value is not None
    if sections.value is None and rule.name != "mrope" and not stated:
        return
    pairs = read_numbers(members, sections, 3, " of pairs, such as [16, 24, 24],", Range(1, 1 << 24))
    if sum(pairs) != part.rotary_dim // 2:
        members.reject(f"mrope_section adds up to {sum(pairs):.10g} pairs: {part.rotary_dim // 2}, half of rotary_dim, "
                       "are needed")  # fmt: skip
    part.mrope_section = tuple(int(n) for n in pairs)
    part.origins["mrope_section"] = Origin("file" if sections.path else "class", sections.path or sections.name)
    part.mrope_layout = "qwen3_vl" if interleaved else "qwen2_vl"
    part.picture = PICTURE


def _read_parameters(members: Members, rule: Rule, part: Part) -> None:
    """Reads members that only the object for scaling may have."""
    # Least and largest value; with KEEP the file may leave the member out.
    bounds: Dict[str, Any] = {
        "low_freq_factor": (1e-6, 1e6), "high_freq_factor": (1e-6, 1e6), "attention_factor": (1e-6, 1e6, KEEP),
        "beta_fast": (1e-3, 1e6, KEEP), "beta_slow": (1e-3, 1e6, KEEP), "mscale": (0, 1e6, KEEP),
        "mscale_all_dim": (0, 1e6, KEEP),
    }  # fmt: skip
    if rule.takes("factor"):
        is_optional = rule.scaling in ("yarn", "resonance_yarn", "longrope", "proportional")
        members.read_number(part, "factor", "factor", 1, 1e6, KEEP if is_optional else REQUIRED)
    if rule.takes("alpha"):
        members.read_number(part, "factor", "alpha", 1, 1e6)
    if rule.scaling == "llama3":
        members.read_number(part, "original_max_position_embeddings", "original_max_position_embeddings", 1, 1e9)
    for name, bound in bounds.items():
        if rule.takes(name):
            members.read_number(part, name, name, *bound)
    if rule.takes("truncate"):
        members.read_truth(part, "truncate", "truncate")


def check_frequencies(members: Members, part: Part) -> None:
    """Rejects parameters for which the library computes no frequencies."""
    dim = part.dim or part.rotary_dim
    for name, value, least, most in (
        ("dim", dim, 1, 65536),
        ("beta_fast (beta_slow at least)", part.beta_fast, part.beta_slow, 2**40),
        ("high_freq_factor (low_freq_factor at least)", part.high_freq_factor, part.low_freq_factor, 2**40),
        ("partial_rotary_factor (a pair at least)", part.partial_rotary_factor, 2 / max(dim, 2), 1),
        ("factor", part.factor, 1, 1e6),
    ):
        if not least <= value <= most:
            members.reject(f"its frequencies cannot be made: {name} is {value:.10g}, expected from {least:.10g} to "
                           f"{most:.10g}")  # fmt: skip


def _check_original(members: Members, rule: Rule, part: Part) -> None:
    """Rejects an original length beside the object for scaling if releases of the library differ in whether it counts.

    Where the object of yarn has none, older releases take the length of the model.
    """
    name = "original_max_position_embeddings"
    inner, outer = (member_of(where, name).value for where in (members.rope, members.file))
    if inner is None and rule.takes("beta_fast") and is_number(outer) and outer != part.length:
        members.reject(f"{name} is {outer:.10g} beside a {members.rope_name} without it: releases of the library "
                       f"differ in whether it counts, so it belongs into {members.rope_name}")  # fmt: skip
    if rule.takes(name) and is_number(inner) and is_number(outer) and inner != outer:
        members.reject(f"{name} is {outer:.10g}, and {inner:.10g} in {members.rope_name}: releases of the library "
                       "differ in which one counts, so they must agree")  # fmt: skip


def read_scaling(members: Members, part: Part) -> None:
    """Reads how many channels rotate, and the rule of their frequencies. rope_theta was read before."""
    rule = _find_rule(members)
    _check_members(members, rule)
    _read_share(members, rule, part)
    _read_rotary_dim(members, rule, part)
    stated = member_of(members.rope, "rope_type type")
    if stated.value is not None:
        part.origins["scaling"] = members.origin_in_rope(stated.name)
    original = "original_max_position_embeddings"
    _check_original(members, rule, part)
    whose = f" for {members.rope_name} of type {rule.name}"
    within = path_of(members.root, members.rope) or ""
    # Reads the file and the object; the object alone.
    both = replace(members, whose=whose)
    alone = replace(members, file=members.rope or {}, rope=None, whose=whose, surveyed=False, assumed=[], within=within)
    part.scaling = rule.scaling
    longrope, yarn = rule.takes("short_factor"), rule.takes("beta_fast")
    if longrope or yarn:
        part.factor = 0.0
    _read_axes(alone, rule, part)
    _read_parameters(alone, rule, part)
    if longrope:
        both.read_number(part, original, original, 1, 1e9)
    elif yarn:
        both.read_number(part, original, original, 1, 1e9, 0.0)
    if rule.takes("max_position_embeddings"):
        part.max_position_embeddings = float(part.length)
    if longrope:
        _complete_longrope(alone, part)
    elif yarn:
        _complete_yarn(alone, part)
    check_frequencies(members, part)
