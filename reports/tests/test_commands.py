"""The commands written in Python: one list of them, one way to start them, and all their files in a package."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from posenc.__main__ import COMMANDS
from posenc.command import CommandError
from posenc.engine import Engine

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "reports"
PYPROJECT = (ROOT / "pyproject.toml").read_text()


def listed_commands() -> List[str]:
    """Returns the names in pyproject.toml, in its order."""
    return re.findall(r'^posenc-(\w+) = "posenc.__main__:run"$', PYPROJECT, re.M)


def test_list_has_each_command_in_order() -> None:
    assert listed_commands() == list(COMMANDS)


def test_help_of_the_program_has_each_command() -> None:
    """Reads the table of main.c, as --help marks no command as external."""
    table = re.search(r"} external_commands\[\] = \{(.*?)^};", (ROOT / "cli" / "main.c").read_text(), re.S | re.M)
    assert table and re.findall(r'^    \{ "(\w+)",', table[1], re.M) == listed_commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_a_main_function(name: str) -> None:
    assert callable(importlib.import_module(f"posenc.{name}.main").main)


def test_module_runs_the_program() -> None:
    """python -m posenc has all commands."""
    environment = {**os.environ, "POSENC_PROGRAM": str(Engine().program), "PYTHONPATH": str(REPORTS)}
    done = subprocess.run([sys.executable, "-m", "posenc", "list", "kernels"], env=environment, capture_output=True)
    assert done.returncode == 0 and b"rope_half" in done.stdout


@pytest.mark.parametrize("line", ["compare -o", "doctor -o", "explain --types -o", "explore -o", "report -o",
                                  "report --dir", "results export records -o", "scoreboard -o",
                                  "tune"])  # fmt: skip
def test_empty_path_is_rejected(line: str) -> None:
    name, *arguments = line.split()
    with pytest.raises(CommandError, match=r"expected a path \(got ''\)"):
        importlib.import_module(f"posenc.{name}.main").main([*arguments, ""])


# ---- how the program starts them ----


def run_external(folder: Path, script: str) -> "subprocess.CompletedProcess[str]":
    """Runs `posenc sample argument` where posenc-sample is `script` and PATH has `folder` alone.

    The environment lacks POSENC_PROGRAM, which the program sets.
    """
    command = folder / "posenc-sample"
    command.write_text(script)
    command.chmod(0o755)
    environment = {**os.environ, "PATH": str(folder)}
    program = str(Engine().program)
    environment.pop("POSENC_PROGRAM", None)
    return subprocess.run([program, "sample", "argument"], env=environment, capture_output=True, encoding="utf-8")


def test_python_is_found_on_path(tmp_path: Path) -> None:
    script = "#!/usr/bin/env python3\nimport os, sys\nprint(*sys.argv[1:], os.environ.get('POSENC_PROGRAM'))"
    done = run_external(tmp_path, script)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "posenc sample: python3: not found on PATH.  Install Python 3.9 or later "
        "(list, verify, bench and table work without it)\n"
    )
    (tmp_path / "python3").symlink_to(sys.executable)
    done = run_external(tmp_path, script)
    word, _, program = done.stdout.rstrip("\n").partition(" ")
    assert (done.returncode, word) == (0, "argument"), done.stderr
    assert Path(program).samefile(Engine().program)


def test_other_interpreters_are_left_to_env(tmp_path: Path) -> None:
    done = run_external(tmp_path, "#!/usr/bin/env nonesuch\n")
    assert done.returncode == 127 and "nonesuch" in done.stderr and "Python" not in done.stderr


# ---- the file that starts one ----


def install_command(folder: Path, package: str) -> str:
    """Installs posenc-report in a folder, and returns its path."""
    text = (REPORTS / "posenc-command.in").read_text()
    path = folder / "posenc-report"
    path.write_text(text.replace("@PYTHON@", "/usr/bin/env python3").replace("@PACKAGE@", package))
    return str(path)


def test_modules_beside_the_package_come_first(tmp_path: Path) -> None:
    """A bundle has its own; those on PYTHONPATH or of the system may be anything."""
    for folder in ("python/posenc", "other"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "other" / "jinja2.py").write_text("print('other')")
    (tmp_path / "python" / "jinja2.py").write_text("print('bundled')")
    (tmp_path / "python" / "posenc" / "__main__.py").write_text("import jinja2\ndef run(): pass\n")
    done = subprocess.run(
        [sys.executable, install_command(tmp_path, "python")], stdout=subprocess.PIPE, encoding="utf-8", check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "other")},
    )  # fmt: skip
    assert done.stdout == "bundled\n"


def test_old_python_is_named(tmp_path: Path) -> None:
    command = install_command(tmp_path, "python")
    code = f"import sys; sys.version_info = (3, 6); sys.argv = [{command!r}]; exec(open({command!r}).read())"
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"posenc report: error: this Python is too old (got '{sys.executable} ")
    assert done.stderr.endswith("Install Python 3.9 or later.\n") and done.stderr.count("\n") == 1
