#!/usr/bin/env python3
"""Lines and branches reached, folder by folder, of a summary that gcovr --json-summary wrote."""
import json
import os
import sys


def main():
    files = json.load(open(sys.argv[1], encoding='utf-8'))['files']
    sums = {}
    for file in files:
        folder = os.path.dirname(file['filename'])
        for name in {folder, folder.split('/')[0], 'all'}:
            total = sums.setdefault(name, [0, 0, 0, 0])
            for i, key in enumerate(('line_covered', 'line_total', 'branch_covered', 'branch_total')):
                total[i] += file[key]
    print(f"{'folder':24} {'lines':>16} {'branches':>18}")
    for name in sorted(sums, key=lambda n: (n == 'all', n)):
        lines, all_lines, branches, all_branches = sums[name]
        print(f"{name:24} {lines:6}/{all_lines:<6} {percent(lines, all_lines)}"
              f" {branches:7}/{all_branches:<7} {percent(branches, all_branches)}")


def percent(part, whole):
    return f'{100 * part / whole:5.1f} %' if whole else '      -'


if __name__ == '__main__':
    main()
