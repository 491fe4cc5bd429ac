"""The course (docs/course): code computes the numbers of its commands, lessons have their form, the page has them.

A lesson has a block of NumPy and one of PyTorch, each with a statement such as "`result` equals `posenc table ...`
within 2 ulp.", which the tests check. The page has each word of a lesson, no script, and loads nothing.
"""

import csv
import importlib
import json
import os
import re
import subprocess
import sys
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from posenc.engine import Engine
from posenc.explore.course import Code, Lesson, course, read_lesson, read_lessons

np = pytest.importorskip("numpy", reason="python3-numpy is missing")
COURSE = Path(__file__).resolve().parents[2] / "docs" / "course"
LESSONS = read_lessons(COURSE)
LABELS = re.compile(r"row|pair|axis|position(\[\d+\])?")  # columns that number the rows of a table
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=[lesson.path.stem for lesson in LESSONS])


# ---- code ----


def check_bound(got: Any, want: Any, statement: str) -> None:
    """Compares numbers as f32, within the bound at the end of a statement."""
    bound = re.search(r" (?:(bit for bit)|within (\d+) ulp|within 2\^-(\d+))\.$", statement)
    assert bound, f"'bit for bit.', 'within N ulp.' or 'within 2^-N.' after the command: {statement}"
    if bound[1]:
        assert (got.shape, got.tobytes()) == (want.shape, want.tobytes())
    elif bound[2]:
        np.testing.assert_array_max_ulp(got, want, int(bound[2]))
    else:
        np.testing.assert_allclose(got, want, rtol=0, atol=2.0 ** -int(bound[3]))


@lru_cache(maxsize=None)
def table(command: Tuple[str, ...]) -> Any:
    """Returns the numbers of a table, without the columns that number its rows."""
    header, *rows = csv.reader(Engine().run(*command[1:]).splitlines())
    shown = [at for at, name in enumerate(header) if not LABELS.fullmatch(name)]
    return np.array([float(row[at]) for row in rows for at in shown], np.float32)


def run(code: Code, path: Path) -> Any:
    """Runs a block in a namespace of its own, and returns its `result`."""
    try:
        importlib.import_module(code.library)
    except ImportError:
        pytest.skip(f"{code.library} cannot be imported")
    space: Dict[str, Any] = {"__name__": path.stem}
    line = path.read_text(encoding="utf-8").partition(code.source)[0].count("\n")
    exec(compile("\n" * line + code.source, str(path), "exec"), space)
    result = space["result"]  # of PyTorch it may need a gradient
    return np.asarray(getattr(result, "detach", lambda: result)(), np.float32).reshape(-1)


@each_lesson
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_code_equals_the_table(lesson: Lesson, library: str) -> None:
    (code,) = [code for code in lesson.code if code.library == library]
    lines = [line for line in code.source.splitlines() if line]
    assert 10 <= len(lines) <= 15 and all(len(line) <= 120 for line in lines)
    check_bound(run(code, lesson.path), table(code.command), code.statement)


@pytest.mark.parametrize("old, new", [("10000.0", "10001.0"), ("np.sin", "np.cos"), ("tokens = 4, 6", "tokens = 4, 7")])
def test_code_that_computes_other_numbers_fails(tmp_path: Path, old: str, new: str) -> None:
    text = LESSONS[1].path.read_text(encoding="utf-8")
    copy = tmp_path / "2-sinusoids.md"
    copy.write_text(text.replace(old, new, 1), encoding="utf-8")
    code = read_lesson(copy).code[0]
    with pytest.raises((AssertionError, ValueError)):
        check_bound(run(code, copy), table(code.command), code.statement)


# ---- the form of a lesson ----


@each_lesson
def test_form(lesson: Lesson) -> None:
    text = lesson.path.read_text(encoding="utf-8")
    assert lesson.path.name.startswith(f"{lesson.number}-") and 3 <= len(lesson.sections) <= 5
    assert len(re.findall(r"(?m)^!\[[^]]+\]\(\.\./[\w-]+\.svg\)\n\n\*\*How to read this\.\*\* ", text)) == 1
    assert [question.number for question in lesson.questions] == [1, 2, 3, 4, 5]
    for question in lesson.questions:
        assert "ABCD".startswith("".join(question.options)) and len(set(question.options.values())) in (3, 4)
        assert question.answer in question.options
    assert len({question.answer for question in lesson.questions}) > 1, "a reader would guess the answers"
    assert 3 <= len(lesson.abilities) <= 4
    assert set(lesson.footnotes) == set(re.findall(r"\[\^(\w+)\](?!:)", text))
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert target.startswith("https://") or (lesson.path.parent / target).exists(), target
    before = ""
    for line in text.splitlines():  # GitHub begins a list within a paragraph, and the library markdown does not
        item = re.match(r"(-|1\.) ", line)
        assert not item or not before or re.match(r"(-|\d+\.) |  ", before), line
        before = line


@each_lesson
def test_claims_are_measured(lesson: Lesson) -> None:
    """The cases that footnotes name exist and pass."""
    for label, note in lesson.footnotes.items():
        for case in re.findall(r"`posenc verify --case '([^']+)'`", note):
            assert Engine().run("verify", "--backend", "scalar", "--case", case), f"{lesson.path.name}: {label}"
        for claim in re.findall(r"`docs/claims.py ([a-z0-9-]+)`", note):
            command = [sys.executable, str(COURSE.parent / "claims.py"), claim]
            environment = {**os.environ, "POSENC": str(Engine().program)}
            done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
            assert done.returncode == 0, f"{lesson.path.name}: footnote {label}: {claim}\n{done.stdout}{done.stderr}"


def test_lessons_are_listed_and_lead_to_the_next() -> None:
    listed = re.findall(r"^\d+\. \[([^]]+)\]\(([^)]+)\)", (COURSE / "README.md").read_text(encoding="utf-8"), re.M)
    assert listed == [(lesson.title, lesson.path.name) for lesson in LESSONS]
    assert [lesson.number for lesson in LESSONS] == list(range(1, 9))
    for lesson, following in zip(LESSONS, LESSONS[1:]):
        text = lesson.path.read_text(encoding="utf-8")
        assert f"\nNext: [Lesson {following.number}: {following.title}]({following.path.name})\n" in text


# ---- the page ----

# Tags that may be on the page, with attributes and their values. No others are.
TAGS: Dict[str, Dict[str, str]] = {
    **{tag: {} for tag in "p h4 h5 ul ol li table thead tbody tr code pre em strong sup br".split()},
    "th": {"class": "left|right|center"},
    "td": {"class": "left|right|center"},
    "a": {"href": r"#course&lesson=[1-8](&note=\w+)?", "class": "mark", "aria-label": r"Footnote \w+"},
    "img": {"src": "data:image/svg[+]xml;base64,.+", "alt": ".+"},
}


class Reader(HTMLParser):
    """Collects the text of a part. Fails for tags and attributes that are not in TAGS."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: List[str] = []
        self.text = self.prose = ""  # without footnote marks, and without code
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        assert all(re.fullmatch(TAGS[tag].get(name, "(?!)"), value or "") for name, value in attrs), (tag, attrs)
        self.open += [tag] if tag not in ("img", "br") else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def handle_data(self, data: str) -> None:
        self.text += "" if "sup" in self.open else data
        self.prose += "" if "code" in self.open else data


def words_of(text: str) -> List[str]:
    """Returns the words of a Markdown text that the page shows."""
    links = r"!\[[^]]*\]\([^)]*\)|\]\([^)]*\)|\[\^\w+\](: )?"
    marks = r"</?details>|<summary>.*?</summary>|^\*\*\d\.\*\*|^\d\. |^## |^```(python)?|^- [A-D]\. "
    lines = r"^# Lesson.*|^Next: .*|^This was the last.*"
    return re.findall(r"\w+", re.sub(f"(?m){links}|{marks}|{lines}", " ", text))


@pytest.fixture(scope="session")
def pages() -> Dict[int, Dict[str, Any]]:
    """Returns the lessons of the page by their numbers."""
    pytest.importorskip("markdown", reason="Python's markdown is missing")
    return {page["number"]: page for page in course()}


@each_lesson
def test_page_has_each_word_of_a_lesson(lesson: Lesson, pages: Dict[int, Dict[str, Any]]) -> None:
    page = pages[lesson.number]
    parts = [page["html"], "Questions"]
    for question in page["questions"]:
        assert "<p>" not in "".join([question["text"], *question["options"].values()])
        parts += [question["text"], *question["options"].values(), question["answer"], question["explanation"]]
    parts += ["After this lesson you can", *page["abilities"], *page["notes"].values()]
    shown = [Reader(part) for part in parts]
    got = re.findall(r"\w+", " ".join(re.sub("NumPy$|PyTorch$", "", one.text, flags=re.M) for one in shown))
    assert got == words_of(lesson.path.read_text(encoding="utf-8"))
    assert all(code.source.rstrip("\n") in shown[0].text for code in lesson.code)
    assert [question["hard"] for question in page["questions"]] == [False, False, False, True, True]
    prose = "\n".join(one.prose for one in shown)
    assert not re.search(r"\*\*|`|\[\^|\]\(|^ *[-*] |^#|\|.*\|.*\||&\w+;", prose, re.M), "marks of Markdown are left"
    assert page["html"].count("<img ") == 1 and json.loads(json.dumps(page)) == page
    notes = re.findall(r"lesson=(\d)&amp;note=(\w+)", page["html"])
    assert all(int(number) == lesson.number and label in page["notes"] for number, label in notes)
