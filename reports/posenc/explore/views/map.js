// The concept map: a tree from left to right, from the problem to the models, drawn in pixels of the screen. concepts.py gives the nodes and where they
// stand; a column is as wide as its labels. Labels grow with the scale above 1 and keep their size below it; those that would overlap then are hidden.
const CURVES = [40, 80], PAD = 14, END = 40, ROOM = 0.84, SCALES = [0.3, 4], NOTHING = "nothing";
const SHAPES = {
  problem: "M-7,0a7,7 0 1,0 14,0a7,7 0 1,0 -14,0z", group: "M-6,-6h12v12h-12z", kernel: "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",
  method: "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0z", scaling: "M0,-6.5L6.5,0L0,6.5L-6.5,0z", numerics: "M0,-6L6,5H-6z", model: "M-3.5,-3.5h7v7h-7z",
};
const clamp = (value, least, most) => Math.max(least, Math.min(most, value));

// ---- texts ----
const count = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;
const escaped = (text) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
const linkTo = (node) => `<a href="#map&amp;node=${node.id}" data-node="${node.id}">${escaped(node.title)}</a>`;
const listOf = (heading, items) => (items.length ? `<h4>${heading}</h4><ul>${items.map((item) => `<li>${item}</li>`).join("")}</ul>` : "");
const shapeOf = (kind) => `<svg class="is-${kind}" width="16" height="16" viewBox="-8 -8 16 16" aria-hidden="true"><path d="${SHAPES[kind]}"></path></svg>`;
const codeOf = ([where, code]) => `<h4>${where === "terminal" ? "In a terminal" : `In ${where}`}</h4><pre>${escaped(code)}</pre>`;
const factsOf = ([title, values]) => `<h4>${escaped(title)}</h4><dl>${values.map(([name, value]) => `<dt>${escaped(name)}</dt><dd>${escaped(value)}</dd>`).join("")}</dl>`;
function marked(text) { // `code`, *words*, [links](#node), and papers
  return escaped(text).replace(/`([^`]+)`/g, "<code>$1</code>").replace(/\*\*?([^*]+)\*\*?/g, "<em>$1</em>")
    .replace(/\[([^\]]+)\]\(#(\w+)\)/g, '<a href="#map&amp;node=$2" data-node="$2">$1</a>')
    .replace(/arXiv (\d{4}\.\d{5})/g, (all, paper) => `<a href="https://arxiv.org/abs/${paper}">${all}</a>`);
}
const blockOf = ([kind, text]) => (kind === "code" ? `<pre>${escaped(text)}</pre>` : `<p${kind === "item" ? ' class="item"' : ""}>${marked(text)}</p>`);
const wrapped = (title, column) => (column > 1 ? [title] : title.match(/.{1,15}(?: |$)/g).map((line) => line.trim())); // the lines of a label
function lessonOf([number, title, path]) {
  const there = explore.views.some((view) => view.id === "course");
  return there ? `<a href="#course&amp;lesson=${number}">Lesson ${number}: ${escaped(title)}</a>` : `Lesson ${number}: ${escaped(title)} <small><code>${path}</code></small>`;
}
function textOf(node, nodes) {
  const trail = trailOf(nodes, node).slice(0, -1), named = node.kind !== "problem" && node.kind !== "group";
  const views = explore.views.filter((view) => node.views.includes(view.id)).map(({ id, title }) => `<a href="#${id}">${escaped(title)}</a>, to play with`);
  const see = node.see.map(([id, why]) => linkTo(nodes.get(id)) + (why ? `: ${marked(why)}` : ""));
  return `<div><button type="button" class="close" aria-label="Close" title="Close">×</button>
    ${trail.length ? `<p class="trail">${trail.map(linkTo).join(" › ")} ›</p>` : ""}
    <h3 tabindex="-1">${escaped(node.title)}${named ? ` <code>${node.id}</code>` : ""}</h3>
    <p class="kind">${shapeOf(node.kind)} ${escaped(named ? node.summary : node.kind === "group" ? "A group" : "The problem")}</p>
    ${node.text.map((text) => `<p>${marked(text)}</p>`).join("")}${node.formula ? `<pre>${escaped(node.formula)}</pre>` : ""}${node.where.map(blockOf).join("")}
    ${(node.facts || []).map(factsOf).join("")}<div class="place"></div>${node.code.map(codeOf).join("")}${listOf("Belongs here", node.children.map(linkTo))}
    ${node.models.length ? `<h4>${count(node.models.length, "model")}</h4><p>${node.models.map(linkTo).join(", ")}</p>` : ""}
    ${listOf("Learn and try", [...node.lessons.map(lessonOf), ...views])}${listOf(node.kind === "model" ? "It uses" : "See also", see)}
    ${node.source ? `<p class="source">Source: ${marked(node.source)}</p>` : ""}</div>`;
}
const welcomeOf = (root) => `<div><h3>Where to begin</h3><p>Begin at the left: ${linkTo(root)}. Everything else follows from it.</p>${listOf("What follows", root.children.map(linkTo))}</div>`;
function outlineOf(node) {
  const below = [...node.children, ...node.models.filter((model) => model.parent === node.id)];
  return `<ul><li>${linkTo(node)}: ${escaped(node.summary)}${below.map(outlineOf).join("")}</li></ul>`;
}

// ---- data ----
function linesOf({ nodes, edges }) { // nodes by name, and the lines between them
  const found = new Map(nodes.map((node) => [node.id, { ...node, children: [], models: [] }]));
  const lines = edges.map(([from, to, kind]) => ({ from: found.get(from), to: found.get(to), main: kind === "part" || found.get(to).parent === from }));
  for (const { from, to } of lines) from[to.kind === "model" ? "models" : "children"].push(to);
  for (const node of found.values()) node.models.sort((a, b) => a.y - b.y);
  return [found, lines];
}
const trailOf = (nodes, node) => (node ? [...trailOf(nodes, nodes.get(node.parent)), node] : []);
async function pictureAt(packed) { // gzip in base64, as the library is
  const stream = new Blob([Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream("gzip"));
  return URL.createObjectURL(new Blob([await new Response(stream).text()], { type: "image/svg+xml" }));
}

class ConceptMap {
  constructor(page) {
    [this.nodes, this.lines] = linesOf(page.data);
    const all = [...this.nodes.values()];
    Object.assign(this, { page, data: page.data, root: all[0], cursor: all[0], hover: null, scale: 0, x: 0, y: 0, pointers: new Map() });
    this.columns = [0, 1, 2, 3, 4].map((column) => all.filter((node) => node.column === column).sort((a, b) => a.y - b.y));
    this.make();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.chart);
  }

  // ---- elements ----
  make() {
    const figure = this.page.figure("From the problem to the models", `A line leads from each concept to what belongs to it. Choose one to read about it. Drag the map to move it.
      The wheel zooms after a click on the map, or with Ctrl, and so do two fingers and the keys + and −.`);
    this.page.html(`<ul class="legend">${Object.entries(this.data.kinds).map(([kind, words]) => `<li>${shapeOf(kind)}${escaped(words)}</li>`).join("")}</ul>
      <div class="concepts"><div><div class="chart"></div><div class="under"><p class="readout"></p><div class="tools" role="group" aria-label="Zoom"></div></div></div>
      <div class="panel" role="region" aria-label="The chosen concept"></div></div>
      <p class="unseen" id="map-help">Arrow keys move along the lines: right to what belongs to a concept, left to what it belongs to, up and down within a column.
        Enter opens a concept, Escape closes it. Plus and minus zoom, 0 shows the whole map, Home leads to the problem. The same is a list below.</p>
      <details class="outline"><summary>The map as a list</summary>${outlineOf(this.root)}</details><dialog class="enlarged" aria-label="Picture"></dialog>`, figure);
    const one = (selector) => figure.querySelector(selector);
    Object.assign(this, { figure, chart: one(".chart"), panel: one(".panel"), readout: one(".readout"), list: one(".outline"), dialog: one("dialog") });
    for (const [text, label, action] of [["−", "Zoom out", () => this.zoomBy(1 / 1.4)], ["+", "Zoom in", () => this.zoomBy(1.4)], ["Whole", "Show the whole map", () => this.showWhole()]])
      one(".tools").appendChild(element("button", { type: "button", title: label, "aria-label": label }, text)).addEventListener("click", action);
    this.svg = this.chart.appendChild(svg("svg", { role: "application", "aria-roledescription": "concept map", "aria-label": "From the problem to the models", "aria-describedby": "map-help" }));
    for (const line of this.lines) line.path = this.svg.appendChild(svg("path", { class: `line ${line.main ? "" : "more"}` }));
    for (const node of [...this.nodes.values()].reverse()) this.svg.append(this.makeNode(node)); // the problem is above all
  }
  makeNode(node) {
    const lines = wrapped(node.title, node.column), users = node.models.length ? `, ${count(node.models.length, "model")}` : "";
    node.label = svg("text", {}, ...lines.map((line, i) => svg("tspan", { x: 12, y: 4 + 14 * (i - (lines.length - 1) / 2) }, line)));
    node.g = svg("g", { class: `node is-${node.kind}`, "data-id": node.id, role: "button", tabindex: node === this.root ? "0" : "-1", "aria-label": `${node.title}, ${this.data.kinds[node.kind]}${users}` });
    node.g.append(node.label, svg("circle", { class: "ring", r: 10 }), svg("path", { d: SHAPES[node.kind] }));
    return node.g;
  }

  // ---- places ----
  measure() { // columns as wide as their labels, and curves between them that fill the view at the first scale
    const high = Math.max(...this.columns.flat().map((node) => node.y)) + 2 * PAD, widest = (column) => Math.max(...column.map((node) => node.width));
    if (!this.root.width) for (const node of this.nodes.values()) node.width = 12 + Math.max(...[...node.label.children].map((line) => line.getComputedTextLength()));
    this.height = this.width < 640 ? Math.ceil(high * ROOM) : clamp(innerHeight - 120, 740, high);
    const wide = this.columns.reduce((sum, column) => sum + widest(column), PAD + END), room = this.width / clamp(this.height / high, ROOM, 1.2) - wide;
    const curve = clamp(room / (this.columns.length - 1), ...CURVES);
    this.columns.reduce((x, column) => { for (const node of column) node.x = x; return x + widest(column) + curve; }, PAD);
    this.whole = { width: wide + curve * (this.columns.length - 1), height: high };
  }
  draw() {
    this.width = this.chart.clientWidth;
    if (!this.width) return;
    this.measure();
    this.svg.style.height = `${this.height}px`;
    if (!this.scale) this.showWhole(ROOM); // at first with all labels
    this.place();
  }
  center(x, y) { Object.assign(this, { x: this.width / 2 - x * this.scale, y: this.height / 2 - y * this.scale }); }
  showWhole(least = SCALES[0]) {
    this.scale = clamp(Math.min(this.width / this.whole.width, this.height / this.whole.height), least, 1.2);
    this.center(Math.min(this.whole.width, this.width / this.scale) / 2, this.whole.height / 2); // or its left side, where it has no room
    this.place();
  }
  shows(node) { return this.scale >= ROOM || node.column < 2 || node === this.chosen || node === this.hover || (this.scale >= 0.5 && node.children.length > 0); }
  place() {
    const { scale, whole } = this, letter = Math.max(scale, 1);
    const keep = (at, size, all) => (all <= size ? clamp(at, 0, size - all) : clamp(at, size / 2 - all, size / 2)); // half of the view is map
    this.x = keep(this.x, this.width, whole.width * scale);
    this.y = keep(this.y, this.height, whole.height * scale);
    for (const node of this.nodes.values()) {
      Object.assign(node, { sx: this.x + node.x * scale, sy: this.y + (node.y + PAD) * scale, end: (this.shows(node) ? node.width + 5 : 8) * letter });
      node.g.setAttribute("transform", `translate(${node.sx.toFixed(1)} ${node.sy.toFixed(1)}) scale(${letter.toFixed(3)})`);
      node.g.classList.toggle("bare", !this.shows(node));
    }
    for (const line of this.lines) if (line.main || line.strong) this.drawLine(line, letter);
    this.svg.style.setProperty("--dot", clamp(scale * 1.3, 0.5, 1)); // of shapes
    this.svg.style.touchAction = whole.height * scale <= this.height + 1 ? "pan-y" : "none"; // a finger up or down then moves the page
  }
  drawLine({ from, to, path }, letter) {
    const end = to.sx - 10 * letter, start = Math.min(from.sx + from.end, end), middle = ((start + end) / 2).toFixed(1);
    path.setAttribute("d", `M${start.toFixed(1)},${from.sy.toFixed(1)}C${middle},${from.sy.toFixed(1)} ${middle},${to.sy.toFixed(1)} ${end.toFixed(1)},${to.sy.toFixed(1)}`);
  }
  mark() { // the chosen concept, or the one at the pointer: its lines, and the path from the problem
    const active = this.hover || this.chosen, trail = new Set(trailOf(this.nodes, active));
    for (const node of this.nodes.values()) {
      node.g.classList.toggle("near", trail.has(node));
      node.g.classList.toggle("chosen", node === this.chosen);
      node.g.setAttribute("aria-current", String(node === this.chosen));
    }
    for (const line of this.lines) {
      const { from, to, main, path } = line;
      line.strong = from === active || to === active || (main && trail.has(from) && trail.has(to));
      path.classList.toggle("strong", line.strong);
      if (line.strong) for (const end of [from, to]) end.g.classList.add("near");
      if (line.strong && this.whole) this.drawLine(line, Math.max(this.scale, 1));
    }
    if (this.whole && this.scale < ROOM) this.place();
    this.readout.textContent = active ? `${active.title}: ${active.summary}` : `${count(this.nodes.size, "concept")} and models. Point at one, or use the arrow keys.`;
  }
  reveal(node) { // moves the map, and the page where the panel covers the concept
    const inside = node.sx > 20 && node.sx + Math.min(node.width, 90) < this.width && node.sy > 20 && node.sy < this.height - 20;
    if (!inside) this.center(node.x + node.width / 2, node.y + PAD);
    this.place();
    const at = node.g.querySelector("path").getBoundingClientRect(), sheet = getComputedStyle(this.panel).position === "fixed";
    const bottom = sheet && this.chosen ? this.panel.getBoundingClientRect().top : innerHeight;
    if (at.bottom > bottom - 30 || at.top < 20) window.scrollBy(0, at.top - bottom / 2);
  }

  // ---- the panel ----
  choose(id) {
    const node = this.nodes.get(id) || null, first = this.chosen === undefined;
    if (node === this.chosen) return;
    this.chosen = node;
    this.panel.innerHTML = node ? textOf(node, this.nodes) : welcomeOf(this.root);
    this.panel.classList.toggle("empty", !node);
    this.panel.scrollTop = 0;
    if (node) this.tabTo(node);
    this.mark();
    if (node && this.whole && !first) this.reveal(node);
    if (this.data.pictures[node?.picture]) this.showPicture(this.data.pictures[node.picture], this.panel.querySelector(".place"));
  }
  async showPicture(picture, place) {
    picture.url ||= await pictureAt(picture.svg);
    const image = `<img src="${picture.url}" alt="${escaped(picture.alt)}">`, text = `<p><strong>How to read this.</strong> ${marked(picture.reading)}</p>`;
    const button = this.page.html(`<button type="button" class="thumb" title="Enlarge">${image}</button>${text}`, place);
    button.addEventListener("click", () => {
      this.dialog.innerHTML = `<form method="dialog"><button class="close" aria-label="Close">×</button></form>${image}${text}`;
      this.dialog.showModal();
    });
  }
  open(node, enters = false) {
    this.enters = enters;
    this.page.set({ node: node.id });
  }
  read() { // after a key or a link, the focus goes to what it opened
    if (this.enters) this.panel.querySelector("h3").focus({ preventScroll: true });
    this.enters = false;
  }
  close() {
    this.chosen.g.focus({ preventScroll: true });
    this.page.set({ node: NOTHING });
  }

  // ---- keys and pointers ----
  tabTo(node) {
    this.cursor.g.setAttribute("tabindex", "-1");
    this.cursor = node;
    node.g.setAttribute("tabindex", "0");
  }
  point(node) { if (node !== this.hover) { this.hover = node; this.mark(); } }
  zoomBy(factor, event) { // around the pointer, else the middle
    const scale = clamp(this.scale * factor, ...SCALES), by = scale / this.scale, { left, top } = this.svg.getBoundingClientRect();
    const [px, py] = event ? [event.clientX - left, event.clientY - top] : [this.width / 2, this.height / 2];
    Object.assign(this, { scale, x: px - (px - this.x) * by, y: py - (py - this.y) * by });
    this.place();
  }
  neighbour({ children, models, parent, column, y }, key) {
    const around = this.columns[column], at = around.indexOf(this.cursor), nearest = [...models].sort((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y));
    return { Home: this.root, ArrowRight: children[0] || nearest[0], ArrowLeft: this.nodes.get(parent), ArrowUp: around[at - 1], ArrowDown: around[at + 1] }[key];
  }
  press(event) {
    const next = this.neighbour(this.cursor, event.key);
    const actions = { Enter: () => this.open(this.cursor, true), " ": () => this.open(this.cursor, true), "+": () => this.zoomBy(1.4), "=": () => this.zoomBy(1.4), "-": () => this.zoomBy(1 / 1.4), 0: () => this.showWhole() };
    if (event.ctrlKey || event.metaKey || event.altKey || !(next || event.key in actions || /^Arrow/.test(event.key))) return;
    event.preventDefault();
    if (!next) return actions[event.key]?.();
    next.g.focus({ preventScroll: true });
    this.reveal(next);
  }
  nodeAt(event) { return this.nodes.get(event.target.closest(".node")?.dataset.id) || null; }
  listen() {
    const { svg: map } = this, on = (name, work, at = map, options = {}) => at.addEventListener(name, work, options);
    on("keydown", (event) => this.press(event));
    on("focusin", (event) => { this.tabTo(this.nodeAt(event)); this.point(this.nodeAt(event)); });
    on("pointerover", (event) => { if (!this.pointers.size) this.point(this.nodeAt(event)); });
    for (const name of ["focusout", "pointerleave"]) on(name, () => this.point(null));
    on("wheel", (event) => { // it scrolls the page unless the map has the focus
      if (!event.ctrlKey && !map.contains(document.activeElement)) return;
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event);
    }, map, { passive: false });
    on("keydown", (event) => { if (event.key === "Escape" && !this.dialog.open && this.chosen) this.close(); }, this.page.root);
    on("click", (event) => {
      const link = event.target.closest("a[data-node]");
      if (event.target.closest(".panel .close")) this.close();
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.open(this.nodes.get(link.dataset.node), true);
    }, this.figure);
    for (const [name, open] of [["beforeprint", true], ["afterprint", false]]) on(name, () => { this.list.open = open; }, window);
    this.listenToDrags(map, this.pointers);
  }
  listenToDrags(map, pointers) { // one finger or the mouse moves the map, two fingers zoom
    let moved = 0, pressed = null;
    const spread = () => { const [a, b] = [...pointers.values()]; return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0; };
    map.addEventListener("pointerdown", (event) => {
      if (!pointers.size) [moved, pressed] = [0, this.nodeAt(event)];
      pointers.set(event.pointerId, [event.clientX, event.clientY]);
      if (!pressed) { event.preventDefault(); this.cursor.g.focus({ preventScroll: true }); }
    });
    map.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId), wide = spread();
      if (!before) return;
      const dx = event.clientX - before[0], dy = event.clientY - before[1];
      pointers.set(event.pointerId, [event.clientX, event.clientY]);
      moved += Math.abs(dx) + Math.abs(dy);
      if (!wide && moved <= 4) return;
      map.setPointerCapture(event.pointerId);
      map.classList.add("dragged");
      if (wide) return this.zoomBy(spread() / wide, event);
      Object.assign(this, { x: this.x + dx, y: this.y + dy });
      this.place();
    });
    const end = (event) => {
      if (!pointers.delete(event.pointerId)) return;
      map.classList.remove("dragged");
      if (event.type === "pointerup" && moved <= 4 && pressed && !pointers.size) this.open(pressed);
    };
    for (const name of ["pointerup", "pointercancel", "lostpointercapture", "pointerleave"]) map.addEventListener(name, end);
  }
}

const choicesOf = (nodes) => Object.fromEntries([[NOTHING, "choose a concept"], ...nodes.map((node) => [node.id, `${"\u2003".repeat(Math.min(node.column, 3))}${node.title}`])]);

addView({
  id: "map",
  order: 95,
  title: "The concept map",
  intro: `<p>Attention does not see the order of words. This map leads from that problem to every answer that posenc computes, and on to the models that use it.
    Begin at the left, or look up a name that you have met. Texts and formulas are those of <code>posenc explain</code>, the models are presets of the library.</p>`,
  get controls() { return explore.data.map ? [{ id: "node", label: "Go to", options: choicesOf(explore.data.map.nodes), value: NOTHING }] : []; },
  setup(page) { if (page.data) page.map = page.keep(new ConceptMap(page)); },
  draw(state, page) {
    page.map?.draw();
    page.map?.choose(state.node);
    page.map?.read();
  },
});
