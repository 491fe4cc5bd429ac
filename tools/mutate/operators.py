"""Operators that make mistakes.  Each looks at the tokens of a function and yields edits (first, end, text): offsets in
the file, and the text in their place.  OPERATORS is their list; mutants.py makes mutants of the edits.
"""
import re

from source import CLOSING, TAGGED, TYPES, split, starts_type

HEADS = {'if', 'for', 'while', 'switch'}
NO_STATEMENT = HEADS | {'return', 'case', 'default', 'else', 'do', 'goto', 'typedef', '}', '{', ';', ')'}
NARROWER = {'int64_t': ['int32_t', 'int16_t'], 'int32_t': ['int16_t'], 'int': ['int16_t'], 'uint64_t': ['uint32_t'],
            'uint32_t': ['uint16_t'], 'size_t': ['uint32_t'], 'double': ['float'], 'vd': ['vf']}
NUMBERS = {'int', 'int16_t', 'int32_t', 'int64_t', 'uint32_t', 'uint64_t', 'float', 'double', 'vf', 'vd'}
COMPARISONS = {'<': ['<=', '>'], '<=': ['<'], '>': ['>=', '<'], '>=': ['>'], '==': ['!='], '!=': ['==']}
ARITHMETIC = {'+': ['-'], '-': ['+'], '*': ['+'], '/': ['*'], '%': ['/'], '<<': ['>>'], '>>': ['<<'], '&': ['|'],
              '|': ['&'], '^': ['|']}
ASSIGNMENTS = {'+=': ['-=', '='], '-=': ['+=', '='], '*=': ['+=', '='], '/=': ['*=', '='], '|=': ['&=', '='],
               '&=': ['|=', '='], '<<=': ['>>='], '>>=': ['<<=']}
SIMILAR = {  # a call and what could stand in its place; {0} are its arguments
    'vf_fma': ['vf_add(vf_mul({0}, {1}), {2})', 'vf_add({0}, {2})'], 'fmaf': ['({0}) * ({1}) + ({2})'],
    'fma': ['({0}) * ({1}) + ({2})'], 'vd_fma': ['vd_add(vd_mul({0}, {1}), {2})'],
    'vd_fnma': ['vd_sub({2}, vd_mul({0}, {1}))', 'vd_fma({0}, {1}, {2})'],
    'vf_cross': ['vf_sub(vf_mul({0}, {1}), vf_mul({2}, {3}))', 'vf_fma({0}, {1}, vf_mul({2}, {3}))'],
    'vf_zip_lo': ['vf_zip_hi({0}, {1})'], 'vf_zip_hi': ['vf_zip_lo({0}, {1})'], 'vf_swap_pairs': ['({0})'],
    'vf_load_n': ['vf_load({0})'], 'vf_store_n': ['vf_store({0}, {1})'], 'vf_load': ['vf_load_n({0}, 1)'],
    'vf_add': ['vf_sub({0}, {1})', '({0})'], 'vf_sub': ['vf_add({0}, {1})'], 'vf_mul': ['vf_add({0}, {1})', '({0})'],
    'vd_add': ['vd_sub({0}, {1})'], 'vd_sub': ['vd_add({0}, {1})'], 'vd_mul': ['vd_add({0}, {1})', '({0})'],
    'vq_add': ['vq_sub({0}, {1})'], 'vq_sub': ['vq_add({0}, {1})'], 'vq_shl': ['vq_shr({0}, {1})'],
    'vq_shr': ['vq_shl({0}, {1})'], 'vf_abs': ['({0})'], 'fabs': ['({0})'], 'fabsf': ['({0})'], 'sqrtf': ['({0})'],
    'vf_sqrt': ['({0})'], 'vf_div': ['vf_mul({0}, {1})'], 'least': ['({0})', '({1})'], 'sinf': ['cosf({0})'],
    'cosf': ['sinf({0})'], 'sin': ['cos({0})'], 'cos': ['sin({0})'], 'floor': ['({0})'],
    'f32_from_f16': ['f32_from_bf16({0})'], 'f32_from_bf16': ['f32_from_f16({0})'],
    'f16_from_f32': ['bf16_from_f32({0})'], 'bf16_from_f32': ['f16_from_f32({0})'],
}


class Place:
    """A function as an operator sees it.  `members` and `constants` map a name to its alternatives."""

    def __init__(self, source, function, members, constants):
        self.source, self.function, self.members, self.constants = source, function, members, constants
        self.tokens, self.match = source.tokens, source.match
        self.inside = range(function.body[0] + 1, function.body[1])

    def text(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ''

    def edit(self, first, end, text):
        """Returns the edit that replaces tokens [first, end)."""
        return self.tokens[first].start, self.tokens[end - 1].end, text

    def after(self, i, text):
        return self.tokens[i].end, self.tokens[i].end, text

    def call(self, i):
        """Returns the arguments of the call whose name is token i as (first, end), or None if it is no call."""
        if self.tokens[i].kind != 'name' or self.text(i + 1) != '(' or self.text(i) in HEADS | {'sizeof', 'return'}:
            return None
        return list(split(self.source, i + 2, self.match[i + 1], ','))

    def is_operand(self, i):
        """Returns true if an operand may end with the token, so that a binary operator follows."""
        token = self.tokens[i]
        if token.text == ')':  # (type *) and (int64_t) are casts
            return not starts_type(self.source.words(self.match[i] + 1, i), 0)[0]
        return token.text == ']' or token.kind == 'number' or (
            token.kind == 'name' and token.text not in TYPES | {'return', 'case'} and self.text(i - 1) not in TAGGED)


def exchange_member(place):
    """Replaces a member by another of its type: stride_token by stride_head, cos by sin."""
    for i in place.inside:
        if place.text(i - 1) in ('.', '->'):
            yield from (place.edit(i, i + 1, other) for other in place.members.get(place.text(i), []))


def exchange_name(place):
    """Replaces a variable by the ones of its type that are declared beside it."""
    types = place.function.types
    for i in place.inside:
        name = place.text(i)
        if name not in types or place.text(i - 1) in ('.', '->') or i in place.function.declared:
            continue
        alike = [other for other in types if types[other] == types[name]]
        at = alike.index(name)
        for other in sorted({alike[at - 1], alike[(at + 1) % len(alike)]} - {name}):
            yield place.edit(i, i + 1, other)


def exchange_constant(place):
    """Replaces a constant of an enum by another, and true by false."""
    for i in place.inside:
        yield from (place.edit(i, i + 1, other) for other in place.constants.get(place.text(i), []))


def drop_index(place):
    """Replaces a[i] by a[0]."""
    for i in place.inside:
        if place.text(i) == '[' and place.is_operand(i - 1) and place.source.words(i + 1, place.match[i]) != ['0']:
            if i - 1 not in place.function.declared:
                yield place.edit(i + 1, place.match[i], '0')


def change_arithmetic(place):
    """Replaces + by -, * by +, += by -= or =."""
    for i in place.inside:
        if place.tokens[i].kind != 'sign':
            continue
        others = ASSIGNMENTS.get(place.text(i), ARITHMETIC.get(place.text(i), []) if place.is_operand(i - 1) else [])
        yield from (place.edit(i, i + 1, other) for other in others)


def change_number(place):
    """Makes an integer one larger or smaller, and a real larger by 1 or by a little."""
    for i in place.inside:
        yield from edits_of_number(place, i)


def edits_of_number(place, i):
    token = place.tokens[i]
    if token.kind != 'number':
        return
    digits = token.text.rstrip('uUlL')
    if digits.isdigit():
        yield place.edit(i, i + 1, str(int(digits) + 1) + token.text[len(digits):])
        if int(digits) > 0:
            yield place.edit(i, i + 1, str(int(digits) - 1) + token.text[len(digits):])
    elif '.' not in digits and 'p' not in digits:
        yield place.edit(i, i + 1, f'({token.text} + 1)')
    else:
        suffix = 'f' if digits.endswith('f') else ''
        yield place.edit(i, i + 1, f'({token.text} + 1.0{suffix})')
        yield place.edit(i, i + 1, f'({token.text} * 1.0000153{suffix})')


def change_comparison(place):
    """Includes or excludes the end of a range, and replaces == by !=."""
    for i in place.inside:
        yield from (place.edit(i, i + 1, other) for other in COMPARISONS.get(place.text(i), []))


def change_condition(place):
    """Negates a condition, makes it true or false, or drops half of it."""
    for i in place.inside:
        if place.text(i) == 'if':
            condition = place.source.text_of(i + 2, place.match[i + 1])
            for form in ('!({0})', '0 && ({0})', '1 || ({0})'):
                yield place.edit(i + 2, place.match[i + 1], form.format(condition))
        elif place.text(i) == '?':
            yield from (place.edit(i, i + 1, form) for form in ('== 0 ?', '|| 1 ?', '&& 0 ?'))
        elif place.text(i) in ('&&', '||'):
            yield place.edit(i, i + 1, '||' if place.text(i) == '&&' else '&&')
            first, end = operands(place, i)
            yield place.edit(first, i + 1, '')
            yield place.edit(i, end, '')


def operands(place, i):
    """Returns the place where the left operand of && or || begins, and where the right one ends."""
    ends = {'&&', '||', '?', ':', ',', ';', '=', 'return'}
    first, end = i, i + 1
    while place.text(first - 1) not in ends | set(CLOSING):
        first = place.match[first - 1] if place.text(first - 1) in CLOSING.values() else first - 1
    while place.text(end) not in ends | set(CLOSING.values()):
        end = place.match[end] + 1 if place.text(end) in CLOSING else end + 1
    return first, end


def statements(place):
    """Yields (first, end) of every expression statement with its semicolon."""
    for i in place.inside:
        before = place.text(i - 1)
        head = before == ')' and place.text(place.match[i - 1] - 1) in HEADS
        label = before == ':' and (place.text(i - 3) == 'case' or place.text(i - 2) == 'default')
        if not (before in (';', '{', '}', 'else') or head or label) or place.text(i) in NO_STATEMENT:
            continue
        if place.text(place.match[-1 - i]) != '{' or in_list(place, i):
            continue
        if starts_type(place.source.words(i, i + 4), 0)[0]:
            continue
        end = i
        while place.text(end) not in (';', '{', '}', ')'):
            end = place.match[end] + 1 if place.text(end) in CLOSING else end + 1
        if place.text(end) == ';':
            yield i, end + 1


def in_list(place, i):
    """Returns true if the braces around token i are those of an initializer: = {...} or (type){...}."""
    before = place.match[-1 - i] - 1
    if place.text(before) != ')':
        return place.text(before) == '='
    owner = place.match[before] - 1  # of a function's braces and of a loop's it is a name
    return place.text(owner) == 'return' or place.text(owner) != ')' and place.tokens[owner].kind != 'name'


def delete_statement(place):
    """Deletes a statement."""
    for first, end in statements(place):
        yield place.edit(first, end, ';')


def change_sign(place):
    """Drops a minus, or negates a value that is assigned, returned or initialized."""
    for i in place.inside:
        text = place.text(i)
        if text == '-' and not place.is_operand(i - 1):
            yield place.edit(i, i + 1, '')
        if text == 'return' and place.text(i + 1) != ';':
            yield negated(place, i)
        elif text in ('=', '+=') and place.text(i + 1) not in ('{', '-'):
            name = i - 1
            while place.text(name) == ']':
                name = place.match[name] - 1
            kind = place.function.types.get(place.text(name), 'float').replace('[]', '')
            if kind.rstrip('*') in NUMBERS | {'float'}:
                yield negated(place, i)


def negated(place, i):
    """Returns the edit that negates the expression after token i."""
    end = i + 1
    while place.text(end) not in (',', ';', ')', '}'):
        end = place.match[end] + 1 if place.text(end) in CLOSING else end + 1
    return place.edit(i + 1, end, f'-({place.source.text_of(i + 1, end)})')


def narrow_type(place):
    """Replaces int64_t by int32_t or int16_t, double by float, in variables, parameters and casts."""
    first, end = place.function.parameters
    for i in [*range(first, end), *place.inside]:
        stars = place.text(i + 1) == '*'
        yield from (place.edit(i, i + 1, other) for other in NARROWER.get(place.text(i), []) if not stars)


def move_loop(place):
    """Lets a loop begin one later, end one sooner or later, or take two steps at once."""
    for i in place.inside:
        if place.text(i) != 'for':
            continue
        parts = list(split(place.source, i + 2, place.match[i + 1], ';'))
        for (first, end), moves in zip(parts, ([' + 1'], [' - 1', ' + 1'])):
            yield from (place.after(end - 1, move) for move in moves if first < end)
        if len(parts) == 3 and place.text(parts[2][1] - 1) == '++':
            yield place.edit(parts[2][1] - 1, parts[2][1], ' += 2')


def exchange_arguments(place):
    """Replaces f(a, b) by f(b, a)."""
    for i in place.inside:
        parts = place.call(i) or []
        for (first, first_end), (second, second_end) in zip(parts, parts[1:]):
            a, b = place.source.text_of(first, first_end), place.source.text_of(second, second_end)
            if a != b:
                between = place.source.text[place.tokens[first_end - 1].end:place.tokens[second].start]
                yield place.edit(first, second_end, b + between + a)


def exchange_call(place):
    """Replaces an operation by a similar one, and a fused one by two."""
    for i in place.inside:
        parts = place.call(i) or []
        texts = [place.source.text_of(*part) for part in parts if part[0] < part[1]]
        for form in SIMILAR.get(place.text(i), []):
            if len(texts) > max(int(n) for n in re.findall(r'{(\d)}', form)):
                yield place.edit(i, place.match[i + 1] + 1, form.format(*texts))


def leave_early(place):
    """Lets a function return at once, and the body of a loop run once or not at all."""
    kind = place.source.words(max(0, place.function.at - 4), place.function.at)
    value = '' if kind[-1:] == ['void'] else ' 0'
    yield place.after(place.function.body[0], f' return{value};')
    for i in place.inside:
        if place.text(i) != '{' or place.text(i - 1) != ')' or in_list(place, i + 1):
            continue
        if place.text(place.match[i - 1] - 1) in ('for', 'while'):
            yield place.after(i, ' continue;')
            yield (place.tokens[place.match[i]].start,) * 2 + ('break; ',)


OPERATORS = {
    'member': exchange_member, 'name': exchange_name, 'constant': exchange_constant, 'index': drop_index,
    'arithmetic': change_arithmetic, 'number': change_number, 'comparison': change_comparison,
    'condition': change_condition, 'delete': delete_statement, 'sign': change_sign, 'narrow': narrow_type,
    'loop': move_loop, 'arguments': exchange_arguments, 'call': exchange_call, 'early': leave_early,
}
