"""Adapters of other projects: `posenc scoreboard mine.py` has a row for each function, or says why there is none."""

import os
import re
import select
import shlex
import sys
from pathlib import Path
from typing import Any, List

import pytest

pytest.importorskip("numpy", reason="python3-numpy is missing")

from conftest import ROOT, python_blocks  # noqa: E402

from posenc.command import CommandError  # noqa: E402
from posenc.engine import Engine  # noqa: E402
from posenc.scoreboard import main as scoreboard  # noqa: E402

IMPORTS = "import os, signal\nfrom posenc.scoreboard import implements\n"
FUNCTION = """
@implements("learned_add", "{0}", framework="numpy")
def add(x, positions, table):
    {1}
"""
RIGHT = IMPORTS + FUNCTION.format("right", "return x + table[positions]")
LOOP = "open('loop-began', 'x')\n    while True: pass"  # two statements of an indented body
BODIES = {  # body of a function, and the verdict in its row
    "return x + table[positions - 1]": "differs: ",
    "raise KeyError('a | b')": "differs: the program reports an error: KeyError: 'a \\| b'",
    "os.kill(os.getpid(), signal.SIGSEGV)": "not measured: ended by SIGSEGV",
    "os._exit(3)": "not measured: exit status 3",
    "os._exit(0)": "not measured: exit status 0",
    LOOP: "not measured: took longer than 5 s",
    "return x + table[positions]": "conforms",
}
UNUSABLE = {  # an adapter, and the reason why it has no row
    "PACKAGES = ['no-such-package']  # why\nimport no_such_package": "No module named 'no_such_package'",
    "raise OSError('a\\nb')": "OSError: a b",
    "def broken(:": "SyntaxError: ",
    "": "ValueError: no function is below @implements",
    "import os; os.abort()": "ended by SIGABRT",
    "raise SystemExit(0)": "exit status 0",
    f"if True:\n    {LOOP}": "took longer than 5 s",
}

try:
    Engine()
except CommandError as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.fixture(autouse=True)
def _new_folder_and_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    wait = select.select

    def wait_for_loop(files: List[Any], *_: Any) -> Any:
        """Replaces select(), and waits without a limit, so that a busy machine makes no adapter late.

        Once an adapter has begun its loop, nothing is ready, as at the time limit.
        """
        while not (ready := wait(files, [], [], 0.1))[0]:
            if Path("loop-began").exists():
                Path("loop-began").unlink()
                break
        return ready

    monkeypatch.setattr(select, "select", wait_for_loop)


def cells_of(page: str) -> List[List[str]]:
    """Returns the rows of the tables of implementations."""
    tables = page.partition("## How to read")[0]
    return [line.strip("| \n").split(" | ") for line in re.findall(r"^\| (?!library).*$", tables, re.M)]


def run(*words: str) -> int:
    return scoreboard.main([*words, "-o", "page.md", "-o", "page.jsonl", "--force"])


def test_adapter_of_the_page_gets_its_row_by_the_command_of_the_workflow() -> None:
    workflow = (ROOT / "examples" / "ci" / "scoreboard.yml").read_text("utf-8")
    words = shlex.split(re.search(r"venv/bin/posenc scoreboard (.*)", workflow)[1])  # type: ignore[index]
    Path(words[0]).write_text(python_blocks("docs/ci.md")[0], "utf-8")
    assert scoreboard.main(words) == 0
    (cells,) = cells_of(Path("scoreboard.md").read_text("utf-8"))
    assert cells[0] == Path(words[0]).stem and cells[2] == "conforms"
    assert sorted(path.suffix for path in Path().glob("scoreboard.*")) == [".html", ".jsonl", ".md"]


def test_row_that_is_broken_says_so_and_leaves_the_others_alone() -> None:
    functions = [FUNCTION.format(row, body) for row, body in enumerate(BODIES)]
    Path("mine.py").write_text(IMPORTS + "".join(functions), "utf-8")
    assert run("mine.py", "--limit", "5") == 1
    rows = cells_of(Path("page.md").read_text("utf-8"))
    assert [cells[:2] for cells in rows] == [["mine", str(row)] for row in range(len(BODIES))]
    for cells, verdict in zip(rows, BODIES.values()):
        assert cells[2].startswith(verdict)


def test_adapter_that_cannot_be_loaded_is_named_and_leaves_the_others_alone() -> None:
    files = [f"broken{row}.py" for row in range(len(UNUSABLE))]
    for file, text in zip(files, UNUSABLE):
        Path(file).write_text(text, "utf-8")
    Path("mine.py").write_text("print('{no record')\n" + RIGHT, "utf-8")  # what an adapter prints is no record
    assert run(*files, "mine.py", "--limit", "5") == 1
    page = Path("page.md").read_text("utf-8")
    assert [cells[:3] for cells in cells_of(page)] == [["mine", "right", "conforms"]]
    lines = [line for line in page.splitlines() if line.startswith("| broken")]
    assert len(lines) == len(files) and "| `pip install no-such-package` |" in lines[0]
    for line, reason in zip(lines, UNUSABLE.values()):
        assert reason in line


def test_adapter_may_have_the_name_of_its_library() -> None:
    Path("numpy.py").write_text(RIGHT, "utf-8")
    assert run("numpy.py") == 0
