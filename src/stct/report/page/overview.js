// The first screen: words, then counts, then what looks wrong.

const ACTION_WORDS = {
  keep: ["kept", "the given label is the most probable one"],
  relabel: ["relabelled", "another label is clearly more probable"],
  abstain: ["abstained", "too close to call: the given label stays"],
  fill: ["filled in", "had no label"],
};

function countsNow() {
  const d = DATA.dial;
  return { keep: d.keep, relabel: d.relabel[dial], abstain: d.abstain[dial], fill: d.fill };
}

function drawOverview() {
  const shares = DATA.rows && DATA.learnt;
  byId("table-name").textContent = DATA.title;
  document.title = `${DATA.title}: stct report`;
  byId("overview").replaceChildren(
    h(
      "div",
      { class: "hero" },
      h(
        "div",
        { class: "hero-words" },
        h("h1", { id: "headline" }, DATA.headline),
        h("p", { class: "second" }, DATA.second),
        h("p", { class: "ways" },
          h("a", { class: "button main", href: "#review" }, "Review them"),
          h("a", { class: "button", href: "#take" }, "Take the labels along")),
      ),
      h("div", { class: "hero-picture" }, h("div", { id: "waffle" }), h("ul", { id: "counts", class: "counts" })),
    ),
    h(
      "dl",
      { class: "facts" },
      fact("Rows", whole(DATA.rows), rowsNote()),
      fact("Classes", whole(CLASSES.length), null),
      fact("Estimated noise rate", shares ? percent(DATA.noise_rate) : "unknown", "share of given labels that are wrong"),
      h("div", { class: "fact accuracy" }, h("dt", { title: "The ranges allow for the rows that were drawn and for what such estimates were off in trials; wider, the less the features know" }, "Estimated label accuracy"), h("dd", { id: "accuracy" })),
    ),
    ...[warningList(), noteList()].filter(Boolean),
  );
  drawCounts();
  on("dial", drawCounts);
}

function fact(name, value, note) {
  return h("div", { class: "fact" }, h("dt", {}, name), h("dd", {}, h("span", { class: "big" }, value), note ? h("span", { class: "note" }, note) : null));
}

function rowsNote() {
  if (ROWS.count === DATA.rows) return null;
  return `this page holds ${whole(ROWS.count)} of them: those to check first, and a sample of the rest`;
}

function drawCounts() {
  const counts = countsNow();
  const total = DATA.rows;
  byId("waffle").replaceChildren(waffle(counts, total));
  byId("counts").replaceChildren(
    ...ACTION_NAMES.filter((name) => counts[name] || name !== "fill").map((name) =>
      h("li", { class: name },
        h("span", { class: "swatch", "aria-hidden": "true" }),
        h("b", {}, whole(counts[name])), ` ${ACTION_WORDS[name][0]} `,
        h("span", { class: "note" }, `${percent(counts[name] / total)}, ${ACTION_WORDS[name][1]}`)),
    ),
  );
  byId("accuracy").replaceChildren(accuracyPicture());
}

// A hundred squares, one for each percent, largest remainders rounded up.
function waffle(counts, total) {
  const order = ["keep", "relabel", "abstain", "fill"];
  const exact = order.map((name) => (100 * counts[name]) / total);
  const cells = exact.map(Math.floor);
  const byRest = order.map((_, i) => i).sort((a, b) => exact[b] - cells[b] - (exact[a] - cells[a]));
  for (let left = 100 - cells.reduce((a, b) => a + b, 0), k = 0; left > 0; left--, k++) cells[byRest[k % 4]]++;
  const kinds = order.flatMap((name, i) => Array(cells[i]).fill(name));
  const words = order.filter((name) => counts[name]).map((name) => `${percent(counts[name] / total)} ${ACTION_WORDS[name][0]}`);
  return svg(
    "svg",
    { viewBox: "0 0 239 119", role: "img", "aria-label": `Of 100 rows: ${words.join(", ")}`, class: "waffle" },
    kinds.map((kind, k) => svg("rect", { class: `tile-${kind}`, x: 12 * Math.floor(k / 5), y: 24 * (k % 5), width: 10, height: 22, rx: 2 })),
  );
}

function accuracyPicture() {
  const { before, after, before_interval: low, after_interval: high } = DATA.accuracy;
  if (!DATA.learnt || before === null) return h("span", { class: "big" }, "unknown");
  const atStart = dial === DATA.dial.start;
  const now = atStart ? after : DATA.dial.accuracy[dial];
  const half = (high[1] - high[0]) / 2;
  const span = atStart ? high : [Math.max(0, now - half), Math.min(1, now + half)];
  const line = (y, value, interval, kind) => [
    svg("line", { x1: 100 * interval[0], x2: 100 * interval[1], y1: y, y2: y, class: `whisker ${kind}`, "vector-effect": "non-scaling-stroke" }),
    svg("line", { x1: 100 * value, x2: 100 * value, y1: y - 5, y2: y + 5, class: `mark ${kind}`, "vector-effect": "non-scaling-stroke" }),
  ];
  const words = (value, interval) => `${percent(value)} (${percent(interval[0])} to ${percent(interval[1])})`;
  return h(
    "div",
    { class: "accuracy-in" },
    h("div", { class: "pair" },
      h("span", {}, h("span", { class: "big" }, percent(before)), h("span", { class: "note" }, `before, ${percent(low[0], 0)} to ${percent(low[1], 0)}`)),
      h("span", { class: "arrow", "aria-hidden": "true" }, "→"),
      h("span", {}, h("span", { class: "big after" }, percent(now)), h("span", { class: "note" }, `after, ${percent(span[0], 0)} to ${percent(span[1], 0)}`))),
    svg("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", class: "accuracy-line", role: "img", "aria-label": `Label accuracy on a scale from 0 to 100%: before ${words(before, low)}, after ${words(now, span)}` },
      svg("line", { x1: 0, x2: 100, y1: 15, y2: 15, class: "axis", "vector-effect": "non-scaling-stroke" }),
      line(8, before, low, "before"), line(22, now, span, "after")),
    h("span", { class: "note" }, DATA.accuracy_note),
  );
}

function warningList() {
  if (!DATA.warnings.length) return null;
  return h(
    "ul",
    { class: "warnings", "aria-label": "Warnings" },
    DATA.warnings.map((warning) => h("li", {}, h("b", {}, warning.title), h("span", {}, warning.text))),
  );
}

function noteList() {
  if (!DATA.notes.length) return null;
  return h("details", { class: "notes", open: DATA.notes.length <= 3 }, h("summary", {}, plural(DATA.notes.length, "note")), h("ul", {}, DATA.notes.map((note) => h("li", {}, note))));
}
