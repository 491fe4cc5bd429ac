"""Table of model types: the encoding of each type, and the defaults of its classes.

config.py looks up model_type here, such as "llama" (rope_half, rope_theta 10000 by default), and finds the text model
and the vision tower of a model of several parts.
"""

import difflib
import functools
import json
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from .members import Members

NESTED = 4  # levels of models within models


class ModelType(NamedTuple):
    """A row of types.txt, whose head explains encodings and flags."""

    name: str
    encoding: str
    flags: Tuple[str, ...]
    defaults: Dict[str, Any]  # members that a file may leave out
    note: str  # what the code of the type does besides
    fills: Dict[str, Any] = {}  # defaults of the text model, if the type consists of parts
    changed: Dict[str, Any] = {}  # defaults that differ in an older release of the library
    unread: Dict[str, Any] = {}  # members that its class saves and no code reads, with the value that changes nothing

    @property
    def rejected(self) -> bool:
        """True if posenc does not support its encoding."""
        return "unsupported" in self.flags

    @property
    def composite(self) -> bool:
        """True if it consists of parts. Its defaults are then their names and types, text first."""
        return self.encoding == "composite"


def rows(path: Path, columns: int) -> Iterator[List[str]]:
    """Yields the rows of a table as its `columns` cells, between which lines have "|". Comments begin with #."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            cells = [cell.strip() for cell in line.split("|", columns - 1)]
            yield cells + [""] * (columns - len(cells))


@functools.lru_cache(None)
def types() -> Dict[str, ModelType]:
    """Returns the table."""
    table = {}
    for name, encoding, flags, members, note in rows(Path(__file__).parent / "types.txt", 5):
        defaults = json.loads(f"{{{members}}}")
        more = {key: defaults.pop(key, {}) for key in ("fills", "unread", "changed")}
        table[name] = ModelType(name, encoding, tuple(flags.split()), defaults, note, **more)
    return table


def type_of(name: Any) -> Optional[ModelType]:
    """Returns the type of a name, if it is known."""
    return types().get(name) if isinstance(name, str) else None


def _model_type_of(value: Any) -> Optional[str]:
    """Returns the member model_type of an object, if it is a text."""
    name = value.get("model_type") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None


def without_unread(file: Dict[str, Any], dropped: Dict[str, Any], name: Optional[str] = None) -> Dict[str, Any]:
    """Returns a model and its parts without members that no code reads, which are added to `dropped`.

    `name` is its model type if the file states none.
    """
    kind = type_of(_model_type_of(file) or name)
    unread = kind.unread if kind else {}
    parts = kind.defaults if kind and kind.composite else {}
    kept = {}
    for key, value in file.items():
        if key in unread and value == unread[key] and isinstance(value, bool) == isinstance(unread[key], bool):
            dropped[key] = value
            continue
        inner = isinstance(value, dict) and (key in parts or "model_type" in value)
        kept[key] = without_unread(value, dropped, parts.get(key)) if inner else value
    return kept


def similar(name: str, names: Iterable[str], cutoff: float) -> List[str]:
    """Returns the names that begin with `name`; if there are none, at most three that resemble it."""
    names = list(names)
    begun = [known for known in names if known.startswith(name)] if name else []
    return begun or difflib.get_close_matches(name, names, cutoff=cutoff)


def unknown_type_message(name: Optional[str]) -> str:
    """Returns the message that rejects a model type that is not in the table."""
    close = similar(name or "", types(), 0.75)
    return (
        f"model_type '{(name or '(none)')[:60]}' is unknown among {len(types())} types"
        + (f"; near to it: {', '.join(close)}" if close else "")
        + '.  Say how it encodes positions: "_posenc": {"encoding": "rope_half"}, or give the model_type whose code '
        "it shares"
    )


def find_text(members: Members) -> Optional[str]:
    """Finds the text model of a configuration: sets members.file, and returns the name of its type."""
    members.file = members.root
    name = _model_type_of(members.root)
    for _ in range(NESTED):
        kind = type_of(name)
        composite = kind if kind and kind.composite else None
        key, type_of_text = next(iter(composite.defaults.items())) if composite else ("text_config", None)
        inside = members.file if isinstance(members.file, dict) else {}
        text = inside.get(key, inside.get("text_config") if composite else None)
        if composite:
            members.fills = composite.fills
        if text is not None:
            if not isinstance(text, dict):
                members.reject(f"{key} is no object: one with the sizes of the text model, or null, is needed")
            members.file = text
            name = _model_type_of(text) or type_of_text or name
        elif composite:
            if "own_defaults" in composite.flags:
                members.reject(f"{key} is not there, and the class of {composite.name} has other sizes for it than "
                               f"that of {type_of_text}: it is needed")  # fmt: skip
            name = type_of_text
            if "flat" not in composite.flags:
                members.note(f"{key} is not there: that of the defaults of its class, {type_of_text}, is meant")
                members.file = {}
        else:
            break
    return name


class Tower(NamedTuple):
    """A vision tower that rotates: its key, its configuration and its type."""

    key: str
    file: Dict[str, Any]
    type: ModelType


def _name_read_part(members: Members) -> str:
    """Returns the name of the part that was read, for a note."""
    path = members.within.rstrip(".")
    return path if "vision" in path or "backbone" in path else "text"


def _note_other_part(members: Members, key: str, name: Optional[str]) -> None:
    """Adds a note on a part that is not read, such as an audio tower."""
    kind = type_of(name)
    if not kind:
        members.note(f"{key} is not covered: this is the model of {_name_read_part(members)} alone")
    elif kind.encoding == "none" and not kind.note:
        members.note(f"{key}, {name}, has no positions of a kind that is known")
    elif kind.rejected:
        members.note(f"{key} is not covered: of {name} {kind.note}")
    else:
        members.note(f"{key} is not covered: this is the model of {_name_read_part(members)} alone; a file of it "
                     f"alone, of model_type {name}, is read")  # fmt: skip


def _contains(where: Any, inner: Any) -> bool:
    """Returns whether an object is `inner` or has it within."""
    return where is inner or (isinstance(where, dict) and any(_contains(value, inner) for value in where.values()))


def find_tower(members: Members, whole: Any = None, kind: Optional[ModelType] = None) -> Optional[Tower]:
    """Returns the first vision tower of a model that rotates. Notes the parts that are not read.

    `whole` is the model, the file by default, and `kind` its type.
    """
    if whole is None:
        whole, kind = members.root, type_of(_model_type_of(members.root))
    parts = kind.defaults if kind and kind.composite else {}
    first: Optional[Tower] = None
    for key, value in whole.items():
        default_name = parts.get(key)
        is_part = default_name or key in ("vision_config", "audio_config")
        if not isinstance(value, dict) or key == "text_config" or not is_part:
            continue
        stated_name = _model_type_of(value)
        part_kind = type_of(stated_name)
        if not part_kind or part_kind.composite:
            part_kind = type_of(default_name)
        if _contains(value, members.file):
            deeper = find_tower(members, value, part_kind)
            first = first or deeper
        elif not first and part_kind and "tower" in part_kind.flags:
            first = Tower(key, value, part_kind)
        else:
            _note_other_part(members, key, stated_name or default_name)
    return first
