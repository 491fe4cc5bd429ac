"""Markdown for the summary of a job on GitHub and for comments, within the sizes that GitHub takes.

The outcome stands in the heading. Notes, comparisons and failures follow, then the evidence, folded. Tables lose rows
and evidence is left out, section by section, until the page fits; a note names what is missing.
"""

import html
import re
import shlex
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Sequence, Union

from .. import quality, show, units
from ..convert import Record
from ..ranking import timings
from ..runs import Machine, machines, member, number
from . import comparison, outcome
from .annotations import findings

SUMMARY, COMMENT = 1024 * 1024, 64 * 1024
NOTE = 1024  # bytes kept for the note on what is missing
NAMED = 8  # sections that are named there
ROWS = (10_000, 1_000, 250, 50, 20, 10, 5, 2, 1, 0)  # of each table, until the page fits


# ---- Markdown ----


def md(text: Any) -> str:
    """Escapes what Markdown, HTML and tables would take for a mark."""
    return re.sub(r"([\\`*<\[\]|])", r"\\\1", str(text))


def code(text: str) -> str:
    """Returns text as code in a line or a cell."""
    return f"`{text}`".replace("|", "\\|") if text and not re.search(r"`|\\\|", text) else md(text)


def block(text: str) -> str:
    """Returns text as a block of code, between fences longer than any in it."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`+", text))])
    return f"{fence}\n{text}\n{fence}"


@dataclass
class Table:
    """A table of cells in Markdown. Columns that begin with > are flush right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def write(self, most: int) -> str:
        lines = [" | ".join(name.lstrip(">") for name in self.columns)]
        lines += ["|".join("---:" if name.startswith(">") else "---" for name in self.columns)]
        lines += [" | ".join(row) for row in self.rows[:most]]
        table = "\n".join(f"| {line} |" for line in lines)
        return table + (f"\n\n{len(self.rows) - most} more." if len(self.rows) > most else "")


@dataclass
class Section:
    """A part of the page: paragraphs and tables below a title."""

    title: str
    blocks: List[Union[str, Table]] = field(default_factory=list)
    folded: bool = False

    def write(self, most: int) -> str:
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


def _build(build: Record) -> str:
    rev, commit, version = (str(build.get(name) or "") for name in ("rev", "commit", "version"))
    if build.get("dirty"):
        return f"{rev} with changes that are not committed"
    name, detail = (rev, commit[:10]) if rev else (str(build.get("path") or "?"), version)
    return f"{name} ({detail})" if detail else name


def _pair_row(pair: Record) -> List[str]:
    change = interval = "-"
    if comparison.ratio(pair) > 0:
        lo, hi = (comparison.percent(number(pair, f"ci.{end}") or 0.0) for end in ("lo", "hi"))
        change = f"{comparison.percent(comparison.ratio(pair)):+.1f} %"
        interval = f"{lo:+.1f} to {hi:+.1f} %"
    times = [number(pair, f"{name}.ns") or 0.0 for name in ("base", "head")]
    return [md(pair["case"]), md(pair["backend"]), comparison.pair_word(pair),
            *(units.time(time) if time > 0 else "-" for time in times), change, interval,
            md(pair.get("reason", ""))]  # fmt: skip


def _change_row(change: Record) -> List[str]:
    limit, moved = number(change, "limit"), comparison.moved(change)
    return [md(change["case"]), md(change["backend"]), comparison.direction(change),
            md(change["what"]) + (f": {moved}" if moved else ""), md(comparison.side(change, "base")),
            md(comparison.side(change, "head")),
            "" if limit is None else f"{limit:.3g}", md(change.get("worst_at", ""))]  # fmt: skip


def _results_words(machine: Machine) -> str:
    agreements = machine.of("agreement")
    problems, values, cases = (
        sum(number(record, name) or 0.0 for record in agreements) for name in ("problems", "values", "cases")
    )
    if not agreements:
        return "Results"
    return f"Results of {show.count(cases)} cases, and {show.count(values)} values of {show.count(problems)} problems"


def _verdicts(tally: Dict[str, int]) -> str:
    """Returns how many pairs have each verdict."""
    always = ("slower", "faster", "unclear", "same")
    words = [f"**FAILED {tally['broken']}**"] if tally["broken"] else []
    for kind, word in comparison.WORDS.items():
        if kind in always or tally[kind]:
            bold = "**" if kind in ("slower", "faster") and tally[kind] else ""
            words.append(f"{bold}{word} {tally[kind]}{bold}")
    return "    ".join(words)


def _command(argv: List[str]) -> List[str]:
    """Returns the words of a command that say what is compared, without those that select rows or outputs."""
    kept, words = [], iter(argv)
    for word in words:
        if word in ("--out", "-o", "--case", "--backend", "--explain"):
            next(words, None)
        elif not re.match("--(force|gate|strict|all|out=|case=|backend=|explain=)", word):
            kept.append(word)
    return kept


def _again(machine: Machine, pair: Record) -> List[str]:
    """Returns how to time a pair again."""
    argv = [str(word) for word in machine.header.get("argv") or []]
    if not argv or comparison.verdict(pair) in ("same", "identical") or not comparison.ratio(pair) > 0:
        return []
    more = [*_command(argv), "--case", pair["case"], "--backend", pair["backend"]]
    return ["To time one of them again:", block(shlex.join(more))]


def _comparison(machine: Machine) -> Iterator[Section]:
    builds = machine.header.get("compare") or {}
    pairs, changes, tally = comparison.pairs(machine), comparison.changes(machine), comparison.tally(machine)
    if not (builds or pairs or changes):
        return
    names = [f"{name} {_build(builds[name])}" for name in ("base", "head") if isinstance(builds.get(name), dict)]
    section = Section(f"Compared: {', '.join(names)}" if names else "Compared")
    if pairs:
        section.blocks += [_verdicts(tally)]
    if tally["failing"]:
        section.blocks += [f"> {tally['failing']} slower by the threshold or more, and confirmed."]
    if machine.of("agreement") or changes:
        counts = f"**{tally['worse']} worse**, {tally['better']} better, {tally['moved']} otherwise changed"
        section.blocks += [f"{_results_words(machine)}: {counts}."]
    same = [pair for pair in pairs if comparison.verdict(pair) in ("same", "identical")]
    columns = ("case", "backend", "verdict", ">base", ">head", ">change", "interval", "why")
    rows = [_pair_row(pair) for pair in pairs if pair not in same]
    section.blocks += [Table(columns, rows)] if rows else []
    columns = ("case", "backend", "", "what", ">base", ">head", ">limit", "where")
    section.blocks += [Table(columns, [_change_row(change) for change in changes])] if changes else []
    section.blocks += _again(machine, pairs[0]) if pairs else []
    yield section


# ---- failures ----


def _failures(machine: Machine) -> Iterator[Section]:
    """Yields the failed checks, each once for all backends that fail it in the same way."""
    alike: Dict[str, List[Record]] = {}
    for check in machine.of("check"):
        if check["status"] in (*outcome.FAILED, "inconclusive"):
            where = [
                member(check, name) for name in ("case", "suite", "status", "error.worst_at", "error.got", "reason")
            ]
            alike.setdefault(repr(where), []).append(check)
    rows = []
    for checks in alike.values():
        first = checks[0]
        backends = ", ".join(check["backend"] for check in checks)
        rows.append([md(first["status"].upper()), md(backends), md(first["case"]), md(outcome.check_words(first)),
                     code(first.get("command", ""))])  # fmt: skip
    failed = sum(len(checks) for checks in alike.values())
    if rows:
        yield Section(f"{show.count(failed)} failed", [Table(("", "backend", "case", "what", "repeat with"), rows)])


# ---- evidence ----


def _conformance(machine: Machine) -> Iterator[Section]:
    kernels: Dict[str, Dict[str, List[str]]] = {}
    for check in machine.of("check"):
        kernels.setdefault(check["kernel"], {}).setdefault(check["backend"], []).append(check["status"])
    backends = list(dict.fromkeys(check["backend"] for check in machine.of("check")))

    def cell(statuses: List[str]) -> str:
        failed, passed = sum(statuses.count(status) for status in outcome.FAILED), statuses.count("pass")
        return f"**{failed} failed**, {passed} passed" if failed else str(passed) if passed else "-"

    rows = [[md(kernel), *(cell(of.get(backend, [])) for backend in backends)] for kernel, of in kernels.items()]
    if rows:
        yield Section("Checks passed", [Table(["kernel", *(f">{md(name)}" for name in backends)], rows)], folded=True)


def _timings(machine: Machine) -> Iterator[Section]:
    rows = []
    for row in timings(machine):
        half = max(abs(row.lo - row.median), abs(row.hi - row.median)) / row.median
        speedups = (number(row.record, name) for name in ("speedup_libm", "speedup_autovec"))
        rows.append([md(row.case), md(row.backend), units.time(row.median),
                     f"±{100 * half:.1f} %{' (noisy)' if row.noisy else ''}",
                     units.rate(number(row.record, "gbps") or 0.0), f"{100 * (row.share or 0.0):.0f} %",
                     md(member(row.record, "bound.resource") or ""),
                     *(f"{speedup:.2f}" if speedup else "-" for speedup in speedups)])  # fmt: skip
    columns = ("case", "backend", ">median", ">interval", ">GB/s", ">% of roofline", "bound by", ">speed against libm",
               ">against autovec")  # fmt: skip
    if rows:
        yield Section("Timings", [Table(columns, rows)], folded=True)


def _counts(machine: Machine) -> Iterator[Section]:
    rows = []
    for record in machine.of("count"):
        elements, instructions = number(record, "elements"), number(record, "instructions")
        if elements and instructions is not None:
            rows.append([md(record["case"]), md(record["backend"]), md(record.get("build", "")),
                         show.count(instructions), f"{instructions / elements:.3g}"])  # fmt: skip
    if rows:
        columns = ("case", "backend", "build", ">instructions", ">per element")
        yield Section("Instructions of a call", [Table(columns, rows)], folded=True)


def _backends(machine: Machine) -> Iterator[Section]:
    rows = [[md(backend["id"]), md(backend["family"]),
             "yes" if backend.get("available") else f"no: {md(backend.get('unavailable_reason'))}",
             md(backend.get("description", ""))] for backend in machine.of("backend")]  # fmt: skip
    if rows:
        yield Section("Backends", [Table(("backend", "family", "runs here", "description"), rows)], folded=True)


def _machine(machine: Machine) -> Iterator[Section]:
    def words(*paths: str) -> str:
        return ", ".join(str(value) for value in (member(machine.env, path) for path in paths) if value)

    caches = [
        f"L{cache.get('level')}{'d' if cache.get('type') == 'Data' else ''} {units.size(number(cache, 'bytes') or 0.0)}"
        for cache in machine.env.get("caches", [])
        if cache.get("type") != "Instruction"
    ]
    cpus = (number(machine.env, f"cpus.{name}") or 0.0 for name in ("allowed", "online"))
    facts = [
        ("CPU", words("cpu.name", "cpu.key")), ("CPUs", "{:.0f} allowed of {:.0f}".format(*cpus)),
        ("hypervisor", words("virtualization")), ("caches", ", ".join(caches)),
        ("clock", words("frequency.governor", "frequency.driver", "frequency.boost")),
        ("system", words("os.distro", "os.kernel", "os.libc")),
        ("build", words("build.cc", "build.version", "build.type", "build.flags")),
    ]  # fmt: skip
    rows = [[name, md(value)] for name, value in facts if value]
    yield Section("Machine and build", [Table(("fact", "value"), rows)], folded=True)


def _about(machine: Machine) -> Iterator[Section]:
    header = machine.header
    version, commit = member(header, "tool.version"), str(member(header, "tool.commit") or "")[:12]
    line = f"posenc {md(version)}" + (f" ({md(commit)})" if commit else "") if version else "posenc"
    argv = [str(word) for word in header.get("argv") or []]
    yield Section("", [f"{line}: {code(shlex.join(argv))}" if argv else line])


# ---- the page ----


def _sections(machine: Machine, name: str) -> List[Section]:
    notes = [f"> {note}" for note in _notes(machine) if note]
    found = [Section(name, list(notes))] if notes or name else []
    for part in (_doctor, _comparison, _failures, _about, _conformance, _timings, _counts, _backends, _machine):
        for section in part(machine):
            section.title += f", {name}" if name and section.title else ""
            found.append(section)
    return found


def _bytes(text: str) -> int:
    return len(text.encode())


def _fit(sections: List[Section], room: int) -> str:
    """Returns sections with as many rows as fit; those that do not fit at all stay in the list."""
    for most in ROWS:
        texts = [section.write(most) for section in sections]
        if sum(map(_bytes, texts)) <= room:
            sections.clear()
            return "".join(texts)
    fitting = []
    while sections and _bytes(sections[0].write(0)) <= room:
        fitting.append(sections.pop(0).write(0))
        room -= _bytes(fitting[-1])
    return "".join(fitting)


def to_page(records: List[Record], limit: int) -> str:
    """Returns a page of at most `limit` bytes."""
    found = machines(records)
    page = f"## posenc: {md(outcome.outcome_words(outcome.outcome_of(records)))}\n\n"
    names = [str(machine.env.get("env_id", "")) if len(found) > 1 else "" for machine in found]
    sections = [section for machine, name in zip(found, names) for section in _sections(machine, name)]
    shown = [section for section in sections if not section.folded]
    page += _fit(shown, limit - NOTE - _bytes(page))
    missing = shown  # what did not fit
    for section in (section for section in sections if section.folded):
        text = section.write(ROWS[0])
        if _bytes(page) + _bytes(text) <= limit - NOTE:
            page += text
        else:
            missing.append(section)
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
