"""Runs the code of README and docs/python.md."""

import re
from pathlib import Path
from typing import Any, Dict

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_blocks_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    names: Dict[str, Any] = {}
    text = (ROOT / "docs" / "python.md").read_text("utf-8")
    text = text.partition("## In a PyTorch model")[0]  # test_torch_ops.py has the rest
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 4
    assert (names["new_q"].shape, names["y"].dtype, names["bias"].shape) == (names["q"].shape, "float16", (8, 4, 4))
    assert (names["y"] == names["x"]).all() and capsys.readouterr().out == "position 512.0\n"


def readme_block() -> str:
    (block,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    return str(block)


def test_readme_rotates_and_checks_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    names: Dict[str, Any] = {}
    exec(readme_block().partition("\nfrom transformers")[0], names)
    assert names["q"].shape == (512, 32, 128)
    assert re.match(r"PASS  rope_table by table \(numpy, f32, hf_f32.*\): \d+ passed", capsys.readouterr().out)


def test_readme_checks_a_module(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="transformers is missing")
    exec("import posenc\nfrom transformers" + readme_block().partition("\nfrom transformers")[2], {})
    assert capsys.readouterr().out.startswith("PASS  rope_table by LlamaRotaryEmbedding (torch, f32, hf_f32): ")
