#!/usr/bin/env python3
"""Writes GGUF files of several architectures by the gguf package and compares posenc's reading of them with
llama.cpp's rules, worked out here in f32 as ggml does (ggml-org/ggml, src/ggml-cpu/ops.cpp).

    check_gguf.py POSENC    needs gguf and numpy (pip install gguf); without them: exit 77

Every architecture has a file with the keys that its converter writes.  `posenc table --problem 'rope_table profile=ggml_f32'`
must give the cosines and sines of ggml's own steps, at positions up to 131071, within 2 ulp of f32 at 1 (what
the two libraries' cosines differ by) where the angles are the same f32; and the calls that posenc makes of a file
must be those that are listed here.
"""
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

try:
    import gguf
    import numpy as np
except ImportError as missing:
    print(f'skipped: {missing.name} is missing (pip install gguf)')
    sys.exit(77)

F = np.float32
POSITIONS = [0, 1, 7, 511, 4096, 8191, 32767, 131071]


# ---- what ggml does ----

def corrections(n, context, base, fast, slow):
    def at(turns):
        return F(n) * np.log(F(context) / (F(turns) * F(2) * F(np.pi))) / (F(2) * np.log(F(base)))
    return max(F(0), np.floor(at(fast))), min(F(n - 1), np.ceil(at(slow)))


def angles(n, base, factor=1.0, yarn=None, factors=None, position=0):
    """The angle of each pair, in ggml's order of f32 steps."""
    step, scale = F(F(base) ** F(F(-2.0) / F(n))), F(F(1.0) / F(factor))
    theta, result = F(position), []
    low, high = corrections(n, *yarn) if yarn else (0, 0)
    for i in range(n // 2):
        plain = F(theta / (factors[i] if factors is not None else F(1)))
        angle = F(scale * plain)
        if yarn:
            kept = F(1) - min(F(1), max(F(0), F((F(i) - low) / max(F(0.001), high - low))))
            angle = F(angle * (F(1) - kept)) + F(plain * kept)
        result.append(F(angle))
        theta = F(theta * step)
    return np.array(result, F)


def magnitude(factor, log_mul=0.0):
    g = lambda m: 0.1 * m * np.log(factor) + 1.0
    return g(1.0) if log_mul == 0 else g(1.0) / g(log_mul)


def llama3(n, base, factor, low, high, context):
    """What the converter stores in rope_freqs.weight."""
    omega, out = 1.0 / base ** (np.arange(0, n, 2) / n), []
    for w in omega:
        length = 2 * np.pi / w
        if length < context / high:
            out.append(1.0)
        elif length > context / low:
            out.append(factor)
        else:
            t = (context / length - low) / (high - low)
            out.append(1.0 / ((1 - t) / factor + t))
    return np.array(out, F)


# ---- files ----

def write(path, arch, keys, tensors=()):
    w = gguf.GGUFWriter(path, arch)
    w.add_name(f'a {arch}')
    w.add_array('tokenizer.ggml.tokens', [f'token {i}' for i in range(2000)])
    for key, value in keys.items():
        key = key if key.startswith('general.') else f'{arch}.{key}'
        if isinstance(value, bool):
            w.add_bool(key, value)
        elif isinstance(value, int):
            w.add_uint32(key, value)
        elif isinstance(value, float):
            w.add_float32(key, value)
        elif isinstance(value, str):
            w.add_string(key, value)
        else:
            w.add_array(key, value)
    w.add_tensor('token_embd.weight', np.zeros((8, 32), F))
    for name, data in tensors:
        w.add_tensor(name, data)
    w.add_tensor('output.weight', np.zeros((8, 32), np.float16))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def sizes(heads, kv=None, head=None, width=None, layers=4, context=131072):
    keys = {'context_length': context, 'embedding_length': width or heads * (head or 64), 'block_count': layers,
            'feed_forward_length': 64, 'attention.head_count': heads}
    if kv:
        keys['attention.head_count_kv'] = kv
    if head:
        keys |= {'attention.key_length': head, 'attention.value_length': head}
    return keys


L3 = llama3(128, 500000.0, 8.0, 1.0, 4.0, 8192)
SHORT = np.linspace(1.0, 1.5, 48).astype(F)
LONG = np.linspace(1.0, 40.0, 48).astype(F)
YARN = {'rope.scaling.type': 'yarn', 'rope.scaling.factor': 4.0, 'rope.scaling.original_context_length': 32768}

# architecture, keys, tensors, what bench makes of it, {layers or None: (what angles() takes, attention, length)}
FILES = [
    ('llama', sizes(32, 8, width=4096) | {'rope.freq_base': 500000.0, 'rope.dimension_count': 128},
     [('rope_freqs.weight', L3)], 'rope_interleaved 32 + 8 heads of 128',
     {None: (dict(n=128, base=5e5, factors=L3), 1.0)}),
    ('llama', sizes(32, width=4096, context=4096), [], 'rope_interleaved 32 + 32 heads of 128', {None: (dict(n=128, base=1e4), 1.0)}),
    ('qwen2', sizes(28, 4, width=3584) | YARN | {'rope.freq_base': 1e6}, [], 'rope_half 28 + 4 heads of 128',
     {None: (dict(n=128, base=1e6, factor=4.0, yarn=(32768, 1e6, 32, 1)), magnitude(4.0))}),
    ('qwen3', sizes(16, 8, 128, 1024) | {'rope.freq_base': 1e6}, [], 'rope_half 16 + 8 heads of 128',
     {None: (dict(n=128, base=1e6), 1.0)}),
    ('gemma3', sizes(8, 4, 256, 2560, 34) | {'rope.freq_base': 1e6, 'rope.scaling.type': 'linear', 'rope.scaling.factor': 8.0,
                                             'attention.sliding_window': 1024}, [], 'rope_half 8 + 4 heads of 256',
     {'full_attention': (dict(n=256, base=1e6, factor=8.0), 1.0), 'sliding_attention': (dict(n=256, base=1e4), 1.0)}),
    ('gemma4', sizes(8, None, 512, 1536, 6) | {
        'attention.head_count_kv': [2, 2, 2, 2, 2, 1], 'attention.key_length_swa': 256, 'attention.sliding_window': 512,
        'attention.sliding_window_pattern': [True, True, True, True, True, False], 'rope.freq_base': 1e6,
        'rope.freq_base_swa': 1e4, 'rope.dimension_count': 512, 'rope.dimension_count_swa': 256},
     [('rope_freqs.weight', np.array([1.0] * 64 + [1e30] * 192, F))], 'rope_half full: decode, 1 token, 8 + 1 heads of 512',
     {'sliding_attention': (dict(n=256, base=1e4), 1.0)}),
    ('phi3', sizes(32, 32, width=3072) | {'rope.dimension_count': 96, 'rope.scaling.attn_factor': 1.19,
                                          'rope.scaling.original_context_length': 4096},
     [('rope_factors_long.weight', LONG), ('rope_factors_short.weight', SHORT)], 'rope_half 32 + 32 heads of 96',
     {None: (dict(n=96, base=1e4, factors=(SHORT, LONG, 4096)), 1.19)}),
    ('gptneox', sizes(64, width=6144, context=2048) | {'rope.dimension_count': 24}, [], 'rope_half 64 + 64 heads of 96, 24 rotated',
     {None: (dict(n=24, base=1e4), 1.0)}),
    ('qwen2vl', sizes(12, 2, width=1536) | {'rope.freq_base': 1e6, 'rope.dimension_sections': [16, 24, 24, 0]}, [],
     'rope_half 12 + 2 heads of 128', {None: (dict(n=128, base=1e6), 1.0)}),
    ('deepseek2', sizes(128, 1, 576, 7168, 61) | {
        'attention.key_length_mla': 192, 'attention.kv_lora_rank': 512, 'rope.dimension_count': 64, 'rope.scaling.type': 'yarn',
        'rope.scaling.factor': 40.0, 'rope.scaling.original_context_length': 4096, 'rope.scaling.yarn_log_multiplier': 0.1}, [],
     'rope_interleaved 128 + 1 heads of 64',
     {None: (dict(n=64, base=1e4, factor=40.0, yarn=(4096, 1e4, 32, 1)), magnitude(40.0, 1.0))}),
    ('mistral3', sizes(32, 8, 128, 4096) | {
        'rope.freq_base': 1e6, 'rope.scaling.type': 'yarn', 'rope.scaling.factor': 16.0, 'rope.scaling.yarn_beta_fast': 24.0,
        'rope.scaling.original_context_length': 16384, 'rope.scaling.yarn_log_multiplier': 1.0}, [],
     'rope_interleaved 32 + 8 heads of 128',
     {None: (dict(n=128, base=1e6, factor=16.0, yarn=(16384, 1e6, 24, 1)), magnitude(16.0, 1.0))}),
    ('falcon', sizes(71, 1, width=4544, context=2048), [], 'rope_half 71 + 1 heads of 64', {None: (dict(n=64, base=1e4), 1.0)}),
    ('olmo2', sizes(32, 32, width=4096) | YARN | {'rope.freq_base': 5e5, 'attention.sliding_window': 4096}, [],
     'rope_half 32 + 32 heads of 128',
     {'full_attention': (dict(n=128, base=5e5, factor=4.0, yarn=(32768, 5e5, 32, 1)), magnitude(4.0)),
      'sliding_attention': (dict(n=128, base=5e5), 1.0)}),
    ('bloom', sizes(32, width=4096, context=2048), [], 'alibi_add decode, 32 heads, 1 x 2048', {}),
    ('mpt', sizes(32, width=4096, context=2048) | {'attention.max_alibi_bias': 8.0}, [], 'alibi_add decode, 32 heads, 1 x 2048', {}),
    ('t5', sizes(12, head=64, width=768, context=512) | {'attention.relative_buckets_count': 32, 'decoder_block_count': 12}, [],
     't5_bias_add decode, 12 heads, 1 x 512', {}),
    ('gpt2', sizes(12, width=768, context=1024), [], 'learned_add decode, row 1023, width 768', {}),
]


# ---- what posenc makes of them ----

def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def table(posenc, path, layers, position):
    choice = ['--layer-type', layers] if layers else []
    got = run(posenc, 'table', '--problem', 'rope_table profile=ggml_f32', '--config', path, '--positions', str(position), '--out',
              'csv', *choice)
    if got.returncode:
        raise SystemExit(f'{path}: {got.stderr}')
    rows = [line.split(',') for line in got.stdout.splitlines() if line[:1].isdigit()]
    return np.array([float(x) for x in rows[0][1:]]), rows


def compare(posenc, path, layers, what, attention):
    worst = 0.0
    for position in POSITIONS:
        given = dict(what)
        if isinstance(given.get('factors'), tuple):
            short, long, context = given['factors']
            given['factors'] = long if position + 1 > context else short
        angle = angles(position=position, **given)
        got, rows = table(posenc, path, layers, position)
        cos, sin = np.cos(angle.astype(np.float64)) * attention, np.sin(angle.astype(np.float64)) * attention
        want = np.concatenate([cos, sin])
        if len(got) != len(want):
            raise SystemExit(f'{path}: {len(got)} numbers for {len(want)}: {rows[:3]}')
        worst = max(worst, np.max(np.abs(got - want)))
    return worst


def main():
    posenc = os.path.abspath(sys.argv[1])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, (arch, keys, tensors, calls, layers) in enumerate(FILES):
            path = os.path.join(folder, f'{arch}-{i}.gguf')
            write(path, arch, keys, tensors)
            for name, (what, attention) in layers.items():
                worst = compare(posenc, path, name, what, attention)
                good = worst < 2.4e-7 * max(1.0, attention)
                failed += not good
                print(f'{"ok" if good else "NOT OK"}  {arch} {name or ""}: {worst:.2e} from ggml\'s steps')
            failed += check_calls(posenc, path, arch, calls)
    print(f'{len(FILES)} files, gguf {version("gguf")}: {"all as ggml" if not failed else f"{failed} wrong"}')
    return failed > 0


def check_calls(posenc, path, arch, calls):
    kernel, label = calls.split(' ', 1)
    got = run(posenc, 'bench', '--config', path, '--budget', '0.01', '--backend', 'scalar', '--case', f'{kernel}/*', '--out',
              'jsonl')
    records = [json.loads(line) for line in got.stdout.splitlines()]
    labels = [c['label'] for r in records if r['t'] == 'model' for c in r['cases'] if c['kernel'] == kernel]
    good = any(label in one for one in labels)
    print(f'{"ok" if good else "NOT OK"}  {arch}: {calls}{"" if good else f": {labels} {got.stderr}"}')
    return not good


if __name__ == '__main__':
    sys.exit(main())
