"""Labels that are no classes: measurements, grades, ids, several labels in one.

`stct correct` and `LabelCorrector` look at the distinct labels before anything else.
What cannot be a class is refused with what to do instead; what need not be one is
warned of.
"""

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.labels import few

MANY = 50  # distinct labels, from which they may be too many
FEW_MEASURED = 20  # distinct whole numbers with gaps are no codes of classes
FEWEST_GRADES, MOST_GRADES = 4, 10
SEPARATORS = ("|", ";", ",")
LEAST_AGREEMENT = 0.1  # mean correlation of the columns of annotators
FEWEST_SETS = 3  # different labels with a separator
LONGEST = 10_000  # distinct labels that are looked at one by one
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def check_kind(classes: Sequence[Any] | NDArray[Any], num_labels: int) -> str | None:
    """Refuse distinct labels that are no classes; give a warning or None.

    Parameters
    ----------
    classes : sequence
        The distinct labels.
    num_labels : int
        Rows that have one.

    Raises
    ------
    ValueError
        If they are a continuous quantity, ids or free text, or several labels in one.
    """
    names = list(classes)
    numbers = as_numbers(names)
    crowded = len(names) > max(2, num_labels // 2)
    fractional = numbers is not None and bool((numbers != np.floor(numbers)).any())
    if fractional and crowded:
        raise ValueError(
            "Unknown label type: continuous. The labels look like a measurement "
            f"({len(names)} distinct values in {num_labels} rows); labels must be "
            f"classes. {_NUMERIC}"
        )
    if numbers is None:
        separator = find_separator(names)
        if separator is not None:
            return _several(names, separator)
    if crowded and len(names) > MANY:
        raise ValueError(
            f"{len(names)} distinct labels in {num_labels} rows, such as "
            f"{few([_cut(name) for name in names[:3]])}, ...: these look like "
            + ("ids or free text" if numbers is None else "ids or amounts")
            + ", not classes, of which each needs several rows. Name the column with "
            "the classes" + ("" if numbers is None else f". {_NUMERIC}")
        )
    if numbers is None:
        return None
    if fractional and len(names) > MOST_GRADES or _amounts(numbers):
        return (
            f"the labels are {len(names)} distinct numbers, from {numbers.min():g} to "
            f"{numbers.max():g}, taken for classes without order. {_NUMERIC}"
        )
    if are_grades(numbers):
        return (
            f"the labels are the numbers {numbers.min():g} to {numbers.max():g}, taken "
            f"for classes without order. Grades, such as stars, have one. {_NUMERIC}"
        )
    return None


_NUMERIC = "Numbers are checked by --numeric or stct.NumericLabelChecker"


def as_numbers(names: Sequence[Any]) -> NDArray[np.float64] | None:
    """Give labels as numbers if all are numbers, or text of numbers; sorted."""
    values = []
    for name in names:
        if isinstance(name, bool | np.bool_):
            return None
        if isinstance(name, str):
            if not _NUMBER.fullmatch(name.strip()):
                return None
        elif not isinstance(name, int | float | np.integer | np.floating):
            return None
        values.append(float(name))
    numbers = np.sort(np.array(values, dtype=np.float64))
    return numbers if len(numbers) and np.isfinite(numbers).all() else None


def are_grades(numbers: NDArray[np.float64]) -> bool:
    """Tell whether numbers (sorted) are 1 to at most 10, in steps of 1 or 1/2."""
    if not FEWEST_GRADES <= len(numbers) <= 2 * MOST_GRADES:
        return False
    steps = np.diff(numbers)
    whole = bool((steps == 1.0).all()) and numbers[0] == 1.0
    halves = bool((steps == 0.5).all()) and numbers[0] in (0.5, 1.0)
    return (whole or halves) and bool(numbers[-1] <= MOST_GRADES)


def find_separator(names: Sequence[Any]) -> str | None:
    """Find the character that divides labels into labels that come in others, too.

    "Sports, Outdoors" alone is one class; beside "Sports" and "Outdoors, Games" it is
    two labels.
    """
    texts = [name for name in names if isinstance(name, str)][:LONGEST]
    for separator in SEPARATORS:
        parts = [
            {part.strip() for part in text.split(separator)} - {""} for text in texts
        ]
        counts = Counter(part for row in parts for part in row)
        several = [row for row in parts if len(row) > 1]
        shared = sum(all(counts[part] > 1 for part in row) for row in several)
        if len(several) >= FEWEST_SETS and shared >= max(len(several) // 2, 2):
            return separator
    return None


def warn_of_indicators(Y: NDArray[Any]) -> None:
    """Warn of a matrix of 0 and 1 whose columns have nothing in common.

    Columns of annotators agree more often than by chance, those of labels do not.
    """
    n, k = Y.shape
    if k < 3 or n < 2 or Y.dtype.kind not in "iufb" or not np.isin(Y, (0, 1)).all():
        return
    deviation = Y.astype(np.float64) - Y.mean(axis=0)
    scale = np.maximum(np.sqrt((deviation**2).sum(axis=0)), 1e-12)
    total = ((deviation / scale).sum(axis=1) ** 2).sum()  # of all correlations
    if (total - k) / (k * (k - 1)) < LEAST_AGREEMENT:
        warnings.warn(
            f"the {k} columns of y are taken for annotators, but hardly agree. If they "
            "are labels (an indicator matrix), use stct.MultiLabelCorrector",
            UserWarning,
            stacklevel=2,
        )


def refuse_collections(y: Any) -> None:
    """Refuse lists and sets of labels for each row: they are several labels."""
    if not isinstance(y, list | tuple | np.ndarray) or getattr(y, "ndim", 1) != 1:
        return
    for row, value in enumerate(y):
        if isinstance(value, list | set):
            raise ValueError(
                f"row {row} has a {type(value).__name__} of labels: several labels for "
                f"a row. {_MULTI}"
            )
        if value is not None:
            return


_MULTI = "They are corrected by --multi-label list or stct.MultiLabelCorrector"


def _several(names: Sequence[Any], separator: str) -> str:
    """Refuse several labels in one, or warn where the character is usual in names."""
    examples = few([n for n in names if isinstance(n, str) and separator in n], 2)
    found = (
        f"labels such as {examples} look like several labels for a row, with the "
        f"separator {separator!r}. They are corrected by --multi-label {separator!r} "
        f"or stct.MultiLabelCorrector({separator!r})"
    )
    if separator == ",":
        return f"{found}; here each combination is taken for a class"
    raise ValueError(f"{found}; if each combination is a class, write it otherwise")


def _cut(name: Any, most: int = 30) -> str:
    text = " ".join(str(name).split())
    return text if len(text) <= most else f"{text[:most]}..."


def _amounts(numbers: NDArray[np.float64]) -> bool:
    """Tell whether many whole numbers (sorted) are no codes from 0 or 1."""
    whole = bool((numbers == np.floor(numbers)).all())
    if not whole or len(numbers) <= FEW_MEASURED:
        return False
    span = numbers[-1] - numbers[0] + 1.0
    return bool(numbers[0] not in (0.0, 1.0) or span > 1.25 * len(numbers))
