#!/usr/bin/env python3
"""Refuses an include that runs back: which room may know which stands in rooms.txt, beside this file.

    rooms.py [ROOT]      ROOT: the repository, unless given the one this file is in

A room is a folder with a line in rooms.txt.  Every quoted include, and every source that a meson.build takes from
another folder, is an arrow from the file's room to the room of what it names.  Rejected are: an arrow that rooms.txt does
not allow, named with file, line, both rooms and what would be allowed; two folders that include each other; a folder
of sources without a line; and, in rooms.txt itself, a circle, a room that is gone, or a tolerated violation that no
longer is one.
"""
import os
import re
import sys

SOURCES = ('.c', '.h', '.cc', '.def')
INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<(posenc[^>]*)>)')
ACROSS = re.compile(r"'((?:\.\./)+[^']+\.(?:c|cc|h))'")


def read_rooms(path):
    """The rooms with what each may know, and the violations tolerated: {(file, room): line}."""
    rooms, tolerated = {}, {}
    for number, line in enumerate(open(path, encoding='utf-8'), 1):
        words = line.split('#')[0].split()
        if not words:
            continue
        if words[0] == 'tolerated':
            tolerated[words[1], words[3]] = number
        else:
            rooms[words[0]] = words[1:]
    return rooms, tolerated


def find_files(root):
    """Every source and meson.build, by its path from the root; folders of builds and hidden ones apart."""
    for folder, folders, names in os.walk(root):
        inside = os.path.relpath(folder, root)
        folders[:] = sorted(f for f in folders
                            if not f.startswith('.') and not (inside == '.' and f.startswith('build')))
        for name in sorted(names):
            if name.endswith(SOURCES) or name == 'meson.build':
                yield os.path.normpath(os.path.join(inside, name))


def find_arrows(root, files):
    """(file, line number, path named) of everything that a file names beside itself."""
    by_name = {}
    for path in files:
        by_name.setdefault(os.path.basename(path), []).append(path)
    for path in files:
        pattern = ACROSS if path.endswith('meson.build') else INCLUDE
        text = open(os.path.join(root, path), encoding='utf-8')
        for number, line in enumerate(text, 1):
            for match in pattern.finditer(line):
                target = locate(path, next(filter(None, match.groups())), files, by_name)
                if target:
                    yield path, number, target


def locate(path, named, files, by_name):
    """The file that an include means; None when the build makes it."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), named))
    for candidate in (beside, named):
        if candidate in files:
            return candidate
    found = [p for p in by_name.get(os.path.basename(named), []) if p.endswith('/' + named)]
    return found[0] if found else None


def room_of(path, rooms):
    folder = os.path.dirname(path)
    while folder and folder not in rooms:
        folder = os.path.dirname(folder)
    return folder


def circle_from(room, rooms, trail=()):
    """The first way from a room back to itself by what rooms.txt allows, or None."""
    if room in trail:
        return trail[trail.index(room):] + (room,)
    for known in rooms.get(room, []):
        circle = circle_from(known, rooms, trail + (room,))
        if circle:
            return circle
    return None


def check_list(rooms, files):
    inhabited = {room_of(path, rooms) for path in files}
    for room, known in rooms.items():
        if room not in inhabited:
            yield f'rooms.txt: {room} is a room without a source; take its line out'
        for other in known:
            if other not in rooms:
                yield f'rooms.txt: {room} may know {other}, which has no line of its own'
    for room in rooms:
        circle = circle_from(room, rooms)
        if circle:
            yield 'rooms.txt: a circle: ' + ' -> '.join(circle)
            return


def check_arrows(root, files, rooms, tolerated):
    used, folders = set(), {}
    for path, number, target in find_arrows(root, files):
        here, there = room_of(path, rooms), room_of(target, rooms)
        for file, room in ((path, here), (target, there)):
            if not room and os.path.dirname(file):
                yield f'{file}: its folder has no line in rooms.txt'
        folders.setdefault((os.path.dirname(path), os.path.dirname(target)), f'{path}:{number}')
        if not here or not there or here == there or there in rooms[here]:
            continue
        if (path, there) in tolerated:
            used.add((path, there))
            continue
        allowed = ', '.join(rooms[here]) or 'no other room'
        yield f'{path}:{number}: {target}: {here} may not know {there}; it may know {allowed}'
    for (here, there), place in folders.items():
        back = folders.get((there, here))
        if back and here < there and not any(p.rsplit(':', 1)[0] in (f for f, _ in used) for p in (place, back)):
            yield f'{here} and {there} include each other: {place} and {back}'
    for key in sorted(set(tolerated) - used):
        yield f'rooms.txt:{tolerated[key]}: {key[0]} no longer names {key[1]}; take the line out'


def main():
    beside = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(beside))
    rooms, tolerated = read_rooms(os.path.join(root, 'tools', 'check', 'rooms.txt'))
    files = list(find_files(root))
    sources = [f for f in files if not f.endswith('meson.build')]
    wrong = list(check_list(rooms, sources))
    wrong += list(dict.fromkeys(check_arrows(root, files, rooms, tolerated)))
    for line in wrong:
        print(line)
    note = f', {len(tolerated)} violations tolerated' if tolerated else ''
    print(f'{len(rooms)} rooms, {len(sources)} sources{note}')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
