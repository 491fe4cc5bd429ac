"""The course: each block of code computes the numbers of the command below it, and each lesson has its form."""

import csv
import importlib
import math
import os
import re
import shutil
import struct
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import pytest

from posenc.engine import Engine
from posenc.explore.lessons import Code, Lesson, read_lesson, read_lessons

COURSE = Path(__file__).resolve().parents[2] / "docs" / "course"
FILES = sorted(COURSE.glob("[0-9]*.md"))
LABELS = re.compile(r"row|pair|axis|position(\[\d+\])?")


@lru_cache(maxsize=None)
def lesson_in(path: Path) -> Lesson:
    return read_lesson(path)


@pytest.fixture(params=FILES, ids=[path.stem for path in FILES])
def lesson(request: Any) -> Lesson:
    return lesson_in(request.param)


# ---- how close two numbers are ----


def float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def ulp(value: float) -> float:
    """Returns the distance of the float32 numbers around a value."""
    exponent = math.frexp(value)[1] - 1 if value else -126
    return math.ldexp(1.0, max(exponent, -126) - 23)


def differs(got: float, want: float, code: Code) -> str:
    """Returns why a number is not within the bound, or nothing. Infinities and NaN have no distance."""
    if not code.bound or not (math.isfinite(got) and math.isfinite(want)):
        alike = math.isnan(got) and math.isnan(want)
        alike = alike or (got == want and math.copysign(1.0, got) == math.copysign(1.0, want))
        return "" if alike else "not the same bits"
    unit, name = (1.0, "") if code.absolute else (ulp(want), " ulp")
    off = abs(got - want) / unit
    return f"{off:.4g}{name} apart, more than {code.bound:.4g}{name}" if off > code.bound else ""


def compare(got: Sequence[float], want: Sequence[float], code: Code, where: str) -> None:
    assert len(got) == len(want), f"{where}: `result` has {len(got)} numbers, {' '.join(code.command)} {len(want)}"
    for at, (one, other) in enumerate(zip(got, want)):
        why = differs(one, other, code)
        assert not why, f"{where}: number {at} of `result` is {one!r}, posenc prints {other:.9g}: {why}"


def numbers(result: Any) -> List[float]:
    """Returns the numbers of an array or a tensor, in row order."""
    values = result.tolist() if hasattr(result, "tolist") else result
    return [number for value in values for number in numbers(value)] if isinstance(values, list) else [float(values)]


def printed(output: str) -> List[float]:
    """Returns the numbers of a table as posenc prints it, without the columns that number its rows.

    Columns of an array, such as sinusoidal[0], are float32; their nine digits are rounded to it.
    """
    header, *rows = csv.reader(output.splitlines())
    shown = [at for at, name in enumerate(header) if not LABELS.fullmatch(name)]
    return [float32(float(row[at])) if "[" in header[at] else float(row[at]) for row in rows for at in shown]


@lru_cache(maxsize=None)
def table(command: Tuple[str, ...]) -> List[float]:
    return printed(Engine().run(*command[1:]))


def run(code: Code, path: Path) -> List[float]:
    """Runs a block in a namespace of its own, and returns its `result`."""
    try:
        importlib.import_module(code.library)
    except ImportError:
        pytest.skip(f"{code.library} cannot be imported")
    space: Dict[str, Any] = {"__name__": path.stem}
    exec(compile("\n" * (code.line - 1) + code.source, str(path), "exec"), space)
    assert "result" in space, f"{path.name}:{code.line}: the block assigns no `result`"
    return numbers(space["result"])


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_code_equals_the_table(lesson: Lesson, library: str) -> None:
    (code,) = [code for code in lesson.code if code.library == library]
    compare(run(code, lesson.path), table(code.command), code, f"{lesson.path.name}:{code.line}")


# ---- the form of a lesson ----


def test_code_has_10_to_15_lines(lesson: Lesson) -> None:
    for code in lesson.code:
        lines = [line for line in code.source.splitlines() if line]
        assert 10 <= len(lines) <= 15, f"{lesson.path.name}:{code.line}: {len(lines)} lines, expected 10 to 15"
        assert all(len(line) <= 120 for line in lines), f"{lesson.path.name}:{code.line}: lines above 120 columns"


def test_links_lead_somewhere(lesson: Lesson) -> None:
    text = lesson.path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        there = target.startswith("https://") or (lesson.path.parent / target).exists()
        assert there, f"{lesson.path.name}: '{target}' does not exist"


def test_right_answers_have_different_letters(lesson: Lesson) -> None:
    letters = "".join(question.answer for question in lesson.questions)
    assert len(set(letters)) > 1, f"{lesson.path.name}: all answers are {letters[0]}, a reader would guess them"


def test_options_differ(lesson: Lesson) -> None:
    for question in lesson.questions:
        same = len(question.options) - len(set(question.options.values()))
        assert not same, f"{lesson.path.name}: question {question.number} has two equal options"


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
    lessons = read_lessons(COURSE)
    listed = re.findall(r"^\d+\. \[([^]]+)\]\(([^)]+)\)", (COURSE / "README.md").read_text(encoding="utf-8"), re.M)
    assert listed == [(lesson.title, lesson.path.name) for lesson in lessons]
    for lesson, following in zip(lessons, lessons[1:]):
        assert lesson.following == following.path.name, f"{lesson.path.name}: its last link is not the next lesson"


# ---- lessons and results that are wrong ----

TWO = COURSE / "2-sinusoids.md"


def tampered(folder: Path, old: str, new: str, path: Path = TWO) -> Path:
    text = path.read_text(encoding="utf-8")
    assert old in text
    copy = folder / path.name
    copy.write_text(text.replace(old, new, 1), encoding="utf-8")
    return copy


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("# Lesson 2: ", "# Lesson two: ", "'# Lesson N: Title'"),
        ("# Lesson 2: ", "# Lesson 3: ", "the number in the name of the file, 2-sinusoids.md"),
        ("**Goal.** ", "Goal: ", "'**Goal.**' and one or two sentences"),
        ("## The same in code", "## Code", "expected 2 to 4 sections of text, then 'The same in code'"),
        ("## Questions", "## After this lesson you can", "'Questions'"),
        ("## A point on a circle\n", "## A\n\n## B\n", "expected 2 to 4 sections of text"),
        ("(../sinusoidal.svg)", "(sinusoidal.png)", "a picture, ![what it shows](../NAME.svg)"),
        ("**How to read this.**", "Look at", "'**How to read this.**' after the picture"),
        ("\n## The same", "\n![a](../rope.svg)\n\n**How to read this.** So.\n\n## The same", "one picture"),
        ("![", "[", "a picture in one of the sections above"),
        ("import numpy as np", "import numpy", "'import numpy as np', the first line of the block"),
        ("```python\nimport torch", "```\nimport torch", "```python"),
        ("table.float()\n```", "table.float()\n", "``` at the end of a block"),
        ("tokens=6'` within 1 ulp.", "tokens=6'` to 1 ulp.", "`result` equals `posenc table ...` bit for bit."),
        ("tokens=6'` within 1 ulp.", "tokens=6'` within 1 ulp. Yes.", "`result` equals `posenc table ...`"),
        ("`result` equals `posenc table", "`result` equals `posenc plot", "`result` equals `posenc table ...`"),
        ("**3.** Six words", "**4.** Six words", "'**3.**' and the text of the question"),
        ("- B. 3\n", "", "'- B. ' and an option"),
        ("- C. 2\n", "- C. 2\n- D. 7\n- E. 8\n", "'<details><summary>Answer</summary>' after 3 or 4 options"),
        ("**B.** One for each", "**D.** One for each", "one of the options A, B, C as the answer"),
        ("**B.** One for each", "One for each", "the answer, '**X.**' and why it is right"),
        ("</details>", "", "'</details>' after the answer"),
        ("\n</details>\n\n## After", "\n</details>\n\n**6.** More?\n\n## After", "five questions and nothing after"),
        ("- Name the wavelength", "Name the wavelength", "3 or 4 items that begin with '- '"),
        ("(3-why-this-formula.md)", "", "a link to the next lesson in the last line"),
        ("[^2]: ", "2: ", "a footnote '[^2]: ...' at the end"),
        ("encoding.[^1] ", "encoding. ", "a mark [^1] in the text above"),
    ],
)
def test_wrong_form_is_reported(tmp_path: Path, old: str, new: str, expected: str) -> None:
    copy = tampered(tmp_path, old, new)
    with pytest.raises(ValueError) as raised:
        read_lesson(copy)
    assert re.match(re.escape(str(copy)) + r":\d+: expected ", str(raised.value)), raised.value
    assert expected in str(raised.value)


def test_reported_line_is_the_wrong_one(tmp_path: Path) -> None:
    copy = tampered(tmp_path, "**B.** One for each", "**D.** One for each")
    above = copy.read_text(encoding="utf-8").partition("**D.** One")[0]
    with pytest.raises(ValueError, match=f":{above.count(chr(10)) + 1}: "):
        read_lesson(copy)


def test_a_missing_lesson_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected lessons, 1-NAME.md"):
        read_lessons(tmp_path)
    shutil.copy(TWO, tmp_path)
    with pytest.raises(ValueError, match=r"expected lesson 1 \(got lesson 2\)"):
        read_lessons(tmp_path)


@pytest.mark.parametrize("old, new", [("10000.0", "10001.0"), ("np.sin", "np.cos"), ("tokens = 4, 6", "tokens = 4, 7")])
def test_code_that_computes_other_numbers_fails(tmp_path: Path, old: str, new: str) -> None:
    copy = tampered(tmp_path, old, new)
    code = read_lesson(copy).code[0]
    with pytest.raises(AssertionError, match="`result`"):
        compare(run(code, copy), table(code.command), code, copy.name)


def test_code_without_a_result_fails(tmp_path: Path) -> None:
    copy = tampered(tmp_path, "result = ", "outcome = ")
    with pytest.raises(AssertionError, match=r"2-sinusoids.md:\d+: the block assigns no `result`"):
        run(read_lesson(copy).code[0], copy)


def code_of(bound: float, absolute: bool = False) -> Code:
    return Code("numpy", "", 1, ("posenc", "table"), bound, absolute)


@pytest.mark.parametrize("value", [0.841470957, -1.0, 0.0, 1e-42, 1.0])
def test_one_bit_is_seen(value: float) -> None:
    """The next float32 is not the same, and is within 1 ulp. The one after it is not."""
    exact = float32(value)
    (word,) = struct.unpack("i", struct.pack("f", exact))
    one, two = struct.unpack("2f", struct.pack("2i", word + 1, word + 2))
    assert not differs(exact, exact, code_of(0))
    assert differs(one, exact, code_of(0)) == "not the same bits"
    assert not differs(one, exact, code_of(1))
    assert differs(two, exact, code_of(1)) == "2 ulp apart, more than 1 ulp"


def test_bounds_of_special_values() -> None:
    infinity, nan = math.inf, math.nan
    assert not differs(infinity, infinity, code_of(1)) and not differs(nan, nan, code_of(1))
    assert (
        differs(1.0, infinity, code_of(1))
        and differs(-infinity, infinity, code_of(1))
        and differs(nan, 1.0, code_of(1))
    )
    assert differs(-0.0, 0.0, code_of(0)) and not differs(-0.0, 0.0, code_of(1))
    assert not differs(1.0 + 2.0**-20, 1.0, code_of(2.0**-20, True))
    assert differs(1.0 + 2.0**-19, 1.0, code_of(2.0**-20, True)) == "1.907e-06 apart, more than 9.537e-07"


def test_numbers_of_tables_and_results() -> None:
    assert printed("position,cos[0],sin[0]\n7,1,0\n8,0.5,-inf\n") == [1.0, 0.0, 0.5, -math.inf]
    assert printed("position[0],position[1],sinusoidal[0]\n0,1,0.25\n") == [0.25]
    assert numbers([[1, 2], [3, 4]]) == [1.0, 2.0, 3.0, 4.0]
