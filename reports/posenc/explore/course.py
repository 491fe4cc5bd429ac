"""The lessons of docs/course/N-name.md as plain data with HTML, for the view "course" of posenc explore.

A lesson has a title, a goal, sections, blocks of code with the tables that they equal, questions, abilities and
footnotes. test_course.py shows that each word of a lesson is on the page, and that the page has no script.
"""

import base64
import html
import re
import shlex
from pathlib import Path
from typing import Any, Dict, List, Match, NamedTuple, Optional, Tuple

from ..command import CommandError

HERE = Path(__file__).parent
# Folders that contain course, *.svg and encodings.md: when installed, and in the source tree.
FOLDERS = (HERE, HERE.parents[2] / "docs")

# Headings of sections, and the form of a lesson.
CODE, QUESTIONS, ABILITIES = "The same in code", "Questions", "After this lesson you can"
LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch"}
HEAD = re.compile(r"# Lesson (\d+): (.+)\n\n\*\*Goal\.\*\* ((?:.+\n)+)")
BLOCK = re.compile(r"(?ms)^```python\n(import (\w+).+?)^```\n\n(`result` equals\s+`(posenc\stable [^`]+)`\s.+?\.)\n\n")
QUESTION = re.compile(
    r"(?ms)^\*\*(\d)\.\*\* (.+?)\n\n(- .+?)\n\n<details><summary>Answer</summary>\n\n"
    r"\*\*(\w)\.\*\* (.+?)\n</details>\n"
)
OPTION = re.compile(r"(?ms)^- ([A-D])\. (.+?)(?=\n- |\Z)")
ABILITY = re.compile(r"(?ms)^- (.+?)(?=\n- |\n\n)")
NOTE = re.compile(r"(?ms)^\[\^(\w+)\]: (.+?)(?=^\[\^\w+\]: |\Z)")

# What the page needs of the HTML that the library markdown makes.
MARKS = {"left-single-quote": "‘", "right-single-quote": "’", "left-double-quote": "“", "right-double-quote": "”"}
QUOTES = {"smarty": {"smart_dashes": False, "smart_ellipses": False, "substitutions": MARKS}}
LESSON = re.compile(r"(\d+)-[\w-]+\.md")
MARK = re.compile(r"#course&amp;lesson=\d+&amp;note=\w+")
EMPTY_HEADING = re.compile(r"<th[^>]*></th>")  # a cell that heads nothing
FOOTNOTE = re.compile(r"\[\^(\w+)\]")
LINK = re.compile(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', re.S)
IMAGE = re.compile(r'src="([^"]*)"')
ALIGNED = re.compile(r'<(t[hd]) (?:style="text-align: |align=")(\w+);?">')  # by the version of markdown


def docs_folder() -> Path:
    """Returns the folder with the documents that the page is made of."""
    for folder in FOLDERS:
        if (folder / "course").is_dir():
            return folder
    raise CommandError(f"the lessons are not installed (got neither {FOLDERS[0]}/course nor {FOLDERS[1]}/course).")


def joined(text: str) -> str:
    """Returns a text on one line, with single spaces."""
    return " ".join(text.split())


# ---- lessons as Markdown ----


class Code(NamedTuple):
    """A block of Python, and a statement about the command whose numbers its variable `result` equals."""

    library: str
    source: str
    command: Tuple[str, ...]
    statement: str


class Question(NamedTuple):
    """A multiple-choice question. The first three of a lesson are easy, the others hard."""

    number: int
    text: str
    options: Dict[str, str]
    answer: str
    explanation: str


class Lesson(NamedTuple):
    """A lesson. Its texts are Markdown."""

    path: Path
    number: int
    title: str
    goal: str
    sections: Dict[str, str]  # by their headings, with the text above the code last
    code: List[Code]
    questions: List[Question]
    abilities: List[str]
    footnotes: Dict[str, str]


def read_lesson(path: Path) -> Lesson:
    """Reads one lesson."""
    text = path.read_text(encoding="utf-8")
    begin, *rest = re.split(r"(?m)^## (.+)\n", NOTE.sub("", text))
    sections = {heading: section.strip() for heading, section in zip(rest[::2], rest[1::2])}
    head = HEAD.match(begin)
    if not head or not {CODE, QUESTIONS, ABILITIES} <= set(sections):
        raise ValueError(f"{path}: expected '# Lesson N: Title', '**Goal.** ...', and the sections '{CODE}', "
                         f"'{QUESTIONS}' and '{ABILITIES}'.")  # fmt: skip
    questions, abilities = sections.pop(QUESTIONS) + "\n", sections.pop(ABILITIES)
    blocks = BLOCK.findall(sections[CODE] + "\n\n")
    sections[CODE] = BLOCK.sub("", sections[CODE] + "\n\n").strip()
    return Lesson(
        path, int(head[1]), head[2], joined(head[3]), sections,
        [Code(library, source, tuple(shlex.split(command)), joined(statement))
         for source, library, statement, command in blocks],
        [Question(int(number), words, {letter: joined(option) for letter, option in OPTION.findall(options)}, *answer)
         for number, words, options, *answer in QUESTION.findall(questions)],
        [joined(ability) for ability in ABILITY.findall(abilities)],
        {label: joined(note) for label, note in NOTE.findall(text)},
    )  # fmt: skip


def read_lessons(folder: Path) -> List[Lesson]:
    """Reads all lessons of a folder, in their order."""
    return [read_lesson(path) for path in sorted(folder.glob("[0-9]*-*.md"))]


# ---- lessons as HTML ----


def _page_link(found: Match[str]) -> str:
    """Returns a link to a lesson or to a footnote on the page. Other links become their text."""
    lesson = LESSON.fullmatch(found[1])
    if lesson:
        return f'<a href="#course&amp;lesson={lesson[1]}">{found[2]}</a>'
    return found[0] if MARK.fullmatch(found[1]) else found[2]


def picture_address(path: Path) -> str:
    """Returns an SVG picture as an address that contains it. Its comments and its origin are left out."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>|<!DOCTYPE[^>[]*>|<!--.*?-->|<\?xml [^>]*\?>", "", text, flags=re.S).strip()
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def _blocks(lesson: Lesson, text: str) -> str:
    """Returns paragraphs, lists, tables and code of a lesson."""
    import markdown  # whoever reads the lessons alone needs no such library

    target = f"#course&amp;lesson={lesson.number}&amp;note="
    mark = rf'<sup><a class="mark" href="{target}\1" aria-label="Footnote \1">\1</a></sup>'
    made = markdown.markdown(
        FOOTNOTE.sub(mark, text), extensions=["tables", "smarty"], output_format="html", extension_configs=QUOTES
    )
    made = LINK.sub(_page_link, made)
    made = IMAGE.sub(lambda found: f'src="{picture_address(lesson.path.parent / found[1])}"', made)
    return EMPTY_HEADING.sub("<td></td>", ALIGNED.sub(r'<\1 class="\2">', made))


def _inline(lesson: Lesson, text: str) -> str:
    """Returns a text that is one paragraph, without the tags of a paragraph."""
    return _blocks(lesson, text).removeprefix("<p>").removesuffix("</p>")


def _text(lesson: Lesson) -> str:
    """Returns all that stands above the questions."""
    parts = [_blocks(lesson, f"**Goal.** {lesson.goal}")]
    for heading, text in lesson.sections.items():
        parts += [f"<h4>{_inline(lesson, heading)}</h4>", _blocks(lesson, text)]
    for code in lesson.code:
        source = html.escape(code.source.rstrip("\n"), quote=False)
        parts += [f"<h5>{LIBRARIES[code.library]}</h5>", f"<pre><code>{source}</code></pre>"]
        parts.append(_blocks(lesson, code.statement))
    return "\n".join(parts)


def lesson_data(lesson: Lesson) -> Dict[str, Any]:
    """Returns a lesson for the page."""
    questions = [
        {
            "text": _inline(lesson, one.text), "hard": one.number > 3,
            "options": {letter: _inline(lesson, option) for letter, option in one.options.items()},
            "answer": one.answer, "explanation": _blocks(lesson, one.explanation),
        } for one in lesson.questions
    ]  # fmt: skip
    return {
        "number": lesson.number, "title": lesson.title, "html": _text(lesson), "questions": questions,
        "abilities": [_inline(lesson, ability) for ability in lesson.abilities],
        "notes": {label: _inline(lesson, note) for label, note in lesson.footnotes.items()},
    }  # fmt: skip


def course(folder: Optional[Path] = None) -> List[Dict[str, Any]]:
    """Returns all lessons."""
    return [lesson_data(lesson) for lesson in read_lessons(folder or docs_folder() / "course")]
