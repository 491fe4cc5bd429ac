"""Prints a campaign: tables of operators and files, the score, survivors.
"""
import math

from campaign import BY_FULL, BY_QUICK, NOT_COMPILED, SAME_CODE, SURVIVED

LISTED = 'listed'
COLUMNS = [BY_QUICK, BY_FULL, SURVIVED, LISTED, SAME_CODE, NOT_COMPILED]
HEADINGS = ['quick', 'full', 'survived', 'listed', 'same code', 'no code']
LEGEND = '''quick, full: found by verify --quick, or by --full alone; survived: by neither.  Not counted: listed in
equivalent.txt; the same code as without the mutation; no code, as the compiler rejects it.
'''


def interval(found, of):
    """Returns Wilson's interval of 95 % for a share."""
    z = 1.959964
    share = found / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def classify(mutants, verdicts, equivalents):
    """Returns (mutant, column, detail, entry) of each mutant that was run.  A survivor with an entry is listed."""
    rows = []
    for mutant in mutants:
        entry = equivalents.find(mutant)
        if mutant.id in verdicts:
            verdict, detail = verdicts[mutant.id]
            rows.append((mutant, LISTED if entry and verdict == SURVIVED else verdict, detail, entry))
    return rows


def table(rows, key, heading):
    """Returns a table with a line for each value of the key, and one for their sum."""
    sums = {}
    for mutant, verdict, _, _ in rows:
        for name in (key(mutant), 'all'):
            sums.setdefault(name, dict.fromkeys(COLUMNS, 0))[verdict] += 1
    width = max(map(len, [*sums, heading]))
    lines = [f'{heading:{width}} ' + ' '.join(f'{word:>9}' for word in HEADINGS)]
    for name in sorted(sums, key=lambda name: (name == 'all', name)):
        lines.append(f'{name:{width}} ' + ' '.join(f'{sums[name][column] or "-":>9}' for column in COLUMNS))
    return '\n'.join(lines)


def cross(rows):
    """Returns a table of operators by files: mutants found, of those that count."""
    files, operators, cells = [], [], {}
    for mutant, verdict, _, _ in rows:
        name = mutant.path.split('/')[-1]
        files += [name] if name not in files else []
        operators += [mutant.operator] if mutant.operator not in operators else []
        found, of = cells.get((mutant.operator, name), (0, 0))
        cells[mutant.operator, name] = found + (verdict in (BY_QUICK, BY_FULL)), of + counts(verdict)
    lines = [' ' * 11 + ' '.join(f'{name[:14]:>14}' for name in files)]
    for operator in operators:
        row = [cells.get((operator, name), (0, 0)) for name in files]
        lines.append(f'{operator:11}' + ' '.join(f'{f"{found}/{of}" if of else "":>14}' for found, of in row))
    return '\n'.join(lines)


def counts(verdict):
    """Returns true if the verdict says something of the suite."""
    return verdict in (BY_QUICK, BY_FULL, SURVIVED)


def score(rows, sampled):
    """Returns the sentence that docs/trust.md has."""
    of = sum(counts(verdict) for _, verdict, _, _ in rows)
    if of == 0:
        return 'no mutant counts'
    words = []
    for name, verdicts in (('--quick', (BY_QUICK,)), ('--full', (BY_QUICK, BY_FULL))):
        found = sum(verdict in verdicts for _, verdict, _, _ in rows)
        low, high = interval(found, of)
        words.append(f'{name} finds {found} of {of}, {100 * found / of:.1f} %'
                     + (f' (95 %: {100 * low:.1f} to {100 * high:.1f})' if sampled else ''))
    return '; '.join(words)


def survivors(rows):
    """Returns each survivor with its lines, and the command that runs it again."""
    blocks = []
    for mutant, verdict, _, _ in rows:
        if verdict == SURVIVED:
            blocks.append(f'{mutant.title()}\n{mutant.diff()}\n    ./run mutate --one {mutant.id}')
    return '\n\n'.join(blocks)


def complaints(rows, equivalents):
    """Returns the errors of the list: entries that match no mutant, or one that the suite detects."""
    lines = [f'stale in equivalent.txt, no such mutant: {entry["what"]}'
             for entry in equivalents.stale()]
    for mutant, verdict, detail, entry in rows:
        if entry and verdict in (BY_QUICK, BY_FULL):
            lines.append(f'listed in equivalent.txt, but found: {mutant.title()}: {detail}')
    return lines
