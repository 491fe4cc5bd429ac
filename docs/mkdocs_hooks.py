"""Hooks of MkDocs for mkdocs.yml: pages from outside docs/, generated pages, and links to the repository."""
import posixpath
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import mkdocs_reference as reference  # noqa: E402

PAGES = {"quick-start.md": "README.md", "index.md": "README.md", "contributing.md": "CONTRIBUTING.md",
         "security.md": "SECURITY.md", "changelog.md": "CHANGELOG.md"}
API = "c-api.md"
GENERATED = {API: reference.api_page, "cli.md": reference.cli_page, "support.md": reference.support_page,
             "glossary.md": reference.glossary_page}
SITE_PAGE = {**{source: page for page, source in PAGES.items()}, **dict.fromkeys(reference.HEADERS, API)}


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
    for page in {**PAGES, **GENERATED}:
        if not files.get_file_from_path(page):
            files.append(File(page, config["docs_dir"], config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_read_source(page, config):
    """Returns the text of a page that docs/ does not have, or that is generated."""
    name = page.file.src_path
    if name in GENERATED:
        return GENERATED[name]()
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
                  if found[1] and f"`{found[1]}`" in reference.api_page() else found[0], markdown)
