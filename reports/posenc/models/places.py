"""Finds the model file that --config names: by path, folder, or org/name in the local cache of the Hugging Face hub."""

import os
import re
from pathlib import Path
from typing import NamedTuple, Optional

from .members import Rejected

NEEDED = "the path of a Hugging Face config.json, a params.json or a GGUF file"
HUB_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*/[A-Za-z0-9._-]+")
COMMIT = re.compile("[0-9a-f]{1,64}")
LATER_SHARD = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")


class Place(NamedTuple):
    """A file, and a sentence about how it was found; "" where the text was its path."""

    path: Path
    message: str = ""


def _in_folder(folder: Path) -> Path:
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


def _cache() -> Optional[Path]:
    """Returns the folder of the hub's local cache, as huggingface_hub finds it."""
    for variable, below in (
        ("HF_HUB_CACHE", ""), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub"),
        ("HOME", ".cache/huggingface/hub"),
    ):  # fmt: skip
        if os.environ.get(variable):
            return Path(os.environ[variable]) / below
    return None


def _in_cache(model: str) -> Path:
    cache = _cache()
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
        return _in_folder(snapshot)
    except Rejected as why:
        text = f"there is no such file, and in the hub's local cache {snapshot}: {why}; no network is used"
        raise Rejected(text) from None


def find(text: str) -> Place:
    """Returns the file that a text means."""
    path = Path(text)
    if text and path.is_dir():
        found = _in_folder(path)
        return Place(found, f"read from {found}")
    if text and os.access(text, os.R_OK):
        return Place(path)
    if path.exists() and text or not HUB_ID.fullmatch(text):
        why = "Permission denied" if text and path.exists() else "No such file or directory"
        raise Rejected(f"{why}: expected {NEEDED} or a folder with one, or the org/name of a model in the hub's local "
                       "cache")  # fmt: skip
    found = _in_cache(text)
    return Place(found, f"read from {found}; no network is used")


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
