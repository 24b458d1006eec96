"""Clean samples by k-NN label agreement: Eq. (10).

Rows are visited in chunks: never n x n, never n x k.
"""

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

_CHUNK_NUMBERS = 2**24  # similarities held at a time: 64 MB


def neighbor_labels(
    H: NDArray[np.floating],
    labels: NDArray[np.integer],
    num_classes: int,
    k: int,
    *,
    device: torch.device | str = "cpu",
) -> NDArray[np.float32]:
    """Y_p (n, C): share of each class among the k nearest rows by cosine, not itself.

    Rows that tie with the k-th nearest all count, so the order of rows cannot matter.
    """
    n = len(H)
    k = min(k, n - 1)
    unit = F.normalize(torch.as_tensor(H, dtype=torch.float32, device=device), dim=1)
    codes = torch.as_tensor(labels, dtype=torch.long, device=device)
    votes = F.one_hot(codes, num_classes).float()  # (n, C)
    result = np.empty((n, num_classes), dtype=np.float32)
    rows = max(1, _CHUNK_NUMBERS // n)
    for start in range(0, n, rows):
        similarity = unit[start : start + rows] @ unit.T  # (chunk, n)
        here = torch.arange(len(similarity), device=device)
        similarity[here, start + here] = -2.0  # below any cosine: never its own witness
        near = (similarity >= _kth_largest(similarity, k)).float()
        counts = near @ votes
        result[start : start + rows] = (
            (counts / counts.sum(dim=1, keepdim=True)).cpu().numpy()
        )
    return result


def select_clean(
    labels: NDArray[np.integer],
    neighbors: NDArray[np.floating],
    keep: float,
    *,
    hidden: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Eq. (10): the share ``keep`` of each class whose neighbours agree most.

    labels (n,), neighbors Y_p (n, C). The cross-entropy of a label against its
    neighbours is -log Y_p[label]; the ``keep`` smallest of each class are selected.
    Where several tie at the border, all or none of them would be arbitrary, so they
    are taken in row order until the count is full. A class with rows keeps at least
    one. ``hidden`` (n,) rows take part and are dropped, so what they are does not
    change how the others stand; a class that would lose all its rows by that keeps
    the best of the others.
    """
    with np.errstate(divide="ignore"):
        losses = -np.log(neighbors[np.arange(len(labels)), labels])  # (n,)
    shown = np.ones(len(labels), dtype=bool) if hidden is None else ~hidden
    clean = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        count = max(1, round(min(1.0, keep) * len(rows)))
        ranked = rows[np.argsort(losses[rows], kind="stable")]
        chosen, possible = ranked[:count][shown[ranked[:count]]], ranked[shown[ranked]]
        clean[chosen if len(chosen) else possible[:1]] = True
    return clean


def _kth_largest(similarity: Tensor, k: int) -> Tensor:
    """Give the k-th largest value of each row, (chunk, 1)."""
    if similarity.device.type != "cpu":
        return similarity.topk(k, dim=1).values[:, -1:]
    # numpy's partition is several times as fast as torch's topk on a CPU.
    place = similarity.shape[1] - k
    values = np.partition(similarity.numpy(), place, axis=1)[:, place : place + 1]
    return torch.from_numpy(np.ascontiguousarray(values))
