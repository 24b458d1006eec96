"""Data sets that are downloaded when somebody asks for them, and never else."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOME = "https://www.cs.toronto.edu/~kriz/"
ARCHIVES = {  # name: file, published MD5
    "cifar10": ("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),
    "cifar100": ("cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),
}
_CHUNK = 1 << 16  # bytes


def download_cifar(
    name: str,
    folder: Path,
    *,
    home: str = HOME,
    progress: Callable[[float], None] = lambda share: None,
) -> Path:
    """Download the tar.gz of a data set into a folder, whole and checked.

    Parameters
    ----------
    name : {"cifar10", "cifar100"}
        The data set.
    folder : Path
        Made if needed, with the folders above it. A file that is already in it with
        the right MD5 is not downloaded again; one with another MD5 is not replaced.
    home : str, optional
        Where the file is on the network; the page of the authors by default.
    progress : callable, optional
        Called with the share of the file that has arrived.

    Returns
    -------
    Path
        The tar.gz, for `stct.data.cifar.read_cifar`.
    """
    if name not in ARCHIVES:
        raise ValueError(f"can download {' and '.join(ARCHIVES)}, not {name!r}")
    file, md5 = ARCHIVES[name]
    target, address = folder / file, f"{home.rstrip('/')}/{file}"
    if target.exists():
        _check_existing(target, md5)
        return target
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _retrieve(address, folder, file, md5, progress)
    except BaseException:
        for path in new:  # the deepest first
            path.rmdir()
        raise
    return target


def _retrieve(
    address: str,
    folder: Path,
    file: str,
    md5: str,
    progress: Callable[[float], None],
) -> None:
    try:
        import pooch
        import requests
    except ImportError as error:
        why = "downloading needs pooch: pip install 'stct[images]'"
        raise ValueError(why) from error
    pooch.get_logger().setLevel("ERROR")
    get = pooch.HTTPDownloader(progressbar=_Bar(progress), chunk_size=_CHUNK)
    try:
        pooch.retrieve(address, f"md5:{md5}", fname=file, path=folder, downloader=get)
    except (requests.ConnectionError, requests.Timeout) as error:
        raise ValueError(
            f"{address}: not downloaded: no connection; is there a network? A file "
            "that you have already can be read as it is"
        ) from error
    except (OSError, ValueError) as error:  # not found, a full disk, another MD5
        raise ValueError(f"{address}: not downloaded: {error}") from error


def _check_existing(path: Path, md5: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "md5").hexdigest()
    if found != md5:
        raise ValueError(
            f"{path}: not the published file: its MD5 is {found}, expected {md5}; "
            "move it away to download it"
        )


class _Bar:
    """What pooch asks of a progress bar."""

    def __init__(self, progress: Callable[[float], None]) -> None:
        self.total: Any = 0  # bytes; set by pooch, 0 if nobody knows
        self._done = 0
        self._progress = progress

    def update(self, num_bytes: int) -> None:
        self._done += num_bytes
        if self.total:
            self._progress(min(self._done / self.total, 1.0))

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        """Nothing to close."""
