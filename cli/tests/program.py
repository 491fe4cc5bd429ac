"""A program that answers prompts: right, or with one mistake.

    program.py [step|f64|bf16|scale] [MISTAKE[:NUMBER]]

It offers every kernel. `step` rounds each operation to f32, `f64` rounds results alone; `bf16` rounds each operation to
bf16, and `scale` the factor of x, which are mistakes, too. The mistake is made in the answer
to prompt NUMBER (default: 3; or `all`), in the hello, or at the end.
"""
import json
import math
import os
import struct
import sys
import time
from array import array

WAYS = ('step', 'f64', 'bf16', 'scale')
WAY = next((word for word in sys.argv[1:] if word in WAYS), 'step')
MISTAKE = next((word for word in sys.argv[1:] if word not in WAYS), '').split(':')
CODES = {'F32': 'f', 'F64': 'd', 'I64': 'q', 'I32': 'i', 'F16': 'H', 'BF16': 'H'}


def f32(value):
    return array('f', [value])[0]


def bf16(value):
    return value if math.isinf(f32(value)) else widen(narrow(f32(value), 'BF16'), 'BF16')


def rounded(value):
    return value if WAY == 'f64' else bf16(value) if WAY == 'bf16' else f32(value)


def summed(total, value):
    """Returns a partial sum, which `bf16` rounds to f32."""
    return total + value if WAY == 'f64' else f32(total + value)


def narrow(value, dtype):
    """Returns the bits of an f32 in a 16-bit type; ties to even."""
    if dtype == 'F16':
        try:
            return struct.unpack('<H', struct.pack('<e', value))[0]
        except OverflowError:
            return 0xfc00 if value < 0 else 0x7c00
    bits = struct.unpack('<I', struct.pack('<f', value))[0]
    return 0x7fc0 if value != value else (bits + 0x7fff + (bits >> 16 & 1)) >> 16


def widen(bits, dtype):
    if dtype == 'F16':
        return struct.unpack('<e', struct.pack('<H', bits))[0]
    return struct.unpack('<f', struct.pack('<I', bits << 16))[0]


# ---- Messages ----

def read(n):
    data = sys.stdin.buffer.read(n)
    if len(data) < n:
        raise EOFError
    return data


class Tensor:
    def __init__(self, entry, data):
        self.dtype, self.shape = entry['dtype'], entry['shape']
        self.raw = array(CODES[self.dtype])
        self.raw.frombytes(data)
        self.values = [widen(v, self.dtype) for v in self.raw] if 'H' == self.raw.typecode else self.raw

    def __getitem__(self, i):
        return self.values[i]


def read_message():
    header = json.loads(read(struct.unpack('<Q', read(8))[0]))
    metadata = header.pop('__metadata__')
    data = read(max((e['data_offsets'][1] for e in header.values()), default=0))
    return metadata, {n: Tensor(e, data[slice(*e['data_offsets'])]) for n, e in header.items()}


def encode(metadata, outputs, shapes):
    header, parts, at = {'__metadata__': metadata}, [], 0
    for name, values in outputs.items():
        dtype = shapes[name]['dtype']
        values = array('f', values) if isinstance(values, list) else values
        if CODES[dtype] == 'H' and values.typecode == 'f':
            values = array('H', [narrow(v, dtype) for v in values])
        parts.append(values.tobytes())
        header[name] = {'dtype': dtype, 'shape': shapes[name]['shape'],
                        'data_offsets': [at, at + len(parts[-1])]}
        at += len(parts[-1])
    return header, b''.join(parts)


def write(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    sys.stdout.buffer.write(struct.pack('<Q', len(text)) + text + data)
    sys.stdout.buffer.flush()


# ---- Kernels ----

def rotate(row, cos, sin, pairs, adjacent):
    out = row[:]
    for i in range(pairs):
        a, b = (2 * i, 2 * i + 1) if adjacent else (i, i + pairs)
        out[a] = rounded(rounded(row[a] * cos[i]) - rounded(row[b] * sin[i]))
        out[b] = rounded(rounded(row[b] * cos[i]) + rounded(row[a] * sin[i]))
    return out


def rope(kernel, p, t):
    x, (tokens, heads, dim), pairs = t['x'], t['x'].shape, t['cos'].shape[1]
    out = array(x.raw.typecode, x.raw)  # copies keep their bits
    for row in range(tokens * heads):
        at = row // heads * pairs
        channels = list(x.values[row * dim:row * dim + dim])
        if kernel == 'rope_qk_norm':
            from_, n = (row // heads * heads * dim, heads * dim) if p['across_heads'] else (row * dim, dim)
            square = sum(float(v) * v for v in x.values[from_:from_ + n]) / n
            factor = rounded(1 / math.sqrt(rounded(square) + p['epsilon']))
            weight = t['weight'].values[row % heads * dim:][:dim]
            channels = [rounded(rounded(v * factor) * rounded(w + p['weight_offset']))
                        for v, w in zip(channels, weight)]
        offset = p.get('rotary_offset', 0)
        turned = channels[:offset] + rotate(
            channels[offset:], t['cos'][at:at + pairs], t['sin'][at:at + pairs], pairs,
            kernel == 'rope_interleaved')
        for k in range(dim if kernel == 'rope_qk_norm' else 2 * pairs):
            value = f32(turned[k])
            out[row * dim + k] = value if out.typecode == 'f' else narrow(value, x.dtype)
    return {'out': out}


def angles(t, numerics):
    """Yields for each token a list of angles."""
    positions, inv_freq = t['positions'], t['inv_freq']
    tokens, in_f32 = positions.shape[-1], f32 if numerics != 'exact' else float
    axis = t['axis'] if 'axis' in t else [0] * len(inv_freq.values)
    for i in range(tokens):
        yield [in_f32(in_f32(positions[axis[k] * tokens + i]) * w) for k, w in enumerate(inv_freq.values)]


def scaled(value, scale, numerics):
    return f32(value * scale) if numerics == 'exact' else f32(f32(value) * f32(scale))


def rope_table(kernel, p, t, numerics):
    if p['xpos_scale_base']:
        return None
    m, all_angles = p['attention_factor'], [a for row in angles(t, numerics) for a in row]
    return {'cos': [scaled(math.cos(a), m, numerics) for a in all_angles],
            'sin': [scaled(math.sin(a), m, numerics) for a in all_angles]}


def added(p, t, terms):
    if 'x' not in t:
        return {'out': terms}
    scale = bf16(p['x_scale']) if WAY == 'scale' else p['x_scale']
    return {'out': [rounded(rounded(x * scale) + v) for x, v in zip(t['x'].values, terms)]}


def sinusoidal(kernel, p, t, numerics):
    dim, out = p['dim'], []
    for row in angles(t, numerics):
        sines = [scaled(math.sin(a), p['scale'], numerics) for a in row]
        cosines = [scaled(math.cos(a), p['scale'], numerics) for a in row]
        half = dim // 2
        if p['layout'] == 'interleaved':
            out += [v for pair in zip(sines, cosines) for v in pair][:dim]
        else:
            first, second = (sines, cosines) if p['layout'] == 'sin_cos' else (cosines, sines)
            out += first[:half] + second[:half] + [0.0] * (dim % 2)
    return added(p, t, out)


def learned_add(kernel, p, t):
    dim = p['dim']
    return added(p, t, [v for r in t['positions'].values for v in t['table'][r * dim:r * dim + dim]])


def learned_grad(kernel, p, t):
    dim = p['dim']
    out = list(t['init'].raw) if 'init' in t else [0.0] * (p['rows'] * dim)
    for token, row in enumerate(t['positions'].values):
        for k in range(dim):
            out[row * dim + k] = summed(out[row * dim + k], t['x'][token * dim + k])
    return {'out': out}


def scores(p, term):
    return [term(b, h, q, k) for b in range(p['batch']) for h in range(p['heads'])
            for q in range(p['queries']) for k in range(p['keys'])]


def alibi(kernel, p, t):
    slopes = t['slopes']
    width = 0 if len(slopes.shape) == 1 else p['heads']

    def term(b, h, q, k):
        q += p['query_offset']
        return -math.inf if p['causal'] and k > q else rounded(slopes[b * width + h] * -abs(q - k))
    return added(p, t, scores(p, term))


def bucket(distance, p):
    n, base = p['num_buckets'], 0
    if p['bidirectional']:
        n //= 2
        base = n if distance < 0 else 0
    distance = abs(distance) if p['bidirectional'] else max(distance, 0)
    if distance < n // 2:
        return base + distance
    step = math.log(distance / (n // 2)) / math.log(p['max_distance'] / (n // 2)) * (n - n // 2)
    return base + min(n // 2 + int(f32(step)), n - 1)


def t5_bias(kernel, p, t):
    return added(p, t, scores(p, lambda b, h, q, k: t['table'][
        bucket(q + p['query_offset'] - k, p) * p['heads'] + h]))


def distance_bias(kernel, p, t):
    n = t['values'].shape[1]
    return added(p, t, scores(p, lambda b, h, q, k: t['values'][
        h * n + q + p['query_offset'] - k - p['first']]))


def window_bias(kernel, p, t):
    return added(p, t, scores(p, lambda b, h, q, k: t['table'][
        t['index'][q * p['keys'] + k] * p['heads'] + h]))


def relative_bias(kernel, p, t):
    def term(b, h, q, k):
        column, head, total = t['index'][q - k + p['keys'] - 1], b * p['heads'] + h, None
        for name, row, rows in ('c2p', q, p['queries']), ('p2c', k, p['keys']):
            if name in t:
                value = rounded(p['scale'] * t[name][(head * rows + row) * t[name].shape[3] + column])
                total = value if total is None else rounded(total + value)
        return total
    return added(p, t, scores(p, term))


def relative_sum(kernel, p, t):
    columns = json.loads(t['outputs'])['out']['shape'][3]
    out = [0.0] * (p['batch'] * p['heads'] * p['queries'] * columns)
    for row in range(len(out) // columns if columns else 0):
        for k in range(p['keys']):
            column = t['index'][row % p['queries'] - k + p['keys'] - 1]
            out[row * columns + column] = summed(out[row * columns + column], t['x'][row * p['keys'] + k])
    return {'out': out}


KERNELS = {'sinusoidal': sinusoidal, 'sinusoidal_add': sinusoidal, 'learned_add': learned_add,
           'learned_grad': learned_grad, 'rope_table': rope_table, 'rope_half': rope,
           'rope_interleaved': rope, 'rope_qk_norm': rope, 'alibi': alibi, 'alibi_add': alibi,
           't5_bias': t5_bias, 't5_bias_add': t5_bias, 'distance_bias': distance_bias,
           'distance_bias_add': distance_bias, 'window_bias': window_bias,
           'window_bias_add': window_bias, 'relative_bias': relative_bias,
           'relative_bias_add': relative_bias, 'relative_sum': relative_sum}


def answer(metadata, tensors):
    kernel, parameters = metadata['kernel'], json.loads(metadata['parameters'])
    extra = (metadata['numerics'],) if metadata['numerics'] != 'given' else ()
    if kernel == 'relative_sum':
        tensors['outputs'] = metadata['outputs']
    return KERNELS[kernel](kernel, parameters, tensors, *extra)


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


def with_metadata(**members):
    def change(header, data):
        header['__metadata__'].update(members)
        return header, data
    return change


def alone(**members):
    return lambda header, data: ({'__metadata__': {**header['__metadata__'], **members}}, b'')


def to_f64(header, data):
    values = array('d', array('f', data))
    header['out'].update(dtype='F64', data_offsets=[0, 8 * len(values)])
    return header, values.tobytes()


def to_nan(header, data):
    return header, array('f', [math.nan] * (len(data) // 4)).tobytes()


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
    'gap': added_tensor(4, bytes(8)), 'extra': added_tensor(0, bytes(4)),
    'beyond': added_tensor(4, b''),
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
