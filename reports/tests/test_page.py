"""The page of a report: what it shows in a browser (browser.py), its Markdown, and its sections.

Four pages are made of run.jsonl: of this run, of a fleet of three machines, of a comparison, and of checks alone.
"""

import copy
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

import pytest
from browser import Browser, axe, complaints_of_tidy, key
from programs import read_json_lines, result

from posenc.records import load
from posenc.report import page
from posenc.report.page import SECTIONS, to_html
from posenc.report.view import View
from posenc.results.github import to_page

Record = Dict[str, Any]
HERE = Path(__file__).parent
RUN = load(str(HERE / "run.jsonl"))
PAGES = ("run", "fleet", "comparison", "checks")


# ---- records ----


def records_of(*kinds: str) -> List[Record]:
    """Returns copies of the records of some kinds."""
    return [copy.deepcopy(record) for record in RUN if record["t"] in kinds]


def run() -> List[Record]:
    """Returns a run with failures, timings and an error by position."""
    positions = [float(2**bits) for bits in range(0, 32, 2)]
    curve = {"t": "curve", "curve": "avx512, hf_f32", "backend": "avx512", "numerics": "hf_f32",
             "positions": positions, "errors": [1e-8 * (1 + position / 1e5) for position in positions]}  # fmt: skip
    count: Record = {**records_of("overhead")[0], "t": "count", "case": "rope_half/f32/given/count", "vector_width": 8,
                     "by": "single step", "instructions": 5611, "per_element": 0.607421875, "per_call": 635.0}
    rejected = {**count, "backend": "scalar", "rejected": "nothing counts instructions here"}
    return [*RUN[:-1], curve, count, rejected, RUN[-1]]


def fleet() -> List[Record]:
    """Returns runs of three machines."""
    records = run()
    for machine, name, speed in (("arm-41-d4f-1", "Neoverse V2", 0.5), ("intel-6-cf-2/KVM", "Intel Xeon 8592", 0.8)):
        for record in copy.deepcopy(RUN):
            if record["t"] == "env":
                record["env_id"], record["cpu"]["name"] = machine, name
            elif record["t"] == "bench" and "median_ns" in record:
                for numbers, member in ((record, "median_ns"), (record["ci"], "lo"), (record["ci"], "hi")):
                    numbers[member] *= speed
            records.append(record)
    return records


def pair(head_dim: int, verdict: str, ratio: Optional[float], half: float, reason: str) -> Record:
    """Returns a comparison of a case. The interval is `half` to either side of the ratio."""
    record = result("pair", f"rope_half/f32/given/hd{head_dim}-t4096", "avx512", verdict=verdict, reason=reason)
    if ratio:
        record.update(ratio=ratio, ci={"level": 0.99, "lo": ratio - half, "hi": ratio + half})
        record.update(noise_threshold=0.012, control_ratio=1.002)
    return record


def comparison() -> List[Record]:
    """Returns a comparison with every verdict, and results that differ."""
    header, env = records_of("header", "env")
    header["compare"] = {"base": {"rev": "main", "commit": "0ccbb11aaaab"}, "head": {"path": "lib/head.so"}}
    pairs = [
        pair(64, "slower", 1.08, 0.01, "the whole interval lies above the noise threshold of 1.2 %; it was confirmed"),
        pair(80, "faster", 0.91, 0.01, "the whole interval lies below the noise threshold; it was confirmed"),
        pair(96, "unclear", 1.03, 0.05, "the interval crosses the noise threshold: 40 s more would settle it"),
        pair(128, "same", 1.001, 0.002, "the whole interval lies within the threshold"),
        pair(160, "identical", None, 0, "the machine code is the same"),
        pair(192, "incomparable", None, 0, "head crashed: signal 11"),
    ]
    worse: Record = {"suite": "side-effects", "what": "error", "metric": "pair_ulp", "base": {"max": 0.9},
                     "head": {"max": 1.4}, "worse": True, "worst_at": "token 3 head 0 pair 17"}  # fmt: skip
    changes = [result("change", f"rope_half/f32/given/hd{head_dim}-t7", **worse) for head_dim in range(2, 32, 2)]
    return [header, env, *pairs, *changes, *records_of("footer")]


# ---- the browser ----


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with all pages."""
    made = tmp_path_factory.mktemp("pages")
    records = {"run": run(), "fleet": fleet(), "comparison": comparison(),
               "checks": [record for record in RUN if record["t"] not in ("bench", "model")]}  # fmt: skip
    for name in PAGES:
        (made / f"{name}.html").write_text(to_html(View(records[name])), encoding="utf-8")
    return made


@pytest.fixture()
def browser(driver: Any, folder: Path) -> Browser:
    """Returns a browser that opens the pages."""
    return Browser(driver, folder)


ROWS = "#timings tbody tr:not(.group)"


def test_the_first_screen_answers(browser: Browser) -> None:
    browser.open("run")
    boxes = browser.all(".advice > dl")
    assert [box.text.split("\n")[0] for box in boxes] == ["Backend", "How sure", "What to type"]
    assert all(box.rect["y"] + box.rect["height"] < 800 for box in boxes)
    assert all(word in box.text for box, word in zip(boxes, ("avx512, the default", "clear", "nothing")))
    assert browser.one(".answers tbody tr").rect["y"] < 800
    assert "2 of 122 checks failed" in browser.one(".chips").text


def test_filters(browser: Browser) -> None:
    browser.open("run")
    assert browser.texts("#found")[0].startswith("66 of 66 timings")
    browser.choose("kernel", "rope_table")
    browser.choose("level", "L2")
    browser.wait(lambda _: not browser.texts("#found")[0].startswith("66 of"))
    rows = [row for row in RUN if row["t"] == "bench" and row["kernel"] == "rope_table"]
    wanted = [row for row in rows if row["footprint"]["name"] == "L2"]
    timed = [row for row in wanted if "median_ns" in row]
    browser.wait(lambda _: browser.texts("#found")[0].startswith(f"{len(wanted)} of 66 timings"))
    assert len(browser.all(ROWS)) == len(wanted) and len(browser.all("#chart g.row")) == len(timed)
    assert all("rope_table" in text for text in browser.texts("#timings .group"))
    browser.one("input[name=text]").send_keys("nothing like it")
    browser.wait(lambda _: browser.texts("#found")[0].startswith("0 of"))
    assert not browser.all(ROWS) and "No timing fits" in browser.one("#chart").text
    browser.click(browser.one("button[type=reset]"))
    browser.wait(lambda _: browser.texts("#found")[0].startswith("66 of 66 timings"))


def test_sorting(browser: Browser) -> None:
    browser.open("run")
    cells_of_rows = """return [...document.querySelectorAll('#timings tbody tr')].map((row) =>
        [...row.cells].map((cell) => cell.innerText))"""
    assert browser.all("#timings .group")
    browser.click(browser.one("#more"))
    browser.wait(lambda _: len(browser.all(ROWS)) == 66)
    shares = []
    for direction in ("descending", "ascending"):
        browser.click(browser.one("[data-by=share]"))
        head = browser.texts("#timings thead th")
        at = next(at for at, text in enumerate(head) if text.startswith("% of roofline"))
        cells = browser.all("#timings thead th")
        assert cells[at].get_attribute("aria-sort") == direction
        found = [row[at] for row in browser.js(cells_of_rows)]
        numbers = [int(text.split()[0]) for text in found if text != "–"]
        assert numbers == sorted(numbers, reverse=direction == "descending") and len(set(numbers)) > 2
        assert "–" not in found[: len(numbers)], "rows without a number stand last"
        shares.append(sorted(found))
        assert browser.js("return document.activeElement.dataset.by") == "share"
    assert shares[0] == shares[1] and not browser.all("#timings .group")
    browser.click(browser.one("button[type=reset]"))
    browser.wait(lambda _: browser.all("#timings .group"))


def test_charts_by_keyboard(browser: Browser) -> None:
    browser.open("run")
    tabs = browser.all("[role=tab]")
    browser.js("arguments[0].focus()", tabs[0])
    named = []
    for name in ("ARROW_RIGHT", "ARROW_RIGHT", "ARROW_RIGHT", "ARROW_LEFT", "HOME", "END"):
        browser.press(key(name))
        selected = browser.one("[role=tab][aria-selected=true]")
        assert selected == browser.driver.switch_to.active_element
        assert browser.one("#chart").get_attribute("aria-labelledby") == selected.get_attribute("id")
        assert len(browser.all("[role=tab][tabindex='0']")) == 1
        named.append((tabs.index(selected), browser.one("#chart svg").get_attribute("aria-label").split()[0]))
    assert [at for at, _ in named] == [1, 2, 0, 2, 0, 2]
    assert [label for _, label in named[:3]] == ["Speed", "Largest", "Useful"]


def test_a_cell_opens_its_cases(browser: Browser) -> None:
    browser.open("run")
    browser.js("arguments[0].focus()", browser.one("[data-kernel=rope_half][data-backend=sleef_avx512]"))
    browser.press(key("ENTER"))
    browser.wait(lambda _: browser.all("#drawer[open] details"))
    assert browser.one("#drawer h2").text == "rope_half on sleef_avx512"
    cases = browser.all("#drawer details")
    assert cases[0].text.startswith("fail rope_half/f32/given/hd128-t7")
    browser.click(cases[0].find_element("css selector", "summary"))
    text = browser.wait(lambda _: browser.all("#drawer details[open] dl"))[0].text
    shown = ("31.70 pair ulp, limit 1.5", "token 3 head 0 pair 17", "-0x1.9p-3", "-0x1.88p-3", "posenc verify --full")
    assert [words for words in shown if words not in text] == []
    browser.one("#drawer input").send_keys("no such case")
    browser.wait(lambda _: browser.texts("#drawer [role=status]")[0].startswith("0 of"))
    browser.one("#drawer .close").send_keys(key("ESCAPE"))
    browser.wait(lambda _: not browser.all("#drawer[open]"))


def test_a_command_is_copied(browser: Browser) -> None:
    browser.open("run")
    button = browser.one(".failures .copy")
    browser.js("arguments[0].closest('details').open = true", button)
    browser.click(button)
    browser.wait(lambda _: button.text == "Copied" and browser.texts("#copied")[0].startswith("Copied: "))
    browser.one("input[name=text]").send_keys(key("CONTROL"), "v")
    command = "posenc verify --full --backend sleef_avx512 --kernel rope_half --case rope_half/f32/given/hd128-t7"
    assert browser.one("input[name=text]").get_attribute("value") == command


def test_a_term_is_explained(browser: Browser) -> None:
    browser.open("run")
    browser.click(browser.one("[popovertarget=term-roofline]"))
    assert "measured bandwidth bound" in browser.wait(lambda _: browser.texts("#term-roofline:popover-open"))[0]


def test_cost_of_a_call(browser: Browser) -> None:
    browser.open("run")
    head = browser.texts("#cost thead th")
    rows = [dict(zip(head, row.find_elements("css selector", "th, td"))) for row in browser.all("#cost tbody tr")]
    assert [row["Kernel"].text for row in rows] == ["rope_half f32"], "of two alike the last counts"
    shown = [rows[0][name].text for name in ("Bare function", "Front-end", "Prepared call", "A/A control")]
    assert shown == ["52.7 ns", "+12.5 ns +12.4 to +12.7", "+2.2 ns +2.1 to +2.3", "-0.1 ns -0.2 to +0.1"]


def test_instructions(browser: Browser) -> None:
    browser.open("run")
    rows = [[cell.text for cell in row.find_elements("css selector", "th, td")]
            for row in browser.all("#instructions tbody tr")]  # fmt: skip
    case = "rope_half/f32/given/count"
    assert rows[0] == [case, "avx512", "8", "0.61", "635", "single step"]
    assert rows[1] == [case, "scalar", "nothing counts instructions here"]


def test_forest_plot(browser: Browser) -> None:
    browser.open("comparison")
    lines = list(browser.js("return [...document.querySelectorAll('#forest g.row > text')].map((t) => t.textContent)"))
    assert lines[0].startswith("A/A control") and len(lines) == 5 and lines[1].endswith("hd64-t4096 avx512")
    assert [text.split("\n")[0] for text in browser.texts(".chips .chip")][:2] == ["1 SLOWER", "1 FASTER"]


# Text that does not fit where it stands. Regions that scroll are exempt.
CUT = """
for (const details of document.querySelectorAll("details")) details.open = true;
const found = [];
const width = document.documentElement.scrollWidth;
if (width > innerWidth) found.push("the page is " + width);
for (const element of document.querySelectorAll("body *")) {
  if (element.closest("svg, .unseen, .skip, select") || !element.checkVisibility()) continue;
  const style = getComputedStyle(element);
  if (["auto", "scroll"].includes(style.overflowX) || style.display === "inline") continue;
  if (element.scrollWidth > element.clientWidth + 1)
    found.push(`${element.tagName} ${element.className}: ${element.innerText.slice(0, 60)}`);
}
for (const text of document.querySelectorAll("svg text")) {
  const box = text.getBoundingClientRect(), svg = text.closest("svg").getBoundingClientRect();
  if (box.left < svg.left - 1.5 || box.right > svg.right + 1.5) found.push("svg: " + text.textContent);
}
return found;
"""


@pytest.mark.parametrize("width", (360, 800, 1600))
@pytest.mark.parametrize("name", PAGES)
def test_no_text_is_cut(browser: Browser, name: str, width: int) -> None:
    browser.open(name, width)
    assert browser.js(CUT) == []
    for tab in browser.all("[role=tab]"):
        browser.click(tab)
        assert browser.js(CUT) == []
    if browser.all(".matrix button"):
        browser.js("document.querySelector('.matrix button').click()")
        browser.wait(lambda _: browser.all("#drawer[open] details"))
        browser.js("for (const details of document.querySelectorAll('#drawer details')) details.open = true")
        browser.wait(lambda _: browser.all("#drawer details dl"))
        assert browser.js(CUT) == []


@pytest.mark.parametrize("name", PAGES)
def test_print(browser: Browser, name: str) -> None:
    browser.open(name, 718, 1000, media="print")  # A4 with its margins
    assert not any(element.is_displayed() for element in browser.all("nav, .filters, .copy, [role=tablist], #more"))
    assert browser.js("return document.documentElement.scrollWidth") <= 718


def test_pages_are_silent_and_load_nothing(browser: Browser) -> None:
    browser.logged()
    for name in PAGES:
        browser.open(name)
    assert browser.logged() == ([], {(browser.folder / f"{name}.html").as_uri() for name in PAGES})


@pytest.mark.parametrize("scheme", ("light", "dark"))
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(browser: Browser, name: str, scheme: str) -> None:
    browser.open(name, scheme=scheme)
    browser.js(axe())
    browser.js("for (const details of document.querySelectorAll('details')) details.open = true")
    browser.js("for (const row of document.querySelectorAll('tbody tr:nth-child(n+9)')) row.remove()")  # all are alike
    part = "'#fleet'" if name == "fleet" else "document"  # the rest is that of one machine
    only = ", runOnly: ['color-contrast']" if scheme == "dark" else ""  # what a colour scheme changes
    assert browser.violations(part, only) == []


@pytest.mark.parametrize("name", PAGES)
def test_tidy_finds_no_error(folder: Path, name: str) -> None:
    younger = 'attribute "popover(target)?"|trimming empty <(i|tbody)>|invalid value "dialog"'
    assert complaints_of_tidy(folder / f"{name}.html", younger) == []


# ---- without a browser ----


def test_conclusion_of_a_comparison() -> None:
    view = View(comparison())
    assert view.conclusion == (
        "15 results are worse (first: rope_half/f32/given/hd10-t7 on avx2: 1.40 pair ulp, was 0.90 pair ulp); "
        "1 pair is slower (rope_half/f32/given/hd64-t4096 on avx512: +8.0 %); "
        "exit code 0: 15 results got worse; --gate would exit with 3."
    )
    assert f'<p class="conclusion">{view.conclusion}</p>' in to_html(view)
    assert f"\n\n{view.conclusion}\n" in to_page(view.records)


@pytest.mark.parametrize("options, kept, words", [
    ({}, ("same", "identical"), "Nothing changed beyond noise; exit code 0: no failure, no confirmed slowdown."),
    ({"strict": True}, ("same", "unclear"),
     "1 pair is unclear (rope_half/f32/given/hd96-t4096 on avx512: +3.0 %); exit code 4: 1 unclear verdict."),
    ({}, (), "No result changed; exit code 5: the builds have nothing in common."),
])  # fmt: skip
def test_conclusion_where_nothing_changed(options: Record, kept: Sequence[str], words: str) -> None:
    records = [record for record in comparison() if record["t"] != "change" and record.get("verdict", "same") in kept
               or record["t"] in ("header", "env", "footer")]  # fmt: skip
    records[0]["options"] = options
    assert View(records).conclusion == words


def test_quality_of_each_machine() -> None:
    table = to_html(View(fleet())).partition('<table class="fleet">')[2].partition("</table>")[0]
    assert len(re.findall('<b class="grade-[A-D]">', table)) == 3


def test_size_of_a_large_fleet() -> None:
    """Three whole runs, as if of three machines, make a page of 1 MiB: their records have 20."""
    records: List[Record] = []
    for name in ("report", "report_llama", "report_models"):
        frozen = read_json_lines(HERE / "frozen" / f"{name}.jsonl.gz")
        records += [{**record, "env_id": name} if record["t"] == "env" else record for record in frozen]
    assert sum(record["t"] == "check" for record in records) > 57_000
    assert len(to_html(View(records)).encode()) < 1.25 * 1024 * 1024


def test_sections() -> None:
    named = [name for name, _, _ in SECTIONS]
    of_page = {name: [n for n, _, wanted in SECTIONS if wanted(View(made))] for name, made in
               (("run", run()), ("fleet", fleet()), ("comparison", comparison()))}  # fmt: skip
    assert of_page["comparison"] == ["comparison", "environment"]
    assert set(of_page["fleet"]) - set(of_page["run"]) == {"fleet"}
    templates = (Path(page.__file__).parent / "templates" / "sections.j2").read_text()
    assert re.findall(r"macro section_(\w+)", templates) == named


def test_without_d3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "d3_source", lambda: None)
    html = to_html(View(run()))
    assert "typeof d3" in html and len(html) < len(page.d3_source() or "") + 300_000


@pytest.mark.parametrize("records", (run, fleet, comparison))
def test_tables_of_markdown(records: Callable[[], List[Record]]) -> None:
    text = to_page(records())
    widths: List[int] = []
    for line in text.split("\n"):
        if not line.startswith("|"):
            widths = []
            continue
        widths.append(len(re.findall(r"(?<!\\)\|", line)))
        assert widths[-1] == widths[0], line
    assert "\n\n\n" not in text
    markdown = pytest.importorskip("markdown_it", reason="markdown-it, which rich brings, is missing")
    html = markdown.MarkdownIt("commonmark").enable("table").render(text)
    assert html.count("<table>") == len(re.findall(r"^\|[-:|]+\|$", text, re.M)) > 0
    assert not re.search(r"<p>[^<]*\|", html), "a table that is not one"
