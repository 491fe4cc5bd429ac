// Positions in the scores: ALiBi, T5, DeBERTa and Swin as maps of queries and keys.
// All right values are those of page.lib. The mistakes that a reader can make on purpose are computed here.
//
// Each kind of bias below has the same members:
//   title, how                   caption of its map
//   mistakes                     { id: [name, meaning, a hint where to see it] }
//   controls, size, i, j         its sliders; tokens, query and key at first. A window has no size: it has height and width
//   compute(s, lib) -> found     s is the state without the prefix of the kind: s.heads for alibi_heads
//   formula(s, found)            the value of query i and key j with its numbers;  fact(s, found): a sentence about all
// What compute() finds: `right` and `wrong` (after the mistake) by distance, value[i − j + R], or at(i, j) and wrongAt(i, j);
// `rows` of the learned table; `masked` if a decoder sees no key after the query.
const number = (value) => digits(value, 5);
const bracketed = (value) => (value < 0 ? `(${number(value)})` : number(value));
const listed = (values) => Array.from(values, number).join(", ").replace(/, ([^,]*)$/, " and $1");
const clip = (value, least, most) => Math.min(most, Math.max(least, value));

// ---- arithmetic of the mistakes, in f32 as models do it ----
// Where n is between two distances on a logarithmic scale of so many parts, with a logarithm that is `ulps` off.
function roundedPart(n, from, to, parts, ulps) {
  const logarithm = Float32Array.of(Math.log(Math.fround(n / from)));
  if (logarithm[0] > 0) new Uint32Array(logarithm.buffer)[0] += ulps;
  return Math.fround(Math.fround(logarithm[0] / Math.fround(Math.log(Math.fround(to / from)))) * parts);
}
const exactPart = (n, from, to, parts) => (Math.log(n / from) / Math.log(to / from)) * parts;
// Writes x with the fewest digits, at least four, that round to the whole number of the library.
function enoughDigits(x, round, wanted) {
  for (let n = 4; n < 17; n++) if (round(Number(x.toPrecision(n))) === wanted) return digits(x, n);
  return digits(wanted);
}

// ---- ALiBi ----
const powerBelow = (heads) => 2 ** Math.floor(Math.log2(heads));
function exponentOf(h, heads) { // slope = 2^(−8 part / parts)
  const p = powerBelow(heads);
  return h <= p ? { part: h, parts: p } : { part: 2 * (h - p) - 1, parts: 2 * p };
}
const WRONG_SLOPES = { // by mistake
  zero: (slopes) => slopes.map((_, k) => {
    const { part, parts } = exponentOf(k + 1, slopes.length);
    return 2 ** ((-8 * (part - 1)) / parts);
  }),
  sequence: (slopes) => slopes.map((_, k) => 2 ** ((-8 * (k + 1)) / slopes.length)),
  sorted: (slopes) => slopes.slice().sort((a, b) => b - a),
};
const alibi = {
  title: "The bias of each pair",
  how: "It is 0 on the diagonal and falls with each step away from it. A causal model masks the keys after the query, at the upper right: −∞.",
  mistakes: {
    sequence: ["one plain sequence", "The slopes 2<sup>−8h/heads</sup> are right for a power of two of heads only.", "Try 12 heads."],
    sorted: ["slopes sorted", "Heads beyond the power of two begin anew with a steep slope.", "Try 12 heads."],
    zero: ["slopes from h = 0", "The count begins at h = 1. With h = 0 the first head has slope 1."],
    bf16: ["distances in bf16", "bf16 keeps 8 bits of a distance.", "Distances up to 256 are exact: try 512 tokens."],
    late: ["mask one key late", "Each query sees the next key, which it should predict.", "Tick Causal."],
    key: ["slope × j, as BLOOM", "This is no mistake in a causal model: each row is off by a constant, which softmax ignores. In bf16 the digits go into j."],
  },
  controls: [
    { id: "heads", label: "Heads", min: 1, max: 128, value: 8, help: "Try 12: no power of two." },
    { id: "head", label: "Head", min: 1, max: (s) => s.heads, value: 2 },
    { id: "causal", label: "Causal", check: true, value: true },
  ],
  size: 32, i: 20, j: 17,
  compute({ heads, head, causal, size, mistake }, lib) {
    const slopes = lib.alibiSlopes(heads), wrongSlopes = WRONG_SLOPES[mistake]?.(slopes), R = size - 1, m = slopes[head - 1];
    const sizes = { heads: 1, queries: 1, keys: 2 * R + 1, query_offset: R, causal };
    const byDistance = (all) => lib.alibi({ ...sizes, slopes: [all[head - 1]] }).reverse();
    const right = byDistance(slopes);
    const inBf16 = () => {
      const distances = lib.roundTo("bf16", right.map((_, k) => Math.abs(k - R)));
      return right.map((value, k) => (value === -Infinity ? value : 0 - m * distances[k]));
    };
    const maskedLate = () => right.map((value, k) => (causal && k === R - 1 ? -m : value));
    const wrong = wrongSlopes ? byDistance(wrongSlopes) : { bf16: inBf16, late: maskedLate }[mistake]?.();
    const timesKey = (i, j) => (causal && j > i ? -Infinity : Math.fround(m * j));
    return { R, right, wrong, slopes, wrongSlopes, wrongAt: mistake === "key" ? timesKey : null };
  },
  formula: ({ head, i, j, causal }, { slopes, at }) => (causal && j > i ? "the key is after the query, which masks it: bias = −∞"
    : `bias = −slope × |i − j| = −${number(slopes[head - 1])} × ${Math.abs(i - j)} = ${digits(at(i, j), 6)}`),
  fact({ heads, head }, { slopes }) {
    const { part, parts } = exponentOf(head, heads), p = powerBelow(heads), m = slopes[head - 1], half = Math.LN2 / m;
    const others = heads - p > 1 ? `the other ${heads - p} have every second slope` : "the last one has the first slope";
    const rest = ` ${heads} is no power of two: heads 1 to ${p} have the slopes of ${p} heads, and ${others} of ${2 * p} heads.`;
    const power = `<span style="white-space: nowrap">2<sup>−8 × ${part}/${parts}</sup></span>`;
    return `Head ${head} of ${heads} has slope ${power} = ${digits(m, 6)}, so a key's weight halves every ln 2 / slope = ${digits(half, 3)} positions.${heads === p ? "" : rest}`;
  },
};

// ---- T5: nb buckets in one direction, of which the first e have one distance each ----
function t5Sizes({ num_buckets, role }) {
  const nb = role === "encoder" ? num_buckets / 2 : num_buckets;
  return { nb, e: Math.floor(nb / 2) };
}
const t5 = {
  title: "The bucket of each pair",
  how: "A learned table has one bias for each bucket and head. Near keys have a bucket of their own. Far keys share buckets, and the further they are, the wider the bucket.",
  mistakes: {
    low: ["logarithm 1 ulp low", "Distances whose logarithm is a whole number of buckets fall into the one before.", "Try the encoder with 32 buckets to 128: distances 16, 32 and 64."],
    swapped: ["i − j for j − i", "Keys before and after the query are exchanged."],
    role: ["encoder for decoder", "The encoder is bidirectional, the decoder is not. Here each has the other's buckets."],
    short: ["last bucket never used", "The furthest keys have the bucket before.", "Try more tokens."],
  },
  controls: [
    { id: "role", label: "Used in the", options: { encoder: "encoder: bidirectional", decoder: "decoder: causal" }, value: "encoder" },
    { id: "num_buckets", label: "num_\u200bbuckets", values: [8, 16, 32, 64, 128, 320], value: 32 },
    { id: "max_distance", label: "max_\u200bdistance", min: (s) => s.num_buckets, max: 1024, step: 8, value: 128, help: "From here on, one bucket." },
  ],
  size: 96, i: 60, j: 40,
  compute(s, lib) {
    const { num_buckets, max_distance, size, mistake, role } = s, { nb, e } = t5Sizes(s);
    const R = Math.max(size - 1, Math.ceil(1.15 * max_distance)), sizes = { queries: 1, keys: 2 * R + 1, query_offset: R };
    const byDistance = (bidirectional) => lib.t5Bias({ num_buckets, max_distance, bidirectional, ...sizes }).reverse();
    const right = byDistance(role === "encoder");
    // Applies change(bucket, distance) in each direction; buckets of keys after the query begin at nb.
    const changed = (change) => right.map((bucket, k) =>
      (bucket < nb ? change(bucket, Math.max(0, k - R)) : nb + change(bucket - nb, R - k)));
    const lowBucket = (n) => Math.min(nb - 1, e + Math.trunc(roundedPart(n, e, max_distance, nb - e, -1)));
    const wrong = {
      low: () => changed((bucket, n) => (n < e ? bucket : lowBucket(n))),
      swapped: () => right.slice().reverse(),
      role: () => byDistance(role !== "encoder"),
      short: () => changed((bucket) => Math.min(bucket, nb - 2)),
    }[mistake]?.();
    return { R, right, wrong, rows: num_buckets, masked: role === "decoder" };
  },
  formula(s, { at }) {
    const { i, j, max_distance, role } = s, { nb, e } = t5Sizes(s), bucket = at(i, j), after = j > i, n = Math.abs(i - j);
    const where = n ? `${n} ${after ? "after" : "before"} the query` : "at the query";
    if (after && role === "decoder") return `${where}, which a decoder masks: bucket 0`;
    const first = after ? `${nb} + ` : "", own = after ? bucket - nb : bucket; // of this direction
    if (n < e) return `${where}: bucket = ${first}${n}${after ? ` = ${bucket}` : ", this distance alone"}`;
    const sum = (part) => (n < max_distance ? `${first}${e} + ⌊${part}⌋` : `${first}min(${nb - 1}, ${e} + ⌊${part}⌋)`);
    const x = exactPart(n, e, max_distance, nb - e), written = n < max_distance ? enoughDigits(x, Math.floor, own - e) : digits(x, 4);
    return `${where}: bucket = ${sum(`ln(${n}/${e}) / ln(${max_distance}/${e}) × ${nb - e}`)} = ${sum(written)} = ${bucket}`;
  },
  fact(s, { right, R }) {
    const { nb, e } = t5Sizes(s), begins = Array.from({ length: nb - e }, (_, k) => right.indexOf(e + k, R) - R).filter((d) => d >= 0);
    const list = begins.length > 10 ? `${begins.slice(0, 4).map(number).join(", ")}, … ${begins[begins.length - 1]}` : listed(begins);
    const ahead = s.role === "encoder" ? `${nb} added` : "bucket 0";
    return `Distances below ${e} have a bucket each; the next buckets begin at ${list}. Keys after the query have ${ahead}.`;
  },
};

// ---- DeBERTa: a column for each distance up to m, half of the buckets ----
const deberta = {
  title: "The column of each pair",
  how: "A learned table has one vector for each column, which meets the query or the key. Distances up to m = position_buckets/2 have a column each; further ones share logarithmic buckets.",
  mistakes: {
    high: ["logarithm 1 ulp high", "A distance whose logarithm is a whole number of buckets falls into the next one.", "Try 256 buckets to 512 with 512 tokens: distance 511."],
    floor: ["rounded down, as T5", "DeBERTa rounds up.", "Only distances beyond m change: try more tokens, or fewer buckets."],
    swapped: ["j − i for i − j", "The columns are mirrored."],
    clipped: ["clipped before, not after", "The original code clips distances to max_distance − 1 first, Hugging Face clips columns at the end.", "Try position_buckets 64 and max_distance 128."],
  },
  controls: [
    { id: "buckets", label: "position_\u200bbuckets", values: [0, 16, 32, 64, 128, 256], value: 256, help: "0: a column for each distance." },
    { id: "most", label: "max_\u200bdistance", min: (s) => Math.max(32, 2 * s.buckets), max: 1024, step: 16, value: 512 },
  ],
  size: 512, i: 400, j: 100,
  compute({ buckets, most, size, mistake }, lib) {
    const m = buckets / 2, span = buckets || most, R = Math.max(size - 1, Math.ceil(1.15 * most));
    const right = lib.debertaIndex({ queries: R + 1, keys: R + 1, position_buckets: buckets, max_distance: most });
    // Columns whose far distances n are rounded to a bucket by bucketOf(n).
    const changed = (bucketOf) => right.map((column, k) => {
      const d = k - R, n = Math.abs(d);
      return n <= m || !m ? column : clip(span + Math.sign(d) * (m + bucketOf(n)), 0, 2 * span - 1);
    });
    const wrong = {
      high: () => changed((n) => Math.ceil(roundedPart(n, m, most - 1, m - 1, 1))),
      floor: () => changed((n) => Math.floor(exactPart(n, m, most - 1, m - 1) + 1e-9)),
      swapped: () => right.slice().reverse(),
      clipped: () => right.map((_, k) => right[R + clip(k - R, 1 - most, most - 1)]),
    }[mistake]?.();
    return { R, right, wrong, rows: 2 * span };
  },
  formula({ buckets, most, i, j }, { at }) {
    const d = i - j, n = Math.abs(d), m = buckets / 2, span = buckets || most, column = at(i, j), sign = Math.sign(d);
    const end = (bucket) => `column = ${number(bucket)} + ${span}${bucket + span === column ? "" : `, clipped,`} = ${column}`;
    if (!m || n <= m) return `i − j = ${number(d)}: ${end(d)}`;
    const x = exactPart(n, m, most - 1, m - 1), part = n < most ? sign * (column - span) - m : Math.ceil(x);
    const sum = (text) => (sign < 0 ? `−(⌈${text}⌉ + ${m})` : `⌈${text}⌉ + ${m}`), bucket = sign * (m + part);
    const product = `ln(${n}/${m}) / ln(${most - 1}/${m}) × ${m - 1}`;
    return `i − j = ${number(d)}: bucket = ${sum(product)} = ${sum(enoughDigits(x, Math.ceil, part))} = ${number(bucket)}, ${end(bucket)}`;
  },
  fact({ buckets }, { rows, right, R }) {
    const rounding = buckets ? " DeBERTa's buckets round up, T5's round down." : "";
    return `The table has ${rows} columns; keys ${right.indexOf(rows - 1) - R} or more before the query share the last one.${rounding}`;
  },
};

// ---- Swin: tokens are patches of a window, at (row, column) ----
const placeOf = (token, { width }) => [Math.floor(token / width), token % width];
const differenceOf = (i, j, s) => placeOf(i, s).map((at, axis) => at - placeOf(j, s)[axis]);
const swin = {
  title: "The row of the table for each pair",
  how: "Tokens are the patches of a window, numbered row by row. A learned table has one bias for each row and head. A square block holds the pairs of two rows of patches.",
  mistakes: {
    swapped: ["key − query", "It mirrors the table in both directions."],
    stride: ["2 height − 1 as factor", "The factor is 2 width − 1.", "A square window hides it: change the width."],
  },
  controls: [{ id: "height", label: "Window height", min: 2, max: 12, value: 7 }, { id: "width", label: "Window width", min: 2, max: 12, value: 7 }],
  i: 24, j: 19,
  compute({ height, width, mistake }, lib) {
    const n = height * width, index = lib.windowIndex({ window_height: height, window_width: width });
    const swapped = (i, j) => index[j * n + i];
    const stride = (i, j) => {
      const [dy, dx] = differenceOf(i, j, { width });
      return (dy + height - 1) * (2 * height - 1) + dx + width - 1;
    };
    return { at: (i, j) => index[i * n + j], wrongAt: { swapped, stride }[mistake], rows: (2 * height - 1) * (2 * width - 1) };
  },
  formula(s, { at }) {
    const { i, j, height, width } = s, [dy, dx] = differenceOf(i, j, s);
    return `query − key = (${number(dy)}, ${number(dx)}), so row (${number(dy)} + ${height - 1}) × ${2 * width - 1} + ${bracketed(dx)} + ${width - 1} = ${at(i, j)}`;
  },
  fact: ({ i, j, height, width }, { rows, at }) => `The table has ${2 * height - 1} × ${2 * width - 1} = ${rows} rows, one for each difference. The index is not symmetric: with query and key
    exchanged it is ${at(j, i)}, and the two always add up to ${rows - 1}. So a model learns left and right, above and below apart.`,
};

// ---- all kinds ----
const KINDS = { alibi, t5, deberta, swin };
const TOKENS = [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];
// The values of the controls of a kind, without its prefix.
function own(state, kind = state.kind) {
  const mine = Object.entries(state).filter(([id]) => id.startsWith(`${kind}_`));
  return Object.fromEntries(mine.map(([id, value]) => [id.slice(kind.length + 1), value]));
}
const tokensOf = (s) => s.size || s.height * s.width;
function controlsOf([kind, { controls, mistakes, size, i, j }]) {
  const last = (s) => tokensOf(s) - 1;
  const options = { none: "none", ...Object.fromEntries(Object.entries(mistakes).map(([id, [name]]) => [id, name])) };
  const all = [
    ...controls, ...(size ? [{ id: "size", label: "Tokens", values: TOKENS, value: size }] : []),
    { id: "i", label: "Query i", min: 0, max: last, value: i }, { id: "j", label: "Key j", min: 0, max: last, value: j },
    { id: "mistake", label: "Make a common mistake", options, value: "none" },
  ];
  const ofOwn = (value) => (typeof value === "function" ? (state) => value(own(state, kind)) : value); // the state without prefixes
  const when = (state) => state.kind === kind;
  return all.map((spec) => ({ ...spec, id: `${kind}_${spec.id}`, min: ofOwn(spec.min), max: ofOwn(spec.max), when }));
}
// Adds at() and wrongAt() to what compute() found by distance.
function withValues(found) {
  const { R, right, wrong } = found;
  return { ...found, at: right ? (i, j) => right[i - j + R] : found.at, wrongAt: wrong ? (i, j) => wrong[i - j + R] : found.wrongAt };
}
function softmax(scores) {
  const most = Math.max(...scores), powers = scores.map((score) => Math.exp(score - most)), sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

// ---- figures ----
function caption({ figure, canvas, svg: drawing }, title, how) {
  const [strong, span] = figure.querySelectorAll("figcaption strong, figcaption span");
  if (strong.textContent !== title) (canvas || drawing).setAttribute("aria-label", (strong.textContent = title));
  if (span.innerHTML !== how) span.innerHTML = how;
}
function stay(map, row, column) { // the cursor goes back there when the pointer leaves
  if (!map.home) map.canvas.addEventListener("pointerleave", () => map.point(map.home));
  map.point((map.home = { row, column }));
}
function showMap({ map }, kind, s, found) {
  const n = tokensOf(s), { at, wrongAt } = found, { formula, title, how } = KINDS[kind], values = new Float32Array(n * n);
  found.different = 0; // cells that a mistake changes
  for (let k = 0, i = 0; i < n; i++)
    for (let j = 0; j < n; j++, k++) {
      const value = at(i, j), other = wrongAt ? wrongAt(i, j) : value;
      values[k] = !wrongAt ? value : value === other ? 0 : other - value;
      found.different += value !== other;
    }
  const changed = (i, j) => (wrongAt ? `. Changed: ${digits(wrongAt(i, j), 6)}` : "");
  const cell = (i, j) => `Query ${i}, key ${j}: ${formula({ ...s, i, j }, found)}${changed(i, j)}`;
  if (wrongAt) caption(map, "Difference of each pair", "The changed value minus the right one. It is 0 where the mistake makes no difference.");
  else caption(map, title, how);
  const colors = wrongAt ? "diverging" : "sequential";
  map.show({ rows: n, columns: n, values, colors, row: "query i", column: "key j", cell, masked: "masked" });
}
function showSlopes(plot, { slopes, wrongSlopes }, { head }) {
  const y = [...slopes], others = wrongSlopes ? [...wrongSlopes] : [], all = [...y, ...others];
  caption(plot, "The slope of each head", "The axis is logarithmic. Steep heads see near keys only, flat heads see far. Choose a head here.");
  plot.show({
    x: y.map((_, k) => k + 1), xName: "head", xMarks: [{ at: head, name: `head ${head}` }],
    yName: "slope", yLog: true, yLimits: [Math.min(...all) / 1.5, Math.max(...all) * 1.5],
    series: [{ name: "slope", y, points: y.length > 48 ? 2.5 : true }, ...(wrongSlopes ? [{ name: "changed", y: others }] : [])],
    read: (k) => `Head ${k + 1}: ${digits(y[k], 6)}${wrongSlopes ? `; changed: ${digits(others[k], 6)}` : ""}`,
  });
}
function showSteps(plot, { right, wrong, R }, { i, j }, kind) {
  const { word, xName, at, how } = kind === "t5"
    ? { word: "bucket", xName: "j − i (key minus query)", at: j - i, how: "T5 counts j − i, so keys before the query are at the left. DeBERTa counts i − j." }
    : { word: "column", xName: "i − j (query minus key)", at: i - j, how: "DeBERTa counts i − j, so keys before the query are at the right. T5 counts j − i." };
  const steps = (name, line) => ({ name, y: kind === "t5" ? Array.from(line).reverse() : Array.from(line), steps: true });
  caption(plot, `The ${word} by distance`, how);
  plot.show({
    x: Array.from(right, (_, k) => k - R), xName, yName: word, xMarks: [{ at, name: "this pair" }],
    series: [steps(word, right), ...(wrong ? [steps("changed", wrong)] : [])],
  });
}
function showWindow(map, s, { at }) {
  const { i, j, height: rows, width: columns } = s, [row, column] = placeOf(i, s), values = Array.from({ length: rows * columns }, (_, key) => at(i, key));
  const cell = (r, c, value) => `Key ${r * columns + c}, at row ${r} and column ${c} of the window: row ${value} of the table`;
  caption(map, "The window of this query", `Query ${i} is at row ${row}, column ${column}. For each key you see the row of the table. Numbers fall to the right and downwards. Choose a key here.`);
  map.show({ rows, columns, values, colors: "sequential", row: "row", column: "column", write: String, cell });
  stay(map, ...placeOf(j, s));
}
// Weights of a query over all keys: `right`, `wrong` after a mistake, and how many keys are `seen`. `table` has learned biases.
function weightsOf(kind, s, { at, wrongAt, masked }, table) {
  const keys = Array.from({ length: tokensOf(s) }, (_, key) => key), isHidden = (key) => masked && key > s.i;
  const bias = (value) => (table ? table[value] ?? NaN : value);
  const weights = (of) => softmax(keys.map((key) => (isHidden(key) ? -Infinity : bias(of(s.i, key)))));
  const seen = keys.filter((key) => at(s.i, key) > -Infinity && !isHidden(key)).length;
  return { right: weights(at), wrong: wrongAt && weights(wrongAt), seen };
}
function showWeights(page, kind, s, { right, wrong, seen }) {
  const { i, j } = s, inWindow = kind === "swin";
  const sources = { alibi: "", deberta: " DeBERTa has vectors; made-up numbers stand for their products with this query." };
  const source = sources[kind] ?? " The biases are made up; a model learns them.", equal = inWindow ? ` = ${digits(1 / seen, 2)}` : ", the dotted line";
  caption(inWindow ? page.shares : page.weights, "Softmax of the bias alone",
    `The attention of query ${i} if all content scores are equal.${source} Without a bias each key would get 1/${seen}${equal}.`);
  if (inWindow) {
    const cell = (r, c, w) => `Key ${r * s.width + c}, at row ${r} and column ${c}: weight ${digits(w, 4)}`, write = (w) => digits(w, 2);
    const map = { rows: s.height, columns: s.width, values: right, colors: "sequential", limits: [0, Math.max(...right)] };
    page.shares.show({ ...map, row: "row", column: "column", cell, write });
    stay(page.shares, ...placeOf(j, s));
    return;
  }
  const line = (name, y) => ({ name, y: y.map((weight, key) => (weight === 0 && key > i ? null : weight)) });
  page.weights.show({
    xName: "key j", xMarks: [{ at: j, name: `key ${j}` }], yName: "weight", yMarks: [{ at: 1 / seen, name: "" }],
    series: [line("weight", right), ...(wrong ? [line("changed", wrong)] : [])],
  });
}

// ---- sentences ----
function wordsOfWeights(i, { right, wrong, seen }) {
  let sum = 0;
  const many = [...right].sort((a, b) => b - a).findIndex((weight) => (sum += weight) >= 0.9) + 1;
  const first = `Softmax gives 90\u202f% of query ${i}'s attention to ${many} of ${seen} keys.`;
  if (!wrong) return first;
  const change = Math.max(...right.map((weight, key) => Math.abs(weight - wrong[key])));
  if (Number.isNaN(change)) return `${first} Changed like this, keys read beyond the end of the table.`;
  return change ? `${first} Its weights change by up to ${digits(change, 2)}.` : `${first} None of its weights changes.`;
}
// The distances whose value a mistake changes.
function wordsOfDistances({ right, wrong, R }) {
  const changed = Array.from(wrong, (value, k) => (value === right[k] ? 0 : Math.abs(k - R))), distances = [...new Set(changed)].filter(Boolean).sort((a, b) => a - b);
  if (!distances.length) return "";
  if (distances.length > 6) return ` The nearest distance that changes is ${distances[0]}.`;
  return distances.length > 1 ? ` Distances ${listed(distances)} change.` : ` Distance ${listed(distances)} changes.`;
}
function wordsOfMistake(found, kind, s) {
  const { at, wrongAt, different } = found, [right, wrong] = [at(s.i, s.j), wrongAt(s.i, s.j)];
  const [name, meaning, hint = ""] = KINDS[kind].mistakes[s.mistake];
  const cells = `${whole(different)} of ${whole(tokensOf(s) ** 2)} cells ${different > 1 ? "differ" : "differs"}.`;
  const where = found.wrong && different ? wordsOfDistances(found) : "";
  const pair = right === wrong ? "" : ` This pair has ${digits(wrong, 6)} in place of ${digits(right, 6)}.`;
  return `<strong>Changed: ${name}.</strong> ${meaning} ${different ? cells : `No cell differs here. ${hint}`}${where}${pair}`;
}
function wordsOfModels(models, kind, s) {
  const same = ({ kind: other, values }) => other === kind && Object.entries(values).every(([id, value]) => s[id] === value);
  const titles = models.filter(same).map(({ title }) => title);
  return titles.length ? ` These are the values of ${titles.join(" and ")}.` : "";
}

addView({
  id: "bias",
  order: 50,
  title: "Bias maps",
  intro: `<p>Some encodings leave the word vectors alone. They add a number to the attention score of a query and a key: the <em>bias</em>,
    which depends on where the two stand. Each map shows all pairs: a row is a query i, a column is a key j.</p>
    <p>Point at a cell to see its formula with numbers; choose the cell to keep it. Then make a common mistake, and see which cells change.</p>
    <p>For the expert: the library's buckets come from integer thresholds, which are exact. The mistakes round in f32, as models do.</p>`,
  controls: [{ id: "kind", label: "Encoding", options: { alibi: "ALiBi", t5: "T5", deberta: "DeBERTa", swin: "Swin" }, value: "alibi" }, ...Object.entries(KINDS).flatMap(controlsOf),
    { id: "seed", label: "Other made-up biases", min: 1, max: 20, value: 1, when: ({ kind }) => kind !== "alibi" }],
  setup(page) {
    const set = (values) => page.set(Object.fromEntries(Object.entries(values).map(([id, value]) => [`${page.state.kind}_${id}`, value])));
    const offset = (x) => { const { i, size } = own(page.state); set({ j: clip(page.state.kind === "t5" ? i + x : i - x, 0, size - 1) }); };
    const window = { square: true, tall: 340, pick: (row, column) => set({ j: row * own(page.state).width + column }) };
    page.group(2);
    const [left, right] = [0, 1].map(() => page.html(`<div class="figures" style="align-content: start"></div>`));
    page.parent = left;
    page.map = page.heatMap({ title: "The map", how: " ", square: true, tall: 460, pick: (i, j) => set({ i, j }) });
    [page.words, page.mistake] = [page.note(), page.note()];
    page.parent = right;
    page.curve = page.plot({ title: "The curve", how: " ", pick: (x) => (page.state.kind === "alibi" ? set({ head: x }) : offset(x)) });
    page.window = page.heatMap({ title: "The window", how: " ", ...window });
    page.weights = page.plot({ title: "Softmax", how: " ", pick: (j) => set({ j }) });
    page.shares = page.heatMap({ title: "Softmax in the window", how: " ", ...window });
  },
  draw(state, page) {
    const { kind, seed } = state, s = own(state), { lib, curve, weights, window, shares } = page;
    const key = JSON.stringify([kind, { ...s, i: 0, j: 0 }]); // neither query nor key changes the map
    if (page.key !== key) showMap(page, kind, s, (page.found = withValues(KINDS[kind].compute(s, lib))));
    page.key = key;
    stay(page.map, s.i, s.j);
    const { found } = page;
    for (const { figure } of [curve, weights]) figure.hidden = kind === "swin";
    for (const { figure } of [window, shares]) figure.hidden = kind !== "swin";
    if (kind === "alibi") showSlopes(curve, found, s);
    else if (kind === "swin") showWindow(window, s, found);
    else showSteps(curve, found, s, kind);
    const attention = weightsOf(kind, s, found, kind === "alibi" ? null : lib.normal(seed, found.rows, 1));
    showWeights(page, kind, s, attention);
    const pair = `<strong>Query ${s.i}, key ${s.j}: ${digits(found.at(s.i, s.j), 6)}.</strong>`, models = wordsOfModels(page.data || [], kind, s);
    page.words.show(`${pair} ${KINDS[kind].fact(s, found)}${models} ${wordsOfWeights(s.i, attention)}`);
    page.mistake.show(found.wrongAt ? wordsOfMistake(found, kind, s) : "");
    page.mistake.element.hidden = !found.wrongAt;
  },
});
