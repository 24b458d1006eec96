"""Everything the page shows, as one JSON-ready dictionary."""

import base64
import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.console import UNSEEN, describe_audit
from stct.data.corrected import Corrected
from stct.data.summary import ACTIONS
from stct.numeric.types import Ints
from stct.report import commands, confusions, counts, ranking, words
from stct.report.checking import check_order, expected_wrong, first_rows
from stct.report.details import describe_audit_rows, describe_rows
from stct.report.neighbours import tsne
from stct.report.ranking import Dial, Rivals
from stct.report.store import Review, picture_notes

_GRID = 65_534  # steps along an axis of the map; 65,535 says: not on it


def make_payload(
    corrected: Corrected, review: Review, *, map_kind: str = "pca"
) -> dict[str, Any]:
    """Gather all that the page shows."""
    summary = corrected.summary
    names = [words.show_label(label) for label in corrected.classes]
    rivals = ranking.find_rivals(corrected)
    decides = ranking.who_decides(corrected, rivals, review.locked)
    dial = ranking.make_dial(corrected, rivals, decides)
    wrong = expected_wrong(corrected, review.locked)
    order = ranking.review_order(first_rows(review), check_order(wrong, review.locked))
    rows = ranking.page_rows(order, review.detailed, ranking.most_rows(corrected.ids))
    learnt = summary.get("termination_condition") != "nothing_learnt"
    pairs = confusions.find_pairs(corrected)
    found = words.warn(summary, corrected.given, corrected.label, names)
    return {
        "title": review.about.get("title") or commands.table_name(summary) or "labels",
        "key": fingerprint(corrected),
        "rows": len(corrected.given),
        "classes": [
            {"name": name, "code": corrected.encoded(label)}
            for name, label in zip(names, corrected.classes, strict=True)
        ],
        "learnt": learnt,
        "headline": words.headline(
            summary.get("noise_rate"), learnt, _wrong_interval(summary)
        ),
        "second": words.second_sentence(summary, learnt),
        "accuracy": summary["estimated_accuracy"],
        "accuracy_note": _accuracy_note(summary),
        "noise_rate": summary.get("noise_rate"),
        "warnings": [warning._asdict() for warning in found],
        "notes": [*summary.get("notes", []), *picture_notes(review)],
        "method": _method(summary),
        "dial": counts.dial_counts(corrected, rivals, decides, dial),
        "odds": counts.odds_histogram(rivals, decides),
        "pairs": confusions.list_pairs(corrected, rivals, decides, dial, pairs),
        "transition": confusions.transition(summary, pairs),
        "by_class": counts.by_class(corrected, rivals, decides, dial),
        "annotators": _annotators(summary),
        "map": _map(review, rows, map_kind),
        "curves": review.about.get("metrics") or [],
        "page": _rows(corrected, rivals, decides, dial, rows),
        "audit": describe_audit_rows(corrected, review),
        "details": describe_rows(corrected, review, rows),
        "commands": commands.list_commands(corrected),
        "audit_command": commands.with_audit(corrected),
    }


def _accuracy_note(summary: dict[str, Any]) -> str:
    """Say where the estimates of accuracy come from."""
    audit = summary.get("audit")
    if audit:
        text = describe_audit(audit)
        return f"{text[0].upper()}{text[1:]}."
    return f"Not counted: {UNSEEN}."


def _annotators(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Give what was estimated of annotators, with labels as they are shown."""
    found = []
    for one in summary.get("annotators") or []:
        errors = [
            {kind: words.show_label(error[kind]) for kind in ("clean", "given")}
            | {"labels": error["labels"]}
            for error in one["errors"]
        ]
        found.append({**one, "errors": errors})
    return found


def fingerprint(corrected: Corrected) -> str:
    """Name a table by its ids and given labels: decisions in the browser go by it."""
    digest = hashlib.sha256()
    for name in corrected.ids:
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0")
    for label in corrected.classes:
        digest.update(corrected.encoded(label).encode("utf-8", "surrogatepass") + b"\0")
    digest.update(corrected.given.astype("<i8").tobytes())
    return digest.hexdigest()[:16]


def pack(array: NDArray[Any], kind: str) -> str:
    """Write an array as base64 of little-endian numbers."""
    return base64.b64encode(array.astype(kind).tobytes()).decode()


def _wrong_interval(summary: dict[str, Any]) -> tuple[float, float] | None:
    """Give the interval of the share of given labels that are wrong."""
    right = summary["estimated_accuracy"]["before_interval"]
    return None if right is None else (1.0 - right[1], 1.0 - right[0])


def _method(summary: dict[str, Any]) -> str:
    version = summary.get("versions", {}).get("stct", "")
    columns = summary.get("embedding_columns")
    parts = [f"stct {version}", f"method {summary.get('method', 'loo')}"]
    if columns:
        parts.append(f"{columns:,} embedding columns")
    return ", ".join(parts)


def _map(review: Review, rows: Ints, kind: str) -> dict[str, Any] | None:
    """Give the coordinates of the page's rows on a grid."""
    if review.map is None:
        return None
    points = review.map.points.astype(float)
    if kind == "tsne":
        sample = review.map.sample
        points = np.full(points.shape, np.nan)
        points[sample] = tsne(review.map.sample_points)
    shown = points[rows]  # (m, 2)
    on = np.isfinite(shown).all(axis=1)
    low, high = np.zeros(2), np.ones(2)
    if on.any():
        # A few far rows should not squeeze all others into a dot.
        low, high = np.percentile(shown[on], [0.1, 99.9], axis=0)
        margin = 0.05 * (high - low) + 1e-12
        low, high = low - margin, high + margin
    where = np.clip((shown - low) / (high - low), 0.0, 1.0) * _GRID
    where[~on] = _GRID + 1
    return {
        "kind": kind,
        "explained": [round(float(v), 4) for v in review.map.explained],
        "shown": int(on.sum()),
        "x": pack(where[:, 0].round(), "<u2"),
        "y": pack(where[:, 1].round(), "<u2"),
    }


def _rows(
    corrected: Corrected, rivals: Rivals, decides: Ints, dial: Dial, rows: Ints
) -> dict[str, Any]:
    """Give the rows of the page, in review order, as packed columns."""
    ids = [corrected.ids[row] for row in rows.tolist()]
    numbered = all(name == str(row) for name, row in zip(ids, rows, strict=True))
    return {
        "count": len(rows),
        "ids": None if numbered else ids,
        "row": pack(rows, "<u4"),
        "given": pack(corrected.given[rows], "<i4"),
        "other": pack(rivals.other[rows], "<i4"),
        "label": pack(corrected.label[rows], "<i4"),
        "step": pack(dial.steps[rows], "u1"),
        "decides": pack(decides[rows], "u1"),
        "action": pack(_actions(corrected)[rows], "u1"),
        "p_given": pack(rivals.p_given[rows], "<f4"),
        "p_other": pack(rivals.p_other[rows], "<f4"),
    }


def _actions(corrected: Corrected) -> Ints:
    """Give the actions of all rows as numbers, (n,)."""
    numbers = np.zeros(len(corrected.action), dtype=np.intp)
    for number, action in enumerate(ACTIONS):
        numbers[corrected.action == action] = number
    return numbers
