"""What the columns of a table hold: numbers, dates, categories, texts or nothing."""

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stct.data.columns import is_missing
from stct.data.tables import Table

NUMBER, DATE, CATEGORY, TEXT = "number", "date", "category", "text"
CONSTANT, LISTS = "constant", "lists"
KINDS = (NUMBER, DATE, CATEGORY)  # those that are features

_NOTHING = ("", "na", "n/a", "nan", "null", "none", "?", "-")  # no number, no date
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_COMMA = re.compile(r"[+-]?\d+,\d+")  # as a decimal point
_CODE = re.compile(r"[+-]?0\d+")  # 00123 is a name and not a number
_MOST_VALUES = 0.5  # of the rows; a category has fewer different values
_FEW_VALUES = 50  # or at most so many


class Columns(NamedTuple):
    """Columns by kind, each as one array of n rows."""

    numbers: dict[str, NDArray[np.float64]]  # NaN where there is none
    dates: dict[str, NDArray[np.float64]]  # days since 1970, NaN where there is none
    categories: dict[str, list[str]]  # "" where there is none


def kind_of(table: Table, name: str) -> str:
    """Tell what a column holds, from all of its values."""
    values = [value for value in table.values(name) if not _is_nothing(value)]
    distinct = set(map(str, values))
    if len(distinct) + (len(values) < table.num_rows) < 2:
        return CONSTANT
    if any(isinstance(value, list | dict) or _is_list(value) for value in values[:20]):
        return LISTS
    if np.isfinite(as_numbers(values)).all():
        return NUMBER
    if np.isfinite(as_days(values)).all():
        return DATE
    few = len(distinct) <= max(_FEW_VALUES, 2)
    repeats = len(distinct) <= _MOST_VALUES * len(values)
    sentences = sum(len(text.split()) > 3 for text in distinct) > len(distinct) / 2
    return CATEGORY if repeats and (few or not sentences) else TEXT


def read_columns(table: Table, kinds: dict[str, str], where: str) -> Columns:
    """Give the values of columns whose kinds are known.

    Raises
    ------
    ValueError
        If a column is not there, or a value is not of the kind of its column.
    """
    found = Columns({}, {}, {})
    for name, kind in kinds.items():
        if name not in table.columns:
            raise ValueError(
                f"{where}: no column {name!r} (set --feature-columns); "
                f"its columns are {', '.join(table.columns)}"
            )
        values = table.values(name)
        if kind == CATEGORY:
            found.categories[name] = [_as_category(value) for value in values]
            continue
        numbers = as_numbers(values) if kind == NUMBER else as_days(values)
        for row in np.flatnonzero(~np.isfinite(numbers)):
            if not _is_nothing(values[row]):
                raise ValueError(
                    f"{where}: column {name!r}, row {row} (counting from 0): "
                    f"{str(values[row])[:40]!r} is not a finite {kind}"
                )
        (found.numbers if kind == NUMBER else found.dates)[name] = numbers
    return found


def as_numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    """Give values as numbers, NaN for what is none."""
    texts = [value for value in values if isinstance(value, str)]
    comma = any(_COMMA.fullmatch(text.strip()) for text in texts) and not any(
        "." in text for text in texts
    )
    return np.array([_as_number(value, comma=comma) for value in values], dtype=float)


def as_days(values: Sequence[Any]) -> NDArray[np.float64]:
    """Give dates as days since 1970, NaN for what is none."""
    usable = [
        isinstance(value, date | datetime)
        or (isinstance(value, str) and bool(_ISO_DATE.fullmatch(value.strip())))
        for value in values
    ]
    texts = [
        str(value) if ok else None for value, ok in zip(values, usable, strict=True)
    ]
    times = pd.to_datetime(
        pd.Series(texts, dtype=object), format="ISO8601", errors="coerce", utc=True
    )
    seconds = times.dt.tz_localize(None).to_numpy().astype("datetime64[s]")
    days = seconds.astype(np.int64) / 86_400
    return np.where(np.isnat(seconds), np.nan, days)


def _as_number(value: Any, *, comma: bool) -> float:
    if isinstance(value, bool | int | float):
        return float(value)
    if is_missing(value) or not isinstance(value, str):
        return np.nan
    text = value.strip()
    if _CODE.fullmatch(text) or "_" in text:
        return np.nan
    try:
        return float(text.replace(",", ".") if comma else text)
    except ValueError:
        return np.nan


def _as_category(value: Any) -> str:
    return "" if is_missing(value) else str(value).strip()


def _is_nothing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in _NOTHING
    return is_missing(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("[") and value.endswith("]")
