"""The rows of the review in full: their text and columns, neighbours and pictures."""

import base64
from typing import Any

import numpy as np

from stct.data.columns import is_missing
from stct.data.corrected import Corrected
from stct.numeric.types import Ints
from stct.report.store import Review

_MOST_COLUMNS = 4
_LONGEST_CELL = 80  # characters
_LONGEST_TEXT = 450
_LONGEST_SNIPPET = 90
_TEXT_FROM = 25  # characters on average: a column of text, not of values
_PICTURED_NEIGHBOURS = 5
_TEXT_ROOM = 2_000_000  # characters for rows without neighbours and pictures
_ITEM_CHARACTERS = 80  # of each such row beside its text


def describe_rows(corrected: Corrected, review: Review, rows: Ints) -> dict[str, Any]:
    """Give evidence for the detailed rows among the page's ``rows``."""
    place = np.full(len(corrected.given), -1, dtype=np.intp)
    place[rows] = np.arange(len(rows))
    detailed = review.detailed.tolist()
    others = rows[~np.isin(rows, review.detailed)].tolist()
    text_name, text, columns = _columns_to_show(corrected, review, detailed)
    pictures = _Pictures(review.pictures)
    near: dict[int, int] = {}  # row -> place in the table of neighbours
    items = []
    for i, row in enumerate(detailed):
        neighbours = [
            near.setdefault(other, len(near)) for other in review.neighbours[i].tolist()
        ]
        known = review.candidates[i] >= 0
        items.append(
            {
                "at": int(place[row]),
                "text": text[i] if text else None,
                "cells": [cells[i] for _, cells in columns],
                "near": neighbours,
                "candidates": review.candidates[i][known].tolist(),
                "odds": [round(float(p), 4) for p in review.candidate_odds[i][known]],
                "image": pictures.add(row),
            }
        )
    items += _texts_only(corrected, text_name, columns, others, place)
    shown = set(review.neighbours[:, :_PICTURED_NEIGHBOURS].ravel().tolist())
    return {
        "columns": [name for name, _ in columns],
        "has_images": bool(review.about.get("has_images")),
        "items": items,
        "pictured": review.about.get("num_first", len(detailed)),
        "near": {
            "id": [corrected.ids[row] for row in near],
            "given": [int(corrected.given[row]) for row in near],
            "label": [int(corrected.label[row]) for row in near],
            "image": [pictures.add(row) if row in shown else -1 for row in near],
            "text": _snippets(corrected, text_name, list(near), shown),
        },
        "pictures": pictures.texts,
    }


def describe_audit_rows(corrected: Corrected, review: Review) -> dict[str, Any] | None:
    """Give the rows to verify, without what others have said about them.

    The given and the suggested label are there to be shown once a person has chosen.
    """
    rows = review.audit_rows.tolist()
    if not rows:
        return None
    _, text, columns = _columns_to_show(corrected, review, rows)
    pictures = _Pictures(review.pictures)
    items = [
        {
            "id": corrected.ids[row],
            "given": int(corrected.given[row]),
            "label": int(corrected.label[row]),
            "weight": f"{weight:.6f}",
            "text": text[i] if text else None,
            "cells": [cells[i] for _, cells in columns],
            "image": pictures.add(row),
        }
        for i, (row, weight) in enumerate(zip(rows, review.audit_weight, strict=True))
    ]
    return {
        "items": items,
        "columns": [name for name, _ in columns],
        "pictures": pictures.texts,
    }


def _texts_only(
    corrected: Corrected,
    text_name: str | None,
    columns: list[tuple[str, list[str]]],
    rows: list[int],
    place: Ints,
) -> list[dict[str, Any]]:
    """Give the text and columns of rows without other evidence, as far as room is."""
    names = [name for name, _ in columns]
    if text_name is None and not names:
        return []
    values = {name: corrected.table.values(name) for name in names}
    texts = None if text_name is None else corrected.table.values(text_name)
    items: list[dict[str, Any]] = []
    room = _TEXT_ROOM
    for row in rows:
        cells = [_cut(_as_text(values[name][row]), _LONGEST_CELL) for name in names]
        text = None
        if texts is not None:
            text = _cut(_as_text(texts[row]), _LONGEST_TEXT)
        room -= len(text or "") + sum(map(len, cells)) + _ITEM_CHARACTERS
        if room < 0:
            break
        items.append(
            {
                "at": int(place[row]),
                "text": text,
                "cells": cells,
                "near": [],
                "candidates": [],
                "odds": [],
                "image": -1,
            }
        )
    return items


def _as_text(value: Any) -> str:
    return "" if is_missing(value) else str(value)


def neighbours_to_picture(neighbours: Ints) -> list[int]:
    """List the neighbours that get a picture, those of the first rows first."""
    return neighbours[:, :_PICTURED_NEIGHBOURS].ravel().tolist()


class _Pictures:
    """Pictures as data addresses, each once."""

    def __init__(self, pictures: dict[int, bytes]) -> None:
        self._pictures = pictures
        self._places: dict[int, int] = {}
        self.texts: list[str] = []

    def add(self, row: int) -> int:
        """Give the place of a row's picture, -1 if it has none."""
        if row not in self._pictures:
            return -1
        if row not in self._places:
            data = self._pictures[row]
            kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
            text = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
            self._places[row] = len(self.texts)
            self.texts.append(text)
        return self._places[row]


def _columns_to_show(
    corrected: Corrected, review: Review, rows: list[int]
) -> tuple[str | None, list[str] | None, list[tuple[str, list[str]]]]:
    """Choose one column of running text and a few others; no lists, no images."""
    columns = []
    for name in corrected.other_columns:
        if name == review.about.get("image_column"):
            continue
        values = corrected.table.values(name)
        cells = [values[row] for row in rows]
        filled = [cell for cell in cells if not is_missing(cell)]
        if filled and not any(isinstance(cell, list | dict | bytes) for cell in filled):
            columns.append((name, ["" if is_missing(c) else str(c) for c in cells]))
    lengths = [float(np.mean([len(cell) for cell in cells])) for _, cells in columns]
    text_name = text = None
    if lengths and max(lengths) >= _TEXT_FROM:
        text_name, text = columns.pop(int(np.argmax(lengths)))
        text = [_cut(cell, _LONGEST_TEXT) for cell in text]
    return (
        text_name,
        text,
        [
            (name, [_cut(cell, _LONGEST_CELL) for cell in cells])
            for name, cells in columns[:_MOST_COLUMNS]
        ],
    )


def _snippets(
    corrected: Corrected, name: str | None, rows: list[int], shown: set[int]
) -> list[str] | None:
    """Give the start of the neighbours' texts, where there are texts."""
    if name is None:
        return None
    values = corrected.table.values(name)
    return [
        _cut(str(values[row]), _LONGEST_SNIPPET)
        if row in shown and not is_missing(values[row])
        else ""
        for row in rows
    ]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
