"""Reads a model file or a preset: which positional encodings it has, and the problems that check and time them.

posenc explain and posenc explore call read_model() and preset(); the C program reads the record of a model. A file is
named by its path, its folder, or org/name in the local cache of the Hugging Face hub.
"""

import functools
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, Optional, Tuple, Union

from .calls import Case, calls_of
from .config import Reading, read_config
from .gguf import read_gguf
from .llama_cpp import read_llama_cpp
from .members import Rejected
from .other_json import is_diffusers, is_params, read_diffusers, read_params
from .types import similar

JSON_NEEDED = "the JSON text of a Hugging Face config.json or of a params.json, or a GGUF file, is needed"
# Sentences about how the code of a model forms its angles, by numerics mode.
TRAINED = {
    "hf_f32": "The code it was published with forms its angles in f32: numerics mode `hf_f32` gives the numbers it "
    "was trained with, `exact` those of the formula.",
    "exact": "The code it was trained with forms its angles in f64: numerics mode `exact` gives the numbers it was "
    "trained with.",
    "torch_exp_f32": "The code it was published with forms its frequencies by exp in f32: numerics mode "
    "`torch_exp_f32` gives the numbers it was trained with, `exact` those of the formula.",
}
LONGEST_NAME = 40  # characters of a model's name in ids
PRESETS = Path(__file__).parent / "presets.txt"
NEEDED = "the path of a Hugging Face config.json, a params.json or a GGUF file"
HUB_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*/[A-Za-z0-9._-]+")
COMMIT = re.compile("[0-9a-f]{1,64}")
LATER_SHARD = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")


@dataclass
class Model:
    """A model: the data of its file, and its calls."""

    name: str  # in ids: llama-3.1-8b
    reading: Reading
    cases: List[Case]  # problems to check and to time
    verify: List[str]  # problems that are only checked

    @property
    def notes(self) -> str:
        """Notes on members of the file that are not covered or are ignored."""
        return ".  ".join(self.reading.notes)

    @property
    def trained(self) -> str:
        """Sentence about the rounding of angles in training; "" if the model has no angles."""
        angles = self.reading.parts[0].rotates or self.reading.parts[0].encoding == "sinusoidal"
        unknown = "With which rounding of the angles it was trained is not known." if angles else ""
        return TRAINED.get(self.reading.facts.get("trained_numerics", ""), unknown)

    def record(self) -> Dict[str, Any]:
        """Returns the record that the C program reads."""
        reading, first = self.reading, self.reading.parts[0]
        return {
            "name": self.name, "title": reading.facts["title"], "source": reading.facts.get("source", ""),
            "checked": reading.facts.get("checked", ""), "notes": self.notes, "encoding": first.encoding,
            "trained_numerics": reading.facts.get("trained_numerics", ""), "trained": self.trained,
            "max_position_embeddings": first.length, "storage": reading.storage, "storage_from": reading.storage_from,
            "cases": [asdict(case) for case in self.cases], "verify": self.verify,
        }  # fmt: skip


# ---- places of files ----


def _find_in_folder(folder: Path) -> Path:
    """Returns the model file of a folder."""
    for name in ("config.json", "params.json"):
        if (folder / name).exists():
            return folder / name
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise Rejected(f"{error.strerror}: a folder that can be read is needed") from None
    found = [file for file in files if file.suffix == ".gguf" and not LATER_SHARD.search(file.name)]
    if not found:
        raise Rejected("it is a folder without a config.json, a params.json or a .gguf file: one of them is needed")
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise Rejected(f"it is a folder with {len(found)} .gguf files: the path of one is needed: {names}")
    return found[0]


def _hub_cache() -> Optional[Path]:
    """Returns the folder of the hub's local cache, as huggingface_hub finds it."""
    for variable, below in (
        ("HF_HUB_CACHE", ""), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub"),
        ("HOME", ".cache/huggingface/hub"),
    ):  # fmt: skip
        if os.environ.get(variable):
            return Path(os.environ[variable]) / below
    return None


def _find_in_cache(model: str) -> Path:
    """Returns the file of org/name in the hub's local cache, at the commit that its branch main has there."""
    cache = _hub_cache()
    if not cache:
        raise Rejected("there is no such file, and no HOME in which the hub's local cache would be")
    folder = cache / f"models--{model.replace('/', '--')}"
    main = folder / "refs" / "main"
    try:
        commit = main.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        commit = ""
    if not COMMIT.fullmatch(commit):
        raise Rejected(f"there is no such file, and in the hub's local cache no {main} (a commit), which names the "
                       f"folder of its config.json, {folder}/snapshots/COMMIT; no network is used")  # fmt: skip
    snapshot = folder / "snapshots" / commit
    try:
        return _find_in_folder(snapshot)
    except Rejected as why:
        text = f"there is no such file, and in the hub's local cache {snapshot}: {why}; no network is used"
        raise Rejected(text) from None


def find_file(text: str) -> Tuple[Path, str]:
    """Returns the file that a text means, and a sentence about how it was found; "" where the text was its path."""
    path = Path(text)
    if text and path.is_dir():
        found = _find_in_folder(path)
        return found, f"read from {found}"
    if text and os.access(text, os.R_OK):
        return path, ""
    exists = bool(text) and path.exists()
    if exists or not HUB_ID.fullmatch(text):
        why = "Permission denied" if exists else "No such file or directory"
        raise Rejected(f"{why}: expected {NEEDED} or a folder with one, or the org/name of a model in the hub's local "
                       "cache")  # fmt: skip
    found = _find_in_cache(text)
    return found, f"read from {found}; no network is used"


def name_of(path: Path) -> str:
    """Returns the name of a model that a path spells.

    "path/Llama-3.1-8B/config.json" is Llama-3.1-8B, "mine.json" mine; a folder in the hub's local cache,
    "models--org--name/snapshots/COMMIT", is the name.
    """
    if path.name not in ("config.json", "params.json"):
        return path.name[: -len(path.suffix)] if path.suffix in (".json", ".gguf") and path.stem else path.name
    folder = path.parent
    if folder.parent.name == "snapshots":
        cached = folder.parent.parent.name
        return cached.split("--", 2)[-1] if cached.startswith("models--") else folder.name
    return folder.name if folder.name not in ("", "..") else folder.resolve().name


# ---- reading ----


def _parse_int(digits: str) -> Union[int, float]:
    """Returns a whole number of JSON, as f64 where 64 bits do not hold it."""
    return int(digits) if len(digits) < 19 else float(digits)


def _make_object(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """Returns an object of JSON. Rejects one that has a member twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Rejected(f"the member {twice} is there twice: {JSON_NEEDED}")
    return members


def read_json(text: str) -> Reading:
    """Reads a config.json, of diffusers too, or a params.json. Infinity and NaN are numbers as Python writes them."""
    try:
        root = json.loads(text, object_pairs_hook=_make_object, parse_int=_parse_int)
    except json.JSONDecodeError as error:
        what = "it holds a NUL character" if "\0" in text else error.msg
        raise Rejected(f"line {error.lineno}: {what}; {JSON_NEEDED}") from None
    except RecursionError:
        raise Rejected(f"it is nested too deeply; {JSON_NEEDED}") from None
    if is_diffusers(root):
        return read_diffusers(root)
    return read_params(root) if is_params(root) else read_config(root)


def read_file(file: BinaryIO, name: str) -> Model:
    """Reads an open file of the model `name`: GGUF if it begins so, otherwise JSON."""
    first_bytes = file.read(4)
    file.seek(0)
    if first_bytes == b"GGUF":
        reading = read_llama_cpp(read_gguf(file))
    else:
        reading = read_json(file.read().decode("utf-8", "replace"))
    return model_of(reading, name)


def model_of(reading: Reading, name: str) -> Model:
    """Returns the model of a reading. The name appears in ids, and is the title if the file has none."""
    title = re.sub(r"[^ -~]", "-", name[:LONGEST_NAME])
    short = re.sub(r"[^a-z0-9._-]", "-", name[:LONGEST_NAME].lower())
    if not short or short.startswith("."):
        title = short = "config"
    reading.facts["title"] = reading.facts.get("title") or title
    cases, verify = calls_of(reading.parts, short)
    return Model(short, reading, cases, verify)


def read_model(path: Path) -> Model:
    """Reads the file of a path."""
    try:
        with open(path, "rb") as file:
            return read_file(file, name_of(path))
    except OSError as error:
        raise Rejected(f"{path}: {error.strerror}: {NEEDED} is needed") from None
    except Rejected as why:
        raise Rejected(f"{path}: {why}") from None


@functools.lru_cache(None)
def presets() -> Dict[str, str]:
    """Returns the configurations that come with the library, as JSON texts by name."""
    lines = PRESETS.read_text(encoding="utf-8").splitlines()
    return {name: text for name, _, text in (line.partition(" ") for line in lines if not line.startswith("#"))}


def preset(name: str) -> Model:
    """Returns the model of a preset."""
    text = presets().get(name)
    if text is None:
        near = similar(name, presets(), 0.6)
        raise Rejected(
            f"model '{name[:60]}' is unknown{f'; did you mean {near[0]}?' if near else '.'}  Known: "
            f"{', '.join(presets())}; or --config with the path of a model file"
        )
    return model_of(read_json(text), name)
