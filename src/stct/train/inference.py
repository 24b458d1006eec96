"""Running a network over all images, in batches and over all processes."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor

from stct.data.shards import open_npy
from stct.train.augment import to_float
from stct.train.images import Images
from stct.train.networks import Network

_BATCH = 512
_NOT_SHARED = (
    "is not there; the run directory must be on a file system that all machines share"
)


def embed(network: Network, images: Images, fabric: Fabric) -> NDArray[np.float32]:
    """H (n, d): the features of all images as they are, in every process."""
    return _over_all(network, images, fabric, _all_rows(images), _features)


@contextmanager
def embedded(
    network: Network, images: Images, fabric: Fabric, folder: Path | None
) -> Iterator[Any]:
    """H (n, d) as the first process reads it; the others get None.

    Each of several processes writes its share as a shard into ``folder``, which all of
    them must reach, and no process ever holds all rows for another. One process, or
    no folder: an array.
    """
    if fabric.world_size == 1 or folder is None:
        yield embed(network, images, fabric)
        return
    _write_shard(network, images, fabric, folder)
    fabric.barrier()  # all shards are whole
    if fabric.global_rank > 0:
        yield None
        return
    try:
        yield _read_shards(folder, fabric.world_size)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_shard(
    network: Network, images: Images, fabric: Fabric, folder: Path
) -> None:
    rows = _all_rows(images)
    own = _own_share(network, images, fabric, rows, _features)
    # The share is padded: the last processes may have fewer rows, or none.
    count = min(max(len(rows) - fabric.global_rank * len(own), 0), len(own))
    path = _shard(folder, fabric.global_rank, fabric.world_size)
    temporary = path.with_suffix(".tmp")
    if not folder.parent.is_dir():
        raise ValueError(f"{folder.parent}: {_NOT_SHARED}")
    folder.mkdir(exist_ok=True)
    with temporary.open("wb") as file:
        np.save(file, own[:count].cpu().numpy())
    temporary.replace(path)  # over what a killed run may have left


def _read_shards(folder: Path, count: int) -> Any:
    # By name: another number of processes may have been killed here and left others.
    paths = [_shard(folder, rank, count) for rank in range(count)]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise ValueError(f"{missing[0]}: {_NOT_SHARED}")
    return open_npy(paths)


def _shard(folder: Path, rank: int, count: int) -> Path:
    return folder / f"rows-{rank}-of-{count}.npy"


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
    """Each process takes an equal share; all get everything."""
    if not len(rows):
        return np.zeros((0, network.classifier.out_features), dtype=np.float32)
    own = _own_share(network, images, fabric, rows, what)
    everything: Any = fabric.all_gather(own) if fabric.world_size > 1 else own
    rows_first: Tensor = everything.reshape(-1, own.shape[1])[: len(rows)]
    return np.asarray(rows_first.cpu())


def _own_share(
    network: Network,
    images: Images,
    fabric: Fabric,
    rows: NDArray[np.intp],
    what: Callable[[Network, Tensor], Tensor],
) -> Tensor:
    """Results for this process's share of the rows, padded with repeats."""
    share = -(-len(rows) // fabric.world_size)
    padded = np.resize(rows, share * fabric.world_size)
    mine = padded[fabric.global_rank * share :][:share]
    was_training = network.training
    network.eval()
    parts = []
    # Features are for the correction, which wants all of their 32 bits.
    half = nullcontext() if what is _features else fabric.autocast()
    with torch.inference_mode(), half:
        for start in range(0, share, _BATCH):
            x = to_float(images.batch(mine[start : start + _BATCH]))
            parts.append(what(network, x).float())
    network.train(was_training)
    return torch.cat(parts).clone()


def _features(network: Network, x: Tensor) -> Tensor:
    return network(x).features  # type: ignore[no-any-return]


def _probabilities(network: Network, x: Tensor) -> Tensor:
    return network(x, classify=True).logits.softmax(dim=1)  # type: ignore[no-any-return]


def _all_rows(images: Images) -> NDArray[np.intp]:
    return np.arange(len(images))
