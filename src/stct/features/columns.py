"""Columns of numbers, dates and categories as features, by scikit-learn.

Numbers are centred on their median and divided by their interquartile range, dates are
numbers and also weekday, month and hour, categories are one-hot. What is missing is
the median, and says so in a column of its own; a rare or new category is none of the
known ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from stct.data.tables import Table
from stct.features.kinds import KINDS, Columns, read_columns

Array = NDArray[Any]
Floats = NDArray[np.float32]

_LARGEST = 5.0  # interquartile ranges: one outlier does not decide alone
_MOST_CATEGORIES = 100  # of one column
_LEAST_ROWS = 5  # of a category


@dataclass(frozen=True)
class TableRecipe:
    """What was learnt from columns: medians, ranges, and the common categories."""

    kind: ClassVar[str] = "table"
    kinds: dict[str, str]  # name: number, date or category
    centre: NDArray[np.float64]  # of numbers, then of dates
    scale: NDArray[np.float64]
    gaps: NDArray[np.bool_]  # which of them had missing values
    categories: list[list[str]]  # of each category, then of each date's parts

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(self.kinds)

    @property
    def settings(self) -> dict[str, Any]:
        """For JSON."""
        return {"kinds": self.kinds, "categories": self.categories}

    @property
    def arrays(self) -> dict[str, Array]:
        """The rest."""
        return {"centre": self.centre, "scale": self.scale, "gaps": self.gaps}

    @classmethod
    def from_plain(
        cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> Self:
        """Make it again."""
        kinds = dict(settings["kinds"])
        if not set(kinds.values()) <= set(KINDS):
            raise ValueError("columns of an unknown kind")
        learnt = arrays["centre"], arrays["scale"], arrays["gaps"]
        return cls(kinds, *learnt, settings["categories"])

    def transform(
        self,
        table: Table,
        path: Path,
        progress: Callable[[float], None] | None = None,
        cache_dir: Path | None = None,
    ) -> Floats:
        """Give the features (n, d) of a table's rows."""
        del progress, cache_dir  # takes no time
        return self.features(read_columns(table, self.kinds, str(path)))

    def features(self, columns: Columns) -> Floats:
        """Give the features (n, d) of columns that were read."""
        from sklearn.preprocessing import OneHotEncoder, RobustScaler

        parts: list[Array] = []
        numbers = _numbers(columns)
        if numbers.shape[1]:
            scaler = RobustScaler()
            scaler.center_, scaler.scale_ = self.centre, self.scale
            scaled = scaler.transform(numbers)
            parts.append(np.isnan(scaled[:, self.gaps]))
            parts.append(np.clip(np.nan_to_num(scaled), -_LARGEST, _LARGEST))
        names = _categories(columns)
        several = [i for i, known in enumerate(self.categories) if known]
        if several:
            categories = [self.categories[i] for i in several]
            encoder = OneHotEncoder(
                categories=[np.array(known, dtype=object) for known in categories],
                handle_unknown="ignore",
                sparse_output=False,
            )
            first = np.array([[known[0] for known in categories]], dtype=object)
            parts.append(encoder.fit(first).transform(names[:, several]))
        return np.hstack(parts).astype(np.float32)


def fit_table(columns: Columns, kinds: dict[str, str]) -> TableRecipe:
    """Learn the features of columns."""
    from sklearn.preprocessing import OneHotEncoder, RobustScaler

    numbers = _numbers(columns)
    centre, scale = np.zeros(0), np.ones(0)
    if numbers.shape[1]:
        scaler = RobustScaler().fit(numbers)
        spread = np.nan_to_num(np.nanstd(numbers, axis=0))
        flat = np.nanpercentile(numbers, 25, axis=0) == np.nanpercentile(
            numbers, 75, axis=0
        )  # most rows have one value
        centre = scaler.center_
        scale = np.where(flat & (spread > 0), spread, scaler.scale_)
    known: list[list[str]] = []
    names = _categories(columns)
    if names.shape[1]:
        encoder = OneHotEncoder(
            min_frequency=min(_LEAST_ROWS, len(names)),
            max_categories=_MOST_CATEGORIES,
            handle_unknown="infrequent_if_exist",
        ).fit(names)
        for every, rare in zip(
            encoder.categories_, encoder.infrequent_categories_, strict=True
        ):
            common = [str(c) for c in every if rare is None or c not in set(rare)]
            known.append((common or [str(every[0])]) if len(every) > 1 else [])
    gaps = np.asarray(np.isnan(numbers).any(axis=0))
    return TableRecipe(kinds, centre, scale, gaps, known)


def _numbers(columns: Columns) -> NDArray[np.float64]:
    """Numbers, then dates, (n, k)."""
    found = [*columns.numbers.values(), *columns.dates.values()]
    return np.column_stack(found) if found else np.empty((0, 0))


def _categories(columns: Columns) -> Array:
    """Categories, then the parts of dates, (n, k) of text."""
    found = list(columns.categories.values())
    for days in columns.dates.values():
        known = np.isfinite(days)
        whole = np.floor(np.where(known, days, 0.0))
        hours = np.floor((np.where(known, days, 0.0) - whole) * 24 + 1e-6)
        months = whole.astype("datetime64[D]").astype("datetime64[M]").astype(int)
        for part in ((whole + 3) % 7, months % 12, hours):  # weekday, month, hour
            texts = part.astype(int).astype(str)
            found.append(np.where(known, texts, "").tolist())
    if not found:
        return np.empty((0, 0), dtype=object)
    return np.array(found, dtype=object).T
