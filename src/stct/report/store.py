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


def read_review(path: Path, num_rows: int) -> Review:
    """Read ``review.npz`` and check that it belongs to a table of ``num_rows``."""
    arrays = read_arrays(path)
    try:
        if int(arrays["num_rows"]) != num_rows:
            raise ValueError(f"it has {arrays['num_rows']} rows, the labels {num_rows}")
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
        return Review(
            np.unpackbits(arrays["locked"], count=num_rows).astype(bool),
            arrays["detailed"],
            arrays["candidates"],
            arrays["candidate_odds"],
            arrays["neighbours"],
            flat,
            dict(zip(rows, pieces, strict=True)),
            json.loads(arrays["about"].tobytes()),
            arrays.get("audit_rows", np.zeros(0, np.intp)),
            arrays.get("audit_weight", np.zeros(0)),
        )
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path}: does not fit these labels: {error}") from error


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
