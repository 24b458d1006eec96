"""What a notebook shows of a fitted corrector: tables, pictures, a summary."""

from collections import Counter
from html import escape
from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from stct.comparison import Comparison, compare_corrections
from stct.displays import (
    ACTIONS,
    AccuracyDisplay,
    ConfidenceDisplay,
    TransitionMatrixDisplay,
)
from stct.labels import few

_MOVES = 5


class Inspection:
    """Tables and pictures of a fitted `stct.LabelCorrector`."""

    def to_frame(self) -> pd.DataFrame:
        """Give a row for each row of the fit: given, label, confidence, action.

        The index is that of y, or of X, where that was a Series or DataFrame.
        """
        check_is_fitted(self, "labels_")
        columns = {
            "given": self._given,  # type: ignore[attr-defined]
            "label": self.labels_,  # type: ignore[attr-defined]
            "confidence": self.confidence_,  # type: ignore[attr-defined]
            "action": self.action_,  # type: ignore[attr-defined]
        }
        return pd.DataFrame(columns, index=self._index)  # type: ignore[attr-defined]

    def plot_transition_matrix(self, *, ax: Any = None) -> TransitionMatrixDisplay:
        """Draw Pr[given | clean]; needs matplotlib."""
        check_is_fitted(self)
        return TransitionMatrixDisplay.from_estimator(self, ax=ax)

    def plot_confidence(self, *, ax: Any = None) -> ConfidenceDisplay:
        """Draw how sure labels are, by what was done; needs matplotlib."""
        check_is_fitted(self, "labels_")
        return ConfidenceDisplay.from_estimator(self, ax=ax)

    def plot_accuracy(self, *, ax: Any = None) -> AccuracyDisplay:
        """Draw the share of right labels before and after; needs matplotlib."""
        check_is_fitted(self)
        return AccuracyDisplay.from_estimator(self, ax=ax)

    def compare(self, other: Any) -> Comparison:
        """Compare with another fit of the same rows."""
        for fitted in (self, other):
            check_is_fitted(fitted, "labels_")
        return compare_corrections(self, other)

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return self._summary_html() + diagram

    def _repr_mimebundle_(self, **keywords: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**keywords)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._summary_html() + bundle["text/html"]
        return bundle

    def _summary_html(self) -> str:
        """Give a small table of what was found; nothing before a fit."""
        if not hasattr(self, "labels_"):
            return ""
        facts = summary_facts(self)
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(value)}</td></tr>'
            for name, value in facts.items()
        )
        return f'<table class="stct-summary"><tbody>{rows}</tbody></table>'


def row_index(y: Any, X: Any) -> pd.Index | None:
    """Give the names of the rows: those of y, or of X, where one is pandas'."""
    for values in (y, X):
        if isinstance(values, pd.Series | pd.DataFrame):
            return values.index
    return None


def summary_facts(corrector: Any) -> dict[str, str]:
    """Say in a few words what a fit found."""
    found, n = corrector.estimated_accuracy_, len(corrector.labels_)
    facts = {"rows": f"{n:,} in {len(corrector.classes_):,} classes"}
    if corrector.termination_condition_ == "nothing_learnt":
        facts["estimated wrong"] = "unknown: the features do not explain the labels"
    else:
        for when in ("before", "after"):
            low, high = getattr(found, f"{when}_interval")
            facts[f"estimated wrong {when}"] = (
                f"{1.0 - getattr(found, when):.1%} "
                f"(between {1.0 - high:.1%} and {1.0 - low:.1%})"
            )
    counts = Counter(corrector.action_.tolist())
    done = [f"{action} {counts[action]:,}" for action in ACTIONS if counts[action]]
    facts["rows by action"] = ", ".join(done)
    moved = corrector.action_ == "relabel"
    pairs = zip(
        corrector._given[moved].tolist(), corrector.labels_[moved].tolist(), strict=True
    )
    moves = Counter((str(a), str(b)) for a, b in pairs).most_common(_MOVES)
    if moves:
        texts = [f"{a} → {b} ({count:,})" for (a, b), count in moves]
        facts["most common corrections"] = few(texts, _MOVES)
    if corrector.notes_:
        facts["notes"] = "; ".join(corrector.notes_)
    return facts
