"""From a list of image files to an `ImageSet`: one shape, bad files found, notes."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stct.data.image_files import (
    THREADS,
    BadImage,
    Header,
    Layout,
    Source,
    decode_all,
    read_header,
)
from stct.data.image_set import Images, ImageSet, LazyImages, Progress
from stct.data.tables import Table

MOST_BYTES = 2 * 2**30  # a larger set stays on the disk
_BLOCK = 512  # images between two reports of progress
_SHARE_OF_HEADERS = 0.1  # of the work, roughly

T = TypeVar("T")


@dataclass(frozen=True)
class Listed:
    """Images that are known but not read yet, and what came with them."""

    sources: list[Source]
    names: list[str]  # how messages call each image
    ids: list[str]
    labels: NDArray[Any] | None  # (n,)
    classes: tuple[str, ...] | None = None
    table: Table | None = None
    id_column: str | None = None
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def without(self, bad: Sequence[tuple[int, str]]) -> "Listed":
        """Leave out rows, given with the reason for each."""
        gone = {row for row, _ in bad}
        rows = [i for i in range(len(self.sources)) if i not in gone]
        table = self.table
        return replace(
            self,
            sources=[self.sources[i] for i in rows],
            names=[self.names[i] for i in rows],
            ids=[self.ids[i] for i in rows],
            labels=None if self.labels is None else self.labels[rows],
            table=None if table is None else table.take(rows),
            skipped=[
                *self.skipped,
                *(f"{self.names[row]}: {reason}" for row, reason in bad),
            ],
        )


def load_images(
    listed: Listed,
    *,
    where: str,
    size: tuple[int, int] | None = None,
    at_most: int | None = None,
    photos_at: int | None = None,
    channels: int | None = None,
    skip_bad: bool = False,
    most_bytes: int = MOST_BYTES,
    progress: Progress | None = None,
) -> ImageSet:
    """Read listed images in one shape; the arguments are those of `read_images`."""
    headers = _in_blocks(_headers, listed.sources, progress, 0.0, _SHARE_OF_HEADERS)
    bad = [(i, str(h)) for i, h in enumerate(headers) if isinstance(h, BadImage)]
    listed = _checked(listed, bad, where, skip_bad=skip_bad)
    good = [header for header in headers if isinstance(header, Header)]
    if size is None and at_most is not None:
        size = _square_if_needed(good, at_most)
    elif size is None and photos_at is not None:
        common = _most_common(Counter((header.height, header.width) for header in good))
        size = (photos_at, photos_at) if min(common) > photos_at else None
    layout = _common_layout(good, size, channels)
    bytes_needed = len(good) * layout.height * layout.width * layout.channels
    lazy = bytes_needed > most_bytes
    images: Images
    if lazy and not skip_bad:
        images = LazyImages(listed.sources, listed.names, layout)
    else:
        listed, images = _decode(listed, layout, where, skip_bad, lazy, progress)
    return ImageSet(
        images,
        listed.labels,
        listed.ids,
        classes=listed.classes,
        table=listed.table,
        id_column=listed.id_column,
        notes=[*listed.notes, *_describe(good, layout, size, channels)],
        skipped=listed.skipped,
    )


def _decode(
    listed: Listed,
    layout: Layout,
    where: str,
    skip_bad: bool,
    lazy: bool,
    progress: Progress | None,
) -> tuple[Listed, Images]:
    num = len(listed.sources)
    out = np.empty((0 if lazy else num, *layout), dtype=np.uint8)  # (n, h, w, c)
    bad: list[tuple[int, str]] = []
    row = 0

    def fill(sources: list[Source]) -> list[None]:
        nonlocal row
        for pixels in decode_all(sources, layout):
            if isinstance(pixels, BadImage):
                bad.append((row, str(pixels)))
            elif not lazy:
                out[row - len(bad)] = pixels
            row += 1
        _checked(listed, bad[:1] if not skip_bad else [], where, skip_bad=False)
        return []

    _in_blocks(fill, listed.sources, progress, _SHARE_OF_HEADERS, 1.0)
    listed = _checked(listed, bad, where, skip_bad=skip_bad)
    if lazy:
        return listed, LazyImages(listed.sources, listed.names, layout)
    return listed, out[: len(listed.sources)]


def _headers(sources: list[Source]) -> list[Header | BadImage]:
    def attempt(source: Source) -> Header | BadImage:
        try:
            return read_header(source)
        except BadImage as error:
            return error

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(attempt, sources))


def _in_blocks(
    work: Callable[[list[Source]], list[T]],
    sources: list[Source],
    progress: Progress | None,
    start: float,
    stop: float,
) -> list[T]:
    results: list[T] = []
    for i in range(0, len(sources), _BLOCK):
        results += work(sources[i : i + _BLOCK])
        if progress is not None:
            done = min(1.0, (i + _BLOCK) / len(sources))
            progress(start + (stop - start) * done)
    return results


def _checked(
    listed: Listed, bad: list[tuple[int, str]], where: str, *, skip_bad: bool
) -> Listed:
    """Leave out the bad ones, or raise."""
    if bad and not skip_bad:
        row, reason = bad[0]
        raise ValueError(
            f"{listed.names[row]}: {reason} (--skip-bad leaves such images out)"
        )
    left = listed.without(bad) if bad else listed
    if not left.sources:
        reason = f"; the first: {left.skipped[0]}" if left.skipped else ""
        raise ValueError(f"{where}: no image that can be read{reason}")
    return left


def _square_if_needed(headers: list[Header], edge: int) -> tuple[int, int] | None:
    sizes = {(header.height, header.width) for header in headers}
    needed = len(sizes) > 1 or min(max(sizes)) > edge
    return (edge, edge) if needed else None


def _common_layout(
    headers: list[Header], size: tuple[int, int] | None, channels: int | None
) -> Layout:
    sizes = Counter((header.height, header.width) for header in headers)
    height, width = size or _most_common(sizes)
    modes = Counter(header.channels for header in headers)
    return Layout(height, width, channels or _most_common(modes))


def _most_common(counts: Counter[T]) -> T:
    """Give the most common value; of two, the larger, whatever the order."""
    return max(counts, key=lambda value: (counts[value], value))


def _describe(
    headers: list[Header],
    layout: Layout,
    size: tuple[int, int] | None,
    channels: int | None,
) -> list[str]:
    notes = []
    resized = sum((h.height, h.width) != layout[:2] for h in headers)
    if resized:
        most = "" if size else ", the most common size"
        notes.append(
            f"{resized:,} of {len(headers):,} images were resized to "
            f"{layout.width} x {layout.height}{most}"
        )
    converted = sum(h.channels != layout.channels for h in headers)
    if converted:
        kind = "grey" if layout.channels == 1 else "colour"
        most = "" if channels else ", as most are"
        notes.append(
            f"{converted:,} of {len(headers):,} images were converted to {kind}{most}"
        )
    return notes
