"""posenc explore: an interactive page about positional encodings. The library computes its numbers in the browser."""

import base64
import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

import jinja2
from markupsafe import Markup  # a part of Jinja2

from ..command import CommandError, Parser, file_path, suggest, write_file
from ..engine import Engine
from .concepts import concept_map
from .course import course
from .models import biased_models, gridded_models, rotating_models

HERE = Path(__file__).parent
MARKER = b"<title>posenc explore</title>"
VIEWS = tuple(sorted(path.stem for path in (HERE / "views").glob("*.js")))
# Files of the frame, which stand before the views. Each file is a part of one script, without modules.
FRAME = ("theme", "lib", "frame", "heatmap", "plot", "views")
START = "beginTheme();\nexplore.ready = begin();"
# Data of views, as page.data: by a function here, or from views/NAME.json.
DATA: Dict[str, Callable[[], Any]] = {
    "bias": biased_models, "course": course, "map": concept_map, "mrope": gridded_models, "precision": rotating_models,
    "scaling": rotating_models,
}  # fmt: skip

MISSING = (
    "the page needs the library as WebAssembly, which this build of posenc lacks. Install clang, lld, wasi-libc and "
    "libclang-rt-dev-wasm32 (Debian), then build posenc again."
)


def find_wasm() -> Path:
    """Returns the file with the library: beside this package, or where the build of the program has it."""
    name = "explore.wasm"
    if (HERE / name).is_file():
        return HERE / name
    program = Path(os.path.realpath(Engine().program)).parent
    installed = program.parent / "libexec" / "posenc" / "python" / "posenc" / "explore"
    for folder in (program / "reports", installed):
        if (folder / name).is_file():
            return folder / name
    raise CommandError(MISSING)


def data_of(view: str) -> Optional[Any]:
    """Returns the data of a view; None if it has none."""
    if view in DATA:
        return DATA[view]()
    path = HERE / "views" / f"{view}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def script_of(views: Sequence[str]) -> str:
    """Returns the script. The names in a view are its own: its file stands in braces."""
    parts = ['"use strict";', *(_text(HERE / "frame" / f"{name}.js") for name in FRAME)]
    parts += [f"{{\n{_text(HERE / 'views' / f'{name}.js')}}}" for name in views]
    return "\n".join([*parts, START]).replace("</script", "<\\/script")


def to_html(wasm: bytes, views: Sequence[str] = VIEWS) -> str:
    """Returns the page. It contains all that it needs."""
    style = _text(HERE / "templates" / "page.css") + "".join(_text(HERE / "views" / f"{name}.css") for name in views)
    data = {name: found for name in views if (found := data_of(name)) is not None}
    env = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True)
    return env.get_template("page.html.j2").render(
        css=Markup(style), script=Markup(script_of(views)),
        data=Markup(json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")),
        wasm=base64.b64encode(gzip.compress(wasm, 9, mtime=0)).decode(),
    )  # fmt: skip


def main(arguments: List[str]) -> int:
    """Writes the page. Returns the exit code."""
    parser = Parser(
        "posenc explore",
        "Writes an interactive page about positional encodings. It is one file, which any\n"
        "browser opens and which loads nothing. The library computes its numbers in the\n"
        "browser, with the bits of posenc table --backend scalar.",
        "Examples\n  posenc explore\n  posenc explore --view table -o table.html",
    )
    where = "where the page goes (default: posenc-explore.html)"
    add = parser.add_argument
    add("-o", "--output", metavar="PATH", type=file_path, default=Path("posenc-explore.html"), help=where)
    add("--force", action="store_true", help="overwrite any file at PATH")
    only = f"only this view; may be repeated: {', '.join(VIEWS)}"
    add("--view", metavar="NAME", action="append", help=only)
    args = parser.parse_args(arguments)
    for name in args.view or []:
        if name not in VIEWS:
            raise CommandError(f"no such view (got '{name}'). {suggest(name, VIEWS)}")
    if args.output.suffix != ".html":
        raise CommandError(f"the page is HTML (got '{args.output}'). Use a name that ends in .html.")
    html = to_html(find_wasm().read_bytes(), args.view or VIEWS)
    write_file(args.output, html.encode(), MARKER, force=args.force)
    print(f"written: {args.output}", file=sys.stderr)
    return 0
