"""Runs a command: python3 -m posenc COMMAND, or posenc COMMAND through the C program, which has the other commands.

posenc report is the function main() of report/main.py, which takes the words after "report" and returns the exit code.
"""

import importlib
import importlib.util
import io
import os
import sys
import sysconfig
from pathlib import Path
from typing import List, NoReturn

from .command import CommandError
from .engine import Engine
from .terminal import escape_hidden

COMMANDS = tuple(sorted(file.parent.name for file in Path(__file__).parent.glob("*/main.py")))


def require_packages(name: str) -> None:
    """Raises ModuleNotFoundError if a package is missing that a command loads only after it has measured."""
    if name != "explain":
        for package in ("jinja2", "rich"):
            if not importlib.util.find_spec(package):
                raise ModuleNotFoundError(name=package)


def main(name: str, arguments: List[str]) -> int:
    """Runs command `name`. Returns its exit code, unless the C program takes the place of this process."""
    if name not in COMMANDS:
        return run_program(sys.argv[1:])
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Unicode gets a question mark
    try:
        require_packages(name)
        module = importlib.import_module(f"posenc.{name}.main")
        status: int = module.main(arguments)
        sys.stdout.flush()
    except CommandError as error:
        print(f"posenc {name}: error: {escape_hidden(str(error))}", file=sys.stderr)
        return error.status
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        print(
            f"posenc {name}: error: {sys.executable} lacks the module {package}. "
            f"Install python3-{package} (Debian), or: pip install {package}",
            file=sys.stderr,
        )
        return 2
    except OSError as error:  # on standard output: commands turn an error of a file into a CommandError
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes standard output once more at its end
        if isinstance(error, BrokenPipeError):
            return 141
        print(f"posenc {name}: error: standard output cannot be written: {error.strerror}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return status


def run_program(arguments: List[str]) -> int:
    """Replaces this process by the C program. Returns an exit code if that cannot be run."""
    try:
        program = Engine().program
        if program.exists() and Path(sys.argv[0]).exists() and program.samefile(sys.argv[0]):
            raise CommandError("this package lacks the program, as jansson was missing when it was built.")
        # The program looks for posenc-COMMAND, which pip installs beside this Python.
        os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
        os.execv(program, [str(program), *arguments])
    except (CommandError, OSError) as error:
        print(f"posenc: error: {error} Commands without it: {', '.join(COMMANDS)}.", file=sys.stderr)
    return 2


def run() -> NoReturn:
    """Entry point posenc-COMMAND: runs the command that this program is named after."""
    sys.exit(main(os.path.basename(sys.argv[0]).partition("-")[2], sys.argv[1:]))


def posenc() -> NoReturn:
    """Entry point posenc: runs posenc COMMAND."""
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:]))


if __name__ == "__main__":
    posenc()
