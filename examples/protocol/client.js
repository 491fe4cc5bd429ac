// A program that answers prompts (docs/protocol.md), in JavaScript without packages:
//
//     posenc verify --exec 'node examples/protocol/client.js'
'use strict';
const fs = require('fs');

const arrays = { F32: Float32Array, F64: Float64Array, I64: BigInt64Array, I32: Int32Array };
const hello = {
  hello: '1', name: 'node_example', description: 'plain JavaScript', dtypes: 'f32',
  kernels: 'rope_half rope_interleaved rope_table alibi', numerics: 'exact hf_f32 torch_exp_f32',
};

// Returns n bytes from standard input, or null at its end.
function read(n) {
  const bytes = Buffer.alloc(n);
  for (let at = 0; at < n;) {
    const got = fs.readSync(0, bytes, at, n - at, null);
    if (got === 0) return null;
    at += got;
  }
  return bytes;
}

function write(bytes) {
  for (let at = 0; at < bytes.length;) at += fs.writeSync(1, bytes, at);
}

function readMessage() {
  const start = read(8);
  if (!start) return null;
  const { __metadata__: metadata = {}, ...entries } = JSON.parse(read(Number(start.readBigUInt64LE())));
  const data = read(Math.max(0, ...Object.values(entries).map(e => e.data_offsets[1])));
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(entries)) {
    const copy = data.buffer.slice(data.byteOffset + from, data.byteOffset + to);
    tensors[name] = { shape, values: new arrays[dtype](copy) };
  }
  return { metadata, tensors };
}

// Writes outputs, which are arrays of f32.
function writeMessage(metadata, outputs, forms) {
  const header = { __metadata__: metadata };
  let end = 0;
  for (const [name, values] of Object.entries(outputs))
    header[name] = { dtype: 'F32', shape: forms[name].shape, data_offsets: [end, end += 4 * values.length] };
  const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  write(Buffer.concat([length, text, ...Object.values(outputs).map(v => Buffer.from(v.buffer))]));
}

function rope({ x, cos, sin }, interleaved) {
  const [tokens, heads, dim] = x.shape, pairs = cos.shape[1], from = x.values;
  const out = from.slice(); // channels past the pairs stay as they are
  for (let row = 0; row < tokens * heads; row++)
    for (let i = 0; i < pairs; i++) {
      const at = Math.floor(row / heads) * pairs + i, c = cos.values[at], s = sin.values[at];
      const a = row * dim + (interleaved ? 2 * i : i), b = a + (interleaved ? 1 : pairs);
      out[a] = from[a] * c - from[b] * s;
      out[b] = from[b] * c + from[a] * s;
    }
  return { out };
}

function ropeTable(parameters, { positions, inv_freq, axis }, exact) {
  const tokens = positions.shape.at(-1), pairs = inv_freq.values.length;
  const round = exact ? v => v : Math.fround, factor = round(parameters.attention_factor);
  const cos = new Float32Array(tokens * pairs), sin = new Float32Array(tokens * pairs);
  if (parameters.xpos_scale_base) return null;
  for (let t = 0, at = 0; t < tokens; t++)
    for (let i = 0; i < pairs; i++, at++) {
      const position = Number(positions.values[(axis ? axis.values[i] : 0) * tokens + t]);
      const angle = round(round(position) * inv_freq.values[i]);
      cos[at] = round(Math.cos(angle)) * factor;
      sin[at] = round(Math.sin(angle)) * factor;
    }
  return { cos, sin };
}

function alibi({ batch, heads, queries, keys, query_offset, causal }, { slopes }) {
  const out = new Float32Array(batch * heads * queries * keys);
  out.forEach((_, at) => {
    const key = at % keys, query = Math.floor(at / keys) % queries + query_offset;
    const slope = slopes.values[Math.floor(at / keys / queries) % slopes.values.length];
    out[at] = causal && key > query ? -Infinity : -slope * Math.abs(query - key);
  });
  return { out };
}

for (let message; (message = readMessage());) {
  const { metadata: { hello: isHello, kernel, numerics, ...rest }, tensors } = message;
  if (isHello) {
    writeMessage(hello, {}, {});
    continue;
  }
  const parameters = JSON.parse(rest.parameters);
  const outputs = kernel === 'rope_table' ? ropeTable(parameters, tensors, numerics === 'exact')
    : kernel === 'alibi' ? alibi(parameters, tensors) : rope(tensors, kernel === 'rope_interleaved');
  const reply = outputs ? { prompt: rest.prompt } : { prompt: rest.prompt, declined: 'this kind of call' };
  writeMessage(reply, outputs || {}, JSON.parse(rest.outputs));
}
