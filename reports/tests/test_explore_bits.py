"""Numbers of the page of posenc explore: each has the bits of posenc table --backend scalar."""

import array
import csv
import ctypes
import json
import struct
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import pytest
from browser import Browser, opened

from posenc.command import CommandError
from posenc.engine import Engine

Spec = Dict[str, Any]


def printed(words: Sequence[str], folder: Path) -> List[List[int]]:
    """Returns the bits of all f32 that posenc table prints, by array. Empty if it rejects the words."""
    path = folder / "out.safetensors"
    try:
        Engine().run("table", *words, "--backend", "scalar", "--force", "--out", f"safetensors:{path}")
    except CommandError:
        return []
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    arrays = []
    for name in sorted(name for name in head if not name.startswith(("__", "position"))):
        begin, end = head[name]["data_offsets"]
        arrays.append(array.array("I", data[8 + size + begin : 8 + size + end]).tolist())
    return arrays


def computed(browser: Browser, scripts: Sequence[str]) -> List[List[List[int]]]:
    """Returns the bits of what the page computes, for each script. Empty if the library rejects it."""
    run = """const lib = explore.lib;
        const bits = (values) => [...new Uint32Array(Float32Array.from(values).buffer)];
        return arguments[0].map((script) => {
            try {
                const found = new Function("lib", `return ${script}`)(lib);
                return (found.cos ? [found.cos, found.sin] : [found]).map(bits);
            } catch (error) {
                if (error.name !== "Error") throw error;
                return [];
            }
        })"""
    return list(browser.js(run, list(scripts)))


def words_of(kernel: str, spec: Spec) -> List[str]:
    """Returns the options of posenc table for a spec."""
    names = {"first": "position_offset", "spacing": "freq_spacing"}
    words = {name: ",".join(map(str, v)) if isinstance(v, list) else str(v).lower() for name, v in spec.items()}
    if kernel == "rope_table":
        words["rotary_dim"] = words.pop("dim")
    places = [words.pop(name) for name in ("positions", "times") if name in words]
    line = " ".join(f"{names.get(name, name)}={text}" for name, text in words.items())
    return ["--problem", f"{kernel} {line}", *(["--positions", *places] if places else [])]


def table(kind: str, spec: Spec, rows: Spec, more: Spec = {}) -> Tuple[List[str], str]:
    """Returns a problem as words of posenc table, and as a script."""
    name = {"sinusoidal": "sinusoidal", "rope_table": "ropeTable"}[kind]
    script = f"lib.{name}({json.dumps(spec)}, {json.dumps({**rows, **more})})"
    return words_of(kind, {**spec, **rows, **more}), script


def mixed(seed: int, index: int) -> int:
    """Returns a draw of conformance/problem/inputs.c."""
    most = 2**64 - 1
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & most
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & most
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & most
    return z ^ (z >> 31)


def activations(seed: int, count: int) -> List[float]:
    """Returns the x of a problem by its recipe."""
    draws = [mixed(mixed(seed, 0), index) for index in range(count)]
    words = [(z >> 63) << 31 | (123 + ((z >> 60) & 7)) << 23 | z & 0x7FFFFF for z in draws]
    return array.array("f", array.array("I", words).tobytes()).tolist()


def rotation(pairing: str, p: Spec, seed: int) -> Tuple[List[str], str]:
    """Returns a rotation, whose cosines and sines are those of base 10000."""
    size = p["tokens"] * p["heads"] * p["head_dim"]
    line = " ".join(f"{name}={str(value).lower()}" for name, value in p.items())
    options = {name: p[name] for name in ("heads", "head_dim", "rotary_offset", "transpose") if name in p}
    options.update(pairing=pairing, first=p.get("position_offset", 0))
    rows = f"lib.ropeTable({{dim: {p['rotary_dim']}}}, {{tokens: {p['rows']}}})"
    script = f"lib.rotate({activations(seed, size)}, {rows}, {json.dumps(options)})"
    return ["--problem", f"rope_{pairing} {line} seed={seed}"], script


LONG = [1 + 0.25 * i for i in range(8)]
SCALINGS: Dict[str, Spec] = {
    "none": {},
    "linear": {"factor": 4},
    "llama3": {"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192},
    "yarn": {"factor": 40, "original_max_position_embeddings": 4096, "mscale": 0.707, "mscale_all_dim": 1},
    "dynamic": {"factor": 2, "max_position_embeddings": 2048, "seq_len": 5000},
    "ntk": {"factor": 3},
    "longrope": {"factor": 32, "original_max_position_embeddings": 4096, "seq_len": 9000,
                 "short_factor": [1.0] * 8, "long_factor": LONG},
    "proportional": {"factor": 2, "partial_rotary_factor": 0.5},
    "resonance": {},
    "resonance_yarn": {"factor": 4, "original_max_position_embeddings": 512, "truncate": False},
}  # fmt: skip
NUMERICS = ("exact", "hf_f32", "ggml_f32", "torch_exp_f32")
SECTIONS = (("qwen2_vl", [2, 3, 3]), ("qwen3_vl", [4, 2, 2]), ("qwen2_vl_vision", [4, 4]), ("pixtral", [4, 4]),
            ("kimi", [4, 4]))  # fmt: skip


def all_tables() -> Iterator[Tuple[List[str], str]]:
    """Yields problems that cover each parameter of sinusoidal and rope_table."""
    for layout in ("interleaved", "sin_cos", "cos_sin"):
        yield table("sinusoidal", {"dim": 7 if layout == "sin_cos" else 8}, {"tokens": 9}, {"layout": layout})
    yield table("sinusoidal", {"dim": 512}, {"tokens": 512})
    yield table("sinusoidal", {"dim": 6, "spacing": "endpoint"}, {"tokens": 70, "first": -3}, {"scale": 0.25})
    yield table("sinusoidal", {"dim": 32}, {"times": [0.5, 999.25, 3]})
    yield table("rope_table", {"dim": 64}, {"positions": [0, 7, -5, 1048576, 2147483647]})
    for scaling, spec in SCALINGS.items():
        for numerics in NUMERICS:
            yield table("rope_table", {"dim": 16, "scaling": scaling, "numerics": numerics, **spec}, {"tokens": 40})
    for inverse in (False, True):
        spec = {"dim": 16, "xpos_scale_base": 512, "xpos_centre": 20, **({"xpos_inverse": True} if inverse else {})}
        yield table("rope_table", spec, {"tokens": 40})
    for mrope, section in SECTIONS:  # a picture of 5 columns, row by row
        axes = [[0] * 15] * (len(section) - 2) + [[t // 5 for t in range(15)], [t % 5 for t in range(15)]]
        spec = {"dim": 16, "mrope_section": section, "mrope_layout": mrope}
        words, script = table("rope_table", spec, {"positions": axes})
        yield [*words_of("rope_table", {**spec, "tokens": 15}), "--grid", "5"], script


def all_others() -> Iterator[Tuple[List[str], str]]:
    """Yields rotations, biases and indices."""
    for pairing in ("half", "interleaved"):
        yield rotation(pairing, {"heads": 2, "tokens": 5, "head_dim": 8, "rotary_dim": 8, "rows": 5}, 3)
        yield rotation(pairing, {"heads": 3, "tokens": 4, "head_dim": 80, "rotary_dim": 32, "rotary_offset": 16,
                                 "rows": 9, "position_offset": 5, "transpose": True}, 4)  # fmt: skip
    scores = {"heads": 6, "queries": 5, "keys": 9, "query_offset": 4}
    problems: List[Tuple[str, Spec, str]] = [  # @ are the parameters
        ("alibi", scores, "lib.alibi(@)"),
        ("alibi", {**scores, "heads": 8, "causal": True}, "lib.alibi(@)"),
        ("alibi", {**scores, "alibi_bias_max": 16}, "lib.alibi({...@, slopes: lib.alibiSlopes(6, 16)})"),
        ("window_bias", {"window_height": 3, "window_width": 5}, "lib.windowIndex(@)"),
        ("window_bias", {"window_height": 2, "window_width": 3, "window_class": True}, "lib.windowIndex(@)"),
    ]
    keys = {"queries": 3, "keys": 400, "query_offset": 200}
    for both in (True, False):
        buckets = {"num_buckets": 32, "max_distance": 128, "bidirectional": both}
        problems.append(("t5_bias", {**buckets, **keys}, "lib.t5Bias(@)"))
    row = {"queries": 1, "keys": 90, "query_offset": 40, "max_distance": 20}  # key 0 has the last column
    problems += [
        ("relative_bias relative=shaw", row, "lib.shawIndex(@).reverse()"),
        ("relative_bias relative=deberta", row, "lib.debertaIndex({position_buckets: 0, ...@}).reverse()"),
        ("relative_bias relative=deberta", {**row, "position_buckets": 8}, "lib.debertaIndex(@).reverse()"),
    ]
    for kernel, p, script in problems:
        line = " ".join(f"{name}={str(value).lower()}" for name, value in p.items())
        recipe = "" if kernel == "alibi" else " heads=1 recipe=index"
        yield ["--problem", f"{kernel} {line}{recipe}"], script.replace("@", json.dumps(p))


PROBLEMS = {"tables": all_tables, "others": all_others}


@pytest.mark.parametrize("problems", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_bits_are_those_of_the_program(browser: Browser, tmp_path: Path, problems: Any) -> None:
    opened(browser)
    cases = list(problems())
    wanted = [printed(words, tmp_path) for words, _ in cases]
    for (words, script), got, want in zip(cases, computed(browser, [script for _, script in cases]), wanted):
        assert got == want, (words, script)
    assert sum(map(bool, wanted)) > len(cases) / 2


def test_frequencies_are_those_of_the_program(browser: Browser) -> None:
    opened(browser)
    for scaling, more in SCALINGS.items():
        spec = {"dim": 16, "scaling": scaling, **more}
        rows = list(csv.DictReader(Engine().run("table", "frequencies", *words_of("rope_table", spec)).splitlines()))
        script = "const f = explore.lib.frequencies(arguments[0]); return [[...f.omega], f.attentionFactor]"
        scaled, factor = browser.js(script, spec)
        unscaled, _ = browser.js(script, {"dim": 16})
        assert scaled == [float(row["radians"]) for row in rows]
        assert unscaled == [float(row["unscaled_radians"]) for row in rows]
        assert {factor} == {float(row["attention_factor"]) for row in rows}


@pytest.mark.parametrize("dtype", ("f16", "bf16"))
def test_rounding_is_that_of_the_program(browser: Browser, tmp_path: Path, dtype: str) -> None:
    opened(browser)
    path = tmp_path / "half.safetensors"
    Engine().run("table", "--problem", f"sinusoidal dim=64 tokens=300 dtype={dtype}", "--backend", "scalar",
                 "--out", f"safetensors:{path}")  # fmt: skip
    half = array.array("H", path.read_bytes()[-2 * 64 * 300 :])
    values = [word << 16 for word in half]
    if dtype == "f16":
        single = array.array("f", struct.unpack(f"<{len(half)}e", half.tobytes()))
        values = array.array("I", single.tobytes()).tolist()
    script = f"lib.roundTo('{dtype}', lib.sinusoidal({{dim: 64}}, {{tokens: 300}}))"
    assert computed(browser, [script]) == [[values]]


def test_random_vectors_are_those_of_the_library(browser: Browser) -> None:
    found = sorted(Path(Engine().program).parent.glob("impl/libposenc.so"))
    if not found:
        pytest.skip("the build has no shared library")
    opened(browser)
    values = (ctypes.c_float * 300)()
    function = ctypes.CDLL(str(found[0])).posenc_learned_fill_normal
    function.argtypes = [ctypes.c_uint64, *[ctypes.c_int64] * 3, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p]
    assert function(7, 0, 3, 100, 0.02, values, None) == 0
    assert computed(browser, ["lib.normal(7, 3, 100, 0.02)"]) == [[array.array("I", bytes(values)).tolist()]]


def test_what_the_library_rejects_is_said(browser: Browser) -> None:
    opened(browser)
    script = """try { explore.lib.ropeTable({dim: 5}, {tokens: 2}); } catch (error) { return error.message; }"""
    assert browser.js(script) == "dim of the frequencies is 5: the dim of a rotation is odd"
