"""Rows and labels as people have them give what plain arrays give."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from command import blobs
from scipy import sparse

from stct import LabelCorrector

X, TRUTH, GIVEN = blobs(90, 9)
NAMES = np.array(["cat", "dog", "owl"])[GIVEN]
LISTS = X.tolist()


@pytest.mark.parametrize(
    "rows",
    [
        torch.tensor(X),
        torch.tensor(X, requires_grad=True),
        torch.tensor(X, dtype=torch.float64).T.contiguous().T,
        torch.tensor(X).to_sparse(),
        [torch.tensor(row, requires_grad=True) for row in X],
        pd.Series(LISTS),
        pd.DataFrame({"e": list(X)}),
        pd.Series(pd.arrays.ArrowExtensionArray(pa.array(LISTS))),
        pl.Series(LISTS),
        pl.DataFrame({"e": LISTS}),
        pl.DataFrame(X, schema=list("abcd")),
        pl.Series(X, dtype=pl.Array(pl.Float32, 4)),
        pa.array(LISTS, pa.list_(pa.float32())),
        pa.chunked_array([LISTS[:40], LISTS[40:]], pa.list_(pa.float32(), 4)),
        pa.table({"e": LISTS}),
        pa.table({name: X[:, i] for i, name in enumerate("abcd")}),
        sparse.csr_matrix(X),
        sparse.coo_array(X),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_of_any_kind(rows):
    expected = LabelCorrector().fit(X, NAMES)
    found = LabelCorrector().fit(rows, NAMES)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    same = found.predict_proba(rows), expected.predict_proba(X)
    np.testing.assert_allclose(*same, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int64])
def test_tensors_of_short_types(dtype):
    found = LabelCorrector().fit(torch.tensor(X).mul(50).to(dtype), torch.tensor(GIVEN))
    assert np.mean(found.labels_ == TRUTH) > 0.97


@pytest.mark.parametrize(
    "labels",
    [
        pl.Series(NAMES.tolist()),
        pa.array(NAMES.tolist()),
        pa.chunked_array([NAMES.tolist()]),
        pl.Series([None, *NAMES[1:].tolist()]),
        pa.array([None, *NAMES[1:].tolist()]),
    ],
)
def test_labels_of_any_kind(labels):
    found = LabelCorrector().fit(X, labels)
    expected = NAMES.astype(object)
    if not labels[0] or str(labels[0]) == "None":
        expected[0] = None
    assert found.labels_.tolist() == LabelCorrector().fit(X, expected).labels_.tolist()


def wide(num=300, columns=5_000):
    """Counts of words: twenty of its own for each of three topics."""
    rng = np.random.default_rng(0)
    truth = np.arange(num) % 3
    rows = np.repeat(np.arange(num), 30)
    own = truth[rows] * 20 + rng.integers(0, 20, len(rows))
    words = np.where(
        rng.random(len(rows)) < 0.3, own, rng.integers(0, columns, len(rows))
    )
    counts = sparse.coo_matrix((np.ones(len(rows)), (rows, words)), (num, columns))
    given = truth.copy()
    given[:40] = (given[:40] + 1) % 3
    return counts.tocsr(), truth, given


def test_a_wide_sparse_matrix_goes_through_an_svd(tmp_path):
    counts, truth, given = wide()
    corrector = LabelCorrector().fit(counts, given)
    assert np.mean(corrector.labels_ == truth) > 0.97
    assert corrector.n_features_in_ == 5_000
    assert any("sparse with 5,000 columns" in note for note in corrector.notes_)
    again = LabelCorrector().fit(counts.tocsc(), given)
    np.testing.assert_array_equal(again.labels_, corrector.labels_)
    P = corrector.predict_proba(counts[:50])
    np.testing.assert_allclose(
        corrector.predict_proba(counts[:50].toarray()), P, atol=1e-4
    )
    assert np.mean(corrector.predict(counts) == truth) > 0.97
    with pytest.raises(ValueError, match="reduce it with scikit-learn's TruncatedSVD"):
        corrector.save(tmp_path / "c.npz")
    # A fit to other rows forgets the directions.
    assert corrector.fit(X, GIVEN).predict(X).shape == (90,)


def test_rows_that_cannot_be_used():
    counts, _, given = wide()
    counts.data[counts.indptr[7]] = np.nan
    with pytest.raises(
        ValueError, match=r"NaN or infinite values in 1 of 300 .*row 7\)"
    ):
        LabelCorrector().fit(counts, given)
    with pytest.raises(ValueError, match=r"row 5 .* has 3 numbers, row 0 has 4"):
        LabelCorrector().fit(pd.Series([*LISTS[:5], [1.0] * 3, *LISTS[6:]]), GIVEN)
    with pytest.raises(ValueError, match=r"row 5 .* has no list of numbers"):
        LabelCorrector().fit(pl.Series([*LISTS[:5], None, *LISTS[6:]]), GIVEN)
