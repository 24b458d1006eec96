// The data of the page, unpacked, and the one thing that changes it: the dial.

const DATA = JSON.parse(document.getElementById("data").textContent);
const CLASSES = DATA.classes;
const [KEEP, RELABEL, ABSTAIN, FILL] = [0, 1, 2, 3];
const ACTION_NAMES = ["keep", "relabel", "abstain", "fill"];
const [FREE, LOCKED, IN_DOUBT, MISSING] = [0, 1, 2, 3];

function unpack(text, Kind) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Kind(bytes.buffer);
}

const ROWS = {
  count: DATA.page.count,
  row: unpack(DATA.page.row, Uint32Array),
  given: unpack(DATA.page.given, Int32Array),
  other: unpack(DATA.page.other, Int32Array),
  label: unpack(DATA.page.label, Int32Array),
  step: unpack(DATA.page.step, Uint8Array),
  decides: unpack(DATA.page.decides, Uint8Array),
  fixed: unpack(DATA.page.action, Uint8Array),
  pGiven: unpack(DATA.page.p_given, Float32Array),
  pOther: unpack(DATA.page.p_other, Float32Array),
  id: (i) => (DATA.page.ids ? DATA.page.ids[i] : String(ROWS.row[i])),
};
const PLACE = new Map(); // id -> place in the page
for (let i = 0; i < ROWS.count; i++) PLACE.set(ROWS.id(i), i);
const DETAILS = new Map(DATA.details.items.map((item) => [item.at, item]));

let dial = DATA.dial.start;

// What the run would do with a row at the dial's position.
function actionOf(i) {
  if (ROWS.decides[i] !== FREE) return ROWS.fixed[i];
  if (ROWS.step[i] === 0) return KEEP;
  return ROWS.step[i] > dial ? RELABEL : ABSTAIN;
}

// The label a row ends with when nobody reviews it.
function labelOf(i) {
  if (ROWS.decides[i] !== FREE) return ROWS.label[i];
  return actionOf(i) === RELABEL ? ROWS.other[i] : ROWS.given[i];
}

// The label that the features and the annotator together find most probable.
function suggestionOf(i) {
  if (ROWS.decides[i] === LOCKED) return ROWS.label[i];
  const stronger = ROWS.pOther[i] > ROWS.pGiven[i];
  return ROWS.other[i] >= 0 && (stronger || ROWS.given[i] < 0) ? ROWS.other[i] : ROWS.given[i];
}

function confidenceOf(i) {
  if (ROWS.decides[i] === LOCKED) return 1;
  return suggestionOf(i) === ROWS.given[i] ? ROWS.pGiven[i] : ROWS.pOther[i];
}

const nameOf = (code) => (code < 0 ? "no label" : CLASSES[code].name);

const listeners = { dial: [], decision: [], theme: [] };
const on = (event, run) => listeners[event].push(run);
const tell = (event) => listeners[event].forEach((run) => run());

function turnDial(position) {
  dial = position;
  tell("dial");
}
