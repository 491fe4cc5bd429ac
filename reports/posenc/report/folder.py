"""The folder of a report: it appears complete, and the report before is kept beside it."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Optional

from ..command import CommandError

FILES = {"html": "report.html", "md": "report.md", "jsonl": "results.jsonl"}


def _others(folder: Path) -> Optional[str]:
    """Returns the name of a file that no report wrote; None if there is none."""
    names = sorted(path.name for path in folder.iterdir())
    return names[0] if names and FILES["jsonl"] not in names else None


class ReportFolder:
    """A folder that is about to be written: `partial` until `publish` puts it in its place."""

    def __init__(self, folder: Path, force: bool) -> None:
        """Rejects a folder that must not be replaced, before a measurement starts."""
        self.folder = folder
        self.kept = False  # as `partial`: the run was interrupted
        if folder.is_symlink() and not folder.exists():
            raise CommandError(f"--dir is a link to a folder that does not exist (got '{folder}'). Make the folder.")
        self.target = Path(os.path.realpath(folder))
        self.previous = self.target.with_name(self.target.name + ".previous")
        if self.target == Path.cwd():
            raise CommandError(f"--dir is the current folder (got '{folder}'). Name a folder in it.")
        if self.target.exists():
            if not self.target.is_dir():
                raise CommandError(f"--dir is no folder (got '{folder}'). Choose another name.")
            other = _others(self.target)
            if other and not force:
                raise CommandError(
                    f"--dir holds {other}, which no report wrote (got '{folder}'). "
                    f"Choose another folder, or --force to move it to {self.previous.name}."
                )
            if self.previous.is_dir() and _others(self.previous):
                raise CommandError(
                    f"{self.previous.name} holds {_others(self.previous)}, which no report wrote, and would be "
                    "replaced. Move it."
                )
        try:
            self.partial = Path(tempfile.mkdtemp(prefix=f"{self.target.name}.partial-", dir=self.target.parent))
        except OSError as error:
            raise CommandError(f"the folder cannot be made: {error.strerror} (got '{folder}').") from None

    def has(self, path: Path) -> bool:
        """Returns whether a file lies in the folder, which will be replaced."""
        return self.target in Path(os.path.realpath(path)).parents

    def has_files(self) -> bool:
        """Returns whether publish() will find a report, or other files, in its place."""
        return self.target.exists() and any(self.target.iterdir())

    def publish(self) -> Optional[Path]:
        """Puts the report in its place. Returns where the one before is; None if there was none."""
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(self.partial, 0o777 & ~mask)
        had = self.has_files()
        if had:
            shutil.rmtree(self.previous, ignore_errors=True)
            os.replace(self.target, self.previous)
        os.replace(self.partial, self.target)
        if not had:
            return None
        return self.folder.with_name(self.folder.name + ".previous") if not self.folder.is_symlink() else self.previous

    def discard(self) -> None:
        """Removes the partial folder."""
        shutil.rmtree(self.partial, ignore_errors=True)
