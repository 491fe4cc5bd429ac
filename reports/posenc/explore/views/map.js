// The concept map: a tree from left to right, from the problem to the models. concepts.py gives the nodes, with a column and
// a height y each; x follows from the widths of the labels. Choosing a node shows its page in a panel.
//
// x and y are pixels at scale 1; sx and sy are those on the screen. Labels grow with the scale above 1 and keep their size
// below it. Those that would overlap then are hidden.
const CURVES = [40, 80], PAD = 14, END = 40; // pixels: the curves between columns, at least and at most; margins; after the last column
const ROOM = 0.84, SCALES = [0.3, 4]; // the least scale at which all labels have room; the limits of the scale
const ZOOM = 1.4; // of a step
const NOTHING = "nothing"; // the state when no node is chosen
const SHAPES = { // by kind
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
function factsOf([title, values]) {
  const facts = values.map(([name, value]) => `<dt>${escaped(name)}</dt><dd>${escaped(value)}</dd>`);
  return `<h4>${escaped(title)}</h4><dl>${facts.join("")}</dl>`;
}
function marked(text) { // `code`, *words*, [links](#node), and papers
  return escaped(text).replace(/`([^`]+)`/g, "<code>$1</code>").replace(/\*\*?([^*]+)\*\*?/g, "<em>$1</em>")
    .replace(/\[([^\]]+)\]\(#(\w+)\)/g, '<a href="#map&amp;node=$2" data-node="$2">$1</a>')
    .replace(/arXiv (\d{4}\.\d{5})/g, (all, paper) => `<a href="https://arxiv.org/abs/${paper}">${all}</a>`);
}
const blockOf = ([kind, text]) => (kind === "code" ? `<pre>${escaped(text)}</pre>` : `<p${kind === "item" ? ' class="item"' : ""}>${marked(text)}</p>`);
// The lines of a label: long ones are wrapped in the first two columns.
const wrapped = (title, column) => (column > 1 ? [title] : title.match(/.{1,15}(?: |$)/g).map((line) => line.trim()));
function lessonOf([number, title, path]) {
  const there = explore.views.some((view) => view.id === "course");
  return there ? `<a href="#course&amp;lesson=${number}">Lesson ${number}: ${escaped(title)}</a>` : `Lesson ${number}: ${escaped(title)} <small><code>${path}</code></small>`;
}
// The page of a node, for the panel.
function pageOf(node, nodes) {
  const trail = trailOf(nodes, node).slice(0, -1), isNamed = node.kind !== "problem" && node.kind !== "group";
  const heading = isNamed ? node.summary : node.kind === "group" ? "A group" : "The problem";
  const views = explore.views.filter((view) => node.views.includes(view.id));
  const tries = views.map(({ id, title }) => `<a href="#${id}">${escaped(title)}</a>, to play with`);
  const see = node.see.map(([id, why]) => linkTo(nodes.get(id)) + (why ? `: ${marked(why)}` : ""));
  return `<div><button type="button" class="close" aria-label="Close" title="Close">×</button>
    ${trail.length ? `<p class="trail">${trail.map(linkTo).join(" › ")} ›</p>` : ""}
    <h3 tabindex="-1">${escaped(node.title)}${isNamed ? ` <code>${node.id}</code>` : ""}</h3>
    <p class="kind">${shapeOf(node.kind)} ${escaped(heading)}</p>
    ${node.text.map((text) => `<p>${marked(text)}</p>`).join("")}${node.formula ? `<pre>${escaped(node.formula)}</pre>` : ""}${
      node.where.map(blockOf).join("")}
    ${(node.facts || []).map(factsOf).join("")}<div class="place"></div>${node.code.map(codeOf).join("")}${
      listOf("Belongs here", node.children.map(linkTo))}
    ${node.models.length ? `<h4>${count(node.models.length, "model")}</h4><p>${node.models.map(linkTo).join(", ")}</p>` : ""}
    ${listOf("Learn and try", [...node.lessons.map(lessonOf), ...tries])}${listOf(node.kind === "model" ? "It uses" : "See also", see)}
    ${node.source ? `<p class="source">Source: ${marked(node.source)}</p>` : ""}</div>`;
}
const welcomeOf = (root) => `<div><h3>Where to begin</h3><p>Begin at the left: ${linkTo(root)}. Everything else follows from it.</p>${
  listOf("What follows", root.children.map(linkTo))}</div>`;
function outlineOf(node) {
  const below = [...node.children, ...node.models.filter((model) => model.parent === node.id)];
  return `<ul><li>${linkTo(node)}: ${escaped(node.summary)}${below.map(outlineOf).join("")}</li></ul>`;
}

// ---- data ----
// Returns the nodes by name, and the lines between them. A main line leads to a node from its parent.
function nodesAndLines({ nodes, edges }) {
  const found = new Map(nodes.map((node) => [node.id, { ...node, children: [], models: [] }]));
  const isMain = (from, to, kind) => kind === "part" || found.get(to).parent === from;
  const lines = edges.map(([from, to, kind]) => ({ from: found.get(from), to: found.get(to), main: isMain(from, to, kind) }));
  for (const { from, to } of lines) from[to.kind === "model" ? "models" : "children"].push(to);
  for (const node of found.values()) node.models.sort((a, b) => a.y - b.y);
  return [found, lines];
}
// The nodes from the problem to a node.
const trailOf = (nodes, node) => (node ? [...trailOf(nodes, nodes.get(node.parent)), node] : []);
const addressOf = async (packed) => URL.createObjectURL(new Blob([await unpacked(packed)], { type: "image/svg+xml" }));

class ConceptMap {
  constructor(page) {
    [this.nodes, this.lines] = nodesAndLines(page.data);
    const all = [...this.nodes.values()];
    // The cursor has the focus of the keyboard, hover is below the pointer, chosen is in the panel. The map begins at (x, y).
    Object.assign(this, { page, data: page.data, root: all[0], cursor: all[0], hover: null, chosen: undefined, scale: 0, x: 0, y: 0 });
    this.pointers = new Map(); // the fingers that are down, by id
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
    one(".tools").append(...zoomButtons(this, ZOOM));
    const spoken = { role: "application", "aria-roledescription": "concept map", "aria-label": "From the problem to the models", "aria-describedby": "map-help" };
    this.svg = this.chart.appendChild(svg("svg", spoken));
    for (const line of this.lines) line.path = this.svg.appendChild(svg("path", { class: `line ${line.main ? "" : "more"}` }));
    for (const node of [...this.nodes.values()].reverse()) this.svg.append(this.makeNode(node)); // the problem is above all
  }
  makeNode(node) {
    const lines = wrapped(node.title, node.column), users = node.models.length ? `, ${count(node.models.length, "model")}` : "";
    node.label = svg("text", {}, ...lines.map((line, i) => svg("tspan", { x: 12, y: 4 + 14 * (i - (lines.length - 1) / 2) }, line)));
    const spoken = { role: "button", tabindex: node === this.root ? "0" : "-1", "aria-label": `${node.title}, ${this.data.kinds[node.kind]}${users}` };
    node.g = svg("g", { class: `node is-${node.kind}`, "data-id": node.id, ...spoken });
    node.g.append(node.label, svg("circle", { class: "ring", r: 10 }), svg("path", { d: SHAPES[node.kind] }));
    return node.g;
  }

  // ---- places ----
  measure() { // columns as wide as their labels, and curves between them that fill the view at the first scale
    const widthOfLabel = ({ label }) => 12 + Math.max(...[...label.children].map((line) => line.getComputedTextLength()));
    if (!this.root.width) for (const node of this.nodes.values()) node.width = widthOfLabel(node);
    const widths = this.columns.map((column) => Math.max(...column.map((node) => node.width)));
    const high = Math.max(...this.columns.flat().map((node) => node.y)) + 2 * PAD, wide = widths.reduce((sum, width) => sum + width, PAD + END);
    this.height = this.width < 640 ? Math.ceil(high * ROOM) : clamp(innerHeight - 120, 740, high);
    const gaps = widths.length - 1, room = this.width / clamp(this.height / high, ROOM, 1.2) - wide, curve = clamp(room / gaps, ...CURVES);
    let x = PAD;
    this.columns.forEach((column, i) => {
      for (const node of column) node.x = x;
      x += widths[i] + curve;
    });
    this.whole = { width: wide + curve * gaps, height: high };
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
  showsLabel(node) {
    const isActive = node === this.chosen || node === this.hover;
    return this.scale >= ROOM || node.column < 2 || isActive || (this.scale >= 0.5 && node.children.length > 0);
  }
  place() { // everything at the present scale and origin
    const { scale, whole } = this, letter = Math.max(scale, 1);
    const keep = (at, size, all) => (all <= size ? clamp(at, 0, size - all) : clamp(at, size / 2 - all, size / 2)); // half of the view is map
    this.x = keep(this.x, this.width, whole.width * scale);
    this.y = keep(this.y, this.height, whole.height * scale);
    for (const node of this.nodes.values()) {
      const end = (this.showsLabel(node) ? node.width + 5 : 8) * letter; // from here its lines go on to the right
      Object.assign(node, { sx: this.x + node.x * scale, sy: this.y + (node.y + PAD) * scale, end });
      node.g.setAttribute("transform", `translate(${node.sx.toFixed(1)} ${node.sy.toFixed(1)}) scale(${letter.toFixed(3)})`);
      node.g.classList.toggle("bare", !this.showsLabel(node));
    }
    for (const line of this.lines) if (line.main || line.strong) this.drawLine(line, letter);
    this.svg.style.setProperty("--dot", clamp(scale * 1.3, 0.5, 1)); // of shapes
    this.svg.style.touchAction = whole.height * scale <= this.height + 1 ? "pan-y" : "none"; // a finger up or down then moves the page
  }
  drawLine({ from, to, path }, letter) {
    const end = to.sx - 10 * letter, start = Math.min(from.sx + from.end, end);
    const [x0, y0, middle, x1, y1] = [start, from.sy, (start + end) / 2, end, to.sy].map((pixels) => pixels.toFixed(1));
    path.setAttribute("d", `M${x0},${y0}C${middle},${y0} ${middle},${y1} ${x1},${y1}`);
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
    this.panel.innerHTML = node ? pageOf(node, this.nodes) : welcomeOf(this.root);
    this.panel.classList.toggle("empty", !node);
    this.panel.scrollTop = 0;
    if (node) this.tabTo(node);
    this.mark();
    if (node && this.whole && !first) this.reveal(node);
    if (this.data.pictures[node?.picture]) this.showPicture(this.data.pictures[node.picture], this.panel.querySelector(".place"));
  }
  async showPicture(picture, place) {
    picture.url ||= await addressOf(picture.svg);
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
    const around = this.columns[column], at = around.indexOf(this.cursor), [nearest] = [...models].sort((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y));
    const along = { ArrowRight: children[0] || nearest, ArrowLeft: this.nodes.get(parent), ArrowUp: around[at - 1], ArrowDown: around[at + 1] };
    return { Home: this.root, ...along }[key];
  }
  press(event) {
    const next = this.neighbour(this.cursor, event.key);
    const open = () => this.open(this.cursor, true), zoomIn = () => this.zoomBy(ZOOM), zoomOut = () => this.zoomBy(1 / ZOOM);
    const actions = { Enter: open, " ": open, "+": zoomIn, "=": zoomIn, "-": zoomOut, 0: () => this.showWhole() };
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
      this.zoomBy(wheelZoom(event), event);
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
    let moved = 0, pressed = null; // pixels since the first finger was down, and the node that it pressed
    map.addEventListener("pointerdown", (event) => {
      if (!pointers.size) [moved, pressed] = [0, this.nodeAt(event)];
      pointers.set(event.pointerId, [event.clientX, event.clientY]);
      if (!pressed) { event.preventDefault(); this.cursor.g.focus({ preventScroll: true }); }
    });
    map.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId), wide = spreadOf(pointers);
      if (!before) return;
      const dx = event.clientX - before[0], dy = event.clientY - before[1];
      pointers.set(event.pointerId, [event.clientX, event.clientY]);
      moved += Math.abs(dx) + Math.abs(dy);
      if (!wide && moved <= 4) return;
      map.setPointerCapture(event.pointerId);
      map.classList.add("dragged");
      if (wide) return this.zoomBy(spreadOf(pointers) / wide, event);
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

function choicesOf(nodes) {
  const indent = (node) => "\u2003".repeat(Math.min(node.column, 3));
  return Object.fromEntries([[NOTHING, "choose a concept"], ...nodes.map((node) => [node.id, indent(node) + node.title])]);
}

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
