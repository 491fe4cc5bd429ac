// The table of d = 4, built step by step. Steps are counted from 0 here, and from 1 on the page.
const DIM = 4, ROWS = 6;
const EMBEDDING = [0.21, -0.43, 0.65, 0.12]; // of a word, made up
const STEPS = [ // a title, and words; wordsOf() has those that state numbers
  ["Number the positions", "The first word is at position 0. Each position gets one row, and each row has d = 4 columns, which are still empty."],
  ["Make pairs of columns", "Columns 0 and 1 are pair 0. Columns 2 and 3 are pair 1. Each pair shares one frequency."],
  ["Compute the frequencies", ""],
  ["Multiply: position times frequency", ""],
  ["Pair 0: sine and cosine", "The sine of the angle goes into column 0, its cosine into column 1. The angle grows by one radian per row, so the values change fast."],
  ["Pair 1: sine and cosine", "Columns 2 and 3 are the same two functions, of an angle that grows slowly. Neighbouring rows differ little here."],
  ["Read one row", ""],
  ["Add it to the embedding", ""],
];

const fourDigits = (value) => value.toFixed(4).replace("-", "−");
function row(name, cells, kind = "") { // cells are [text, class]
  const inside = cells.map(([text, kind = ""]) => `<td class="${kind}">${text}</td>`);
  return `<tr class="${kind}"><th scope="row">${name}</th>${inside.join("")}</tr>`;
}
const head = (names) => `<thead><tr>${names.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead>`;
const frequencyOf = (pair, base) => `<span class="formula">ω<sub>${pair}</sub> = ${whole(base)}<sup>−${2 * pair}/${DIM}</sup></span>`;

// The cells of a position at a step: [text, class]. The class marks what is new, and what is not yet in the table.
function cellsOf(step, position, { table, angles, chosen }) {
  if (step < 2) return Array.from({ length: DIM }, () => ["·", "empty"]);
  if (step === 2) return Array.from({ length: DIM }, (_, c) => [`ω<sub>${c >> 1}</sub>`, "empty"]);
  return Array.from({ length: DIM }, (_, c) => {
    const pair = c >> 1;
    if (step < 4 + pair) return [fourDigits(angles[2 * position + pair]), step === 3 ? "now" : "empty"];
    const isNew = step === 4 + pair || (step >= 6 && position === chosen);
    return [fourDigits(table[DIM * position + c]), isNew ? "now" : ""];
  });
}
function wordsOf(step, { base, position }, { omega, angles, encoded }) {
  const mine = [0, 1].map((pair) => fourDigits(angles[2 * position + pair]));
  const product = `${position} × ${fourDigits(omega[1])} = ${mine[1]}`;
  return STEPS[step][1] || {
    2: `${frequencyOf(0, base)} = 1 and ${frequencyOf(1, base)} = ${fourDigits(omega[1])} radians per position. The exponent runs from 0 towards −1 over the pairs.`,
    3: `Each cell holds the angle of its row and pair. Position ${position} times ω<sub>1</sub> is ${product} radians.`,
    6: `Position ${position} is encoded as (${encoded.map(fourDigits).join(", ")}): sin ${mine[0]}, cos ${mine[0]}, sin ${mine[1]} and cos ${mine[1]}. No other row is the same.`,
    7: `The model adds the row to the embedding of the word at that position, number by number. The sum has d = 4 numbers as before. The embedding here is made up; a model learns its own.`,
  }[step];
}

addView({
  id: "steps",
  order: 20,
  title: "Step by step, d = 4",
  intro: `<p>The whole sinusoidal encoding fits into a table of four columns. Build it in eight steps; after the last one you can
    compute any cell with a pocket calculator (set it to radians).</p>`,
  controls: [
    { id: "step", label: "Step", min: 1, max: STEPS.length, value: 1, format: (value) => `${value} of ${STEPS.length}` },
    { id: "base", label: "Base θ", values: [100, 1000, 10000], value: 10000, format: whole, help: "The paper takes 10 000.", when: ({ step }) => step >= 3 },
    { id: "position", label: "Position to follow", min: 0, max: ROWS - 1, value: 2, when: ({ step }) => step >= 4 },
  ],
  setup(page) {
    page.button("← Back", () => page.set({ step: page.state.step - 1 }));
    page.button("Next →", () => page.set({ step: page.state.step + 1 }));
    page.now = page.html(`<div class="now" aria-live="polite"></div>`);
    page.group(2);
    page.grid = page.html(`<div class="scroll" tabindex="0" role="region" aria-label="The table"></div>`);
    page.curves = page.plot({ title: "The four columns as waves", how: "Between the positions the curves show the same functions at fractions of a position.", tall: 300 });
  },
  draw(state, page) {
    const { base, position } = state, step = state.step - 1, spec = { dim: DIM, rope_theta: base }, { omega } = page.lib.frequencies(spec);
    const table = page.lib.sinusoidal(spec, { tokens: ROWS }), encoded = [...table.slice(DIM * position, DIM * position + DIM)];
    const angles = Array.from({ length: 2 * ROWS }, (_, i) => (i >> 1) * omega[i & 1]); // [position][pair]
    page.now.innerHTML = `<h3>${step + 1}. ${STEPS[step][0]}</h3><p class="note">${wordsOf(step, state, { omega, angles, encoded })}</p>`;
    showTable(page, step, position, { table, angles, chosen: position }, encoded);
    showWaves(page, step, position, spec);
  },
});

function showTable(page, step, position, numbers, encoded) {
  const sum = encoded.map((value, c) => Math.fround(value + Math.fround(EMBEDDING[c])));
  const cells = (values, kind) => values.map((value) => [fourDigits(value), kind]);
  const added = [row(`row ${position}`, cells(encoded)), row("embedding", cells(EMBEDDING)), row("sum", cells(sum, "now"))];
  const rows = Array.from({ length: ROWS }, (_, p) => row(p, cellsOf(step, p, numbers), step >= 3 && p === position ? "followed" : ""));
  const names = ["position", "column 0", "column 1", "column 2", "column 3"];
  const pairs = step >= 1 ? `<tr><td></td><th scope="colgroup" colspan="2">pair 0</th><th scope="colgroup" colspan="2">pair 1</th></tr>` : "";
  const thead = head(names).replace("<thead>", `<thead>${pairs}`), body = step === 7 ? added : rows;
  page.grid.innerHTML = `<table class="steps">${thead}<tbody>${body.join("")}</tbody></table>`;
}
function showWaves(page, step, position, spec) {
  const times = Array.from({ length: 101 }, (_, i) => (i * (ROWS - 1)) / 100), waves = page.lib.sinusoidal(spec, { times });
  const wave = (c) => ({ name: `column ${c}: ${c & 1 ? "cosine" : "sine"} of pair ${c >> 1}`, y: times.map((_, i) => waves[DIM * i + c]) });
  page.curves.figure.hidden = step < 4;
  page.curves.show({
    x: times, xName: "position", xMarks: [{ at: position, name: `position ${position}` }], yName: "value", yLimits: [-1.1, 1.1],
    series: (step < 5 ? [0, 1] : [0, 1, 2, 3]).map(wave),
  });
}
