"""Compiles changed sources in a copy of impl/, and links the program with them, by the commands of its build."""
import contextlib
import json
import os
import queue
import resource
import shlex
import shutil
import signal
import subprocess
import threading

# Warnings of gcc and clang that reject a mutant, since no such code would be committed.
ERRORS = ['-Werror=incompatible-pointer-types', '-Werror=int-conversion', '-Werror=discarded-qualifiers',
           '-Werror=implicit-function-declaration', '-Werror=uninitialized', '-Wno-unknown-warning-option']
LIBRARY = 'impl/libposenc.a'
CPU = 600  # seconds; no command takes as long


class Ended:
    """The end of a command: its status (negative: the signal), true if it took too long, its output, and its seconds of
    processor time."""

    def __init__(self, status, late, output, cpu):
        self.status, self.late, self.output, self.cpu = status, late, output, cpu


def limits(cpu):
    """Returns a function that limits a child, and each child of its own, to seconds of processor time."""
    def set_limits():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    return set_limits


def run(command, folder, cpu, wall=None):
    """Runs a command as a group of its own, which ends as a whole."""
    wall = wall or 200 * cpu  # its share of a busy machine may be small
    child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=limits(cpu))
    killer = threading.Timer(wall, os.killpg, (child.pid, signal.SIGKILL))
    killer.start()
    with child.stdout:
        output = child.stdout.read().decode(errors='replace')
    # wait4() gives the time of this child; getrusage() would add that of children of other threads.
    _, status, usage = os.wait4(child.pid, 0)
    in_time = killer.is_alive()
    killer.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    return Ended(child.returncode, not in_time or child.returncode == -signal.SIGXCPU,
                 output if in_time else f'more than {wall} s', usage.ru_utime + usage.ru_stime)


def words_of(command):
    """Returns the compiler and the flags of a compile command without its files, ccache and warnings."""
    words, kept, skip = shlex.split(command), [], False
    for word in words:
        if skip:
            skip = False
        elif word in ('-o', '-c', '-MQ', '-MF'):
            skip = True
        elif os.path.basename(word) != 'ccache' and word != '-MD' and not word.startswith(('-W', '-fdiag')):
            kept.append(word)
    return kept


def read_file(path):
    with open(path, 'rb') as file:
        return file.read()


def write_file(path, data):
    with open(path, 'wb') as file:
        file.write(data)


class Trees:
    """Copies of the sources of a build, one for each attempt that runs at the same time."""

    def __init__(self, build, folder, jobs):
        self.build, self.free = build, queue.Queue()
        for n in range(jobs):
            tree = os.path.join(folder, f'tree{n}')
            build.copy(tree)
            self.free.put(tree)

    @contextlib.contextmanager
    def changed(self, texts):
        """Lends a copy in which files have other texts, {path: text}."""
        tree = self.free.get()
        try:
            for path, text in texts.items():
                write_file(os.path.join(tree, path), text.encode())
            yield tree
        finally:
            for path in texts:
                write_file(os.path.join(tree, path), read_file(os.path.join(self.build.root, path)))
            self.free.put(tree)


class Build:
    """A build folder of posenc, from which programs with one changed object are made."""

    def __init__(self, root, folder, level='-O1'):
        self.root, self.folder, self.level = root, os.path.abspath(folder), level
        with open(os.path.join(folder, 'compile_commands.json'), encoding='utf-8') as file:
            self.commands = json.load(file)
        self.link = shlex.split(self.ninja('posenc')[-1])
        self.objects = [word for word in shlex.split(self.ninja(LIBRARY)[-1]) if word.endswith('.o')]
        self.golden = os.path.join(self.folder, 'golden')

    def ninja(self, target):
        done = subprocess.run(['ninja', '-C', self.folder, '-t', 'commands', target], check=True, capture_output=True)
        return done.stdout.decode().splitlines()

    def copy(self, folder):
        """Copies impl/ into a folder, to be changed there."""
        shutil.copytree(os.path.join(self.root, 'impl'), os.path.join(folder, 'impl'), dirs_exist_ok=True)

    def entry(self, unit):
        """Returns the entry of the compile commands for a unit and its backend."""
        for entry in self.commands:
            path = os.path.normpath(os.path.join(self.folder, entry['file']))
            if path == os.path.join(self.root, unit.source) and f'libbackend_{unit.backend}.a' in entry['output']:
                return entry
        raise SystemExit(f'{unit.source} is not compiled for {unit.backend} in {self.folder}')

    def flags(self, entry, tree, level):
        """Returns the flags of an entry of the compile commands, with headers of impl/ taken from the copy `tree`."""
        found = []
        for word in words_of(entry['command']):
            if word.startswith('-I'):
                path = os.path.normpath(os.path.join(self.folder, word[2:]))
                inside = os.path.relpath(path, self.root)
                word = '-I' + (path if path.startswith(self.folder) else os.path.join(tree, inside))
            found.append(level if word.startswith('-O') else word)
        return found

    def compile(self, unit, tree, output, level=None):
        """Compiles the unit in a copy.  Returns None, or the output of a compiler that fails."""
        flags = self.flags(self.entry(unit), tree, level or self.level)
        ended = run([*flags, *ERRORS, '-o', output, '-c', unit.source], tree, 300)
        return None if ended.status == 0 else ended.output

    def plugin(self, compiler, flags, source, tree, output):
        """Compiles a plug-in in a copy."""
        return run([compiler, '-std=c11', *flags, '-w', '-shared', '-fPIC', '-I.', '-Iimpl/include',
                    '-I' + os.path.join(self.folder, 'impl/include'), source, os.path.join(self.folder, LIBRARY), '-lm',
                    '-o', output], tree, CPU)

    def link_with(self, unit, output_object, output):
        """Links the program with this object in place of the unit's."""
        self.link_replaced({self.entry(unit)['output']: output_object}, output)

    def link_replaced(self, objects, output, flags=()):
        """Links the program with other objects: {object of the build: the one in its place}."""
        words = []
        for word in self.link:
            words += [objects.get(name, name) for name in self.objects] if word == LIBRARY else [word]
        words[words.index('-o') + 1] = output
        ended = run(words + list(flags), self.folder, 120)
        if ended.status != 0:
            raise SystemExit(f'the program cannot be linked:\n{ended.output}')

    def verify(self, program, unit, kernel, depth, cpu):
        """Runs the suite on one kernel."""
        return run([program, 'verify', depth, '--backend', unit.backend, '--kernel', kernel, '--jobs', '1', '--vectors',
                    self.golden], os.path.dirname(program), cpu)
