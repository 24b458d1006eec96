"""Embed texts: with TF-IDF, or with a frozen text model and a cache on the disk."""

import hashlib
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stct.encoders.cache import KEY_BYTES, EmbeddingCache
from stct.encoders.embedding import Encoder, load_encoder
from stct.encoders.text_network import TextEncoder
from stct.encoders.tfidf import NAME as TFIDF
from stct.encoders.tfidf import fit_tfidf

Floats = NDArray[np.float32]
Report = Callable[[float], None]

MOST_CHARACTERS = 20_000  # of a text that TF-IDF looks at
_SAVED = 512  # embeddings that are saved at a time


def embed_text(
    texts: Sequence[str],
    encoder: TextEncoder | str = TFIDF,
    *,
    batch_size: int = 64,
    progress: Report | None = None,
    cache_dir: Path | None = None,
) -> Floats:
    """Embed texts.

    Parameters
    ----------
    texts : sequence of str, length n
    encoder : TextEncoder or str, default="tfidf"
        ``"tfidf"`` learns from these texts and needs no other package; any other name
        is loaded with `load_encoder`: ``"minilm"``, ``"hf:NAME_OR_DIR"``.
    batch_size : int
        Texts that go through the network at a time.
    progress : callable, optional
        Is told the share that is done.
    cache_dir : path, optional
        Where embeddings of a text model are kept and looked up; `default_cache` gives
        the usual place. Texts that are already known are not embedded again.

    Returns
    -------
    ndarray of shape (n, d), float32

    Warns
    -----
    UserWarning
        If texts were longer than the encoder reads, and were cut.

    Examples
    --------
    >>> from stct.encoders import embed_text
    >>> embed_text(["lost my card", "card is lost", "a new pin", "the pin"]).shape
    (4, 3)
    """
    texts = _as_texts(texts)
    if encoder == TFIDF:
        shorter = cut_texts(texts)
        return fit_tfidf(shorter, progress).transform(shorter)
    if isinstance(encoder, str):
        loaded = load_encoder(encoder)
        if isinstance(loaded, Encoder):
            raise ValueError(f"encoder {encoder} is a model of images, not of text")
        encoder = loaded
    cache = None if cache_dir is None else EmbeddingCache(cache_dir, encoder.identity)
    keys = [_key(text) for text in texts]
    found = {} if cache is None else cache.find(keys)
    new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
    tokens, cut = encoder.tokenize(list(new.values())) if new else ([], 0)
    if cut:
        warnings.warn(
            f"{cut:,} of {len(new):,} texts are longer than the {encoder.max_tokens} "
            f"tokens that {encoder.name} reads; only their beginning counts",
            UserWarning,
            stacklevel=2,
        )
    names = list(new)
    total, done = sum(len(row) for row in tokens), 0
    kept: list[tuple[bytes, Floats]] = []
    for batch in _batches([len(row) for row in tokens], batch_size):
        vectors = encoder.forward([tokens[i] for i in batch])
        kept += zip([names[i] for i in batch], vectors, strict=True)
        done += sum(len(tokens[i]) for i in batch)
        if len(kept) >= _SAVED or done == total:
            found |= dict(kept)
            if cache is not None:
                cache.add([key for key, _ in kept], np.stack([v for _, v in kept]))
            kept = []
        if progress is not None:
            progress(done / total)
    return np.stack([found[key] for key in keys]).astype(np.float32, copy=False)


def cut_texts(texts: Sequence[str]) -> list[str]:
    """Cut texts that are too long to count their words, and warn of it."""
    long = sum(len(text) > MOST_CHARACTERS for text in texts)
    if long:
        warnings.warn(
            f"{long:,} of {len(texts):,} texts are longer than {MOST_CHARACTERS:,} "
            "characters; only their beginning counts",
            UserWarning,
            stacklevel=3,
        )
    return [text[:MOST_CHARACTERS] for text in texts]


def _batches(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Put texts of one length together: padding takes time and changes last digits."""
    order = np.argsort(lengths, kind="stable")
    same = np.flatnonzero(np.diff(np.asarray(lengths)[order])) + 1
    batches = []
    for group in np.split(order, same):
        for start in range(0, len(group), batch_size):
            batches.append(group[start : start + batch_size].tolist())
    return batches


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()


def _as_texts(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise ValueError("texts must be a list of texts, got one text")
    rows = list(texts)
    odd = [row for row, text in enumerate(rows) if not isinstance(text, str)]
    if odd:
        kind = type(rows[odd[0]]).__name__
        raise ValueError(f"text {odd[0]} (counting from 0) is {kind}, not str")
    if not rows:
        raise ValueError("there are no texts")
    return rows
