// The frame of the page. A view is one file, views/NAME.js; main.py puts all of them into the page. Styles that a view has of
// its own stand at the end of templates/page.css.
//
//   addView({
//     id: "table",                 the name in the address (#table); that of the file
//     order: 10,                   views stand in this order within their groups: GROUPS in views.js
//     title: "The table",          of the link and the heading
//     intro: `<p>...</p>`,         HTML above the controls
//     controls: [ ... ],           see below
//     setup(page) { ... },         once, before the first draw: makes figures
//     draw(state, page) { ... },   after each change: fills them; state is { id of a control: its value }
//   });
//
// Controls are data. A value may also depend on the state: min, max and values can be functions of it.
//   { id, label, min, max, step: 1, value }              a slider
//   { id, label, values: [16, 32, 64], value }           a slider over these
//   { id, label, options: { key: "text" }, value: key }  a list
//   { id, label, check: true, value: false }             a box to tick
// and each may have: format(value, state) -> text, when(state) -> whether it is shown, help: "a sentence". A control that
// changes nothing in some state has a when(), and is hidden then: the tests move each control that is shown.
//
// The page that a view gets has:
//   page.lib                     the library (lib.js): page.lib.sinusoidal({ dim: 4 }, { tokens: 8 }), ...
//   page.data                    what DATA in main.py has for it
//   page.state, page.set({ m: 3 })        values of controls; set() moves them and draws
//   page.heatMap(options), page.plot(options), page.dragLine(options)   figures (heatmap.js, plot.js); show(...) fills them
//   page.html(`<p>..</p>`, parent)        static HTML; returns its first element. page.note(): a line for results,
//                                         note.show(html); screen readers read it when it changes
//   page.drawing(title, how, paint)       an SVG of your own, as wide as its figure (plot.js); drawing.show(now) paints it
//   page.figure(title, how)               an empty figure with a caption, for an element of your own; page.keep({ draw() {} })
//                                         has that drawn again when the colours change
//   page.group(columns)                   the next figures stand side by side; page.group() ends that
//   page.button(label, action)            beside the controls
//   page.animate(label, step(seconds))    a button that starts and stops; step() returns false to stop. It never starts
//                                         by itself, and stops when another view is chosen
//   theme()                               colours: paper, ink, quiet, line, soft, link, series[] (see theme.js)
//   element(name, attributes, ...children), svg(name, ...), digits(value, n = 4), whole(value); of plot.js: label(), scaleOf()
//
// Views see each other's names only through `explore`. A mistake in a view, and what the library rejects, is shown in it.
const explore = { views: [], pages: {}, lib: null, data: {}, ready: null };
const addView = (view) => explore.views.push(view);

const element = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
function fill(made, attributes, children = []) {
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
// A number with so many significant digits, a true minus, and no exponent where people would not write one.
function digits(value, n = 4, large = 1e7, small = 1e-4) {
  if (!Number.isFinite(value)) return value === Infinity ? "∞" : value === -Infinity ? "−∞" : "not a number";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= large || size < small) {
    const [mantissa, exponent] = value.toExponential(n - 1).split("e");
    const raised = String(Number(exponent)).replace(/./g, (letter) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(letter)]);
    return `${Number(mantissa) === 1 ? "" : `${Number(mantissa)} × `}10${raised}`.replace("-", "−");
  }
  return String(Number(value.toPrecision(n))).replace("-", "−");
}
const grouped = new Intl.NumberFormat("en"); // made once: toLocaleString() makes one in each call
const whole = (value) => grouped.format(value).replace(/,/g, "\u202f").replace("-", "−");
const valueFor = (state, value) => (typeof value === "function" ? value(state) : value);

// Keeps the width of a figure, and draws it when the width changes. Reading a width while drawing would cost a layout.
function watchWidth(drawn) {
  new ResizeObserver(([{ contentRect: { width } }]) => {
    if (width === drawn.width) return;
    drawn.width = width;
    drawn.draw();
  }).observe(drawn.figure);
}

// ---- controls ----
class Control {
  constructor(spec, page) {
    Object.assign(this, { spec, page, id: `${page.view.id}-${spec.id}`, value: spec.value });
    const label = element("label", { for: this.id }, spec.label);
    if (spec.options) {
      this.input = element("select", { id: this.id }, ...Object.entries(spec.options).map(([value, text]) => element("option", { value }, text)));
    } else {
      this.input = element("input", { id: this.id, type: spec.check ? "checkbox" : "range" });
    }
    this.output = spec.options || spec.check ? null : element("output", { for: this.id });
    this.element = element("div", { class: `control ${spec.check ? "check" : spec.options ? "list" : "slider"}` }, label);
    if (this.output) this.element.append(this.output);
    this.element.append(this.input);
    if (spec.help) {
      this.element.append(element("small", { id: `${this.id}-help` }, spec.help));
      this.input.setAttribute("aria-describedby", `${this.id}-help`);
    }
    this.input.addEventListener(spec.options || spec.check ? "change" : "input", () => page.set({ [spec.id]: this.read() }));
  }
  read() {
    if (this.spec.check) return this.input.checked;
    if (this.spec.options) return this.input.value;
    return this.list ? this.list[Number(this.input.value)] : Number(this.input.value);
  }
  // Brings a value into range, and the element up to date.
  fit(state) {
    const { spec, input } = this;
    let value = state[spec.id];
    if (!spec.check && !spec.options) {
      this.list = valueFor(state, spec.values);
      value = this.list ? this.fitList(value) : this.fitRange(value, valueFor(state, spec.min), valueFor(state, spec.max), valueFor(state, spec.step) || 1);
    } else if (spec.check) {
      input.checked = value = Boolean(value) && value !== "false";
    } else {
      if (!(value in spec.options)) value = spec.value;
      input.value = value;
    }
    state[spec.id] = value;
  }
  fitList(value) { // a slider over a list moves by its places
    const nearest = this.list.reduce((best, one) => (Math.abs(one - value) < Math.abs(best - value) ? one : best));
    Object.assign(this.input, { min: 0, max: this.list.length - 1, step: 1 });
    this.input.value = this.list.indexOf(nearest);
    return nearest;
  }
  fitRange(value, min, max, step) {
    Object.assign(this.input, { min, max, step });
    this.input.value = Math.min(max, Math.max(min, Number(value)));
    return Number(this.input.value); // on a step
  }
  show(state) {
    const { spec } = this;
    this.element.hidden = spec.when ? !spec.when(state) : false;
    if (!this.output) return;
    const text = spec.format ? spec.format(state[spec.id], state) : digits(state[spec.id], 7);
    this.output.textContent = text;
    this.input.setAttribute("aria-valuetext", text);
  }
}

// ---- a view on the page ----
class Page {
  constructor(view) {
    Object.assign(this, { view, lib: explore.lib, data: explore.data[view.id], state: {}, figures: [], waiting: false, stops: [] });
    this.root = document.getElementById(view.id);
    this.body = this.root.querySelector(".figures");
    this.parent = this.body;
    this.panel = this.root.querySelector(".controls");
    this.controls = (view.controls || []).map((spec) => new Control(spec, this));
    for (const control of this.controls) this.state[control.spec.id] = control.value;
    this.panel.append(...this.controls.map((control) => control.element));
    this.problem = this.root.querySelector(".problem");
    this.guard(() => view.setup && view.setup(this));
    this.panel.hidden = !this.panel.childElementCount;
  }
  guard(work) { // an error that the library reports is shown; any other is a mistake, and goes to the console as well
    try {
      work();
      this.problem.hidden = true;
    } catch (error) {
      this.problem.hidden = false;
      this.problem.textContent = `This choice has no result: ${error.message}.`;
      if (!(error instanceof Error) || error.name !== "Error") console.error(error);
    }
  }
  set(values, quiet = false) { // draws in the next frame; a quiet change leaves the address as it is
    Object.assign(this.state, values);
    this.changed = !quiet || this.changed;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.update());
  }
  update() {
    this.waiting = false;
    const begun = performance.now();
    for (const control of this.controls) control.fit(this.state);
    for (const control of this.controls) control.show(this.state);
    this.guard(() => this.view.draw(this.state, this));
    this.milliseconds = performance.now() - begun; // for a test that prints it
    if (this.changed && explore.current === this) writeAddressSoon(this);
    this.changed = false;
  }
  html(text, parent = this.parent) {
    const made = element("template");
    made.innerHTML = text.trim();
    const first = made.content.firstElementChild;
    parent.append(made.content);
    return first;
  }
  figure(title, how = "") {
    const made = this.html(`<figure><figcaption><strong></strong><span></span></figcaption></figure>`);
    made.querySelector("strong").textContent = title;
    made.querySelector("span").innerHTML = how;
    return made;
  }
  group(columns) {
    this.parent = columns ? this.body.appendChild(element("div", { class: `group of-${columns}` })) : this.body;
  }
  note() {
    const made = this.parent.appendChild(element("p", { class: "note", "aria-live": "polite" }));
    return { element: made, show: (text) => { if (made.innerHTML !== text) made.innerHTML = text; } };
  }
  button(label, action) {
    const made = element("button", { type: "button" }, label);
    made.addEventListener("click", () => action(this));
    let row = this.panel.querySelector(".buttons");
    if (!row) row = this.panel.appendChild(element("div", { class: "buttons" }));
    row.append(made);
    return made;
  }
  animate(label, step) {
    let running = false, last = 0;
    const button = this.button(`▶ ${label}`, () => (running ? stop() : start()));
    const frame = (now) => {
      if (!running) return;
      const seconds = Math.min((now - last) / 1000, 0.1);
      last = now;
      if (step(seconds) === false) return stop();
      requestAnimationFrame(frame);
    };
    const start = () => { running = true; last = performance.now(); button.textContent = `■ Stop`; requestAnimationFrame(frame); };
    const stop = () => { running = false; button.textContent = `▶ ${label}`; };
    this.stops.push(stop);
    return { start, stop, get running() { return running; } };
  }
  heatMap(options) { return this.keep(new HeatMap(this, options)); }
  plot(options) { return this.keep(new Plot(this, options)); }
  drawing(title, how, paint) { return this.keep(new Drawing(this, title, how, paint)); }
  dragLine(options) { return this.keep(new DragLine(this, options)); }
  keep(figure) {
    this.figures.push(figure);
    return figure;
  }
  redraw() { for (const figure of this.figures) figure.draw(); }
}
window.explore = explore;
