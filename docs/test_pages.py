"""Code of README, CONTRIBUTING and docs compiles, commands run, and links lead somewhere.

- A ```c block compiles without a warning; it is a program that runs and returns 0.
- A block that begins with a line /* from FILE */ is an excerpt: its other lines stand in that file, one after the other
  except where a line ... stands for others.
- A ```meson or ```cmake block stands, line for line, in the project of cli/tests/consumer, which consumer.sh builds; a
  ```yaml block in examples/ci/workflow.yml, which cli/tests/action.sh reads.
- Tests of Python run ```python blocks of lessons and of docs/check.md, ci.md and python.md. A block without a language
  is output. Other languages are rejected.
- A block that cannot run says why in a line above it: <!-- not run: why -->
- The commands of a tutorial are typed one after the other, in an empty folder beside posenc. A block that begins with
  its name in a comment, /* FILE */, is saved under that name. A block without a language is what the last command
  prints, whole, except where a line ... stands for others, or a line <!-- not compared: why --> above it.
- posenc list, explain, table and plot run as they stand; of commands that take longer, or with a NAME to be filled
  in, the options are asked for (--help).
- What follows ./run is a job of run or a command.
- Files and folders that are named are there, and so are the files and headings that links lead to.
"""
import os
import re
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
POSENC = Path(os.environ["POSENC_PROGRAM"]).resolve()
LIBRARY = POSENC.parent / "impl"
PATHS = ("impl/", "conformance/", "bench/", "reports/", "cli/", "docs/", "tools/", "examples/")
PLACES = {"meson": "cli/tests/consumer/meson.build", "cmake": "cli/tests/consumer/CMakeLists.txt",
          "yaml": "examples/ci/workflow.yml"}  # fmt: skip
EXCERPT = re.compile(r"/\* from (.*) \*/\n")


class Item(NamedTuple):
    """A block, a typed line, code within a sentence or a link of a page."""

    page: str
    line: int
    kind: str  # the language of a block, or: typed, command, link
    text: str
    why: str  # it does not run, or is not compared

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text if self.kind in ('typed', 'command') else self.kind}"


def items_of(page: str) -> List[Item]:
    found: List[Item] = []
    block, why, pending, paragraph = -1, "", "", False
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines(keepends=True)
    for at, line in enumerate(lines):
        fence = re.match(r" *```(\S*)", line)
        reason = re.match(r"<!-- not (?:run|compared): (.*) -->$", line)
        if block >= 0:
            if fence:
                language = lines[block].strip()[3:] or "text"
                found.append(Item(page, block + 1, language, "".join(lines[block + 1 : at]), why))
                block, why = -1, ""
        elif fence:
            block = at
        elif reason:
            why = reason[1]
        elif re.match("    [^ ]", line) and not paragraph:  # indented, and not the continuation of a list
            found.append(Item(page, at + 1, "typed", re.sub("  .*?#.*", "", line.strip()), why))
        else:
            paragraph = bool(line.strip())
            why = "" if paragraph else why
            found += [Item(page, at + 1, "link", target, "") for target in re.findall(r"\]\(([^)]*)\)", line)]
            *spans, pending = (pending + re.sub("^> *", "", line.rstrip("\n"))).split("`")
            if len(spans) % 2:  # what a line leaves open is closed on the next
                pending = f"`{pending} " if paragraph else ""
            else:
                spans, pending = [*spans, pending], ""
            found += [Item(page, at + 1, "command", code, "") for code in spans[1::2]]
    return found


PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
PAGES += sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md")])
ITEMS = {page: items_of(page) for page in PAGES}
TUTORIALS = [page for page in PAGES if page.startswith("docs/tutorials/") or page == "docs/debugging.md"]
BLOCKS = [item for items in ITEMS.values() for item in items if item.kind not in ("typed", "command", "link")]


def commands() -> Dict[str, Item]:
    """Returns the commands that a test runs, each with its first place."""
    found: Dict[str, Item] = {}
    for item in (item for page in PAGES for item in ITEMS[page]):
        if item.kind == "command" or (item.kind == "typed" and item.page not in TUTORIALS):
            words = re.sub("^build/posenc ", "posenc ", item.text)
            if words.startswith("./run ") and not re.search(f"^#     ./run {words.split()[1]} ", RUN, re.M):
                words = f"posenc {words.split()[1]} --help"
            elif not words.startswith("posenc "):
                continue
            elif re.search(" [A-Z]{3}", words):  # what a user fills in
                words = re.sub("( --[a-z]*)? [A-Z]{3}[A-Z]*", "", words) + " --help"
            elif not re.search(" (list|explain|table|plot) ", words):
                words += " --help"
            found.setdefault(words, item)
    return found


RUN = (ROOT / "run").read_text(encoding="utf-8")
COMMANDS = commands()


def excerpt(block: str) -> str:
    """Returns a pattern of a text that has the lines of a block, and others where it has a line of dots."""
    return r"(?:.*\n)*?".join(map(re.escape, re.split(r"(?m)^ *\.\.\.\n", block)))


def shell(command: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "PATH": f"{POSENC.parent}:{os.environ['PATH']}", **variables}
    return subprocess.run(["sh", "-c", command], cwd=folder, env=env, encoding="utf-8", errors="replace",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


CHECKED = [block for block in BLOCKS if block.page not in TUTORIALS or EXCERPT.match(block.text)]


@pytest.mark.parametrize("item", CHECKED, ids=str)
def test_block(item: Item, tmp_path: Path) -> None:
    source = EXCERPT.match(item.text)
    if item.why:
        pytest.skip(item.why)
    if source:
        text = (ROOT / source[1]).read_text(encoding="utf-8")
        assert re.search("(?m)^" + excerpt(item.text[source.end() :]), text), f"{source[1]} has other lines"
    elif item.kind == "c":
        (tmp_path / "block.c").write_text(item.text, encoding="utf-8")
        flags = f"-std=c11 -Wall -Wextra -pedantic -Werror -I{ROOT}/impl/include"
        link = f"-o block -L{LIBRARY} -lposenc -Wl,-rpath,{LIBRARY} -lm"
        done = shell(f"{os.environ.get('CC', 'cc')} {flags} block.c {link} && ./block", tmp_path)
        assert done.returncode == 0, done.stderr
    elif item.kind in PLACES:
        lines = (ROOT / PLACES[item.kind]).read_text(encoding="utf-8").splitlines()
        assert not set(item.text.splitlines()) - set(lines), PLACES[item.kind]
    else:
        assert item.kind in ("text", "python"), "expected c, meson, cmake, yaml, python, or none"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{COMMANDS[command]} ({command})")
def test_command(command: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()  # where pictures go
    done = shell(command, tmp_path)
    if "lacks the module" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_links_and_paths(page: str) -> None:
    assert ITEMS[page], "it has no command, block or link"
    for item in ITEMS[page]:
        if item.kind in ("command", "typed") and item.text.startswith(PATHS) and " " not in item.text:
            assert list(ROOT.glob(re.sub("<[^>]*>|{[^}]*}", "*", item.text))), item
        elif item.kind == "link" and not re.match("https?:", item.text):
            file, _, heading = item.text.partition("#")
            to = (ROOT / page).parent / file if file else ROOT / page
            assert to.exists(), f"{item}: {item.text}"
            titles = re.findall("^##* (.*)", to.read_text(encoding="utf-8").lower(), re.M) if heading else []
            slugs = [re.sub("[^a-z0-9 _-]", "", title).replace(" ", "-") for title in titles]
            assert not heading or heading in slugs, f"{item}: {item.text}"


# ---- Tutorials ----


@pytest.fixture(scope="session")
def no_gdb() -> bool:
    done = shell("gdb -q -batch -ex run --args true 2>&1", ROOT)
    return "exited normally" not in done.stdout


class Session:
    """A shell in an empty folder beside posenc. A line has the folder and the variables that the line before left."""

    def __init__(self, folder: Path) -> None:
        self.state, self.folder = folder / "state", folder / "beside"
        self.folder.mkdir()
        (self.folder / "posenc").symlink_to(ROOT)
        unset = " ".join(name for name in os.environ if re.match("(GITHUB|CI|GIT|POSENC)_", name))
        home = f"HOME={folder} XDG_CACHE_HOME={folder}/cache GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null"
        names = "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b"
        paths = f"PKG_CONFIG_PATH={LIBRARY.parent}/meson-uninstalled LD_LIBRARY_PATH={LIBRARY}"
        self.state.write_text(f"cd '{self.folder}'; unset {unset} x; export {home} {names} {paths}\n", encoding="utf-8")

    def type(self, line: str) -> "subprocess.CompletedProcess[str]":
        keep = f"{{ export -p; pwd | sed \"s/^/cd '/; s/$/'/\"; }} >'{self.state}'"
        done = shell(f". '{self.state}'; eval \"$LINE\" || exit; unset LINE; {keep}", self.folder, LINE=line)
        moved = re.findall("^cd '(.*)'$", self.state.read_text(encoding="utf-8"), re.M)
        self.folder = Path(moved[-1]) if done.returncode == 0 else self.folder
        return done


@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorial(page: str, tmp_path: Path, no_gdb: bool) -> None:
    session, printed, compared = Session(tmp_path), ["", ""], True
    for item in ITEMS[page]:
        name = re.match(r"(?:/[*]|#) ([a-z_]*[.][a-z]*)(?: [*]/)?\n", item.text)
        if item.kind == "typed":
            compared = not (no_gdb and re.search(r"\bgdb ", item.text))
            if compared and not item.why:
                done = session.type(item.text)
                fails = item.text.startswith("posenc verify ") and done.returncode == 1  # a check: the page shows it
                assert done.returncode == 0 or fails, f"{item}: {done.stderr}"
                printed = [done.stdout, done.stderr + done.stdout]
        elif item.kind in ("command", "link") or item.why or EXCERPT.match(item.text):
            pass
        elif name:
            (session.folder / name[1]).write_text(item.text, encoding="utf-8")
        elif item.kind == "text":
            right = any(re.fullmatch(excerpt(item.text), text) for text in printed)
            assert right or not compared, f"{item}: the last line printed other text:\n{printed[1]}"
        else:
            assert False, f"{item}: no name in its first line"
