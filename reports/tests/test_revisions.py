"""posenc compare --rev: builds of git revisions are made once, whole, and without a trace in the repository.

take("first") builds the tag of a small repository by BUILD, which copies part.c and counts how often it runs.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, List, Optional

import pytest

from posenc.command import CommandError
from posenc.compare.revisions import Revision, take_revision

ROOT = Path(__file__).resolve().parents[2]
BUILD = 'echo x >>"$HOME/count"; mkdir out && cp part.c out/mine.so'
TAKE = "import sys; from posenc.compare.revisions import take_revision; print(take_revision(*sys.argv[1:]).path)"

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


def git(*arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], encoding="utf-8").strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a repository with three commits, whose part.c holds one, two and three. The current folder is its top."""
    for name in ("CC", "CFLAGS", "LDFLAGS", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": tmp_path, "TMPDIR": tmp_path / "tmp", "GIT_CONFIG_NOSYSTEM": 1, "GIT_AUTHOR_NAME": "a",
                        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
                        "GIT_COMMITTER_EMAIL": "a@b", "PYTHONPATH": ROOT / "reports"}.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr("tempfile.tempdir", None)  # read TMPDIR anew
    path = tmp_path / "it's a $(repository)"
    for folder in (tmp_path / "tmp", path / "sub"):
        folder.mkdir(parents=True)
    monkeypatch.chdir(path)
    git("init", "-q", "-b", "main", ".")
    for text in ("one", "two", "three"):
        commit_file("part.c", text)
    git("tag", "first", "HEAD~2")
    return path


def commit_file(name: str, text: str) -> None:
    Path(name).write_text(text)
    git("add", name)
    git("commit", "-q", "-m", "a commit")


def take(name: Optional[str] = None, command: str = BUILD, library: str = "out/mine.so") -> Revision:
    """Takes a revision and checks that nothing is left in the repository or among temporary files."""
    before = git("status", "--short"), git("rev-parse", "HEAD"), git("stash", "list")
    try:
        return take_revision(name, command, library)
    finally:
        assert (git("status", "--short"), git("rev-parse", "HEAD"), git("stash", "list")) == before
        assert_no_trace()


def assert_no_trace() -> None:
    """Checks that no branch, work tree or unfinished file of a build is left."""
    assert len(git("worktree", "list").splitlines()) == len(git("branch").splitlines()) == 1
    home = Path(os.environ["HOME"])
    assert not [*(home / "tmp").glob("posenc-*"), *(home / ".cache").rglob(".*.so.*")]


def outcome(revision: Revision) -> List[object]:
    """Returns how often BUILD has run, and what the revision is."""
    count = Path(os.environ["HOME"], "count")
    return [count.read_text().count("x") if count.exists() else 0, revision.dirty, revision.path.read_text()]


def test_a_revision_is_built_once(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = take("first")
    assert outcome(first) == [1, False, "one"] and first.commit == git("rev-parse", "first")
    assert first.path.match(f"*/.cache/posenc/builds/{first.commit}-*/mine.so")
    assert outcome(take("HEAD~1")) == [2, False, "two"]
    assert outcome(take("first")) == outcome(take("HEAD~2")) == [2, False, "one"]
    assert outcome(take("first", f"{BUILD} # otherwise")) == [3, False, "one"]
    monkeypatch.chdir("sub")
    assert outcome(take("HEAD~1")) == [3, False, "two"]
    monkeypatch.setenv("CFLAGS", "-O1")
    assert outcome(take("first")) == [4, False, "one"]


def test_the_work_tree_is_built_as_it_is(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean = take()
    assert outcome(clean) == [1, False, "three"] and clean.commit == git("rev-parse", "HEAD")
    Path("part.c").write_text("four")
    Path("untracked.c").write_text("new")
    assert outcome(take()) == [2, True, "four"]
    words = capsys.readouterr().err
    assert "changes that are not committed" in words and "1 file that git does not track: left out" in words
    assert outcome(take()) == [2, True, "four"]
    git("add", "part.c")
    assert outcome(take()) == [2, True, "four"]  # staged or not is the same


def test_a_hook_of_git_builds_what_is_named(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("GIT_DIR", ".git"), ("GIT_INDEX_FILE", ".git/index"), ("GIT_PREFIX", "")):
        monkeypatch.setenv(name, value)
    assert outcome(take("first")) == [1, False, "one"]


REJECTED = [
    ("mian", "true", "there is no such revision (got 'mian'). Did you mean main?"),
    ("--all", "true", "there is no such revision (got '--all')"),
    ("main; touch hacked", "true", "there is no such revision (got 'main; touch hacked')"),
    ("HEAD:sub", "true", "there is no such revision (got 'HEAD:sub')"),
    ("main", "mkdir out", "the build of main makes no file out/mine.so. Its log is "),
    ("main", "", "--build is missing: main is no revision of posenc itself. Give a command"),
]


@pytest.mark.parametrize("name, command, words", REJECTED)
def test_what_cannot_be_built_is_named(repository: Path, name: str, command: str, words: str) -> None:
    with pytest.raises(CommandError, match=re.escape(words)):
        take(name, command)


def test_a_build_that_fails_shows_the_end_of_its_log(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError) as error:
        take("main", 'i=0; while [ $i -lt 30 ]; do i=$((i + 1)); echo "line $i"; done; exit 3')
    ended, _, log = str(error.value).partition(". Its log is ")
    assert ended == "the build of main ended with exit code 3"
    shown = [line for line in capsys.readouterr().err.splitlines() if line.startswith("|")]
    assert shown == [f"| line {number}" for number in range(11, 31)]
    assert len([line for line in Path(log).read_text().splitlines() if "line" in line]) == 30


def test_places_without_a_repository_or_a_cache(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    with pytest.raises(CommandError, match="Set XDG_CACHE_HOME or HOME"):
        take_revision("main", "true", "mine.so")
    monkeypatch.setenv("HOME", str(repository.parent))
    monkeypatch.chdir("..")
    with pytest.raises(CommandError, match="this folder is in no git repository"):
        take_revision("main", "true", "mine.so")
    git("init", "-q", ".")
    with pytest.raises(CommandError, match="has no commit yet"):
        take_revision(None, "true", "mine.so")


def begin_taking(*arguments: str) -> "subprocess.Popen[str]":
    """Starts another process that takes a revision, and prints its path."""
    return subprocess.Popen([sys.executable, "-c", TAKE, *arguments], stdout=subprocess.PIPE, encoding="utf-8")


def await_file(path: Path) -> str:
    """Returns the text of a file as soon as it has some; only what hangs takes a minute."""
    for _ in range(600):
        if path.exists() and path.stat().st_size:
            return path.read_text()
        time.sleep(0.1)
    raise AssertionError(f"{path} was not written")


def test_two_at_once_are_both_served(repository: Path) -> None:
    slow = 'echo >"$HOME/begun"; sleep 1; cp part.c mine.so'
    with begin_taking("main", slow, "mine.so") as other:
        await_file(repository.parent / "begun")
        revision = take_revision("main", slow, "mine.so")
        assert other.stdout and other.stdout.read() == f"{revision.path}\n" and other.wait() == 0
    assert outcome(revision)[2] == "three"
    assert_no_trace()


def test_one_that_is_interrupted_ends_with_all_of_its_build(repository: Path) -> None:
    ends = 'trap \'echo ended >"$HOME/ended"; exit\' TERM; echo begun >"$HOME/begun"; while :; do sleep 0.1; done'
    with begin_taking("first", f"({ends}) & wait", "mine.so") as taking:
        await_file(repository.parent / "begun")
        taking.send_signal(signal.SIGTERM)
        assert taking.wait() != 0
    assert await_file(repository.parent / "ended")
    assert_no_trace()


def test_a_revision_of_posenc_is_built_with_its_own_options(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meson = repository.parent / "bin" / "meson"
    meson.parent.mkdir()
    meson.write_text('#!/bin/sh\necho "meson $*"\n[ "$1" != compile ] ||\n { mkdir -p "$3/impl" && cp meson.build '
                     '"$3/impl/libposenc.so" && cp meson.build "$3/impl/libposenc.dylib"; }\n')  # fmt: skip
    meson.chmod(0o755)
    monkeypatch.setenv("PATH", f"{meson.parent}:{os.environ['PATH']}")
    Path("impl/include").mkdir(parents=True)
    commit_file("impl/include/posenc.h", "")
    commit_file("meson.build", "own")
    commit_file("meson_options.txt", "option('program', type: 'feature')\noption('tests', type: 'feature')\n")
    revision = take_revision("main", None, None)
    assert outcome(revision) == [0, False, "own"]
    assert (revision.path.parent / "build.log").read_text().splitlines()[0] == (
        "meson setup revision-build --buildtype=release -Ddefault_library=shared -Dprogram=disabled -Dtests=disabled"
    )


# ---- what the program says of its own commit (cli/commit.sh) ----


def test_the_commit_of_a_tree_is_that_of_its_own_repository(repository: Path, tmp_path: Path, monkeypatch: Any) -> None:
    script = [str(shutil.which("sh")), str(ROOT / "cli" / "commit.sh")]

    def commit_of(folder: Path) -> str:
        return subprocess.check_output([*script, str(folder)], encoding="utf-8").strip()

    commit, inside = git("rev-parse", "--short=12", "HEAD"), repository / "sub" / "release"
    inside.mkdir()
    (tmp_path / "link").symlink_to(repository)
    assert commit_of(repository) == commit_of(tmp_path / "link") == commit
    assert commit_of(inside) == commit_of(repository / ".git") == ""
    Path("part.c").write_text("more")
    assert commit_of(repository) == f"{commit}-dirty"
    git("worktree", "add", "-q", "-f", str(inside), "first")
    assert commit_of(inside) == git("rev-parse", "--short=12", "first")
    git("worktree", "remove", str(inside))
    inside.mkdir()
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))  # as a hook of git sets them
    monkeypatch.setenv("GIT_WORK_TREE", str(inside))
    assert commit_of(inside) == ""
    monkeypatch.setenv("PATH", "/nowhere")
    assert commit_of(repository) == ""


def test_no_other_part_of_the_build_asks_git() -> None:
    files = (path for path in ROOT.rglob("meson.build") if not path.relative_to(ROOT).parts[0].startswith("build"))
    assert not [path for path in files if "'git'" in path.read_text()]
