// Curves in SVG, and a line with handles to drag.
//
//   const plot = page.plot({ title, how, tall: 260, pick(x) { ... } });
//   plot.show({
//     x: [0, 1, ...], series: [{ name, y: [...], points: false, steps: false }],
//     xName: "position", yName: "value",  xLog: false, yLog: false,  yLimits: [-1, 1],
//     xMarks: [{ at: 12, name: "here" }], yMarks: [...],      lines across; with left: true the name of a yMark stands at the left
//     read: (i) => "text",                                    what the cursor reads at x[i]
//   });
// Series have the colours of theme() and dashes; the legend names them. A y of null or NaN leaves a gap.
// Pixels around the plot. `name` is for the name of the y axis; `marks` is the top if names of xMarks stand there.
const PLOT = { left: 58, right: 14, top: 12, bottom: 42, name: 26, marks: 22 };

class Plot {
  constructor(page, options) {
    Object.assign(this, { page, options, cursor: null, data: null });
    this.figure = page.figure(options.title, options.how);
    this.figure.classList.add("plot");
    this.svg = svg("svg", { tabindex: "0", role: "application", "aria-roledescription": "line plot", "aria-label": options.title });
    this.legend = element("ul", { class: "legend" });
    this.readout = element("p", { class: "readout" }, "\u00a0");
    this.spoken = element("p", { class: "unseen", "aria-live": "polite" });
    const help = element("p", { class: "unseen", id: `${page.view.id}-plot-${page.figures.length}` }, "Left and right arrows move along the curve and read its values, with Shift by ten points.");
    this.svg.setAttribute("aria-describedby", help.id);
    this.figure.append(this.legend, this.svg, this.readout, this.spoken, help);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerdown", (event) => {
      this.point(event);
      if (this.cursor !== null) options.pick?.(this.data.x[this.cursor]);
    });
    this.svg.addEventListener("pointerleave", () => {
      if (document.activeElement === this.svg) return;
      this.cursor = null;
      this.drawCursor();
    });
    this.svg.addEventListener("keydown", (event) => this.press(event));
    watchWidth(this);
  }
  show(data) {
    this.data = { xName: "", yName: "", xMarks: [], yMarks: [], ...data, x: data.x || data.series[0].y.map((_, i) => i) };
    if (this.cursor !== null && this.cursor >= this.data.x.length) this.cursor = null;
    this.draw();
  }
  draw() {
    if (!this.data || !this.width) return;
    const { data, width } = this, height = this.options.tall || 260;
    this.height = height;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    const top = data.xMarks.some(({ name }) => name) ? PLOT.marks : PLOT.top, right = width - PLOT.right, bottom = height - PLOT.bottom;
    this.sy = scaleOf(data.yLimits || padded(rangeOf(data.series.map((one) => one.y), data.yLog), data.yLog), [bottom, top], data.yLog);
    const yTicks = this.sy.ticks(Math.max(2, (bottom - top) / 44)).map((value) => [this.sy(value), tickText(value, data.yLog)]);
    const left = Math.max(PLOT.left, PLOT.name + 8 + Math.max(...yTicks.map(([, text]) => widthOf(text))));
    this.sx = scaleOf(rangeOf([data.x], data.xLog), [left, right], data.xLog);
    this.box = { left, right, top, bottom };
    this.cursorGroup = svg("g", {});
    this.svg.replaceChildren(...this.axes(yTicks), ...this.marks(), ...data.series.flatMap((one, i) => this.curve(one, i)), this.cursorGroup);
    this.drawLegend();
    this.drawCursor();
  }
  axes(yTicks) {
    const { data } = this, { left, right, top, bottom } = this.box, { ink, quiet, line } = theme(), parts = [];
    for (const [y, text] of yTicks)
      parts.push(svg("line", { x1: left, x2: right, y1: y, y2: y, stroke: line }), label(left - 8, y + 4, text, quiet, "end"));
    for (const value of this.sx.ticks(Math.max(2, (right - left) / 64))) {
      const x = this.sx(value), text = label(x, bottom + 18, tickText(value, data.xLog), quiet);
      parts.push(svg("line", { x1: x, x2: x, y1: bottom, y2: bottom + 5, stroke: quiet }), text);
    }
    parts.push(svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, stroke: quiet }));
    parts.push(label((left + right) / 2, this.height - 6, data.xName, ink));
    const turned = { transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)` };
    return [...parts, label(0, 0, data.yName, ink, "middle", turned)];
  }
  marks() {
    const { left, right, top, bottom } = this.box, { ink } = theme(), dotted = { stroke: ink, "stroke-dasharray": "2 3" }, parts = [];
    for (const { at, name = "", left: isLeft } of this.data.yMarks) {
      const y = this.sy(at), text = isLeft ? label(left + 4, y - 5, name, ink, "start") : label(right - 2, y - 5, name, ink, "end");
      parts.push(svg("line", { x1: left, x2: right, y1: y, y2: y, ...dotted }), text);
    }
    for (const { at, name = "" } of this.data.xMarks) {
      const x = this.sx(at), isBefore = x > (left + right) / 2; // its name stands before the line
      if (x < left - 1 || x > right + 1) continue;
      const text = label(x + (isBefore ? -5 : 5), 13, name, ink, isBefore ? "end" : "start");
      parts.push(svg("line", { x1: x, x2: x, y1: name ? 3 : top, y2: bottom, ...dotted }), text);
    }
    return parts;
  }
  // The colour and the dashes of a series, by its number.
  styleOf(one, i) {
    const { series } = theme();
    return { color: one.color || series[i % series.length], dashes: DASHES[i % DASHES.length] };
  }
  curve(one, i) {
    const { x } = this.data, { color, dashes } = this.styleOf(one, i);
    if (!one.points) {
      const stroke = { stroke: color, "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": dashes };
      return [svg("path", { d: this.path(one), fill: "none", ...stroke })];
    }
    const r = one.points === true ? 4 : one.points, shown = [...x.keys()].filter((k) => Number.isFinite(one.y[k]));
    return shown.map((k) => svg("circle", { cx: this.sx(x[k]), cy: this.sy(one.y[k]), r, fill: color }));
  }
  drawLegend() {
    this.legend.hidden = this.data.series.length < 2;
    this.legend.replaceChildren(...this.data.series.map((one, i) => {
      const { color, dashes } = this.styleOf(one, i);
      const line = { x1: 0, x2: 28, y1: 6, y2: 6, stroke: color, "stroke-width": 2.5, "stroke-dasharray": dashes };
      const sample = one.points ? svg("circle", { cx: 14, cy: 6, r: 4, fill: color }) : svg("line", line);
      return element("li", {}, svg("svg", { width: 28, height: 12, "aria-hidden": "true" }, sample), one.name);
    }));
  }
  // A path; of more points than pixels the least and the greatest of each pixel.
  path({ y, steps }) {
    const { x } = this.data, many = x.length > 3 * this.width, kept = [];
    if (many) {
      const group = Math.ceil(x.length / this.width);
      for (let from = 0; from < x.length; from += group) {
        let least = from, most = from;
        for (let k = from; k < Math.min(from + group, x.length); k++) {
          if (y[k] < y[least]) least = k;
          if (y[k] > y[most]) most = k;
        }
        kept.push(Math.min(least, most), Math.max(least, most));
      }
    }
    let path = "", down = false, last = 0;
    for (let i = 0; i < (many ? kept.length : x.length); i++) {
      const k = many ? kept[i] : i, [px, py] = [this.sx(x[k]), y[k] === null ? NaN : this.sy(y[k])];
      if (!Number.isFinite(py)) { down = false; continue; }
      if (down && steps) path += `L${px.toFixed(1)} ${last.toFixed(1)}`;
      path += `${down ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`;
      [down, last] = [true, py];
    }
    return path;
  }
  drawCursor() {
    const { data, cursor } = this, { ink, paper } = theme();
    if (!this.cursorGroup) return;
    this.readout.classList.toggle("hint", cursor === null);
    if (cursor === null) {
      this.cursorGroup.replaceChildren();
      this.readout.textContent = "Point at the plot to read its values.";
      return;
    }
    const x = this.sx(data.x[cursor]), { top, bottom } = this.box;
    const parts = [svg("line", { x1: x, x2: x, y1: top, y2: bottom, stroke: ink, "stroke-opacity": 0.5 })];
    data.series.forEach((one, i) => {
      const y = one.y[cursor] === null ? NaN : this.sy(one.y[cursor]), fill = this.styleOf(one, i).color;
      if (Number.isFinite(y)) parts.push(svg("circle", { cx: x, cy: y, r: 4.5, fill, stroke: paper, "stroke-width": 1.5 }));
    });
    this.cursorGroup.replaceChildren(...parts);
    const name = (one) => (data.series.length > 1 ? `${one.name}: ` : "");
    const values = data.series.map((one) => name(one) + (one.y[cursor] === null ? "none" : digits(one.y[cursor], 6)));
    this.readout.textContent = data.read ? data.read(cursor) : `${data.xName} ${digits(data.x[cursor], 7)}: ${values.join("; ")}`;
  }
  point(event) {
    if (!this.data || !this.sx) return;
    const box = this.svg.getBoundingClientRect(), px = ((event.clientX - box.left) / box.width) * this.width;
    const away = (k) => Math.abs(this.sx(this.data.x[k]) - px);
    this.cursor = 0;
    for (let k = 1; k < this.data.x.length; k++) if (away(k) < away(this.cursor)) this.cursor = k;
    this.drawCursor();
  }
  press(event) {
    const step = event.shiftKey ? 10 : 1, last = this.data ? this.data.x.length - 1 : 0;
    const to = { ArrowLeft: (k) => k - step, ArrowRight: (k) => k + step, Home: () => 0, End: () => last }[event.key];
    if (event.key === "Enter" && this.cursor !== null) this.options.pick?.(this.data.x[this.cursor]);
    if (!to) return;
    event.preventDefault();
    this.cursor = this.cursor === null ? 0 : Math.min(last, Math.max(0, to(this.cursor)));
    this.drawCursor();
    this.spoken.textContent = this.readout.textContent;
  }
}

// An SVG as wide as its figure, drawn again when the width or the colours change.
//   const drawing = page.drawing(title, how, (parts, width, now, drawing) => height);   parts are the elements, to push to
//   drawing.show(now);                                                                 now is whatever paint needs
// A screen reader does not see it: a note or a table must say the same.
class Drawing {
  constructor(page, title, how, paint) {
    this.paint = paint;
    this.figure = page.figure(title, how);
    this.figure.classList.add("drawing");
    this.svg = this.figure.appendChild(svg("svg", { "aria-hidden": "true" }));
    watchWidth(this);
  }
  show(now) {
    this.now = now;
    this.draw();
  }
  draw() {
    const { width, now } = this, parts = [];
    if (!width || !now) return;
    const height = Math.ceil(this.paint(parts, width, now, this));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(...parts);
  }
}

// Points on a line, moved by dragging; each belongs to a control, which the keyboard moves.
//   page.dragLine({ title, how, points: [{ id: "m", name: "query m" }, ...], min: 0, max: 64 });
// min and max may be functions of the state. page.set() moves the points, so there is nothing to show.
class DragLine {
  constructor(page, options) {
    Object.assign(this, { page, options });
    this.figure = page.figure(options.title, options.how);
    this.figure.classList.add("drag");
    this.svg = this.figure.appendChild(svg("svg", { "aria-hidden": "true", height: 92 }));
    let held = null;
    const at = (event) => {
      const box = this.svg.getBoundingClientRect();
      return Math.round(this.scale.back(((event.clientX - box.left) / box.width) * this.width));
    };
    this.svg.addEventListener("pointerdown", (event) => {
      const value = at(event), { state } = page;
      held = options.points.reduce((a, b) => (Math.abs(state[b.id] - value) < Math.abs(state[a.id] - value) ? b : a));
      this.svg.setPointerCapture(event.pointerId);
      page.set({ [held.id]: value });
    });
    this.svg.addEventListener("pointermove", (event) => { if (held) page.set({ [held.id]: at(event) }); });
    for (const name of ["pointerup", "pointercancel"]) this.svg.addEventListener(name, () => (held = null));
    watchWidth(this);
  }
  show() { this.draw(); }
  draw() {
    const { state } = this.page, { ink, quiet, paper, series } = theme(), { width } = this;
    if (!width) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} 92`);
    this.scale = scaleOf([valueFor(state, this.options.min), valueFor(state, this.options.max)], [24, width - 24]);
    const y = 44, parts = [svg("line", { x1: 24, x2: width - 24, y1: y, y2: y, stroke: quiet, "stroke-width": 2 })];
    for (const tick of this.scale.ticks(width / 60)) {
      const x = this.scale(tick);
      parts.push(svg("line", { x1: x, x2: x, y1: y - 4, y2: y + 4, stroke: quiet }), label(x, y + 42, tickText(tick), quiet));
    }
    this.options.points.forEach(({ id, name }, i) => {
      const x = this.scale(state[id]), end = x > width - 70 ? "end" : x < 70 ? "start" : "middle";
      parts.push(svg("circle", { cx: x, cy: y, r: 11, fill: series[i % series.length], stroke: paper, "stroke-width": 2, class: "handle" }));
      parts.push(label(x, i % 2 ? y + 24 : y - 20, `${name} = ${tickText(state[id])}`, ink, end));
    });
    this.svg.replaceChildren(...parts);
  }
}

// ---- texts and scales ----
const label = (x, y, text, fill, anchor = "middle", more = {}) => svg("text", { x, y, fill, "text-anchor": anchor, ...more }, text);
const tickText = (value, log = false) => (log ? digits(value, 6, 1e4, 1e-3) : digits(value, 6, 1e5));
const widths = new Map(); // of texts in the font of the plots
function widthOf(text) {
  const found = widths.get(text);
  if (found !== undefined) return found;
  const context = element("canvas").getContext("2d");
  context.font = "12px system-ui, sans-serif";
  widths.set(text, context.measureText(text).width);
  return widths.get(text);
}
// The least and the greatest value that an axis can show.
function rangeOf(lists, log) {
  let least = Infinity, most = -Infinity;
  for (const value of lists.flatMap((list) => [...list])) {
    if (!Number.isFinite(value) || (log && value <= 0)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return least > most ? [log ? 1 : 0, log ? 10 : 1] : [least, most];
}
function padded([least, most], log) {
  if (log) return least === most ? [least / 2, most * 2] : [least, most];
  const room = (most - least || Math.abs(most) || 1) * 0.06;
  return [least - room, most + room];
}
// From values to pixels; back() the other way; ticks(n): about n round values.
function scaleOf([least, most], [from, to], log = false) {
  const f = log ? Math.log10 : (value) => value, a = f(least), width = f(most) - a || 1;
  const map = (value) => from + ((f(value) - a) / width) * (to - from);
  map.back = (pixel) => { const value = a + ((pixel - from) / (to - from)) * width; return log ? 10 ** value : value; };
  map.ticks = (n) => {
    const wholes = (from, to) => { // whole numbers, for ends that rounding has moved a little
      const first = Math.ceil(from - 1e-9);
      return Array.from({ length: Math.floor(to + 1e-9) - first + 1 }, (_, i) => first + i);
    };
    if (log && width >= 1) {
      const every = Math.max(1, Math.ceil(width / n));
      return wholes(a, a + width).filter((k) => k % every === 0).map((k) => 10 ** k);
    }
    const raw = (most - least) / n, size = 10 ** Math.floor(Math.log10(raw || 1));
    const step = [1, 2, 5, 10].map((k) => k * size).find((k) => k >= raw * 0.999) || 1;
    return wholes(least / step, most / step).map((k) => Number((k * step).toPrecision(12)));
  };
  return map;
}
