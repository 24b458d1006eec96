// The review: which rows are shown, in what order, a page at a time.

const PER_PAGE = 24;
const view = { show: "all", from: "", to: "", low: 0, high: 100, find: "", sort: "check", page: 0, rows: new Int32Array(0) };
let grid; // the element with the cards
const controls = {};

const SHOWS = {
  all: ["all rows", () => true],
  proposed: ["suggested changes", (i) => suggestionOf(i) !== ROWS.given[i] && ROWS.decides[i] !== LOCKED],
  relabel: ["relabelled", (i) => actionOf(i) === RELABEL],
  abstain: ["abstained", (i) => actionOf(i) === ABSTAIN],
  fill: ["filled in", (i) => actionOf(i) === FILL],
  keep: ["kept", (i) => actionOf(i) === KEEP],
  mine: ["decided by you", (i) => decisionOf(i) !== null],
  open: ["suggested, not yet decided", (i) => decisionOf(i) === null && suggestionOf(i) !== ROWS.given[i] && ROWS.decides[i] !== LOCKED],
};
const SORTS = { check: "to check first", surest: "surest changes first", table: "order of the table" };

function applyFilter() {
  const passes = SHOWS[view.show][1];
  const [from, to] = [view.from === "" ? null : Number(view.from), view.to === "" ? null : Number(view.to)];
  const find = view.find.trim().toLowerCase();
  const found = [];
  for (let i = 0; i < ROWS.count; i++) {
    if (from !== null && ROWS.given[i] !== from) continue;
    if (to !== null && suggestionOf(i) !== to) continue;
    if (!passes(i)) continue;
    const sure = 100 * confidenceOf(i);
    if (sure < view.low || sure > view.high) continue;
    if (find && !ROWS.id(i).toLowerCase().includes(find)) continue;
    found.push(i);
  }
  if (view.sort === "surest") {
    const gain = (i) => ROWS.pOther[i] - ROWS.pGiven[i];
    found.sort((a, b) => gain(b) - gain(a) || a - b);
  } else if (view.sort === "table") found.sort((a, b) => ROWS.row[a] - ROWS.row[b]);
  view.rows = Int32Array.from(found);
}

function refresh({ keepPage = false } = {}) {
  applyFilter();
  if (!keepPage) view.page = 0;
  view.page = Math.max(0, Math.min(view.page, numPages() - 1));
  drawPage();
}

const numPages = () => Math.max(1, Math.ceil(view.rows.length / PER_PAGE));

function turnPage(page) {
  view.page = Math.max(0, Math.min(page, numPages() - 1));
  drawPage();
}

function drawPage() {
  const start = view.page * PER_PAGE;
  grid.replaceChildren(...Array.from(view.rows.slice(start, start + PER_PAGE), (i, k) => card(i, k)));
  if (!view.rows.length) grid.replaceChildren(h("li", { class: "nothing" }, `No row passes these filters.${rowsNote() ? ` Of ${whole(DATA.rows)} rows, ${rowsNote()}.` : ""}`));
  controls.found.textContent = `${plural(view.rows.length, "row")}, page ${view.page + 1} of ${numPages()}`;
  controls.back.disabled = view.page === 0;
  controls.next.disabled = view.page >= numPages() - 1;
}

function choice(name, text, options) {
  const select = h("select", { id: `f-${name}`, onchange: () => { view[name] = select.value; refresh(); } },
    options.map(([value, words]) => h("option", { value }, words)));
  select.value = view[name];
  controls[name] = select;
  return h("div", { class: "field" }, h("label", { for: `f-${name}` }, text), select);
}

function number(name, text) {
  const input = h("input", { id: `f-${name}`, type: "number", min: 0, max: 100, step: 1, value: view[name],
    oninput: () => { view[name] = input.value === "" ? (name === "low" ? 0 : 100) : Number(input.value); refresh(); } });
  controls[name] = input;
  return h("div", { class: "field small" }, h("label", { for: `f-${name}` }, text), input);
}

function drawReview() {
  const classes = CLASSES.map((one, code) => [String(code), one.name]);
  grid = h("ul", { class: "cards", id: "cards", "aria-label": "Rows to review", onkeydown: onKey });
  controls.found = h("p", { class: "found", role: "status" });
  controls.back = h("button", { type: "button", onclick: () => { turnPage(view.page - 1); toTop(); } }, "Previous");
  controls.next = h("button", { type: "button", onclick: () => { turnPage(view.page + 1); toTop(); } }, "Next");
  const find = h("input", { id: "f-find", type: "search", autocomplete: "off", spellcheck: "false", oninput: () => { view.find = find.value; refresh(); } });
  controls.find = find;
  const shows = Object.entries(SHOWS).filter(([name]) => name !== "fill" || DATA.dial.fill).map(([value, [text]]) => [value, text]);
  byId("review").append(
    progressBar(),
    h("div", { class: "filters", role: "search", "aria-label": "Filter rows" },
      choice("show", "Show", shows),
      choice("from", "Given as", [["", "any"], ["-1", "no label"], ...classes]),
      choice("to", "Should be", [["", "any"], ...classes]),
      number("low", "Sure, from %"), number("high", "to %"),
      h("div", { class: "field" }, h("label", { for: "f-find" }, "Find an id"), find),
      choice("sort", "Order", Object.entries(SORTS)),
      h("button", { type: "button", class: "quiet", onclick: clearFilters }, "Clear filters")),
    h("div", { class: "pager" }, controls.found, h("div", {}, controls.back, controls.next)),
    grid,
    h("div", { class: "pager" }, h("span"), h("div", {},
      h("button", { type: "button", onclick: () => { turnPage(view.page + 1); toTop(); } }, "Next page"))),
    helpDialog(), labelDialog(),
  );
  refresh();
  on("dial", () => refresh({ keepPage: true }));
}

const toTop = () => byId("f-show").scrollIntoView({ block: "center" });

function clearFilters() {
  Object.assign(view, { show: "all", from: "", to: "", low: 0, high: 100, find: "", sort: "check" });
  for (const name of ["show", "from", "to", "low", "high", "find", "sort"]) controls[name].value = view[name];
  refresh();
}

function setFilters(values) {
  Object.assign(view, { show: "all", from: "", to: "", low: 0, high: 100, find: "" }, values);
  for (const name of ["show", "from", "to", "low", "high", "find"]) controls[name].value = view[name];
  refresh();
  focusCard(0);
}

const showPair = (from, to) => setFilters({ from: String(from), to: String(to) });
function showRow(i) {
  setFilters({ find: ROWS.id(i) });
  const place = view.rows.indexOf(i); // other ids may contain this one
  turnPage(Math.floor(place / PER_PAGE));
  focusCard(place % PER_PAGE);
}

function progressBar() {
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Reviewed" });
  const text = h("span", { class: "progress-words", role: "status" });
  const back = h("button", { type: "button", onclick: undoLast }, "Undo ", h("kbd", {}, "u"));
  const unkept = h("p", { class: "unkept", hidden: true }, "This browser does not keep decisions for files. Export them before you close the page.");
  let suggested = 0;
  const draw = () => {
    let done = 0;
    for (const id of decisions.keys()) {
      const i = PLACE.get(id);
      if (i !== undefined && SHOWS.proposed[1](i)) done++;
    }
    const extra = decisions.size - done;
    bar.max = Math.max(1, suggested);
    bar.value = done;
    text.replaceChildren(h("b", {}, plural(done + extra, "row")), ` checked, ${whole(done)} of ${whole(suggested)} suggestions${ROWS.count === DATA.rows ? "" : " in this page"}`);
    back.disabled = !history.length;
    unkept.hidden = kept;
  };
  for (let i = 0; i < ROWS.count; i++) if (SHOWS.proposed[1](i)) suggested++;
  on("decision", draw);
  draw();
  return h("div", { class: "progress" },
    h("div", { class: "progress-line" }, bar, text),
    h("div", { class: "progress-buttons" },
      h("button", { type: "button", class: "main", onclick: startReview }, "Start reviewing"), back,
      h("button", { type: "button", class: "quiet", onclick: () => byId("help").showModal() }, "Keys ", h("kbd", {}, "?"))),
    unkept);
}

// Go to the first card that nobody has decided yet.
function startReview() {
  for (let k = 0; k < view.rows.length; k++) {
    if (decisionOf(view.rows[k]) === null) {
      turnPage(Math.floor(k / PER_PAGE));
      return focusCard(k % PER_PAGE);
    }
  }
  focusCard(0);
}
