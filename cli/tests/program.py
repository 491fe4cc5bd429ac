"""A program that answers prompts: right, or with one mistake.

    program.py [step|f64|bf16|scale] [MISTAKE[:NUMBER]]

It offers every kernel, by the functions of python/tests/references.py. `step` computes in f32, `f64` in f64; `bf16`
rounds results to bf16, and `scale` the factor of x, which are mistakes, too. The mistake is made in the answer to
prompt NUMBER (default: 3; or `all`), in the hello, or at the end.
"""
import inspect
import json
import math
import os
import runpy
import struct
import sys
import time
from pathlib import Path

import numpy as np

WAYS = ('step', 'f64', 'bf16', 'scale')
WAY = next((word for word in sys.argv[1:] if word in WAYS), 'step')
MISTAKE = next((word for word in sys.argv[1:] if word not in WAYS), '').split(':')
PYTHON = Path(__file__).resolve().parents[2] / 'python'
FUNCTIONS = runpy.run_path(str(PYTHON / 'tests' / 'references.py'))['FUNCTIONS']
KERNELS = runpy.run_path(str(PYTHON / 'posenc' / 'checking' / 'kernels.py'))['KERNELS']
STORED = {'F32': '<f4', 'F64': '<f8', 'I64': '<i8', 'I32': '<i4', 'F16': '<f2', 'BF16': '<u2'}


def narrow(values, dtype):
    """Returns numbers as they are stored; ties to even."""
    if dtype != 'BF16':
        return values.astype(STORED[dtype])
    bits = values.astype('f4').view('u4')
    return np.where(np.isnan(values), 0x7fc0, (bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype('u2')


def widen(stored, dtype):
    """Returns stored elements as numbers."""
    if dtype == 'BF16':
        return (stored.astype('u4') << 16).view('f4')
    return stored.astype('f4') if dtype == 'F16' else stored


def bf16(values):
    return widen(narrow(np.asarray(values), 'BF16'), 'BF16')


# ---- Messages ----

def read(n):
    data = sys.stdin.buffer.read(n)
    if len(data) < n:
        raise EOFError
    return data


def read_message():
    """Returns the metadata, and of each tensor its dtype and its elements."""
    header = json.loads(read(struct.unpack('<Q', read(8))[0]))
    metadata = header.pop('__metadata__')
    data = read(max((e['data_offsets'][1] for e in header.values()), default=0))
    return metadata, {n: (e['dtype'], np.frombuffer(data[slice(*e['data_offsets'])], STORED[e['dtype']])
                          .reshape(e['shape'])) for n, e in header.items()}


def encode(metadata, outputs, shapes):
    header, parts, at = {'__metadata__': metadata}, [], 0
    for name, stored in outputs.items():
        parts.append(stored.tobytes())
        header[name] = {**shapes[name], 'data_offsets': [at, at + len(parts[-1])]}
        at += len(parts[-1])
    return header, b''.join(parts)


def write(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    sys.stdout.buffer.write(struct.pack('<Q', len(text)) + text + data)
    sys.stdout.buffer.flush()


# ---- Kernels ----

def call(kernel, values, parameters):
    """Calls the function of a kernel. Arrays that some problems lack are passed by name, as parameters are."""
    arrays, function = KERNELS[kernel].arrays, FUNCTIONS[kernel]
    names = inspect.signature(function).parameters
    words = {**parameters, **{name: array for name, array in values.items() if name not in arrays}}
    with np.errstate(all='ignore'):
        result = function(*(values[name] for name in arrays),
                          **{name: word for name, word in words.items() if name in names or 'parameters' in names})
    return result if isinstance(result, tuple) else (result,)


def answer(metadata, tensors):
    """Returns the stored outputs; None for a call that is declined."""
    outputs, parameters = json.loads(metadata['outputs']), json.loads(metadata['parameters'])
    if parameters.get('xpos_scale_base'):
        return None
    if WAY == 'scale' and 'x_scale' in parameters:
        parameters['x_scale'] = float(bf16([parameters['x_scale']])[0])
    values = {name: widen(stored, dtype) for name, (dtype, stored) in tensors.items()}
    if WAY == 'f64':
        values.update((name, value.astype('f8')) for name, value in values.items()
                      if value.dtype == 'f4' and name != 'inv_freq')
    parameters['shape'] = tuple(next(iter(outputs.values()))['shape'])
    results = {}
    for (name, form), value in zip(outputs.items(), call(metadata['kernel'], values, parameters)):
        stored = narrow(bf16(value) if WAY == 'bf16' else value, form['dtype'])
        if 'x' in values and (tensors['x'][0], value.shape) == (form['dtype'], values['x'].shape):  # copies keep bits
            bits = f'u{stored.itemsize}'
            both = np.isnan(value) & np.isnan(values['x'])
            stored = np.where(both, tensors['x'][1].view(bits), stored.view(bits))
        results[name] = stored
    return results


HELLO = {'hello': '1', 'name': 'python', 'description': 'a test', 'kernels': ' '.join(KERNELS),
         'dtypes': 'f32 f16 bf16', 'numerics': 'exact hf_f32 torch_exp_f32'}
HELLOS = {'hello_kernel': {'kernels': 'rope_third'}, 'hello_dtype': {'dtypes': 'f64'},
          'hello_numerics': {'numerics': 'given'}, 'hello_name': {'name': 'My Engine'},
          'hello_long': {'name': 64 * 'a'}, 'hello_taken': {'name': 'scalar'}, 'hello_version': {'hello': '1.0'},
          'hello_fused': {'fused': 'yes'}, 'hello_new_member': {'kernals': 'none', 'fused': '0'},
          'hello_again': {'name': f'python{os.getpid()}'},
          'hello_escape': {'description': '\033[31mred'}, 'hello_number': {'max_position': '-1'},
          'hello_nothing': {'kernels': ''}, 'hello_near': {'max_position': '100'}, 'hello_tensor': {}}


# ---- Mistakes ----

def out(shape=None, **other):
    """Returns a change of the header's entry for out."""
    def change(header, data):
        entry = header['out']
        entry.update(other, **({'shape': shape(entry['shape'])} if shape else {}))
        return header, data
    return change


def renamed(header, data):
    header['output'] = header.pop('out')
    return header, data


def added_tensor(distance, extra):
    def change(header, data):
        at = len(data) + distance
        header['second'] = {'dtype': 'I32', 'shape': [1], 'data_offsets': [at, at + 4]}
        return header, data + extra
    return change


def covered(header, data):
    """Moves out by 8 bytes, and adds a tensor of its first 8: a gap as large as the overlap."""
    header['out']['data_offsets'] = [8, 8 + len(data)]
    header['second'] = {'dtype': 'I32', 'shape': [2], 'data_offsets': [8, 16]}
    return header, bytes(8) + data


def with_metadata(**members):
    def change(header, data):
        header['__metadata__'].update(members)
        return header, data
    return change


def alone(**members):
    return lambda header, data: ({'__metadata__': {**header['__metadata__'], **members}}, b'')


def to_f64(header, data):
    values = np.frombuffer(data, 'f4').astype('f8')
    header['out'].update(dtype='F64', data_offsets=[0, values.nbytes])
    return header, values.tobytes()


def to_nan(header, data):
    return header, np.full(len(data) // 4, math.nan, 'f4').tobytes()


def ended(how):
    def change(header, data):
        how()
    return change


def shifted(header, data):
    sys.stdout.buffer.write(b'\n')
    return header, data


def hold_output():
    """Ends this process; another one keeps its output open."""
    if os.fork():
        os._exit(4)
    time.sleep(1e6)


def cut_short(header, data):
    text = json.dumps(header).encode()
    sys.stdout.buffer.write(struct.pack('<Q', len(text)) + text + data[:len(data) // 2])
    sys.stdout.buffer.flush()
    sys.exit(0)


MISTAKES = {
    'nan': to_nan, 'dtype': to_f64, 'name': renamed, 'cut': cut_short,
    'shape': out(lambda shape: [math.prod(shape)]), 'type': out(dtype='F12'),
    'less': out(lambda shape: [1] + shape[1:-1] + [shape[-1] - 1]), 'rank': out(lambda s: [1] * 9 + s),
    'huge': out(lambda shape: [2**40, 2**40]), 'negative': out(lambda shape: [-1] + shape[1:]),
    'offsets': out(data_offsets=[0, 2**60]), 'backwards': out(data_offsets=[8, 0]),
    'texts': out(data_offsets='all'), 'overlap': added_tensor(-4, b''),
    'gap': added_tensor(4, bytes(8)), 'covered': covered, 'extra': added_tensor(0, bytes(4)),
    'beyond': added_tensor(0, b''),
    'number': with_metadata(prompt='2'), 'no_number': alone(prompt=''), 'no_text': with_metadata(a=1),
    'error': alone(error='no GPU \033[31m here'), 'nothing': alone(), 'error_end': alone(error='no GPU'),
    'error_declined': alone(error='no GPU', declined='no GPU'), 'no_error': alone(error=''),
    'nan_end': to_nan, 'declined_too': with_metadata(declined='xpos'),
    'no_metadata': lambda header, data: ({'out': header['out']}, data), 'entry': lambda header, data: ({'out': 1}, b''),
    'json': lambda header, data: (b'{"out": ', b''), 'list': lambda header, data: (b'[1, 2]', b''),
    'utf8': lambda header, data: (b'{"\xff": 1}', b''), 'deep': lambda header, data: (b'[' * 9999, b''),
    'twice_member': lambda header, data: (b'{"out": 1, "out": 2}', b''),
    'newline': shifted, 'orphan': ended(hold_output),
    'exit': ended(lambda: sys.exit(3)), 'crash': ended(lambda: os.kill(os.getpid(), 11)),
    'silent': ended(lambda: time.sleep(1e6)), 'close': ended(lambda: (os.close(1), time.sleep(1e6))),
}


def main():
    at = MISTAKE[1] if len(MISTAKE) > 1 else '3'
    name = MISTAKE[0]
    for n in range(10**9):
        try:
            metadata, tensors = read_message()
        except EOFError:
            if name == 'late':
                sys.stdout.buffer.write(b'good bye')
            sys.stdout.flush()
            sys.exit(3 if name == 'late_exit' else 0)
        if 'hello' in metadata:
            if name.startswith('hello_') and name not in HELLOS:
                MISTAKES[name[6:]]({}, b'')
            tensor = {'x': {'dtype': 'F32', 'shape': [0], 'data_offsets': [0, 0]}} if name == 'hello_tensor' else {}
            write({**tensor, '__metadata__': {**HELLO, **HELLOS.get(name, {})}}, b'')
            continue
        outputs = answer(metadata, tensors)
        reply = {'prompt': metadata['prompt']}
        is_wrong = at in (str(n), 'all')
        if outputs is None or (is_wrong and name == 'declines'):
            outputs, reply['declined'] = None, 'xpos'
        header, data = encode(reply, outputs or {}, json.loads(metadata['outputs']))
        if is_wrong and name == 'length':
            sys.stdout.buffer.write(struct.pack('<Q', 2**60))
        elif is_wrong and name in MISTAKES:
            header, data = MISTAKES[name](header, data)
        elif is_wrong and name == 'twice':
            write(header, data)
        write(header, data)
        if is_wrong and name.endswith('_end'):
            read_message()
            sys.exit(6)


main()
