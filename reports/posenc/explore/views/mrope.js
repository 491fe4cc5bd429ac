// Positions with several axes: M-RoPE of language models and 2-D RoPE of vision towers, on a picture of patches.
const BEFORE = ["Look", "at", "this", "little", "picture", "of", "a", "house"], AFTER = ["What", "is", "it", "?"];
const AXES = ["time", "height", "width"];
const LAYOUTS = {
  qwen2_vl: "One section comes after the other: time has the fastest pairs, width the slowest.",
  qwen3_vl: "The axes take turns, so each has fast and slow pairs. Pairs that are left over follow the time.",
  qwen2_vl_vision: "Each axis has one half of the pairs, and each half has all frequencies.",
  pixtral: "Each axis has one half of the pairs. The frequencies go to the axes in turn, as in Pixtral, so that no two pairs share one.",
  kimi: "The pairs belong to the axes in turn, and two neighbours share a frequency.",
};
const KINDS = ["M-RoPE", "2-D RoPE", "plain RoPE"];
// Rotations with several axes: of language models, or of vision towers.
const modelsOf = (tower) => (explore.data.mrope || []).filter((one) => one.tower === tower);
const optionsOf = (tower) => Object.fromEntries(modelsOf(tower).map(({ title }) => [title, title]));
const modelOf = (tower, title) => modelsOf(tower).find((one) => one.title === title);
const firstFew = (list) => (list.length > 4 ? `${list.slice(0, 3).join(", ")}, …` : list.join(", "));

// ---- the picture ----
const EDGE = { left: 30, top: 22 };
// A house in a garden, w x h pixels. Points are shares of the width and the height.
function house(w, h) {
  const dark = theme().dark, at = (x, y) => `${(EDGE.left + x * w).toFixed(1)} ${(EDGE.top + y * h).toFixed(1)}`;
  const shape = (color, ...points) => svg("path", { d: `M${points.map(([x, y]) => at(x, y)).join("L")}Z`, fill: color });
  const box = (color, x, y, wide, tall) => shape(color, [x, y], [x + wide, y], [x + wide, y + tall], [x, y + tall]);
  const [sky, grass, wall, roof, door, glass, sun, leaf] = dark
    ? ["#26425c", "#2f5a38", "#a89579", "#8a4334", "#5b3c28", "#d9c77a", "#e0b94a", "#3f7a4b"]
    : ["#bfe0f7", "#9fcf8d", "#f3e2c4", "#c9664f", "#8a5a3c", "#7fb3d9", "#ffd558", "#4f9a5c"];
  const round = (color, x, y, r) => {
    const [cx, cy] = at(x, y).split(" ");
    return svg("circle", { cx, cy, r: r * Math.min(w, h), fill: color });
  };
  return [
    box(sky, 0, 0, 1, 1), box(grass, 0, 0.74, 1, 0.26), round(sun, 0.13, 0.19, 0.1), box(wall, 0.3, 0.42, 0.38, 0.42),
    shape(roof, [0.24, 0.44], [0.49, 0.14], [0.74, 0.44]), box(door, 0.54, 0.6, 0.09, 0.24), box(glass, 0.35, 0.53, 0.12, 0.14),
    box(door, 0.845, 0.6, 0.03, 0.24), round(leaf, 0.86, 0.5, 0.14),
  ];
}
function paintPicture(parts, width, { state }, drawing) {
  const { width: columns, height: rows, before, row, column } = state, { ink, quiet, paper } = theme();
  const cell = Math.min(48, (width - EDGE.left - 4) / columns), [w, h] = [cell * columns, cell * rows];
  drawing.cell = cell;
  parts.push(...house(w, h));
  const down = Array.from({ length: columns + 1 }, (_, c) => `M${EDGE.left + c * cell} ${EDGE.top}v${h}`);
  const across = Array.from({ length: rows + 1 }, (_, r) => `M${EDGE.left} ${EDGE.top + r * cell}h${w}`);
  parts.push(svg("path", { d: [...down, ...across].join(""), stroke: paper, "stroke-opacity": 0.85, "stroke-width": 1.5, fill: "none" }));
  const position = (x, y, value, anchor, isChosen) =>
    label(x, y, value, isChosen ? ink : quiet, anchor, isChosen ? { style: "font-weight: 700" } : {});
  for (let c = 0; c < columns; c++) parts.push(position(EDGE.left + (c + 0.5) * cell, EDGE.top - 7, before + c, "middle", c === column));
  for (let r = 0; r < rows; r++) parts.push(position(EDGE.left - 7, EDGE.top + (r + 0.5) * cell + 4, before + r, "end", r === row));
  const frame = { x: EDGE.left + column * cell, y: EDGE.top + row * cell, width: cell, height: cell, fill: "none" };
  parts.push(svg("rect", { ...frame, stroke: paper, "stroke-width": 6 }), svg("rect", { ...frame, stroke: ink, "stroke-width": 2.5 }));
  return EDGE.top + h + 4;
}
function makePicture(page) {
  const drawing = page.drawing("The picture and the positions of its patches", `The numbers at the left are the height positions of the rows, those above the width
    positions of the columns. Choose a patch with the pointer, or with the arrow keys.`, paintPicture);
  drawing.figure.classList.add("patches");
  const words = "A house and a tree below the sun, cut into patches. Arrow keys choose a patch.";
  fill(drawing.svg, { tabindex: "0", role: "application", "aria-roledescription": "picture of patches", "aria-label": words });
  drawing.svg.removeAttribute("aria-hidden");
  drawing.svg.addEventListener("click", (event) => {
    const box = drawing.svg.getBoundingClientRect(), { width, height } = page.state;
    const [column, row] = [(event.clientX - box.left - EDGE.left) / drawing.cell, (event.clientY - box.top - EDGE.top) / drawing.cell].map(Math.floor);
    if (row >= 0 && column >= 0 && row < height && column < width) page.set({ row, column });
  });
  drawing.svg.addEventListener("keydown", (event) => {
    const { row, column, width } = page.state;
    const to = {
      ArrowUp: { row: row - 1 }, ArrowDown: { row: row + 1 }, ArrowLeft: { column: column - 1 }, ArrowRight: { column: column + 1 },
      Home: { column: 0 }, End: { column: width - 1 },
    }[event.key];
    if (!to) return;
    event.preventDefault();
    page.set(to);
  });
  return drawing;
}

// ---- positions ----
// Each axis of the patches, row by row, as Qwen2-VL counts: all have the time at which the picture begins.
function patchesOf({ width, height, before }) {
  const count = width * height, patches = Array.from({ length: count }, (_, i) => i);
  const rows = patches.map((i) => Math.floor(i / width)), columns = patches.map((i) => i % width);
  const axes = [patches.map(() => before), rows.map((r) => before + r), columns.map((c) => before + c)];
  return { count, rows, columns, axes, next: before + Math.max(width, height) }; // next: the position of the text after the picture
}
function sequenceOf({ width, height, before }, { count, next }) {
  const chip = (name, [t, h, w], kind = "") => `<li class="${kind}"><strong>${name}</strong><span>t ${t}</span><span>h ${h}</span><span>w ${w}</span></li>`;
  const range = (n) => `${before} to ${before + n - 1}`;
  const text = (words, first) => words.map((word, i) => chip(word, [first + i, first + i, first + i]));
  const picture = chip(`${count} patches`, [before, range(height), range(width)], "many");
  return [...text(BEFORE.slice(0, before), 0), picture, ...text(AFTER, next)].join("");
}
function showCurves(page, { before }, { count, next, axes }) {
  const text = Array.from({ length: before }, (_, i) => i), after = AFTER.map((_, i) => next + i);
  const [time, height, width] = axes.map((axis) => [...text, ...axis, ...after]);
  page.curves.show({
    xName: "token of the sequence", yName: "position", xMarks: [{ at: before, name: "picture" }, { at: before + count, name: "text" }],
    series: [
      { name: "time", y: time }, { name: "height", y: height }, { name: "width", y: width }, { name: "plain RoPE", y: time.map((_, i) => i) },
    ],
    read: (i) => `Token ${i}: t ${time[i]}, h ${height[i]}, w ${width[i]}; plain RoPE ${i}`,
  });
}

// ---- pairs and their axes ----
const laneNames = ({ tower, columnFirst }) => (tower ? (columnFirst ? ["column", "row"] : ["row", "column"]) : AXES);
function paintLanes(parts, width, { names, axis, omega }) {
  const { series, quiet, line, ink } = theme(), left = 56, lane = 34, bottom = names.length * (lane + 8); // pixels
  const cell = (width - left - 2) / axis.length;
  const logs = Array.from(omega, Math.log), least = Math.min(...logs), reach = Math.max(...logs) - least || 1;
  names.forEach((name, a) => {
    const y = (a + 1) * (lane + 8) - 4;
    parts.push(label(left - 8, y - 6, name, ink, "end"), svg("line", { x1: left, x2: width, y1: y, y2: y, stroke: line }));
    axis.forEach((mine, i) => {
      const tall = 5 + ((lane - 5) * (logs[i] - least)) / reach;
      if (mine === a) parts.push(svg("rect", { x: left + i * cell, y: y - tall, width: Math.max(cell - 1, 1), height: tall, fill: series[a] }));
    });
  });
  parts.push(label(left, bottom + 12, "pair 0", quiet, "start"), label(width - 2, bottom + 12, `pair ${axis.length - 1}`, quiet, "end"));
  return bottom + 18;
}
function showLanes(page, { drawing, note }, model) {
  const { omega, axis } = page.lib.frequencies(model.spec), names = laneNames(model);
  const turn = (one) => whole(Number(((2 * Math.PI) / one).toPrecision(3))); // positions
  const words = names.map((name, a) => {
    const pairs = Array.from(omega.keys()).filter((i) => axis[i] === a), own = pairs.map((i) => omega[i]);
    return `<br>${name}: ${pairs.length} pairs (${firstFew(pairs)}), a turn in ${turn(Math.max(...own))} to ${turn(Math.min(...own))} positions`;
  });
  drawing.show({ names, axis: Array.from(axis), omega });
  const { mrope_section, mrope_layout } = model.spec;
  note.show(`${model.title}, <code>mrope_section</code> ${mrope_section.join(", ")}, ${mrope_layout}. ${LAYOUTS[mrope_layout]}<small>${words.join("")}</small>`);
}

// ---- similarity ----
// The product of each patch with the chosen one, divided by the pairs: each pair of a patch is the arrow (1, 0), rotated.
function similarityOf(lib, { spec, pairing = "half" }, positions, chosen) {
  const { dim } = spec, count = (typeof positions[0] === "number" ? positions : positions[0]).length;
  const x = Float32Array.from({ length: count * dim }, (_, i) => Number(pairing === "half" ? i % dim < dim / 2 : i % 2 === 0));
  const out = lib.rotate(x, lib.ropeTable(spec, { positions }), { pairing });
  return Float32Array.from({ length: count }, (_, t) => {
    let sum = 0;
    for (let i = 0; i < dim; i++) sum += out[t * dim + i] * out[chosen * dim + i];
    return sum / (dim / 2);
  });
}
// How many patches are nearer than one, beyond the rounding of f32.
function countNearer(values, one, chosen) {
  return values.filter((value, i) => i !== chosen && i !== one && value > values[one] + 1e-6).length;
}
const wordsOfNearer = (n) => (n === 0 ? "no patch is nearer" : n === 1 ? "1 patch is nearer" : `${n} patches are nearer`);

function showNear(page, { width, height, row, column }, all, layout) {
  const chosen = row * width + column, down = row + 1 < height, right = column + 1 < width;
  const below = chosen + (down ? width : -width), beside = chosen + (right ? 1 : -1);
  const cell = (values, one) => `<td>${digits(values[one], 6)}<small>${countNearer(values, one, chosen) || "none"} nearer</small></td>`;
  const line = (name, one) => `<tr><th scope="row">${name}</th>${all.map((values) => cell(values, one)).join("")}</tr>`;
  page.near.innerHTML = `<thead><tr><td></td>${KINDS.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead>
    <tbody>${line(right ? "right" : "left", beside)}${line(down ? "below" : "above", below)}</tbody>`;
  const counts = all.map((values) => countNearer(values, below, chosen));
  page.result.show(`The patch ${down ? "below" : "above"} touches the chosen one. Plain RoPE numbers the patches row by row, so the two are ${width} positions apart:
    <strong>${wordsOfNearer(counts[2])}</strong>. With M-RoPE ${wordsOfNearer(counts[0])}, and with 2-D RoPE ${wordsOfNearer(counts[1])}.
    ${layout === "qwen2_vl" && counts[0] >= width - 1 ? "Here M-RoPE leaves the width to slow pairs, and a whole row looks like one place." : ""}`);
}

addView({
  id: "mrope",
  order: 90,
  title: "M-RoPE and pictures",
  intro: `<p>A word has one position. A patch of a picture has a row and a column, and in a video a time as well. M-RoPE gives every token three
    positions, and lets each pair of channels follow one of them. For text the three are equal, and the result is plain RoPE.</p>
    <p>Choose a patch and compare the three maps below: which patches are near? Then change the language model to Qwen2-VL,
    whose pairs follow the axes in another order.</p>`,
  get controls() {
    return [
      { id: "model", label: "Language model", options: optionsOf(false), value: "Qwen3-VL 2B" },
      { id: "tower", label: "Vision tower", options: optionsOf(true), value: "Qwen3-VL 2B" },
      { id: "width", label: "Columns", min: 2, max: 12, value: 8 },
      { id: "height", label: "Rows", min: 2, max: 12, value: 6 },
      { id: "before", label: "Words before", min: 1, max: BEFORE.length, value: 3 },
      { id: "row", label: "Row of the patch", min: 0, max: (state) => state.height - 1, value: 2 },
      { id: "column", label: "Column of the patch", min: 0, max: (state) => state.width - 1, value: 3 },
      { id: "same", label: "One scale for all maps", check: true, value: false },
    ];
  },
  setup(page) {
    page.shown = {};
    page.group(2);
    page.picture = makePicture(page);
    const { figure } = page.picture;
    page.curves = page.plot({ title: "Three positions along the sequence", how: "Text has one position, so that the three curves are one. In the picture the time stands still, the height grows by rows, and the width begins again in each row.", tall: 270 });
    page.group();
    page.sequence = page.figure("The sequence", "Each token with its time t, height h and width w.").appendChild(element("ol", { class: "sequence" }));
    page.parent = figure;
    page.patch = page.note();
    page.group();
    page.count = page.note();
    page.group(2);
    page.lanes = [["Language model: the axis of each pair", "Each bar is a pair, in the line of the axis that it follows. High bars rotate fast, low ones slowly; the scale is logarithmic."],
      ["Vision tower: the axis of each pair", "A tower has two axes, row and column, and no time."]].map(([title, how]) => {
      const drawing = page.drawing(title, how, paintLanes), { parent } = page;
      page.parent = drawing.figure;
      const note = page.note();
      page.parent = parent;
      return { drawing, note };
    });
    page.html(`<div><h3 style="margin: 0">Similarity to the chosen patch</h3><p class="note" style="color: var(--quiet); font-size: .93rem; max-width: none">Bright patches are near the chosen one. Choose another in any map.</p></div>`);
    page.group(3);
    page.parent.style.gridTemplateColumns = "repeat(auto-fit, minmax(min(18rem, 100%), 1fr))";
    const pick = (row, column) => page.set({ row, column });
    page.maps = [["M-RoPE, language model", "Three positions for each patch. Text is rotated in the same way."],
      ["2-D RoPE, vision tower", "Two positions for each patch: the neighbours on all sides are near."],
      ["Plain RoPE", "One position, row by row: only neighbours in the same row are near."],
    ].map(([title, how]) => page.heatMap({ title, how, square: true, tall: 360, pick }));
    page.group();
    page.near = page.html(`<figure><figcaption><strong>The nearest neighbours</strong><span>Similarity to the chosen patch, and how many other patches have a greater one. It is the product
      of the two rotated vectors divided by the number of pairs, 1 for equal positions. Differences below 10⁻⁶ count as equal.</span></figcaption><div class="scroll" tabindex="0" role="region" aria-label="The nearest neighbours"><table class="near"></table></div></figure>`).querySelector("table");
    page.result = page.note();
    page.html(`<p class="note" style="color: var(--quiet)">For experts: every pair has the same weight here; in a model the weights depend on the query and the key. Qwen's towers merge 2 × 2 patches
      into one token, so the language model's grid is coarser than the tower's. The maps use one grid for both. In Qwen2-VL each further step of a video
      has t + 1; Qwen3-VL writes the times as text instead.</p>`);
  },
  draw(state, page) {
    const { width, height, before, row, column, same } = state, patches = patchesOf(state), chosen = row * width + column;
    const model = modelOf(false, state.model), tower = modelOf(true, state.tower);
    if (!model || !tower) throw new Error("the page was made without the models");
    page.picture.show({ state: { ...state } });
    page.patch.show(`Row ${row}, column ${column}: the patch has t = ${before}, h = ${before} + ${row} = ${before + row},
      w = ${before} + ${column} = ${before + column}. Counted row by row it would be position ${before + chosen}.`);
    page.count.show(`The picture has ${patches.count} patches and takes max(${width}, ${height}) = ${Math.max(width, height)} positions. The text after it goes on at
      ${before} + ${Math.max(width, height)} = <strong>${patches.next}</strong>, one more than the largest position of any axis. Plain counting would go on at ${before + patches.count}.`);
    // Shows a part again only if what it depends on has changed.
    const showIfChanged = (name, key, show) => {
      if (page.shown[name] !== key) show();
      page.shown[name] = key;
    };
    showIfChanged("positions", `${width} ${height} ${before}`, () => {
      showCurves(page, state, patches);
      page.sequence.innerHTML = sequenceOf(state, patches);
    });
    showIfChanged("model", model, () => showLanes(page, page.lanes[0], model));
    showIfChanged("tower", tower, () => showLanes(page, page.lanes[1], tower));
    const grid = tower.columnFirst ? [patches.columns, patches.rows] : [patches.rows, patches.columns], { dim, rope_theta } = model.spec;
    const all = [ // in the order of KINDS
      similarityOf(page.lib, model, patches.axes, chosen), similarityOf(page.lib, tower, grid, chosen),
      similarityOf(page.lib, { spec: { dim, rope_theta } }, patches.rows.map((_, i) => before + i), chosen),
    ];
    const least = Math.min(...all.map((values) => Math.min(...values)));
    all.forEach((values, k) => {
      const similarity = (i, value) => (i === chosen ? "the chosen patch" : `${digits(value, 6)}; ${wordsOfNearer(countNearer(values, i, chosen))}`);
      page.maps[k].show({
        rows: height, columns: width, values, colors: "sequential", limits: [same ? least : Math.min(...values), 1],
        row: "row", column: "column", write: (value) => digits(value, 3), marks: [{ row, column }],
        cell: (r, c, value) => `Row ${r}, column ${c}: ${similarity(r * width + c, value)}`,
      });
    });
    showNear(page, state, all, model.spec.mrope_layout);
  },
});
