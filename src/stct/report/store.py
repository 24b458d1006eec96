"""``review.npz``: what the report needs beyond the labels, so that it can be rebuilt.

Positions on the map, nearest neighbours of the rows in the review, their pictures,
rows a person has locked, and metrics of training rounds. Small: a few bytes for each
row and the pictures.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.arrays import read_arrays, write_arrays
from stct.data.files import parse_json, reading
from stct.data.schema import (
    Field,
    check_fields,
    is_count,
    is_number,
    is_text,
    list_of,
    maybe,
    object_of,
)
from stct.numeric.types import Floats, Ints
from stct.report.neighbours import Map

REVIEW = "review.npz"


@dataclass(frozen=True)
class Review:
    """What cannot be made again from the other files of an output folder."""

    locked: NDArray[np.bool_]  # (n,)
    detailed: Ints  # (R,) rows with evidence, in review order
    candidates: Ints  # (R, c) most probable classes, most probable first
    candidate_odds: Floats  # (R, c) their probabilities
    neighbours: Ints  # (R, k) rows, nearest first; k is 0 without embeddings
    map: Map | None
    pictures: dict[int, bytes] = field(default_factory=dict)
    # image_column, num_missing, num_left_out, note, metrics
    about: dict[str, Any] = field(default_factory=dict)
    audit_rows: Ints = field(default_factory=lambda: np.zeros(0, np.intp))  # (m,)
    audit_weight: Floats = field(default_factory=lambda: np.zeros(0))  # (m,)


def write_review(path: Path, review: Review) -> None:
    """Write ``review.npz``; the same review gives the same bytes."""
    rows = sorted(review.pictures)
    data = b"".join(review.pictures[row] for row in rows)
    arrays = {
        "about": _bytes(json.dumps(review.about).encode()),
        "locked": np.packbits(review.locked),
        "num_rows": np.array(len(review.locked)),
        "detailed": review.detailed.astype(np.int64),
        "candidates": review.candidates.astype(np.int32),
        "candidate_odds": review.candidate_odds.astype(np.float32),
        "neighbours": review.neighbours.astype(np.int64),
        "picture_rows": np.array(rows, dtype=np.int64),
        "picture_sizes": np.array([len(review.pictures[row]) for row in rows], int),
        "picture_bytes": _bytes(data),
    }
    if len(review.audit_rows):
        arrays["audit_rows"] = review.audit_rows.astype(np.int64)
        arrays["audit_weight"] = review.audit_weight.astype(np.float64)
    if review.map is not None:
        arrays |= {
            "map_points": review.map.points.astype(np.float32),
            "map_explained": np.array(review.map.explained),
            "map_sample": review.map.sample.astype(np.int64),
            "map_sample_points": review.map.sample_points.astype(np.float32),
        }
    write_arrays(path, arrays)


def read_review(path: Path, num_rows: int, num_classes: int) -> Review:
    """Read ``review.npz`` and check that it belongs to a table of ``num_rows``."""
    arrays = read_arrays(path)
    with reading(path, "does not fit these labels"):
        if int(arrays["num_rows"]) != num_rows:
            raise ValueError(f"it has {arrays['num_rows']} rows, the labels {num_rows}")
        _check_arrays(arrays, num_rows, num_classes)
        ends = np.cumsum(arrays["picture_sizes"], dtype=np.int64)
        data = arrays["picture_bytes"].tobytes()
        starts = [0, *ends.tolist()]
        rows = arrays["picture_rows"].tolist()
        pieces = [data[a:b] for a, b in zip(starts, starts[1:], strict=False)]
        flat = None
        if "map_points" in arrays:
            flat = Map(
                arrays["map_points"],
                arrays["map_explained"].tolist(),
                arrays["map_sample"],
                arrays["map_sample_points"],
            )
        about = parse_json(arrays["about"].tobytes().decode(), path)
        check_fields(about, _ABOUT, path)
        return Review(
            np.unpackbits(arrays["locked"], count=num_rows).astype(bool),
            arrays["detailed"],
            arrays["candidates"],
            arrays["candidate_odds"],
            arrays["neighbours"],
            flat,
            dict(zip(rows, pieces, strict=True)),
            about,
            arrays.get("audit_rows", np.zeros(0, np.intp)),
            arrays.get("audit_weight", np.zeros(0)),
        )


def _check_arrays(arrays: dict[str, Any], n: int, num_classes: int) -> None:
    """Refuse arrays of another shape, and numbers of rows or classes that are none."""
    detailed, pictures = arrays["detailed"], arrays["picture_rows"]
    count, sizes = len(detailed), arrays["picture_sizes"]
    sample = arrays.get("map_sample", np.zeros(0, np.int64))
    expected: dict[str, tuple[str, tuple[int | None, ...]]] = {
        "about": ("u", (None,)),
        "locked": ("u", (-(-n // 8),)),
        "num_rows": ("i", ()),
        "detailed": ("i", (None,)),
        "candidates": ("i", (count, None)),
        "candidate_odds": ("f", arrays["candidates"].shape),
        "neighbours": ("i", (count, None)),
        "picture_rows": ("i", (None,)),
        "picture_sizes": ("i", (len(pictures),)),
        "picture_bytes": ("u", (int(sizes.sum()),)),
        "audit_rows": ("i", (None,)),
        "audit_weight": ("f", (len(arrays.get("audit_rows", ())),)),
        "map_points": ("f", (n, 2)),
        "map_explained": ("f", (None,)),
        "map_sample": ("i", (None,)),
        "map_sample_points": ("f", (len(sample), None)),
    }
    groups = [{k for k in expected if k.startswith(p)} for p in ("map", "audit")]
    needed = set(expected) - groups[0] - groups[1]
    others = set(arrays) - needed
    partly = any(0 < len(others & group) < len(group) for group in groups)
    if not needed <= set(arrays) <= set(expected) or partly:
        raise ValueError("other arrays than a review has")
    for name, (kind, shape) in expected.items():
        array = arrays.get(name)
        if array is None:
            continue
        same = len(shape) == array.ndim and all(
            wanted in (None, found)
            for wanted, found in zip(shape, array.shape, strict=True)
        )
        if array.dtype.kind != kind or not same:
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
    for name, low, stop in (
        ("detailed", 0, n),
        ("picture_rows", 0, n),
        ("map_sample", 0, n),
        ("audit_rows", 0, n),
        ("neighbours", 0, n),
        ("candidates", -1, num_classes),
        ("picture_sizes", 0, 2**31),
    ):
        array = arrays.get(name)
        if array is not None and ((array < low) | (array >= stop)).any():
            raise ValueError(f"{name} has a number not from {low} to {stop - 1}")
    for name, rows in (("detailed", detailed), ("picture_rows", pictures)):
        if len(np.unique(rows)) < len(rows):
            raise ValueError(f"{name} has a row twice")


_ABOUT = {
    "key": Field("text", is_text, required=False),
    "title": Field("null or text", maybe(is_text), required=False),
    "metrics": Field(
        "numbers by name for each round",
        list_of(object_of(is_number)),
        required=False,
    ),
    "num_first": Field("a whole number", is_count, required=False),
    "has_images": Field("true or false", lambda v: type(v) is bool, required=False),
    "image_column": Field("null or text", maybe(is_text), required=False),
    "image_folder": Field("null or text", maybe(is_text), required=False),
    "image_note": Field("null or text", maybe(is_text), required=False),
    "num_missing": Field("a whole number", is_count, required=False),
    "num_left_out": Field("a whole number", is_count, required=False),
}


def picture_notes(review: Review) -> list[str]:
    """Say which pictures are missing."""
    about = review.about
    notes = [about["image_note"]] if about.get("image_note") else []
    if about.get("num_missing"):
        notes.append(
            f"{about['num_missing']:,} image files are missing or cannot be read; "
            "a placeholder stands for each"
        )
    if about.get("num_left_out"):
        notes.append(
            f"{about['num_left_out']:,} pictures were left out to keep the file small"
        )
    return notes


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)
