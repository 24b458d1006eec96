"""Files of training on the disk: written whole or not at all, read as plain data."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from stct.data.files import check_regular, reading

_CHECKSUM = "sha256"


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


def tensors_as_bytes(tensors: Mapping[str, Tensor], texts: Mapping[str, str]) -> bytes:
    """Make a safetensors file in memory, with texts and a checksum of everything."""
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    data = save(whole, metadata={**texts, _CHECKSUM: _digest(whole, texts)})
    # safetensors writes the texts in any order; the same file has the same bytes here.
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[end:]


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a file of `tensors_as_bytes`; nothing in it is ever run.

    Raises
    ------
    ValueError
        If it is no such file, or not as it was written.
    """
    check_regular(path)
    with reading(path, "not a safetensors file of stct"):
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            texts = dict(file.metadata() or {})
        # Older versions wrote none; their runs and models are still read.
        checksum = texts.pop(_CHECKSUM, None)
        if checksum is not None and checksum != _digest(tensors, texts):
            raise ValueError("damaged or changed, its checksum does not fit")
    return tensors, texts


def _digest(tensors: Mapping[str, Tensor], texts: Mapping[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(sorted(texts.items())).encode())
    for name, tensor in sorted(tensors.items()):
        values = tensor.detach().cpu().reshape(-1)
        if values.stride(0) != 1:  # of a single number it may be anything
            values = values.clone(memory_format=torch.contiguous_format)
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        if values.numel():
            digest.update(values.view(torch.uint8).numpy().data)
    return digest.hexdigest()
