// All views: their groups, the navigation, the address, and the start of the page.
// A view that no group names stands at the end.
const GROUPS = {
  Attention: ["sentence"],
  Tables: ["table", "steps", "similarity"],
  Rotations: ["rope", "scaling", "precision", "mrope"],
  Scores: ["bias"],
  Learn: ["map", "course"],
};
const REST = "More";
const groupOf = (view) => Object.keys(GROUPS).find((name) => GROUPS[name].includes(view.id)) || REST;

function sortViews() {
  const names = [...Object.keys(GROUPS), REST], place = (view) => names.indexOf(groupOf(view));
  explore.views.sort((a, b) => place(a) - place(b) || a.order - b.order);
}
// Links in groups, and on small screens a list to choose from. page.css shows one of the two.
function makeNavigation() {
  const groups = [...new Set(explore.views.map(groupOf))].map((name) => [name, explore.views.filter((view) => groupOf(view) === name)]);
  const select = element("select", { id: "view" }, ...groups.map(([label, views]) =>
    element("optgroup", { label }, ...views.map(({ id, title }) => element("option", { value: id }, title)))));
  select.addEventListener("change", () => { // another hash would take the focus away, and arrow keys could not go on
    history.pushState(null, "", `#${select.value}`);
    readAddress();
  });
  const link = ({ id, title }) => element("li", {}, element("a", { href: `#${id}` }, title));
  const list = element("ul", {}, ...groups.map(([name, views]) => element("li", {}, element("span", { id: `group-${name}` }, name),
    element("ul", { "aria-labelledby": `group-${name}` }, ...views.map(link)))));
  const nav = document.getElementById("views");
  nav.replaceChildren(element("label", { for: "view", class: "unseen" }, "View"), select, list);
}
function showInNavigation(view) {
  document.querySelector("#views select").value = view.id;
  for (const link of document.querySelectorAll("#views a"))
    if (link.hash === `#${view.id}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
}
// Links to the view before and the view after this one.
function neighbours(view) {
  const at = explore.views.indexOf(view), before = explore.views[at - 1], after = explore.views[at + 1];
  const previous = before && element("a", { href: `#${before.id}`, rel: "prev" }, `← ${before.title}`);
  const next = after && element("a", { href: `#${after.id}`, rel: "next" }, `${after.title} →`);
  return [previous, next].filter(Boolean);
}

// ---- the address: #table&dim=64 ----
function writeAddress(page) {
  const changed = page.controls.filter(({ spec }) => page.state[spec.id] !== spec.value && (!spec.when || spec.when(page.state)));
  const words = changed.map(({ spec }) => `&${spec.id}=${encodeURIComponent(page.state[spec.id])}`);
  history.replaceState(null, "", `#${page.view.id}${words.join("")}`);
}
let later = 0; // browsers limit how often an address may change
function writeAddressSoon(page) {
  clearTimeout(later);
  later = setTimeout(() => { if (explore.current === page) writeAddress(page); }, 300);
}
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; } // a % that is not an escape
}
function readAddress() {
  const [id, ...words] = location.hash.slice(1).split("&");
  const view = explore.views.find((one) => one.id === id) || explore.views[0];
  const values = {};
  for (const word of words) {
    const [name, value] = word.split("=");
    const control = (view.controls || []).find((one) => one.id === name);
    if (!control || value === undefined) continue;
    const known = typeof control.value === "number" ? Number(value) : decoded(value);
    if (!Number.isNaN(known)) values[name] = known;
  }
  showView(view, values);
}
function showView(view, values = {}) {
  for (const stop of explore.current?.stops || []) stop();
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== view.id;
  showInNavigation(view);
  document.title = `${view.title} · posenc explore`;
  const known = explore.pages[view.id], page = (explore.pages[view.id] ||= new Page(view));
  explore.current = page;
  page.set(values, true);
  if (known) writeAddressSoon(page); // it still has the values that were chosen earlier
}
function makeSection(view) {
  const section = element("section", { id: view.id, "aria-labelledby": `${view.id}-title`, hidden: "" });
  section.append(element("h2", { id: `${view.id}-title`, tabindex: "-1" }, view.title));
  const intro = section.appendChild(element("div", { class: "intro" }));
  intro.innerHTML = view.intro || "";
  section.append(element("div", { class: "work" }, element("form", { class: "controls", "aria-label": `Controls: ${view.title}` }),
    element("div", { class: "results" }, element("p", { class: "problem", role: "alert", hidden: "" }), element("div", { class: "figures" }))));
  section.append(element("p", { class: "around" }, ...neighbours(view)));
  section.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  return section;
}

async function begin() {
  const problem = document.getElementById("problem");
  try {
    explore.data = JSON.parse(document.getElementById("data").textContent);
    explore.lib = await loadLibrary(document.getElementById("wasm").textContent);
    document.getElementById("version").textContent = `posenc ${explore.lib.version}. `;
  } catch (error) {
    problem.hidden = false;
    problem.textContent = `The library did not start: ${error.message}. This page takes a browser of 2023 or later.`;
    return;
  }
  sortViews();
  makeNavigation();
  document.querySelector("main").append(...explore.views.map(makeSection));
  const goToTitle = (options) => document.getElementById(`${explore.current.view.id}-title`).focus(options);
  window.addEventListener("hashchange", () => {
    readAddress();
    goToTitle({ preventScroll: true });
    window.scrollTo(0, 0);
  });
  document.querySelector(".skip").addEventListener("click", (event) => { // #main is no view
    event.preventDefault();
    goToTitle();
  });
  onTheme(() => Object.values(explore.pages).forEach((page) => page.redraw()));
  readAddress();
}
