"""posenc explain: pages of docs/encodings by any of their names, model files in words, and C code of a model.

Tests that a page names exist and pass. Facts that follow from a model file are compared with the formulas that they
come from. The C code of every preset compiles, and its frequencies are those of the calls of the model.
"""

import csv
import ctypes
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

import pytest
from test_models import gguf_bytes

from posenc.command import CommandError
from posenc.engine import Engine
from posenc.explain.c_code import c_code
from posenc.explain.main import main
from posenc.explain.pages import pages
from posenc.models.calls import frequencies_of
from posenc.models.model import Model, preset, presets

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = next(iter(sorted(Path(Engine().program).resolve().parent.glob("impl/libposenc.so"))), None)
COMPILER = shutil.which(os.environ.get("CC", "cc").split()[-1])
PAGES = " ".join(" ".join(pages().values()).split())


def explain(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Returns the page that the command prints."""
    capsys.readouterr()
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


# ---- the pages of encodings ----


def test_every_case_that_is_named_exists_and_passes() -> None:
    named = set(re.findall(r"`posenc verify --case ([^` ]*)`", PAGES))
    missing = named - set(re.findall(r"^(\S+/\S+)", Engine().run("list", "cases"), re.M))
    assert len(named) >= 70 and len(missing) >= 15
    # In two runs, for each costs more than its cases; those that only a full run has are large.
    statuses: Dict[str, Set[str]] = {}
    for mode, pattern in (("--quick", "*/properties/*,*/memory/*,*/random/calls"), ("--full", "*/properties/large")):
        text = Engine().run("verify", mode, "--backend", "scalar", "--case", pattern, "--out", "csv")
        for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
            statuses.setdefault(row["case"], set()).add(row["status"])
    assert {case: statuses.get(case) for case in missing if statuses.get(case) != {"pass"}} == {}


def test_faults_are_detected_by_the_suite_that_a_page_names() -> None:
    named = re.findall(r"Detected by the suite ([a-z-]*) \(fault `([^`]*)`\)", PAGES)
    lines = (ROOT / "conformance" / "cases" / "faults.txt").read_text().splitlines()
    faults = [line.split(" | ") for line in lines if line.count(" | ") >= 3]
    suites = {fields[0]: fields[2].split("/")[0].split()[0] for fields in faults}
    assert len(named) >= 30 and [pair for pair in named if suites.get(pair[1]) != pair[0]] == []


def test_lists_name_encodings_and_have_a_text_for_each_line() -> None:
    kernels = " ".join(Engine().run("list", "kernels").split())
    for encoding in (
        "Transformer", "tensor2tensor", "fairseq", "timestep embedding", "MAE", "DETR", "RoBERTa", "GPT-NeoX",
        "partial rotary", "dynamic NTK", "YaRN", "LongRoPE", "M-RoPE", "2-D vision RoPE", "xPos", "ALiBi", "T5", "Swin",
        "BEiT", "KERPLE", "Sandwich", "Shaw", "Transformer-XL", "DeBERTa",
    ):  # fmt: skip
        assert encoding in kernels, encoding
    for kind in ("numerics", "scalings", "methods"):
        assert all(len(line.split()) >= 3 for line in Engine().run("list", kind).splitlines()), kind


NAMES = {
    "freq_base": "rope_theta", "n_ctx_orig": "original_max_position_embeddings", "flip_sin_to_cos": "layout",
    "IMROPE": "mrope", "create_position_ids_from_input_ids": "padding_positions", "bfloat16": "dtype",
    "PositionEmbeddingSine": "detr_sine_2d",
}  # fmt: skip


def test_a_page_is_found_by_the_names_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    for name, title in NAMES.items():
        assert f"# {title}\n" in explain(capsys, name)
    printed, page = explain(capsys, "rope_half"), pages()["rope_half"]
    assert re.findall("^## .*", printed, re.M) == re.findall("^## .*", page, re.M)
    assert "llama-3.1-8b" in explain(capsys, "llama3")


REJECTED = [
    (["yam"],
     "no kernel, method, numerics mode, scaling or parameter of this name (got 'yam'). Did you mean dynamic or yarn?"),
    ([], "one of the arguments THING --config"),
    (["rope_half", "yarn"], "unrecognized arguments: yarn"),
    (["--model", "llama-2-7b", "--model", "t5-base"], "--model: expected one model (got 't5-base'"),
    (["yarn", "--model", "llama-2-7b"], "argument --model: not allowed with argument THING"),
    (["--model", "llama-2-7b", "--problem", "alibi"], "not allowed with argument --model"),
    (["--model", "llama-2-7b", "--backend", "scalar"], "not allowed with argument --model"),
]  # fmt: skip


@pytest.mark.parametrize("arguments, words", REJECTED)
def test_bad_input_is_rejected(arguments: List[str], words: str) -> None:
    with pytest.raises(CommandError, match=re.escape(words)):
        main(arguments)


# ---- model files: which key says what, and what was assumed ----

LLAMA = {"model_type": "llama", "hidden_size": 128, "num_attention_heads": 4}
GEMMA4 = {
    "model_type": "gemma4_text", "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"],
    "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
    "per_layer_config": {"1": {"head_dim": 512}},
}  # fmt: skip
# Members of a file, and texts of its page: a quantity, its value and its origin, or a sentence.
FILES: List[Tuple[Dict[str, Any], List[str]]] = [
    ({**LLAMA, "torch_dtype": "bfloat16"}, [
        " storage bf16 torch_dtype\n",
        " length 2048 assumed: the default of its class, as max_position_embeddings is not there\n",
        " head_dim 32 assumed: hidden_size / num_attention_heads, as head_dim is not there\n",
        " scaling none nothing says otherwise\n",
        "(its class: that of llama in transformers, as the survey of it saw (docs/models.md))",
        "taken as the classes of this model_type do: max_position_embeddings 2048"]),
    ({**LLAMA, "head_dim": 64, "rope_parameters": {"rope_type": "linear", "factor": 4, "rope_theta": 5e5}},
     [" rope_theta 500000 rope_parameters.rope_theta\n", " scaling linear rope_parameters.rope_type\n"]),
    ({**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 4}},
     # At twice the length the base is theta (4 * 2 - 3)^(32 / 30), so that the last pair is slowed 5 times.
     ["beyond 2048 tokens the base grows with the sequence; at 4096: dynamic: pair 0 unchanged, pairs 1-15 slowed "
      "1.113 to 5 times"]),
    ({"model_type": "falcon", "new_decoder_architecture": False, "alibi": False, "multi_query": True,
      "parallel_attn": True},
     [" key_heads 1 one for all, as multi_query is there\n"]),
    ({"model_type": "gpt_neox", "rotary_pct": 0.25, "hidden_size": 512, "num_attention_heads": 8,
      "rotary_emb_base": 10000},
     [" rotary_dim 16 0.25 of head_dim (rotary_pct)\n"]),
    ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1},
     [" length 512 max_position_embeddings - (pad_token_id + 1)\n", "position 0 is row 2, the last one, 511, row 513"]),
    ({"model_type": "vit", "image_size": [64, 32], "patch_size": [16, 16], "hidden_size": 32, "num_attention_heads": 4},
     [" length 9 (image_size.0 / patch_size.0) * (image_size.1 / patch_size.1) + 1\n"]),
    ({"model_type": "gemma4", "text_config": GEMMA4}, [
        " rope_theta 10000 text_config.rope_parameters.sliding_attention.rope_theta\n",
        " head_dim 512 text_config.per_layer_config.1.head_dim\n",
        "proportional: pairs 0-63 unchanged, pairs 64-255 stopped"]),
]  # fmt: skip


def squeezed(page: str) -> str:
    """Returns a page with each paragraph on a line, and single spaces."""
    return re.sub(" +", " ", re.sub(r"\n {15}", " ", page))


@pytest.mark.parametrize("members, texts", FILES, ids=[members["model_type"] for members, _ in FILES])
def test_a_file_is_explained(members: Dict[str, Any], texts: List[str], tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(members))
    page = squeezed(explain(capsys, "--config", str(path)))
    assert [text for text in texts if text not in page] == []
    assert members["model_type"] != "vit" or "its class" not in page  # a file that says it all


def test_files_of_llama_cpp_and_of_meta_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gemma3 = {"context_length": 8192, "embedding_length": 64, "block_count": 14, "attention.head_count": 4,
              "attention.sliding_window": 512, "rope.freq_base": 1e6}  # fmt: skip
    members: Dict[str, Any] = {f"gemma3.{key}": value for key, value in gemma3.items()}
    members["general.architecture"] = "gemma3"
    (tmp_path / "slides.gguf").write_bytes(gguf_bytes(json.dumps(members)))
    page = squeezed(explain(capsys, "--config", str(tmp_path / "slides.gguf")))
    for text in (
        " rope_theta 1000000 gemma3.rope.freq_base\n", " rope_theta 10000 llama.cpp's constant for layers that slide\n",
        " layers 12 gemma3.block_count, and which of them slide\n", "- As llama.cpp reads it",
        "ggml forms its angles in f32 (numerics mode ggml_f32)",
    ):  # fmt: skip
        assert text in page
    folder = tmp_path / "Meta's"
    folder.mkdir()
    members = {"dim": 64, "n_layers": 4, "n_heads": 4, "multiple_of": 256, "use_scaled_rope": True}
    (folder / "params.json").write_text(json.dumps(members))
    page = squeezed(explain(capsys, "--config", str(folder)))
    assert " scaling llama3 use_scaled_rope\n" in page
    assert f"posenc verify --config {shlex.quote(str(folder / 'params.json'))}" in page


# ---- presets: wavelengths, pairs that are scaled, magnitude and reach, by their formulas ----

TURN = f"{2 * math.pi:.4g}"
YARN_LOW = int(128 * math.log(32768 / (2 * math.pi * 32)) / (2 * math.log(1e6)))
YARN_HIGH = int(128 * math.log(32768 / (2 * math.pi)) / (2 * math.log(1e6))) + 1
YARN_FACTOR = 0.1 * math.log(4) + 1


def llama3_slowed(pair: int) -> float:
    """Returns how many times slower a pair of Llama 3.1 rotates: 8 above 8192 tokens, less from 8192 / 4 on."""
    share = (8192 / (2 * math.pi * 500000 ** (pair / 64)) - 1) / 3
    return float(1 / ((1 - share) / 8 + share))


def llama3_border(tokens: int) -> int:
    """Returns the first pair with a wavelength of so many tokens."""
    return next(pair for pair in range(64) if 2 * math.pi * 500000 ** (pair / 64) >= tokens)


LOW, HIGH = llama3_border(2048), llama3_border(8192)
PRESETS = {
    "llama-3.1-8b": [
        "all 128 of a head turn, in 64 pairs half of them apart: channel i with channel i + 64",
        f"llama3: pairs 0-{LOW - 1} unchanged, pairs {LOW}-{HIGH - 1} slowed {llama3_slowed(LOW):.4g} to "
        f"{llama3_slowed(HIGH - 1):.4g} times, pairs {HIGH}-63 slowed 8 times",
        f"from {TURN} tokens (pair 0) to 20 470 000 (pair 63); "
        "25 of 64 pairs do not come round within 131 072 positions"],
    "qwen3-8b-yarn": [
        " beta_fast 32 assumed: beta_fast is not there\n",
        f"yarn: pairs 0-{YARN_LOW} unchanged, pairs {YARN_LOW + 1}-{YARN_HIGH - 1} slowed 1.046 to 3.4 times, "
        f"pairs {YARN_HIGH}-63 slowed 4 times",
        f"multiplied by {YARN_FACTOR:.6g} (attention factor), and so scores by its square, {YARN_FACTOR**2:.6g}"],
    "gemma-3-4b": [
        " rope_theta 10000 assumed: the default of its class, as rope_local_base_freq is not there\n",
        " layers 5 text_config.num_hidden_layers, one in 6 full (assumed: sliding_window_pattern)\n",
        f"from {2 * math.pi * 8:.4g} tokens (pair 0) to 45 120 000 (pair 127)",
        f"from {TURN} tokens (pair 0) to 58 470 (pair 127)", "- vision_config is not covered"],
    "phi-3-mini-128k": [
        " factor 32 max_position_embeddings / original_max_position_embeddings\n",
        " long_factor 48, 1.07 to 64.76 rope_scaling.long_factor\n",
        "Up to 4096 longrope: pairs 0-47 slowed 1.1 to 3.05 times",
        "sequences of more than 4096 tokens have other factors, for all of their positions; at 131072: longrope: "
        "pairs 0-47 slowed 1.07 to 64.76 times",
        f"multiplied by {math.sqrt(1 + math.log(32) / math.log(4096)):.6g} (attention factor)"],
    "qwen2-vl-7b": [
        "of the pairs of a patch of a picture turn 16 with its time, 24 with its height, 24 with its width",
        "turn 20 with its row, 20 with its column"],
    # The last bucket begins at 8 (128 / 8)^(7 / 8); that of the decoder at 16 (128 / 16)^(15 / 16).
    "t5-base": [
        f"16 buckets each way: distances 0 to 7 have one each, from {int(8 * 16 ** (7 / 8)) + 1} on all keys "
        "share the last",
        f"32 buckets for keys behind: distances 0 to 15 have one each, from {int(16 * 8 ** (15 / 16)) + 1} on all keys "
        "share the last"],
    "bloom-560m": [
        f"of 16 heads, from {2**-0.5:.6g}, the steepest, to {2**-8:.8g}, the gentlest",
        f"from distance {int(10 * 2**0.5) + 1} on in the steepest head, from {10 * 2**8 + 1} on in the gentlest"],
    "whisper-large-v3": [
        " length 448 max_target_positions\n", f"from {TURN} tokens (pair 0) to 62 830 (pair 639)"],
    # The last of 256 begins where 127 ln(d / 128) / ln(511 / 128) is more than 126.
    "deberta-v3-base": [
        "distances up to 128 have one each, beyond they grow with the distance; from "
        f"{int(128 * (511 / 128) ** (126 / 127)) + 1} on all share the last"],
    "swin-tiny": ["64 of 7 x 7 patches in a picture of 224 x 224 pixels"],
    "beit-base": ["732 rows: 27 x 27 differences, and three for the class token"],
}  # fmt: skip


@pytest.mark.parametrize("name", PRESETS)
def test_facts_of_a_preset_follow_from_its_formulas(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = squeezed(explain(capsys, "--model", name))
    assert [text for text in PRESETS[name] if text not in page] == []


def test_angles_in_f32_are_off_from_where_the_table_of_drift_says(capsys: pytest.CaptureFixture[str]) -> None:
    problem = "rope_table numerics=hf_f32 tokens=131072"
    table = Engine().run("table", "drift", "--model", "llama-3.1-8b", "--problem", problem)
    (first,) = re.findall(r"^0\.001,(\d+)$", table, re.M)
    words = f"off by more than 0.001 first at position {first}, by more than 0.01 nowhere up to position 131071"
    assert words in squeezed(explain(capsys, "--model", "llama-3.1-8b"))


def test_every_quantity_of_a_preset_has_an_origin(capsys: pytest.CaptureFixture[str]) -> None:
    for name in presets():
        lines = explain(capsys, "--model", name).splitlines()
        without = [line for line in lines if line.endswith("nothing says otherwise")]
        assert [line for line in without if not line.lstrip().startswith("scaling")] == [], name


def test_output_in_the_documentation_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "output.md").read_text()
    (example,) = re.findall(r"explained: begin.*?```\n(.*?)```.*?explained: end", text, re.S)
    assert explain(capsys, "--model", "llama-3.1-8b") == example


@pytest.mark.parametrize("arguments, words", [
    (["--config", "{folder}/spiral.json"], "--config: .*rope_type 'spiral' of rope_scaling is unknown; known: default"),
    (["--config", "{folder}/nowhere.json"], "--config: .*nowhere.json: No such file"),
    (["--model", "llama-9"], "--model: model 'llama-9' is unknown"),
])  # fmt: skip
def test_files_that_cannot_be_read_are_rejected(arguments: List[str], words: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "spiral.json").write_text('{"model_type":"llama","rope_scaling":{"rope_type":"spiral","factor":2}}')
    assert main([word.format(folder=tmp_path) for word in arguments]) == 2
    assert re.search(f"posenc explain: {words}", capsys.readouterr().err)


# ---- C code ----


class FreqsView(ctypes.Structure):
    """The first members of struct posenc_freqs_view."""

    _fields_ = [("numerics", ctypes.c_int32), ("dim", ctypes.c_int64), ("n_pairs", ctypes.c_int64),
                ("omega", ctypes.POINTER(ctypes.c_double))]  # fmt: skip


def created_frequencies(compiled: ctypes.CDLL, library: ctypes.CDLL, function: str) -> List[float]:
    """Calls a function of the compiled code and returns the frequencies that it creates."""
    created, view, is_rope = ctypes.c_void_p(), FreqsView(), function.startswith("create_rope")
    assert compiled[function](ctypes.byref(created), None) == 0
    library.posenc_rope_freqs.restype = ctypes.c_void_p
    freqs = library.posenc_rope_freqs(created) if is_rope else created.value
    library.posenc_freqs_view_get(ctypes.c_void_p(freqs), ctypes.byref(view), ctypes.c_size_t(ctypes.sizeof(view)))
    omega: List[float] = view.omega[: view.n_pairs]
    library["posenc_rope_destroy" if is_rope else "posenc_freqs_destroy"](created)
    return omega


def check_code(model: Model, folder: Path) -> int:
    """Compiles the code of a model, and compares its frequencies with those of its calls. Returns their number."""
    code = c_code(model, "--config file")
    (folder / "rope.c").write_text(code, encoding="utf-8")
    include = f"-I{ROOT / 'impl' / 'include'}"
    command = [str(COMPILER), "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fPIC", "-shared", "rope.c",
               include, "-o", "rope.so", str(LIBRARY)]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(LIBRARY), mode=ctypes.RTLD_GLOBAL)
    compiled = ctypes.CDLL(str(folder / "rope.so"))
    functions = re.findall(r"\b(create_\w+)\(", code)
    parts = [part for part in model.reading.parts if part.rotates or part.encoding == "sinusoidal"]
    assert len(functions) == len(set(functions)) == len(parts)
    for function, part in zip(functions, parts):
        text = Engine().run("table", "frequencies", "--problem", str(frequencies_of(part, part.length)))
        want = [float(row["radians"]) for row in csv.DictReader(text.splitlines())]
        assert created_frequencies(compiled, library, function) == want, function
    return len(functions)


@pytest.mark.skipif(LIBRARY is None or COMPILER is None or sys.platform != "linux", reason="no shared library, or no C")
def test_frequencies_of_every_preset(tmp_path: Path) -> None:
    made = 0
    for name in presets():
        model = preset(name)
        folder = tmp_path / name
        folder.mkdir()
        if any(part.rotates or part.encoding == "sinusoidal" for part in model.reading.parts):
            made += check_code(model, folder)
        else:
            with pytest.raises(CommandError):
                c_code(model, "")
    assert made > 30


def test_the_file_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rope.c"
    assert main(["--model", "llama-3.1-8b", "-o", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert "    spec.scaling = POSENC_SCALING_LLAMA3;\n" in text
    assert main(["--model", "llama-2-7b", "-o", str(path)]) == 0  # a file of its own is replaced
    assert path.read_text(encoding="utf-8") != text
    path.write_text("int main(void) {}\n", encoding="utf-8")
    for arguments in (["--model", "llama-2-7b", "-o", str(path)], ["--model", "gpt2", "-o", "-"],
                      ["yarn", "-o", str(path)], ["--model", "gpt2", "--record", "-o", "-"]):  # fmt: skip
        with pytest.raises(CommandError):
            main(arguments)
    assert path.read_text(encoding="utf-8") == "int main(void) {}\n"
    capsys.readouterr()
    assert main(["--model", "llama-3.1-8b", "-o", "-"]) == 0
    assert capsys.readouterr().out == text


def test_a_title_cannot_end_the_comment_or_begin_another() -> None:
    model = preset("llama-2-7b")
    model.reading.facts["title"] = 'x */ #include "/etc/passwd"\n'
    first = c_code(model, "--config '*/' /tmp/*.json\n").splitlines()[0]
    assert first.count("*/") == 1 and first.endswith("*/") and first.count("/*") == 1
