// The map: every row a point, coloured by what was done with it, or twice, by given and
// by corrected label. Colours of classes say little where there are more than ten.

function mapFigure() {
  if (!DATA.map) {
    return figure({ id: "map", wide: true, title: "Map of the rows", text: "There are no embeddings with this run, so there is no map and there are no neighbours." }, null, null);
  }
  const xs = unpack(DATA.map.x, Uint16Array);
  const ys = unpack(DATA.map.y, Uint16Array);
  const OFF = 65535;
  const shown = [];
  for (let i = ROWS.count - 1; i >= 0; i--) if (xs[i] !== OFF) shown.push(i); // to check first on top
  const order = coloursByClass();
  const paletteOf = (code) => (code < 0 ? OTHER_COLOUR : order.get(code) ?? OTHER_COLOUR);
  let byAction = CLASSES.length > NUM_COLOURS;
  let only = null; // the one class or action to show, if any
  let marked = -1;
  const tip = h("p", { class: "tip", "aria-live": "polite" });
  const panes = [["Kept and changed", actionOf], ["Given labels", (i) => ROWS.given[i]], ["Corrected labels", labelOf]].map(([title, codeOf]) => {
    const canvas = h("canvas", { tabindex: "0", role: "img" });
    const ring = h("span", { class: "ring", hidden: true });
    const box = h("div", { class: "map-box" }, canvas, ring);
    return { title, codeOf, canvas, ring, box, whole: h("div", {}, h("h4", {}, title), box), colourOf: codeOf === actionOf ? (code) => ACTION_COLOUR + code : paletteOf };
  });

  // Pixels are set one by one: fifty thousand rectangles would take too long.
  function draw() {
    const names = [...Array(NUM_COLOURS).keys(), "other"].map((k) => `--class-${k}`);
    const palette = [...names, "--class-other", "--relabel", "--abstain", "--fill", "--line"].map((name) => pixel(colour(name)));
    const faint = palette.length - 1;
    for (const pane of panes) {
      const side = pane.box.clientWidth;
      if (!side) continue;
      const ratio = window.devicePixelRatio || 1;
      pane.canvas.width = pane.canvas.height = Math.round(side * ratio);
      const context = pane.canvas.getContext("2d");
      const image = context.createImageData(pane.canvas.width, pane.canvas.height);
      const pixels = new Uint32Array(image.data.buffer);
      const size = Math.max(1, Math.round((shown.length > 20000 ? 2 : shown.length > 4000 ? 3 : 4) * ratio));
      const scale = (image.width - size) / (OFF - 1);
      const dot = (i, value) => {
        const [left, top] = [Math.round(xs[i] * scale), Math.round(image.height - size - ys[i] * scale)];
        for (let y = top; y < top + size; y++) pixels.fill(value, y * image.width + left, y * image.width + left + size);
      };
      if (only !== null) for (const i of shown) if (pane.codeOf(i) !== only) dot(i, palette[faint]);
      for (const i of shown) {
        const code = pane.codeOf(i);
        if (only === null || code === only) dot(i, palette[pane.colourOf(code)]);
      }
      context.putImageData(image, 0, 0);
    }
    mark(marked);
  }

  function mark(i) {
    marked = i;
    for (const pane of panes) {
      pane.ring.hidden = i < 0;
      if (i < 0) continue;
      const side = pane.box.clientWidth;
      pane.ring.style.left = `${(xs[i] / (OFF - 1)) * side}px`;
      pane.ring.style.top = `${side - (ys[i] / (OFF - 1)) * side}px`;
    }
    tip.replaceChildren(...(i < 0 ? ["Point at a row, or use the arrow keys on a map; Enter opens the row in the review."]
      : [h("b", {}, h("bdi", {}, ROWS.id(i))), " given ", label(ROWS.given[i]), ", now ", label(labelOf(i)), `, confidence ${sureness(confidenceOf(i))}`]));
  }

  function nearestTo(x, y, reach) {
    let best = -1;
    let least = reach * reach;
    for (const i of shown) {
      const far = (xs[i] - x) ** 2 + (ys[i] - y) ** 2;
      if (far <= least) [best, least] = [i, far];
    }
    return best;
  }

  // The nearest row in the direction of an arrow key.
  function step(dx, dy) {
    if (marked < 0) return mark(nearestTo(OFF / 2, OFF / 2, OFF));
    let best = -1;
    let least = Infinity;
    for (const i of shown) {
      const along = (xs[i] - xs[marked]) * dx + (ys[i] - ys[marked]) * dy;
      const aside = Math.abs((xs[i] - xs[marked]) * dy) + Math.abs((ys[i] - ys[marked]) * dx);
      if (along > 300 && along + 2 * aside < least) [best, least] = [i, along + 2 * aside];
    }
    if (best >= 0) mark(best);
  }

  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  for (const pane of panes) {
    pane.canvas.setAttribute("aria-label", `${pane.title} of ${whole(shown.length)} rows on the map. Use the arrow keys to move from row to row.`);
    pane.canvas.addEventListener("pointermove", (event) => {
      const box = pane.canvas.getBoundingClientRect();
      const unit = (OFF - 1) / box.width;
      mark(nearestTo((event.clientX - box.left) * unit, (box.bottom - event.clientY) * unit, 12 * unit));
    });
    pane.canvas.addEventListener("click", () => marked >= 0 && showRow(marked));
    pane.canvas.addEventListener("keydown", (event) => {
      if (arrows[event.key]) step(...arrows[event.key]);
      else if (event.key === "Enter" && marked >= 0) showRow(marked);
      else return;
      event.preventDefault();
    });
  }
  const maps = h("div", {});
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Show one kind alone" });
  const modes = h("div", { class: "map-modes", role: "group", "aria-label": "Colours of the map" }, ["kept and changed", "labels"].map((words, k) =>
    h("button", { type: "button", onclick: () => setMode(k === 0) }, `Colour by ${words}`)));
  function setMode(action) {
    byAction = action;
    only = null;
    [...modes.children].forEach((button, k) => button.setAttribute("aria-pressed", String((k === 0) === action)));
    maps.className = `maps ${action ? "one" : ""}`;
    maps.replaceChildren(...panes.filter((pane) => (pane.codeOf === actionOf) === action).map((pane) => pane.whole));
    legend.replaceChildren(...mapLegend(action ? actionKeys() : classKeys(order), action ? [] : restOfClasses(), (code) => { only = code; draw(); }));
    draw();
  }
  let waiting = 0;
  on("dial", () => { // the counts first
    clearTimeout(waiting);
    waiting = setTimeout(draw, 80);
  });
  on("theme", draw);
  setMode(byAction);
  fit(maps, draw);
  mark(-1);
  return figure(
    { id: "map", wide: true, title: "Map of the rows", text: mapWords(shown.length) },
    h("div", {},
      modes, maps, tip, legend),
    null,
  );
}

// A colour as the four bytes of a pixel.
function pixel(text) {
  const [red, green, blue] = text.match(/[\d.]+/g).map(Number);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

function mapWords(count) {
  const part = count < DATA.rows ? `${whole(count)} of ${whole(DATA.rows)} rows` : "All rows";
  if (DATA.map.kind === "tsne") return `${part}, laid out by t-SNE: near points are similar, distances between groups mean little. Coloured by labels: where colours on the left are mixed and on the right are not, labels were changed.`;
  const share = DATA.map.explained.reduce((a, b) => a + b, 0);
  return `${part} along the two main axes of the embeddings (PCA, ${percent(share, 0)} of the variance). Coloured by labels: where colours on the left are mixed and on the right are not, labels were changed.`;
}

// The first ten classes have a colour each; with more, the ten that change most.
function coloursByClass() {
  if (CLASSES.length <= NUM_COLOURS) return new Map(CLASSES.map((_, code) => [code, code]));
  return new Map(DATA.by_class.slice(0, NUM_COLOURS).map((one, k) => [one.class, k]));
}

const ACTION_COLOUR = NUM_COLOURS + 1; // place of the first action in the palette

const actionKeys = () => ACTION_NAMES.map((name, code) => [code, name, ACTION_WORDS[name][0]]).filter(([, name]) => countsNow()[name]);
const classKeys = (order) => [...order].map(([code, k]) => [code, `class-${k}`, nameOf(code)]);

function restOfClasses() {
  if (CLASSES.length <= NUM_COLOURS) return [];
  return [h("span", { class: "key-rest" }, h("span", { class: "dot class-other", "aria-hidden": "true" }), `${whole(CLASSES.length - NUM_COLOURS)} more classes`)];
}

function mapLegend(keys, rest, show) {
  const buttons = keys.map(([code, kind, words]) =>
    h("button", { type: "button", class: "key", "aria-pressed": "false", onclick: (event) => press(event.currentTarget, code) },
      h("span", { class: `dot ${kind}`, "aria-hidden": "true" }), h("bdi", {}, words)));
  const press = (button, code) => {
    const pressed = button.getAttribute("aria-pressed") === "true";
    buttons.forEach((one) => one.setAttribute("aria-pressed", "false"));
    button.setAttribute("aria-pressed", String(!pressed));
    show(pressed ? null : code);
  };
  return [...buttons, ...rest];
}
