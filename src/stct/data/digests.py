"""Which input it was: its name and a digest, of all bytes or of samples of many."""

import hashlib
from pathlib import Path

LARGE = 256 * 2**20  # bytes from which reading all of it again would be felt
_PIECES, _PIECE = 16, 4096  # of each file of large data, the first and last included


def describe_input(path: Path) -> dict[str, str]:
    """Give the name and ``sha256`` of a file or folder, large ones by samples.

    ``sampled_sha256`` is that of the names, the sizes and some bytes of all files.
    """
    files = [path]
    if path.is_dir():
        files = sorted(inside for inside in path.rglob("*") if inside.is_file())
    if sum(file.stat().st_size for file in files) < LARGE:
        return {"file": path.name, "sha256": _whole(path)}
    lines = [f"{_sample(file)}  {file.relative_to(path)}\n" for file in files]
    return {"file": path.name, "sampled_sha256": _of("".join(lines))}


def _whole(path: Path) -> str:
    """Digest of a file, or of the names and digests of the files of a folder."""
    if path.is_dir():
        inside = [f"{_whole(p)}  {p.name}\n" for p in sorted(path.iterdir())]
        return _of("".join(inside))
    return digest_file(path)


def digest_file(path: Path) -> str:
    """Give the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sample(path: Path) -> str:
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    last = max(size - _PIECE, 0)
    with path.open("rb") as file:
        for number in range(_PIECES):
            file.seek(last * number // (_PIECES - 1))
            digest.update(file.read(_PIECE))
    return digest.hexdigest()


def _of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
