"""The frame of the page of posenc explore: navigation, addresses, masked cells and lasting outlines."""

from typing import Any, Sequence

import pytest
from test_explore import browser, drawn, opened, page, state  # noqa: F401 (fixtures)
from test_page import Browser, driver, key  # noqa: F401 (a fixture)

SHOW = """const map = explore.current.map, values = arguments[0].map((value) => (value === null ? NaN : value));
    map.show({ rows: 3, columns: 3, values: [...values, -Infinity], row: "row", column: "column", masked: "masked",
               limits: arguments[1], marks: arguments[2] });
    const pen = map.canvas.getContext("2d");
    return [...pen.getImageData(Math.round(map.size.left + map.size.plot * arguments[3]),
        Math.round(6 + map.size.height * arguments[4]), 12, 12).data]"""


def cell(browser: Any, row: float, column: float, limits: Sequence[float], marks: bool = False) -> Any:  # noqa: F811
    """Returns pixels of a heat map with two masked cells, from a point that is given in cells."""
    numbers = [0, 1, 2, 3, None, 5, 6, 7]
    outline = [{"row": 0, "column": 0}] if marks else []
    return list(browser.js(SHOW, numbers, limits, outline, column / 3, row / 3))


def test_masked_cells_are_hatched_and_named(browser: Browser) -> None:  # noqa: F811
    opened(browser, "table")
    for row, column in ((1, 1), (2, 2)):
        pixels = cell(browser, row + 0.1, column + 0.1, [0, 7])
        colours = set(zip(pixels[::4], pixels[1::4], pixels[2::4]))
        assert len(colours) > 1  # lines on a ground
    plain = cell(browser, 0.1, 0.1, [0, 7])
    assert len(set(zip(plain[::4], plain[1::4], plain[2::4]))) == 1
    assert "masked" in browser.texts("#table .key")[0]


def test_outlines_stay(browser: Browser) -> None:  # noqa: F811
    opened(browser, "table")
    assert cell(browser, 0.0, 0.5, [0, 7]) != cell(browser, 0.0, 0.5, [0, 7], marks=True)


def test_limits_of_a_key_differ(browser: Browser) -> None:  # noqa: F811
    opened(browser, "table")
    cell(browser, 0, 0, [0.99981, 1])
    assert browser.texts("#table .key")[0].split("\n")[0].startswith("0.9998")


def shows(browser: Browser, view: str) -> None:  # noqa: F811
    browser.wait(lambda _: browser.js("return explore.current.view.id") == view)


def test_list_of_views_on_a_phone(browser: Browser) -> None:  # noqa: F811
    opened(browser, "", width=360)
    assert not browser.one("#views a").is_displayed()
    chosen = browser.one("#views select")
    first = browser.js("return explore.views.map((view) => view.id)")
    for view in first[1:3]:
        chosen.send_keys(key("ARROW_DOWN"))
        shows(browser, view)
        assert browser.js("return document.activeElement.id") == "view"  # arrow keys can go on
    browser.js("history.back()")
    shows(browser, first[1])
    assert chosen.get_attribute("value") == first[1]


def test_each_view_is_in_a_group(browser: Browser) -> None:  # noqa: F811
    opened(browser)
    assert "More" not in browser.texts("#views span")
    links = browser.js("return [...document.querySelectorAll('#views a')].map((link) => link.hash.slice(1))")
    assert links == browser.js("return explore.views.map((view) => view.id)")


def test_skip_link_stays_in_the_view(browser: Browser) -> None:  # noqa: F811
    opened(browser, "similarity")
    browser.js("document.querySelector('.skip').click()")
    drawn(browser)
    assert browser.js("return [explore.current.view.id, document.activeElement.id]") == ["similarity"] + [
        "similarity-title"
    ]


@pytest.mark.parametrize("address", ("table&kind=%", "table&dim=much", "table&kind=none", "table&dim"))
def test_an_address_that_makes_no_sense(browser: Browser, address: str) -> None:  # noqa: F811
    opened(browser, address)
    assert (state(browser)["kind"], state(browser)["dim"]) == ("sinusoidal", 64)


def test_address_of_a_view_that_is_shown_again(browser: Browser) -> None:  # noqa: F811
    opened(browser, "table")
    browser.js("explore.current.set({ dim: 128 })")
    for address in ("steps", "table"):
        browser.js("location.hash = arguments[0]", address)
        drawn(browser)
    browser.wait(lambda _: browser.js("return location.hash") == "#table&dim=128")
