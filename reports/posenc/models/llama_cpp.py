"""Reads the metadata of a GGUF file as llama.cpp does: how the model encodes positions.

model.py calls read_llama_cpp() with the keys that gguf.py found. The architecture "llama" with attention.head_count 32,
attention.head_count_kv 8 and rope.freq_base 500000 has one part: rope_interleaved, heads 32, key_heads 8, rope_theta
500000. architectures.txt has the facts about architectures that files lack.

Sources: ggml-org/llama.cpp, src/llama-model.cpp, src/llama-context.cpp and src/models; ggml-org/ggml, ggml_rope_ext.
"""

import functools
import itertools
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .config import Reading
from .members import KEEP, Member, Members, Default, Range, is_number, read_numbers
from .part import Frequencies, Part
from .scaling import PICTURE, check_frequencies
from .types import rows
from .uncovered import note_besides

# Keys of rope, and the architectures that read them, by flag, encoding or name; "" if all do.
ROPE_KEYS = {
    "freq_base": "", "dimension_count": "", "scale_linear": "", "freq_base_swa": "slides slides_if",
    "dimension_count_swa": "slides slides_if", "dimension_sections": "mrope imrope mrope_or_norm mrope_or_neox",
    "scaling.type": "", "scaling.factor": "", "scaling.attn_factor": "", "scaling.original_context_length": "",
    "scaling.finetuned": "", "scaling.alpha": "alpha", "scaling.yarn_log_multiplier": "log10 log1",
    "scaling.yarn_ext_factor": "grok", "scaling.yarn_attn_factor": "grok", "scaling.yarn_beta_fast": "betas",
    "scaling.yarn_beta_slow": "betas",
}  # fmt: skip
ATTENTION_KEYS = (
    "head_count head_count_kv key_length value_length key_length_swa value_length_swa head_count_kv_sliding "
    "key_length_mla value_length_mla layer_norm_epsilon layer_norm_rms_epsilon group_norm_epsilon group_norm_groups "
    "causal clamp_kqv max_alibi_bias q_lora_rank kv_lora_rank relative_buckets_count sliding_window "
    "sliding_window_pattern scale output_scale value_scale temperature_length temperature_scale shared_kv_layers"
).split()
STOPS = float(1 << 60)  # a factor from here on stops the rotation of a pair: the converter of Gemma 4 writes 1e30
# Tensors that divide frequencies: of short sequences, of long ones, of any.
SHORT_FACTORS, LONG_FACTORS, FACTORS = "rope_factors_short.weight", "rope_factors_long.weight", "rope_freqs.weight"
# Layers with and without a window make one part if all of these are equal.
ALIKE = ("key_heads", "head_dim", "rotary_dim", *Frequencies.__dataclass_fields__)


class Architecture(NamedTuple):
    """A row of architectures.txt, whose head explains encodings, flags and patterns."""

    name: str
    encoding: str  # norm, neox, mrope, imrope, mrope_or_norm, mrope_or_neox, learned, t5, alibi or rejected
    flags: Tuple[str, ...]
    pattern: str  # "4": the last of every 4 layers has full attention; "first 4": the first; "": the file states it
    note: str


@functools.lru_cache(None)
def architectures() -> Dict[str, Architecture]:
    """Returns the table."""
    return {
        name: Architecture(name, encoding, tuple(flags.split()), pattern, note)
        for name, encoding, flags, pattern, note in rows(Path(__file__).parent / "architectures.txt", 5)
    }


def _is_set(value: Any) -> bool:
    """Returns whether an item of a list of layers is true or a number above 0."""
    return isinstance(value, int) and value > 0


@dataclass
class Gguf:
    """A GGUF file that is being read. read(), at the end, has the order of the steps."""

    members: Members
    kind: Architecture
    parts: List[Part]  # the result

    def has_flag(self, flag: str) -> bool:
        """Returns whether the table has a flag for the architecture."""
        return flag in self.kind.flags

    # ---- keys that are there and do not count ----

    def check_rope_keys(self, where: Any, before: str = "") -> None:
        """Rejects keys of rope that are not known; notes those that llama.cpp does not read of such a model."""
        for key, value in (where or {}).items():
            name = before + key
            if isinstance(value, dict) and not before:
                self.check_rope_keys(value, f"{name}.")
                continue
            if name not in ROPE_KEYS:
                self.members.reject(f"rope.{name[:60]} is a key that this reader does not know: it may change the "
                                    "numbers")  # fmt: skip
            readers = ROPE_KEYS[name].split()
            if readers and not {self.kind.encoding, self.kind.name, *self.kind.flags} & set(readers):
                self.members.note(f"llama.cpp does not read rope.{name} of such a model")

    # ---- heads ----

    def merge_key_heads_by_type(self) -> None:
        """Replaces a list of key heads by one number for layers of full attention, and one for those with a window."""
        attention = self.members.file.setdefault("attention", {})
        attention.pop("head_count_kv_sliding", None)
        heads, pattern = attention.get("head_count_kv"), attention.get("sliding_window_pattern") or []
        if not self.has_flag("by_type") or not isinstance(heads, list):
            return
        if len(heads) > len(pattern):
            self.members.reject(f"attention.head_count_kv has {len(heads)} numbers, and "
                                f"attention.sliding_window_pattern {len(pattern)}: as many are needed")  # fmt: skip
        counts = [0, 0]  # of layers with full attention, with a window
        for layer, count in enumerate(heads):
            slides = int(_is_set(pattern[layer]))
            counts[slides] = counts[slides] or count
            if counts[slides] != count:
                self.members.reject(f"attention.head_count_kv is {count} of layer {layer} and {counts[slides]} of "
                                    "others of its kind: they must agree")  # fmt: skip
        attention["head_count_kv"], attention["head_count_kv_sliding"] = counts

    def merge_heads_by_layer(self) -> int:
        """Replaces lists of heads by the numbers of the first layer that has heads.

        Returns how many layers have these numbers; 0 if there are no lists.
        """
        attention = self.members.file["attention"]
        blocks = self.members.find_value("block_count")
        blocks = blocks if isinstance(blocks, int) else 0
        lists = {name: attention.get(name) for name in ("head_count", "head_count_kv")}
        for name, value in lists.items():
            if isinstance(value, list) and len(value) < blocks:
                self.members.reject(f"attention.{name} has {len(value)} numbers: one for each of {blocks} layers is "
                                    "needed")  # fmt: skip
        if not any(isinstance(value, list) for value in lists.values()):
            return 0

        def of_layer(layer: int) -> Tuple[int, int]:
            """Returns the heads of queries and of keys."""
            queries, keys = (value[layer] if isinstance(value, list) else value for value in lists.values())
            return queries or 0, queries or 0 if keys is None else keys

        attending = [heads for heads in map(of_layer, range(blocks)) if min(heads) > 0]
        first = attending[0] if attending else (0, 0)
        alike = attending.count(first)
        if len(attending) > alike:
            self.members.note(f"{len(attending) - alike} of {blocks} layers have other numbers of heads than the "
                              "first: not covered")  # fmt: skip
        for name, count in zip(lists, first):
            if lists[name] is not None:
                attention[name] = count
        return alike

    # ---- axes ----

    def read_sections(self, part: Part) -> None:
        """Reads how three axes share the pairs of a head: rope.dimension_sections [16, 24, 24, 0] of 64 pairs."""
        found = self.members.find("rope.dimension_sections")
        sections = found.value if isinstance(found.value, list) else []
        sections = [pairs if isinstance(pairs, int) else 0 for pairs in sections[:4]]
        total = sum(sections)
        sections += [0] * (4 - len(sections))
        if "_or_" in self.kind.encoding and (sections[0] <= 0 or sections[1] <= 0):
            return
        if min(sections[:3]) < 1 or sections[3] != 0 or total != part.rotary_dim // 2:
            what = "missing" if found.value is None else "of other numbers"
            self.members.reject(f"{found.name} is {what}: three numbers of pairs and a 0 are needed, which add up to "
                                f"{part.rotary_dim // 2}, half of rope.dimension_count")  # fmt: skip
        interleaved = self.kind.encoding == "imrope"
        past = sum(pair >= 3 * sections[pair % 3] for pair in range(total)) if interleaved else 0
        if past:
            self.members.note(f"ggml turns {past} pairs past the sections by a fourth axis, which is 0 for text: here "
                              "they turn with the first")  # fmt: skip
        part.mrope_section, part.mrope_layout = tuple(sections[:3]), "qwen3_vl" if interleaved else "qwen2_vl"
        part.picture = PICTURE
        part.encoding = "rope_half"

    # ---- scaling ----

    def _reads_factors(self, name: str, kind: str) -> bool:
        """Returns whether llama.cpp reads a tensor beside a scaling of this kind."""
        longrope = kind == "longrope"
        if name == FACTORS:
            return self.has_flag("factors") and not longrope
        return self.has_flag("always_long") or (self.has_flag("long") and longrope)

    def _read_factors(self, name: str, part: Part, kind: str) -> Optional[Tuple[float, ...]]:
        """Returns the factors of a tensor, times that of the keys; None if the file lacks the tensor."""
        factors = self.members.file["tensors"].get(name)
        if factors is None:
            return None
        if not self._reads_factors(name, kind):
            self.members.reject(f"the tensor {name}: such a model has none where its scaling is {kind}")
        pairs = part.rotary_dim // 2
        member, accepted = Member(factors[:pairs], name), Range(0.0009765625, 1e38, whole=False)
        found = read_numbers(self.members, member, pairs, ", one for each pair,", accepted)
        return tuple(factor * part.factor for factor in found)

    def _scale_by_tensors(self, part: Part, kind: str) -> None:
        """Divides angles by factors: at any length, or by short ones up to the trained context and long ones after."""
        fixed, short, long = (self._read_factors(name, part, kind) for name in (FACTORS, SHORT_FACTORS, LONG_FACTORS))
        if not fixed and not short and not long:
            return
        if not fixed and not (short and long):
            lacks, there = (LONG_FACTORS, SHORT_FACTORS) if short else (SHORT_FACTORS, LONG_FACTORS)
            self.members.reject(f"the tensor {lacks} is missing beside {there}")
        if kind == "yarn":
            self.members.reject("rope.scaling.type is yarn beside a tensor of factors: one of them is needed")
        part.set_origin("scaling", f"the tensor {FACTORS if fixed else SHORT_FACTORS}")
        rotating = sum(1 for _ in itertools.takewhile(lambda factor: factor == part.factor, fixed or ()))
        if fixed and 0 < rotating < len(fixed) and all(factor >= STOPS for factor in fixed[rotating:]):
            self.members.note(f"The factors of {FACTORS} stop all pairs but the first {rotating}; of such a scaling "
                              "numerics mode ggml_f32 has no tables")  # fmt: skip
            part.partial_rotary_factor = (rotating + 0.5) / len(fixed)
            part.scaling = "proportional"
            return
        part.scaling, part.factor = "longrope", 1.0
        part.short_factor, part.long_factor = fixed or short or (), fixed or long or ()
        if fixed:
            part.original_max_position_embeddings = float(part.length)
        else:
            self.members.note(
                "llama.cpp takes the long factors where the context it was given is longer than "
                f"{part.original_max_position_embeddings:.10g}, here they count past that length"
            )

    def _scale_yarn(self, part: Part) -> None:
        """Sets YaRN. Its attention factor is the magnitude of mscale, divided by that of mscale_all_dim if stated."""

        def magnitude(mscale: float) -> float:
            return 0.1 * mscale * math.log(part.factor) + 1

        all_dim = part.mscale_all_dim * (10 if self.has_flag("log10") else 1)
        if all_dim <= 0:
            part.attention_factor *= magnitude(1)
        elif self.kind.name != "deepseek2" or abs(all_dim - 1) <= 1e-6:  # otherwise mscale is mscale_all_dim
            part.attention_factor *= magnitude(1) / magnitude(all_dim)
        part.mscale_all_dim = 0.0
        part.scaling = "yarn"

    def _read_scaling_type(self, part: Part) -> str:
        """Returns rope.scaling.type: none, linear (also without the key), yarn or longrope."""
        members = self.members
        found = members.find("rope.scaling.type")
        kind = "linear" if found.value is None else found.value
        if found.value is not None:
            part.origins["scaling"] = part.origin_in(members.before + found.name)
        if kind not in ("none", "linear", "yarn", "longrope"):
            word = kind[:60] if isinstance(kind, str) else "(no text)"
            members.reject(f"rope.scaling.type is '{word}': known are none, linear, yarn, longrope")
        extends = members.find_value("rope.scaling.yarn_ext_factor")
        if self.kind.name == "grok" and extends is not None and not (extends == 1 and kind == "yarn"):
            members.reject(f"rope.scaling.yarn_ext_factor is {extends:g} with a scaling of type {kind}: 1 with yarn is "
                           "needed")  # fmt: skip
        return str(kind)

    def scale(self, part: Part) -> None:
        """Sets how frequencies are scaled: by alpha, by tensors, or else by the factor of the keys."""
        members = self.members
        kind = self._read_scaling_type(part)
        if part.factor <= 0 or kind == "none":
            part.factor = 1.0
        if part.factor < 1:
            members.reject(f"rope.scaling.factor is {part.factor:g}: 0 or a number from 1 is needed")
        if part.original_max_position_embeddings <= 0:
            part.original_max_position_embeddings = float(part.length)
        alpha, part.mscale = part.mscale, 0.0
        if alpha > 0:
            if part.factor > 1:
                members.reject(f"rope.scaling.alpha beside a factor of {part.factor:g}: one of them is needed")
            part.factor, part.scaling = alpha, "ntk"
            part.set_origin("scaling", f"{members.before}rope.scaling.alpha")
        else:
            self._scale_by_tensors(part, kind)
            original = part.original_max_position_embeddings
            if self.has_flag("always_long") and part.scaling == "none" and original < part.length:
                members.note(f"The file has no {LONG_FACTORS}, and a context longer than the {original:.10g} tokens "
                             "trained on: llama.cpp then scales nothing")  # fmt: skip
        if part.scaling != "none" or part.factor <= 1:
            return
        if kind == "yarn":
            self._scale_yarn(part)
        else:
            part.scaling = "linear"

    # ---- layers with a window, which slides ----

    def _count_by_pattern(self, layers: int, every: Optional[int] = None) -> int:
        """Returns how many of the layers the pattern of the table counts, or one in `every`."""
        number = re.search(r"\d+", self.kind.pattern)
        if every is None:
            every = int(number[0]) if number else 0
        if every < 1:
            return 0
        return -(-layers // every) if self.kind.pattern.startswith("first") else layers // every

    def _count_full(self, layers: int) -> int:
        """Returns how many layers have full attention, by the file's list or number, or the table's."""
        stated = self.members.find_value("attention.sliding_window_pattern")
        if isinstance(stated, list):
            return sum(not _is_set(slides) for slides in stated[:layers])
        return self._count_by_pattern(layers, stated if isinstance(stated, int) else None)

    def _has_sliding(self, layers: int) -> bool:
        """Returns whether some layers have a window."""
        window = self.members.find_value("attention.sliding_window")
        if self.has_flag("by_layers"):
            return self.has_flag("slides_if") and layers == 64
        if window is None and self.has_flag("slides_unset"):
            return True
        return self.has_flag("slides") or (self.has_flag("slides_if") and is_number(window) and window > 0)

    def _make_sliding(self, full: Part) -> Part:
        """Returns the rotation of the layers with a window: that of `full`, with a base or heads of their own."""
        part = replace(full, name="sliding", origins=dict(full.origins))
        if self.has_flag("plain") or self.has_flag("unscaled"):
            part.scaling = "none"
            part.factor = part.partial_rotary_factor = part.attention_factor = 1.0
        if self.has_flag("plain"):
            stated = self.members.find_value("rope.scaling.attn_factor")
            part.attention_factor = float(stated) if is_number(stated) else 1.0
            part.rope_theta = 10000.0
            part.set_origin("rope_theta", "llama.cpp's constant for layers that slide")
        members = self.members
        members.read_divisor(part, "key_heads", "attention.head_count_kv_sliding", "heads",
                             Default(part.key_heads, "key_heads"))  # fmt: skip
        members.read_whole(part, "head_dim", "attention.key_length_swa", default=Default(part.head_dim, "head_dim"))
        rotary = Default(part.head_dim, "head_dim")
        members.read_even(part, "rotary_dim", "rope.dimension_count_swa", 2, part.head_dim, rotary)
        members.read_number(part, "rope_theta", "rope.freq_base_swa", 1e-6, 1e30, KEEP)
        part.dim = part.rotary_dim
        if self.has_flag("unscaled"):
            part.rope_theta = full.rope_theta
        return part

    def _subtract_unrotated(self, part: Part) -> None:
        """Subtracts the layers of the pattern, which do not rotate in this architecture."""
        own_base = self.members.find_value("rope.freq_base_swa")
        if is_number(own_base) and own_base != part.rope_theta:
            self.members.reject(f"rope.freq_base_swa is {own_base:g} beside a base of {part.rope_theta:g}: one base is "
                                "known of a model whose layers do not all turn")  # fmt: skip
        unrotated = self._count_by_pattern(part.layers)
        self.members.note(f"{unrotated} of {part.layers} layers do not rotate (its architecture)")
        part.layers -= unrotated

    def add_layers(self, part: Part) -> None:
        """Adds the rotation of all layers, or one of those with full attention and one of those with a window."""
        slides, members = self._has_sliding(part.layers), self.members
        if slides and not self.kind.pattern and members.find_value("attention.sliding_window_pattern") is None:
            members.reject("attention.sliding_window_pattern is missing: a list that says which layers slide is needed")
        full = self._count_full(part.layers) if slides else part.layers
        self.parts.append(part)
        if self.has_flag("rests") or (self.has_flag("rests_if") and slides):
            self._subtract_unrotated(part)
            return
        if not slides:
            return
        if self.has_flag("alone"):
            members.note(
                f"{full} of {part.layers} layers do not rotate: those that attend to all positions (its architecture)"
            )
            part.layers -= full
            return
        sliding = self._make_sliding(part)
        if all(getattr(part, name) == getattr(sliding, name) for name in ALIKE):
            return
        members.note(f"{full} of {part.layers} layers have full attention, the others slide")
        part.name = "full"
        sliding.layers, part.layers = part.layers - full, full
        for rotation in (part, sliding):
            rotation.set_origin("layers", f"{members.before}block_count, and which of them slide")
        self.parts.append(sliding)

    # ---- parts ----

    def _read_encoding(self, part: Part) -> bool:
        """Sets which encoding it is. Returns whether only the number of Baichuan's layers says that."""
        layers, encoding = self.members.find_value("block_count"), self.kind.encoding
        by_layers = self.has_flag("by_layers") and not self.has_flag("slides_if")
        if by_layers and layers not in (32, 40):
            self.members.reject(f"block_count is {layers}: of a baichuan model 32 (a rotation) or 40 (ALiBi) is needed "
                                "to know its encoding")  # fmt: skip
        part.set_origin("encoding", "block_count" if by_layers else "general.architecture", 0)
        rotation = "rope_interleaved" if "norm" in encoding else "rope_half"
        part.encoding = encoding if encoding in ("learned", "t5", "alibi") else rotation
        if by_layers and layers == 40:
            part.encoding = "alibi"
        return by_layers

    def _read_sizes(self, part: Part) -> None:
        """Reads the sizes that all architectures have."""
        members = self.members
        members.read_whole(part, "length", "context_length")
        members.read_whole(part, "width", "embedding_length")
        members.read_whole(part, "layers", "block_count", 1, 65536)
        members.read_whole(part, "step", "nextn_predict_layers", 0, part.layers - 1, 0)
        part.set("layers", part.layers - part.step, "layers - step")
        members.read_whole(part, "heads", "attention.head_count", 1, 65536)
        width = Default(part.width // part.heads, "width / heads")
        members.read_whole(part, "head_dim", "attention.key_length", default=width)

    def _read_rotation(self, part: Part) -> None:
        """Reads the sizes and the parameters of a rotation."""
        members = self.members
        members.read_divisor(part, "key_heads", "attention.head_count_kv", "heads", Default(part.heads, "heads"))
        whole = Default(part.head_dim, "head_dim")
        members.read_even(part, "rotary_dim", "rope.dimension_count", 2, part.head_dim, whole)
        members.read_number(part, "rope_theta", "rope.freq_base", 1e-6, 1e30, 10000.0)
        if self.has_flag("whole") and part.head_dim != part.rotary_dim:
            members.reject(f"rope.dimension_count is {part.rotary_dim} of heads of {part.head_dim}: such a model turns "
                           "all of a head")  # fmt: skip
        if self.has_flag("latent"):
            part.set("head_dim", part.rotary_dim, "rotary_dim")
            part.set("key_heads", 1)
        if self.has_flag("mixed"):
            members.read_whole(part, "step", "full_attention_interval", 1, 65536, 4)
            part.set("layers", part.layers // part.step, "layers / step")
        part.ggml = True
        members.read_number(part, "factor", "rope.scaling.factor rope.scale_linear", 0, 1e6, 0.0)
        original = "original_max_position_embeddings"
        members.read_number(part, original, "rope.scaling.original_context_length", 0, 1e9, 0.0)
        members.read_number(part, "attention_factor", "rope.scaling.attn_factor", 1e-6, 1e6, 1.0)
        if self.has_flag("betas"):
            members.read_number(part, "beta_fast", "rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32.0)
            members.read_number(part, "beta_slow", "rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1.0)
        if self.has_flag("log10") or self.has_flag("log1"):
            members.read_number(part, "mscale_all_dim", "rope.scaling.yarn_log_multiplier", 0, 1e6, 0.0)
        if self.has_flag("alpha"):
            members.read_number(part, "mscale", "rope.scaling.alpha", 0, 1e6, 0.0)

    def _read_other(self, part: Part, alibi_of_8: bool) -> None:
        """Reads ALiBi, T5 or a learned table. With `alibi_of_8` slopes of ALiBi are fixed."""
        members = self.members
        if part.encoding == "alibi" and alibi_of_8:
            part.set("alibi_bias_max", 8.0)
        elif part.encoding == "alibi":
            members.read_number(part, "alibi_bias_max", "attention.max_alibi_bias", 1e-3, 64)
        elif part.encoding == "t5":
            members.read_even(part, "num_buckets", "attention.relative_buckets_count", 4, 4096)
            part.set("max_distance", 128)
            members.read_whole(part, "decoder_layers", "decoder_block_count", 0, 65536, Default(part.layers, "layers"))
        else:
            part.set("tabled", True)
            part.set("rows", part.length, "length")

    def read(self) -> None:
        """Reads all parts."""
        part = Part()
        self.merge_key_heads_by_type()
        alike = self.merge_heads_by_layer()
        by_layers = self._read_encoding(part)
        if part.rotates:
            self.check_rope_keys(self.members.file.get("rope"))
        self._read_sizes(part)
        part.decodes = not self.has_flag("encoder")
        if part.rotates:
            self._read_rotation(part)
        else:
            self._read_other(part, by_layers or self.has_flag("eight"))
        part.layers = alike or part.layers
        for key in self.members.file["attention"]:
            if key not in ATTENTION_KEYS:
                self.members.note(f"attention.{key[:60]} is not covered")
        if not part.rotates:
            self.parts.append(part)
            return
        if self.has_flag("switch") and self.members.find_value("rope.scaling.finetuned") is False:
            self.members.reject("rope.scaling.finetuned is false: such a model then encodes no positions")
        self.members.note("It forms its angles as numerics mode ggml_f32 does")
        part.dim = part.rotary_dim
        if "mrope" in self.kind.encoding:
            self.read_sections(part)
        self.scale(part)
        check_frequencies(self.members, part)
        self.add_layers(part)


def read_llama_cpp(root: Dict[str, Any]) -> Reading:
    """Reads the result of read_gguf(), and modifies it."""
    name = root["architecture"]
    members = Members(root=root, file=root, before=f"{name}.")
    members.note("As llama.cpp reads it")
    kind = architectures().get(name)
    if not kind:
        known = ", ".join(row.name for row in architectures().values() if row.encoding != "rejected")
        members.reject(f"general.architecture '{name[:60]}' is unknown; known: {known}")
    if kind.encoding == "rejected":
        members.reject(f"general.architecture '{name}' is not read: {kind.note}")
    if kind.note:
        members.note(kind.note)
    gguf = Gguf(members, kind, [])
    gguf.read()
    note_besides(members, name)
    facts = {"title": root["name"], "source": "the GGUF file given"}
    return Reading(gguf.parts, members.notes, facts, name, "general.architecture")
