"""Algorithm 1: noisy meta correction and semi-supervised learning, in turn.

The problem, Eqs. (1), (4), (5): find the labels with which a classifier, trained on
them, does best on a validation set, where that set is itself drawn from the noisy
training data. NMC solves it on the embeddings of a fixed encoder; SRL then improves
the encoder with the labels that can be trusted. No argument for the truth exists.
"""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lightning_fabric import Fabric
from numpy.typing import NDArray

from stct.estimator import LabelCorrector
from stct.numeric.file_rows import take_rows
from stct.train import srl
from stct.train.config import Config
from stct.train.images import Images
from stct.train.inference import embedded, predict
from stct.train.pretrain import simclr
from stct.train.selection import neighbor_labels, select_clean
from stct.train.state import State, Watch, share_buffers


class Round(NamedTuple):
    """What one round of Algorithm 1 gave."""

    number: int
    labels: NDArray[np.intp]  # (n,) corrected, what SRL was taught from
    clean: NDArray[np.bool_]  # (n,) those it was taught
    num_unlabeled: int  # rows of D_U
    noisy_accuracy: float | None  # of the classifier, on given labels it never saw


def rounds(
    state: State,
    images: Images,
    given: NDArray[np.intp],
    config: Config,
    *,
    seed: int,
    fabric: Fabric,
    watch: Watch,
    shards: Path | None = None,
) -> Iterator[Round]:
    """Yield after each round; the caller logs, evaluates, saves.

    ``given`` (n,) holds noisy labels 0 .. C - 1, and -1 where there is none. ``state``
    says where to go on, and changes. ``watch`` is called after every step. ``shards``
    is the folder through which several processes hand embeddings to the corrector.
    """
    hidden = validation_rows(given, config, seed)
    if state.phase == "pretrain":
        simclr(state, images, config, seed=seed, fabric=fabric, watch=watch)
        share_buffers(state.network, fabric)
        state.enter("srl", 1)
    while state.round <= config.num_rounds:
        if state.step == 0:
            _correct_and_select(
                state, images, given, hidden, config, seed, fabric, shards
            )
        srl.train(state, images, config, seed=seed, fabric=fabric, watch=watch)
        share_buffers(state.network, fabric)
        assert state.labels is not None
        assert state.clean is not None
        P = predict(state.network, images, fabric, rows=hidden)  # noqa: N806
        yield Round(
            state.round,
            state.labels,
            state.clean,
            len(srl.Rows.of(state, config.srl.unlabeled).unlabeled),
            float(np.mean(P.argmax(axis=1) == given[hidden])) if len(hidden) else None,
        )
        state.enter("srl", state.round + 1)
    state.phase = "done"


def _correct_and_select(
    state: State,
    images: Images,
    given: NDArray[np.intp],
    hidden: NDArray[np.intp],
    config: Config,
    seed: int,
    fabric: Fabric,
    shards: Path | None,
) -> None:
    """NMC and Eq. (10): set this round's labels and trusted rows."""
    if not config.srl.enabled:
        if state.round > 1:  # NMC sees the encoder of SimCLR only: nothing is new
            return
        state.frozen = deepcopy(state.network)
    found, clean = Corrected(given, None, None), None
    with embedded(state.network, images, fabric, shards) as H:  # (n, d)
        if fabric.global_rank == 0:
            if config.correct.enabled:
                found = correct(H, given, state, config, seed)
            clean = trusted_rows(H, found.labels, hidden, config, state.round, fabric)
    (state.labels, state.soft, state.transition), state.clean = fabric.broadcast(
        (found, clean)
    )


class Corrected(NamedTuple):
    """What NMC says of all rows."""

    labels: NDArray[np.intp]  # (n,)
    soft: NDArray[np.float32] | None  # (n, C) Pr[clean | x, given], if to be taught
    transition: NDArray[np.floating] | None  # T (C, C), if there is any


def correct(
    H: Any,
    given: NDArray[np.intp],
    state: State,
    config: Config,
    seed: int,
) -> Corrected:
    """NMC, Eqs. (6)-(9): corrected labels, and the transition matrix."""
    start = starting_labels(given, state, config)
    y = [None if label < 0 else int(label) for label in start]
    corrector = fit_corrector(H, y, state, config, seed)
    labels = np.asarray(corrector.labels_, dtype=np.intp)
    if corrector.termination_condition_ == "nothing_learnt":
        return Corrected(labels, None, state.transition)
    soft, known = None, corrector.label_distributions_
    # The scores of `split` and `paper` are no probabilities, and of very many classes
    # only the probable ones are known: then labels must do.
    calibrated = config.correct.method == "loo" and isinstance(known, np.ndarray)
    if config.srl.soft_labels and calibrated:
        soft = np.zeros((len(H), int(given.max()) + 1), dtype=np.float32)
        soft[:, np.asarray(corrector.classes_, dtype=np.intp)] = known
    return Corrected(labels, soft, corrector.transition_matrix_)


def starting_labels(
    given: NDArray[np.intp], state: State, config: Config
) -> NDArray[np.intp]:
    """Say which labels NMC starts from.

    ``loo`` starts from the given labels in every round, because its transition matrix
    describes the given labels; ``split`` and ``paper`` go on from the last round's.
    """
    last = state.labels
    return given if last is None or config.correct.method == "loo" else last


def fit_corrector(
    H: Any, y: Any, state: State, config: Config, seed: int
) -> LabelCorrector:
    """NMC on embeddings H (n, d) and labels of any type, None where missing.

    H is an array or shards. T does not change from round to round, the features do:
    where images are few, noise that an earlier round has found is remembered by the
    later ones. Without SRL nothing changes: each look is the first.
    """
    settings = config.correct
    corrector = LabelCorrector(
        settings.method,
        val_ratio=settings.val_ratio,
        step_size=settings.step_size,
        agreement=settings.agreement,
        coverage=settings.coverage,
        random_state=seed,
    )
    taught = state.frozen is None
    if not taught or state.transition is None:
        return corrector.fit(H, y)
    return corrector.fit(
        H, y, transition_matrix=state.transition, features_fitted_to_labels=True
    )


def trusted_rows(
    H: Any,
    labels: NDArray[np.intp],
    hidden: NDArray[np.intp],
    config: Config,
    round_number: int,
    fabric: Fabric,
) -> NDArray[np.bool_]:
    """Eq. (10): a share of each class that grows with the rounds, mu * epoch."""
    known = np.flatnonzero(labels >= 0)
    out = np.isin(known, hidden)
    clean = np.zeros(len(labels), dtype=bool)
    if not config.srl.enabled:
        clean[known] = ~out
        return clean
    settings = config.select
    Y_p = neighbor_labels(  # noqa: N806
        take_rows(H, known),
        labels[known],
        int(labels.max()) + 1,
        settings.num_neighbors,
        device=fabric.device,
    )
    keep = settings.keep_per_round * round_number
    clean[known] = select_clean(labels[known], Y_p, keep, hidden=out)
    return clean


def validation_rows(
    given: NDArray[np.intp], config: Config, seed: int
) -> NDArray[np.intp]:
    """Rows whose given labels SRL never sees: a noisy validation set, Theorem 1."""
    known = np.flatnonzero(given >= 0)
    count = int(config.noisy_validation * len(known))
    drawn = np.random.default_rng([seed, len(given)]).choice(
        known, size=count, replace=False
    )
    return np.sort(drawn)
