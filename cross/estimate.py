#!/usr/bin/env python3
"""Prints cycles per element of the kernels' inner loops on cores that need not be at hand, by llvm-mca's models.

    estimate.py [BACKEND CORE]      one core in place of all

clang compiles the loops of impl/loops for each backend, with the library's flags. Of each function llvm-mca runs the
main loop. A turn is one pass through its body; the vectors that it stores have to be those of loops.def.
"""

import json
import platform
import re
import subprocess
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

CLANG, MCA = "clang-19", "llvm-mca-19"


class Backend(NamedTuple):
    """How the loops of a backend are compiled: with the flags of impl/meson.build."""

    machine: str
    flags: str
    vector_bytes: int  # 0: that of the core


class Core(NamedTuple):
    """A core, and the lanes of f32 that a vector has there."""

    backend: str
    lanes: int
    name: str
    borrowed: str = ""  # the core whose model LLVM 19 uses for it


BACKENDS = {
    "neon": Backend("aarch64", "", 16),
    "sve": Backend("aarch64", "-march=armv8.2-a+sve", 0),
    "avx2": Backend("x86_64", "-mavx2 -mfma -mf16c", 32),
    "avx512": Backend(
        "x86_64", "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512", 64
    ),
}
CORES = (
    Core("neon", 4, "cortex-a72", "Cortex-A57"),
    Core("neon", 4, "neoverse-n1"),
    Core("neon", 4, "neoverse-v1"),
    Core("neon", 4, "neoverse-v2"),
    Core("neon", 4, "apple-m1", "Cyclone, 2013"),
    Core("sve", 8, "neoverse-v1"),
    Core("sve", 4, "neoverse-v2"),
    Core("avx2", 8, "znver4"),
    Core("avx2", 8, "icelake-server"),
    Core("avx2", 8, "sapphirerapids"),
    Core("avx512", 16, "znver4"),
    Core("avx512", 16, "icelake-server"),
    Core("avx512", 16, "sapphirerapids"),
)


class Wrong(Exception):
    """The loops, or what a tool prints of them, are not as expected."""


# ---- the main loop of a function ----

LABEL = re.compile(r"(\.LBB\w+):")
BRANCH = re.compile(r"\t(?:j[a-z]+|b(?:\.[a-z]+)?|cbn?z|tbn?z)\t.*?(\.LBB\w+)$")
LEAVES = re.compile(r"\t(?:call|blr?\t|ret|jmp|b\t)")


class Loop(NamedTuple):
    """The main loop of a function, and how many vectors a turn stores."""

    lines: List[str]
    vectors: int


def stored(line: str, vector_bytes: int) -> float:
    """Returns the vectors that an instruction stores; registers put aside on the stack do not count."""
    if "(%rsp" in line or "[sp" in line:
        return 0
    x86 = re.match(r"\tvmov\w+\t%([xyz])mm\d+, .*\(", line)
    if x86:
        return {"x": 16, "y": 32, "z": 64}[x86[1]] / vector_bytes
    if not re.match(r"\t(str|stur|stp|st[1-4][bhwd]?)\t", line):
        return 0
    registers = line.partition("[")[0]
    if vector_bytes:
        return len(re.findall(r"[ \t](?:q\d|v\d+\.(?:4s|2d|16b))", registers)) * 16 / vector_bytes
    return len(re.findall(r"[ \t]z\d", registers))


def main_loop(name: str, assembler: List[str], vector_bytes: int) -> Loop:
    """Returns the innermost loop that stores most vectors, up to the first branch back to its begin.

    clang's comments say which labels begin innermost loops. llvm-mca follows no branches, so a turn has to run from
    top to bottom.
    """
    text: List[str] = []
    places: Dict[str, int] = {}
    inner = set()
    label, first, last, most = "", 0, 0, 0.0
    for line in assembler:
        found = LABEL.match(line)
        if found:
            label = found[1]
            places[label] = len(text)
        if "This Inner Loop Header" in line:
            inner.add(label)
        if not re.match(r"\t[a-z]", line):
            continue
        text.append(re.sub(r"[ \t]+(#|//)([ \t].*)?$", "", line))
        branch = BRANCH.match(text[-1])
        if branch and branch[1] in inner:
            inner.discard(branch[1])
            begin = places[branch[1]]
            stores = sum(stored(line, vector_bytes) for line in text[begin:])
            if stores > most:
                first, last, most = begin, len(text), stores
    if not most or most != int(most):
        raise Wrong(f"{name}: no loop that stores whole vectors")
    for at in range(first, last):
        branch = BRANCH.match(text[at])
        skips = branch and at + 1 < last and first < places.get(branch[1], 0) < last
        if LEAVES.match(text[at]) or skips:
            raise Wrong(f"{name}: its main loop is not run from top to bottom:{text[at]}")
    return Loop(text[first:last], int(most))


def main_loops(assembler: str, vector_bytes: int) -> Dict[str, Loop]:
    """Returns the main loop of each function loop_NAME."""
    found: Dict[str, Loop] = {}
    for function in re.finditer(r"^loop_(\w+):(.*?)^\.Lfunc_end", assembler, re.M | re.S):
        found[function[1]] = main_loop(function[1], function[2].splitlines(), vector_bytes)
    if not found:
        raise Wrong("no function loop_NAME")
    return found


# ---- what llvm-mca says ----


def bottleneck(mca: Any, region: Any) -> str:
    """Returns the part of the core that is busy nine tenths of the time or more; latency if there is none."""
    summary, units = region["SummaryView"], mca["TargetInfo"]["Resources"]
    cycles = 0.9 * summary["TotalCycles"] / summary["Iterations"]
    whole = len(region["Instructions"])  # the index behind the instructions is that of all together
    busy: List[Tuple[float, str]] = [
        (use["ResourceUsage"], units[use["ResourceIndex"]].partition(".")[0])
        for use in region["ResourcePressureView"]["ResourcePressureInfo"]
        if use["InstructionIndex"] >= whole
    ]
    most, unit = max(busy, key=lambda use: use[0], default=(0.0, ""))
    dispatch: float = summary["TotaluOps"] / summary["Iterations"] / summary["DispatchWidth"]
    if dispatch >= max(most, cycles):
        return "dispatch"
    return unit if most >= cycles else "latency"


def estimates(mca: Any, loops: Dict[str, Loop], lanes: int) -> Dict[str, Tuple[float, str]]:
    """Returns cycles per element of each loop, and what it waits for."""
    found = {}
    for region in mca["CodeRegions"]:
        name, summary = region["Name"], region["SummaryView"]
        if name in loops:
            turn = summary["TotalCycles"] / summary["Iterations"]
            found[name] = (turn / loops[name].vectors / lanes, bottleneck(mca, region))
    missing = sorted(set(loops) - set(found))
    if missing:
        raise Wrong(f"llvm-mca has no region {missing[0]}")
    return found


# ---- tools ----


def run(command: List[str], words: str = "") -> str:
    """Returns what a tool prints."""
    try:
        done = subprocess.run(command, input=words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    except OSError as error:
        raise Wrong(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise Wrong(done.stderr.strip())
    return done.stdout


def stated() -> Dict[str, int]:
    """Returns the loops of loops.def, and the vectors that a turn stores."""
    with open("impl/loops/loops.def", encoding="utf-8") as file:
        rows = re.findall(r"^LOOP\((\w+), (\w+), (\w+), (\d+)\)", file.read(), re.M)
    return {"__".join(names): int(vectors) for *names, vectors in rows}


def compiled(name: str) -> Dict[str, Loop]:
    """Returns the main loops of a backend. None is unrolled, as gcc unrolls none."""
    backend = BACKENDS[name]
    headers = [] if backend.machine == platform.machine() else ["-isystem", f"/usr/{backend.machine}-linux-gnu/include"]
    command = [CLANG, f"--target={backend.machine}-linux-gnu", *backend.flags.split(), *headers, "-std=c11", "-O3",
               "-ffp-contract=off", "-fno-unroll-loops", "-fno-asynchronous-unwind-tables", "-I.", "-Iimpl/include",
               f'-DPOSENC_SIMD="impl/simd/simd_{name}.h"', f"-DPOSENC_ISA={name}"]  # fmt: skip
    loops = main_loops(run([*command, "-S", "impl/loops/loops.c", "-o", "-"]), backend.vector_bytes)
    for loop, vectors in stated().items():
        if loop not in loops:
            raise Wrong(f"{name}: no loop {loop}")
        if loops[loop].vectors != vectors:
            raise Wrong(f"{name}: a turn of {loop} stores {loops[loop].vectors} vectors; loops.def states {vectors}")
    return loops


def estimate(core: Core, loops: Dict[str, Loop]) -> Dict[str, Tuple[float, str]]:
    """Runs the loops through the model of a core."""
    regions = [f"# LLVM-MCA-BEGIN {name}\n" + "\n".join(loop.lines) + "\n# LLVM-MCA-END\n"
               for name, loop in loops.items()]  # fmt: skip
    triple = f"{BACKENDS[core.backend].machine}-linux-gnu"
    mca = run([MCA, f"-mtriple={triple}", f"-mcpu={core.name}", "-iterations=1000", "--json"], "".join(regions))
    return estimates(json.loads(mca, strict=False), loops, core.lanes)


def print_table(backend: str, cores: List[Core], found: List[Dict[str, Tuple[float, str]]]) -> None:
    """Prints a row for each loop, and a column for each core."""
    head = [f"{core.name}{' (' + core.borrowed + ')' if core.borrowed else ''}" for core in cores]
    print(f"\n{backend:34}" + "".join(f"  {name:>26}" for name in head))
    for loop in found[0]:
        cells = [f"{one[loop][0]:.3f} {one[loop][1]:<14}" for one in found]
        print(f"{loop.replace('__', ' '):34}" + "".join(f"  {cell:>26}" for cell in cells))


def main(arguments: List[str]) -> int:
    """Prints the tables of all backends, or of the core that is named."""
    chosen: Optional[Tuple[str, ...]] = tuple(arguments) or None
    cores = [core for core in CORES if chosen in (None, (core.backend, core.name))]
    if not cores:
        print(f"estimate.py: no such core: {' '.join(arguments)}", file=sys.stderr)
        return 2
    print("Cycles per element, and what the loop waits for: models, not measurements. All data is in L1.")
    try:
        for backend in dict.fromkeys(core.backend for core in cores):
            loops = compiled(backend)
            alike = [core for core in cores if core.backend == backend]
            print_table(backend, alike, [estimate(core, loops) for core in alike])
    except Wrong as wrong:
        print(f"estimate.py: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
