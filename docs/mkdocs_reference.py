"""Markdown of the pages that no file holds: C API, command line, support, and the rows of the glossary.

Each is made of the sources that state its facts: headers, help texts, lists of kernels and backends, golden vectors.
"""
import os
import re
import runpy
import subprocess
import sys
from collections import Counter
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from mkdocs.exceptions import BuildError

ROOT = Path(__file__).resolve().parents[1]
HEADERS = [f"impl/include/posenc{name}.h" for name in ("", "/relative", "/backend", "/experimental")]
# In declarations: a struct or enum, a function, a macro.
NAMES = r"\b(struct|enum) (?:POSENC_ENUM )?(posenc_\w+)(?= \{|;)|\b(posenc_\w+)\(|^#define (\w+)"
# In posenc_kernels.def, which explains them: name, signature, x and angles of a kernel.
KERNEL = r'(?m)^POSENC_KERNEL\(\w+, (\w+), (\w+), "[^"]*",\s+\w+, (\w+), \w+, (\w+), \w+\)'
GLOSSARY = "The [glossary](glossary.md) defines the terms."
# Processors by the variable of impl/meson.build on which a backend depends.
PROCESSORS = {"": "any", "x86": "x86-64", "avx512_wanted": "x86-64", "arm": "ARM", "riscv": "RISC-V"}


def read(path):
    return (ROOT / path).read_text("utf-8")


def program():
    """Returns the path of the program posenc."""
    path = os.environ.get("POSENC", ROOT / "build" / "posenc")
    if not os.access(path, os.X_OK):
        raise BuildError(f"the pages of reference need the program (got '{path}'). Run ./run build, or set POSENC.")
    return path


def table(head, rows):
    """Returns a table in Markdown; cells are Markdown, too."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def escape(words):
    """Returns text as Markdown, with the names of the interface as code."""
    return re.sub(r"`[^`]*`|(\b(?:struct |enum )?(?:posenc|POSENC)_\w+(?:\([\w, ]*\))?)|([\\*_<\[\]|])",
                  lambda found: f"`{found[1]}`" if found[1] else f"\\{found[2]}" if found[2] else found[0], words)


# ---- C API: a docstring, with the declarations below it up to an empty line, becomes an entry ----


@lru_cache()
def api_page():
    """Returns the Markdown of the C API."""
    about = f"Functions and types of the headers. Errors are values of [one enum](#posenc_status). {GLOSSARY}"
    return "\n\n".join(["# C API", about, *(part for header in HEADERS for part in describe_header(header))])


def describe_header(path):
    """Yields the Markdown of a header: its own docstring, a heading for each section and one for each docstring."""
    yield f"## {path[len('impl/include/'):]}"
    text, pending_heading = read(path), []
    for section, doc, code in re.findall(r"(?ms)^/\* ---- (.*?) ---- \*/$|^/\*\*(.*?)\*/$\n(.*?)(?=\n\n|\Z)", text):
        if section:
            pending_heading = [f"### {section}"]  # unless nothing follows
        elif "@file" in doc:
            yield from describe(doc)
        else:
            code = re.sub(r"(?ms)\n\{\n.*?^\}", ";", code)  # bodies of inline functions
            found = re.findall(NAMES, re.sub(r"(?s)/\*.*?\*/", "", code), re.M)
            names = [" ".join(filter(None, groups)) for groups in found]
            # A heading of one function has an anchor of its own; one of several names, or of a struct, has not.
            anchors = "".join(f'<span id="{name.split()[-1]}"></span>' for name in names if names[1:] or " " in name)
            heading = f"#### {anchors}" + ", ".join(f"`{name}`" for name in names)
            yield from (*pending_heading, heading, f"```c\n{code}\n```")
            yield from describe(doc)
            pending_heading = []


def describe(doc):
    """Yields the paragraphs, lists, code and tables of a docstring."""
    doc = re.sub(r"(?m)^ \* ?|@brief |@file .*$", "", doc.strip("* \n"))
    for kind, group in groupby(re.sub(r"\n {8,}", " ", doc).splitlines(), kind_of_line):
        lines = [line.rstrip() for line in group]
        if kind in ("@param", "  "):
            rows = [re.match(r"(?:@param)? +((?:\w+, )*\S+) +(.*)", line).groups() for line in lines]
            yield table(["parameter" if kind == "@param" else "name", "meaning"],
                        ([f"`{name}`", escape(re.sub("   +", ": ", words))] for name, words in rows))
        elif kind in ("text", "@return"):
            yield re.sub("^@return", "**Returns**", escape(" ".join(lines)))
        elif kind:
            yield "\n".join(lines if kind == "    " else map(escape, lines))


def kind_of_line(line):
    """Returns what a line of a docstring begins with: @param, @return, four blanks (code), two (a row of names), "- "

    (an item of a list), or nothing (an empty line); "text" for any other.
    """
    found = re.match(r"@param|@return|    |  |- |$", line)
    return found[0] if found else "text"


# ---- The command line: the help texts, as in the man page ----


def cli_page():
    """Returns the Markdown of the command line."""
    sys.path.insert(0, str(ROOT / "cli" / "manual"))
    from manual import Page

    top = Page(program())
    below = top.with_below()[1:]
    summaries = dict(row for title, _, rows in top.blocks if not title for row in rows)
    commands = ([f"[{page.path}](#posenc-{page.path})", escape(summaries[page.path])] for page in top.below)
    last = [block for block in top.blocks if block[0] in ("Exit codes", "Environment")]
    return "\n\n".join([
        "# Command line",
        "Commands of the program `posenc`, with their options, exit codes and environment variables, as "
        f"`posenc COMMAND --help` prints them. C functions return [other codes](c-api.md#posenc_status). {GLOSSARY}",
        table(["command", "purpose"], commands),
        *(part for title, _, rows in last for part in (f"## {title}", help_table("name", rows))),
        *(part for page in below for part in command_parts(page)),
    ])


def command_parts(page):
    """Yields the parts of a command: its heading, usage, texts and options."""
    yield f"##{'#' * page.path.count(' ')} {page.name}"
    yield f"`{page.usage}`"
    for title, text, rows in page.blocks:
        if text:
            yield help_text(text)
        if title == "Examples":
            yield "```text\n" + "\n".join(line.strip() for line, _ in rows) + "\n```"
        elif rows:
            yield help_table(title, rows)


def help_table(title, rows):
    return table([title.lower() or "name", "meaning"],
                 ([", ".join(f"`{part}`" for part in first.split(", ")), help_text(text)] for first, text in rows))


def help_text(text):
    """Returns a help text as Markdown, with options and commands as code."""
    parts = re.split(r"(`[^`]*`|(?<![\w-])--?[a-z][\w-]*|\bposenc [a-z]+(?: [a-z]+)?(?=\)))", text)
    return "".join(f"`{part.strip('`')}`" if i % 2 else escape(part) for i, part in enumerate(parts))


# ---- Support: kernels, backends, processors ----


def support_page():
    """Returns the Markdown of kernels, modes, backends and platforms."""
    kernels = re.findall(KERNEL, read("impl/include/posenc_kernels.def"))
    provided = re.findall(r"KERNEL\((\w+)\)", read("impl/plugins/sleef.c"))
    cases = subprocess.check_output([program(), "list", "cases", "--quiet"], encoding="utf-8")
    vectors = Counter(re.findall(r"(?m)^(\w+)/(\w+)/", cases))
    headers = "".join(map(read, HEADERS))
    rows = []
    for name, signature, x, angles in kernels:
        about = re.search("A kernel, for (.*)", read(f"docs/encodings/{name}.md"))[1]
        arguments = re.search(rf"(?s)struct posenc_{signature}_args \{{.*?\n\}};", headers)[0]
        rows.append([f"[{name}](encodings/{name}.md)", about, yes_or_dash(x == "IN_PLACE"),
                     yes_or_dash("bool transpose;" in arguments), "all" if angles == "PLANNED" else "–",
                     *(str(vectors[name, dtype]) for dtype in ("f32", "f16", "bf16")), yes_or_dash(name in provided)])
    modes = (re.match(r"# (\w+)\n\nA numerics mode: (.*)", page.read_text("utf-8"))
             for page in sorted((ROOT / "docs" / "encodings").glob("*.md")))
    platforms = re.findall(r"(?m)^\| ((?:un)?tested.*?) \| (.*) \|$", read("README.md"))
    return "\n\n".join([
        "# Support",
        "Kernels, backends, element types, numerics modes and processors that posenc supports. "
        f"`posenc list` prints those of your machine. {GLOSSARY}",
        "## Kernels",
        "Every kernel runs on every backend below, except that the family sleef has only those marked in the last "
        "column. Each takes f32, f16 and bf16; the columns count golden vectors of these types.",
        table(["kernel", "encodings", "in place", "transpose", "modes", "f32", "f16", "bf16", "sleef"], rows),
        "## Numerics modes",
        "Kernels that form angles support each mode. The others read tables or biases.",
        table(["mode", "angles"], ([f"[{mode[1]}](encodings/{mode[1]}.md)", mode[2]] for mode in modes if mode)),
        "## Backends",
        "In the order of preference: the first that your processor supports is the default.",
        table(["backend", "family", "processor", "required CPU features", "implementation"], backend_rows()),
        "## Platforms",
        table(["evidence", "platforms"], platforms),
    ])


def yes_or_dash(is_so):
    return "yes" if is_so else "–"


def backend_rows():
    """Yields rows of the backends, from their files and from the table of the build."""
    build, needs = read("impl/meson.build"), {}
    for name in re.findall(r"POSENC_BACKEND\((\w+)\)", read("impl/backends.def")):
        entry = re.search(rf"(?s)'{name}': \{{(.*?)\}}[,\n]", build)[1]
        is_autovec = "PLAIN_NAME" in entry  # plain loops, which the build names by its flags
        facts = entry if is_autovec else read(f"impl/backends/{name}.c")
        needed, about = (re.search(rf"(?:TEMPLATE|PLAIN)_{fact}(?:=|[\s\\\\]+)\"(.*?)\"", facts)[1]
                         for fact in ("NEEDS", "DESCRIPTION"))
        family = "autovec" if is_autovec else "libm" if "PLAIN_NAME" in facts else "native"
        processor = PROCESSORS[(re.search(r"'when': (\w+)", entry) or ["", ""])[1]]
        needs[name] = processor, needed
        yield [f"`{name}`", family, processor, needed or "none", about]
    about = re.search('description = "([^"]*),', read("impl/plugins/sleef.c"))[1]
    for name, isa in re.findall(r"'(sleef_\w+)': '(\w+)'", read("impl/plugins/meson.build")):
        yield [f"`{name}`", "sleef", *needs[isa], about]


# ---- The glossary: terms of docs/glossary.md, and those of reports ----


def glossary_page():
    """Returns docs/glossary.md with the terms of reports among its rows, each with an anchor."""
    terms = runpy.run_path(str(ROOT / "reports" / "posenc" / "report" / "glossary.py"))["TERMS"]
    text, mark, rows = read("docs/glossary.md").partition("|---|---|\n")
    rows = [row.strip("| ").split(" | ") for row in rows.splitlines()]
    for key, term in terms.items():
        kind = re.match("suite|verdict", key)
        rows.append([f"{term.name} ({kind[0]})" if kind else term.name, escape(term.text)])
    anchors = ([f'<span id="{re.sub("[^a-z]+", "-", name.lower()).strip("-")}"></span>{name}', meaning]
               for name, meaning in sorted(rows, key=lambda row: row[0].lower()))
    return text[:text.index("| term")] + table(["term", "meaning"], anchors)
