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
  for (let count = 0; count < n;) {
    const got = fs.readSync(0, bytes, count, n - count, null);
    if (got === 0) return null;
    count += got;
  }
  return bytes;
}

function write(bytes) {
  for (let count = 0; count < bytes.length;) count += fs.writeSync(1, bytes, count);
}

// Returns the metadata, and the tensors by name; null at the end of the input.
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

// Writes outputs, which are arrays of f32. A form is { dtype: 'F32', shape: [7, 4, 128] }.
function writeMessage(metadata, outputs, forms) {
  const header = { __metadata__: metadata };
  let begin = 0;
  for (const [name, values] of Object.entries(outputs)) {
    const end = begin + 4 * values.length;
    header[name] = { dtype: 'F32', shape: forms[name].shape, data_offsets: [begin, end] };
    begin = end;
  }
  const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  write(Buffer.concat([length, text, ...Object.values(outputs).map(v => Buffer.from(v.buffer))]));
}

// Rotates x [tokens, heads, dim] by cos and sin [tokens, pairs].
function rotate({ x, cos, sin }, interleaved) {
  const [tokens, heads, dim] = x.shape, pairs = cos.shape[1], input = x.values;
  const out = input.slice(); // channels past the pairs stay as they are
  for (let row = 0; row < tokens * heads; row++)
    for (let i = 0; i < pairs; i++) {
      const pair = Math.floor(row / heads) * pairs + i, c = cos.values[pair], s = sin.values[pair];
      const a = row * dim + (interleaved ? 2 * i : i), b = a + (interleaved ? 1 : pairs);
      out[a] = input[a] * c - input[b] * s;
      out[b] = input[b] * c + input[a] * s;
    }
  return { out };
}

// Returns cosines and sines [tokens, pairs] in f64 arithmetic or in f32; null for xPos, which is declined.
function makeTable(parameters, { positions, inv_freq, axis }, exact) {
  const tokens = positions.shape.at(-1), pairs = inv_freq.values.length;
  const round = exact ? v => v : Math.fround, factor = round(parameters.attention_factor);
  const cos = new Float32Array(tokens * pairs), sin = new Float32Array(tokens * pairs);
  if (parameters.xpos_scale_base) return null;
  for (let t = 0; t < tokens; t++)
    for (let i = 0; i < pairs; i++) {
      const position = Number(positions.values[(axis ? axis.values[i] : 0) * tokens + t]);
      const angle = round(round(position) * inv_freq.values[i]);
      cos[t * pairs + i] = round(Math.cos(angle)) * factor;
      sin[t * pairs + i] = round(Math.sin(angle)) * factor;
    }
  return { cos, sin };
}

// Returns biases [batch, heads, queries, keys].
function makeAlibi({ batch, heads, queries, keys, query_offset, causal }, { slopes }) {
  const out = new Float32Array(batch * heads * queries * keys);
  out.forEach((_, i) => {
    const key = i % keys, query = Math.floor(i / keys) % queries + query_offset;
    const slope = slopes.values[Math.floor(i / keys / queries) % slopes.values.length];
    out[i] = causal && key > query ? -Infinity : -slope * Math.abs(query - key);
  });
  return { out };
}

function answer({ kernel, numerics, parameters: text }, tensors) {
  const parameters = JSON.parse(text);
  if (kernel === 'rope_table') return makeTable(parameters, tensors, numerics === 'exact');
  if (kernel === 'alibi') return makeAlibi(parameters, tensors);
  return rotate(tensors, kernel === 'rope_interleaved');
}

for (let message = readMessage(); message; message = readMessage()) {
  const { metadata, tensors } = message;
  if ('hello' in metadata) {
    writeMessage(hello, {}, {});
    continue;
  }
  const outputs = answer(metadata, tensors), reply = { prompt: metadata.prompt };
  if (!outputs) reply.declined = 'this kind of call';
  writeMessage(reply, outputs || {}, JSON.parse(metadata.outputs));
}
