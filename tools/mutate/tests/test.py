#!/usr/bin/env python3
"""Tests ./run mutate on a made-up kernel (tiny.c) and its suite (suite.c): the list of mutants, some verdicts, ids,
samples, the list of equivalents, interrupted runs.  Prints TAP.

    test.py [--write]       --write: puts the mutants of now into tiny.txt
"""
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
# pylint: disable=wrong-import-position
import campaign  # noqa: E402
import faults  # noqa: E402
import mutate  # noqa: E402
import report  # noqa: E402
from build import run  # noqa: E402
from mutants import Equivalents, Unit, all_mutants  # noqa: E402
from operators import OPERATORS  # noqa: E402

CC = os.environ.get('CC', 'cc').split()
UNIT = Unit('tiny', 'tiny.c', ['tiny.h', 'tiny.c'])
# Some mutants by their line, and what has to become of them.
EXPECTED = {
    ('delete', '(void)args;', ';'): campaign.SAME_CODE,
    ('arguments', 'args->out[i * args->out_step] += limited(value, &args->floor);',
     'args->out[i * args->out_step] += limited(&args->floor, value);'): campaign.NOT_COMPILED,
    ('arithmetic', 'float value = args->x[i * args->x_step] * args->factor;',
     'float value = args->x[i * args->x_step] + args->factor;'): campaign.BY_QUICK,
    ('early', '{', '{ return;'): campaign.BY_QUICK,
    ('delete', 'i += 1;', ';'): campaign.BY_QUICK,  # never ends
    ('member', 'float value = args->x[i * args->x_step] * args->factor;',
     'float value = args->x[i * args->out_step] * args->factor;'): campaign.BY_FULL,
    ('comparison', 'return value < *floor ? *floor : value;', 'return value <= *floor ? *floor : value;'):
        campaign.SURVIVED,
}
LIST = '''# A comment.

tiny.c limited comparison
- return value < *floor ? *floor : value;
+ return value <= *floor ? *floor : value;
equal values are the same

tiny.c limited *
- return value < *most ? *most : value;
+ *
no such line
'''


class Tiny:
    """Compiles, links and verifies tiny.c, as build.Build does for posenc."""
    root, level = HERE, '-O1'

    def __init__(self, folder):
        self.suite = os.path.join(folder, 'suite.o')
        made = run([*CC, '-std=c11', '-c', 'suite.c', '-o', self.suite], HERE, 60)
        assert made.status == 0, made.output

    def copy(self, folder):
        os.makedirs(folder, exist_ok=True)
        for name in ('tiny.h', 'tiny.c'):
            campaign.write_file(os.path.join(folder, name), campaign.read_file(os.path.join(HERE, name)))

    def compile(self, unit, tree, output, level=None):
        ended = run([*CC, '-std=c11', '-w', level or self.level, '-c', unit.source, '-o', output], tree, 60)
        return ended.output if ended.status else None

    def link_with(self, unit, built, output):
        ended = run([*CC, self.suite, built, '-o', output], HERE, 60)
        assert ended.status == 0, f'{unit.source}: {ended.output}'

    def verify(self, program, unit, kernel, depth, cpu):
        assert unit is UNIT and kernel == 'scale'
        return run([program, depth], HERE, cpu)


class Tap:
    """A writer of TAP."""
    n, failed = 0, 0

    def check(self, holds, sentence, *details):
        """Prints the result of a test, and details if it fails."""
        self.n += 1
        self.failed += not holds
        print(f'{"ok" if holds else "not ok"} {self.n} - {sentence}')
        if not holds:
            for line in details:
                print(f'# {line}')


def listing(mutants):
    return ''.join(f'{m.operator} {m.function}: {m.new}\n' for m in mutants)


def mutants_of_text(folder, text):
    """Returns the mutants of another text of tiny.c."""
    campaign.write_file(os.path.join(folder, 'tiny.h'), campaign.read_file(os.path.join(HERE, 'tiny.h')))
    campaign.write_file(os.path.join(folder, 'tiny.c'), text.encode())
    return all_mutants(folder, [UNIT])


def test_list(tap, folder, mutants):
    text = campaign.read_file(os.path.join(HERE, 'tiny.c')).decode()
    path = os.path.join(HERE, 'tiny.txt')
    if '--write' in sys.argv:
        campaign.write_file(path, listing(mutants).encode())
    known = campaign.read_file(path).decode()
    differ = set(known.splitlines()) ^ set(listing(mutants).splitlines())
    tap.check(listing(mutants) == known, 'the mutants of the kernel are those of tiny.txt', *sorted(differ))
    tap.check({m.operator for m in mutants} == set(OPERATORS), 'every operator has some')
    tap.check(len({m.id for m in mutants}) == len(mutants), 'each has an id of its own')
    moved = mutants_of_text(folder, text.replace('static', '/* Two\n   lines. */\nstatic'))
    tap.check([m.id for m in moved] == [m.id for m in mutants], 'lines above change no id')
    tap.check(all(m.text.count('\n') == text.count('\n') for m in mutants), 'lines stay where they are')
    # least() stands between the first int and the float.
    hidden = text.replace('static int', '#ifdef NEVER\nstatic int').replace('static float', '#endif\nstatic float')
    hidden = mutants_of_text(folder, hidden)
    tap.check(hidden and all(m.function != 'least' for m in hidden), 'what #ifdef leaves out has no mutants')
    tap.check(all(m.kernels == ['scale'] for m in mutants), 'each knows the kernel that it can touch')


def test_samples(tap, mutants):
    drawn = mutate.draw(mutants, 20, 7)
    tap.check(len({m.id for m in drawn}) == 20, 'a sample has as many as asked for')
    tap.check(drawn == mutate.draw(mutants, 20, 7) != mutate.draw(mutants, 20, 8), 'the seed decides which')
    tap.check({m.id for m in mutate.draw(mutants, len(mutants), 1)} == {m.id for m in mutants},
              'a sample of all has each mutant')


def test_times(tap):
    """The busy child ends while the other one sleeps, whose time must not include that of the busy one."""
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda command: run(command, HERE, 1),
                              ([sys.executable, '-c', 'while True: pass'], ['sleep', '2'])))
    tap.check([one.late for one in ended] == [True, False], 'a command that takes too long is ended, and no other')
    tap.check(ended[1].cpu < 0.5 < ended[0].cpu, 'the time of a command is its own', str([one.cpu for one in ended]))
    slow = run(['sleep', '60'], HERE, 1, wall=0.2)
    tap.check(slow.late and slow.status < 0, 'a command that waits too long is ended')


def test_runs(tap, folder, mutants):
    # A mutant that never ends takes all of this time.
    campaign.LEAST_CPU = {campaign.QUICK: 1, campaign.FULL: 1}
    chosen = [m for m in mutants if (m.operator, m.old, m.new) in EXPECTED]
    tap.check(len(chosen) == len(EXPECTED), f'{len(EXPECTED)} mutants are known by their line')
    path = os.path.join(folder, 'results.jsonl')
    results = campaign.Results(path)
    work = campaign.Campaign(Tiny(folder), folder)
    work.run(chosen, results, lambda *_: None)
    for m in chosen:
        verdict, detail = results.verdicts[m.id]
        expected = EXPECTED[m.operator, m.old, m.new]
        tap.check(verdict == expected, f'{m.operator}, {m.new}: {expected}', f'it is: {verdict}: {detail}')
    with open(path, 'a', encoding='utf-8') as file:
        file.write('{"id": "cut sho')
    again = campaign.Results(path)
    tap.check(again.verdicts == results.verdicts, 'a run that was interrupted goes on from what it found')
    told = []
    work.run(chosen, again, lambda mutant, *_: told.append(mutant))
    tap.check(not told, 'a run that goes on runs no mutant twice')
    again.add(chosen[0], *results.verdicts[chosen[0].id])
    tap.check(campaign.Results(path).verdicts == results.verdicts, 'what it adds can be read')
    again.forget(campaign.SURVIVED)
    tap.check(len(again.verdicts) == len(chosen) - 1, 'what survived can be forgotten')
    return chosen, results


def test_kept(tap, folder, chosen):
    """The object of a survivor, which --one keeps, is that of the program beside it."""
    mutant = next(m for m in chosen if EXPECTED[m.operator, m.old, m.new] == campaign.SURVIVED)
    tiny, kept, tree = Tiny(folder), os.path.join(folder, 'kept'), os.path.join(folder, 'mutated')
    os.makedirs(kept)
    campaign.Campaign(tiny, folder).test(mutant, kept)
    tiny.copy(tree)
    campaign.write_file(os.path.join(tree, mutant.path), mutant.text.encode())
    tiny.compile(UNIT, tree, os.path.join(tree, 'unit.o'))
    objects = [campaign.read_file(os.path.join(place, 'unit.o')) for place in (kept, tree)]
    tap.check(objects[0] == objects[1], 'the object of a survivor is kept as it was tested')


def test_report(tap, folder, mutants, chosen, results):
    path = os.path.join(folder, 'equivalent.txt')
    campaign.write_file(path, LIST.encode())
    equivalents = Equivalents(path)
    for m in mutants:
        equivalents.find(m)
    rows = report.classify(chosen, results.verdicts, equivalents)
    tap.check([verdict for m, verdict, _, _ in rows if m.operator == 'comparison'] == [report.LISTED],
              'a survivor that is listed is not counted')
    stale = [line[:5] for line in report.complaints(rows, equivalents)]
    tap.check(stale == ['stale'], 'an entry without a mutant is stale')
    campaign.write_file(path, b'tiny.c plain_scale early\n- *\n+ *\nno\n')
    wrong = report.complaints(report.classify(chosen, results.verdicts, Equivalents(path)), Equivalents(path))
    tap.check(any('but found' in line for line in wrong), 'an entry that the suite tells apart is wrong')
    tap.check(report.score(rows, False) == '--quick finds 3 of 4, 75.0 %; --full finds 4 of 4, 100.0 %',
              'the score leaves out same code, mutants that do not compile, and those listed')
    low, high = report.interval(95, 100)
    tap.check((round(low, 3), round(high, 3)) == (0.888, 0.978), 'the interval of 95 of 100 is Wilson\'s')


# Lists of faults that cannot be read, and where.
MALFORMED = {
    'a | alibi | memory\n': '1:12: expected NAME',
    'a | alibi | Memory | text\n': '1:12: expected NAME',
    'a | alibi | memory | text\nno/such.h\n': '2:1: expected a fault, a file',
    'a | alibi | memory | text\nrun\n- x\n+ y\n= too late\n': '5:1: expected a fault, a file',
    'a | alibi | memory | text\n- x\n': '2:1: expected the name of a file',
    'a | alibi | memory | text\nrun\n- x\n\nb | alibi | memory | text\nrun\n- x\n+ y\n':
        '8:1: expected a file, "- text" and "+ text" for a',
    'a | alibi | memory | text\nrun\n- x\n+ y\na | alibi | memory | text\n': '5:1: expected another name than a',
}


def test_faults(tap, folder):
    """The list can be read, and each edit has its place and changes it; errors name line and column."""
    listed, texts, wrong = faults.parse(faults.LIST), {}, []
    for fault in listed:
        changed = {}
        for edit in fault.edits:
            text = texts.setdefault(edit.path, campaign.read_file(os.path.join(faults.ROOT, edit.path)).decode())
            try:
                changed[edit.path] = edit.apply(changed.get(edit.path, text), faults.LIST)
                if ' '.join(edit.old).split() == ' '.join(edit.new).split():
                    wrong.append(f'{fault.name}: the edit of line {edit.line} changes nothing but white space')
            except faults.Malformed as error:
                wrong.append(f'{fault.name}: {error}')
    tap.check(len(listed) > 200 and not wrong, 'each fault edits texts that the library has once', *wrong)
    path = os.path.join(folder, 'faults.txt')
    for text, expected in MALFORMED.items():
        campaign.write_file(path, text.encode())
        try:
            faults.parse(path)
            told = 'it is read'
        except faults.Malformed as error:
            told = str(error)
        tap.check(f'faults.txt:{expected}' in told, f'a malformed fault: {expected}', told)
    edit = 'run\n- x\n+ y\n'
    campaign.write_file(path, f'a | alibi | memory | text\n= known\n{edit}b | alibi | memory | text\n{edit}'.encode())
    known, unknown = faults.parse(path)
    runs = [('alibi', [], [('c1', ''), ('c2', 'other')]), ('alibi', [], [('c3', 'other; or known')]),
            ('rope', [], [('c4', 'known')])]
    found = [list(faults.wrong_names(fault, kernel, faults.names_of(kernel, runs)))
             for fault in (known, unknown) for kernel in ('alibi', 'rope')]
    tap.check([len(wrong) for wrong in found] == [2, 0, 2, 1], 'a missing name, and names of others', str(found))
    done = subprocess.run([sys.executable, faults.__file__, folder, 'nonsense'], stderr=subprocess.PIPE, text=True)
    tap.check(done.returncode == 2 and "got 'nonsense'" in done.stderr, 'a fault that is not listed', done.stderr)


def test_options(tap, folder):
    for words, expected in ((['0'], 'at least one'), (['1', 'x.c'], 'has no mutants'), (['--one', 'x'], 'no mutant x')):
        done = subprocess.run([sys.executable, mutate.__file__, folder, *words], stderr=subprocess.PIPE, text=True)
        tap.check(done.returncode == 2 and expected in done.stderr, f'mutate.py rejects {" ".join(words)}', done.stderr)


def main():
    tap = Tap()
    mutants = all_mutants(HERE, [UNIT])
    with tempfile.TemporaryDirectory() as folder:
        test_list(tap, folder, mutants)
        test_samples(tap, mutants)
        test_times(tap)
        chosen, results = test_runs(tap, folder, mutants)
        test_kept(tap, folder, chosen)
        test_report(tap, folder, mutants, chosen, results)
        test_faults(tap, folder)
        test_options(tap, folder)
    print(f'1..{tap.n}')
    return int(tap.failed > 0)


if __name__ == '__main__':
    sys.exit(main())
