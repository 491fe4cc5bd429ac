"""Finds or builds one revision, for revisions.sh.

    revision.py [--build COMMAND LIBRARY] [REVISION]

prints its commit, "built" or "cached", "dirty" or "clean", and its path.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "reports"))

from posenc.command import CommandError  # noqa: E402
from posenc.compare.revisions import take_revision  # noqa: E402

arguments = sys.argv[1:]
build = arguments[1:3] if arguments[:1] == ["--build"] else [None, None]
names = arguments[3:] if build[0] else arguments
try:
    revision = take_revision(names[0] if names else None, *build)
except CommandError as error:
    print(f"posenc compare: error: {error}", file=sys.stderr)
    sys.exit(error.status)
print(revision.commit, "cached" if revision.cached else "built", "dirty" if revision.dirty else "clean", revision.path)
