"""Images of large sets as they are trained on, decoded once and kept on the disk.

A set that does not fit into memory is written to the cache at its training size, in
blocks of rows, each one file that appears whole or not at all. So a run that was
stopped goes on where it was, and later runs on the same files begin at once. Training
then reads rows through memory maps, and batches are made while the device works on the
one before.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from lightning_fabric import Fabric
from numpy.typing import NDArray

from stct.data.image_files import Source
from stct.data.image_set import LazyImages
from stct.encoders.cache import default_cache

_BLOCK_BYTES = 2**30  # of a file: each one that is mapped stays open
_DECODED = 256  # images that are in memory at a time

Say = Callable[[str], None]
T = TypeVar("T")


def print_nothing(_: str) -> None:
    """Say it to nobody."""


class PixelBlocks:
    """Images (n, h, w, c) in files of as many rows each; the last may have fewer."""

    dtype = np.dtype(np.uint8)

    def __init__(self, blocks: list[NDArray[np.uint8]]) -> None:
        self._blocks = blocks
        self._rows = len(blocks[0])
        self.shape = (sum(len(block) for block in blocks), *blocks[0].shape[1:])

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> NDArray[np.uint8]:
        chosen = np.asarray(rows)
        out = np.empty((len(chosen), *self.shape[1:]), dtype=np.uint8)
        which, place = np.divmod(chosen, self._rows)
        for block in np.unique(which):
            here = which == block
            out[here] = self._blocks[block][place[here]]
        return out


def decoded(images: Any, fabric: Fabric, say: Say) -> Any:
    """Give images that are read from files as blocks of the cache; others as they are.

    The first process of each machine writes what is missing. Where the disk has no
    room the images stay as they are: they are then decoded at every access.
    """
    if not isinstance(images, LazyImages):
        return images
    if fabric.local_rank == 0:
        _write_missing(images, default_cache(), say)
    fabric.barrier()
    paths = _paths(images, default_cache())
    blocks = [_read(path, rows, images) for path, rows in paths]
    whole = [block for block in blocks if block is not None]
    return PixelBlocks(whole) if len(whole) == len(blocks) else images


def ahead(
    make: Callable[[int], T], start: int, stop: int, *, wait: bool
) -> Iterator[T]:
    """Give ``make(start)`` to ``make(stop - 1)``; each is made while one is in use.

    With ``wait`` they are made when they are asked for.
    """
    if wait:
        yield from map(make, range(start, stop))
        return
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(make, start) if start < stop else None
        while coming is not None:
            ready, start = coming.result(), start + 1
            coming = pool.submit(make, start) if start < stop else None
            yield ready


def _write_missing(images: LazyImages, cache: Path, say: Say) -> None:
    """Write the blocks that are not there, if there is room for them."""
    paths = _paths(images, cache)
    missing = [(p, rows) for p, rows in paths if _read(p, rows, images) is None]
    if not missing:
        return
    folder = paths[0][0].parent
    needed = sum(len(rows) for _, rows in missing) * _image_bytes(images)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if free < 1.05 * needed:
            say(
                f"{folder} has {free / 1e9:.1f} GB free and {needed / 1e9:.1f} GB are "
                "needed to keep the decoded images: they are decoded at every access, "
                "which is slow; set STCT_CACHE to a folder with room"
            )
            return
        for number, (path, rows) in enumerate(missing):
            _write(path, rows, images)
            if (number + 1) * 10 // len(missing) > number * 10 // len(missing):
                say(f"decoding images: {(number + 1) / len(missing):.0%}")
    except OSError as error:
        raise ValueError(
            f"{folder}: decoded images cannot be kept ({error.strerror or error}); set "
            "STCT_CACHE to another folder"
        ) from error


def _write(path: Path, rows: range, images: LazyImages) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            shape = (len(rows), *images.shape[1:])
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for start in range(rows.start, rows.stop, _DECODED):
                part = np.arange(start, min(start + _DECODED, rows.stop))
                file.write(images[part].tobytes())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path, rows: range, images: LazyImages) -> NDArray[np.uint8] | None:
    """Map one block; None where it is not there, or not whole."""
    try:
        block: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    right = block.shape == (len(rows), *images.shape[1:]) and block.dtype == np.uint8
    return block if right else None


def _paths(images: LazyImages, cache: Path) -> list[tuple[Path, range]]:
    """Give the file and the rows of each block.

    Its name follows from the size and mode that images get and from each file's name,
    length and time of change, or from its bytes where these are in memory.
    """
    per_block = max(1, _BLOCK_BYTES // _image_bytes(images))
    paths = []
    for start in range(0, len(images), per_block):
        rows = range(start, min(start + per_block, len(images)))
        name = hashlib.blake2b(repr(images.layout).encode(), digest_size=16)
        for row in rows:
            name.update(_identity(images.sources[row]))
        paths.append((cache / "pixels" / f"{name.hexdigest()}.npy", rows))
    return paths


def _identity(source: Source) -> bytes:
    if isinstance(source, bytes):
        return hashlib.blake2b(source, digest_size=16).digest()
    about = os.stat(source)
    return repr(
        (str(Path(source).resolve()), about.st_size, about.st_mtime_ns)
    ).encode()


def _image_bytes(images: LazyImages) -> int:
    return int(np.prod(images.shape[1:]))
