"""Digests of a kernel's machine code that do not depend on its layout, from what objdump prints of x86-64.

A digest covers all that a call may run and read in its library: each function that jumps, calls and addresses lead
to, line by line, and the data that these refer to. A place in code becomes the ordinal of its function and of its
line, a place in data the ordinal of its symbol and the offset, a constant its bytes, a function of another library
its name. NOPs that align the target of a jump do not count.

Code that cannot be followed to its end has no digest: unknown is never the same.
"""

import bisect
import hashlib
import os
import re
import subprocess
from collections import deque
from functools import lru_cache
from typing import Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

WIDTHS = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "TBYTE": 10, "XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64}
WORD = 8

_SECTION = re.compile(r"^ *\d+ (\S+) +([0-9a-f]+)  ([0-9a-f]+)  [0-9a-f]+  ([0-9a-f]+)  \S+  (.*)$", re.M)
_SYMBOL = re.compile(r"^([0-9a-f]{16}) .{6}[FiO] (\S+)\t([0-9a-f]+) +(?:\.\w+ )?(\S+)$", re.M)
_RELOCATION = re.compile(r"^([0-9a-f]{16}) (R_X86_64_\w+) +(\S+?)(?:@\S*?)?(?:\+0x([0-9a-f]+))?$", re.M)
_HEADING = re.compile(r"^([0-9a-f]{16}) <.*>:$", re.M)
_LINE = re.compile(r"^ *([0-9a-f]+):\t(.*?) *(?:# ([0-9a-f]+)(?: <.*)?)?$", re.M)
_GOES = re.compile(r"((?:\w+ )*(?:call|j\w+|loop\w*|xbegin)) +([0-9a-f]+) <.*>$")
_COMPUTED = re.compile(r"(?:\w+ )*jmp +(?:QWORD PTR \[([^]]*)\]|(\w+))$")
_NOP = re.compile(r"(?:data16 |cs |rep )*(?:nop\b|xchg +ax,ax)")
_RELATIVE = re.compile(r"(?:(\w+) (?:PTR|BCST) )?\[rip[+-]0x[0-9a-f]+\]")
_TEXT = re.compile(rb"[ -~\n\t]{1,1024}\0")

Piece = Tuple[str, Optional[int]]  # text, and the address that it ends with


class Unknown(Exception):
    """The reason why code has no digest."""


class Section(NamedTuple):
    """A part of a library that is loaded."""

    begin: int
    end: int
    name: str
    flags: str
    offset: int  # in the file


class Symbol(NamedTuple):
    """A function or an object."""

    begin: int
    end: int
    name: str
    section: Section


class Library:
    """The code of a shared library."""

    def __init__(self, path: str) -> None:
        """Raises Unknown if objdump cannot read it, or it has no symbols."""
        head = _objdump(path, "-h", "-w", "-t", "-R")
        if "file format elf64-x86-64" not in head:
            raise Unknown("it is not x86-64 code")
        self._code = _objdump(path, "-d", "-z", "-w", "-M", "intel", "--no-show-raw-insn")
        with open(path, "rb") as file:
            self._bytes = file.read()
        self._sections = [
            Section(int(at, 16), int(at, 16) + int(size, 16), name, flags, int(offset, 16))
            for name, size, at, offset, flags in _SECTION.findall(head)
            if "ALLOC" in flags and "THREAD_LOCAL" not in flags
        ]
        sections = {section.name: section for section in self._sections}
        if ".relr.dyn" in sections:
            raise Unknown("its relocations are packed")
        self._symbols = sorted(
            Symbol(int(at, 16), int(at, 16) + int(size, 16), name, sections[section])
            for at, section, size, name in _SYMBOL.findall(head)
            if section in sections and int(size, 16) > 0
        )
        if not self._symbols:
            raise Unknown("the library has no symbols")
        self._named = {symbol.name: symbol.begin for symbol in self._symbols}
        self._relocations = {int(at, 16): told for at, *told in _RELOCATION.findall(head)}
        self._headings = [(int(at[1], 16), at.start()) for at in _HEADING.finditer(self._code)]
        self._headings.append((1 << 64, len(self._code)))
        self._ranks: Dict[int, Dict[str, int]] = {}  # of lines by address, by the begin of their function
        self._contents: Dict[int, List[Piece]] = {}

    def digest(self, entries: Sequence[int]) -> str:
        """Returns the digest of all that functions lead to. Raises Unknown if something cannot be followed."""
        ordinals: Dict[int, int] = {}
        pending: Deque[Symbol] = deque()
        state = hashlib.sha256()

        def place(address: int) -> str:
            symbol = self._symbol(address)
            if symbol.begin not in ordinals:
                ordinals[symbol.begin] = len(ordinals)
                pending.append(symbol)
            return f"{ordinals[symbol.begin]}+{self._offset(symbol, address)}"

        pieces: List[Piece] = [("entry ", entry) for entry in entries]
        while True:
            for text, address in pieces:
                state.update(f"{text}{'' if address is None else place(address)}\n".encode("latin-1"))
            if not pending:
                return state.hexdigest()
            pieces = self._content(pending.popleft())

    # ---- what lies where ----

    def _section(self, address: int) -> Section:
        for section in self._sections:
            if section.begin <= address < section.end:
                return section
        raise Unknown(f"an address outside of the library, {address:#x}")

    def _read(self, begin: int, end: int) -> bytes:
        section = self._section(begin)
        return self._bytes[begin - section.begin + section.offset : end - section.begin + section.offset]

    def _symbol(self, address: int) -> Symbol:
        """Returns the symbol, or the string, that an address lies in."""
        at = bisect.bisect(self._symbols, (address + 1,)) - 1
        if at >= 0 and address < self._symbols[at].end:
            return self._symbols[at]
        section = self._section(address)
        text = _TEXT.match(self._bytes, address - section.begin + section.offset) if _is_constant(section) else None
        if not text:
            raise Unknown(f"{'code' if 'CODE' in section.flags else 'data'} of unknown extent at {address:#x}")
        return Symbol(address, address + len(text[0]), "", section)

    def _offset(self, symbol: Symbol, address: int) -> int:
        """Returns the bytes from the begin of data, or the lines from that of a function."""
        if "CODE" not in symbol.section.flags:
            return address - symbol.begin
        if address == symbol.begin:
            return 0
        self._content(symbol)
        if f"{address:x}" not in self._ranks[symbol.begin]:
            raise Unknown(f"no instruction at {address:#x}")
        return self._ranks[symbol.begin][f"{address:x}"]

    def _content(self, symbol: Symbol) -> List[Piece]:
        if symbol.begin not in self._contents:
            is_code = "CODE" in symbol.section.flags
            self._contents[symbol.begin] = self._function(symbol) if is_code else self._data(symbol)
        return self._contents[symbol.begin]

    # ---- data ----

    def _data(self, symbol: Symbol) -> List[Piece]:
        data = self._read(symbol.begin, symbol.end)
        if _is_constant(symbol.section):
            return [(data.hex(), None)]
        if not symbol.section.name.startswith((".data.rel.ro", ".got")):
            return [(f"variable {symbol.name.partition('.')[0]}", None)]  # a compiler numbers those of functions
        if int.from_bytes(data[:WORD], "little") == len(data):
            return [("a backend's table", None)]  # which lists other kernels
        if symbol.begin % WORD != 0:
            raise Unknown(f"addresses that are not aligned at {symbol.begin:#x}")
        return [self._word(at) for at in range(symbol.begin, symbol.end, WORD)]

    def _word(self, at: int) -> Piece:
        """Returns a word of data: an address in this library, the name of another's, or a number."""
        if at not in self._relocations:
            return self._read(at, at + WORD).hex(), None
        kind, name, addend = self._relocations[at]
        if kind in ("R_X86_64_RELATIVE", "R_X86_64_IRELATIVE") or name in self._named:
            return "address ", self._named.get(name, 0) + int(addend or "0", 16)
        if kind not in ("R_X86_64_GLOB_DAT", "R_X86_64_JUMP_SLOT", "R_X86_64_64"):
            raise Unknown(f"a relocation that is not understood, {kind} at {at:#x}")
        return f"{name} {addend}", None

    # ---- code ----

    def _lines(self, begin: int, end: int) -> List[Tuple[str, str, str]]:
        """Returns addresses, instructions and the addresses that these refer to, in hexadecimal."""
        first, last = (bisect.bisect_left(self._headings, (at,)) for at in (begin, end))
        if self._headings[first][0] != begin:
            raise Unknown(f"no function begins at {begin:#x}")
        lines = _LINE.findall(self._code, self._headings[first][1], self._headings[last][1])
        while lines and int(lines[-1][0], 16) >= end:
            lines.pop()
        return lines

    def _function(self, symbol: Symbol) -> List[Piece]:
        lines = self._lines(symbol.begin, symbol.end)
        index = {at: i for i, (at, _, _) in enumerate(lines)}
        goes = {i: _GOES.match(text) for i, (_, text, _) in enumerate(lines) if text.endswith(">")}
        aligning = set()
        for target in {match[2] for match in goes.values() if match and int(match[2], 16) % 8 == 0}:
            i = index.get(target, 0)
            while i > 0 and _NOP.match(lines[i - 1][1]):
                i -= 1
                aligning.add(i)
        ranks = self._ranks[symbol.begin] = {}
        pieces: List[Piece] = []
        plain: List[str] = []  # lines that refer to nothing
        rank = 0
        for i, (at, text, refers) in enumerate(lines):
            ranks[at] = rank
            rank += i not in aligning
            address = None
            if i in goes:
                text, address = self._call(text, goes[i])
            elif refers:
                text, address = self._reference(text, int(refers, 16))
            elif i not in aligning:
                self._check(lines, i)
            if i not in aligning:
                plain.append(text)
            if address is not None:
                pieces.append(("\n".join(plain), address))
                plain.clear()
        return [*pieces, ("\n".join(plain), None)]

    def _call(self, text: str, goes: "Optional[re.Match[str]]") -> Piece:
        """Returns a jump or a call, perhaps by the table of procedures, whose entries jump through a slot."""
        if not goes:
            raise Unknown(f"an instruction that is not understood, {text}")
        text, target = goes[1], int(goes[2], 16)
        if not self._section(target).name.startswith(".plt"):
            return f"{text} ", target
        slots = [refers for _, _, refers in self._lines(target, target + 16) if refers]
        if not slots:
            raise Unknown(f"a call by a table that is not understood, {target:#x}")
        word, address = self._word(int(slots[0], 16))
        return f"{text} {word}", address

    def _reference(self, text: str, address: int) -> Piece:
        """Returns an instruction with a memory operand relative to it."""
        operand = _RELATIVE.search(text)
        if not operand:
            raise Unknown(f"an operand that is not understood, {text}")
        text = f"{text[:operand.start()]}{operand[1]} []{text[operand.end():]} "
        section = self._section(address)
        if section.name.startswith(".got"):
            word, refers = self._word(address)
            return text + word, refers
        if _is_constant(section) and operand[1] in WIDTHS:
            return text + self._read(address, address + WIDTHS[operand[1]]).hex(), None
        return text, address

    def _check(self, lines: List[Tuple[str, str, str]], i: int) -> None:
        """Raises Unknown if an instruction goes where nothing tells.

        A jump through a pointer that was loaded is the call of a function. It is known as other computed calls
        are: by the addresses in code and data. A jump through a table is not.
        """
        at, text, _ = lines[i]
        if "(bad)" in text or "rip" in text:
            raise Unknown(f"an instruction that is not understood, {text}")
        if "jmp" not in text:
            return
        computed = _COMPUTED.match(text)
        loaded = computed[1] if computed else None
        if computed and computed[2]:  # a register
            sets = re.compile(rf"(\w+) +{computed[2]}(?:$|,(?:QWORD PTR \[(.*)\])?)")
            last = next((match for _, text, _ in reversed(lines[:i]) for match in [sets.match(text)] if match), None)
            loaded = last[2] if last and last[1] == "mov" else None
        if not loaded or "*" in loaded:
            raise Unknown(f"a computed jump at 0x{at}")


def _objdump(path: str, *options: str) -> str:
    try:
        done = subprocess.run(["objdump", *options, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "LC_ALL": "C"}, encoding="latin-1")  # fmt: skip
    except OSError as error:
        raise Unknown(f"objdump: {error.strerror}") from None
    if done.returncode != 0:
        raise Unknown(done.stderr.strip() or "objdump failed")
    return done.stdout


def _is_constant(section: Section) -> bool:
    return "READONLY" in section.flags


@lru_cache(maxsize=None)
def _library(path: str) -> Union[Library, Unknown]:
    try:
        return Library(path)
    except Unknown as unknown:
        return unknown


@lru_cache(maxsize=None)
def code_of(path: str, entries: Tuple[int, ...]) -> str:
    """Returns the digest of all that functions of a library lead to. Raises Unknown if it is not known."""
    library = _library(path)
    if isinstance(library, Unknown):
        raise library
    return library.digest(entries)
