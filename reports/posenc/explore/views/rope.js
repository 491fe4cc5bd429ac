// Rotary positions: one pair as an arrow, a query and a key, all pairs as dials, and the channels that form a pair.
const LAST = 512, FAR = 127; // the last position of p, and of m and n
const TURN_S = 8, SPEEDS = { least: 0.5, p: 64, both: 4 }; // seconds of a full turn, within these positions a second
const BASES = [10, 100, 1000, 10000, 100000, 500000, 1000000, 10000000];
const PAIRINGS = { half: "half: i with i + d/2", interleaved: "interleaved: 2i with 2i + 1" };
const USERS = {
  half: (d) => `<strong>half</strong>: channel i with channel i + ${d / 2}. GPT-NeoX, and Llama, Qwen and Gemma on Hugging Face.`,
  interleaved: () => `<strong>interleaved</strong>: channel 2i with channel 2i + 1. The RoFormer paper, GPT-J, Meta's own Llama, DeepSeek-V3.`,
};
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const degrees = (radians) => (radians * 180) / Math.PI;
const angleText = (radians) => `${digits(degrees(radians), 4)}°`;
const roundedTurn = (omega, n) => whole(Number(((2 * Math.PI) / omega).toPrecision(n))); // positions of a full turn, to n digits
const channelsOf = (pair, pairing, dim) => (pairing === "half" ? [pair, pair + dim / 2] : [2 * pair, 2 * pair + 1]);
// Positions for the library, which may lie between two tokens.
const rowsAt = (list) => (list.every(Number.isInteger) ? { positions: list } : { times: list });

// ---- arrows in a circle ----
// Draws a circle with names of its axes. Returns its centre and radius, and at(): where (cosine, sine) times k is on it.
function circleOf(parts, width, [across, up]) {
  const size = Math.min(width, 330), x = size / 2, y = size / 2 + 4, r = size / 2 - 34, { line, quiet } = theme();
  parts.push(svg("circle", { cx: x, cy: y, r, fill: "none", stroke: line, "stroke-width": 1.5 }));
  parts.push(svg("path", { d: `M${x - r - 8} ${y}H${x + r + 8}M${x} ${y - r - 8}V${y + r + 8}`, stroke: line, fill: "none" }));
  parts.push(label(x + r + 12, y - 8, across, quiet, "end"), label(x + 8, y - r - 10, up, quiet, "start"));
  return { x, y, r, at: ([c, s], k = 1) => [x + k * r * c, y - k * r * s], height: size + 8 };
}
// An arrow along (cosine, sine), with a letter at its end by which it is dragged.
function arrow(parts, circle, way, { letter, color, dash, long = 1, id }) {
  const [x, y] = circle.at(way, long), grip = { "data-grip": id, style: "touch-action: none; cursor: grab" };
  parts.push(svg("line", { x1: circle.x, y1: circle.y, x2: x, y2: y, stroke: color, "stroke-width": 3, "stroke-dasharray": dash, ...grip }));
  parts.push(svg("circle", { cx: x, cy: y, r: 12, fill: color, stroke: theme().paper, "stroke-width": 2, ...grip }));
  parts.push(label(x, y + 4.5, letter, theme().paper, "middle", { style: "font-weight: 700; font-size: 13px; stroke: none; pointer-events: none" }));
  parts.push(svg("circle", { cx: x, cy: y, r: 24, fill: "transparent", ...grip }));
}
// The path of a part of a circle, from one angle to another, at k times its radius.
function arc({ x, y, r }, from, to, k) {
  const n = Math.max(2, Math.ceil(Math.abs(to - from) / 0.1)), at = (i) => from + ((to - from) * i) / n;
  const point = (i) => `${(x + k * r * Math.cos(at(i))).toFixed(1)} ${(y - k * r * Math.sin(at(i))).toFixed(1)}`;
  return Array.from({ length: n + 1 }, (_, i) => `${i ? "L" : "M"}${point(i)}`).join("");
}
// The arrow of a pair at position p and at 0, as (cosine, sine), and its way there as dots.
function paintArrow(parts, width, { state, way, way0, trail, angle }) {
  const [first, second] = channelsOf(state.pair, state.pairing, state.dim), { series, quiet, ink } = theme();
  const circle = circleOf(parts, width, [`channel ${first}`, `channel ${second}`]);
  for (const [cx, cy] of trail.map((dot) => circle.at(dot))) parts.push(svg("circle", { cx, cy, r: 3, fill: quiet }));
  const [x0, y0] = circle.at(way0);
  parts.push(svg("line", { x1: circle.x, y1: circle.y, x2: x0, y2: y0, stroke: quiet, "stroke-width": 2, "stroke-dasharray": "3 4" }));
  parts.push(svg("path", { d: arc(circle, 0, angle % (2 * Math.PI), 0.3), fill: "none", stroke: ink, "stroke-width": 2 }));
  arrow(parts, circle, way, { letter: "p", color: series[0], id: "p" });
  return circle.height;
}
// The arrows of a query and a key, and the arc from the angle of the key to that of the query.
function paintTwo(parts, width, { state, q, k, from, to }) {
  const [first, second] = channelsOf(state.pair, state.pairing, state.dim), { series, ink, soft } = theme();
  const circle = circleOf(parts, width, [`channel ${first}`, `channel ${second}`]), turn = 2 * Math.PI;
  const [a, b] = Math.abs(to - from) < turn ? [from, to] : [from, from + ((to - from) % turn)];
  parts.push(svg("path", { d: `${arc(circle, a, b, 0.42)}L${circle.x} ${circle.y}Z`, fill: soft, stroke: "none" }));
  parts.push(svg("path", { d: arc(circle, a, b, 0.42), fill: "none", stroke: ink, "stroke-width": 2 }));
  arrow(parts, circle, k, { letter: "k", color: series[1], dash: "8 4", long: 0.72, id: "n" });
  arrow(parts, circle, q, { letter: "q", color: series[0], id: "m" });
  return circle.height;
}
// Dragging rotates by differences of angles, so that it goes on over several turns.
function makeGrips(drawing, page, most) {
  let held = null;
  const at = (event) => {
    const box = drawing.svg.getBoundingClientRect(), size = Math.min(drawing.width, 330) / 2;
    return Math.atan2(box.top + size + 4 - event.clientY, event.clientX - box.left - size);
  };
  drawing.svg.addEventListener("pointerdown", (event) => {
    const id = event.target.dataset.grip;
    if (!id) return;
    event.preventDefault();
    drawing.svg.setPointerCapture(event.pointerId);
    held = { id, angle: at(event), value: page.state[id] };
  });
  drawing.svg.addEventListener("pointermove", (event) => {
    if (!held) return;
    const now = at(event), by = Math.atan2(Math.sin(now - held.angle), Math.cos(now - held.angle));
    held.angle = now;
    held.value = Math.min(most, Math.max(0, held.value + by / page.omega[page.state.pair]));
    page.set({ [held.id]: Math.round(held.value) });
  });
  for (const name of ["pointerup", "pointercancel"]) drawing.svg.addEventListener(name, () => (held = null));
}

// ---- all pairs ----
// Only the hands differ from one position to the next: `hands` keeps them, for moveHands().
function paintDials(parts, width, { state, cos, sin, omega, speed, hands }) {
  const pairs = omega.length, columns = Math.min(pairs, (width < 500 ? 4 : 8) * (pairs > 16 ? 2 : 1));
  const cell = Math.min(112, width / columns), isLarge = cell > 58, tall = cell + (isLarge ? 34 : 18), r = cell / 2 - 5;
  const { ink, quiet, line, link, paper } = theme();
  for (let i = 0; i < pairs; i++) {
    const x = ((i % columns) + 0.5) * cell, top = Math.floor(i / columns) * tall, y = top + cell / 2, isChosen = i === state.pair;
    const isBlurred = omega[i] * speed > 6 * Math.PI; // faster than an eye can follow
    const rim = { fill: isBlurred ? line : paper, stroke: isChosen ? link : quiet, "stroke-width": isChosen ? 3.5 : 1.2 };
    parts.push(svg("circle", { cx: x, cy: y, r, ...rim, "data-pair": i, style: "cursor: pointer" }));
    parts.push(svg("line", { x1: x + r * 0.78, x2: x + r, y1: y, y2: y, stroke: quiet }));
    const stroke = { stroke: isBlurred ? "none" : ink, "stroke-width": isLarge ? 3 : 2, "stroke-linecap": "round", "pointer-events": "none" };
    hands[i] = { x, y, r: r * 0.86, line: svg("line", { x1: x, y1: y, ...stroke }) };
    parts.push(hands[i].line);
    const bold = isChosen ? { style: "font-weight: 700" } : {};
    parts.push(label(x, top + cell + 11, isLarge ? `pair ${i}` : i, isChosen ? link : ink, "middle", bold));
    if (isLarge) parts.push(label(x, top + cell + 26, roundedTurn(omega[i], 3), quiet));
  }
  moveHands(hands, cos, sin);
  return Math.ceil(pairs / columns) * tall;
}
function moveHands(hands, cos, sin) {
  hands.forEach(({ x, y, r, line }, i) => {
    line.setAttribute("x2", x + r * cos[i]);
    line.setAttribute("y2", y - r * sin[i]);
  });
}

// ---- the channels of a head ----
function paintChannels(pairing) {
  return (parts, width, { state: { dim, pair } }) => {
    const cell = Math.min(width / dim, 40), top = pairing === "half" ? 54 : 26, tall = 24, pairs = dim / 2;
    const { ink, quiet, sequential } = theme(), inCell = { style: "stroke: none; pointer-events: none; font-size: 11px" };
    const middle = (channel) => (channel + 0.5) * cell, every = Math.ceil(pairs / 16);
    const curve = (i) => {
      const [a, b] = channelsOf(i, pairing, dim), high = top - (pairing === "half" ? 66 : 28);
      return `M${middle(a)} ${top - 2}C${middle(a)} ${high} ${middle(b)} ${high} ${middle(b)} ${top - 2}`;
    };
    for (let i = 0; i < pairs; i += every)
      if (i !== pair) parts.push(svg("path", { d: curve(i), fill: "none", stroke: quiet, "stroke-opacity": 0.55 }));
    for (let i = 0; i < pairs; i++) {
      const color = Math.round((255 * i) / Math.max(1, pairs - 1));
      for (const channel of channelsOf(i, pairing, dim)) {
        const box = { x: channel * cell, y: top, width: cell - (cell > 6 ? 1 : 0), height: tall };
        parts.push(svg("rect", { ...box, fill: sequential.css(color), "data-pair": i, style: "cursor: pointer" }));
        if (cell >= 17) parts.push(label(middle(channel), top + 16, channel, sequential.ink(color), "middle", inCell));
      }
    }
    const [a, b] = channelsOf(pair, pairing, dim);
    for (const channel of [a, b]) {
      const frame = { x: channel * cell - 1, y: top - 1, width: Math.max(cell, 2) + 1, height: tall + 2 };
      parts.push(svg("rect", { ...frame, fill: "none", stroke: ink, "stroke-width": 2 }));
    }
    parts.push(svg("path", { d: curve(pair), fill: "none", stroke: ink, "stroke-width": 2.5 }));
    // The numbers of the chosen channels below: as one text if they are close, and within the figure at its ends.
    const below = (x, text, [from, to], room) =>
      parts.push(label(x, top + tall + 16, text, ink, from < room ? "start" : to > width - room ? "end" : "middle"));
    const [xa, xb] = [middle(a), middle(b)];
    if (xb - xa < 30) below(Math.min(width - 4, Math.max(4, (xa + xb) / 2)), `${a} and ${b}`, [xa, xb], 40);
    else for (const channel of [a, b]) below(middle(channel), channel, [middle(channel), middle(channel)], 12);
    return top + tall + 22;
  };
}
function keyOf(pairs) {
  const stops = [0, 64, 128, 192, 255].map(theme().sequential.css).join(", ");
  return `<span>pair 0, fast</span><span class="bar" style="background: linear-gradient(to right, ${stops})"></span><span>pair ${pairs - 1}, slow</span>`;
}
function tableOf({ dim, pairing, p }, omega) {
  const rows = Array.from(omega, (one, i) => `<tr><th scope="row">${i}</th><td>${channelsOf(i, pairing, dim).join(", ")}</td><td>${digits(one, 4)}</td>
    <td>${roundedTurn(one, 4)}</td><td>${digits((p * one) / (2 * Math.PI), 4)}</td></tr>`);
  const names = ["pair", "channels", "radians per position", "positions per turn", `turns at position ${p}`];
  return `<table><thead><tr>${names.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
}

// ---- motion: a button starts it; with reduced motion it goes by one step a second ----
const speedOf = (omega, most) => Math.min(most, Math.max(SPEEDS.least, (2 * Math.PI) / omega / TURN_S)); // positions a second
function makeMotion(page) {
  // Positions to move after so many seconds.
  const moved = (motion, seconds, speed) => {
    if (!calm.matches) return seconds * speed;
    motion.waited = (motion.waited || 0) + seconds;
    if (motion.waited < 1) return 0;
    motion.waited -= 1;
    return Math.max(1, Math.round(speed));
  };
  page.run = page.animate("Let p run", (seconds) => {
    const { state, run } = page;
    if (state.p === LAST) run.at = 0;
    else if (Math.round(run.at) !== state.p) run.at = state.p;
    const by = moved(run, seconds, speedOf(page.omega[state.pair], SPEEDS.p));
    if (!by) return true;
    run.at = Math.min(LAST, run.at + by);
    page.set({ p: Math.round(run.at) });
    return run.at < LAST;
  });
  page.both = page.animate("Move q and k together", (seconds) => {
    const { state: { m, n, pair }, both } = page, ahead = FAR - Math.max(m, n);
    // `part` is the fraction of a position beyond m and n; from the end both go `back` to the beginning.
    if (both.m !== m || both.n !== n || !ahead) Object.assign(both, { part: 0, back: ahead ? 0 : Math.min(m, n) });
    const by = moved(both, seconds, speedOf(page.omega[pair], SPEEDS.both));
    if (!by && !both.back) return true;
    both.part += by;
    const steps = Math.floor(both.part) - both.back;
    Object.assign(both, { part: both.part - Math.floor(both.part), back: 0, m: m + Math.min(steps, ahead), n: n + Math.min(steps, ahead) });
    page.set({ m: both.m, n: both.n });
    return steps < ahead || !ahead;
  });
  page.panel.addEventListener("click", (event) => { if (event.target.closest("button")) page.set({}, true); });
}

addView({
  id: "rope",
  order: 40,
  title: "Rotary: pairs as arrows",
  intro: `<p>Rotary encoding (RoPE) adds nothing to a vector. It takes the channels of each query and key in pairs, sees each pair as an
    arrow in a plane, and rotates the arrow by an angle that grows with the position. Each pair has its own speed.</p>
    <p>Drag an arrow, move a slider, or press a button to let the positions run. Then move a query and a key together: both
    rotate, and the angle between them stays.</p>`,
  controls: [
    { id: "dim", label: "Channels of a head", values: [4, 8, 16, 32, 64, 128, 256], value: 16, help: "head_dim; 64 to 256 in most models" },
    { id: "base", label: "Base θ", values: BASES, value: 10000, format: whole },
    { id: "pair", label: "Pair", min: 0, max: (state) => state.dim / 2 - 1, value: 1 },
    { id: "p", label: "Position p", min: 0, max: LAST, value: 7, help: "of the arrow and the dials" },
    { id: "m", label: "Query at m", min: 0, max: FAR, value: 12 },
    { id: "n", label: "Key at n", min: 0, max: FAR, value: 8 },
    { id: "own", label: "Key's own angle", min: -180, max: 180, step: 15, value: 0, format: (value) => `${digits(value)}°`, help: "before it is rotated" },
    { id: "pairing", label: "Pairing", options: PAIRINGS, value: "half" },
  ],
  setup(page) {
    page.group(2);
    page.parent.style.gridTemplateColumns = "repeat(auto-fit, minmax(min(20rem, 100%), 1fr))";
    page.one = page.drawing("One pair as an arrow", "The dashed arrow is position 0, the other one position p. Each dot is a position before p.", paintArrow);
    page.two = page.drawing("A query and a key", "The query q (solid) is at m, the key k (dashed) at n. The arc is the angle between them.", paintTwo);
    makeGrips(page.one, page, LAST);
    makeGrips(page.two, page, FAR);
    [page.oneNote, page.twoNote] = [page.one, page.two].map(({ figure }) => { page.parent = figure; return page.note(); });
    page.group();
    page.dials = page.drawing("All pairs as dials", `Fast pairs come first. At position 0 each hand points to the right; it rotates counterclockwise. The label under a dial
      is its pair; a large dial also shows how many positions a full turn takes. Read together, the hands identify the position, as the hands
      of a clock identify the time. Choose a dial to see its pair above.`, paintDials);
    page.dialsNote = page.note();
    page.channels = page.figure("Two ways to form pairs", `Each cell is a channel of the head. A curve joins the two channels of a pair, and both have the colour of the
      pair's speed. The two forms differ by the order of the channels alone. A model trained with one gives wrong results with the other.`);
    page.key = page.channels.appendChild(element("div", { class: "key", style: "margin-bottom: .6rem; font-size: .85rem; white-space: nowrap" }));
    page.rows = Object.keys(PAIRINGS).map((pairing) => {
      const row = page.drawing("", "", paintChannels(pairing));
      row.words = element("p", { class: "note", style: "font-size: .93rem" });
      row.figure.replaceChildren(row.words, row.svg);
      page.channels.append(row.figure);
      return { pairing, row };
    });
    page.numbers = page.html(`<details><summary>All pairs as numbers</summary><div class="scroll" tabindex="0" role="region" aria-label="All pairs as numbers"></div></details>`);
    page.numbers.addEventListener("toggle", () => page.set({}, true));
    page.root.addEventListener("click", ({ target }) => { if (target.dataset.pair) page.set({ pair: Number(target.dataset.pair) }); });
    makeMotion(page);
  },
  draw(state, page) {
    const { dim, base, pair, pairing } = state, spec = { dim, rope_theta: base }, { omega } = page.lib.frequencies(spec);
    page.omega = omega;
    const isMoving = page.run.running || page.both.running;
    for (const note of [page.oneNote, page.twoNote, page.dialsNote]) note.element.setAttribute("aria-live", isMoving ? "off" : "polite");
    // The chosen pair of each position, rotated by the library from an angle.
    const [first, second] = channelsOf(pair, pairing, dim);
    const rotated = (angle, positions) => {
      const x = new Float32Array(dim * positions.length);
      positions.forEach((_, t) => x.set([Math.cos(angle)], t * dim + first));
      positions.forEach((_, t) => x.set([Math.sin(angle)], t * dim + second));
      const out = page.lib.rotate(x, page.lib.ropeTable(spec, rowsAt(positions)), { pairing });
      return positions.map((_, t) => [out[t * dim + first], out[t * dim + second]]);
    };
    // While p runs, arrow and dials stand between two positions.
    const isRunning = page.run.running && !calm.matches && Math.abs(page.run.at - state.p) <= 0.5, p = isRunning ? page.run.at : state.p;
    showArrow(page, state, p, rotated);
    showTwo(page, state, rotated);
    showDials(page, state, spec, p, isRunning ? speedOf(omega[pair], SPEEDS.p) : 0);
    const shape = `${dim} ${pair} ${pairing} ${base}`, numbers = `${shape} ${state.p}`;
    if (page.shape !== shape) {
      page.key.innerHTML = keyOf(dim / 2);
      for (const { pairing: form, row } of page.rows) {
        row.words.innerHTML = USERS[form](dim);
        row.show({ state: { ...state } });
      }
      page.shape = shape;
    }
    if (page.shown !== numbers && !page.run.running && page.numbers.open) {
      page.numbers.querySelector("div").innerHTML = tableOf(state, omega);
      page.shown = numbers;
    }
  },
});

function showArrow(page, state, p, rotated) {
  const { dim, base, pair } = state, omega = page.omega[pair], before = Math.ceil(p);
  const dots = Array.from({ length: Math.min(24, before) }, (_, i) => before - 1 - i), [way, way0] = rotated(0, [p, 0]);
  page.one.show({ state, way, way0, trail: dots.length ? rotated(0, dots) : [], angle: p * omega });
  const [[cosine, sine]] = rotated(0, [state.p]);
  page.oneNote.show(`Pair ${pair} rotates by ω = ${whole(base)}<sup>−${2 * pair}/${dim}</sup> = ${digits(omega, 4)} radians (${angleText(omega)}) per position. At position ${state.p}
      its angle is ${state.p} × ${digits(omega, 4)} = ${digits(state.p * omega, 4)} radians, or ${digits((state.p * omega) / (2 * Math.PI), 3)} turns.
      The arrow (1, 0) is now (${digits(cosine, 4)}, ${digits(sine, 4)}).`);
}
function showTwo(page, state, rotated) {
  const { m, n } = state, { both } = page, omega = page.omega[state.pair], own = (state.own * Math.PI) / 180;
  const part = both.running && !calm.matches && both.m === m && both.n === n ? both.part : 0; // between two positions
  const arrows = (shift) => [rotated(0, [m + shift])[0], rotated(own, [n + shift])[0]];
  const product = ([a, b]) => Math.fround(a[0] * b[0] + a[1] * b[1]), [q, k] = arrows(part);
  page.two.show({ state, q, k, from: own + (n + part) * omega, to: (m + part) * omega });
  const bracketed = state.own < 0 ? `(${digits(state.own)}°)` : `${digits(state.own)}°`;
  page.twoNote.show(`The angle between them is (m − n) × ω${state.own ? " minus the key's own angle" : ""}: (${m} − ${n}) × ${angleText(omega)}${state.own ? ` − ${bracketed}` : ""}
      = ${angleText((m - n) * omega - own)}. The pair adds its cosine, <strong>${digits(product(arrows(0)), 4)}</strong>, to the score of this query and key.
      At ${m + 100} and ${n + 100} it would add ${digits(product(arrows(100)), 4)}.`);
}
function showDials(page, state, spec, p, speed) {
  const { dim, base, pair } = state, { omega } = page, { cos, sin } = page.lib.ropeTable(spec, rowsAt([p])), dials = `${dim} ${base} ${pair} ${speed}`;
  if (page.dialsShown === dials) moveHands(Object.assign(page.dials.now, { cos, sin }).hands, cos, sin);
  else page.dials.show({ state: { ...state }, cos, sin, omega, speed, hands: [] });
  page.dialsShown = dials;
  const turns = (i) => digits((state.p * omega[i]) / (2 * Math.PI), 3), end = dim / 2 - 1;
  const slow = Array.from(omega).filter((one) => LAST * one < 2 * Math.PI).length;
  const completing = slow ? `${slow} of ${dim / 2} pairs ${slow === 1 ? "does" : "do"} not complete a turn` : "Every pair completes a turn";
  page.dialsNote.show(`At position ${state.p} pair 0 has made ${turns(0)} turns and pair ${end} ${turns(end)}. ${completing} in ${LAST} positions. <span style="color: var(--quiet)">For experts: past the trained length slow pairs reach angles that training
      never showed. Scaling for long contexts keeps them in the known range.</span>`);
}
