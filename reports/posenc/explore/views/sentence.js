// Attention over a short sentence and its shuffles. Words, encodings and rotations are f32; the sums are f64.
const SENTENCES = { cat: ["cat", "sat", "on", "the", "mat"], dog: ["dog", "bites", "man"] };
const DOG = Float32Array.of(1, 0, 1, 1, 0, 1); // of docs/course/1-order.md
const SLOPE = 0.5; // of ALiBi
// Made up. By bucket: distance 0, then keys 1, 2, 3 and 4 or more words back; from bucket 9 on, keys ahead.
const T5 = { num_buckets: 16, max_distance: 32, table: [0.5, 0.8, 0.4, 0, -0.4, 0, 0, 0, 0, 0.2, -0.2, -0.6, -1, 0, 0, 0] };
const ROUNDING = 1e-12; // differences below come from the order of the sums

const { fround, max, abs } = Math;
// A number with so many decimals, a true minus, and no minus before zeros.
const fixed = (value, places = 3) => value.toFixed(places).replace(/^-(?=.*[1-9])/, "−").replace("-", "");
const fixedOrZero = (value, places) => (abs(value) < ROUNDING ? "0" : fixed(value, places));
const range = (n) => Array.from({ length: n }, (_, i) => i);
function vector(values) {
  const number = (value, c) => `<span>${c ? "" : "("}${fixed(value)}${c < values.length - 1 ? "," : ")"}</span>`;
  return `<span class="vector">${[...values].map(number).join("")}</span>`;
}

// ---- orders: their numbers follow the alphabet of positions, so 0 is the original and the last one is the reverse ----
const ordersOf = (n) => range(n).reduce((product, i) => product * (i + 1), 1);
function orderOf(number, n) {
  const left = range(n);
  return range(n).map((i) => {
    const size = ordersOf(n - 1 - i), at = Math.floor(number / size);
    number %= size;
    return left.splice(at, 1)[0];
  });
}
function numberOfOrder(order) {
  const smallerBehind = (word, i) => order.slice(i + 1).filter((later) => later < word).length;
  return order.reduce((sum, word, i) => sum + smallerBehind(word, i) * ordersOf(order.length - 1 - i), 0);
}

// ---- the encodings ----
// apply() returns all that attention uses beside the words x [n, d]: queries, keys, values, biases [n, n], a scale.
// `same` and `differs` are sentences for orders in which words receive the same vectors, and other ones.
const sums = (x, table) => x.map((value, i) => fround(value + table[i]));
const ENCODINGS = {
  none: {
    name: "none",
    formula: "score = x<sub>i</sub> · x<sub>j</sub> / √d",
    same: "Without an encoding, attention does not see the order. The results are shuffled along with the words: attention is <em>equivariant</em>.",
    apply: () => ({}),
  },
  mask: {
    name: "none, with a causal mask",
    formula: "score = x<sub>i</sub> · x<sub>j</sub> / √d for j ≤ i, else −∞",
    differs: "The mask alone shows some order: the word at position p sees the words at positions 0 to p, and no other.",
    apply: ({ n }) => ({ bias: range(n * n).map((at) => (at % n > Math.floor(at / n) ? -Infinity : 0)) }),
  },
  sinusoidal: {
    name: "sinusoidal, added",
    formula: "score = (x<sub>i</sub> + row i) · (x<sub>j</sub> + row j) / √d, and the values are x<sub>j</sub> + row j",
    differs: "Each word has another row added, so scores and values change with the place.",
    apply({ x, n, d, lib }) {
      const added = sums(x, lib.sinusoidal({ dim: d }, { tokens: n }));
      return { q: added, k: added, v: added };
    },
  },
  rope: {
    name: "RoPE",
    formula: "score = R(i) x<sub>i</sub> · R(j) x<sub>j</sub> / √d, where R(p) rotates pair by pair; the values are x<sub>j</sub>, not rotated",
    differs: "The scores depend on the signed distances, and only the original order has all of them.",
    apply({ x, n, d, lib }) {
      const rotated = lib.rotate(x, lib.ropeTable({ dim: d }, { tokens: n }), {});
      return { q: rotated, k: rotated };
    },
  },
  alibi: {
    name: "ALiBi by |i − j|",
    formula: "score = x<sub>i</sub> · x<sub>j</sub> / √d − ½ |i − j|",
    same: "Reversing keeps every distance |i − j|, so this bias does not see it.",
    differs: "Some distances |i − j| have changed. Try Reverse, which keeps all of them.",
    apply: ({ n, lib }) => ({ bias: lib.alibi({ heads: 1, queries: n, keys: n, slopes: [SLOPE] }) }),
  },
  causal: {
    name: "ALiBi, causal",
    formula: "score = x<sub>i</sub> · x<sub>j</sub> / √d − ½ (i − j) for j ≤ i, else −∞",
    differs: "Each word sees itself and the words before it, with a penalty that grows with the distance.",
    apply: ({ n, lib }) => ({ bias: lib.alibi({ heads: 1, queries: n, keys: n, causal: true, slopes: [SLOPE] }) }),
  },
  t5: {
    name: "T5, a made-up table",
    formula: `score = x<sub>i</sub> · x<sub>j</sub> + b(j − i), as T5 does not divide by √d. The b are made up: 0.5 for the word itself, 0.8, 0.4, 0 and
      −0.4 for keys 1, 2, 3 and more words back, 0.2, −0.2, −0.6 and −1 for keys ahead`,
    differs: "A key ahead has another bias than a key as far back, so even the reverse is seen.",
    apply: ({ n, lib }) => ({ scale: 1, bias: lib.t5Bias({ ...T5, queries: n, keys: n }) }),
  },
};

// Returns the weights [n, n] and what each position receives, [n, d].
function attend(input, { q = input.x, k = input.x, v = input.x, bias, scale = 1 / Math.sqrt(input.d) }) {
  const { n, d } = input, weights = new Float64Array(n * n), received = new Float64Array(n * d);
  const product = (i, j) => range(d).reduce((sum, c) => sum + q[i * d + c] * k[j * d + c], 0);
  for (let i = 0; i < n; i++) {
    const scores = range(n).map((j) => product(i, j) * scale + (bias ? bias[i * n + j] : 0));
    const top = max(...scores), powers = scores.map((score) => Math.exp(score - top)), sum = powers.reduce((a, b) => a + b);
    for (let j = 0; j < n; j++) {
      weights[i * n + j] = powers[j] / sum;
      for (let c = 0; c < d; c++) received[i * d + c] += weights[i * n + j] * v[j * d + c];
    }
  }
  return { weights, received, v };
}
// Attention over words in an order. Its results are put back: row w belongs to word w, wherever it stands.
function readIn(order, encoding, words, d, lib) {
  const n = order.length, x = Float32Array.from({ length: n * d }, (_, at) => words[order[Math.floor(at / d)] * d + (at % d)]);
  const { weights, received, v } = attend({ x, n, d }, ENCODINGS[encoding].apply({ x, n, d, lib }));
  const back = { weights: new Float64Array(n * n), received: new Float64Array(n * d), v: new Float64Array(n * d) };
  order.forEach((word, i) => {
    order.forEach((other, j) => { back.weights[word * n + other] = weights[i * n + j]; });
    for (let c = 0; c < d; c++) [back.received[word * d + c], back.v[word * d + c]] = [received[i * d + c], v[i * d + c]];
  });
  return { weights, back };
}
// The largest difference of what words receive: { by, word, channel }.
function difference(before, after, d) {
  return before.reduce((worst, value, at) => {
    const by = abs(value - after[at]);
    return by > worst.by ? { by, word: Math.floor(at / d), channel: at % d } : worst;
  }, { by: 0, word: 0, channel: 0 });
}

function wordsOf({ sentence, seed }, lib) {
  if (sentence === "dog") return { names: SENTENCES.dog, words: DOG, d: 2 };
  const drawn = lib.normal(seed, SENTENCES.cat.length, 4);
  return { names: SENTENCES.cat, words: drawn.map((value) => Math.round(10 * value) / 10), d: 4 };
}
const nOf = ({ sentence }) => SENTENCES[sentence].length;

// ---- words to drag ----
function makeWords(page) {
  const figure = page.figure("Your order", "Drag a word to another place. By keyboard: go to a word with Tab, and move it with the left and right arrow keys.");
  const list = figure.appendChild(element("ol", { class: "words", "aria-label": "Words in your order" }));
  const order = () => orderOf(page.state.order, nOf(page.state));
  const move = (from, to) => {
    const words = order();
    words.splice(to, 0, ...words.splice(from, 1));
    page.set({ order: numberOfOrder(words) });
  };
  const at = (button) => [...list.querySelectorAll("button")].indexOf(button);
  list.addEventListener("keydown", (event) => {
    const from = at(event.target), last = order().length - 1, to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key];
    if (from < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (to < 0 || to > last) return;
    move(from, to);
    list.querySelectorAll("button")[to].focus();
  });
  list.addEventListener("pointerdown", (event) => {
    page.held = at(event.target);
    if (page.held < 0 || event.button) return;
    list.setPointerCapture(event.pointerId);
    page.set({});
  });
  list.addEventListener("pointermove", (event) => {
    if (!(page.held >= 0)) return;
    const far = [...list.querySelectorAll("button")].map((button) => {
      const box = button.getBoundingClientRect();
      return Math.hypot(event.clientX - box.x - box.width / 2, 2 * (event.clientY - box.y - box.height / 2));
    });
    const to = far.indexOf(Math.min(...far));
    if (to === page.held) return;
    move(page.held, to);
    page.held = to;
  });
  for (const name of ["pointerup", "pointercancel"]) list.addEventListener(name, () => {
    if (page.held >= 0) list.querySelectorAll("button")[page.held].focus();
    page.held = -1;
    page.set({});
  });
  return list;
}
// A button stays at its place, and its word changes: so it keeps the focus, and the finger on it.
function showWords(page, order, names, followed) {
  while (page.words.childElementCount > order.length) page.words.lastElementChild.remove();
  while (page.words.childElementCount < order.length) page.words.append(element("li", {}, element("button", { type: "button" }), element("small")));
  order.forEach((word, i) => {
    const [button, small] = page.words.children[i].children;
    button.textContent = names[word];
    small.textContent = i;
    button.setAttribute("aria-label", `${names[word]}, position ${i}`);
    button.classList.toggle("held", page.held === i);
    button.classList.toggle("followed", word === followed);
  });
}

// ---- tables ----
const rowOf = (name, cells, kind) => `<tr class="${kind}"><th scope="row">${name}</th>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
const headOf = (names) => names.map((name) => `<th scope="col">${name}</th>`).join("");
const tableOf = (names, rows, kind = "") =>
  `<table class="words-first ${kind}"><thead><tr>${headOf(names)}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
const amount = (by) => (by === 0 ? "0" : digits(by, 2));

function receivedTable({ names, d, before, after, word }) {
  const part = (values, w) => values.slice(w * d, w * d + d);
  const rows = names.map((name, w) => {
    const [a, b] = [part(before.back.received, w), part(after.back.received, w)];
    return rowOf(name, [vector(a), vector(b), amount(difference(a, b, d).by)], w === word ? "followed" : "");
  });
  return tableOf(["word", "original order", "your order", "difference"], rows, "received");
}
function sumOf({ names, encoding, d, word }, order, { back }) {
  const n = names.length, terms = order.map((other) => {
    const weight = fixedOrZero(back.weights[word * n + other]);
    return `${weight} · ${encoding === "sinusoidal" ? `(${names[other]} + row ${order.indexOf(other)})` : names[other]}`;
  });
  return `${terms.join(" + ")} = ${vector(back.received.slice(word * d, word * d + d))}`;
}
function allTable({ order, words, d, lib, encoding }) {
  const plain = range(order.length);
  const rows = Object.entries(ENCODINGS).map(([key, { name }]) => {
    const [before, after] = [plain, order].map((one) => readIn(one, key, words, d, lib).back.received), { by } = difference(before, after, d);
    return rowOf(name, [amount(by), by < ROUNDING ? "the same" : "different"], key === encoding ? "followed" : "");
  });
  return tableOf(["encoding", "largest difference", "vectors"], rows);
}
function verdict({ order, names, words, d, before, after, encoding }) {
  const { name, same, differs } = ENCODINGS[encoding], { by, word, channel } = difference(before.back.received, after.back.received, d);
  const text = `“${order.map((one) => names[one]).join(" ")}”, encoding: ${name}.`;
  if (order.every((one, i) => one === i)) return `${text} This is the original order, so nothing has changed. Press Shuffle or Reverse, or drag a word.`;
  const reason = by ? ", which is rounding: the same numbers are added in another order" : "";
  if (by < ROUNDING) return `${text} <strong>Each word receives the same vector as before.</strong> The largest difference is ${amount(by)}${reason}. ${same || ""}`;
  const at = word * d + channel;
  return `${text} <strong>The words receive other vectors than before.</strong> The largest difference is ${amount(by)}: channel ${channel} of what “${names[word]}” receives
    was ${fixedOrZero(before.back.received[at])} and is ${fixedOrZero(after.back.received[at])}. ${differs || ""}`;
}
// A map is a table of coloured cells, so that screen readers can read it: { title, how, colors } and what it shows.
function makeMap(page, parent, { title, how, colors }) {
  const figure = page.html(`<figure><figcaption><strong>${title}</strong><span>${how}</span></figcaption><table></table></figure>`, parent);
  const table = figure.lastElementChild;
  table.setAttribute("aria-label", `${title}: a row for each query, a column for each key`);
  const map = {
    shown: null,
    show(shown) { map.shown = shown; map.draw(); },
    draw() { // again when the colours of the page change
      if (!map.shown) return;
      const { values, names, limits: [least, most], word, places } = map.shown, n = names.length, { css, ink } = theme()[colors];
      const head = `<thead><tr><td></td>${headOf(names)}</tr></thead>`;
      const cell = (value) => {
        const at = Math.min(255, Math.max(0, Math.floor(((value - least) / (most - least)) * 256)));
        return `<td style="background: ${css(at)}; color: ${ink(at)}">${fixedOrZero(value, places)}</td>`;
      };
      const line = (name, r) => `<tr class="${r === word ? "followed" : ""}"><th scope="row">${name}</th>${range(n).map((c) => cell(values[r * n + c])).join("")}</tr>`;
      table.innerHTML = `${head}<tbody>${names.map(line).join("")}</tbody>`;
    },
  };
  return page.keep(map);
}
function showMaps(page, { names, order, before, after, word }) {
  const limits = [0, Math.ceil(10 * max(...before.weights, ...after.weights)) / 10];
  page.before.show({ values: before.weights, names, limits, word });
  page.after.show({ values: after.weights, names: order.map((one) => names[one]), limits, word: order.indexOf(word) });
  const values = after.back.weights.map((value, at) => value - before.weights[at]), most = max(0.1, ...values.map(abs));
  page.change.show({ values, names, limits: [-most, most], word, places: 2 });
}

addView({
  id: "sentence",
  order: 8,
  title: "Cat sat on the mat",
  intro: `<p>Attention gives each word a weighted average of all words. Does the result know their order? Shuffle the words and see. Without an
    encoding, every word receives the same vector as before: only the order of the results changes. Then choose an encoding, and shuffle again.</p>
    <p>One surprise: reverse the sentence with ALiBi by |i − j|. For the expert: query, key and value are the word itself, with one head and no
    matrices. A model's matrices change the numbers, but an order that is unseen here stays unseen.</p>`,
  controls: [
    { id: "sentence", label: "Sentence", options: { cat: "cat sat on the mat", dog: "dog bites man" }, value: "cat" },
    { id: "encoding", label: "Encoding", options: Object.fromEntries(Object.entries(ENCODINGS).map(([key, { name }]) => [key, name])), value: "none" },
    { id: "order", label: "Order", min: 0, max: (s) => ordersOf(nOf(s)) - 1, value: 105, format: (value, s) => `${value + 1} of ${ordersOf(nOf(s))}`,
      help: "the first is the original, the last the reverse" },
    { id: "word", label: "Follow", min: 0, max: (s) => nOf(s) - 1, value: 0, format: (value, s) => SENTENCES[s.sentence][value] },
    { id: "seed", label: "Vectors", min: 1, max: 20, value: 10, format: (value) => `seed ${value}`, when: (s) => s.sentence === "cat",
      help: "other vectors, the same conclusions" },
  ],
  setup(page) {
    const last = () => ordersOf(nOf(page.state)) - 1;
    page.button("Shuffle", () => { // an order that is neither the original nor the present one
      const { order } = page.state, drawn = 1 + Math.floor(Math.random() * (order ? last() - 1 : last()));
      page.set({ order: order && drawn >= order ? drawn + 1 : drawn });
    });
    page.button("Reverse", () => page.set({ order: last() }));
    page.button("Original", () => page.set({ order: 0 }));
    page.words = makeWords(page);
    page.fact = page.note();
    const maps = page.html(`<div class="maps"></div>`);
    page.before = makeMap(page, maps, { title: "Weights, original order", how: "A row is a query, a column is a key. Each row adds up to 1.", colors: "sequential" });
    page.after = makeMap(page, maps, { title: "Weights, your order", how: "The same with your order. A row and a column follow each word.", colors: "sequential" });
    page.change = makeMap(page, maps, { title: "Change of each weight", how: "Your order, put back into the original one, minus the first map. All zero: the weights moved along with the words. Blue is less than before, orange more.", colors: "diverging" });
    const scroll = (figure, label) => figure.appendChild(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }));
    const received = page.figure("The vector that each word receives", "Three decimals. Words stand in the original order, so that you can compare.");
    page.received = scroll(received, "The vector that each word receives");
    page.sums = received.appendChild(element("dl", { class: "sums" }));
    page.all = scroll(page.figure("All encodings, at your order", "Which of them see that the words have moved?"), "All encodings, at your order");
    const given = page.figure("What is computed");
    page.formula = given.appendChild(element("p", { class: "note" }));
    page.given = scroll(given, "The vectors of the words");
  },
  draw(state, page) {
    const { encoding, word } = state, { lib } = page, { names, words, d } = wordsOf(state, lib), n = names.length, order = orderOf(state.order, n);
    const before = readIn(range(n), encoding, words, d, lib), after = readIn(order, encoding, words, d, lib);
    const all = { names, words, d, order, before, after, encoding, word, lib };
    showWords(page, order, names, word);
    page.fact.show(verdict(all));
    showMaps(page, all);
    page.received.innerHTML = receivedTable(all);
    page.sums.innerHTML = `<dt>“${names[word]}” receives, in the original order</dt><dd>${sumOf(all, range(n), before)}</dd>` +
      `<dt>and in your order</dt><dd>${sumOf(all, order, after)}</dd>`;
    page.all.innerHTML = allTable(all);
    const source = state.sentence === "dog" ? "The words are those of lesson 1." : `The words are random
      vectors: <code>posenc</code>'s normal distribution with seed ${state.seed}, rounded to one digit.`;
    page.formula.innerHTML = `<span class="formula">${ENCODINGS[encoding].formula}</span>. The weights are the softmax of a row of scores, and d = ${d}. ${source}`;
    const channels = (w) => [...words.slice(w * d, w * d + d)].map((value) => digits(value, 3));
    const rows = names.map((name, w) => rowOf(name, channels(w), w === word ? "followed" : ""));
    page.given.innerHTML = tableOf(["word", ...range(d).map((c) => `channel ${c}`)], rows);
  },
});
