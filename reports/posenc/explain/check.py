"""posenc explain --check: asks transformers itself what the model of a configuration computes."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any, Dict, Tuple

from ..command import CommandError
from ..engine import Engine

SURVEY = Path(__file__).resolve().parents[3] / "conformance" / "models" / "survey"
WORDS = {
    "agrees": "Pairs, frequencies, heads and layers are those of the model that transformers {} makes of it",
    "differs": "transformers {} makes another model of it: {}",
    "not asked": "transformers {} cannot be asked: {}",
}


def check(engine: Engine, path: Path) -> Tuple[bool, str]:
    """Returns whether a file is read as the model is that transformers makes of it, and that as a sentence.

    No code of others is run: what is asked is the class of transformers that its model_type names.
    """
    if not SURVEY.is_dir():
        raise CommandError("--check needs the source tree of posenc, where the survey of transformers is.")
    sys.path.insert(0, str(SURVEY))
    try:
        file_check, table, models = map(importlib.import_module, ("file_check", "types_table", "transformers_models"))
    except ModuleNotFoundError as error:
        raise CommandError(
            f"--check asks transformers, and {sys.executable} lacks {error.name}. Install it: pip install transformers "
            "torch pillow scipy"
        ) from None
    try:
        file: Dict[str, Any] = json.loads(path.read_bytes())
        named = isinstance(file, dict) and "model_type" in file
    except ValueError:
        named = False
    if not named:
        raise CommandError(f"--check needs a config.json with its model_type (got '{path}').")
    what, why = file_check.check_file(models.config_classes(), table.read_table(), engine.program, file, {})
    return what != "differs", WORDS[what].format(models.transformers.__version__, why)
