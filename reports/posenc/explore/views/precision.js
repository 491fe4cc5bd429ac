// Precision: how far the angles of f32 and the positions of bf16 are from the exact ones, by position and by pair.
const NUMERICS = ["hf_f32", "ggml_f32", "torch_exp_f32"];
const ROUNDED = "positions in bf16";
const CURVES = [...NUMERICS, ROUNDED];
const UNITS = { abs: "absolute", ulp: "in ulp" };
const LAST_OCTAVE = 26; // positions are below 2^26
const FRAME_MS = 20, CHUNK = 4; // work for one frame, and positions between two looks at the clock
const ROWS = 8; // of the table of stored positions
const TYPES = { bf16: 256, f16: 2048, f32: 2 ** 24 }; // up to there every position is a value of the type
const LIMITS = [0.001, 0.01]; // errors whose first position the scan finds

// ---- models ----
const models = () => explore.data.precision || [];
const keyOf = ({ name, layers }) => (layers ? `${name}/${layers}` : name);
const titleOf = ({ title, layers }) => (layers ? `${title}, ${layers} attention` : title);
const modelOf = ({ which }) => models().find((model) => keyOf(model) === which);
const lengths = () => [...new Set(models().map((model) => model.length))].sort((a, b) => a - b);
function specOf(state) {
  const model = modelOf(state);
  if (!model) return { dim: state.dim, rope_theta: state.base };
  return { ...model.spec, ...(["dynamic", "longrope"].includes(model.spec.scaling) ? { seq_len: model.length } : {}) };
}
const lengthOf = (state) => modelOf(state)?.length || state.position + 1;
// The numerics that the library has for these frequencies: some have no scalings.
function numericsOf(lib, spec) {
  return NUMERICS.filter((numerics) => {
    try {
      return lib.frequencies({ ...spec, numerics });
    } catch {
      return false;
    }
  });
}

// ---- errors ----
const ulpOf = (value) => 2 ** Math.max(Math.floor(Math.log2(Math.abs(value))) - 23, -149);
const inBf16 = (lib, positions) => Array.from(lib.roundTo("bf16", positions));
// The tables of some positions: exact, and each of the others.
function tablesOf(lib, spec, names, positions) {
  const table = (numerics, at) => lib.ropeTable({ ...spec, numerics }, { positions: at }), exact = table("exact", positions);
  const other = (name) => (name === ROUNDED ? table("exact", inBf16(lib, positions)) : table(name, positions));
  return { exact, others: names.map((name) => [name, other(name)]) };
}
// The larger error of a cosine and its sine, in both units.
function errorOf(exact, other, at) {
  const [cos, sin] = ["cos", "sin"].map((part) => {
    const value = exact[part][at], abs = Math.abs(other[part][at] - value);
    return { abs, ulp: value ? abs / ulpOf(value) : 0 };
  });
  return { abs: Math.max(cos.abs, sin.abs), ulp: Math.max(cos.ulp, sin.ulp) };
}
// The largest error of a row, in both units.
function largest(exact, other, row) {
  const found = { abs: 0, ulp: 0 };
  for (let i = 0; i < exact.pairs; i++) {
    const one = errorOf(exact, other, row * exact.pairs + i);
    if (one.abs > found.abs) found.abs = one.abs;
    if (one.ulp > found.ulp) found.ulp = one.ulp;
  }
  return found;
}
// Positions of the curves: odd ones, four in each octave, and the last one of each model. Every second octave comes first.
function sampled() {
  const ends = lengths().map((length) => length - 1);
  const grid = Array.from({ length: 4 * LAST_OCTAVE }, (_, k) => Math.floor(1.1 * 2 ** (k / 4)) | 1);
  const order = [0, 2, 1, 3].flatMap((part) => grid.filter((_, k) => k % 4 === part));
  return [...new Set([...ends, 2 ** LAST_OCTAVE - 1, ...order])];
}
// The errors of a choice by position: found.get(position)[name]. They are computed bit by bit, so that a slider stays quick.
class Run {
  constructor(lib, spec) {
    Object.assign(this, { lib, spec, names: [...numericsOf(lib, spec), ROUNDED], todo: sampled(), found: new Map() });
  }
  advance() {
    const begun = performance.now();
    while (this.todo.length && performance.now() - begun < FRAME_MS) {
      const positions = this.todo.splice(0, CHUNK), { exact, others } = tablesOf(this.lib, this.spec, this.names, positions);
      const errors = (row) => Object.fromEntries(others.map(([name, table]) => [name, largest(exact, table, row)]));
      positions.forEach((p, row) => this.found.set(p, errors(row)));
    }
  }
  get positions() { return [...this.found.keys()].sort((a, b) => a - b); }
}

// ---- what a type holds ----
// The distance from a power of two to the next value of a type.
function spacing(lib, type, power) {
  for (let step = 2 ** -30; step <= power; step *= 2)
    if (Math.fround(power + step) > power && lib.roundTo(type, [power + step])[0] > power) return step;
  return NaN;
}
// How many of the positions 0 to n - 1 a type keeps apart.
function distinct(lib, type, n) {
  let last = lib.roundTo(type, [n - 1])[0], count = 1; // 0
  if (last === Infinity) [last, count] = [65504, 2];
  for (let power = 1; power <= last; power *= 2) {
    const step = Math.max(1, spacing(lib, type, power)), end = Math.min(2 * power - step, last);
    count += Math.floor((end - power) / step) + 1;
  }
  return count;
}

// ---- the scan: from which position on a numerics mode is off ----
class Scan {
  // Scans the positions below a length; first.get(name) has a position for each of LIMITS, or null.
  constructor({ lib, spec, names }, length) {
    const first = new Map(names.filter((name) => name !== ROUNDED).map((name) => [name, LIMITS.map(() => null)]));
    Object.assign(this, { lib, spec, length, at: 0, first });
  }
  get open() { return [...this.first].filter(([, found]) => found.includes(null)); }
  step() { // returns false at the end
    const rows = { tokens: Math.min(64, this.length - this.at), first: this.at }, open = this.open;
    if (rows.tokens <= 0 || !open.length) return false;
    const exact = this.lib.ropeTable(this.spec, rows);
    for (const [name, found] of open) {
      const other = this.lib.ropeTable({ ...this.spec, numerics: name }, rows);
      for (let row = 0; row < rows.tokens; row++) {
        const error = Math.fround(largest(exact, other, row).abs);
        LIMITS.forEach((limit, k) => { if (found[k] === null && error > Math.fround(limit)) found[k] = this.at + row; });
      }
    }
    this.at += rows.tokens;
    return true;
  }
  words() {
    const cell = (position) => (position === null ? (this.at < this.length && this.open.length ? "…" : "none") : whole(position));
    const row = ([name, found]) => `<tr><th scope="row"><code>${name}</code></th>${found.map((position) => `<td>${cell(position)}</td>`).join("")}</tr>`;
    return `<table><thead><tr><th scope="col">first error above</th>${LIMITS.map((limit) => `<th scope="col">${limit}</th>`).join("")}</tr></thead>
      <tbody>${[...this.first].map(row).join("")}</tbody></table>`;
  }
}

addView({
  id: "precision",
  order: 70,
  title: "Precision",
  intro: `<p>An angle is a position times a frequency. Most code computes this product in float32, which has 24 bits. At position 100 000 the position
    alone takes 17 of them, so the angle can be off in the third decimal. The library's own mode, <code>exact</code>, rounds once, at the end. Here you see
    how far the others are from it, and where positions in bf16 stop being distinct.</p>
    <p>Choose a model, then move the position.</p>`,
  get controls() {
    const ends = [...lengths(), ...Array.from({ length: LAST_OCTAVE }, (_, k) => 2 ** (k + 1))].map((length) => length - 1);
    const positions = [...new Set(ends)].sort((a, b) => a - b);
    const own = (state) => !modelOf(state), some = Object.fromEntries(models().map((model) => [keyOf(model), titleOf(model)]));
    const which = { id: "which", label: "Model", options: { ...some, own: "Your own values" }, value: "llama-3.1-8b" in some ? "llama-3.1-8b" : "own" };
    return [
      ...(models().length ? [which] : []),
      { id: "position", label: "Position", values: positions, value: 131071, format: whole },
      { id: "unit", label: "Error", options: UNITS, value: "abs",
        help: "An ulp is the distance to the next f32. Near zero it is tiny, so errors in ulp are huge there." },
      { id: "dim", label: "Channels", values: [32, 64, 96, 128, 256], value: 128, when: own },
      { id: "base", label: "Base θ", values: [10000, 100000, 500000, 1000000, 10000000], value: 10000, format: whole, when: own },
    ];
  },
  setup(page) {
    page.scanner = page.animate("Find the first error", () => scanOn(page));
    page.says = page.note();
    page.curve = page.plot({
      title: "Largest error by position", tall: 380, pick: (position) => page.set({ position }),
      how: `The larger error of cosine and sine, the largest over all pairs, against <code>exact</code>. Both axes are logarithmic: at
        ten times the position, the error is about ten times larger. Dots at the bottom are the last positions of models; the cursor names them.`,
    });
    page.group(2);
    page.pairs = page.plot({
      title: "Error of each pair at this position",
      how: "Fast pairs have large angles, so their errors are large. A missing point means the same bits as <code>exact</code>.",
    });
    page.near = page.figure("Positions from here on, as each type stores them",
      "“Same” means that a token has the position of the one before it, so the encoding cannot tell the two apart.");
    page.near.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Stored positions" }));
    page.group();
    page.steps = page.plot({
      title: "Distance between positions that a type can store",
      how: "1 means that every position is distinct. From the marked positions on (256, 2048 and 2²⁴) neighbours share a value. f16 ends at 65 504.",
    });
    page.kept = page.note();
    page.scanned = page.html(`<div aria-live="polite"></div>`);
    page.table = makeModels(page);
    page.html(`<p class="note">These errors are facts about numbers. A model learns with the angles that its code computes, so for a model that was trained
      with <code>hf_f32</code> these are the right ones. The effect of other angles on its answers can only be measured with the model. For the
      expert: <code>hf_f32</code> rounds the frequency and the product to 24 bits, so an angle pω is off by a few times pω × 2⁻²⁴ at most.</p>`);
    drawSteps(page);
  },
  draw(state, page) {
    const spec = specOf(state), key = JSON.stringify(spec), seen = JSON.stringify(state);
    const isOtherModel = page.last && page.last.which !== state.which && page.last.position === state.position;
    if (isOtherModel && modelOf(state)) page.set({ position: lengthOf(state) - 1 });
    page.last = { ...state };
    if (page.key !== key) {
      Object.assign(page, { key, run: new Run(page.lib, spec), scan: null });
      page.scanner.stop();
      page.scanned.replaceChildren();
    }
    page.run.advance();
    drawCurve(page, state);
    if (page.run.todo.length) page.set({}, true); // the rest in the next frames
    if (page.seen === seen) return;
    page.seen = seen;
    drawPairs(page, state);
    drawNear(page, state);
  },
});

function drawCurve(page, { unit, position, ...state }) {
  const { found, names, positions } = page.run, abs = unit === "abs", model = modelOf(state);
  const all = positions.flatMap((p) => names.map((name) => found.get(p)[name][unit]));
  const limits = abs ? [1e-9, 40] : [0.2, Math.max(1e3, ...all) * 20], ends = new Set(lengths().map((length) => length - 1));
  const of = (name) => positions.map((p) => found.get(p)[name][unit] || null);
  const rounding = page.lib.frequencies(page.run.spec).attentionFactor > 1 ? 2 ** -24 : 2 ** -25;
  const owners = (p) => models().filter(({ length }) => length - 1 === p).map(titleOf);
  const words = (p) => names.map((name) => `${name} ${digits(found.get(p)[name][unit], 3)}`).join("; ");
  const whose = (list) => (list.length ? ` (last of ${list.slice(0, 2).join(", ")}${list.length > 2 ? ` and ${list.length - 2} more` : ""})` : "");
  const dots = ends.size ? [{ name: "last position of a model", y: positions.map((p) => (ends.has(p) ? limits[0] * 1.6 : null)), points: 3 }] : [];
  const marks = model ? [{ at: model.length - 1, name: `${model.title}: ${whole(model.length)}` }] : [];
  page.curve.show({
    x: positions, xLog: true, yLog: true, yLimits: limits, xName: "position", yName: abs ? "error" : "error in ulp",
    series: [...names.map((name) => ({ name, y: of(name), get color() { return theme().series[CURVES.indexOf(name)]; } })), ...dots],
    yMarks: [{ at: abs ? rounding : 0.5, name: "exact: one rounding" }],
    xMarks: model && position === model.length - 1 ? marks : [...marks, { at: position, name: "" }],
    read: (i) => `Position ${whole(positions[i])}${whose(owners(positions[i]))}: ${words(positions[i])}`,
  });
}

function drawPairs(page, { position, unit, ...state }) {
  const { lib, run } = page, { exact, others } = tablesOf(lib, run.spec, run.names, [position]), model = modelOf(state);
  const errors = others.map(([name, table]) => [name, Array.from({ length: exact.pairs }, (_, i) => errorOf(exact, table, i))]);
  page.pairs.show({
    xName: "pair", yName: unit === "abs" ? "error" : "error in ulp", yLog: true,
    series: errors.map(([name, list]) => ({ name, y: list.map((one) => one[unit] || null), get color() { return theme().series[CURVES.indexOf(name)]; } })),
    read: (i) => `Pair ${i}: ${errors.map(([name, list]) => `${name} ${digits(list[i][unit], 3)}`).join("; ")}`,
  });
  const most = others.map(([name, table]) => `${digits(largest(exact, table, 0).abs, 2)} ${name === ROUNDED ? `with ${name}` : `in <code>${name}</code>`}`);
  const lacking = NUMERICS.filter((name) => !run.names.includes(name)).map((name) => `<code>${name}</code>`).join(" and ");
  const forms = model?.numerics === "exact" ? "forms its angles in f64" : `computes <code>${model?.numerics}</code>`;
  const trained = model?.numerics ? ` The code that ${model.title} was published with ${forms}.` : "";
  const ramp = run.spec.truncate === false && run.names.includes("ggml_f32");
  const rounded = ramp ? " Here ggml has other frequencies: it rounds the ramp of YaRN to whole pairs, which this model does not." : "";
  const lack = lacking ? ` ${lacking} ${lacking.includes(" and ") ? "do" : "does"} not have this scaling.` : "";
  page.says.show(`At position ${whole(position)}, the largest error of a cosine or sine is ${most.slice(0, -1).join(", ")} and ${most[most.length - 1]}.
    The mode <code>exact</code> rounds each value once, which costs at most about ${digits(2 ** -25, 2)} below 1, at every
    position.${trained}${lack}${rounded}`);
}

// ---- positions in types ----
function drawNear(page, { position, ...state }) {
  const { lib } = page, types = Object.keys(TYPES), positions = Array.from({ length: ROWS }, (_, k) => position + k);
  const stored = types.map((type) => lib.roundTo(type, positions));
  const text = (value) => (Number.isFinite(value) ? whole(value) : "infinite");
  const cells = (k) => stored.map((list) => (k && list[k] === list[k - 1] ? `<td class="now">same</td>` : `<td>${text(list[k])}</td>`)).join("");
  page.near.querySelector("div").innerHTML = `<table><thead><tr><th scope="col">position</th>
    ${types.map((type) => `<th scope="col">${type}</th>`).join("")}</tr></thead>
    <tbody>${positions.map((p, k) => `<tr><th scope="row">${whole(p)}</th>${cells(k)}</tr>`).join("")}</tbody></table>`;
  const length = lengthOf({ position, ...state }), [bf16, f16, f32] = types.map((type) => distinct(lib, type, length));
  const all = (n) => (n === length ? "all" : whole(n));
  page.kept.show(`bf16 distinguishes ${all(bf16)} of the positions 0 to ${whole(length - 1)}, f16 ${all(f16)} and f32 ${all(f32)}.
    bf16 has 8 significant bits, f16 has 11 and f32 has 24.${length > 65520 ? " Positions from 65\u202f520 on are infinite in f16." : ""}`);
}
function drawSteps(page) {
  const x = Array.from({ length: LAST_OCTAVE + 1 }, (_, k) => 2 ** k), types = Object.keys(TYPES);
  const most = (type) => (type === "f16" ? 32768 : 2 ** (LAST_OCTAVE - 1)); // where the last step begins; it ends at the next power
  const distance = (type, power) => (power > 2 * most(type) ? null : Math.max(1, spacing(page.lib, type, Math.min(power, most(type)))));
  page.steps.show({
    x, xLog: true, yLog: true, yLimits: [0.7, 2 ** (LAST_OCTAVE - 6)], xName: "position", yName: "distance",
    xMarks: Object.values(TYPES).map((at) => ({ at, name: at > 1e6 ? "2²⁴" : String(at) })),
    series: types.map((name) => ({ name, y: x.map((power) => distance(name, power)), steps: true })),
    read: (i) => `From position ${whole(x[i])} on: ${types.map((type) => `${type} ${x[i] > most(type) ? "ends" : digits(distance(type, x[i]))}`).join(", ")}`,
  });
}

// ---- the scan, and the table of models ----
// The fields of a problem, as the program takes them.
const problemOf = (spec) => Object.entries(spec).map(([name, value]) => `${name === "dim" ? "rotary_dim" : name}=${value}`).join(" ");
function scanOn(page) {
  const { state } = page, begun = performance.now();
  page.scan ||= new Scan(page.run, lengthOf(state));
  let more = true;
  while (more && performance.now() - begun < FRAME_MS) more = page.scan.step();
  const { scan, run } = page, command = `posenc table drift --problem 'rope_table numerics=hf_f32 ${problemOf(run.spec)} tokens=${scan.length}'`;
  const runs = !more && !run.spec.long_factor, so = `Computed so far: ${whole(scan.at)} of ${whole(scan.length)} positions, one by one.`;
  const words = more ? so : `The first ${whole(scan.at)} positions were computed, one by one${runs ? ". This command does it for one mode:" : "."}`;
  page.scanned.innerHTML = `<h3>The first error</h3>${scan.words()}<p class="note" style="margin-top: 0.6rem">${words}</p>${runs ? `<pre tabindex="0">${command}</pre>` : ""}`;
  return more;
}
function makeModels(page) {
  if (!models().length) return null;
  const shown = CURVES.filter((name) => name !== "torch_exp_f32"), names = ["model", "positions", ...shown, "distinct in bf16"];
  const made = page.html(`<details><summary>Every model at its last position</summary>
    <div class="scroll" tabindex="0" role="region" aria-label="Models at their last positions"><table>
    <thead><tr>${names.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead><tbody></tbody></table></div></details>`);
  const body = made.querySelector("tbody"), left = models().slice();
  const fill = () => { // one a frame
    const model = left.shift();
    if (!model) return;
    const spec = specOf({ which: keyOf(model) }), all = [...numericsOf(page.lib, spec), ROUNDED];
    const { exact, others } = tablesOf(page.lib, spec, all, [model.length - 1]);
    const found = new Map(others.map(([name, table]) => [name, digits(largest(exact, table, 0).abs, 2).replace(/ /g, "\u00a0")]));
    const cells = [whole(model.length), ...shown.map((name) => found.get(name) || "–"), whole(distinct(page.lib, "bf16", model.length))];
    body.insertAdjacentHTML("beforeend", `<tr><th scope="row">${titleOf(model)}</th>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`);
    requestAnimationFrame(fill);
  };
  made.addEventListener("toggle", () => { if (made.open && !body.childElementCount) fill(); });
  return made;
}
