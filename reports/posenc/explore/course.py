"""The course as plain data with HTML, for the view "course" of posenc explore.

The lessons are files of this repository. Still, each tag and attribute of their HTML is checked against a list, so that
the page contains no script and loads nothing. ValueError names the lesson and the first thing that is not in the list.
"""

import base64
import html
import math
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import markdown

from .lessons import CODE, Code, Lesson, Question, documents, read_lessons

LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch"}

# Tags that may be on the page, each with its attributes and their values. All other tags and attributes are rejected.
PLAIN = "p h4 h5 ul ol li table thead tbody tr code pre em strong sup br"
ALIGNED = {"style": r"text-align: (left|right|center);", "align": "left|right|center"}  # by the version of markdown
TAGS: Dict[str, Dict[str, str]] = {
    **{tag: {} for tag in PLAIN.split()},
    "th": ALIGNED,
    "td": ALIGNED,
    "a": {"href": ".*", "class": "mark", "aria-label": r"Footnote \w+"},
    "img": {"src": r"\.\./[\w-]+\.svg", "alt": ".+"},
}
LEAVES = ("br", "img")
QUOTES = {"smarty": {"smart_dashes": False, "smart_ellipses": False}}
LESSON = re.compile(r"(\d+)-[\w-]+\.md")
MARK = re.compile(r"#course&lesson=\d+&note=\w+")
EMPTY_HEADING = re.compile(r"<th[^>]*></th>")  # a cell that heads nothing
FOOTNOTE = re.compile(r"\[\^(\w+)\]")
# In a picture nothing runs, and all that it refers to is in the picture.
FORBIDDEN = re.compile(
    r"""<\s*(script|foreignObject|iframe)|\son\w+\s*=|@import|<!ENTITY|<\?xml-stylesheet|javascript:
    |href\s*=\s*["']?(?!["']?(\#|data:image/png;base64,))|\ssrc\s*=|url\(\s*(?!["']?\#)""",
    re.I | re.X,
)


class _Checked(HTMLParser):
    """Reads the HTML of a lesson, and writes it anew from tags and attributes that are allowed."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.path = path
        self.made: List[str] = []
        self.open: List[Tuple[str, bool]] = []  # tags, and whether they are on the page

    def rejection(self, got: str) -> ValueError:
        return ValueError(f"{self.path}: this may not be in a lesson: {got}")

    def handle_starttag(self, tag: str, attributes: List[Tuple[str, Optional[str]]]) -> None:
        whole = self.get_starttag_text() or tag
        for name, value in attributes:
            if tag not in TAGS or name not in TAGS[tag] or not re.fullmatch(TAGS[tag][name], value or ""):
                raise self.rejection(whole)
        if tag not in TAGS:
            raise self.rejection(whole)
        values = {name: value or "" for name, value in attributes}
        shown = tag != "a" or self.link(values)
        if tag == "img":
            values["src"] = picture(self.path.parent / values.get("src", ""))
        if tag in ("th", "td") and values:
            values = {"class": " ".join(values.values()).rstrip(";").rpartition(" ")[2]}
        if shown:
            words = "".join(f' {name}="{html.escape(value)}"' for name, value in values.items())
            self.made.append(f"<{tag}{words}>")
        if tag not in LEAVES:
            self.open.append((tag, shown))

    def link(self, values: Dict[str, str]) -> bool:
        """Leads to a lesson or a footnote on the page. Returns false for all others, whose text stays."""
        target = values.get("href", "")
        found = LESSON.fullmatch(target)
        if found:
            values["href"] = f"#course&lesson={found[1]}"
        return bool(found or MARK.fullmatch(target))

    def handle_endtag(self, tag: str) -> None:
        if tag in LEAVES:
            return
        if not self.open or self.open[-1][0] != tag:
            raise self.rejection(f"</{tag}>, where {self.open[-1][0] if self.open else 'nothing'} is open")
        if self.open.pop()[1]:
            self.made.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.made.append(html.escape(data, quote=False))

    def handle_comment(self, data: str) -> None:
        raise self.rejection(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        raise self.rejection(f"<!{decl}>")

    def unknown_decl(self, data: str) -> None:
        raise self.rejection(f"<![{data}]>")

    def handle_pi(self, data: str) -> None:
        raise self.rejection(f"<?{data}>")


def checked(text: str, path: Path) -> str:
    """Returns HTML with what is allowed on the page, rewritten for it."""
    parser = _Checked(path)
    parser.feed(text)
    parser.close()
    if parser.open:
        raise parser.rejection(f"<{parser.open[-1][0]}> without an end")
    return "".join(parser.made)


def picture(path: Path) -> str:
    """Returns an SVG picture as an address that contains it. Its comments and its origin are left out."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>|<!DOCTYPE[^>[]*>|<!--.*?-->|<\?xml [^>]*\?>", "", text, flags=re.S).strip()
    found = FORBIDDEN.search(text)
    if found or not text.startswith("<svg "):
        raise ValueError(f"{path}: this may not be in a picture: {found[0] if found else text[:40]}")
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
        return EMPTY_HEADING.sub("<td></td>", checked(made, self.lesson.path))

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
        return f"{checked(block, self.lesson.path)}\n{statement}"

    def before_code(self) -> str:
        """Returns the text between the heading of the code and its first block."""
        text = self.lesson.path.read_text(encoding="utf-8")
        found = re.search(rf"^## {CODE}\n(.*?)^```", text, re.M | re.S)
        return self.blocks(found[1]) if found else ""

    def text(self) -> str:
        """Returns all that stands above the questions."""
        parts = [self.blocks(f"**Goal.** {self.lesson.goal}")]
        for section in self.lesson.sections:
            parts += [f"<h4>{self.inline(section.heading)}</h4>", self.blocks(section.text)]
        parts += [f"<h4>{CODE}</h4>", self.before_code(), *map(self.code, self.lesson.code)]
        return "\n".join(parts)

    def question(self, question: Question) -> Dict[str, Any]:
        return {
            "text": self.inline(question.text),
            "hard": question.hard,
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
    return [lesson_data(lesson) for lesson in read_lessons(folder or documents() / "course")]
