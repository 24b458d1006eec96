"""Semi-supervised representation learning: the loop around Eqs. (11)-(15)."""

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor

from stct.train import augment, losses
from stct.train.config import SRL, Augment, Config
from stct.train.device import send
from stct.train.images import Images
from stct.train.meter import Meter
from stct.train.optimizers import set_rate
from stct.train.pixels import ahead
from stct.train.state import (
    State,
    Step,
    Watch,
    generator_at,
    own_slice,
    seeded_at,
    shared_batch,
)
from stct.train.threshold import Threshold


def train(
    state: State,
    images: Images,
    config: Config,
    *,
    seed: int,
    fabric: Fabric,
    watch: Watch,
) -> None:
    """Train encoder and heads for one round, on ``state.labels`` where ``clean``."""
    settings = what_to_learn(config.srl, fabric)
    optimizer = state.optimizer_for(
        settings.optimizer,
        fabric,
        rate=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        layer_decay=settings.layer_decay,
    )
    if settings.threshold == "adaptive" and state.threshold is None:
        classes = state.network.classifier.out_features
        state.threshold = Threshold.start(classes, fabric.device)
    rows = Rows.of(state, settings.unlabeled)
    project = bool(settings.unlabeled_weight or settings.consistency_weight)
    state.share_gradients(fabric, images.chw, classify=True, project=project)
    meter = Meter("srl", state.round, fabric.device)
    state.module.train()

    def make(step: int) -> Batch:
        draws = generator_at(seed, "srl", state.round, step)
        return draw_batch(images, rows, settings, config.augment, draws, fabric)

    for batch in ahead(make, state.step, settings.steps, wait=images.at_hand):
        set_rate(optimizer, _rate(config, state))
        with seeded_at(fabric, seed, "srl", state.round, state.step):
            loss = forward(state, batch, settings, fabric)
        optimizer.zero_grad()
        fabric.backward(loss.total)
        optimizer.step()

        read = meter.note(loss._asdict(), state.step + 1, settings.steps)
        state.step += 1
        count = settings.batch_size + len(batch.strong) * fabric.world_size
        watch(Step("srl", state.round, state.step, settings.steps, count, read))


def forward(
    state: State, batch: "Batch", settings: SRL, fabric: Fabric
) -> losses.SRLLoss:
    """One pass with gradients, one without for what is only a target, Eq. (15)."""
    module = state.module
    b, u = len(batch.labeled), len(batch.weak)
    if u == 0:  # nothing to learn from unlabelled samples: plain cross-entropy
        logits = module(batch.labeled, classify=True).logits
        return losses.labeled_only(logits, batch.labels, settings)
    with torch.no_grad():
        target = module(
            torch.cat([batch.weak, batch.anchors]), classify=True, project=True
        )
    thresholds = None
    if state.threshold is not None:
        thresholds = state.threshold.follow(target.logits[:u], fabric)
    output = module(
        torch.cat([batch.labeled, batch.strong]), classify=True, project=True
    )
    anchors = target.projection[u:]  # z_Con (M, p)
    similar = losses.instance_similarity
    return losses.srl_loss(
        labeled_logits=output.logits[:b],
        labels=batch.labels,
        weak_logits=target.logits[:u],
        strong_logits=output.logits[b:],
        weak_similarity=similar(
            target.projection[:u], anchors, settings.target_temperature
        ),
        strong_similarity=similar(output.projection[b:], anchors, settings.temperature),
        settings=settings,
        thresholds=thresholds,
    )


class Rows(NamedTuple):
    """Row numbers of the labelled and of the unlabelled samples, and all labels."""

    labeled: Tensor
    unlabeled: Tensor
    labels: Tensor  # (n,), or distributions (n, C)

    @classmethod
    def of(cls, state: State, unlabeled: str) -> "Rows":
        """Give D_L, the selected rows, and D_U: "all", or the "unselected" ones."""
        assert state.labels is not None
        assert state.clean is not None
        clean = torch.from_numpy(state.clean)
        rest = (~clean).nonzero().flatten()
        all_rows = unlabeled == "all" or not len(rest)
        return cls(
            clean.nonzero().flatten(),
            torch.arange(len(clean)) if all_rows else rest,
            torch.from_numpy(state.labels if state.soft is None else state.soft),
        )


class Batch(NamedTuple):
    """What one step sees; images are floats (b, c, h, w)."""

    labeled: Tensor  # weak views of selected samples
    labels: Tensor  # (b,) or (b, C)
    weak: Tensor  # of unlabelled samples
    strong: Tensor  # of the same
    anchors: Tensor  # X_Con, weak views of M unlabelled samples


def draw_batch(
    images: Images,
    rows: Rows,
    settings: SRL,
    change: Augment,
    draws: torch.Generator,
    fabric: Fabric,
) -> Batch:
    """Draw and augment a batch; for any process count the same images in all."""
    device = fabric.device

    def pick(source: Tensor, count: int) -> Tensor:
        chosen = source[torch.randint(len(source), (count,), generator=draws)]
        return chosen[own_slice(fabric, count)]

    def weak(pixels: Tensor, count: int) -> Tensor:
        drawn = augment.draw_weak(count, change, draws)
        own = augment.own_part(drawn, own_slice(fabric, count), device)
        return augment.weak(pixels, own)

    labeled = pick(rows.labeled, settings.batch_size)
    labels = send(rows.labels[labeled], device)
    x_labeled = weak(images.batch(labeled), settings.batch_size)
    if not (settings.unlabeled_weight or settings.consistency_weight):
        none = x_labeled[:0]
        return Batch(x_labeled, labels, none, none, none)
    count = settings.unlabeled_batch_size
    pixels = images.batch(pick(rows.unlabeled, count))  # read once for both views
    drawn = augment.draw_strong(count, change, draws)
    strong = augment.own_part(drawn, own_slice(fabric, count), device)
    return Batch(
        x_labeled,
        labels,
        weak(pixels, count),
        augment.warp(pixels, strong),
        weak(
            images.batch(pick(rows.unlabeled, settings.num_anchors)),
            settings.num_anchors,
        ),
    )


def what_to_learn(settings: SRL, fabric: Fabric) -> SRL:
    """Give every process as many images; without SRL: cross-entropy alone, on all."""

    def share(name: str) -> int:
        return shared_batch(fabric, getattr(settings, name), f"srl.{name}")

    settings = replace(
        settings,
        batch_size=share("batch_size"),
        unlabeled_batch_size=share("unlabeled_batch_size"),
        num_anchors=share("num_anchors"),
    )
    if settings.enabled:
        return settings
    return replace(
        settings,
        batch_size=settings.batch_size + settings.unlabeled_batch_size,
        unlabeled_weight=0.0,
        consistency_weight=0.0,
    )


def _rate(config: Config, state: State) -> float:
    """Half a cosine over all rounds: each round goes on where the last one stopped."""
    done = (state.round - 1 + state.step / config.srl.steps) / config.num_rounds
    return config.srl.learning_rate * 0.5 * (1.0 + math.cos(math.pi * done))
