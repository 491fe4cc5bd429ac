"""Prints the first lines of the pages of docs/encodings as rows of C: {"kind", "name", "summary"},."""

import json
import re
import sys
from pathlib import Path

for page in sorted(Path(sys.argv[1]).glob("*.md")):
    begins = re.match(
        r"# (\w+)\n\nA (kernel|method|numerics mode|scaling)(?:, for|:) (.*)\n", page.read_text(encoding="utf-8")
    )
    if begins:
        name, kind, what = begins.groups()
        print("{%s}," % ", ".join(map(json.dumps, (kind, name, what))))
