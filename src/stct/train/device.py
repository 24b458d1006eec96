"""What a device has and can do, and how numbers get there without waiting."""

from typing import Any

import torch
from torch import Tensor

from stct.planning.plan import available_memory

_PRECISIONS: dict[str, Any] = {"fp32": "32-true", "bf16": "bf16-mixed"}


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to the device; a GPU does so while the host goes on."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def free_memory(device: torch.device) -> float:
    """Bytes that the device could still give."""
    if device.type == "cuda":
        # What torch keeps for itself and does not use can be given again.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + kept)
    if device.type == "mps":
        most = torch.mps.recommended_max_memory()
        return float(most - torch.mps.driver_allocated_memory())
    return available_memory()


def fabric_precision(name: str, device_type: str) -> Any:
    """Give Fabric's name of a precision: "auto", "fp32" or "bf16".

    The weights stay in 32 bits; bf16 is for the passes alone.
    """
    cuda = device_type == "cuda"
    native = cuda and torch.cuda.is_bf16_supported(including_emulation=False)
    has_bf16 = native or device_type == "cpu"
    if name == "auto":
        name = "bf16" if native else "fp32"
    if name == "bf16" and not has_bf16:
        raise ValueError(
            "precision=bf16: this GPU has no 16-bit brain floats; --precision fp32"
        )
    return _PRECISIONS[name]
