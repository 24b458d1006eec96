"""The report in a real Chromium, opened from disk, used as a person would."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from command import assert_error, blobs, stct

from stct import LabelCorrector
from stct.data.columns import encode_label
from stct.data.tables import read_table

pytestmark = pytest.mark.slow  # starts real processes and a browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EVIL = "<img src=x onerror=alert(1)>"
CLASSES = [EVIL, '"quo,ted', " spaced ", "</script><script>alert(2)</script>"]
NUM_ROWS = 300


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Correct a table full of hostile names, with images, one of them gone."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("run")
    generator = np.random.default_rng(0)
    truth = np.arange(NUM_ROWS) % 4
    X = generator.normal(size=(NUM_ROWS, 6)).astype(np.float32)
    X[np.arange(NUM_ROWS), truth] += 3.0
    given = truth.copy()
    wrong = generator.random(NUM_ROWS) < 0.3
    given[wrong] = generator.integers(0, 4, wrong.sum())
    np.save(folder / "e.npy", X)
    (folder / "pictures").mkdir()
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", "image", "text"])
        for i in range(NUM_ROWS):
            name = f"pictures/{i} <b>.png"
            colour = (60 * int(truth[i]), 90, 120)
            Image.new("RGB", (40, 30), colour).save(folder / name)
            text = f"<script>alert({i})</script> a longer text & \u202e odd"
            writer.writerow([f'row "{i}", <i>', CLASSES[given[i]], name, text])
    done = stct("correct", "t.csv", "--embeddings", "e.npy", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder, X, given


class Tab:
    """A page, and everything in it that should not happen."""

    def __init__(self, browser, path, **context):
        self.context = browser.new_context(accept_downloads=True, **context)
        self.page = self.context.new_page()
        self.trouble = []
        self.page.on("console", lambda m: self.trouble.append(m.text))
        self.page.on("pageerror", lambda e: self.trouble.append(str(e)))
        self.page.on("dialog", lambda d: (self.trouble.append(d.message), d.dismiss()))
        self.page.on("request", self._request)
        self.open(path)

    def _request(self, request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.trouble.append(request.url)

    def open(self, path):
        self.page.goto(Path(path).as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def download(self, button, target):
        with self.page.expect_download() as waiting:
            self.page.click(button)
        waiting.value.save_as(target)
        return target

    def num_found(self):
        return int(self.page.inner_text(".found").split()[0].replace(",", ""))


@pytest.fixture
def tab(chromium, run):
    tab = Tab(chromium, run[0] / "stct-output" / "report.html")
    yield tab
    tab.context.close()
    assert tab.trouble == []


def test_opens_offline_and_shows_hostile_text_as_text(tab):
    page = tab.page
    assert re.match(r"About . in \d+ of your labels", page.inner_text("h1"))
    assert page.locator("#transition").get_by_text(EVIL).count()
    assert page.locator(".card img.picture").count() == 24
    assert "<script>alert(" in page.inner_text(".card .text >> nth=0")
    assert page.locator("main script, main img:not([src^='data:'])").count() == 0
    # The policy forbids requests even for a script that got in.
    blocked = page.evaluate(
        """() => new Promise((done) => {
            document.addEventListener("securitypolicyviolation",
                (event) => done(event.effectiveDirective));
            fetch("http://127.0.0.1:9/").catch(() => 0);
        })"""
    )
    assert blocked == "connect-src"
    tab.trouble.clear()  # Chromium logs what it blocked


def test_a_pair_opens_its_rows_and_the_map_its_colours(tab):
    page = tab.page
    first = page.locator("#pairs tbody tr >> nth=0")
    count = int(first.locator("b").inner_text())
    first.locator("button").click()
    page.select_option("#f-show", "relabel")
    assert tab.num_found() == count
    assert page.locator("#map canvas").count() == 2  # few classes: by label
    page.click("text=Colour by kept and changed")
    assert page.locator("#map canvas").count() == 1
    page.click("#map .legend button:has-text('relabelled')")
    colours = page.evaluate(
        """() => {
            const canvas = document.querySelector("#map canvas");
            const size = [canvas.width, canvas.height];
            const all = canvas.getContext("2d").getImageData(0, 0, ...size).data;
            return new Set(new Uint32Array(all.buffer)).size;
        }"""
    )
    assert colours == 3  # nothing, faint, relabelled


def test_filters(tab, run):
    page = tab.page
    _, _, given = run
    assert tab.num_found() == NUM_ROWS
    page.select_option("#f-show", "proposed")
    assert 30 < tab.num_found() < 110
    page.select_option("#f-show", "all")
    page.select_option("#f-from", "2")
    sorted_classes = sorted(CLASSES)
    assert tab.num_found() == np.sum(given == CLASSES.index(sorted_classes[2]))
    page.select_option("#f-to", "2")
    kept = tab.num_found()
    page.fill("#f-low", "99")
    assert 0 < tab.num_found() < kept
    page.click("text=Clear filters")
    assert tab.num_found() == NUM_ROWS
    page.select_option("#f-show", "all")
    page.fill("#f-find", 'row "17"')
    assert tab.num_found() == 1
    assert 'row "17", <i>' in page.inner_text(".card")
    page.fill("#f-find", "nobody")
    assert "No row passes" in page.inner_text("#cards")


def test_the_dial_agrees_with_the_library(tab, run):
    page = tab.page
    _, X, given = run
    labels = np.array(CLASSES)[given]
    values = page.evaluate(
        "JSON.parse(document.getElementById('data').textContent).dial.values"
    )
    for position in (0, values.index(5.0), len(values) - 1):
        page.locator("#dial").fill(str(position))
        fitted = LabelCorrector(min_odds=values[position]).fit(X, labels)
        shown = page.inner_text(".dial-counts")
        for action, word in [("keep", "kept"), ("relabel", "relabelled")]:
            assert f"{np.sum(fitted.action_ == action)} {word}" in shown
        page.select_option("#f-show", "relabel")
        assert tab.num_found() == np.sum(fitted.action_ == "relabel")
        accuracy = f"{fitted.estimated_accuracy_.after:.1%}"
        assert accuracy in page.inner_text("#accuracy")


def test_keyboard_review_is_kept_exported_and_applied(tab, run, tmp_path):
    folder, *_ = run
    page = tab.page
    page.select_option("#f-show", "proposed")
    page.click("text=Start reviewing")
    for k in range(20):
        if k == 6:
            page.keyboard.press("2")  # the second class
        elif k == 9:
            page.keyboard.press("o")
            page.fill("#labels-find", "spaced")
            page.keyboard.press("Enter")
        else:
            page.keyboard.press("r" if k % 5 == 4 else "a")
    page.keyboard.press("a")
    page.keyboard.press("u")
    assert "20 rows checked" in page.inner_text(".progress-words")
    decided = page.locator(".card.accepted, .card.rejected, .card.chosen").count()
    assert decided == 20

    tab.open(folder / "stct-output" / "report.html")  # a reload
    assert "20 rows checked" in page.inner_text(".progress-words")
    saved = tab.download("#save-decisions", tmp_path / "decisions.csv")
    table = read_table(saved)
    assert list(table.columns) == ["id", "label"]
    assert table.num_rows == 20
    labels = read_table(folder / "stct-output" / "labels.csv")
    names = labels.values("id")
    ours = dict(zip(names, labels.values("label"), strict=True))
    given = dict(zip(names, labels.values("given"), strict=True))
    chosen = dict(zip(table.values("id"), table.values("label"), strict=True))
    for k, (name, text) in enumerate(chosen.items()):
        label = '"quo,ted' if text.startswith('"') else text
        if k not in (6, 9):
            assert label == (given if k % 5 == 4 else ours)[name]
    assert list(chosen.values())[9] == " spaced "

    patch = tab.download("#save-patch", tmp_path / "patch.csv")
    done = stct(
        "apply", patch, folder / "t.csv", "-o", tmp_path / "out.csv", cwd=folder
    )
    assert (done.returncode, done.stderr) == (0, "")
    applied = read_table(tmp_path / "out.csv")
    got = dict(zip(applied.values("id"), applied.values("label"), strict=True))
    for name, text in chosen.items():
        assert got[name] == ('"quo,ted' if text.startswith('"') else text)
    rest = set(given) - set(chosen)
    assert all(got[name] == given[name] for name in rest)

    command = ["correct", "t.csv", "--embeddings", "e.npy", "--locked", saved]
    done = stct(*command, "-o", tmp_path / "again", "--quiet", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    again = read_table(tmp_path / "again" / "labels.csv")
    rows = zip(*(again.values(n) for n in ("id", "label", "confidence")), strict=True)
    for name, label, sure in rows:
        if name in chosen:
            assert (label, sure) == (got[name], "1.0")
    assert again.values("given") == labels.values("given")
    tab.open(tmp_path / "again" / "report.html")
    page.select_option("#f-show", "all")
    page.fill("#f-find", next(iter(chosen)))
    assert "checked by a person" in page.inner_text(".card")


def test_patch_of_everything_is_the_patch_of_the_run(tab, run, tmp_path):
    folder, *_ = run
    saved = read_table(tab.download("#save-all", tmp_path / "all.csv"))
    written = read_table(folder / "stct-output" / "patch.csv")
    for name in ("id", "old", "new"):
        assert saved.values(name) == written.values(name)
    tab.page.select_option("#f-show", "relabel")
    tab.page.locator(".card .reject >> nth=0").click()
    fewer = read_table(tab.download("#save-all", tmp_path / "fewer.csv"))
    assert fewer.num_rows == written.num_rows - 1


def test_decisions_about_another_table_are_refused(run, tmp_path):
    folder, *_ = run
    (tmp_path / "d.csv").write_text("id,label\nelsewhere,007\n")
    command = ["correct", "t.csv", "--embeddings", "e.npy", "--locked"]
    done = stct(*command, tmp_path / "d.csv", "-o", tmp_path / "x", cwd=folder)
    assert_error(done, "d.csv", "ids that t.csv lacks: elsewhere", "another table")
    assert not (tmp_path / "x").exists()


CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext(
    "2d", {willReadFrequently: true});
  const rgba = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => v / 255).map(
      (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const c = rgba(getComputedStyle(e).backgroundColor);
      if (c[3] === 255) return c;
    }
    return rgba(getComputedStyle(document.documentElement).backgroundColor);
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility()) continue;
    if (element.closest("script, style, .unseen, :disabled")) continue;
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement ? style.fill : style.color;
    let [a, b] = [rgba(drawn), behind(element)];
    const share = Number(style.opacity);
    a = a.map((v, k) => v * share + b[k] * (1 - share));
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if ((x + 0.05) / (y + 0.05) < (large ? 3 : 4.5))
      poor.push(`${element.tagName}.${element.className}: ${node.textContent.trim()}`);
  }
  return poor;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_fits_and_can_be_read(chromium, run, width, theme):
    path = run[0] / "stct-output" / "report.html"
    size = {"width": width, "height": 800}
    tab = Tab(chromium, path, viewport=size, color_scheme=theme)
    page = tab.page
    page.select_option("#f-show", "relabel")
    page.locator(".card .accept >> nth=0").click()
    page.locator(".card .reject >> nth=1").click()
    page.wait_for_timeout(200)  # buttons fade
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(CONTRAST) == []
    unnamed = "svg:not([aria-label]), canvas:not([aria-label]), img:not([alt])"
    assert page.locator(f"main {unnamed}").count() == 0
    tab.context.close()
    assert tab.trouble == []


def test_every_control_can_be_reached_by_keyboard(tab):
    page = tab.page
    reached = set()
    for _ in range(400):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "document.activeElement.id || document.activeElement.className"
        )
        reached.add(name)
        if name == "danger" or "danger" in name:
            break
    wanted = {"theme", "dial", "f-show", "f-from", "f-to", "f-low", "f-high", "f-find"}
    assert wanted | {"f-sort", "save-decisions", "save-patch", "save-all"} <= reached
    page.locator("#map canvas").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "given" in page.inner_text(".tip")
    page.keyboard.press("Enter")
    assert tab.num_found() >= 1
    assert page.evaluate("document.activeElement.classList.contains('card')")


def test_labels_of_every_type_come_back_exactly(chromium, tmp_path):
    """1, "1" and true are three classes of a jsonl table; some labels are missing."""
    classes = [1, "1", True]
    X, truth, given = blobs()
    labels = [None if i == 7 else classes[c] for i, c in enumerate(given)]
    rows = [json.dumps({"id": i, "label": label}) for i, label in enumerate(labels)]
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    np.save(tmp_path / "e.npy", X)
    command = ["correct", "t.jsonl", "--embeddings", "e.npy", "--quiet"]
    assert stct(*command, cwd=tmp_path).returncode == 0
    tab = Tab(chromium, tmp_path / "stct-output" / "report.html")
    page = tab.page
    page.select_option("#f-show", "all")
    page.select_option("#f-sort", "table")
    page.click("text=Start reviewing")
    names = page.evaluate(
        "JSON.parse(document.getElementById('data').textContent).classes"
        ".map((one) => one.code)"
    )
    chosen = [classes[(i + 1) % 3] for i in range(9)]
    for label in chosen:
        key = names.index(encode_label(label, text_only=False)) + 1
        page.keyboard.press(str(key))
    patch = tab.download("#save-patch", tmp_path / "patch.csv")
    saved = tab.download("#save-decisions", tmp_path / "decisions.csv")
    tab.context.close()
    assert tab.trouble == []

    def kinds(path):
        table = read_table(path)
        return [(type(value), value) for value in table.values("label")[:9]]

    wanted = [(type(label), label) for label in chosen]
    assert (
        stct("apply", patch, "t.jsonl", "-o", "a.jsonl", cwd=tmp_path).returncode == 0
    )
    assert kinds(tmp_path / "a.jsonl") == wanted
    done = stct(*command, "--locked", saved, "-o", "again", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert kinds(tmp_path / "again" / "labels.jsonl") == wanted


def test_audit_hides_what_others_said_and_exports(chromium, run, tmp_path):
    folder, *_ = run
    line = ["audit", "stct-output", "-n", "8", "-o", tmp_path / "a.csv", "--quiet"]
    assert stct(*line, cwd=folder).returncode == 0
    drawn = read_table(tmp_path / "a.csv")
    tab = Tab(chromium, folder / "stct-output" / "report.html")
    page = tab.page
    row = page.locator("#audit-row")
    row.focus()
    assert page.locator("#audit-row img").count() <= 1
    assert "Given:" not in row.inner_text()
    page.keyboard.press("2")
    assert "Given:" in row.inner_text()
    assert "Suggested:" in row.inner_text()
    page.keyboard.press("ArrowRight")
    assert "Given:" not in row.inner_text()
    page.keyboard.press("ArrowRight")  # the second row is skipped
    page.keyboard.press("1")
    page.keyboard.press("u")
    page.keyboard.press("3")
    tab.open(folder / "stct-output" / "report.html")  # a reload
    assert "2 of 8 verified" in page.inner_text("#audit")
    assert page.evaluate(CONTRAST) == []
    saved = read_table(tab.download("#save-audit", tmp_path / "audit.csv"))
    tab.context.close()
    assert tab.trouble == []
    for name in ("id", "given", "weight"):
        assert saved.values(name) == drawn.values(name)
    codes = [encode_label(name, text_only=True) for name in sorted(CLASSES)]
    assert saved.values("verified")[:4] == [codes[1], "", codes[2], ""]
    command = page_command(folder / "stct-output")
    assert "--audit audit.csv --since" in command


def page_command(folder):
    """The command that the page shows for the next round."""
    text = (folder / "report.html").read_text("utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    return data["audit_command"]
