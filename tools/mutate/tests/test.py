#!/usr/bin/env python3
"""Tests ./run mutate on a made-up kernel (tiny.c) and its suite (suite.c): the list of mutants, some verdicts, ids,
samples, the list of equivalents, interrupted runs.

    test.py [--write]       --write: puts the mutants of now into tiny.txt
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import campaign  # noqa: E402
import faults  # noqa: E402
import mutate  # noqa: E402
from build import read_file, run, write_file  # noqa: E402
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
            write_file(os.path.join(folder, name), read_file(os.path.join(HERE, name)))

    def compile(self, unit, tree, output, level=None):
        ended = run([*CC, '-std=c11', '-w', level or self.level, '-c', unit.source, '-o', output], tree, 60)
        return ended.output if ended.status else None

    def link_with(self, unit, built, output):
        ended = run([*CC, self.suite, built, '-o', output], HERE, 60)
        assert ended.status == 0, f'{unit.source}: {ended.output}'

    def verify(self, program, unit, kernel, depth, cpu):
        assert unit is UNIT and kernel == 'scale'
        return run([program, depth], HERE, cpu)


def listing(mutants):
    return ''.join(f'{m.operator} {m.function}: {m.new}\n' for m in mutants)


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


class Test(unittest.TestCase):
    """Tests share the mutants of tiny.c, and the verdicts of those in EXPECTED."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder, cls.mutants = cls.temporary.name, all_mutants(HERE, [UNIT])
        cls.chosen = [m for m in cls.mutants if (m.operator, m.old, m.new) in EXPECTED]
        campaign.LEAST_CPU = {campaign.QUICK: 1, campaign.FULL: 1}  # a mutant that never ends takes all of it
        cls.work, cls.path = campaign.Campaign(Tiny(cls.folder), cls.folder), os.path.join(cls.folder, 'results.jsonl')
        cls.results = campaign.Results(cls.path)
        cls.work.run(cls.chosen, cls.results, lambda *_: None)

    def mutants_of_text(self, text):
        """Returns the mutants of another text of tiny.c."""
        folder = os.path.join(self.folder, 'other')
        Tiny(self.folder).copy(folder)
        write_file(os.path.join(folder, 'tiny.c'), text.encode())
        return all_mutants(folder, [UNIT])

    def test_mutants_of_the_kernel_are_those_of_tiny_txt(self):
        path = os.path.join(HERE, 'tiny.txt')
        if '--write' in sys.argv:
            write_file(path, listing(self.mutants).encode())
        self.assertEqual(listing(self.mutants), read_file(path).decode())
        self.assertEqual({m.operator for m in self.mutants}, set(OPERATORS))
        self.assertEqual({tuple(m.kernels) for m in self.mutants}, {('scale',)})

    def test_ids_depend_on_lines_and_not_on_their_place(self):
        text = read_file(os.path.join(HERE, 'tiny.c')).decode()
        ids = [m.id for m in self.mutants]
        self.assertEqual(len(set(ids)), len(ids))
        moved = self.mutants_of_text(text.replace('static', '/* Two\n   lines. */\nstatic'))
        self.assertEqual([m.id for m in moved], ids)
        self.assertEqual({m.text.count('\n') for m in self.mutants}, {text.count('\n')})

    def test_a_part_that_ifdef_leaves_out_has_no_mutants(self):
        text = read_file(os.path.join(HERE, 'tiny.c')).decode()
        # least() stands between the first int and the float.
        text = text.replace('static int', '#ifdef NEVER\nstatic int').replace('static float', '#endif\nstatic float')
        functions = {m.function for m in self.mutants_of_text(text)}
        self.assertEqual(functions, {'limited', 'plain_scale'})

    def test_samples(self):
        drawn = mutate.draw(self.mutants, 20, 7)
        self.assertEqual(len({m.id for m in drawn}), 20)
        self.assertEqual(drawn, mutate.draw(self.mutants, 20, 7))
        self.assertNotEqual(drawn, mutate.draw(self.mutants, 20, 8))
        every = mutate.draw(self.mutants, len(self.mutants), 1)
        self.assertEqual({m.id for m in every}, {m.id for m in self.mutants})

    def test_a_command_that_takes_too_long_is_ended_and_no_other(self):
        """The busy child ends while the other one sleeps, whose time must not include that of the busy one."""
        with ThreadPoolExecutor(2) as pool:
            ended = list(pool.map(lambda command: run(command, HERE, 1),
                                  ([sys.executable, '-c', 'while True: pass'], ['sleep', '2'])))
        self.assertEqual([one.late for one in ended], [True, False])
        self.assertTrue(ended[1].cpu < 0.5 < ended[0].cpu, [one.cpu for one in ended])
        slow = run(['sleep', '60'], HERE, 1, wall=0.2)
        self.assertTrue(slow.late and slow.status < 0)

    def test_verdicts(self):
        verdicts = {(m.operator, m.old, m.new): self.results.verdicts[m.id][0] for m in self.chosen}
        self.assertEqual(verdicts, EXPECTED)

    def test_a_run_that_was_interrupted_goes_on(self):
        path = os.path.join(self.folder, 'cut.jsonl')
        write_file(path, read_file(self.path) + b'{"id": "cut sho')
        again, tried = campaign.Results(path), []
        self.assertEqual(again.verdicts, self.results.verdicts)
        self.work.run(self.chosen, again, lambda mutant, *_: tried.append(mutant))
        self.assertEqual(tried, [])
        again.add(self.chosen[0], *self.results.verdicts[self.chosen[0].id])
        self.assertEqual(campaign.Results(path).verdicts, self.results.verdicts)
        again.forget(campaign.SURVIVED)
        self.assertEqual(len(again.verdicts), len(self.chosen) - 1)

    def test_the_object_of_a_survivor_is_kept_as_it_was_tested(self):
        mutant = next(m for m in self.chosen if EXPECTED[m.operator, m.old, m.new] == campaign.SURVIVED)
        tiny, kept, tree = Tiny(self.folder), os.path.join(self.folder, 'kept'), os.path.join(self.folder, 'mutated')
        os.makedirs(kept)
        self.work.test(mutant, kept)
        tiny.copy(tree)
        write_file(os.path.join(tree, mutant.path), mutant.text.encode())
        tiny.compile(UNIT, tree, os.path.join(tree, 'unit.o'))
        self.assertEqual(*(read_file(os.path.join(place, 'unit.o')) for place in (kept, tree)))

    def test_list_of_equivalents_and_score(self):
        path = os.path.join(self.folder, 'equivalent.txt')
        write_file(path, LIST.encode())
        equivalents = Equivalents(path)
        for m in self.mutants:
            equivalents.find(m)
        rows = mutate.classify(self.chosen, self.results.verdicts, equivalents)
        self.assertEqual([verdict for m, verdict, _, _ in rows if m.operator == 'comparison'], [mutate.LISTED])
        self.assertEqual([line[:5] for line in mutate.complaints(rows, equivalents)], ['stale'])
        self.assertEqual(mutate.score(rows, False), '--quick finds 3 of 4, 75.0 %; --full finds 4 of 4, 100.0 %')
        write_file(path, b'tiny.c plain_scale early\n- *\n+ *\nno\n')
        found = mutate.classify(self.chosen, self.results.verdicts, Equivalents(path))
        self.assertIn('but found', ''.join(mutate.complaints(found, Equivalents(path))))
        self.assertEqual([round(end, 3) for end in mutate.interval(95, 100)], [0.888, 0.978])  # Wilson's

    def test_each_fault_edits_texts_that_the_library_has_once(self):
        listed, texts = faults.parse(faults.LIST), {}
        self.assertGreater(len(listed), 200)
        for fault in listed:
            changed = {}
            for edit in fault.edits:
                text = texts.setdefault(edit.path, read_file(os.path.join(faults.ROOT, edit.path)).decode())
                changed[edit.path] = edit.apply(changed.get(edit.path, text), faults.LIST)
                self.assertNotEqual(' '.join(edit.old).split(), ' '.join(edit.new).split(), fault.name)

    def test_malformed_faults(self):
        path = os.path.join(self.folder, 'faults.txt')
        for text, expected in MALFORMED.items():
            write_file(path, text.encode())
            with self.assertRaisesRegex(faults.Malformed, re.escape(f'faults.txt:{expected}')):
                faults.parse(path)

    def test_names_of_mistakes(self):
        path, edit = os.path.join(self.folder, 'faults.txt'), 'run\n- x\n+ y\n'
        write_file(path, f'a | alibi | memory | text\n= known\n{edit}b | alibi | memory | text\n{edit}'.encode())
        known, unknown = faults.parse(path)
        runs = [('alibi', [], [('c1', ''), ('c2', 'other')]), ('alibi', [], [('c3', 'other; or known')]),
                ('rope', [], [('c4', 'known')])]
        found = [list(faults.wrong_names(fault, kernel, faults.names_of(kernel, runs)))
                 for fault in (known, unknown) for kernel in ('alibi', 'rope')]
        self.assertEqual([len(wrong) for wrong in found], [2, 0, 2, 1], found)

    def test_options(self):
        for program, words, expected in ((faults, ['nonsense'], "got 'nonsense'"), (mutate, ['0'], 'at least one'),
                                         (mutate, ['1', 'x.c'], 'has no mutants'),
                                         (mutate, ['--one', 'x'], 'no mutant x')):
            done = subprocess.run([sys.executable, program.__file__, self.folder, *words], stderr=subprocess.PIPE,
                                  text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(expected, done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
