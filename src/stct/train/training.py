"""One training run from images and labels to a network: what the faces call.

`stct.train.STCT` and ``stct train`` both come here. With a run directory it logs,
saves and goes on where a killed run stopped.
"""

import atexit
import os
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy

from stct.data.images import LazyImages
from stct.labels import EncodedLabels
from stct.train import networks, pretrain, srl
from stct.train.algorithm import rounds
from stct.train.checkpoint import load_checkpoint, settings_hash
from stct.train.cost import Cost, check_memory, step_costs
from stct.train.device import fabric_precision, free_memory
from stct.train.images import Images
from stct.train.model_file import About
from stct.train.pixels import Say, decoded, print_nothing
from stct.train.runs import Run
from stct.train.state import State, generator_at, seeded_at
from stct.train.task import Task
from stct.train.watching import Show, Watcher

_PATIENCE = timedelta(days=1)  # of all processes while the first one corrects


class Start(NamedTuple):
    """A run that is ready to begin, or to go on."""

    state: State
    images: Images
    place: dict[str, str]  # of its checkpoint; {}: there is none
    costs: list[Cost]  # of a step of each phase; [] where unknown


class Trained(NamedTuple):
    """Where training ended."""

    state: State
    images: Images
    history: list[dict[str, Any]]  # one entry for each round that was run here
    seconds: float  # before a resume too


def make_fabric(precision: str = "auto") -> Fabric:
    """Take the device at hand, and all processes that torchrun has started."""
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cpu" and torch.backends.mps.is_available():
        kind = "mps"
    bits = fabric_precision(precision, kind)
    if "TORCHELASTIC_RUN_ID" not in os.environ:  # no torchrun
        return Fabric(accelerator=kind, devices=1, precision=bits)
    local = int(os.environ["LOCAL_WORLD_SIZE"])
    fabric = Fabric(
        accelerator=kind,
        devices=local,
        num_nodes=int(os.environ["WORLD_SIZE"]) // local,
        strategy=DDPStrategy(timeout=_PATIENCE),
        precision=bits,
    )
    fabric.launch()
    atexit.register(leave_processes)  # an error or a signal is a way out too
    return fabric


def leave_processes() -> None:
    """Part from the other processes; one that just ends can take others with it."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def check_classes(encoded: EncodedLabels) -> None:
    """Refuse labels from which nothing can be learnt."""
    n, num_classes = len(encoded.codes), len(encoded.classes)
    if num_classes < 2:
        raise ValueError(f"training needs two or more classes, got {num_classes}")
    if n < 2 * num_classes:
        raise ValueError(
            f"{n} images for {num_classes} classes; training needs at least two of each"
        )


def prepare(
    task: Task,
    *,
    fabric: Fabric,
    resume_from: Path | None = None,
    say: Say = print_nothing,
) -> Start:
    """Build the network and load what it starts from.

    Whatever can be wrong with a request shows here, before anything is written.
    """
    pretrain.batch_size(task.config.pretrain, len(task.given), fabric)
    srl.what_to_learn(task.config.srl, fabric)
    images = Images(decoded(task.images, fabric, say), fabric.device)
    state = _build(task, images, fabric)
    costs = step_costs(
        state.network,
        task.config,
        images.chw,
        num_images=len(images),
        num_processes=fabric.world_size,
        half=fabric_precision(task.config.precision, fabric.device.type)
        == "bf16-mixed",
    )
    flexible = isinstance(task.images, LazyImages) or bool(task.config.image_size)
    check_memory(costs, free_memory(fabric.device), flexible=flexible)
    place = {}
    if resume_from is not None:
        settings = settings_hash(task.config, task.seed)
        place = load_checkpoint(resume_from, state, settings)
    if not place and task.init is not None:
        task.init(state.network)
        state.enter("srl", 1)
    return Start(state, images, place, costs)


def train(
    task: Task,
    start: Start,
    *,
    fabric: Fabric,
    show: Show,
    run: Run | None = None,
    shards: Path | None = None,
    save_every: float = 60.0,
    about: About | None = None,
) -> Trained:
    """Run Algorithm 1 to its end. ``run`` is for the first process only.

    ``shards`` is where several processes leave embeddings for the corrector.

    With ``run`` and ``about``, the encoder that SimCLR gave is kept as a model file.
    """
    state, images, place, _ = start
    if run is not None:
        run.go_on(place)
    earlier = float(place.get("seconds", "0"))
    watcher = Watcher(task, state, fabric, show, run, save_every, about, earlier)
    history = []
    for finished in rounds(
        state,
        images,
        task.given,
        task.config,
        seed=task.seed,
        fabric=fabric,
        watch=watcher.step,
        shards=shards,
    ):
        history.append(watcher.round(finished))
    return Trained(state, images, history, watcher.seconds())


def _build(task: Task, images: Images, fabric: Fabric) -> State:
    """Make the network from the seed alone, and wrap it."""
    mean, std = images.mean_and_std()
    with seeded_at(fabric, task.seed, "weights"):  # modules draw as they are made
        network = networks.build(
            task.config.encoder,
            num_classes=task.num_classes,
            mean=mean,
            std=std,
            generator=generator_at(task.seed, "weights"),
            encoder=task.encoder,
            image_shape=images.chw,
        )
    network.to(fabric.device)
    return State(network, fabric.setup_module(network))
