"""A program that answers the prompts of posenc verify --exec (docs/protocol.md): correctly, or with one mistake.

    program.py [step|f64|bf16|scale] [MISTAKE[:NUMBER]]

    program.py f64 nan:5    computes in f64, and answers prompt 5 with NaNs

It offers every kernel, computed by the functions of python/tests/references.py: with `step` in f32, with `f64` in f64.
`bf16` rounds all results to bf16, and `scale` rounds the factor of x, which are mistakes, too. A MISTAKE of MISTAKES is
made in the answer to prompt NUMBER (default: 3; or `all`), one of HELLOS in the hello; main() has the others.
"""
import inspect
import itertools
import json
import math
import os
import runpy
import struct
import sys
import time
from pathlib import Path

import numpy as np

PYTHON = Path(__file__).resolve().parents[2] / 'python'
FUNCTIONS = runpy.run_path(str(PYTHON / 'tests' / 'references.py'))['FUNCTIONS']
KERNELS = runpy.run_path(str(PYTHON / 'posenc' / 'checking' / 'kernels.py'))['KERNELS']
NUMPY_TYPES = {'F32': '<f4', 'F64': '<f8', 'I64': '<i8', 'I32': '<i4', 'F16': '<f2', 'BF16': '<u2'}


# ---- Stored numbers ----

def narrow(values, dtype):
    """Returns numbers as they are stored; ties to even."""
    if dtype != 'BF16':
        return values.astype(NUMPY_TYPES[dtype])
    bits = values.astype('f4').view('u4')
    return np.where(np.isnan(values), 0x7fc0, (bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype('u2')


def widen(stored, dtype):
    """Returns stored elements as numbers."""
    if dtype == 'BF16':
        return (stored.astype('u4') << 16).view('f4')
    return stored.astype('f4') if dtype == 'F16' else stored


def round_to_bf16(values):
    return widen(narrow(np.asarray(values), 'BF16'), 'BF16')


# ---- Messages: 8 bytes with the length of the header, the header in JSON, the data of the tensors ----

def read_bytes(count):
    data = sys.stdin.buffer.read(count)
    if len(data) < count:
        raise EOFError
    return data


def read_message():
    """Returns the metadata, and {name: (dtype, stored elements)} of the tensors."""
    header = json.loads(read_bytes(struct.unpack('<Q', read_bytes(8))[0]))
    metadata = header.pop('__metadata__')
    data = read_bytes(max((entry['data_offsets'][1] for entry in header.values()), default=0))
    tensors = {}
    for name, entry in header.items():
        begin, end = entry['data_offsets']
        elements = np.frombuffer(data[begin:end], NUMPY_TYPES[entry['dtype']])
        tensors[name] = entry['dtype'], elements.reshape(entry['shape'])
    return metadata, tensors


def encode(metadata, outputs, forms):
    """Returns the header and the data of an answer. `forms` has the dtype and the shape of each output."""
    header, data = {'__metadata__': metadata}, b''
    for name, stored in outputs.items():
        begin = len(data)
        data += stored.tobytes()
        header[name] = {**forms[name], 'data_offsets': [begin, len(data)]}
    return header, data


def write_message(header, data):
    """Writes a message. A header in bytes is no valid JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    sys.stdout.buffer.write(struct.pack('<Q', len(text)) + text + data)
    sys.stdout.buffer.flush()


# ---- Kernels ----

def call_kernel(kernel, values, parameters):
    """Returns the outputs of a kernel. Arrays that some problems lack are passed by name, as parameters are."""
    arrays, function = KERNELS[kernel].arrays, FUNCTIONS[kernel]
    accepted = inspect.signature(function).parameters
    optional = {name: array for name, array in values.items() if name not in arrays}
    keywords = {name: value for name, value in {**parameters, **optional}.items()
                if name in accepted or 'parameters' in accepted}
    with np.errstate(all='ignore'):
        result = function(*(values[name] for name in arrays), **keywords)
    return result if isinstance(result, tuple) else (result,)


def keep_nan_bits(value, stored, x, stored_x):
    """Returns the stored result with the bits of x where both are NaN, since copies keep bits."""
    bits = f'u{stored.itemsize}'
    return np.where(np.isnan(value) & np.isnan(x), stored_x.view(bits), stored.view(bits))


def compute_outputs(arithmetic, metadata, tensors):
    """Returns {name: stored elements} of the outputs; None for a call that is declined."""
    forms, parameters = json.loads(metadata['outputs']), json.loads(metadata['parameters'])
    if parameters.get('xpos_scale_base'):
        return None
    if arithmetic == 'scale' and 'x_scale' in parameters:
        parameters['x_scale'] = float(round_to_bf16([parameters['x_scale']])[0])
    values = {name: widen(stored, dtype) for name, (dtype, stored) in tensors.items()}
    if arithmetic == 'f64':
        values.update((name, value.astype('f8')) for name, value in values.items()
                      if value.dtype == 'f4' and name != 'inv_freq')
    parameters['shape'] = tuple(next(iter(forms.values()))['shape'])
    outputs = {}
    for (name, form), value in zip(forms.items(), call_kernel(metadata['kernel'], values, parameters)):
        stored = narrow(round_to_bf16(value) if arithmetic == 'bf16' else value, form['dtype'])
        if 'x' in values and (tensors['x'][0], value.shape) == (form['dtype'], values['x'].shape):
            stored = keep_nan_bits(value, stored, values['x'], tensors['x'][1])
        outputs[name] = stored
    return outputs


# ---- Mistakes in an answer: functions from a right header and data to wrong ones ----

def change_entry(shape=None, **members):
    """Returns the mistake of other members in the header's entry for out. `shape` is a function of the right one."""
    def change(header, data):
        if shape:
            header['out']['shape'] = shape(header['out']['shape'])
        header['out'].update(members)
        return header, data
    return change


def rename_output(header, data):
    header['output'] = header.pop('out')
    return header, data


def add_tensor(distance, data_of_second):
    """Returns the mistake of a second tensor of four bytes, so many bytes behind the end of the first."""
    def change(header, data):
        begin = len(data) + distance
        header['second'] = {'dtype': 'I32', 'shape': [1], 'data_offsets': [begin, begin + 4]}
        return header, data + data_of_second
    return change


def cover_output(header, data):
    """Moves out by 8 bytes, and adds a tensor of its first 8: a gap as large as the overlap."""
    header['out']['data_offsets'] = [8, 8 + len(data)]
    header['second'] = {'dtype': 'I32', 'shape': [2], 'data_offsets': [8, 16]}
    return header, bytes(8) + data


def add_metadata(**members):
    def change(header, data):
        header['__metadata__'].update(members)
        return header, data
    return change


def drop_tensors(**members):
    """Returns the mistake of metadata alone, with further members."""
    return lambda header, data: ({'__metadata__': {**header['__metadata__'], **members}}, b'')


def replace_message(header):
    return lambda right_header, data: (header, b'')


def convert_to_f64(header, data):
    values = np.frombuffer(data, 'f4').astype('f8')
    header['out'].update(dtype='F64', data_offsets=[0, values.nbytes])
    return header, values.tobytes()


def fill_with_nan(header, data):
    return header, np.full(len(data) // 4, math.nan, 'f4').tobytes()


def run_before(action):
    """Returns the mistake of an action before the right answer."""
    def change(header, data):
        action(header, data)
        return header, data
    return change


def write_before(text):
    return run_before(lambda header, data: sys.stdout.buffer.write(text))


def run_instead(action):
    """Returns the mistake of an action in place of the answer."""
    return lambda header, data: action()


def sleep_forever():
    time.sleep(1e6)


def exit_with_open_output():
    """Ends this process; another one keeps its output open."""
    if os.fork():
        os._exit(4)
    sleep_forever()


def cut_short(header, data):
    write_message(header, data[:len(data) // 2])
    sys.exit(0)


MISTAKES = {
    # Values, and the form of the output.
    'nan': fill_with_nan, 'dtype': convert_to_f64, 'name': rename_output,
    'shape': change_entry(shape=lambda right: [math.prod(right)]),
    'less': change_entry(shape=lambda right: [1] + right[1:-1] + [right[-1] - 1]),
    'rank': change_entry(shape=lambda right: [1] * 9 + right),
    'huge': change_entry(shape=lambda right: [2**40, 2**40]),
    'negative': change_entry(shape=lambda right: [-1] + right[1:]),
    'type': change_entry(dtype='F12'),
    # Places of tensors in the data.
    'offsets': change_entry(data_offsets=[0, 2**60]), 'backwards': change_entry(data_offsets=[8, 0]),
    'texts': change_entry(data_offsets='all'), 'covered': cover_output,
    'overlap': add_tensor(-4, b''), 'gap': add_tensor(4, bytes(8)), 'extra': add_tensor(0, bytes(4)),
    'beyond': add_tensor(0, b''),
    # Metadata.
    'number': add_metadata(prompt='2'), 'no_number': drop_tensors(prompt=''), 'no_text': add_metadata(a=1),
    'nothing': drop_tensors(), 'declined_too': add_metadata(declined='xpos'),
    'error': drop_tensors(error='no GPU \033[31m here'), 'no_error': drop_tensors(error=''),
    'error_declined': drop_tensors(error='no GPU', declined='no GPU'),
    # Headers.
    'no_metadata': lambda header, data: ({'out': header['out']}, data), 'entry': replace_message({'out': 1}),
    'json': replace_message(b'{"out": '), 'list': replace_message(b'[1, 2]'), 'utf8': replace_message(b'{"\xff": 1}'),
    'deep': replace_message(b'[' * 9999), 'twice_member': replace_message(b'{"out": 1, "out": 2}'),
    # The stream, and the process. After `_end`, the process exits at the next prompt.
    'newline': write_before(b'\n'), 'length': write_before(struct.pack('<Q', 2**60)),
    'twice': run_before(write_message), 'cut': cut_short, 'exit': run_instead(lambda: sys.exit(3)),
    'crash': run_instead(lambda: os.kill(os.getpid(), 11)), 'orphan': run_instead(exit_with_open_output),
    'silent': run_instead(sleep_forever), 'close': run_instead(lambda: (os.close(1), sleep_forever())),
    'nan_end': fill_with_nan, 'error_end': drop_tensors(error='no GPU'),
}

# ---- The hello: right metadata, and members of wrong ones ----

HELLO = {'hello': '1', 'name': 'python', 'description': 'a test', 'kernels': ' '.join(KERNELS),
         'dtypes': 'f32 f16 bf16', 'numerics': 'exact hf_f32 torch_exp_f32'}
HELLOS = {'hello_kernel': {'kernels': 'rope_third'}, 'hello_dtype': {'dtypes': 'f64'},
          'hello_numerics': {'numerics': 'given'}, 'hello_name': {'name': 'My Engine'},
          'hello_long': {'name': 64 * 'a'}, 'hello_taken': {'name': 'scalar'}, 'hello_version': {'hello': '1.0'},
          'hello_fused': {'fused': 'yes'}, 'hello_new_member': {'kernals': 'none', 'fused': '0'},
          'hello_again': {'name': f'python{os.getpid()}'},
          'hello_escape': {'description': '\033[31mred'}, 'hello_number': {'max_position': '-1'},
          'hello_nothing': {'kernels': ''}, 'hello_near': {'max_position': '100'}}


def write_hello(mistake):
    """Writes the hello. hello_exit, hello_crash and hello_silent end or stop this process instead, as in MISTAKES."""
    header = {'__metadata__': {**HELLO, **HELLOS.get(mistake, {})}}
    if mistake == 'hello_tensor':
        header['x'] = {'dtype': 'F32', 'shape': [0], 'data_offsets': [0, 0]}
    elif mistake.startswith('hello_') and mistake not in HELLOS:
        MISTAKES[mistake[len('hello_'):]](header, b'')
    write_message(header, b'')


def finish(mistake):
    """Ends this process after its last prompt."""
    if mistake == 'late':
        sys.stdout.buffer.write(b'good bye')
    sys.stdout.flush()
    sys.exit(3 if mistake == 'late_exit' else 0)


def main(arithmetic='step', mistake='', wrong_prompt='3'):
    """Answers messages: number 0 is the request of the hello, and prompts follow."""
    for number in itertools.count():
        try:
            metadata, tensors = read_message()
        except EOFError:
            finish(mistake)
        if 'hello' in metadata:
            write_hello(mistake)
            continue
        is_wrong = wrong_prompt in (str(number), 'all')
        outputs = compute_outputs(arithmetic, metadata, tensors)
        reply = {'prompt': metadata['prompt']}
        if outputs is None or (is_wrong and mistake == 'declines'):
            outputs, reply['declined'] = {}, 'xpos'
        header, data = encode(reply, outputs, json.loads(metadata['outputs']))
        if is_wrong and mistake in MISTAKES:
            header, data = MISTAKES[mistake](header, data)
        write_message(header, data)
        if is_wrong and mistake.endswith('_end'):
            read_message()
            sys.exit(6)


words = sys.argv[1:]
has_arithmetic = bool(words) and words[0] in ('step', 'f64', 'bf16', 'scale')
main(words.pop(0) if has_arithmetic else 'step', *(words[0].split(':') if words else ()))
