// Colours: those of page.css, series of lines, and scales of maps. All of them can be told apart without red and green.
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const themeWatchers = [];
const onTheme = (watcher) => themeWatchers.push(watcher);
const isDark = () => (document.documentElement.dataset.theme || (systemDark.matches ? "dark" : "light")) === "dark";
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "14 4", "4 2"];
let themeNow = null;

function theme() {
  if (themeNow) return themeNow;
  const style = getComputedStyle(document.documentElement), dark = isDark();
  const names = ["paper", "ink", "quiet", "line", "soft", "link", "mark"];
  themeNow = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  themeNow.dark = dark;
  themeNow.series = dark
    ? ["#6cb6ff", "#ff9f5a", "#4fd1a5", "#e29ad0", "#e8cc5c", "#b9c2cc"]
    : ["#0067a5", "#bf4a00", "#00785a", "#a1458a", "#7a6200", "#57606a"];
  themeNow.diverging = scale(dark ? ["#8fd0ff", "#2f7fc4", "#1b222a", "#c4672a", "#ffc58a"] : ["#08497f", "#5b9fd0", "#f6f6f4", "#e59a5c", "#8f3a00"]);
  themeNow.sequential = scale(["#3b0f5c", "#40478a", "#26808e", "#3fb579", "#b5d73a", "#fbe96b"]);
  return themeNow;
}

// 256 colours between the given ones, as [r, g, b] and as words of an image.
function scale(ends) {
  const rgb = ends.map((end) => [1, 3, 5].map((at) => parseInt(end.slice(at, at + 2), 16) ** 2));
  const colors = Array.from({ length: 256 }, (_, i) => {
    const x = (i / 255) * (rgb.length - 1), at = Math.min(Math.floor(x), rgb.length - 2), part = x - at;
    return [0, 1, 2].map((c) => Math.round(Math.sqrt(rgb[at][c] * (1 - part) + rgb[at + 1][c] * part)));
  });
  const words = Uint32Array.from(colors, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  return { colors, words, css: (i) => `rgb(${colors[i].join(" ")})`, ink: (i) => inkOn(colors[i]) };
}
// Black or white, whichever is read more easily on a colour.
function inkOn([r, g, b]) {
  const light = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.179 ? "#000" : "#fff";
}

function changeTheme() {
  themeNow = null;
  const button = document.getElementById("theme");
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", `${button.textContent} colours`);
  for (const watcher of themeWatchers) watcher();
}
function beginTheme() {
  const button = document.getElementById("theme"), root = document.documentElement;
  try { // a page of a file may have no storage
    const kept = localStorage.getItem("posenc-theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch { /* the system decides */ }
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("posenc-theme", root.dataset.theme); } catch { /* it lasts as long as the page */ }
    changeTheme();
  });
  button.hidden = false;
  systemDark.addEventListener("change", changeTheme);
  changeTheme();
}
