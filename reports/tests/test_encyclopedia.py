"""The pages of docs/encodings: sections, the presets that each names with their numbers, links and named tests."""

import functools
import re
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Set

import pytest

from posenc.engine import Engine
from posenc.explain.pages import pages, parameters
from posenc.models.model import preset, presets

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "encodings"
WIDTH = 120
SECTIONS = {
    "kernel": ("Definition", "Shapes", "Parameters", "Traps", "Models", "Source", "See also"),
    "scaling": ("Definition", "Parameters", "Traps", "Models", "Source", "See also"),
    "method": ("Definition", "Parameters", "Traps", "Models", "Source", "See also"),
    "numerics mode": ("Definition", "Traps", "Models", "Source", "See also"),
}
ORDER = (
    "Definition", "Shapes", "Parameters", "In other libraries", "Example", "Traps", "Models", "Source", "See also",
)  # fmt: skip
# Values of fields that a problem does not state.
DEFAULTS = {
    "rope_theta": "10000", "scaling": "none", "factor": "1", "layout": "interleaved", "freq_spacing": "exponent",
    "mrope_section": "", "mrope_layout": "qwen2_vl", "weight_offset": "0", "causal": "false", "position_buckets": "0",
    "window_class": "false",
}  # fmt: skip
# The fields of each kernel that the tables of models may have in their heads.
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
        """Returns a value, or what is meant where none is said."""
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
    assert found and found[1] == name, "its first lines are its name and its kind, in the grammar of cli/topics.py"
    return found[2]


def rows(text: str) -> List[Dict[str, str]]:
    """Returns the rows of a table of Markdown by the names in its head."""
    lines = [line.strip("| ").split(" | ") for line in re.sub(r"\| \|", "|  |", text).splitlines() if line[:1] == "|"]
    head = [cell.strip("` ") for cell in lines[0]] if lines else []
    body = [[cell.strip("` |") for cell in line] for line in lines[2:]]
    return [dict(zip(head, line + [""] * (len(head) - len(line)))) for line in body]


# ---- which presets a page has to name ----


def served(problem: Problem, first: bool) -> Iterator[str]:
    """Yields the pages that name a preset because of one of its problems; first: the first one of its kernel."""
    axes = [size for size in problem.get("mrope_section").split(",") if size]
    vision = problem.get("mrope_layout") in VISION
    if problem.kernel in ("rope_half", "rope_interleaved", "rope_qk_norm", "learned_add"):
        yield problem.kernel
    if problem.kernel in ("sinusoidal_add", "alibi_add", "t5_bias_add", "window_bias_add", "relative_bias_add"):
        yield problem.kernel[: -len("_add")]
    if problem.kernel == "rope_table" and not vision:
        yield problem.get("scaling")
    if problem.kernel == "rope_table" and axes:
        yield "vision_rope" if vision else "mrope"
    if problem.kernel == "relative_bias_add":
        yield problem.fields.get("relative", "deberta")
    if problem.kernel == "window_bias_add":
        yield "beit" if problem.get("window_class") == "true" else "swin"
    if problem.kernel == "learned_add" and first and "position_offset" in problem.fields:
        yield "padding_positions"


@functools.lru_cache(None)
def expected() -> Dict[str, Set[str]]:
    """Returns the presets by the pages that name them: of its kernel, scaling and method, and of its training."""
    found: Dict[str, Set[str]] = {name: set() for name in pages()}
    for name in presets():
        seen: Set[str] = set()
        for problem in problems(name):
            for page in served(problem, problem.kernel not in seen):
                found[page].add(name)
            seen.add(problem.kernel)
        trained = preset(name).reading.facts.get("trained_numerics")
        if trained:
            found[str(trained)].add(name)
    return found


def named_presets(name: str) -> Set[str]:
    return {word for word in re.findall(r"`([^`]*)`", section(name, "Models")) if word in presets()}


# ---- the tests ----


@pytest.mark.parametrize("what", ["kernels", "scalings", "methods", "numerics"])
def test_each_name_has_a_page(what: str) -> None:
    listed = re.findall(r"^([a-z]\w*) ", Engine().run("list", what), re.M)[1:]
    assert len(listed) >= 4
    for name in listed:
        assert name in pages() and kind_of(name) == ("numerics mode" if what == "numerics" else what[:-1])


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
    assert named_presets(name) == expected()[name]
    models = section(name, "Models")
    assert named_presets(name) or "o preset" in models or re.search(r"\]\(\w+[.]md\)", models)


def test_each_preset_is_named() -> None:
    assert set(presets()) == set().union(*map(named_presets, pages()))


@pytest.mark.parametrize("name", pages())
def test_numbers_of_models_are_those_of_the_presets(name: str) -> None:
    for row in rows(section(name, "Models")):
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
    for row in rows(section(name, "Models")):
        pairs = Engine().columns("frequencies", "--model", row["preset"])
        ratios = [float(pair["unscaled_radians"]) / float(pair["radians"]) for pair in pairs]
        kept = sum(abs(ratio - 1) < 1e-9 for ratio in ratios)
        divided = sum(abs(ratio / max(ratios) - 1) < 1e-9 for ratio in ratios)
        told = {
            "pairs kept, between, divided": f"{kept}, {len(pairs) - kept - divided}, {divided}",
            "attention factor": f"{float(pairs[0]['attention_factor']):.5g}",
        }
        checked = [key for key in told if key in row]
        assert checked and all(row[key] == told[key] for key in checked), (row, told)


@pytest.mark.parametrize("name", pages())
def test_parameters_are_explained_with_the_names_of_others(name: str) -> None:
    for row in rows(section(name, "Parameters")):
        assert row["name"] in parameters() and row["meaning and range"]
        plain = [re.sub(r" ?\([^)]*\)", "", cell) for cell in (row["elsewhere"], parameters()[row["name"]].also)]
        others = [{one.strip() for one in cell.split(",") if one.strip()} for cell in plain]
        assert others[0] <= others[1] | {row["name"]}, f"{row['name']}: parameters.md lacks {others[0] - others[1]}"


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
