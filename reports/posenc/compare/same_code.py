"""Computes digests of a kernel's x86-64 code that do not depend on addresses, from the output of objdump.

compare/builds.py calls code_digest() for base and head: equal digests mean the same machine code. A digest covers
everything that a call may execute or read in its library: the instructions of each function that is reached by jumps,
calls and addresses, and the bytes of the data that they refer to. An address is replaced by the ordinal of its function
or object, in order of first use, and the offset in it. A function of another library is replaced by its name.

    1a40:  mov  rax,QWORD PTR [rip+0x1211]  # 2c58 <table>  becomes  0 mov  rax,QWORD [] 1+0
    1a47:  jmp  1a80 <rope_half+0x40>                       becomes  7 jmp 0+40

Code that cannot be followed to its end has no digest. It counts as different.
"""

import hashlib
import re
import subprocess
from bisect import bisect
from functools import lru_cache
from typing import Dict, List, NamedTuple, Optional, Sequence

POINTER = 8  # bytes
SHORT_STRING = 256  # bytes hashed of a short string, which may be numbers instead
RELOCATIONS = ("RELATIVE", "IRELATIVE", "GLOB_DAT", "JUMP_SLOT", "64")  # types of relocations that are understood
WIDTHS = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "TBYTE": 10, "XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64}

# Lines of objdump: sections, symbols, relocations, the heading of a function and its instructions; then parts of an
# instruction.
_SECTION = re.compile(r"^ *\d+ (\S+) +([0-9a-f]+)  ([0-9a-f]+)  [0-9a-f]+  ([0-9a-f]+)  \S+  (.*)$", re.M)
_SYMBOL = re.compile(r"^([0-9a-f]{16}) (.).{5}([FiO]) (\S+)\t([0-9a-f]+) +(?:\.\w+ )?(\S+)$", re.M)
_RELOCATION = re.compile(r"^([0-9a-f]{16}) R_X86_64_(\w+) +(\S+?)(?:@\S*?)?(?:\+0x([0-9a-f]+))?$", re.M)
_HEADING = re.compile(r"^([0-9a-f]{16}) <.*>:$", re.M)
_LINE = re.compile(r"^ *([0-9a-f]+):\t(.*?) *(?:# ([0-9a-f]+)(?: <.*)?)?$", re.M)
_BRANCH = re.compile(r"(.*?) +([0-9a-f]+) <([^+>]*?)(@plt)?(?:\+0x[0-9a-f]+)?>")
_OPERAND = re.compile(r"(?:(\w+) (?:PTR|BCST) )?\[rip[+-]0x[0-9a-f]+\]")
_TEXT = re.compile(rb"[ -~\n\t]{1,1024}\0")


class Unknown(Exception):
    """The reason why code has no digest."""


class Piece(NamedTuple):
    """A part of the code or data of an area, up to an address that it refers to."""

    text: str
    address: Optional[int] = None  # the address at its end
    size: int = 0  # bytes that are read at this address; 0: not known


class Area(NamedTuple):
    """Address range of a function, an object or a loaded section. Addresses are those in the library."""

    begin: int
    end: int
    name: str
    section: str  # name and flags of its section
    offset: int  # in the file

    def part(self, begin: int, size: int, name: str = "") -> "Area":
        """Returns the part at an address."""
        return self._replace(begin=begin, end=begin + size, name=name, offset=self.offset + begin - self.begin)


def _find_area(areas: Sequence[Area], address: int) -> Optional[Area]:
    """Returns the one of sorted areas that an address lies in."""
    at = bisect(areas, (address + 1,)) - 1
    return areas[at] if at >= 0 and address < areas[at].end else None


class Library:
    """Sections, symbols, relocations and disassembly of a shared library."""

    def __init__(self, path: str) -> None:
        """Raises Unknown if objdump cannot read it, or not all of it."""
        head = _objdump("-h", "-w", "-t", "-R", path)
        sections = {
            name: Area(int(at, 16), int(at, 16) + int(size, 16), name, f"{name} {flags}", int(offset, 16))
            for name, size, at, offset, flags in _SECTION.findall(head)
            if "ALLOC" in flags and "THREAD_LOCAL" not in flags
        }
        self.sections, self.symbols, self.exported = sorted(sections.values()), [], {}
        for at, scope, kind, section, size, name in _SYMBOL.findall(head):
            if section in sections and int(size, 16) > 0:
                symbol = sections[section].part(int(at, 16), int(size, 16), name)
                if kind == "O":
                    symbol = symbol._replace(section=symbol.section.replace("CODE", "DATA"))
                self.symbols.append(symbol)
                if scope != "l":
                    self.exported[name] = symbol.begin
        if not self.symbols or ".relr.dyn" in sections or "elf64-x86-64" not in head:
            raise Unknown("it is not of x86-64, has no symbols, or packed relocations")
        self.symbols.sort()
        self.relocations = {int(at, 16): fields for at, *fields in sorted(_RELOCATION.findall(head))}
        self.code = _objdump("-d", "-z", "-w", "-M", "intel", "--no-show-raw-insn", path)
        self.headings = {int(at[1], 16): at.end() for at in _HEADING.finditer(self.code)}
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.contents: Dict[Area, List[Piece]] = {}

    def digest(self, entries: Sequence[int]) -> str:
        """Returns the digest of everything that the functions at `entries` reach.

        Raises Unknown if something cannot be followed.
        """
        if not entries:
            raise Unknown("its code is in another file")
        ordinals: Dict[Area, int] = {}
        state = hashlib.sha256()
        pieces = [Piece("entry", entry) for entry in entries]
        for text, address, size in pieces:  # the list grows during the loop
            if address is not None:
                area = self._area(address, size)
                if area not in ordinals:
                    ordinals[area] = len(ordinals)
                    if area not in self.contents:
                        self.contents[area] = self._function(area) if "CODE" in area.section else self._data(area)
                    pieces += self.contents[area]
                text += f" {ordinals[area]}+{address - area.begin:x}"
            state.update(f"{text}\n".encode("latin-1"))
        return state.hexdigest()

    def _area(self, address: int, size: int) -> Area:
        """Returns the symbol that an address lies in, or else the constant, the string or the slot there."""
        symbol, section = (_find_area(areas, address) for areas in (self.symbols, self.sections))
        if symbol:
            return symbol
        if not section:
            raise Unknown(f"an address outside of the library, {address:#x}")
        if section.name.startswith(".got"):
            size = POINTER
        elif "READONLY" not in section.section or "CODE" in section.section:
            size = 0
        elif not size:
            text = _TEXT.match(self.bytes, section.part(address, 0).offset)
            size = 0 if not text else len(text[0]) if len(text[0]) > POINTER else SHORT_STRING
        if not size:
            raise Unknown(f"{'code' if 'CODE' in section.section else 'data'} of unknown extent at {address:#x}")
        return section.part(address, size)

    def _data(self, area: Area) -> List[Piece]:
        """Returns the bytes of an object without its pointers, and a piece for each pointer."""
        name, size = area.name.partition(".")[0], area.end - area.begin  # without the number of a static variable
        if "CONTENTS" not in area.section:
            return [Piece(f"{size} bytes {name}")]
        data = bytearray(self.bytes[area.offset : area.offset + size])
        if area.section.startswith(".data.rel.ro") and int.from_bytes(data[:POINTER], "little") == size:
            return [Piece("a backend's table")]  # which lists other kernels
        pieces: List[Piece] = []
        for at, (kind, symbol, addend) in self.relocations.items():
            if area.begin <= at < area.end:
                data[at - area.begin : at - area.begin + POINTER] = bytes(POINTER)
                if kind not in RELOCATIONS or "-" in symbol:
                    raise Unknown(f"a relocation that is not understood, {kind} at {at:#x}")
                target = self.exported.get(symbol, 0 if symbol == "*ABS*" else None)
                address = None if target is None else target + int(addend or "0", 16)
                pieces.append(Piece(f"{at - area.begin} {kind} {'' if address else f'{symbol} {addend}'}", address))
        return [Piece(f"{data.hex()} {name}"), *pieces]

    def _function(self, area: Area) -> List[Piece]:
        """Returns the instructions of a function, in pieces that end where one refers to an address."""
        pieces: List[Piece] = []
        lines: List[str] = []
        begin = 0  # first line that belongs to no piece yet
        for line in _LINE.finditer(self.code, self.headings[area.begin]):
            at, text, address, size = int(line[1], 16), line[2], None, 0
            if at >= area.end:
                break
            branch = _BRANCH.fullmatch(text) if text.endswith(">") else None
            operand = _OPERAND.search(text) if line[3] else None
            if branch and branch[4]:  # through the procedure linkage table, to a function that may be another library's
                text, address = f"{branch[1]} {branch[3]}", self.exported.get(branch[3])
            elif branch:
                text, address = branch[1], int(branch[2], 16)
            elif operand:
                text = text.replace(operand[0], f"{operand[1]} []")
                address, size = int(line[3], 16), WIDTHS.get(operand[1], 0)
            elif line[3] or "rip" in text or "(bad)" in text or text.endswith(">"):
                raise Unknown(f"an instruction that is not understood, {text}")
            elif "jmp" in text and not _is_call(text, lines):
                raise Unknown(f"a computed jump at {at:#x}")
            lines.append(f"{at - area.begin:x} {text}")
            if address is not None:
                pieces.append(Piece("\n".join(lines[begin:]), address, size))
                begin = len(lines)
        return [*pieces, Piece("\n".join(lines[begin:]))]


def _is_call(jump: str, lines: Sequence[str]) -> bool:
    """Returns whether a computed jump is a tail call, through a pointer from memory that is no jump table.

    "jmp rax" is one after "mov rax,QWORD PTR [rdi+0x8]"; an index as in [rdi+rax*8] means a jump table.
    """
    target = jump.partition("jmp ")[2].strip()
    if "[" in target:
        return "*" not in target
    writes_target = re.compile(rf" \w+ +{target}(,|$)")
    last = next((line for line in reversed(lines) if writes_target.search(line)), "")
    return " mov " in last and "QWORD" in last and "*" not in last


def _objdump(*options: str) -> str:
    """Returns the output of objdump. Raises Unknown if it fails."""
    try:
        return subprocess.run(["objdump", *options], check=True, capture_output=True, encoding="latin-1").stdout
    except OSError as error:
        raise Unknown(f"objdump: {error.strerror}") from None
    except subprocess.CalledProcessError as error:
        raise Unknown(error.stderr.strip()) from None


_library = lru_cache(maxsize=None)(Library)


def code_digest(path: str, entries: Sequence[int]) -> str:
    """Returns the digest of what the functions at `entries`, addresses in a library, lead to. Raises Unknown."""
    return _library(path).digest(entries)
