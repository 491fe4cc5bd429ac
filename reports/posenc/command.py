"""Shared parts of the commands: errors, options, and files that are written completely or not at all.

A command makes a Parser of its options. raise CommandError("the file is empty (got 'x.jsonl').") ends it with exit code
2 and "posenc COMMAND: error: the file is empty (got 'x.jsonl')." on standard error.
"""

import argparse
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, List, NoReturn, Optional, Sequence, Tuple

# Options of the C commands verify and bench that select cases: metavariable and help.
SELECT = {
    "kernel": ("NAME", "only these kernels (posenc list kernels)"),
    "backend": ("NAME", "only these backends or families (posenc list backends)"),
    "dtype": ("NAME", "only this element type: f32, f16 or bf16"),
    "case": ("GLOB", "only cases whose id matches"),
    "model": ("NAME", "shapes of this model (posenc list models)"),
    "config": ("FILE", "shapes of a model file or folder"),
    "plugin": ("LIB", "a shared library with a backend of your own"),
    "vectors": ("PATH", "other golden vectors"),
    "limit": ("SECONDS", "CPU time after which a call counts as hung"),
}


class CommandError(Exception):
    """An error that ends a command: a sentence for the user, and the exit code."""

    def __init__(self, problem: str, status: int = 2) -> None:
        super().__init__(problem)
        self.status = status


def words_of(name: str, values: Sequence[str]) -> List[str]:
    """Returns arguments that pass an option once with each value: kernel, [a, b] gives --kernel a --kernel b."""
    return [word for value in values for word in (f"--{name}", value)]


class Parser(argparse.ArgumentParser):
    """Parser that raises CommandError for bad input. An epilog of several lines keeps its line breaks."""

    def __init__(self, prog: str, description: str, epilog: str = "") -> None:
        super().__init__(prog=prog, description=description, epilog=epilog, allow_abbrev=False)
        self._positionals.title, self._optionals.title = "Arguments", "Options"  # as the C commands print them
        if "\n" in epilog:
            self.formatter_class = argparse.RawDescriptionHelpFormatter

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}. See {self.prog} --help.")

    def add_records(self) -> None:
        """Adds FILE..., files of records."""
        self.add_argument("files", metavar="FILE", nargs="+", help="records, as --out jsonl:FILE writes them")

    def add_output(self, help_text: str = "where it goes (default: standard output)") -> None:
        """Adds -o and --force, for write_output()."""
        self.add_argument("-o", "--output", metavar="PATH", type=file_path, help=help_text)
        self.add_argument("--force", action="store_true", help="overwrite any file at PATH")

    def add_outputs(self) -> None:
        """Adds -o PATH, --out FORMAT and --force, for results.main.outputs_of()."""
        add = self.add_argument
        paths = "write .html, .md, .jsonl, .csv or .xml as well"
        add("-o", "--output", metavar="PATH", type=file_path, action="append", default=[], help=paths)
        formats = "write this format, to standard output or PATH"
        add("--out", metavar="FORMAT[:PATH]", action="append", default=[], help=formats)
        add("--force", action="store_true", help="overwrite any file")

    def add_selection(self, full_help: str, *names: str) -> None:
        """Adds the options `names` of SELECT, --quick, and --full with its help."""
        for name in names:
            self.add_argument(f"--{name}", metavar=SELECT[name][0], action="append", default=[], help=SELECT[name][1])
        modes = self.add_mutually_exclusive_group()
        modes.add_argument("--quick", action="store_true", help="the short run (default)")
        modes.add_argument("--full", action="store_true", help=full_help)


def _option(convert: Callable[[str], Any], is_valid: Callable[[float], bool], expected: str) -> Callable[[str], Any]:
    """Returns a type of option for argparse, which rejects other values than those `expected`."""

    def read(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = math.nan
        if not is_valid(value):
            raise argparse.ArgumentTypeError(f"expected {expected} (got '{text}')")
        return value

    return read


def within(least: int, most: int) -> Callable[[str], int]:
    """Returns a type of option: an integer from `least` to `most`."""
    return _option(int, lambda value: least <= value <= most, f"an integer from {least} to {most}")


def positive(most: float) -> Callable[[str], float]:
    """Returns a type of option: a number above 0, up to `most`."""
    return _option(float, lambda value: 0 < value <= most, f"a number above 0, at most {most:g}")


def file_path(text: str) -> Path:
    """Returns the path of an option: Path("") would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path (got '')")
    return Path(text)


def suggest(name: str, names: Sequence[str]) -> str:
    """Returns the end of a message about an unknown name: up to three similar names, or all if none is similar."""
    import difflib

    near = difflib.get_close_matches(name, names, n=3)
    return f"Did you mean {' or '.join(near)}?" if near else f"Expected one of {', '.join(names)}."


def read_text(path: str, what: str) -> str:
    """Returns the text of a file, or of standard input if the path is "-". Messages call the content `what`."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandError(f"the {what} cannot be read: {why} (got '{path}').") from None


def _open_beside(path: Path, marker: bytes, *, force: bool) -> Tuple[int, str]:
    """Opens a temporary file beside the target of `path`. Returns its handle and its name."""
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            raise CommandError(f"the output is no ordinary file (got '{path}').")
        if target.exists() and not force:
            with target.open("rb") as file:
                head = file.read(1024)
            if head and marker not in head:
                raise CommandError(
                    f"the file exists and is no earlier output (got '{path}'). "
                    "Use another name, or --force to overwrite it."
                )
        return tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise CommandError(f"the output cannot be written: {error.strerror} (got '{path}').") from None


def check_output(path: Path, marker: bytes, *, force: bool) -> None:
    """Rejects a path that write_file() would reject. Commands call this before they measure."""
    handle, temporary = _open_beside(path, marker, force=force)
    os.close(handle)
    os.unlink(temporary)


def write_file(path: Path, data: bytes, marker: bytes, *, force: bool) -> None:
    """Writes a file, complete or not at all.

    An existing file is replaced only if it is empty, if its first 1024 bytes contain `marker`, which every earlier
    output has, or if `force` is set. A symbolic link is followed.
    """
    handle, temporary = _open_beside(path, marker, force=force)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mask = os.umask(0)  # umask() sets the mask that it reads
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, os.path.realpath(path))
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise CommandError(f"the output cannot be written: {error.strerror} (got '{path}').") from None
        raise


def write_output(path: Optional[Path], text: str, marker: bytes, *, force: bool) -> None:
    """Writes a text as write_file() does and prints the path; without a path, writes it to standard output."""
    if path is None:
        sys.stdout.buffer.write(text.encode())
    else:
        write_file(path, text.encode(), marker, force=force)
        print(f"written: {path}", file=sys.stderr)
