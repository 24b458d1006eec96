"""What verified rows are worth: an audit at random, and the rows to check next.

    python benchmarks/audit.py DATA [--only CELL ...] [--draws 30] [--out FOLDER]
        [--part audit check]

Cells are those of benchmarks/cells.py. *audit*: 100 and 300 rows are verified, drawn at
random, or as `stct audit` draws them; labels are judged on all other rows, estimates on
all rows. *check*: the 100 rows to check first get their right label; the answers are
applied as they are, or the correction is fitted again with them.

Every draw is one row of FOLDER/audit.csv or FOLDER/check.csv, written when it is done;
rows that are there are not computed again. At the end FOLDER/audit.md.

True labels are for injecting noise, for answers, and for scoring only.
"""

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from cells import Cell, make
from numpy.typing import NDArray

from stct import LabelCorrector
from stct.data.audit_sample import allocate, drawing_shares, strata
from stct.report.checking import choose_rows

Array = NDArray

AUDITED = (100, 300)
CHECKED = 100
CELLS = (
    *("youtube:majority", "labelme:majority", "labelme:one"),
    *("sentiment:majority", "sentiment:one"),
    *("cifar:worst", "cifar:random1", "cifar:aggregate"),
    *("cifar500n:sym20", "cifar2000n:sym50", "digits:sym50", "digits:hard20"),
    *("labelme:sym20", "labelme:idn30", "youtube:sym20", "sentiment:sym20"),
    *("banking77:sym20", "cifar:sym20", "cifar:asym40", "cifar:clean"),
    *("diabetes:sym20", "wine:sym20"),
)
CHECK_CELLS = (
    *("youtube:majority", "labelme:majority", "labelme:one", "sentiment:one"),
    *("banking77:sym20", "cifar2000n:worst", "digits:sym50"),
)
AUDIT_COLUMNS = [
    *("cell", "design", "verified", "draw", "n", "given", "without", "audited"),
    *("before_held", "after_held", "before_width", "after_width"),
    *("before_error", "after_error", "threshold", "sharpness"),
]
CHECK_COLUMNS = ["cell", "draw", "n", "without", "wrong", "applied", "refitted"]


def audit_rows(cell: str, data: Path, draws: int, done: set) -> Iterator[dict]:
    """Verify rows at random, many times."""
    case = make(cell, data, 0)
    designs = ["random"]
    if len(case.given) < 10_000:
        designs.append("stratified")
    todo = [
        (design, m, draw)
        for design in designs
        for m in AUDITED
        for draw in range(draws)
        if m < len(case.given) and (cell, design, str(m), str(draw)) not in done
    ]
    if not todo:
        return
    base = LabelCorrector().fit(case.X, case.given)
    for design, m, draw in todo:
        rng = np.random.default_rng([draw, 22])
        rows, weight = draw_rows(design, base, m, rng)
        yield {
            "cell": cell,
            "design": design,
            "verified": m,
            "draw": draw,
            **one_audit(case, base.labels_, rows, weight),
        }


def draw_rows(
    design: str, base: LabelCorrector, m: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Rows and their weights."""
    n = len(base.labels_)
    if design == "random":
        return rng.choice(n, m, replace=False), np.ones(m)
    groups = strata(base.action_, base.confidence_)
    sizes = np.array([len(group) for group in groups])
    counts = allocate(m, sizes, drawing_shares(groups, base.confidence_))
    drawn = [
        rng.choice(g, c, replace=False) for g, c in zip(groups, counts, strict=True)
    ]
    return np.concatenate(drawn), np.repeat(sizes / np.maximum(counts, 1), counts)


def one_audit(case: Cell, base: Array, rows: Array, weight: Array) -> dict:
    """Correct with these rows verified, and judge the others."""
    n, truth = len(case.given), case.truth
    verified = np.full(n, None, dtype=object)
    verified[rows] = truth[rows]
    weights = np.ones(n)
    weights[rows] = weight
    fit = LabelCorrector().fit(
        case.X, case.given, verified=verified, verified_weight=weights
    )
    others = np.ones(n, dtype=bool)
    others[rows] = False
    right = fit.labels_ == truth
    estimate = fit.estimated_accuracy_
    result = {
        "n": n,
        "given": (case.given == truth)[others].mean(),
        "without": (base == truth)[others].mean(),
        "audited": right[others].mean(),
        "threshold": fit.audit_.threshold,
        "sharpness": fit.audit_.sharpness,
    }
    for name, value in (
        ("before", (case.given == truth).mean()),
        ("after", right.mean()),
    ):
        low, high = getattr(estimate, f"{name}_interval")
        result[f"{name}_held"] = int(low <= value <= high)
        result[f"{name}_width"] = high - low
        result[f"{name}_error"] = getattr(estimate, name) - value
    return result


def check_rows(cell: str, data: Path, draws: int, done: set) -> Iterator[dict]:
    """Check the rows that the report shows first, in several drawn cells."""
    for draw in range(draws):
        if (cell, str(draw)) in done:
            continue
        case = make(cell, data, draw)
        n, truth = len(case.given), case.truth
        base = LabelCorrector().fit(case.X, case.given)
        rows = choose_rows(
            1.0 - base.confidence_, np.zeros(n, bool), base.labels_, case.X, CHECKED
        )
        applied = base.labels_.copy()
        applied[rows] = truth[rows]
        known, locked = case.given.copy(), np.zeros(n, dtype=bool)
        known[rows], locked[rows] = truth[rows], True
        again = LabelCorrector().fit(case.X, known, locked=locked)
        yield {
            "cell": cell,
            "draw": draw,
            "n": n,
            "without": (base.labels_ == truth).mean(),
            "wrong": int((base.labels_ != truth)[rows].sum()),
            "applied": (applied == truth).mean(),
            "refitted": (again.labels_ == truth).mean(),
        }


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append(path: Path, columns: Sequence[str], row: dict) -> None:
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if new:
            writer.writeheader()
        shown = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
        writer.writerow(shown)


def report(audits: list[dict[str, str]], checks: list[dict[str, str]]) -> str:
    """Write both tables."""
    lines = [
        "# Verified rows",
        "",
        "Made by `python benchmarks/audit.py DATA`. Right labels in %, on the rows "
        "that nobody verified; mean of the draws (standard deviation in brackets). "
        "*Held*: draws whose 95% interval holds the truth, before / after correction, "
        "in %, and its mean width in points.",
        "",
        "| cell | rows | drawn | draws | given | no audit | audit | held | width |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (cell, m, design), rows in grouped(audits, ("cell", "verified", "design")):
        mean = {
            k: 100 * np.mean([float(r[k]) for r in rows]) for k in AUDIT_COLUMNS[5:]
        }
        spread = 100 * np.std([float(r["audited"]) for r in rows])
        lines.append(
            f"| {cell} | {m} | {design} | {len(rows)} | {mean['given']:.2f} "
            f"| {mean['without']:.2f} | {mean['audited']:.2f} ({spread:.2f}) "
            f"| {mean['before_held']:.0f} / {mean['after_held']:.0f} "
            f"| {mean['before_width']:.1f} / {mean['after_width']:.1f} |"
        )
    if audits:
        held = [
            [int(r[f"{when}_held"]) for r in audits] for when in ("before", "after")
        ]
        lines += [
            "",
            f"All draws: {100 * np.mean(held[0]):.1f}% of the intervals before and "
            f"{100 * np.mean(held[1]):.1f}% of those after hold the truth "
            f"(n = {len(audits):,}).",
        ]
    if checks:
        lines += [
            "",
            f"## The {CHECKED} rows to check first",
            "",
            "Right labels of all rows in %. *Wrong*: how many of the labels that were "
            "looked at were wrong. *Applied*: the answers without a new fit. "
            "*Refitted*: a new fit with the answers locked.",
            "",
            "| cell | draws | no check | wrong | applied | refitted | difference |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
    for (cell,), rows in grouped(checks, ("cell",)):
        values = {k: np.array([float(r[k]) for r in rows]) for k in CHECK_COLUMNS[3:]}
        gain = 100 * (values["refitted"] - values["applied"])
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
        lines.append(
            f"| {cell} | {len(rows)} | {100 * values['without'].mean():.2f} "
            f"| {values['wrong'].mean():.0f} | {100 * values['applied'].mean():.2f} "
            f"| {100 * values['refitted'].mean():.2f} "
            f"| {gain.mean():+.2f} (se {error:.2f}) |"
        )
    return "\n".join(lines) + "\n"


def grouped(rows: list[dict[str, str]], names: Sequence[str]) -> Iterator[tuple]:
    """Give the rows of each combination, in the order in which they first came."""
    found: dict[tuple, list] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    yield from found.items()


def main() -> None:
    """Compute what is missing, then write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", default=None)
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--part", nargs="+", default=["audit", "check"])
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    paths = {part: given.out / f"{part}.csv" for part in ("audit", "check")}
    for cell in given.only or CELLS:
        if "audit" in given.part:
            key = ("cell", "design", "verified", "draw")
            done = {tuple(r[k] for k in key) for r in read(paths["audit"])}
            for row in audit_rows(cell, given.data, given.draws, done):
                append(paths["audit"], AUDIT_COLUMNS, row)
    for cell in given.only or CHECK_CELLS:
        if "check" in given.part:
            done = {(r["cell"], r["draw"]) for r in read(paths["check"])}
            for row in check_rows(cell, given.data, min(given.draws, 20), done):
                append(paths["check"], CHECK_COLUMNS, row)
    text = report(read(paths["audit"]), read(paths["check"]))
    (given.out / "audit.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
