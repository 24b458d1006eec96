"""What was estimated of annotators, for annotators.csv and the summary."""

import math
from collections.abc import Sequence
from typing import Any

from stct.correction.annotator_estimates import Annotator
from stct.data.columns import encode_label
from stct.data.tables import Table

ANNOTATORS = "annotators.csv"
ERRORS = 5  # of each annotator that are listed
LISTED = 500  # annotators in the summary


def annotators_table(annotators: Sequence[Annotator]) -> Table:
    """Give the estimates as a table, those of most labels first."""
    ordered = by_labels(annotators)
    columns: dict[str, list[Any]] = {
        "annotator": [str(one.name) for one in ordered],
        "labels": [one.labels for one in ordered],
        "accuracy": [round(one.accuracy, 4) for one in ordered],
        "accuracy_low": [round(one.interval[0], 4) for one in ordered],
        "accuracy_high": [round(one.interval[1], 4) for one in ordered],
        "chance": [round(one.chance, 4) for one in ordered],
        "agreement": [
            "" if math.isnan(one.agreement) else round(one.agreement, 4)
            for one in ordered
        ],
        "at_random": ["yes" if one.at_random else "no" for one in ordered],
        "errors": ["; ".join(map(_error, one.confusion[:ERRORS])) for one in ordered],
    }
    return Table("csv", columns, len(ordered))


def summarise_annotators(annotators: Sequence[Annotator]) -> list[dict[str, Any]]:
    """Give the estimates as plain data."""
    return [
        {
            "annotator": str(one.name),
            "labels": one.labels,
            "accuracy": one.accuracy,
            "interval": list(one.interval),
            "chance": one.chance,
            "agreement": None if math.isnan(one.agreement) else one.agreement,
            "at_random": one.at_random,
            "errors": [
                {"clean": _plain(clean), "given": _plain(given), "labels": round(n, 1)}
                for clean, given, n in one.confusion[:ERRORS]
            ],
        }
        for one in by_labels(annotators)[:LISTED]
    ]


def by_labels(annotators: Sequence[Annotator]) -> list[Annotator]:
    """Sort by the number of labels, most first."""
    return sorted(annotators, key=lambda one: (-one.labels, str(one.name)))


def _error(error: tuple[Any, Any, float]) -> str:
    clean, given, number = error
    names = (encode_label(_plain(label), text_only=True) for label in (clean, given))
    return f"{' as '.join(names)}: {number:.0f}"


def _plain(label: Any) -> Any:
    """Give Python's own value."""
    return label.item() if hasattr(label, "item") else label
