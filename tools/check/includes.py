#!/usr/bin/env python3
"""Rejects an include that the list of dependencies, includes.txt beside this file, does not allow.

    includes.py [ROOT]      ROOT: root of the repository (default: that of this file)

A module is a folder with a line in includes.txt; it contains the subfolders that have no line. Reported are:
- an include, or a source in a meson.build, of a module that the including module may not use;
- two folders that include each other, and a folder of sources that belongs to no module;
- in includes.txt, a cycle, a module without sources, and a dependency that is no module.
"""
import graphlib
import os
import re
import sys

SOURCES = ('.c', '.h', '.cc', '.def')
INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<(posenc[^>]*)>)')
MESON_SOURCE = re.compile(r"'((?:\.\./)+[^']+\.(?:c|cc|h))'")


def read_modules(path):
    """Returns the modules that each module may use."""
    lines = (line.split('#')[0].split() for line in open(path, encoding='utf-8'))
    return {words[0]: words[1:] for words in lines if words}


def find_files(root):
    """Yields the path of every source and meson.build, except in hidden folders and build folders."""
    for folder, folders, names in os.walk(root):
        inside = os.path.relpath(folder, root)
        folders[:] = sorted(f for f in folders
                            if not f.startswith('.') and not (inside == '.' and f.startswith('build')))
        for name in sorted(names):
            if name.endswith(SOURCES) or name == 'meson.build':
                yield os.path.normpath(os.path.join(inside, name))


def find_includes(root, files):
    """Yields (file, line number, included file) of every include and every source in a meson.build."""
    by_name = {}
    for path in files:
        by_name.setdefault(os.path.basename(path), []).append(path)
    for path in files:
        pattern = MESON_SOURCE if path.endswith('meson.build') else INCLUDE
        text = open(os.path.join(root, path), encoding='utf-8')
        for number, line in enumerate(text, 1):
            for match in pattern.finditer(line):
                target = find_included(path, next(filter(None, match.groups())), files, by_name)
                if target:
                    yield path, number, target


def find_included(path, name, files, by_name):
    """Returns the file that an include names, or None if the build generates it."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    for candidate in (beside, name):
        if candidate in files:
            return candidate
    found = [p for p in by_name.get(os.path.basename(name), []) if p.endswith('/' + name)]
    return found[0] if found else None


def module_of(path, modules):
    folder = os.path.dirname(path)
    while folder and folder not in modules:
        folder = os.path.dirname(folder)
    return folder


def check_list(modules, files):
    with_sources = {module_of(path, modules) for path in files}
    for module, uses in modules.items():
        if module not in with_sources:
            yield f'includes.txt: {module} has no sources. Remove its line.'
        for other in uses:
            if other not in modules:
                yield f'includes.txt: {module} may use {other}, which has no line of its own'
    try:
        graphlib.TopologicalSorter(modules).prepare()
    except graphlib.CycleError as error:
        yield 'includes.txt: a cycle: ' + ' -> '.join(reversed(error.args[1]))


def check_includes(root, files, modules):
    folders = {}
    for path, number, target in find_includes(root, files):
        here, there = module_of(path, modules), module_of(target, modules)
        for file, module in ((path, here), (target, there)):
            if not module and os.path.dirname(file):
                yield f'{file}: its folder has no line in includes.txt'
        folders.setdefault((os.path.dirname(path), os.path.dirname(target)), f'{path}:{number}')
        if here and there and here != there and there not in modules[here]:
            allowed = ', '.join(modules[here]) or 'no other module'
            yield f'{path}:{number}: {target}: {here} may not use {there}; it may use {allowed}'
    for (here, there), place in folders.items():
        back = folders.get((there, here))
        if back and here < there:
            yield f'{here} and {there} include each other: {place} and {back}'


def main():
    beside = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(beside))
    modules = read_modules(os.path.join(root, 'tools', 'check', 'includes.txt'))
    files = list(find_files(root))
    sources = [f for f in files if not f.endswith('meson.build')]
    errors = list(check_list(modules, sources)) + list(dict.fromkeys(check_includes(root, files, modules)))
    for error in errors:
        print(error)
    print(f'{len(modules)} modules, {len(sources)} sources')
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
