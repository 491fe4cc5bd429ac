"""Runs the suite on mutants, several at a time.  The verdict of each becomes a line of a file, so that a run that was
interrupted goes on.
"""
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

from build import Trees, read_file, write_file

QUICK, FULL = '--quick', '--full'
# Verdicts of mutants.  Those with the last two are no mutants that a suite can kill.
BY_QUICK, BY_FULL, SURVIVED, SAME_CODE, NOT_COMPILED = 'quick', 'full', 'survived', 'same code', 'not compiled'
FAILED = 1  # exit status of verify if a check fails
# Limits of processor time: the larger of so many seconds, and of so many times the time of --quick without a mutation.
LEAST_CPU = {QUICK: 5, FULL: 120}
TIMES = {QUICK: 5, FULL: 100}


class Campaign:
    """Tests mutants of a build, in one copy of its sources for each that runs at the same time.

    `depth` is QUICK or FULL, an option of the suite; `level` is an option of the compiler, such as -O1.
    """

    def __init__(self, build, folder, jobs=2):
        self.build, self.folder, self.jobs = build, folder, jobs
        self.trees = Trees(build, folder, jobs)
        self.lock = threading.RLock()  # for the two dictionaries
        self.originals = {}  # {(backend, source, level): object without a mutation}
        self.cpu = {}  # {(backend, kernel): seconds of --quick without a mutation}

    def original(self, unit, level):
        """Returns the object of a unit without a mutation, as bytes."""
        key = unit.backend, unit.source, level
        with self.lock:
            if key not in self.originals:
                tree = os.path.join(self.folder, 'original')
                self.build.copy(tree)
                output = os.path.join(tree, 'unit.o')
                error = self.build.compile(unit, tree, output, level)
                if error:
                    raise SystemExit(f'{unit.source} does not compile as it is:\n{error}')
                self.originals[key] = read_file(output)
            return self.originals[key]

    def cpu_limit(self, unit, kernel, depth):
        """Returns the limit of processor time for the suite, by the time that --quick takes without a mutation."""
        key = unit.backend, kernel
        with self.lock:
            if key not in self.cpu:
                ended = self.build.verify(self.unmutated(unit), unit, kernel, QUICK, 600)
                if ended.status != 0:
                    raise SystemExit(f'{kernel} on {unit.backend} fails as it is:\n{ended.output}')
                self.cpu[key] = ended.cpu
            return max(LEAST_CPU[depth], round(TIMES[depth] * self.cpu[key]))

    def unmutated(self, unit):
        """Builds the program without a mutation, at the level of optimization of mutants.  Returns its path."""
        name = os.path.splitext(os.path.basename(unit.source))[0]
        program = os.path.join(self.folder, f'original-{unit.backend}-{name}')
        if not os.path.exists(program):
            write_file(f'{program}.o', self.original(unit, self.build.level))
            self.build.link_with(unit, f'{program}.o', program)
        return program

    def test(self, mutant, kept=None):
        """Returns (verdict, detail) of one mutant.  Its object and program are kept in the folder `kept`, if given."""
        for kernel in mutant.kernels:
            self.cpu_limit(mutant.unit, kernel, QUICK)
        with self.trees.changed({mutant.path: mutant.text}) as tree:
            return self.test_in(mutant, tree, kept or tree)

    def test_in(self, mutant, tree, folder):
        """Compiles, links and runs a mutant in a copy of the sources. Returns (verdict, detail)."""
        unit, built = mutant.unit, os.path.join(folder, 'unit.o')
        error = self.build.compile(unit, tree, built)
        if error:
            return NOT_COMPILED, first_error(error)
        if read_file(built) == self.original(unit, self.build.level):
            return SAME_CODE, self.build.level
        program = os.path.join(folder, 'program')
        self.build.link_with(unit, built, program)
        for depth, verdict in ((QUICK, BY_QUICK), (FULL, BY_FULL)):
            for kernel in mutant.kernels:
                ended = self.build.verify(program, unit, kernel, depth, self.cpu_limit(unit, kernel, depth))
                if ended.status != 0:
                    check_status(ended, mutant)
                    return verdict, f'{kernel}: ' + ('took too long' if ended.late else first_failure(ended))
        # Other levels optimize more: if one makes the same code, no suite can tell the two apart. The object that was
        # tested stays in place, as it may be kept.
        optimized = os.path.join(tree, 'optimized.o')
        for level in ('-O2', '-O3'):
            if not self.build.compile(unit, tree, optimized, level) and \
                    read_file(optimized) == self.original(unit, level):
                return SAME_CODE, level
        return SURVIVED, ''

    def run(self, mutants, results, report):
        """Tests the mutants that `results` lacks, and calls report() with each verdict."""
        pool = ThreadPoolExecutor(self.jobs)
        try:
            waiting = {pool.submit(self.test, m): m for m in mutants if m.id not in results.verdicts}
            for done in as_completed(waiting):
                results.add(waiting[done], *done.result())
                report(waiting[done], *done.result())
        finally:
            pool.shutdown(cancel_futures=True)


def check_status(ended, mutant):
    """Ends the program unless verify ran: a command line that it rejects kills no mutant."""
    if not ended.late and ended.status > FAILED:
        raise SystemExit(f'{mutant.title()}: the suite ended with {ended.status}:\n{ended.output}')


def first_error(output):
    errors = [line for line in output.splitlines() if 'error' in line]
    return errors[0].split('error: ')[-1][:120] if errors else 'the compiler crashed'


def first_failure(ended):
    """Returns the line of the output that names the first failed check."""
    lines = [line.strip() for line in ended.output.splitlines()]
    named = [line for line in lines if line.startswith(('FAIL', 'CRASH', 'fail', 'crash', 'not ok'))]
    return (named or [line for line in lines if line] or [f'ended by signal {-ended.status}'])[0][:160]


class Results:
    """The verdicts of a campaign, as lines of a file to which more are added."""

    def __init__(self, path):
        self.path, self.verdicts = path, {}
        if os.path.exists(path):
            with open(path, 'rb+') as file:
                lines = file.read().splitlines(keepends=True)
                if lines and not lines[-1].endswith(b'\n'):  # cut short: what add() appends must not join it
                    file.truncate(sum(map(len, lines[:-1])))
                    del lines[-1]
            for record in map(json.loads, lines):
                self.verdicts[record['id']] = record['verdict'], record['detail']

    def add(self, mutant, verdict, detail):
        self.verdicts[mutant.id] = verdict, detail
        with open(self.path, 'a', encoding='utf-8') as file:
            file.write(json.dumps({'id': mutant.id, 'verdict': verdict, 'detail': detail, 'file': mutant.path,
                                   'function': mutant.function, 'operator': mutant.operator}) + '\n')

    def forget(self, verdict):
        """Drops mutants with this verdict, so that they run again."""
        self.verdicts = {key: value for key, value in self.verdicts.items() if value[0] != verdict}
