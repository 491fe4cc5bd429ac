"""The formats of posenc results export."""

from typing import Callable, Dict, List, NamedTuple

from ..convert import Record
from .annotations import to_annotations
from .baseline import to_baseline
from .exports import to_bmf, to_csv, to_gbench, to_gha
from .junit import to_junit
from .outcome import to_badge
from .summary import to_comment, to_summary


class Format(NamedTuple):
    """A format: the suffix of its files, its writer, one line about it, and a text that its files begin with."""

    suffix: str
    write: Callable[[List[Record]], str]
    about: str
    begins: bytes


FORMATS: Dict[str, Format] = {
    "csv": Format("csv", to_csv, "a line for each result", b"cpu,"),
    "junit": Format("xml", to_junit, "JUnit XML: a test for each result", b'<testsuites name="posenc"'),
    "annotations": Format("txt", to_annotations, "failures, for a workflow of GitHub", b" title="),
    "summary": Format("md", to_summary, "summary of a job on GitHub, within 1024 KiB", b"## posenc: "),
    "comment": Format("md", to_comment, "the same for a comment, within 64 KiB", b"## posenc: "),
    "badge": Format("json", to_badge, "the outcome, for shields.io", b'{"schemaVersion":1'),
    "baseline": Format(
        "jsonl", to_baseline, "errors and shares of the roofline, for posenc compare", b'"posenc.results/'
    ),
    "gha": Format("json", to_gha, "github-action-benchmark, customSmallerIsBetter: ratios", b"["),
    "gbench": Format("json", to_gbench, "Google Benchmark, for its compare.py", b'"executable":"posenc"'),
    "bmf": Format("json", to_bmf, "Bencher Metric Format", b"{"),
}
