"""Noisy meta correction: one function, three methods.

Legend: n rows, d columns, C classes. ``given`` is -1 for a row without a label.
"""

import numpy as np
from numpy.typing import NDArray

from stct.correction.audit import Verified
from stct.correction.calibration import calibrate
from stct.correction.canonical import canonicalise
from stct.correction.given_labels import Labels, sample_rows, sample_size
from stct.correction.paper import THE_PAPERS, SplitSettings, correct_by_random_splits
from stct.correction.pipeline import (
    NO_PRIOR,
    Prior,
    as_correction,
    correct_by_leave_one_out,
)
from stct.correction.posterior import final_posterior
from stct.correction.result import Correction, Progress
from stct.correction.settings import DEFAULT, Settings
from stct.numeric.engine import Engine
from stct.numeric.types import Floats, Ints

METHODS = ("loo", "split", "paper")


def correct_labels(
    H: Floats,
    given: Ints,
    num_classes: int,
    *,
    method: str = "loo",
    locked: NDArray[np.bool_],
    splits: SplitSettings = THE_PAPERS,
    prior: Prior = NO_PRIOR,
    settings: Settings = DEFAULT,
    verified: Verified | None = None,
    engine: Engine,
    generator: np.random.Generator,
    progress: Progress,
) -> Correction:
    """Correct noisy labels (n,) from embeddings (n, d); no clean data, no noise rate.

    ``"loo"`` is closed form and uses neither the generator nor the settings of the
    paper's random splits; ``"split"`` and ``"paper"`` differ in the step only (see
    `stct.correction.paper`). Locked rows are certain and never move. Of ``verified``
    rows, which are locked, the label that they had before is known, too.
    """
    if method != "loo":
        return correct_by_random_splits(
            H,
            given,
            num_classes,
            locked,
            splits,
            generator,
            progress,
            to_the_letter=method == "paper",
        )
    problem = canonicalise(H, given, locked, num_classes, engine, settings.canonical)
    labels = problem.labels
    if verified is not None:
        verified = verified.reordered(problem.places, problem.rank)
        labels = labels._replace(verified=verified)
    prior = prior._replace(transition=problem.reorder(prior.transition))
    result = correct_by_leave_one_out(
        problem.H,
        labels,
        progress,
        owned=problem.owned,
        prior=prior,
        settings=settings,
    )
    return problem.restore(result)


def correct_probabilities(
    P: Floats, labels: Labels, settings: Settings = DEFAULT
) -> Correction:
    """Apply the same noise model to somebody's own probabilities (n, C).

    They must be out-of-fold, as leave-one-out scores are.
    """
    S = np.log(np.maximum(P, 1e-6)).astype(np.float32)
    index = sample_rows(labels, sample_size(labels.num_classes, settings.calibration))
    odds, T = calibrate(S[index], labels.some(index), settings.calibration)
    found = final_posterior(odds.logits(S), T, labels, index, settings)
    return as_correction(found, None, 1, ())
