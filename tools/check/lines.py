#!/usr/bin/env python3
"""Compares the lines of code in each top-level folder with lines.csv, beside this file.

    lines.py             fails if a folder has more lines or files than the table allows
    lines.py --write     lowers the table to the present counts, adds and drops folders; it raises no number

A limit that must grow is raised by hand, in a commit that says why.  C counts *.c, *.h, *.def and *.cc; Python *.py;
shell *.sh and run.  Files are all but golden vectors, SVG pictures, compressed test data and what builds leave behind.
"""
import csv
import os
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_suffix('.csv')
# Suffixes, or whole names.
LANGUAGES = {'c': ('.c', '.h', '.def', '.cc'), 'python': ('.py',), 'shell': ('.sh', 'run')}
COLUMNS = [*LANGUAGES, 'files']
NOT_SOURCE = ('.svg', '.gz', '.safetensors')  # pictures, compressed test data, golden vectors


def source_files():
    """Yields paths from the root: run, and all files in folders but those of git, builds, reports and caches."""
    for folder, folders, names in os.walk(ROOT):
        inside = Path(folder).relative_to(ROOT)
        top = inside == Path()
        folders[:] = [f for f in folders if (not f.startswith('.') or f in ('.ci', '.github')) and f != '__pycache__'
                      and not (top and f.startswith(('build', 'posenc-report')))]
        yield from (inside / name for name in names if not top or name == 'run')


def count_lines():
    """Returns {folder: Counter of the columns}; run counts as a folder."""
    folders = {}
    for path in source_files():
        if path.suffix in NOT_SOURCE:
            continue
        counts = folders.setdefault(path.parts[0], Counter())
        counts['files'] += 1
        for language, suffixes_or_names in LANGUAGES.items():
            if path.suffix in suffixes_or_names or path.name in suffixes_or_names:
                counts[language] += (ROOT / path).read_bytes().count(b'\n')
    return folders


def unit_of(column):
    """Returns what a column counts."""
    return 'files' if column == 'files' else f'lines of {column}'


def excesses(counts, limits):
    """Yields a message for each count above its limit."""
    for folder, found in sorted(counts.items()):
        for c in COLUMNS:
            limit = limits.get(folder, {}).get(c, 0)
            if found[c] > limit:
                yield f'{folder}: {found[c]} {unit_of(c)}; {TABLE.name} allows {limit}'


def main():
    counts = count_lines()
    with TABLE.open(encoding='utf-8') as table:
        limits = {row['folder']: {c: int(row[c]) for c in COLUMNS} for row in csv.DictReader(table)}
    if '--write' in sys.argv[1:]:
        with TABLE.open('w', encoding='utf-8', newline='') as table:
            rows = csv.writer(table, lineterminator='\n')
            rows.writerow(['folder', *COLUMNS])
            for folder in sorted(counts):
                limit = limits.get(folder, counts[folder])
                rows.writerow([folder, *(min(counts[folder][c], limit[c]) for c in COLUMNS)])
        return
    wrong = list(excesses(counts, limits))
    if wrong:
        sys.exit('\n'.join(wrong))
    print(', '.join(f'{sum(f[c] for f in counts.values())} {unit_of(c)}' for c in COLUMNS))


if __name__ == '__main__':
    main()
