"""Mutants: which files are mutated, how each is compiled, which kernels a mistake in a function can touch; what a mutant is
called; the list of those that change nothing (equivalent.txt).
"""
import hashlib
import os
import re
from collections import Counter

from operators import OPERATORS, Place
from source import Source, find_constants, find_members

QUOTED = re.compile(r'#\s*include\s*"([^"]+)"')
HEADERS = ('impl/include/posenc.h', 'impl/internal.h', 'impl/freqs/plan.h')  # whose structs kernels know


class Unit:
    """What is compiled: a source with the headers that are mutated with it, for one backend."""

    def __init__(self, backend, source, files, defined=()):
        self.backend, self.source, self.files, self.defined = backend, source, files, defined


class Mutant:
    """One edit of one file."""

    def __init__(self, unit, path, function, operator, edit, text):
        self.unit, self.path, self.function, self.operator = unit, path, function, operator
        first, end, new = edit
        # Lines stay where they are: those that are left out are empty.
        new += '\n' * (text.count('\n', first, end) - new.count('\n'))
        self.text = text[:first] + new + text[end:]
        self.line = text.count('\n', 0, first) + 1
        begin, stop = text.rfind('\n', 0, first) + 1, text.find('\n', end)
        self.old = squeeze(text[begin:stop])
        self.new = squeeze(text[begin:first] + new + text[end:stop])
        self.kernels = ()

    def name(self, nth):
        """Its id follows from what it is, not from where: other lines may come and go."""
        what = '\0'.join((self.path, self.function, self.operator, self.old, self.new, str(nth)))
        return hashlib.sha256(what.encode()).hexdigest()[:10]

    def title(self):
        return f'{self.id} {self.path}:{self.line} {self.function} {self.operator}'

    def diff(self):
        return f'- {self.old}\n+ {self.new}'


def squeeze(text):
    return ' '.join(text.split())


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def included(root, path, rooms):
    """The file and what it includes from these folders, the file last."""
    found = []
    for named in QUOTED.findall(read(root, path)):
        for candidate in (os.path.join(os.path.dirname(path), named), named):
            if os.path.dirname(candidate) in rooms and os.path.exists(os.path.join(root, candidate)):
                found += [f for f in included(root, candidate, rooms) if f not in found]
                break
    return found + [path]


def all_units(root, templates='avx2'):
    """The plain loops, then the families of kernels, shortest first: what several include belongs to the first."""
    kernels = 'impl/kernels'
    families = [os.path.join(kernels, name) for name in os.listdir(os.path.join(root, kernels)) if name.endswith('.c')]
    families.sort(key=lambda path: (os.path.getsize(os.path.join(root, path)), path))
    plain = included(root, 'impl/backends/libm.c', ('impl/backends', kernels))
    yield Unit('libm', 'impl/backends/libm.c', plain)
    for family in families:
        yield Unit(templates, family, included(root, family, (kernels,)), ('POSENC_SIMD',))


def alternatives(lists):
    """Of each name those that share a list with it: [[a, b, c]] -> {a: [b, c], ...}; at most three, the next ones."""
    found = {}
    for names in lists:
        for at, name in enumerate(names):
            others = [other for other in names[at + 1:] + names[:at] if other != name]
            known = found.setdefault(name, [])
            known += [other for other in others[:3] if other not in known]
    return found


def knowledge(sources):
    """What could stand for what: members by struct and type, constants by enum."""
    members = []
    for source in sources:
        for struct in find_members(source):
            kinds = {kind for kind, _ in struct}
            members += [[name for kind, name in struct if kind == wanted] for wanted in sorted(kinds)]
    constants = [names for source in sources for names in find_constants(source)]
    return alternatives(members), alternatives(constants + [['true', 'false']])


def reach(sources):
    """Of each function the kernels that come to it, by the names that bodies and macros mention."""
    mentions = {}
    for source in sources:
        for function in source.functions:
            first, end = function.body
            mentions.setdefault(function.name, set()).update(source.words(first, end))
        for directive in source.directives:
            words = re.findall(r'\w+', directive)
            if words and words[0] == 'define':
                mentions.setdefault(words[1], set()).update(words[2:])
    reached = {}
    for name in list(mentions):
        kernel = re.fullmatch(r'KERNEL\((\w+)\)|plain_(\w+)', name)
        if kernel:
            visit(name, kernel.group(1) or kernel.group(2), mentions, reached)
    return reached


def visit(name, kernel, mentions, reached):
    kernels = reached.setdefault(name, [])
    if kernel not in kernels:
        kernels.append(kernel)
        for word in sorted(mentions[name] & mentions.keys()):
            visit(word, kernel, mentions, reached)


def mutants_of_unit(root, unit, seen):
    """All mutants of the functions that no unit before had."""
    sources = [Source(path, read(root, path), unit.defined) for path in unit.files]
    headers = [Source(path, read(root, path)) for path in HEADERS if os.path.exists(os.path.join(root, path))]
    members, constants = knowledge(sources + headers)
    reached = reach(sources)
    every = sorted({kernel for kernels in reached.values() for kernel in kernels})
    for source in sources:
        for function in source.functions:
            if (source.path, function.name) in seen:
                continue
            seen.add((source.path, function.name))
            place = Place(source, function, members, constants)
            for operator, find in OPERATORS.items():
                for edit in find(place):
                    mutant = Mutant(unit, source.path, function.name, operator, edit, source.text)
                    mutant.kernels = reached.get(function.name, every)
                    if mutant.old != mutant.new:
                        yield mutant


def all_mutants(root, units):
    """Every mutant, with its id."""
    mutants, seen, count = [], set(), Counter()
    for unit in units:
        for mutant in mutants_of_unit(root, unit, seen):
            same = mutant.name(0)
            mutant.id = mutant.name(count[same])
            count[same] += 1
            mutants.append(mutant)
    return mutants


class Equivalents:
    """The list of mutants that change nothing: blocks of

        FILE FUNCTION OPERATOR
        - the line as it is
        + the line as mutated
        why nobody can tell them apart

    matched by what they say; * stands for anything.  An entry that matches no mutant is stale."""

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
            raise SystemExit(f'{path}: expected FILE FUNCTION OPERATOR, "- line", "+ line" and a reason: {lines[0]}')
        parts = [*head, squeeze(lines[1][2:]), squeeze(lines[2][2:])]
        form = '\0'.join('.*'.join(map(re.escape, part.split('*'))) for part in parts)
        return {'what': ' '.join(parts[:4]), 'form': re.compile(form, re.S), 'reason': reason, 'used': False}

    def find(self, mutant):
        """The entry of a mutant, or None."""
        what = '\0'.join((mutant.path, mutant.function, mutant.operator, mutant.old, mutant.new))
        for entry in self.entries:
            if entry['form'].fullmatch(what):
                entry['used'] = True
                return entry
        return None

    def stale(self):
        return [entry for entry in self.entries if not entry['used']]
