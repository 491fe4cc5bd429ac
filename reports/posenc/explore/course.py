"""The course as plain data with HTML, for the view "course" of posenc explore.

The lessons are files of this repository. test_course_page.py shows that the page made of them contains no script and
loads nothing.
"""

import base64
import html
import math
import re
import shlex
from pathlib import Path
from typing import Any, Dict, List, Match, Optional

import markdown

from .lessons import CODE, Code, Lesson, Question, docs_folder, read_lessons

LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch"}

MARKS = {"left-single-quote": "‘", "right-single-quote": "’", "left-double-quote": "“", "right-double-quote": "”"}
QUOTES = {"smarty": {"smart_dashes": False, "smart_ellipses": False, "substitutions": MARKS}}
LESSON = re.compile(r"(\d+)-[\w-]+\.md")
MARK = re.compile(r"#course&amp;lesson=\d+&amp;note=\w+")
EMPTY_HEADING = re.compile(r"<th[^>]*></th>")  # a cell that heads nothing
FOOTNOTE = re.compile(r"\[\^(\w+)\]")
LINK = re.compile(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', re.S)
IMAGE = re.compile(r'src="([^"]*)"')
ALIGNED = re.compile(r'<(t[hd]) (?:style="text-align: |align=")(\w+);?">')  # by the version of markdown


def _link(found: Match[str]) -> str:
    """Returns a link to a lesson or to a footnote on the page. Other links become their text."""
    lesson = LESSON.fullmatch(found[1])
    if lesson:
        return f'<a href="#course&amp;lesson={lesson[1]}">{found[2]}</a>'
    return found[0] if MARK.fullmatch(found[1]) else found[2]


def picture(path: Path) -> str:
    """Returns an SVG picture as an address that contains it. Its comments and its origin are left out."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>|<!DOCTYPE[^>[]*>|<!--.*?-->|<\?xml [^>]*\?>", "", text, flags=re.S).strip()
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


class _Writer:
    """Writes the Markdown of a lesson as HTML."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson

    def blocks(self, text: str) -> str:
        """Returns paragraphs, lists, tables and code."""
        number = self.lesson.number
        target = f"#course&amp;lesson={number}&amp;note="
        mark = rf'<sup><a class="mark" href="{target}\1" aria-label="Footnote \1">\1</a></sup>'
        made = markdown.markdown(
            FOOTNOTE.sub(mark, text), extensions=["tables", "smarty"], output_format="html", extension_configs=QUOTES
        )
        made = IMAGE.sub(lambda found: f'src="{picture(self.lesson.path.parent / found[1])}"', LINK.sub(_link, made))
        return EMPTY_HEADING.sub("<td></td>", ALIGNED.sub(r'<\1 class="\2">', made))

    def inline(self, text: str) -> str:
        """Returns a text that is one paragraph, without the tags of a paragraph."""
        found = re.fullmatch(r"<p>((?:(?!<p>).)*)</p>", self.blocks(text), re.S)
        if not found:
            raise ValueError(f"{self.lesson.path}: expected one paragraph (got '{text}').")
        return found[1]

    def code(self, code: Code) -> str:
        source = html.escape(code.source.rstrip("\n"), quote=False)
        unit = f"2^{int(math.log2(code.bound))}" if code.absolute and code.bound else f"{code.bound:g} ulp"
        close = f"within {unit}" if code.bound else "bit for bit"
        statement = self.blocks(f"`result` equals `{shlex.join(code.command)}` {close}.")
        block = f"<h5>{LIBRARIES[code.library]}</h5>\n<pre><code>{source}</code></pre>"
        return f"{block}\n{statement}"

    def text(self) -> str:
        """Returns all that stands above the questions."""
        parts = [self.blocks(f"**Goal.** {self.lesson.goal}")]
        for heading, text in self.lesson.sections.items():
            parts += [f"<h4>{self.inline(heading)}</h4>", self.blocks(text)]
        parts += [f"<h4>{CODE}</h4>", self.blocks(self.lesson.before_code), *map(self.code, self.lesson.code)]
        return "\n".join(parts)

    def question(self, question: Question) -> Dict[str, Any]:
        return {
            "text": self.inline(question.text),
            "hard": question.number > 3,
            "options": {letter: self.inline(option) for letter, option in question.options.items()},
            "answer": question.answer,
            "explanation": self.blocks(question.explanation),
        }


def lesson_data(lesson: Lesson) -> Dict[str, Any]:
    """Returns a lesson for the page."""
    write = _Writer(lesson)
    return {
        "number": lesson.number,
        "title": lesson.title,
        "html": write.text(),
        "questions": [write.question(question) for question in lesson.questions],
        "abilities": [write.inline(ability) for ability in lesson.abilities],
        "notes": {label: write.inline(note) for label, note in lesson.footnotes.items()},
    }


def course(folder: Optional[Path] = None) -> List[Dict[str, Any]]:
    """Returns all lessons."""
    return [lesson_data(lesson) for lesson in read_lessons(folder or docs_folder() / "course")]
