"""Hooks of MkDocs for mkdocs.yml: pages from outside docs/, links to the repository, and the C API from the headers.

A docstring of a header, with the declarations below it up to an empty line, becomes an entry of c-api.md.
"""
import posixpath
import re
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"quick-start.md": "README.md", "index.md": "README.md", "contributing.md": "CONTRIBUTING.md",
         "security.md": "SECURITY.md", "changelog.md": "CHANGELOG.md"}
API = "c-api.md"
HEADERS = [f"impl/include/posenc{name}.h" for name in ("", "/relative", "/backend", "/experimental")]
SITE_PAGE = {**{source: page for page, source in PAGES.items()}, **dict.fromkeys(HEADERS, API)}
NAMES = r"\b(struct|enum) (?:POSENC_ENUM )?(posenc_\w+)(?= \{|;)|\b(posenc_\w+)\(|^#define (\w+)"


def on_config(config):
    """Expands patterns of the navigation, and forms the anchors of headings as GitHub does."""
    config["nav"] = expand_nav(config["nav"])
    config["mdx_configs"].setdefault("toc", {}).update(
        slugify=lambda title, _: re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-"))
    return config


def expand_nav(entry):
    if isinstance(entry, dict):
        return {title: expand_nav(value) for title, value in entry.items()}
    if isinstance(entry, list):
        return sum((part if isinstance(part, list) else [part] for part in map(expand_nav, entry)), [])
    if "*" not in entry:
        return entry
    pattern, _, kind = entry.partition(" ")  # such as: encodings/*.md kernel
    return [path.relative_to(ROOT / "docs").as_posix() for path in sorted((ROOT / "docs").glob(pattern))
            if not kind or f"\n\nA {kind}" in path.read_text("utf-8")]


def on_files(files, config):
    """Adds the pages that docs/ does not have, and leaves out its scripts and data."""
    for file in list(files):
        if file.abs_src_path.startswith(config["docs_dir"]) and not file.src_path.endswith((".md", ".svg", ".css")):
            files.remove(file)
    for page in (*PAGES, API):
        files.append(File(page, config["docs_dir"], config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_read_source(page, config):
    """Returns the text of a page that docs/ does not have."""
    name = page.file.src_path
    if name == API:
        return api_page()
    text = (ROOT / PAGES[name]).read_text("utf-8") if name in PAGES else None
    return re.search(r"(?s)#(# Quick start\n.*?)\n## Supported", text)[1] if name == "quick-start.md" else text


def on_page_markdown(markdown, page, config, files):
    """Points links to pages of the site, or to the repository if the site has no such page."""
    page.title = page.title.replace("`", "")
    here = PAGES.get(page.file.src_path, f"docs/{page.file.src_path}")

    def resolve(link):
        path, mark, anchor = link[1].partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
        if not link[1] or link[1][0] == "#" or "://" in link[1] or not (ROOT / path).exists():
            return link[0]
        inside = SITE_PAGE.get(path, posixpath.relpath(path, "docs"))
        if files.get_file_from_path(inside):
            return f"]({posixpath.relpath(inside, posixpath.dirname(page.file.src_path) or '.')}{mark}{anchor})"
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"]({config['repo_url'].rstrip('/')}/{kind}/main/{path}{mark}{anchor})"
    markdown = re.sub(r"\]\(([^)\s]*)\)", resolve, markdown).replace("<details>", "<details markdown>")
    # Names of functions in the text become links to the C API, but not those in blocks, headings and links.
    to_api = posixpath.relpath(API, posixpath.dirname(page.file.src_path) or ".")
    return re.sub(r"(?ms)^```.*?^```|^    .*?$|^#.*?$|\[[^\]]*\]\(|`(posenc_\w+)\(\)`",
                  lambda found: f"[{found[0]}]({to_api}#{found[1]})"
                  if found[1] and f"`{found[1]}`" in api_page() else found[0], markdown)


@lru_cache()
def api_page():
    """Returns the Markdown of the C API."""
    return "# C API\n\n" + "\n\n".join(part for header in HEADERS for part in describe_header(header))


def describe_header(path):
    """Yields the Markdown of a header: its own docstring, a heading for each section and one for each docstring."""
    yield f"## {path[len('impl/include/'):]}"
    text, sections = (ROOT / path).read_text("utf-8"), []
    for section, doc, code in re.findall(r"(?ms)^/\* ---- (.*?) ---- \*/$|^/\*\*(.*?)\*/$\n(.*?)(?=\n\n|\Z)", text):
        if section:
            sections = [f"### {section}"]  # unless nothing follows
        elif "@file" in doc:
            yield from describe(doc)
        else:
            code = re.sub(r"(?ms)\n\{\n.*?^\}", ";", code)  # bodies of inline functions
            found = re.findall(NAMES, re.sub(r"(?s)/\*.*?\*/", "", code), re.M)
            names = [" ".join(filter(None, groups)) for groups in found]
            marks = "".join(f'<span id="{name.split()[-1]}"></span>' for name in names if names[1:] or " " in name)
            yield from (*sections, f"#### {marks}" + ", ".join(f"`{name}`" for name in names), f"```c\n{code}\n```")
            yield from describe(doc)
            sections = []


def describe(doc):
    """Yields the paragraphs, lists, code and tables of a docstring."""
    doc = re.sub(r"(?m)^ \* ?|@brief |@file .*$", "", doc.strip("* \n"))
    for kind, group in groupby(re.sub(r"\n {8,}", " ", doc).splitlines(), kind_of_line):
        lines = [line.rstrip() for line in group]
        if kind in ("@param", "  "):
            rows = [re.match(r"(?:@param)? +((?:\w+, )*\S+) +(.*)", line).groups() for line in lines]
            yield "\n".join([f"| {'parameter' if kind == '@param' else 'name'} | meaning |", "|---|---|",
                             *(f"| `{name}` | {escape(re.sub('   +', ': ', words))} |" for name, words in rows)])
        elif kind in ("text", "@return"):
            yield re.sub("^@return", "**Returns**", escape(" ".join(lines)))
        elif kind:
            yield "\n".join(lines if kind == "    " else map(escape, lines))


def kind_of_line(line):
    found = re.match(r"@param|@return|    |  |- |$", line)
    return found[0] if found else "text"


def escape(words):
    """Returns text as Markdown, with the names of the interface as code."""
    return re.sub(r"`[^`]*`|(\b(?:struct |enum )?(?:posenc|POSENC)_\w+(?:\([\w, ]*\))?)|([\\*_<\[\]|])",
                  lambda found: f"`{found[1]}`" if found[1] else f"\\{found[2]}" if found[2] else found[0], words)
