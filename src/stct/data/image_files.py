"""Single image files: what a header says, and pixels of a wanted size and mode.

Grey images have one channel, all others three: palettes become colours, 16-bit greys
8-bit ones, transparent parts white, and a photo is turned the way its camera was held.
"""

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.data.files import check_regular

if TYPE_CHECKING:
    from PIL import Image

Pixels = NDArray[np.uint8]
Source = Path | bytes  # a file, or the content of one

# The only formats that are opened. Pillow has more, one of which (EPS) starts another
# program, and the ending of a file's name says nothing about its content.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
ENDINGS = (
    *(".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".jfif"),
)
THREADS = 8
_FREE_PIXELS, _PIXELS_PER_BYTE = 2**24, 2_000  # one colour packs a thousand in a byte
_GREY = ("1", "L", "LA", "La", "I;16", "I;16L", "I;16B", "I")
_ORIENTATION = 0x0112  # the EXIF tag; 5 to 8 swap width and height
_WHITE = (255, 255, 255, 255)


class Header(NamedTuple):
    """What is known about an image before it is decoded."""

    height: int
    width: int
    channels: int  # 1 or 3


class Layout(NamedTuple):
    """The one shape that all images of a set get."""

    height: int
    width: int
    channels: int  # 1 or 3


class BadImage(ValueError):  # noqa: N818
    """An image that cannot be read; the message says why, not which."""


def read_header(source: Source) -> Header:
    """Tell size and channels of an image without decoding it."""
    with open_image(source) as image:
        if image.mode == "F":
            raise BadImage("its pixels are floats; 8-bit or 16-bit images are read")
        width, height = image.size
        if _lies_on_its_side(image):
            width, height = height, width
        return Header(height, width, 1 if image.mode in _GREY else 3)


def _lies_on_its_side(image: "Image.Image") -> bool:
    if image.format == "PNG" and "exif" not in image.info:
        return False  # looking for it behind the pixels would decode them
    try:
        return int(image.getexif().get(_ORIENTATION, 1)) >= 5
    except Exception as error:  # Pillow raises many kinds for a damaged file
        raise BadImage(_reason(error)) from error


def decode(source: Source, layout: Layout) -> Pixels:
    """Read one image as uint8 (h, w, c) in the wanted layout.

    Another size is scaled to cover the wanted one and cut around its centre, so
    shapes keep their proportions.
    """
    from PIL import ImageOps

    try:
        with open_image(source) as image:
            longer = max(layout.height, layout.width)
            image.draft(None, (longer, longer))  # JPEG: decode at a fraction
            return _in_layout(ImageOps.exif_transpose(image), layout)
    except (BadImage, MemoryError):
        raise
    except Exception as error:  # Pillow raises many kinds for a damaged file
        raise BadImage(_reason(error)) from error


def reshape(pixels: Pixels, layout: Layout) -> Pixels:
    """Bring one image (h, w, c) that is an array into the wanted layout."""
    from PIL import Image

    return _in_layout(Image.fromarray(np.squeeze(pixels)), layout)


def decode_all(sources: list[Source], layout: Layout) -> list[Pixels | BadImage]:
    """Decode many images on several threads; a bad one gives its error."""

    def attempt(source: Source) -> Pixels | BadImage:
        try:
            return decode(source, layout)
        except BadImage as error:
            return error

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(attempt, sources))


def open_image(source: Source) -> "Image.Image":
    """Open an image file, or the bytes of one, of one of `FORMATS`; nothing else.

    Raises
    ------
    BadImage
        If it is none, or damaged, or not a regular file.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ValueError(
            "reading images needs Pillow: pip install 'stct[images]'"
        ) from error
    try:
        if not isinstance(source, bytes):
            check_regular(source)
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        image = Image.open(file, formats=FORMATS)
    except FileNotFoundError as error:
        raise BadImage("there is no such file") from error
    except ValueError as error:
        raise BadImage(_reason(error).removeprefix(f"{source!s}: ")) from error
    except Exception as error:  # Pillow raises many kinds for a damaged file
        raise BadImage(_reason(error)) from error
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    if image.width * image.height > max(_FREE_PIXELS, _PIXELS_PER_BYTE * size):
        image.close()
        raise BadImage(
            f"{image.width} x {image.height} pixels in {size:,} bytes: damaged, or "
            "made to fill the memory"
        )
    return image


def _in_layout(image: "Image.Image", layout: Layout) -> Pixels:
    from PIL import Image, ImageOps

    height, width, channels = layout
    plain = _plain(image, channels)
    if plain.size != (width, height):
        plain = ImageOps.fit(plain, (width, height), Image.Resampling.BILINEAR)
    return np.asarray(plain).reshape(height, width, channels)


def _plain(image: "Image.Image", channels: int) -> "Image.Image":
    """Convert any mode to 8-bit grey or colour."""
    from PIL import Image

    if image.mode.startswith("I"):
        deep = np.asarray(image).astype(np.int64)
        image = Image.fromarray((deep.clip(0, 65_535) >> 8).astype(np.uint8))
    elif image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, _WHITE), image)
    elif image.mode == "P":
        image = image.convert("RGB")
    return image.convert("L" if channels == 1 else "RGB")


def _reason(error: BaseException) -> str:
    text = str(error)
    if "cannot identify" in text:
        return "not an image, or damaged"
    return text or type(error).__name__
