"""Columns that are not linear in the features, where the labels ask for them.

Embeddings of a good encoder are linear in what matters; a table of measurements, a few
columns or raw pixels need not be. Random Fourier features are used only if they predict
the given labels of rows that were left out clearly better (Theorem 1): a linear model
that is sure of the wrong class would take right labels for noise. Legend: n rows,
t of them, d columns, C classes.
"""

import numpy as np

from stct.correction.settings import ScoreSettings
from stct.numeric.fourier import FourierFeatures, cosines_and_sines, draw_frequencies
from stct.numeric.ridge import RidgePath
from stct.numeric.tiles import side_by_side
from stct.numeric.types import Floats, Ints


def choose_fourier_features(
    X: Floats, S: Floats, given: Ints, path: RidgePath, settings: ScoreSettings
) -> FourierFeatures | None:
    """Give the columns that predict the given labels better than S alone, or None.

    Parameters
    ----------
    X : ndarray of shape (t, d)
        Some rows, centred and scaled.
    S : ndarray of shape (t, C)
        Their leave-one-out scores by a linear model.
    given : ndarray of shape (t,)
        Their labels; all have one.
    path : RidgePath
        Of the linear model: how rows are centred, how many have labels.
    """

    def count(num_rows: int, most: int) -> int:
        return max(1, min(most, num_rows // settings.rows_per_frequency))

    def best(step: int, most: int) -> tuple[float, float, Floats]:
        x, s, g = X[::step], S[::step], given[::step]

        def attempt(weights: Floats) -> tuple[float, float, Floats]:
            number = count(len(x), most)
            drawn = draw_frequencies(x, weights, number, settings.bandwidth)
            return *gain_of_labels(x, s, g, drawn), weights

        return max(side_by_side(attempt, column_weights(X)), key=lambda t: t[0])

    right = float((S.argmax(axis=1) == given).mean())
    least = least_gain(right, given, settings)
    if len(X) > settings.first_rows:  # is it at all probable?
        step = -(-len(X) // settings.first_rows)
        mean, error, _ = best(step, settings.first_frequencies)
        if mean + settings.errors * error < least:
            return None
    mean, error, weights = best(1, settings.max_frequencies // 2)
    if mean < max(least, settings.errors * error):
        return None
    used = count(path.num_labelled, settings.max_frequencies)
    drawn = draw_frequencies(X, weights, used, settings.bandwidth)
    widest = float(X.std(axis=0).max())
    unit = 2.0 ** -np.floor(np.log2(widest)) if widest > 0.0 else 1.0
    return FourierFeatures(path.rows.mean, path.rows.scale, drawn, float(unit))


def column_weights(X: Floats) -> tuple[Floats, Floats]:
    """Columns as they are, and all columns alike, (d,) each."""
    deviation = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))  # rows are centred
    used = deviation > 1e-6 * deviation.max()
    alike = np.where(used, 1.0 / np.where(used, deviation, 1.0), 0.0)
    return used.astype(np.float32), alike


def least_gain(predicted: float, given: Ints, settings: ScoreSettings) -> float:
    """Share of the labels that must be gained, where that share is predicted.

    Under much noise few labels can be predicted at all, and few more are much.
    """
    shares = np.bincount(given) / len(given)
    return settings.least_gain * max(predicted - float(shares @ shares), 0.0)


def gain_of_labels(
    X: Floats, S: Floats, given: Ints, frequencies: Floats
) -> tuple[float, float]:
    """Share of the labels predicted beside S that S does not, and standard error."""
    # Scores are made so large that ridge leaves them alone.
    scores = 10.0 / max(float(S.std()), 1e-30) * S
    both = np.concatenate([scores, cosines_and_sines(X, frequencies)], axis=1)
    path = RidgePath(both.astype(np.float32), np.ones(len(X), dtype=bool), owned=True)
    target = np.eye(S.shape[1], dtype=np.float32)[given]
    return gained(path.fit(target, given).scores, S, given)


def gained(new: Floats, old: Floats, given: Ints) -> tuple[float, float]:
    """Share of the labels that only the new scores predict, and its error."""
    gain = (new.argmax(axis=1) == given).astype(np.float64)
    gain -= old.argmax(axis=1) == given
    return float(gain.mean()), max(float(gain.std()) / np.sqrt(len(gain)), 1e-12)


def describe_fourier(fourier: FourierFeatures | None) -> tuple[str, ...]:
    """Say that the features were not enough as they are."""
    if fourier is None:
        return ()
    return (
        f"{2 * fourier.frequencies.shape[1]} Fourier features, which are not linear in "
        "the embeddings, were added: they predict the given labels better",
    )
