"""Arrays in .npy files and members of .npz files, checked before room is made.

The header says how large an array is; a damaged or hostile one says anything. Only
numbers and text are read, never Python objects.
"""

import math
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.data.files import brief, check_regular, reading

Array = NDArray[Any]

OBJECTS = "an array of Python objects (a pickle) is never loaded; save numbers"
_KINDS = "biufUS"  # numbers and text
_MOST_DIMENSIONS = 8
_CHUNK = 2**20  # bytes
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = 0xD800, 0xDFFF  # halves of characters, which are not text
# What a compressed member may inflate to: zeros compress a thousand times, embeddings
# and images do not.
_FREE_SIZE, _MOST_TIMES = 2**28, 100


class Header(NamedTuple):
    """What the header of a .npy file says."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool

    @property
    def num_bytes(self) -> int:
        """Bytes of the array that should follow."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes]) -> Header:
    """Read the header of a .npy file of numbers, text or (a pickle) objects."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"unknown version {version}")
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 2 wrote 10L
            shape, fortran, dtype = read(file)
    except OSError:
        raise
    except Exception as error:  # the header is an expression, so it raises anything
        raise ValueError(f"not a .npy file: {brief(error)}") from error
    if len(shape) > _MOST_DIMENSIONS or any(length < 0 for length in shape):
        raise ValueError(f"not a .npy file: a shape of {str(shape)[:60]}")
    return Header(shape, dtype, fortran)


def read_array(file: IO[bytes], available: int) -> Array:
    """Read one array of numbers or text.

    Parameters
    ----------
    file : binary file
        At the start of a .npy file.
    available : int
        Bytes that the file has in all; an array that needs more is refused before
        room is made for it.

    Raises
    ------
    ValueError
        If it is something else or damaged; the message does not name the file.
    """
    header = read_header(file)
    check_header(header)
    if header.num_bytes > available:
        raise ValueError(
            f"truncated or damaged: its header says {header.num_bytes:,} bytes, the "
            f"file has {available:,}"
        )
    array = np.empty(math.prod(header.shape), header.dtype)
    room = array.view(np.uint8)
    done = 0
    while done < len(room):
        piece = file.read(min(_CHUNK, len(room) - done))
        if not piece:
            raise ValueError(f"truncated: {done:,} of {len(room):,} bytes are there")
        room[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    if array.dtype.kind == "U":
        _check_text(array)
    return array.reshape(header.shape, order="F" if header.fortran else "C")


def check_header(header: Header) -> None:
    """Refuse what is neither numbers nor text."""
    if header.dtype.hasobject:
        raise ValueError(OBJECTS)
    if header.dtype.kind not in _KINDS or not header.dtype.itemsize:
        kind = str(header.dtype)[:60]
        raise ValueError(f"an array of {kind}; it must be numbers or text")


def read_npy(path: Path) -> Array:
    """Read a .npy file into memory."""
    check_regular(path)
    with reading(path), path.open("rb") as file:
        _refuse_pickle(file)
        return read_array(file, os.fstat(file.fileno()).st_size)


def map_npy(path: Path) -> Array:
    """Map a .npy file of numbers into memory, to be read when it is used."""
    check_regular(path)
    with reading(path), path.open("rb") as file:
        _refuse_pickle(file)
        header = read_header(file)
        check_header(header)
        offset = file.tell()
        if offset + header.num_bytes > os.fstat(file.fileno()).st_size:
            raise ValueError("truncated or damaged: its header says more bytes")
        order: Any = "F" if header.fortran else "C"
        return np.memmap(
            path, header.dtype, "r", offset=offset, shape=header.shape, order=order
        )


class Npz:
    """An open .npz file: `names` of its arrays, each read when it is asked for."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        files = archive.namelist()
        self._archive = archive
        self.names = [n.removesuffix(".npy") for n in files if n.endswith(".npy")]
        if len(set(self.names)) < len(self.names):
            raise ValueError("an array comes twice in it")

    def read(self, name: str) -> Array:
        """Read one array to its end, so that its checksum is checked."""
        with self.open(name) as file:
            try:
                array = read_array(file, self._archive.getinfo(f"{name}.npy").file_size)
            except ValueError as error:
                raise ValueError(f"array {name!r}: {error}") from error
            file.read(1)
        return array

    def header(self, name: str) -> Header:
        """Give shape and type of one array."""
        with self.open(name) as file:
            return read_header(file)

    def open(self, name: str) -> IO[bytes]:
        """Open the .npy file of one array."""
        if name not in self.names:
            here = ", ".join(self.names) or "nothing"
            raise ValueError(f"no array {name!r}; it holds {here}")
        member = self._archive.getinfo(f"{name}.npy")
        check_member(member)
        return self._archive.open(member)


@contextmanager
def open_npz(path: Path) -> Iterator[Npz]:
    """Open an .npz file; whatever is wrong with it is one line that names it."""
    check_regular(path)
    with reading(path), path.open("rb") as file:
        _refuse_pickle(file)
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise ValueError(f"not a .npz file ({brief(error)})") from error
        with archive:
            yield Npz(archive)


def _refuse_pickle(file: IO[bytes]) -> None:
    if file.read(1) == b"\x80":
        raise ValueError(
            "this is a pickle, which is never loaded; save with numpy.save or "
            "numpy.savez"
        )
    file.seek(0)


def check_member(member: zipfile.ZipInfo) -> None:
    """Refuse a member of a zip file that inflates out of all proportion."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename}: compressed in a way that is not read")
    if member.file_size > max(_FREE_SIZE, _MOST_TIMES * member.compress_size):
        raise ValueError(
            f"{member.filename}: {member.compress_size:,} bytes that inflate to "
            f"{member.file_size:,}; save it without compression"
        )


def _check_text(array: Array) -> None:
    """Refuse numbers that are no characters; Python would fail over them later."""
    codes = array.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    low, high = _SURROGATES
    if ((codes > _LAST_CHARACTER) | ((codes >= low) & (codes <= high))).any():
        raise ValueError("text that is not Unicode")
