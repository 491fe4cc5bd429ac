"""posenc results export: CSV, JUnit, GitHub's pages and other formats for other programs.

The numbers are frozen since they were equal to those of the former program in C. Rules of each format are shown on
records that are made up; ends() has one for each kind of outcome.

PYTHONPATH=reports python3 reports/tests/test_results.py    freezes the present exports
"""

import csv
import io
import json
import re
import shlex
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import programs
import pytest
from programs import FOOTER, HEADER, freeze_json, read_json, read_json_lines

from posenc import units
from posenc.command import CommandError
from posenc.records import Record, load, machines
from posenc.report.main import main as report_main
from posenc.results import exports, main, outcome
from posenc.results.github import COMMENT, SUMMARY, to_annotations, to_page
from posenc.results.outcome import check_words, to_badge

HERE = Path(__file__).resolve().parent
FILES = (HERE / "run.jsonl", HERE / "compared.jsonl.gz")
FROZEN = HERE / "exports.json.gz"
MARKDOWN = ("summary", "comment", "md")
FROZEN_FORMATS = [name for name in main.FORMATS if name not in MARKDOWN]


def written(path: Path, form: str) -> str:
    """Returns a file of records in a format."""
    return main.FORMATS[form].write(read_json_lines(path))


@pytest.mark.parametrize("name", FROZEN_FORMATS)
@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_numbers_are_as_frozen(path: Path, name: str) -> None:
    text = read_json(FROZEN)[path.name][name]
    if name in ("gha", "junit"):
        text = text.replace(" us", " µs")  # C wrote them in ASCII
    assert written(path, name).splitlines() == text.splitlines()


# ---- records that are made up ----


def machine(name: str = "paper", mode: str = "full", finished: bool = True) -> List[Record]:
    """Returns the records of a run without results; others may follow its footer."""
    records: List[Record] = [
        {**HEADER, "mode": mode, "started": "2026-11-21T09:00:00Z", "tool": {"version": "0.1.0"},
         "vectors": {"sha256": "91c4"}, "argv": ["posenc", "report"]},
        {"t": "env", "env_id": name, "cpu": {"key": name}, "cpus": {"online": 4}, "noise": {"load1": 0.3}},
    ]  # fmt: skip
    return records + ([FOOTER] if finished else [])


def result(kind: str, name: str, backend: str = "avx2", **members: Any) -> Record:
    return programs.result(kind, f"alibi/f32/given/{name}", backend, **members)


def check(name: str, status: str, reason: str = "", command: str = "", backend: str = "avx2") -> Record:
    return result("check", name, backend, suite="vectors", status=status, reason=reason, command=command)


def pair(name: str, verdict: str, ratio: float, confirmed: bool = False) -> Record:
    return result(
        "pair", name, base={"ns": 50.0}, head={"ns": 50 * ratio}, ratio=ratio, verdict=verdict, confirmed=confirmed,
        ci={"level": 0.99, "lo": ratio - 0.01, "hi": ratio + 0.02}, threshold=0.03, reason="3 of 3 processes",
    )  # fmt: skip


def change(name: str, base: float, head: float, worse: Optional[bool]) -> Record:
    return result(
        "change", name, suite="accuracy", what="error", worse=worse, base={"max": base}, head={"max": head},
        metric="ulp", limit=1.0, worst_at="position 7", moved=3, of=64, problem="alibi heads=8",
    )  # fmt: skip


def ends(finished: bool = True) -> List[Record]:
    """Returns every kind of end: passed, failed, crashed, cannot run; slower or not, unclear; worse, better, moved."""
    return machine(finished=finished) + [
        check("h1", "pass"),
        check("h2", "fail", 'wrote past <out>, "here"\uffff', "posenc verify --backend avx2 --case h2"),
        check("h3", "crash", "SIGILL </details> | `<x>`", "posenc verify --case h3"),
        check("h4", "unsupported", "needs neon", backend="neon"),
        result("bench", "prefill", "libm", rejected="wrong: 3 of 64 rows"),
        pair("slow", "slower", 1.075, True),
        pair("little", "slower", 1.02, True),
        pair("perhaps", "slower", 1.075),
        pair("noisy", "unclear", 1.04),
        pair("quick", "faster", 0.9, True),
        change("h1", 0.5, 0.94, True),
        change("h2", 0.94, 0.5, False),
        change("h3", 0.5, 0.5, None),
        {"t": "doctor", "quality": {"grade": "C", "reasons": ["governor"]}, "findings": [
            {"what": "governor", "level": "costs", "cost_pct": 4.0, "evidence": "powersave", "fix": "performance",
             "command": "cpupower frequency-set -g performance"},
            {"what": "swap", "level": "fine", "evidence": "none"},
        ]},
    ]  # fmt: skip


# ---- CSV and JSON ----


def test_csv_quotes_and_formulas() -> None:
    records = machine()
    records[0]["vectors"]["official"] = False
    records += [
        {"t": "check", "case": '=cmd("a"),b', "reason": "-1.5", "status": "fail", "error": {"max": "inf", "limit": 2}},
        {"t": "doctor", "quality": {"grade": "C"}, "findings": []},
    ]
    lines = list(csv.DictReader(io.StringIO(exports.to_csv(records))))
    assert lines[0]["case"] == '\'=cmd("a"),b' and lines[0]["reason"] == "-1.5"
    assert lines[0]["error.max"] == "inf" and lines[0]["vectors"] == "not the official vectors"
    assert lines[1]["t"] == "doctor" and lines[1]["quality.grade"] == "C"
    assert exports.to_csv(records).count("\r\n") == 3


def test_names_begin_with_the_machine_only_where_there_are_several() -> None:
    timing = {"case": "c", "backend": "b", "threads": 4}
    one = machine("a", finished=False) + [{"t": "bench", **timing, "median_ns": ns} for ns in (2.0, 3.0)]
    one += [FOOTER]
    two = one + [{**record, "env_id": "z"} if record["t"] == "env" else record for record in one]
    assert list(json.loads(exports.to_bmf(one))) == ["c/b/threads:4"]
    assert list(json.loads(exports.to_bmf(two))) == ["a: c/b/threads:4", "z: c/b/threads:4"]
    assert json.loads(exports.to_bmf(one))["c/b/threads:4"]["latency"] == {"value": 3.0}
    assert [found.finished for found in machines(two)] == [1, 1]


@pytest.mark.parametrize("form", ["gha", "bmf", "gbench"])
def test_numbers_that_nobody_measured_make_no_file_that_cannot_be_read(form: str) -> None:
    odd = [result("bench", "x", median_ns="inf", threads=1, rounds=9), result("pair", "y", verdict="new", ratio="nan")]
    text = main.FORMATS[form].write(machine() + odd)
    assert json.loads(text) is not None and "inf" not in text.lower() and "nan" not in text.lower()


def badge(*records: Record, mode: str = "full", finished: bool = True) -> str:
    """Returns the colour and the words of the badge for a run."""
    found = json.loads(to_badge(machine(mode=mode, finished=finished) + list(records)))
    assert found["schemaVersion"] == 1 and found["label"].startswith("posenc")
    return f"{found['color']}: {found['message']}"


def test_badge() -> None:
    passed, slow = check("h1", "pass"), pair("decode", "slower", 1.05, True)
    assert badge() == "lightgrey: nothing was checked"
    assert badge(passed) == "brightgreen: 1 check passed"
    assert badge(passed, mode="quick") == "green: 1 check passed"
    assert badge(passed, finished=False) == "red: incomplete, 1 check passed"
    assert badge(check("h1", "crash")) == "red: 1 of 1 checks failed"
    assert badge(passed, pair("decode", "slower", 1.02, True)) == "brightgreen: 1 slower, 1 check passed"
    assert badge(slow) == "red: 1 slower"
    assert badge({**slow, "verdict": "same"}) == "brightgreen: 1 compared, none slower"
    assert badge(change("h1", 0.5, 0.94, True)) == "red: 1 result worse"
    assert badge(check("h1", "inconclusive")) == "red: 1 inconclusive"
    assert badge({**passed, "t": "other"}, {"t": "doctor", "quality": {"grade": "C"}}).startswith("yellow: measurement")


def timing(**members: Any) -> Record:
    quiet: Record = {"family": "native", "threads": 1, "median_ns": 100.0, "gbps": 50.0,
                     "roofline": {"gbps": 100.0, "share": 0.4}, "ci": {"level": 0.99, "lo": 99.0, "hi": 101.0}}
    return result("bench", "decode", **{**quiet, **members})


def test_baseline_has_what_is_not_noisy_and_an_end_only_if_the_run_had_one() -> None:
    def shares(*records: Record) -> List[float]:
        lines = map(json.loads, exports.to_baseline(machine() + list(records)).splitlines())
        return [line["roofline"]["share"] for line in lines if line["t"] == "bench"]

    wide, beyond = {"level": 0.99, "lo": 80.0, "hi": 101.0}, {"level": 0.99, "lo": 96.0, "hi": 101.0}
    assert shares(timing()) == [0.5]  # of the rates as they are shown
    assert shares(timing(roofline={"share": 0.4})) == [0.4]
    assert not shares(timing(ci=wide)) and not shares(timing(ci={})) and not shares(timing(control_pct=-10.1))
    assert not shares(timing(family="libm")) and not shares(timing(rejected="not provided"))
    assert not shares(timing(gbps=121.0, ci=beyond)) and shares(timing(gbps=119.0, ci=beyond)) == [1.19]
    assert exports.to_baseline(machine()).endswith('{"t":"footer","complete":true}\n')
    assert "footer" not in exports.to_baseline(machine(finished=False))


def test_what_changed_most_comes_first_and_the_last_record_counts() -> None:
    records = machine() + [pair("a", "slower", 1.1), pair("b", "slower", 1.4), pair("c", "faster", 0.9)]
    records += [pair("d", "later", 1.0), {**pair("e", "new", 1.0), "failed": {"who": "head", "how": "crashed"}}]
    records += [change("x", 0.5, 0.9, None), change("x", 0.5, 0.9, False), change("y", 0.5, 0.9, True)]
    (found,) = machines(records)
    assert [one["case"][-1] for one in outcome.pairs(found)] == ["e", "b", "a", "c", "d"]
    assert [(one["case"][-1], one["worse"]) for one in outcome.changes(found)] == [("y", True), ("x", False)]


@pytest.mark.parametrize("largest, limit, metric, text", [
    (0.94, 1.0, "ulp", ("0.94 ulp", "1")), (1.0004, 1.0, "ulp", ("1.0004 ulp", "1")), (0.0, 1.0, "ulp", ("0 ulp", "1")),
    (1.5, 1.4999999, "pair_ulp", ("1.5 pair ulp", "1.4999999")), (2.2e-7, 1e-6, "abs", ("2.2e-07 abs", "1e-06")),
    (float("inf"), 1.0, "ulp", ("infinite ulp", "1")), (3.0, 0.0, "exact", ("3 differ", "0")),
    (12345.0, 1.0, "ulp", ("1.2e+04 ulp", "1")),
])  # fmt: skip
def test_an_error_and_its_limit_tell_which_is_larger(largest: float, limit: float, metric: str, text: Any) -> None:
    assert units.error_and_limit(largest, limit, metric) == text


# ---- JUnit ----


def cases_of(records: List[Record]) -> Dict[str, ET.Element]:
    """Returns the test cases of JUnit by class and last word: "avx2.alibi.given.f32 h1 [vectors]"."""
    found = ET.fromstring(exports.to_junit(records)).iter("testcase")
    return {f"{test.get('classname')} {test.get('name', '').rpartition('/')[2]}": test for test in found}


def test_junit() -> None:
    tests = cases_of(ends())
    found = {
        name.partition(" ")[2]: "".join(f"{end.tag} {end.get('type')} {end.get('message')}" for end in test)
        for name, test in tests.items()
    }
    assert len(tests) == 13 and found["h1 [vectors]"] == ""
    assert found["h2 [vectors]"].startswith("failure vectors") and found["h4 [vectors]"] == "skipped None needs neon"
    assert found["h3 [vectors]"].startswith("error crash SIGILL")
    assert found["slow [compare]"].startswith("failure slower SLOWER +7.5 % (6.5 to 9.5): 3 of 3")
    assert found["little [compare]"] == found["perhaps [compare]"] == found["quick [compare]"] == ""
    assert found["noisy [compare]"].startswith("skipped None UNCLEAR +4.0 % (3.0 to 6.0)")
    worse = "failure error 0.94 ulp, was 0.50 ulp (limit 1.00 ulp), 3 of"
    assert found["h1 [accuracy, change of error]"].startswith(worse)
    assert found["h2 [accuracy, change of error]"] == found["h3 [accuracy, change of error]"] == ""
    assert found["prefill [bench]"] == "failure wrong output wrong: 3 of 64 rows"
    failure = tests["avx2.alibi.given.f32 h2 [vectors]"][0]
    assert "repeat with: posenc verify --backend avx2 --case h2" in (failure.text or "")
    assert failure.get("message") == 'wrote past <out>, "here"\\uffff'


def test_mistake_stands_beside_the_failure() -> None:
    check: Record = {"status": "fail", "reason": "got 0x1p+0 want 0x1p+1", "mistake": "x_scale is ignored"}
    assert check_words(check) == "got 0x1p+0 want 0x1p+1; matches: x_scale is ignored"
    worst = {"worst_at": "row 0", "got": "0x1p+0", "want": "0x1p+1"}
    check["error"] = {"metric": "exact", "max": 3.0, "limit": 0.0, **worst}
    words = "3 differ, limit 0, row 0; got 0x1p+0, want 0x1p+1; matches: x_scale is ignored"
    assert check_words(check) == words


def test_junit_totals_are_those_of_its_tests() -> None:
    root = ET.fromstring(exports.to_junit(ends()))
    assert [root.get(name) for name in ("tests", "failures", "errors")] == ["13", "4", "1"]
    for suite in root:
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(attribute) == str(len(suite.findall(f"testcase/{tag}")))
        assert suite.find("properties/property[@name='quality']").get("value") == "C"  # type: ignore[union-attr]
    early = ET.fromstring(exports.to_junit(ends(finished=False)))
    assert early.get("errors") == "2" and early[0].get("name") == "posenc"
    assert early[0].find("testcase/error").get("type") == "incomplete"  # type: ignore[union-attr]


def test_junit_names_are_unique() -> None:
    records = ends() + [check("h1", "pass", backend="libm")] + machine("stone") + [check("h1", "pass")]
    root = ET.fromstring(exports.to_junit(records))
    names = [(test.get("classname"), test.get("name")) for test in root.iter("testcase")]
    assert len(names) == len(set(names)) == 15
    assert ("stone.avx2.alibi.given.f32", "alibi/f32/given/h1 [vectors]") in names


# ---- GitHub ----


def test_annotations() -> None:
    text = to_annotations(ends(finished=False))
    lines = text.splitlines()
    assert lines[0].startswith("::error title=posenc%3A incomplete::")
    assert "::error title=avx2%3A alibi/f32/given/slow::SLOWER +7.5 %25 (6.5 to 9.5)" in text
    assert "::warning title=avx2%3A alibi/f32/given/little::" in text and "given/noisy" not in text
    assert "::warning title=avx2%3A alibi/f32/given/perhaps::" in text
    assert "::error title=avx2%3A alibi/f32/given/h1::0.94 ulp, was 0.50 ulp" in text
    assert "::error title=libm%3A alibi/f32/given/prefill::wrong: 3 of 64" in text
    assert "::warning title=doctor%3A governor::powersave%0Aperformance%0Acpupower " in text and "swap" not in text
    assert len(lines) == 10 and text.count("::error ") == 6
    assert lines[-1].startswith("::notice title=posenc::incomplete, 2 of 3 checks failed")


def is_whole(page: str) -> bool:
    return page.endswith("\n") and all(
        page.count(f"<{tag}>") == page.count(f"</{tag}>") for tag in ("details", "summary")
    ) and page.count("```") % 2 == 0  # fmt: skip


def test_pages_of_many_failures_fit() -> None:
    records = machine() + [check(f"h{i}", "fail" if i % 7 else "crash", "no", "x" * 1900) for i in range(3_000)]
    page, comment, lines = to_page(records, SUMMARY), to_page(records, COMMENT), to_annotations(records)
    assert page.startswith("## posenc: 3 000 of 3 000 checks failed\n")
    assert is_whole(page) and len(page.encode()) <= SUMMARY and "given/h49 " in page
    assert is_whole(comment) and len(comment.encode()) <= COMMENT and "given/h0 " in comment
    assert "\n2980 more.\n" in comment
    assert lines.count("::error ") == 10 and "GitHub shows 10 of 3000 errors" in lines


def test_pages_drop_evidence_first_and_name_it() -> None:
    records: List[Record] = []
    for at in range(12):
        records += machine(f"machine-{at}") + [check("h1", "fail" if at == 11 else "pass", "no", "again")]
        records += [check(f"broken-{i}", "fail", "x" * 1200, "again") for i in range(60 if at < 4 else 0)]
        backend = {"t": "backend", "family": "own", "available": True, "description": "x" * 1200}
        records += [{**backend, "id": f"backend-{i}"} for i in range(100)]
    page, comment = to_page(records, SUMMARY), to_page(records, COMMENT)
    assert is_whole(page) and SUMMARY // 2 < len(page.encode()) <= SUMMARY
    assert page.index("### 1 failed, machine-11") < page.index("<details>")
    assert "> Left out, to stay within 1024 KiB: Backends, machine-" in page
    assert is_whole(comment) and len(comment.encode()) <= COMMENT
    assert "### machine-11" in comment and "> Left out, to stay within 64 KiB: " in comment


@pytest.mark.parametrize("limit", range(2000, 20_000, 1500))
def test_pages_fit_any_limit(limit: int) -> None:
    records = [record for at in range(20) for record in machine(f"machine-{at}") + [check("h1", "fail", "x" * 300)]]
    page = to_page(records, limit)
    assert is_whole(page) and limit // 3 < len(page.encode()) <= limit


def test_pages_where_all_fits() -> None:
    page = to_page(ends())
    assert page.startswith("## posenc: 2 of 3 checks failed, 1 output wrong, 1 result worse, 3 slower")
    assert r"SIGILL \</details> \| \`\<x>\`" in page and is_whole(page.replace(r"\</details>", ""))
    assert "Left out" not in page and "<details><summary>Machine and build</summary>" in page
    assert "**1 worse**, 1 better, 1 otherwise changed" in page and "**SLOWER 3**" in page
    assert "| alibi/f32/given/slow | avx2 | SLOWER | 50.0 ns | 53.8 ns | +7.5 % | +6.5 to +9.5 % |" in page
    assert "> **1 output wrong, and not timed**:\n> - libm at " in page
    partial = to_page(ends(finished=False))
    assert "> 1 of 1 run did not finish." in partial


# ---- records whose every text is hostile: no page, export or terminal gets it as anything but text ----

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
    "console": r"^ *::|##\[", **dict.fromkeys(MARKDOWN, r"(?<!\\)(<script>x|\[l\]\(|`)"),
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


@pytest.mark.parametrize("form", ["console", "html", "jsonl", *main.FORMATS])
def test_hostile_text_stays_text(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_text(RECORDS.strip().replace("@", json.dumps(HOSTILE)[1:-1]))
    if form in main.FORMATS:
        assert main.main(["export", str(path), "--format", form]) == 0
    else:
        assert report_main([str(path), "-v"] if form == "console" else [str(path), "--out", form]) == 0
    text = capsys.readouterr().out
    assert ("posenc" if form == "badge" else "::no") in text
    if form == "csv":
        text = text.replace("\r\n", "\n")  # ends of its lines
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    if form in MARKDOWN:  # without code, whose end an escaped ` is not
        check_rerun_options(text)
        text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
        text = re.sub(r"`[^`\n]*`", "", text.replace(r"\`", ""))
    if form == "html":
        PageCheck().feed(text)
    elif form in FORBIDDEN:
        assert not re.search(FORBIDDEN[form], text, re.M)
    else:
        for document in text.splitlines() if form in ("jsonl", "baseline") else [text]:
            json.loads(document)


# ---- the command ----


def test_characters_that_a_terminal_obeys_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    hostile = '"\\u001b[2J\\u202e\\n::error::\\ud800\u009b\u202e\ufdd0\U000e0041"'
    path.write_text(f'{{"t":"header","schema":"posenc.results/2",{hostile}:[{hostile}]}}\n')
    escaped = "\\x1b[2J\\u202e\\n::error::\\ud800\\x9b\\u202e\\ufdd0\\U000e0041"
    assert load(str(path))[0][escaped] == [escaped]


def test_export_to_files(tmp_path: Path, capsys: Any) -> None:
    source = str(FILES[0])
    assert main.main(["export", source, "-o", str(tmp_path / "x.csv")]) == 0
    assert (tmp_path / "x.csv").read_text().startswith("cpu,t,kernel")
    for name, form in main.FORMATS.items():
        path = str(tmp_path / f"{name}.{form.suffix}")
        for _ in range(2):  # over itself
            assert main.main(["export", source, "--format", name, "-o", path]) == 0
        (tmp_path / "notes").write_text("buy milk")
        with pytest.raises(CommandError, match="no earlier output"):
            main.main(["export", source, "--format", name, "-o", str(tmp_path / "notes")])
    capsys.readouterr()
    assert main.main(["export", source]) == 0 and capsys.readouterr().out.startswith("cpu,")


def test_records_of_standard_input() -> None:
    command = f'"$POSENC_PROGRAM" results export - --format badge <{FILES[0]}'
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, encoding="utf-8", check=True)
    assert json.loads(done.stdout)["color"] == "red"


@pytest.mark.parametrize("to", [">&-", ">/dev/full"])
def test_standard_output_that_cannot_be_written(to: str) -> None:
    command = f'"$POSENC_PROGRAM" results export {FILES[0]} {to}'
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 2 and done.stderr.startswith("posenc results: error: standard output cannot be written")
    assert len(done.stderr.splitlines()) == 1


BENCH, CHECK = '{"t":"bench","median_ns":3}', '{"t":"check","status":[]}'


@pytest.mark.parametrize("record, form", [(BENCH, "bmf"), (BENCH, "junit"), (CHECK, "junit")])
def test_records_of_other_types_are_named(tmp_path: Path, record: str, form: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(f'{{"t":"header","schema":"posenc.results/2"}}\n{{"t":"env","env_id":"m"}}\n{record}\n')
    with pytest.raises(CommandError, match="a record lacks a member"):
        main.main(["export", str(path), "--format", form])


REJECTED = [
    ([], "expected a subcommand: export"),
    (["imports"], "expected a subcommand (got 'imports')"),
    (["export"], "the following arguments are required: FILE"),
    (["export", "x", "--format", "ghq"], "no such format (got 'ghq'). Did you mean gha"),
    (["export", "x", "-o", "y.json"],
     "not clear from the name (got 'y.json'). Give --format: one of badge, gha, gbench, bmf"),
    (["export", "x", "-o", "y.xyz"], "a name that ends in .csv"),
    (["export", "/nowhere.jsonl"], "No such file or directory"),
]  # fmt: skip


@pytest.mark.parametrize("arguments, text", REJECTED)
def test_bad_input_is_named(arguments: List[str], text: str) -> None:
    with pytest.raises(CommandError, match=re.escape(text)):
        main.main(arguments)


if __name__ == "__main__":
    freeze_json(FROZEN, {path.name: {form: written(path, form) for form in FROZEN_FORMATS} for path in FILES})
