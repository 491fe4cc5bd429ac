"""Reads the lessons of the course, docs/course/N-name.md. A lesson has these parts, in this order:

    # Lesson N: Title
    **Goal.** ...
    ## HEADING                2 to 4 sections; one of them has a picture, followed by "**How to read this.**"
    ## The same in code       a block of NumPy and one of PyTorch, each followed by the table that it equals
    ## Questions              five, each with 3 or 4 options and an explained answer
    ## After this lesson you can    3 or 4 items; the last line links to the next lesson
    [^1]: ...                 footnotes, if there are any

A lesson in any other form raises ValueError, which names the file, the line and the text that is expected there.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Match, NamedTuple, Optional, Tuple

from ..command import CommandError

HERE = Path(__file__).parent
FOLDERS = (
    HERE,
    HERE.parents[2] / "docs",
)  # contain course, *.svg and encodings.md: when installed, and in the source tree

CODE, QUESTIONS, ABILITIES = "The same in code", "Questions", "After this lesson you can"
LIBRARIES = {"import numpy as np": "numpy", "import torch": "torch"}
DETAILS = "<details><summary>Answer</summary>"
READING = "**How to read this.**"
PICTURE = re.compile(r"^!\[[^]]+\]\(\.\./[\w-]+\.svg\)\n\n" + re.escape(READING), re.M)
PICTURES = f"one picture in all: a picture, ![what it shows](../NAME.svg), and '{READING}' after the picture"
STATEMENT = (
    r"`result` equals\s`(posenc\stable [^`]+)`\s" r"(?:(bit\sfor\sbit)|within\s(\d+)\sulp|within\s2\^-(\d+))\.\n(?=\n)"
)
FORM_OF_STATEMENT = "`result` equals `posenc table ...` bit for bit. (or: within N ulp. or: within 2^-N.)"


def docs_folder() -> Path:
    """Returns the folder with the documents that the page is made of."""
    for folder in FOLDERS:
        if (folder / "course").is_dir():
            return folder
    raise CommandError(f"the lessons are not installed (got neither {FOLDERS[0]}/course nor {FOLDERS[1]}/course).")


class Code(NamedTuple):
    """A block of Python, and the command whose numbers its variable `result` equals.

    The bound is 0 for equal bits; else it counts ulp of float32, or is absolute.
    """

    library: str
    source: str
    line: int
    command: Tuple[str, ...]
    bound: float
    absolute: bool


class Question(NamedTuple):
    """A multiple-choice question. The first three of a lesson are easy, the others hard."""

    number: int
    text: str
    options: Dict[str, str]
    answer: str
    explanation: str


@dataclass(frozen=True)
class Lesson:
    """A lesson. Its texts are Markdown; `following` is the target of the link to the next lesson."""

    path: Path
    number: int
    title: str
    goal: str
    sections: Dict[str, str]  # by their headings
    before_code: str
    code: List[Code]
    questions: List[Question]
    abilities: List[str]
    following: str
    footnotes: Dict[str, str]


class _Text:
    """The text of a lesson, which is read from the first to the last line."""

    def __init__(self, path: Path) -> None:
        self.path, self.text, self.at = path, path.read_text(encoding="utf-8"), 0

    @property
    def line(self) -> int:
        """The number of the line that is read next."""
        return self.text.count("\n", 0, self.at) + 1

    def error(self, expected: str, at: Optional[int] = None) -> ValueError:
        """Returns the error for a place in the text, or for the position of the reader."""
        self.at = self.at if at is None else at
        got = self.text[self.at :].partition("\n")[0]
        return ValueError(f"{self.path}:{self.line}: expected {expected} (got '{got[:60]}').")

    def find(self, pattern: str) -> Optional[Match[str]]:
        """Skips empty lines, and reads the following text if it matches. A dot in a pattern matches no newline."""
        while self.text.startswith("\n", self.at):
            self.at += 1
        found = re.compile(pattern, re.M).match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def expect(self, pattern: str, expected: str) -> Match[str]:
        """Reads text that has to match."""
        found = self.find(pattern)
        if not found:
            raise self.error(expected)
        return found

    def until(self, pattern: str, expected: str) -> str:
        """Reads up to the next text that matches."""
        start, found = self.at, re.compile(pattern, re.M).search(self.text, self.at)
        if not found:
            raise self.error(expected, len(self.text.rstrip()))
        self.at = found.start()
        return self.text[start : self.at].strip()


def joined(text: str) -> str:
    """Returns a text on one line, with single spaces."""
    return " ".join(text.split())


def _read_sections(text: _Text) -> Dict[str, str]:
    start, found, pictures, form = text.at, {}, 0, f"2 to 4 sections of text, then '{CODE}'"
    while not text.find(rf"## {CODE}\n"):
        heading = text.expect("## (.+)\n", form)[1]
        begin = text.at
        found[heading] = text.until("^## ", form)
        for picture in re.finditer(r"^!\[", found[heading], re.M):
            pictures += 1
            if pictures > 1 or not PICTURE.match(found[heading], picture.start()):
                raise text.error(PICTURES, text.text.index("![", begin))
    if not 2 <= len(found) <= 4:
        raise text.error(form, start)
    if not pictures:
        raise text.error("a picture in one of the sections above")
    return found


def _read_code(text: _Text) -> List[Code]:
    blocks = []
    for first, library in LIBRARIES.items():
        text.until("^```", "```python")
        text.expect("```python\n", "```python")
        line = text.line
        source = text.expect(rf"{first}\n(?:(?!```).*\n)*", f"'{first}', the first line of the block")[0]
        text.expect("```\n", "``` at the end of a block")
        command, exact, ulps, power = text.expect(STATEMENT, FORM_OF_STATEMENT).groups()
        bound = 0.0 if exact else float(ulps) if ulps else 2.0 ** -int(power)
        blocks.append(Code(library, source, line, tuple(shlex.split(joined(command))), bound, power is not None))
    return blocks


def _read_question(number: int, text: _Text) -> Question:
    words = text.expect(rf"\*\*{number}\.\*\* ((?:(?!- ).*\n)+)", f"'**{number}.**' and the text of the question")[1]
    options: Dict[str, str] = {}
    for letter in "ABCD":
        option = text.find(rf"- {letter}\. ((?:(?!- ).+\n)+)")
        if option:
            options[letter] = joined(option[1])
        elif letter != "D":
            raise text.error(f"'- {letter}. ' and an option")
    text.expect(f"{DETAILS}\n", f"'{DETAILS}' after 3 or 4 options")
    until_end = r"((?:(?!</details>|\*\*\d|## ).*\n)+)"
    right = text.expect(rf"\*\*(\w)\.\*\* {until_end}", "the answer, '**X.**' and why it is right")
    if right[1] not in options:
        raise text.error(f"one of the options {', '.join(options)} as the answer", right.start())
    text.expect("</details>\n", "'</details>' after the answer")
    return Question(number, words.strip(), options, right[1], right[2].strip())


def _read_abilities(text: _Text) -> Tuple[List[str], str]:
    text.expect(rf"## {ABILITIES}\n", f"five questions and nothing after them, then '## {ABILITIES}'")
    items = []
    while item := text.find(r"- ((?:(?!- ).+\n)+)"):
        items.append(joined(item[1]))
    if not 3 <= len(items) <= 4:
        raise text.error(f"3 or 4 items that begin with '- ' (there are {len(items)})")
    last = text.expect(r"(?:(?!\[\^).*\n)*", "")
    link = re.search(r"\]\(([^)]+\.md)\)[^\n]*$", last[0].rstrip())
    if not link:
        raise text.error("a link to the next lesson in the last line", last.start())
    return items, link[1]


def _read_footnotes(text: _Text) -> Dict[str, str]:
    above, notes = text.text[: text.at], {}
    while text.find(r"(?=.)"):
        found = text.expect(r"\[\^(\w+)\]: ((?:(?!\[\^\w+\]:).+\n?)+)", "a footnote, '[^1]: ...'")
        notes[found[1]] = joined(found[2])
    marks = {mark[1]: mark.start() for mark in re.finditer(r"\[\^(\w+)\](?!:)", text.text)}
    for label, at in marks.items():
        if label not in notes:
            raise text.error(f"a footnote '[^{label}]: ...' at the end", at)
    for label in notes:
        if label not in marks:
            raise text.error(f"a mark [^{label}] in the text above", len(above))
    return notes


def read_lesson(path: Path) -> Lesson:
    """Reads one lesson."""
    text = _Text(path)
    title = text.expect(r"# Lesson (\d+): (.+)\n", "'# Lesson N: Title'")
    if path.name.partition("-")[0] != title[1]:
        raise text.error(f"the number in the name of the file, {path.name}", 0)
    goal = text.expect(r"\*\*Goal\.\*\* ((?:.+\n)+)", "'**Goal.**' and one or two sentences below the title")[1]
    sections = _read_sections(text)
    start = text.at
    code = _read_code(text)
    before_code = text.text[start : text.text.index("```", start)].strip()
    if "```" in text.until(rf"^## {QUESTIONS}\n", f"'{QUESTIONS}', a section"):
        raise text.error("two blocks of code, not a third one")
    text.expect(rf"## {QUESTIONS}\n", QUESTIONS)
    questions = [_read_question(number, text) for number in range(1, 6)]
    abilities, following = _read_abilities(text)
    return Lesson(path, int(title[1]), title[2], joined(goal), sections, before_code, code, questions, abilities,
                  following, _read_footnotes(text))  # fmt: skip


def read_lessons(folder: Path) -> List[Lesson]:
    """Reads all lessons of a folder, in their order. They are numbered from 1."""
    lessons = [read_lesson(path) for path in sorted(folder.glob("[0-9]*-*.md"))]
    for number, lesson in enumerate(lessons, 1):
        if lesson.number != number:
            raise ValueError(f"{lesson.path}:1: expected lesson {number} (got lesson {lesson.number}).")
    if not lessons:
        raise ValueError(f"{folder}:0: expected lessons, 1-NAME.md and so on (got none).")
    return lessons
