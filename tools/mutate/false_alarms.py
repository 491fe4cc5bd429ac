"""Looks for false alarms of the suite: compiles correct kernels with many options of gcc and clang.  Each has to pass
verify --quick.  -ffast-math and -Ofast are not among them, as they give up NaN, infinities and signed zeros.
"""
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import product

from build import CPU, run
from mutants import all_units

PLUGIN = 'impl/backends/tests/plugin.c'  # the plain loops
EXAMPLE = 'examples/plugin.c'
LEVELS = ('-O0', '-O1', '-O2', '-O3')
OFF = '-ffp-contract=off'
OTHERS = ('-Os', '-funroll-loops', '-fno-tree-vectorize', '-fno-strict-aliasing', '-fwrapv', '-fno-builtin',
          '-fno-math-errno', '-flto', '-fno-inline', '-fstack-protector-all')
GCC_ONLY = ['-fno-split-loops']  # flags of the build that clang rejects


def compilers():
    return [name for name in ('gcc', 'clang') if shutil.which(name)]


def plugin_ways():
    """Yields (source, compiler, flags) of plug-ins.  A macro tells a plug-in that its compiler contracts."""
    for compiler, level in product(compilers(), LEVELS):
        yield PLUGIN, compiler, [level, '-march=x86-64', OFF]
        yield PLUGIN, compiler, [level, '-march=x86-64-v2', OFF]
        yield PLUGIN, compiler, [level, '-march=x86-64-v3', '-ffp-contract=fast', '-DPLUGIN_CONTRACTS']
        yield PLUGIN, compiler, [level, '-march=native', OFF]
    for compiler, flag in product(compilers(), OTHERS):
        yield PLUGIN, compiler, ['-O2', flag, '-march=native', '-DPLUGIN_CONTRACTS']
    for compiler in compilers():
        yield PLUGIN, compiler, ['-O3', '-march=native', '-DPLUGIN_F32']
        for flags in (['-O2'], ['-O3', '-march=native'], ['-O0']):
            yield EXAMPLE, compiler, flags


def backend_ways():
    """Yields (backend, compiler, flags) of the templates, within the program."""
    for backend, compiler in product(('scalar', 'avx2'), compilers()):
        yield backend, compiler, ['-O1']
        yield backend, compiler, ['-O2', '-march=native']
        yield backend, compiler, ['-O3', '-fno-strict-aliasing', '-fwrapv']
    yield 'avx2', 'gcc', ['-O2', '-flto']


def try_plugin(build, folder, way):
    source, compiler, flags = way
    path = folder + '.so'
    made = build.plugin(compiler, flags, source, build.root, path)
    if made.status != 0:
        return 'not compiled', made.output
    return judge([os.path.join(build.folder, 'posenc'), 'verify', '--quick', '--plugin', path], build.root)


def try_backend(build, folder, way):
    backend, compiler, flags = way
    os.makedirs(folder, exist_ok=True)
    units = [unit for unit in all_units(build.root, backend) if unit.backend == backend]
    objects = {}
    for unit in units:
        output = os.path.join(folder, os.path.basename(unit.source) + '.o')
        base = build.flags(build.entry(unit), build.root, flags[0])
        if compiler == 'clang':
            base = [flag for flag in base if flag not in GCC_ONLY]
        made = run([compiler, *base[1:], *flags[1:], '-w', '-o', output, '-c', unit.source], build.root, CPU)
        if made.status != 0:
            return 'not compiled', made.output
        objects[build.entry(unit)['output']] = output
    program = os.path.join(folder, 'program')
    build.link_replaced(objects, program, [flag for flag in flags if flag == '-flto'])
    return judge([program, 'verify', '--quick', '--backend', backend, '--vectors', build.golden], folder)


def judge(command, folder):
    ended = run([*command, '--jobs', '1'], folder, CPU)
    return ('passed' if ended.status == 0 else f'exit {ended.status}'), ended.output


def main(build, folder, jobs=2):
    """Prints a line for each way to compile, and the number that passed.  Returns the exit status."""
    folder = os.path.join(folder, 'right')
    os.makedirs(folder, exist_ok=True)
    tried = []
    with ThreadPoolExecutor(jobs) as pool:
        for attempt, ways in ((try_plugin, plugin_ways()), (try_backend, backend_ways())):
            for way in ways:
                tried.append((way, pool.submit(attempt, build, os.path.join(folder, str(len(tried))), way)))
        for (what, compiler, flags), result in tried:
            verdict, output = result.result()
            print(f'{verdict:12} {what} {compiler} {" ".join(flags)}', flush=True)
            if verdict != 'passed':
                print(output)
    verdicts = [result.result()[0] for _, result in tried]
    not_compiled, passed = verdicts.count('not compiled'), verdicts.count('passed')
    print(f'{passed} passed, {len(tried) - passed - not_compiled} false alarms, {not_compiled} not compiled')
    return int(passed < len(tried))
