// Put everything on the page, top to bottom, what is seen first first.

const THEMES = ["auto", "light", "dark"];

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  byId("theme-name").textContent = name;
  try {
    localStorage.setItem("stct:theme", name);
  } catch { /* not kept, then */ }
  tell("theme");
}

function startTheme() {
  let name = "auto";
  try {
    name = localStorage.getItem("stct:theme") || "auto";
  } catch { /* auto, then */ }
  if (THEMES.includes(name) && name !== "auto") setTheme(name);
  byId("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(byId("theme-name").textContent) + 1) % THEMES.length]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => tell("theme"));
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") byId("f-find").focus();
  else if (event.key === "?") byId("help").showModal();
  else return;
  event.preventDefault();
});

startTheme();
drawOverview();
byId("figures").append(...[dialFigure(), ...classFigures(), annotatorFigure(), mapFigure(), ...curveFigures()].filter(Boolean));
drawReview();
drawAudit();
drawTake();
byId("foot").append(h("p", {}, `Made by ${DATA.method}. This file is complete: it opens from disk and makes no request to any network. Decisions stay in this browser until you save them.`));
document.documentElement.dataset.ready = "true";
