"""One process at a time for each output: a lock beside it, gone when it is let go.

The system frees a lock when its process ends, however it ends. The empty file that a
killed process leaves is taken over, and removed, by the next one.
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_held: dict[Path, IO[str]] = {}  # by this process: it may ask again
_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the lock of an output on the way; ask again as often as you like."""
    mine = hold(target)
    try:
        yield
    finally:
        if mine:
            let_go(target)


def hold(target: Path) -> bool:
    """Take the lock of an output until `let_go`; False if this process has it.

    Raises
    ------
    ValueError
        If another process has it.
    """
    place = target.resolve()
    if place in _held:
        return False
    path = place.with_name(f".{place.name}.lock")
    while True:
        try:
            file = path.open("a")
        except OSError:  # no file can be made here: who writes here will say so
            return False
        try:
            lock_file(file)
        except OSError as error:
            file.close()
            raise ValueError(
                f"{target}: another stct process is writing it; wait for it, or choose "
                "another -o"
            ) from error
        # Whoever had it before has perhaps removed the file that we have opened.
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            break
        file.close()
    _held[place] = file
    return True


def let_go(target: Path) -> None:
    """Give a lock back and remove its file."""
    place = target.resolve()
    file = _held.pop(place, None)
    if file is None:
        return
    path = place.with_name(f".{place.name}.lock")
    try:
        if sys.platform == "win32":  # which removes no file that is open
            file.close()
        path.unlink(missing_ok=True)
    except OSError:  # the next process takes it over
        pass
    finally:
        file.close()


def let_all_go() -> None:
    """Give back all locks of this process."""
    for target in list(_held):
        let_go(target)


def lock_file(file: IO[str]) -> None:
    """Lock an open file; an OSError says that another process has it.

    Where the file system knows no locks, nothing is locked.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
