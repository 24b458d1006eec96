"""The folder of one correction, read back: for the report and for other tools."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data import summary_file as summaries
from stct.data.arrays import Array, row_blocks
from stct.data.columns import (
    check_ids,
    encode_label,
    ids_as_text,
    is_missing,
    is_text_column,
)
from stct.data.digests import digest_file
from stct.data.npy import open_npz
from stct.data.outputs import SUMMARY
from stct.data.summary_file import ACTIONS
from stct.data.tables import FORMATS, Table, read_table

OUR_COLUMNS = ("id", "given", "label", "confidence", "action")
SOFT_LABELS = "soft_labels.npz"


@dataclass(frozen=True)
class Corrected:
    """Everything that a correction wrote, with labels as codes of classes."""

    folder: Path
    summary: dict[str, Any]
    table: Table  # labels.*: id, given, label, confidence, action, the caller's own
    ids: list[str]
    classes: list[Any]  # C labels in their own type, then those nobody should have
    given: NDArray[np.intp]  # (n,), -1 where the label is missing
    label: NDArray[np.intp]  # (n,), -1 where it is still missing
    confidence: NDArray[np.float64]  # (n,)
    action: NDArray[np.str_]  # (n,)

    @property
    def text_only(self) -> bool:
        """Whether the label column can hold nothing but text."""
        return is_text_column(self.table, "label")

    @property
    def other_columns(self) -> list[str]:
        """The caller's own columns."""
        return [name for name in self.table.columns if name not in OUR_COLUMNS]

    def take(self, rows: NDArray[np.intp]) -> "Corrected":
        """Give some rows, in this order; soft labels stay those of all rows."""
        return replace(
            self,
            table=self.table.take(rows.tolist()),
            ids=[self.ids[row] for row in rows],
            given=self.given[rows],
            label=self.label[rows],
            confidence=self.confidence[rows],
            action=self.action[rows],
        )

    def encoded(self, label: Any) -> str:
        """Write a label as patches and decisions do."""
        return encode_label(label, text_only=self.text_only)

    def soft_label_blocks(self) -> Iterator[tuple[slice, Array]] | None:
        """Give Pr[clean | all] in blocks of rows (rows, C), where it was written."""
        path = self.folder / SOFT_LABELS
        if not path.exists():
            return None
        shape = self.table.num_rows, len(self.summary["class_names"])
        with open_npz(path) as archive:
            ids = archive.read("ids")
            if ids.shape != shape[:1] or list(map(str, ids.tolist())) != self.ids:
                raise ValueError(f"{path}: its ids are not those of the labels")
            if "probabilities" not in archive.names:
                return None  # of many classes the top is written
        return _checked(path, row_blocks(path, "probabilities", shape))


def _checked(
    path: Path, blocks: Iterator[tuple[slice, Array]]
) -> Iterator[tuple[slice, Array]]:
    for rows, block in blocks:
        if not ((block >= 0.0) & (block <= 1.001)).all():
            raise ValueError(f"{path}: not all are probabilities")
        yield rows, block


def read_corrected(folder: Path) -> Corrected:
    """Read the output folder of 'stct correct', 'stct train' or 'stct demo'."""
    summary = read_summary(folder)
    paths = [folder / f"labels.{ending}" for ending in FORMATS]
    found = [path for path in paths if path.exists()]
    if not found:
        raise ValueError(f"{folder}: no labels.csv, .tsv, .parquet or .jsonl in it")
    path = found[0]
    known = summary.get("sha256")  # none before version 0.2
    if known is not None and known.get(path.name) != digest_file(path):
        raise ValueError(
            f"{path}: not as it was written, by its digest in {SUMMARY}; correct the "
            "labels again"
        )
    table = read_table(path)
    if table.num_rows != summary["rows"]:
        raise ValueError(f"{path}: {table.num_rows} rows, {SUMMARY} says otherwise")
    lacking = [name for name in OUR_COLUMNS if name not in table.columns]
    if lacking:
        raise ValueError(f"{path}: no column {lacking[0]!r}; stct did not write it")
    classes = list(summary["class_names"])
    if table.format in ("csv", "tsv"):  # where numbers have become text
        classes = [str(label) for label in classes]
    try:
        confidence = np.array(table.values("confidence"), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: column 'confidence' must be numbers") from error
    if not ((confidence >= 0.0) & (confidence <= 1.0)).all():
        raise ValueError(f"{path}: column 'confidence' must be numbers from 0 to 1")
    action = np.array(table.values("action"), dtype=object)
    odd = ~np.isin(action, ACTIONS)
    if odd.any():
        raise ValueError(
            f"{path}: column 'action' must be {', '.join(ACTIONS)}, got "
            f"{str(action[odd][0])[:40]!r}"
        )
    ids = ids_as_text(table.values("id"), f"{path}: column 'id'")
    check_ids(ids, f"{path}: column 'id'")
    return Corrected(
        folder,
        summary,
        table,
        ids,
        classes,
        _codes(table, "given", classes),
        _codes(table, "label", classes),
        confidence,
        action.astype(np.str_),
    )


def read_summary(folder: Path) -> dict[str, Any]:
    """Read the summary of an output folder."""
    path = folder / SUMMARY
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder")
    if not path.exists():
        raise ValueError(
            f"{folder}: no {SUMMARY} in it; give the output folder of 'stct correct', "
            "'stct train' or 'stct demo'"
        )
    summary = summaries.read_summary(path)
    if "kind" in summary:
        raise ValueError(
            f"{folder}: holds labels that are no classes ({summary['kind']}), which "
            "have no report; look at its summary"
        )
    summaries.check_correction(summary, path)
    return summary


def _codes(table: Table, name: str, classes: list[Any]) -> NDArray[np.intp]:
    """Give every label of a column as its place among the classes.

    A label that only a row has whose label a person replaced is no class of the
    correction; it is appended.
    """
    # 1, 1.0, true and "1" are four classes; their encoded texts differ.
    keys = [encode_label(label, text_only=False) for label in classes]
    place = {key: code for code, key in enumerate(keys)}
    codes = np.full(table.num_rows, -1, dtype=np.intp)
    known: dict[Any, int] = {}
    for row, value in enumerate(table.values(name)):
        if is_missing(value) or (value == "" and table.format in ("csv", "tsv")):
            continue
        code = known.get((type(value), value))
        if code is None:
            key = encode_label(value, text_only=False)
            if key not in place:
                place[key] = len(classes)
                classes.append(value)
            code = known[type(value), value] = place[key]
        codes[row] = code
    return codes
