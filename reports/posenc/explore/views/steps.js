// The table of d = 4, built step by step.
const DIM = 4, ROWS = 6;
const EMBEDDING = [0.21, -0.43, 0.65, 0.12]; // of a word, made up
const STEPS = [
  ["Number the positions", "The first word is at position 0. Each position gets one row, and each row has d = 4 columns, which are still empty."],
  ["Make pairs of columns", "Columns 0 and 1 are pair 0. Columns 2 and 3 are pair 1. Each pair shares one frequency."],
  ["Compute the frequencies", ""],
  ["Multiply: position times frequency", ""],
  ["Pair 0: sine and cosine", "The sine of the angle goes into column 0, its cosine into column 1. The angle grows by one radian per row, so the values change fast."],
  ["Pair 1: sine and cosine", "Columns 2 and 3 are the same two functions, of an angle that grows slowly. Neighbouring rows differ little here."],
  ["Read one row", ""],
  ["Add it to the embedding", ""],
];

const text = (value) => value.toFixed(4).replace("-", "−");
const row = (name, cells, kind = "") => `<tr class="${kind}"><th scope="row">${name}</th>${cells.map(([value, kind = ""]) => `<td class="${kind}">${value}</td>`).join("")}</tr>`;
const head = (names) => `<thead><tr>${names.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead>`;
const frequencyOf = (pair, base) => `<span class="formula">ω<sub>${pair}</sub> = ${whole(base)}<sup>−${2 * pair}/${DIM}</sup></span>`;

// What a step shows of the table, and what is new in it.
function cellsOf(step, position, { table, angles, chosen }) {
  const mark = (now) => (now ? "now" : "");
  if (step < 2) return Array.from({ length: DIM }, () => ["·", "empty"]);
  if (step === 2) return Array.from({ length: DIM }, (_, c) => [`ω<sub>${c >> 1}</sub>`, "empty"]);
  return Array.from({ length: DIM }, (_, c) => {
    const pair = c >> 1;
    if (step < 4 + pair) return [text(angles[2 * position + pair]), step === 3 ? "now" : "empty"];
    return [text(table[DIM * position + c]), mark(step === 4 + pair || (step >= 6 && position === chosen))];
  });
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
  draw({ step, base, position }, page) {
    const spec = { dim: DIM, rope_theta: base }, { omega } = page.lib.frequencies(spec);
    const table = page.lib.sinusoidal(spec, { tokens: ROWS }), at = step - 1;
    const angles = Array.from({ length: 2 * ROWS }, (_, i) => (i >> 1) * omega[i & 1]);
    const mine = [...table.slice(DIM * position, DIM * position + DIM)], sum = mine.map((value, c) => Math.fround(value + Math.fround(EMBEDDING[c])));
    const [title, words] = STEPS[at];
    const more = {
      2: `${frequencyOf(0, base)} = 1 and ${frequencyOf(1, base)} = ${text(omega[1])} radians per position. The exponent runs from 0 towards −1 over the pairs.`,
      3: `Each cell holds the angle of its row and pair. Position ${position} times ω<sub>1</sub> is ${position} × ${text(omega[1])} = ${text(angles[2 * position + 1])} radians.`,
      6: `Position ${position} is encoded as (${mine.map(text).join(", ")}): sin ${text(angles[2 * position])}, cos ${text(angles[2 * position])}, sin ${text(angles[2 * position + 1])} and cos ${text(angles[2 * position + 1])}. No other row is the same.`,
      7: `The model adds the row to the embedding of the word at that position, number by number. The sum has d = 4 numbers as before. The embedding here is made up; a model learns its own.`,
    }[at];
    page.now.innerHTML = `<h3>${step}. ${title}</h3><p class="note">${words || more}</p>`;
    const names = ["position", "column 0", "column 1", "column 2", "column 3"];
    const pairs = at >= 1 ? `<tr><td></td><th scope="colgroup" colspan="2">pair 0</th><th scope="colgroup" colspan="2">pair 1</th></tr>` : "";
    const body = Array.from({ length: ROWS }, (_, p) => row(p, cellsOf(at, p, { table, angles, chosen: position }), at >= 3 && p === position ? "followed" : "")).join("");
    const added = row(`row ${position}`, mine.map((value) => [text(value)])) + row("embedding", EMBEDDING.map((value) => [text(value)])) + row("sum", sum.map((value) => [text(value), "now"]));
    const times = Array.from({ length: 101 }, (_, i) => (i * (ROWS - 1)) / 100), waves = page.lib.sinusoidal(spec, { times });
    page.curves.figure.hidden = at < 4;
    page.curves.show({
      x: times, xName: "position", yName: "value", yLimits: [-1.1, 1.1], xMarks: [{ at: position, name: `position ${position}` }],
      series: Array.from({ length: at < 5 ? 2 : 4 }, (_, c) => ({ name: `column ${c}: ${c & 1 ? "cosine" : "sine"} of pair ${c >> 1}`, y: times.map((_, i) => waves[DIM * i + c]) })),
    });
    page.grid.innerHTML = `<table class="steps">${head(names).replace("<thead>", `<thead>${pairs}`)}<tbody>${at === 7 ? added : body}</tbody></table>`;
  },
});
