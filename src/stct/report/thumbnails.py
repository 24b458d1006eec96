"""Small pictures of rows, from image files or from an array of pixels.

Files come from strangers: `stct.data.image_files.open_image` opens them, and an image
too large to be sane is left out. Files need Pillow (``stct[images]``); an
array of pixels does not, it is then written as plain PNG.
"""

import io
import os
import struct
import warnings
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.data.image_files import open_image

LARGE, SMALL = 160, 56  # longest side in pixels: the row itself, a neighbour
_USUAL_COLUMNS = ("image", "image_path", "path", "file", "filename", "file_name", "id")
_TINY = 16  # pixels; such images are kept without loss
_QUALITY = 80  # of 100

# images[row] is an array (h, w) or (h, w, c) of uint8, a path, bytes of a file, or None
Images = NDArray[Any] | Sequence[Any]


class Thumbnails(NamedTuple):
    """Encoded pictures of some rows, and what is missing."""

    pictures: dict[int, bytes]  # row -> JPEG or PNG
    num_missing: int  # rows whose file is not there or cannot be read
    num_left_out: int  # rows left out to keep the report small
    note: str | None


def make_thumbnails(
    images: Images,
    rows: Sequence[int],
    small_rows: Sequence[int],
    *,
    budget: int,
    progress: Callable[[float], None] = lambda share: None,
) -> Thumbnails:
    """Make pictures of ``rows``, then smaller ones of ``small_rows``.

    Parameters
    ----------
    images : array of uint8, or sequence of arrays or paths
        One for each row of the table. An entry that is None has no image.
    rows, small_rows : sequence of int
        A row in both gets the larger picture.
    budget : int
        Bytes for all pictures together; the last ones are left out beyond it.
    progress : callable, optional
        Called with the share of pictures made.
    """
    files = isinstance(images, list | tuple) and any(map(_is_file, images[:100]))
    if files and not _has_pillow():
        note = "images are not shown: install Pillow (pip install 'stct[images]')"
        return Thumbnails({}, 0, 0, note)
    large = list(dict.fromkeys(int(row) for row in rows))
    known = set(large)
    small = [row for row in dict.fromkeys(map(int, small_rows)) if row not in known]
    sizes = [*[(row, LARGE) for row in large], *[(row, SMALL) for row in small]]

    def make(job: tuple[int, int]) -> bytes | None:
        row, size = job
        try:
            image = images[row]
            read = _from_file if _is_file(image) else _from_pixels
            return read(image, size)
        except Exception:  # a decoder can fail in many ways; there is a placeholder
            return None

    pictures: dict[int, bytes] = {}
    missing = left_out = used = 0
    # Pillow lets go of the interpreter while it reads and scales. The warning filter
    # is set here, once: it is global and not for threads to change.
    with warnings.catch_warnings(), ThreadPoolExecutor() as pool:
        warnings.simplefilter("ignore")
        made = zip(sizes, pool.map(make, sizes), strict=True)
        for k, ((row, _), data) in enumerate(made):
            progress(k / len(sizes))
            if data is None:
                missing += 1
            elif used + len(data) > budget:
                left_out += 1
            else:
                used += len(data)
                pictures[row] = data
    return Thumbnails(pictures, missing, left_out, None)


def find_image_column(
    columns: dict[str, list[Any]], folder: Path, name: str | None
) -> str | None:
    """Give the column of image paths: the one asked for, or one that looks like it."""
    if name is not None:
        if name not in columns:
            raise ValueError(
                f"no column {name!r} (set by --image-column); "
                f"the columns are {', '.join(columns)}"
            )
        return name
    for usual in _USUAL_COLUMNS:
        values = columns.get(usual, [])
        texts = [v for v in values[:1000] if isinstance(v, str) and v][:50]
        if any(_is_image_file(folder / text) for text in texts):
            return usual
    return None


def image_paths(values: Sequence[Any], folder: Path) -> list[str | None]:
    """Give the paths in a column, relative ones seen from ``folder``."""
    start = str(folder)
    return [
        os.path.join(start, value) if isinstance(value, str) and value else None
        for value in values
    ]


def _is_image_file(path: Path) -> bool:
    endings = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
    try:
        return path.suffix.lower() in endings and path.is_file()
    except (OSError, ValueError):  # a name too long, a zero character
        return False


def _is_file(image: Any) -> bool:
    return image is None or isinstance(image, str | Path | bytes)


def _has_pillow() -> bool:
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        return False
    return True


def _from_file(file: Any, size: int) -> bytes | None:
    """Read and scale an image file or the bytes of one; None if there is none."""
    from PIL import Image, ImageOps

    if file is None:
        return None
    with open_image(file if isinstance(file, bytes) else Path(file)) as image:
        if image.width * image.height > (Image.MAX_IMAGE_PIXELS or 10**8):
            return None
        image.draft("RGB", (size, size))  # JPEG: decode it no larger than needed
        return _encode(ImageOps.exif_transpose(image), size)


def _from_pixels(pixels: NDArray[Any], size: int) -> bytes:
    """Encode an array (h, w) or (h, w, c) of uint8."""
    pixels = np.ascontiguousarray(
        pixels[..., 0] if pixels.shape[2:] == (1,) else pixels
    )
    if not _has_pillow():
        step = -(-max(pixels.shape[:2]) // size)  # rounded up
        return _plain_png(np.ascontiguousarray(pixels[::step, ::step]))
    from PIL import Image

    return _encode(Image.fromarray(pixels), size)


def _encode(image: Any, size: int) -> bytes:
    has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    image = image.convert("RGBA" if has_alpha else "RGB")
    image.thumbnail((size, size))
    out = io.BytesIO()
    if max(image.size) <= _TINY or has_alpha:
        image.save(out, "PNG")
    else:  # a third of the time and twice the bytes of WebP
        image.save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()


def _plain_png(pixels: NDArray[Any]) -> bytes:
    """Write grey (h, w), RGB or RGBA (h, w, c) pixels as a PNG file."""
    height, width = pixels.shape[:2]
    colour = {2: 0, 3: {3: 2, 4: 6}.get(pixels.shape[-1], 2)}[pixels.ndim]
    lines = pixels.reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), lines], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 9)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", body)
        + chunk(b"IEND", b"")
    )
