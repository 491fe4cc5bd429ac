"""Reads the lessons of the course, docs/course/N-name.md. A lesson has these parts, in this order:

    # Lesson N: Title
    **Goal.** ...
    ## HEADING                2 to 4 sections; one of them has a picture, followed by "**How to read this.**"
    ## The same in code       a block of NumPy and one of PyTorch, each followed by the table that it equals
    ## Questions              five, each with 3 or 4 options and an explained answer
    ## What you can do now    3 or 4 items; the last line links to the next lesson
    [^1]: ...                 footnotes, if there are any

A lesson in any other form raises ValueError, which names the file, the line and the text that is expected there.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Match, Optional, Tuple

from ..command import CommandError

HERE = Path(__file__).parent
FOLDERS = (HERE, HERE.parents[2] / "docs")  # with course, *.svg and encodings.md: installed, and in the source tree

CODE, QUESTIONS, ABILITIES = "The same in code", "Questions", "What you can do now"
LIBRARIES = {"import numpy as np": "numpy", "import torch": "torch"}
READING = "**How to read this.**"
DETAILS = "<details><summary>Answer</summary>"
FOOTNOTE = re.compile(r"\[\^(\w+)\]: (.+)")
PICTURE = re.compile(r"!\[([^]]+)\]\((\.\./[\w-]+\.svg)\)")
STATEMENT = re.compile(
    r"`result` equals `(posenc table [^`]+)` (?:(bit for bit)|within (\d+) (ulp)|within 2\^-(\d+))\."
)
FORM_OF_STATEMENT = "`result` equals `posenc table ...` bit for bit. (or: within N ulp. or: within 2^-N.)"


def documents() -> Path:
    """Returns the folder with the documents that the page is made of."""
    for folder in FOLDERS:
        if (folder / "course").is_dir():
            return folder
    raise CommandError(f"the lessons are not installed (got neither {FOLDERS[0]}/course nor {FOLDERS[1]}/course).")


@dataclass(frozen=True)
class Section:
    """A heading and the Markdown below it."""

    heading: str
    text: str
    line: int


@dataclass(frozen=True)
class Picture:
    """A picture: its alternative text, its path relative to the lesson, and how to read it."""

    alt: str
    path: str
    reading: str


@dataclass(frozen=True)
class Code:
    """A block of Python, and the command whose numbers its variable `result` equals.

    The bound is 0 for equal bits; else it counts ulp of float32, or is absolute.
    """

    library: str
    source: str
    line: int
    command: Tuple[str, ...]
    bound: float
    absolute: bool


@dataclass(frozen=True)
class Question:
    """A multiple-choice question. The first three of a lesson are easy, the others hard."""

    number: int
    text: str
    options: Dict[str, str]
    answer: str
    explanation: str
    line: int

    @property
    def hard(self) -> bool:
        return self.number > 3


@dataclass(frozen=True)
class Lesson:
    """A lesson. Its texts are Markdown; `following` is the target of the link to the next lesson."""

    path: Path
    number: int
    title: str
    goal: str
    sections: List[Section]
    picture: Picture
    code: List[Code]
    questions: List[Question]
    abilities: List[str]
    following: str
    footnotes: Dict[str, str]


class _Lines:
    """The lines of a part of a file, which are read from the first to the last. Errors name the line that is next."""

    def __init__(self, path: Path, lines: List[str], first: int) -> None:
        self.path, self.lines, self.first, self.at = path, lines, first, 0

    @property
    def number(self) -> int:
        return self.first + self.at

    def error(self, expected: str) -> ValueError:
        line = self.peek()
        got = "the end of this part" if line is None else f"'{line}'" if line else "an empty line"
        return ValueError(f"{self.path}:{self.number}: expected {expected} (got {got}).")

    def peek(self) -> Optional[str]:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def skip_empty(self) -> None:
        while self.peek() == "":
            self.at += 1

    def expect(self, pattern: str, expected: str) -> "Match[str]":
        """Reads the next line that is not empty, which must match."""
        self.skip_empty()
        found = re.fullmatch(pattern, self.peek() or "")
        if not found:
            raise self.error(expected)
        self.at += 1
        return found

    def until(self, pattern: str) -> List[str]:
        """Reads the lines before the next one that matches, or before the end of the part."""
        start = self.at
        while (line := self.peek()) is not None and not re.match(pattern, line):
            self.at += 1
        return self.lines[start : self.at]

    def paragraph(self) -> str:
        """Reads the next paragraph, as one line."""
        self.skip_empty()
        return " ".join(line.strip() for line in self.until("$"))

    def rest(self) -> List[str]:
        return self.until("(?!)")


def _split(path: Path) -> Tuple[_Lines, List[Tuple[str, _Lines]], _Lines]:
    """Cuts a lesson into what is above its first section, the sections by heading, and the footnotes."""
    lines = path.read_text(encoding="utf-8").splitlines()
    starts, fenced, end = [], False, len(lines)
    for at, line in enumerate(lines):
        fenced ^= line.startswith("```")
        if not fenced and line.startswith("## "):
            starts.append(at)
        if not fenced and FOOTNOTE.match(line):
            end = min(end, at)
    if fenced:
        raise ValueError(f"{path}:{len(lines)}: expected ``` at the end of a block (got the end of the file).")
    if not starts or end < starts[-1]:
        raise ValueError(f"{path}:{end}: expected a section '## {ABILITIES}', and footnotes after it.")
    parts = [
        (lines[start][3:], _Lines(path, lines[start + 1 : stop], start + 2))
        for start, stop in zip(starts, starts[1:] + [end])
    ]
    return _Lines(path, lines[: starts[0]], 1), parts, _Lines(path, lines[end:], end + 1)


def _picture(lines: _Lines) -> Optional[Picture]:
    lines.until(r"!\[")
    if lines.peek() is None:
        return None
    found = lines.expect(PICTURE.pattern, "a picture, ![what it shows](../NAME.svg), alone in its line")
    lines.skip_empty()
    if not (lines.peek() or "").startswith(READING + " "):
        raise lines.error(f"'{READING}' after the picture")
    return Picture(found[1], found[2], lines.paragraph()[len(READING) + 1 :])


def _section(heading: str, lines: _Lines) -> Section:
    return Section(heading, "\n".join(lines.lines).strip(), lines.first - 1)


def _only_picture(parts: List[Tuple[str, _Lines]]) -> Picture:
    found: List[Picture] = []
    for _, lines in parts:
        while picture := _picture(lines):
            found.append(picture)
            if len(found) > 1:
                raise lines.error("one picture in a lesson, not a second one")
    if not found:
        raise parts[-1][1].error("a picture in one of the sections above")
    return found[0]


def _code(lines: _Lines) -> List[Code]:
    blocks = []
    for first, library in LIBRARIES.items():
        lines.until("```")
        lines.expect("```python", "```python")
        line = lines.number
        if lines.peek() != first:
            raise lines.error(f"'{first}', the first line of the block")
        source = "\n".join(lines.until("```")) + "\n"
        lines.expect("```", "```")
        lines.skip_empty()
        start = lines.at
        found = STATEMENT.fullmatch(lines.paragraph())
        if not found:
            lines.at = start
            raise lines.error(FORM_OF_STATEMENT)
        bound = 0.0 if found[2] else float(found[3]) if found[3] else 2.0 ** -int(found[5])
        command = tuple(shlex.split(found[1]))
        blocks.append(Code(library, source, line, command, bound, absolute=found[5] is not None))
    lines.until("```")
    if lines.peek() is not None:
        raise lines.error("two blocks of code, not a third one")
    return blocks


def _options(lines: _Lines) -> Dict[str, str]:
    options: Dict[str, str] = {}
    for letter in "ABCD":
        if letter in "ABC" or (lines.peek() or "").startswith("- "):
            option = lines.expect(rf"- {letter}\. (.+)", f"'- {letter}. ' and an option")[1]
            options[letter] = " ".join([option] + [line.strip() for line in lines.until(r"- |$")])
    return options


def _question(number: int, lines: _Lines) -> Question:
    start = lines.expect(rf"\*\*{number}\.\*\* (.+)", f"'**{number}.**' and the text of the question")
    line = lines.number - 1
    text = "\n".join([start[1]] + lines.until("- ")).strip()
    options = _options(lines)
    lines.expect(re.escape(DETAILS), f"'{DETAILS}' after 3 or 4 options")
    right = lines.expect(r"\*\*(\w)\.\*\* (.+)", "the answer, '**X.**' and why it is right")
    if right[1] not in options:
        lines.at -= 1
        raise lines.error(f"one of the options {', '.join(options)} as the answer")
    explanation = "\n".join([right[2]] + lines.until(r"</details>|\*\*\d+\.\*\* ")).strip()
    lines.expect("</details>", "'</details>' after the answer")
    return Question(number, text, options, right[1], explanation, line)


def _questions(lines: _Lines) -> List[Question]:
    questions = [_question(number, lines) for number in range(1, 6)]
    lines.skip_empty()
    if lines.peek() is not None:
        raise lines.error("five questions and nothing after them")
    return questions


def _abilities(lines: _Lines) -> Tuple[List[str], str]:
    items = []
    lines.skip_empty()
    while (lines.peek() or "").startswith("- "):
        first = lines.expect("- (.+)", "an item")[1]
        items.append(" ".join([first] + [line.strip() for line in lines.until(r"- |$")]))
        lines.skip_empty()
    if not 3 <= len(items) <= 4:
        raise lines.error(f"3 or 4 items that begin with '- ' (there are {len(items)})")
    lines.at = max(at for at, line in enumerate(lines.lines) if line)
    link = re.search(r"\]\(([^)]+\.md)\)", lines.lines[lines.at])
    if not link:
        raise lines.error("a link to the next lesson in the last line")
    return items, link[1]


def _footnotes(path: Path, lines: _Lines) -> Dict[str, str]:
    notes: Dict[str, str] = {}
    lines.skip_empty()
    while lines.peek() is not None:
        found = lines.expect(FOOTNOTE.pattern, "a footnote, '[^1]: ...'")
        more = [line.strip() for line in lines.until(r"\[\^\w+\]:|$")]
        notes[found[1]] = " ".join([found[2]] + more)
        lines.skip_empty()
    marks = re.compile(r"\[\^(\w+)\](?!:)")
    used = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for label in marks.findall(line):
            if label not in notes:
                raise ValueError(f"{path}:{number}: expected a footnote '[^{label}]: ...' at the end (got none).")
            used.add(label)
    for label in notes:
        if label not in used:
            raise ValueError(f"{path}:{lines.first}: expected a mark [^{label}] in the text above (got none).")
    return notes


def read_lesson(path: Path) -> Lesson:
    """Reads one lesson."""
    top, parts, notes = _split(path)
    title = top.expect(r"# Lesson (\d+): (.+)", "'# Lesson N: Title'")
    if path.name.partition("-")[0] != title[1]:
        top.at -= 1
        raise top.error(f"the number in the name of the file, {path.name}")
    goal = top.paragraph()
    if not goal.startswith("**Goal.** "):
        top.at = 1
        raise top.error("'**Goal.**' and one or two sentences below the title")
    fixed = [CODE, QUESTIONS, ABILITIES]
    own, last = parts[:-3], parts[-3:]
    if [heading for heading, _ in last] != fixed or not 2 <= len(own) <= 4:
        got = ", ".join(f"'{heading}'" for heading, _ in parts)
        wanted = "', '".join(fixed)
        raise ValueError(
            f"{path}:{parts[0][1].first - 1}: expected 2 to 4 sections of text, then '{wanted}' (got {got})."
        )
    sections = [_section(heading, lines) for heading, lines in own]
    abilities, following = _abilities(last[2][1])
    return Lesson(
        path, int(title[1]), title[2], goal[len("**Goal.** ") :], sections, _only_picture(own), _code(last[0][1]),
        _questions(last[1][1]), abilities, following, _footnotes(path, notes),
    )  # fmt: skip


def read_lessons(folder: Path) -> List[Lesson]:
    """Reads all lessons of a folder, in their order. They are numbered from 1."""
    lessons = [read_lesson(path) for path in sorted(folder.glob("[0-9]*-*.md"))]
    for number, lesson in enumerate(lessons, 1):
        if lesson.number != number:
            raise ValueError(f"{lesson.path}:1: expected lesson {number} (got lesson {lesson.number}).")
    if not lessons:
        raise ValueError(f"{folder}:0: expected lessons, 1-NAME.md and so on (got none).")
    return lessons
