// Similarity by offset, and the product of two rotated vectors.
const HEAD = 64, TOKENS = 128, MAPPED = 96; // channels of a head; positions of the curves, and of the map
// The inner product of n elements of a and b, which begin at two places.
function product(a, b, aFirst = 0, bFirst = 0, n = a.length) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += a[aFirst + i] * b[bFirst + i];
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
    showRows(state, page);
    page.line.show();
    showProducts(state, page);
  },
});

function showRows({ dim, base, p }, page) {
  const table = page.lib.sinusoidal({ dim, rope_theta: base }, { tokens: TOKENS });
  const similarity = (a, b) => product(table, table, a * dim, b * dim, dim) / (dim / 2);
  const offsets = Array.from({ length: TOKENS }, (_, q) => q - p);
  page.rows.show({
    x: offsets, xName: "offset from p", xMarks: [{ at: 0, name: `p = ${p}` }], yName: "similarity",
    series: [{ name: "similarity", y: offsets.map((offset) => similarity(p, p + offset)) }],
    read: (i) => `Positions ${p} and ${p + offsets[i]}, offset ${digits(offsets[i])}: ${digits(similarity(p, p + offsets[i]), 7)}`,
  });
  if (page.mapOf === `${dim} ${base}`) return; // the map depends on nothing else
  page.mapOf = `${dim} ${base}`;
  const values = new Float32Array(MAPPED * MAPPED);
  for (let i = 0; i < MAPPED; i++)
    for (let j = 0; j <= i; j++) values[i * MAPPED + j] = values[j * MAPPED + i] = similarity(i, j); // both ways the same bits
  page.map.show({
    rows: MAPPED, columns: MAPPED, values, colors: "sequential", row: "position p", column: "position q",
    cell: (r, c, value) => `Positions ${r} and ${c}, offset ${digits(r - c)}: ${digits(value, 7)}`,
  });
}
// The product of a random query at m and a random key at n, both rotated.
function showProducts({ base, m, n, shift, seed }, page) {
  const { lib } = page, spec = { dim: HEAD, rope_theta: base }, q = lib.normal(seed, 1, HEAD), k = lib.normal(seed + 100, 1, HEAD);
  const rotated = (x, position) => lib.rotate(x, lib.ropeTable(spec, { positions: [position] }), {});
  const score = (a, b) => product(rotated(q, a), rotated(k, b)), [here, shifted] = [score(m, n), score(m + shift, n + shift)];
  page.score.show(`Query at ${m}, key at ${n}, so m − n = ${digits(m - n)}: the product is <strong>${digits(here, 6)}</strong>.
      ${shift ? `With both ${whole(shift)} positions later it is <strong>${digits(shifted, 6)}</strong>.` : "Shift both positions, and it stays the same."}
      ${shift && here !== shifted ? `The two differ by ${digits(Math.abs(here - shifted), 2)}, which is rounding: rotated vectors are f32.` : ""}`);
  const repeated = Float32Array.from({ length: TOKENS * HEAD }, (_, i) => q[i % HEAD]); // the query at every position
  const queries = lib.rotate(repeated, lib.ropeTable(spec, { tokens: TOKENS }), {}), key = rotated(k, n);
  const offsets = Array.from({ length: TOKENS }, (_, i) => i - n);
  page.curve.show({
    x: offsets, xName: "m − n", yName: "product",
    series: [
      { name: "q · k after rotation", y: offsets.map((_, i) => product(queries, key, i * HEAD, 0, HEAD)) },
      { name: "your choice", y: offsets.map((offset) => (offset === m - n ? here : null)), points: 6 },
    ],
  });
}
