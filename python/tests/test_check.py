"""Tests of posenc.check() with the program: right and wrong functions, frameworks, modes, and how a check ends."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Set, Tuple

import pytest

np = pytest.importorskip("numpy", reason="python3-numpy is missing")

from conftest import ROOT, python_blocks  # noqa: E402
from references import FUNCTIONS, rotate, rotate_f64, rotate_interleaved, table  # noqa: E402

import posenc  # noqa: E402
from posenc.checking.kernels import KERNELS  # noqa: E402
from posenc.command import CommandError  # noqa: E402
from posenc.engine import Engine  # noqa: E402

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
FEW = "*/given/*hd96*"  # cases with partial rotation, in less than a second

try:
    PROGRAM = str(Engine().program)
except CommandError as error:
    pytest.skip(str(error), allow_module_level=True)


# ---- Functions under test ----


def ignores_partial(x: Any, cos: Any, sin: Any) -> Any:
    return rotate(x, cos, sin, x.shape[-1])


def rotate_half_heads(x: Any, cos: Any, sin: Any, rotary_dim: int) -> Any:
    """Pairs channels that are head_dim/2 apart, not rotary_dim/2."""
    out, pairs, half = x.copy(), rotary_dim // 2, x.shape[-1] // 2
    a, b, cos, sin = x[..., :pairs], x[..., half : half + pairs], cos[:, None], sin[:, None]
    out[..., :pairs], out[..., half : half + pairs] = a * cos - b * sin, a * sin + b * cos
    return out


def in_f16(array: Any) -> Any:
    return array.astype("f2").astype(array.dtype)


def raises(x: Any, cos: Any, sin: Any) -> Any:
    raise KeyError("missing")


WRONG: Dict[str, Tuple[Callable[..., Any], str]] = {  # a function, and a part of the printed result
    "sign": (lambda x, cos, sin, rotary_dim: rotate(x, cos, -sin, rotary_dim), "the sine has the other sign"),
    "pairs": (rotate_half_heads, "half the head apart: rotary_dim is taken for head_dim"),
    "pairing": (rotate_interleaved, "as by rope_interleaved"),
    "next row": (lambda x, cos, sin, rotary_dim: rotate(x, np.roll(cos, 1, 0), np.roll(sin, 1, 0), rotary_dim), "ulp"),
    "f16 tables": (lambda x, cos, sin, rotary_dim: rotate(x, in_f16(cos), in_f16(sin), rotary_dim), "rounded to f16"),
    "no partial rotation": (ignores_partial, "ValueError"),
    "raises": (raises, "KeyError: 'missing'"),
    "x unchanged": (lambda x, cos, sin: x.copy(), "x is returned unchanged"),
}  # fmt: skip

WRONG_TABLES: Dict[str, Tuple[Callable[..., Any], str]] = {  # of positions, inv_freq and attention_factor
    "base": (lambda p, f, a: table(p, (1e4 ** -(np.arange(len(f)) / len(f))).astype(f.dtype), a), "rope_theta is"),
    "next position": (lambda p, f, a: table(p + 1, f, a), "each position is one too high"),
    "f16": (lambda p, f, a: tuple(map(in_f16, table(p, f, a))), "rounded to f16"),
    "attention factor": (lambda p, f, a: table(p, f, 1.0), "attention factor is missing"),
}  # fmt: skip


# ---- Verdicts ----


@pytest.mark.parametrize("function", [rotate, rotate_f64, posenc.rope_half])
def test_a_right_function_passes(function: Callable[..., Any]) -> None:
    result = posenc.check(function)
    assert result and len(result.best.with_status("pass")) > 40 and not result.failures and result.mistake is None
    lines = str(result).splitlines()
    assert lines[0].startswith(f"PASS  rope_half by {function.__name__} (numpy, f32): ") and len(lines) <= 15
    assert "limit" in lines[-1]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_fails_with_the_reason(name: str) -> None:
    function, reason = WRONG[name]
    result = posenc.check(function, case="*/given/*")
    text = str(result)
    assert not result and reason in text and len(text.splitlines()) <= 15, text
    assert text.splitlines()[-1].startswith("  repeat             posenc.check(")


@pytest.mark.parametrize("name", ["sign", "raises"])
def test_the_shrunk_problem_repeats_a_failure(name: str) -> None:
    function = WRONG[name][0]
    first = posenc.check(function, case="*/random/*")
    (problem,) = [record["problem"] for record in first.failures]
    again = posenc.check(function, problem=problem)
    assert not again and len(again.failures) == 1 and WRONG[name][1] in str(again)
    assert posenc.check(rotate, problem=problem)


def test_a_configuration_adds_its_sizes(tmp_path: Path) -> None:
    class Config:
        def to_dict(self) -> Dict[str, Any]:
            return members

    members = {"model_type": "llama", "hidden_size": 192, "num_attention_heads": 3, "num_hidden_layers": 1}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(members))
    for config in (members, path, str(path), Config()):
        result = posenc.check(rotate, config=config, case="*/model*")
        assert result and result.records[0]["case"] == "rope_half/f32/given/model0-b1-t8-d64"
    result = posenc.check(rotate, model="llama-3.1-8b", case="*/model*")
    assert result and result.records[0]["case"] == "rope_half/f32/given/model0-b1-t8-d128"


def test_nothing_offered_is_no_pass() -> None:
    def nothing(*_: Any) -> Any:
        raise NotImplementedError("nothing is here")

    for case in FEW, None:
        result = posenc.check(nothing, case=case)
        assert not result and "nothing is here" in str(result) and str(result).startswith("FAIL")


# ---- Tables ----


def test_a_table_matches_the_modes_of_its_arithmetic() -> None:
    result = posenc.check(table, "rope_table")
    assert result and result.modes == ["exact", "hf_f32", "torch_exp_f32"], result
    assert str(result).count("|position|") == 5 and len(str(result).splitlines()) <= 15
    assert {record["numerics"] for record in result.records} == {"exact"}
    assert not posenc.check(table, "rope_table", numerics="ggml_f32")


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_a_wrong_table_matches_no_mode(name: str) -> None:
    def function(positions: Any, inv_freq: Any, attention_factor: float) -> Any:
        return WRONG_TABLES[name][0](positions, inv_freq, attention_factor)

    result = posenc.check(function, "rope_table", numerics="hf_f32", max_position=131072)
    assert not result and result.modes == [] and WRONG_TABLES[name][1] in str(result), result


def test_positions_beyond_the_largest_are_not_asked() -> None:
    seen: List[int] = []

    def function(positions: Any, inv_freq: Any, attention_factor: float) -> Any:
        seen.append(int(abs(positions).max()) if positions.size else 0)
        return table(positions, inv_freq, attention_factor)

    result = posenc.check(function, "rope_table", numerics="exact", max_position=1000)
    assert result and max(seen) == 1000
    assert re.search(r"\n  skipped +\d+: positions beyond 1000\b", str(result)), result


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_function_of_numpy_passes_for_each_kernel(kernel: str) -> None:
    result = posenc.check(FUNCTIONS[kernel], kernel, numerics="exact" if KERNELS[kernel].has_modes else None)
    assert result and len(result.best.with_status("pass")) > 10, result


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_table_of_kernels_has_what_prompts_have(kernel: str) -> None:
    described = KERNELS[kernel]
    seen: Set[str] = set()
    words: Set[str] = set()

    def function(*arrays: Any, **parameters: Any) -> Any:
        assert len(arrays) == len(described.arrays)
        words.update(name for name in parameters if name not in described.named)
        seen.update(name for name in described.named if parameters[name] is not None)
        raise NotImplementedError

    mode = "exact" if described.has_modes else None
    result = posenc.check(function, kernel, numerics=mode, dtype="f32", case=f"{kernel}/f32/{mode or 'given'}/*")
    assert result.records and {record["status"] for record in result.records} == {"skipped"}, result.records
    assert seen == set(described.named)
    missing = set(f"{described.parameters} {described.features}".split()) - words
    assert not missing, sorted(words)


# ---- Frameworks ----


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_functions_of_other_frameworks_pass(framework: str) -> None:
    module = pytest.importorskip({"jax": "jax.numpy"}.get(framework, framework))
    result = posenc.check(partial(rotate, module=module), framework=framework, device="cpu", case=FEW)
    assert result and f"({framework}, cpu, f32)" in str(result), result


def test_sixteen_bit_types_are_those_of_the_framework() -> None:
    torch = pytest.importorskip("torch")
    seen = set()

    def function(x: Any, cos: Any, sin: Any, rotary_dim: int) -> Any:
        seen.add(x.dtype)
        return rotate(x.double(), cos.double(), sin.double(), rotary_dim, torch).to(x.dtype)

    assert posenc.check(function, dtype="f16 bf16", framework="torch", case="*/given/*")
    assert seen == {torch.float16, torch.bfloat16}


# ---- The end of a check ----


def test_an_interrupt_ends_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    children: List["subprocess.Popen[bytes]"] = []

    class Recorded(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            children.append(self)

    calls: List[int] = []

    def interrupted(x: Any, cos: Any, sin: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return x.copy()

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    with pytest.raises(KeyboardInterrupt):
        posenc.check(interrupted)
    assert len(calls) == 3 and len(children) == 1 and children[0].poll() is not None
    with pytest.raises(ProcessLookupError):  # of the program and its workers, which form a group
        os.killpg(children[0].pid, 0)


def test_errors_of_the_call_are_errors() -> None:
    with pytest.raises(ValueError, match="unknown kernel"):
        posenc.check(rotate, "rope")
    with pytest.raises(ValueError, match="parameter base, which no problem of rope_half has"):
        posenc.check(lambda x, cos, sin, base: x, case=FEW)
    with pytest.raises(CommandError, match="lama"):
        posenc.check(rotate, model="lama")


def test_a_program_that_cannot_check_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in (("ends", "echo broken >&2; exit 2"), ("missing", "")):
        program = tmp_path / name
        if script:
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        monkeypatch.setenv("POSENC_PROGRAM", str(program))
        with pytest.raises(CommandError, match="broken" if script else "cannot be run"):
            posenc.check(rotate)


# ---- Pages, pytest and standard input ----


@pytest.mark.filterwarnings("ignore:Unknown pytest.mark.posenc")  # if the plug-in is not installed
def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: Dict[str, Any] = {"__name__": "page"}
    for code in python_blocks("docs/check.md"):
        if "transformers" not in code or importlib.util.find_spec("transformers"):
            exec(code, names)
    assert {"test_rotation", "test_table"} <= set(names)
    out = capsys.readouterr().out
    assert "FAIL" not in out
    printed = re.findall("```\n((?:PASS|FAIL).*?)```", (ROOT / "docs" / "check.md").read_text("utf-8"), re.S)
    assert out.startswith(printed[0])

    def rotate(x: Any, cos: Any, sin: Any, rotary_dim: int) -> Any:
        return names["rotate"](x, cos, -sin, rotary_dim)

    assert f"{posenc.check(rotate)}\n" == printed[1]


def test_readme_rotates_and_checks_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = python_blocks("README.md")
    names: Dict[str, Any] = {}
    exec(block.partition("\nfrom transformers")[0], names)
    assert names["q"].shape == (512, 32, 128)
    assert re.match(r"PASS  rope_table by table \(numpy, f32, hf_f32.*\): \d+ passed", capsys.readouterr().out)


def test_readme_checks_a_module(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="transformers is missing")
    (block,) = python_blocks("README.md")
    exec("import posenc\nfrom transformers" + block.partition("\nfrom transformers")[2], {})
    assert capsys.readouterr().out.startswith("PASS  rope_table by LlamaRotaryEmbedding (torch, f32, hf_f32): ")


def test_the_plug_in_makes_a_test_of_each_case(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(f"""
import pytest
from references import rotate
from test_check import ignores_partial

@pytest.mark.posenc(kernel="rope_half", case="{FEW}")
def test_right():
    return rotate

@pytest.mark.posenc("rope_half", case="{FEW}")
def test_wrong():
    return ignores_partial

@pytest.mark.posenc(case="{FEW}")
def test_nothing():
    pass

@pytest.mark.posenc(case="{FEW}")
def test_declines():
    def declines(x, cos, sin):
        raise NotImplementedError("not here")
    return declines

def test_fixture(posenc_check):
    assert posenc_check(rotate, case="{FEW}").modes == ["given"]
    posenc_check(ignores_partial, case="{FEW}")
""")
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    words = [sys.executable, "-m", "pytest", "-p", "posenc.pytest_plugin", "-p", "no:cacheprovider", "-v"]
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
    lines = [line.partition("::")[2].split() for line in done.stdout.splitlines() if line.endswith("%]")]
    verdicts = {words[0]: words[1] for words in lines}
    assert verdicts["test_right[rope_half/f32/given/hd96-r24]"] == "PASSED", done.stdout
    assert verdicts["test_wrong[rope_half/f32/given/hd96-r24]"] == "FAILED"
    assert verdicts["test_nothing[rope_half/f32/given/hd96-r24]"] == "FAILED"
    assert verdicts["test_declines[rope_half/f32/given/hd96-r24]"] == "SKIPPED"
    assert verdicts["test_fixture"] == "FAILED" and "ValueError: operands could not be broadcast" in done.stdout
    assert "must return the function to check" in done.stdout


def test_the_plug_in_imports_numpy_for_a_check_alone() -> None:
    script = "import sys, posenc.pytest_plugin; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, check=False).returncode == 0


def test_a_script_of_ten_lines_is_a_program(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("""
import posenc
from references import rotate, table
def prints(x, cos, sin, rotary_dim):
    print("hello")
    return rotate(x, cos, sin, rotary_dim)
posenc.serve({"rope_half": prints, "rope_table": table}, numerics="exact")
""")
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    words = [PROGRAM, "verify", "-q", "--exec", f"'{sys.executable}' '{script}'", "--case", "*hd96*"]
    done = subprocess.run(words, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0 and "hello" in done.stderr, done.stdout + done.stderr


# ---- Modules of transformers ----


def rotary(kind: str, **members: Any) -> Tuple[Any, Any]:
    """Returns the rotary module of a model type and its configuration."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    names = {"Gemma3": ("Gemma3TextConfig", ""), "Llama4": ("Llama4TextConfig", "Text")}
    config_class, infix = names.get(kind, (f"{kind}Config", ""))
    config = getattr(transformers, config_class)(**members)
    code = importlib.import_module(f"transformers.models.{kind.lower()}.modeling_{kind.lower()}")
    return getattr(code, f"{kind}{infix}RotaryEmbedding")(config), config


LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 8192}


@pytest.mark.parametrize("kind,members", [
    ("Llama", {"head_dim": 64, "max_position_embeddings": 131072, "rope_parameters": LLAMA3}),
    ("Qwen2", {"max_position_embeddings": 32768, "rope_parameters": YARN}),
    ("Gemma3", {}),
    ("Llama4", {}),
])  # fmt: skip
def test_a_module_of_transformers_matches_its_configuration(kind: str, members: Dict[str, Any]) -> None:
    module, config = rotary(kind, **members)
    result = posenc.check_module(module, config)
    assert result and result.modes == ["hf_f32"], result
    assert str(result).count("|position|") == 2 and len(result.records) == 3 * (1 + (kind == "Gemma3")), result
    assert result.name == type(module).__name__
    if kind == "Gemma3":
        assert posenc.check_module(module, layer_type="sliding_attention")


def test_a_module_with_another_base_fails() -> None:
    module, _ = rotary("Llama", head_dim=64)
    result = posenc.check_module(module, rotary("Llama", head_dim=64, rope_parameters=LLAMA3)[1])
    assert not result and "problem" in str(result)
    assert re.search(r"inv_freq .* differ; .* ulp; they are those of rope_theta 10000$", str(result), re.M)


def test_layer_types_that_differ_must_be_named() -> None:
    _, config = rotary("Gemma3")
    module, _ = rotary("Llama", head_dim=256)
    with pytest.raises(ValueError, match="got None.*full_attention, sliding_attention"):
        posenc.check_module(module, config)
    assert posenc.check_module(module, config, layer_type="sliding_attention")
    with pytest.raises(ValueError, match="got chunked.*full_attention, sliding_attention"):
        posenc.check_module(module, config, layer_type="chunked")
