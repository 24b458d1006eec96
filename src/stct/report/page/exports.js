// decisions.csv and patch.csv, value for value as 'stct' reads them.

const quote = (text) => (/[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text);
const csv = (rows) => rows.map((row) => row.map(quote).join(",") + "\n").join("");
const codeText = (code) => (code < 0 ? "" : CLASSES[code].code);

function decisionRows() {
  return [...decisions].filter(([, code]) => code >= 0).map(([id, code]) => [id, codeText(code)]);
}

// Changed rows in the order of the table: the person's, and with `all` the run's too.
function patchRows(all) {
  const rows = [];
  for (let i = 0; i < ROWS.count; i++) {
    const decided = decisionOf(i);
    if (decided === null && !all) continue;
    const code = decided === null ? labelOf(i) : decided;
    if (code < 0 || code === ROWS.given[i]) continue;
    const locked = ROWS.decides[i] === LOCKED;
    const sure = decided !== null || locked ? 1 : code === ROWS.given[i] ? ROWS.pGiven[i] : ROWS.pOther[i];
    rows.push([ROWS.row[i], [ROWS.id(i), codeText(ROWS.given[i]), codeText(code), sure === 1 ? "1.0" : String(Number(sure.toFixed(6)))]]);
  }
  rows.sort((a, b) => a[0] - b[0]);
  return rows.map(([, row]) => row);
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function drawTake() {
  const mine = h("b", {});
  const changes = h("b", {});
  const whole_ = h("b", {});
  const draw = () => {
    mine.textContent = plural(decisionRows().length, "row");
    changes.textContent = plural(patchRows(false).length, "row");
    whole_.textContent = plural(patchRows(true).length, "row");
  };
  const held = ROWS.count === DATA.rows ? null : h("p", { class: "note" }, "This page holds a part of the rows. Changes of all other rows are in patch.csv of the output folder; or correct again with your decisions locked.");
  const way = (title, text, name, rows, count, id, head) => h("li", { class: "way" },
    h("h3", {}, title), h("p", {}, text), h("p", {}, count),
    h("button", { type: "button", id, onclick: () => download(name, csv([head, ...rows()])) }, `Save ${name}`));
  on("decision", draw);
  on("dial", draw);
  byId("take").append(...[
    h("ul", { class: "ways-out" },
      way("Your decisions", "Every row you decided, with its label. Feed it back and these rows never move; the rest is corrected with them in mind.", "decisions.csv", decisionRows, mine, "save-decisions", ["id", "label"]),
      way("A patch of your decisions", "Only rows where you decided on another label than the given one.", "patch.csv", () => patchRows(false), changes, "save-patch", ["id", "old", "new", "confidence"]),
      way(ROWS.count === DATA.rows ? "A patch of everything" : "A patch of this page", "All relabelled rows at the dial's position, with your decisions in place of ours.", "patch.csv", () => patchRows(true), whole_, "save-all", ["id", "old", "new", "confidence"])),
    held,
    h("h3", {}, "Then, on the command line"),
    h("ul", { class: "commands" }, DATA.commands.map(([text, line]) => command(text, line))),
    h("p", {}, h("button", { type: "button", class: "quiet danger", onclick: forget }, "Forget all my decisions")),
  ].filter(Boolean));
  draw();
}

// The folder that this page lies in, and the next free name beside it, for a shell.
function fillFolders(line) {
  const path = decodeURIComponent(location.pathname).replace(/\/[^/]*$/, "").replace(/^\/([A-Za-z]:)/, "$1");
  const here = location.protocol === "file:" ? path : path.split("/").pop() || "DIR";
  const number = here.match(/-(\d{1,4})$/);
  const next = number ? `${here.slice(0, number.index)}-${Number(number[1]) + 1}` : `${here}-2`;
  const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);
  return line.replaceAll("{DIR}", () => quoted(here)).replaceAll("{NEXT}", () => quoted(next));
}

function command(text, line) {
  return h("li", {}, h("p", {}, text), h("pre", { tabindex: "0" }, h("code", {}, fillFolders(line))));
}

function forget() {
  if (!decisions.size || !window.confirm(`Forget ${plural(decisions.size, "decision")}? This cannot be undone.`)) return;
  clearDecisions();
  refresh({ keepPage: true });
}
