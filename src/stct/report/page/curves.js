// Curves of training runs: losses in one picture, shares in another.

function curveFigures() {
  const rounds = DATA.curves;
  if (!rounds.length) return [];
  const names = [...new Set(rounds.flatMap(Object.keys))].filter((name) => name !== "round");
  const values = (name) => rounds.map((one) => one[name]).filter((value) => value !== undefined);
  const losses = names.filter((name) => /loss/i.test(name));
  const shares = names.filter((name) => !losses.includes(name) && values(name).every((value) => value >= 0 && value <= 1));
  const alone = !losses.length || !shares.length;
  return [
    losses.length ? curveFigure("losses", "Losses by round", losses, rounds, alone, (value) => value.toPrecision(3)) : null,
    shares.length ? curveFigure("shares", "Accuracy and other shares by round", shares, rounds, alone, (value) => percent(value)) : null,
  ].filter(Boolean);
}

const words = (name) => name.replaceAll("_", " ");

function curveFigure(id, title, names, rounds, wide, write) {
  const shown = names.slice(0, NUM_COLOURS);
  const box = h("div", { class: "plot" });
  const draw = () => box.clientWidth && box.replaceChildren(curvePicture(box.clientWidth, title, shown, rounds, write));
  fit(box, draw);
  return figure(
    { id, title, wide, text: null },
    h("div", {}, box, h("ul", { class: "legend" }, shown.map((name, k) => h("li", { class: "key-rest" }, h("span", { class: `dot class-${k}`, "aria-hidden": "true" }), words(name))))),
    table(["round", ...shown.map(words)], rounds.map((one, k) => [String(one.round ?? k + 1), ...shown.map((name) => (one[name] === undefined ? "" : write(one[name])))])),
  );
}

function curvePicture(width, title, names, rounds, write) {
  const [left, right, top, height] = [54, 14, 10, 200];
  const all = rounds.flatMap((one) => names.map((name) => one[name]).filter((value) => value !== undefined));
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const pad = (high - low) * 0.08 || 0.05;
  const at = (one, k) => one.round ?? k + 1;
  const [first, last] = [at(rounds[0], 0), at(rounds.at(-1), rounds.length - 1)];
  const x = (round) => left + (last === first ? 0.5 : (round - first) / (last - first)) * (width - left - right);
  const y = (value) => top + height - ((value - low + pad) / (high - low + 2 * pad)) * height;
  const lines = names.map((name, k) => {
    const points = rounds.map((one, r) => [x(at(one, r)), one[name]]).filter(([, value]) => value !== undefined);
    return svg("g", { class: `curve class-${k}` },
      svg("polyline", { points: points.map(([px, value]) => `${px},${y(value)}`).join(" ") }),
      points.map(([px, value]) => svg("circle", { cx: px, cy: y(value), r: 3.5 }, svg("title", {}, `${words(name)}: ${write(value)}`))));
  });
  const grid = [0, 0.5, 1].map((part) => low + part * (high - low));
  const every = Math.ceil(rounds.length / Math.max(2, Math.floor(width / 60)));
  const ends = names.map((name) => `${words(name)} from ${write(rounds[0][name] ?? NaN)} to ${write(rounds.at(-1)[name] ?? NaN)}`);
  return svg(
    "svg",
    { width, height: top + height + 30, role: "img", "aria-label": `${title}, ${rounds.length} rounds: ${ends.join("; ")}` },
    grid.map((value) => svg("g", {}, svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: "grid-line" }), svg("text", { x: left - 8, y: y(value) + 4, class: "tick last" }, write(value)))),
    rounds.map((one, k) => (k % every ? null : svg("text", { x: x(at(one, k)), y: top + height + 20, class: "tick" }, String(at(one, k))))).filter(Boolean),
    lines,
  );
}
