#!/usr/bin/env python3
"""Prints lines and branches reached, folder by folder, from INFO of lcov --capture, and of each file into FILE-BY-FILE.

    coverage.py INFO ROOT FILE-BY-FILE
"""
import os
import re
import sys

LEFT_OUT = re.compile(r'build|\.\.|(.*/)?tests?[_/]|conformance/golden/')  # tests, generators, what others wrote
TEMPLATES = re.compile(r'impl/(kernels|simd|backends)/')  # whose branches are mostly of constants, once for each kernel


def main():
    info, root, by_file = sys.argv[1:]
    reached, name = {}, None  # of each file: whether a line, or a branch of one, was reached by anybody
    for text in open(info, encoding='utf-8'):
        key, _, value = text.strip().partition(':')
        if key == 'SF':
            name = os.path.relpath(value, root)
        elif key in ('DA', 'BRDA') and not LEFT_OUT.match(name) and (key == 'DA' or not TEMPLATES.match(name)):
            *place, count = value.split(',')
            places = reached.setdefault(name, {'DA': {}, 'BRDA': {}})[key]
            places[tuple(place)] = places.get(tuple(place), False) or count not in ('0', '-')
    files = {name: [f(places[key].values()) for key in ('DA', 'BRDA') for f in (sum, len)]
             for name, places in reached.items()}
    sums = {}
    for name, counts in files.items():
        folder = os.path.dirname(name)
        for of in {folder, folder.split('/')[0], 'all'}:
            sums[of] = [a + b for a, b in zip(sums.get(of, [0] * 4), counts)]
    with open(by_file, 'w', encoding='utf-8') as out:
        print_table(files, out)
    print_table(sums, sys.stdout)


def print_table(rows, out):
    print(f"{'':40} {'lines':>16} {'branches':>18}", file=out)
    for name in sorted(rows, key=lambda n: (n == 'all', n)):
        lines, all_lines, branches, all_branches = rows[name]
        print(f'{name:40} {lines:6}/{all_lines:<6} {percent(lines, all_lines)}'
              f' {branches:7}/{all_branches:<7} {percent(branches, all_branches)}', file=out)


def percent(part, whole):
    return f'{100 * part / whole:5.1f} %' if whole else '      -'


if __name__ == '__main__':
    main()
