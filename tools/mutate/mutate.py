#!/usr/bin/env python3
"""Mutation testing: makes mistakes in the plain loops and in the templates of kernels, one at a time.  The suite has to
detect each.  Prints the survivors with their lines.

    mutate.py BUILD [N | all] [FILE...]     N random mutants (200), of all or of these files
        --seed S      seed of the random choice (1)
        --jobs N      mutants at a time (2)
        --list        print the mutants instead of running them
        --fresh       drop all verdicts of earlier runs in BUILD/mutate/results.jsonl
        --again       run the survivors of earlier runs again
        --one ID      run this one; object, program and changed source stay in BUILD/mutate/one
        --right       compile correct kernels in many ways: each has to pass

Exit status: 0 if each was detected or is listed in equivalent.txt; 1 if there are survivors, or this list is wrong; 2
for bad input.
"""
import argparse
import math
import os
import random
import sys

import false_alarms
from build import Build
from campaign import BY_FULL, BY_QUICK, NOT_COMPILED, SAME_CODE, SURVIVED, Campaign, Results
from mutants import Equivalents, all_mutants, all_units

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LISTED = 'listed'
COLUMNS = [BY_QUICK, BY_FULL, SURVIVED, LISTED, SAME_CODE, NOT_COMPILED]
HEADINGS = ['quick', 'full', 'survived', 'listed', 'same code', 'no code']
LEGEND = '''quick, full: found by verify --quick, or by --full alone; survived: by neither.  Not counted: listed in
equivalent.txt; the same code as without the mutation; no code, as the compiler rejects it.
'''


def reject(message):
    print(f'./run mutate: {message}', file=sys.stderr)
    sys.exit(2)


def draw(mutants, n, seed):
    """Draws n mutants, a share of every file and operator, in a random order."""
    order = random.Random(seed)
    strata = {}
    for mutant in mutants:
        strata.setdefault((mutant.path, mutant.operator), []).append(mutant)
    queue = []
    for stratum in strata.values():
        order.shuffle(stratum)
        queue += stratum
    step = len(queue) / n
    begin = order.random() * step
    drawn = [queue[int(begin + i * step)] for i in range(n)]
    order.shuffle(drawn)
    return drawn


def choose(options, mutants):
    """Returns the mutants that the options name, and true if they are a sample."""
    if options.one:
        found = [mutant for mutant in mutants if mutant.id == options.one]
        return found or reject(f'there is no mutant {options.one}; ./run mutate --list all shows them'), False
    for name in options.files:
        if not any(mutant.path.endswith(name) for mutant in mutants):
            reject(f'{name} has no mutants; files: {" ".join(sorted({mutant.path for mutant in mutants}))}')
    chosen = [m for m in mutants if not options.files or any(m.path.endswith(name) for name in options.files)]
    if options.n == 'all' or int(options.n) >= len(chosen):
        return chosen, False
    return draw(chosen, int(options.n), options.seed), True


def parse(arguments):
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument('build')
    parser.add_argument('words', nargs='*')
    for name, default in (('--seed', 1), ('--jobs', 2)):
        parser.add_argument(name, type=int, default=default)
    for name in ('--list', '--fresh', '--again', '--right'):
        parser.add_argument(name, action='store_true')
    parser.add_argument('--one')
    options = parser.parse_args(arguments)
    words = options.words
    options.n = words.pop(0) if words and (words[0] == 'all' or words[0].isdigit()) else '200'
    options.files = words
    if options.n == '0' or options.jobs < 1:
        reject('expected at least one mutant, and one at a time')
    return options


def backend_of_templates():
    """Returns a backend of the templates that this CPU runs."""
    try:
        with open('/proc/cpuinfo', encoding='utf-8') as file:
            return 'avx2' if ' avx2 ' in file.read() else 'scalar'
    except OSError:
        return 'scalar'


def print_verdict(mutant, verdict, detail):
    print(f'{verdict:12} {mutant.title()}: {detail}' if detail else f'{verdict:12} {mutant.title()}', flush=True)


def run_one(campaign, mutant):
    """Runs one mutant, and keeps its source, object and program."""
    folder = os.path.join(campaign.folder, 'one')
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, os.path.basename(mutant.path)), 'w', encoding='utf-8') as file:
        file.write(mutant.text)
    verdict, detail = campaign.test(mutant, folder)
    print_verdict(mutant, verdict, detail)
    print(f'{mutant.diff()}\n{os.path.relpath(folder)}: {" ".join(sorted(os.listdir(folder)))}')
    return int(verdict == SURVIVED)


# ---- tables, score and survivors ----


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


def score(rows, sampled):
    """Returns the sentence that docs/trust.md has."""
    of = sum(verdict in (BY_QUICK, BY_FULL, SURVIVED) for _, verdict, _, _ in rows)
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
             for entry in equivalents.entries if not entry['used']]
    for mutant, verdict, detail, entry in rows:
        if entry and verdict in (BY_QUICK, BY_FULL):
            lines.append(f'listed in equivalent.txt, but found: {mutant.title()}: {detail}')
    return lines


def conclude(mutants, chosen, results, equivalents, sampled):
    """Prints tables, survivors and the score.  Returns the exit status."""
    for mutant in mutants:
        equivalents.find(mutant)
    rows = classify(chosen, results.verdicts, equivalents)
    print(LEGEND)
    print(table(rows, lambda mutant: mutant.operator, 'operator'), end='\n\n')
    print(table(rows, lambda mutant: mutant.path, 'file'), end='\n\n')
    print(survivors(rows), end='\n\n')
    wrong = complaints(rows, equivalents)
    print('\n'.join(wrong + [f'{len(rows)} of {len(mutants)} mutants: {score(rows, sampled)}']))
    return int(bool(wrong) or any(verdict == SURVIVED for _, verdict, _, _ in rows))


def main():
    options = parse(sys.argv[1:])
    folder = os.path.join(os.path.abspath(options.build), 'mutate')
    os.makedirs(folder, exist_ok=True)
    if options.right:
        return false_alarms.main(Build(ROOT, options.build), folder, options.jobs)
    mutants = all_mutants(ROOT, all_units(ROOT, backend_of_templates()))
    chosen, sampled = choose(options, mutants)
    if options.list:
        for mutant in chosen:
            print(f'{mutant.title()} ({" ".join(mutant.kernels)})\n{mutant.diff()}')
        print(f'{len(chosen)} of {len(mutants)} mutants')
        return 0
    campaign = Campaign(Build(ROOT, options.build), folder, options.jobs)
    if options.one:
        return run_one(campaign, chosen[0])
    path = os.path.join(folder, 'results.jsonl')
    if options.fresh and os.path.exists(path):
        os.remove(path)
    results = Results(path)
    if options.again:
        results.forget(SURVIVED)
    campaign.run(chosen, results, print_verdict)
    return conclude(mutants, chosen, results, Equivalents(os.path.join(HERE, 'equivalent.txt')), sampled)


if __name__ == '__main__':
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit('stopped; the same command goes on from here')
