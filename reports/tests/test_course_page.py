"""The lessons on the page of posenc explore: complete, right, without scripts, and nothing is loaded from elsewhere."""

import base64
import importlib
import importlib.util
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest

from posenc.explore.course import FORBIDDEN, checked, course, picture
from posenc.explore.lessons import read_lessons

pytestmark = pytest.mark.skipif(importlib.util.find_spec("markdown") is None, reason="Python's markdown is missing")

COURSE = Path(__file__).resolve().parents[2] / "docs" / "course"
LESSONS = read_lessons(COURSE)
MOST = 3 * 1024 * 1024 // 2  # bytes of all pictures
ADDRESSES = ("href", "src", "xlink:href", "action", "data", "poster", "srcset", "background", "formaction")


@pytest.fixture(scope="session")
def pages() -> List[Dict[str, Any]]:
    return course(COURSE)


class Reader(HTMLParser):
    """Collects the tags and the text of a part. It shares nothing with the checker."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: List[Tuple[str, Dict[str, Optional[str]]]] = []
        self.open: List[str] = []
        self.text: List[str] = []
        self.prose: List[str] = []  # what is not code
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: List[Tuple[str, Optional[str]]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if "code" not in self.open:
            self.prose.append(data)


def parts(page: Dict[str, Any]) -> Iterator[str]:
    """Yields each part of a lesson that is HTML."""
    yield page["html"]
    yield from page["abilities"]
    yield from page["notes"].values()
    for question in page["questions"]:
        yield from (question["text"], question["explanation"], *question["options"].values())


def readers(pages: List[Dict[str, Any]]) -> Iterator[Reader]:
    for page in pages:
        yield from map(Reader, parts(page))


def words(text: str) -> List[str]:
    return re.findall(r"\w+", text)


# ---- complete ----


def test_each_lesson_is_there(pages: List[Dict[str, Any]]) -> None:
    assert [page["number"] for page in pages] == list(range(1, 9))
    assert [page["title"] for page in pages] == [lesson.title for lesson in LESSONS]
    assert json.loads(json.dumps(pages)) == pages


def plain(markdown: str) -> List[str]:
    """Returns the words of a Markdown text, without marks of footnotes, targets of links, and numbers of lists."""
    return words(re.sub(r"!\[[^]]*\]\([^)]*\)|\[\^\w+\]|\]\([^)]*\)|^\d\. ", " ", markdown, flags=re.M))


@pytest.mark.parametrize("at", range(8))
def test_each_word_of_a_lesson_is_there(pages: List[Dict[str, Any]], at: int) -> None:
    page, lesson = pages[at], LESSONS[at]
    reader = Reader(page["html"])
    marks = sum(one["class"] == "mark" for tag, one in reader.tags if tag == "a" and "class" in one)
    assert marks == sum(len(re.findall(r"\[\^\w+\]", section.text)) for section in lesson.sections)
    got = words("".join(text for text in Reader(re.sub(r"<sup>.*?</sup>", "", page["html"])).text))
    for section in lesson.sections:
        want = plain(section.heading) + plain(section.text)
        assert "|".join(want) in "|".join(got), section.heading
    items = sum(len(re.findall(r"^(?:-|\d+\.) ", section.text, re.M)) for section in lesson.sections)
    assert [tag for tag, _ in reader.tags].count("li") == items
    assert "|".join(plain(lesson.goal)) in "|".join(got)
    for code in lesson.code:
        assert code.source.rstrip("\n") in "".join(reader.text)
        assert "|".join(words(" ".join(code.command))) in "|".join(got)
    assert list(page["notes"]) == list(lesson.footnotes)
    assert [plain(ability) for ability in lesson.abilities] == [
        words("".join(Reader(one).text)) for one in page["abilities"]
    ]


@pytest.mark.parametrize("at", range(8))
def test_no_line_of_a_paragraph_begins_as_a_list(at: int) -> None:
    """GitHub begins a list there, and the library markdown does not."""
    before = ""
    for number, line in enumerate(LESSONS[at].path.read_text(encoding="utf-8").splitlines(), 1):
        item = re.match(r"(-|1\.) ", line)
        inside = before and not re.match(r"(-|\d+\.) |  ", before)
        assert not (item and inside), f"{LESSONS[at].path.name}:{number}: '{line}'"
        before = line


@pytest.mark.parametrize("at", range(8))
def test_each_question_has_its_answer(pages: List[Dict[str, Any]], at: int) -> None:
    questions = pages[at]["questions"]
    assert [one["answer"] for one in questions] == [one.answer for one in LESSONS[at].questions]
    assert [one["hard"] for one in questions] == [False, False, False, True, True]
    for made, question in zip(questions, LESSONS[at].questions):
        assert made["answer"] in made["options"] and list(made["options"]) == list(question.options)
        assert words("".join(Reader(made["explanation"]).text)) == plain(question.explanation)
        assert words("".join(Reader(made["text"]).text)) == plain(question.text)
        for letter, option in made["options"].items():
            assert words("".join(Reader(option).text)) == plain(question.options[letter])
            assert "<p>" not in option and "<p>" not in made["text"]


def test_bounds_of_code_are_stated_as_in_the_lessons(pages: List[Dict[str, Any]]) -> None:
    for page, lesson in zip(pages, LESSONS):
        text = lesson.path.read_text(encoding="utf-8")
        want = [" ".join(one.split()) for one in re.findall(r"^`result` equals `[^`]+`([^.]+)\.$", text, re.M)]
        got = re.findall(r"<code>result</code> equals <code>[^<]+</code> ([^.]+)\.</p>", page["html"])
        assert len(want) == 2 and got == want


def test_no_marks_of_markdown_are_left(pages: List[Dict[str, Any]]) -> None:
    for reader in readers(pages):
        prose = "".join(reader.prose)
        assert not re.search(r"\*\*|`|\[\^|\]\(|^ *[-*] |^#|\|.*\|.*\||&\w+;", prose, re.M), prose
        assert reader.open == []


# ---- self-contained and without scripts ----


def test_there_is_no_script_and_nothing_is_loaded(pages: List[Dict[str, Any]]) -> None:
    for reader in readers(pages):
        for tag, attributes in reader.tags:
            assert tag not in ("script", "style", "iframe", "object", "embed", "link", "meta", "base", "form", "svg")
            assert not [name for name in attributes if name.startswith("on") or name in ("style", "id", "srcset")]
            for name in ADDRESSES:
                target = attributes.get(name) or "#course&lesson=1"
                if tag == "img":
                    assert target.startswith("data:image/svg+xml;base64,") and attributes["alt"] or name != "src"
                else:
                    assert re.fullmatch(r"#course&lesson=[1-8](&note=\w+)?", target), target


def test_links_lead_to_lessons_and_notes(pages: List[Dict[str, Any]]) -> None:
    for page in pages:
        for reader in map(Reader, parts(page)):
            for target in [one["href"] or "" for tag, one in reader.tags if tag == "a"]:
                number, _, note = target.rpartition("lesson=")[2].partition("&note=")
                assert not note or (int(number) == page["number"] and note in page["notes"])


def pictures(pages: List[Dict[str, Any]]) -> List[str]:
    found = [one["src"] or "" for reader in readers(pages) for tag, one in reader.tags if tag == "img"]
    return [base64.b64decode(one.partition(",")[2]).decode() for one in found]


def test_pictures_are_small_and_refer_to_nothing_outside(pages: List[Dict[str, Any]]) -> None:
    found = pictures(pages)
    assert len(found) == 8
    assert sum(map(len, found)) * 4 / 3 < MOST
    for text in found:
        assert text.startswith("<svg ") and text.endswith("</svg>")
        assert set(re.findall(r"https?://[^\"' ]+", text)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }
        for target in re.findall(r"""(?:href|src)\s*=\s*["']([^"']*)|url\(([^)]*)\)""", text):
            assert re.match(r"#|data:image/png;base64,|$", "".join(target).strip())
        assert not re.search(r"<script|\son[a-z]+=|@import", text, re.I)


# ---- what is rejected ----


def with_change(folder: Path, old: str, new: str) -> Path:
    """Returns a copy of the course in which a text of lesson 1 is another one."""
    shutil.copytree(COURSE, folder / "course")
    for path in COURSE.parent.glob("*.svg"):
        shutil.copy(path, folder)
    path = folder / "course" / "1-order.md"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder / "course"


PLACES = (
    "A word's meaning",
    "Its two channels are exchanged.",
    "Compute a score",
    "How well a model works",
    "You compute",
)
BAD = (
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//x.org/a.js></SCRIPT>",
    "<b onclick='x()'>a</b>",
    '<em onmouseover="x()">a</em>',
    '<a href="#course&lesson=1" onclick="x()">a</a>',
    '<img src="https://x.org/a.svg" alt="a">',
    '<img src="../attention.svg" alt="a" onload="x()">',
    '<img src="data:image/svg+xml;base64,PHN2Zy8+" alt="a">',
    "a ![a](https://x.org/a.svg)",
    "a ![a](//x.org/a.svg)",
    "a ![a](../../secret.svg)",
    '<iframe src="https://x.org"></iframe>',
    "<style>p { background: url(https://x.org) }</style>",
    '<p style="background: url(https://x.org)">a</p>',
    '<td style="text-align: right; background: url(//x.org)">a</td>',
    "<svg><script>x()</script></svg>",
    "<link rel=stylesheet href=https://x.org>",
    "<meta http-equiv=refresh content='0;url=https://x.org'>",
    "a <!-- a comment --> b",
    "<math><mi>a</mi></math>",
    "<h4>a",
    "a</strong>",
    "<?php a ?>",
)


@pytest.mark.parametrize("bad", BAD)
def test_what_may_not_be_in_a_lesson_is_rejected(tmp_path: Path, bad: str) -> None:
    with pytest.raises(ValueError, match=r"1-order\.md: (this may not be in a lesson|expected one paragraph)"):
        course(with_change(tmp_path, PLACES[0], f"{bad} {PLACES[0]}"))


@pytest.mark.parametrize("place", PLACES)
def test_each_part_is_checked(tmp_path: Path, place: str) -> None:
    with pytest.raises(ValueError, match="this may not be in a lesson: <script>"):
        course(with_change(tmp_path, place, f"{place} <script>alert(1)</script>"))


@pytest.mark.parametrize("target", ["../encodings.md", "https://x.org", "javascript:alert(1)", "README.md", "#top",
                                    "data:text/html,x", "//x.org", "#course&lesson=1&note=1;x"])  # fmt: skip
def test_other_links_become_plain_text(tmp_path: Path, target: str) -> None:
    page = course(with_change(tmp_path, PLACES[0], f"[a link]({target}). {PLACES[0]}"))[0]["html"]
    assert "<p>a link. A word’s meaning" in page and target not in page


def test_text_that_looks_like_tags_stays_text() -> None:
    path = Path("1-a.md")
    assert checked("<p>a &lt;script&gt; b &amp; c</p>", path) == "<p>a &lt;script&gt; b &amp; c</p>"
    assert checked("<code>x &lt; y</code><br>", path) == "<code>x &lt; y</code><br>"
    assert checked('<a href="2-b.md">a</a>', path) == '<a href="#course&amp;lesson=2">a</a>'
    for aligned in ('style="text-align: right;"', 'align="right"'):  # by the version of markdown
        assert checked(f"<td {aligned}>1</td>", path) == '<td class="right">1</td>'
    with pytest.raises(ValueError, match="<p> without an end"):
        checked("<p>", path)


@pytest.mark.parametrize(
    "bad",
    [
        "<script>alert(1)</script>",
        '<rect onload="x()"/>',
        "<rect\nonclick = 'x()'/>",
        '<image href="https://x.org/a.png"/>',
        '<image xlink:href="//x.org/a.png"/>',
        "<image href='a.png'/>",
        "<image href=a.png/>",
        '<image href="data:image/svg+xml;base64,AAAA"/>',
        "<style>@import 'a.css'</style>",
        '<rect style="fill: url(https://x.org/#a)"/>',
        "<rect style=\"fill: url( 'a.svg#a')\"/>",
        '<a href="javascript:x()"/>',
        "<foreignObject/>",
        '<?xml-stylesheet href="#a"?>',
    ],
)
def test_what_may_not_be_in_a_picture_is_rejected(tmp_path: Path, bad: str) -> None:
    path, good = tmp_path / "a.svg", '<use href="#a"/><image xlink:href="data:image/png;base64,AAAA"/>'
    path.write_text(f'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg">{good}</svg>', encoding="utf-8")
    assert base64.b64decode(picture(path).partition(",")[2]).startswith(b"<svg xmlns")
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{good}{bad}</svg>', encoding="utf-8")
    with pytest.raises(ValueError, match="a.svg: this may not be in a picture"):
        picture(path)


def test_references_inside_a_picture_are_allowed() -> None:
    for good in (
        'fill="url(#a)"',
        "fill: url('#a')",
        'href="#a"',
        "one on = two",
        'xlink:href="data:image/png;base64,',
    ):
        assert not FORBIDDEN.search(good), good


# ---- what is missing ----


def test_lost_parts_are_noticed(tmp_path: Path) -> None:
    """A lesson that lost an answer, or a footnote, is no lesson."""
    folder = with_change(tmp_path, "**C.** Its average", "Its average")
    with pytest.raises(ValueError, match="the answer"):
        course(folder)
    shutil.rmtree(folder)
    with pytest.raises(ValueError, match="expected lessons"):
        course(folder)


def test_folder_of_the_source_tree_is_found(pages: List[Dict[str, Any]]) -> None:
    assert course() == pages
