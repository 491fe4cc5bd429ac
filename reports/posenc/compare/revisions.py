"""Builds of git revisions, kept for the next time.

A revision is checked out into a temporary work tree and built there. The shared object is put into the cache
whole or not at all:

    $XDG_CACHE_HOME or ~/.cache/posenc/builds/COMMIT-HASH/NAME.so, build.log

HASH is that of all else that a build depends on: the command, the compiler that CC names, its version and its
flags. The repository's own work tree is built as a commit of the files that git tracks there. No branch has that
commit, and the files are not touched.
"""

import difflib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Dict, List, NoReturn, Optional, Union

from ..command import CommandError
from .interrupt import Interrupted, interruptible

LOG_LINES, MOST_REFS = 20, 30
YOUNG_S = 60  # a temporary folder that is younger may be another process's that has not locked it yet
WORK_TREE = "work tree"
LIBRARY = f"revision-build/impl/libposenc.{'dylib' if sys.platform == 'darwin' else 'so'}"
# This repository's own library, and nothing that it does without. Options that a revision lacks are left out.
OWN_BUILD = """set -- --buildtype=release -Ddefault_library=shared
for part in program tests bench sleef golden; do
    grep -q "^option('$part'" meson_options.txt && set -- "$@" "-D$part=disabled"
done
meson setup revision-build "$@" && meson compile -C revision-build posenc:shared_library"""
HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")
FLAGS = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
AUTHOR = {
    f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "posenc"), ("EMAIL", "posenc@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}  # fmt: skip


@dataclass
class Revision:
    """A revision and its build."""

    name: str  # as it was given, or "work tree"
    commit: str
    dirty: bool  # the work tree has changes that are in no commit
    cached: bool  # it was built before
    path: Path  # of the shared object


def _say(text: str) -> None:
    print(f"posenc compare: {text}", file=sys.stderr)


# ---- programs ----


def _run(command: List[str], cwd: Union[str, Path], to: Union[IO[bytes], int]) -> int:
    """Runs a program for a tree of its own. What it starts ends with it if a signal ends this command."""
    env = {name: value for name, value in os.environ.items() if name not in HOOKS}
    try:
        child = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=to, stderr=to, env=env, start_new_session=True
        )
    except OSError:
        return 127
    try:
        status = child.wait()
    except BaseException:
        os.killpg(child.pid, signal.SIGTERM)
        child.wait()
        raise
    return status if status >= 0 else 128 - status


def _git(*arguments: str, env: Optional[Dict[str, str]] = None) -> Optional[str]:
    """Returns what git prints; None if it fails."""
    try:
        done = subprocess.run(
            ["git", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})}, errors="surrogateescape", encoding="utf-8", check=False,
        )  # fmt: skip
    except OSError:
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


# ---- the repository ----


def _top() -> Path:
    """Returns the top folder of the repository around this one."""
    if _git("--version") is None:
        raise CommandError("git is not installed. Install it.")
    top = _git("rev-parse", "--show-toplevel")
    if top is None:
        raise CommandError(f"this folder is in no git repository (got '{os.getcwd()}'). Use the work tree of one.")
    return Path(top)


def _reject_revision(name: str) -> NoReturn:
    if _git("rev-parse", "--is-shallow-repository") == "true":
        raise CommandError(
            f"this clone has no such commit, and it is shallow (got '{name}'). "
            "Fetch the others: git fetch --unshallow (actions/checkout: fetch-depth: 0)."
        )
    refs = _git("for-each-ref", "--format=%(refname:short)", "--sort=-committerdate", f"--count={MOST_REFS}",
                "refs/heads", "refs/tags", "refs/remotes")  # fmt: skip
    near = difflib.get_close_matches(name, ["HEAD", *(refs or "").split("\n")], n=3)
    fix = f"Did you mean {' or '.join(near)}?" if near else "Expected a branch, a tag or a commit."
    raise CommandError(f"there is no such revision (got '{name}'). {fix}")


def _commit_of(name: str) -> str:
    commit = None if name.startswith("-") else _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return commit or _reject_revision(name)


def _commit_of_work_tree(top: Path, folder: Path) -> "tuple[str, bool]":
    """Returns HEAD, or a commit of the tracked files as they are, and whether it is that.

    Equal files make the same commit. It is made with an index of its own.
    """
    at = ("-C", str(top))
    head = _git(*at, "rev-parse", "--verify", "--quiet", "HEAD")
    clean = _git(*at, "rev-parse", "HEAD^{tree}")
    if not head or not clean:
        raise CommandError("the repository has no commit yet. Commit something.")
    index = {"GIT_INDEX_FILE": str(folder / "index")}
    try:
        shutil.copyfile(Path(_git(*at, "rev-parse", "--absolute-git-dir") or top) / "index", folder / "index")
    except OSError as error:
        raise CommandError(f"the index of git cannot be read: {error.strerror}.") from None
    added = _git(*at, "add", "-u", ".", env=index)
    tree = _git(*at, "write-tree", env=index) if added is not None else None
    if tree is None:
        raise CommandError("git can make no tree of the work tree. Resolve its conflicts (git status).")
    untracked = (_git(*at, "ls-files", "--others", "--exclude-standard") or "").splitlines()
    if untracked:
        files = f"{len(untracked)} file{'' if len(untracked) == 1 else 's'}"
        _say(f"the work tree has {files} that git does not track: left out (git add takes them in)")
    if tree == clean:
        return head, False
    _say(f"the work tree is {head[:10]} and changes that are not committed")
    commit = _git(*at, "commit-tree", tree, "-p", head, "-m", WORK_TREE, env=AUTHOR)
    if commit is None:
        raise CommandError("git can make no commit of the work tree.")
    return commit, True


# ---- the cache ----


def _open_cache() -> Path:
    """Returns the folder of builds, without what killed processes left."""
    cache, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if not cache.startswith("/") and not home.startswith("/"):
        raise CommandError("builds have no place to be kept. Set XDG_CACHE_HOME or HOME to a folder.")
    builds = Path(cache if cache.startswith("/") else home + "/.cache") / "posenc" / "builds"
    try:
        builds.mkdir(parents=True, exist_ok=True)
        for folder in builds.glob(".making-*"):
            if folder.stat().st_mtime + YOUNG_S < time.time():
                lock = _lock(folder)
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)
    except OSError as error:
        raise CommandError(f"builds cannot be kept: {error.strerror} (got '{builds}').") from None
    return builds


def _lock(folder: Path, wait: bool = False) -> Optional[int]:
    """Locks a folder; None if another process has it."""
    file = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(file)
        return None
    return file


def _key(commit: str, command: str, library: str) -> str:
    """Returns the name of a build in the cache."""
    done = subprocess.run(
        ["sh", "-c", "${CC:-cc} --version | head -n 1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    system = os.uname()
    parts = [
        command.encode(),
        library.encode(),
        done.stdout.rstrip(b"\n"),
        system.sysname.encode(),
        system.machine.encode(),
    ]
    parts += [os.environ.get(name, "").encode() for name in FLAGS]
    return f"{commit}-{hashlib.sha256(b''.join(part + bytes(1) for part in parts)).hexdigest()[:12]}"


# ---- building ----


@dataclass
class _Making:
    """A revision on its way into the cache."""

    name: str
    commit: str
    command: str
    library: str
    top: Path
    builds: Path
    folder: Path  # a temporary one in the cache
    key: str

    def build(self) -> None:
        """Builds it, and puts it into the cache."""
        _say(f"building {self.name} ({self.commit[:10]})")
        begun = time.monotonic()
        tree = self.folder / self.key  # git keeps that name: one of its own
        try:
            with open(self.folder / "build.log", "wb") as log:
                there = self._alone(["git", "-c", "core.hooksPath=/dev/null", "worktree", "add", "--quiet", "--detach",
                                     str(tree), self.commit], log)  # fmt: skip
                ended = _run(["sh", "-c", self.command], tree, log) if there == 0 else 0
            if there != 0:
                self._reject("git cannot check out {}")
            if ended != 0:
                self._reject(f"the build of {{}} ended with exit code {ended}")
            self._install(tree)
        finally:
            self._alone(["git", "worktree", "remove", "--force", str(tree)], subprocess.DEVNULL)
        _say(f"built {self.name} in {time.monotonic() - begun:.0f} s")

    def _alone(self, command: List[str], to: Union[IO[bytes], int]) -> int:
        """Runs a command of git's about work trees, one at a time: git fails on what another is still writing."""
        lock = _lock(self.top, wait=True)
        try:
            return _run(command, self.top, to)
        finally:
            if lock is not None:
                os.close(lock)

    def _reject(self, problem: str) -> NoReturn:
        """Keeps the log and shows its end."""
        kept = self.builds / f"{self.key}.log"
        os.replace(self.folder / "build.log", kept)
        for line in kept.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]:
            print(f"| {line}", file=sys.stderr)
        raise CommandError(f"{problem.format(self.name)}. Its log is {kept}")

    def _install(self, tree: Path) -> None:
        """Puts the shared object into the cache, whole or not at all. Who comes second finds it there."""
        source, made = tree / self.library, self.folder / "made"
        if not source.is_file():
            self._reject(f"the build of {{}} makes no file {self.library}")
        made.mkdir()
        shutil.copy(source, made / source.name)
        os.replace(self.folder / "build.log", made / "build.log")
        try:
            os.rename(made, self.builds / self.key)
        except OSError:
            if not (self.builds / self.key / source.name).is_file():
                raise


def _find_or_build(name: Optional[str], command: Optional[str], library: Optional[str]) -> Revision:
    top, builds = _top(), _open_cache()
    try:
        folder = Path(tempfile.mkdtemp(prefix=".making-", dir=builds))
    except OSError as error:
        raise CommandError(f"builds cannot be kept: {error.strerror} (got '{builds}').") from None
    lock = _lock(folder)
    try:
        commit, dirty = (_commit_of(name), False) if name is not None else _commit_of_work_tree(top, folder)
        shown = name if name is not None else WORK_TREE
        if not command or not library:
            if _git("-C", str(top), "cat-file", "-e", f"{commit}:impl/include/posenc.h") is None:
                raise CommandError(
                    f"--build is missing: {shown} is no revision of posenc itself. "
                    "Give a command that builds it, and --library PATH for what that makes."
                )
            command, library = OWN_BUILD, LIBRARY
        key = _key(commit, command, library)
        path = builds / key / Path(library).name
        cached = os.access(path, os.R_OK)
        if not cached:
            _Making(shown, commit, command, library, top, builds, folder, key).build()
        return Revision(shown, commit, dirty, cached, path)
    except OSError as error:
        raise CommandError(f"the build cannot be kept: {error.strerror} (got '{builds}').") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def take_revision(name: Optional[str], command: Optional[str], library: Optional[str]) -> Revision:
    """Finds or builds a revision of the repository around the current folder; None: its work tree.

    `command` is run by a shell in the tree that was checked out and makes `library` there; without them
    posenc itself is built. A signal ends the build and removes the tree.
    """
    with interruptible():
        try:
            return _find_or_build(name, command, library)
        except Interrupted as signalled:
            raise CommandError("interrupted while a revision was built.", 128 + signalled.number) from None
