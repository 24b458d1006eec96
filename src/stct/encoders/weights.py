"""Which encoder it is: a hash of its weights and of what happens around them."""

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def digest_of(network: "torch.nn.Module", about: str) -> str:
    """Hash the weights of a network and a text about all else."""
    import torch

    total = hashlib.blake2b(digest_size=16)
    total.update(about.encode())
    for name, tensor in sorted(network.state_dict().items()):
        values = tensor.detach().cpu().contiguous()
        total.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        total.update(values.flatten().view(torch.uint8).numpy().data)
    return total.hexdigest()


def identity_of(name: str, digest: str) -> str:
    """Give a folder name that no other encoder has."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[-40:]
    return f"{readable}-{digest}"
