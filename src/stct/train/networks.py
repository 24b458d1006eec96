"""The networks: wide residual encoder, classification head, projection head.

Images come as floats in [0, 1]; the network normalises them itself, so whoever
predicts cannot forget to.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from stct.encoders.efficientnet import PREPROCESS as EFFICIENTNET_PREPROCESS
from stct.encoders.efficientnet import load_trainable_efficientnet_lite0
from stct.encoders.embedding import EFFICIENTNET, HUGGING_FACE
from stct.encoders.huggingface import load_hf_backbone, rebuild_hf_backbone
from stct.encoders.preprocess import Preprocess
from stct.train.config import Encoder


class Block(nn.Module):
    """Two 3x3 convolutions with normalisation before each, and a shortcut."""

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.conv1 = _conv(in_channels, channels, stride)
        self.norm2 = nn.BatchNorm2d(channels)
        self.conv2 = _conv(channels, channels, 1)
        self.shortcut = (
            nn.Identity()
            if in_channels == channels and stride == 1
            else nn.Conv2d(in_channels, channels, 1, stride, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(b, in, h, w) -> (b, channels, h / stride, w / stride)."""
        active = F.relu(self.norm1(x))
        same = isinstance(self.shortcut, nn.Identity)
        short = x if same else self.shortcut(active)
        out: Tensor = self.conv2(F.relu(self.norm2(self.conv1(active))))
        return out + short


class WideResNet(nn.Module):
    """WRN-depth-width for images of any size from 8 x 8, 1 or 3 channels."""

    def __init__(self, settings: Encoder, channels: int) -> None:
        super().__init__()
        blocks = (settings.depth - 4) // 6
        sides = [16 * settings.width, 32 * settings.width, 64 * settings.width]
        first = sides[0] if settings.stem_stride > 1 else 16
        layers: list[nn.Module] = [_conv(channels, first, settings.stem_stride)]
        for stage, wide in enumerate(sides):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(Block(first, wide, stride))
                first = wide
        self.layers = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(first)
        self.width = first

    def forward(self, x: Tensor) -> Tensor:
        """(b, c, h, w) -> (b, 64 width)."""
        return F.relu(self.norm(self.layers(x))).mean(dim=(2, 3))


class Outputs(NamedTuple):
    """What one pass gives; None where a head was not asked for."""

    features: Tensor  # h (b, d)
    logits: Tensor | None  # (b, C)
    projection: Tensor | None  # z (b, p), of length 1


class Network(nn.Module):
    """f_enc, g_cls and g_proj of the paper."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        width: int,
        *,
        num_classes: int,
        projection: int,
        mean: Tensor,
        std: Tensor,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(width, num_classes)
        self.projector = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, projection)
        )
        self.register_buffer("mean", mean.view(1, -1, 1, 1))
        self.register_buffer("std", std.view(1, -1, 1, 1))

    def forward(
        self, x: Tensor, *, classify: bool = False, project: bool = False
    ) -> Outputs:
        """Images (b, c, h, w) in [0, 1] to features and the heads asked for."""
        x = ((x - self.mean) / self.std).contiguous(memory_format=torch.channels_last)
        h = self.encoder(x)
        return Outputs(
            h,
            self.classifier(h) if classify else None,
            F.normalize(self.projector(h), dim=1) if project else None,
        )


def build(
    settings: Encoder,
    *,
    num_classes: int,
    mean: Tensor,
    std: Tensor,
    generator: torch.Generator,
    encoder: nn.Module | None = None,
    image_shape: tuple[int, int, int],
    recipe: Mapping[str, Any] | None = None,
) -> Network:
    """Make the network; a copy of ``encoder`` is taken instead of ``settings``' own.

    ``mean`` and ``std`` (c,) are those of the training images, in [0, 1]. An ``hf:``
    encoder comes with its weights, or by its ``recipe`` without.
    """
    encoder = deepcopy(encoder)  # the caller's stays as it is
    if encoder is None and settings.name == "wrn":
        encoder = WideResNet(settings, channels=image_shape[0])
        initialise(encoder, generator)
    elif encoder is None:
        encoder, preprocess = _pretrained(settings.name, recipe)
        if image_shape[0] != 3:
            raise ValueError(f"encoder.name={settings.name}: needs colour images")
        # As its weights were trained, not as these images are.
        mean, std = torch.tensor(preprocess.mean), torch.tensor(preprocess.std)
    # A network of the caller's own may need numbers, or make weights on its first pass.
    width = _width(encoder, image_shape, shapes_only=isinstance(encoder, WideResNet))
    network = Network(
        encoder,
        width,
        num_classes=num_classes,
        projection=settings.projection,
        mean=mean,
        std=std,
    )
    initialise(network.classifier, generator)
    initialise(network.projector, generator)
    # A third faster on a CPU, and what tensor cores like.
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def _pretrained(
    name: str, recipe: Mapping[str, Any] | None
) -> tuple[nn.Module, Preprocess]:
    """Load an encoder with its weights, or make it by its recipe without."""
    if name == EFFICIENTNET:
        return load_trainable_efficientnet_lite0(), EFFICIENTNET_PREPROCESS
    backbone = (
        load_hf_backbone(name.removeprefix(HUGGING_FACE))
        if recipe is None
        else rebuild_hf_backbone(recipe)
    )
    return backbone, backbone.preprocess


def initialise(part: nn.Module, generator: torch.Generator) -> None:
    """Draw weights as He et al. do, from ``generator`` alone."""
    for module in part.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(
                module.weight, mode="fan_out", nonlinearity="relu", generator=generator
            )
        elif isinstance(module, nn.Linear):
            nn.init.kaiming_uniform_(module.weight, a=5**0.5, generator=generator)
            nn.init.zeros_(module.bias)


def _width(
    encoder: nn.Module, image_shape: tuple[int, int, int], *, shapes_only: bool
) -> int:
    """Ask the encoder itself how many features it gives."""
    was_training = encoder.training
    encoder.eval()
    with torch.no_grad():
        if shapes_only:  # large images would take minutes
            twin = deepcopy(encoder).to("meta")
            features = twin(torch.zeros(1, *image_shape, device="meta"))
        else:
            features = encoder(torch.zeros(1, *image_shape))
    encoder.train(was_training)
    if not isinstance(features, Tensor) or features.ndim != 2:
        raise ValueError(
            "the encoder must give one row of features per image, (b, d); got "
            f"{tuple(features.shape) if isinstance(features, Tensor) else features!r}"
        )
    return features.shape[1]


def _conv(in_channels: int, channels: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
