"""The page of posenc explore in a browser (browser.py): its controls, heat maps, navigation, colours and widths.

test_explore_views.py compares the numbers on it with those of the program.
"""

import re
from pathlib import Path
from typing import Any, Sequence, Set, Tuple

import pytest
from browser import (
    Browser, axe, complaints_of_tidy, key, open_view, picture_of, pointer_in, show_view, state_of, wait_until_drawn,
)  # fmt: skip

from posenc.command import CommandError
from posenc.explore import main as explore
from posenc.explore.course import course

MOST = 4 * 1024 * 1024  # bytes of the page
VIEWS = explore.VIEWS
SCHEMES = ("light", "dark")


# ---- use ----


def test_page_is_small_and_loads_nothing(browser: Browser, explore_page: Path) -> None:
    text = explore_page.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST
    assert not re.search(r"""\bsrc\s*=\s*["']?(https?:)?//|<link\b|@import|url\(\s*["']?https?:""", text)
    browser.logged()
    for view in VIEWS:
        open_view(browser, view)
    assert browser.logged() == ([], {explore_page.as_uri()})


@pytest.mark.parametrize("lesson", [1, 8])
def test_quiz_says_whether_an_answer_is_right(browser: Browser, lesson: int) -> None:
    open_view(browser, f"course&lesson={lesson}")
    questions = course()[lesson - 1]["questions"]
    forms = browser.all("form.question")
    assert len(forms) == len(questions) == 5
    for number, (form, question) in enumerate(zip(forms, questions)):
        options = {one.get_attribute("value"): one for one in form.find_elements("css selector", "input")}
        wrong = next(letter for letter in options if letter != question["answer"])
        given = [question["answer"]] if number % 2 == 0 else [wrong, question["answer"]]
        for letter in given:
            browser.click(options[letter])
            browser.click(form.find_element("css selector", "button"))
            said = form.find_element("css selector", ".said").text
            expected = "Right." if letter == question["answer"] else f"Not right. The answer is {question['answer']}."
            assert expected in said and ("Not right" in said) == (letter == wrong)
    assert "You answered 5 of 5 questions; 3 right at the first try." in browser.one(".total").text


# Brings the view into a state in which it shows a control: some other control has the value that this takes.
SHOW = """const page = explore.current, { spec } = page.controls.find((control) => control.spec.id === arguments[0]);
    const steps = ({ min, max, step }) =>
        Array.from({ length: 100 }, (_, i) => Number(min) + i * Number(step)).filter((value) => value <= Number(max));
    const valuesOf = ({ spec, input }) =>
        spec.options ? Object.keys(spec.options) : spec.check ? [true, false] : spec.values || steps(input);
    if (!spec.when || spec.when(page.state)) return;
    for (const control of page.controls)
        for (const value of valuesOf(control))
            if (spec.when({ ...page.state, [control.spec.id]: value }))
                return page.set({ [control.spec.id]: value });"""


@pytest.mark.parametrize("view", VIEWS)
def test_each_control_changes_the_view(browser: Browser, view: str) -> None:
    open_view(browser, view)
    names = browser.js("return explore.current.controls.map((control) => control.spec.id)")
    initial = state_of(browser)
    for name in names:
        browser.js("explore.current.set(arguments[0])", initial)
        wait_until_drawn(browser)
        browser.js(SHOW, name)
        wait_until_drawn(browser)
        control, before, shown = browser.one(f"#{view}-{name}"), state_of(browser), picture_of(browser)
        text = browser.texts(f"output[for={view}-{name}]")
        if control.get_attribute("type") == "range":
            at_end = control.get_attribute("value") == control.get_attribute("max")
            control.send_keys(key("ARROW_LEFT" if at_end else "ARROW_RIGHT"))
        elif control.tag_name == "select":
            at_end = browser.js("return arguments[0].selectedIndex === arguments[0].length - 1", control)
            control.send_keys(key("ARROW_UP" if at_end else "ARROW_DOWN"))
        else:
            browser.click(control)
        browser.wait(lambda _: state_of(browser) != before)
        wait_until_drawn(browser)
        assert state_of(browser)[name] != before[name]
        assert browser.texts(f"output[for={view}-{name}]") != text or not text
        assert picture_of(browser) != shown, name


def test_all_values_of_all_controls_have_a_result(browser: Browser) -> None:
    for view in VIEWS:
        open_view(browser, view)
        for name, values in browser.js("""return explore.current.controls.map(({ spec, input }) => [spec.id,
                spec.options ? Object.keys(spec.options) : spec.check ? [true, false] :
                spec.values && spec.values.length ? spec.values : [Number(input.min), Number(input.max)]])"""):
            for value in values:
                browser.js("explore.current.set({ [arguments[0]]: arguments[1] })", name, value)
                wait_until_drawn(browser)
                assert browser.js("return explore.current.problem.hidden"), (view, name, value)


def test_heat_map_by_keyboard(browser: Browser) -> None:
    open_view(browser, "table")
    browser.js("document.querySelector('#table canvas').focus()")
    whole = picture_of(browser)
    browser.press(key("ARROW_DOWN"), key("ARROW_DOWN"), key("ARROW_DOWN"), key("ARROW_RIGHT"))
    bits = browser.js("return explore.lib.sinusoidal({dim: 64, rope_theta: 10000}, {tokens: 8})[2 * 64 + 1]")
    read = browser.texts("#table .map .readout")[0]
    assert read.startswith("Position 2, column 1 (pair 0): cos(2 × 1) = −0.41614")
    assert abs(float(read.rpartition(" ")[2].replace("−", "-")) - bits) < 1e-8
    assert browser.texts("#table .map [aria-live]")[0] == read
    browser.press("+", "+")
    assert picture_of(browser) != whole and browser.js("return explore.current.map.zoom") > 2
    browser.press("0")
    assert browser.js("return explore.current.map.zoom") == 1
    browser.press(key("END"), key("ENTER"))
    browser.wait(lambda _: state_of(browser)["pair"] == 31)


def test_heat_map_by_pointer(browser: Browser) -> None:
    open_view(browser, "table")
    canvas = browser.one("#table canvas")
    browser.js("arguments[0].scrollIntoView({ block: 'center' })", canvas)
    pointer_in(browser).move_to_element(canvas).perform()
    assert "Position 6" in browser.texts("#table .map .readout")[0]
    pointer_in(browser).click(canvas).perform()
    browser.wait(lambda _: state_of(browser)["pair"] > 10)
    browser.click(browser.all("#table .tools button")[1])
    browser.click(browser.all("#table .tools button")[1])
    before = browser.js("return explore.current.map.x")
    browser.js("arguments[0].scrollIntoView({ block: 'center' })", canvas)
    pointer_in(browser).drag_and_drop_by_offset(canvas, 60, 20).perform()
    assert browser.js("return explore.current.map.x") < before


def test_drag_of_query_and_key(browser: Browser) -> None:
    open_view(browser, "similarity")
    handle = browser.all("#similarity .handle")[0]
    browser.js("arguments[0].scrollIntoView({ block: 'center' })", handle)
    pointer_in(browser).drag_and_drop_by_offset(handle, 80, 0).perform()
    browser.wait(lambda _: state_of(browser)["m"] > 72)
    assert state_of(browser)["n"] == 60
    assert f"m − n = {state_of(browser)['m'] - 60}:" in browser.texts("#similarity .note")[0]


def test_address_holds_the_state(browser: Browser) -> None:
    open_view(browser, "table&dim=128&kind=cos&pair=9")
    assert {name: state_of(browser)[name] for name in ("dim", "kind", "pair")} == {"dim": 128, "kind": "cos", "pair": 9}
    browser.js("explore.current.set({ base: 1e6 })")
    browser.wait(lambda _: "base=1000000" in browser.js("return location.hash"))
    browser.click(browser.one("#views a[href='#similarity']"))
    browser.wait(lambda _: browser.js("return explore.current.view.id") == "similarity")
    assert browser.js("return document.activeElement.id") == "similarity-title"
    open_view(browser, "nonsense&x=%")
    assert browser.js("return explore.current.view.id") == browser.js("return explore.views[0].id")


def test_colours_change(browser: Browser) -> None:
    open_view(browser, "table")
    before = picture_of(browser)
    browser.click(browser.one("#theme"))
    assert browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(15, 19, 23)"
    wait_until_drawn(browser)
    assert picture_of(browser) != before
    browser.click(browser.one("#theme"))
    browser.js("localStorage.clear()")


@pytest.mark.parametrize("width", (360, 800, 1600))
def test_nothing_is_wider_than_the_screen(browser: Browser, width: int) -> None:
    open_view(browser, width=width)
    for view in VIEWS:
        show_view(browser, view)
        assert browser.js("return document.documentElement.scrollWidth") <= width, view


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_serious(browser: Browser, scheme: str) -> None:
    open_view(browser, scheme=scheme)
    browser.js(axe())
    for view in VIEWS:
        show_view(browser, view)
        assert browser.violations() == [], view


def test_tidy_finds_no_error(browser: Browser, tmp_path: Path) -> None:
    made = tmp_path / "made.html"  # as it is after the script made the view
    younger = 'trimming empty|proprietary attribute "(aria-|inputmode)|nested emphasis'
    open_view(browser)
    for view in VIEWS:
        show_view(browser, view)
        page = browser.js("""const page = document.documentElement.cloneNode(true);
            for (const big of page.querySelectorAll('script')) big.remove();
            return page.outerHTML""")
        made.write_text("<!DOCTYPE html>" + page, encoding="utf-8")
        assert complaints_of_tidy(made, younger) == [], view


# ---- heat maps, navigation and addresses ----


SHOW_CELLS = """const map = explore.current.map, values = arguments[0].map((value) => (value === null ? NaN : value));
    map.show({ rows: 3, columns: 3, values: [...values, -Infinity], row: "row", column: "column", masked: "masked",
               limits: arguments[1], marks: arguments[2] });
    const pen = map.canvas.getContext("2d");
    return [...pen.getImageData(Math.round(map.size.left + map.size.plot * arguments[3]),
        Math.round(6 + map.size.height * arguments[4]), 12, 12).data]"""


def pixels_at(browser: Any, row: float, column: float, limits: Sequence[float], marks: bool = False) -> Any:
    """Returns pixels of a heat map with two masked cells, (1, 1) and (2, 2), from a point that is given in cells."""
    numbers = [0, 1, 2, 3, None, 5, 6, 7]
    outline = [{"row": 0, "column": 0}] if marks else []
    return list(browser.js(SHOW_CELLS, numbers, limits, outline, column / 3, row / 3))


def colours_of(pixels: Sequence[int]) -> Set[Tuple[int, ...]]:
    return set(zip(pixels[::4], pixels[1::4], pixels[2::4]))


def test_masked_cells_are_hatched_and_named(browser: Browser) -> None:
    open_view(browser, "table")
    for row, column in ((1, 1), (2, 2)):
        assert len(colours_of(pixels_at(browser, row + 0.1, column + 0.1, [0, 7]))) > 1  # lines on a ground
    assert len(colours_of(pixels_at(browser, 0.1, 0.1, [0, 7]))) == 1
    assert "masked" in browser.texts("#table .key")[0]


def test_outlines_stay(browser: Browser) -> None:
    open_view(browser, "table")
    assert pixels_at(browser, 0.0, 0.5, [0, 7]) != pixels_at(browser, 0.0, 0.5, [0, 7], marks=True)


def test_limits_of_a_key_differ(browser: Browser) -> None:
    open_view(browser, "table")
    pixels_at(browser, 0, 0, [0.99981, 1])
    assert browser.texts("#table .key")[0].split("\n")[0].startswith("0.9998")


def wait_for_view(browser: Browser, view: str) -> None:
    browser.wait(lambda _: browser.js("return explore.current.view.id") == view)


def test_list_of_views_on_a_phone(browser: Browser) -> None:
    open_view(browser, "", width=360)
    assert not browser.one("#views a").is_displayed()
    chosen = browser.one("#views select")
    first = browser.js("return explore.views.map((view) => view.id)")
    for view in first[1:3]:
        chosen.send_keys(key("ARROW_DOWN"))
        wait_for_view(browser, view)
        assert browser.js("return document.activeElement.id") == "view"  # arrow keys can go on
    browser.js("history.back()")
    wait_for_view(browser, first[1])
    assert chosen.get_attribute("value") == first[1]


def test_each_view_is_in_a_group(browser: Browser) -> None:
    open_view(browser)
    assert "More" not in browser.texts("#views span")
    links = browser.js("return [...document.querySelectorAll('#views a')].map((link) => link.hash.slice(1))")
    assert links == browser.js("return explore.views.map((view) => view.id)")


def test_skip_link_stays_in_the_view(browser: Browser) -> None:
    open_view(browser, "similarity")
    browser.js("document.querySelector('.skip').click()")
    wait_until_drawn(browser)
    focus = browser.js("return [explore.current.view.id, document.activeElement.id]")
    assert focus == ["similarity", "similarity-title"]


@pytest.mark.parametrize("address", ("table&kind=%", "table&dim=much", "table&kind=none", "table&dim"))
def test_an_address_that_makes_no_sense(browser: Browser, address: str) -> None:
    open_view(browser, address)
    assert (state_of(browser)["kind"], state_of(browser)["dim"]) == ("sinusoidal", 64)


def test_address_of_a_view_that_is_shown_again(browser: Browser) -> None:
    open_view(browser, "table")
    browser.js("explore.current.set({ dim: 128 })")
    for address in ("steps", "table"):
        browser.js("location.hash = arguments[0]", address)
        wait_until_drawn(browser)
    browser.wait(lambda _: browser.js("return location.hash") == "#table&dim=128")


# ---- without a browser ----


def test_command_writes_the_page(explore_page: Path, tmp_path: Path) -> None:
    del explore_page  # without the library this test is skipped
    path = tmp_path / "page.html"
    assert explore.main(["-o", str(path), "--view", "steps"]) == 0
    text = path.read_text(encoding="utf-8")
    assert '\n  id: "steps",' in text and '\n  id: "table",' not in text
    assert explore.main(["-o", str(path)]) == 0  # an earlier output may be replaced
    assert path.read_text(encoding="utf-8") == explore.to_html(explore.find_wasm().read_bytes())
    path.write_text("something else")
    with pytest.raises(CommandError, match="no earlier output"):
        explore.main(["-o", str(path)])


@pytest.mark.parametrize("name", ["-", "page.png", "page"])
def test_page_has_the_name_of_a_page(name: str) -> None:
    with pytest.raises(CommandError, match="Use a name that ends in .html"):
        explore.main(["-o", name])


def test_unknown_view_is_rejected() -> None:
    with pytest.raises(CommandError, match=r"no such view \(got 'tabel'\)\. Did you mean table"):
        explore.main(["--view", "tabel"])


def test_missing_library_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "posenc"
    program.parent.mkdir()
    program.write_text("")
    monkeypatch.setenv("POSENC_PROGRAM", str(program))
    monkeypatch.setattr(explore, "HERE", tmp_path)
    with pytest.raises(CommandError, match="Install clang, lld, wasi-libc") as error:
        explore.main(["-o", str(tmp_path / "page.html")])
    assert error.value.status == 2 and not (tmp_path / "page.html").exists()


def test_each_view_is_a_file_of_its_name() -> None:
    for name in VIEWS:
        text = (explore.HERE / "views" / f"{name}.js").read_text(encoding="utf-8")
        assert re.findall(r'^  id: "(\w+)",$', text, re.M) == [name]
        assert len(re.findall(r"^addView\(\{$", text, re.M)) == 1
