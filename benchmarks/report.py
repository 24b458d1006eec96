"""The report: seconds to write it, its size, and how fast it is in a browser.

    python benchmarks/report.py                          # 50,000 x 256, made up
    python benchmarks/report.py --embeddings FILE.npz    # e.g. 50,000 CIFAR-10 images

FILE.npz as for benchmarks/correct.py. Half of the labels are drawn at random. The
correction (fit, labels, patch, soft labels) is timed in the same run, as the peer.
Pictures: photos of 500 x 375 pixels in JPEG files, one for each row (100 different
ones, linked). The browser is Chromium, headless, through playwright: first paint as
its own clock (first-contentful-paint), filtering as the time from a changed control to
the next frame, the median and the worst of twenty.
"""

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from stct import LabelCorrector, noise
from stct.data.inputs import read_inputs
from stct.data.results import write_results
from stct.data.tables import Table, write_table
from stct.report import REPORT_FILES, write_report

FILTER = """(values) => values.map(([id, value]) => new Promise((done) => {
  const control = document.getElementById(id);
  const start = performance.now();
  control.value = value;
  control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input"));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})).reduce((chain, next) => chain.then(async (all) => [...all, await next]),
  Promise.resolve([]))"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--embeddings", type=Path)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--no-images", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load = os.getloadavg()[0]
        measure(folder, options)
        print(f"machine: {os.cpu_count()} cores, load {load:.1f} before")


def measure(folder: Path, options: argparse.Namespace) -> None:
    H, truth = embeddings(options)
    n, C = len(H), int(truth.max()) + 1
    given = noise.symmetric(truth, C, 0.5, np.random.default_rng(0)).labels
    np.save(folder / "e.npy", H)
    columns = {
        "id": [f"image-{i:06d}" for i in range(n)],
        "label": [f"class {c}" for c in given],
        "image": ["" if options.no_images else f"pictures/{i}.jpg" for i in range(n)],
    }
    write_table(folder / "t.csv", Table("csv", columns, n))
    if not options.no_images:
        photos(folder / "pictures", n)
    out = folder / "out"
    out.mkdir()
    start = time.perf_counter()
    inputs = read_inputs(folder / "t.csv", embeddings=folder / "e.npy")
    corrector = LabelCorrector().fit(inputs.embeddings, inputs.targets)
    write_results(out, inputs, corrector, seconds=0.0, more_files=REPORT_FILES)
    correcting = time.perf_counter() - start
    start = time.perf_counter()
    write_report(out, embeddings=inputs.embeddings, image_folder=folder)
    writing = time.perf_counter() - start
    size = (out / "report.html").stat().st_size / 1e6
    kept = (out / "review.npz").stat().st_size / 1e6
    print(f"{n:,} x {H.shape[1]}, {C} classes")
    print(f"correction, read to written   {correcting:6.2f} s")
    ratio = writing / correcting
    print(f"report written beside it      {writing:6.2f} s  ({ratio:.2f} x)")
    print(f"report.html                   {size:6.2f} MB (review.npz {kept:.2f} MB)")
    browse(out / "report.html")


def embeddings(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    if options.embeddings is not None:
        with np.load(options.embeddings) as data:
            H = data["train"][: options.rows].astype(np.float32)
            return H, data["y_train"][: options.rows].astype(np.intp)
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 10, options.rows)
    H = generator.normal(size=(options.rows, 256)).astype(np.float32)
    H[:, :10] += 3.0 * np.eye(10, dtype=np.float32)[truth]
    return H, truth


def photos(folder: Path, count: int) -> None:
    """Write a hundred photo-like files, and links to them."""
    from PIL import Image

    folder.mkdir()
    generator = np.random.default_rng(0)
    for i in range(min(count, 100)):
        coarse = generator.integers(0, 256, (24, 32, 3), dtype=np.uint8)
        photo = np.asarray(Image.fromarray(coarse).resize((500, 375)), np.int16)
        grain = generator.integers(-12, 13, photo.shape)
        pixels = np.clip(photo + grain, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.jpg", quality=88)
    for i in range(100, count):
        os.link(folder / f"{i % 100}.jpg", folder / f"{i}.jpg")


def browse(path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no chromium here: nothing measured in a browser")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        paints, readies = [], []
        for _ in range(5):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready]")
            page.wait_for_timeout(200)
            paints.append(
                page.evaluate(
                    "performance.getEntriesByName('first-contentful-paint')[0].startTime"
                )
            )
            readies.append(
                page.evaluate(
                    "performance.timing.domComplete - "
                    "performance.timing.navigationStart"
                )
            )
            if len(paints) < 5:
                page.close()
        print(
            f"first paint                   {np.median(paints):6.0f} ms "
            f"(worst of 5: {max(paints):.0f})"
        )
        print(
            f"all of it shown               {np.median(readies):6.0f} ms "
            f"(worst of 5: {max(readies):.0f})"
        )
        changes = [("f-show", "all"), ("f-from", "3"), ("f-to", "5"), ("f-from", "")]
        changes += [("f-to", ""), ("f-low", "90"), ("f-low", "0"), ("f-find", "0123")]
        changes += [("f-find", ""), ("f-sort", "unsure"), ("f-show", "relabel")]
        changes += [
            ("f-sort", "gain"),
            ("f-sort", "table"),
            ("dial", "12"),
            ("dial", "0"),
        ]
        times = []
        for change in [*changes, *changes][:20]:
            times += page.evaluate(FILTER, [change])
        print(
            f"filter, sort or dial          {np.median(times):6.0f} ms "
            f"(worst of {len(times)}: {max(times):.0f})"
        )
        browser.close()


if __name__ == "__main__":
    main()
