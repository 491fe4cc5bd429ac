"""Finds pages of docs/encodings by name: kernels, methods, numerics modes and scalings, and the table of parameters.

thing_lines("freq_base") is the page of rope_theta, which llama.cpp calls so.
"""

import difflib
import functools
import re
import textwrap
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional

from ..command import CommandError

HERE = Path(__file__).parent
FOLDERS = (HERE / "encodings", HERE.parents[2] / "docs" / "encodings")  # installed, and in the source tree
PARAMETERS = "parameters"
WIDTH = 100


class Parameter(NamedTuple):
    """A row of parameters.md."""

    name: str
    meaning: str
    also: str  # names in other libraries, separated by commas


def _folder() -> Path:
    for folder in FOLDERS:
        if folder.is_dir():
            return folder
    raise CommandError(f"the pages of encodings are not installed (got neither of {FOLDERS[0]} and {FOLDERS[1]}).")


@functools.lru_cache(None)
def parameters() -> Dict[str, Parameter]:
    """Returns the parameters by name."""
    lines = (_folder() / f"{PARAMETERS}.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    rows = [Parameter(*row) for row in cells if len(row) == 3][2:]  # below the heading
    return {row.name: row for row in rows}


@functools.lru_cache(None)
def pages() -> Dict[str, str]:
    """Returns the pages by name."""
    files = sorted(file for file in _folder().glob("*.md") if file.stem != PARAMETERS)
    return {file.stem: file.read_text(encoding="utf-8") for file in files}


def _is_called(also: str, name: str) -> bool:
    """Returns whether a list of other names has a name. It may add a value: "flip_sin_to_cos (true: cos_sin)"."""
    return name in (re.sub(r" \(.*", "", one.strip()) for one in also.split(","))


def _find(name: str) -> Optional[str]:
    """Returns the page or the parameter with this name or other name."""
    if name in pages() or name in parameters():
        return name
    for row in parameters().values():
        if _is_called(row.also, name):
            return row.name
    for page, text in pages().items():
        also = re.search(r"^Also called: ([^#]+)", text, re.M)
        if also and _is_called(" ".join(also[1].split()), name):
            return page
    return None


def _meanings(names: List[str]) -> Iterator[str]:
    """Yields a row for each parameter that a page names."""
    for name in names:
        row = parameters().get(name, Parameter(name, "", ""))
        also = f" (also {row.also})" if row.also else ""
        yield textwrap.fill(f"`{name}`: {row.meaning}{also}", WIDTH, initial_indent="- ", subsequent_indent="  ",
                            break_on_hyphens=False)  # fmt: skip


def _page(name: str) -> Iterator[str]:
    """Yields a page, with the meaning of each parameter in place of its list of parameters."""
    text = pages()[name]
    named = re.search(r"(?<=\n## Parameters\n\n)[^#]+", text)
    if named:
        meanings = "\n".join(_meanings(re.findall(r"`(\w+)`", named[0])))
        text = text.replace(named[0], meanings + "\n\n")
    yield text.rstrip()


def _parameter(row: Parameter) -> Iterator[str]:
    yield from (f"# {row.name}", "", f"A parameter: {row.meaning}")
    if row.also:
        yield from ("", f"Also called: {row.also}")


def thing_lines(thing: str) -> Iterator[str]:
    """Yields the page of a kernel, a method, a numerics mode, a scaling or a parameter."""
    name = _find(thing)
    if name is None:
        near = difflib.get_close_matches(thing, [*pages(), *parameters()], cutoff=0.5)
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        raise CommandError(
            f"there is no kernel, method, numerics mode, scaling or parameter of this name (got '{thing}'). {meant}"
            "posenc list names kernels, methods, numerics modes and scalings."
        )
    return _page(name) if name in pages() else _parameter(parameters()[name])
