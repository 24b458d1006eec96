// Small helpers. Text is always set as text: nothing from the data becomes HTML.

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const byId = (id) => document.getElementById(id);

const whole = new Intl.NumberFormat("en-US").format;
const plural = (count, word) => `${whole(count)} ${word}${count === 1 ? "" : "s"}`;
function percent(share, digits = 1) {
  if (share === null || share === undefined) return "unknown";
  return `${(100 * share).toFixed(digits)}%`;
}
// Nothing is certain.
function sureness(share) {
  if (share > 0.999) return ">99.9%";
  if (share < 0.001) return "<0.1%";
  return percent(share, share > 0.99 ? 1 : 0);
}

const label = (code, kind = "") =>
  h("bdi", { class: `label ${kind} ${code < 0 ? "none" : ""}`, title: nameOf(code) }, nameOf(code));

// A picture with its words: a caption, and the numbers as a table.
function figure({ id, title, text, wide }, picture, table) {
  return h(
    "figure",
    { id, class: wide ? "wide" : "" },
    h("h3", {}, title),
    text ? h("p", { class: "about" }, text) : null,
    picture,
    table
      ? h("details", { class: "as-table" }, h("summary", {}, "The numbers as a table"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}: table` }, table))
      : null,
  );
}

function table(head, rows) {
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, cell))))),
  );
}

function say(text) {
  byId("live").textContent = text;
}

// The colour a custom property stands for in the current theme.
const probe = h("span", { hidden: true });
document.body.append(probe);
function colour(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}
const NUM_COLOURS = 10;
const OTHER_COLOUR = NUM_COLOURS; // classes beyond the first ten share grey
