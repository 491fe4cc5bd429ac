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

from posenc.explore.course import course
from posenc.explore.lessons import read_lessons

pytestmark = pytest.mark.skipif(importlib.util.find_spec("markdown") is None, reason="Python's markdown is missing")

COURSE = Path(__file__).resolve().parents[2] / "docs" / "course"
LESSONS = read_lessons(COURSE)
MOST = 3 * 1024 * 1024 // 2  # bytes of all pictures
# Tags that may be on the page, with attributes and their values. No others are.
TAGS: Dict[str, Dict[str, str]] = {
    **{tag: {} for tag in "p h4 h5 ul ol li table thead tbody tr code pre em strong sup br".split()},
    "th": {"class": "left|right|center"},
    "td": {"class": "left|right|center"},
    "a": {"href": r"#course&lesson=[1-8](&note=\w+)?", "class": "mark", "aria-label": r"Footnote \w+"},
    "img": {"src": "data:image/svg[+]xml;base64,.+", "alt": ".+"},
}


# In a picture nothing runs, and all that it refers to is in the picture.
FORBIDDEN = re.compile(
    r"""<\s*(script|foreignObject|iframe)|\son\w+\s*=|@import|<!ENTITY|<\?xml-stylesheet|javascript:
    |href\s*=\s*["']?(?!["']?(\#|data:image/png;base64,))|\ssrc\s*=|url\(\s*(?!["']?\#)""",
    re.I | re.X,
)


@pytest.fixture(scope="session")
def pages() -> List[Dict[str, Any]]:
    return course(COURSE)


class Reader(HTMLParser):
    """Collects the tags and the text of a part."""

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

    def handle_comment(self, data: str) -> None:
        self.tags.append((f"!{data}", {}))

    def handle_decl(self, decl: str) -> None:
        self.handle_comment(decl)

    def handle_pi(self, data: str) -> None:
        self.handle_comment(data)

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
    assert marks == sum(len(re.findall(r"\[\^\w+\]", section)) for section in lesson.sections.values())
    got = words("".join(text for text in Reader(re.sub(r"<sup>.*?</sup>", "", page["html"])).text))
    for heading, text in lesson.sections.items():
        assert "|".join(plain(heading) + plain(text)) in "|".join(got), heading
    items = sum(len(re.findall(r"^(?:-|\d+\.) ", text, re.M)) for text in lesson.sections.values())
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


def strange(page: Dict[str, Any]) -> List[str]:
    """Returns the tags and attributes of a lesson that may not be on the page, or have no end."""
    found = []
    for reader in map(Reader, parts(page)):
        found += [tag for tag, _ in reader.tags if tag not in TAGS] + reader.open
        for tag, attributes in reader.tags:
            rules = TAGS.get(tag, {})
            found += [f"{tag} {name}={value}" for name, value in attributes.items()
                      if not re.fullmatch(rules.get(name, "(?!)"), value or "")]  # fmt: skip
    return found


def test_there_is_no_script_and_nothing_is_loaded(pages: List[Dict[str, Any]]) -> None:
    assert not [one for page in pages for one in strange(page)]


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
        assert not FORBIDDEN.search(text)


# ---- changes that the tests above detect ----


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
    "A word's meaning", "Its two channels are exchanged.", "Compute a score", "How well a model works", "You compute",
)  # fmt: skip
BAD = (
    "<script>alert(1)</script>", "<SCRIPT SRC=//x.org/a.js></SCRIPT>", "<b onclick='x()'>a</b>",
    '<em onmouseover="x()">a</em>', '<img src="https://x.org/a.svg" alt="a">',
    '<img src="../attention.svg" alt="a" onload="x()">', '<img src="data:image/svg+xml;base64,PHN2Zy8+" alt="a">',
    "a ![a](https://x.org/a.svg)", "a ![a](//x.org/a.svg)", "a ![a](../../secret.svg)",
    '<iframe src="https://x.org"></iframe>', "<style>p { background: url(https://x.org) }</style>",
    '<p style="background: url(https://x.org)">a</p>', '<td style="text-align: right; background: url(//x.org)">a</td>',
    "<svg><script>x()</script></svg>", "<link rel=stylesheet href=https://x.org>",
    "<meta http-equiv=refresh content='0;url=https://x.org'>", "a <!-- a comment --> b", "<math><mi>a</mi></math>",
    "<h4>a", "a</strong>", "<?php a ?>",
)  # fmt: skip


@pytest.mark.parametrize("bad, place", [*((bad, PLACES[0]) for bad in BAD), *((BAD[0], place) for place in PLACES[1:])])
def test_what_may_not_be_in_a_lesson_is_noticed(tmp_path: Path, bad: str, place: str) -> None:
    folder = with_change(tmp_path, place, f"{bad} {place}")
    with pytest.raises((AssertionError, OSError, ValueError)):  # an end without a beginning, no picture, no paragraph
        assert not strange(course(folder)[0])


@pytest.mark.parametrize("target", ["../encodings.md", "https://x.org", "javascript:alert(1)", "README.md", "#top",
                                    "data:text/html,x", "//x.org", "#course&lesson=1&note=1;x"])  # fmt: skip
def test_other_links_become_plain_text(tmp_path: Path, target: str) -> None:
    page = course(with_change(tmp_path, PLACES[0], f"[a link]({target}). {PLACES[0]}"))[0]["html"]
    assert "<p>a link. A word’s meaning" in page and target not in page


# ---- missing parts ----


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
