"""posenc scoreboard: how the implementations that are installed here compare, as one page.

measure.py writes a record for each row of each adapter; render() makes the page of them. The records of a run are one
about the machine, then for each adapter its versions and its rows.
"""

import ast
import contextlib
import datetime
import importlib
import json
import os
import platform
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

import jinja2
from markupsafe import Markup

from .. import units
from ..command import CommandError, Parser, check_output, file_path, positive, read_text, write_file
from ..report.page import environment

HERE = Path(__file__).parent
ADAPTERS = (HERE / "adapters", HERE.parents[2] / "adapters")  # installed, or in the repository
MARKER = b"posenc scoreboard"
ABOUT = """Runs every adapter whose library is installed, and writes one page: verdict, error
by decade of position, and speed beside posenc on the same arrays."""
EPILOG = """Run it with the Python that has the libraries: python -m posenc scoreboard.

Examples
  posenc scoreboard -o scoreboard.html -o scoreboard.jsonl
  posenc scoreboard adapters/pytorch.py
  posenc scoreboard --from scoreboard.jsonl -o scoreboard.md

Exit codes: 0 success; 1 a FILE could not be measured, or an implementation
of it differs; 2 bad usage.
"""
GROUPS = (  # title, its kernels
    ("Tables of RoPE", ("rope_table",)),
    ("Rotations", ("rope_half", "rope_interleaved", "rope_qk_norm")),
    ("Sinusoids", ("sinusoidal", "sinusoidal_add")),
    ("Learned encodings and biases", ()),  # all others
)
DIGITS = range(1, 8)  # decades of positions
LIMITS = ("0.001", "0.01", "0.1")


class Group(NamedTuple):
    """Rows of the page that have the same columns."""

    title: str
    rows: List[Dict[str, Any]]

    @property
    def heads(self) -> List[str]:
        """Titles of the columns."""
        heads = ["library", "implementation", "verdict"]
        if any("decades" in row for row in self.rows):
            heads += [f"below 10^{digits}" for digits in DIGITS] + [f"above {limit} from" for limit in LIMITS]
        elif any("speed" in row for row in self.rows):
            heads += ["worst error", "NaN spreads", "prompt", "prompt, posenc", "ratio", "one head", "one head, posenc"]
        return heads

    def cells(self, row: Dict[str, Any]) -> List[str]:
        """Returns the texts of a row."""
        cells = [row["adapter"], row["title"], verdict_of(row)]
        if "decades" in self._columns:
            found = {one["digits"]: one["error"] for one in row.get("decades", [])}
            cells += [_error(found.get(digits)) for digits in DIGITS]
            above = row.get("above", {})
            cells += ["–" if above.get(limit) is None else units.count(above[limit]) for limit in LIMITS]
        elif "speed" in self._columns:
            worst = max(row.get("worst", []), key=lambda one: float(one["max"] / one["limit"]), default=None)
            cells += [f"{worst['max']:.2f} {worst['metric']}" if worst else "–"]
            cells += ["–" if row.get("spreads_nan") is None else "yes" if row["spreads_nan"] else "no"]
            for what in ("prompt", "call"):
                timed = row.get("speed", {}).get(what)
                cells += [units.time(1e9 * timed[name]) for name in ("theirs_s", "ours_s")] if timed else ["–", "–"]
                if what == "prompt":
                    cells += [f"{timed['ratio']:.1f} ({timed['low']:.1f} to {timed['high']:.1f})" if timed else "–"]
        return cells

    @property
    def _columns(self) -> Set[str]:
        return {name for row in self.rows for name in row}


def has_f32_angles(row: Dict[str, Any]) -> bool:
    """Returns whether the errors of a table are those of f32 angles: up to a few roundings of the position."""
    decades = row.get("decades", [])
    return bool(decades) and all(one["error"] <= 2.0**-21 * max(one["position"], 1) for one in decades)


def is_right(record: Dict[str, Any]) -> bool:
    """Returns whether nothing is wrong with a record: it was measured, and does not differ."""
    measured = "skipped" not in record and "error" not in record
    return measured and (record.get("ok", True) or has_f32_angles(record))


def verdict_of(row: Dict[str, Any]) -> str:
    """Returns the verdict on a row, with its numerics mode or what is wrong."""
    if "error" in row:
        return f"not measured: {row['error']}"
    if row["ok"]:
        return ", ".join(row["modes"]) or "conforms"
    if has_f32_angles(row):
        return "f32 angles, in no mode to the bit"
    return f"differs: {row['mistake'] or row['reason']}"


def _parser() -> Parser:
    parser = Parser("posenc scoreboard", ABOUT, EPILOG)
    add = parser.add_argument
    add("files", metavar="FILE", nargs="*", type=file_path, help="adapters (default: all that posenc has)")
    add("-o", "--output", metavar="PATH", type=file_path, action="append", default=[],
        help="write .html, .md or .jsonl (default: scoreboard.html)")  # fmt: skip
    add("--from", dest="source", metavar="JSONL", help="make the page of an earlier run")
    add("--limit", metavar="SECONDS", type=positive(1e6), default=1800.0, help="time for a row (default: 1800)")
    add("--force", action="store_true", help="overwrite any file at PATH")
    return parser


def _adapters(files: List[Path]) -> List[Path]:
    """Returns the adapters of the command line, or all that posenc has."""
    found = files or sorted(path for folder in ADAPTERS if folder.is_dir() for path in folder.glob("*.py"))
    if not found:
        raise CommandError(f"there are no adapters (looked in {', '.join(map(str, ADAPTERS))}).")
    for path in found:
        if not path.is_file() or path.suffix != ".py":
            raise CommandError(f"the adapter is no .py file (got '{path}').")
    return found


def _read_run(path: str) -> List[Dict[str, Any]]:
    """Returns the records of an earlier run. Raises CommandError if the file has none."""
    try:
        records = [json.loads(line) for line in read_text(path, "records").splitlines()]
        records[0]["scoreboard"]
        render(records, ".md")
    except (ValueError, TypeError, LookupError, AttributeError):
        problem = "the file has no run of posenc scoreboard, as -o FILE.jsonl writes it"
        raise CommandError(f"{problem} (got '{path}').") from None
    return records


def packages_of(path: Path) -> List[str]:
    """Returns the packages that an adapter lists, without running it."""
    packages: List[str] = []
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PACKAGES":
                packages = ast.literal_eval(node.value)
    return packages


def _run(path: Path, first: int, limit_s: float) -> Tuple[List[Dict[str, Any]], str]:
    """Measures the rows of an adapter from `first` on, in a process of its own on one CPU.

    Returns the records that it wrote, and how it ended.
    """
    has_affinity = hasattr(os, "sched_setaffinity")  # Linux
    one_cpu = (lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})) if has_affinity else None
    words = [sys.executable, "-P", "-m", "posenc.scoreboard.measure", str(path), str(first)]
    records: List[Dict[str, Any]] = []
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0, preexec_fn=one_cpu,
                          start_new_session=True) as process:  # fmt: skip
        assert process.stdout
        try:
            while select.select([process.stdout], [], [], limit_s)[0]:
                line = process.stdout.readline()
                if not line.endswith(b"\n"):
                    status = process.wait()
                    how = f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
                    return records, how
                records.append(json.loads(line))
            return records, f"took longer than {limit_s:g} s"
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)  # with programs that it started


def measure(path: Path, limit_s: float) -> Iterator[Dict[str, Any]]:
    """Yields the records of an adapter. A row that ends its process is a record, too, and another process goes on."""
    first, count = 0, 1
    while first < count:
        records, how = _run(path, first, limit_s)
        about = records[0] if records else {"adapter": path.stem, "skipped": how}
        if "skipped" in about:
            yield {**about, "install": " ".join(["pip install", *packages_of(path)])}
            return
        rows = about.pop("rows")
        count = len(rows)
        yield from records if first == 0 else records[1:]
        first += len(records) - 1
        if first < count:
            yield {"adapter": path.stem, **rows[first], "error": how}
            first += 1


def machine() -> Dict[str, Any]:
    """Returns the date and the machine of a run."""
    posenc: Any = importlib.import_module("posenc")
    if not hasattr(posenc, "rope_half"):
        raise CommandError("the scoreboard calls the kernels from Python. Install the package: pip install .")
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
                  if line.startswith("model name")), platform.machine())  # fmt: skip
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return {"date": today, "cpu": model, "system": platform.platform(), "python": platform.python_version(),
            "posenc": posenc.__version__}  # fmt: skip


def groups_of(records: List[Dict[str, Any]]) -> List[Group]:
    """Returns the rows by what their columns are."""
    rows = [record for record in records if "kernel" in record]
    named = {kernel for _, kernels in GROUPS for kernel in kernels}
    groups = []
    for title, kernels in GROUPS:
        found = [row for row in rows if (row["kernel"] in kernels) or (not kernels and row["kernel"] not in named)]
        groups += [Group(title, found)] if found else []
    return groups


NOTES = (
    "A verdict is that of posenc.check(): golden vectors, accuracy, properties and random problems. A numerics mode, "
    "such as hf_f32, says which arithmetic of the angles a table matches. A library is asked for what it offers. A "
    "table with f32 angles may match no mode to the bit, as powers in PyTorch and JAX are not correctly rounded.",
    "Below 10^n: the largest absolute error of a cosine or sine at positions with n digits, against exact arithmetic, "
    "with 128 channels and a base of 10 000. Positions below 131 072 were all compared, and samples beyond. The error "
    "of an f32 angle grows with the position. A table can therefore match its mode and still be far from exact values.",
    "Prompt: 512 tokens, 32 heads, 128 channels in f32, to a new array, on one CPU. One head: the same with one token, "
    "which is mostly the cost of a call. The ratio is that of times in turn, theirs to posenc's, with quartiles.",
    "NaN spreads: a NaN in one pair of channels changed another pair.",
)


def _error(value: Any) -> str:
    """Returns an error with one digit: 7e-3."""
    return "–" if value is None else f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e+") if value else "0"


def render(records: List[Dict[str, Any]], suffix: str) -> bytes:
    """Returns the page: HTML, Markdown, or the records themselves."""
    if suffix == ".jsonl":
        return "".join(json.dumps(record) + "\n" for record in records).encode()
    env = environment(markdown=suffix == ".md")
    env.loader = jinja2.FileSystemLoader(HERE / "templates")
    css = (HERE.parents[0] / "report" / "templates" / "page.css").read_text("utf-8") if suffix == ".html" else ""
    text = env.get_template(f"scoreboard{suffix}.j2").render(
        machine=records[0], groups=groups_of(records), notes=NOTES, css=Markup(css), f32=has_f32_angles,
        versions={record["adapter"]: record["versions"] for record in records if "versions" in record},
        skipped=[record for record in records if "skipped" in record],
    )  # fmt: skip
    return (text.rstrip() + "\n").encode()


def main(words: List[str]) -> int:
    """Runs the command. Returns its exit code."""
    args = _parser().parse_args(words)
    outputs: List[Path] = args.output or [Path("scoreboard.html")]
    for path in outputs:
        if path.suffix not in (".html", ".md", ".jsonl"):
            raise CommandError(f"the output has an unknown suffix (got '{path}'). Expected .html, .md or .jsonl.")
        check_output(path, MARKER, force=args.force)
    if args.source:
        records = _read_run(args.source)
    else:
        paths = _adapters(args.files)
        records = [{"scoreboard": "posenc scoreboard", **machine()}]
        for path in paths:
            print(f"{path.stem} ...", file=sys.stderr)
            records += measure(path, args.limit)
    for path in outputs:
        write_file(path, render(records, path.suffix), MARKER, force=args.force)
        print(f"written: {path}", file=sys.stderr)
    return 0 if all(map(is_right, records)) or not args.files else 1
