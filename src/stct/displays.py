"""Pictures of a fitted corrector, as scikit-learn's displays.

Each display holds what it draws, ``plot(ax=None)`` draws it, and ``ax_`` and
``figure_`` are matplotlib's own afterwards. matplotlib is optional.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stct.numeric.types import Floats

ACTIONS = ("keep", "relabel", "abstain", "fill")
COLOURS = ("#1b6ca8", "#d1622b", "#9aa5ae", "#5f9e6e")  # of the actions
MOST_CLASSES = 30  # of a matrix that can be read
MOST_NUMBERS = 12  # classes, up to which every entry has its number


class _Display:
    """What displays share: axes of their own, or those of the caller."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any, size: tuple[float, float]) -> Any:
        if ax is None:
            _, ax = require_matplotlib().subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class TransitionMatrixDisplay(_Display):
    """Transition matrix Pr[given | clean] as a picture.

    Of more than 30 classes those with the most errors are drawn.

    Parameters
    ----------
    transition_matrix : ndarray of shape (C, C)
    classes : ndarray of shape (C,)
    """

    def __init__(self, transition_matrix: Floats, classes: NDArray[Any]) -> None:
        self.transition_matrix = transition_matrix
        self.classes = classes

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw that of a fitted corrector."""
        display = cls(estimator.transition_matrix_, estimator.classes_)
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the matrix, and the numbers if there are few classes."""
        T, C = self.transition_matrix, len(self.classes)
        shown = np.arange(C)
        if C > MOST_CLASSES:
            shown = np.sort(np.argsort(np.diagonal(T), kind="stable")[:MOST_CLASSES])
        T, names = T[np.ix_(shown, shown)], [short(c) for c in self.classes[shown]]
        size = 2.5 + 0.35 * max(len(shown), 5)
        ax = self._axes(ax, (size + 1.0, size))
        picture = ax.imshow(T, cmap="Blues", vmin=0.0, vmax=1.0)
        ax.figure.colorbar(picture, ax=ax, shrink=0.8)
        ax.set_xticks(range(len(shown)), names, rotation=90)
        ax.set_yticks(range(len(shown)), names)
        ax.set_xlabel("given label")
        ax.set_ylabel("clean label")
        if C > MOST_CLASSES:
            ax.set_title(f"{len(shown)} of {C} classes, those with the most errors")
        if len(shown) <= MOST_NUMBERS:
            for (row, column), value in np.ndenumerate(T):
                colour = "white" if value > 0.5 else "black"
                text = f"{value:.2f}".removeprefix("0") if value < 0.995 else "1"
                ax.text(column, row, text, color=colour, ha="center", va="center")
        return self


class ConfidenceDisplay(_Display):
    """How many rows have which confidence, by what was done with them.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
    action : ndarray of str, shape (n,)
    """

    def __init__(self, confidence: Floats, action: NDArray[Any]) -> None:
        self.confidence = confidence
        self.action = action

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw that of a fitted corrector."""
        return cls(estimator.confidence_, estimator.action_).plot(ax=ax)

    def plot(self, ax: Any = None, *, bins: int = 20) -> Self:
        """Draw a histogram, on a logarithmic scale: most rows are sure."""
        ax = self._axes(ax, (6.4, 3.6))
        done = [action for action in ACTIONS if (self.action == action).any()]
        ax.hist(
            [self.confidence[self.action == action] for action in done],
            bins=np.linspace(0.0, 1.0, bins + 1),
            color=[COLOURS[ACTIONS.index(action)] for action in done],
            label=[f"{a} ({int((self.action == a).sum()):,})" for a in done],
        )
        ax.set_yscale("log")
        ax.set_xlabel("probability of the label")
        ax.set_ylabel("rows")
        ax.legend()
        return self


class AccuracyDisplay(_Display):
    """Estimated share of right labels before and after, with intervals.

    Parameters
    ----------
    estimated_accuracy : EstimatedAccuracy
    """

    def __init__(self, estimated_accuracy: Any) -> None:
        self.estimated_accuracy = estimated_accuracy

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw that of a fitted corrector."""
        return cls(estimator.estimated_accuracy_).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a bar for each, and its interval."""
        ax = self._axes(ax, (5.4, 2.2))
        found = self.estimated_accuracy
        values = np.array([found.before, found.after])
        low, high = np.array([found.before_interval, found.after_interval]).T
        error = np.maximum([values - low, high - values], 0.0)
        names = ["given labels", "corrected labels"]
        ax.barh(names, values, xerr=error, color=[COLOURS[2], COLOURS[0]], capsize=4)
        ax.invert_yaxis()
        ax.set_xlim(0.0, 1.0)
        ax.set_xlabel("estimated share of right labels, with interval")
        for place, value in enumerate(values):
            colour = "black" if place == 0 else "white"
            ax.text(0.02, place, f"{value:.1%}", color=colour, va="center")
        return self


def require_matplotlib() -> Any:
    """Import matplotlib, or say what to install."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: pip install 'stct[plot]'"
        ) from error
    return pyplot


def short(label: Any, most: int = 24) -> str:
    """Give a label as a tick."""
    text = str(label)
    return text if len(text) <= most else text[: most - 1] + "…"
