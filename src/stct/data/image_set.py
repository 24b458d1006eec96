"""Images with their labels and ids, in memory or decoded when they are asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.image_files import BadImage, Layout, Pixels, Source, decode_all
from stct.data.tables import Table

Progress = Callable[[float], None]


class LazyImages:
    """Images that are decoded from their files each time they are asked for.

    Stands where an array (n, h, w, c) stands: it has ``shape``, ``dtype`` and a
    length, and ``images[rows]`` gives uint8 (b, h, w, c) for a slice or an array of
    row numbers or booleans, or (h, w, c) for one row. It can be sent to another
    process; no file stays open.
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, sources: Sequence[Source], names: Sequence[str], layout: Layout):
        self.sources = list(sources)
        self.names = list(names)
        self.layout = layout

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape that the whole array would have: (n, h, w, c)."""
        return (len(self.sources), *self.layout)

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, rows: Any) -> Pixels:
        chosen = np.arange(len(self))[rows]
        one = chosen.ndim == 0
        chosen = np.atleast_1d(chosen)
        out = np.empty((len(chosen), *self.layout), dtype=np.uint8)
        results = decode_all([self.sources[i] for i in chosen], self.layout)
        for place, (row, pixels) in enumerate(zip(chosen, results, strict=True)):
            if isinstance(pixels, BadImage):
                raise ValueError(f"{self.names[row]}: {pixels}") from pixels
            out[place] = pixels
        return out[0] if one else out


Images = NDArray[np.uint8] | LazyImages


@dataclass(frozen=True)
class ImageSet:
    """A set of images of one shape, and what came with them."""

    images: Images  # (n, h, w, c) uint8, c is 1 or 3
    labels: NDArray[Any] | None  # (n,) None where a label is missing
    ids: list[str]  # n different texts: relative path, id or row number of the source
    classes: tuple[str, ...] | None = None  # where the source numbers its classes
    table: Table | None = None  # the rows that were read, where the source is a table
    id_column: str | None = None  # of the table
    notes: list[str] = field(default_factory=list)  # one sentence each
    skipped: list[str] = field(default_factory=list)  # what could not be read

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def table_format(self) -> str | None:
        """csv, tsv, parquet or jsonl where the source is a table."""
        return None if self.table is None else self.table.format
