"""Reads members of a configuration by any of their names, and rejects values that are out of range.

All readers of model files use it: members.read_whole(part, "width", "hidden_size n_embd") sets part.width, and the
origin of its value.

A parameter `names` is a list of names separated by blanks; the first one that is present counts. Names after a "/" are
alternatives that may have other values. "a.b" is member b of an object a, and "a.0" the first item of a list a.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Set, Tuple, Union

from .part import Origin, Part

MOST = 1 << 24  # largest length, width and number of rows

# Names that few classes read. If the defaults of a type were surveyed and lack such a name, the type does not read it.
RARELY_READ = (
    "qk_rope_head_dim rotary_dim rotary_pct partial_rotary_factor rope_local_base_freq local_rope_theta "
    "global_rope_theta global_head_dim no_rope_layers no_rope_layer_interval "
    "swa_rope_theta swa_head_dim swa_num_key_value_heads num_attention_heads_per_layer"
).split()
LOOSE_QUANTITIES = ("length", "layers", "step")  # files may state them by several names; the first counts


class Rejected(Exception):
    """Raised to reject a configuration. The text names the member, its value, and the values that are accepted."""


class Member(NamedTuple):
    """A value and its name. The value is None if neither the file nor the class states it."""

    value: Any
    name: str
    path: str = ""  # in the file, "text_config.head_dim"; "" if the file lacks the member


class Default(NamedTuple):
    """Default of a quantity that no member states, and the formula of other quantities that gives it."""

    value: Union[int, float, bool]
    formula: str = ""


REQUIRED = object()  # as a default: reject the configuration
KEEP = object()  # as a default: keep the value that the part has


class Range(NamedTuple):
    """Accepted values of a number."""

    least: float
    most: float
    whole: bool = True
    even: bool = False
    divides: str = ""  # name of the quantity that the number has to divide; its value is `most`

    def __str__(self) -> str:
        if self.divides:
            return f"a divisor of {self.divides}, {self.most:.10g},"
        if not self.whole:
            return f"a number from {self.least:g} to {self.most:g}"
        return f"{'an even' if self.even else 'a whole'} number from {self.least:.10g} to {self.most:.10g}"

    def includes(self, value: float) -> bool:
        """Returns whether a number is accepted."""
        step = 1 + self.even
        return (
            self.least <= value <= self.most
            and not (self.whole and value % step)
            and not (self.divides and self.most % value)
        )


def is_number(value: Any) -> bool:
    """Returns whether a value of JSON is a number; true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def member_of(where: Any, names: str) -> Member:
    """Returns the first of several members of an object that is there and not null."""
    for name in names.split():
        value = where
        for key in name.split("."):
            if isinstance(value, list):
                value = value[int(key)] if key.isdigit() and int(key) < len(value) else None
            else:
                value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return Member(value, name)
    return Member(None, (names.split() or [""])[0])


def split_alternatives(names: str) -> List[List[str]]:
    """Returns the names of each alternative: "a b / c" has [a, b] and [c]."""
    return [group.split() for group in names.split("/")]


def path_of(root: Any, where: Any, before: str = "") -> Optional[str]:
    """Returns the path to an object that is within another, with a dot behind it; None if it is not."""
    if root is where:
        return before
    children = root.items() if isinstance(root, dict) else enumerate(root) if isinstance(root, list) else ()
    for key, value in children:
        if isinstance(value, (dict, list)):
            path = path_of(value, where, f"{before}{key}.")
            if path is not None:
                return path
    return None


@dataclass
class Members:
    """A configuration, and the defaults of the classes of its type."""

    root: Any  # the whole file
    file: Any  # the object that describes the model, or its text model
    defaults: Dict[str, Any] = field(default_factory=dict)  # a text if the class has the member and ignores it
    flags: Tuple[str, ...] = ()
    surveyed: bool = False  # the defaults list every member that the classes read
    notes: List[str] = field(default_factory=list)
    assumed: List[str] = field(default_factory=list)  # "rope_theta 10000"
    rope: Optional[Dict[str, Any]] = None  # the object for scaling
    rope_name: str = "rope_scaling"
    whose: str = ""  # follows "is missing" in a rejection
    kind: str = ""  # its model_type
    within: str = ""  # path of `file` in `root`, with a dot behind it
    before: str = ""  # prefix of every key: "llama." in a GGUF file
    moved: Dict[str, str] = field(default_factory=dict)  # paths of members that the file has at other places, by name
    fills: Dict[str, Any] = field(default_factory=dict)  # defaults of the text model in a model of several parts
    changed: Dict[str, Any] = field(default_factory=dict)  # defaults that differ in an older release of the classes
    read_keys: Set[str] = field(default_factory=set)  # keys that were read, or that agree with keys that were read

    def reject(self, reason: str) -> NoReturn:
        """Rejects the configuration."""
        raise Rejected(reason)

    def mark_read(self, *names: str) -> None:
        """Marks keys as read, so that uncovered.py does not report them."""
        self.read_keys.update(name.partition(".")[0] for name in names)

    def note(self, sentence: str) -> None:
        """Adds a note on a member that is ignored or not covered."""
        self.notes.append(sentence)

    # ---- finding ----

    def _look_up_default(self, name: str) -> Tuple[bool, Any]:
        """Returns whether there is a default, and its value. An item of a list has that of the list."""
        first, _, rest = name.partition(".")
        key = first if rest[:1].isdigit() else name
        return key in self.defaults, self.defaults.get(key)

    def reads(self, name: str, group: List[str]) -> bool:
        """Returns whether the classes of the type read a member, one of the names of a group."""
        has_default, value = self._look_up_default(name)
        if has_default:
            return not isinstance(value, str)
        if not self.surveyed:
            return True
        return name not in RARELY_READ and not any(self._look_up_default(other)[0] for other in group)

    def _find_default(self, names: List[str]) -> Member:
        """Returns the first default that the classes read."""
        for name in names:
            default_value = member_of(self.defaults, name)
            if default_value.value is not None and not isinstance(default_value.value, str):
                return default_value
        return Member(None, names[0] if names else "")

    def find_in_file(self, names: str) -> Member:
        """Returns the first member of the file that the classes read."""
        for group in split_alternatives(names):
            for name in group:
                found = member_of(self.file, name)
                if found.value is not None and self.reads(name, group):
                    self.mark_read(name)
                    return found._replace(path=self.path(found.name))
        return Member(None, (split_alternatives(names)[0] or [""])[0])

    def path(self, name: str) -> str:
        """Returns the path of a member in the file: "text_config.head_dim"."""
        return self.before + self.within + self.moved.get(name, name)

    def origin_in_rope(self, name: str, value: float = 0.0) -> Origin:
        """Returns the origin of a member of the object for scaling: of the file, or of the defaults of the class."""
        folder = path_of(self.root, self.rope)
        if folder is None:
            return Origin("class", (path_of(self.defaults, self.rope) or "") + name, value=value)
        return Origin("file", self.before + folder + name, value=value)

    def find(self, names: str) -> Member:
        """Returns the first member that is there, of the file before the defaults."""
        for group in split_alternatives(names):
            found = self.find_in_file(" ".join(group))
            if found.value is None:
                found = self._find_default(group)
            if found.value is not None:
                return found
        return Member(None, (split_alternatives(names)[0] or [""])[0])

    def find_value(self, names: str) -> Any:
        """Returns the value of the first member that is there."""
        return self.find(names).value

    def check_default(self, name: str, value: float) -> None:
        """Rejects the configuration if releases of the library have different defaults of a member."""
        if name in self.changed:
            self.reject(f"{name} is missing{self.whose}, and its default is {value:.10g} or {self.changed[name]:.10g}, "
                        "by the release of the library: state it")  # fmt: skip

    # ---- values ----

    def check_value(self, member: Member, accepted: Optional[Range]) -> Union[int, float, bool]:
        """Returns the value of a member: a number in range, or true or false where no range is given."""
        value, name = member.value, member.name
        if accepted is None:
            if not isinstance(value, bool):
                self.reject(f"{name} is neither true nor false: one of them is needed")
            return value
        if value is None:
            self.reject(f"{name} is missing{self.whose}: {accepted} is needed")
        if not is_number(value):
            self.reject(f"{name} is no number: {accepted} is needed")
        if not accepted.includes(value):
            self.reject(f"{name} is {value:.10g}: {accepted} is needed")
        return int(value) if accepted.whole else float(value)

    def _check_name(self, name: str, group: List[str], quantity: str, value: float) -> None:
        """Rejects another value of a name than the one that counts; of LOOSE_QUANTITIES it is noted and ignored."""
        stated = member_of(self.file, name).value
        if not is_number(stated):
            return
        if stated == value:
            self.mark_read(name)
        elif quantity not in LOOSE_QUANTITIES:
            unread = "" if self.reads(name, group) else ", which the classes of this model_type do not read"
            self.reject(f"{name} is {stated:.10g}{unread}, where {value:.10g} counts: they must agree")
        elif name not in RARELY_READ or self.reads(name, group):
            self.mark_read(name)
            self.note(f"{name} is {stated:.10g}, which does not count: {value:.10g} does")

    def _check_agreement(self, names: str, quantity: str, value: float) -> None:
        """Rejects a file that states another value by another name of the first alternative that it has."""
        for group in split_alternatives(names):
            for name in group:
                self._check_name(name, group, quantity, value)
            if self._find_default(group).value is not None or member_of(self.file, " ".join(group)).value is not None:
                return

    def _use_default(self, part: Part, quantity: str, missing: Member, accepted: Optional[Range], default: Any) -> Any:
        """Returns the default of a quantity, and sets its origin. `missing` has the name that the file lacks."""
        if default is KEEP:
            value = getattr(part, quantity)
            if quantity not in part.origins:
                part.origins[quantity] = Origin("assumed", self.before + missing.name, value=value)
            return value
        value, formula = default if isinstance(default, Default) else (default, "")
        if formula != quantity:
            kind, key = ("assumed", self.before + missing.name) if missing.name else ("derived", "")
            part.origins[quantity] = Origin(kind, key, part.formula(formula), value)
        if accepted and (value or formula) and not accepted.includes(value):
            self.reject(f"{missing.name} is {value:.10g}: {accepted} is needed")
        return value

    def _note_assumed(self, name: str, value: float) -> None:
        """Adds a default of the class to the list of what the file does not state."""
        self.check_default(name, value)
        text = f"{name} {value:.10g}"
        if not any(text in known for known in self.assumed):
            self.assumed.append(text)

    def _read(self, part: Part, quantity: str, names: str, accepted: Optional[Range], default: Any = REQUIRED) -> None:
        """Reads a quantity: from the object for scaling, from the file, from the class, or else the default.

        Members of the file and of the object must agree.
        """
        class_reads = quantity == "rope_theta" or self.reads(quantity, [quantity])
        in_rope = member_of(self.rope, quantity)
        inner = in_rope if class_reads else Member(None, quantity)
        outer = member_of(self.file, names)
        found = inner if inner.value is not None else self.find(names)
        if found.value is not None or default is REQUIRED:
            value = self.check_value(found, accepted)
            origin = Origin("file" if found.path else "class", found.path or found.name, value=value)
            part.origins[quantity] = self.origin_in_rope(quantity, value) if found is inner else origin
        else:
            value = self._use_default(part, quantity, found, accepted, default)
            if default is KEEP and in_rope.value is None:
                self._check_agreement(names, quantity, value)
                return
        if inner.value is not None and outer.value is not None:
            beside = self.check_value(outer, accepted)
            if beside != value:
                self.reject(f"{outer.name} is {beside:.9g}, and {inner.name} in {self.rope_name} is {value:.9g}: "
                            "they must agree")  # fmt: skip
        setattr(part, quantity, value)
        if accepted is None:
            return
        if in_rope.value is not None and not class_reads and in_rope.value != value:
            stated = in_rope.value if is_number(in_rope.value) else 0
            self.reject(f"{quantity} in {self.rope_name} is {stated:.10g}, which the classes of this model_type do not "
                        "read: leave it out")  # fmt: skip
        if self.surveyed and inner.value is None and found.value is not None and self.find_in_file(names).value is None:
            self._note_assumed(found.name, value)
        self._check_agreement(names, quantity, value)

    def read_whole(
        self, part: Part, quantity: str, names: str, least: float = 1, most: float = MOST, default: Any = REQUIRED
    ) -> None:
        """Reads a whole number from `least` to `most`. `default` is a number, a Default, KEEP or REQUIRED."""
        self._read(part, quantity, names, Range(least, most), default)

    def read_even(
        self, part: Part, quantity: str, names: str, least: float, most: float, default: Any = REQUIRED
    ) -> None:
        """Reads an even number."""
        self._read(part, quantity, names, Range(least, most, even=True), default)

    def read_divisor(self, part: Part, quantity: str, names: str, of: str, default: Any = REQUIRED) -> None:
        """Reads a divisor of another quantity."""
        self._read(part, quantity, names, Range(1, getattr(part, of), divides=of), default)

    def read_number(
        self, part: Part, quantity: str, names: str, least: float, most: float, default: Any = REQUIRED
    ) -> None:
        """Reads a number."""
        self._read(part, quantity, names, Range(least, most, whole=False), default)

    def read_truth(self, part: Part, quantity: str, names: str, default: Any = KEEP) -> None:
        """Reads true or false."""
        self._read(part, quantity, names, None, default)


def read_numbers(members: Members, member: Member, count: int, needed: str, accepted: Range) -> List[float]:
    """Returns a list of `count` numbers. `needed` describes them in the text of a rejection."""
    words = f"an array of {count} numbers{needed} is needed"
    if not isinstance(member.value, list):
        what = "missing" if member.value is None else "no array"
        members.reject(f"{member.name} is {what}{members.whose}: {words}")
    if len(member.value) != count:
        members.reject(f"{member.name} has {len(member.value)} numbers: {words}")
    for i, value in enumerate(member.value):
        if value is None:
            members.reject(f"{member.name}[{i}] is null: {accepted} is needed")
    return [members.check_value(Member(value, f"{member.name}[{i}]"), accepted) for i, value in enumerate(member.value)]
