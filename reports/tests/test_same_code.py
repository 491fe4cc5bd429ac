"""Digests of machine code: the same where only addresses change, another one where one instruction or number does."""

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Callable, List, Sequence

import pytest

from posenc.compare.same_code import Library, Unknown, code_digest
from posenc.records import load

if platform.machine() != "x86_64" or not shutil.which("objdump") or not shutil.which("cc"):
    pytest.skip("it takes x86-64, objdump and a compiler", allow_module_level=True)

# A small library. CHANGES replaces one thing at a time in it.
MAIN = r"""
#include <stdlib.h>
#include <string.h>

long calls = 1, failures = 1;
const char *message;
long other(long x);
#pragma GCC visibility push(hidden)
long hidden_other(long x);
#pragma GCC visibility pop

static const float table[16] = { 1.5f, 2.5f,  3.5f,  4.5f,  5.5f,  6.5f,  7.5f,  8.5f,
                                 9.5f, 10.5f, 11.5f, 12.5f, 13.5f, 14.5f, 15.5f, 16.5f };

__attribute__((noinline)) static long turn(long x) { return x * 7 + 3; }
__attribute__((noinline)) static long turn_back(long x) { return x * 5 - 3; }
__attribute__((noinline)) static long flip(long x) { return 9 - x; }
static long (*const functions[])(long) = { flip, turn_back };

__attribute__((noinline)) static void polynomial(float *x, long n)
{
    for (long i = 0; i < n / 8 * 8; i++)
        x[i] = (x[i] * 0.041666f + 0.5f) * x[i] + 1.0f;
}

__attribute__((noinline)) static long each(const float *x, long n, long (*of)(long))
{
    long sum = 0;
    for (long i = 0; i < n; i++) {
        const float value = x[i] * table[(i * 36) & 15] + 0.2f;
        sum += of((long)value);
    }
    return sum;
}

#ifdef SWITCH
__attribute__((noinline)) static long choose(long x, long y)
{
    switch (x) {
    case 0: return y * 3 + calls;
    case 1: return y - 17;
    case 2: return y * y;
    case 3: return other(y);
    case 4: return y ^ 99;
    case 5: return y / 7;
    case 6: return -y;
    case 7: return turn(y) + 1;
    default: return 0;
    }
}
#else
#define choose(x, y) y
#endif

long entry(float *x, long n, const char *name)
{
    if (n < 0) {
        message = "too short:";
        if (n == -7)
            abort();
        return -1;
    }
    calls++;
    polynomial(x, n);
    const void *found = memchr(name, 'x', 4);
    const long sum = each(x, n, found ? turn : functions[n & 1]);
    return choose(sum & 15, sum) + other(turn(sum)) + hidden_other(sum);
}
"""
# Is linked before MAIN or behind it. PUSHED adds functions and data, which move the others.
OTHER = r"""
long other(long x) { return x > 4000000 ? x - 4000000 : x; }
#pragma GCC visibility push(hidden)
long hidden_other(long x);
#pragma GCC visibility pop
long hidden_other(long x) { return x > 5000000 ? x - 7 : x; }
#ifdef PUSHED
const double pushed[5] = { 3.25, 1.75, 0.2, 0.3, 9.5 };
double pushing(const double *x) { return x[0] * 3.25 + pushed[1] / 0.7; }
const char *pushing_text(int i) { return i ? "some words that come first" : "others"; }
#endif
"""
Build = Callable[..., Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Returns a function that makes a library of MAIN, or of another source, with some options of the compiler."""
    folder = tmp_path_factory.mktemp("coded")
    (folder / "other.c").write_text(OTHER)

    def compile_library(*options: str, order: Sequence[str] = ("main.c", "other.c"), source: str = MAIN) -> Path:
        (folder / "main.c").write_text(source)
        path = folder / f"{len(list(folder.iterdir()))}.so"
        command = ["cc", "-O2", "-ftree-vectorize", "-fPIC", "-shared", "-w", "-D_GNU_SOURCE"]
        subprocess.run([*command, *options, *order, "-o", str(path)], cwd=folder, check=True)
        return path

    return compile_library


def address_of(path: Path, name: str = "entry") -> int:
    """Returns the address of a function of a library."""
    lines = subprocess.run(["nm", path], stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout.splitlines()
    return next(int(line.split()[0], 16) for line in lines if line.endswith(f" T {name}"))


def digest(path: Path) -> str:
    return code_digest(str(path), (address_of(path),))


@pytest.fixture(scope="module")
def base(build: Build) -> str:
    """Returns the digest of the unchanged library."""
    return digest(build())


SAME = {
    "built again": [], "functions are aligned": ["-falign-functions=64"], "other addresses": ["-DPUSHED"],
    "all of these": ["-DPUSHED", "-falign-functions=32"], "another table of procedures": ["-Wl,-z,ibtplt"],
    "names that are bound at once": ["-Wl,-z,now", "-Wl,-z,relro"],
}  # fmt: skip


@pytest.mark.parametrize("options", SAME.values(), ids=SAME)
@pytest.mark.parametrize("order", [("main.c", "other.c"), ("other.c", "main.c")], ids=["", "in another order"])
def test_the_same_elsewhere(build: Build, base: str, options: List[str], order: Sequence[str]) -> None:
    assert digest(build(*options, order=order)) == base


SUM = "sum += of((long)value);"
CHANGES = {
    "an instruction more": (SUM, SUM + '__asm__ volatile("addq $1, %0" : "+r"(sum));'),
    "an instruction more that does nothing": (SUM, SUM + '__asm__ volatile("nop");'),
    "an immediate": ("i * 36", "i * 37"),
    "a constant": ("0.2f", "0.3f"),
    "a constant of a polynomial": ("0.041666f", "0.041667f"),
    "the last number of a table": ("16.5f }", "17.5f }"),
    "a number in a callee": ("x * 7 + 3", "x * 7 + 5"),
    "a number in a function behind a pointer": ("9 - x", "11 - x"),
    "the callee": ("other(turn(sum))", "other(turn_back(sum))"),
    "the callee in another library": ("memchr", "memrchr"),
    "the variable": ("calls++", "failures++"),
    "the first value of a variable": ("calls = 1", "calls = 2"),
    "the words of a message": ("too short:", "too short."),
    "the condition of a jump": ("n < 0", "n <= 0"),
}


@pytest.mark.parametrize("old, new", CHANGES.values(), ids=CHANGES)
def test_one_thing_changes(build: Build, base: str, old: str, new: str) -> None:
    assert MAIN.count(old) == 1 and digest(build(source=MAIN.replace(old, new))) != base


def test_each_entry_counts(build: Build) -> None:
    path = build()
    both = code_digest(str(path), (address_of(path), address_of(path, "other")))
    assert both != digest(path) and both != code_digest(str(path), (address_of(path, "other"), address_of(path)))


def test_unknown_says_why(build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Unknown, match="a computed jump at 0x|of unknown extent at 0x"):
        digest(build("-DSWITCH"))
    path, stripped = build(), build()
    subprocess.run(["strip", stripped], check=True)
    with pytest.raises(Unknown, match="of unknown extent|no symbols"):
        code_digest(str(stripped), (address_of(path),))
    text = tmp_path / "text"
    text.write_text("no library")
    with pytest.raises(Unknown, match="file format not recognized"):
        Library(str(text))
    with pytest.raises(Unknown, match="an address outside of the library, 0x10000000000"):
        Library(str(path)).digest([1 << 40])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unknown, match="objdump: "):
        Library(str(path))


def test_kernels_of_the_library_are_known(tmp_path: Path) -> None:
    """Calls of the plain kernels and of the front-end before them are followed to their end."""
    program, path = Path(os.environ["POSENC_PROGRAM"]), tmp_path / "rows.jsonl"
    library = str(program.parent / "impl" / "libposenc.so")
    if not Path(library).exists():
        pytest.skip("no shared library beside the program")
    options = ["--backend", "scalar", "--part", "code", "--out", f"jsonl:{path}"]
    command = [str(program), "pair", library, library, *options]
    status = subprocess.run(command, check=False).returncode
    if status == 77:
        pytest.skip("nothing is timed here")
    assert status == 0
    rows = [record["entries"] for record in load(str(path)) if record["t"] == "planned"]
    assert len(rows) > 10 and all(row["base"] == row["head"] and len(row["base"]) == 2 for row in rows)
    for row in rows:
        assert len(code_digest(library, tuple(row["base"]))) == 64
