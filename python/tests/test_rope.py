"""Frequencies, the rotation of a model, and builders, against the C program and published values."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import posenc
import pytest
from conftest import Framework, python_blocks

LLAMA: Dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2,
    "max_position_embeddings": 131072, "rope_theta": 500000.0, "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}  # fmt: skip


def printed_table(*arguments: str) -> Any:
    """Returns the rows that `posenc table` prints, [positions, cosines and sines]."""
    program = os.environ.get("POSENC_PROGRAM") or shutil.which("posenc")
    if not program:
        pytest.skip("the program is missing")
    text = subprocess.run([program, "table", *arguments], capture_output=True, encoding="utf-8", check=True).stdout
    return np.array([line.split(",")[1:] for line in text.splitlines()[1:]], "f4")


# ---- Frequencies ----


def test_frequencies_of_the_formula() -> None:
    freqs = posenc.Frequencies(128, rope_theta=5e5)
    np.testing.assert_allclose(freqs.inv_freq, 5e5 ** (-np.arange(64) / 64), rtol=1e-15)
    assert freqs.inv_freq.dtype == "f8" and not freqs.inv_freq.flags.writeable
    assert (freqs.dim, freqs.attention_factor, freqs.n_axes, freqs.axis) == (128, 1.0, 1, None)
    values = posenc.Frequencies(6, values=[1, 0.5, 0.25]).inv_freq
    assert list(values) == [1, 0.5, 0.25]


def test_frequencies_outlive_their_object() -> None:
    values = posenc.Frequencies(4).inv_freq
    of_rope = posenc.Rope(4).freqs.inv_freq
    posenc.Frequencies(4, rope_theta=7.0)
    assert list(values) == list(of_rope) == [1.0, 0.01]


@pytest.mark.parametrize("numerics", ["exact", "hf_f32", "ggml_f32", "torch_exp_f32"])
def test_numerics(numerics: str) -> None:
    freqs = posenc.Frequencies(64, numerics=numerics)
    assert freqs.inv_freq.dtype == ("f8" if numerics == "exact" else "f4")
    expected = printed_table("--problem", f"rope_table rotary_dim=64 numerics={numerics}", "--positions", "0..3,100000")
    got = posenc.rope_table(freqs, np.array([0, 1, 2, 3, 100000]))
    assert (np.hstack(got) == expected).all()


@pytest.mark.parametrize("parameters", [
    {"scaling": "linear", "factor": 4.0},
    {"scaling": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096.0, "truncate": False},
    {"scaling": "dynamic", "factor": 2.0, "max_position_embeddings": 2048.0, "seq_len": 5000},
    {"scaling": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 8192.0},
    {"scaling": "proportional", "factor": 1.0, "partial_rotary_factor": 0.25},
    {"mrope_section": (8, 4, 4), "mrope_layout": "qwen3_vl"},
])  # fmt: skip
def test_parameters_have_the_names_of_problems(parameters: Dict[str, Any]) -> None:
    words = " ".join(f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else str(value).lower()}"
                     for name, value in parameters.items())  # fmt: skip
    problem = f"rope_table rotary_dim=32 {words} tokens=3 position_offset=70"
    cos, sin = posenc.rope_table(posenc.Frequencies(32, **parameters), range(70, 73))
    assert (np.hstack([cos, sin]) == printed_table("--problem", problem)).all()


def test_wrong_parameters() -> None:
    wrong: List[Tuple[Dict[str, Any], str]] = [
        ({"dim": 0}, "shape"), ({"dim": 2**40}, "shape"), ({"rope_theta": -1.0}, "theta"),
        ({"scaling": "ntk-aware"}, "argument"), ({"scaling": "longrope", "short_factor": [1.0]}, "shape"),
        ({"mrope_section": [1] * 5}, "shape"), ({"mrope_section": [-1, 5]}, "parameter"),
        ({"scaling": "yarn", "factor": 0.5}, "parameter"),
    ]  # fmt: skip
    with pytest.raises(TypeError, match="integer"):
        posenc.Frequencies(8, mrope_section=[2.5, 1.5])  # type: ignore[list-item]
    with pytest.raises(posenc.Error, match="values is of type bytes, expected numbers"):
        posenc.Rope(4, values=bytes(16))
    generator = posenc.Rope(4, values=(value for value in (1.0, 0.5)))
    assert generator.freqs.inv_freq.tolist() == [1.0, 0.5]
    for parameters, status in wrong:
        given: Dict[str, Any] = {"dim": 8, **parameters}
        with pytest.raises(posenc.Error) as raised:
            posenc.Frequencies(**given)
        assert raised.value.status == status, (parameters, raised.value)


# ---- The rotation of a model ----


@pytest.mark.parametrize(("model", "layer_type"), [
    ("llama-3.1-8b", None), ("gemma-3-4b", "full_attention"), ("gemma-3-4b", "sliding_attention"),
    ("deepseek-v3", None), ("qwen3-8b-yarn", None), ("gpt-oss-20b", None), ("glm-4-9b", None), ("phi-2", None),
])  # fmt: skip
def test_models_have_the_tables_of_the_program(model: str, layer_type: Optional[str]) -> None:
    layers = ["--layer-type", layer_type] if layer_type else []
    expected = printed_table("rope_table", "--model", model, *layers, "--positions", "0..2,9999")
    rope = posenc.Rope.from_model(model, layer_type)
    assert (np.hstack(posenc.rope_table(rope.freqs, np.array([0, 1, 2, 9999]))) == expected).all()


def test_config_as_a_file_a_folder_a_dict_and_an_object(tmp_path: Path) -> None:
    class Config:
        def to_dict(self) -> Dict[str, Any]:
            return LLAMA

    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    expected = posenc.Rope.from_model("llama-3.1-8b").freqs.inv_freq
    configs: List[Any] = [tmp_path / "config.json", str(tmp_path), LLAMA, Config()]
    for config in configs:
        rope = posenc.Rope.from_config(config)
        assert (rope.freqs.inv_freq == expected).all() and rope.pairing == "half"


def test_configs_that_are_rejected(tmp_path: Path) -> None:
    rejected: List[Tuple[Any, str]] = [
        ({"model_type": "gpt2", "n_embd": 768, "n_positions": 1024}, "no rotation: its encoding is learned"),
        ({**LLAMA, "rope_scaling": {"rope_type": "nonsense"}}, "nonsense"), (tmp_path / "none.json", "No such file"),
    ]  # fmt: skip
    for config, text in rejected:
        with pytest.raises(posenc.Error, match=text):
            posenc.Rope.from_config(config)
    with pytest.raises(posenc.Error, match="expected one of full_attention, sliding_attention"):
        posenc.Rope.from_model("gemma-3-4b")
    with pytest.raises(posenc.Error, match="expected one of full_attention, sliding_attention"):
        posenc.Rope.from_model("gemma-3-4b", "vision")
    with pytest.raises(posenc.Error, match="did you mean phi-4-mini"):
        posenc.Rope.from_model("phi-3.5-mini")


def test_rotation_has_the_bits_of_the_kernel(framework: Framework) -> None:
    rope = posenc.Rope(64, "interleaved", rope_theta=100.0)
    values = np.random.default_rng(1).standard_normal((2, 5, 3, 64))
    q, k = framework.array(values), framework.array(values[:, :, :1])
    before = framework.numbers(q).copy()
    cos, sin = posenc.rope_table(rope.freqs, range(7, 12))
    expected = framework.numbers(posenc.rope_interleaved(q, cos, sin))
    got_q, got_k = rope(q, k, 7)
    assert (framework.numbers(got_q) == expected).all() and (framework.numbers(got_k) == expected[:, :, :1]).all()
    assert (framework.numbers(q) == before).all()
    positions = framework.array(np.arange(7, 12), "int32")
    assert (framework.numbers(rope(q, positions=positions)) == expected).all()
    if framework.name != "jax":
        assert rope(q, k, 7, inplace=True)[0] is q and (framework.numbers(q) == expected).all()
    else:
        with pytest.raises(posenc.Error, match="read-only"):
            rope(q, inplace=True)


def test_rotation_rejects() -> None:
    rope, x = posenc.Rope(8), np.ones((4, 2, 8), "f4")
    wrong: List[Tuple[Any, str]] = [
        ((x, x[:3]), "shape"), ((x, None, np.zeros(3, "i8")), "shape"), ((x[..., :6],), "rotary_dim"),
        ((x, None, 2**31), "position"), ((x.astype("f8"),), "dtype"),
    ]  # fmt: skip
    for arguments, status in wrong:
        with pytest.raises(posenc.Error) as raised:
            rope(*arguments)
        assert raised.value.status == status, raised.value
    with pytest.raises(posenc.Error, match="is -1"):
        rope.reserve(-1)
    with pytest.raises(posenc.Error, match="odd"):
        posenc.Rope(7)
    rope.reserve(1000)
    assert rope(x, x)[1] is not x and repr(rope) == "posenc.Rope(8, 'half')"


# ---- Builders ----


def test_builders() -> None:
    published: List[float] = [2.0**-i for i in range(1, 9)]
    assert list(posenc.alibi_slopes(8)) == published
    assert len(posenc.alibi_slopes(12)) == 12 and posenc.alibi_slopes(2, 4.0)[0] == 0.25
    assert list(posenc.t5_buckets(8, 16, False).thresholds) == [0, 1, 2, 3, 4, 6, 8, 12]
    assert list(posenc.t5_buckets(8, 16).thresholds) == [0, 1, 2, 6]
    np.testing.assert_allclose(posenc.kerple_log([2.0], [0.5], -1, 3)[0], -2 * np.log1p([0.5, 0, 0.5]), rtol=1e-6)
    np.testing.assert_allclose(posenc.kerple_power([2.0], [0.5], 0, 4)[0], [0, -0.5, -2, -4.5], rtol=1e-6)
    np.testing.assert_allclose(posenc.sandwich(2, [1.0, 2.0], 0, 3)[1], 2 * (np.cos([0, 1, 2]) - 1), rtol=1e-6)
    assert posenc.swin_index(2, 2).tolist() == [[4, 3, 1, 0], [5, 4, 2, 1], [7, 6, 4, 3], [8, 7, 5, 4]]
    assert posenc.beit_index(1, 2).shape == (3, 3)
    assert posenc.shaw_index(2, 3, 1).tolist() == [2, 2, 1, 0]
    assert posenc.transformer_xl_index(2, 3).shape == (4,) and posenc.transformer_xl_index(1, 3).tolist() == [2, 1, 0]
    assert posenc.deberta_index(2, 2, 4).tolist() == [3, 4, 5] and posenc.deberta_index(9, 9, 64, 8).max() < 16
    assert posenc.padding_positions([[1, 1, 0, 1]], 1).tolist() == [[2, 3, 1, 4]]
    whole, part = posenc.learned_fill_normal(7, 10, 4), posenc.learned_fill_normal(7, 3, 4, first_row=5)
    assert (whole[5:8] == part).all() and 0.005 < whole.std() < 0.04


def test_builders_reject() -> None:
    wrong: List[Tuple[Callable[[], Any], str]] = [
        (lambda: posenc.alibi_slopes(0), "shape"), (lambda: posenc.alibi_slopes(-1), "shape"),
        (lambda: posenc.alibi_slopes(8, 65.0), "parameter"), (lambda: posenc.t5_buckets(7, 16), "shape"),
        (lambda: posenc.t5_buckets(8, 2), "parameter"), (lambda: posenc.swin_index(0, 4), "shape"),
        (lambda: posenc.swin_index(257, 1), "shape"), (lambda: posenc.swin_index(-2, -2), "shape"),
        (lambda: posenc.shaw_index(-3, 2, 4), "shape"), (lambda: posenc.deberta_index(4, 4, 8, 7), "shape"),
        (lambda: posenc.kerple_log([1.0, 2.0], [1.0], 0, 4), "shape"),
        (lambda: posenc.kerple_log([-1.0], [1.0], 0, 4), "parameter"),
        (lambda: posenc.learned_fill_normal(1, 2, 0), "shape"), (lambda: posenc.sandwich(3, [1.0], 0, 4), "shape"),
    ]  # fmt: skip
    for call, status in wrong:
        with pytest.raises(posenc.Error) as raised:
            call()
        assert raised.value.status == status, raised.value


# ---- Docs/python.md ----


def test_blocks_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    names: Dict[str, Any] = {}
    *blocks, _ = python_blocks("docs/python.md")  # test_torch_ops.py has the last one
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 4
    assert (names["new_q"].shape, names["y"].dtype, names["bias"].shape) == (names["q"].shape, "float16", (8, 4, 4))
    assert (names["y"] == names["x"]).all() and capsys.readouterr().out == "position 512.0\n"
