"""Mutants of the kernels: lists the files that are mutated and the way to compile each, makes every mutant with its id,
and finds the kernels that its function can touch.  Reads the list of mutants that change nothing (equivalent.txt).

    units = all_units(root, 'avx2')         # files, by backend
    mutants = all_mutants(root, units)      # Mutant objects, each with the changed text of its file
"""
import hashlib
import os
import re
from collections import Counter

from operators import OPERATORS, Place
from source import Source, find_constants, find_members

QUOTED = re.compile(r'#\s*include\s*"([^"]+)"')
# Headers with structs that kernels use.
HEADERS = ('impl/include/posenc.h', 'impl/include/posenc/relative.h', 'impl/include/posenc/backend.h',
           'impl/internal.h', 'impl/freqs/freqs.h')
MOST_OTHERS = 3  # names that may stand in place of one
EXPECTED = 'FILE FUNCTION OPERATOR, "- line", "+ line" and a reason'


class Unit:
    """A source that is compiled for one backend, with the headers that are mutated together with it."""

    def __init__(self, backend, source, files, defined=()):
        self.backend, self.source, self.files, self.defined = backend, source, files, defined


class Mutant:
    """One edit of one file.  An edit is (first, end, text): offsets, and the text that stands between them instead."""

    def __init__(self, unit, path, function, operator, edit, text):
        self.unit, self.path, self.function, self.operator = unit, path, function, operator
        first, end, new = edit
        # Empty lines replace those that are left out, so that all others keep their numbers.
        new += '\n' * (text.count('\n', first, end) - new.count('\n'))
        self.text = text[:first] + new + text[end:]
        self.line = text.count('\n', 0, first) + 1
        line_start, line_end = text.rfind('\n', 0, first) + 1, text.find('\n', end)
        self.old = join_words(text[line_start:line_end])
        self.new = join_words(text[line_start:first] + new + text[end:line_end])
        self.kernels = ()

    def name(self, nth):
        """Returns the id of mutant number `nth` with the same lines.  It depends on them and not on their place, so
        that other lines may come and go."""
        content = '\0'.join((self.path, self.function, self.operator, self.old, self.new, str(nth)))
        return hashlib.sha256(content.encode()).hexdigest()[:10]

    def title(self):
        return f'{self.id} {self.path}:{self.line} {self.function} {self.operator}'

    def diff(self):
        return f'- {self.old}\n+ {self.new}'


def join_words(text):
    """Returns the text with one space for any white space."""
    return ' '.join(text.split())


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def list_included(root, path, folders):
    """Lists the headers of these folders that a file includes, and the file itself last."""
    files = []
    for header in QUOTED.findall(read(root, path)):
        for candidate in (os.path.join(os.path.dirname(path), header), header):
            if os.path.dirname(candidate) in folders and os.path.exists(os.path.join(root, candidate)):
                files += [file for file in list_included(root, candidate, folders) if file not in files]
                break
    return files + [path]


def all_units(root, templates='avx2'):
    """Yields the plain loops, then the families of kernels, shortest first.  A header that several include is mutated
    with the first of them."""
    kernels = 'impl/kernels'
    families = [os.path.join(kernels, name) for name in os.listdir(os.path.join(root, kernels)) if name.endswith('.c')]
    families.sort(key=lambda path: (os.path.getsize(os.path.join(root, path)), path))
    plain = list_included(root, 'impl/backends/libm.c', ('impl/backends', kernels))
    yield Unit('libm', 'impl/backends/libm.c', plain)
    for family in families:
        yield Unit(templates, family, list_included(root, family, (kernels,)), ('POSENC_SIMD',))


def map_alternatives(lists):
    """Maps each name to the next ones of the lists that it is in: [[a, b, c]] -> {a: [b, c], b: [c, a], c: [a, b]}."""
    alternatives = {}
    for names in lists:
        for at, name in enumerate(names):
            others = [other for other in names[at + 1:] + names[:at] if other != name]
            known = alternatives.setdefault(name, [])
            known += [other for other in others[:MOST_OTHERS] if other not in known]
    return alternatives


def find_alternatives(sources):
    """Returns names that could stand in place of each other: members of one type in a struct, constants of an enum."""
    members = []
    for source in sources:
        for struct in find_members(source):
            types = sorted({member_type for member_type, _ in struct})
            members += [[name for member_type, name in struct if member_type == wanted] for wanted in types]
    constants = [names for source in sources for names in find_constants(source)]
    return map_alternatives(members), map_alternatives(constants + [['true', 'false']])


def find_kernels(sources):
    """Maps each function to the kernels that call it, directly or not, by the names in bodies and in macros."""
    mentions = {}
    for source in sources:
        for function in source.functions:
            first, end = function.body
            mentions.setdefault(function.name, set()).update(source.words(first, end))
        for directive in source.directives:
            words = re.findall(r'\w+', directive)
            if words and words[0] == 'define':
                mentions.setdefault(words[1], set()).update(words[2:])
    kernels = {}
    for name in list(mentions):
        kernel = re.fullmatch(r'KERNEL\((\w+)\)|plain_(\w+)', name)
        if kernel:
            add_kernel(name, kernel.group(1) or kernel.group(2), mentions, kernels)
    return kernels


def add_kernel(name, kernel, mentions, kernels):
    """Adds a kernel to a function and to all that it mentions."""
    known = kernels.setdefault(name, [])
    if kernel not in known:
        known.append(kernel)
        for word in sorted(mentions[name] & mentions.keys()):
            add_kernel(word, kernel, mentions, kernels)


def mutants_of_unit(root, unit, seen):
    """Yields the mutants of functions that no unit before had; `seen` has (file, function) of these."""
    sources = [Source(path, read(root, path), unit.defined) for path in unit.files]
    headers = [Source(path, read(root, path)) for path in HEADERS if os.path.exists(os.path.join(root, path))]
    members, constants = find_alternatives(sources + headers)
    kernels_of = find_kernels(sources)
    all_kernels = sorted({kernel for kernels in kernels_of.values() for kernel in kernels})
    for source in sources:
        for function in source.functions:
            if (source.path, function.name) in seen:
                continue
            seen.add((source.path, function.name))
            place = Place(source, function, members, constants)
            for operator, find in OPERATORS.items():
                for edit in find(place):
                    mutant = Mutant(unit, source.path, function.name, operator, edit, source.text)
                    mutant.kernels = kernels_of.get(function.name, all_kernels)
                    if mutant.old != mutant.new:
                        yield mutant


def all_mutants(root, units):
    """Returns every mutant of the units, each with its id."""
    mutants, seen, count = [], set(), Counter()
    for unit in units:
        for mutant in mutants_of_unit(root, unit, seen):
            first_id = mutant.name(0)
            mutant.id = mutant.name(count[first_id])
            count[first_id] += 1
            mutants.append(mutant)
    return mutants


class Equivalents:
    """The list of mutants that change nothing.  It has blocks of

        FILE FUNCTION OPERATOR
        - the line as it is
        + the line as mutated
        the reason for which no call can tell them apart

    in which * stands for any text.  An entry that matches no mutant is stale."""

    def __init__(self, path):
        self.entries = []
        blocks = read('', path).split('\n\n') if os.path.exists(path) else []
        for block in blocks:
            lines = [line for line in block.splitlines() if line and not line.startswith('#')]
            if lines:
                self.entries.append(self.parse(path, lines))

    @staticmethod
    def parse(path, lines):
        head = lines[0].split()
        reason = ' '.join(lines[3:])
        if len(head) != 3 or len(lines) < 4 or lines[1][:2] != '- ' or lines[2][:2] != '+ ':
            raise SystemExit(f'{path}: expected {EXPECTED}: {lines[0]}')
        parts = [*head, join_words(lines[1][2:]), join_words(lines[2][2:])]
        pattern = '\0'.join('.*'.join(map(re.escape, part.split('*'))) for part in parts)
        return {'what': ' '.join(parts[:4]), 'pattern': re.compile(pattern, re.S), 'reason': reason, 'used': False}

    def find(self, mutant):
        """Returns the entry of a mutant, or None, and marks it as used."""
        content = '\0'.join((mutant.path, mutant.function, mutant.operator, mutant.old, mutant.new))
        for entry in self.entries:
            if entry['pattern'].fullmatch(content):
                entry['used'] = True
                return entry
        return None
