#!/usr/bin/env python3
"""Prints the lines and branches that tests reached, for each folder, and writes those of each file to FILE-BY-FILE.

    coverage.py INFO ROOT FILE-BY-FILE      INFO: the output of lcov --capture; ROOT: the root of the repository
"""
import os
import re
import sys

LEFT_OUT = re.compile(r'build|\.\.|(.*/)?tests?[_/]|conformance/golden/')  # tests, generators, sources of others
TEMPLATES = re.compile(r'impl/(kernels|simd|backends)/')  # their branches are of constants, once for each kernel


def read_info(info, root):
    """Returns {file: {kind: {place: reached}}}; kind is DA (lines) or BRDA (branches), as lcov names them."""
    files, path = {}, None
    for text in open(info, encoding='utf-8'):
        kind, _, value = text.strip().partition(':')
        if kind == 'SF':
            path = os.path.relpath(value, root)
        elif kind in ('DA', 'BRDA') and not LEFT_OUT.match(path) and (kind == 'DA' or not TEMPLATES.match(path)):
            *place, count = value.split(',')
            places = files.setdefault(path, {'DA': {}, 'BRDA': {}})[kind]
            # A header or a template is compiled several times: once reached is reached.
            places[tuple(place)] = places.get(tuple(place), False) or count not in ('0', '-')
    return files


def print_table(rows, out):
    """Prints {name: [lines reached, lines, branches reached, branches]}."""
    print(f"{'':40} {'lines':>16} {'branches':>18}", file=out)
    for name in sorted(rows, key=lambda n: (n == 'all', n)):
        lines, all_lines, branches, all_branches = rows[name]
        print(f'{name:40} {lines:6}/{all_lines:<6} {percent(lines, all_lines)}'
              f' {branches:7}/{all_branches:<7} {percent(branches, all_branches)}', file=out)


def percent(part, whole):
    return f'{100 * part / whole:5.1f} %' if whole else '      -'


def main():
    info, root, by_file = sys.argv[1:]
    files = {path: [count(kinds[kind].values()) for kind in ('DA', 'BRDA') for count in (sum, len)]
             for path, kinds in read_info(info, root).items()}
    sums = {}  # of each folder, of each at the top, of all
    for path, counts in files.items():
        folder = os.path.dirname(path)
        for name in {folder, folder.split('/')[0], 'all'}:
            sums[name] = [a + b for a, b in zip(sums.get(name, [0] * 4), counts)]
    with open(by_file, 'w', encoding='utf-8') as out:
        print_table(files, out)
    print_table(sums, sys.stdout)


if __name__ == '__main__':
    main()
