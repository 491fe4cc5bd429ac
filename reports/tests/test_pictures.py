"""posenc plot: the numbers of pictures, and that everything on them can be read.

draw("rope", "--tokens", "64") is the picture of posenc plot rope --tokens 64; facts(...) are the lines that it prints.
"""

import itertools
import math
import os
import re
import shlex
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any, List

import pytest

pytest.importorskip("matplotlib")
from matplotlib.text import Text  # noqa: E402

from posenc.command import CommandError, write_file  # noqa: E402
from posenc.plot import main as plot  # noqa: E402
from posenc.plot.picture import KINDS, Picture, save  # noqa: E402
from posenc.plot.tables import choose_curves  # noqa: E402
from posenc.units import BACKENDS  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SPEEDS = str(ROOT / "docs" / "speed.jsonl")


@lru_cache(maxsize=None)
def draw(name: str, *options: str) -> Picture:
    """Draws a picture. The same one is drawn once for all tests."""
    picture, _ = plot.draw(name, [SPEEDS, *options] if name == "speed" and not options else list(options))
    return picture


def facts(*arguments: str) -> str:
    """Returns the numbers that a picture prints."""
    return "\n".join(draw(*arguments).facts)


@lru_cache(maxsize=None)
def laid_out(name: str) -> Picture:
    """Draws a picture and places its parts, which takes longer."""
    draw(name).figure.draw_without_rendering()
    return draw(name)


@pytest.fixture(params=sorted(KINDS))
def picture(request: Any) -> Picture:
    """Returns each picture in turn."""
    return laid_out(request.param)


# ---- everything can be read ----


def texts_of(picture: Picture) -> List[Text]:
    """Returns the titles, labels and numbers outside the axes."""
    found = []
    for axes in picture.figure.axes:
        found += [axes.title, axes.xaxis.label, axes.yaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = zip(axis.get_ticklocs(), axis.get_ticklabels())
            found += [label for place, label in ticks if low <= place <= high and axis.get_visible()]
    found.append(picture.figure._suptitle)
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def test_no_text_is_cut_or_covers_another(picture: Picture) -> None:
    size = picture.figure.bbox
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(picture)]
    for text, box in boxes:
        assert box.x0 >= size.x0 - 1 and box.x1 <= size.x1 + 1, text
        assert box.y0 >= size.y0 - 1 and box.y1 <= size.y1 + 1, text
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across < 1 or down < 1, f"{one!r} and {other!r} overlap"


def test_legends_cover_nothing(picture: Picture) -> None:
    legends = [axes.get_legend() for axes in picture.figure.axes if axes.get_legend()]
    for legend in legends:
        box = legend.get_window_extent()
        for axes in picture.figure.axes:
            assert not box.overlaps(axes.get_window_extent())
        for text in texts_of(picture):
            assert not box.overlaps(text.get_window_extent()), text.get_text()


def test_positions_run_right_and_down(picture: Picture) -> None:
    for axes in picture.figure.axes:
        left, right = axes.get_xlim()
        assert left < right
        if axes.images and "position" in axes.get_ylabel():
            bottom, top = axes.get_ylim()
            assert bottom > top


def test_files_begin_as_their_format_and_repeat() -> None:
    # Curves, points, a map, texts, a frame and two bars of colours.
    for name, *options in (["alibi", "--heads", "2", "--tokens", "4"], ["swin"]):
        svg, again = (save(plot.draw(name, options)[0].figure, "svg") for _ in range(2))
        assert b"</svg>" in svg[-20:] and plot.MARKERS[".svg"] in svg[:1024]
        assert svg == again
        names = re.findall(rb' id="([^"]+)"', svg)
        assert len(names) == len(set(names)) > 0
        assert set(re.findall(rb'(?:url\(|href=")#([^)"]+)', svg)) == set(names)
    # Coordinates are shortened, numbers in texts are not.
    other = Picture((2, 2), "62.8319 positions", "", [["empty"]])
    assert b">62.8319 positions<" in save(other.figure, "svg")
    for suffix in ("png", "pdf"):
        assert save(draw("swin").figure, suffix).startswith(plot.MARKERS["." + suffix])


CAPTIONED = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_docs_say_how_to_read_it(name: str) -> None:
    caption = " ".join(KINDS[name].caption.split())
    assert caption.endswith(".") and KINDS[name].summary
    shown = re.compile(rf"^!\[[^]]+\]\((docs/)?{name}\.svg\)\n\n(.*?)\n\n", re.M | re.S)
    below = [found[2] for page in CAPTIONED for found in shown.finditer(page.read_text(encoding="utf-8"))]
    assert [" ".join(text.split()) for text in below] == [f"*How to read this.* {caption}"]


def test_every_backend_has_a_colour() -> None:
    listed = (ROOT / "impl" / "backends.def").read_text()
    names = re.findall(r"^POSENC_BACKEND\((\w+)\)", listed, re.M)
    assert names and not [name for name in names if name not in BACKENDS]


# ---- the numbers ----


HALVES = "slopes 0.5 0.25 0.125 0.0625 0.03125 0.015625 0.0078125 0.00390625"
# Rows of the sinusoidal table have equal norms: the similarity at an offset is the mean cosine of the angles.
SIMILAR = sum(math.cos(4 * 10000 ** (-2 * i / 16)) for i in range(8)) / 8
NUMBERS = [
    ("sinusoidal --problem 'sinusoidal dim=16' --tokens 40", ["shape [40, 16]", f"at offset 4: {SIMILAR:.3f}"]),
    ("sinusoidal --tokens 32", ["offset 32: too few positions"]),
    # The mean of cos(o w), d = 128: 0.66155 at offset 11, 0.66220 at 12.
    ("rope", ["pair 32: 0.01 radians per position, a full turn in 628.319 positions",
              "nearer is not always more similar: 0.6616 at offset 11, 0.6622 at 12"]),
    ("rope --problem 'rope_table rotary_dim=2' --tokens 2", ["pair 0: 1 radians"]),
    ("rope --model llama-3.1-8b", ["model llama-3.1-8b"]),
    # 0.1 ln 32 + 1
    ("frequencies", ["linear, factor 4: 64 of 64 pairs rotate, 4 to 4 times as slowly, attention factor 1",
                     "llama3: llama-3.1-8b: 64 of 64 pairs rotate, 1 to 8 times as slowly",
                     "a quarter of the pairs: 16 of 64 pairs rotate",
                     "yarn: gpt-oss-20b: 32 of 32 pairs rotate, 1 to 32 times as slowly, attention factor 1.34657"]),
    ("frequencies --problem 'rope_table rotary_dim=64 scaling=linear factor=3'",
     ["rope_table rotary_dim=64 scaling=linear factor=3: 32 of 32 pairs rotate, 3 to 3 times"]),
    ("mrope", ["\ntime: pairs 0 1 2 3\nrow: pairs 4 5 6 7 8 9\ncolumn: pairs 10 11 12 13 14 15\n"]),
    ("mrope --layout qwen3_vl", ["row: pairs 1 4 7"]),
    ("alibi --tokens 128", [f"{HALVES}\n", "distance 127: head 1 -63.5, head 8 -0.496094"]),
    ("alibi --heads 12", [f"{HALVES} 0.707107 0.353553 0.176777 0.0883883\n"]),
    ("t5", ["bidirectional: buckets of keys before the query begin", " 0 1 2 3 4 5 6 7 8 12 16 23 32 46 64 91\n",
            " 15 16 19 21 24 27 31 35 40 46 52 59 67 77 87 99 113\n"]),
    # 256 buckets to 512: 128 and below have a column each, 511 is the last with a bucket of its own, 255.
    ("deberta", ["opposites: 384/128 448/64 511/0\n"]),
    ("swin", ["7 x 7 tokens, a table of 169 rows", "\n  84   83   82   81   80   79   78   71   70 "]),
    ("learned --tokens 512 --dim 256", ["learned 512 x 256 = 131072, sinusoidal 0"]),
]  # fmt: skip


@pytest.mark.parametrize("command, expected", NUMBERS)
def test_printed_numbers(command: str, expected: List[str]) -> None:
    printed = facts(*shlex.split(command)) + "\n"
    assert [text for text in expected if text not in printed] == []


def curve_labels(picture: Picture) -> List[str]:
    return [text.get_text() for axes in picture.figure.axes if axes.get_legend() for text in axes.get_legend().texts]


def test_sinusoidal_curves_are_of_wavelengths_that_can_be_read() -> None:
    assert "dimension 32: 62.83" in curve_labels(draw("sinusoidal", "--tokens", "512"))
    for layout in ("sin_cos", "cos_sin"):
        assert "dimension 16: 62.83" in curve_labels(draw("sinusoidal", "--tokens", "512", "--layout", layout))


def test_chosen_curves() -> None:
    import numpy

    wavelength = numpy.repeat([2 * math.pi * 10000 ** (i / 512) for i in range(512)], 2)
    for tokens in (2**k for k in range(1, 13)):
        chosen = [wavelength[d] for d in choose_curves(tokens, wavelength)]
        assert len(chosen) == 4 and chosen == sorted(set(chosen))
        assert min(chosen) > max(7.5, tokens / 11)
    assert choose_curves(512, numpy.array([6.28, 6.28, 0.0])) == [0]


def test_products_of_far_positions() -> None:
    for problem, least, most in (("rotary_dim=128", 0, 1e-6), ("rotary_dim=128 numerics=hf_f32", 1e-4, 1)):
        printed = facts("rope", "--problem", f"rope_table {problem}")
        apart = [float(number) for number in re.findall(r"differ by at most (\S+)", printed)]
        assert len(apart) == 2 and least < max(apart) < most


def test_xpos() -> None:
    printed = facts("xpos")
    assert "pair 0: factor 0.2857 every 512 positions" in printed
    offset, rope, xpos = next(line.split() for line in printed.splitlines() if line.startswith("256 "))
    turns = [256 * 10000 ** (-2 * i / 64) for i in range(32)]
    zetas = [(2 * i + 25.6) / 89.6 for i in range(32)]
    assert abs(float(rope) - sum(map(math.cos, turns)) / 32) < 1e-4
    assert abs(float(xpos) - sum(math.sqrt(z) * math.cos(t) for z, t in zip(zetas, turns)) / 32) < 1e-4


def test_bias() -> None:
    # -64/16, -2 ln 65, -8; the bucket of 64 begins at 59: -2 ln 60.
    last = {line[:12].strip(): line.split()[-1] for line in facts("bias").splitlines()[2:]}
    assert last["ALiBi, slope"] == "-4.000" and last["KERPLE, −2 l"] == "-8.349"
    assert last["KERPLE, −d^0"] == "-8.000" and last["T5, 32 bucke"] == "-8.189"


def test_buckets_shift_by_one_key_a_row() -> None:
    maps = [axes.images[0].get_array() for axes in draw("buckets").figure.axes if axes.get_xlabel() == "key"]
    assert len(maps) == 3
    for cells in maps:
        assert (cells[1:, 1:] == cells[:-1, :-1]).all()
        assert len(set(cells.ravel().tolist())) > 4


def test_learned() -> None:
    printed = facts("learned", "--tokens", "512", "--dim", "256")
    size = {name: float(number) for name, number in re.findall(r"^  (.*?) +([0-9.]+) [0-9.]+$", printed, re.M)}
    # 131072 draws: a standard deviation is known to 0.2 %, a correlation to 0.0028.
    assert size["tokens"] == pytest.approx(1, rel=0.01) and size["learned"] == pytest.approx(0.02, rel=0.01)
    assert size["tokens + sinusoidal"] == pytest.approx(math.hypot(size["tokens"], size["sinusoidal"]), rel=0.01)
    correlation = re.search(r"correlation.*: (\S+)", printed)
    assert correlation and abs(float(correlation[1])) < 0.014


def test_attention_without_a_position_cannot_tell_equal_words_apart() -> None:
    weights = dict(re.findall(r"^  (.*?) +([0-9.]+ [0-9.]+)$", facts("attention"), re.M))
    first, second = weights.pop("Without").split()
    assert first == second and len(weights) == 5
    for name, pair in weights.items():
        assert len(set(pair.split())) == 2, name


def test_error() -> None:
    printed = facts("error", "--backend", "scalar").splitlines()
    exact = next(line for line in printed if line.startswith("exact: "))
    assert all(float(number) < 3.1e-8 for number in exact.split()[-5:])
    single = next(line for line in printed if line.startswith("hf_f32"))
    assert float(single.split()[-5]) < 1e-3 and float(single.split()[-1]) > 1


def test_speed() -> None:
    printed = facts("speed", SPEEDS)
    assert re.search(r"^rope_table/f32/exact/l2 avx512 \d+×$", printed, re.M)
    assert "libm" not in printed


# ---- what is rejected ----

REJECTED = [
    ([], "no kind of picture was given"),
    (["rop"], "(got 'rop'). Did you mean rope"),
    (["t5", "--tokens", "5"], "unknown argument (got '--tokens')"),
    (["rope", "--problem", "rope_table rotary_dim=8 scaling=linear factor=0.5"], "factor"),
    (["error", "--backend", "avx3"], "avx3"),
    (["learned", "--tokens", "1"], "expected an integer from 2 to 4096 (got '1')"),
    (["attention", "--sentence", "one"], "2 to 12 words (got 'one')"),
    (["speed", "/nowhere.jsonl"], "No such file or directory (got '/nowhere.jsonl')"),
    (["speed", __file__], "line 1 is no record"),
]


@pytest.mark.parametrize("arguments, words", REJECTED)
def test_bad_input_is_named(arguments: List[str], words: str) -> None:
    with pytest.raises(CommandError, match=re.escape(words)) as error:
        plot.main(arguments)
    assert error.value.status == 2


def test_bad_names_of_files(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"ends in .png, .svg, .pdf"):
        plot.main(["t5", "-o", str(tmp_path / "t5.gif")])
    other = tmp_path / "mine.svg"
    other.write_text("my own notes")
    with pytest.raises(CommandError, match="no earlier output"):
        plot.main(["t5", "-o", str(other)])
    assert other.read_text() == "my own notes"
    with pytest.raises(CommandError, match="No such file or directory"):
        plot.main(["t5", "-o", str(tmp_path / "nowhere" / "t5.svg")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.svg"]


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "target.bin"
    link = tmp_path / "link.bin"
    link.symlink_to(target)
    write_file(link, b"begin 1", b"begin", force=False)
    write_file(link, b"begin 2", b"begin", force=False)
    assert target.read_bytes() == b"begin 2" and link.is_symlink()
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(CommandError, match="no ordinary file"):
        write_file(Path("/dev/null"), b"", b"begin", force=True)


def test_the_program_hands_the_command_over(tmp_path: Path) -> None:
    program = os.path.realpath(os.environ["POSENC_PROGRAM"])
    done = subprocess.run([program, "plot", "t5"], cwd=tmp_path, stdout=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 0 and done.stdout.startswith("t5_bias") and (tmp_path / "posenc-t5.png").exists()
    shown = subprocess.run([program, "help", "plot"], stdout=subprocess.PIPE, encoding="utf-8")
    assert shown.returncode == 0 and "usage: posenc plot" in shown.stdout
    wrong = subprocess.run([program, "plot", "t6"], stderr=subprocess.PIPE, encoding="utf-8")
    assert wrong.returncode == 2 and wrong.stderr.startswith("posenc plot: error: ")


def test_help_says_how_to_read_a_picture(capsys: Any) -> None:
    assert plot.main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n  {name} " in listed for name in KINDS)
    with pytest.raises(SystemExit):
        plot.main(["alibi", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "attention heads (default: 8)" in shown and "How to read this: Left: one line for each head" in shown
