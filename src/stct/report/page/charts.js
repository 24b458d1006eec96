// The dial with its histogram, the transition matrix, and the classes.

// Draw into a box now and whenever its width changes.
function fit(box, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    draw(width);
  }).observe(box);
}

const odds = (value) => (value >= 1 ? `${whole(value)} : 1` : `1 : ${whole(Math.round(1 / value))}`);

function dialFigure() {
  const box = h("div", { class: "plot" });
  const words = h("p", { class: "dial-words" });
  const counts = h("p", { class: "dial-counts" });
  const slider = h("input", {
    type: "range", id: "dial", min: 0, max: DATA.dial.values.length - 1, step: 1, value: dial,
    oninput: () => turnDial(Number(slider.value)),
  });
  const back = h("button", { type: "button", class: "quiet", onclick: () => turnDial(DATA.dial.start) }, "Back to the run's setting");
  const draw = () => {
    if (box.clientWidth) box.replaceChildren(oddsPicture(box.clientWidth));
  };
  const follow = () => {
    const value = DATA.dial.values[dial];
    const now = countsNow();
    slider.value = dial;
    slider.setAttribute("aria-valuetext", `${value} to 1: ${whole(now.relabel)} relabelled, ${whole(now.abstain)} abstain`);
    back.hidden = dial === DATA.dial.start;
    words.replaceChildren("Relabel when another label is at least ", h("b", {}, `${value} ×`), " as probable as the given one.");
    counts.replaceChildren(
      ...["keep", "abstain", "relabel"].map((name) => h("span", { class: name }, h("span", { class: "swatch", "aria-hidden": "true" }), h("b", {}, whole(now[name])), ` ${ACTION_WORDS[name][0]}`)),
      h("span", { class: "option" }, h("code", {}, `--min-odds ${value}`)),
    );
    draw();
  };
  on("dial", follow);
  on("theme", draw);
  fit(box, draw);
  follow();
  const step = (DATA.odds.high - DATA.odds.low) / DATA.odds.counts.length;
  const rows = DATA.odds.counts.map((count, k) => [
    `${odds(Number((10 ** (DATA.odds.low + k * step)).toPrecision(2)))} to ${odds(Number((10 ** (DATA.odds.low + (k + 1) * step)).toPrecision(2)))}`, whole(count)]);
  return figure(
    { id: "confidence", wide: true, title: "How sure, and where to draw the line",
      text: "Rows by the odds of their best other label against the given one. Left of 1 : 1 the given label is the more probable one. The dial is the line that a row must pass to be relabelled; move it and every count on this page follows." },
    h("div", {}, box, h("div", { class: "dial-row" }, h("label", { for: "dial" }, "Dial"), slider, back), words, counts),
    table(["odds, other : given", "rows"], rows.filter((row) => row[1] !== "0")),
  );
}

function oddsPicture(width) {
  const { low, high, counts } = DATA.odds;
  const [left, right, top, height] = [8, 8, 22, 190];
  const x = (value) => left + ((value - low) / (high - low)) * (width - left - right);
  const most = Math.max(...counts, 1);
  const y = (count) => height * Math.sqrt(count / most); // square root: small bars matter here
  const limit = Math.log10(DATA.dial.values[dial]);
  const step = (high - low) / counts.length;
  const bars = counts.map((count, k) => {
    const middle = low + (k + 0.5) * step;
    const kind = middle < 0 ? "keep" : middle < limit ? "abstain" : "relabel";
    const tall = count ? Math.max(1.5, y(count)) : 0;
    return svg("rect", { class: `tile-${kind}`, x: x(low + k * step) + 0.5, width: Math.max(1, x(low + step) - left - 1), y: top + height - tall, height: tall },
      svg("title", {}, `${whole(count)} rows`));
  });
  const ticks = (width < 560 ? [-3, 0, 3] : [-4, -3, -2, -1, 0, 1, 2, 3, 4]).map((power) =>
    svg("g", {},
      svg("line", { x1: x(power), x2: x(power), y1: top + height, y2: top + height + 5, class: "axis" }),
      svg("text", { x: x(power), y: top + height + 19, class: `tick ${power === low ? "first" : power === high ? "last" : ""}` }, odds(10 ** power)),
      svg("text", { x: x(power), y: top + height + 34, class: `tick soft ${power === low ? "first" : power === high ? "last" : ""}` }, sureness(10 ** power / (1 + 10 ** power)))));
  const now = countsNow();
  const near = limit > 2.6;
  return svg(
    "svg",
    { width, height: top + height + 40, role: "img", "aria-label": `Histogram of ${whole(counts.reduce((a, b) => a + b, 0))} rows by the odds of the best other label against the given one. At the dial, ${DATA.dial.values[dial]} to 1, ${whole(now.relabel)} are relabelled, ${whole(now.abstain)} abstain and ${whole(now.keep)} are kept.` },
    bars,
    svg("line", { x1: left, x2: width - right, y1: top + height, y2: top + height, class: "axis" }),
    ticks,
    svg("line", { x1: x(limit), x2: x(limit), y1: 4, y2: top + height, class: "dial-line" }),
    svg("text", { x: x(limit) + (near ? -7 : 7), y: 14, class: `dial-tag ${near ? "last" : "first"}` }, `dial ${DATA.dial.values[dial]} : 1`),
  );
}

// A cell's background is a mix of the surface and a colour; its text black or white.
function tint(cell, share, name) {
  const parts = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);
  const [base, full] = [parts(colour("--surface")), parts(colour(name))];
  const mixed = base.map((v, k) => Math.round(v + (full[k] - v) * share));
  const linear = mixed.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  cell.style.backgroundColor = `rgb(${mixed.join(" ")})`;
  cell.style.color = light > 0.179 ? "#000" : "#fff";
}

const MANY_CLASSES = 14; // a matrix of more takes the whole width

function transitionFigure() {
  const T = DATA.transition;
  if (!T) return null;
  const long = T.classes.some((code) => nameOf(code).length > 4);
  const many = T.classes.length > MANY_CLASSES;
  const cells = [];
  const heat = h(
    "table",
    { class: `heat ${long ? "long" : ""} ${many ? "many" : ""}` },
    h("caption", { class: "unseen" }, "Rows: the label it should have. Columns: the label it was given. In percent."),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "corner" }, "should be ↓ given →"),
      T.classes.map((code) => h("th", { scope: "col", title: nameOf(code) }, h("bdi", {}, nameOf(code)))))),
    h("tbody", {}, T.classes.map((code, i) => h("tr", {},
      h("th", { scope: "row", title: nameOf(code) }, h("bdi", {}, nameOf(code))),
      T.values[i].map((share, j) => {
        const pair = i === j ? null : () => showPair(T.classes[j], code);
        const cell = h("td", { title: `${percent(share)} of ${nameOf(code)} were given ${nameOf(T.classes[j])}`, class: pair ? "cell" : "", onclick: pair },
          share >= 0.005 ? String(Math.round(100 * share)) : h("span", { class: "unseen" }, "0"));
        cells.push([cell, share, i === j]);
        return cell;
      })))),
  );
  const paint = () => cells.forEach(([cell, share, same]) => tint(cell, Math.sqrt(share), same ? "--keep" : "--relabel"));
  on("theme", paint);
  paint();
  const part = T.classes.length < T.total ? ` Only the ${T.classes.length} of ${whole(T.total)} classes that are taken for each other more often than chance would have it, similar ones side by side.` : "";
  return figure(
    { id: "transition", wide: many, title: "What was called what", text: `The estimated transition matrix, in percent: of all rows that should have the label on the left, how many were given the label on top. Choose a cell to review that pair.${part}` },
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Transition matrix" }, heat),
  );
}

const FIRST_ROWS = 12; // of the lists of pairs and classes

// A table that shows its first rows until it is asked for all.
function longTable(head, items, row, kind) {
  let all = items.length <= FIRST_ROWS + 3;
  const body = h("tbody", {});
  const draw = () => body.replaceChildren(...items.slice(0, all ? undefined : FIRST_ROWS).map(row));
  const more = h("button", { type: "button", class: "quiet", onclick: () => { all = true; more.remove(); draw(); } }, `Show all ${whole(items.length)}`);
  on("dial", draw);
  draw();
  return h("div", {},
    h("table", { class: kind }, h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, cell)))), body),
    all ? null : more);
}

function bar(share, kind) {
  const part = h("span", { class: `bar ${kind}`, "aria-hidden": "true" });
  part.style.width = `${Math.max(0, 100 * share)}%`;
  return h("span", { class: "track" }, part);
}

function pairFigure() {
  const { items, total, clear } = DATA.pairs;
  if (!items.length) return null;
  const most = Math.max(...items.flatMap((one) => one.count), 1);
  const part = items.length < total ? ` The first ${whole(items.length)} of ${whole(total)} pairs.` : "";
  const many = CLASSES.length > MANY_CLASSES;
  const even = many && !clear ? " No pair has clearly more rows than errors spread over all classes would give, so there is no matrix of them." : "";
  return figure(
    { id: "pairs", title: "Most common corrections", text: `Pairs of labels by the rows that go from the one to the other, most first. Choose a pair to review its rows.${part}${even}` },
    longTable(["given as → should be", "rows"], items, (one) => h("tr", {},
      h("th", { scope: "row" }, h("button", { type: "button", class: "pair-names", onclick: () => showPair(one.given, one.other) },
        h("del", {}, label(one.given)), h("span", { class: "to" }, " → "), h("ins", {}, label(one.other)))),
      h("td", {}, bar(one.count[dial] / most, "wrong"),
        h("span", { class: "number two" }, h("b", {}, whole(one.count[dial])), h("br"), `of ${whole(one.of)}`))), "classes pairs"),
  );
}

function classFigure() {
  const most = Math.max(...DATA.by_class.flatMap((one) => [one.before, ...one.after]), 1);
  const part = DATA.by_class.length < CLASSES.length ? ` The first ${whole(DATA.by_class.length)} of ${whole(CLASSES.length)} classes.` : "";
  return figure(
    { id: "classes", wide: wideClasses(), title: "Class by class", text: `How many of the labels given as each class are estimated to be wrong, and how many rows the class has before and after. The class with the most wrong labels comes first.${part}` },
    longTable(["given as", "wrong", ["rows before, ", h("b", {}, "after")]], DATA.by_class, (one) => h("tr", {},
      h("th", { scope: "row" }, label(one.class), one.learnable ? null : h("span", { class: "flag" }, "fails Theorem 1's check")),
      h("td", {}, bar(one.wrong, "wrong"), h("span", { class: "number two" }, ...(DATA.learnt ? [h("b", { class: "bad" }, whole(Math.round(one.wrong_rows))), h("br"), percent(one.wrong, 0)] : ["unknown"]))),
      h("td", {}, bar(one.before / most, "before"), bar(one.after[dial] / most, "after"),
        h("span", { class: "number two" }, whole(one.before), h("br"), h("b", {}, whole(one.after[dial]))))), "classes"),
  );
}

// Pairs and a small matrix share a line, or pairs and classes: a line is never half empty.
function wideClasses() {
  const besides = [DATA.pairs.items.length > 0, DATA.transition && DATA.transition.classes.length <= MANY_CLASSES];
  return besides.filter(Boolean).length !== 1;
}

// Half-wide figures first, so that they share a line.
function classFigures() {
  return [pairFigure(), transitionFigure(), classFigure()].filter(Boolean).sort((a, b) => a.classList.contains("wide") - b.classList.contains("wide"));
}
