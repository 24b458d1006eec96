"""SimCLR: an encoder from images alone, without a single label."""

import math
import warnings
from functools import lru_cache

import torch
from lightning_fabric import Fabric
from torch import Tensor

from stct.train import augment, losses
from stct.train.config import Config, Pretrain
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


def simclr(
    state: State,
    images: Images,
    config: Config,
    *,
    seed: int,
    fabric: Fabric,
    watch: Watch,
) -> None:
    """Train encoder and projection head so that two views of an image look alike."""
    settings = config.pretrain
    per_step = batch_size(settings, len(images), fabric)
    per_epoch = len(images) // per_step
    num_steps = settings.epochs * per_epoch
    optimizer = state.optimizer_for(
        "sgd",
        fabric,
        rate=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
    )
    mine = own_slice(fabric, per_step)
    view_size = _view_size(images, settings)
    state.share_gradients(fabric, images.chw, classify=False, project=True)
    meter = Meter("pretrain", 0, fabric.device)
    state.module.train()

    def make(step: int) -> Tensor:
        """Give two views of each image of a step, one after the other."""
        epoch, place = divmod(step, per_epoch)
        order = _order(len(images), seed, epoch)
        batch = images.batch(order[place * per_step : (place + 1) * per_step][mine])
        draws = generator_at(seed, "pretrain", step)
        drawn = (_view(per_step, mine, config, draws, fabric) for _ in range(2))
        return torch.cat([augment.warp(batch, d, size=view_size) for d in drawn])

    for views in ahead(make, state.step, num_steps, wait=images.at_hand):
        set_rate(optimizer, _rate(settings, state.step / num_steps))
        with seeded_at(fabric, seed, "pretrain", state.step):
            z1, z2 = state.module(views, project=True).projection.chunk(2)
        loss = losses.nt_xent(
            z1, z2, settings.temperature, others=_all_views(z1, z2, fabric)
        )
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()

        read = meter.note({"contrast": loss}, state.step + 1, num_steps)
        state.step += 1
        watch(Step("pretrain", 0, state.step, num_steps, 2 * per_step, read))


def batch_size(settings: Pretrain, n: int, fabric: Fabric) -> int:
    """Give the images of one step: no more than there are, as many in each process."""
    wanted = min(settings.batch_size, n)
    return shared_batch(fabric, wanted, "pretrain.batch_size")


@lru_cache(maxsize=1)
def _order(n: int, seed: int, epoch: int) -> Tensor:
    """Give the rows of one epoch in their order."""
    return torch.randperm(n, generator=generator_at(seed, "order", epoch))


def _view(
    batch_size: int,
    mine: slice,
    config: Config,
    draws: torch.Generator,
    fabric: Fabric,
) -> augment.Warp:
    """Draw for the whole batch and keep our rows: the same for any process count."""
    view = augment.draw_view(batch_size, config.augment, draws)
    return augment.own_part(view, mine, fabric.device)


def _all_views(z1: Tensor, z2: Tensor, fabric: Fabric) -> Tensor:
    """Give the views of all processes, our own first, with gradients."""
    own = torch.cat([z1, z2])
    if fabric.world_size == 1:
        return own
    with warnings.catch_warnings():  # Fabric's own call of a deprecated function
        warnings.simplefilter("ignore", FutureWarning)
        gathered = fabric.all_gather(own, sync_grads=True)  # (processes, 2b, p)
    return torch.cat(
        [own, *(gathered[i] for i in range(len(gathered)) if i != fabric.global_rank)]
    )


def _view_size(images: Images, settings: Pretrain) -> tuple[int, int]:
    _, height, width = images.chw
    return (
        max(8, round(height * settings.size)),
        max(8, round(width * settings.size)),
    )


def _rate(settings: Pretrain, done: float) -> float:
    """Linear warm-up, then half a cosine."""
    if done < settings.warmup:
        return settings.learning_rate * (done / settings.warmup + 1e-3)
    left = (done - settings.warmup) / (1.0 - settings.warmup)
    return settings.learning_rate * 0.5 * (1.0 + math.cos(math.pi * left))
