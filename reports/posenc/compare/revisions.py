"""Builds git revisions, and caches the builds.

main.py calls take_revision("main", None, None), which returns the path of the library of that revision. A revision is
checked out into a temporary work tree and built there. The cache keeps the shared object:

    $XDG_CACHE_HOME or ~/.cache/posenc/builds/COMMIT-HASH/NAME.so, build.log

HASH covers the other inputs of a build: the command, the version of the compiler that CC names, and its flags. The
work tree of the repository is built from a commit of its tracked files, which is on no branch. The work tree itself is
never changed.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Dict, List, NamedTuple, Optional, Tuple

from ..command import CommandError, suggest
from ..engine import Interrupted, interruptible
from ..units import many

LOG_LINES, MOST_REFS = 20, 10  # of a failed build that are printed; names of revisions that are suggested from
WORK_TREE = "work tree"
LIBRARY = f"revision-build/impl/libposenc.{'dylib' if sys.platform == 'darwin' else 'so'}"
# Builds posenc itself, without the parts that its library does not need. Skips options that a revision lacks.
OWN_BUILD = """set -- --buildtype=release -Ddefault_library=shared
for part in program tests bench sleef golden; do
    grep -q "^option('$part'" meson_options.txt && set -- "$@" "-D$part=disabled"
done
meson setup revision-build "$@" && meson compile -C revision-build posenc:shared_library"""
# Variables that git sets in hooks, which a build must not inherit; variables that change a build.
HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")
FLAG_VARIABLES = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
# The author and the date of commits of a work tree, so that equal files give the same commit.
AUTHOR = {
    f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "posenc"), ("EMAIL", "posenc@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}  # fmt: skip


class Revision(NamedTuple):
    """A revision and its build."""

    name: str  # as it was given, or "work tree"
    commit: str
    dirty: bool  # the work tree has changes that are in no commit
    path: Path  # of the shared object


def _report(text: str) -> None:
    print(f"posenc compare: {text}", file=sys.stderr)


# ---- the repository ----


def _git(*arguments: str, env: Optional[Dict[str, str]] = None) -> Optional[str]:
    """Returns the output of git; None if it fails."""
    done = subprocess.run(
        ["git", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, **(env or {})}, errors="surrogateescape", encoding="utf-8", check=False,
    )  # fmt: skip
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


def _find_repository() -> Path:
    """Returns the top folder of the repository around this one."""
    if not shutil.which("git"):
        raise CommandError("git is not installed. Install it.")
    top = _git("rev-parse", "--show-toplevel")
    if top is None:
        raise CommandError(f"this folder is in no git repository (got '{os.getcwd()}'). Use the work tree of one.")
    return Path(top)


def _commit_of(name: str) -> str:
    """Returns the hash of the commit that a revision names."""
    commit = None if name.startswith("-") else _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if commit:
        return commit
    if _git("rev-parse", "--is-shallow-repository") == "true":
        raise CommandError(
            f"this clone has no such commit, and it is shallow (got '{name}'). "
            "Fetch the others: git fetch --unshallow (actions/checkout: fetch-depth: 0)."
        )
    refs = _git("for-each-ref", "--format=%(refname:short)", "--sort=-committerdate", f"--count={MOST_REFS}",
                "refs/heads", "refs/tags", "refs/remotes")  # fmt: skip
    raise CommandError(f"there is no such revision (got '{name}'). {suggest(name, ['HEAD', *(refs or '').split()])}")


def _commit_of_work_tree(top: Path) -> Tuple[str, bool]:
    """Returns HEAD and false, or a commit of the changed tracked files and true. Equal files give the same commit."""
    head = _git("rev-parse", "--verify", "--quiet", "HEAD")
    if not head:
        raise CommandError("the repository has no commit yet. Commit something.")
    untracked = (_git("-C", str(top), "ls-files", "--others", "--exclude-standard") or "").splitlines()
    if untracked:
        files = many(len(untracked), "file")
        _report(f"the work tree has {files} that git does not track: left out (git add takes them in)")
    stash = _git("stash", "create", env=AUTHOR)  # a commit of head and the changes, which no stash has
    if stash is None:
        raise CommandError("git can make no commit of the work tree. Resolve its conflicts (git status).")
    if not stash or _git("-C", str(top), "diff", "--quiet", head, stash) is not None:
        return head, False
    _report(f"the work tree is {head[:10]} and changes that are not committed")
    # The stash has the index as a parent as well: the commit of its files alone is the same, staged or not.
    commit = _git("commit-tree", f"{stash}^{{tree}}", "-p", head, "-m", WORK_TREE, env=AUTHOR)
    return str(commit), True


# ---- the cache ----


def _find_cache() -> Path:
    """Returns the folder of builds."""
    cache, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if not cache.startswith("/") and not home.startswith("/"):
        raise CommandError("builds have no place to be kept. Set XDG_CACHE_HOME or HOME to a folder.")
    return Path(cache if cache.startswith("/") else home + "/.cache") / "posenc" / "builds"


def _cache_name(commit: str, command: str, library: str) -> str:
    """Returns the name of a build in the cache."""
    version = ["sh", "-c", "${CC:-cc} --version | head -n 1"]
    compiler = subprocess.run(version, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    system, flags = os.uname(), [os.environ.get(name, "") for name in FLAG_VARIABLES]
    parts = "\1".join([command, library, system.sysname, system.machine, *flags])
    digest = hashlib.sha256(parts.encode(errors="surrogateescape") + compiler).hexdigest()
    return f"{commit}-{digest[:12]}"


# ---- building ----


def _run(command: List[str], folder: Path, log: IO[bytes]) -> int:
    """Runs a program in a session of its own. Returns its exit code; negative: the signal that ended it.

    If a signal ends this command, all of the session ends.
    """
    env = {name: value for name, value in os.environ.items() if name not in HOOK_VARIABLES}
    child = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True
    )
    try:
        return child.wait()
    except BaseException:
        os.killpg(child.pid, signal.SIGTERM)
        child.wait()
        raise


def _worktree(top: Path, log: IO[bytes], *arguments: str) -> bool:
    """Runs git worktree under a lock, as git fails if two processes change the list of work trees."""
    lock = os.open(top, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _run(["git", "-c", "core.hooksPath=/dev/null", "worktree", *arguments], top, log) == 0
    finally:
        os.close(lock)


def _build(top: Path, name: str, commit: str, command: str, library: str, path: Path) -> None:
    """Builds a revision in a work tree of its own. The shared object appears at `path` complete or not at all."""
    _report(f"building {name} ({commit[:10]})")
    begun, log = time.monotonic(), path.parent / "build.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="posenc-build-") as folder, log.open("wb") as file:
        tree = Path(folder) / path.parent.name  # git registers the name, so it has to be unique
        try:
            if not _worktree(top, file, "add", "--quiet", "--detach", str(tree), commit):
                problem = f"git cannot check out {name}"
            elif (ended := _run(["sh", "-c", command], tree, file)) != 0:
                problem = f"the build of {name} ended with exit code {ended if ended > 0 else 128 - ended}"
            elif not (tree / library).is_file():
                problem = f"the build of {name} makes no file {library}"
            else:
                new = path.with_name(f".{path.name}.{os.getpid()}")
                shutil.copy(tree / library, new)
                os.replace(new, path)
                _report(f"built {name} in {time.monotonic() - begun:.0f} s")
                return
        finally:
            _worktree(top, file, "remove", "--force", str(tree))
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]:
        print(f"| {line}", file=sys.stderr)
    raise CommandError(f"{problem}. Its log is {log}")


def take_revision(name: Optional[str], command: Optional[str], library: Optional[str]) -> Revision:
    """Finds or builds a revision of the repository around the current folder; None: its work tree.

    `command` is run by a shell in the tree that was checked out and makes `library` there; without them
    posenc itself is built. A signal ends the build and removes the tree.
    """
    top, builds = _find_repository(), _find_cache()
    commit, dirty = (_commit_of(name), False) if name is not None else _commit_of_work_tree(top)
    shown = name if name is not None else WORK_TREE
    if not command or not library:
        if _git("-C", str(top), "cat-file", "-e", f"{commit}:impl/include/posenc.h") is None:
            raise CommandError(
                f"--build is missing: {shown} is no revision of posenc itself. "
                "Give a command that builds it, and --library PATH for what that makes."
            )
        command, library = OWN_BUILD, LIBRARY
    path = builds / _cache_name(commit, command, library) / Path(library).name
    try:
        with interruptible():
            if not os.access(path, os.R_OK):
                _build(top, shown, commit, command, library, path)
    except Interrupted as signalled:
        raise CommandError("interrupted while a revision was built.", 128 + signalled.args[0]) from None
    except OSError as error:
        raise CommandError(f"the build cannot be kept: {error.strerror} (got '{builds}').") from None
    return Revision(shown, commit, dirty, path)
