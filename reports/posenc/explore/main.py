"""posenc explore: an interactive page about positional encodings. The library computes its numbers in the browser.

The page consists of templates/, the script in frame/, a file of views/ for each view, the data of DATA, and the library
as WebAssembly (library.c). frame/frame.js tells how to write a view.
"""

import base64
import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import jinja2
from markupsafe import Markup  # a part of Jinja2

from ..command import CommandError, Parser, file_path, suggest, write_file
from ..engine import Engine
from ..models.model import preset, presets, read_json
from ..models.part import Part
from .concepts import concept_map
from .course import course

ABOUT = """Writes an interactive page about positional encodings. It is one file, which any
browser opens and which loads nothing. The library computes its numbers in the
browser, with the bits of posenc table --backend scalar."""
EPILOG = "Examples\n  posenc explore\n  posenc explore --view table -o table.html"
HERE = Path(__file__).parent
MARKER = b"<title>posenc explore</title>"
VIEWS = tuple(sorted(path.stem for path in (HERE / "views").glob("*.js")))
# Files of the frame, which stand before the views. Each file is a part of one script, without modules.
FRAME = ("theme", "lib", "frame", "heatmap", "plot", "views")
START = "beginTheme();\nexplore.ready = begin();"
LEFT_OUT = ("freq_spacing", "mrope_section", "mrope_layout")  # of the frequencies
KIMI = '{"model_type": "kimi_k25_vision"}'  # no preset, and the one layout that no preset has
# The kind of an encoding in the view "bias", and the member of a part for each of the view's controls.
BIASES: Dict[str, Any] = {
    "alibi": ("alibi", {"heads": "heads"}),
    "t5": ("t5", {"num_buckets": "num_buckets", "max_distance": "max_distance"}),
    "deberta": ("deberta", {"buckets": "num_buckets", "most": "max_distance"}),
    "window": ("swin", {"height": "window", "width": "window"}),
}
MISSING = (
    "the page needs the library as WebAssembly, which this build of posenc lacks. Install clang, lld, wasi-libc and "
    "libclang-rt-dev-wasm32 (Debian), then build posenc again."
)


# ---- properties of the presets, as data of views ----


def _parts() -> Iterator[Tuple[str, Dict[str, str], Part]]:
    """Yields the parts of the presets: the name of the model, its facts and the part."""
    for name in presets():
        reading = preset(name).reading
        yield from ((name, reading.facts, part) for part in reading.parts)


def rotating_models() -> List[Dict[str, Any]]:
    """Returns the rotations of the presets: a row for each type of layers, without towers for pictures."""
    rows: List[Dict[str, Any]] = []
    for name, facts, part in _parts():
        if part.rotates and not part.tower:
            spec = {member: value for member, value in part.changed_frequencies().items() if member not in LEFT_OUT}
            rows.append({
                "name": name, "title": facts["title"], "layers": part.name, "length": part.length,
                "numerics": facts.get("trained_numerics", ""),
                "spec": {"dim": part.dim, "rope_theta": part.rope_theta, **spec},
            })  # fmt: skip
    return rows


def gridded_models() -> List[Dict[str, Any]]:
    """Returns rotations with several axes: those of the presets, and of the vision tower of Kimi K2.5."""
    parts = [(facts["title"], part) for _, facts, part in _parts()]
    parts += [("Kimi K2.5", part) for part in read_json(KIMI).parts]
    return [
        {
            "title": title, "tower": part.tower, "pairing": part.encoding.replace("rope_", ""),
            "columnFirst": part.column_first,
            "spec": {"dim": part.rotary_dim, "rope_theta": part.rope_theta,
                     "mrope_section": list(part.mrope_section), "mrope_layout": part.mrope_layout},
        }
        for title, part in parts if part.mrope_section
    ]  # fmt: skip


def biased_models() -> List[Dict[str, Any]]:
    """Returns the biases of the presets: the kind, the model's title and the values of the view's controls."""
    rows: List[Dict[str, Any]] = []
    for _, facts, part in _parts():
        if part.encoding in BIASES and not part.window_class:  # a class token has three rows more (BEiT)
            kind, members = BIASES[part.encoding]
            values = {control: getattr(part, member) for control, member in members.items()}
            row = {"kind": kind, "title": facts["title"], "values": values}
            rows += [] if row in rows else [row]
    return rows


# ---- the page ----

# Data of views, as page.data.
DATA: Dict[str, Callable[[], Any]] = {
    "bias": biased_models, "course": course, "map": concept_map, "mrope": gridded_models, "precision": rotating_models,
    "scaling": rotating_models,
}  # fmt: skip


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


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def script_of(views: Sequence[str]) -> str:
    """Returns the script. The names in a view are its own: its file stands in braces."""
    parts = ['"use strict";', *(_text(f"frame/{name}.js") for name in FRAME)]
    parts += [f"{{\n{_text(f'views/{name}.js')}}}" for name in views]
    return "\n".join([*parts, START]).replace("</script", "<\\/script")


def to_html(wasm: bytes, views: Sequence[str] = VIEWS) -> str:
    """Returns the page. It contains all that it needs."""
    data = {name: DATA[name]() for name in views if name in DATA}
    env = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True)
    return env.get_template("page.html.j2").render(
        css=Markup(_text("templates/page.css")), script=Markup(script_of(views)),
        data=Markup(json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")),
        wasm=base64.b64encode(gzip.compress(wasm, 9, mtime=0)).decode(),
    )  # fmt: skip


def main(arguments: List[str]) -> int:
    """Writes the page. Returns the exit code."""
    parser = Parser("posenc explore", ABOUT, EPILOG)
    where = "where the page goes (default: posenc-explore.html)"
    only = f"only this view; may be repeated: {', '.join(VIEWS)}"
    add = parser.add_argument
    add("-o", "--output", metavar="PATH", type=file_path, default=Path("posenc-explore.html"), help=where)
    add("--force", action="store_true", help="overwrite any file at PATH")
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
