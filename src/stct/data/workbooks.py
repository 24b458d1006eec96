"""The first sheet of an .xlsx workbook, as texts."""

import io
import warnings
import zipfile
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from stct.data.files import reading
from stct.data.npy import check_member

_MOST_COLUMNS = 2**14  # of Excel itself


def read_sheet(path: Path, data: bytes) -> tuple[list[list[str]], list[str]]:
    """Give the rows of the first sheet, header first, and notes.

    Numbers are written as short as they can be, dates as 2024-01-31; a formula is
    the value that was saved with it.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ValueError(
            f"{path}: reading .xlsx needs openpyxl: pip install 'stct[excel]'"
        ) from error
    with (
        reading(path, "not a readable .xlsx workbook"),
        warnings.catch_warnings(),  # of styles that it does not know
        zipfile.ZipFile(io.BytesIO(data)) as parts,
    ):
        warnings.simplefilter("ignore")
        for part in parts.infolist():
            check_member(part)
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        names = book.sheetnames
        found = book.worksheets[0].iter_rows(values_only=True)
        rows = [[_text(cell) for cell in _cut(row)] for row in found]
        book.close()
    rows = [row for row in rows if any(row)]
    width = max((len(_stripped(row)) for row in rows), default=0)
    rows = [(row + [""] * width)[:width] for row in rows]
    notes = []
    if len(names) > 1:
        notes.append(
            f"{path.name} has {len(names)} sheets; the first was read, {names[0]!r}"
        )
    return rows, notes


def _cut(row: Any) -> list[Any]:
    """Refuse a row that only says that it is wide."""
    if len(row) > _MOST_COLUMNS:
        raise ValueError(f"a row of {len(row):,} cells")
    return list(row)


def _stripped(row: list[str]) -> list[str]:
    """Leave out the empty cells at the end."""
    last = max((i for i, cell in enumerate(row) if cell), default=-1)
    return row[: last + 1]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        whole = value.time() == time()
        return value.date().isoformat() if whole else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
