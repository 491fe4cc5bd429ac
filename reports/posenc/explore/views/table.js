// Tables of sinusoids and of RoPE: a heat map, curves of one pair, and the wavelengths.
const KINDS = { sinusoidal: "Sinusoidal encoding", cos: "RoPE: cosines", sin: "RoPE: sines" };
const LAYOUTS = { interleaved: "sine, cosine, sine, cosine", sin_cos: "all sines, then all cosines", cos_sin: "all cosines, then all sines" };
const isSinusoidal = (state) => state.kind === "sinusoidal";

// The columns of a pair: of its sine and its cosine. A table of RoPE has one column for each pair.
function columnsOf(pair, { kind, layout, dim }) {
  if (kind !== "sinusoidal") return [pair, pair];
  if (layout === "interleaved") return [2 * pair, 2 * pair + 1];
  return layout === "sin_cos" ? [pair, dim / 2 + pair] : [dim / 2 + pair, pair];
}
function pairOf(column, { kind, layout, dim }) {
  if (kind !== "sinusoidal") return column;
  return layout === "interleaved" ? Math.floor(column / 2) : column % (dim / 2);
}

addView({
  id: "table",
  order: 10,
  title: "The table",
  intro: `<p>A position becomes a row of numbers. Each pair of columns holds the sine and the cosine of one angle, and the
    angle grows by a fixed frequency from row to row. The first pairs are fast, the last ones are slow: together they
    identify the position, as the digits of a number do.</p>
    <p>Choose a cell to follow its pair in the curves below the map.</p>`,
  controls: [
    { id: "kind", label: "Table", options: KINDS, value: "sinusoidal" },
    { id: "dim", label: "Dimensions", values: [4, 8, 16, 32, 64, 128, 256, 512], value: 64, help: "d_model, or head_dim of RoPE" },
    { id: "base", label: "Base θ", values: [10, 100, 1000, 10000, 100000, 500000, 1000000, 10000000], value: 10000, format: whole },
    { id: "tokens", label: "Positions", min: 8, max: 512, step: 8, value: 128 },
    { id: "first", label: "First position", values: [0, 100, 1000, 10000, 100000, 1000000], value: 0, format: whole },
    { id: "pair", label: "Pair", min: 0, max: (state) => state.dim / 2 - 1, value: 4 },
    { id: "layout", label: "Order of the columns", options: LAYOUTS, value: "interleaved", when: isSinusoidal },
  ],
  setup(page) {
    page.map = page.heatMap({
      title: "Each number of the table", tall: 440,
      how: "Blue is −1, orange is 1. Follow a column downwards: on the left it repeats within a few rows, on the right it hardly changes.",
      pick: (row, column) => page.set({ pair: pairOf(column, page.state) }),
    });
    page.group(2);
    page.curves = page.plot({ title: "One pair of columns", how: "Two waves of the same length, a quarter of a wave apart." });
    page.waves = page.plot({
      title: "Wavelength of each pair", how: "The number of positions until a pair repeats. The axis is logarithmic, so equal ratios are equal steps.",
      pick: (pair) => page.set({ pair }),
    });
    page.group();
    page.fact = page.note();
  },
  draw(state, page) {
    const { dim, base, tokens, first, layout } = state, spec = { dim, rope_theta: base }, { omega } = page.lib.frequencies(spec);
    const table = isSinusoidal(state) ? page.lib.sinusoidal(spec, { layout, first, tokens }) : page.lib.ropeTable(spec, { first, tokens });
    showTable(page, state, table, omega);
    showCurves(page, state, table);
    showWavelengths(page, state, omega);
  },
});

function showTable(page, state, table, omega) {
  const { kind, tokens, first } = state, values = isSinusoidal(state) ? table : table[kind];
  const meaning = (c) => (!isSinusoidal(state) ? kind : columnsOf(pairOf(c, state), state)[0] === c ? "sin" : "cos");
  const cell = (r, c, value) => {
    const pair = pairOf(c, state), position = first + r;
    return `Position ${position}, column ${c} (pair ${pair}): ${meaning(c)}(${position} × ${digits(omega[pair], 5)}) = ${digits(value, 9)}`;
  };
  page.map.show({
    rows: tokens, columns: values.length / tokens, values, limits: [-1, 1], rowAt: (r) => first + r, cell,
    row: "position", column: isSinusoidal(state) ? "column" : "pair",
  });
}
function showCurves(page, state, table) {
  const { dim, tokens, first, pair } = state, positions = Array.from({ length: tokens }, (_, i) => first + i);
  const column = (values, width, c) => positions.map((_, r) => values[r * width + c]), [sine, cosine] = columnsOf(pair, state);
  const [sines, cosines] = isSinusoidal(state)
    ? [column(table, dim, sine), column(table, dim, cosine)]
    : [column(table.sin, dim / 2, pair), column(table.cos, dim / 2, pair)];
  page.curves.show({
    x: positions, xName: "position", yName: "value", yLimits: [-1.08, 1.08],
    series: [{ name: `sine, pair ${pair}`, y: sines }, { name: `cosine, pair ${pair}`, y: cosines }],
  });
}
function showWavelengths(page, { dim, base, tokens, pair }, omega) {
  const half = dim / 2, lengths = Array.from(omega, (one) => (2 * Math.PI) / one);
  const isInside = tokens >= lengths[0] && tokens <= lengths[half - 1];
  page.waves.show({
    series: [{ name: "wavelength", y: lengths, points: half <= 64 }], xName: "pair", yName: "positions", yLog: true,
    yMarks: isInside ? [{ at: tokens, name: `${tokens} positions are shown`, left: true }] : [],
    xMarks: half > 1 ? [{ at: pair, name: `pair ${pair}` }] : [],
    read: (i) => `Pair ${i} repeats after ${digits(lengths[i], 6)} positions: ${digits(omega[i], 6)} radians each`,
  });
  const slow = lengths.filter((length) => length > tokens).length;
  page.fact.show(`Pair ${pair} rotates by ω = ${whole(base)}<sup>−${2 * pair}/${dim}</sup> = ${digits(omega[pair], 6)} radians per position, so it
      repeats after 2π/ω = ${digits(lengths[pair], 6)} positions. ${slow === 1 ? "One pair does" : `${slow} of ${half} pairs do`} not complete one turn in ${tokens} positions.`);
}
