"""One training run from images and labels to a network: what the faces call.

`stct.train.STCT` and ``stct train`` both come here. With a run directory it logs,
saves and goes on where a killed run stopped.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from numpy.typing import NDArray
from torch import nn

from stct.labels import EncodedLabels
from stct.train import networks
from stct.train.algorithm import Round, rounds
from stct.train.config import Config
from stct.train.images import Images
from stct.train.inference import predict
from stct.train.model_file import PRETRAINED, About, save_model
from stct.train.runs import Run, load_checkpoint
from stct.train.state import State, Step, generator_at

_LOG_EVERY = 10  # steps
_PATIENCE = timedelta(days=1)  # of all processes while the first one corrects


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to train on, and how."""

    images: Any  # uint8 (n, h, w, c), or a reader of such
    given: NDArray[np.intp]  # (n,) noisy labels 0 .. C - 1, -1: none
    num_classes: int
    config: Config
    seed: int
    encoder: nn.Module | None = None  # the caller's own
    init: Callable[[networks.Network], None] | None = None  # a start other than SimCLR
    test: tuple[Any, NDArray[np.intp]] | None = (
        None  # for reporting, never for choosing
    )


class Progress(NamedTuple):
    """What a person wants to see while it runs."""

    step: Step | None
    done: float  # share of all work, 0 to 1
    rate: float  # images per second, forward and backward
    seconds_left: float
    noisy_accuracy: float | None  # of the last round
    test_accuracy: float | None


Show = Callable[[Progress], None]


class Trained(NamedTuple):
    """Where training ended."""

    state: State
    images: Images
    history: list[dict[str, Any]]  # one entry for each round that was run here


def make_fabric() -> Fabric:
    """Take the device at hand, and all processes that torchrun has started."""
    gpu = torch.cuda.is_available()
    precision: Any = "bf16-mixed" if gpu else "32-true"
    if "TORCHELASTIC_RUN_ID" not in os.environ:  # no torchrun
        return Fabric(accelerator="auto", devices=1, precision=precision)
    local = int(os.environ["LOCAL_WORLD_SIZE"])
    fabric = Fabric(
        accelerator="auto",
        devices=local,
        num_nodes=int(os.environ["WORLD_SIZE"]) // local,
        strategy=DDPStrategy(find_unused_parameters=True, timeout=_PATIENCE),
        precision=precision,
    )
    fabric.launch()
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


def train(
    task: Task,
    *,
    fabric: Fabric,
    show: Show,
    run: Run | None = None,
    shards: Path | None = None,
    resume_from: Path | None = None,
    save_every: float = 60.0,
    about: About | None = None,
) -> Trained:
    """Run Algorithm 1 to its end. ``run`` is for the first process only.

    ``shards`` is where several processes leave embeddings for the corrector.

    With ``run`` and ``about``, the encoder that SimCLR gave is kept as a model file.
    """
    images = Images(task.images, fabric.device)
    state = _start(task, images, fabric)
    if resume_from is not None:
        place = load_checkpoint(resume_from, state)
        if run is not None:
            run.cut_metrics(place)
    elif task.init is not None:
        task.init(state.network)
        state.enter("srl", 1)
    watcher = _Watcher(task, state, fabric, show, run, save_every, about)
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
    return Trained(state, images, history)


def _start(task: Task, images: Images, fabric: Fabric) -> State:
    """Make the network from the seed alone, and wrap it."""
    mean, std = images.mean_and_std()
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


class _Watcher:
    """Logs, saves and shows what `rounds` reports."""

    def __init__(
        self,
        task: Task,
        state: State,
        fabric: Fabric,
        show: Show,
        run: Run | None,
        save_every: float,
        about: About | None,
    ) -> None:
        self.task, self.state, self.fabric = task, state, fabric
        self.about = about
        self.show, self.run, self.save_every = show, run, save_every
        self.work = _Work.of(task)
        self.started = self.saved = time.monotonic()
        self.begin = self.work.done(state)
        self.images_seen = 0
        self.noisy_accuracy: float | None = None
        self.test_accuracy: float | None = None

    def step(self, step: Step) -> None:
        self.images_seen += step.images
        last = step.step == step.num_steps
        if self.run is not None:
            if step.step % _LOG_EVERY == 0 or last:
                entry = {"phase": step.phase, "round": step.round, "step": step.step}
                self.run.log({**entry, **step.losses, "seconds": self._seconds()})
            if last and step.phase == "pretrain" and self.about is not None:
                save_model(self.run.folder / PRETRAINED, self.state.network, self.about)
            if time.monotonic() - self.saved >= self.save_every:
                self._save()
        self._show(step)

    def round(self, finished: Round) -> dict[str, Any]:
        """Evaluate, log and save a round."""
        task = self.task
        self.noisy_accuracy = finished.noisy_accuracy
        entry: dict[str, Any] = {
            "phase": "round",
            "round": finished.number,
            "noisy_validation_accuracy": finished.noisy_accuracy,
            "labels_changed": int(np.sum(finished.labels != task.given)),
            "selected": int(finished.clean.sum()),
        }
        if task.test is not None:
            test_images, truth = task.test
            P = predict(  # noqa: N806
                self.state.network, Images(test_images, self.fabric.device), self.fabric
            )
            self.test_accuracy = float(np.mean(P.argmax(axis=1) == truth))
            entry["test_accuracy"] = self.test_accuracy
        entry["seconds"] = self._seconds()
        if self.run is not None:
            self.run.log(entry)
            self.run.write_round(finished.number, finished.labels, finished.clean)
        self._show(None)
        return entry

    def _save(self) -> None:
        assert self.run is not None
        self.run.save(self.state)
        self.saved = time.monotonic()

    def _seconds(self) -> float:
        return round(time.monotonic() - self.started, 3)

    def _show(self, step: Step | None) -> None:
        elapsed = time.monotonic() - self.started
        done = self.work.done(self.state)
        fresh = max(done - self.begin, 1e-9)
        self.show(
            Progress(
                step,
                done,
                self.images_seen / max(elapsed, 1e-9),
                elapsed * (1.0 - done) / fresh,
                self.noisy_accuracy,
                self.test_accuracy,
            )
        )


class _Work(NamedTuple):
    """Costs of the phases, in images forward and backward."""

    pretrain: float  # all of it
    round: float  # of SRL
    rounds: int
    pretrain_steps: int
    round_steps: int

    @classmethod
    def of(cls, task: Task) -> "_Work":
        settings, learn = task.config.pretrain, task.config.srl
        n = len(task.given)
        steps = settings.epochs * (n // min(settings.batch_size, n))
        seen = learn.unlabeled_batch_size + learn.num_anchors
        per_step = learn.batch_size + learn.unlabeled_batch_size + 0.3 * seen
        return cls(
            2.0 * settings.epochs * n,
            learn.steps * per_step + 0.3 * n,
            task.config.num_rounds,
            max(1, steps),
            learn.steps,
        )

    def done(self, state: State) -> float:
        total = self.pretrain + self.rounds * self.round
        if state.phase == "pretrain":
            return self.pretrain * min(1.0, state.step / self.pretrain_steps) / total
        here = state.round - 1 + state.step / self.round_steps
        return min(1.0, (self.pretrain + here * self.round) / total)
