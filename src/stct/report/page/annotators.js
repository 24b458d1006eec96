// Who labelled: how right each annotator is, and what they confuse.

function annotatorFigure() {
  const items = DATA.annotators;
  if (!items.length) return null;
  const random = items.filter((one) => one.at_random).length;
  const words = random
    ? `${plural(random, "annotator")} of ${whole(items.length)} may as well have labelled at random: the interval reaches down to the accuracy that the same labels would have in random rows.`
    : "Nobody labels at random.";
  return figure(
    { id: "annotators", wide: true, title: "Annotator by annotator", text: `How many labels each annotator gave, the estimated share of right ones with its interval (the short line is chance), the agreement with the other labels of the same rows, and the most common errors. ${words}` },
    longTable(["annotator", "labels", "right", "", "agree", "most common errors"], items, (one) => h("tr", {},
      h("th", { scope: "row" }, h("bdi", {}, one.annotator), one.at_random ? h("span", { class: "flag" }, "at random?") : null),
      h("td", {}, whole(one.labels)),
      h("td", {}, h("b", {}, percent(one.accuracy, 0)), h("span", { class: "note" }, ` ${percent(one.interval[0], 0)} to ${percent(one.interval[1], 0)}`)),
      h("td", {}, annotatorPicture(one)),
      h("td", {}, one.agreement === null ? "" : percent(one.agreement, 0)),
      h("td", {}, one.errors.slice(0, 2).map((error) => h("div", {}, h("bdi", {}, error.clean), h("span", { class: "note" }, " as "), h("bdi", {}, error.given), h("span", { class: "note" }, ` ${whole(Math.round(error.labels))}`))))), "classes annotators"),
  );
}

function annotatorPicture(one) {
  const line = (x1, x2, kind) => svg("line", { x1: 100 * x1, x2: 100 * x2, y1: 8, y2: 8, class: kind, "vector-effect": "non-scaling-stroke" });
  const mark = (x, y1, y2, kind) => svg("line", { x1: 100 * x, x2: 100 * x, y1, y2, class: kind, "vector-effect": "non-scaling-stroke" });
  return svg(
    "svg",
    { viewBox: "0 0 100 16", preserveAspectRatio: "none", class: "accuracy-line", "aria-hidden": "true" },
    line(0, 1, "axis"), line(one.interval[0], one.interval[1], "whisker after"), mark(one.accuracy, 1, 15, "mark after"), mark(one.chance, 5, 11, "mark before"),
  );
}
