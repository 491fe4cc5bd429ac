"""The concept map: the problem, groups of encodings, pages of docs/encodings, and the presets that use them.

Texts, formulas, links and sources come from the pages; order, titles and groups from concepts.txt; pictures and their
captions from docs; lessons from docs/course. views/map.js draws it: a node has an id, a title, a kind, texts, a column
and a height y; an edge is [from, to, kind].
"""

import base64
import configparser
import gzip
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..explain.pages import pages
from ..explain.parts import FACTS_BY_ENCODING, title
from ..models.model import Model, preset, presets
from ..models.part import Part
from .course import Lesson, docs_folder, joined, read_lessons

HERE = Path(__file__).parent
ENTRIES = HERE / "concepts.txt"
KINDS = {
    "problem": "the problem", "group": "group", "kernel": "kernel: a function of the library",
    "method": "method: made from kernels", "scaling": "scaling family", "numerics": "numerics mode",
    "model": "model (preset)",
}  # fmt: skip
PAGE_KINDS = {"kernel": "kernel", "method": "method", "scaling": "scaling", "numerics mode": "numerics"}
LINE_HEIGHT, GAP = 16.0, 0.6  # pixels from a model to the next; lines between groups
MODELS = 4  # column of models
# Members of a rotation that the node of a model lists, by their names in problems. Defaults are left out.
ROTARY = (
    "head_dim", "rotary_dim", "rope_theta", "scaling", "factor", "original_max_position_embeddings", "low_freq_factor",
    "high_freq_factor", "partial_rotary_factor", "mrope_section", "mrope_layout",
)  # fmt: skip
Node = Dict[str, Any]
Blocks = List[Tuple[str, str]]  # ("text", ...), ("item", ...) or ("code", ...)


class Page(NamedTuple):
    """A page of docs/encodings."""

    kind: str  # one of KINDS
    summary: str  # its first line
    text: List[str]  # paragraphs of the introduction
    definition: Blocks
    source: str
    see: List[Tuple[str, str]]  # other pages, and why
    sections: Dict[str, str]  # by heading, as Markdown


# ---- pages ----


def _blocks(text: str) -> Iterator[Tuple[str, str]]:
    """Yields the blocks of a Markdown text."""
    for block in re.split(r"\n\n+", text.strip("\n")):
        if block.startswith("    "):
            yield "code", "\n".join(line[4:] for line in block.splitlines())
        elif block.startswith("- "):
            yield from (("item", joined(item)) for item in re.split(r"(?m)^- ", block)[1:])
        else:
            yield "text", joined(block)


def _links(text: str) -> str:
    """Returns a text in which links to pages become links on the map, and other links become plain text."""
    text = re.sub(r"\[([^]]+)\]\((\w+)\.md\)", r"[\1](#\2)", text)
    return re.sub(r"\[([^]]+)\]\((?!#)[^)]*\)", r"\1", text)


HEADINGS = ("Definition", "Source", "See also", "Traps", "Models")


def read_page(name: str, text: str) -> Page:
    """Reads a page, whose form test_encyclopedia.py shows: name, kind, introduction, and sections."""
    head = re.match(rf"# {name}\n\n(An? ((?:numerics )?\w+)(?:, for |: ).+)\n\n", text)
    if not head:
        raise ValueError(f"docs/encodings/{name}.md: expected '# {name}' and 'A kernel, for ...' or the like.")
    sections = {found[1]: found[2] for found in re.finditer(r"(?ms)^## (.+?)\n\n(.*?)(?=^## |\Z)", text)}
    for heading in HEADINGS:
        if heading not in sections:
            raise ValueError(f"docs/encodings/{name}.md: expected a section '## {heading}'.")
    introduction = _blocks(re.split(r"(?m)^## ", text[head.end() :])[0])
    see = re.findall(r"(?ms)^- \[\w+\]\((\w+)\.md\): (.*?)(?=^- |\Z)", sections["See also"])
    return Page(
        PAGE_KINDS[head[2]], head[1],
        [_links(words) for kind, words in introduction if kind == "text" and not words.startswith("Also called")],
        [(kind, _links(words)) for kind, words in _blocks(sections["Definition"])],
        _links(joined(sections["Source"])), [(one, joined(why)) for one, why in see], sections,
    )  # fmt: skip


# ---- entries of concepts.txt ----


def read_entries() -> Dict[str, Dict[str, str]]:
    """Reads concepts.txt: the members of each node by its name, in the order of the map."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.read_string(ENTRIES.read_text(encoding="utf-8"), ENTRIES.name)
    return {name: dict(parser[name]) for name in parser.sections()}


def _code_examples(name: str, entry: Dict[str, str], page: Optional[Page]) -> List[List[str]]:
    """Returns the code of a node: pairs of a language (terminal, NumPy or C) and lines."""
    commands = entry.get("command", "").splitlines()
    if page:
        commands += re.findall(r"(?m)^    (posenc .+)", page.sections.get("Example", ""))
        cases = re.findall(r"`(posenc verify --case \S+)`", joined(page.sections["Traps"]))
        commands += cases[:1]
        commands.append(f"posenc explain {name}")
    calls = []
    if "args" in entry:
        struct, _, members = entry["args"].partition(": ")
        calls = [f"struct posenc_{struct}_args args = posenc_{struct}_args_init();"]
        calls += [f"/* set args.{', args.'.join(members.split())} */"]
        calls += [f"enum posenc_status status = posenc_{name}(NULL, &args, NULL);"]
    if "c" in entry:
        calls = [f"{line};" for line in entry["c"].splitlines()] + calls
    found = {"terminal": "\n".join(dict.fromkeys(commands)), "NumPy": entry.get("numpy", ""), "C": "\n".join(calls)}
    return [[language, code] for language, code in found.items() if code]


# ---- docs ----


def read_pictures(folder: Path, names: Sequence[str]) -> Dict[str, Dict[str, str]]:
    """Returns pictures of docs by name: description (alt), caption (reading), and compressed SVG in base64."""
    paths = (folder / "encodings.md", *sorted(folder.glob("course/*.md")))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    found = {}
    for name in dict.fromkeys(names):
        form = rf"(?m)^!\[([^]]+)\]\((?:\.\./)?{name}\.svg\)\n\n\*+How to read this\.\*+ ((?:.+\n)+)"
        alt, reading = next(match.groups() for match in (re.search(form, text) for text in texts) if match)
        drawn = re.sub(rb"(?s)<metadata>.*?</metadata>", b"", (folder / f"{name}.svg").read_bytes())
        packed = base64.b64encode(gzip.compress(drawn, 9, mtime=0)).decode()
        found[name] = {"alt": alt, "reading": _links(joined(reading)), "svg": packed}
    return found


# ---- nodes ----


def _concept_node(name: str, entry: Dict[str, str], page: Optional[Page], lessons: Dict[str, Lesson]) -> Node:
    """Returns the node of a page, or of a group or the problem, whose texts are in concepts.txt."""
    learned = [lessons[number] for number in entry.get("lessons", "").split() if number in lessons]
    node: Node = {
        "id": name, "title": entry["title"], "parent": entry.get("parent"), "picture": entry.get("picture"),
        "code": _code_examples(name, entry, page), "views": entry.get("views", "").split(),
        "lessons": [[one.number, one.title, f"docs/course/{one.path.name}"] for one in learned],
    }  # fmt: skip
    if page:
        (_, formula), *where = page.definition
        node.update(kind=page.kind, summary=page.summary, text=page.text, formula=formula, source=page.source)
        node.update(where=where, see=page.see)
        return node
    text = joined(entry["text"])
    kind = "group" if "parent" in entry else "problem"
    node.update(kind=kind, summary=text.partition(". ")[0] + ".", text=[text], formula=entry["formula"])
    node.update(source=entry.get("source", ""), where=[], see=[])
    return node


def _part_facts(part: Part) -> Iterator[List[str]]:
    """Yields the numbers of a part of a model: name and value."""
    if part.encoding in FACTS_BY_ENCODING:
        yield from ([about, words] for about, words in FACTS_BY_ENCODING[part.encoding](part))
    elif part.encoding == "sinusoidal":
        yield ["dim", str(part.width)]
    else:
        for name in ROTARY:
            value = getattr(part, name)
            if value in (0, (), "none") or (name in ("factor", "partial_rotary_factor") and value == 1):
                continue
            if name != "mrope_layout" or part.mrope_section:
                words = ", ".join(map(str, value)) if isinstance(value, tuple) else value
                yield [name, f"{words:.15g}" if isinstance(words, float) else str(words)]


def _model_node(name: str, model: Model, used: List[str]) -> Node:
    """Returns the node of a preset, below the first of the pages that it uses."""
    facts, parts = model.reading.facts, model.reading.parts
    table = "frequencies" if parts[0].encoding.startswith("rope") else parts[0].encoding
    commands = [f"posenc table {table} --model {name}"] if table in ("frequencies", "sinusoidal") else []
    commands += [f"posenc explain --model {name}", f"posenc verify --model {name}"]
    text = f"{facts['title']} takes {parts[0].length} positions. Its numbers come with posenc, as the preset `{name}`."
    return {
        "id": name, "title": facts["title"], "kind": "model", "parent": used[0],
        "summary": f"A model with {parts[0].length} positions", "text": [text], "formula": "", "where": [],
        "facts": [[title(part), list(_part_facts(part))] for part in parts], "source": facts.get("source", ""),
        "code": [["terminal", "\n".join(commands)]], "picture": None, "views": [], "lessons": [],
        "see": [[page, ""] for page in used],
    }  # fmt: skip


# ---- places ----


def _assign_lines(leaves: List[Node], by_id: Dict[str, Node]) -> float:
    """Places nodes on lines, with gaps between groups. Returns the number of lines."""

    def group_of(node: Node) -> str:
        return str(node["id"]) if node["column"] < 2 else group_of(by_id[node["parent"]])

    line = 0.0
    for before, node in zip([leaves[0], *leaves], leaves):
        line += GAP if group_of(before) != group_of(node) else 0
        node["y"] = line + 0.5
        line += 1
    return line


def _set_positions(nodes: List[Node]) -> None:
    """Sets the column of each node, and its height in pixels. Models have a column of their own."""
    by_id = {node["id"]: node for node in nodes}
    below: Dict[str, List[Node]] = {node["id"]: [] for node in nodes}
    for node in nodes:
        parent = by_id.get(node["parent"])
        node["column"] = MODELS if node["kind"] == "model" else parent["column"] + 1 if parent else 0
        if parent and node["kind"] != "model":
            below[parent["id"]].append(node)
    models = [node for node in nodes if node["column"] == MODELS]
    leaves = [node for node in nodes if node["column"] < MODELS and not below[node["id"]]]
    lines = [_assign_lines(column, by_id) for column in (models, leaves)]
    for column, count in zip((models, leaves), lines):
        for node in column:
            node["y"] *= LINE_HEIGHT * max(lines) / count
    for node in reversed(nodes):
        children = below[node["id"]]
        if children and not node["parent"]:  # the problem stands between the two groups in the middle
            children = children[len(children) // 2 - 1 :][:2]
        if children:
            node["y"] = (children[0]["y"] + children[-1]["y"]) / 2
    for node in nodes:
        node["y"] = round(node["y"], 1)


def concept_map() -> Dict[str, Any]:
    """Returns the map as plain data: kinds, nodes, edges [from, to, kind] and pictures."""
    entries, docs = read_entries(), docs_folder()
    found = {name: read_page(name, text) for name, text in pages().items()}
    lessons = {str(one.number): one for one in read_lessons(docs / "course")}
    nodes = [_concept_node(name, entry, found.get(name), lessons) for name, entry in entries.items()]
    used: Dict[str, List[str]] = {name: [] for name in presets()}  # pages by model, in the order of the map
    for page in (name for name in entries if name in found):
        named = re.findall(r"`([^`]+)`", found[page].sections["Models"])
        for model in dict.fromkeys(name for name in named if name in used):
            used[model].append(page)
    edges = [[node["parent"], node["id"], "part"] for node in nodes if node["parent"]]
    edges += [[page, model, "uses"] for model, names in used.items() for page in names]
    order = list(entries)
    nodes += [_model_node(name, preset(name), used[name])
              for name in sorted(used, key=lambda name: order.index(used[name][0]))]  # fmt: skip
    _set_positions(nodes)
    pictures = [node["picture"] for node in nodes if node["picture"]]
    return {"kinds": KINDS, "nodes": nodes, "edges": edges, "pictures": read_pictures(docs, pictures)}
