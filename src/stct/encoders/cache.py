"""Embeddings kept on the disk, by the content of each row and by encoder.

One folder for each encoder, one .npz file for each block of rows: ``keys``
(b, 16), the hashes of the images or texts, and ``vectors`` (b, d). A file appears whole
or not at all, so a run that was stopped goes on where it was; rows that were moved,
renamed or given another label are found again.
"""

import hashlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.arrays import read_array

Floats = NDArray[np.float32]

KEY_BYTES = 16


def default_cache() -> Path:
    """Give the folder for caches: $STCT_CACHE, or stct in the user's cache folder."""
    own = os.environ.get("STCT_CACHE")
    if own:
        return Path(own).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "stct"


def image_keys(images: NDArray[np.uint8]) -> list[bytes]:
    """Hash the shape and pixels of each image of (b, h, w, c)."""
    shape = repr(images.shape[1:]).encode()
    blocks = np.ascontiguousarray(images)
    return [
        hashlib.blake2b(shape + image.tobytes(), digest_size=KEY_BYTES).digest()
        for image in blocks
    ]


class EmbeddingCache:
    """The embeddings that one encoder has made on this machine."""

    def __init__(self, folder: Path, encoder: str):
        self.folder = folder / "embeddings" / encoder
        self._places: dict[bytes, tuple[Path, int]] = {}  # key -> file, row
        for path in sorted(self.folder.glob("*.npz")):
            for row, key in enumerate(self._load(path, "keys")):
                self._places[key.tobytes()] = (path, row)

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Floats]:
        """Give the embeddings (d,) of those rows that are known."""
        rows: dict[Path, list[tuple[bytes, int]]] = {}
        for key in keys:
            if key in self._places:
                path, row = self._places[key]
                rows.setdefault(path, []).append((key, row))
        found = {}
        for path, wanted in rows.items():
            vectors = self._load(path, "vectors")
            for key, row in wanted:
                if row < len(vectors):
                    found[key] = vectors[row]
        return found

    def add(self, keys: Sequence[bytes], vectors: Floats) -> None:
        """Write one block of new embeddings (b, d).

        Raises
        ------
        ValueError
            If it cannot be written; what was there before stays.
        """
        name = hashlib.blake2b(b"".join(keys), digest_size=KEY_BYTES).hexdigest()
        path = self.folder / f"{name}.npz"
        temporary = self.folder / f".{name}.{secrets.token_hex(4)}.tmp"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                with temporary.open("wb") as file:
                    hashes = np.frombuffer(b"".join(keys), dtype=np.uint8)
                    np.savez(file, keys=hashes.reshape(-1, KEY_BYTES), vectors=vectors)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            raise ValueError(
                f"{self.folder}: the cache cannot be written "
                f"({error.strerror or error}); choose another --cache-dir or --no-cache"
            ) from error
        for row, key in enumerate(keys):
            self._places[key] = (path, row)

    def _load(self, path: Path, name: str) -> NDArray[Any]:
        """Give one array of a file; a file that is damaged holds nothing."""
        try:
            array = read_array(path, name)
        except (ValueError, OSError):
            return np.empty((0, 0))
        return array if array.ndim == 2 else np.empty((0, 0))
