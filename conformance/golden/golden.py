"""Makes the golden vectors, and compares the oracle and the library with MPFR.

    golden.py --out MODULE ROOT        write ROOT/vectors
    golden.py --check MODULE ROOT      make the vectors again and compare byte for byte
    golden.py --certify MODULE ROOT    compare published figures, the oracle and the library with MPFR
    golden.py --builders MODULE ROOT   compare the library's builders of indices, slopes, biases and initial values

MODULE is the shared object of problems.c. ROOT is the folder conformance, with cases/ and vectors/. The committed
vectors are GROUP.safetensors and SHA256SUMS, which has the hashes of these files and of the files of cases.

Exit status: 0 success, 1 a disagreement, 2 usage or files.

The other modules, from the lowest layer up:

    rounding.py              numbers of many bits by MPFR, f32 arithmetic step by step, rounding to odd
    problem.py               problems with their inputs, from the shared object; exponents and axes of their pairs
    scalings.py, freqs.py    frequencies of a spec; sines and cosines of their angles; positions near zeros
    reference.py             expected outputs of every kernel
    certify.py               compares the oracle and the library with these, and checks flags of cases
    check_*.py               check the oracle's arithmetic, the library's builders, published figures
"""

import hashlib
import json
import multiprocessing
import struct
import sys
from itertools import groupby
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, NamedTuple, Tuple

import check_builders
import certify
import reference
from problem import Disagreement, Failure, GoldenCase, little_endian, read_cases, read_problem


class Tensor(NamedTuple):
    """An output of a golden case, f64 in row order."""

    case: GoldenCase
    name: str
    shape: Tuple[int, int]
    data: bytes


def make_tensors(case: GoldenCase) -> List[Tensor]:
    """Returns the outputs of a case by MPFR."""
    p = read_problem(case.line)
    computed = zip(p.outputs, reference.outputs(p))
    return [Tensor(case, out.name, (out.rows, out.width), little_endian(values)) for out, values in computed]


# ---- Files ----


def without_duplicates(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yields the tensors to store. Cases that differ in dtype alone often have the same outputs, stored once."""
    seen = set()
    for tensor in tensors:
        key = tensor.case.id_without_dtype, tensor.name, tensor.shape, tensor.data
        if key not in seen:
            yield tensor
        seen.add(key)


def safetensors(tensors: List[Tensor]) -> bytes:
    """Returns a safetensors file (github.com/huggingface/safetensors) whose data begins at a multiple of 8."""
    header: Dict[str, Dict[str, object]] = {}
    begin = 0
    for tensor in tensors:
        end = begin + len(tensor.data)
        offsets = [begin, end]
        header[f"{tensor.case.id}.{tensor.name}"] = {"dtype": "F64", "shape": tensor.shape, "data_offsets": offsets}
        begin = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(tensor.data for tensor in tensors)


def make_files(tensors: List[Tensor], root: Path) -> Dict[str, bytes]:
    """Returns the files of vectors/, SHA256SUMS last."""
    files, sums = {}, []

    def add_sum(name: str, data: bytes) -> None:
        sums.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")

    add_sum("cases/flags.txt", (root / "cases/flags.txt").read_bytes())
    for group, of_group in groupby(tensors, key=lambda tensor: tensor.case.group):
        name = f"vectors/{group}.safetensors"
        files[name] = safetensors(list(without_duplicates(of_group)))
        add_sum(f"cases/golden/{group}.txt", (root / f"cases/golden/{group}.txt").read_bytes())
        add_sum(name, files[name])
    files["vectors/SHA256SUMS"] = "".join(sums).encode()
    return files


# ---- Actions ----


def write(tensors: List[Tensor], root: Path) -> str:
    """Writes the files of vectors/."""
    files = make_files(tensors, root)
    for name, data in files.items():
        (root / name).write_bytes(data)
    return f"{len(files)} files written"


def check(tensors: List[Tensor], root: Path) -> str:
    """Makes the files of vectors/ again and compares them; also compares the tensors that C reads for each case."""
    files = make_files(tensors, root)
    committed = {f"vectors/{path.name}" for path in (root / "vectors").iterdir() if not path.name.startswith(".")}
    wrong = [
        f"{name}: not what the generator makes"
        for name in sorted(committed | set(files))
        if not (name in committed and (root / name).read_bytes() == files.get(name))
    ]
    if wrong:
        raise Disagreement("\n".join(wrong))
    hashes: Dict[str, List[str]] = {}
    for tensor in tensors:
        hashes.setdefault(tensor.case.id, []).append(hashlib.sha256(tensor.data).hexdigest())
    for case in read_cases(root, tensors=True):
        if case.hashes != hashes.pop(case.id, None):
            raise Disagreement(f"{case.id} is read with another tensor than its own")
    if hashes:
        raise Disagreement(f"{', '.join(sorted(hashes))}: not read by C")
    return f"{root}/vectors is what the generator makes: {len(tensors)} tensors"


def main() -> int:
    """Runs the action of the command line."""
    actions = ("--out", "--check", "--certify", "--builders")
    if len(sys.argv) != 4 or sys.argv[1] not in actions:
        print(f"usage: golden.py {' | '.join(actions)} MODULE ROOT", file=sys.stderr)
        return 2
    action, root = sys.argv[1], Path(sys.argv[3])
    try:
        with multiprocessing.Pool() as pool:
            if action == "--certify":
                print(certify.certify(pool, root))
            elif action == "--builders":
                print(check_builders.check(pool))
            else:
                tensors = [tensor for of_case in pool.imap(make_tensors, read_cases(root)) for tensor in of_case]
                print((write if action == "--out" else check)(tensors, root))
    except Disagreement as disagreement:
        print(f"golden: {disagreement}", file=sys.stderr)
        return 1
    except (Failure, OSError) as error:
        print(f"golden: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
