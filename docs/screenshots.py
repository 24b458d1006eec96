"""Take the pictures of the report that the documentation shows.

    python docs/screenshots.py demo-output/run/report.html

Needs Chromium, playwright and Pillow. Writes docs/images/*.png, with few colours so
that they stay small: overview and review of that report, and the confusions of one with
60 classes, which is made here. An audit of the given report is drawn at the end.
"""

import io
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
KINDS = ["steel", "wooden", "red", "old", "small", "plastic"]
THINGS = ["chair", "table", "lamp", "phone", "camera"]
THINGS += ["wallet", "bottle", "jacket", "guitar", "clock"]
KEYS = ["a", "a", "a", "a", "ArrowRight"]


def main(report: Path) -> None:
    """Take pictures of both widths and themes."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        for width, height in ((1280, 1000), (400, 1000)):
            for theme in ("light", "dark"):
                page = browser.new_page(
                    viewport={"width": width, "height": height}, color_scheme=theme
                )
                page.goto(report.resolve().as_uri())
                page.wait_for_selector("html[data-ready]")
                page.wait_for_timeout(300)
                save(page.screenshot(), f"report-{width}-{theme}.png")
                page.select_option("#f-show", "proposed")
                page.select_option("#f-sort", "surest")
                page.click("text=Start reviewing")
                for key in KEYS:
                    page.keyboard.press(key)
                page.evaluate(
                    "window.scrollTo({top: document.getElementById('review')"
                    ".offsetTop, behavior: 'instant'})"
                )
                page.wait_for_timeout(300)
                save(page.screenshot(), f"review-{width}-{theme}.png")
                page.close()
        with tempfile.TemporaryDirectory() as folder:
            page = browser.new_page(viewport={"width": 1280, "height": 1000})
            page.goto(many_classes(Path(folder)).as_uri())
            page.wait_for_selector("html[data-ready]")
            page.wait_for_timeout(300)
            for name in ("pairs", "transition"):
                save(page.locator(f"#{name}").screenshot(), f"{name}.png")
            command = f"-m stct audit {report.parent} -n 60 -o {folder}/a.csv --quiet"
            subprocess.run([sys.executable, *command.split()], check=True)
            for theme in ("light", "dark"):
                page = browser.new_page(
                    viewport={"width": 900, "height": 900}, color_scheme=theme
                )
                page.goto(report.resolve().as_uri())
                page.wait_for_selector("html[data-ready]")
                page.focus("#audit-row")
                page.keyboard.press("3")
                page.wait_for_timeout(300)
                save(page.locator("#audit-row").screenshot(), f"audit-{theme}.png")
        browser.close()


def many_classes(folder: Path) -> Path:
    """Make a report of 60 classes, of which some are taken for the next one."""
    names = [f"{kind} {thing}" for kind, thing in product(KINDS, THINGS)]
    rng = np.random.default_rng(0)
    truth = np.arange(6_000) % len(names)
    centres = rng.normal(size=(len(names), 32))
    given = truth.copy()
    confused = (truth % 10 < 4) & (rng.random(len(truth)) < 0.2)
    given[confused] ^= 1
    drawn = rng.random(len(truth)) < 0.08
    given[drawn] = rng.integers(0, len(names), drawn.sum())
    rows = "".join(f"{i},{names[code]}\n" for i, code in enumerate(given))
    (folder / "goods.csv").write_text(f"id,label\n{rows}", encoding="utf-8")
    np.save(folder / "goods.npy", centres[truth] + rng.normal(size=(len(truth), 32)))
    command = "-m stct correct goods.csv --embeddings goods.npy -o out --quiet"
    subprocess.run([sys.executable, *command.split()], cwd=folder, check=True)
    return folder / "out" / "report.html"


def save(data: bytes, name: str) -> None:
    """Write a picture with few colours."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    image.quantize(256, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
