"""Running a network over all images, in batches and over all processes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor

from stct.train.augment import to_float
from stct.train.images import Images
from stct.train.networks import Network

_BATCH = 512


def embed(network: Network, images: Images, fabric: Fabric) -> NDArray[np.float32]:
    """H (n, d): the features of all images as they are."""
    return _over_all(network, images, fabric, _all_rows(images), _features)


def predict(
    network: Network,
    images: Images,
    fabric: Fabric,
    *,
    rows: NDArray[np.intp] | None = None,
) -> NDArray[np.float32]:
    """P (n, C): class probabilities from the classification head, Algorithm 1's end."""
    rows = _all_rows(images) if rows is None else rows
    return _over_all(network, images, fabric, rows, _probabilities)


def _over_all(
    network: Network,
    images: Images,
    fabric: Fabric,
    rows: NDArray[np.intp],
    what: Callable[[Network, Tensor], Tensor],
) -> NDArray[np.float32]:
    """Each process takes an equal share, padded with repeats; all get everything."""
    share = -(-len(rows) // fabric.world_size)
    padded = np.resize(rows, share * fabric.world_size)
    mine = padded[fabric.global_rank * share :][:share]
    was_training = network.training
    network.eval()
    parts = []
    with torch.inference_mode(), fabric.autocast():
        for start in range(0, share, _BATCH):
            x = to_float(images.batch(mine[start : start + _BATCH]))
            parts.append(what(network, x).float())
    network.train(was_training)
    if not parts:  # no rows at all
        return np.zeros((0, network.classifier.out_features), dtype=np.float32)
    own = torch.cat(parts).clone()
    everything: Any = fabric.all_gather(own) if fabric.world_size > 1 else own
    rows_first: Tensor = everything.reshape(-1, own.shape[1])[: len(rows)]
    return np.asarray(rows_first.cpu())


def _features(network: Network, x: Tensor) -> Tensor:
    return network(x).features  # type: ignore[no-any-return]


def _probabilities(network: Network, x: Tensor) -> Tensor:
    return network(x, classify=True).logits.softmax(dim=1)  # type: ignore[no-any-return]


def _all_rows(images: Images) -> NDArray[np.intp]:
    return np.arange(len(images))
