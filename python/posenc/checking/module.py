"""posenc.check_module(): compares a rotary module of transformers with the configuration of its model.

The configuration defines the table of a model by a problem for each type of layers and numerics mode. RotaryModule
calls the module as an implementation of rope_table, and `posenc verify` compares windows of positions.
"""

import importlib
import inspect
import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ..models.model import Model, model_of, read_json, read_model
from .client import Client
from .result import RANGES, CheckResult, Record, Run
from .run import verify

WINDOW = 64  # positions at the end of each range
FIELDS_OF_WINDOW = ("tokens", "position_offset", "seq_len")  # fields of a problem that each window sets
MODES = ("hf_f32", "exact", "torch_exp_f32")
# The modes in f32 round each step correctly, but f32 functions of PyTorch do not. An error of 1 ulp in pow is at most 2
# ulp after scaling.
MOST_ULP = 2
KEPT_FIELDS = ("rope_table", "numerics", "rotary_dim", "rope_theta")  # if the frequencies are those of the module


def _model(config: Any) -> Model:
    if isinstance(config, (str, Path)):
        return read_model(Path(config))
    members = config if isinstance(config, dict) else config.to_dict()
    return model_of(read_json(json.dumps(members, default=str)), str(members.get("model_type", "config")))


def _tables(model: Model) -> Dict[Tuple[str, str], str]:
    """Returns the problem of each table of a text model, by type of layers and numerics mode."""
    tables: Dict[Tuple[str, str], str] = {}
    for case in model.cases:
        kernel, _, mode, name = case.id.split("/", 3)
        if kernel == "rope_table" and name.endswith("-prefill"):
            fields = [field for field in case.problem.split() if field.partition("=")[0] not in FIELDS_OF_WINDOW]
            tables.setdefault((case.layers, mode), " ".join(fields))
    return tables


def _windows(length: int) -> List[Tuple[int, int]]:
    """Returns the first position and the number of positions of the beginning and of the end of each range."""
    ends = sorted({min(WINDOW, length), *(2**n for n in RANGES if 2**n < length), length})
    return [(max(end - WINDOW, 0), min(WINDOW, end)) for end in ends]


def base_of(frequencies: List[float]) -> Optional[float]:
    """Returns the rope_theta whose unscaled frequencies these are, or None."""
    pairs = len(frequencies)
    if pairs < 2 or min(frequencies) <= 0:
        return None
    base = float(frequencies[-1] ** (-pairs / (pairs - 1)))
    is_base = np.allclose(frequencies, base ** (-np.arange(pairs) / pairs), rtol=1e-5, atol=0)
    return base if is_base else None


class RotaryModule:
    """Calls a module as the kernel rope_table: positions to cos and sin of each pair. It notes the frequencies."""

    def __init__(self, module: Any, layer_type: str) -> None:
        self.module = module
        self.layer_type = layer_type
        self.frequencies: Optional[List[float]] = None  # of the module in the first call; some change them in each call
        self.ulp: List[int] = []  # their distances from those of the problem
        self.attention_factor = 1.0  # of the problem
        takes_type = layer_type and "layer_type" in inspect.signature(module.forward).parameters
        self.keywords = {"layer_type": layer_type} if takes_type else {}

    def __call__(
        self, positions: Any, inv_freq: Any, rotary_dim: int, dtype: str, attention_factor: float, axis: Any = None
    ) -> Tuple[Any, Any]:
        """Returns the tables. A module repeats them for both channels of a pair."""
        torch = importlib.import_module("torch")
        element = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
        x = torch.zeros((1, 1, 1), dtype=element, device=positions.device)
        with torch.no_grad():
            tables = self.module(x, positions.unsqueeze(-2), **self.keywords)
        if not isinstance(tables, tuple):  # cos + i sin, as in Llama 4
            tables = (tables.real, tables.imag)
        if self.frequencies is None:  # the first call is that of the problem; others look for known mistakes
            self._compare_frequencies(inv_freq)
            self.attention_factor = attention_factor
        return self._halve(tables[0], rotary_dim // 2), self._halve(tables[1], rotary_dim // 2)

    def _compare_frequencies(self, wanted: Any) -> None:
        """Compares the frequencies of the module with those of the problem."""
        found = getattr(self.module, f"{self.layer_type}_inv_freq", getattr(self.module, "inv_freq", None))
        if found is None or found.shape != wanted.shape or str(found.dtype) != "torch.float32":
            return
        ours, theirs = (np.asarray(values.cpu(), "f4") for values in (found, wanted))
        self.frequencies = ours.tolist()
        self.ulp = (ours.view("i4").astype(int) - theirs.view("i4")).tolist()  # neighbours differ by 1 as integers

    def _halve(self, table: Any, pairs: int) -> Any:
        """Returns a table [1, tokens, pairs or 2 pairs] as [tokens, pairs]."""
        if table.dim() != 3 or table.shape[-1] not in (pairs, 2 * pairs):
            raise ValueError(f"a table has the shape {list(table.shape)}; expected [1, tokens, {2 * pairs}]")
        table = table[0]
        if table.shape[-1] == pairs:
            return table
        for part, other in ((slice(pairs), slice(pairs, None)), (slice(0, None, 2), slice(1, None, 2))):
            if table[:, part].equal(table[:, other]):
                return table[:, part]
        raise ValueError("a table repeats its channels neither by halves nor in pairs")

    def is_near(self) -> bool:
        """Returns whether the frequencies differ from those of the problem, but as little as f32 functions explain."""
        return any(self.ulp) and max(abs(ulp) for ulp in self.ulp) <= MOST_ULP

    def distance(self) -> str:
        """Returns the distance of the frequencies as text; "" if they are equal or unknown."""
        pairs = [pair for pair, ulp in enumerate(self.ulp) if ulp]
        if not pairs:
            return ""
        worst = max(pairs, key=lambda pair: abs(self.ulp[pair]))
        text = f"{len(pairs)} of {len(self.ulp)} differ; pair {worst} by {abs(self.ulp[worst])} ulp"
        base = base_of(self.frequencies or [])
        return text if self.is_near() or not base else f"{text}; they are those of rope_theta {base:.6g}"


class ModuleCheck:
    """Compares the tables of a module with problems."""

    def __init__(self, module: Any, dtype: str, device: Any, traces: Dict[str, str]) -> None:
        self.module, self.dtype, self.device, self.traces = module, dtype, device, traces

    def _verify(self, function: RotaryModule, line: str, window: Tuple[int, int]) -> List[Record]:
        first, tokens = window
        client = Client({"rope_table": function}, framework="torch", device=self.device, dtypes=self.dtype)
        place = f"tokens={tokens} position_offset={first} seq_len={first + tokens} dtype={self.dtype}"
        records = verify(client, ["--problem", f"{line} {place}"])
        self.traces.update(client.traces)
        return records

    def compare(self, run: Run, line: str, layer_type: str, window: Tuple[int, int]) -> None:
        """Compares the tables of a window, and adds records and notes to a run.

        If the frequencies are off by no more than the errors of f32 functions, the tables are compared with these.
        """
        function = RotaryModule(self.module, layer_type)
        records = self._verify(function, line, window)
        distance = function.distance()
        if distance:
            run.notes["inv_freq" + (f", {layer_type.partition('_')[0]}" if layer_type else "")] = distance
        if all(record["status"] == "pass" for record in records) or not function.is_near() or not function.frequencies:
            run.records += records
            return
        fields = [field for field in line.split() if field.partition("=")[0] in KEPT_FIELDS]
        values = ",".join(f"{value:.17g}" for value in function.frequencies)
        fields += [f"attention_factor={function.attention_factor:.17g}", f"inv_freq={values}"]
        run.records += self._verify(RotaryModule(self.module, layer_type), " ".join(fields), window)


def check_module(
    module: Any, config: Any = None, *, layer_type: Optional[str] = None, numerics: Optional[str] = None,
    dtype: str = "f32", max_position: Optional[int] = None, device: Any = None,
) -> CheckResult:  # fmt: skip
    """Checks a rotary module of transformers, such as LlamaRotaryEmbedding, against the configuration of its model.

    The module has forward(x, position_ids), which returns cos and sin of [batch, tokens, rotary_dim]. `config` is a
    configuration of transformers, a dict or a path (default: module.config). Positions up to max_position_embeddings
    are compared in each numerics mode that the configuration defines; the result is true if one matches.
    `layer_type` selects layers whose tables differ, as in Gemma 3.

    Frequencies of the module may be off by 2 ulp, because pow() of PyTorch is not rounded correctly. Its tables must
    then be those of its own frequencies, and the result reports the distance.
    """
    model = _model(module.config if config is None else config)
    tables = _tables(model)
    known = sorted({layers for layers, _ in tables})
    types = [layers for layers in known if layer_type in (None, layers)]
    takes_type = "layer_type" in inspect.signature(module.forward).parameters
    if not types or (len(types) > 1 and not takes_type):
        names = ", ".join(filter(None, known)) or "none"
        raise ValueError(f"layer_type does not select one table (got {layer_type}). Types with a table: {names}.")
    setting = ", ".join(map(str, filter(None, ("torch", device, dtype, layer_type))))
    call = "posenc.check_module(module" + (f", layer_type={layer_type!r}" if layer_type else "")
    result = CheckResult("rope_table", type(module).__name__, setting, call, repeats=False)
    checked = ModuleCheck(module, dtype, device, result.traces)
    for mode in [numerics] if numerics else MODES:
        run = Run(mode, [])
        for layers in types:
            for window in _windows(max_position or model.reading.parts[0].length) if (layers, mode) in tables else ():
                checked.compare(run, tables[layers, mode], layers, window)
        if run.records:
            result.runs.append(run)
    return result
