"""posenc explain -o: the C code of every preset compiles, and its frequencies are those of the model's calls."""

import csv
import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from posenc.command import CommandError
from posenc.engine import Engine
from posenc.explain.c_code import c_code
from posenc.explain.main import main
from posenc.models.calls import frequencies_of
from posenc.models.model import Model, preset

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(Engine().program).resolve()
LIBRARY = next(iter(sorted(PROGRAM.parent.glob("impl/libposenc.so"))), None)
COMPILER = shutil.which(os.environ.get("CC", "cc").split()[-1])
PRESETS = [line.split()[0] for line in Engine().run("list", "models").splitlines()[1:]]


class View(ctypes.Structure):
    """The first members of struct posenc_freqs_view."""

    _fields_ = [
        ("numerics", ctypes.c_int32),
        ("dim", ctypes.c_int64),
        ("n_pairs", ctypes.c_int64),
        ("omega", ctypes.POINTER(ctypes.c_double)),
    ]


def created_frequencies(compiled: ctypes.CDLL, library: ctypes.CDLL, function: str) -> List[float]:
    """Calls a function of the compiled code and returns the frequencies that it creates."""
    made, view = ctypes.c_void_p(), View()
    assert compiled[function](ctypes.byref(made), None) == 0
    freqs = made.value
    if function.startswith("create_rope"):
        library.posenc_rope_freqs.restype = ctypes.c_void_p
        freqs = library.posenc_rope_freqs(made)
    library.posenc_freqs_view_get(ctypes.c_void_p(freqs), ctypes.byref(view), ctypes.c_size_t(ctypes.sizeof(view)))
    omega: List[float] = view.omega[: view.n_pairs]
    library["posenc_rope_destroy" if function.startswith("create_rope") else "posenc_freqs_destroy"](made)
    return omega


def check(model: Model, folder: Path) -> int:
    """Compiles the code of a model, compares its frequencies with its calls, and returns their number."""
    code = c_code(model, "--config file")
    (folder / "rope.c").write_text(code, encoding="utf-8")
    include = f"-I{ROOT / 'impl' / 'include'}"
    command = [str(COMPILER), "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fPIC", "-shared", "rope.c",
               include, "-o", "rope.so", str(LIBRARY)]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(LIBRARY), mode=ctypes.RTLD_GLOBAL)
    compiled = ctypes.CDLL(str(folder / "rope.so"))
    functions = re.findall(r"\b(create_\w+)\(", code)
    parts = [part for part in model.reading.parts if part.rotates or part.encoding == "sinusoidal"]
    assert len(functions) == len(set(functions)) == len(parts)
    for function, part in zip(functions, parts):
        text = Engine().run("table", "frequencies", "--problem", str(frequencies_of(part, part.length)))
        want = [float(row["radians"]) for row in csv.DictReader(text.splitlines())]
        assert created_frequencies(compiled, library, function) == want, function
    return len(functions)


@pytest.mark.skipif(LIBRARY is None or COMPILER is None or sys.platform != "linux", reason="no shared library, or no C")
def test_frequencies_of_every_preset(tmp_path: Path) -> None:
    made = 0
    for name in PRESETS:
        model = preset(name)
        folder = tmp_path / name
        folder.mkdir()
        if any(part.rotates or part.encoding == "sinusoidal" for part in model.reading.parts):
            made += check(model, folder)
        else:
            with pytest.raises(CommandError):
                c_code(model, "")
    assert made > 30


def test_the_file_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rope.c"
    assert main(["--model", "llama-3.1-8b", "-o", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert "    spec.scaling = POSENC_SCALING_LLAMA3;\n" in text
    assert main(["--model", "llama-2-7b", "-o", str(path)]) == 0  # a file of its own is replaced
    assert path.read_text(encoding="utf-8") != text
    path.write_text("int main(void) {}\n", encoding="utf-8")
    for arguments in (["--model", "llama-2-7b", "-o", str(path)], ["--model", "gpt2", "-o", "-"],
                      ["yarn", "-o", str(path)], ["--model", "gpt2", "--record", "-o", "-"]):  # fmt: skip
        with pytest.raises(CommandError):
            main(arguments)
    assert path.read_text(encoding="utf-8") == "int main(void) {}\n"
    capsys.readouterr()
    assert main(["--model", "llama-3.1-8b", "-o", "-"]) == 0
    assert capsys.readouterr().out == text


def test_a_title_cannot_end_the_comment_or_begin_another() -> None:
    model = preset("llama-2-7b")
    model.reading.facts["title"] = 'x */ #include "/etc/passwd"\n'
    first = c_code(model, "--config '*/' /tmp/*.json\n").splitlines()[0]
    assert first.count("*/") == 1 and first.endswith("*/") and first.count("/*") == 1
