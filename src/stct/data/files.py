"""Reading files that a stranger may have written: regular files, one line if damaged.

A pipe would wait for ever, and libraries raise anything over a damaged file. What is
allowed in which file is checked where that kind of file is read.
"""

import json
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_DEEPEST = 100  # brackets inside each other in JSON


def check_regular(path: Path) -> None:
    """Refuse pipes, devices and sockets; folders and missing files raise OSError."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ValueError(f"{path}: is a folder, not a file")
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"{path}: not a regular file (a pipe, a device or a socket); save its "
            "content as a file"
        )


def read_bytes(path: Path) -> bytes:
    """Read a regular file."""
    check_regular(path)
    return path.read_bytes()


def read_text(path: Path) -> str:
    """Read a regular file of UTF-8 text."""
    return as_text(path, read_bytes(path))


def as_text(path: Path, data: bytes) -> str:
    """Decode UTF-8, or name the line where it is not."""
    if b"\0" in data:
        raise ValueError(f"{path}: not a text file (it holds zero bytes)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(f"{path}: line {line} is not UTF-8 text") from error


def read_json(path: Path) -> Any:
    """Read a file of JSON; ``NaN`` and very deep nesting are refused."""
    return parse_json(read_text(path), path)


def parse_json(text: str, where: object) -> Any:
    """Parse JSON of a file; ``where`` names it in errors."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: not readable as JSON: {brief(error)}") from error
    if _too_deep(value):
        raise ValueError(f"{where}: JSON nested more than {_DEEPEST} deep")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def _too_deep(value: Any) -> bool:
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(_DEEPEST):
        inside = (v.values() if isinstance(v, dict) else v for v in layer)
        layer = [v for values in inside for v in values if isinstance(v, dict | list)]
        if not layer:
            return False
    return True


@contextmanager
def reading(path: Path, what: str = "not readable") -> Iterator[None]:
    """Turn whatever a library raises over a damaged file into one line that names it.

    Errors of the system, such as a file that is gone, and messages that begin with
    the path stay as they are.
    """
    try:
        yield
    except MemoryError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise ValueError(f"{path}: {what}: {brief(error)}") from error
    except Exception as error:  # libraries raise many kinds
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path}: {what}: {brief(error)}") from error


def brief(error: BaseException) -> str:
    """Give the first line of an error, or its kind if it says nothing."""
    if isinstance(error, KeyError) and error.args:
        return f"{error.args[0]!r} is missing"
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
