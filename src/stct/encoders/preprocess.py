"""From uint8 images to the input of a network: resize, centre crop, normalise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Triple = tuple[float, float, float]
Size = tuple[int, int]  # height, width

IMAGENET_MEAN: Triple = (0.485, 0.456, 0.406)
IMAGENET_STD: Triple = (0.229, 0.224, 0.225)
SMALL = 64  # pixels; an image without detail
_USUAL_SIZE = 224
_WHOLE_FROM = 384  # ConvNeXt's processor crops below this size only
_MODES = {0: "nearest-exact", 2: "bilinear", 3: "bicubic"}  # PIL's numbers


@dataclass(frozen=True)
class Preprocess:
    """How an encoder wants its images; the same for every image of a set."""

    shortest_edge: int | None = None  # resize to this and keep proportions
    size: Size | None = None  # or resize to this and do not
    crop: Size | None = None  # then cut this out of the centre
    mode: str = "bicubic"
    scale: float = 1 / 255
    mean: Triple = IMAGENET_MEAN
    std: Triple = IMAGENET_STD
    for_small: "Preprocess | None" = None  # instead of all this for `SMALL` images

    @property
    def pixels(self) -> int:
        """The edge of a square that holds all that the encoder will look at."""
        return self.shortest_edge or max(self.size or self.crop or (_USUAL_SIZE,))

    def __call__(self, images: NDArray[np.uint8]) -> "torch.Tensor":
        """Turn images (b, h, w, c) into floats (b, 3, h', w')."""
        import torch

        if self.for_small is not None and max(images.shape[1:3]) <= SMALL:
            return self.for_small(images)
        x = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2)
        x = x.expand(-1, 3, -1, -1).float()  # (b, 3, h, w), 0 to 255
        x = _resize(x, self._target(images.shape[1], images.shape[2]), self.mode)
        if self.crop is not None:
            x = _centre_crop(x, self.crop)
        mean = torch.tensor(self.mean).view(1, 3, 1, 1)
        std = torch.tensor(self.std).view(1, 3, 1, 1)
        return (x * self.scale - mean) / std

    def _target(self, height: int, width: int) -> Size:
        if self.size is not None:
            return self.size
        edge = self.shortest_edge
        if edge is None:
            return height, width
        shorter, longer = min(height, width), max(height, width)
        other = int(edge * longer / shorter)
        return (edge, other) if height <= width else (other, edge)


def from_processor_config(config: Mapping[str, Any], image_size: Any) -> Preprocess:
    """Read the settings of a transformers image processor.

    Parameters
    ----------
    config : mapping
        The content of ``preprocessor_config.json``; empty where there is none.
    image_size : int or pair
        What the model's own configuration says, for when ``config`` is empty.
    """
    if not config:
        square = _pair(image_size or _USUAL_SIZE)
        return Preprocess(shortest_edge=min(square), crop=square)
    shortest_edge: int | None = None
    size: Size | None = None
    crop: Size | None = None
    if config.get("do_resize", True):
        shortest_edge, size = _sizes(config.get("size", _USUAL_SIZE))
    crop_share = config.get("crop_pct")
    if shortest_edge is not None and crop_share is not None:
        if shortest_edge < _WHOLE_FROM:
            crop = (shortest_edge, shortest_edge)
            shortest_edge = int(shortest_edge / crop_share)
        else:
            size, shortest_edge = (shortest_edge, shortest_edge), None
    if config.get("do_center_crop", False):
        edge, crop = _sizes(config.get("crop_size", _USUAL_SIZE))
        crop = crop or _pair(edge)
    normalise = config.get("do_normalize", True)
    mean = _triple(config.get("image_mean", IMAGENET_MEAN)) if normalise else (0.0,) * 3
    std = _triple(config.get("image_std", IMAGENET_STD)) if normalise else (1.0,) * 3
    rescale = config.get("do_rescale", True)
    return Preprocess(
        shortest_edge=shortest_edge,
        size=size,
        crop=crop,
        mode=_MODES.get(config.get("resample", 3), "bicubic"),
        scale=config.get("rescale_factor", 1 / 255) if rescale else 1.0,
        mean=mean,
        std=std,
    )


def _sizes(value: Any) -> tuple[int | None, Size | None]:
    """Read a size in one of transformers' forms: an edge, or height and width."""
    if isinstance(value, Mapping):
        if "shortest_edge" in value:
            return int(value["shortest_edge"]), None
        return None, (int(value["height"]), int(value["width"]))
    if isinstance(value, int):
        return value, None
    return None, _pair(value)


def _pair(value: Any) -> Size:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


def _triple(value: Any) -> Triple:
    numbers = [float(v) for v in value]
    red, green, blue = numbers * 3 if len(numbers) == 1 else numbers
    return red, green, blue


def _resize(x: "torch.Tensor", size: Size, mode: str) -> "torch.Tensor":
    from torch.nn import functional

    if x.shape[2:] == size:
        return x
    if mode == "nearest-exact":
        return functional.interpolate(x, size=size, mode=mode)
    smooth = functional.interpolate(x, size=size, mode=mode, antialias=True)
    return smooth.round().clamp(0.0, 255.0)  # what 8-bit libraries give


def _centre_crop(x: "torch.Tensor", size: Size) -> "torch.Tensor":
    """Cut out the centre; what a small image lacks is black."""
    from torch.nn import functional

    lack = [max(0, want - have) for want, have in zip(size, x.shape[2:], strict=True)]
    if any(lack):
        high, wide = lack
        ahead, above = wide // 2 + wide % 2, high // 2 + high % 2
        x = functional.pad(x, (ahead, wide // 2, above, high // 2))
    top = (x.shape[2] - size[0]) // 2
    left = (x.shape[3] - size[1]) // 2
    return x[:, :, top : top + size[0], left : left + size[1]]
