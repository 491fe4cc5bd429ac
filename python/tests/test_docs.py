"""Runs the code of docs/python.md."""

import re
from pathlib import Path
from typing import Any, Dict

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_blocks_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    names: Dict[str, Any] = {}
    text = PAGE.read_text(encoding="utf-8").partition("## In a PyTorch model")[0]  # test_torch_ops.py has the rest
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 4
    assert (names["new_q"].shape, names["y"].dtype, names["bias"].shape) == (names["q"].shape, "float16", (8, 4, 4))
    assert (names["y"] == names["x"]).all() and capsys.readouterr().out == "position 512.0\n"
