"""Texts as numbers without a network: TF-IDF and a truncated SVD of scikit-learn.

Words, pairs of words and parts of words of three to five characters are counted,
weighted by how rare they are, and reduced to the directions that hold most of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.numeric.tiles import single_blas_thread

Floats = NDArray[np.float32]

NAME = "tfidf"
_COMPONENTS = 512
_ITERATIONS = 3  # of the randomised SVD
_MOST_TERMS = 50_000  # of each of the two vocabularies
_MOST_ROWS = 50_000  # texts from which vocabularies and directions are learnt
_BLOCK = 4_096  # texts
_VECTORISERS: tuple[dict[str, Any], ...] = (
    {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"},
    {"analyzer": "char_wb", "ngram_range": (3, 5)},
)


@dataclass(frozen=True)
class Tfidf:
    """Vocabularies, weights and directions that were learnt from some texts."""

    vectorisers: tuple[Any, ...]  # fitted `TfidfVectorizer`
    directions: Floats  # (V, d), divided by the root of their singular values

    def transform(
        self, texts: Sequence[str], progress: Callable[[float], None] | None = None
    ) -> Floats:
        """Give the embeddings (n, d) of texts."""
        blocks = []
        for start in range(0, len(texts), _BLOCK):
            block = texts[start : start + _BLOCK]
            rows = _counts(self.vectorisers, block) @ self.directions
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            blocks.append(rows / np.maximum(lengths, 1e-9))
            if progress is not None:
                progress(min(1.0, (start + _BLOCK) / len(texts)))
        return np.concatenate(blocks)

    @property
    def settings(self) -> dict[str, Any]:
        """What `from_plain` needs beside the arrays, for JSON."""
        return {"vocabularies": [_terms(v) for v in self.vectorisers]}

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `from_plain` needs beside the settings."""
        weights = {f"idf_{i}": v.idf_ for i, v in enumerate(self.vectorisers)}
        return {**weights, "directions": self.directions.astype(np.float16)}

    @staticmethod
    def from_plain(
        settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> "Tfidf":
        """Make it again from plain data."""
        vectorisers = []
        for i, terms in enumerate(settings["vocabularies"]):
            vectoriser = _vectoriser(_VECTORISERS[i])
            vectoriser.set_params(vocabulary={term: j for j, term in enumerate(terms)})
            vectoriser.idf_ = arrays[f"idf_{i}"]
            vectorisers.append(vectoriser)
        return Tfidf(tuple(vectorisers), arrays["directions"].astype(np.float32))


def fit_tfidf(
    texts: Sequence[str], progress: Callable[[float], None] | None = None
) -> Tfidf:
    """Learn vocabularies and directions from texts; the same texts give the same.

    Raises
    ------
    ValueError
        If the texts have no words, or no more than one that two of them share.
    """
    from sklearn.decomposition import TruncatedSVD

    stride = -(-len(texts) // _MOST_ROWS)
    sample = texts[::stride]
    vectorisers = []
    for settings in _VECTORISERS:
        # A term of one text says nothing of another one.
        vectoriser = _vectoriser(settings).set_params(min_df=min(2, len(sample)))
        try:
            vectorisers.append(vectoriser.fit(sample))
        except ValueError as error:
            raise ValueError(
                "the texts have no words in common, so there is nothing to go by"
            ) from error
    if progress is not None:
        progress(0.2)
    counts = _counts(vectorisers, sample)
    most = min(counts.shape) - 1
    if most < 1:
        raise ValueError("the texts have one word only, so there is nothing to go by")
    svd = TruncatedSVD(min(_COMPONENTS, most), n_iter=_ITERATIONS, random_state=0)
    with single_blas_thread():  # the same numbers for any number of threads
        svd.fit(counts)
    # Half-way to whitening: the common directions say least about the class.
    directions = svd.components_.T / np.sqrt(np.maximum(svd.singular_values_, 1e-6))
    if progress is not None:
        progress(0.9)
    # As they are written to a file: new texts then get the same numbers.
    return Tfidf(tuple(vectorisers), directions.astype(np.float16).astype(np.float32))


def _vectoriser(settings: Mapping[str, Any]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(
        sublinear_tf=True, max_features=_MOST_TERMS, dtype=np.float32, **settings
    )


def _counts(vectorisers: Sequence[Any], texts: Sequence[str]) -> Any:
    """Weighted counts of all terms, a sparse (n, V)."""
    from scipy import sparse

    return sparse.hstack([v.transform(texts) for v in vectorisers], format="csr")


def _terms(vectoriser: Any) -> list[str]:
    return [str(term) for term in vectoriser.get_feature_names_out()]
