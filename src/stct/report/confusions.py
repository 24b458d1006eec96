"""Which classes were taken for which: pairs in order, and the matrix of some of them.

Legend: C classes, K positions of the dial. A pair is a given label and the label that
is suggested instead.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.special import pdtrc

from stct.data.corrected import Corrected
from stct.numeric.types import Floats, Ints
from stct.report import ranking
from stct.report.ranking import Dial, Rivals

MOST_CLASSES = 24  # in the matrix; more are too small to read
_MOST_PAIRS = 100  # in the list
_CHANCE = 0.01  # that one pair of all stands out though no two classes are confused


class Pairs(NamedTuple):
    """All pairs with a changed row, most changes first."""

    given: Ints  # (p,)
    other: Ints  # (p,)
    rows: Ints  # (p,) changed by the run, from the one to the other
    beyond_chance: Floats  # (p,) more of them than spread errors give; 0 if no more


def find_pairs(corrected: Corrected) -> Pairs:
    """Count what the run changed into what.

    Were the errors of every given label spread over the classes in proportion to what
    they receive in all, a pair would have a Poisson number of rows. It stands out if
    that number is improbable, given how many pairs there are.
    """
    C = len(corrected.classes)  # noqa: N806
    moved = (corrected.given >= 0) & (corrected.action == "relabel")
    keys = corrected.given[moved] * C + corrected.label[moved]
    keys, counts = np.unique(keys, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    given, other = np.divmod(keys[order], C)
    count = counts[order]
    out = np.bincount(given, count, minlength=C)
    into = np.bincount(other, count, minlength=C)
    expected = out[given] * into[other] / max(count.sum(), 1)
    chance = pdtrc(count - 1, expected)  # Pr[as many or more]
    clear = chance * C * (C - 1) < _CHANCE
    return Pairs(given, other, count, np.where(clear, count - expected, 0.0))


def list_pairs(
    corrected: Corrected, rivals: Rivals, decides: Ints, dial: Dial, pairs: Pairs
) -> dict[str, Any]:
    """Give the most common pairs, counted for every position of the dial."""
    C, K = len(corrected.classes), len(dial.values)  # noqa: N806
    listed = slice(_MOST_PAIRS)
    keys = pairs.given[listed] * C + pairs.other[listed]
    order = np.argsort(keys)
    free = (decides == ranking.FREE) & (dial.steps > 0)
    rows = corrected.given[free] * C + rivals.other[free]
    place = np.searchsorted(keys, rows, sorter=order).clip(max=max(len(keys) - 1, 0))
    known = np.zeros(len(rows), dtype=bool)
    if len(keys):
        place = order[place]
        known = keys[place] == rows
    cells = np.bincount(
        place[known] * (K + 1) + dial.steps[free][known],
        minlength=len(keys) * (K + 1),
    ).reshape(len(keys), K + 1)
    changed = cells.sum(axis=1)[:, None] - cells.cumsum(axis=1)[:, :-1]  # (p, K)
    # What a person decided does not follow the dial.
    changed += (pairs.rows[listed] - changed[:, dial.start])[:, None]
    before = np.bincount(corrected.given[corrected.given >= 0], minlength=C)
    return {
        "total": len(pairs.given),
        "clear": int(np.sum(pairs.beyond_chance > 0)),
        "items": [
            {
                "given": int(g),
                "other": int(o),
                "count": changed[k].tolist(),
                "of": int(before[g]),
            }
            for k, (g, o) in enumerate(
                zip(pairs.given[listed], pairs.other[listed], strict=True)
            )
        ],
    }


def transition(summary: dict[str, Any], pairs: Pairs) -> dict[str, Any] | None:
    """Give the transition matrix of all classes, or of those that are confused.

    Of many classes, only those of pairs that stand out, similar ones side by side;
    None where no pair does, for the matrix would then show nothing.
    """
    matrix = summary.get("transition_matrix")
    if not matrix:
        return None
    T = np.array(matrix, dtype=float)  # noqa: N806
    classes = np.arange(len(T))
    if len(T) > MOST_CLASSES:
        classes = _by_similarity(T, _confused(pairs))
    if not len(classes):
        return None
    part = T[np.ix_(classes, classes)]
    return {
        "classes": classes.tolist(),
        "total": len(T),
        "values": [[round(float(v), 4) for v in row] for row in part],
    }


def _confused(pairs: Pairs) -> Ints:
    """Choose the classes of the clearest pairs, whole pairs only."""
    chosen: list[int] = []
    for k in np.argsort(-pairs.beyond_chance, kind="stable"):
        if pairs.beyond_chance[k] == 0:
            break
        both = [int(c) for c in (pairs.given[k], pairs.other[k]) if c not in chosen]
        if len(chosen) + len(both) <= MOST_CLASSES:
            chosen += both
    return np.array(sorted(chosen), dtype=np.intp)


def _by_similarity(T: Floats, classes: Ints) -> Ints:  # noqa: N803
    """Order classes so that those that are confused stand side by side."""
    if len(classes) < 3:
        return classes
    both = T[np.ix_(classes, classes)]
    both = np.sqrt(both + both.T)
    np.fill_diagonal(both, 0.0)
    near = both[np.triu_indices(len(classes), 1)]  # as linkage reads distances
    tree = linkage(near.max() - near, "average", optimal_ordering=True)
    order: Ints = leaves_list(tree)
    return classes[order]
