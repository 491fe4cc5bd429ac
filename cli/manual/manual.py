"""Writes the man page of posenc, and completions for bash, zsh and fish, into a folder: manual.py PROGRAM FOLDER.

All four are made of the texts of posenc --help and posenc COMMAND --help. Such a text has a usage line, paragraphs, and
rows below a title, such as Options; two blanks end the first part of a row:

          --kernel NAME         select kernels (posenc list kernels)

The values of an option follow from its help, too: "(posenc list kernels)" offers the names that this command prints,
and ": a, b or c" offers these words.
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
WITH_COMMANDS = ("COMMAND", "KIND")  # operands that are commands, with a help of their own
TEMPLATES = Path(__file__).parent
# Prints the names in the tables of posenc list: first words, without marks and headings.
AWK = """{ sub(/^[*+ ] /, "") }
/^[a-z0-9][a-z0-9._-]*  / && $1 !~ /^(kernel|backend|model|scaling|method)$/ { print $1 }"""


# ---- Help texts ----


class Values:
    """Values that an option or an operand accepts.

    argument  "NAME" in "--kernel NAME", or ""
    words     {word: its help}
    kinds     operands of posenc list that print further values
    files     True if values are names of files
    """

    def __init__(self, argument, text):
        listed = re.search(r": ((?:[\w-]+, )+[\w-]+(?: or [\w-]+)?)(?: \(|$)", text)
        self.argument, self.text = argument, text
        self.words = {word: "" for word in re.split(", | or ", listed[1])} if listed and argument == "NAME" else {}
        self.kinds = re.findall(r"posenc list (\w+)", text) if argument in ("NAME", "THING") else []
        self.files = re.match("FILE|PATH|LIB|FOLDER|BASE", argument) is not None


class Option(Values):
    """An option: its flags ["-j", "--jobs"], its values and its help."""

    def __init__(self, term, text):
        self.flags = re.findall(f"(?:^|, )({FLAG})", term)
        super().__init__(re.sub(f".*{FLAG} ?", "", term), text)


class Page:
    """The help of a command, such as posenc results export, and the pages of the commands below it."""

    def __init__(self, program, *path, summary=""):
        self.path, self.name = " ".join(path), " ".join(("posenc", *path))
        usage, _, text = read_help(program, path, f"usage: {self.name}\n\n{summary}.").partition("\n")
        operands = re.sub(r" \[(-|OPTIONS)([^][]|\[[^]]*\])*\]", "", usage)[len(f"usage: {self.name} ") :]
        self.usage = f"{self.name} {operands} [OPTIONS]".replace("  ", " ")
        self.blocks = list(read_blocks(text))
        self.options = [Option(*row) for title, _, rows in self.blocks if title == "Options" for row in rows]
        for title, _, rows in self.blocks:
            for option in self.options:
                if title == f"Formats of {option.flags[-1]}":
                    option.words = dict(rows)
        self.operand = self.read_operand(operands)
        commands = self.operand.words.items() if operands.startswith(WITH_COMMANDS) else []
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.below = list(pool.map(lambda row: Page(program, *path, row[0], summary=row[1]), commands))

    def read_operand(self, operands):
        """Returns the values of the first operand, which the first table that is not of options describes."""
        first = (operands.split() or [""])[0].strip("[]")
        if "|" in first:
            return Values("NAME", ": " + first.replace("|", ", "))
        tables = [rows for title, _, rows in self.blocks if rows and title not in ("Options", "Examples")]
        rows = tables[0] if operands and tables else []
        operand = Values(first, rows[0][1] if rows else "")
        if first in (*WITH_COMMANDS, "TABLE"):
            operand.words = dict(rows)
        return operand

    def with_below(self):
        """Returns this page and those below it."""
        return [self] + [page for child in self.below for page in child.with_below()]


def read_help(program, path, instead):
    """Returns the help of a command. A command that lacks a module of Python prints none: `instead` replaces it."""
    command, silent = [program, *path, "--help"], subprocess.DEVNULL
    done = subprocess.run(command, stdin=silent, capture_output=True, timeout=120, encoding="utf-8", env=ENVIRONMENT)
    if done.returncode != 0 and not path:
        sys.exit(f"{program} --help: exit code {done.returncode}\n{done.stderr}")
    return done.stdout if done.returncode == 0 else instead


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
            elif line.startswith(" " * 10):  # continues the row above
                rows[-1][1] = f"{rows[-1][1]} {line.strip()}".strip()
            else:
                rows.append((re.split(" {2,}", line.strip(), maxsplit=1) + [""])[:2])
        yield title, "" if title else "\n".join(head), rows


# ---- The man page, in the macros of mdoc ----


def to_roff(text):
    """Returns a text with the characters escaped that roff interprets, and a line for each sentence."""
    text = re.sub(r"([.?!][)]?) +(?=[A-Z])", r"\1\n", text)
    text = re.sub("(?m)^(?=[.'])", r"\\&", text.replace("\\", "\\e").replace("-", "\\-"))
    return re.sub("[^\0-\x7f]", lambda character: f"\\[u{ord(character[0]):04X}]", text)


def to_mdoc(blocks):
    """Returns the lines of the man page for blocks of a help text."""
    lines = []
    for title, text, rows in blocks:
        lines += [".Pp", f".Sy {title}" if title else to_roff(text), ".Pp" if rows and title != "Examples" else ""]
        if title == "Examples":
            lines += [".Bd -literal -offset indent", *(to_roff(line) for line, _ in rows), ".Ed"]
        elif rows:
            lines.append(".Bl -tag -width Ds -compact")
            for first, text in rows:
                words = [f"{'Ar' if word[0].isupper() else 'Sy'} \\&{to_roff(word)}" for word in first.split()]
                lines += [".It " + " ".join(words), to_roff(text)]
            lines.append(".El")
    return re.sub(r"^(\.Pp\n)+|\.Pp\n(?=\.Pp)", "", "\n".join(line for line in lines if line))


def make_man_page(top, version):
    """Returns the man page. The tables of environment and exit codes stand at its end, as is usual."""
    last = {"Environment": "ENVIRONMENT", "Exit codes": "EXIT STATUS"}
    date = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    about = top.blocks[0][1].partition(":")[0]
    parts = [
        f".Dd {time.strftime('%B', date)} {date.tm_mday}, {date.tm_year}\n.Dt POSENC 1\n.Os {version}",
        f".Sh NAME\n.Nm posenc\n.Nd {to_roff(about[0].lower() + about[1:])}",
        ".Sh SYNOPSIS\n.Nm\n" + to_roff(top.usage.partition(" ")[2]),
        ".Sh DESCRIPTION\n" + to_mdoc(block for block in top.blocks if block[0] not in last),
        ".Sh COMMANDS",
    ]
    for page in top.with_below()[1:]:
        parts.append(f".Ss {page.name}\n{to_roff(page.usage)}\n.Pp\n{to_mdoc(page.blocks)}")
    for title, heading in last.items():
        parts.append(f".Sh {heading}\n" + to_mdoc(("", "", rows) for name, _, rows in top.blocks if name == title))
    return "\n".join(parts) + "\n"


# ---- Completions: lines for @LINES@ in the template of a shell ----


def quote(text):
    """Returns a text in single quotes, without those that it has: shells escape them differently."""
    return "'" + re.sub(r"['\\]", "", text) + "'"


def bash_lines(page):
    """Yields lines of case for PATH:PREVIOUS:CURRENT: the values of each option, the options, the operands.

    "verify:--suite:"*) words="vectors accuracy" files= ;;
    """

    def offer(keys, values):
        names = f" $(_posenc_names {' '.join(values.kinds)})" if values.kinds else ""
        return f"""{keys}) words="{' '.join(values.words)}{names}" files={'yes' * values.files} ;;"""

    for option in page.options:
        if option.argument:
            yield offer("|".join(f'"{page.path}:{flag}:"*' for flag in option.flags), option)
    flags = " ".join(flag for option in page.options for flag in option.flags)
    yield f'"{page.path}:"*:-*) words="{flags}" ;;'
    yield offer(f'"{page.path}:"*', page.operand)


def zsh_lines(page):
    """Yields the arguments of _arguments for a page.

    '*--suite=[run one suite]:NAME:((vectors accuracy))'
    """

    def escape(text):
        return re.sub(r"\W", r"\\\g<0>", text.replace(":", ","))

    def action_of(values):
        if values.words:
            rows = [word + (rf"\:{escape(text)}" if text else "") for word, text in values.words.items()]
            return f"(({' '.join(rows)}))".replace("'", "")
        return f" _posenc_names {' '.join(values.kinds)}" if values.kinds else "_files" if values.files else " "

    yield f'"{page.path}") _arguments -S \\'
    for option in page.options:
        about = re.sub(r"[][]", r"\\\g<0>", re.sub(r"['\\]", "", option.text))
        for flag in option.flags:
            sign = ("=" if flag.startswith("--") else "+") if option.argument else ""
            value = f":{option.argument.replace(':', '-')}:{action_of(option)}" if sign else ""
            yield f"    '*{flag}{sign}[{about}]{value}' \\"
    operand = page.operand
    yield f"    '*:{operand.argument}:{action_of(operand)}' ;;" if operand.argument else "    ;;"


def fish_lines(page):
    """Yields the commands that complete options and operands of a page.

    complete -c posenc -n '__posenc_at verify' -l suite -x -a 'vectors accuracy' -d 'run one suite'
    """

    def offer(values):
        offers = [*values.words, *([f"(__posenc_names {' '.join(values.kinds)})"] if values.kinds else [])]
        return f" -a {quote(' '.join(offers))}" if offers else " -F" if values.files else ""

    begin = f"complete -c posenc -n '__posenc_at {page.path}'"
    for option in page.options:
        flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
        value = (" -r" if option.files else " -x") + offer(option) if option.argument else ""
        yield f"{begin} {flags}{value} -d {quote(option.text)}"
    for word, text in page.operand.words.items() if page.below else []:
        yield f"complete -c posenc -n '__posenc_is {page.path}' -a {word} -d {quote(text)}"
    if not page.below and offer(page.operand):
        yield begin + offer(page.operand)


SHELLS = (("posenc", "bash", bash_lines), ("_posenc", "zsh", zsh_lines), ("posenc.fish", "fish", fish_lines))


def main(program, folder):
    top = Page(program)
    version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    (Path(folder) / "posenc.1").write_text(make_man_page(top, version.strip()), encoding="utf-8")
    pages = top.with_below()
    paths = "|".join(f'"{page.path}"' for page in pages[1:])
    for file_name, shell, lines_of in SHELLS:
        text = (TEMPLATES / f"completion.{shell}.in").read_text(encoding="utf-8")
        text = text.replace("@PATHS@", paths).replace("@NAMES@", AWK)
        text = text.replace("@LINES@", "\n".join(f"    {line}" for page in pages for line in lines_of(page)))
        (Path(folder) / file_name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
