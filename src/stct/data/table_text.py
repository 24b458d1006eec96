"""Tables that are text in a file: its compression, its encoding, what is between cells.

What is not said is guessed, and a note names the guess.
"""

import codecs
import gzip
import io
from pathlib import Path

from stct.data import files
from stct.data.files import reading

BOM = "\ufeff"
GZ = ".gz"
SEPARATORS = {"csv": ",", "tsv": "\t"}
_OTHERS = (";", "\t", "|")  # that a .csv may have in place of a comma
_WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_GUESSED = "cp1252"  # Western Windows: what Excel writes there
_LONGEST_HEADER = 2**20  # characters
_FREE_BYTES, _MOST_TIMES = 2**28, 100  # of what is compressed
_SHOWN = 20  # characters around the first one that was guessed


def read_bytes(path: Path) -> bytes:
    """Read a file, also a compressed one."""
    data = files.read_bytes(path)
    if path.suffix.lower() != GZ:
        return data
    most = max(_FREE_BYTES, _MOST_TIMES * len(data))
    with reading(path, "not a readable .gz file"):
        with gzip.open(io.BytesIO(data)) as file:
            text = file.read(most + 1)
        if len(text) > most:
            raise ValueError(f"{len(data):,} bytes that inflate to more than {most:,}")
    return text


def check_encoding(name: str) -> None:
    """Refuse a name that is no encoding of text."""
    try:
        codecs.lookup(name)
        "".encode(name)
    except (LookupError, UnicodeError, TypeError, ValueError) as error:
        raise ValueError(
            f"--encoding {name!r} is not known; try utf-8, cp1252, latin-1, utf-16 or "
            "shift_jis"
        ) from error


def decode(path: Path, data: bytes, encoding: str | None) -> tuple[str, str, list[str]]:
    """Give the text of a file, its encoding, and notes.

    Without ``encoding``: UTF-16 where the file begins with its mark, else UTF-8, else
    a guess that a note names.

    Raises
    ------
    ValueError
        If it is no text, or not in this encoding.
    """
    if encoding is not None:
        check_encoding(encoding)
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    if b"\0" in data and encoding is None:
        raise ValueError(f"{path}: not a text file (it holds zero bytes)")
    wanted = encoding or "utf-8"
    try:
        return data.decode(wanted), wanted, []
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problem = f"{path}: line {line} is not {wanted.upper()} text"
        if encoding is not None:
            raise ValueError(f"{problem}; set another --encoding") from error
        start = error.start
    except UnicodeError as error:  # UTF-16 without its mark
        raise ValueError(f"{path}: not {wanted.upper()} text: {error}") from error
    try:
        text = data.decode(_GUESSED)
    except UnicodeDecodeError as error:
        raise ValueError(f"{problem}; set --encoding") from error
    seen = data[max(0, start - _SHOWN) : start + _SHOWN].decode(_GUESSED, "replace")
    line_of_it = seen.replace("\r", "\n").strip("\n").splitlines()
    shown = next((s for s in line_of_it if not s.isascii()), "").strip()
    note = f"{path.name} is not UTF-8 and was read as {_GUESSED}, a guess: {shown!r}"
    return text, _GUESSED, [f"{note}; set --encoding if that is wrong"]


def separator(
    path: Path, text: str, kind: str, wanted: str | None
) -> tuple[str, list[str]]:
    """Give what is between the cells of a row, and a note where it was guessed."""
    if wanted is not None:
        found = _WORDS.get(wanted.lower(), wanted)
        if len(found) != 1 or found in '"\r\n':
            raise ValueError(
                f"--sep must be one character or tab, such as ';', got {wanted!r}"
            )
        return found, []
    usual = SEPARATORS[kind]
    header = _outside_quotes(text)
    if usual in header:
        return usual, []
    counts = {other: header.count(other) for other in _OTHERS}
    best = max(counts, key=lambda other: counts[other])
    if not counts[best]:
        return usual, []
    name = {"\t": "a tab"}.get(best, repr(best))
    return best, [
        f"{path.name} has {name} between its columns, a guess from its first line; "
        "set --sep if that is wrong"
    ]


def write_bytes(path: Path, text: str, encoding: str, *, compressed: bool) -> None:
    """Write text in an encoding, the same bytes each time."""
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{encoding} has no {text[error.start]!r}; write the table as UTF-8 first"
        ) from error
    path.write_bytes(gzip.compress(data, mtime=0) if compressed else data)


def _outside_quotes(text: str) -> str:
    """Give the first row without its quoted cells."""
    end = len(text)
    quoted = False
    for place, character in enumerate(text[:_LONGEST_HEADER]):
        if character == '"':
            quoted = not quoted
        elif character in "\r\n" and not quoted:
            end = place
            break
    return "".join(text[:end].split('"')[::2])
