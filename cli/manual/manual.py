"""Writes the man page of posenc, and completions for bash, zsh and fish: manual.py PROGRAM FOLDER.

All four are made of the texts of posenc --help and posenc COMMAND --help. Such a text has a usage line, paragraphs, and
rows below a title; two blanks end the first part of a row. The values of an option follow from its help, too:
"(posenc list models)" offers these names, and ": a, b or c" offers these words.
"""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# On such a wide terminal argparse breaks no line.
ENVIRONMENT = {**os.environ, "COLUMNS": "5000", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
TITLE = r"[A-Za-z][\w -]{1,40}:?"
FLAG = r"--?[\w-]+"
TEMPLATES = Path(__file__).parent
# Prints the names in the tables of posenc list: first words, without marks and headings.
AWK = """{ sub(/^[*+ ] /, "") }
/^[a-z0-9][a-z0-9._-]*  / && $1 !~ /^(kernel|backend|model|scaling|method)$/ { print $1 }"""


class Values:
    """Values of an option or an operand: words, names that `posenc list KIND` prints, or files."""

    def __init__(self, argument, text):
        words = re.search(r": ((?:[\w-]+, )+[\w-]+(?: or [\w-]+)?)(?: \(|$)", text)
        self.argument, self.text = argument, text
        self.words = {word: "" for word in re.split(", | or ", words[1])} if words and argument == "NAME" else {}
        self.kinds = re.findall(r"posenc list (\w+)", text) if argument in ("NAME", "THING") else []
        self.files = re.match("FILE|PATH|LIB|FOLDER|BASE", argument) is not None


class Option(Values):
    """An option: its flags, its values and its help."""

    def __init__(self, term, text):
        self.flags = re.findall(f"(?:^|, )({FLAG})", term)
        super().__init__(re.sub(f".*{FLAG} ?", "", term), text)


class Page:
    """The help of a command, and of the commands below it."""

    def __init__(self, program, *path, summary=""):
        self.path, self.name = " ".join(path), " ".join(("posenc", *path))
        done = subprocess.run(
            [program, *path, "--help"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=120,
            encoding="utf-8",
            env=ENVIRONMENT,
        )
        if done.returncode != 0 and not path:
            sys.exit(f"{program} --help: exit code {done.returncode}\n{done.stderr}")
        # A command that lacks a module of Python prints no help: its summary remains.
        helps = done.stdout if done.returncode == 0 else f"usage: {self.name}\n\n{summary}."
        usage, _, text = helps.partition("\n")
        operands = re.sub(r" \[(-|OPTIONS)([^][]|\[[^]]*\])*\]", "", usage)[len(f"usage: {self.name} ") :]
        self.usage = f"{self.name} {operands} [OPTIONS]".replace("  ", " ")
        self.blocks = list(read_blocks(text))
        self.options = [Option(*row) for title, _, rows in self.blocks if title == "Options" for row in rows]
        for title, _, rows in self.blocks:
            for option in self.options:
                if title == f"Formats of {option.flags[-1]}":
                    option.words = dict(rows)
        tables = (rows for title, _, rows in self.blocks if rows and title not in ("Options", "Examples"))
        self.operand = self.read_operand(operands, next(tables, []) if operands else [])
        below = self.operand.words.items() if operands.startswith(("COMMAND", "KIND")) else []
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.below = list(pool.map(lambda row: Page(program, *path, row[0], summary=row[1]), below))

    @staticmethod
    def read_operand(operands, rows):
        first = (operands.split() or [""])[0].strip("[]")
        if "|" in first:
            return Values("NAME", ": " + first.replace("|", ", "))
        operand = Values(first, rows[0][1] if rows else "")
        if first in ("COMMAND", "KIND", "TABLE"):
            operand.words = dict(rows)
        return operand

    def all(self):
        """Returns this page and those below it."""
        return [self] + [page for child in self.below for page in child.all()]


def read_blocks(text):
    """Yields blocks of a help text: a title or "", a paragraph, and the rows [first part, text] below them."""
    text = re.sub(f"(?m)^({TITLE})\n(?= )", r"\n\n\1\n", text)
    for block in re.split("\n\n+", text.strip("\n")):
        lines = block.split("\n")
        head = [line for line in lines if not line.startswith(" ")]
        title = head[0].strip(":").capitalize() if re.fullmatch(f"{TITLE}\n .*", block, re.S) else ""
        rows = []
        for line in lines[len(head) :]:
            if title == "Examples":
                rows.append([line, ""])
            elif line.startswith(" " * 10):
                rows[-1][1] = f"{rows[-1][1]} {line.strip()}".strip()
            else:
                rows.append((re.split(" {2,}", line.strip(), maxsplit=1) + [""])[:2])
        yield title, "" if title else "\n".join(head), rows


# ---- The man page, in the macros of mdoc ----


def roff(text):
    """Returns a text as roff has to be given it."""
    text = re.sub(r"([.?!][)]?) +(?=[A-Z])", r"\1\n", text)  # a sentence, a line
    text = re.sub("(?m)^(?=[.'])", r"\\&", text.replace("\\", "\\e").replace("-", "\\-"))
    return re.sub("[^\0-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", text)


def mdoc(blocks):
    lines = []
    for title, text, rows in blocks:
        lines += [".Pp", f".Sy {title}" if title else roff(text), ".Pp" if rows and title != "Examples" else ""]
        if title == "Examples":
            lines += [".Bd -literal -offset indent", *(roff(line) for line, _ in rows), ".Ed"]
        elif rows:
            lines.append(".Bl -tag -width Ds -compact")
            for first, text in rows:
                words = [f"{'Ar' if word[0].isupper() else 'Sy'} \\&{roff(word)}" for word in first.split()]
                lines += [".It " + " ".join(words), roff(text)]
            lines.append(".El")
    return re.sub(r"^(\.Pp\n)+|\.Pp\n(?=\.Pp)", "", "\n".join(line for line in lines if line))


def man_page(top, version):
    date = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    about = top.blocks[0][1].partition(":")[0]
    last = {"Environment": "ENVIRONMENT", "Exit codes": "EXIT STATUS"}
    parts = [
        f".Dd {time.strftime('%B', date)} {date.tm_mday}, {date.tm_year}\n.Dt POSENC 1\n.Os {version}",
        f".Sh NAME\n.Nm posenc\n.Nd {roff(about[0].lower() + about[1:])}",
        ".Sh SYNOPSIS\n.Nm\n" + roff(top.usage.partition(" ")[2]),
        ".Sh DESCRIPTION\n" + mdoc(block for block in top.blocks if block[0] not in last),
        ".Sh COMMANDS",
    ]
    parts += [f".Ss {page.name}\n{roff(page.usage)}\n.Pp\n{mdoc(page.blocks)}" for page in top.all()[1:]]
    for title, heading in last.items():
        parts.append(f".Sh {heading}\n" + mdoc(("", "", rows) for name, _, rows in top.blocks if name == title))
    return "\n".join(parts) + "\n"


# ---- Completions ----


def quoted(text):
    """Returns a text in single quotes, without those that it has: shells escape them differently."""
    return "'" + re.sub(r"['\\]", "", text) + "'"


def bash(page):
    """Yields lines of case for PATH:PREVIOUS:CURRENT: the values of each option, the options, the operands."""
    for values in [option for option in page.options if option.argument] + [page.operand]:
        keys = [f'"{page.path}:{flag}:"*' for flag in getattr(values, "flags", [])] or [f'"{page.path}:"*']
        names = f" $(_posenc_names {' '.join(values.kinds)})" if values.kinds else ""
        if values is page.operand:
            yield f"""{keys[0]}:-*) words="{' '.join(flag for option in page.options for flag in option.flags)}" ;;"""
        yield f"""{'|'.join(keys)}) words="{' '.join(values.words)}{names}" files={'yes' * values.files} ;;"""


def zsh(page):
    """Yields the arguments of _arguments for a page."""

    def action(values):
        if values.words:
            rows = [
                word + (r"\:" + re.sub(r"\W", r"\\\g<0>", text.replace(":", ",")) if text else "")
                for word, text in values.words.items()
            ]
            return f"(({' '.join(rows)}))".replace("'", "")
        return f" _posenc_names {' '.join(values.kinds)}" if values.kinds else "_files" if values.files else " "

    yield f'"{page.path}") _arguments -S \\'
    for option in page.options:
        about = re.sub(r"[][]", r"\\\g<0>", re.sub(r"['\\]", "", option.text))
        for flag in option.flags:
            sign = ("=" if flag.startswith("--") else "+") if option.argument else ""
            value = f":{option.argument.replace(':', '-')}:{action(option)}" if sign else ""
            yield f"    '*{flag}{sign}[{about}]{value}' \\"
    operand = page.operand
    yield f"    '*:{operand.argument}:{action(operand)}' ;;" if operand.argument else "    ;;"


def fish(page):
    """Yields the commands that complete options and operands of a page."""

    def values_of(values):
        offers = [*values.words, *([f"(__posenc_names {' '.join(values.kinds)})"] if values.kinds else [])]
        return f" -a {quoted(' '.join(offers))}" if offers else " -F" if values.files else ""

    begin = f"complete -c posenc -n '__posenc_at {page.path}'"
    for option in page.options:
        flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
        value = (" -r" if option.files else " -x") + values_of(option) if option.argument else ""
        yield f"{begin} {flags}{value} -d {quoted(option.text)}"
    for word, text in page.operand.words.items() if page.below else []:
        yield f"complete -c posenc -n '__posenc_is {page.path}' -a {word} -d {quoted(text)}"
    if not page.below and values_of(page.operand):
        yield begin + values_of(page.operand)


def main(program, folder):
    top = Page(program)
    version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    out = Path(folder)
    (out / "posenc.1").write_text(man_page(top, version.strip()), encoding="utf-8")
    for name, shell, lines in (("posenc", "bash", bash), ("_posenc", "zsh", zsh), ("posenc.fish", "fish", fish)):
        text = (TEMPLATES / f"completion.{shell}.in").read_text(encoding="utf-8")
        paths = "|".join(f'"{page.path}"' for page in top.all()[1:])
        text = text.replace("@PATHS@", paths).replace("@NAMES@", AWK)
        text = text.replace("@LINES@", "\n".join(f"    {line}" for page in top.all() for line in lines(page)))
        (out / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
