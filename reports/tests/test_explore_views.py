"""Numbers that the views of posenc explore state in words: posenc table has the same."""

import csv
import math
import re
from typing import Any, Dict, List

import pytest
from test_explore import browser, drawn, opened, page  # noqa: F401 (fixtures)
from test_page import Browser, driver  # noqa: F401 (a fixture)

from posenc.engine import Engine

BACKEND = ("--backend", "scalar")


def table(*words: str) -> List[Dict[str, float]]:
    """Returns the rows of a table of the program, by column."""
    rows = csv.DictReader(Engine().run("table", *words, "--out", "csv").splitlines())
    return [{name: float(text) for name, text in row.items()} for row in rows]


def stated(browser: Browser, view: str, pattern: str, **values: Any) -> List[float]:  # noqa: F811
    """Returns the numbers that the notes of a view state in a sentence, where its controls have such values."""
    opened(browser, view)
    browser.js("explore.current.set(arguments[0])", values)
    drawn(browser)
    words = " ".join(browser.texts(".note")).replace("−", "-").replace("\u202f", "").replace("\n", " ")
    found = re.search(pattern, words)
    assert found, f"{pattern}: {words}"
    return [float(number) for number in found.groups()]


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gpt-oss-20b", "qwen3-8b-yarn"])
def test_scaling_counts_the_pairs_of_a_model(browser: Browser, model: str) -> None:  # noqa: F811
    rows = table("frequencies", "--model", model)
    ratios = [row["unscaled_radians"] / row["radians"] for row in rows]
    kept, divided = (sum(math.isclose(ratio, other, rel_tol=1e-9) for ratio in ratios) for other in (1, max(ratios)))
    pattern = r"(\d+) of (\d+) pairs are kept, (\d+) lie between, and (\d+) are divided by (\d+)"
    counts = [kept, len(rows), len(rows) - kept - divided, divided, round(max(ratios))]
    assert stated(browser, "scaling", pattern, which=model) == counts


@pytest.mark.parametrize("m, n", [(70, 60), (60, 70), (3, 90)])
def test_similarity_is_the_sum_of_cosines_by_offset(browser: Browser, m: int, n: int) -> None:  # noqa: F811
    before = stated(browser, "similarity", r"m - n = (-?\d+): the product is (-?[\d.]+)\.", m=m, n=n)
    after = stated(browser, "similarity", r"m - n = (-?\d+): the product is (-?[\d.]+)\.", m=m + 20, n=n + 20)
    assert before[0] == m - n and before == after
    other = stated(browser, "similarity", r"m - n = (-?\d+): the product is (-?[\d.]+)\.", m=m + 1, n=n)
    assert other[1] != before[1]


@pytest.mark.parametrize("pair, p", [(1, 7), (0, 12), (5, 100)])
def test_rope_rotates_an_arrow_as_the_table_says(browser: Browser, pair: int, p: int) -> None:  # noqa: F811
    row = table("--problem", "rope_table rotary_dim=16", "--positions", str(p), *BACKEND)[0]
    pattern = r"The arrow \(1, 0\) is now \((-?[\d.]+), (-?[\d.]+)\)"
    cos, sin = stated(browser, "rope", pattern, dim=16, base=10000, pair=pair, p=p)
    assert cos == pytest.approx(row[f"cos[{pair}]"], abs=5e-5) and sin == pytest.approx(row[f"sin[{pair}]"], abs=5e-5)


@pytest.mark.parametrize("heads, head, i, j", [(8, 2, 20, 17), (12, 9, 30, 1), (8, 8, 31, 0)])
def test_alibi_has_the_bias_of_the_kernel(
    browser: Browser, heads: int, head: int, i: int, j: int  # noqa: F811
) -> None:
    rows = table("--problem", f"alibi heads={heads} queries=32 keys=32", *BACKEND)
    wanted = rows[(head - 1) * 32 + i][f"alibi[{j}]"]
    controls = {"kind": "alibi", "alibi_heads": heads, "alibi_size": 32, "alibi_head": head, "alibi_i": i, "alibi_j": j}
    assert stated(browser, "bias", rf"Query {i}, key {j}: (-?[\d.]+)\.", **controls) == [
        pytest.approx(wanted, rel=1e-3)
    ]


@pytest.mark.parametrize("profile", ["hf_f32", "ggml_f32"])
def test_precision_has_the_largest_error_of_a_model(browser: Browser, profile: str) -> None:  # noqa: F811
    position = 131071
    words = ("--model", "llama-3.1-8b", "--positions", str(position), *BACKEND)
    exact, rounded = (table(*words, "--problem", f"rope_table profile={name}")[0] for name in ("exact", profile))
    worst = max(abs(exact[name] - rounded[name]) for name in exact if "[" in name and not name.startswith("position"))
    pattern = rf"the largest error of a cosine or sine is .*?([\d.]+) in {profile}\b"
    found = stated(browser, "precision", pattern, which="llama-3.1-8b", position=position)
    assert found == [pytest.approx(worst, rel=0.02)]
