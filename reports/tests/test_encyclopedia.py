"""Pages of docs/encodings and the concept map that is made of them: form, links, numbers of presets, and code.

docs/encodings/NAME.md is the page of a kernel, a method, a scaling or a numerics mode. Its section Models names the
presets that have it, with numbers that must be those of their problems. The map has a node for each page and preset;
commands, C and NumPy of a node run here. test_explore_views.py clicks on the map.
"""

import ast
import base64
import csv
import functools
import gzip
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Set
from xml.etree import ElementTree

import pytest
from test_explore_views import activations

from posenc.engine import Engine
from posenc.explain.pages import pages, parameters
from posenc.explore import main as explore
from posenc.explore.concepts import KINDS, MODELS, concept_map, read_entries, read_page
from posenc.models.model import preset, presets

np = pytest.importorskip("numpy", reason="python3-numpy is missing")
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "encodings"
WIDTH = 120
SECTIONS = {  # that a page has to have, by its kind
    "kernel": ("Definition", "Shapes", "Parameters", "Traps", "Models", "Source", "See also"),
    "scaling": ("Definition", "Parameters", "Traps", "Models", "Source", "See also"),
    "method": ("Definition", "Parameters", "Traps", "Models", "Source", "See also"),
    "numerics mode": ("Definition", "Traps", "Models", "Source", "See also"),
}
ORDER = (  # of all sections
    "Definition", "Shapes", "Parameters", "In other libraries", "Example", "Traps", "Models", "Source", "See also",
)  # fmt: skip
# Values of fields that a problem does not state, as in the tables of models.
DEFAULTS = {
    "rope_theta": "10000", "scaling": "none", "factor": "1", "layout": "interleaved", "freq_spacing": "exponent",
    "mrope_section": "", "mrope_layout": "qwen2_vl", "weight_offset": "0", "causal": "false", "position_buckets": "0",
    "window_class": "false",
}  # fmt: skip
# The fields of each kernel that may head a column in the tables of models.
FIELDS = {
    "sinusoidal_add": "dim layout freq_spacing", "learned_add": "rows dim",
    "rope_half": "head_dim rotary_dim", "rope_interleaved": "head_dim rotary_dim",
    "rope_qk_norm": "head_dim rotary_dim weight_offset",
    "rope_table": "rotary_dim rope_theta scaling factor original_max_position_embeddings low_freq_factor "
                  "high_freq_factor mrope_section mrope_layout",
    "alibi_add": "heads causal", "t5_bias_add": "heads num_buckets max_distance",
    "relative_bias_add": "heads position_buckets max_distance", "window_bias_add": "heads window_height window_width",
}  # fmt: skip
VISION = ("qwen2_vl_vision", "pixtral", "kimi")


class Problem(NamedTuple):
    """A problem in the notation of --problem."""

    kernel: str
    fields: Dict[str, str]

    def get(self, field: str) -> str:
        """Returns the value of a field, or its default."""
        return self.fields.get(field, DEFAULTS.get(field, ""))


@functools.lru_cache(None)
def problems(name: str) -> List[Problem]:
    """Returns the problems of a preset."""
    lines = [case.problem.split() for case in preset(name).cases]
    return [Problem(words[0], dict(word.split("=", 1) for word in words[1:])) for words in lines]


def section(name: str, heading: str) -> str:
    """Returns the text of a section, or nothing."""
    found = re.search(rf"(?ms)^## {re.escape(heading)}\n\n(.*?)(?=^## |\Z)", pages()[name])
    return found[1] if found else ""


def kind_of(name: str) -> str:
    """Returns whether a page is of a kernel, a scaling, a numerics mode or a method."""
    found = re.match(r"# (\w+)\n\nA (kernel|method|numerics mode|scaling)(?:, for|:) .+\n\n", pages()[name])
    assert found and found[1] == name, "its first lines are its name and its kind"
    return found[2]


def rows_of(text: str) -> List[Dict[str, str]]:
    """Returns the rows of a table of Markdown: {name of a column: cell}."""
    lines = [line.strip("| ").split(" | ") for line in re.sub(r"\| \|", "|  |", text).splitlines() if line[:1] == "|"]
    head = [cell.strip("` ") for cell in lines[0]] if lines else []
    body = [[cell.strip("` |") for cell in line] for line in lines[2:]]
    return [dict(zip(head, line + [""] * (len(head) - len(line)))) for line in body]


# ---- which presets a page has to name ----


def pages_of(problem: Problem, is_first: bool) -> Iterator[str]:
    """Yields the pages that name a preset because of one of its problems; is_first: the first one of its kernel."""
    is_vision = problem.get("mrope_layout") in VISION
    if problem.kernel in ("rope_half", "rope_interleaved", "rope_qk_norm", "learned_add"):
        yield problem.kernel
    if problem.kernel in ("sinusoidal_add", "alibi_add", "t5_bias_add", "window_bias_add", "relative_bias_add"):
        yield problem.kernel[: -len("_add")]
    if problem.kernel == "rope_table" and not is_vision:
        yield problem.get("scaling")
    if problem.kernel == "rope_table" and problem.get("mrope_section"):
        yield "vision_rope" if is_vision else "mrope"
    if problem.kernel == "relative_bias_add":
        yield problem.fields.get("relative", "deberta")
    if problem.kernel == "window_bias_add":
        yield "beit" if problem.get("window_class") == "true" else "swin"
    if problem.kernel == "learned_add" and is_first and "position_offset" in problem.fields:
        yield "padding_positions"


@functools.lru_cache(None)
def expected_presets() -> Dict[str, Set[str]]:
    """Returns the presets by the pages that have to name them: of kernels, scalings, methods and trained numerics."""
    found: Dict[str, Set[str]] = {name: set() for name in pages()}
    for name in presets():
        seen: Set[str] = set()
        for problem in problems(name):
            for page in pages_of(problem, problem.kernel not in seen):
                found[page].add(name)
            seen.add(problem.kernel)
        trained = preset(name).reading.facts.get("trained_numerics")
        if trained:
            found[str(trained)].add(name)
    return found


def named_presets(name: str) -> Set[str]:
    """Returns the presets that a page names in its section Models."""
    return {word for word in re.findall(r"`([^`]*)`", section(name, "Models")) if word in presets()}


# ---- pages ----


@pytest.mark.parametrize("name", pages())
def test_page_has_its_sections_in_order(name: str) -> None:
    headings = re.findall(r"^## (.*)$", pages()[name], re.M)
    assert not set(SECTIONS[kind_of(name)]) - set(headings)
    assert headings == [one for one in ORDER if one in headings]
    for heading in headings:
        assert section(name, heading).strip(), heading
    assert section(name, "Definition").startswith("    "), "a formula comes first"


@pytest.mark.parametrize("name", pages())
def test_page_begins_with_an_introduction(name: str) -> None:
    after = pages()[name].split("\n\n")[2]
    ends = re.findall(r"[.](?=\s|$)", after)
    assert not after.startswith(("#", "Also", " ", "|", "-")) and 2 <= len(ends) <= 6


@pytest.mark.parametrize("name", pages())
def test_models_are_the_presets_that_have_it(name: str) -> None:
    assert named_presets(name) == expected_presets()[name]
    models = section(name, "Models")
    assert named_presets(name) or "o preset" in models or re.search(r"\]\(\w+[.]md\)", models)


@pytest.mark.parametrize("name", pages())
def test_numbers_of_models_are_those_of_the_presets(name: str) -> None:
    for row in rows_of(section(name, "Models")):
        cells = {"freq_spacing" if key == "spacing" else key: value for key, value in row.items()}
        claimed = {key for fields in FIELDS.values() for key in fields.split() if key in cells}
        assert row["preset"] in presets() and claimed
        for problem in problems(row["preset"]):
            mine = [key for key in FIELDS.get(problem.kernel, "").split() if key in cells]
            if all(problem.get(key) == cells[key] for key in mine):
                claimed -= set(mine)
        assert not claimed, f"{row}: no problem of this preset has these"


@pytest.mark.parametrize("name", ["llama3", "yarn", "longrope"])
def test_frequencies_of_models_are_those_of_the_program(name: str) -> None:
    for row in rows_of(section(name, "Models")):
        pairs = Engine().columns("frequencies", "--model", row["preset"])
        ratios = [float(pair["unscaled_radians"]) / float(pair["radians"]) for pair in pairs]
        kept = sum(abs(ratio - 1) < 1e-9 for ratio in ratios)
        divided = sum(abs(ratio / max(ratios) - 1) < 1e-9 for ratio in ratios)
        computed = {
            "pairs kept, between, divided": f"{kept}, {len(pairs) - kept - divided}, {divided}",
            "attention factor": f"{float(pairs[0]['attention_factor']):.5g}",
        }
        checked = [key for key in computed if key in row]
        assert checked and all(row[key] == computed[key] for key in checked), (row, computed)


@pytest.mark.parametrize("name", pages())
def test_parameters_are_explained_with_the_names_of_others(name: str) -> None:
    for row in rows_of(section(name, "Parameters")):
        assert row["name"] in parameters() and row["meaning and range"]
        here, listed = (
            {name.strip() for name in re.sub(r" ?\([^)]*\)", "", cell).split(",") if name.strip()}
            for cell in (row["elsewhere"], parameters()[row["name"]].also)
        )
        assert here <= listed | {row["name"]}, f"{row['name']}: parameters.md lacks {here - listed}"


@pytest.mark.parametrize("name", pages())
def test_links_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)]*)\)", pages()[name])
    for link in links:
        assert (FOLDER / link).is_file() and link != f"{name}.md", link
    assert len(re.findall(r"^- \[(\w+)\]\(\1[.]md\): ", section(name, "See also"), re.M)) >= 2


def test_each_page_is_linked_to() -> None:
    linked = {link for text in pages().values() for link in re.findall(r"\]\((\w+)[.]md\)", text)}
    assert not set(pages()) - linked


def test_lines_are_wrapped() -> None:
    for name, text in pages().items():
        for line in text.splitlines():  # a table, a command and the line that is parsed are one line each
            assert len(line) <= WIDTH or line.startswith(("|", "    posenc ", "A kernel, for")), (name, line)
            assert line.isascii() and line == line.rstrip(), (name, line)


# ---- the concept map ----

MAP = concept_map()
NODES = {node["id"]: node for node in MAP["nodes"]}
COMPILER = shutil.which(os.environ.get("CC", "cc").split()[-1])
MOST = 1024 * 1024  # bytes of the map in the page
KEYS = {"title", "parent", "text", "formula", "source", "picture", "lessons", "views", "command", "numpy", "args", "c"}


@pytest.mark.parametrize("what, kind", [("kernels", "kernel"), ("scalings", "scaling"), ("methods", "method"),
                                        ("numerics", "numerics"), ("models", "model")])  # fmt: skip
def test_everything_of_the_library_is_there_once(what: str, kind: str) -> None:
    listed = re.findall(r"^([a-z][\w.-]*) ", Engine().run("list", what), re.M)[1:]
    assert len(listed) >= 4
    assert Counter(node["id"] for node in MAP["nodes"] if node["kind"] == kind) == Counter(listed)
    assert kind == "model" or all(kind_of(name).partition(" ")[0] == kind for name in listed)


def test_nodes_have_names_and_texts() -> None:
    assert len(NODES) == len(MAP["nodes"]) and set(pages()) | set(presets()) <= set(NODES)
    assert set().union(*read_entries().values()) <= KEYS
    for node in MAP["nodes"]:
        assert node["kind"] in KINDS and node["title"] and node["summary"] and node["code"]
        assert node["text"] and all(text.strip() for text in node["text"])
        assert node["formula"] or node["kind"] == "model"
        assert all(code.strip() for _, code in node["code"])
        assert all(text.strip() for _, text in node["where"])
    titles = Counter(node["title"] for node in MAP["nodes"])
    assert titles.most_common(1)[0][1] == 1, titles.most_common(3)


def test_no_edge_dangles_and_all_nodes_hang_together() -> None:
    parts = {to: start for start, to, kind in MAP["edges"] if kind == "part"}
    uses = [(start, to) for start, to, kind in MAP["edges"] if kind == "uses"]
    assert len(parts) + len(uses) == len(MAP["edges"]) and len(set(uses)) == len(uses)
    assert {end for edge in MAP["edges"] for end in edge[:2]} == set(NODES)
    assert set(parts) == {name for name, node in NODES.items() if node["kind"] not in ("problem", "model")}
    for name, node in NODES.items():
        if node["kind"] == "model":
            assert (node["parent"], name) in uses
        else:
            assert parts.get(name) == node["parent"]
        path = [name]
        while NODES[path[-1]]["parent"]:
            path.append(NODES[path[-1]]["parent"])
            assert len(path) < 9
        assert NODES[path[-1]]["kind"] == "problem"


@pytest.mark.parametrize("heading", ["See also", "Traps", "Models"])
def test_a_page_without_a_section_is_named(heading: str) -> None:
    with pytest.raises(ValueError, match=f"docs/encodings/alibi.md: expected a section '## {heading}'"):
        read_page("alibi", pages()["alibi"].replace(f"## {heading}", f"## No {heading}"))


def test_models_are_at_what_they_use() -> None:
    for start, to, kind in MAP["edges"]:
        if kind == "uses":
            assert f"`{to}`" in read_page(start, pages()[start]).sections["Models"]
    for name, encoding in re.findall(r"^([a-z][\w.-]*) +(rope_\w+|alibi) ", Engine().run("list", "models"), re.M):
        assert NODES[name]["parent"] == encoding
        assert f"{preset(name).reading.parts[0].length} positions" in NODES[name]["text"][0]


def test_links_lead_to_nodes() -> None:
    lessons = {path.name for path in (ROOT / "docs" / "course").glob("[0-9]*.md")}
    for node in MAP["nodes"]:
        texts = [*node["text"], node["source"], *(text for _, text in node["where"]), *(why for _, why in node["see"])]
        linked = re.findall(r"\]\(([^)]*)\)", " ".join(texts)) + [f"#{name}" for name, _ in node["see"]]
        assert {link.lstrip("#") for link in linked} <= set(NODES), node["id"]
        assert all(link.startswith("#") for link in linked), node["id"]
        assert all(path.rpartition("/")[2] in lessons for _, _, path in node["lessons"])
        assert set(node["views"]) <= set(explore.VIEWS), node["id"]
    assert {number for node in MAP["nodes"] for number, _, _ in node["lessons"]} == set(range(1, 9))


def test_texts_are_those_of_the_pages() -> None:
    for name, text in pages().items():
        node, words = NODES[name], " ".join(text.split())
        assert node["summary"] in words and node["formula"] in re.sub("(?m)^    ", "", text)
        plain = [re.sub(r"\]\(#(\w+)\)", r"](\1.md)", one) for one in node["text"]]
        assert plain and all(one in words for one in plain)


def test_pictures_are_small_and_explained() -> None:
    used = {node["picture"] for node in MAP["nodes"] if node["picture"]}
    assert set(MAP["pictures"]) == used and len(used) > 10
    for name, picture in MAP["pictures"].items():
        drawn = gzip.decompress(base64.b64decode(picture["svg"]))
        assert ElementTree.fromstring(drawn).tag.endswith("svg"), name
        assert picture["alt"] and picture["reading"].endswith(".")
    assert len(str(MAP)) < MOST


def test_places() -> None:
    for column in range(MODELS + 1):
        lines = sorted(node["y"] for node in MAP["nodes"] if node["column"] == column)
        assert lines[0] > 0 and all(below - above >= 15 for above, below in zip(lines, lines[1:]))
    for start, to, _ in MAP["edges"]:
        assert NODES[start]["column"] < NODES[to]["column"]


# ---- code ----


def code_in(language: str) -> List[Any]:
    """Returns the code of all nodes in a language, as parameters of a test."""
    texts = [(node["id"], text) for node in MAP["nodes"] for one, text in node["code"] if one == language]
    return [pytest.param(name, text, id=name) for name, text in texts]


@pytest.mark.parametrize("name, text", code_in("terminal"))
def test_commands_are_taken(name: str, text: str) -> None:
    cases = re.findall(r"^(\S+/\S+)", Engine().run("list", "cases"), re.M)
    for words in (shlex.split(line)[1:] for line in text.splitlines()):
        if words[0] in ("table", "list"):
            assert re.match("position|pair|row" if words[0] == "table" else ".", Engine().run(*words)), words
        elif words[:2] == ["verify", "--case"]:
            assert words[2] in cases or re.fullmatch(r"(\w+/f32|[*])/(properties|memory|random)/[\w-]+", words[2])
        elif words[0] in ("explain", "verify"):
            assert words[1:] in ([name], ["--model", name])
        else:
            assert words[0] == "plot" and (ROOT / "docs" / f"{words[1]}.svg").is_file()


# Variables that the lines of C use, and statements as functions.
C_HEAD = """#include <posenc/experimental.h>
extern int64_t batch, dim, first, first_row, height, keys, max_distance, n, n_heads, num_buckets, padding_idx;
extern int64_t position_buckets, queries, query_offset, rows, tokens, width;
extern uint64_t seed;
extern double sigma;
extern bool bidirectional;
extern double *long_factor, *short_factor;
extern float *a, *p, *scale, *table, *values;
extern int32_t *index, *positions, *thresholds;
extern uint8_t *mask;
extern struct posenc_t5_buckets buckets;
extern struct posenc_freqs_spec spec;
"""


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_calls_in_c_compile(tmp_path: Path) -> None:
    shown = {node["id"]: text for node in MAP["nodes"] for language, text in node["code"] if language == "C"}
    assert {name for name, node in NODES.items() if node["kind"] in ("kernel", "scaling", "numerics")} <= set(shown)
    members = re.compile(r"/[*] set (.*) [*]/")  # "set args.x, args.out": they must exist
    code = [members.sub(lambda names: "".join(f"(void){name};" for name in names[1].split(", ")), text)
            for text in shown.values()]  # fmt: skip
    selects = []
    for path in (ROOT / "reports" / "posenc").rglob("*"):  # pages and glossary: the page fills in ' ~ backend ~ '
        if path.suffix in (".j2", ".js", ".py"):
            text = re.sub(r"' ~ \w+ ~ '", "NAME", path.read_text(encoding="utf-8"))
            selects += re.findall(r"\bposenc_select\([^()]*\)", text)
    assert len(selects) >= 3
    functions = [f"void shown_{i}(void)\n{{\n{text};\n}}\n" for i, text in enumerate(code + selects)]
    (tmp_path / "shown.c").write_text(C_HEAD + "".join(functions), encoding="utf-8")
    include = f"-I{ROOT / 'impl' / 'include'}"
    subprocess.run([str(COMPILER), "-std=c11", "-Wall", "-Wno-unused-variable", "-Wno-unused-result", "-Werror",
                    "-fsyntax-only", include, "shown.c"], cwd=tmp_path, check=True)  # fmt: skip


def printed_numbers(command: str) -> Any:
    """Returns the numbers that a command prints, without the columns that number its rows."""
    head, *rows = csv.reader(Engine().run(*shlex.split(command)[1:]).splitlines())
    shown = [at for at, title in enumerate(head) if re.match(r"(?!position)\w+\[", title)] or [head.index("radians")]
    return np.array([[float(row[at]) for at in shown] for row in rows])


def values_by_node() -> Dict[str, Dict[str, Any]]:
    """Returns values for the names that the lines of NumPy use, by node."""
    draw = np.random.default_rng(1)
    dim, p = 128, np.arange(8)
    w = 10000.0 ** (-np.arange(0, dim, 2) / dim)
    freqs = {"w": w, "dim": dim, "rope_theta": 10000.0, "factor": 4}
    rows = {"p": p, "dim": 4, "rope_theta": 10000.0, "w": w[:: dim // 4], "m": 1, "scale": 1}
    angle, part = np.outer(np.arange(4), [1, 0.01]), preset("phi-3-mini-128k").reading.parts[0]
    x = np.array(activations(3, 16)).reshape(4, 4)
    scores = {"i": np.arange(4), "j": np.arange(8), "query_offset": 4, "first": -7, "keys": 8}
    grid = np.arange(196)
    patches = np.array([(row, column) for row in range(2) for column in range(2)])
    dy, dx = (patches[:, None] - patches[None]).transpose(2, 0, 1)
    f32 = {"p": np.array([1, 10, 1000]), "dim": dim, "rope_theta": 10000.0}
    return {
        "order": {"q": draw.normal(size=(5, 4)), "k": draw.normal(size=(5, 4)), "v": draw.normal(size=(5, 4)), "d": 4},
        "embeddings": {"x": x, "table": x, "p": p[:4]},
        "sinusoidal": rows, "rope_table": rows, "rope_half": {"x": x, "cos": np.cos(angle), "sin": np.sin(angle)},
        "rope_interleaved": {"x": x, "cos": np.cos(angle), "sin": np.sin(angle)},
        "rope_qk_norm": {"x": x, "w": 1, "epsilon": 0, "weight_offset": 0},
        "timestep_embedding": {"t": np.arange(17) * 62.5, "rope_theta": 10000.0, "n": 160, "shift": 0},
        "sincos_2d": {"w": 10000.0 ** (-4 * np.arange(192) / 768), "x": grid // 14, "y": grid % 14},
        "learned_add": {"x": x, "x_scale": 1, "table": x, "p": p[:4]},
        "learned_grad": {"out": np.zeros((2, 4)), "p": [0, 1, 0, 0], "x": x},
        "padding_positions": {"mask": np.array([[1, 1, 0]]), "padding_idx": 1},
        "none": freqs, "linear": freqs, "ntk": freqs, "resonance": freqs,
        "dynamic": {**freqs, "factor": 2, "s": 8192, "M": 4096},
        "proportional": {**freqs, "factor": 2, "partial_rotary_factor": 0.25},
        "longrope": {"w": 10000.0 ** (-np.arange(0, 96, 2) / 96), "L": 4096, "seq_len": 131072,
                     "long_factor": np.array(part.long_factor), "short_factor": np.array(part.short_factor)},
        "hf_f32": f32, "torch_exp_f32": f32,
        "alibi": {"slopes": 2.0 ** -np.arange(1, 9), "i": np.arange(1), "j": np.arange(8), "query_offset": 7},
        "distance_bias": {**scores, "values": np.arange(30.0)[None]},
        "kerple": {**scores, "p": 1.0, "a": 2.0}, "sandwich": {**scores, "w": w, "dim": dim, "scale": 1},
        "window_bias": {"index": (dy + 1) * 3 + dx + 1, "table": np.arange(9.0)[:, None]},
        "swin": {"dy": dy, "dx": dx, "height": 2, "width": 2},
        "relative_bias": {**scores, "scale": 0.5, "index": np.arange(11), "c2p": np.arange(44.0).reshape(4, 11)},
        "shaw": {**scores, "max_distance": 2},
        "scores": {"q": x, "k": np.ones((8, 4)), "d": 4, "bias": np.zeros((4, 8))},
        "product": {**scores, "q": x, "k": np.ones((8, 4)), "a": np.ones((11, 4)), "index": np.arange(11), "scale": 1},
    }  # fmt: skip


def value_of(text: str, names: Dict[str, Any]) -> Any:
    """Runs lines of Python. Returns the value of the last one, if it is an expression; else what it assigns."""
    names = {"np": np, **names}
    *before, last = ast.parse(text).body
    if isinstance(last, ast.Expr):
        exec(compile(ast.Module(before, []), "lines", "exec"), names)
        return eval(ast.unparse(last.value), names)
    assert isinstance(last, ast.Assign)
    exec(text, names)
    return eval(ast.unparse(last.targets[0]), names)


VALUES = values_by_node()
PROBLEM = "posenc table --problem 'rope_{} tokens=4 heads=1 head_dim=4 rotary_dim=4 rows=4 seed=3'"
SAME = {  # nodes, and commands that print the same numbers; empty: the one that the node shows first
    "rope_half": PROBLEM.format("half"), "rope_interleaved": PROBLEM.format("interleaved"),
    "timestep_embedding": "", "sincos_2d": "", "sinusoidal": "", "none": "", "linear": "", "ntk": "", "dynamic": "",
    "resonance": "", "proportional": "", "longrope": "", "alibi": "", "rope_table": "", "window_bias": "",
    "swin": "posenc table --problem 'window_bias window_height=2 window_width=2 heads=1 recipe=index'",
    "hf_f32": "posenc table --problem 'rope_table rotary_dim=128 numerics=hf_f32' --positions 1,10,1000",
    "torch_exp_f32": "posenc table --problem 'rope_table rotary_dim=128 numerics=torch_exp_f32' --positions 1,10,1000",
}  # fmt: skip


@pytest.mark.parametrize("name, text", code_in("NumPy"))
def test_numpy_gives_the_numbers_of_the_library(name: str, text: str) -> None:
    if name == "learned_grad":  # the line adds to out
        value_of(text + "\nout = out", VALUES[name])
        x = VALUES[name]["x"]
        assert np.allclose(VALUES[name]["out"], [x[[0, 2, 3]].sum(0), x[1]])
        return
    found = value_of(text, VALUES[name])
    if name in SAME:
        want = printed_numbers(SAME[name] or dict(NODES[name]["code"])["terminal"].splitlines()[0])
        if NODES[name]["kind"] == "numerics":
            found = (np.cos(found), np.sin(found))
        found = np.concatenate(found, 1) if isinstance(found, tuple) else np.asarray(found)
        near = 2e-4 if NODES[name]["kind"] == "numerics" else 2e-6
        assert np.abs(found.reshape(-1) - want.reshape(-1)).max() < near
    elif name == "padding_positions":
        assert found.tolist() == [[2, 3, 1]]  # as its page says
    elif name == "rope_qk_norm":
        assert np.allclose((found * found).mean(1), 1)
    elif name == "order":  # shuffled tokens give shuffled results
        shuffled = {key: value[::-1] if key != "d" else value for key, value in VALUES[name].items()}
        assert np.allclose(value_of(text, shuffled), found[::-1])
    else:
        assert np.isfinite(found).all() and found.shape[-1] in (4, 8)
        assert name not in ("kerple", "sandwich") or np.allclose(np.diag(found), 0)
        assert name != "shaw" or found.tolist()[0] == [2, 3, 4, 4, 4, 4, 4, 4]
        assert name != "relative_bias" or found[1, 2] == 0.5 * VALUES[name]["c2p"][1, 1 - 2 + 7]  # i - j + keys - 1
