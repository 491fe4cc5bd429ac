"""Views of the page of posenc explore: the numbers that they state in words, and the concept map in use."""

import csv
import math
import re
from collections import Counter
from typing import Any, Dict, List

import pytest
from browser import Browser, drawn, key, opened, pointer

from posenc.engine import Engine
from posenc.explore.concepts import concept_map

BACKEND = ("--backend", "scalar")
NODES = {node["id"]: node for node in concept_map()["nodes"]}
WIDTHS = (360, 800, 1600)


def table(*words: str) -> List[Dict[str, float]]:
    """Returns the rows of a table of the program, by column."""
    rows = csv.DictReader(Engine().run("table", *words, "--out", "csv").splitlines())
    return [{name: float(text) for name, text in row.items()} for row in rows]


def stated(browser: Browser, view: str, pattern: str, **values: Any) -> List[float]:
    """Returns the numbers that the notes of a view state in a sentence, where its controls have such values."""
    opened(browser, view)
    browser.js("explore.current.set(arguments[0])", values)
    drawn(browser)
    words = " ".join(browser.texts(".note")).replace("−", "-").replace("\u202f", "").replace("\n", " ")
    found = re.search(pattern, words)
    assert found, f"{pattern}: {words}"
    return [float(number) for number in found.groups()]


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gpt-oss-20b", "qwen3-8b-yarn"])
def test_scaling_counts_the_pairs_of_a_model(browser: Browser, model: str) -> None:
    rows = table("frequencies", "--model", model)
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
    row = table("--problem", "rope_table rotary_dim=16", "--positions", str(p), *BACKEND)[0]
    pattern = r"The arrow \(1, 0\) is now \((-?[\d.]+), (-?[\d.]+)\)"
    cos, sin = stated(browser, "rope", pattern, dim=16, base=10000, pair=pair, p=p)
    assert cos == pytest.approx(row[f"cos[{pair}]"], abs=5e-5) and sin == pytest.approx(row[f"sin[{pair}]"], abs=5e-5)


@pytest.mark.parametrize("heads, head, i, j", [(8, 2, 20, 17), (12, 9, 30, 1), (8, 8, 31, 0)])
def test_alibi_has_the_bias_of_the_kernel(browser: Browser, heads: int, head: int, i: int, j: int) -> None:
    rows = table("--problem", f"alibi heads={heads} queries=32 keys=32", *BACKEND)
    wanted = rows[(head - 1) * 32 + i][f"alibi[{j}]"]
    controls = {"kind": "alibi", "alibi_heads": heads, "alibi_size": 32, "alibi_head": head, "alibi_i": i, "alibi_j": j}
    assert stated(browser, "bias", rf"Query {i}, key {j}: (-?[\d.]+)\.", **controls) == [
        pytest.approx(wanted, rel=1e-3)
    ]


@pytest.mark.parametrize("numerics", ["hf_f32", "ggml_f32"])
def test_precision_has_the_largest_error_of_a_model(browser: Browser, numerics: str) -> None:
    position = 131071
    words = ("--model", "llama-3.1-8b", "--positions", str(position), *BACKEND)
    exact, rounded = (table(*words, "--problem", f"rope_table numerics={name}")[0] for name in ("exact", numerics))
    worst = max(abs(exact[name] - rounded[name]) for name in exact if "[" in name and not name.startswith("position"))
    pattern = rf"the largest error of a cosine or sine is .*?([\d.]+) in {numerics}\b"
    found = stated(browser, "precision", pattern, which="llama-3.1-8b", position=position)
    assert found == [pytest.approx(worst, rel=0.02)]


# ---- the concept map ----


def opened_map(browser: Browser, choice: str = "", **settings: Any) -> None:
    """Opens the map, at a node if there is a choice."""
    opened(browser, f"map{choice and '&node='}{choice}", **settings)


def chosen(browser: Browser) -> str:
    drawn(browser)
    return str(browser.js("return explore.current.state.node"))


def focused(browser: Browser) -> str:
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
    pointer(browser).move_to_element(node).click().perform()
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
    pointer(browser).scroll_from_origin(wheel, 0, -40).perform()
    assert scale(browser) == small  # the page scrolls
    browser.js("arguments[0].scrollIntoView({ block: 'center' })", picture)
    pointer(browser).move_to_element_with_offset(picture, -350, 0).click().perform()
    pointer(browser).scroll_from_origin(wheel, 0, -900).perform()
    browser.wait(lambda _: scale(browser) > 1.5 * small)
    x = browser.js("return explore.current.map.x")
    pointer(browser).drag_and_drop_by_offset(picture, 70, 30).perform()
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
    named = browser.js(
        "return [...document.querySelectorAll('#map .node')].map((one) => one.getAttribute('aria-label'))"
    )
    assert len(named) == len(NODES) and all(named)
