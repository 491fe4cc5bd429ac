"""A campaign: mutants one after the other, several at a time; what became of each is a line of a file, so that a run that
was interrupted goes on.
"""
import json
import os
import queue
import resource
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

QUICK, FULL = '--quick', '--full'
# What becomes of a mutant.  The last two say nothing of the suite.
BY_QUICK, BY_FULL, SURVIVED, SAME_CODE, REFUSED = 'quick', 'full', 'survived', 'same code', 'not compiled'
FAILED = 1  # how verify ends when a check fails
LEAST_CPU = {QUICK: 5, FULL: 120}  # seconds that nothing is stopped below,
TIMES = {QUICK: 5, FULL: 100}  # nor below so many times what --quick takes


class Campaign:
    """Mutants of a build, with copies of its sources to change, one for each that is under way."""

    def __init__(self, build, folder, jobs=2):
        self.build, self.folder, self.jobs = build, folder, jobs
        self.trees, self.lock, self.originals, self.cpu = queue.Queue(), threading.Lock(), {}, {}
        for n in range(jobs):
            tree = os.path.join(folder, f'tree{n}')
            build.copy(tree)
            self.trees.put(tree)

    def original(self, unit, level):
        """The bytes of what is not mutated."""
        key = unit.backend, unit.source, level
        with self.lock:
            if key not in self.originals:
                tree = os.path.join(self.folder, 'original')
                self.build.copy(tree)
                output = os.path.join(tree, 'unit.o')
                error = self.build.compile(unit, tree, output, level)
                if error:
                    raise SystemExit(f'{unit.source} does not compile as it is:\n{error}')
                self.originals[key] = contents(output)
            return self.originals[key]

    def seconds(self, unit, kernel, depth):
        """Processor time within which the suite has to end: a multiple of what --quick takes for what is not mutated."""
        key = unit.backend, kernel
        with self.lock:
            if key not in self.cpu:
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                ended = self.build.verify(self.unmutated(unit), unit, kernel, QUICK, 600)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                if ended.status != 0:
                    raise SystemExit(f'{kernel} on {unit.backend} fails as it is:\n{ended.said}')
                self.cpu[key] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return max(LEAST_CPU[depth], round(TIMES[depth] * self.cpu[key]))

    def unmutated(self, unit):
        """The program with nothing changed but the level of optimization."""
        name = os.path.splitext(os.path.basename(unit.source))[0]
        program = os.path.join(self.folder, f'original-{unit.backend}-{name}')
        if not os.path.exists(program):
            tree = os.path.join(self.folder, 'original')
            self.build.copy(tree)
            output = f'{program}.o'
            error = self.build.compile(unit, tree, output)
            if error:
                raise SystemExit(error)
            self.build.link_with(unit, output, program)
        return program

    def test(self, mutant, kept=None):
        """What becomes of one mutant: (verdict, detail).  `kept`: a folder in which object and program stay."""
        for kernel in mutant.kernels:
            self.seconds(mutant.unit, kernel, QUICK)
        tree = self.trees.get()
        try:
            return self.test_in(mutant, tree, kept or tree)
        finally:
            put(os.path.join(tree, mutant.path), contents(os.path.join(self.build.root, mutant.path)))
            self.trees.put(tree)

    def test_in(self, mutant, tree, folder):
        unit, built = mutant.unit, os.path.join(folder, 'unit.o')
        put(os.path.join(tree, mutant.path), mutant.text.encode())
        error = self.build.compile(unit, tree, built)
        if error:
            return REFUSED, first_error(error)
        if contents(built) == self.original(unit, self.build.level):
            return SAME_CODE, self.build.level
        program = os.path.join(folder, 'program')
        self.build.link_with(unit, built, program)
        for depth, verdict in ((QUICK, BY_QUICK), (FULL, BY_FULL)):
            for kernel in mutant.kernels:
                ended = self.build.verify(program, unit, kernel, depth, self.seconds(unit, kernel, depth))
                if ended.status != 0:
                    check_status(ended, mutant)
                    return verdict, f'{kernel}: ' + ('took too long' if ended.late else first_failure(ended))
        # Other levels see more of it: what is the same code to one of them is the same to the suite.
        for level in ('-O2', '-O3'):
            if not self.build.compile(unit, tree, built, level) and contents(built) == self.original(unit, level):
                return SAME_CODE, level
        return SURVIVED, ''

    def run(self, mutants, results, told):
        """All of those that `results` does not know; each is told as it comes."""
        pool = ThreadPoolExecutor(self.jobs)
        try:
            waiting = {pool.submit(self.test, m): m for m in mutants if m.id not in results.verdicts}
            for done in as_completed(waiting):
                results.add(waiting[done], *done.result())
                told(waiting[done], *done.result())
        finally:
            pool.shutdown(cancel_futures=True)


def check_status(ended, mutant):
    """That the suite found something: a command line that it refuses kills no mutant."""
    if not ended.late and ended.status > FAILED:
        raise SystemExit(f'{mutant.title()}: the suite ended with {ended.status}:\n{ended.said}')


def contents(path):
    with open(path, 'rb') as file:
        return file.read()


def put(path, data):
    with open(path, 'wb') as file:
        file.write(data)


def first_error(said):
    errors = [line for line in said.splitlines() if 'error' in line]
    return errors[0].split('error: ')[-1][:120] if errors else 'the compiler crashed'


def first_failure(ended):
    """The check that failed first, as the suite's output names it."""
    lines = [line.strip() for line in ended.said.splitlines()]
    named = [line for line in lines if line.startswith(('FAIL', 'CRASH', 'fail', 'crash', 'not ok'))]
    return (named or [line for line in lines if line] or [f'ended by signal {-ended.status}'])[0][:160]


class Results:
    """The lines of a campaign's file, and a place to add more."""

    def __init__(self, path):
        self.path, self.verdicts = path, {}
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                for line in file:
                    if line.endswith('\n'):  # the last one may be cut short
                        record = json.loads(line)
                        self.verdicts[record['id']] = record['verdict'], record['detail']

    def add(self, mutant, verdict, detail):
        self.verdicts[mutant.id] = verdict, detail
        with open(self.path, 'a', encoding='utf-8') as file:
            file.write(json.dumps({'id': mutant.id, 'verdict': verdict, 'detail': detail, 'file': mutant.path,
                                   'function': mutant.function, 'operator': mutant.operator}) + '\n')

    def forget(self, verdict):
        """Those of a verdict, to be run again."""
        self.verdicts = {key: value for key, value in self.verdicts.items() if value[0] != verdict}
