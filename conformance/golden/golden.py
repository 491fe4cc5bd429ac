"""Makes the golden vectors, and compares the oracle and the library with MPFR.

    golden.py --out MODULE ROOT        writes ROOT/vectors
    golden.py --check MODULE ROOT      makes them again and compares byte for byte
    golden.py --certify MODULE ROOT    published figures, then the oracle and the library against MPFR
    golden.py --builders MODULE ROOT   the library's builders of indices, slopes, biases and initial values

MODULE is the shared object of problems.c. ROOT has cases/ and vectors/. The committed vectors are
GROUP.safetensors and SHA256SUMS, which has the hashes of the tensors and of the files of cases.

Exit status: 0 success, 1 a disagreement, 2 usage or files.

    exact.py                                numbers of many bits, f32 by single steps, rounding to odd
    frequencies.py, scalings.py, plan.py    fields of a problem, then frequencies, then sines, cosines and their zeros
    problem.py, reference.py                problems and their inputs from C, then the outputs of every kernel
    certify.py, published.py                comparisons with the oracle and the library, and with figures of papers
    flags.py, arithmetic.py, builders.py    checks of cases, of the oracle's arithmetic and of the library's builders
"""

import hashlib
import json
import multiprocessing
import struct
import sys
from itertools import groupby
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, NamedTuple, Tuple

import builders
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
    made = zip(p.outputs, reference.outputs(p))
    return [Tensor(case, output.name, (output.rows, output.width), little_endian(values)) for output, values in made]


# ---- Files ----


def stored(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """Omits a tensor that equals that of an earlier case which differs in its type alone."""
    seen = set()
    for tensor in tensors:
        key = tensor.case.unstored, tensor.name, tensor.shape, tensor.data
        if key not in seen:
            yield tensor
        seen.add(key)


def safetensors(tensors: List[Tensor]) -> bytes:
    """Returns a file of tensors (github.com/huggingface/safetensors), its data at a multiple of 8."""
    header: Dict[str, Dict[str, object]] = {}
    at = 0
    for tensor in tensors:
        end = at + len(tensor.data)
        header[f"{tensor.case.id}.{tensor.name}"] = {"dtype": "F64", "shape": tensor.shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(tensor.data for tensor in tensors)


def make_files(tensors: List[Tensor], root: Path) -> Dict[str, bytes]:
    """Returns the files of vectors/, SHA256SUMS last."""
    files, sums = {}, []

    def add_sum(name: str, data: bytes) -> None:
        sums.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")

    add_sum("cases/flags.txt", (root / "cases/flags.txt").read_bytes())
    for group, those in groupby(tensors, key=lambda tensor: tensor.case.group):
        name = f"vectors/{group}.safetensors"
        files[name] = safetensors(list(stored(those)))
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
    there = {f"vectors/{path.name}" for path in (root / "vectors").iterdir() if not path.name.startswith(".")}
    wrong = [
        f"{name}: not what the generator makes"
        for name in sorted(there | set(files))
        if not (name in there and (root / name).read_bytes() == files.get(name))
    ]
    if wrong:
        raise Disagreement("\n".join(wrong))
    made: Dict[str, List[str]] = {}
    for tensor in tensors:
        made.setdefault(tensor.case.id, []).append(hashlib.sha256(tensor.data).hexdigest())
    for case in read_cases(root, tensors=True):
        if case.hashes != made.pop(case.id, None):
            raise Disagreement(f"{case.id} is read with another tensor than its own")
    if made:
        raise Disagreement(f"{', '.join(sorted(made))}: not read by C")
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
                print(builders.check(pool))
            else:
                made = list(pool.imap(make_tensors, read_cases(root)))
                tensors = [tensor for of_case in made for tensor in of_case]
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
