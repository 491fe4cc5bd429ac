"""The notebook of the course (docs/course/notebook.ipynb): it runs, checks answers, and fails if a number is wrong."""

import json
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from posenc.engine import Engine

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "course" / "notebook.ipynb"
CELLS: List[Dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]
SOURCES = ["".join(cell["source"]) for cell in CODE]
RIGHT = "BCACCB"  # answers
QUESTIONS = range(1, 1 + len(RIGHT))

# Words of each call of the program, and the number of its cell among those with table(); the first one defines table().
CALLS = {
    "128 dim=64": 1, "dim=128": 2, "cos_sin": 3, "rope_half": 3, "rope_interleaved": 3, "heads=8": 4, "heads=12": 4,
}  # fmt: skip

# Stands in for the program. It changes the largest number of the call with these words by a hundred thousandth.
TAMPERING = """#!{python}
import io, os, subprocess, sys
if os.environ["TAMPERED"] not in " ".join(sys.argv):
    os.execv({program!r}, [{program!r}, *sys.argv[1:]])
import numpy as np
array = np.load(io.BytesIO(subprocess.run([{program!r}, *sys.argv[1:]], check=True, stdout=subprocess.PIPE).stdout))
array.flat[np.argmax(np.where(np.isfinite(array), np.abs(array), 0))] *= 1 + 1e-5
np.save(sys.stdout.buffer, array)
"""

Cell = Dict[str, Any]
Run = Callable[..., List[Cell]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Returns a function that runs cells in a kernel of this Python, and returns them with their outputs."""
    for package in ("nbclient", "ipykernel"):
        pytest.importorskip(package, reason=f"python3-{package} is missing")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat.v4")
    folder = Path(tempfile.mkdtemp())  # names of sockets are short, and tmp_path may be long
    sockets = {"KernelManager": {"transport": "ipc", "ip": str(folder / "kernel")}}
    config = pytest.importorskip("traitlets.config").Config(sockets)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = folder / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}), encoding="utf-8")
    for name in ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("POSENC_PROGRAM", str(Engine().program))

    def execute(sources: List[str], allow_errors: bool = False) -> List[Cell]:
        client = nbclient.NotebookClient(
            nbformat.new_notebook(cells=[nbformat.new_code_cell(source) for source in sources]),
            allow_errors=allow_errors, config=config, kernel_name="python3", startup_timeout=120, timeout=60,
            resources={"metadata": {"path": str(folder)}},
        )  # fmt: skip
        done: List[Cell] = client.execute()["cells"]
        return done

    yield execute
    shutil.rmtree(folder)


def printed(cell: Cell) -> str:
    """Returns what a cell has printed."""
    return "".join(output.get("text", "") for output in cell["outputs"])


def test_no_output_is_committed() -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CODE)
    assert all(cell["metadata"] == {} for cell in CELLS)


def test_each_question_waits_for_an_answer() -> None:
    waiting = [source.splitlines()[-1] for source in SOURCES if source.startswith("# ")]
    assert waiting == [f'check({number}, "?")' for number in QUESTIONS]


def test_it_runs_and_prints_which_answers_are_right(run: Run) -> None:
    answers = [(number, letter) for number in QUESTIONS for letter in "ABC"]
    cells = run(SOURCES + [f"check({number}, {letter!r})" for number, letter in answers])
    pictures = [output for cell in cells for output in cell["outputs"] if "image/png" in output.get("data", {})]
    assert len(pictures) == 5
    text = [printed(cell) for cell in cells]
    assert "offset 11: 0.6616, offset 12: 0.6622" in "".join(text)
    assert sum("write A, B or C" in words for words in text) == len(RIGHT)
    for (number, letter), words in zip(answers, text[len(SOURCES) :]):
        verdict = "right" if letter == RIGHT[number - 1] else "wrong"
        assert words.startswith(f"Question {number}: {letter} is {verdict}. ")


def test_a_changed_number_makes_it_fail(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "posenc"
    program.write_text(TAMPERING.format(python=sys.executable, program=str(Engine().program)), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("POSENC_PROGRAM", str(program))
    monkeypatch.setenv("MPLBACKEND", "agg")  # draws nothing
    calling = [source for source in SOURCES if "table(" in source]
    assert sum(source.count("table(") for source in calling) == len(CALLS)  # one is the definition, one has two calls
    changed = [[f"os.environ['TAMPERED'] = {call!r}", calling[number]] for call, number in CALLS.items()]
    runs = [["import os; os.environ['TAMPERED'] = 'none'", *calling], *changed]
    cells = iter(run([source for sources in runs for source in sources], allow_errors=True))
    for call, sources in zip(["none", *CALLS], runs):
        outputs = [output for _ in sources for output in next(cells)["outputs"]]
        errors = [output["ename"] for output in outputs if output["output_type"] == "error"]
        assert errors == ([] if call == "none" else ["AssertionError"]), call
