// Context extension: what each scaling does to the frequencies of the pairs, to their angles and to the similarity.
const FAMILIES = {
  linear: "linear (position interpolation)", ntk: "NTK", dynamic: "dynamic NTK", yarn: "YaRN", llama3: "Llama 3", longrope: "LongRoPE",
  proportional: "proportional", resonance: "resonance", resonance_yarn: "resonance YaRN",
};
const FULL_TURN = 2 * Math.PI;
const SIZES = [1024, 2048, 4096, 8192, 16384, 32768, 65536];
const MULTIPLES = [1, 2, 4, 8, 16, 32, 40, 64];
const DIALS = 6, NEAR = 1e-9, EXCEEDS = 1e-3; // pairs as dials; relative differences that are none, and that count as more
const FRAME_MS = 15, CHUNK = 8; // work for one frame, and offsets between two looks at the clock

// ---- models and values of your own ----
const scaled = () => (explore.data.scaling || []).filter((model) => model.spec.scaling);
const modelOf = ({ which }) => scaled().find((model) => model.name === which);
const own = (...families) => (state) => !modelOf(state) && (!families.length || families.includes(state.which));
// Divisors of LongRoPE come from a search: here those of a model, stretched over any number of pairs.
const searched = () => scaled().find((model) => model.spec.scaling === "longrope");
function stretched(list, pairs) {
  return Array.from({ length: pairs }, (_, i) => {
    const at = pairs > 1 ? (i * (list.length - 1)) / (pairs - 1) : 0, k = Math.min(Math.floor(at), list.length - 2);
    return list[k] + (at - k) * (list[k + 1] - list[k]);
  });
}
function ownSpec({ which, dim, base, original, factor, low, high, slow, fast, share }) {
  const yarn = { factor, original_max_position_embeddings: original, beta_slow: slow, beta_fast: fast };
  const lists = () => ({ short_factor: stretched(searched().spec.short_factor, dim / 2), long_factor: stretched(searched().spec.long_factor, dim / 2) });
  const more = {
    linear: () => ({ factor }), ntk: () => ({ factor }), dynamic: () => ({ factor, max_position_embeddings: original }), yarn: () => yarn,
    llama3: () => ({ factor, original_max_position_embeddings: original, low_freq_factor: low, high_freq_factor: high }),
    longrope: () => ({ factor, original_max_position_embeddings: original, ...lists() }),
    proportional: () => ({ factor, partial_rotary_factor: share }), resonance: () => ({}), resonance_yarn: () => yarn,
  };
  return { dim, rope_theta: base, scaling: which, ...more[which]() };
}
// The context that the scaling begins with. Files of models with "linear" do not state it.
function originalOf({ spec, length }) {
  return spec.original_max_position_embeddings || spec.max_position_embeddings || (spec.scaling === "linear" ? length / spec.factor : length);
}
// Everything about a choice: the spec after and before, the original context, and the sequence that is looked at.
function choiceOf(state) {
  const model = modelOf(state), spec = { ...(model ? model.spec : ownSpec(state)) }, original = model ? originalOf(model) : state.original;
  const now = original * state.multiple;
  if (["dynamic", "longrope"].includes(spec.scaling)) spec.seq_len = now;
  return { model, spec, original, now, before: { dim: spec.dim, rope_theta: spec.rope_theta }, factor: spec.factor || 1 };
}
// The sequence that a choice begins with: the length of the model, or what its factor is for.
function multipleOf(state) {
  const model = modelOf(state), longer = model ? model.length / originalOf(model) : 1;
  return longer > 1 ? longer : Math.max(2, model ? model.spec.factor || 1 : state.factor);
}

// ---- what a scaling does, in words ----
const turns = (n) => (n === 1 ? "1 turn" : `${digits(n)} turns`);
const SAYS = {
  linear: ({ factor }) => `Position interpolation divides every frequency by ${digits(factor)}. Position ${digits(factor)} × p has the angles that position p
    had before, and neighbours are ${digits(factor)} times closer together.`,
  ntk: ({ factor }) => `NTK scaling enlarges the base. Pair 0 keeps its frequency, the last pair is divided by ${digits(factor)}, and the divisor of the
    others grows smoothly between.`,
  dynamic: ({ original, now }, { last }) => `Dynamic NTK changes nothing up to ${whole(original)} tokens and enlarges the base beyond, the more the longer the
    sequence. At ${whole(now)} tokens the last pair is divided by ${digits(last)}.`,
  yarn: ({ spec, original, factor }) => `YaRN keeps pairs with more than ${turns(spec.beta_fast || 32)} within ${whole(original)} positions and divides those
    with fewer than ${digits(spec.beta_slow || 1)} by ${digits(factor)}. Between them the divisor follows a ramp.`,
  llama3: ({ spec, original, factor }) => `Llama 3 keeps pairs with more than ${turns(spec.high_freq_factor)} within ${whole(original)} positions and divides
    those with fewer than ${digits(spec.low_freq_factor)} by ${digits(factor)}. It blends the pairs between them.`,
  longrope: ({ original, now, model }, { least, most }) => `LongRoPE gives each pair a divisor of its own, found by search. Up to ${whole(original)} tokens one list
    holds, beyond that another: at ${whole(now)} tokens the divisors go from ${digits(least)} to ${digits(most)}.
    ${model ? "" : `They are those of ${searched().title}, stretched over the pairs.`}`,
  proportional: (_, { rotating, pairs }) => `Proportional RoPE rotates only the first ${rotating} of ${pairs} pairs. The others have frequency 0, so the
    position does not change them at any length.`,
  resonance: (_, { shift }) => `Resonance rounds each wavelength to a whole number of positions, so that a pair repeats exactly. It changes a frequency by
    ${digits(100 * shift, 2)} % at most, and does not slow any pair down for a longer context.`,
  resonance_yarn: (choice, facts) => `${SAYS.yarn(choice, facts)} Every wavelength is then rounded to a whole number of positions.`,
};
// Numbers about frequencies before (w0) and after (w1). Slow pairs do not complete a turn within the original context.
function factsOf({ spec, original, now }, w0, w1) {
  const divisors = Array.from(w0, (w, i) => w / w1[i]), finite = divisors.filter(Number.isFinite), pairs = w0.length;
  const slow = [...w0.keys()].filter((i) => w0[i] * original < FULL_TURN);
  const beyond = (w) => slow.filter((i) => w[i] * now > w0[i] * original * (1 + EXCEEDS));
  const greatest = Math.max(...finite), kept = divisors.filter((one) => one <= 1 + NEAR).length;
  const divided = divisors.filter((one) => one >= greatest * (1 - NEAR)).length;
  return {
    divisors, pairs, slow: slow.length, without: beyond(w0).length, withIt: beyond(w1).length, rotating: finite.length, kept, divided,
    last: divisors[pairs - 1], least: Math.min(...finite), most: greatest, scaling: spec.scaling,
    shift: Math.max(...finite.map((one) => Math.abs(1 / one - 1))),
  };
}
const exceeds = (n) => (n === 1 ? "1 pair exceeds its" : `${n} pairs exceed their`);
function counted({ scaling, pairs, kept, divided, most }) {
  if (!["yarn", "llama3"].includes(scaling) || most <= 1 + NEAR) return "";
  return ` ${kept} of ${pairs} pairs are kept, ${pairs - kept - divided || "none"} lie between, and ${divided} are divided by ${digits(most)}.`;
}
function wordsOfFactor(attention) {
  if (Math.abs(attention - 1) < NEAR) return "The attention factor is 1: cosines and sines keep their size.";
  const square = digits(attention * attention, 5);
  return `The attention factor is ${digits(attention, 5)}: it multiplies cosines and sines, so scores become ${square} times as large.`;
}
function stated({ model, spec, original }) {
  if (!model) return "";
  const quotient = `${whole(model.length)} / ${digits(spec.factor)} = ${whole(original)}`;
  const unknown = spec.scaling === "linear" ? ` but no original context, so ${quotient} stands for it here` : "";
  const part = model.layers ? ` The scaling is for its layers of ${model.layers} attention.` : "";
  return ` The file of ${model.title} states ${whole(model.length)} positions${unknown}.${part}`;
}
function unseen({ original, now }, { slow, without, withIt, pairs, most, scaling }) {
  if (slow === 0) return `Every pair completes a turn within ${whole(original)} positions, so no length brings an angle that is far from all earlier ones.`;
  const first = `${slow} of ${pairs} pairs ${slow === 1 ? "does" : "do"} not complete a turn within ${whole(original)} positions.`;
  if (now === original) return `${first} Make the sequence longer to see where their angles go.`;
  const short = withIt && !["proportional", "resonance"].includes(scaling) && now / original > most * (1 + NEAR);
  const reason = short ? ` The sequence is ${digits(now / original)} times as long, and the largest divisor is ${digits(most)}.` : "";
  return `${first} At ${whole(now)} positions, ${exceeds(without)} largest original angle by more than 0.1 % before the scaling, and
    ${withIt === 0 ? "none does" : whole(withIt)} after it.${reason}`;
}

// ---- dials: how far a pair rotates ----
function arc(radius, turns, color, width) {
  if (turns >= 1) return svg("circle", { cx: 42, cy: 42, r: radius, fill: "none", stroke: color, "stroke-width": width });
  const angle = turns * FULL_TURN, [x, y] = [42 + radius * Math.sin(angle), 42 - radius * Math.cos(angle)];
  const d = `M42 ${42 - radius}A${radius} ${radius} 0 ${turns > 0.5 ? 1 : 0} 1 ${x.toFixed(2)} ${y.toFixed(2)}`;
  return svg("path", { d, fill: "none", stroke: color, "stroke-width": width });
}
function dial(i, turns, { ink, line, series }) {
  const colors = [ink, series[0], series[1]];
  const rings = [16, 26, 36].flatMap((radius, k) => [arc(radius, 1, line, 7), arc(radius, turns[k], colors[k], 7)]);
  const words = ["original", "before", "after"].map((name, k) => `${digits(turns[k], 3)} ${name}`);
  const square = (color) => svg("rect", { width: 10, height: 10, rx: 2, fill: color });
  const mark = (color) => svg("svg", { viewBox: "0 0 10 10", class: "mark", "aria-hidden": "true" }, square(color));
  const lines = words.map((text, k) => element("span", {}, mark(colors[k]), text));
  return element("li", {}, svg("svg", { viewBox: "0 0 84 84", "aria-hidden": "true" }, ...rings), element("strong", {}, `pair ${i}`), ...lines);
}
// The slowest pairs, from the first one with fewer than four turns: a few at equal distances, the chosen one in the place of the nearest.
function dialled(w0, original, chosen) {
  const n = w0.length, slow = [...w0.keys()].find((i) => w0[i] * original < 4 * FULL_TURN) ?? n;
  const first = Math.min(slow, Math.max(0, n - DIALS)), steps = Math.min(DIALS, n - first) - 1;
  const some = Array.from({ length: steps + 1 }, (_, k) => Math.round(first + (k * (n - 1 - first)) / Math.max(steps, 1)));
  const nearest = some.reduce((best, one) => (Math.abs(one - chosen) < Math.abs(best - chosen) ? one : best));
  return some.map((one) => (one === nearest ? chosen : one));
}

// ---- similarity: the mean of the cosines of an offset, times the square of the attention factor ----
const OFFSETS = [...new Set(Array.from({ length: 96 }, (_, k) => Math.round(2 ** (k / 4))))];
// The curve of some frequencies, computed bit by bit so that a slider stays quick.
class Similarity {
  constructor(lib, spec) {
    Object.assign(this, { lib, spec, attention: lib.frequencies(spec).attentionFactor, values: [] });
  }
  get done() { return this.values.length === OFFSETS.length; }
  advance(until) {
    while (!this.done && performance.now() < until) {
      const positions = OFFSETS.slice(this.values.length, this.values.length + CHUNK);
      const { cos, pairs } = this.lib.ropeTable(this.spec, { positions });
      const mean = (row) => cos.subarray(row * pairs, (row + 1) * pairs).reduce((sum, one) => sum + one, 0) / pairs;
      positions.forEach((_, row) => this.values.push(mean(row) * this.attention));
    }
  }
}
const curves = new Map(); // those of the last choices
function curveOf(lib, spec) {
  const key = JSON.stringify(spec), found = curves.get(key) || new Similarity(lib, spec);
  curves.delete(key);
  curves.set(key, found);
  if (curves.size > 16) curves.delete(curves.keys().next().value);
  return found;
}

addView({
  id: "scaling",
  order: 60,
  title: "Longer contexts",
  intro: `<p>A model with RoPE is trained on sequences of some length, its original context. A longer sequence brings angles that the slow pairs
    never had. A scaling changes the frequencies so that these pairs rotate more slowly. Each family does it in its own way.</p>
    <p>Choose a model to see the values of its file, or a family with sliders. Then lengthen the sequence.</p>`,
  get controls() {
    const models = Object.fromEntries(scaled().map(({ name, title, spec }) => [name, `${title}: ${FAMILIES[spec.scaling]}`]));
    const known = Object.entries(FAMILIES).filter(([name]) => name !== "longrope" || searched());
    const families = Object.fromEntries(known.map(([name, text]) => [name, `Your own values: ${text}`]));
    const some = own("linear", "ntk", "dynamic", "yarn", "llama3", "longrope", "proportional", "resonance_yarn");
    return [
      { id: "which", label: "Model or family", options: { ...models, ...families }, value: "llama-3.1-8b" in models ? "llama-3.1-8b" : "llama3" },
      { id: "multiple", label: "Sequence", values: MULTIPLES, value: 16, format: (value, state) => whole(choiceOf(state).now),
        help: "tokens, as a multiple of the original context" },
      { id: "pair", label: "Pair", min: 0, max: (state) => choiceOf(state).spec.dim / 2 - 1, value: 40 },
      { id: "axis", label: "First plot", options: { wavelength: "wavelengths", frequency: "frequencies" }, value: "wavelength" },
      { id: "dim", label: "Channels", values: [32, 64, 96, 128, 256], value: 128, when: own(), help: "rotary_dim: two for each pair" },
      { id: "base", label: "Base θ", values: [10000, 100000, 500000, 1000000, 10000000], value: 500000, format: whole, when: own() },
      { id: "original", label: "Original", values: SIZES, value: 8192, format: whole, when: own(), help: "context before the scaling" },
      { id: "factor", label: "Factor", values: MULTIPLES.slice(1), value: 8, when: some },
      { id: "low", label: "Divided below", min: 0.5, max: 4, step: 0.5, value: 1, when: own("llama3"), help: "low_freq_factor, in turns" },
      { id: "high", label: "Kept above", min: (state) => state.low, max: 16, step: 0.5, value: 4, when: own("llama3"), help: "high_freq_factor, in turns" },
      { id: "slow", label: "Divided below", min: 1, max: 8, value: 1, when: own("yarn", "resonance_yarn"), help: "beta_slow, in turns" },
      { id: "fast", label: "Kept above", min: (state) => state.slow, max: 64, value: 32, when: own("yarn", "resonance_yarn"), help: "beta_fast, in turns" },
      { id: "share", label: "Share that rotates", min: 0.1, max: 1, step: 0.05, value: 0.25, when: own("proportional"), help: "partial_rotary_factor" },
    ];
  },
  setup(page) {
    const pick = (pair) => page.set({ pair });
    page.says = page.note();
    page.group(2);
    page.before = page.plot({
      title: "Each pair, before and after", pick,
      how: `The axis is logarithmic. The dotted lines are the lengths of the sequences: a pair whose wavelength is above a line (its frequency below it)
        does not complete a turn.`,
    });
    page.ratio = page.plot({
      title: "Divisor of each frequency", pick, how: "1 means that the pair keeps its frequency. Pairs that do not rotate at all have no point here.",
    });
    page.group();
    page.dials = page.figure("How far the slow pairs rotate");
    page.dials.append(element("ul", { class: "dials" }));
    page.angles = page.note();
    page.curve = page.plot({
      title: "Similarity by offset, before and after",
      how: `The score of a vector with itself at another position, if all its pairs are equally large: the mean of the cosines, times the square of the
        attention factor. It is computed at a few offsets in each octave, so the end of the curve is a sample of a fast oscillation.`,
    });
    page.html(`<p class="note">These plots show angles. They do not show how well a model reads a long text: that depends on its training, and takes a test of
      the model. For the expert: the ramp of YaRN is linear in the index of the pair, that of Llama 3 in the turns within the original context. NTK
      scaling divides by a power of the factor that grows with the index.</p>`);
    page.keep({ draw: () => page.drawDials?.() });
  },
  draw(state, page) {
    const moved = page.last && page.last.which !== state.which && page.last.multiple === state.multiple;
    page.last = { ...state };
    if (moved) page.set({ multiple: multipleOf(state) });
    const choice = choiceOf(state), { lib } = page, { before, spec } = choice, seen = JSON.stringify(state);
    drawSimilarity(page, choice);
    if (page.seen === seen) return; // a frame for the rest of that curve
    page.seen = seen;
    const w0 = lib.frequencies(before).omega, { omega: w1, attentionFactor } = lib.frequencies(spec), facts = factsOf(choice, w0, w1);
    page.says.show(`${SAYS[spec.scaling](choice, facts)}${counted(facts)} ${wordsOfFactor(attentionFactor)}${stated(choice)}`);
    drawFrequencies(page, state, choice, w0, w1, facts);
    drawAngles(page, state.pair, choice, w0, w1, facts);
  },
});

function drawSimilarity(page, { before, spec, original, now }) {
  const pair = [curveOf(page.lib, before), curveOf(page.lib, spec)], until = performance.now() + FRAME_MS;
  for (const curve of pair) curve.advance(until);
  if (!pair.every((curve) => curve.done)) page.set({}, true); // the rest in the next frames
  const shown = OFFSETS.filter((offset) => offset <= now), y = ({ values }) => shown.map((_, k) => values[k] ?? null);
  page.curve.show({
    x: shown, xLog: true, xName: "offset in positions", yName: "similarity", xMarks: [{ at: original, name: `original context ${whole(original)}` }],
    series: [{ name: "before", y: y(pair[0]) }, { name: "after", y: y(pair[1]) }],
  });
}
function drawFrequencies(page, { axis, pair }, { original, now }, w0, w1, facts) {
  const wave = axis === "wavelength", value = (w) => (w === 0 ? null : wave ? FULL_TURN / w : w);
  const ys = [w0, w1].map((list) => Array.from(list, value)), series = [{ name: "before", y: ys[0] }, { name: "after", y: ys[1] }];
  const all = ys.flat().filter((y) => y !== null), limits = [Math.min(...all), Math.max(...all)];
  const at = (n) => (wave ? n : FULL_TURN / n), name = (text) => (wave ? `${text} positions` : `a turn in ${text}`);
  const lengths = now === original ? [now] : [original, now], areNear = lengths.length === 2 && now < 4 * original;
  const names = areNear ? ["", name(lengths.map(whole).join(", "))] : lengths.map((n) => name(whole(n))); // of near lines, which would overlap, one
  const marks = lengths.map((n, k) => ({ at: at(n), name: names[k], left: wave }));
  const xMarks = w0.length > 1 ? [{ at: pair, name: `pair ${pair}` }] : [];
  const words = (w) => (w === 0 ? "does not rotate" : `${digits(w, 6)} radians a position, ${digits(FULL_TURN / w, 6)} positions a turn`);
  const read = (i) => `Pair ${i}: before ${words(w0[i])}; after ${words(w1[i])}`;
  page.before.show({
    xName: "pair", yName: wave ? "positions a turn" : "radians a position", yLog: true, xMarks, read,
    yMarks: marks.filter(({ at }) => at >= limits[0] && at <= limits[1]), series,
  });
  const divisors = facts.divisors.map((one) => (Number.isFinite(one) ? one : null)), points = w0.length <= 64 ? 3 : false;
  page.ratio.show({
    xName: "pair", yName: "divided by", xMarks, yLimits: [0, facts.most * 1.25],
    read: (i) => `Pair ${i}: ${w1[i] === 0 ? "does not rotate" : `divided by ${digits(facts.divisors[i], 6)}`}`,
    series: [{ name: "divisor", y: divisors, points, get color() { return theme().series[2]; } }],
  });
}
function drawAngles(page, pair, { original, now }, w0, w1, facts) {
  const turns = (i) => [w0[i] * original, w0[i] * now, w1[i] * now].map((angle) => angle / FULL_TURN);
  page.dials.querySelector("figcaption span").textContent = `Turns from the first position to the last. Inner ring: the original context,
    ${whole(original)} positions. Middle ring: ${whole(now)} positions before the scaling. Outer ring: the same after it. A full ring is one turn or more, so
    every direction has occurred.`;
  page.drawDials = () => page.dials.querySelector("ul").replaceChildren(...dialled(w0, original, pair).map((i) => dial(i, turns(i), theme())));
  page.drawDials();
  page.angles.show(unseen({ original, now }, facts));
}
