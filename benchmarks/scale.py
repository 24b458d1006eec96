"""How the default method grows: out of core, rows, columns, classes, Ray.

    python benchmarks/scale.py stream --folder DIR        # 1,000,000 x 512 from a file
    python benchmarks/scale.py many --folder DIR          # 1,281,167 x 256 x 1,000
    python benchmarks/scale.py rows columns classes       # growth, one axis at a time
    python benchmarks/scale.py ray --folder DIR           # 2 workers, one is killed
    python benchmarks/scale.py plot                       # docs/scale.png from the csv

Rows are normal clouds around class means, 40% of the labels are redrawn. Every
measurement is a process of its own; the file is written first and read once before
anything is timed, so it is in the page cache where memory allows. The unit is one
streaming pass in the same process: read the file in blocks, float32 ``H.T @ H``.
Memory is the peak of what is not a file (RssAnon) above what there was before. Results
are added to results/scale.csv; docs/scale.md explains them. The load of the machine
stands in every line: above 1 the times are somebody else's too.
"""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

CSV = Path(__file__).parent / "results" / "scale.csv"
FIELDS = ["what", "rows", "columns", "classes", "seconds", "pass_seconds", "ratio"]
FIELDS += ["megabytes", "planned", "right_before", "right_after", "load"]
BLOCK = 8192


def make_file(folder: Path, n: int, d: int, C: int) -> tuple[Path, Path]:
    """Write n x d float32 numbers, and their given and true labels."""
    path, labels = folder / f"{n}x{d}x{C}.npy", folder / f"{n}x{d}x{C}.npz"
    if labels.exists():
        return path, labels
    rng = np.random.default_rng(0)
    means = rng.normal(size=(C, d)).astype(np.float32)
    means *= (3.5 + np.log10(C)) / np.linalg.norm(means, axis=1, keepdims=True)
    truth = rng.integers(0, C, n)
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (n, d))
    for i in range(0, n, 65_536):
        block = rng.standard_normal((len(truth[i : i + 65_536]), d), np.float32)
        rows[i : i + 65_536] = block + means[truth[i : i + 65_536]]
    rows.flush()
    given = np.where(rng.random(n) < 0.4, rng.integers(0, C, n), truth)
    np.savez(labels, truth=truth, given=given)
    return path, labels


def streaming_pass(H: np.ndarray) -> float:
    """Seconds to read all rows and add up their Gram matrix, with all cores."""
    G = np.zeros((H.shape[1], H.shape[1]))
    start = time.perf_counter()
    for i in range(0, len(H), BLOCK):
        block = np.asarray(H[i : i + BLOCK])
        G += block.T @ block
    return time.perf_counter() - start


class PeakMemory:
    """Highest RssAnon of this process in MB, above what it was at the start."""

    def __enter__(self) -> "PeakMemory":
        self._before = self._peak = _anonymous()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self._peak = max(self._peak, _anonymous())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.megabytes = (self._peak - self._before) / 1024


def _anonymous() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if "RssAnon" in line)


def measure(folder: Path, n: int, d: int, C: int) -> dict[str, float]:
    """Fit once in this process; print what was seen as JSON."""
    from stct import LabelCorrector
    from stct.planning.plan import Problem, make_plan

    path, labels = make_file(folder, n, d, C)
    with np.load(labels) as file:
        truth, given = file["truth"], file["given"]
    H = np.load(path, mmap_mode="r")
    LabelCorrector().fit(np.asarray(H[:2000]), given[:2000])  # imports
    streaming_pass(H)
    planned = make_plan(Problem(n, d, C)).seconds
    before = streaming_pass(H)
    with PeakMemory() as memory:
        start = time.perf_counter()
        corrector = LabelCorrector().fit(H, given)
        seconds = time.perf_counter() - start
    unit = min(before, streaming_pass(H))
    return {
        "rows": n,
        "columns": d,
        "classes": C,
        "seconds": round(seconds, 3),
        "pass_seconds": round(unit, 4),
        "ratio": round(seconds / unit, 2),
        "megabytes": round(memory.megabytes),
        "planned": round(planned, 3),
        "right_before": round(float((given == truth).mean()), 4),
        "right_after": round(float((corrector.labels_ == truth).mean()), 4),
        "load": round(os.getloadavg()[0], 2),
    }


def run(what: str, folder: Path, n: int, d: int, C: int, *, keep: bool = False) -> dict:
    """Measure in a process of its own and add the line to the csv."""
    command = [sys.executable, __file__, "one", "--folder", str(folder)]
    command += ["--size", f"{n},{d},{C}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    row = {"what": what, **json.loads(done.stdout)}
    if not keep:
        for path in folder.glob(f"{n}x{d}x{C}.np*"):
            path.unlink()
    CSV.parent.mkdir(exist_ok=True)
    new = not CSV.exists()
    with CSV.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        writer.writerow(row)
    print("  ".join(f"{k} {v}" for k, v in row.items()), flush=True)
    return row


def ray(folder: Path, n: int = 1_000_000, d: int = 256, C: int = 10) -> None:
    """Local against two Ray workers, and once more with a worker killed."""
    import psutil

    from stct import LabelCorrector
    from stct.numeric.ray_engine import RayEngine

    path, labels = make_file(folder, n, d, C)
    with np.load(labels) as file:
        given = file["given"]
    H = np.load(path, mmap_mode="r")
    streaming_pass(H)

    def fit(engine: object) -> tuple[float, bytes]:
        start = time.perf_counter()
        corrector = LabelCorrector(engine=engine).fit(H, given)
        seconds = time.perf_counter() - start
        return seconds, corrector.label_distributions_.tobytes()

    def kill() -> None:
        while True:
            for process in psutil.Process().children(recursive=True):
                if process.name().startswith("ray::_"):
                    os.kill(process.pid, signal.SIGKILL)
                    return
            time.sleep(0.01)

    engine = RayEngine(num_workers=2)
    engine.start()
    fit_small = LabelCorrector(engine=engine)
    fit_small.fit(np.asarray(H[:2000]), given[:2000])  # workers import
    local, expected = fit("local")
    there, same = fit(engine)
    threading.Thread(target=kill, daemon=True).start()
    killed, still = fit(engine)
    print(
        f"{n} x {d}: local {local:.1f} s, Ray with 2 workers {there:.1f} s "
        f"({there / local - 1:+.0%}), same bytes: {same == expected}; "
        f"with one worker killed {killed:.1f} s, same bytes: {still == expected}; "
        f"load {os.getloadavg()[0]:.1f}"
    )


def plot() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with CSV.open() as file:
        rows = list(csv.DictReader(file))
    titles = {
        "rows": "rows, 64 columns, 10 classes",
        "columns": "columns, 100,000 rows, 10 classes",
        "classes": "classes, 100,000 rows, 64 columns",
    }
    measured = [row["what"] for row in rows]
    titles = {what: title for what, title in titles.items() if measured.count(what) > 1}
    size = (4 * len(titles), 3.2)
    figure, axes = plt.subplots(1, len(titles), figsize=size, layout="constrained")
    for axis, (what, title) in zip(axes, titles.items(), strict=True):
        mine = sorted(
            (float(r[what]), float(r["seconds"]), float(r["planned"]))
            for r in rows
            if r["what"] == what
        )
        x, seconds, planned = zip(*mine, strict=True)
        axis.loglog(x, seconds, "o-", label="measured")
        axis.loglog(x, planned, ":", color="grey", label="planned")
        axis.set_xticks(x, [f"{value:,.0f}" for value in x], fontsize=8)
        axis.minorticks_off()
        axis.set_title(title, fontsize=9)
        axis.set_xlabel(what)
        axis.set_ylabel("seconds")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    out = Path(__file__).parents[1] / "docs" / "scale.png"
    figure.savefig(out, dpi=110, metadata={"Software": None})
    print(out)


GROWTH = {
    "rows": [(n, 64, 10) for n in (10**4, 10**5, 10**6, 4 * 10**6)],
    "columns": [(10**5, d, 10) for d in (128, 256, 512, 1024, 2048)],
    "classes": [(10**5, 64, C) for C in (10, 32, 100, 300, 1000)],
    "stream": [(10**6, 512, 10)],
    "many": [(1_281_167, 256, 1000)],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="+", choices=[*GROWTH, "ray", "plot", "one"])
    parser.add_argument("--folder", type=Path, help="for the files, up to 2 GB")
    parser.add_argument("--size", help="for 'one': rows,columns,classes")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
        folder = args.folder or Path(temporary)
        for what in args.what:
            if what == "one":
                n, d, C = map(int, args.size.split(","))
                print(json.dumps(measure(folder, n, d, C)))
            elif what == "plot":
                plot()
            elif what == "ray":
                ray(folder)
            else:
                lines = [run(what, folder, *size) for size in GROWTH[what]]
                if what == "rows":
                    many, few = lines[-1], lines[1]
                    per_row = many["seconds"] / many["rows"]
                    per_row /= few["seconds"] / few["rows"]
                    print(f"time per row, 4,000,000 / 100,000: {per_row:.2f}")


if __name__ == "__main__":
    main()
