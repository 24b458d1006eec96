// What the person decided: kept in the browser, by id and exact label, with undo.

const STORE = `stct:${DATA.key}`;
const CODE_OF = new Map(CLASSES.map((one, code) => [one.code, code]));
const MOST_UNDO = 500;
let decisions = new Map(); // id -> class code, -1 for "leave it empty"
let history = []; // [id, code before or null]
let kept = true; // does the browser keep them?

function loadDecisions() {
  try {
    const saved = JSON.parse(localStorage.getItem(STORE) || "null");
    if (!saved) return;
    for (const [id, text] of saved.decisions) {
      if (text === null) decisions.set(id, -1);
      else if (CODE_OF.has(text)) decisions.set(id, CODE_OF.get(text));
    }
    history = saved.history.map(([id, text]) => [id, text === undefined || text === null ? null : text === "" ? -1 : CODE_OF.get(text) ?? null]);
  } catch {
    kept = false;
  }
}

function saveDecisions() {
  const text = (code) => (code < 0 ? null : CLASSES[code].code);
  const before = (code) => (code === null ? null : code < 0 ? "" : CLASSES[code].code);
  try {
    localStorage.setItem(
      STORE,
      JSON.stringify({
        decisions: [...decisions].map(([id, code]) => [id, text(code)]),
        history: history.map(([id, code]) => [id, before(code)]),
      }),
    );
  } catch {
    kept = false;
  }
}

// Decide a row; the same decision again takes it back.
function decide(id, code) {
  const before = decisions.has(id) ? decisions.get(id) : null;
  history.push([id, before]);
  if (history.length > MOST_UNDO) history.shift();
  if (before === code) decisions.delete(id);
  else decisions.set(id, code);
  saveDecisions();
  tell("decision");
}

function undo() {
  const last = history.pop();
  if (!last) return null;
  const [id, before] = last;
  if (before === null) decisions.delete(id);
  else decisions.set(id, before);
  saveDecisions();
  tell("decision");
  return id;
}

function clearDecisions() {
  decisions = new Map();
  history = [];
  saveDecisions();
  tell("decision");
}

function decisionOf(i) {
  const code = decisions.get(ROWS.id(i));
  return code === undefined ? null : code;
}

loadDecisions();
