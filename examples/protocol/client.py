"""A program that answers prompts (docs/protocol.md), in Python without other packages:

    posenc verify --exec 'python3 examples/protocol/client.py'
"""
import json
import math
import struct
import sys
from array import array

TYPES = {'F32': 'f', 'F64': 'd', 'I64': 'q', 'I32': 'i'}
HELLO = {'hello': '1', 'name': 'python_example', 'description': 'plain Python', 'dtypes': 'f32',
         'kernels': 'rope_half rope_interleaved rope_table alibi',
         'numerics': 'exact hf_f32 torch_exp_f32'}


def read_message():
    """Returns the metadata, and the tensors by name: each an array and its shape. Returns None at the end."""
    start = sys.stdin.buffer.read(8)
    if not start:
        return None
    header = json.loads(sys.stdin.buffer.read(struct.unpack('<Q', start)[0]))
    metadata = header.pop('__metadata__', {})
    data = sys.stdin.buffer.read(max((entry['data_offsets'][1] for entry in header.values()), default=0))
    tensors = {}
    for name, entry in header.items():
        begin, end = entry['data_offsets']
        tensors[name] = array(TYPES[entry['dtype']], data[begin:end]), entry['shape']
    return metadata, tensors


def write_message(metadata, outputs, forms):
    """Writes outputs, which are arrays of f32. A form is {"dtype": "F32", "shape": [7, 4, 128]}."""
    header, begin = {'__metadata__': metadata}, 0
    for name, values in outputs.items():
        end = begin + 4 * len(values)
        header[name] = {'dtype': 'F32', 'shape': forms[name]['shape'], 'data_offsets': [begin, end]}
        begin = end
    text = json.dumps(header).encode()
    sys.stdout.buffer.write(struct.pack('<Q', len(text)) + text)
    for values in outputs.values():
        sys.stdout.buffer.write(values.tobytes())
    sys.stdout.buffer.flush()


def rotate(tensors, interleaved):
    """Rotates x [tokens, heads, dim] by cos and sin [tokens, pairs]."""
    x, (tokens, heads, dim) = tensors['x']
    (cos, (_, pairs)), (sin, _) = tensors['cos'], tensors['sin']
    out = array('f', x)  # channels past the pairs stay as they are
    for row in range(tokens * heads):
        for i in range(pairs):
            c, s = cos[row // heads * pairs + i], sin[row // heads * pairs + i]
            a = row * dim + (2 * i if interleaved else i)
            b = a + (1 if interleaved else pairs)
            out[a], out[b] = x[a] * c - x[b] * s, x[b] * c + x[a] * s
    return {'out': out}


def make_table(parameters, tensors, exact):
    """Returns cosines and sines [tokens, pairs] in f64 arithmetic or in f32; None for xPos, which is declined."""
    (positions, shape), (inv_freq, _) = tensors['positions'], tensors['inv_freq']
    axis = tensors['axis'][0] if 'axis' in tensors else [0] * len(inv_freq)
    tokens, factor = shape[-1], parameters['attention_factor']
    if parameters['xpos_scale_base']:
        return None
    cos, sin = array('f'), array('f')
    rounded = (lambda value: value) if exact else (lambda value: array('f', [value])[0])
    for t in range(tokens):
        for pair, omega in enumerate(inv_freq):
            angle = rounded(rounded(positions[axis[pair] * tokens + t]) * omega)
            cos.append(rounded(math.cos(angle)) * rounded(factor))
            sin.append(rounded(math.sin(angle)) * rounded(factor))
    return {'cos': cos, 'sin': sin}


def make_alibi(parameters, tensors):
    """Returns biases [batch, heads, queries, keys]."""
    out, slopes = array('f'), tensors['slopes'][0]
    first, causal = parameters['query_offset'], parameters['causal']
    for head in range(parameters['batch'] * parameters['heads']):
        slope = slopes[head % len(slopes)]
        for query in range(first, first + parameters['queries']):
            out.extend(-math.inf if causal and key > query else -slope * abs(query - key)
                       for key in range(parameters['keys']))
    return {'out': out}


def answer(metadata, tensors):
    kernel, parameters = metadata['kernel'], json.loads(metadata['parameters'])
    if kernel == 'rope_table':
        return make_table(parameters, tensors, metadata['numerics'] == 'exact')
    if kernel == 'alibi':
        return make_alibi(parameters, tensors)
    return rotate(tensors, kernel == 'rope_interleaved')


while message := read_message():
    metadata, tensors = message
    if 'hello' in metadata:
        write_message(HELLO, {}, {})
        continue
    outputs = answer(metadata, tensors)
    reply = {'prompt': metadata['prompt']}
    if outputs is None:
        reply['declined'] = 'this kind of call'
    write_message(reply, outputs or {}, json.loads(metadata['outputs']))
