import numpy as np
import pytest

from stct.numeric.hat_matrix import MOST_LEVERAGE
from stct.numeric.ridge import USUAL, RidgePath, mean_strength
from stct.numeric.tiles import some_of


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def naive_ridge(H, Y, ridge):
    """Ridge with an unpenalised intercept, by the normal equations of [1, H]."""
    A = np.column_stack([np.ones(len(H)), H])
    penalty = ridge * np.eye(A.shape[1])
    penalty[0, 0] = 0.0
    return np.linalg.solve(A.T @ A + penalty, A.T @ Y)


def naive_leave_one_out(H, Y, ridge):
    """Refit without each row, means and all; add the label mean of all rows."""
    out = np.empty_like(Y)
    for i in range(len(H)):
        rest = np.arange(len(H)) != i
        Hc, Yc = H[rest] - H[rest].mean(axis=0), Y[rest] - Y[rest].mean(axis=0)
        W = np.linalg.solve(Hc.T @ Hc + ridge * np.eye(H.shape[1]), Hc.T @ Yc)
        out[i] = Y.mean(axis=0) + (H[i] - H[rest].mean(axis=0)) @ W
    return out


@pytest.mark.parametrize("n", [40, 12])  # more rows than columns, and fewer
def test_scores_are_exact_leave_one_out_ridge(rng, n):
    H = rng.normal(size=(n, 15)) + 5.0
    given = rng.integers(0, 3, n)
    Y = np.eye(3)[given]
    fit = RidgePath(H, np.ones(n, bool)).fit(Y, given)
    centred = H - H.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred)
    values = values[values > 1e-9]
    expected = naive_leave_one_out(H, Y, fit.strength * values.mean())
    np.testing.assert_allclose(fit.scores, expected, atol=1e-8)


def test_scores_do_not_give_a_label_away(rng):
    """A mean without just this row's label would: its own class scores lowest."""
    given = rng.integers(0, 2, 400)
    fit = RidgePath(rng.normal(size=(400, 3)), np.ones(400, bool)).fit(
        np.eye(2)[given], given
    )
    own = fit.scores[np.arange(400), given]
    other = fit.scores[np.arange(400), 1 - given]
    assert abs(np.mean(own - other)) < 3 * np.std(own - other) / 20


@pytest.mark.parametrize("num_columns", [39, 40, 200])
def test_more_columns_than_rows_do_not_give_a_label_away(rng, num_columns):
    """Centred rows sum to zero, so each is known from the others; its label is not."""
    given = rng.integers(0, 2, 40)
    H = rng.normal(size=(40, num_columns))
    path = RidgePath(H, np.ones(40, bool))
    for strength in USUAL.values:
        scores = path.fit(np.eye(2)[given], given, strength=strength).scores
        assert np.mean(scores.argmax(axis=1) == given) < 0.8


def naive_agreement(H, given):
    """Rows in which the prediction by all others is the given label, by strength."""
    Y = np.eye(2)[given]
    centred = H - H.mean(axis=0)
    scale = np.linalg.eigvalsh(centred.T @ centred).mean()
    predicted = [naive_leave_one_out(H, Y, s * scale) for s in USUAL.values]
    return np.array([(S.argmax(axis=1) == given).sum() for S in predicted])


def naive_mean_strength(agree, count, strengths):
    """Product of the strengths, each to the power of its share of the weight."""
    best = max(agree)
    error = max((best * (1 - best / count)) ** 0.5, 1.0)
    weights = [np.exp(strengths.steepness * (a - best) / error) for a in agree]
    powers = [
        s ** (w / sum(weights)) for s, w in zip(strengths.values, weights, strict=True)
    ]
    return np.prod(powers)


def test_mean_strength_by_loops(rng):
    for count in (1, 30, 10_000):
        agree = rng.integers(0, count + 1, len(USUAL.values)).astype(float)
        for steepness in (0.0, 1.0, USUAL.steepness):
            strengths = USUAL._replace(steepness=steepness)
            assert mean_strength(agree, count, strengths) == pytest.approx(
                naive_mean_strength(agree, count, strengths)
            )
    equal = np.full(len(USUAL.values), 5.0)
    assert mean_strength(equal, 9, USUAL) == pytest.approx(0.1)  # the middle one


@pytest.mark.parametrize(("count", "decades"), [(1000, 0.9), (32_768, 0.16)])
def test_no_row_decides_the_strength(rng, count, decades):
    """Where first and last agree alike, the best of them would jump six decades."""
    last = len(USUAL.values) - 1
    for _ in range(50):
        agree = rng.integers(count // 2, count * 8 // 10, last + 1).astype(float)
        agree[[0, last]] = agree.max()
        before = mean_strength(agree, count, USUAL)
        for place in (0, last):
            for step in (-1.0, 1.0):
                more = agree.copy()
                more[place] += step
                after = mean_strength(more, count, USUAL)
                assert 0.0 < abs(np.log10(after / before)) < decades


def test_strength_is_the_weighted_mean_by_agreement_with_the_given_labels(rng):
    H = rng.normal(size=(60, 20))
    given = (H[:, 0] + rng.normal(size=60) > 0).astype(int)
    fit = RidgePath(H, np.ones(60, bool)).fit(np.eye(2)[given], given)
    expected = naive_mean_strength(naive_agreement(H, given), 60, USUAL)
    assert fit.strength == pytest.approx(expected)


def test_with_a_huge_steepness_the_strength_that_agrees_most_is_taken(rng):
    H = rng.normal(size=(60, 20))
    given = (H[:, 0] + rng.normal(size=60) > 0).astype(int)
    steep = USUAL._replace(steepness=1e6)
    path = RidgePath(H, np.ones(60, bool), strengths=steep)
    agree = naive_agreement(H, given)
    best = np.array(USUAL.values)[agree == agree.max()]
    assert len(best) < len(agree)
    found = path.fit(np.eye(2)[given], given).strength
    assert found == pytest.approx(np.exp(np.log(best).mean()))


def test_one_row_more_or_less_moves_the_strength_by_little(rng):
    H = rng.normal(size=(2000, 100))
    given = (H[:, 0] + rng.normal(size=2000) > 0).astype(int)
    everyone = RidgePath(H, np.ones(2000, bool)).fit(np.eye(2)[given], given)
    for row in range(5):
        rest = np.arange(2000) != row
        path = RidgePath(H[rest], np.ones(1999, bool))
        fit = path.fit(np.eye(2)[given[rest]], given[rest])
        assert abs(np.log10(fit.strength / everyone.strength)) < 0.5
        np.testing.assert_allclose(fit.scores, everyone.scores[rest], atol=0.02)


def test_any_strength_can_be_asked_for(rng):
    H, given = rng.normal(size=(40, 5)) + 5.0, rng.integers(0, 3, 40)
    Y = np.eye(3)[given]
    centred = H - H.mean(axis=0)
    scale = np.linalg.eigvalsh(centred.T @ centred).mean()
    path = RidgePath(H, np.ones(40, bool))
    for strength in (0.0321, 7.5):
        fit = path.fit(Y, given, strength=strength)
        assert fit.strength == strength
        expected = naive_leave_one_out(H, Y, strength * scale)
        np.testing.assert_allclose(fit.scores, expected, atol=1e-8)


def test_weights_and_intercept_are_the_full_ridge_fit(rng):
    H, given = rng.normal(size=(50, 5)) * 3 + 1, rng.integers(0, 2, 50)
    Y = np.eye(2)[given]
    fit = RidgePath(H, np.ones(50, bool)).fit(Y, given)
    centred = H - H.mean(axis=0)
    scale = np.linalg.eigvalsh(centred.T @ centred).mean()
    W = naive_ridge(H, Y, fit.strength * scale)
    np.testing.assert_allclose(fit.intercept, W[0], atol=1e-9)
    np.testing.assert_allclose(fit.weights, W[1:], atol=1e-9)


def test_rows_without_a_label_teach_nothing_and_are_predicted(rng):
    H, given = rng.normal(size=(50, 5)), rng.integers(0, 2, 50)
    given[40:] = -1
    Y = np.zeros((50, 2))
    Y[np.arange(40), given[:40]] = 1
    all_rows = RidgePath(H, given >= 0).fit(Y, given)
    labelled = RidgePath(H[:40], np.ones(40, bool)).fit(Y[:40], given[:40])
    np.testing.assert_allclose(all_rows.weights, labelled.weights, atol=1e-10)
    np.testing.assert_allclose(all_rows.scores[:40], labelled.scores, atol=1e-10)
    np.testing.assert_allclose(
        all_rows.scores[40:],
        H[40:] @ labelled.weights + labelled.intercept,
        atol=1e-10,
    )


def test_float32_far_from_the_origin_keeps_its_precision(rng):
    H = rng.normal(size=(300, 8))
    given = (H[:, 0] > 0).astype(int)
    Y = np.eye(2, dtype=np.float32)[given]
    near = RidgePath(H, np.ones(300, bool)).fit(Y, given)
    far = RidgePath((H + 1000.0).astype(np.float32), np.ones(300, bool)).fit(Y, given)
    np.testing.assert_allclose(far.scores, near.scores, atol=2e-3)


@pytest.mark.parametrize("rank", [70, 60, 20])
def test_many_rows_have_the_scores_and_strength_of_few(rng, rank):
    """Leverages are exact for any rank; some rows choose."""
    H = rng.normal(size=(600, 70)).astype(np.float32)
    # The others are below the cutoff, not nothing.
    H[:, rank:] = H[:, np.arange(70 - rank) % rank] + 1e-4 * H[:, rank:]
    given = np.where(rng.random(600) < 0.7, H[:, :3].argmax(axis=1), 0)
    given[::50] = -1  # rows that are only predicted
    Y = np.eye(3, dtype=np.float32)[given]
    few = RidgePath(H, given >= 0)
    assert len(few.axes.values) == rank
    many = RidgePath(H, given >= 0, strengths=USUAL._replace(rows=200))
    rows, whole = slice(0, 600), slice(None)
    for strength in USUAL.values:
        expected = few.fit(Y, given, strength=strength).scores
        scores = many.fit(Y, given, strength=strength).scores
        np.testing.assert_array_equal(scores, expected)
        X = few.rows[rows]
        ridge = strength * few.axes.values.mean()
        by_axes = few.axes.leverages(X, np.array([ridge]))[:, 0] * (given >= 0)
        own = few.leverage_at(ridge)(rows, whole)
        np.testing.assert_allclose(own, by_axes, atol=2e-5)
    best, chosen = few.fit(Y, given).scores, many.fit(Y, given).scores
    agree = [(S.argmax(axis=1) == given).mean() for S in (best, chosen)]
    assert agree[1] > agree[0] - 0.03


@pytest.mark.parametrize("ridge", [0.1, 30.0, 1234.5])
@pytest.mark.parametrize("num_columns", [20, 500])  # fewer than rows, and more
def test_leverage_at_any_ridge_is_the_hat_diagonal(rng, ridge, num_columns):
    H = rng.normal(size=(400, num_columns))
    path = RidgePath(H, np.arange(400) >= 40)
    Hc = H[40:] - H[40:].mean(axis=0)
    hat = Hc @ np.linalg.solve(Hc.T @ Hc + ridge * np.eye(num_columns), Hc.T)
    some = np.arange(0, 400, 7)
    own = path.leverage_at(ridge)(slice(0, 400), some)
    assert (own[some < 40] == 0).all()
    expected = np.minimum(np.diagonal(hat), MOST_LEVERAGE)[some[some >= 40] - 40]
    np.testing.assert_allclose(own[some >= 40], expected, rtol=1e-6)


def test_many_rows_few_of_them_labelled_all_choose(rng):
    H = rng.normal(size=(3000, 20))
    given = np.full(3000, -1)
    given[::50] = (H[::50, 0] > 0).astype(int)
    Y, few = np.eye(2)[given], USUAL._replace(rows=100)
    strength = RidgePath(H, given >= 0, strengths=few).fit(Y, given).strength
    alone = RidgePath(H[::50], np.ones(60, bool)).fit(Y[::50], given[::50]).strength
    assert strength == pytest.approx(alone)


def test_about_so_many_rows_choose_as_were_asked_for(rng):
    """The labels of all others may be anything."""
    H = rng.normal(size=(3000, 20))
    given = (H[:, 0] + rng.normal(size=3000) > 0).astype(int)
    few = USUAL._replace(rows=300)
    chosen = some_of(slice(0, 3000), 10)
    assert 250 < len(chosen) < 350
    Y, other = np.eye(2)[given], 1 - given
    other[chosen] = given[chosen]
    path = RidgePath(H, np.ones(3000, bool), strengths=few)
    assert path.fit(Y, other).strength == path.fit(Y, given).strength
    everyone = RidgePath(H, np.ones(3000, bool))
    assert everyone.fit(Y, other).strength != everyone.fit(Y, given).strength


def test_constant_rows_have_no_leverage():
    given, few = np.arange(100) % 2, USUAL._replace(rows=10)
    path = RidgePath(np.ones((100, 3)), np.ones(100, bool), strengths=few)
    fit = path.fit(np.eye(2)[given], given)
    np.testing.assert_allclose(fit.scores, 0.5, atol=1e-12)


def test_classes_that_take_turns_all_choose_the_strength(rng):
    """Every third row would be of one class, and any strength right for it."""
    given, few = np.arange(900) % 3, USUAL._replace(rows=300)
    H = np.eye(3)[given] @ rng.normal(size=(3, 40)) + rng.normal(size=(900, 40))
    fit = RidgePath(H, np.ones(900, bool), strengths=few).fit(np.eye(3)[given], given)
    assert (fit.scores.argmax(axis=1) == given).mean() > 0.95
    picked = some_of(slice(0, 900), 3)
    assert np.bincount(given[picked], minlength=3).min() > 70


def test_variance_of_scores_is_that_of_labels_that_say_nothing(rng):
    H = rng.normal(size=(60, 8)) * np.arange(1, 9)
    path = RidgePath(H, np.ones(60, bool))
    centred = H - H.mean(axis=0)
    G = centred.T @ centred
    ridge = 0.3 * np.linalg.eigvalsh(G).mean()
    hat = centred @ np.linalg.solve(G + ridge * np.eye(8), centred.T)
    fitted = hat @ rng.normal(size=(60, 40_000))
    assert path.variance_of_scores(0.3) == pytest.approx(fitted.var(), rel=0.02)
