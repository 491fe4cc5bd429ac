"""Markdown for the summary of a job on GitHub and for comments, within the sizes that GitHub takes.

The outcome stands in the heading. Notes, comparisons and failures follow, then the evidence, folded. Tables lose rows
and evidence is left out, section by section, until the page fits; a note names what is missing.
"""

import html
import re
import shlex
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Iterable, Iterator, List, Sequence

from .. import quality, show, units
from ..convert import Record
from ..ranking import timings
from ..runs import Machine, grouped, machines, member, number
from . import comparison, outcome
from .annotations import findings

SUMMARY, COMMENT = 1024 * 1024, 64 * 1024
NOTE = 1024  # bytes kept for the note on what is missing
NAMED = 8  # sections that are named there
ROWS = (10_000, 1_000, 250, 50, 20, 10, 5, 2, 1, 0)  # of each table, until the page fits


# ---- Markdown ----


class Markdown(str):
    """Text with marks, which is not escaped."""


def md(text: Any) -> str:
    """Escapes what Markdown, HTML and tables would take for a mark."""
    return text if isinstance(text, Markdown) else re.sub(r"([\\`*<\[\]|])", r"\\\1", str(text))


def code(text: str) -> Markdown:
    """Returns text as code in a line or a cell."""
    fits = text and not re.search(r"`|\\\|", text)
    return Markdown(f"`{text}`".replace("|", "\\|") if fits else md(text))


def block(text: str) -> str:
    """Returns text as a block of code, between fences longer than any in it."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`+", text))])
    return f"{fence}\n{text}\n{fence}"


@dataclass
class Table:
    """A table. Columns that begin with > are flush right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def write(self, most: int) -> str:
        lines = [" | ".join(md(name.lstrip(">")) for name in self.columns)]
        lines += ["|".join("---:" if name.startswith(">") else "---" for name in self.columns)]
        lines += [" | ".join(map(md, row)) for row in self.rows[:most]]
        table = "\n".join(f"| {line} |" for line in lines)
        return table + (f"\n\n{len(self.rows) - most} more." if len(self.rows) > most else "")


@dataclass
class Section:
    """A part of the page: paragraphs and tables below a title."""

    title: str
    blocks: List[Any] = field(default_factory=list)
    folded: bool = False

    def add_table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Adds a table, if it has a row."""
        found = list(rows)
        self.blocks += [Table(columns, found)] if found else []

    def write(self, most: int) -> str:
        """Returns the section with at most so many rows in each table."""
        body = [part.write(most) if isinstance(part, Table) else part for part in self.blocks]
        if self.folded:
            body = [f"<details><summary>{html.escape(self.title)}</summary>", *body, "</details>"]
        elif self.title:
            body = [f"### {md(self.title)}", *body]
        return "".join(f"{part}\n\n" for part in body)


# ---- what a reader has to know ----


def _shards(machine: Machine) -> str:
    here = {member(header, "shard.i") for header in machine.headers if header.get("shard")}
    total = max([int(number(header, "shard.n") or 0) for header in machine.headers], default=0)
    if not 0 < len(here) < total:
        return ""
    names = ", ".join(str(i) for i in sorted(here))
    return f"**A share**: shard {names} of {total}, counted from 0. `posenc results merge` puts shards together."


def _notes(machine: Machine) -> Iterator[str]:
    wrong = outcome.wrong_outputs(machine)
    if wrong:
        first = f"{md(wrong[0].backend)} at {md(wrong[0].case)}: {md(wrong[0].rejected[len('wrong: '):])}"
        yield f"**{show.many(len(wrong), 'output')} wrong, and not timed**: {first}"
    vectors = outcome.vectors_note(machine.header, *machine.headers)
    if vectors:
        digest = str(member(machine.header, "vectors.sha256"))[:16]
        yield f"**{vectors}**: checked with a set (SHA-256 {md(digest)}) that this posenc was not built with."
    yield quality.warning(machine)
    yield md(quality.emulator(machine))
    if machine.partial:
        yield f"**Partial**: {machine.runs - machine.finished} of {show.many(machine.runs, 'run')} did not finish."
    yield _shards(machine)


def _doctor(machine: Machine) -> Iterator[Section]:
    for doctor in machine.of("doctor")[-1:]:
        grade = member(doctor, "quality.grade") or ""
        section = Section(f"Measurement quality {grade}")
        section.blocks += [md("; ".join(member(doctor, "quality.reasons") or [])) or "Nothing disturbs timings."]
        for finding in findings(machine, "costs") + findings(machine, "note"):
            cost = number(finding, "cost_pct")
            words = f"- **{md(finding['what'])}** ({'cost not known' if cost is None else f'{cost:.1f} %'}): "
            section.blocks += [words + md(f"{finding.get('evidence')}. {finding.get('fix') or ''}".strip())]
            section.blocks += [block(finding["command"])] if finding.get("command") else []
        yield section


# ---- comparison ----


PAIR = ("case", "backend", "verdict", ">base", ">head", ">change", "interval", "why")
CHANGE = ("case", "backend", "", "what", ">base", ">head", ">limit", "where")


def _pair_row(pair: Record) -> List[str]:
    change = interval = "-"
    if comparison.ratio(pair) > 0:
        change = units.change(comparison.ratio(pair))
        lo, hi = (100 * ((number(pair, f"ci.{end}") or 0.0) - 1) for end in ("lo", "hi"))
        interval = f"{lo:+.1f} to {hi:+.1f} %"
    times = [number(pair, f"{name}.ns") or 0.0 for name in ("base", "head")]
    return [pair["case"], pair["backend"], comparison.pair_word(pair),
            *(units.time(time) if time > 0 else "-" for time in times), change, interval,
            pair.get("reason", "")]  # fmt: skip


def _change_row(change: Record) -> List[str]:
    limit, moved = number(change, "limit"), comparison.moved(change)
    return [change["case"], change["backend"], comparison.direction(change),
            change["what"] + (f": {moved}" if moved else ""), comparison.side(change, "base"),
            comparison.side(change, "head"),
            "" if limit is None else f"{limit:.3g}", change.get("worst_at", "")]  # fmt: skip


def _results_words(machine: Machine) -> str:
    agreements = machine.of("agreement")
    problems, values, cases = (
        show.count(sum(number(record, name) or 0.0 for record in agreements))
        for name in ("problems", "values", "cases")
    )
    return f"Results of {cases} cases, and {values} values of {problems} problems" if agreements else "Results"


def _verdicts(tally: Counter[str]) -> str:
    """Returns how many pairs have each verdict."""
    words = [f"**FAILED {tally['broken']}**"] if tally["broken"] else []
    for kind, word in comparison.WORDS.items():
        if kind in ("slower", "faster", "unclear", "same") or tally[kind]:
            bold = "**" if kind in ("slower", "faster") and tally[kind] else ""
            words.append(f"{bold}{word} {tally[kind]}{bold}")
    return "    ".join(words)


def _comparison(machine: Machine) -> Iterator[Section]:
    builds = machine.header.get("compare") or {}
    pairs, changes, tally = comparison.pairs(machine), comparison.changes(machine), comparison.tally(machine)
    if not (builds or pairs or changes):
        return
    names = [f"{name} {comparison.build_name(builds[name])}" for name in ("base", "head") if builds.get(name)]
    section = Section(f"Compared: {', '.join(names)}" if names else "Compared")
    if pairs:
        section.blocks += [_verdicts(tally)]
    if tally["failing"]:
        section.blocks += [f"> {tally['failing']} slower by the threshold or more, and confirmed."]
    if machine.of("agreement") or changes:
        counts = f"**{tally['worse']} worse**, {tally['better']} better, {tally['moved']} otherwise changed"
        section.blocks += [f"{_results_words(machine)}: {counts}."]
    told = [pair for pair in pairs if comparison.verdict(pair) not in ("same", "identical")]
    section.add_table(PAIR, map(_pair_row, told))
    section.add_table(CHANGE, map(_change_row, changes))
    if told and comparison.ratio(told[0]) > 0:
        select = shlex.join(["--case", told[0]["case"], "--backend", told[0]["backend"]])
        section.blocks += ["To time the first of them alone, add this to the command:", block(select)]
    yield section


# ---- failures ----


def _failures(machine: Machine) -> Iterator[Section]:
    """Yields the failed checks, each once for all backends that fail it in the same way."""
    paths = ("case", "suite", "status", "error.worst_at", "error.got", "reason")
    failed = [check for check in machine.of("check") if check["status"] in (*outcome.FAILED, "inconclusive")]
    alike = grouped(failed, lambda check: repr([member(check, path) for path in paths]))
    section = Section(f"{show.count(len(failed))} failed")
    section.add_table(("", "backend", "case", "what", "repeat with"), (
        [md(first["status"].upper()), md(", ".join(check["backend"] for check in [first, *others])), first["case"],
         outcome.check_words(first), code(first.get("command", ""))]
        for first, *others in alike.values()
    ))  # fmt: skip
    yield section


# ---- evidence ----


def _passed(machine: Machine) -> Iterator[List[str]]:
    statuses = grouped(machine.of("check"), lambda check: (check["kernel"], check["backend"]))
    kernels, backends = (list(dict.fromkeys(key[at] for key in statuses)) for at in (0, 1))
    yield ["kernel", *(f">{name}" for name in backends)]
    for kernel in kernels:
        cells = []
        for backend in backends:
            count = Counter(check["status"] for check in statuses.get((kernel, backend), []))
            failed = sum(count[status] for status in outcome.FAILED)
            passed = f"{count['pass']} passed" if failed else str(count["pass"] or "-")
            cells.append(Markdown(f"**{failed} failed**, {passed}") if failed else passed)
        yield [kernel, *cells]


def _timings(machine: Machine) -> Iterator[List[str]]:
    yield ["case", "backend", ">median", ">interval", ">GB/s", ">% of roofline", "bound by", ">speed against libm",
           ">against autovec"]  # fmt: skip
    for row in timings(machine):
        half = max(abs(row.lo - row.median), abs(row.hi - row.median)) / row.median
        speedups = (f"{speed:.2f}" if speed else "-" for speed in (row.speedup_libm, row.speedup_autovec))
        yield [row.case, row.backend, units.time(row.median),
               f"±{100 * half:.1f} %{' (noisy)' if row.noisy else ''}",
               units.rate(number(row.record, "gbps") or 0.0), f"{100 * (row.share or 0.0):.0f} %",
               member(row.record, "bound.resource") or "", *speedups]  # fmt: skip


def _counts(machine: Machine) -> Iterator[List[str]]:
    yield ["case", "backend", "build", ">instructions", ">per element"]
    for record in machine.of("count"):
        elements, instructions = number(record, "elements"), number(record, "instructions")
        if elements and instructions is not None:
            yield [record["case"], record["backend"], record.get("build", ""), show.count(instructions),
                   f"{instructions / elements:.3g}"]  # fmt: skip


def _backends(machine: Machine) -> Iterator[List[str]]:
    yield ["backend", "family", "runs here", "description"]
    for backend in machine.of("backend"):
        runs = "yes" if backend.get("available") else f"no: {backend.get('unavailable_reason')}"
        yield [backend["id"], backend["family"], runs, backend.get("description", "")]


def _machine(machine: Machine) -> Iterator[List[str]]:
    def words(*paths: str) -> str:
        return ", ".join(str(value) for value in (member(machine.env, path) for path in paths) if value)

    caches = [
        f"L{cache.get('level')}{'d' if cache.get('type') == 'Data' else ''} {units.size(number(cache, 'bytes') or 0.0)}"
        for cache in machine.env.get("caches", [])
        if cache.get("type") != "Instruction"
    ]
    cpus = (number(machine.env, f"cpus.{name}") or 0.0 for name in ("allowed", "online"))
    facts = {
        "CPU": words("cpu.name", "cpu.key"), "CPUs": "{:.0f} allowed of {:.0f}".format(*cpus),
        "hypervisor": words("virtualization"), "caches": ", ".join(caches),
        "clock": words("frequency.governor", "frequency.driver", "frequency.boost"),
        "system": words("os.distro", "os.kernel", "os.libc"),
        "build": words("build.cc", "build.version", "build.type", "build.flags"),
    }  # fmt: skip
    yield ["fact", "value"]
    yield from ([name, value] for name, value in facts.items() if value)


EVIDENCE = {
    "Checks passed": _passed, "Timings": _timings, "Instructions of a call": _counts, "Backends": _backends,
    "Machine and build": _machine,
}  # fmt: skip


def _evidence(machine: Machine) -> Iterator[Section]:
    for title, table in EVIDENCE.items():
        section, (columns, *rows) = Section(title, folded=True), table(machine)
        section.add_table(columns, rows)
        yield section


def _about(machine: Machine) -> Iterator[Section]:
    header = machine.header
    version, commit = member(header, "tool.version"), str(member(header, "tool.commit") or "")[:12]
    line = f"posenc {md(version)}" + (f" ({md(commit)})" if commit else "") if version else "posenc"
    argv = [str(word) for word in header.get("argv") or []]
    yield Section("", [f"{line}: {code(shlex.join(argv))}" if argv else line])


# ---- the page ----


def _sections(machine: Machine) -> Iterator[Section]:
    notes = [f"> {note}" for note in _notes(machine) if note]
    if notes or machine.label:
        yield Section(machine.label, notes)
    for part in (_doctor, _comparison, _failures, _about, _evidence):
        for section in part(machine):
            section.title += f", {machine.label}" if machine.label and section.title else ""
            if section.blocks:
                yield section


def _size(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def to_page(records: List[Record], limit: int) -> str:
    """Returns a page of at most `limit` bytes."""
    heading = f"## posenc: {md(outcome.outcome_words(outcome.outcome_of(records)))}\n\n"
    sections = [section for machine in machines(records) for section in _sections(machine)]
    shown = [section for section in sections if not section.folded]
    room = limit - NOTE - _size([heading])
    for most in ROWS:
        texts = [section.write(most) for section in shown]
        if _size(texts) <= room:
            break
    while _size(texts) > room:
        texts.pop()
    missing = shown[len(texts) :]
    for section in (section for section in sections if section.folded):
        text = section.write(ROWS[0])
        if _size([*texts, text]) <= room:
            texts.append(text)
        else:
            missing.append(section)
    page = heading + "".join(texts)
    if missing:
        named = [md(section.title[:60]) for section in missing if section.title]
        page += f"> Left out, to stay within {limit // 1024} KiB: {', '.join(named[:NAMED])}"
        page += f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
        page += ". `posenc report RESULTS.jsonl` has all of it.\n"
    return page


def to_summary(records: List[Record]) -> str:
    """Returns the summary of a job on GitHub."""
    return to_page(records, SUMMARY)


def to_comment(records: List[Record]) -> str:
    """Returns the same page, short enough for a comment."""
    return to_page(records, COMMENT)
