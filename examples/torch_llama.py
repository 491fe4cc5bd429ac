"""Times a model of transformers with its own rotation and with that of posenc.

    python examples/torch_llama.py           in float32
    python examples/torch_llama.py bfloat16

The model is two layers of Llama 3.2 1B with random weights, on one thread. Both rotations alternate. The table has the
median CPU time of each, and the speedup: the median of its rounds and their quartiles.
"""

import statistics
import sys
import time
import warnings
from contextlib import nullcontext
from typing import Any, Callable, List, Tuple

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama

import posenc.torch


def milliseconds(function: Callable[[], Any], calls: int) -> float:
    """Returns the CPU time that a call takes, the mean of `calls`."""
    function()
    start = time.thread_time()
    for _ in range(calls):
        function()
    return (time.thread_time() - start) / calls * 1e3


def compare(function: Callable[[], Any], model: Any, calls: int, rounds: int) -> Tuple[List[float], List[float]]:
    """Returns the times of each round with the rotation of transformers and with that of posenc."""
    theirs: List[float] = []
    ours: List[float] = []
    for i in range(rounds):
        for times in (theirs, ours) if i % 2 == 0 else (ours, theirs):
            with nullcontext() if times is theirs else posenc.torch.apply_to(model):
                times.append(milliseconds(function, calls))
    return theirs, ours


def main(dtype: str = "float32", tokens: int = 512, hidden_size: int = 2048, rounds: int = 24) -> None:
    warnings.simplefilter("ignore", FutureWarning)  # releases of transformers differ in the name of the cache
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1024, hidden_size=hidden_size, intermediate_size=4 * hidden_size, num_hidden_layers=2,
        num_attention_heads=hidden_size // 64, num_key_value_heads=hidden_size // 256, head_dim=64,
    )  # fmt: skip
    model = LlamaForCausalLM(config).to(getattr(torch, dtype)).eval()
    ids = torch.randint(1024, (1, tokens + 1))
    heads = config.num_attention_heads, config.num_key_value_heads
    q, k = (torch.randn(1, tokens, n, 64, dtype=model.dtype).transpose(1, 2) for n in heads)
    cos, sin = model.model.rotary_emb(q, torch.arange(tokens)[None])
    one_token = q[:, :, :1], k[:, :, :1], cos[:, :1], sin[:, :1]

    def prefill() -> Any:
        return model(ids[:, :tokens], use_cache=True)

    with torch.no_grad():
        expected = prefill()
        with posenc.torch.apply_to(model):
            difference = (prefill().logits - expected.logits).abs().max()
        cache = expected.past_key_values

        def decode() -> None:
            model(ids[:, tokens:], past_key_values=cache)
            cache.crop(-1)

        print(f"{'CPU time of one call':27}{'transformers':>13}{'posenc':>13}  speedup")
        for name, function, calls, n in (
            (f"rotation, {tokens} tokens", lambda: modeling_llama.apply_rotary_pos_emb(q, k, cos, sin), 5, rounds),
            ("rotation, 1 token", lambda: modeling_llama.apply_rotary_pos_emb(*one_token), 500, rounds),
            (f"model, {tokens} tokens", prefill, 1, rounds // 2),
            ("model, 1 token", decode, 3, rounds),
        ):
            theirs, ours = compare(function, model, calls, n)
            low, middle, high = statistics.quantiles([their / our for their, our in zip(theirs, ours)])
            print(f"{name:27}{statistics.median(theirs):10.3f} ms{statistics.median(ours):10.3f} ms", end="  ")
            print(f"{middle:.2f}x ({low:.2f} to {high:.2f})", flush=True)
    print(f"largest difference of logits: {difference:.2g}, largest logit: {expected.logits.abs().max():.2g}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
