"""Augmentation of whole batches: weak, strong, and SimCLR's views.

Each image gets its own parameters, drawn first and applied after. An image is read
through one affine map (crop, flip, shift, rotation, ... multiplied together) and one
colour matrix, instead of through a chain of operations: a dozen small passes over
the pixels would cost more than the network itself on a CPU.

Batches come as uint8 (b, h, w, c) and leave as floats (b, c, h, w) in [0, 1].
"""

import math
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from stct.train.config import Augment
from stct.train.device import send

# Range of each strong operation at magnitude 1: the usual RandAugment ones, mild.
STRONG_RANGES = {
    "rotate": math.radians(30.0),
    "shear_x": 0.3,
    "shear_y": 0.3,
    "translate_x": 0.3,  # share of the side
    "translate_y": 0.3,
    "zoom": 0.3,
    "brightness": 0.6,
    "contrast": 0.6,
    "saturation": 0.9,
    "solarize": 1.0,
}
_GREY = (0.299, 0.587, 0.114)


class Weak(NamedTuple):
    """A shifted crop and a flip for each of b images."""

    shift_x: Tensor  # (b,), share of the width
    shift_y: Tensor  # (b,), share of the height
    flip: Tensor  # (b,) bool


class Warp(NamedTuple):
    """Where each output pixel comes from, its colours, and what is cut out."""

    matrix: Tensor  # (b, 2, 3): output to input coordinates, both in [-1, 1]
    brightness: Tensor  # (b,) factors, 1 is no change
    contrast: Tensor
    saturation: Tensor
    hue: Tensor  # (b,) angle in radians
    solarize: Tensor  # (b,) values above this are inverted; above 1: none
    cutout: Tensor | None  # (b, 3): centre x, centre y and half side in [-1, 1]


Drawn = TypeVar("Drawn", Weak, Warp)


def draw_weak(b: int, settings: Augment, generator: torch.Generator) -> Weak:
    """Draw a shift of up to ``shift`` of the side each way, and a flip."""
    return Weak(
        _uniform(b, -settings.shift, settings.shift, generator),
        _uniform(b, -settings.shift, settings.shift, generator),
        _coin(b, 0.5 if settings.flip else 0.0, generator),
    )


def draw_strong(b: int, settings: Augment, generator: torch.Generator) -> Warp:
    """Draw a weak change, then ``num_ops`` operations for each image, and a cutout."""
    weak = draw_weak(b, settings, generator)
    names = list(STRONG_RANGES)
    values = torch.zeros(b, len(names))
    for _ in range(settings.num_ops):
        which = torch.randint(len(names), (b,), generator=generator)
        size = _uniform(b, -1.0, 1.0, generator) * settings.magnitude
        values[torch.arange(b), which] = size.clamp(-1.0, 1.0)
    op = {
        name: values[:, i] * STRONG_RANGES[name] for i, name in enumerate(names)
    }  # (b,) each
    one, zero = torch.ones(b), torch.zeros(b)
    mirror = 1.0 - 2.0 * weak.flip.float()
    flip = _affine(mirror, zero, 2 * weak.shift_x, zero, one, 2 * weak.shift_y)
    cos, sin = op["rotate"].cos(), op["rotate"].sin()
    scale = 1.0 + op["zoom"]
    turn = _affine(
        cos * scale,
        -sin + op["shear_x"],
        2 * op["translate_x"],
        sin + op["shear_y"],
        cos * scale,
        2 * op["translate_y"],
    )
    centre = _uniform(2 * b, -1.0, 1.0, generator).view(b, 2)
    half = torch.full((b, 1), settings.cutout)  # half a side in [-1, 1]: side / 2 * 2
    return Warp(
        (flip @ turn)[:, :2],
        1.0 + op["brightness"],
        1.0 + op["contrast"],
        1.0 + op["saturation"],
        zero,
        2.0 - op["solarize"].abs() * 1.5,  # from 2 (none) down to 0.5
        torch.cat([centre, half], dim=1) if settings.cutout > 0.0 else None,
    )


def draw_view(b: int, settings: Augment, generator: torch.Generator) -> Warp:
    """Draw SimCLR's random resized crop, flip, colour jitter and grey."""
    area = _uniform(b, settings.min_crop, 1.0, generator)
    ratio = _uniform(b, math.log(3 / 4), math.log(4 / 3), generator).exp()
    wide = (area * ratio).sqrt().clamp(max=1.0)
    high = (area / ratio).sqrt().clamp(max=1.0)
    x = _uniform(b, -1.0, 1.0, generator) * (1.0 - wide)
    y = _uniform(b, -1.0, 1.0, generator) * (1.0 - high)
    flip = _coin(b, 0.5 if settings.flip else 0.0, generator)
    zero = torch.zeros(b)
    matrix = _affine(wide * (1.0 - 2.0 * flip.float()), zero, x, zero, high, y)
    jittered = _coin(b, 0.8, generator).float() * settings.jitter
    grey = _coin(b, 0.2, generator)
    saturation = 1.0 + jittered * _uniform(b, -0.8, 0.8, generator)
    return Warp(
        matrix[:, :2],
        1.0 + jittered * _uniform(b, -0.8, 0.8, generator),
        1.0 + jittered * _uniform(b, -0.8, 0.8, generator),
        torch.where(grey, zero, saturation),
        jittered * _uniform(b, -0.2, 0.2, generator) * 2.0 * math.pi,
        torch.full((b,), 2.0),
        None,
    )


def own_part(draw: Drawn, mine: slice, device: torch.device) -> Drawn:
    """Keep what was drawn for these images, and send it to their device."""
    parts: Any = (None if part is None else send(part[mine], device) for part in draw)
    return type(draw)(*parts)


def weak(batch: Tensor, draw: Weak) -> Tensor:
    """Shift by whole pixels, mirrored at the border, and flip."""
    b, height, width, _ = batch.shape
    columns = torch.arange(width, device=batch.device).repeat(b, 1)  # (b, w)
    columns = torch.where(draw.flip[:, None], width - 1 - columns, columns)
    columns = columns + (draw.shift_x * width).round().long()[:, None]
    rows = torch.arange(height, device=batch.device) + (
        draw.shift_y * height
    ).round().long().unsqueeze(1)  # (b, h)
    image = torch.arange(b, device=batch.device)[:, None, None]
    moved = batch[
        image, _reflect(rows, height)[:, :, None], _reflect(columns, width)[:, None]
    ]
    return to_float(moved)


def warp(batch: Tensor, draw: Warp, *, size: tuple[int, int] | None = None) -> Tensor:
    """Apply strong augmentation or a SimCLR view; ``size`` (h, w) may differ."""
    x = to_float(batch)  # (b, c, h, w)
    height, width = size or x.shape[2:]
    grid = F.affine_grid(
        draw.matrix, [len(x), x.shape[1], height, width], align_corners=False
    )
    x = F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)
    x = _recolour(x, draw)
    x = torch.where(x > draw.solarize.view(-1, 1, 1, 1), 1.0 - x, x)
    return x if draw.cutout is None else _cut(x, draw.cutout)


def to_float(batch: Tensor) -> Tensor:
    """uint8 (b, h, w, c) -> float (b, c, h, w) in [0, 1]."""
    return batch.permute(0, 3, 1, 2).float().div_(255.0)


def _recolour(x: Tensor, draw: Warp) -> Tensor:
    """Brightness, contrast, saturation and hue as one matrix and one offset."""
    b, c = x.shape[:2]
    gain = draw.brightness * draw.contrast  # (b,)
    if c != 3:
        mean = x.mean(dim=(1, 2, 3)) * draw.brightness
        offset = (1.0 - draw.contrast) * mean
        return (x * gain.view(-1, 1, 1, 1) + offset.view(-1, 1, 1, 1)).clamp_(0.0, 1.0)
    grey = torch.tensor(_GREY, device=x.device)
    to_grey = grey.expand(3, 3)  # every output channel is the grey value
    kept = draw.saturation.view(-1, 1, 1)
    colour = kept * torch.eye(3, device=x.device) + (1.0 - kept) * to_grey
    matrix = gain.view(-1, 1, 1) * (colour @ _hue_rotation(draw.hue))  # (b, 3, 3)
    mean = (x.mean(dim=(2, 3)) @ grey) * draw.brightness  # (b,)
    offset = (1.0 - draw.contrast) * mean
    flat = torch.baddbmm(
        offset.view(b, 1, 1).expand(b, 3, 1), matrix, x.flatten(2)
    )  # (b, 3, h w)
    return flat.view_as(x).clamp_(0.0, 1.0)


def _hue_rotation(angle: Tensor) -> Tensor:
    """Rotate colours about the grey axis: (b,) -> (b, 3, 3)."""
    axis = 1.0 / math.sqrt(3.0)
    cross = axis * torch.tensor(
        [[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]], device=angle.device
    )
    outer = torch.full((3, 3), 1.0 / 3.0, device=angle.device)
    cos, sin = angle.cos().view(-1, 1, 1), angle.sin().view(-1, 1, 1)
    return cos * torch.eye(3, device=angle.device) + sin * cross + (1.0 - cos) * outer


def _cut(x: Tensor, cutout: Tensor) -> Tensor:
    """Grey out a square around each centre."""
    height, width = x.shape[2:]
    across = (torch.arange(width, device=x.device) + 0.5) * 2.0 / width - 1.0
    down = (torch.arange(height, device=x.device) + 0.5) * 2.0 / height - 1.0
    half = cutout[:, 2, None]
    inside_x = (across - cutout[:, :1]).abs() < half  # (b, w)
    inside_y = (down - cutout[:, 1:2]).abs() < half  # (b, h)
    inside = (inside_y[:, :, None] & inside_x[:, None]).unsqueeze(1)
    return x.masked_fill(inside, 0.5)


def _affine(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor) -> Tensor:
    """Stack [[a, b, c], [d, e, f], [0, 0, 1]] for each image, (b, 3, 3)."""
    zero, one = torch.zeros_like(a), torch.ones_like(a)
    return torch.stack([a, b, c, d, e, f, zero, zero, one], dim=1).view(-1, 3, 3)


def _reflect(index: Tensor, length: int) -> Tensor:
    """Mirror places outside 0 .. length - 1 at the border."""
    index = index.abs()
    return torch.where(index >= length, 2 * length - 2 - index, index)


def _uniform(b: int, low: float, high: float, generator: torch.Generator) -> Tensor:
    return torch.rand(b, generator=generator) * (high - low) + low


def _coin(b: int, chance: float, generator: torch.Generator) -> Tensor:
    return torch.rand(b, generator=generator) < chance
