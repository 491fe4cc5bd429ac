#!/usr/bin/env python3
"""Tries injected faults.  Each is an edit of a copy of the library, which the suite that it names has to detect.
conformance/cases/faults.txt lists them, and has their grammar.  Prints the kill matrix as TAP.

    faults.py BUILD [--jobs N] [--all] [NAME...]     these faults, or all
        --jobs N      faults at a time (2)
        --all         run every suite with --quick instead of the named one, and print the cases that fail;
                      faults marked `full` may then go undetected

An edit of a header is compiled into a plug-in, the plain loops with the one kernel; one of a source into the program.
"""
import argparse
import json
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from build import CPU, Build, Trees, read_file, run, write_file

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIST = os.path.join(ROOT, 'conformance', 'cases', 'faults.txt')
HEADER = re.compile(r'(\w+) \| ([\w ]+) \| ([a-z-]+)(/[a-z0-9*-]+)?( full)? \| (.+)')
EXPECTED = 'NAME | KERNEL | SUITE[/CASE] [full] | SENTENCE'
# Kernels that the properties of another one call besides it.
COMPANIONS = {'rope_interleaved': 'rope_half', 'rope_qk_norm': 'rope_half', 'learned_grad': 'learned_add',
              'relative_sum': 'relative_bias'}
SEEDS = {('random', '--full'): '01234'}  # the problems of a suite depend on the seed
PLUGIN = '''#include <fenv.h>
#include <math.h>
#include "impl/internal.h"
#include "impl/simd/half.h"
static inline float narrowed(enum posenc_dtype type, float value)
{
    return type == POSENC_DTYPE_F16    ? f32_from_f16(f16_from_f32(value))
           : type == POSENC_DTYPE_BF16 ? f32_from_bf16(bf16_from_f32(value))
                                 : value;
}
#include "impl/backends/plain_scores.h"
#include "impl/backends/plain_tokens.h"
extern POSENC_API const struct posenc_backend posenc_plugin;
const struct posenc_backend posenc_plugin = {
    .size = sizeof(struct posenc_backend), .abi = POSENC_ABI, .name = "faulty", .family = "faulty",
    .description = "the plain loops with a fault", .required_features = "", .f16_bf16 = true, %s
};
'''


def companions(kernel):
    """Returns the kernels that a plug-in needs beside this one: X for X_add, which adds it, and COMPANIONS."""
    found = [COMPANIONS[kernel]] if kernel in COMPANIONS else []
    if kernel.endswith('_add') and kernel != 'learned_add':  # there is no kernel "learned"
        found.append(kernel[:-len('_add')])
    return found


class Malformed(Exception):
    """An error in the list of faults: file, line, column, and the expected text."""

    def __init__(self, path, line, column, expected):
        super().__init__(f'{os.path.relpath(path)}:{line}:{column}: expected {expected}')


class Untried(Exception):
    """The reason for which a fault could not be built or verified."""


class Edit:
    """A text of a file and its replacement.  Any white space matches any other."""

    def __init__(self, path, line):
        self.path, self.line, self.old, self.new = path, line, [], []

    def apply(self, text, where):
        """Returns the changed text of the file."""
        form = r'\s*'.join(map(re.escape, re.findall(r'\w+|[^\w\s]', ' '.join(self.old))))
        found = list(re.finditer(form, text))
        if len(found) != 1:
            raise Malformed(where, self.line, 1, f'a text that {self.path} has once (it has it {len(found)} times)')
        return text[:found[0].start()] + '\n'.join(self.new) + text[found[0].end():]


class Fault:
    """A fault: its name, the kernels that have it, the suite and cases that detect it, its edits."""

    def __init__(self, name, kernels, suite, case, depth, sentence):
        self.name, self.kernels, self.suite, self.sentence = name, kernels.split(), suite, sentence
        self.case, self.depth = case or '', '--full' if depth else '--quick'
        self.edits, self.mistake = [], ''

    def is_plugin(self):
        """Returns true if all edits are of headers."""
        return all(edit.path.endswith('.h') for edit in self.edits)

    def verify_arguments(self):
        """Returns the arguments of verify that select the cases that have to fail."""
        return [self.depth, '--suite', self.suite, *(['--case', f'*/{self.suite}{self.case}'] if self.case else [])]


def parse(path):
    """Returns the faults of a list."""
    faults, names = [], set()
    with open(path, encoding='utf-8') as file:
        lines = [line.rstrip('\n') for line in file]
    for number, line in enumerate(lines, 1):
        last = faults[-1] if faults else None
        edit = last.edits[-1] if last and last.edits else None
        if not line or line.startswith('#'):
            continue
        if line.startswith('= ') and last and not last.edits:
            last.mistake = line[2:]
        elif line[:2] in ('- ', '+ ', '+'):  # "+": an empty line
            if not edit or (line[0] == '-' and edit.new):
                raise Malformed(path, number, 1, 'the name of a file before the texts')
            (edit.old if line[0] == '-' else edit.new).append(line[2:])
        elif '|' in line:
            match = HEADER.fullmatch(line)
            if not match:
                raise Malformed(path, number, column_of(line), EXPECTED)
            if match.group(1) in names:
                raise Malformed(path, number, 1, f'another name than {match.group(1)}, which is taken')
            names.add(match.group(1))
            faults.append(Fault(*match.groups()))
        elif not last or not os.path.exists(os.path.join(ROOT, line)):
            raise Malformed(path, number, 1, 'a fault, a file of this repository, "- text" or "+ text"')
        else:
            last.edits.append(Edit(line, number))
    for fault in faults:
        if not fault.edits or not all(edit.old and edit.new for edit in fault.edits):
            raise Malformed(path, len(lines), 1, f'a file, "- text" and "+ text" for {fault.name}')
    return faults


def column_of(line):
    """Returns the column of the first field that does not match the first line of a fault."""
    column = 1
    for field, form in zip(line.split('|'), (r'\w+ ', r' [\w ]+ ', r' [a-z-]+(/[a-z0-9*-]+)?( full)? ', r' .+')):
        if not re.fullmatch(form, field):
            break
        column += len(field) + 1
    return column


class Faults:
    """Builds and tries faults, in one copy of the library for each that runs at the same time."""

    def __init__(self, build, folder, jobs):
        self.build, self.trees = build, Trees(build, folder, jobs)

    def plugin(self, tree, kernels):
        """Builds a plug-in of the plain loops of a tree, with these kernels.  Returns the program and its options."""
        source, output = os.path.join(tree, 'plugin.c'), os.path.join(tree, 'faulty.so')
        needed = {*kernels, *(other for kernel in kernels for other in companions(kernel))}
        members = ', '.join(f'.{kernel} = plain_{kernel}' for kernel in sorted(needed))
        write_file(source, (PLUGIN % members).encode())
        made = self.build.plugin('cc', ['-O1', '-ffp-contract=off'], 'plugin.c', tree, output)
        if made.status != 0:
            raise Untried(f'it does not compile:\n{made.output}')
        return os.path.join(self.build.folder, 'posenc'), ['--plugin', output, '--backend', 'faulty']

    def program(self, tree, paths):
        """Links the program with these files compiled from a tree.  Returns it and its options."""
        objects = {}
        for entry in self.build.commands:
            source = os.path.relpath(os.path.join(self.build.folder, entry['file']), ROOT)
            backend = '/kernels/' not in source or 'libbackend_scalar.a' in entry['output']
            if source in paths and backend and entry['output'] in self.build.objects:
                output = os.path.join(tree, os.path.basename(source) + '.o')
                made = run([*self.build.flags(entry, tree, '-O1'), '-w', '-o', output, '-c', source], tree, CPU)
                if made.status != 0:
                    raise Untried(f'it does not compile:\n{made.output}')
                objects[entry['output']] = output
        program = os.path.join(tree, 'program')
        self.build.link_replaced(objects, program)
        return program, ['--backend', 'scalar']

    def verify(self, program, options, kernel, words):
        """Returns (case, the mistake that it matches) of each failure.  Raises Untried if the program ended in another
        way."""
        ended = run([program, 'verify', '--kernel', kernel, '--jobs', '1', '--out', 'jsonl', '--vectors',
                     self.build.golden, *options, *words], os.path.dirname(program), CPU)
        records = [json.loads(line) for line in ended.output.splitlines() if line.startswith('{')]
        failed = [(record['case'], record.get('mistake', '')) for record in records
                  if record.get('status') in ('fail', 'crash')]
        if ended.status > 1 or bool(ended.status) != bool(failed):
            raise Untried(f'verify {" ".join(words)} ended with {ended.status}:\n{ended.output[-2000:]}')
        return failed

    def arguments_of_runs(self, fault, everything):
        """Returns the arguments of each run of verify that a fault needs."""
        if everything:
            return [['--quick']]
        return [[*fault.verify_arguments(), '--seed', seed] for seed in SEEDS.get((fault.suite, fault.depth), '0')]

    def try_fault(self, fault, everything):
        """Returns (kernel, arguments, [(case, mistake)]) of each run."""
        texts = {}
        for edit in fault.edits:
            text = texts.get(edit.path) or read_file(os.path.join(ROOT, edit.path)).decode()
            texts[edit.path] = edit.apply(text, LIST)
        with self.trees.changed(texts) as tree:
            program, options = (self.plugin(tree, fault.kernels) if fault.is_plugin()
                                else self.program(tree, list(texts)))
            runs = [(kernel, words, self.verify(program, options, kernel, words))
                    for kernel in fault.kernels for words in self.arguments_of_runs(fault, everything)]
            # A property relates several calls, and the values of the one that it reports may be right: others name
            # the fault.
            unnamed = [kernel for kernel in fault.kernels
                       if fault.mistake and fault.mistake not in names_of(kernel, runs)]
            return runs + [(kernel, ['--quick'], self.verify(program, options, kernel, ['--quick']))
                           for kernel in unnamed if not everything]

    def try_correct(self, kernel, words):
        """Returns the cases that fail without a fault: any is a false alarm."""
        with self.trees.changed({}) as tree:
            program, options = self.plugin(tree, [kernel])
            return self.verify(program, options, kernel, words)


def main():
    parser = argparse.ArgumentParser(description='tries injected faults', usage=__doc__)
    parser.add_argument('build')
    parser.add_argument('names', nargs='*')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--all', action='store_true')
    options = parser.parse_args()
    try:
        listed = parse(LIST)
    except Malformed as error:
        sys.exit(str(error))
    missing = sorted(set(options.names) - {fault.name for fault in listed})
    if missing:
        parser.exit(2, f'faults.py: error: no fault of this name (got {", ".join(map(repr, missing))}). '
                       'conformance/cases/faults.txt lists them.\n')
    faults = [fault for fault in listed if not options.names or fault.name in options.names]
    build = Build(ROOT, options.build)
    with tempfile.TemporaryDirectory(dir=build.folder, prefix='faults-') as folder:
        return try_all(Faults(build, folder, options.jobs), faults, options)


def try_all(builder, faults, options):
    """Prints the kill matrix of these faults.  Returns the exit status."""
    failures = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        results = [(fault, pool.submit(builder.try_fault, fault, options.all)) for fault in faults]
        runs = {(kernel, *fault.verify_arguments()) for fault in faults for kernel in fault.kernels
                if fault.is_plugin() and not options.all}
        correct = [(words, pool.submit(builder.try_correct, words[0], words[1:])) for words in sorted(runs)]
        print(f'1..{len(results) + len(correct)}')
        for n, (fault, result) in enumerate(results, 1):
            failures += not report_fault(n, fault, result, options.all)
        for n, (words, result) in enumerate(correct, len(results) + 1):
            failures += bool(result.result())
            print(f'{"not ok" if result.result() else "ok"} {n} - {" ".join(words)} without a fault', flush=True)
    return int(failures > 0)


def report_fault(n, fault, result, everything):
    """Prints a row of the kill matrix.  Returns true if each run detected the fault."""
    row = f'{n} - {fault.name} {",".join(fault.kernels)} {fault.suite}{fault.case}'
    try:
        runs = result.result()
    except (Malformed, Untried) as error:
        print(f'not ok {row}', *str(error).splitlines(), sep='\n# ', flush=True)
        return False
    missed = [f'# not detected: {kernel} {" ".join(words)}' for kernel, words, failed in runs if not failed]
    missed += [f'# {wrong}' for kernel in fault.kernels for wrong in wrong_names(fault, kernel, names_of(kernel, runs))]
    counts = '/'.join(str(len(failed)) for _, _, failed in runs)
    print(f'{"not ok" if missed else "ok"} {row}: {counts} failed cases', *missed, sep='\n', flush=True)
    if everything:
        print(*[f'#   {case} {mistake}' for _, _, failed in runs for case, mistake in failed], sep='\n')
    return not missed


def names_of(kernel, runs):
    """Returns the mistakes that failures of a kernel match."""
    return sorted({mistake for other, _, failed in runs for _, mistake in failed if mistake and other == kernel})


def wrong_names(fault, kernel, names):
    """Yields complaints: no failure matches the mistake of the fault, or one matches only other mistakes."""
    if fault.mistake and fault.mistake not in names:
        yield f'{kernel}: no failure matches: {fault.mistake}'
    for name in names:
        if fault.mistake not in name.split('; or '):  # a failure may match several: "A; or B"
            yield f'{kernel}: a failure matches: {name}'


if __name__ == '__main__':
    sys.exit(main())
