"""Images as training reads them: uint8 (b, h, w, c) tensors by row number."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stct.data.images import PHOTO_SIDE, ImageSet, LazyImages, read_images
from stct.train.device import free_memory, send

_SAMPLE = 2048  # images for the channel means
_MOST_OF_DEVICE = 0.5  # of its free memory that images may take


class Images:
    """All images of a set: on the device if they fit there with room for training.

    Else they stay where they are, and each batch is copied when it is asked for.
    """

    def __init__(self, images: Any, device: torch.device) -> None:
        self.device = device
        self.shape = tuple(images.shape)  # (n, h, w, c)
        if isinstance(images, np.ndarray) and not isinstance(images, np.memmap):
            # Torch takes no flipped or read-only array.
            images = torch.from_numpy(np.require(images, requirements=["C", "W"]))
            here = device.type == "cpu"
            if not here and images.nbytes < _MOST_OF_DEVICE * free_memory(device):
                images = images.to(device)
        self._rows = images

    def __len__(self) -> int:
        return int(self.shape[0])

    @property
    def at_hand(self) -> bool:
        """Whether batches need no reading and no copy to another device."""
        return isinstance(self._rows, Tensor) and self._rows.device == self.device

    @property
    def chw(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        _, height, width, channels = self.shape
        return channels, height, width

    def batch(self, rows: Tensor | NDArray[Any]) -> Tensor:
        """Give these rows, uint8 (b, h, w, c)."""
        if isinstance(self._rows, Tensor):
            index = torch.as_tensor(rows, dtype=torch.long)
            if self._rows.device == self.device:
                return self._rows[send(index, self.device)]
            return send(self._rows[index], self.device)
        values = np.ascontiguousarray(self._rows[np.asarray(rows)])
        return send(torch.from_numpy(values), self.device)

    def mean_and_std(self) -> tuple[Tensor, Tensor]:
        """Give mean and spread of each channel (c,), from rows at even distances."""
        rows = np.unique(np.linspace(0, len(self) - 1, _SAMPLE).astype(np.int64))
        values = self.batch(rows).cpu().numpy().reshape(-1, self.shape[3])
        # How often each of the 256 values occurs is all that both depend on.
        counts = np.stack([np.bincount(column, minlength=256) for column in values.T])
        levels, total = np.arange(256) / 255.0, len(values)
        mean = counts @ levels / total
        squares = counts @ levels**2 / total - mean**2
        std = np.sqrt(np.maximum(squares, 0.0) * total / max(1, total - 1))
        return torch.tensor(mean, dtype=torch.float32), torch.tensor(
            np.maximum(std, 1e-3), dtype=torch.float32
        )


def skipped_note(data: ImageSet) -> list[str]:
    """Say in a sentence which images could not be read, if there are any."""
    if not data.skipped:
        return []
    first = ", ".join(data.skipped[:3])
    return [
        f"{len(data.skipped):,} images could not be read and were left out: {first}"
    ]


def check_images(images: Any) -> NDArray[np.uint8] | Any:
    """Take uint8 (n, h, w) or (n, h, w, c) images, or a reader of such."""
    if isinstance(images, LazyImages):
        return images
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


class Pictures(NamedTuple):
    """Images (n, h, w, c), their labels, and which files could not be read."""

    images: Any
    labels: Any
    skipped: list[str]


def images_and_labels(
    source: Any,
    labels: Any,
    *,
    size: int = 0,
    shape: tuple[int, int, int] | None = None,
    label_column: str = "label",
    skip_bad: bool = False,
) -> Pictures:
    """Give images and labels, from whatever a caller has.

    With ``shape`` (c, h, w) the images are for a trained network: they must be, or
    are made, of that shape, and labels are not needed.
    """
    images: Any
    found: Any
    skipped: list[str] = []
    if isinstance(source, str | Path):
        read = read_images(
            source,
            label_column=label_column,
            size=shape[1:] if shape else size or None,
            photos_at=PHOTO_SIDE,
            channels=shape[0] if shape else None,
            skip_bad=skip_bad,
            labels_required=labels is None and shape is None,
        )
        images, found, skipped = read.images, read.labels, read.skipped
    elif hasattr(source, "__getitem__") and not hasattr(source, "shape"):
        images, found = _from_dataset(source)
    else:
        images, found = source, None
    images = check_images(images)
    wanted = (shape[1], shape[2], shape[0]) if shape else None
    if wanted is not None and tuple(images.shape[1:]) != wanted:
        raise ValueError(
            f"the network was trained on images of {wanted} (height, width, channels), "
            f"got {tuple(images.shape[1:])}"
        )
    labels = found if labels is None else labels
    if shape is None and labels is None:
        raise ValueError("labels are missing: pass them beside the images")
    if labels is not None and len(labels) != len(images):
        raise ValueError(f"{len(images):,} images but {len(labels):,} labels")
    return Pictures(images, labels, skipped)


def _from_dataset(dataset: Any) -> tuple[Any, list[Any] | None]:
    """Read a torch dataset of (image, label), or a list of images, into memory."""
    items = [dataset[i] for i in range(len(dataset))]
    if not items:
        raise ValueError("the dataset holds no images")
    pairs = isinstance(items[0], tuple | list) and len(items[0]) == 2
    images = [_pixels(item[0] if pairs else item) for item in items]
    sizes = {image.shape for image in images}
    if len(sizes) > 1:
        raise ValueError(
            f"the images of a dataset must have one size, got {sorted(sizes)[:3]}"
        )
    return np.stack(images), [item[1] for item in items] if pairs else None


def _pixels(image: Any) -> NDArray[Any]:
    """Give one image as (h, w) or (h, w, c); torch's own order is (c, h, w)."""
    if not isinstance(image, Tensor):
        return np.asarray(image)
    pixels: NDArray[Any] = image.cpu().numpy()
    channels_first = pixels.ndim == 3 and pixels.shape[0] in (1, 3)
    if channels_first and pixels.shape[2] not in (1, 3):
        return pixels.transpose(1, 2, 0)
    return pixels
