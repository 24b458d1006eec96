"""The losses: Eqs. (11)-(15) of the paper, and NT-Xent of SimCLR.

Legend: b images of a batch, C classes, M anchors, p columns of a projection.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from stct.train.config import SRL


class SRLLoss(NamedTuple):
    """Eq. (15) and its parts, before their weights."""

    total: Tensor
    labeled: Tensor
    unlabeled: Tensor
    consistency: Tensor
    confident: Tensor  # share of the weak views whose confidence passes


def srl_loss(
    labeled_logits: Tensor,
    labels: Tensor,
    weak_logits: Tensor,
    strong_logits: Tensor,
    weak_similarity: Tensor,
    strong_similarity: Tensor,
    settings: SRL,
    thresholds: Tensor | None = None,
) -> SRLLoss:
    """Eq. (15): L_SRL = L_L + L_U + L_Con; ``thresholds`` (C,) replace lambda."""
    confidence = settings.confidence if thresholds is None else thresholds
    l_labeled = labeled(labeled_logits, labels)
    l_unlabeled = unlabeled(weak_logits, strong_logits, confidence)
    l_consistency = consistency(weak_similarity, strong_similarity)
    total = (
        settings.labeled_weight * l_labeled
        + settings.unlabeled_weight * l_unlabeled
        + settings.consistency_weight * l_consistency
    )
    sure = confident(weak_logits.detach().softmax(dim=1), confidence)
    return SRLLoss(total, l_labeled, l_unlabeled, l_consistency, sure.float().mean())


def labeled_only(logits: Tensor, labels: Tensor, settings: SRL) -> SRLLoss:
    """Eq. (15) where there is nothing but L_L."""
    loss, none = labeled(logits, labels), logits.new_zeros(())
    return SRLLoss(settings.labeled_weight * loss, loss, none, none, none)


def labeled(logits: Tensor, labels: Tensor) -> Tensor:
    """Eq. (11): mean cross-entropy of weakly augmented selected samples.

    logits (b, C); labels (b,) whole numbers, or distributions (b, C).
    """
    return F.cross_entropy(logits, labels)


def unlabeled(
    weak_logits: Tensor, strong_logits: Tensor, confidence: float | Tensor
) -> Tensor:
    """Eq. (12): cross-entropy of the strong view against the sure weak one.

    Both (b, C); ``confidence`` is lambda, or one for each class (C,). The
    weak prediction is a target: no gradient flows into it. The mean is over all b
    samples, so few sure ones weigh little.
    """
    target = weak_logits.detach().softmax(dim=1)
    sure = confident(target, confidence)  # (b,)
    losses = F.cross_entropy(strong_logits, target, reduction="none")
    return (losses * sure).mean()


def confident(p: Tensor, confidence: float | Tensor) -> Tensor:
    """Say which rows of p (b, C) pass lambda, that of their class if it is (C,)."""
    largest = p.max(dim=1)
    if isinstance(confidence, Tensor):
        return largest.values > confidence[largest.indices]
    return largest.values > confidence


def instance_similarity(z: Tensor, anchors: Tensor, temperature: float) -> Tensor:
    """Eq. (13), as logarithms: log-softmax over anchors of cosine / temperature.

    z (b, p) and anchors (M, p) -> (b, M). Logarithms, because Eq. (14) needs them and
    a similarity of exp(-20) should not become log 0.
    """
    cosine = F.normalize(z, dim=1) @ F.normalize(anchors, dim=1).T
    return F.log_softmax(cosine / temperature, dim=1)


def consistency(weak_similarity: Tensor, strong_similarity: Tensor) -> Tensor:
    """Eq. (14): cross-entropy of the strong view's similarities against the weak's.

    Both (b, M), logarithms from `instance_similarity`. No gradient into the weak side.
    """
    target = weak_similarity.detach().exp()
    return -(target * strong_similarity).sum(dim=1).mean()


def nt_xent(z1: Tensor, z2: Tensor, temperature: float, *, others: Tensor) -> Tensor:
    """SimCLR's loss: find the other view of the same image among all views.

    z1, z2 (b, p), of length 1, are two views of the same b images. ``others`` (m, p)
    holds all views of the global batch, those of z1 and z2 first and in this order;
    on one device it is ``cat([z1, z2])``.
    """
    own = torch.cat([z1, z2])  # (2b, p)
    similarity = own @ others.T / temperature  # (2b, m)
    itself = torch.eye(len(own), len(others), dtype=torch.bool, device=own.device)
    similarity = similarity.masked_fill(itself, float("-inf"))
    partner = torch.arange(len(own), device=own.device).roll(len(z1))
    return F.cross_entropy(similarity, partner)
