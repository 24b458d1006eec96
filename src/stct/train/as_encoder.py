"""A trained model as a frozen encoder: ``stct correct photos/ --encoder RUN``."""

from pathlib import Path

import torch
from torch import Tensor, nn

from stct.encoders import Encoder, Preprocess
from stct.train.model_file import load_model
from stct.train.networks import Network

_LUMA = (0.299, 0.587, 0.114)  # how colours weigh in a grey image


def own_encoder(path: Path) -> Encoder:
    """Load the encoder of a model file or run directory of ``stct train``."""
    network, about = load_model(path)
    channels, height, width = about.image_shape
    preprocess = Preprocess(
        size=(height, width), mode="bilinear", mean=(0.0,) * 3, std=(1.0,) * 3
    )
    return Encoder(str(path), _Features(network, channels).eval(), preprocess)


class _Features(nn.Module):
    """Features h (b, d) of images (b, 3, h, w) in [0, 1]."""

    def __init__(self, network: Network, channels: int) -> None:
        super().__init__()
        self.network = network
        self.channels = channels

    def forward(self, x: Tensor) -> Tensor:
        if self.channels == 1:
            luma = torch.tensor(_LUMA, device=x.device).view(1, 3, 1, 1)
            x = (x * luma).sum(dim=1, keepdim=True)
        features: Tensor = self.network(x).features
        return features
