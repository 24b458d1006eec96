"""Tables of four formats, read and written without changing a value.

csv and tsv hold text only, so ``007``, ``NA`` and ``1.0`` stay what they are; jsonl
keeps JSON's own types; parquet keeps its Arrow columns, types and schema. Text may be
compressed (.csv.gz); an .xlsx workbook is read as csv.
"""

import csv
import gc
import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from stct.data.files import brief, reading
from stct.data.table_text import (
    BOM,
    GZ,
    SEPARATORS,
    decode,
    read_bytes,
    separator,
    write_bytes,
)
from stct.data.workbooks import read_sheet

FORMATS = ("csv", "tsv", "parquet", "jsonl")
_XLSX = "xlsx"  # is read only
# Equal cells take no room in parquet, so a few rows for each byte say nothing.
_FREE_ROWS, _ROWS_PER_BYTE = 10_000_000, 1_000
_FREE_BYTES, _MOST_TIMES = 2**30, 200

# A column is a list of Python values, or in parquet tables also an Arrow array.
Column = Any


class Absent(Enum):
    """What a jsonl row holds for a key that it does not have."""

    ABSENT = "absent"


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, and what is needed to write them back alike."""

    format: str
    columns: dict[str, Column]
    num_rows: int
    newline: str = "\n"  # csv, tsv
    bom: bool = False  # csv, tsv
    sep: str | None = None  # csv, tsv: between the columns, if not the usual one
    encoding: str = "utf-8"  # csv, tsv, jsonl
    notes: tuple[str, ...] = ()  # what was guessed, in sentences
    schema: Any = None  # parquet: the Arrow schema of the file

    def values(self, name: str) -> list[Any]:
        """Give one column as Python values."""
        column = self.columns[name]
        if isinstance(column, list):
            return column
        try:
            return list(column.to_pylist())
        except MemoryError:
            raise
        except Exception as error:  # dates before Christ, times that no day has
            raise ValueError(
                f"column {name!r} holds {column.type} that Python cannot show: "
                f"{brief(error)}"
            ) from error

    def typed(self, name: str, values: Sequence[Any]) -> Column:
        """Make a new column of the type that column ``name`` has."""
        if self.format != "parquet":
            return list(values)
        import pyarrow as pa

        kind = self.columns[name].type
        try:
            return pa.chunked_array([pa.array(values, type=kind)])
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise ValueError(
                f"column {name!r} holds {kind} and cannot take a new value: {error}"
            ) from error

    def with_values(self, name: str, values: Sequence[Any]) -> "Table":
        """Replace the values of one column, keeping its type."""
        return replace(self, columns={**self.columns, name: self.typed(name, values)})

    def take(self, rows: Sequence[int]) -> "Table":
        """Keep these rows only, in this order."""
        columns = {
            name: [column[i] for i in rows]
            if isinstance(column, list)
            else column.take(rows)
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns, num_rows=len(rows))


def table_format(path: Path) -> str:
    """Tell the format of a table from the end of its name."""
    name = path.name.lower().removesuffix(GZ)
    found = Path(name).suffix.removeprefix(".")
    packed = path.suffix.lower() == GZ and found == "parquet"
    if found not in FORMATS or packed:
        raise ValueError(
            f"{path}: a table must end in .csv, .tsv, .parquet or .jsonl (or .csv.gz, "
            f".tsv.gz, .jsonl.gz, or .xlsx to read), got {path.suffix or 'no ending'!r}"
        )
    return found


def read_table(
    path: Path, *, sep: str | None = None, encoding: str | None = None
) -> Table:
    """Read a csv, tsv, parquet or jsonl file, or the first sheet of an .xlsx.

    Parameters
    ----------
    sep : str, optional
        What is between the columns of a csv or tsv file; else it is guessed.
    encoding : str, optional
        Of text; without it UTF-8, or else a guess.
    """
    book = path.suffix.lower() == f".{_XLSX}"
    found = "csv" if book else table_format(path)
    data = read_bytes(path)
    if sep is not None and (book or found not in SEPARATORS):
        raise ValueError(f"{path}: --sep is for .csv and .tsv files")
    if encoding is not None and (book or found == "parquet"):
        raise ValueError(f"{path}: --encoding is for .csv, .tsv and .jsonl files")
    if found == "parquet":
        return _read_parquet(path, data)
    with _no_garbage_collection():
        if book:
            rows, said = read_sheet(path, data)
            return _from_rows(path, rows, notes=tuple(said))
        text, encoding, notes = decode(path, data, encoding)
        if found == "jsonl":
            table = _read_jsonl(path, text)
        else:
            between, more = separator(path, text.removeprefix(BOM), found, sep)
            table = _read_csv(path, text, found, between)
            notes += more
    return replace(table, encoding=encoding, notes=tuple(notes))


def write_table(path: Path, table: Table, *, compressed: bool = False) -> None:
    """Write a table in its own format."""
    if table.format == "parquet":
        path.write_bytes(_parquet_bytes(table))
        return
    text = _jsonl_text(table) if table.format == "jsonl" else _csv_text(table)
    write_bytes(path, text, table.encoding, compressed=compressed)


def require_column(table: Table, path: Path, name: str, option: str) -> None:
    """Raise when a table has no column of this name."""
    if name not in table.columns:
        raise ValueError(
            f"{path}: no column {name!r} (set {option}); "
            f"its columns are {', '.join(table.columns)}"
        )


def _read_csv(path: Path, text: str, kind: str, sep: str) -> Table:
    bom = text.startswith(BOM)
    lines = io.StringIO(text.removeprefix(BOM), newline="")
    csv.field_size_limit(sys.maxsize)  # a cell may hold a long embedding
    reader = csv.reader(lines, delimiter=sep, strict=True)
    try:
        header = next(reader, [])
        # In a table of one column a blank line is a row without a value.
        rows = [row or [""] for row in reader if row or len(header) == 1]
    except csv.Error as error:
        raise ValueError(f"{path}: line {reader.line_num}: {error}") from error
    table = _from_rows(path, [header, *rows], kind)
    newline = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
    return replace(table, newline=newline, bom=bom, sep=sep)


def _from_rows(
    path: Path, rows: list[list[str]], kind: str = "csv", notes: tuple[str, ...] = ()
) -> Table:
    header, *rows = rows or [[]]
    _check_names(path, header)
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(
                f"{path}: row {i} (counting from 0, without the header) has "
                f"{len(row)} cells, the header has {len(header)} (--sep sets what is "
                "between them)"
            )
    cells = [list(column) for column in zip(*rows, strict=True)]
    columns = dict(zip(header, cells or [[] for _ in header], strict=True))
    return Table(kind, columns, len(rows), notes=notes)


def _csv_text(table: Table) -> str:
    columns = [table.values(name) for name in table.columns]
    # Python 3.11 does not quote a lone carriage return by itself.
    odd = any("\r" in v for c in columns for v in c if isinstance(v, str))
    out = io.StringIO(newline="")
    writer = csv.writer(
        out,
        delimiter=table.sep or SEPARATORS[table.format],
        lineterminator=table.newline,
        quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL,
    )
    writer.writerow(table.columns)
    writer.writerows(zip(*columns, strict=True))
    return (BOM if table.bom else "") + out.getvalue()


def _read_jsonl(path: Path, text: str) -> Table:
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(text.removeprefix(BOM).split("\n"), start=1):
        if line.strip():
            try:
                rows.append(_json_row(line))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path}: line {number}: {brief(error)}") from error
    names = list(dict.fromkeys(name for row in rows for name in row))
    if names:
        _check_names(path, names)
    columns = {name: [row.get(name, Absent.ABSENT) for row in rows] for name in names}
    return Table("jsonl", columns, len(rows))


def _json_row(line: str) -> dict[str, Any]:
    row = json.loads(line, object_pairs_hook=_unique_keys)
    if not isinstance(row, dict):
        raise ValueError('each line must be one JSON object such as {"label": "cat"}')
    if "\\u" in line:
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError("half of a surrogate pair is not text") from error
    return row


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} comes twice")
    return row


def _jsonl_text(table: Table) -> str:
    names = list(table.columns)
    columns = [table.values(name) for name in names]
    rows = zip(*columns, strict=True) if columns else [()] * table.num_rows
    lines = []
    for values in rows:
        pairs = zip(names, values, strict=True)
        row = {name: value for name, value in pairs if value is not Absent.ABSENT}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(lines)


def _read_parquet(path: Path, data: bytes) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    with reading(path, "not a readable parquet file"):
        file = parquet.ParquetFile(pa.BufferReader(data))
        check_row_groups(file.metadata, len(data))
        table = file.read()
        table.validate(full=True)
    _check_names(path, table.schema.names)
    columns = dict(zip(table.schema.names, table.columns, strict=True))
    return Table("parquet", columns, table.num_rows, schema=table.schema)


def check_row_groups(metadata: Any, num_bytes: int) -> None:
    """Refuse numbers of rows that a file of so many bytes hardly holds."""
    if metadata.num_rows > max(_FREE_ROWS, _ROWS_PER_BYTE * num_bytes):
        raise ValueError(f"{metadata.num_rows:,} rows in {num_bytes:,} bytes")
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    size = sum(max(group.total_byte_size, 0) for group in groups)
    if size > max(_FREE_BYTES, _MOST_TIMES * num_bytes):
        raise ValueError(f"{num_bytes:,} bytes that inflate to {size:,}")


def _parquet_bytes(table: Table) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    arrays = {
        name: pa.array(column) if isinstance(column, list) else column
        for name, column in table.columns.items()
    }
    fields = []
    for name, array in arrays.items():
        known = name in table.schema.names and table.schema.field(name)
        same = known and known.type == array.type
        fields.append(known if same else pa.field(name, array.type))
    metadata = dict(table.schema.metadata or {})
    if list(arrays) != table.schema.names:
        metadata.pop(b"pandas", None)  # it describes exactly the old columns
    schema = pa.schema(fields, metadata=metadata)
    out = io.BytesIO()
    parquet.write_table(pa.table(list(arrays.values()), schema=schema), out)
    return out.getvalue()


def _check_names(path: Path, names: Sequence[str]) -> None:
    if not names:
        raise ValueError(f"{path}: no table in it: there are no columns")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ValueError(f"{path}: the column name {twice[0]!r} comes twice")


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Pause the collector: making millions of rows is three times as fast without."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
