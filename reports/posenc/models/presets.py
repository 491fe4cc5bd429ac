"""The presets: models whose published numbers come with the library."""

import difflib
import functools
from pathlib import Path
from typing import Dict

from .members import Rejected
from .model import Model, model_of, read_json

FILE = Path(__file__).parent / "presets.txt"


@functools.lru_cache(None)
def presets() -> Dict[str, str]:
    """Returns the texts of their configurations by name."""
    lines = (line.partition(" ") for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: text for name, _, text in lines}


def preset(name: str) -> Model:
    """Returns a preset."""
    text = presets().get(name)
    if text is None:
        begun = [known for known in presets() if known.startswith(name)] if name else []
        near = begun or difflib.get_close_matches(name, list(presets()), n=1)
        raise Rejected(
            f"model '{name[:60]}' is unknown{f'; did you mean {near[0]}?' if near else '.'}  Known: "
            f"{', '.join(presets())}; or --config with the path of a model file"
        )
    return model_of(read_json(text), name)
