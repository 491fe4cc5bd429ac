#!/usr/bin/env python3
"""Measures the prose of pages, comments, docstrings and help texts.

    prose.py             fails if a group is above the limits, or has a sentence or a word that the rules exclude
    prose.py --files     also prints the files above the limits

A group is README.md, a folder of pages, or the comments or docstrings of a top-level folder. Sentences of fewer than
three words, code, tables, headings and lines that are indented further do not count.
"""
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEAN, LONG, MOST_LONG = 18, 30, 8  # words of a sentence; words of a long one; percent of long ones
FEW = 20  # sentences of a group that is too small for a percentage
EXCLUDED = ('CHANGELOG.md', 'conformance/vectors')
BEGINS = re.compile(r'(What|Whether|Who|Of|That of|Those)\b(?!.*\?$)')
WORDS = {  # home-made words, and the standard ones
    r'refus(e|es|ed|al|ing)': 'reject', r'witness(es)?': 'worst-case input', r'roofs?': 'roofline', r'slips?': 'fault',
    r'conduct': 'side effects', r'obstacles?': 'unavailable reason', r'profiles?': 'numerics mode, or tuning file',
    r'serves?': 'runs, supports', r'told': 'reported', r'met': 'encountered', r'doors?|houses?': 'interface, structure',
    r'somebody': 'you, a user', r'budgets?': 'time limit, error limit or threshold', r'the plan|a plan': 'frequencies',
}
WORD = re.compile('|'.join(rf'(?<![-/"])\b({word})\b' for word in WORDS))  # no option, path or string


def page_text(text):
    """Returns the prose of a page: no code, tables or headings; each item of a list is a paragraph."""
    text = re.sub(r'(?ms)^```.*?^```|^    .*?$|^\|.*?$|^#+ .*?$', '\n\n', text)
    text = re.sub(r'(?m)^\s*([-*]|\d+\.) ', '\n\n', text)
    text = re.sub(r'<[^>]*>', '\n\n', text)
    return re.sub(r'`[^`]*`', 'code', re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', text))


def comment_text(text):
    """Returns the comments of C."""
    paragraphs = []
    for comment in re.findall(r'/\*+<?(.*?)\*/', text, re.S):
        comment = re.sub(r'(?m)^\s*\*( {2,}.*)?$', '\n\n', comment)
        comment = re.sub(r'(?m)^\s*\* ?|@(brief|return|file)\b', '', comment)
        paragraphs.append(re.sub(r'(?m)^ {2,}.*$|@param .*$', '\n\n', comment))
    return '\n\n'.join(paragraphs)


def docstring_text(text):
    """Returns the docstrings of Python, and the help of options."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            found.append(re.sub(r'(?m)^ {4,}.*$', '\n\n', ast.get_docstring(node) or ''))
        elif isinstance(node, ast.keyword) and node.arg == 'help' and isinstance(node.value, ast.Constant):
            found.append(str(node.value.value))
    return '\n\n'.join(found)


def sentences(text):
    """Yields the sentences of a text."""
    for paragraph in re.split(r'\n\s*\n', text):
        for sentence in re.split(r'(?<=[.!?:])\s+(?=[A-Z"`(])', ' '.join(paragraph.split())):
            if len(re.findall(r"[A-Za-z][\w'’-]*", sentence)) >= 3:
                yield sentence


def read_groups():
    """Returns {group: {path: sentences}}."""
    readers = {'.md': page_text, '.c': comment_text, '.h': comment_text, '.def': comment_text, '.py': docstring_text}
    groups = {}
    for path in sorted(ROOT.rglob('*')):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in readers or name.startswith(('.', 'build', 'posenc-report', *EXCLUDED)):
            continue
        top = name.split('/')[0]
        kind = 'docstrings' if path.suffix == '.py' else 'comments'
        group = f'{top}: {kind}'
        if path.suffix == '.md':
            group = str(path.parent.relative_to(ROOT)) if '/' in name else name
        found = list(sentences(readers[path.suffix](path.read_text(encoding='utf-8'))))
        groups.setdefault(group, {})[name] = found
    return groups


def measure(found):
    """Returns the mean length of sentences, and the percentage of long ones."""
    lengths = [len(re.findall(r"[A-Za-z][\w'’-]*", sentence)) for sentence in found]
    return sum(lengths) / max(1, len(lengths)), 100 * sum(n > LONG for n in lengths) / max(1, len(lengths))


def main():
    """Prints what is wrong, and a line for each group. Returns true if nothing is wrong."""
    right, total, longest = True, 0, 0.0
    for group, files in sorted(read_groups().items()):
        mean, share = measure([sentence for found in files.values() for sentence in found])
        n = sum(map(len, files.values()))
        above = mean > MEAN or (share > MOST_LONG and n >= FEW)
        if above or '--files' in sys.argv:
            print(f'{group}: {n} sentences, {mean:.1f} words each (at most {MEAN}), {share:.1f} % over {LONG} words '
                  f'(at most {MOST_LONG})')
        for name, found in files.items():
            if '--files' in sys.argv and (measure(found)[0] > MEAN or measure(found)[1] > MOST_LONG):
                print(f'    {name}: {measure(found)[0]:.1f} words, {measure(found)[1]:.1f} %')
            for sentence in found:
                begins, word = BEGINS.match(sentence), WORD.search(sentence)
                if begins:
                    print(f'{name}: a sentence begins with {begins[1]}: {sentence[:100]}')
                if word:
                    standard = next(WORDS[one] for one in WORDS if re.fullmatch(one, word[0]))
                    print(f'{name}: "{word[0]}", say {standard}: {sentence[max(0, word.start() - 40):word.end() + 40]}')
                right = right and not begins and not word
        right, total, longest = right and not above, total + n, max(longest, mean)
    print(f'{total} sentences, at most {longest:.1f} words each in a group')
    return right


if __name__ == '__main__':
    sys.exit(not main())
