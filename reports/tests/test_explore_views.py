"""Numbers of the page of posenc explore, in bits and in sentences, and the concept map in use.

Each number that the page computes has the bits of posenc table --backend scalar: a problem is a pair of the words of
posenc table and a script of the page, such as lib.sinusoidal({dim: 8}, {tokens: 9}).
"""

import array
import csv
import ctypes
import json
import math
import re
import struct
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import pytest
from browser import Browser, key, open_view, pointer_in, wait_until_drawn

from posenc.command import CommandError
from posenc.engine import Engine
from posenc.explore.concepts import concept_map

BACKEND = ("--backend", "scalar")
NODES = {node["id"]: node for node in concept_map()["nodes"]}
WIDTHS = (360, 800, 1600)
Spec = Dict[str, Any]
Problem = Tuple[List[str], str]


def printed(words: Sequence[str], folder: Path) -> List[List[int]]:
    """Returns the bits of all f32 that posenc table prints, by array. Empty if it rejects the words."""
    path = folder / "out.safetensors"
    try:
        Engine().run("table", *words, "--backend", "scalar", "--force", "--out", f"safetensors:{path}")
    except CommandError:
        return []
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    arrays = []
    for name in sorted(name for name in head if not name.startswith(("__", "position"))):
        begin, end = head[name]["data_offsets"]
        arrays.append(array.array("I", data[8 + size + begin : 8 + size + end]).tolist())
    return arrays


def computed(browser: Browser, scripts: Sequence[str]) -> List[List[List[int]]]:
    """Returns the bits of what the page computes, for each script. Empty if the library rejects it."""
    run = """const lib = explore.lib;
        const bits = (values) => [...new Uint32Array(Float32Array.from(values).buffer)];
        return arguments[0].map((script) => {
            try {
                const found = new Function("lib", `return ${script}`)(lib);
                return (found.cos ? [found.cos, found.sin] : [found]).map(bits);
            } catch (error) {
                if (error.name !== "Error") throw error;
                return [];
            }
        })"""
    return list(browser.js(run, list(scripts)))


def words_of(kernel: str, spec: Spec) -> List[str]:
    """Returns the options of posenc table for a spec."""
    names = {"first": "position_offset", "spacing": "freq_spacing"}
    words = {name: ",".join(map(str, v)) if isinstance(v, list) else str(v).lower() for name, v in spec.items()}
    if kernel == "rope_table":
        words["rotary_dim"] = words.pop("dim")
    places = [words.pop(name) for name in ("positions", "times") if name in words]
    line = " ".join(f"{names.get(name, name)}={text}" for name, text in words.items())
    return ["--problem", f"{kernel} {line}", *(["--positions", *places] if places else [])]


def table(kind: str, spec: Spec, rows: Spec, more: Spec = {}) -> Problem:
    """Returns the problem of a table of sinusoids or of RoPE."""
    name = {"sinusoidal": "sinusoidal", "rope_table": "ropeTable"}[kind]
    script = f"lib.{name}({json.dumps(spec)}, {json.dumps({**rows, **more})})"
    return words_of(kind, {**spec, **rows, **more}), script


def draw(seed: int, index: int) -> int:
    """Returns a number of splitmix64, as conformance/problem/inputs.c draws it."""
    mask = 2**64 - 1
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def activations(seed: int, count: int) -> List[float]:
    """Returns the elements x of the problem with this seed."""
    draws = [draw(draw(seed, 0), index) for index in range(count)]
    words = [(z >> 63) << 31 | (123 + ((z >> 60) & 7)) << 23 | z & 0x7FFFFF for z in draws]
    return array.array("f", array.array("I", words).tobytes()).tolist()


def line_of(fields: Spec) -> str:
    """Returns fields in the notation of --problem."""
    return " ".join(f"{name}={str(value).lower()}" for name, value in fields.items())


def rotation(pairing: str, fields: Spec, seed: int) -> Problem:
    """Returns the problem of a rotation, whose cosines and sines are those of base 10000."""
    size = fields["tokens"] * fields["heads"] * fields["head_dim"]
    options = {name: fields[name] for name in ("heads", "head_dim", "rotary_offset", "transpose") if name in fields}
    options.update(pairing=pairing, first=fields.get("position_offset", 0))
    rows = f"lib.ropeTable({{dim: {fields['rotary_dim']}}}, {{tokens: {fields['rows']}}})"
    script = f"lib.rotate({activations(seed, size)}, {rows}, {json.dumps(options)})"
    return ["--problem", f"rope_{pairing} {line_of(fields)} seed={seed}"], script


LONG = [1 + 0.25 * i for i in range(8)]
SCALINGS: Dict[str, Spec] = {
    "none": {},
    "linear": {"factor": 4},
    "llama3": {"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192},
    "yarn": {"factor": 40, "original_max_position_embeddings": 4096, "mscale": 0.707, "mscale_all_dim": 1},
    "dynamic": {"factor": 2, "max_position_embeddings": 2048, "seq_len": 5000},
    "ntk": {"factor": 3},
    "longrope": {"factor": 32, "original_max_position_embeddings": 4096, "seq_len": 9000,
                 "short_factor": [1.0] * 8, "long_factor": LONG},
    "proportional": {"factor": 2, "partial_rotary_factor": 0.5},
    "resonance": {},
    "resonance_yarn": {"factor": 4, "original_max_position_embeddings": 512, "truncate": False},
}  # fmt: skip
NUMERICS = ("exact", "hf_f32", "ggml_f32", "torch_exp_f32")
SECTIONS = (("qwen2_vl", [2, 3, 3]), ("qwen3_vl", [4, 2, 2]), ("qwen2_vl_vision", [4, 4]), ("pixtral", [4, 4]),
            ("kimi", [4, 4]))  # fmt: skip


def all_tables() -> Iterator[Problem]:
    """Yields problems that cover each parameter of sinusoidal and rope_table."""
    for layout in ("interleaved", "sin_cos", "cos_sin"):
        yield table("sinusoidal", {"dim": 7 if layout == "sin_cos" else 8}, {"tokens": 9}, {"layout": layout})
    yield table("sinusoidal", {"dim": 512}, {"tokens": 512})
    yield table("sinusoidal", {"dim": 6, "spacing": "endpoint"}, {"tokens": 70, "first": -3}, {"scale": 0.25})
    yield table("sinusoidal", {"dim": 32}, {"times": [0.5, 999.25, 3]})
    yield table("rope_table", {"dim": 64}, {"positions": [0, 7, -5, 1048576, 2147483647]})
    for scaling, spec in SCALINGS.items():
        for numerics in NUMERICS:
            yield table("rope_table", {"dim": 16, "scaling": scaling, "numerics": numerics, **spec}, {"tokens": 40})
    for inverse in (False, True):
        spec = {"dim": 16, "xpos_scale_base": 512, "xpos_centre": 20, **({"xpos_inverse": True} if inverse else {})}
        yield table("rope_table", spec, {"tokens": 40})
    for mrope, section in SECTIONS:  # a picture of 5 columns, row by row
        axes = [[0] * 15] * (len(section) - 2) + [[t // 5 for t in range(15)], [t % 5 for t in range(15)]]
        spec = {"dim": 16, "mrope_section": section, "mrope_layout": mrope}
        words, script = table("rope_table", spec, {"positions": axes})
        yield [*words_of("rope_table", {**spec, "tokens": 15}), "--grid", "5"], script


def all_others() -> Iterator[Problem]:
    """Yields rotations, biases and indices."""
    for pairing in ("half", "interleaved"):
        yield rotation(pairing, {"heads": 2, "tokens": 5, "head_dim": 8, "rotary_dim": 8, "rows": 5}, 3)
        yield rotation(pairing, {"heads": 3, "tokens": 4, "head_dim": 80, "rotary_dim": 32, "rotary_offset": 16,
                                 "rows": 9, "position_offset": 5, "transpose": True}, 4)  # fmt: skip
    scores = {"heads": 6, "queries": 5, "keys": 9, "query_offset": 4}
    problems: List[Tuple[str, Spec, str]] = [  # @ are the parameters
        ("alibi", scores, "lib.alibi(@)"),
        ("alibi", {**scores, "heads": 8, "causal": True}, "lib.alibi(@)"),
        ("alibi", {**scores, "alibi_bias_max": 16}, "lib.alibi({...@, slopes: lib.alibiSlopes(6, 16)})"),
        ("window_bias", {"window_height": 3, "window_width": 5}, "lib.windowIndex(@)"),
        ("window_bias", {"window_height": 2, "window_width": 3, "window_class": True}, "lib.windowIndex(@)"),
    ]
    keys = {"queries": 3, "keys": 400, "query_offset": 200}
    for both in (True, False):
        buckets = {"num_buckets": 32, "max_distance": 128, "bidirectional": both}
        problems.append(("t5_bias", {**buckets, **keys}, "lib.t5Bias(@)"))
    row = {"queries": 1, "keys": 90, "query_offset": 40, "max_distance": 20}  # key 0 has the last column
    problems += [
        ("relative_bias relative=shaw", row, "lib.shawIndex(@).reverse()"),
        ("relative_bias relative=deberta", row, "lib.debertaIndex({position_buckets: 0, ...@}).reverse()"),
        ("relative_bias relative=deberta", {**row, "position_buckets": 8}, "lib.debertaIndex(@).reverse()"),
    ]
    for kernel, fields, script in problems:
        recipe = "" if kernel == "alibi" else " heads=1 recipe=index"
        yield ["--problem", f"{kernel} {line_of(fields)}{recipe}"], script.replace("@", json.dumps(fields))


PROBLEMS = {"tables": all_tables, "others": all_others}


@pytest.mark.parametrize("problems", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_bits_are_those_of_the_program(browser: Browser, tmp_path: Path, problems: Any) -> None:
    open_view(browser)
    cases = list(problems())
    wanted = [printed(words, tmp_path) for words, _ in cases]
    for (words, script), got, want in zip(cases, computed(browser, [script for _, script in cases]), wanted):
        assert got == want, (words, script)
    assert sum(map(bool, wanted)) > len(cases) / 2


def test_frequencies_are_those_of_the_program(browser: Browser) -> None:
    open_view(browser)
    for scaling, more in SCALINGS.items():
        spec = {"dim": 16, "scaling": scaling, **more}
        rows = list(csv.DictReader(Engine().run("table", "frequencies", *words_of("rope_table", spec)).splitlines()))
        script = "const f = explore.lib.frequencies(arguments[0]); return [[...f.omega], f.attentionFactor]"
        scaled, factor = browser.js(script, spec)
        unscaled, _ = browser.js(script, {"dim": 16})
        assert scaled == [float(row["radians"]) for row in rows]
        assert unscaled == [float(row["unscaled_radians"]) for row in rows]
        assert {factor} == {float(row["attention_factor"]) for row in rows}


@pytest.mark.parametrize("dtype", ("f16", "bf16"))
def test_rounding_is_that_of_the_program(browser: Browser, tmp_path: Path, dtype: str) -> None:
    open_view(browser)
    path = tmp_path / "half.safetensors"
    Engine().run("table", "--problem", f"sinusoidal dim=64 tokens=300 dtype={dtype}", "--backend", "scalar",
                 "--out", f"safetensors:{path}")  # fmt: skip
    half = array.array("H", path.read_bytes()[-2 * 64 * 300 :])
    values = [word << 16 for word in half]
    if dtype == "f16":
        single = array.array("f", struct.unpack(f"<{len(half)}e", half.tobytes()))
        values = array.array("I", single.tobytes()).tolist()
    script = f"lib.roundTo('{dtype}', lib.sinusoidal({{dim: 64}}, {{tokens: 300}}))"
    assert computed(browser, [script]) == [[values]]


def test_random_vectors_are_those_of_the_library(browser: Browser) -> None:
    found = sorted(Path(Engine().program).parent.glob("impl/libposenc.so"))
    if not found:
        pytest.skip("the build has no shared library")
    open_view(browser)
    values = (ctypes.c_float * 300)()
    function = ctypes.CDLL(str(found[0])).posenc_learned_fill_normal
    function.argtypes = [ctypes.c_uint64, *[ctypes.c_int64] * 3, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p]
    assert function(7, 0, 3, 100, 0.02, values, None) == 0
    assert computed(browser, ["lib.normal(7, 3, 100, 0.02)"]) == [[array.array("I", bytes(values)).tolist()]]


def test_what_the_library_rejects_is_said(browser: Browser) -> None:
    open_view(browser)
    script = """try { explore.lib.ropeTable({dim: 5}, {tokens: 2}); } catch (error) { return error.message; }"""
    assert browser.js(script) == "dim of the frequencies is 5: the dim of a rotation is odd"


# ---- sentences ----


def rows_of(*words: str) -> List[Dict[str, float]]:
    """Returns the rows of a table of the program, by column."""
    rows = csv.DictReader(Engine().run("table", *words, "--out", "csv").splitlines())
    return [{name: float(text) for name, text in row.items()} for row in rows]


def stated(browser: Browser, view: str, pattern: str, **values: Any) -> List[float]:
    """Returns the numbers that a view states in a sentence of this pattern, when its controls have such values."""
    open_view(browser, view)
    browser.js("explore.current.set(arguments[0])", values)
    wait_until_drawn(browser)
    words = " ".join(browser.texts(".note")).replace("−", "-").replace("\u202f", "").replace("\n", " ")
    found = re.search(pattern, words)
    assert found, f"{pattern}: {words}"
    return [float(number) for number in found.groups()]


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gpt-oss-20b", "qwen3-8b-yarn"])
def test_scaling_counts_the_pairs_of_a_model(browser: Browser, model: str) -> None:
    rows = rows_of("frequencies", "--model", model)
    ratios = [row["unscaled_radians"] / row["radians"] for row in rows]
    kept, divided = (sum(math.isclose(ratio, other, rel_tol=1e-9) for ratio in ratios) for other in (1, max(ratios)))
    pattern = r"(\d+) of (\d+) pairs are kept, (\d+) lie between, and (\d+) are divided by (\d+)"
    counts = [kept, len(rows), len(rows) - kept - divided, divided, round(max(ratios))]
    assert stated(browser, "scaling", pattern, which=model) == counts


@pytest.mark.parametrize("m, n", [(70, 60), (60, 70), (3, 90)])
def test_similarity_is_the_sum_of_cosines_by_offset(browser: Browser, m: int, n: int) -> None:
    pattern = r"m - n = (-?\d+): the product is (-?[\d.]+)\."
    before = stated(browser, "similarity", pattern, m=m, n=n)
    after = stated(browser, "similarity", pattern, m=m + 20, n=n + 20)
    assert before[0] == m - n and before == after
    other = stated(browser, "similarity", pattern, m=m + 1, n=n)
    assert other[1] != before[1]


@pytest.mark.parametrize("pair, p", [(1, 7), (0, 12), (5, 100)])
def test_rope_rotates_an_arrow_as_the_table_says(browser: Browser, pair: int, p: int) -> None:
    row = rows_of("--problem", "rope_table rotary_dim=16", "--positions", str(p), *BACKEND)[0]
    pattern = r"The arrow \(1, 0\) is now \((-?[\d.]+), (-?[\d.]+)\)"
    cos, sin = stated(browser, "rope", pattern, dim=16, base=10000, pair=pair, p=p)
    assert cos == pytest.approx(row[f"cos[{pair}]"], abs=5e-5) and sin == pytest.approx(row[f"sin[{pair}]"], abs=5e-5)


@pytest.mark.parametrize("heads, head, i, j", [(8, 2, 20, 17), (12, 9, 30, 1), (8, 8, 31, 0)])
def test_alibi_has_the_bias_of_the_kernel(browser: Browser, heads: int, head: int, i: int, j: int) -> None:
    rows = rows_of("--problem", f"alibi heads={heads} queries=32 keys=32", *BACKEND)
    wanted = rows[(head - 1) * 32 + i][f"alibi[{j}]"]
    controls = {"kind": "alibi", "alibi_heads": heads, "alibi_size": 32, "alibi_head": head, "alibi_i": i, "alibi_j": j}
    found = stated(browser, "bias", rf"Query {i}, key {j}: (-?[\d.]+)\.", **controls)
    assert found == [pytest.approx(wanted, rel=1e-3)]


@pytest.mark.parametrize("numerics", ["hf_f32", "ggml_f32"])
def test_precision_has_the_largest_error_of_a_model(browser: Browser, numerics: str) -> None:
    position = 131071
    words = ("--model", "llama-3.1-8b", "--positions", str(position), *BACKEND)
    exact, rounded = (rows_of(*words, "--problem", f"rope_table numerics={name}")[0] for name in ("exact", numerics))
    worst = max(abs(exact[name] - rounded[name]) for name in exact if "[" in name and not name.startswith("position"))
    pattern = rf"the largest error of a cosine or sine is .*?([\d.]+) in {numerics}\b"
    found = stated(browser, "precision", pattern, which="llama-3.1-8b", position=position)
    assert found == [pytest.approx(worst, rel=0.02)]


# ---- the concept map ----


def opened_map(browser: Browser, choice: str = "", **settings: Any) -> None:
    """Opens the map, at a node if there is a choice."""
    open_view(browser, f"map{choice and '&node='}{choice}", **settings)


def chosen(browser: Browser) -> str:
    """Returns the node in the panel; "nothing" if there is none."""
    wait_until_drawn(browser)
    return str(browser.js("return explore.current.state.node"))


def focused(browser: Browser) -> str:
    """Returns the node that has the focus, or the tag of another element."""
    return str(browser.js("return document.activeElement.dataset.id || document.activeElement.tagName"))


def scale(browser: Browser) -> float:
    return float(browser.js("return explore.current.map.scale"))


OVERLAPS = """const map = explore.current.map, letter = Math.max(map.scale, 1);
    const shown = [...map.nodes.values()].filter((node) => getComputedStyle(node.label).visibility === "visible");
    const boxes = shown.map(({ label, sx, sy }) => {
        const lines = [...label.children].map((line) => line.getComputedTextLength());
        const high = 7 * lines.length * letter - 1;
        return [sx - 4, sx + (12 + Math.max(...lines)) * letter, sy - high, sy + high];
    });
    const clash = (a, b) => a[0] < b[1] && b[0] < a[1] && a[2] < b[3] && b[2] < a[3];
    const names = shown.map(({ id }) => id), found = [];
    boxes.forEach((a, i) => boxes.forEach((b, j) => { if (i < j && clash(a, b)) found.push([names[i], names[j]]); }));
    return [boxes.length, found];"""


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_do_not_overlap(browser: Browser, width: int) -> None:
    opened_map(browser, width=width)
    for zoom in (browser.js("return explore.current.map.scale"), 1, 2, 0.7):
        browser.js("const map = explore.current.map; map.zoomBy(arguments[0] / map.scale)", zoom)
        shown, overlaps = browser.js(OVERLAPS)
        assert overlaps == [] and (shown == len(NODES) if zoom >= 0.84 else 7 <= shown < len(NODES))
    browser.js("explore.current.map.showWhole()")
    assert browser.js(OVERLAPS)[1] == []


def test_click_opens_a_node(browser: Browser) -> None:
    opened_map(browser, width=1600)
    node = browser.one('#map .node[data-id="yarn"] path')
    browser.js("arguments[0].scrollIntoView({ block: 'center' })", node)
    pointer_in(browser).move_to_element(node).click().perform()
    assert chosen(browser) == "yarn"
    panel = browser.one("#map .panel").text
    shown = ["YaRN", "linear ramp", "c(n) = dim ln(L/(2 pi n))", "posenc table frequencies", "4 models"]
    assert all(text in panel for text in (*shown, "arXiv 2309.00071")), panel
    browser.wait(lambda _: browser.js("return document.querySelector('#map .thumb img')?.naturalWidth > 100"))
    browser.click(browser.one("#map .thumb"))
    assert browser.js("return document.querySelector('#map dialog').open")
    browser.press(key("ESCAPE"))
    assert chosen(browser) == "yarn" and not browser.js("return document.querySelector('#map dialog').open")
    browser.click(browser.one('#map .panel a[data-node="llama3"]'))
    assert chosen(browser) == "llama3" and browser.texts("#map .panel h3")[0].startswith("Llama 3")
    browser.click(browser.one("#map .panel .close"))
    assert chosen(browser) == "nothing" and focused(browser) == "llama3"


def test_keys_move_along_the_lines(browser: Browser) -> None:
    opened_map(browser, width=1600)
    browser.js("document.querySelector('#map .node[tabindex=\"0\"]').focus()")
    assert focused(browser) == "order"
    seen = []
    for name in ("ARROW_RIGHT", "ARROW_DOWN", "ARROW_RIGHT", "ARROW_DOWN", "ARROW_RIGHT", "ARROW_RIGHT", "ARROW_LEFT"):
        browser.press(key(name))
        seen.append(focused(browser))
    assert seen[:5] == ["embeddings", "rotated", "rope_table", "rope_half", "rope_qk_norm"]
    assert NODES[seen[5]]["kind"] == "model" and seen[6] == "rope_half"
    browser.press(key("ENTER"))
    assert chosen(browser) == "rope_half" and focused(browser) == "H3"
    browser.press(key("ESCAPE"))
    assert chosen(browser) == "nothing" and focused(browser) == "rope_half"
    browser.press(key("HOME"))
    assert focused(browser) == "order"
    before = scale(browser)
    browser.press("+")
    assert scale(browser) > before
    browser.press("-", "-", "-", "0")
    assert scale(browser) <= before
    browser.press(key("TAB"))
    assert focused(browser) == "BUTTON"


def test_wheel_buttons_and_drag(browser: Browser) -> None:
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    opened_map(browser, width=1600)
    before, picture = scale(browser), browser.one("#map .chart svg")
    browser.js("arguments[0].scrollIntoView({ block: 'center' })", picture)
    browser.click(browser.all("#map .tools button")[1])
    assert scale(browser) == pytest.approx(1.4 * before)
    browser.click(browser.all("#map .tools button")[2])
    browser.click(browser.all("#map .tools button")[0])
    assert scale(browser) < before
    wheel: Any = ScrollOrigin.from_element(picture, 10, 10)
    small = scale(browser)
    pointer_in(browser).scroll_from_origin(wheel, 0, -40).perform()
    assert scale(browser) == small  # the page scrolls
    browser.js("arguments[0].scrollIntoView({ block: 'center' })", picture)
    pointer_in(browser).move_to_element_with_offset(picture, -350, 0).click().perform()
    pointer_in(browser).scroll_from_origin(wheel, 0, -900).perform()
    browser.wait(lambda _: scale(browser) > 1.5 * small)
    x = browser.js("return explore.current.map.x")
    pointer_in(browser).drag_and_drop_by_offset(picture, 70, 30).perform()
    assert browser.js("return explore.current.map.x") == pytest.approx(x + 70, abs=3)
    assert chosen(browser) == "nothing"


def test_address_and_list_lead_to_nodes(browser: Browser) -> None:
    opened_map(browser, "llama-3.1-8b", width=360)
    assert chosen(browser) == "llama-3.1-8b"
    texts = browser.texts("#map .panel .trail, #map .panel dl")
    assert texts[0].rstrip(" ›").split(" › ") == [NODES[name]["title"] for name in ("order", "rotated", "rope_half")]
    assert "500000" in texts[1]
    assert browser.js("return getComputedStyle(document.querySelector('#map .panel')).position") == "fixed"
    listed = browser.js("return [...document.querySelectorAll('#map .outline a')].map((link) => link.dataset.node)")
    assert Counter(listed) == Counter(NODES.keys())
    options = browser.js("return [...document.querySelector('#map-node').options].map((one) => one.value)")
    assert options[1:] == list(NODES)
    labels = [node.get_attribute("aria-label") for node in browser.all("#map .node")]
    assert len(labels) == len(NODES) and all(labels)
