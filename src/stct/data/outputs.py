"""Outputs that are written whole or not at all.

Everything is written beside its target under a temporary name, flushed to the disk
and renamed at the end. An error or Ctrl-C on the way removes it again.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUMMARY = "summary.json"
WRITTEN_BY = "stct"


@contextmanager
def whole_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a temporary folder that takes the place of ``target`` at the end.

    With ``overwrite``, a folder is replaced if it is empty or an earlier output of
    ours with nothing else in it.
    """
    check_folder(target, overwrite=overwrite)
    target = target.resolve()
    temporary = _beside(target)
    try:
        temporary.mkdir()
        yield temporary
        for path in temporary.iterdir():
            flush(path)
        flush(temporary)
        check_folder(target, overwrite=overwrite)
        _swap(temporary, target)
        flush(target.parent)
    except OSError as error:
        raise _not_written(target, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def whole_file(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a temporary path whose file takes the place of ``target`` at the end."""
    check_file(target, overwrite=overwrite)
    target = target.resolve()
    temporary = _beside(target)
    try:
        yield temporary
        flush(temporary)
        check_file(target, overwrite=overwrite)
        temporary.replace(target)
        flush(target.parent)
    except OSError as error:
        raise _not_written(target, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def check_folder(target: Path, *, overwrite: bool) -> None:
    """Raise when an output folder cannot be made here; meant to be called early."""
    _check_parent(target)
    if not target.exists():
        return
    if not target.is_dir():
        raise ValueError(f"{target}: exists and is not a folder; choose another -o")
    if not overwrite:
        raise ValueError(
            f"{target}: the output folder exists; choose another -o or use --overwrite"
        )
    ours = _earlier_output(target)
    others = sorted(path.name for path in target.iterdir() if path.name not in ours)
    if others:
        raise ValueError(
            f"{target}: holds {others[0]!r}, which stct did not write; "
            "--overwrite replaces only an earlier stct output or an empty folder"
        )


def check_file(target: Path, *, overwrite: bool) -> None:
    """Raise when an output file cannot be made here; meant to be called early."""
    _check_parent(target)
    if target.exists() and not target.is_file():
        raise ValueError(f"{target}: exists and is not a file; choose another -o")
    if target.exists() and not overwrite:
        raise ValueError(
            f"{target}: the output file exists; choose another -o or use --overwrite"
        )


def _check_parent(target: Path) -> None:
    parent = target.resolve().parent
    if not parent.is_dir():
        raise ValueError(f"{target}: there is no folder {parent} to write it in")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(f"{target}: no permission to write in {parent}")


def _earlier_output(folder: Path) -> set[str]:
    """Give the names of the files that a summary of ours lists."""
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        if summary["written_by"] == WRITTEN_BY:
            return set(summary["files"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no summary, or one that is not ours
    return set()


def _not_written(target: Path, error: OSError) -> ValueError:
    reason = error.strerror or str(error)
    if "requested and" in reason:  # NumPy counts what it could not write, and no more
        reason = "no room for all of it on the disk"
    return ValueError(f"{target}: not written ({reason}); nothing of it is left")


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")


def _swap(temporary: Path, target: Path) -> None:
    """Rename ``temporary`` to ``target``, which keeps its old content on failure."""
    if not target.exists():
        temporary.rename(target)
        return
    old = _beside(target)
    target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old)


def flush(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    folder = path.is_dir()
    try:  # Windows flushes only what is open for writing
        descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    except PermissionError:
        if folder:  # Windows opens no folder at all
            return
        raise
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
