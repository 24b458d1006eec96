"""What happens between the steps: logging, saving, evaluating, showing."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from lightning_fabric import Fabric

from stct.train.algorithm import Round
from stct.train.checkpoint import settings_hash
from stct.train.images import Images
from stct.train.inference import predict
from stct.train.meter import READ_EVERY
from stct.train.model_file import PRETRAINED, About, save_model
from stct.train.pixels import decoded, print_nothing
from stct.train.runs import Run
from stct.train.state import State, Step
from stct.train.task import Task


class Progress(NamedTuple):
    """What a person wants to see while it runs."""

    step: Step | None
    losses: dict[str, float]  # of the last step whose losses were read
    done: float  # share of all work, 0 to 1
    rate: float  # images per second, forward and backward
    seconds_left: float
    noisy_accuracy: float | None  # of the last round
    test_accuracy: float | None


Show = Callable[[Progress], None]


class Watcher:
    """Logs, saves and shows what `rounds` reports; ``earlier`` seconds were before."""

    def __init__(
        self,
        task: Task,
        state: State,
        fabric: Fabric,
        show: Show,
        run: Run | None,
        save_every: float,
        about: About | None,
        earlier: float,
    ) -> None:
        self.task, self.state, self.fabric = task, state, fabric
        self.about, self.earlier = about, earlier
        self.settings = settings_hash(task.config, task.seed)
        self.show, self.run, self.save_every = show, run, save_every
        self.work = _Work.of(task)
        self.started = self.saved = time.monotonic()
        self.begin = self.work.done(state)
        self.images_seen = 0
        self.losses: dict[str, float] = {}
        self.noisy_accuracy: float | None = None
        self.test_accuracy: float | None = None

    def step(self, step: Step) -> None:
        """Log, save and show a step whose loss was finite."""
        self.images_seen += step.images
        last = step.step == step.num_steps
        log = step.step % READ_EVERY == 0 or last
        if log or (self.run is not None and self.run.waiting):
            self.losses = step.losses
        if self.run is not None:
            if self.run.waiting:  # the checkpoint's weights gave a good loss
                self.run.confirm()
            if log:
                entry = {"phase": step.phase, "round": step.round, "step": step.step}
                self.run.log({**entry, **self.losses, "seconds": self.seconds()})
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
            "unlabeled": finished.num_unlabeled,
        }
        if task.test is not None:
            _, truth = task.test
            P = predict(  # noqa: N806
                self.state.network, self._test_images(), self.fabric
            )
            self.test_accuracy = float(np.mean(P.argmax(axis=1) == truth))
            entry["test_accuracy"] = self.test_accuracy
        entry["seconds"] = self.seconds()
        if self.run is not None:
            self.run.log(entry)
            self.run.write_round(finished.number, finished.labels, finished.clean)
        self._show(None)
        return entry

    def _test_images(self) -> Images:
        assert self.task.test is not None
        pixels = decoded(self.task.test[0], self.fabric, print_nothing)
        return Images(pixels, self.fabric.device)

    def _save(self) -> None:
        assert self.run is not None
        self.run.save(self.state, self.settings, self.seconds())
        self.saved = time.monotonic()

    def seconds(self) -> float:
        """Give the time that training took until now, before a resume too."""
        return round(self.earlier + time.monotonic() - self.started, 3)

    def _show(self, step: Step | None) -> None:
        elapsed = time.monotonic() - self.started
        done = self.work.done(self.state)
        fresh = max(done - self.begin, 1e-9)
        self.show(
            Progress(
                step,
                self.losses,
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
