"""Take the pictures of the report that the documentation shows.

    python docs/screenshots.py demo-output/run/report.html

Needs Chromium, playwright and Pillow. Writes docs/images/report-*.png, with few colours
so that they stay small.
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
KEYS = ["a", "a", "r", "a", "a", "3", "a", "ArrowRight"]


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
        browser.close()


def save(data: bytes, name: str) -> None:
    """Write a picture with few colours."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    image.quantize(160, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
