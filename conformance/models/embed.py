"""Prints presets.inc for model.c: a line of C, {"name", "record"}, for each preset."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "reports"))
from posenc.models.model import preset, presets  # noqa: E402

for name in presets():
    print("{%s, %s}," % (json.dumps(name), json.dumps(json.dumps(preset(name).record()))))
