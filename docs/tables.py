"""The tables of README.md and docs/benchmarks.md, made from benchmarks/results/*.csv.

    python docs/tables.py

Writes what stands between ``<!-- table: NAME -->`` and ``<!-- end of table -->``. Run
it whenever a CSV changes: a test compares pages and CSVs.
"""

import re
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "benchmarks.md")
RESULTS = ROOT / "benchmarks" / "results"
METHODS = {
    "given": "given",
    "probe": "linear probe",
    "logistic": "logistic",
    "knn": "k-NN vote",
    "cleanlab": "cleanlab",
    "stct": "stct",
}
# Cell of the battery: data, and where its noise comes from.
SHORT = {
    "cifar:worst": "images (CIFAR-10N), the worst of three annotators",
    "cifar:aggregate": "images (CIFAR-10N), majority of three",
    "labelme:majority": "photos (LabelMe), majority of a crowd",
    "sentiment:majority": "reviews (Sentiment), majority of a crowd",
    "youtube:majority": "comments (YouTube), majority of rules",
    "banking77:sym20": "77 intents (Banking77), 20% at random",
    "banking77:idn40": "77 intents (Banking77), 40% instance-dependent",
    "digits:asym40": "digits, 40% by fixed pairs of classes",
    "cancer:sym20": "table (breast cancer), 20% at random",
    "diabetes:sym20": "table (diabetes), 20% at random",
    "cifar:hard20": "images (CIFAR-10), the 20% hardest rows",
}
REAL = r":(?:majority|one|aggregate|random[123]|worst)$"
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def main() -> None:
    """Bring the tables of all pages up to date."""
    for page in PAGES:
        page.write_text(filled(page), encoding="utf-8", newline="\n")


def filled(page: Path) -> str:
    """Give the text of a page with its tables made anew."""
    text = page.read_text(encoding="utf-8")
    return BLOCK.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], text)


def short() -> str:
    """Give some cells of every kind of data, ours and those of peers."""
    return compared({cell: words for cell, words in SHORT.items()})


def real() -> str:
    """Give all cells with noise of people and rules."""
    cells = battery()["cell"].drop_duplicates()
    return compared({c: f"`{c}`" for c in cells if re.search(REAL, c)})


def compared(cells: dict[str, str]) -> str:
    """Give the right labels of cells by method, in percent, the best one bold."""
    rows = battery()
    head = ["data, noise", "rows", "seeds", *METHODS.values()]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for cell, words in cells.items():
        part = rows[rows["cell"] == cell]
        right = 100 * part.pivot(index="seed", columns="method", values="right")
        right = right[list(METHODS)].dropna()  # seeds that all methods have
        best = right.mean().round(1).max()
        shown = [figure(right[name], best) for name in METHODS]
        size = f"{int(part['n'].iloc[0]):,}"
        lines.append([words, size, str(len(right)), *shown])
    return markdown(lines)


def figure(values: pd.Series, best: float) -> str:
    """Give a mean, with the standard deviation of several seeds."""
    mean = f"{values.mean():.1f}"
    if values.mean().round(1) == best:
        mean = f"**{mean}**"
    return mean if len(values) == 1 else f"{mean} ± {values.std():.1f}"


def scale() -> str:
    """Give seconds and memory of many rows, columns and classes."""
    rows = pd.read_csv(RESULTS / "scale.csv")
    lines = [["rows", "columns", "classes", "seconds", "MB beyond the rows"]]
    lines.append(["---:"] * 5)
    for row in rows.itertuples():
        sizes = [f"{size:,}" for size in (row.rows, row.columns, row.classes)]
        lines.append([*sizes, f"{row.seconds:.1f}", f"{row.megabytes:,.0f}"])
    return markdown(lines)


def battery() -> pd.DataFrame:
    """Give the rows of the battery."""
    return pd.read_csv(RESULTS / "battery.csv")


def markdown(lines: list[list[str]]) -> str:
    """Give lines of cells as a table."""
    rows = [f"| {' | '.join(line)} |\n" for line in lines]
    return "\n" + "".join(rows) + "\n"


TABLES = {"short": short, "real": real, "scale": scale}

if __name__ == "__main__":
    main()
