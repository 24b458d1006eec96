// One card for each row, and the keys that decide it.

const NEIGHBOURS_SHOWN = 5;
// Number keys: the digit itself where the classes are digits, else the place in the
// list of classes; with more than ten classes, the place among a row's candidates.
const KEYS = numberKeys();

function numberKeys() {
  if (CLASSES.length > 10) return null;
  const digits = CLASSES.every((one) => /^[0-9]$/.test(one.name));
  return new Map(CLASSES.map((one, code) => [digits ? one.name : String((code + 1) % 10), code]));
}

function keysOf(i) {
  if (KEYS) return KEYS;
  const known = DETAILS.get(i)?.candidates ?? [];
  const best = known.length ? known : [...new Set([suggestionOf(i), ROWS.given[i]])].filter((code) => code >= 0);
  return new Map(best.map((code, k) => [String(k + 1), code]));
}

function card(i, k) {
  const detail = DETAILS.get(i);
  const suggested = suggestionOf(i);
  const changed = suggested !== ROWS.given[i];
  const decided = decisionOf(i);
  const state = decided === null ? "" : decided === suggested && changed ? "accepted" : decided === ROWS.given[i] ? "rejected" : "chosen";
  return h(
    "li",
    { class: `card ${state}`, tabindex: k ? "-1" : "0", "data-at": i, "aria-label": cardWords(i, suggested, decided), onfocus: (event) => choose(event.currentTarget) },
    h("div", { class: "card-top" },
      picture(detail, i),
      h("div", { class: "card-words" },
        h("p", { class: "card-id" }, h("bdi", { title: ROWS.id(i) }, ROWS.id(i)), h("span", { class: `tag ${ACTION_NAMES[actionOf(i)]}` }, ROWS.decides[i] === LOCKED ? "locked" : ACTION_NAMES[actionOf(i)])),
        h("p", { class: "change" }, changed ? [h("del", {}, label(ROWS.given[i])), h("span", { "aria-hidden": "true", class: "to" }, "→"), h("ins", {}, label(suggested))] : [label(ROWS.given[i])]),
        sureBar(i),
        cells(detail))),
    detail?.text ? h("p", { class: "text" }, h("bdi", {}, detail.text)) : null,
    candidates(detail),
    evidence(detail, i, suggested),
    buttons(i, suggested, changed, decided),
  );
}

function cardWords(i, suggested, decided) {
  const words = suggested === ROWS.given[i] ? `given ${nameOf(ROWS.given[i])}, which looks right` : `given ${nameOf(ROWS.given[i])}, suggested ${nameOf(suggested)}`;
  return `${ROWS.id(i)}: ${words}, confidence ${sureness(confidenceOf(i))}.${decided === null ? "" : ` You decided: ${nameOf(decided)}.`}`;
}

function picture(detail, i) {
  if (!DATA.details.has_images) return null;
  const at = detail?.image ?? -1;
  if (at < 0) return h("div", { class: "picture empty" }, h("span", {}, i < DATA.details.pictured ? "no image" : "image not in this file"));
  return h("img", { class: "picture", src: DATA.details.pictures[at], alt: `Image of ${ROWS.id(i)}`, onload: sharpen });
}

// Images of a few pixels are shown as pixels, not as a blur.
function sharpen(event) {
  const image = event.currentTarget;
  if (Math.max(image.naturalWidth, image.naturalHeight) <= 48) image.classList.add("tiny");
}

function sureBar(i) {
  if (ROWS.decides[i] === LOCKED) return h("p", { class: "sure" }, "checked by a person");
  const bar = h("span", { class: "bar" });
  bar.style.width = `${100 * confidenceOf(i)}%`;
  return h("p", { class: "sure" }, h("span", { class: "track", "aria-hidden": "true" }, bar), h("span", {}, `${sureness(confidenceOf(i))} sure`));
}

function cells(detail) {
  if (!detail || !detail.cells.length) return null;
  return h("dl", { class: "cells" }, detail.cells.map((cell, k) => h("div", {}, h("dt", {}, DATA.details.columns[k]), h("dd", {}, h("bdi", {}, cell)))));
}

// With many classes the number keys choose among these.
function candidates(detail) {
  if (KEYS || !detail || !detail.candidates.length) return null;
  return h("ul", { class: "candidates", "aria-label": "Most probable labels" }, detail.candidates.map((code, k) =>
    h("li", {}, h("kbd", {}, String(k + 1)), label(code), ` ${sureness(detail.odds[k])}`)));
}

function evidence(detail, i, suggested) {
  if (!detail?.near.length) return DATA.details.near.id.length ? h("p", { class: "evidence-words" }, "Neighbours are kept for the rows to check first and for suggestions.") : null;
  const near = DATA.details.near;
  const carry = (code) => detail.near.filter((place) => near.given[place] === code).length;
  const parts = [...new Set([suggested, ROWS.given[i]])].filter((code) => code >= 0).map((code) => [carry(code), code]);
  return h("div", { class: "evidence" },
    h("p", { class: "evidence-words" }, `Of its ${detail.near.length} nearest, `, parts.map(([count, code], k) => [k ? ", " : "", h("b", {}, String(count)), " carry ", label(code)]).flat(), "."),
    h("ul", { class: `near ${near.text ? "lines" : DATA.details.has_images ? "" : "names"}` }, detail.near.slice(0, NEIGHBOURS_SHOWN).map((place) => {
      const kind = near.given[place] === suggested ? "same" : near.given[place] === ROWS.given[i] ? "against" : "";
      const moved = near.label[place] !== near.given[place] ? `, now ${nameOf(near.label[place])}` : "";
      return h("li", { class: kind, title: `${near.id[place]}: given ${nameOf(near.given[place])}${moved}` },
        near.image[place] >= 0 ? h("img", { src: DATA.details.pictures[near.image[place]], alt: "", onload: sharpen }) : null,
        label(near.given[place]),
        near.text ? h("bdi", { class: "snippet" }, near.text[place]) : null);
    })));
}

function buttons(i, suggested, changed, decided) {
  const id = ROWS.id(i);
  const press = (code) => () => decideCard(i, code, false);
  const is = (code) => String(decided === code);
  const other = decided !== null && decided !== suggested && decided !== ROWS.given[i];
  return h("div", { class: "decide", role: "group", "aria-label": `Decide ${id}` },
    h("button", { type: "button", class: "accept", "aria-pressed": is(suggested), onclick: press(suggested) }, changed ? "Accept " : "Right ", h("kbd", {}, "a")),
    changed ? h("button", { type: "button", class: "reject", "aria-pressed": is(ROWS.given[i]), onclick: press(ROWS.given[i]) }, "Reject ", h("kbd", {}, "r")) : null,
    h("button", { type: "button", class: "choose", "aria-pressed": String(other), onclick: () => openLabels(i) }, other ? h("bdi", {}, nameOf(decided)) : "Other", " ", h("kbd", {}, "o")));
}

const cardAt = (k) => grid.children[k];
const chosenPlace = () => [...grid.children].findIndex((one) => one.tabIndex === 0);

function choose(one) {
  for (const other of grid.children) other.tabIndex = other === one ? 0 : -1;
}

function focusCard(k) {
  const one = cardAt(Math.min(k, grid.children.length - 1));
  if (!one?.dataset.at) return;
  choose(one);
  one.focus({ preventScroll: true });
  one.scrollIntoView({ block: "nearest", behavior: "instant" });
}

function redrawCard(i) {
  const at = [...grid.children].findIndex((one) => one.dataset.at === String(i));
  if (at < 0) return -1;
  const old = cardAt(at);
  const fresh = card(i, at);
  fresh.tabIndex = old.tabIndex;
  old.replaceWith(fresh);
  return at;
}

function decideCard(i, code, goOn) {
  const hadFocus = grid.contains(document.activeElement);
  decide(ROWS.id(i), code);
  const at = redrawCard(i);
  const now = decisionOf(i);
  say(now === null ? `${ROWS.id(i)}: decision taken back` : `${ROWS.id(i)}: ${nameOf(now)}. ${decisions.size} decided.`);
  if (goOn && now !== null) move(at, 1);
  else if (hadFocus) focusCard(at);
}

function undoLast() {
  const id = undo();
  if (id === null) return say("Nothing to undo");
  const i = PLACE.get(id);
  say(`Undone: ${id}`);
  if (i === undefined) return undefined;
  const place = view.rows.indexOf(i);
  if (place >= 0 && Math.floor(place / PER_PAGE) !== view.page) turnPage(Math.floor(place / PER_PAGE));
  const at = redrawCard(i);
  if (at >= 0) focusCard(at);
  return undefined;
}

// Move the focus by some cards, over the edge to the next page.
function move(at, by) {
  const to = at + by;
  if (to >= 0 && to < grid.children.length) return focusCard(to);
  if (to < 0 && view.page > 0) {
    turnPage(view.page - 1);
    return focusCard(PER_PAGE - 1);
  }
  if (to >= grid.children.length && view.page < numPages() - 1) {
    turnPage(view.page + 1);
    return focusCard(0);
  }
  return focusCard(Math.max(0, Math.min(to, grid.children.length - 1)));
}

function columns() {
  const first = cardAt(0).offsetTop;
  const next = [...grid.children].findIndex((one) => one.offsetTop !== first);
  return next < 0 ? grid.children.length : next;
}

function onKey(event) {
  if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== "z")) return;
  const at = chosenPlace();
  if (at < 0 || !cardAt(at).dataset.at) return;
  const i = Number(cardAt(at).dataset.at);
  const suggested = suggestionOf(i);
  const run = {
    ArrowRight: () => move(at, 1), ArrowLeft: () => move(at, -1),
    ArrowDown: () => move(at, columns()), ArrowUp: () => move(at, -columns()),
    Home: () => focusCard(0), End: () => focusCard(grid.children.length - 1),
    PageDown: () => { turnPage(view.page + 1); focusCard(0); }, PageUp: () => { turnPage(view.page - 1); focusCard(0); },
    a: () => decideCard(i, suggested, true),
    r: () => (suggested === ROWS.given[i] ? openLabels(i) : decideCard(i, ROWS.given[i], true)),
    o: () => openLabels(i), u: undoLast, z: event.ctrlKey ? undoLast : null,
  }[event.key];
  const code = keysOf(i).get(event.key);
  if (run) run();
  else if (code !== undefined) decideCard(i, code, true);
  else return;
  event.preventDefault();
}

let openFor = null; // the row whose label is being chosen

function openLabels(i) {
  openFor = i;
  const find = byId("labels-find");
  find.value = "";
  listLabels();
  byId("labels").showModal();
  find.focus();
}

function listLabels() {
  const find = byId("labels-find").value.trim().toLowerCase();
  const keys = new Map([...keysOf(openFor)].map(([key, code]) => [code, key]));
  const likely = DETAILS.get(openFor)?.candidates ?? [];
  const order = [...new Set([...(find || CLASSES.length <= 10 ? [] : likely), ...CLASSES.keys()])];
  const found = order.filter((code) => nameOf(code).toLowerCase().includes(find)).slice(0, 100);
  byId("labels-list").replaceChildren(...found.map((code) =>
    h("li", {}, h("button", { type: "button", onclick: () => { byId("labels").close(); decideCard(openFor, code, true); } },
      h("bdi", {}, nameOf(code)), keys.has(code) ? h("kbd", {}, keys.get(code)) : null))));
}

function labelDialog() {
  return h("dialog", { id: "labels", "aria-labelledby": "labels-title" },
    h("h3", { id: "labels-title" }, "What should it be?"),
    h("label", { for: "labels-find" }, "Find a label"),
    h("input", { id: "labels-find", type: "search", autocomplete: "off", oninput: listLabels,
      onkeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); byId("labels-list").querySelector("button")?.click(); } } }),
    h("ul", { id: "labels-list", class: "labels-list" }),
    h("button", { type: "button", class: "quiet", onclick: () => byId("labels").close() }, "Cancel"));
}

function helpDialog() {
  const keys = [["←  →  ↑  ↓", "move between rows"], ["a", "accept the suggestion"], ["r", "reject it: the given label is right"],
    [KEYS ? [...KEYS.keys()].join(" ") : "1 to 5", KEYS ? "choose that class" : "choose a candidate of the row"], ["o", "choose any other label"], ["u", "undo"],
    ["Page Up, Page Down", "previous and next page"], ["/", "find an id"], ["?", "these keys"]];
  return h("dialog", { id: "help", "aria-labelledby": "help-title" },
    h("h3", { id: "help-title" }, "Keys"),
    h("dl", { class: "keys" }, keys.map(([key, text]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)))),
    KEYS ? h("p", { class: "note" }, [...KEYS].map(([key, code]) => `${key} ${nameOf(code)}`).join(" · ")) : null,
    h("button", { type: "button", class: "main", onclick: () => byId("help").close() }, "Close"));
}
