"""Files of training on the disk: written whole or not at all, read as plain data."""

import os
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file; an error leaves the old one, and nothing half-written."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:  # a full disk does not name the file by itself
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file and its texts; nothing in it is ever run."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path}: not a safetensors file ({error})") from None
