"""A column of text as features: what TF-IDF has learnt, or which encoder it was."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from stct.data.columns import is_missing
from stct.data.tables import Table, require_column
from stct.encoders.embedding import load_encoder
from stct.encoders.text_network import TextEncoder
from stct.encoders.texts import cut_texts, embed_text
from stct.encoders.tfidf import Tfidf

Array = NDArray[Any]
Floats = NDArray[np.float32]
Report = Callable[[float], None]

_ALLOWED = "\t\n\r\f\v"
_MOST_CONTROL = 0.1  # of the characters; more is binary data
_LOOKED_AT = 2_000  # characters


@dataclass(frozen=True)
class TfidfRecipe:
    """Vocabularies and directions for one column of text."""

    kind: ClassVar[str] = "tfidf"
    column: str
    tfidf: Tfidf

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.column,)

    @property
    def settings(self) -> dict[str, Any]:
        """For JSON."""
        return {"column": self.column, **self.tfidf.settings}

    @property
    def arrays(self) -> dict[str, Array]:
        """The rest."""
        return self.tfidf.arrays

    @classmethod
    def from_plain(
        cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> Self:
        """Make it again."""
        return cls(str(settings["column"]), Tfidf.from_plain(settings, arrays))

    def transform(
        self,
        table: Table,
        path: Path,
        progress: Report | None = None,
        cache_dir: Path | None = None,
    ) -> Floats:
        """Give the embeddings (n, d) of a table's rows."""
        del cache_dir  # faster than looking them up
        texts = read_texts(table, path, self.column)
        return self.tfidf.transform(cut_texts(texts), progress)


@dataclass(frozen=True)
class EncoderRecipe:
    """The name of a text encoder, and a hash of it, for one column of text."""

    kind: ClassVar[str] = "encoder"
    column: str
    encoder: str
    digest: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.column,)

    @property
    def settings(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "column": self.column,
            "encoder": self.encoder,
            "digest": self.digest,
        }

    @property
    def arrays(self) -> dict[str, Array]:
        """Nothing: the weights are not copied."""
        return {}

    @classmethod
    def from_plain(cls, settings: Mapping[str, Any], _: Mapping[str, Array]) -> Self:
        """Make it again."""
        parts = (settings[name] for name in ("column", "encoder", "digest"))
        return cls(*map(str, parts))

    def transform(
        self,
        table: Table,
        path: Path,
        progress: Report | None = None,
        cache_dir: Path | None = None,
    ) -> Floats:
        """Give the embeddings (n, d) of a table's rows."""
        texts = read_texts(table, path, self.column)
        encoder = load_encoder(self.encoder)
        if not isinstance(encoder, TextEncoder) or encoder.digest != self.digest:
            raise ValueError(
                f"encoder {self.encoder} is not the one that the features were made "
                "with: its weights or settings have changed"
            )
        return embed_text(texts, encoder, progress=progress, cache_dir=cache_dir)


def read_texts(table: Table, path: Path, column: str) -> list[str]:
    """Give the texts of a column; each row must have one."""
    texts, bad = find_texts(table, path, column)
    if bad:
        row, reason = next(iter(bad.items()))
        more = f", and {len(bad) - 1:,} more rows" if len(bad) > 1 else ""
        raise ValueError(
            f"{path}: column {column!r}, row {row} (counting from 0) {reason}{more} "
            "(--skip-bad leaves such rows out)"
        )
    return texts


def find_texts(
    table: Table, path: Path, column: str
) -> tuple[list[str], dict[int, str]]:
    """Give the usable texts of a column, and what is wrong with each other row."""
    require_column(table, path, column, "--text-column")
    texts: list[str] = []
    bad: dict[int, str] = {}
    for row, value in enumerate(table.values(column)):
        reason = _wrong(value)
        if reason is None:
            texts.append(value)
        elif isinstance(value, str) or is_missing(value):
            bad[row] = reason
        else:
            raise ValueError(
                f"{path}: column {column!r}, row {row} (counting from 0) {reason}; "
                "for columns of numbers use --feature-columns"
            )
    return texts, bad


def _wrong(value: Any) -> str | None:
    """Say why a value is no text; None if it is one."""
    if is_missing(value):
        return "has no text"
    if not isinstance(value, str):
        return f"holds {type(value).__name__}, not text"
    if not value.strip():
        return "has an empty text"
    start = value[:_LOOKED_AT]
    odd = sum(not c.isprintable() and ord(c) < 32 and c not in _ALLOWED for c in start)
    if "\0" in value or odd > _MOST_CONTROL * len(start):
        return "holds binary data, not text"
    return None
