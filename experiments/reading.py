"""What tables and figures read: rows of one kind of data and one scale at a time."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from runner import Experiment, choose, missing_cells, name_of, read_rows

Rows = Sequence[Mapping[str, str]]
# Names for people; others are called as their file.
DATA = {"cifar10_embeddings": "50,000 frozen CIFAR-10 embeddings"}
DATASETS = {
    "digits": "1,437 digits",
    "cifar10-10k": "10,000 CIFAR-10 images",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "clothing1m": "Clothing-1M",
}
SCALES = {"cpu": "CPU scale", "paper": "paper scale"}


class Results(NamedTuple):
    """Results of one kind of data at one scale; others are never mixed in."""

    folder: Path
    data: str
    scale: str

    @property
    def on(self) -> str:
        """Say what they are of."""
        scale = "" if self.scale == "full" else f", scale {self.scale}"
        return DATA.get(self.data, f"embeddings {self.data}") + scale

    def rows(self, name: str) -> Rows:
        """Give the rows of an experiment; none where it has not been run."""
        rows = read_all(self.folder, name)
        return [r for r in rows if (r["data"], r["scale"]) == (self.data, self.scale)]

    def lacks(self, name: str, patterns: Sequence[str] = ()) -> str:
        """Say in one line which cells of an experiment are missing, or nothing."""
        which = experiment(name)
        cells = choose(which.grids.get(self.scale, []), patterns)
        rows = self.rows(name)
        missing = missing_cells(which, cells, rows, data=self.data, scale=self.scale)
        if not missing:
            return ""
        names = [name_of(cell) for cell in missing[:3]]
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        return f"{name}.csv lacks {', '.join(names)}{more} of {len(cells)} cells"


def experiment(name: str) -> Experiment:
    """Give an experiment by its name."""
    found: Experiment = importlib.import_module(name).EXPERIMENT
    return found


def read_all(folder: Path, name: str) -> Rows:
    """Read a results file; one of other columns is refused."""
    return read_rows(folder / f"{name}.csv", experiment(name).columns)


def groups(folder: Path, name: str) -> list[Results]:
    """Give the data and scales that an experiment was run on; the oldest first."""
    pairs = dict.fromkeys((r["data"], r["scale"]) for r in read_all(folder, name))
    return [Results(folder, data, scale) for data, scale in pairs]


def check_folder(folder: Path) -> None:
    """Refuse results that are not there."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder with results")
