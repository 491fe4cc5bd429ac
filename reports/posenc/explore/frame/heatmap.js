// Heat maps on a canvas: zoom, pan, and a cursor that reads a cell, by pointer, finger and keyboard.
//
//   const map = page.heatMap({ title, how, tall: 420, square: false, pick(row, column) { ... } });
//   map.show({
//     rows: 64, columns: 32, values,            row by row; an array whose values change later must be a new one
//     row: "position", column: "dimension",     names of the axes
//     rowAt: (r) => r, columnAt: (c) => c,      what stands at a row and a column (numbers or texts)
//     colors: "diverging" or "sequential", limits: [-1, 1],     limits are those of the values if none are given
//     cell: (r, c, value) => "text",            what the cursor reads; write: (value) => text in a large cell
//     unit: "",                                 of the scale below the map
//     marks: [{ row, column }],                 cells with an outline that stays
//     masked: "masked",                         the name of hatched cells: those of −∞ and NaN
//   });
// pick() is called when a cell is clicked, or chosen by Enter.
const MARGIN = { left: 46, right: 6, top: 6, bottom: 34, name: 22 }; // pixels; at the left at least, of which `name` is for the name of the rows
const HATCH = 8; // pixels between the lines in masked cells
const ZOOM_STEP = 1.6;

class HeatMap {
  constructor(page, options) {
    // (x, y) is the column and the row that begin at the corner of the plot; the cursor is a cell, or null.
    Object.assign(this, { page, options, zoom: 1, x: 0, y: 0, cursor: null, data: null, pointers: new Map() });
    this.figure = page.figure(options.title, options.how);
    this.figure.classList.add("map");
    this.canvas = element("canvas", { tabindex: "0", role: "application", "aria-roledescription": "heat map", "aria-label": options.title });
    this.readout = element("p", { class: "readout" }, "\u00a0");
    this.spoken = element("p", { class: "unseen", "aria-live": "polite" });
    this.key = element("div", { class: "key" });
    const tools = element("div", { class: "tools", role: "group", "aria-label": "Zoom" });
    tools.append(...zoomButtons(this, ZOOM_STEP, `: ${options.title}`));
    const help = element("p", { class: "unseen", id: `${page.view.id}-map-${page.figures.length}` },
      "Arrow keys move from cell to cell, with Shift by eight. Plus and minus zoom, 0 shows the whole map. Enter picks the cell.");
    this.canvas.setAttribute("aria-describedby", help.id);
    this.under = element("div", { class: "under" }, this.key, tools);
    this.figure.append(element("div", { class: "canvas" }, this.canvas), this.under, this.readout, this.spoken, help);
    this.listen();
    watchWidth(this);
  }

  show(data) {
    const before = this.data;
    const defaults = { colors: "diverging", rowAt: (r) => r, columnAt: (c) => c, write: (value) => digits(value, 3) };
    this.data = { ...defaults, unit: "", marks: [], masked: "no value", ...data };
    if (!this.data.limits) this.data.limits = limitsOf(data.values, this.data.colors);
    const isOtherSize = before && (before.rows !== data.rows || before.columns !== data.columns);
    if (isOtherSize) Object.assign(this, { zoom: 1, x: 0, y: 0, cursor: null });
    if (!before || !samePicture(before, this.data)) this.painted = null;
    this.draw();
  }

  // ---- drawing ----
  // Sizes in pixels: of the canvas (width, full), and of the plot in it (left, plot, height).
  sizes() {
    const { rows, columns, rowAt } = this.data, { width } = this;
    const labels = [rowAt(0), rowAt(rows - 1)].map((value) => widthOf(labelOf(value)));
    const left = Math.ceil(Math.max(MARGIN.left, MARGIN.name + 8 + Math.max(...labels)));
    const plot = width - left - MARGIN.right, most = this.options.tall || 420;
    const cell = plot / columns, natural = rows * (this.options.square ? cell : Math.max(cell, 14));
    const height = Math.max(Math.min(natural, most), Math.min(rows * 26, 90));
    const fit = this.options.square && natural > most ? most * (columns / rows) : plot;
    return { width, left, plot: fit, height, full: height + MARGIN.top + MARGIN.bottom };
  }
  paint() { // one pixel a cell
    const { rows, columns, values, limits, colors } = this.data, { words } = theme()[colors];
    const [least, most] = limits, factor = 255 / (most - least || 1), image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    this.hasMasked = false;
    for (let i = 0; i < pixels.length; i++) {
      const at = (values[i] - least) * factor;
      if (isMasked(values[i])) this.hasMasked = true; // its pixel is transparent, and shows what is below
      else pixels[i] = words[at > 255 ? 255 : at > 0 ? at | 0 : 0];
    }
    this.cells ||= element("canvas");
    Object.assign(this.cells, { width: columns, height: rows });
    this.cells.getContext("2d").putImageData(image, 0, 0);
    this.painted = theme();
  }
  draw() {
    if (!this.data || !this.width) return;
    if (this.painted !== theme()) this.paint();
    const { rows, columns } = this.data, size = this.sizes(), ratio = window.devicePixelRatio || 1;
    this.size = size;
    this.clamp();
    Object.assign(this.canvas, { width: Math.round(size.width * ratio), height: Math.round(size.full * ratio) });
    this.canvas.style.height = `${size.full}px`;
    this.under.style.maxWidth = `${Math.max(size.plot, 290)}px`;
    this.figure.style.setProperty("--left", `${size.left}px`);
    const context = this.canvas.getContext("2d"), shown = { columns: columns / this.zoom, rows: rows / this.zoom };
    this.cell = { width: size.plot / shown.columns, height: size.height / shown.rows };
    context.scale(ratio, ratio);
    context.save();
    context.beginPath();
    context.rect(size.left, MARGIN.top, size.plot, size.height);
    context.clip();
    if (this.hasMasked) this.hatch(context);
    context.imageSmoothingEnabled = Math.min(this.cell.width, this.cell.height) * ratio < 1;
    context.imageSmoothingQuality = "high";
    context.drawImage(this.cells, this.x, this.y, shown.columns, shown.rows, size.left, MARGIN.top, size.plot, size.height);
    this.drawNumbers(context);
    context.restore();
    this.drawAxes(context);
    for (const mark of this.data.marks) this.outline(context, mark, 2.6);
    if (this.cursor) this.outline(context, this.cursor, 1.6);
    this.drawKey();
    this.read();
  }
  // Where cell (row, column) begins on the canvas.
  at(row, column) {
    return [this.size.left + (column - this.x) * this.cell.width, MARGIN.top + (row - this.y) * this.cell.height];
  }
  // The rows r0 to r1 - 1 and columns c0 to c1 - 1 that are in sight.
  visible() {
    const { rows, columns } = this.data, r0 = Math.floor(this.y), c0 = Math.floor(this.x);
    const r1 = Math.min(rows, Math.ceil(this.y + rows / this.zoom)), c1 = Math.min(columns, Math.ceil(this.x + columns / this.zoom));
    return { r0, r1, c0, c1 };
  }
  // Numbers in cells that have room for the longest of those in sight.
  drawNumbers(context) {
    const { width, height } = this.cell, { values, columns, limits: [least, most], colors, write } = this.data;
    if (width < 18 || height < 16) return;
    const { r0, r1, c0, c1 } = this.visible(), scale = theme()[colors], texts = [];
    const colorOf = (value) => Math.min(255, Math.max(0, Math.floor(((value - least) / (most - least || 1)) * 255))) || 0;
    for (let r = r0; r < r1; r++)
      for (let c = c0; c < c1; c++) {
        const value = values[r * columns + c];
        if (!isMasked(value)) texts.push([write(value), scale.ink(colorOf(value)), r, c]);
      }
    const longest = texts.reduce((longest, [text]) => (text.length > longest.length ? text : longest), ""); // digits have one width
    const size = Math.min(14, height - 4, (12 * (width - 6)) / widthOf(longest));
    if (size < 10) return;
    context.font = `${size}px system-ui, sans-serif`;
    Object.assign(context, { textAlign: "center", textBaseline: "middle" });
    for (const [text, color, r, c] of texts) {
      const [x, y] = this.at(r, c);
      context.fillStyle = color;
      context.fillText(text, x + width / 2, y + height / 2);
    }
  }
  hatch(context) { // lines over the whole plot; cells with a value cover them
    const { plot, height, left } = this.size, { soft, quiet } = theme(), { top } = MARGIN;
    Object.assign(context, { fillStyle: soft, strokeStyle: quiet, lineWidth: 1, globalAlpha: 1 });
    context.fillRect(left, top, plot, height);
    context.beginPath();
    for (let x = left - height; x < left + plot; x += HATCH) {
      context.moveTo(x, top + height);
      context.lineTo(x + height, top);
    }
    context.globalAlpha = 0.45;
    context.stroke();
    context.globalAlpha = 1;
  }
  outline(context, { row, column }, thick) { // around what is in sight of a cell
    const [left, top] = this.at(row, column), { width, height } = this.cell, { ink, paper } = theme(), { size } = this;
    const inside = (from, length, least, most) => [Math.max(from, least), Math.min(from + length, most) - Math.max(from, least)];
    const [x, wide] = inside(left, width, size.left, size.left + size.plot), [y, tall] = inside(top, height, MARGIN.top, MARGIN.top + size.height);
    if (wide <= 0 || tall <= 0) return;
    const [w, h] = [Math.max(wide, 5) + 2, Math.max(tall, 5) + 2];
    for (const [color, line] of [[paper, thick + 2.4], [ink, thick]]) {
      Object.assign(context, { strokeStyle: color, lineWidth: line });
      context.strokeRect(x + (wide - w) / 2, y + (tall - h) / 2, w, h);
    }
  }
  drawAxes(context) {
    const { quiet, ink, line } = theme(), { row, column, rowAt, columnAt } = this.data, { plot, height, full, left } = this.size;
    const { r0, r1, c0, c1 } = this.visible();
    Object.assign(context, { strokeStyle: line, lineWidth: 1, fillStyle: quiet, font: "12px system-ui, sans-serif" });
    Object.assign(context, { textAlign: "center", textBaseline: "top" });
    context.strokeRect(left - 0.5, MARGIN.top - 0.5, plot + 1, height + 1);
    for (const c of ticks(c0, c1, Math.max(2, plot / 56))) {
      const [x] = this.at(0, c + 0.5);
      if (x >= left && x <= left + plot) context.fillText(labelOf(columnAt(c)), x, MARGIN.top + height + 5);
    }
    Object.assign(context, { textAlign: "right", textBaseline: "middle" });
    for (const r of ticks(r0, r1, Math.max(2, height / 30))) {
      const [, y] = this.at(r + 0.5, 0);
      if (y >= MARGIN.top && y <= MARGIN.top + height) context.fillText(labelOf(rowAt(r)), left - 6, y, left - MARGIN.name);
    }
    Object.assign(context, { fillStyle: ink, textAlign: "center", textBaseline: "bottom" });
    context.fillText(`${column} →`, left + plot / 2, full);
    context.save();
    context.translate(10, MARGIN.top + height / 2);
    context.rotate(-Math.PI / 2);
    context.textBaseline = "middle";
    context.fillText(`← ${row}`, 0, 0);
    context.restore();
  }
  drawKey() {
    const { limits: [least, most], colors, unit, masked } = this.data, { css } = theme()[colors], n = digitsApart(least, most);
    const stops = [0, 32, 64, 96, 128, 160, 192, 224, 255].map(css).join(", ");
    const bar = element("span", { class: "bar", style: `background: linear-gradient(to right, ${stops})` });
    this.key.replaceChildren(digits(least, n), bar, digits(most, n), unit ? ` ${unit}` : "");
    if (this.hasMasked) this.key.append(element("span", { class: "hatched" }), masked);
  }
  read() {
    const { rows, columns, cell, row, column, rowAt, columnAt, values } = this.data;
    this.readout.classList.toggle("hint", !this.cursor);
    if (!this.cursor) {
      this.readout.textContent = `${rows} × ${columns} values. Point at a cell, or use the arrow keys.`;
      return;
    }
    const { row: r, column: c } = this.cursor, value = values[r * columns + c];
    const words = () => `${row} ${labelOf(rowAt(r))}, ${column} ${labelOf(columnAt(c))}: ${digits(value, 9)}`;
    this.readout.textContent = cell ? cell(r, c, value) : words();
  }

  // ---- moving ----
  clamp() {
    const { rows, columns } = this.data, most = Math.max(1, Math.min(rows, columns) / 3, Math.max(rows, columns) / 8);
    this.zoom = Math.min(most, Math.max(1, this.zoom));
    this.x = Math.min(columns - columns / this.zoom, Math.max(0, this.x));
    this.y = Math.min(rows - rows / this.zoom, Math.max(0, this.y));
    this.canvas.classList.toggle("zoomed", this.zoom > 1);
  }
  zoomBy(factor, px, py) {
    const { rows, columns } = this.data;
    let fx = px, fy = py; // parts of the plot that stay where they are
    if (px === undefined) {
      fx = this.cursor ? Math.min(1, Math.max(0, ((this.cursor.column + 0.5 - this.x) * this.zoom) / columns)) : 0.5;
      fy = this.cursor ? Math.min(1, Math.max(0, ((this.cursor.row + 0.5 - this.y) * this.zoom) / rows)) : 0.5;
    }
    const [x, y] = [this.x + (fx * columns) / this.zoom, this.y + (fy * rows) / this.zoom];
    this.zoom *= factor;
    this.clamp();
    this.x = x - (fx * columns) / this.zoom;
    this.y = y - (fy * rows) / this.zoom;
    this.draw();
  }
  showWhole() {
    this.zoom = 1;
    this.draw();
  }
  // The parts of the plot at a pointer, from 0 to 1.
  partsOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left - this.size.left) / this.size.plot, (event.clientY - box.top - MARGIN.top) / this.size.height];
  }
  cellOf(event) {
    const { rows, columns } = this.data, [px, py] = this.partsOf(event);
    if (px < 0 || py < 0 || px >= 1 || py >= 1) return null;
    const row = Math.floor(this.y + (py * rows) / this.zoom), column = Math.floor(this.x + (px * columns) / this.zoom);
    return { row: Math.min(rows - 1, row), column: Math.min(columns - 1, column) };
  }
  point(cursor) {
    const same = cursor?.row === this.cursor?.row && cursor?.column === this.cursor?.column;
    if (same || !cursor) return;
    this.cursor = cursor;
    this.draw();
  }
  listen() {
    const { canvas, pointers } = this;
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.data) return;
      pointers.set(event.pointerId, [event.clientX, event.clientY]);
      if (this.zoom > 1 || pointers.size > 1) canvas.setPointerCapture(event.pointerId);
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.data) return;
      const before = pointers.get(event.pointerId);
      if (!before) return this.point(this.cellOf(event));
      const wide = spreadOf(pointers), [dx, dy] = [event.clientX - before[0], event.clientY - before[1]];
      pointers.set(event.pointerId, [event.clientX, event.clientY]);
      moved += Math.abs(dx) + Math.abs(dy);
      if (pointers.size > 1 && wide > 0) return this.zoomBy(spreadOf(pointers) / wide, ...this.partsOf(event));
      if (this.zoom > 1 && moved > 4) {
        this.x -= dx / this.cell.width;
        this.y -= dy / this.cell.height;
        this.draw();
      }
    });
    const end = (event) => {
      const known = pointers.delete(event.pointerId);
      if (!known || event.type !== "pointerup" || moved > 4 || pointers.size) return;
      const cell = this.cellOf(event);
      if (!cell) return;
      this.point(cell);
      this.options.pick?.(cell.row, cell.column);
    };
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) canvas.addEventListener(name, end);
    canvas.addEventListener("pointerleave", (event) => {
      if (pointers.size || event.pointerType !== "mouse" || document.activeElement === canvas || !this.data) return;
      this.cursor = null;
      this.draw();
    });
    canvas.addEventListener("dblclick", (event) => this.zoomBy(event.shiftKey ? 0.5 : 2, ...this.partsOf(event)));
    // The wheel scrolls the page, unless the map has the focus or Ctrl is held.
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      this.zoomBy(wheelZoom(event), ...this.partsOf(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.press(event));
  }
  press(event) {
    if (!this.data || event.ctrlKey || event.metaKey || event.altKey) return;
    const { rows, columns } = this.data, step = event.shiftKey ? 8 : 1, { key } = event;
    const moves = {
      ArrowUp: [-step, 0], ArrowDown: [step, 0], ArrowLeft: [0, -step], ArrowRight: [0, step],
      PageUp: [-16, 0], PageDown: [16, 0], Home: [0, -columns], End: [0, columns],
    };
    if (key in moves) {
      const from = this.cursor || { row: Math.floor(this.y), column: Math.floor(this.x) }, [dr, dc] = this.cursor ? moves[key] : [0, 0];
      const within = (value, count) => Math.min(count - 1, Math.max(0, value));
      this.cursor = { row: within(from.row + dr, rows), column: within(from.column + dc, columns) };
      this.follow();
    } else if (key === "+" || key === "=") this.zoomBy(ZOOM_STEP);
    else if (key === "-") this.zoomBy(1 / ZOOM_STEP);
    else if (key === "0") this.showWhole();
    else if (key === "Enter" && this.cursor && this.options.pick) this.options.pick(this.cursor.row, this.cursor.column);
    else return;
    event.preventDefault();
    this.draw();
    this.spoken.textContent = this.readout.textContent;
  }
  follow() { // keeps the cursor in sight
    const { rows, columns } = this.data, { row, column } = this.cursor;
    this.x = Math.min(column, Math.max(this.x, column + 1 - columns / this.zoom));
    this.y = Math.min(row, Math.max(this.y, row + 1 - rows / this.zoom));
  }
}

// ---- zooming, of concept maps too ----
// Buttons for something that has zoomBy() and showWhole(). `suffix` ends their names for screen readers.
function zoomButtons(map, step, suffix = "") {
  const actions = [["−", "Zoom out", () => map.zoomBy(1 / step)], ["+", "Zoom in", () => map.zoomBy(step)], ["Whole", "Show the whole map", () => map.showWhole()]];
  return actions.map(([text, label, action]) => {
    const button = element("button", { type: "button", title: label, "aria-label": label + suffix }, text);
    button.addEventListener("click", action);
    return button;
  });
}
const wheelZoom = (event) => Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)); // by lines or by pixels
// The distance of two fingers, which are { id: [x, y] }; 0 for one.
function spreadOf(pointers) {
  const [a, b] = [...pointers.values()];
  return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
}

// ---- values ----
function samePicture(a, b) {
  return a.values === b.values && a.colors === b.colors && a.rows === b.rows && a.limits.every((limit, k) => limit === b.limits[k]);
}
const isMasked = (value) => !(value > -Infinity);
// How many digits tell two numbers apart; at least three.
const digitsApart = (a, b) => [3, 4, 5, 6, 7, 8].find((n) => digits(a, n) !== digits(b, n)) || 9;
const labelOf = (value) => (typeof value === "number" ? digits(value, 7) : value);
function limitsOf(values, colors) {
  let least = Infinity, most = -Infinity;
  for (const value of values) {
    if (value < least && value !== -Infinity) least = value;
    if (value > most && value !== Infinity) most = value;
  }
  if (least > most) return [0, 1]; // no cell has a value
  if (colors !== "diverging") return [least, most];
  const reach = Math.max(Math.abs(least), Math.abs(most)) || 1;
  return [-reach, reach];
}
// Whole numbers from a to b (without b), at most n of them, at round steps.
function ticks(a, b, n) {
  const raw = (b - a) / n, size = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  const step = Math.max(1, [1, 2, 5, 10].map((k) => k * size).find((k) => k >= raw));
  const from = Math.ceil(a / step) * step;
  return Array.from({ length: Math.max(0, Math.ceil((b - from) / step)) }, (_, i) => from + i * step);
}
