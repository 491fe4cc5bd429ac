"""Prints the first lines of the pages of docs/encodings as rows of C, for struct topic: topics.py FOLDER.

The page "# yarn", which goes on "A scaling: slow pairs", makes the row {"scaling", "yarn", "slow pairs"},
"""

import json
import re
import sys
from pathlib import Path

HEAD = re.compile(r"# (\w+)\n\nA (kernel|method|numerics mode|scaling)(?:, for|:) (.*)\n")

for page in sorted(Path(sys.argv[1]).glob("*.md")):
    head = HEAD.match(page.read_text(encoding="utf-8"))
    if head:
        name, kind, summary = head.groups()
        print("{%s}," % ", ".join(map(json.dumps, (kind, name, summary))))
