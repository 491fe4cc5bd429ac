"""Reads a C source as far as mutants need it: tokens, brackets, functions, declarations.  It is no parser.  A part that
it misreads makes a mutant that does not compile, which does not count.
"""
import re

TOKEN = re.compile(r'''
    (?P<space>\s+|/\*.*?\*/|//[^\n]*|\\\n)
  | (?P<directive>\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<number>(?:0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*(?:[pP][+-]?\d+)?|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)[uUlLfF]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|[-+*/%&|^~!<>=?:;,.(){}\[\]])
''', re.X | re.S)
CLOSING = {'(': ')', '[': ']', '{': '}'}
TYPES = set('void char int float double bool size_t vf vd vq int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t'
            ' uint64_t uintptr_t'.split())
TAGGED = {'struct', 'enum', 'union'}
BEFORE_TYPE = {'const', 'static', 'register', 'volatile'}


class Token:
    """A word of the source, with its offsets."""
    __slots__ = ('kind', 'text', 'start', 'end')

    def __init__(self, kind, text, start):
        self.kind, self.text, self.start, self.end = kind, text, start, start + len(text)


class Function:
    """A function that the source defines, with the indices of tokens of its name, parentheses and braces."""

    def __init__(self, name, at, parameters, body):
        self.name, self.at, self.parameters, self.body = name, at, parameters, body
        self.types = {}  # {parameter or variable: its type}, in the order of declaration
        self.declared = set()  # places of the names in their declarations


class Source:
    """The tokens of a file.  #ifdef decides by the macros `defined`; a part that it leaves out has no tokens."""

    def __init__(self, path, text, defined=()):
        self.path, self.text = path, text
        self.tokens, self.directives = tokenize(text, set(defined))
        self.match = match_brackets(self.tokens)
        self.functions = list(find_functions(self))
        for function in self.functions:
            find_variables(self, function)

    def words(self, first, end):
        """Returns the texts of tokens [first, end)."""
        return [token.text for token in self.tokens[first:end]]

    def text_of(self, first, end):
        """Returns the text of the source from token `first` to the one before `end`."""
        return self.text[self.tokens[first].start:self.tokens[end - 1].end]


def tokenize(text, defined):
    """Returns the tokens that the preprocessor keeps, and the directives."""
    tokens, directives, at, off = [], [], 0, []  # off: see follow_condition()
    while at < len(text):
        found = TOKEN.match(text, at)
        if not found:
            raise ValueError(f'offset {at}: {text[at:at + 20]!r} is no token of C')
        kind = found.lastgroup
        if kind == 'directive':
            follow_condition(found.group(), defined, off)
            directives += [] if any(off) else [found.group()]
        elif kind != 'space' and not any(off):
            tokens.append(Token(kind, found.group(), at))
        at = found.end()
    return tokens, directives


def follow_condition(directive, defined, off):
    """Updates the stack of open conditions, each true if it leaves its part out."""
    words = directive[1:].split()
    if words[0] in ('ifdef', 'ifndef'):
        off.append((words[1] in defined) != (words[0] == 'ifdef'))
    elif words[0] == 'if':
        off.append(False)
    elif words[0] in ('else', 'elif'):
        off[-1] = not off[-1]
    elif words[0] == 'endif':
        off.pop()
    elif words[0] == 'define' and not any(off):
        defined.add(words[1].split('(')[0])


def match_brackets(tokens):
    """Maps each bracket to its partner, and -1 - place of each token to the bracket around it."""
    match, open_at = {}, []
    for i, token in enumerate(tokens):
        match[-1 - i] = open_at[-1] if open_at else -1
        if token.kind == 'sign' and token.text in CLOSING:
            open_at.append(i)
        elif token.kind == 'sign' and token.text in CLOSING.values():
            match[i], match[open_at[-1]] = open_at[-1], i
            match[-1 - i] = match[-1 - open_at.pop()]
    return match


def find_functions(source):
    """Yields a function for each outermost brace after a parenthesis.  KERNEL(name)(...) keeps that name."""
    tokens, i = source.tokens, 0
    while i < len(tokens):
        if tokens[i].text == '{':
            if i > 0 and tokens[i - 1].text == ')':
                first = source.match[i - 1]
                at = source.match[first - 1] - 1 if tokens[first - 1].text == ')' else first - 1
                yield Function(source.text_of(at, first), at, (first, i - 1), (i, source.match[i]))
            i = source.match[i]
        i += 1


def starts_type(words, i):
    """Returns true if a type begins at word i, and the place after it, before any stars."""
    first = i
    while i < len(words) and words[i] in BEFORE_TYPE:
        i += 1
    if i < len(words) and words[i] in TAGGED and i + 1 < len(words):
        return True, i + 2
    if i < len(words) and words[i] in TYPES:
        return True, i + 1
    return False, first


def find_variables(source, function):
    """Declares parameters, then the variables of statements and of the heads of loops."""
    first, end = function.parameters
    for part_first, part_end in split(source, first + 1, end, ','):
        declare(source, function, part_first, part_end)
    for i in range(function.body[0], function.body[1]):
        if source.tokens[i].text in ('{', '}', ';', '(') and starts_type(source.words(i + 1, i + 5), 0)[0]:
            end = i + 1
            while source.tokens[end].text not in (';', ')', '{'):
                end = source.match[end] + 1 if source.tokens[end].text in CLOSING else end + 1
            if source.tokens[end].text == ';':
                declare(source, function, i + 1, end)


def declare(source, function, first, end):
    """Adds the variables of one declaration."""
    known, after = starts_type(source.words(first, end), 0)
    if not known:
        return
    base = ' '.join(source.words(first, first + after))
    for part_first, part_end in split(source, first + after, end, ','):
        stars = ''
        while part_first < part_end and source.tokens[part_first].text in ('*', 'const', 'restrict'):
            stars += source.tokens[part_first].text
            part_first += 1
        if part_first < part_end and source.tokens[part_first].kind == 'name':
            is_array = part_first + 1 < part_end and source.tokens[part_first + 1].text == '['
            function.types[source.tokens[part_first].text] = base + stars + ('[]' if is_array else '')
            function.declared.add(part_first)


def split(source, first, end, sign):
    """Yields the parts of a list, divided by a sign outside inner brackets."""
    begun, i = first, first
    while i < end:
        if source.tokens[i].text == sign:
            yield begun, i
            begun = i + 1
        i = source.match[i] + 1 if source.tokens[i].text in CLOSING else i + 1
    if begun < end:
        yield begun, end


def find_members(source):
    """Returns the members of each struct that a header defines, as lists of (type, name)."""
    tokens, structs = source.tokens, []
    for i in range(len(tokens) - 2):
        if tokens[i].text == 'struct' and tokens[i + 2].text == '{':
            members = []
            for first, end in split(source, i + 3, source.match[i + 2], ';'):
                collect = Function('', 0, (0, 0), (0, 0))
                declare(source, collect, first, end)
                members += [(kind, name) for name, kind in collect.types.items()]
            structs.append(members)
    return structs


def find_constants(source):
    """Returns the constants of each enum that a header defines, as lists of names."""
    tokens, enums = source.tokens, []
    for i in range(len(tokens) - 2):
        brace = i + 1 if tokens[i + 1].text == '{' else i + 2
        if tokens[i].text == 'enum' and tokens[brace].text == '{':
            enums.append([tokens[first].text for first, _ in split(source, brace + 1, source.match[brace], ',')])
    return enums
