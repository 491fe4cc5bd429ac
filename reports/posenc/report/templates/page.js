// Filters, charts and the drawer of cases. All numbers come from the records that the page carries.
//
// `data` is what page_data() in page.py writes: { colors: { backend: color }, timings, curves, pairs }. A timing is a row of the
// table: the names of its columns are below, ns, lo and hi are its interval, roof is the roofline in GB/s.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("filters");
const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

// ---- copy buttons ----
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea");
    area.value = text;
    (document.querySelector("dialog[open]") || document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  await copyText(button.dataset.copy);
  button.textContent = "Copied";
  document.getElementById("copied").textContent = `Copied: ${button.dataset.copy}`;
  setTimeout(() => (button.textContent = "Copy"), 1500);
});
function command(text) {
  const spoken = { "data-copy": text, "aria-label": `Copy the command ${text}` };
  const button = element("button", { type: "button", class: "copy", ...spoken }, "Copy");
  return element("span", { class: "command" }, element("code", {}, text), button);
}

// ---- timings: filters and table ----
// Unsorted, the rows of a case stand together below its name. A sorted table has one row after the other.
const columns = [ // name, title, and the format of its numbers
  ["machine", "CPU"], ["kernel", "Kernel"], ["dtype", "Type"], ["numerics", "Numerics"], ["shape", "Shape"],
  ["level", "Memory"], ["backend", "Backend"], ["ns", "Time", "time"], ["width", "±", "spread"], ["gbps", "GB/s"], ["share", "% of roofline", "percent"],
  ["bound", "Bound by"], ["libm", "vs plain C", "times"], ["autovec", "vs compiler", "times"], ["error", "Worst error", "errorText"],
  ["standing", "Place"],
];
const numeric = new Set(["ns", "width", "gbps", "share", "libm", "autovec", "error"]);
const ofCase = new Set(["machine", "kernel", "dtype", "numerics", "shape", "level"]);
const mostFirst = new Set(["share", "gbps", "libm", "autovec"]);
const timings = data.timings;
for (const row of timings) {
  row.short = row.case.split("/").pop();
  row.width = row.ns ? Math.max(row.hi - row.ns, row.ns - row.lo) / row.ns : null;
}
const varies = (name) => new Set(timings.map((row) => row[name])).size > 1;
const useful = columns.filter(([name]) => !["machine", "dtype", "numerics"].includes(name) || varies(name));
const FIRST_ROWS = 60; // until all are asked for
let order = { by: null, up: true }, limit = FIRST_ROWS, chart = timings.length ? "speed" : "position";
const shownColumns = () => useful.filter(([name]) => order.by || !ofCase.has(name));

const threeDigits = (value) => (value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2));
const time = (ns) => {
  for (const [end, scale, unit] of [[999.5, 1, "ns"], [999.5e3, 1e3, "µs"], [999.5e6, 1e6, "ms"]])
    if (ns < end) return `${threeDigits(ns / scale)} ${unit}`;
  return `${threeDigits(ns / 1e9)} s`;
};
const format = {
  time: (row) => (row.ns ? time(row.ns) : "–"),
  percent: (row, name) => (row[name] ? `${(100 * row[name]).toFixed(0)} %` : "–"),
  spread: (row) => (row.width === null ? "–" : row.width > 1 ? "> 100 %" : `${(100 * row.width).toFixed(0)} %`),
  times: (row, name) => (row[name] ? `${row[name].toFixed(row[name] >= 9.95 ? 0 : row[name] >= 1.995 ? 1 : 2)}×` : "–"),
  errorText: (row) => row.errorText,
};
const cell = (row, [name, , kind]) => {
  if (kind) return format[kind](row, name);
  if (name === "gbps") return row.gbps ? threeDigits(row.gbps) : "–";
  if (name === "standing") return row.rejected || row.standing;
  return row[name] ?? "–";
};
const caseOf = (row) => `${row.machine} ${row.case}`;
const beginsCase = (rows, at) => !order.by && (!at || caseOf(rows[at]) !== caseOf(rows[at - 1]));
function aboutCase(row) {
  const isTold = (name) => row[name] && (name === "kernel" || name === "level" || varies(name));
  return ["kernel", "dtype", "numerics", "level", "machine"].filter(isTold).map((name) => row[name]).join(", ");
}

for (const select of form ? form.querySelectorAll("select") : []) {
  const values = [...new Set(timings.map((row) => row[select.name]).filter((value) => value))];
  for (const value of values) select.append(element("option", { value }, value));
  if (values.length < 2) select.parentElement.hidden = true;
}
function filtered() {
  const wanted = new FormData(form), text = (wanted.get("text") || "").toLowerCase().split(/\s+/);
  const rows = timings.filter((row) =>
    [...wanted].every(([name, value]) => !value || name === "text" || row[name] === value) &&
    text.every((word) => `${row.shape} ${row.case} ${row.level}`.toLowerCase().includes(word)));
  if (!order.by) return rows;
  const sign = order.up ? 1 : -1, key = order.by;
  return rows.sort((a, b) => {
    const [x, y] = [a[key], b[key]];
    if (x === y) return 0;
    if (x == null || y == null) return x == null ? 1 : -1;
    return sign * (numeric.has(key) ? x - y : String(x).localeCompare(String(y)));
  });
}
function drawHead() {
  const head = document.querySelector("#timings thead tr");
  head.replaceChildren(...shownColumns().map(([name, title]) => {
    const sorted = order.by === name;
    const button = element("button", { type: "button", "data-by": name }, `${title}${sorted ? (order.up ? " ▲" : " ▼") : ""}`);
    button.addEventListener("click", () => {
      order = { by: name, up: sorted ? !order.up : !mostFirst.has(name) };
      update();
      head.querySelector(`[data-by="${name}"]`).focus();
    });
    const attributes = { scope: "col", "aria-sort": sorted ? (order.up ? "ascending" : "descending") : "none" };
    if (numeric.has(name)) attributes.class = "n";
    return element("th", attributes, button);
  }));
}
function drawRow(row) {
  const line = element("tr");
  for (const column of shownColumns()) {
    const [name] = column, text = cell(row, column), made = element("td", { class: numeric.has(name) ? "n" : name });
    if (name === "backend") {
      made.className = "";
      made.append(swatch(text, data.colors[text]));
    } else if (name === "standing") {
      made.append(element(row.standing === "fastest" ? "b" : "span", row.standing === "wrong" ? { class: "bad" } : {}, text));
    } else made.append(text);
    line.append(made);
  }
  return line;
}
function drawRows(rows) {
  const lines = [];
  rows.slice(0, limit).forEach((row, at) => {
    if (beginsCase(rows, at)) {
      const name = element("th", { colspan: shownColumns().length, scope: "rowgroup" }, row.shape, element("small", {}, aboutCase(row)));
      lines.push(element("tr", { class: "group" }, name));
    }
    lines.push(drawRow(row));
  });
  document.querySelector("#timings tbody").replaceChildren(...lines);
  const more = document.getElementById("more");
  more.hidden = rows.length <= limit;
  more.textContent = `Show all ${rows.length}`;
}
function update() {
  const rows = filtered(), by = useful.find(([name]) => name === order.by);
  const how = by ? `sorted by: ${by[1]}` : "case by case; press a column to sort";
  const words = timings.length ? `${rows.length} of ${timings.length} timings, ${how}` : "No timings in these records.";
  document.getElementById("found").textContent = words;
  drawHead();
  drawRows(rows);
  drawChart(rows);
}
if (form) {
  for (const kind of ["input", "change"]) form.addEventListener(kind, () => { limit = FIRST_ROWS; update(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { order = { by: null, up: true }; limit = FIRST_ROWS; update(); }));
  document.getElementById("more").addEventListener("click", () => { limit = Infinity; update(); });
}

// ---- charts ----
const figure = document.getElementById("chart"), tabs = [...document.querySelectorAll("[role=tab]")];
for (const tab of tabs) {
  tab.addEventListener("click", () => select(tab));
  tab.addEventListener("keydown", (event) => {
    const at = tabs.indexOf(tab);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    select(tabs[next % tabs.length]).focus();
  });
}
function select(tab) {
  for (const other of tabs) {
    other.setAttribute("aria-selected", other === tab);
    other.tabIndex = other === tab ? 0 : -1;
  }
  figure.setAttribute("aria-labelledby", tab.id);
  chart = tab.id.slice(4);
  drawChart(filtered());
  return tab;
}
// Replaces what is in an element by an SVG.
function svgIn(where, width, height, label) {
  where.replaceChildren();
  return d3.select(where).append("svg").attr({ viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}
function axis(svg, scale, orient, transform, ticks, text) {
  const made = d3.svg.axis().scale(scale).orient(orient).outerTickSize(0);
  if (ticks) made.tickValues(ticks);
  svg.append("g").attr({ class: "axis", transform }).call(text ? made.tickFormat(text) : made);
}
const message = (text) => figure.replaceChildren(element("p", { class: "key" }, text));
const widthOf = (where) => Math.max(300, Math.min(1300, where.clientWidth || 640));
// Round numbers for a logarithmic axis, at most so many: 1, 2, 5, 10, ... or, on long axes, powers of ten.
function powers(low, high, most = 9) {
  const found = [];
  for (let k = Math.floor(Math.log10(low)); 10 ** k <= high * 1.001; k++)
    found.push(...(high / low > 300 ? [1] : [1, 2, 5]).map((digit) => digit * 10 ** k));
  const inside = found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  return inside.filter((_, at) => inside.length <= most || at % Math.ceil(inside.length / most) === 0);
}
// Cuts a text that is longer than its room, at its end or at its start.
function fit(room, atStart = false) {
  const text = this.textContent;
  for (let kept = text.length, length; (length = this.getComputedTextLength()) > room && kept > 1;) {
    kept = Math.min(kept - 1, Math.floor((kept * room) / length));
    this.textContent = atStart ? `…${text.slice(-kept)}` : `${text.slice(0, kept)}…`;
  }
}
function swatch(name, color) {
  const made = element("span", { class: "backend" }, element("i"), name);
  made.firstChild.style.background = color;
  return made;
}
function caption(where, text, series = []) {
  const names = series.map(([name, color]) => swatch(name, color || "var(--quiet)"));
  where.append(element("p", { class: "key" }, text), ...(names.length ? [element("p", { class: "legend" }, ...names)] : []));
}
function drawChart(rows) {
  if (typeof d3 === "undefined") return message("Charts need D3, which was not found when this page was written. The tables have all numbers.");
  ({ speed: drawSpeed, tradeoff: drawTradeoff, position: drawPosition })[chart](rows);
}
// A line for each timing; unsorted, below the name of their case.
function drawSpeed(all) {
  const timed = all.filter((row) => row.ns && row.gbps), rows = timed.slice(0, 30), step = 20;
  if (!rows.length) return message("No timing fits these filters.");
  const w = widthOf(figure), left = Math.min(order.by ? 0.45 * w : 130, 0.45 * w), titles = [];
  let height = 22;
  for (const [at, row] of rows.entries()) {
    if (beginsCase(rows, at)) titles.push({ row, y: (height += step + 6) - step / 2 });
    row.y = (height += step) - step / 2;
  }
  const slowest = (row) => row.gbps * row.ns / row.hi, fastest = (row) => row.gbps * row.ns / row.lo; // ends of the interval
  const rates = rows.flatMap((row) => [row.gbps, slowest(row), fastest(row), row.roof || row.gbps]);
  const x = d3.scale.log().domain([d3.min(rates) / 1.15, d3.max(rates) * 1.15]).range([left, w - 16]);
  const svg = svgIn(figure, w, height + 4, `Useful GB/s of ${rows.length} timings with their intervals; a red mark is the roofline. The table has the numbers.`);
  const ticks = powers(...x.domain(), 8);
  svg.append("g").attr("class", "grid").selectAll("line").data(ticks).enter().append("line").attr({ x1: x, x2: x, y1: 22, y2: height });
  axis(svg, x, "top", "translate(0,22)", ticks, (value) => `${+value.toPrecision(2)}`);
  svg.selectAll("text.strong").data(titles).enter().append("text").attr({ class: "strong", x: 0, y: (title) => title.y, dy: "0.35em" })
    .text((title) => `${title.row.shape} (${aboutCase(title.row)})`).each(function () { fit.call(this, w); });
  const line = svg.selectAll("g.row").data(rows).enter().append("g").attr({ class: "row", transform: (row) => `translate(0,${row.y})` });
  line.append("text").attr({ x: left - 8, dy: "0.35em", "text-anchor": "end" })
    .text((row) => (order.by ? `${row.short} ${row.backend}` : row.backend)).each(function () { fit.call(this, left - 10, true); });
  line.append("line").attr({ class: "interval", x1: (row) => x(slowest(row)), x2: (row) => x(fastest(row)) });
  line.filter((row) => row.roof).append("line").attr({ class: "roof", x1: (row) => x(row.roof), x2: (row) => x(row.roof), y1: -8, y2: 8 });
  line.append("circle").attr({ class: "dot", r: 5, cx: (row) => x(row.gbps) }).style("fill", (row) => data.colors[row.backend]);
  line.append("title").text((row) => `${row.shape}, ${row.backend}: ${threeDigits(row.gbps)} GB/s, ${format.time(row)} ±${format.spread(row)}, ` +
    `${format.percent(row, "share")} of roofline`);
  const of = timed.length > rows.length ? `The first ${rows.length} of ${timed.length} timings. ` : "";
  caption(figure, `${of}Useful GB/s with the 99 % interval; larger is better. A red mark is the roofline.`);
}
// A dot for each timing, in the metric of errors that most of them have.
function drawTradeoff(all) {
  const rows = all.filter((row) => row.libm && row.error > 0 && row.metric !== "exact");
  const byMetric = d3.nest().key((row) => row.metric).entries(rows).sort((a, b) => b.values.length - a.values.length);
  if (!rows.length) return message("No timing that fits these filters has both an error and a speed against plain C.");
  const { key: metric, values: points } = byMetric[0], w = widthOf(figure), height = Math.min(460, w * 0.75), left = 48, bottom = 24;
  const unit = { pair_ulp: "ulp of the larger product", abs: "absolute error", ulp: "ulp" }[metric] || metric;
  const pad = (values, by) => [d3.min(values) / by, d3.max(values) * by];
  const x = d3.scale.log().domain(pad(points.map((row) => row.error), 1.4)).range([left, w - 16]);
  const y = d3.scale.log().domain(pad(points.map((row) => row.libm), 1.3)).range([height - bottom, 12]);
  const svg = svgIn(figure, w, height, `Speed against plain C and largest error of ${points.length} timings. The table has the numbers.`);
  axis(svg, x, "bottom", `translate(0,${height - bottom})`, powers(...x.domain(), w / 60), (value) => `${+value.toPrecision(2)}`);
  axis(svg, y, "left", `translate(${left},0)`, powers(...y.domain()), (value) => `${+value.toPrecision(2)}×`);
  const dot = svg.selectAll("circle").data(points).enter().append("circle").attr({ class: "dot", r: 6, cx: (row) => x(row.error), cy: (row) => y(row.libm) });
  dot.style({ fill: (row) => data.colors[row.backend], "fill-opacity": 0.85 });
  dot.append("title").text((row) => `${row.shape}, ${row.backend}: ${format.times(row, "libm")}, ${row.errorText}`);
  caption(figure, `Upwards: times as fast as plain C; larger is better. To the right: largest error in ${unit}; smaller is better.`,
    [...new Set(points.map((row) => row.backend))].map((name) => [name, data.colors[name]]));
}
// A curve of errors by position for each backend and numerics mode.
function drawPosition() {
  const wanted = new FormData(form);
  const fits = (curve, name) => !wanted.get(name) || !curve[name] || curve[name] === wanted.get(name);
  const curves = data.curves.filter((curve) => ["machine", "backend", "numerics"].every((name) => fits(curve, name)));
  if (!curves.length) return message("No errors by position fit these filters. posenc report measures them for kernels that make tables.");
  const w = widthOf(figure), height = Math.min(460, w * 0.8), left = 48, bottom = 24;
  const errors = curves.flatMap((curve) => curve.errors.filter((error) => error > 0)), least = d3.min(errors) / 3;
  const x = d3.scale.log().base(2).domain([1, 2 ** 31]).range([left, w - 16]);
  const y = d3.scale.log().domain([least, d3.max(errors) * 2]).range([height - bottom, 12]);
  const svg = svgIn(figure, w, height, `Largest absolute error of cosine and sine by position, ${curves.length} curves. The table below has the errors by range.`);
  axis(svg, x, "bottom", `translate(0,${height - bottom})`, [1, 2 ** 5, 2 ** 10, 2 ** 17, 2 ** 24, 2 ** 31], (value) => `2^${Math.round(Math.log2(value))}`);
  axis(svg, y, "left", `translate(${left},0)`, powers(...y.domain()).filter((value) => Math.log10(value) % 1 === 0), (value) => `${value.toExponential(0)}`);
  const path = d3.svg.line().x((point) => x(Math.max(1, point[0]))).y((point) => y(Math.max(least, point[1])));
  const dashes = ["none", "6 3", "2 3", "8 3 2 3"], modes = [...new Set(curves.map((curve) => curve.numerics))];
  svg.selectAll("path.line").data(curves).enter().append("path").attr({ class: "line", d: (curve) => path(d3.zip(curve.positions, curve.errors)) })
    .style({ stroke: (curve) => data.colors[curve.backend] || "var(--quiet)", "stroke-dasharray": (curve) => dashes[modes.indexOf(curve.numerics) % 4] })
    .append("title").text((curve) => curve.curve);
  caption(figure, "Upwards: largest absolute error of cosine and sine. To the right: position.", curves.map((curve) => [curve.curve, data.colors[curve.backend]]));
}
// A line for each pair of a comparison, below one for the A/A control.
function drawForest() {
  const where = document.getElementById("forest");
  if (!where) return;
  if (typeof d3 === "undefined") return where.remove();
  const rows = data.pairs.filter((row) => row.ratio), controls = rows.map((row) => row.control).filter((value) => value);
  if (!rows.length) return;
  const w = widthOf(where), left = w * 0.46, step = 20, top = 26, drawn = rows.slice(0, 60);
  const range = { ratio: d3.median(controls) || 1, lo: d3.min(controls) || 1, hi: d3.max(controls) || 1 };
  const lines = [{ name: "A/A control: base against itself", ...range, verdict: "control" }, ...drawn];
  const height = top + step * lines.length + 8;
  const most = d3.max(lines, (row) => Math.max(Math.abs(row.lo - 1), Math.abs(row.hi - 1), 0.04)) * 1.1; // change of time
  const x = d3.scale.linear().domain([1 - Math.min(most, 0.95), 1 + most]).range([left, w - 28]);
  const svg = svgIn(where, w, height + 24, `Change of time of ${drawn.length} cases with their intervals, the A/A control first. The tables of verdicts have the numbers.`);
  const noise = d3.median(rows, (row) => row.noise) || 0.01;
  svg.append("rect").attr({ class: "band", x: x(1 - noise), width: x(1 + noise) - x(1 - noise), y: top - 4, height: height - top });
  svg.append("line").attr({ class: "grid", x1: x(1), x2: x(1), y1: top - 4, y2: height });
  const percent = (value) => `${value >= 1 ? "+" : "−"}${Math.abs(100 * (value - 1)).toFixed(most < 0.05 ? 1 : 0)} %`;
  axis(svg, x, "bottom", `translate(0,${height})`, x.ticks(w < 500 || most > 10 ? 3 : 6), (value) => (most > 10 ? `${value}×` : percent(value)));
  svg.append("text").attr({ x: left, y: 12, class: "quiet" }).text("◀ faster");
  svg.append("text").attr({ x: w - 2, y: 12, "text-anchor": "end", class: "quiet" }).text("slower ▶");
  const line = svg.selectAll("g.row").data(lines).enter().append("g").attr({ class: "row", transform: (_, at) => `translate(0,${top + step * (at + 0.5)})` });
  line.append("text").attr({ x: left - 8, dy: "0.35em", "text-anchor": "end", class: (row) => (row.verdict === "control" ? "strong" : "") })
    .text((row) => row.name).each(function (row) { fit.call(this, left - 10, row.verdict !== "control"); });
  line.append("line").attr({ class: "interval", x1: (row) => x(Math.max(row.lo, x.domain()[0])), x2: (row) => x(Math.min(row.hi, x.domain()[1])) });
  line.append("path").attr({ class: "dot", transform: (row) => `translate(${x(row.ratio)},0)`, d: (row) =>
    d3.svg.symbol().size(70).type({ slower: "triangle-up", faster: "triangle-down", unclear: "diamond" }[row.verdict] || "circle")() })
    .style("fill", (row) => ({ slower: "var(--bad)", faster: "var(--good)", unclear: "var(--warn)" })[row.verdict] || "var(--quiet)");
  line.append("title").text((row) => `${row.name}: ${(100 * (row.ratio - 1)).toFixed(1)} %${row.reason ? `, ${row.verdict}: ${row.reason}` : ""}`);
  const of = rows.length > drawn.length ? `The first ${drawn.length} of ${rows.length} cases. ` : "";
  caption(where, `${of}Change of time of head with its interval: ▲ slower, ▼ faster, ◆ unclear, ● same. Grey: within the noise threshold.`);
}
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  if (form) drawChart(filtered());
  drawForest();
});

// ---- the drawer: cases of a kernel on a backend ----
const drawer = document.getElementById("drawer"), drawerBody = document.getElementById("drawer-body");
let checks = null;
async function unpacked() {
  const bytes = Uint8Array.from(atob(document.getElementById("checks").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
function fact(list, name, value) {
  if (value === null || value === undefined || value === "") return;
  list.append(element("dt", {}, name), element("dd", {}, value));
}
function caseDetails(check) {
  const list = element("dl");
  fact(list, "Suite", check.suite);
  fact(list, "Reason", check.reason);
  fact(list, "Matches", check.mistake);
  fact(list, "Problem", check.problem && element("code", {}, check.problem));
  fact(list, "Error", check.shown && `${check.shown}, limit ${check.limit}`);
  fact(list, "Worst-case input", check.worst_at);
  fact(list, "Returned", check.worst_at && element("code", {}, check.got));
  fact(list, "Expected", check.worst_at && element("code", {}, check.want));
  fact(list, "Evidence", check.coverage && `${check.coverage}, ${check.checked} values, ${check.misrounded} not correctly rounded`);
  fact(list, "Run it again", command(check.command || `posenc verify --backend ${check.backend} --case '${check.case}'`));
  return list;
}
async function openCell(button) {
  const { machine, kernel, backend } = button.dataset;
  document.getElementById("drawer-title").textContent = `${kernel} on ${backend}`;
  drawerBody.replaceChildren("Reading …");
  drawer.showModal();
  checks = checks || (await unpacked());
  const cell = checks.cells[`${machine} ${kernel} ${backend}`];
  const found = checks.checks.filter((values) => values.at(-1).includes(cell))
    .map((values) => ({ backend, ...Object.fromEntries(checks.columns.map((name, at) => [name, values[at]])) }));
  const hasFailed = (check) => ["fail", "crash"].includes(check.status);
  found.sort((a, b) => hasFailed(b) - hasFailed(a));
  const caseLine = (check) => {
    const status = element("b", { class: hasFailed(check) ? "bad" : "good" }, check.status);
    const line = element("details", {}, element("summary", {}, status, ` ${check.case} `, element("small", {}, check.suite)));
    line.addEventListener("toggle", () => line.open && !line.querySelector("dl") && line.append(caseDetails(check)));
    return line;
  };
  const filter = element("input", { type: "search", placeholder: "filter the cases", "aria-label": "Filter the cases" });
  const list = element("div"), count = element("p", { role: "status" });
  const draw = () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    const textOf = (check) => `${check.case} ${check.suite} ${check.status}`.toLowerCase();
    const fitting = found.filter((check) => words.every((word) => textOf(check).includes(word)));
    count.textContent = `${fitting.length} of ${found.length} checks, ${fitting.filter(hasFailed).length} failed`;
    list.replaceChildren(...fitting.slice(0, 200).map(caseLine), fitting.length > 200 ? "Filter to see the others." : "");
  };
  filter.addEventListener("input", draw);
  drawerBody.replaceChildren(filter, count, list);
  draw();
}
document.addEventListener("click", (event) => {
  const button = event.target.closest(".matrix button");
  if (button) openCell(button);
});

if (form) {
  document.getElementById("timings").closest(".wide").hidden = !timings.length;
  select(document.getElementById(`tab-${chart}`));
  update();
}
drawForest();
