"""Records whose every text is hostile: no page, export or terminal gets it as anything but text."""

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import List, Optional, Tuple

import pytest

from posenc.report.main import main as report_main
from posenc.results.main import FORMATS, main as results_main

# A formula of spreadsheets, escape sequences, a direction of writing, HTML, a link of Markdown, ends of lines before
# commands of GitHub's runners, commands of a shell, the end of an attribute and of a string, and code without an end.
HOSTILE = (
    "=x\x1b[2J\x9b1m\u202e<script>x</script>[l](javascript:x)@x\n::error::no \r::error::no ##[group]z |%q "
    "`touch ran` $(touch ran) \" onclick=x '\"'\"' `<script>x"
)
# Each kind of record; @ stands for the hostile text.
RECORDS = r"""
{"t":"header","schema":"posenc.results/2","run_id":"1","started":"@","tool":{"version":"@"},"mode":"@","command":"bench","argv":["posenc","@"]}
{"t":"env","env_id":"@","cpu":{"key":"@","name":"@"},"build":{"type":"release"},"emulator":"@"}
{"t":"backend","id":"@","family":"@","description":"@","available":true,"unavailable_reason":"@"}
{"t":"check","case":"@","kernel":"@","dtype":"@","numerics":"@","backend":"@","family":"@","suite":"@","status":"fail","reason":"@","command":"@","error":{"metric":"ulp","max":3,"limit":1,"worst_at":"@","got":"@","want":"@"}}
{"t":"check","case":"@2","kernel":"@","dtype":"f32","numerics":"@","backend":"@","family":"@","suite":"@","status":"crash","reason":"@","command":"@"}
{"t":"bench","case":"@","kernel":"@","dtype":"@","numerics":"@","backend":"@","family":"@","footprint":{"name":"@","bytes":100},"threads":1,"rounds":9,"median_ns":5,"min_ns":4,"ci":{"level":0.9,"lo":4,"hi":6},"gbps":2,"roofline":{"kind":"@","variant":"@","gbps":3},"bound":{"resource":"@","kind":"@","variant":"@","gbps":4,"share":0.5}}
{"t":"bench","case":"@3","kernel":"@","backend":"@","rejected":"wrong: @"}
{"t":"model","name":"@","title":"@","source":"@","notes":"@","encoding":"@","cases":[{"case":"@","label":"@","kernel":"@","step":"@","calls":2}]}
{"t":"pair","kernel":"@","dtype":"f32","numerics":"@","case":"@","backend":"@","family":"@","base":{"ns":50.0},"head":{"ns":55.0},"ratio":1.1,"ci":{"level":0.99,"lo":1.09,"hi":1.12},"noise_threshold":0.01,"threshold":0.03,"verdict":"slower","reason":"@","confirmed":true,"processes":3,"rounds":31}
{"t":"change","kernel":"@","dtype":"f32","numerics":"@","case":"@","backend":"@","suite":"@","what":"error","worse":true,"worst_at":"@","metric":"ulp","base":{"max":1},"head":{"max":2},"problem":"@"}
{"t":"doctor","findings":[{"what":"@","level":"costs","evidence":"@","fix":"@","command":"@"}],"quality":{"grade":"C","reasons":[]}}
{"t":"footer","complete":true,"noise":{"load1":3}}
"""  # noqa: E501
# What each format must not contain, apart from code. The formats of JSON and HTML are parsed instead.
FORBIDDEN = {
    "console": r"^ *::|##\[", "md": r"(?<!\\)(<script>x|\[l\]\(|`)",
    "summary": r"(?<!\\)(<script>x|\[l\]\(|`)", "comment": r"(?<!\\)(<script>x|\[l\]\(|`)",
    "annotations": r"^(?!::(error|warning|notice) title=).", "junit": "<script>", "csv": '(^|,)"*[=+@]',
}  # fmt: skip


class PageCheck(HTMLParser):
    """Parser of HTML that fails for an element, an attribute or a link that a hostile text has made."""

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        assert not [name for name, value in attrs if name.startswith("on") or (value or "").startswith("javascript:")]

    def handle_data(self, data: str) -> None:
        assert self.cdata_elem != "script" or data != "x"


def check_rerun_options(text: str) -> None:
    """Requires that the options of a rerun are words of a shell."""
    lines = re.findall("--case .*", text)
    assert lines
    for line in lines:
        case, backend = shlex.split(line)[1::2]
        assert shlex.split(line)[::2] == ["--case", "--backend"] and "$(touch ran)" in case and case == backend


@pytest.mark.parametrize("form", ["console", "md", "html", "jsonl", *FORMATS])
def test_hostile_text_stays_text(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_text(RECORDS.strip().replace("@", json.dumps(HOSTILE)[1:-1]))
    if form in FORMATS:
        assert results_main(["export", str(path), "--format", form]) == 0
    else:
        assert report_main([str(path), "-v"] if form == "console" else [str(path), "--out", form]) == 0
    text = capsys.readouterr().out
    assert ("posenc" if form == "badge" else "::no") in text
    if form == "csv":
        text = text.replace("\r\n", "\n")  # ends of its lines
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    if form in ("summary", "comment"):
        check_rerun_options(text)
    if form in ("md", "summary", "comment"):  # without code, whose end an escaped ` is not
        text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
        text = re.sub(r"`[^`\n]*`", "", text.replace(r"\`", ""))
    if form == "html":
        PageCheck().feed(text)
    elif form in FORBIDDEN:
        assert not re.search(FORBIDDEN[form], text, re.M)
    else:
        for document in text.splitlines() if form in ("jsonl", "baseline") else [text]:
            json.loads(document)
