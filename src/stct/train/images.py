"""Images as training reads them: uint8 (b, h, w, c) tensors by row number."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stct.train.augment import to_float

_SAMPLE = 2048  # images for the channel means


class Images:
    """All images of a set: on the device when they fit there, else read when asked."""

    def __init__(self, images: Any, device: torch.device) -> None:
        self.device = device
        self.shape = tuple(images.shape)  # (n, h, w, c)
        resident = isinstance(images, np.ndarray) and not isinstance(images, np.memmap)
        self._rows = torch.from_numpy(images).to(device) if resident else images

    def __len__(self) -> int:
        return int(self.shape[0])

    @property
    def chw(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        _, height, width, channels = self.shape
        return channels, height, width

    def batch(self, rows: Tensor | NDArray[Any]) -> Tensor:
        """Give these rows, uint8 (b, h, w, c)."""
        if isinstance(self._rows, Tensor):
            index = torch.as_tensor(rows, dtype=torch.long, device=self.device)
            return self._rows[index]
        values = np.ascontiguousarray(self._rows[np.asarray(rows)])
        return torch.from_numpy(values).to(self.device)

    def mean_and_std(self) -> tuple[Tensor, Tensor]:
        """Give mean and spread of each channel (c,), from rows at even distances."""
        rows = np.unique(np.linspace(0, len(self) - 1, _SAMPLE).astype(np.int64))
        x = to_float(self.batch(rows)).double()
        std, mean = torch.std_mean(x, dim=(0, 2, 3))
        return mean.float().cpu(), std.float().clamp(min=1e-3).cpu()


def check_images(images: Any) -> NDArray[np.uint8] | Any:
    """Take uint8 (n, h, w) or (n, h, w, c) images, or a reader of such."""
    if hasattr(images, "shape") and not hasattr(images, "__array_interface__"):
        if isinstance(images, Tensor):
            images = images.numpy()
        elif len(images.shape) == 4:
            return images  # reads its rows when asked
    images = images if isinstance(images, np.ndarray) else np.asarray(images)
    if images.dtype != np.uint8:
        raise ValueError(f"images must be uint8 (0 to 255), got {images.dtype}")
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in (1, 3):
        raise ValueError(
            "images must be (n, height, width) or (n, height, width, 1 or 3 channels), "
            f"got {images.shape}"
        )
    if min(images.shape[1:3]) < 8:
        raise ValueError(f"images must be 8 x 8 or larger, got {images.shape[1:3]}")
    return images
