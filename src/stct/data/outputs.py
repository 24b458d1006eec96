"""Outputs that are written whole or not at all.

Everything is written beside its target under a temporary name, flushed to the disk
and renamed at the end. An error or Ctrl-C on the way removes it again; what a killed
process has left is removed by the next one that writes there. A lock beside the target
keeps a second process away.
"""

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stct.data.digests import digest_file
from stct.data.files import read_json
from stct.data.locks import hold, locked

SUMMARY = "summary.json"
WRITTEN_BY = "stct"
# Written after the summary, or again later: their digests are not in it.
_LATER = ("report.html", "review.npz", SUMMARY)
# What a run of 'stct train' holds; the demonstration has two such folders.
_OF_A_RUN = re.compile(
    r"\.lock|\.results\.tmp|\.embeddings|\.?checkpoint\.safetensors(\.tmp)?|config\.(json|toml)"
    r"|environment\.json|metrics\.jsonl|labels(-round-\d+)?\.(csv|tsv|parquet|jsonl)"
    r"|(model|pretrained)\.safetensors|patch\.csv|soft_labels\.npz|report\.html"
    r"|review\.npz|summary\.json"
)
_SCRATCH_OF_A_RUN = (".results.tmp", ".embeddings")


@contextmanager
def whole_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a temporary folder that takes the place of ``target`` at the end.

    With ``overwrite``, a folder is replaced if it is empty or an earlier output of
    ours with nothing else in it. The new files keep the modes of the old ones.
    """
    _check_parent(target)
    with locked(target):
        _tidy(target.resolve())
        _check_folder(target, overwrite=overwrite)
        target = target.resolve()
        temporary = _beside(target)
        try:
            temporary.mkdir()
            yield temporary
            _flush_all(temporary)
            _check_folder(target, overwrite=overwrite)
            _keep_modes(target, temporary)
            _swap(temporary, target)
            _confirm(target.parent)
        except OSError as error:
            raise _not_written(target, error) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def whole_file(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a temporary path whose file takes the place of ``target`` at the end.

    A file that is replaced gives its mode to the new one.
    """
    _check_parent(target)
    with locked(target):
        _tidy(target.resolve())
        _check_file(target, overwrite=overwrite)
        target = target.resolve()
        temporary = _beside(target)
        try:
            yield temporary
            flush(temporary)
            _check_file(target, overwrite=overwrite)
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            temporary.replace(target)
            _confirm(target.parent)
        except OSError as error:
            raise _not_written(target, error) from error
        finally:
            temporary.unlink(missing_ok=True)


def check_folder(target: Path, *, overwrite: bool) -> None:
    """Raise when an output folder cannot be made here; meant to be called early.

    This process then keeps others away from the folder until it ends.
    """
    _check_parent(target)
    hold(target)
    _tidy(target.resolve())
    _check_folder(target, overwrite=overwrite)


def check_file(target: Path, *, overwrite: bool) -> None:
    """Raise when an output file cannot be made here; meant to be called early."""
    _check_parent(target)
    hold(target)
    _check_file(target, overwrite=overwrite)


def _check_folder(target: Path, *, overwrite: bool) -> None:
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
            f"{target}: holds {others[0]!r}, which stct did not write, or which was "
            "changed since; --overwrite replaces only an earlier stct output or an "
            "empty folder"
        )


def _check_file(target: Path, *, overwrite: bool) -> None:
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
    """Give the names of the files here that we have written.

    A summary lists them with their digests. Anybody can write a summary, so a name
    alone is enough only for files that are written after it.
    """
    try:
        summary = read_json(folder / SUMMARY)
        if summary["written_by"] != WRITTEN_BY:
            return set()
        names, digests = list(summary["files"]), dict(summary.get("sha256", {}))
    except (OSError, ValueError, KeyError, TypeError):
        return set()  # no summary, or one that is not ours
    inside = {path.name for path in folder.iterdir() if _is_plain_file(path)}
    ours = inside & set(_LATER) & set(names)
    for name in inside & set(digests):
        if digest_file(folder / name) == digests[name]:
            ours.add(name)
    ours |= {name for name in inside if _is_leftover(name, _LATER)}
    return ours | {name for name in names if _is_run(folder / str(name))}


def _is_run(path: Path) -> bool:
    """Tell whether a path is a folder with nothing but the files of a run in it."""
    return (
        path.is_dir()
        and not path.is_symlink()
        and all(
            _OF_A_RUN.fullmatch(p.name)
            and (_is_plain_file(p) or p.name in _SCRATCH_OF_A_RUN)
            for p in path.iterdir()
        )
    )


def sign(summary: dict[str, Any], folder: Path) -> None:
    """Note the digests of the summary's files that are in a folder already."""
    names = [name for name in summary["files"] if name not in _LATER]
    summary["sha256"] = {
        name: digest_file(folder / name) for name in names if (folder / name).is_file()
    }


def _is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_leftover(name: str, of: tuple[str, ...]) -> bool:
    """Tell whether a name is that of a lock or a temporary file of one of ours."""
    names = "|".join(map(re.escape, of))
    ending = r"(lock|[0-9a-f]{8}\.(tmp|old))"
    return re.fullmatch(rf"\.({names})\.{ending}", name) is not None


def _tidy(target: Path) -> None:
    """Put right what a killed process has left; we have the lock, so it is dead.

    Between two renames the old folder has another name: it goes back to its place.
    """
    left = [p for p in target.parent.iterdir() if _is_leftover(p.name, (target.name,))]
    for path in sorted(left):
        if path.suffix == ".old" and not target.exists():
            path.rename(target)
        elif path.suffix != ".lock":
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a temporary file or folder; what cannot be removed stays."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    except OSError:
        pass


def _not_written(target: Path, error: OSError) -> ValueError:
    reason = error.strerror or str(error)
    if "requested and" in reason:  # NumPy counts what it could not write, and no more
        reason = "no room for all of it on the disk"
    return ValueError(f"{target}: not written ({reason}); nothing of it is left")


def _beside(target: Path, ending: str = "tmp") -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.{ending}")


def _keep_modes(old: Path, new: Path) -> None:
    """Give a folder and its files the modes that those of the same names have."""
    if not old.exists():
        return
    for path in [new, *new.iterdir()]:
        before = old / path.relative_to(new)
        if before.exists() and not before.is_symlink():
            path.chmod(stat.S_IMODE(before.stat().st_mode))


def _swap(temporary: Path, target: Path) -> None:
    """Rename ``temporary`` to ``target``, which keeps its old content on failure."""
    if not target.exists():
        temporary.rename(target)
        return
    old = _beside(target, "old")
    target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)  # the new one is there: no failure any more


def _flush_all(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            _flush_all(path)
        else:
            flush(path)
    flush(folder)


def _confirm(folder: Path) -> None:
    """Flush the names in a folder; the output is there, and no failure undoes it."""
    with suppress(OSError):
        flush(folder)


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
