// The audit: rows drawn at random, one at a time. What others said of a row is shown
// only after the person has chosen, so that it cannot lead.

const AUDIT = DATA.audit;
const AUDIT_STORE = `stct-audit:${DATA.key}`;
let verified = new Map(); // id -> class code
let at = 0; // the row on the screen
let auditKept = true;

function loadVerified() {
  try {
    const saved = JSON.parse(localStorage.getItem(AUDIT_STORE) || "[]");
    const drawn = new Set(AUDIT.items.map((item) => item.id));
    for (const [id, text] of saved) if (CODE_OF.has(text) && drawn.has(id)) verified.set(id, CODE_OF.get(text));
  } catch {
    auditKept = false;
  }
}

function saveVerified() {
  try {
    localStorage.setItem(AUDIT_STORE, JSON.stringify([...verified].map(([id, code]) => [id, CLASSES[code].code])));
  } catch {
    auditKept = false;
  }
}

const AUDIT_KEYS = new Map([...(KEYS ?? [])].map(([key, code]) => [code, key]));

function verify(code) {
  verified.set(AUDIT.items[at].id, code);
  saveVerified();
  drawAuditRow();
  byId("audit-row").focus();
}

function auditGo(to) {
  at = Math.max(0, Math.min(to, AUDIT.items.length - 1));
  drawAuditRow();
  byId("audit-row").focus();
}

function takeBack() {
  verified.delete(AUDIT.items[at].id);
  saveVerified();
  drawAuditRow();
  byId("audit-row").focus();
}

const nextOpen = () => {
  const open = AUDIT.items.findIndex((item, k) => k > at && !verified.has(item.id));
  return open < 0 ? AUDIT.items.findIndex((item) => !verified.has(item.id)) : open;
};

function auditChoices(chosen) {
  const button = (code) => h("li", {}, h("button", { type: "button", "aria-pressed": String(chosen === code), onclick: () => verify(code) },
    h("bdi", {}, nameOf(code)), AUDIT_KEYS.has(code) ? h("kbd", {}, AUDIT_KEYS.get(code)) : null));
  if (KEYS) return h("ul", { class: "audit-labels", "aria-label": "Labels" }, [...CLASSES.keys()].map(button));
  const list = h("ul", { class: "audit-labels many", "aria-label": "Labels" });
  const find = h("input", { id: "audit-find", type: "search", autocomplete: "off", spellcheck: "false", oninput: () => draw(), onkeydown: (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    list.querySelector("button")?.click();
  } });
  const draw = () => {
    const text = find.value.trim().toLowerCase();
    list.replaceChildren(...[...CLASSES.keys()].filter((code) => nameOf(code).toLowerCase().includes(text)).slice(0, 200).map(button));
  };
  draw();
  return h("div", { class: "audit-many" }, h("label", { for: "audit-find" }, "Find the label; Enter takes the first"), find, list);
}

function auditReveal(item, chosen) {
  if (chosen === undefined) return h("p", { class: "audit-hidden" }, "The given and the suggested label are shown once you have chosen.");
  const says = (text, code) => h("span", { class: code === chosen ? "same" : "against" }, `${text} `, label(code));
  return h("p", { class: "audit-reveal" }, "You: ", label(chosen), says("Given:", item.given), says("Suggested:", item.label));
}

function drawAuditRow() {
  const item = AUDIT.items[at];
  const chosen = verified.get(item.id);
  const total = AUDIT.items.length;
  const done = verified.size;
  controls.auditBar.value = done;
  controls.auditWords.replaceChildren(h("b", {}, whole(done)), ` of ${whole(total)} verified`, auditKept ? "" : ". This browser does not keep them: save the file before you close the page.");
  const picture = item.image < 0 ? null : h("img", { class: "audit-picture", src: AUDIT.pictures[item.image], alt: `Image of ${item.id}`, onload: sharpen });
  byId("audit-row").setAttribute("aria-label", `Row ${at + 1} of ${total}. ${chosen === undefined ? "Choose its label." : `You chose ${nameOf(chosen)}.`}`);
  byId("audit-row").replaceChildren(...[
    h("p", { class: "card-id" }, h("bdi", {}, item.id), h("span", {}, `${whole(at + 1)} of ${whole(total)}`)),
    h("div", { class: "audit-what" }, picture,
      item.text ? h("p", { class: "text" }, h("bdi", {}, item.text)) : null,
      item.cells.length ? h("dl", { class: "cells" }, item.cells.map((cell, k) => h("div", {}, h("dt", {}, AUDIT.columns[k]), h("dd", {}, h("bdi", {}, cell))))) : null,
      !picture && !item.text && !item.cells.length ? h("p", { class: "note" }, `Look at row ${item.id} in your own data.`) : null),
    h("h4", {}, "What is the right label?"),
    auditChoices(chosen),
    auditReveal(item, chosen),
    h("div", { class: "audit-move" },
      h("button", { type: "button", disabled: at === 0, onclick: () => auditGo(at - 1) }, "Back ", h("kbd", {}, "←")),
      h("button", { type: "button", class: chosen === undefined ? "" : "main", disabled: at === total - 1, onclick: () => auditGo(at + 1) }, chosen === undefined ? "Skip " : "Next ", h("kbd", {}, "→")),
      chosen === undefined ? null : h("button", { type: "button", class: "quiet", onclick: takeBack }, "Take it back ", h("kbd", {}, "u"))),
  ].filter(Boolean));
}

function auditKey(event) {
  if (event.altKey || event.metaKey || event.ctrlKey) return;
  const typing = event.target.closest("input");
  const code = typing ? undefined : (KEYS ?? new Map()).get(event.key);
  if (code !== undefined) verify(code);
  else if (typing) return;
  else if (event.key === "ArrowRight") auditGo(at + 1);
  else if (event.key === "ArrowLeft") auditGo(at - 1);
  else if (event.key === "n") auditGo(Math.max(0, nextOpen()));
  else if (event.key === "Enter" && event.target.id === "audit-row") auditGo(at + 1);
  else if (event.key === "f" && byId("audit-find")) byId("audit-find").focus();
  else if (event.key === "u") takeBack();
  else return;
  event.preventDefault();
}

function auditRows() {
  return AUDIT.items.map((item) => [item.id, codeText(item.given), verified.has(item.id) ? codeText(verified.get(item.id)) : "", item.weight]);
}

function drawAudit() {
  const section = byId("audit");
  if (!AUDIT) return section.remove();
  byId("audit-link").hidden = false;
  section.hidden = false;
  loadVerified();
  at = Math.max(0, AUDIT.items.findIndex((item) => !verified.has(item.id)));
  controls.auditBar = h("progress", { max: AUDIT.items.length, value: 0, "aria-label": "Verified" });
  controls.auditWords = h("span", { class: "progress-words", role: "status" });
  section.append(
    h("p", { class: "about" }, "These rows were drawn at random. Their right labels say how many of all labels are right, and how far the correction can be trusted. Say what you see; skip what you cannot tell."),
    h("div", { class: "progress-line" }, controls.auditBar, controls.auditWords),
    h("div", { id: "audit-row", class: "audit-row", role: "group", tabindex: "0", onkeydown: auditKey }),
    h("p", { class: "note" }, ...(KEYS ? ["Number keys choose, "] : [h("kbd", {}, "f"), " finds a label, "]), h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " move, ", h("kbd", {}, "n"), " goes to the next open row, ", h("kbd", {}, "u"), " takes a choice back."),
    h("p", {}, h("button", { type: "button", id: "save-audit", class: "main", onclick: () => download("audit.csv", csv([["id", "given", "verified", "weight"], ...auditRows()])) }, "Save audit.csv")),
    h("ul", { class: "commands" }, command("Correct again with it", DATA.audit_command)),
  );
  drawAuditRow();
}
