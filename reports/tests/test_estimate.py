"""The two steps of ./run estimate that are ours, without its compiler: the main loop, and the numbers."""

import importlib.util
import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

_SPEC = importlib.util.spec_from_file_location("estimate", Path(__file__).parents[2] / "cross" / "estimate.py")
assert _SPEC and _SPEC.loader
estimate: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(estimate)

# The loop over rows stores two vectors a turn, one more on the stack, and leaves for a call that lies behind its first
# end; the loop before it stores one.
ASSEMBLER = """\
loop_a:                                 # @loop_a
# %bb.0:
\t.p2align\t4, 0x90
.LBB0_1:                                # =>This Inner Loop Header: Depth=1
\tvmovups\t%ymm0, (%rdi)
\tjne\t.LBB0_1
\tjmp\t.LBB0_4
.LBB0_3:                                #   in Loop: Header=BB0_4 Depth=1
\tincl\t%ebp
\tjne\t.LBB0_2
.LBB0_4:                                # =>This Loop Header: Depth=1
                                        #     Child Loop BB0_5 Depth 2
\tvmovups\t%ymm9, (%rdi)
.LBB0_5:                                #   Parent Loop BB0_4 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
\tvmovups\t(%rsi), %ymm0
\t#APP
\t#NO_APP
\tvmovups\t%ymm0, 64(%rsp)                 # 32-byte Spill
\tvmovups\t%ymm0, (%rdi)
\tvmovupd\t%ymm1, 32(%rdi)
\tjne\t.LBB0_7
.LBB0_6:                                #   in Loop: Header=BB0_5 Depth=2
\tdecq\t%r14
\tjne\t.LBB0_5
\tjmp\t.LBB0_3
.LBB0_7:                                #   in Loop: Header=BB0_5 Depth=2
\tcallq\tmend_small
\tvmovups\t%ymm0, (%rdi)
\tjne\t.LBB0_5
.Lfunc_end0:
"""


def test_the_innermost_loop_that_stores_most_is_taken_to_its_first_end() -> None:
    (loop,) = estimate.main_loops(ASSEMBLER, 32).values()
    assert loop.vectors == 2
    assert [line.strip() for line in loop.lines] == [
        "vmovups\t(%rsi), %ymm0", "vmovups\t%ymm0, 64(%rsp)", "vmovups\t%ymm0, (%rdi)", "vmovupd\t%ymm1, 32(%rdi)",
        "jne\t.LBB0_7", "decq\t%r14", "jne\t.LBB0_5",
    ]  # fmt: skip


def turn(vector_bytes: int, *lines: str) -> int:
    """Returns the vectors that a loop of these lines stores."""
    body = "".join(f"{line}\n" if line.startswith(".") else f"\t{line}\n" for line in lines)
    text = f"loop_a:\n.LBB0_1:  // =>This Inner Loop Header: Depth=1\n{body}\tb.ne\t.LBB0_1\n.Lfunc_end0:\n"
    vectors: int = estimate.main_loops(text, vector_bytes)["a"].vectors
    return vectors


@pytest.mark.parametrize("vectors, vector_bytes, lines", [
    (1, 16, ["str\tq0, [x0], #16"]),
    (2, 16, ["stp\tq0, q1, [x0, #-32]"]),
    (2, 16, ["st2\t{ v0.4s, v1.4s }, [x8]"]),
    (1, 0, ["st1w\t{ z0.s }, p0, [x0, #1, mul vl]"]),
    (2, 0, ["st2w\t{ z0.s, z1.s }, p3, [x25]"]),
    (1, 0, ["st1b\t{ z1.b }, p1, [x2, x11]"]),
    (1, 64, ["vmovups\t%zmm16, -64(%r12)"]),
    (2, 64, ["vmovups\t%zmm16, (%r12)", "vmovups\t%ymm16, (%r12)", "vextractf64x4\t$1, %zmm1, %ymm2",
             "vmovaps\t%ymm1, 32(%rdi,%rax,4)"]),
])  # fmt: skip
def test_stores_are_counted(vectors: int, vector_bytes: int, lines: List[str]) -> None:
    assert turn(vector_bytes, *lines) == vectors


@pytest.mark.parametrize("words, lines", [
    ("whole vectors", ["vmovups\t%ymm16, (%r12)"]),
    ("callq", ["vmovups\t%zmm1, (%rdi)", "callq\tmend_small"]),
    ("top to bottom", ["je\t.LBB0_2", "vmovups\t%zmm1, (%rdi)", ".LBB0_2:"]),
])  # fmt: skip
def test_loops_that_are_rejected(words: str, lines: List[str]) -> None:
    with pytest.raises(estimate.Wrong, match=words):
        turn(64, *lines)


def test_functions_that_are_rejected() -> None:
    with pytest.raises(estimate.Wrong, match="a: no loop"):
        estimate.main_loops("loop_a:\n\tret\n.Lfunc_end0:\n", 32)
    with pytest.raises(estimate.Wrong, match="no function"):
        estimate.main_loops("", 32)


def answer(busy: float, micro_operations: int) -> Any:
    """What llvm-mca prints of a loop: eight cycles a turn."""
    text = """{"CodeRegions": [{"Name": "a", "Instructions": ["a", "b"],
        "ResourcePressureView": {"ResourcePressureInfo": [
            {"InstructionIndex": 0, "ResourceIndex": 0, "ResourceUsage": 8},
            {"InstructionIndex": 2, "ResourceIndex": 0, "ResourceUsage": 1},
            {"InstructionIndex": 2, "ResourceIndex": 1, "ResourceUsage": BUSY}]},
        "SummaryView": {"DispatchWidth": 4, "Iterations": 100, "TotalCycles": 800, "TotaluOps": OPERATIONS}}],
        "TargetInfo": {"CPUName": "some-core", "Resources": ["UnitA", "UnitB.\\u0001"]}}"""
    return json.loads(text.replace("BUSY", str(busy)).replace("OPERATIONS", str(micro_operations)))


@pytest.mark.parametrize("busy, operations, waits", [
    (7.5, 800, "UnitB"), (7.1, 3200, "dispatch"), (7.1, 800, "latency"),
])  # fmt: skip
def test_cycles_and_bottleneck(busy: float, operations: int, waits: str) -> None:
    loops: Dict[str, Any] = {"a": estimate.Loop([], 8)}
    assert estimate.estimates(answer(busy, operations), loops, 4) == {"a": (0.25, waits)}


def test_what_is_missing_is_named() -> None:
    with pytest.raises(estimate.Wrong, match="no region b"):
        estimate.estimates(answer(1, 1), {"b": estimate.Loop([], 8)}, 4)
    with pytest.raises(estimate.Wrong, match="no-such-tool"):
        estimate.run(["no-such-tool"])
    assert estimate.main(["avx2", "no-such-core"]) == 2


def test_the_loops_are_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    assert estimate.stated()["rope_half__given__plain"] == 8 and len(estimate.stated()) == 16
