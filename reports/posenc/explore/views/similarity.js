// Similarity by offset, and the product of two rotated vectors.
const HEAD = 64;
function product(a, b, at = 0, from = 0, n = a.length) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += a[at + i] * b[from + i];
  return sum;
}

addView({
  id: "similarity",
  order: 30,
  title: "Similarity by offset",
  intro: `<p>Attention compares vectors by their inner product. For sinusoidal encodings the product of two rows depends only on
    the distance between them, not on where they are. RoPE carries this over to queries and keys: rotate the query by its
    position m and the key by its position n, and the product depends on m − n alone.</p>`,
  controls: [
    { id: "dim", label: "Dimensions", values: [8, 16, 32, 64, 128, 256, 512], value: 64 },
    { id: "base", label: "Base θ", values: [10, 100, 1000, 10000, 100000, 1000000], value: 10000, format: whole },
    { id: "p", label: "Position p", min: 0, max: 127, value: 40, help: "for the sinusoidal rows" },
    { id: "m", label: "Query at m", min: 0, max: 127, value: 70 },
    { id: "n", label: "Key at n", min: 0, max: 127, value: 60 },
    { id: "shift", label: "Shift both by", values: [0, 1, 10, 100, 1000, 10000], value: 0, format: whole },
    { id: "seed", label: "Other vectors", min: 1, max: 20, value: 1 },
  ],
  setup(page) {
    page.group(2);
    page.rows = page.plot({
      title: "Sinusoidal: the row of p with the rows around it", tall: 400,
      how: "Inner product divided by d/2, so that a row with itself gives 1. Move p: the curve stays where it is, because it depends on the offset alone.",
    });
    page.map = page.heatMap({
      title: "All pairs of positions", square: true, tall: 400, pick: (row) => page.set({ p: row }),
      how: "Each diagonal has one colour: the same offset gives the same product. The diagonal in the middle is offset 0.",
    });
    page.group();
    page.line = page.dragLine({
      title: "RoPE: drag the query and the key", how: "The sliders move them as well.",
      points: [{ id: "m", name: "query m" }, { id: "n", name: "key n" }], min: 0, max: 127,
    });
    page.score = page.note();
    page.curve = page.plot({
      title: "RoPE: the product for each offset m − n",
      how: "One random query and one random key, the key at n and the query at every m. The dot is your choice.",
    });
  },
  draw(state, page) {
    const { dim, base, p, m, n, shift, seed } = state, spec = { dim, rope_theta: base }, { lib } = page, tokens = 128;
    const table = lib.sinusoidal(spec, { tokens });
    const near = (a, b) => product(table, table, a * dim, b * dim, dim) / (dim / 2);
    const offsets = Array.from({ length: tokens }, (_, q) => q - p);
    page.rows.show({
      x: offsets, xName: "offset from p", yName: "similarity", series: [{ name: "similarity", y: offsets.map((k) => near(p, p + k)) }], xMarks: [{ at: 0, name: `p = ${p}` }],
      read: (i) => `Positions ${p} and ${p + offsets[i]}, offset ${digits(offsets[i])}: ${digits(near(p, p + offsets[i]), 7)}`,
    });
    if (page.mapOf !== `${dim} ${base}`) { // it depends on nothing else
      page.mapOf = `${dim} ${base}`;
      const size = 96, values = new Float32Array(size * size);
      for (let i = 0; i < size; i++) for (let j = 0; j <= i; j++) values[i * size + j] = values[j * size + i] = near(i, j); // near(j, i) has the same bits
      page.map.show({ rows: size, columns: size, values, colors: "sequential", row: "position p", column: "position q", cell: (r, c, value) => `Positions ${r} and ${c}, offset ${digits(r - c)}: ${digits(value, 7)}` });
    }
    page.line.show();
    const q = lib.normal(seed, 1, HEAD), k = lib.normal(seed + 100, 1, HEAD), head = { dim: HEAD, rope_theta: base };
    const turned = (x, positions) => lib.rotate(x, lib.ropeTable(head, { positions }), {});
    const score = (a, b) => product(turned(q, [a]), turned(k, [b]));
    const [here, there] = [score(m, n), score(m + shift, n + shift)];
    page.score.show(`Query at ${m}, key at ${n}, so m − n = ${digits(m - n)}: the product is <strong>${digits(here, 6)}</strong>.
      ${shift ? `With both ${whole(shift)} positions later it is <strong>${digits(there, 6)}</strong>.` : "Shift both positions, and it stays the same."}
      ${shift && here !== there ? `The two differ by ${digits(Math.abs(here - there), 2)}, which is rounding: rotated vectors are f32.` : ""}`);
    const all = lib.ropeTable(head, { tokens }), queries = lib.rotate(Float32Array.from({ length: tokens * HEAD }, (_, i) => q[i % HEAD]), all, {}), key = turned(k, [n]);
    const xs = Array.from({ length: tokens }, (_, i) => i - n), scores = xs.map((_, i) => product(queries, key, i * HEAD, 0, HEAD));
    page.curve.show({
      x: xs, xName: "m − n", yName: "product", series: [{ name: "q · k after rotation", y: scores }, { name: "your choice", y: xs.map((x) => (x === m - n ? here : null)), points: 6 }],
    });
  },
});
