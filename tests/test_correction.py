import numpy as np
import pytest
import torch

from stct.correction import paper
from stct.numeric import linear


def parts(n_t=12, n_v=9, d=4, C=3, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in [(n_t, d), (n_t, C), (n_v, d), (n_v, C)]]


def run_splits(H, Y, step, **settings):
    defaults = {
        "val_ratio": 0.5,
        "step_size": 0.2,
        "agreement": 0.998,
        "max_splits": 30,
        "movable": np.ones(len(H), bool),
        "generator": np.random.default_rng(0),
        "progress": lambda share: None,
    }
    return paper.correct_by_splits(H, Y, step=step, **(defaults | settings))


def two_blobs(n=400, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    H = linear.add_constant(rng.normal(size=(n, 3)) + 4.0 * truth[:, None])
    given = np.where(rng.random(n) < noise, 1 - truth, truth)
    return H, np.eye(2)[given], truth, given


def test_validation_loss_eq_8():
    H_t, Y_t, H_v, Y_v = parts()
    predicted = linear.predict(H_v, linear.fit(H_t, Y_t))
    expected = sum(
        (Y_v[i, c] - predicted[i, c]) ** 2
        for i in range(Y_v.shape[0])
        for c in range(Y_v.shape[1])
    )
    assert paper.validation_loss(Y_v, predicted) == pytest.approx(expected)


def test_step_is_minus_eta_times_autograd_of_eq_8_over_n_v():
    arrays = parts()
    H_t, Y_t, H_v, Y_v = (torch.tensor(a) for a in arrays)
    Y_t.requires_grad_(True)
    W = torch.linalg.inv(H_t.T @ H_t) @ H_t.T @ Y_t
    loss = ((Y_v - H_v @ W) ** 2).sum() / len(H_v)
    loss.backward()
    expected = (Y_t - 0.2 * Y_t.grad).detach().numpy()
    got = paper.correct_step(*arrays, step_size=0.2)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_step_is_eq_9_as_printed():
    H_t, Y_t, H_v, Y_v = parts(seed=1)
    inverse = np.linalg.inv(H_t.T @ H_t)
    expected = Y_t + 2 * 0.3 / len(H_v) * H_t @ inverse @ H_v.T @ (
        Y_v - H_v @ inverse @ H_t.T @ Y_t
    )
    got = paper.correct_step(H_t, Y_t, H_v, Y_v, 0.3)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_full_step_reaches_a_minimiser_of_eq_8_of_minimum_norm():
    H_t, Y_t, H_v, Y_v = parts(n_t=20, n_v=15)
    moved = paper.move_to_minimiser(H_t, Y_t, H_v, Y_v, 1.0)

    def loss(Y):
        return paper.validation_loss(Y_v, linear.predict(H_v, linear.fit(H_t, Y)))

    best = paper.validation_loss(Y_v, linear.predict(H_v, linear.fit(H_v, Y_v)))
    assert loss(moved) == pytest.approx(best)
    # Any other minimiser differs by a part that H_t cannot see, which adds norm.
    rng = np.random.default_rng(0)
    unseen = rng.normal(size=Y_t.shape)
    unseen -= H_t @ linear.fit(H_t, unseen)
    assert loss(moved + unseen) == pytest.approx(best)
    assert np.linalg.norm(moved + unseen) > np.linalg.norm(moved)


def test_half_step_is_half_way():
    H_t, Y_t, H_v, Y_v = parts()
    whole = paper.move_to_minimiser(H_t, Y_t, H_v, Y_v, 1.0)
    half = paper.move_to_minimiser(H_t, Y_t, H_v, Y_v, 0.5)
    np.testing.assert_allclose(half, (Y_t + whole) / 2)


def test_num_splits_matches_the_formula_and_simulation():
    n, beta = 50_000, 0.9999
    assert paper.num_splits(n, 0.5, beta) == 29
    assert paper.num_splits(n, 0.9, beta) == 9
    assert paper.num_splits_to_cover(n, 0.9, beta) == 191
    assert paper.num_splits_to_cover(n, 0.5, beta) == 29


@pytest.mark.parametrize("val_ratio", [0.2, 0.5, 0.8])
def test_num_splits_to_cover_covers(val_ratio):
    n, coverage = 200, 0.9
    splits = paper.num_splits_to_cover(n, val_ratio, coverage)
    rng = np.random.default_rng(0)
    trials = 300
    covered = 0
    for _ in range(trials):
        in_training = rng.random((splits, n)) >= val_ratio
        covered += in_training.any(axis=0).all()
    assert covered / trials >= coverage - 0.05
    in_training = rng.random((trials, max(splits // 2, 1), n)) >= val_ratio
    assert in_training.any(axis=1).all(axis=1).mean() < coverage


def test_splits_correct_symmetric_noise():
    H, Y, truth, given = two_blobs()
    result = run_splits(H, Y, paper.move_to_minimiser)
    assert (given == truth).mean() < 0.85
    assert (result.labels.argmax(1) == truth).mean() > 0.98


def test_eq_9_as_printed_flips_no_label():
    H, Y, _, given = two_blobs()
    result = run_splits(H, Y, paper.correct_step)
    assert (result.labels.argmax(1) == given).all()
    assert result.stop == "agreement"


def test_rows_that_may_not_move_do_not():
    H, Y, _, _ = two_blobs()
    movable = np.arange(len(H)) % 2 == 0
    result = run_splits(H, Y, paper.move_to_minimiser, movable=movable)
    np.testing.assert_array_equal(result.labels[~movable], Y[~movable])
    assert (result.labels[movable] != Y[movable]).any()


def test_splits_do_not_stop_before_every_row_was_corrected():
    H, Y, _, _ = two_blobs(n=60)
    # So small a step flips nothing: agreement is perfect from the first split on.
    result = run_splits(H, Y, paper.move_to_minimiser, step_size=1e-6, val_ratio=0.9)
    assert result.num_splits > 1
    moved = (result.labels != Y).any(axis=1)
    assert moved.all() or result.stop == "coverage"


def test_both_stop_reasons_are_reached():
    H, Y, _, _ = two_blobs()
    step = paper.move_to_minimiser
    assert run_splits(H, Y, step).stop == "agreement"
    capped = run_splits(H, Y, step, max_splits=2)
    assert (capped.stop, capped.num_splits) == ("coverage", 2)


def test_a_validation_set_of_ones_own_takes_the_place_of_the_rows_left_out():
    H, Y, truth, _ = two_blobs(noise=0.45)
    extra, _, extra_truth, _ = two_blobs(n=60, seed=1)
    clean = extra, np.eye(2)[extra_truth]
    result = run_splits(H, Y, paper.move_to_minimiser, validation=clean)
    assert (result.labels.argmax(1) == truth).mean() > 0.98
    target = linear.predict(H, linear.fit(*clean))
    kept = 0.8 ** result.times[:, None]  # one step of 0.2 a visit, always to one target
    np.testing.assert_allclose(result.labels, kept * Y + (1 - kept) * target)


def test_how_often_each_row_was_corrected_is_reported():
    H, Y, _, _ = two_blobs()
    result = run_splits(
        H, Y, paper.move_to_minimiser, val_ratio=0.9, max_splits=5, agreement=1.0
    )
    assert result.times.sum() == 5 * 40
    untouched = result.times == 0
    assert 0.5 < untouched.mean() < 0.7
    np.testing.assert_array_equal(result.labels[untouched], Y[untouched])
