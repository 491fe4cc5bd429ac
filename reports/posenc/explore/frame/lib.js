// The library, compiled to WebAssembly (library.c). Parameters have the names of `posenc table` and of its problems.
// An argument that the library rejects throws an Error with the library's own sentence.
const ENUMS = {
  numerics: ["exact", "hf_f32", "ggml_f32", "torch_exp_f32"],
  spacing: ["exponent", "endpoint"],
  scaling: ["none", "linear", "llama3", "yarn", "dynamic", "ntk", "longrope", "proportional", "resonance", "resonance_yarn"],
  mrope_layout: ["qwen2_vl", "qwen3_vl", "qwen2_vl_vision", "pixtral", "kimi"],
  layout: ["interleaved", "sin_cos", "cos_sin"],
  dtype: ["f32", "f16", "bf16"],
  pairing: ["half", "interleaved"],
};
const numberOf = (kind, name) => {
  const found = ENUMS[kind].indexOf(name);
  if (found < 0) throw new Error(`${kind}: no such name (got '${name}')`);
  return found;
};

class Library {
  #wasm; #names; #defaults; #cache = new Map(); #results = new Map(); #taken = [];

  constructor(exports) {
    this.#wasm = exports;
    exports._initialize();
    this.#names = this.#text(exports.spec_names()).trim().split(" ");
    this.#defaults = this.#call(() => {
      const array = this.#output(Float64Array, this.#names.length);
      exports.spec_defaults(array.at);
      return array.read();
    });
    this.version = this.#text(exports.version());
  }

  // ---- linear memory ----
  #text(at) {
    const bytes = new Uint8Array(this.#wasm.memory.buffer, at);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }
  #take(bytes) {
    const at = this.#wasm.take(Math.max(bytes, 1));
    if (!at) throw new Error("out of memory");
    this.#taken.push(at);
    return at;
  }
  #output(Type, n) { // an array that the library writes
    const at = this.#take(n * Type.BYTES_PER_ELEMENT);
    return { at, read: () => new Type(this.#wasm.memory.buffer, at, n).slice() };
  }
  #put(Type, values) { // an array that the library reads; 0 is NULL
    if (!values) return 0;
    const at = this.#take(values.length * Type.BYTES_PER_ELEMENT);
    new Type(this.#wasm.memory.buffer, at, values.length).set(values);
    return at;
  }
  #call(work) { // what was taken for a call is free after it
    const outer = this.#taken;
    this.#taken = [];
    try {
      return work();
    } finally {
      for (const at of this.#taken) this.#wasm.drop(at);
      this.#taken = outer;
    }
  }
  #check(status) {
    if (status !== 0) throw new Error(this.#text(this.#wasm.error_text()));
  }

  // The last results, for sliders that change something else. Views only read them.
  #kept(key, work) {
    const found = this.#results.get(key) || work();
    this.#results.delete(key);
    this.#results.set(key, found);
    if (this.#results.size > 8) this.#results.delete(this.#results.keys().next().value);
    return found;
  }

  // ---- frequencies ----
  #freqs(spec) { // cached: the same sliders ask for the same ones again
    const key = JSON.stringify(spec);
    let freqs = this.#cache.get(key);
    if (freqs) this.#cache.delete(key);
    else freqs = this.#call(() => this.#create(spec));
    this.#cache.set(key, freqs);
    if (this.#cache.size > 32) {
      const [oldest, unused] = this.#cache.entries().next().value;
      this.#cache.delete(oldest);
      this.#wasm.freqs_destroy(unused.at);
    }
    return freqs;
  }
  #create(spec) {
    const values = this.#defaults.slice();
    for (const [name, value] of Object.entries(spec)) {
      if (["short_factor", "long_factor", "inv_freq"].includes(name)) continue;
      const parts = Array.isArray(value) ? value.map((part, i) => [`${name}[${i}]`, part]) : [[name, value]];
      for (const [member, part] of parts) {
        const at = this.#names.indexOf(member);
        if (at < 0) throw new Error(`no such parameter (got '${member}')`);
        values[at] = typeof part === "string" ? numberOf(name, part) : Number(part);
      }
    }
    const lists = [spec.short_factor, spec.long_factor, spec.inv_freq].map((list) => this.#put(Float64Array, list));
    const at = this.#wasm.freqs_create(this.#put(Float64Array, values), ...lists);
    if (!at) throw new Error(this.#text(this.#wasm.error_text()));
    return { at, dim: spec.dim, pairs: this.#wasm.freqs_pairs(at), attentionFactor: this.#wasm.freqs_attention_factor(at) };
  }

  // Returns { omega, omegaF32, axis, attentionFactor }: radians per position of each pair, as f64 and as f32.
  frequencies(spec) {
    return this.#call(() => {
      const freqs = this.#freqs(spec);
      const arrays = [Float64Array, Float32Array, Uint8Array].map((Type) => this.#output(Type, freqs.pairs));
      this.#wasm.freqs_read(freqs.at, ...arrays.map((array) => array.at));
      const [omega, omegaF32, axis] = arrays.map((array) => array.read());
      return { omega, omegaF32, axis, attentionFactor: freqs.attentionFactor };
    });
  }

  // ---- tables. The last results are kept ----
  // Rows are { tokens, first = 0 }, { positions: [...] } or { times: [...] }. A spec with mrope_section takes a list of
  // positions for each axis. Returns the number of rows, and arguments: the kind of positions, the first one, an array.
  #rows({ tokens, first = 0, positions, times }) {
    const given = positions || times;
    if (!given) return { n: tokens, words: [0, first, 0] };
    const axes = typeof given[0] === "number" ? [given] : given, Type = positions ? Int32Array : Float32Array;
    return { n: axes[0].length, words: [positions ? 1 : 3, 0, this.#put(Type, axes.flatMap((axis) => [...axis]))] };
  }
  // Returns a table [tokens, dim].
  sinusoidal(spec, { layout = "interleaved", scale = 1, ...rows }) {
    return this.#kept(JSON.stringify(["sinusoidal", spec, layout, scale, rows]), () => this.#call(() => {
      const freqs = this.#freqs(spec), { n, words } = this.#rows(rows), out = this.#output(Float32Array, n * spec.dim);
      this.#check(this.#wasm.sinusoidal(freqs.at, numberOf("layout", layout), scale, ...words, n, out.at));
      return out.read();
    }));
  }
  // Returns { cos, sin, pairs, tokens }, both [tokens, pairs].
  ropeTable(spec, rows) {
    return this.#kept(JSON.stringify(["rope_table", spec, rows]), () => this.#call(() => {
      const freqs = this.#freqs(spec), { n, words } = this.#rows(rows);
      const [cos, sin] = [0, 0].map(() => this.#output(Float32Array, n * freqs.pairs));
      this.#check(this.#wasm.rope_table(freqs.at, ...words, n, cos.at, sin.at));
      return { cos: cos.read(), sin: sin.read(), pairs: freqs.pairs, tokens: n };
    }));
  }
  // Rotates x [tokens, heads, head_dim] by a table of ropeTable(). Token t takes its row first + t, or rows[t].
  rotate(x, table, { pairing = "half", heads = 1, head_dim = 2 * table.pairs, rotary_offset = 0, transpose = false, first = 0, rows }) {
    return this.#call(() => {
      const tokens = x.length / (heads * head_dim), out = this.#output(Float32Array, x.length);
      const [cos, sin, from] = [table.cos, table.sin, x].map((values) => this.#put(Float32Array, values));
      this.#check(this.#wasm.rotate(numberOf("pairing", pairing), Number(transpose), tokens, heads, head_dim, rotary_offset,
        cos, sin, table.tokens, table.pairs, first, this.#put(Int32Array, rows), from, out.at));
      return out.read();
    });
  }

  // ---- biases and indices ----
  alibiSlopes(heads, alibi_bias_max = 8) {
    return this.#call(() => {
      const out = this.#output(Float32Array, heads);
      this.#check(this.#wasm.alibi_slopes(heads, alibi_bias_max, out.at));
      return out.read();
    });
  }
  // Returns a bias [heads, queries, keys].
  alibi({ heads, queries, keys, query_offset = 0, causal = false, slopes = this.alibiSlopes(heads) }) {
    return this.#call(() => {
      const out = this.#output(Float32Array, heads * queries * keys), from = this.#put(Float32Array, slopes);
      this.#check(this.#wasm.alibi(heads, queries, keys, query_offset, Number(causal), from, out.at));
      return out.read();
    });
  }
  // Returns the least distance of each bucket in one direction.
  t5Thresholds({ num_buckets = 32, max_distance = 128, bidirectional = true }) {
    return this.#call(() => {
      const out = this.#output(Int32Array, bidirectional ? num_buckets / 2 : num_buckets);
      this.#check(this.#wasm.t5_thresholds(num_buckets, max_distance, Number(bidirectional), out.at));
      return out.read();
    });
  }
  // Returns a bias [heads, queries, keys] of a table [num_buckets, heads]; without one, the number of each bucket.
  t5Bias({ num_buckets = 32, max_distance = 128, bidirectional = true, heads = 1, queries, keys, query_offset = 0, table }) {
    return this.#call(() => {
      const thresholds = this.#put(Int32Array, this.t5Thresholds({ num_buckets, max_distance, bidirectional }));
      const learned = this.#put(Float32Array, table || Array.from({ length: num_buckets * heads }, (_, i) => Math.floor(i / heads)));
      const out = this.#output(Float32Array, heads * queries * keys);
      this.#check(this.#wasm.t5_bias(num_buckets, Number(bidirectional), thresholds, learned, heads, queries, keys, query_offset, out.at));
      return out.read();
    });
  }
  // Returns rows of a table for each query and key of a window, [n, n]; with a class token as BEiT has it.
  windowIndex({ window_height, window_width, window_class = false }) {
    return this.#call(() => {
      const n = window_height * window_width + Number(window_class), out = this.#output(Int32Array, n * n);
      this.#check(this.#wasm.window_index(window_height, window_width, Number(window_class), out.at));
      return out.read();
    });
  }
  // Returns columns by i - j + keys - 1, for query i and key j.
  debertaIndex({ queries, keys, query_offset = 0, position_buckets = 256, max_distance = 512 }) {
    return this.#call(() => {
      const out = this.#output(Int32Array, queries + keys - 1);
      this.#check(this.#wasm.deberta_index(queries, keys, query_offset, position_buckets, max_distance, out.at));
      return out.read();
    });
  }
  shawIndex({ queries, keys, query_offset = 0, max_distance }) {
    return this.#call(() => {
      const out = this.#output(Int32Array, queries + keys - 1);
      this.#check(this.#wasm.shaw_index(queries, keys, query_offset, max_distance, out.at));
      return out.read();
    });
  }

  // ---- numbers ----
  // Returns values rounded to "f16" or "bf16", as f32.
  roundTo(dtype, values) {
    if (dtype === "f32") return Float32Array.from(values);
    return this.#call(() => {
      const at = this.#put(Float32Array, values), half = this.#output(Uint16Array, values.length);
      this.#check(this.#wasm.round_to(numberOf("dtype", dtype), values.length, at, half.at));
      return new Float32Array(this.#wasm.memory.buffer, at, values.length).slice();
    });
  }
  // Returns N(0, sigma) [rows, dim], f32; the same bits on every machine.
  normal(seed, rows, dim, sigma = 1) {
    return this.#call(() => {
      const out = this.#output(Float32Array, rows * dim);
      this.#check(this.#wasm.normal(seed, rows, dim, sigma, out.at));
      return out.read();
    });
  }
}

// Returns the bytes of data that are compressed by gzip and written in base64.
function unpacked(base64) {
  const packed = Uint8Array.from(atob(base64.trim()), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
// The library asks its system for nothing that it needs: each answer is "no such file", or "no environment".
async function loadLibrary(base64) {
  const bytes = await unpacked(base64);
  const module = await WebAssembly.compile(bytes), system = {};
  let memory = null;
  for (const { name } of WebAssembly.Module.imports(module)) system[name] = () => 8;
  system.environ_sizes_get = (count, size) => {
    new Uint32Array(memory.buffer)[count >> 2] = new Uint32Array(memory.buffer)[size >> 2] = 0;
    return 0;
  };
  system.environ_get = () => 0;
  system.proc_exit = (status) => { throw new Error(`the library ended with status ${status}`); };
  const { exports } = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: system });
  memory = exports.memory;
  return new Library(exports);
}
