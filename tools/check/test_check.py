"""Each part of ./run check passes this tree, and fails for a mistake with a message that names the place.

    python3 -m pytest tools/check/test_check.py [-k PART]      gcc, clang and tidy build and take minutes
"""
import re
import shutil
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = "format includes signatures lengths lines spelling prose shell python gcc clang tidy".split()
MANY = 30 * ("\nEach of these" + 40 * " words" + ".")
SOME = "".join("\nThis is short." + (s % 10 == 0) * ("  The next" + 40 * " words" + ".") for s in range(30))
NEW = "match x:\n        case 1:\n            pass"  # words that Python 3.9 does not know
NARROWED = "#include <stdint.h>\nint narrowed(int64_t x) { return x; }"
# Words that a check finds are in two halves, so that it does not find them here.
MISTAKES = [  # part, file, text that is appended to it or makes a new one, message
    ("format", "impl/cpu.c", "int  two_spaces;", "impl/cpu.c:.*clang-format"),
    ("includes", "impl/cpu.c", '#include "conformance/problem/problem.h"',
     "impl/cpu.c:[0-9]*: .*impl may not use conformance/problem; it may use impl/include"),
    ("includes", "base/records.c", '#include "bench/bench.h"', "base may not use bench; it may use base/text"),
    ("includes", "impl/include/posenc.h", '#include "registry.h"', "impl and impl/include include each other"),
    ("includes", "attic/old.c", "#include <posenc.h>", "attic/old.c: its folder has no line"),
    ("includes", "tools/check/includes.txt", "attic", "attic has no sources"),
    ("includes", "tools/check/includes.txt", "impl/include impl", "a cycle: "),
    ("includes", "impl/meson.build", "executable('x', '../base/records.c')", "impl/meson.build:.*may not use base"),
    ("python", "reports/posenc/engine.py", "import json", "engine.py:.*F401"),
    ("python", "reports/posenc/records.py", '\n\nx: int = "text"', "records.py:.*Incompatible types"),
    ("python", "reports/tests/test_pictures.py", "\n\ndef f(x):\n    return x", "test_pictures.py:.*annotation"),
    ("python", "reports/posenc/records.py", f"\n\ndef f(x: int) -> None:\n    {NEW}", "records.py"),
    ("signatures", "bench/check.c", "int f(int x) { switch (x) { case SIGN" "ATURE_rope: return 1; } }",
     "bench/check.c:.*case SIGN"),
    ("lengths", "impl/cpu.c", "int f(void)\n{" + 99 * "\n f();" + "\n}", "impl/cpu.c:.*a function of 101"),
    ("lengths", "impl/new.c", 600 * "int x;\n", "impl/new.c: 60[01] lines; at most"),
    ("lines", "impl/new.c", 300 * "int x;\n", "impl: [0-9]* lines of c; lines.csv allows"),
    ("lines", "attic/one.sh", "echo one", "attic: 1 lines of shell; lines.csv allows 0"),
    ("spelling", "impl/cpu.c", "/* rec" "ieve */", "impl/cpu.c:.*rec" "ieve"),
    ("prose", "impl/cpu.c", "/* Of all terms the first. */", "impl/cpu.c: a sentence begins with Of: Of all terms"),
    ("prose", "docs/accuracy.md", "\nThe kernel ref" "uses such calls.",
     'docs/accuracy.md: "ref' 'uses", say reject: The kernel'),
    ("prose", "reports/posenc/new.py", '"""Returns one of those that some' 'body else has."""',
     'reports/posenc/new.py: "some' 'body", say you'),
    ("prose", "attic/long.md", MANY, r"attic: 30 sentences, 43.0 words each \(at most 18\), 100.0 % over 30"),
    ("prose", "attic/some.md", SOME, r"attic: 33 sentences, .* \(at most 18\), 9.1 % over 30"),
    ("shell", "docs/check.sh", "for x in $(ls); do cd $x", "docs/check.sh"),
    ("shell", "tools/new.sh", "#!/bin/sh\nread x\n[ $x == 1 ]", "tools/new.sh"),
    ("gcc", "impl/freqs/alibi.c", NARROWED, "alibi.c:.*error: .*-Werror"),
    ("clang", "impl/freqs/alibi.c", NARROWED, "alibi.c:.*error: .*-Werror"),
    ("tidy", "impl/freqs/alibi.c", "int posenc_twice(int x); int posenc_twice(int x) { return x + 1 || x + 1; }",
     "alibi.c:.*misc-redundant-expression"),
]  # fmt: skip


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    copy = tmp_path_factory.mktemp("tree") / "posenc"
    unrelated = shutil.ignore_patterns("build", "build-*", ".git", "posenc-report*", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=unrelated, symlinks=True)
    yield copy
    shutil.rmtree(copy)


def check(tree: Path, part: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["./run", "--no-install", "check", part], cwd=tree, encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_part_passes_this_tree(part: str, tree: Path) -> None:
    done = check(tree, part)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("part, file, text, words", MISTAKES, ids=[f"{m[0]}-{m[1]}" for m in MISTAKES])
def test_part_fails_for_a_mistake(part: str, file: str, text: str, words: str, tree: Path) -> None:
    path = tree / file
    before = path.read_bytes() if path.exists() else b""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(before + text.encode() + b"\n")
    done = check(tree, part)
    if before:
        path.write_bytes(before)
    else:
        path.unlink()
        if path.parent.name == "attic":
            path.parent.rmdir()
    assert done.returncode == 1
    assert any(re.search(words, line) for line in done.stdout.splitlines()), done.stdout
