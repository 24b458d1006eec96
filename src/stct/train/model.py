"""`STCT`: the whole method behind ``fit`` and ``predict``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from stct.estimator import LabelCorrector
from stct.labels import encode
from stct.train.algorithm import fit_corrector, starting_labels
from stct.train.config import Config
from stct.train.images import Images, images_and_labels
from stct.train.inference import embed, predict
from stct.train.model_file import About, load_model, save_model
from stct.train.networks import Network
from stct.train.presets import preset as find_preset
from stct.train.task import Task
from stct.train.training import check_classes, make_fabric, prepare, train
from stct.train.watching import Progress


class STCT:
    """Noisy images in; a classifier and corrected labels out. Algorithm 1.

    Parameters
    ----------
    preset : str, default="cpu"
        "tiny", "cpu", "photos", "cifar10", "cifar100", "clothing1m", "paper-cifar10",
        "paper-cifar100" or "paper-clothing1m".
        Settings for a kind of data and machine; see `stct.train.config`.
    config : Config, optional
        Your own settings instead of a preset's.
    seed : int, default=0
        Same seed, same machine: same bytes.
    encoder : torch.nn.Module, optional
        Your own network, images (b, c, h, w) to features (b, d). A copy is trained.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Corrected labels, in the type of the given ones.
    confidence_, action_, classes_, transition_matrix_, noise_rate_
        As in `stct.LabelCorrector`, from the final encoder.
    corrector_ : LabelCorrector or None
        The last correction; None when NMC is switched off.
    history_ : list of dict
        One entry for each round.
    skipped_ : list of str
        Files that could not be read, with ``fit(..., skip_bad=True)``.

    Examples
    --------
    >>> from stct.train import STCT
    >>> model = STCT(preset="cpu", seed=0).fit(images, labels)  # doctest: +SKIP
    >>> model.predict(new_images)  # doctest: +SKIP
    """

    def __init__(
        self,
        preset: str = "cpu",
        *,
        config: Config | None = None,
        seed: int = 0,
        encoder: nn.Module | None = None,
    ) -> None:
        self.config = find_preset(preset) if config is None else config
        self.seed = seed
        self.encoder = encoder

    def fit(
        self,
        images: Any,
        labels: ArrayLike | None = None,
        *,
        label_column: str = "label",
        skip_bad: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> Self:
        """Train on noisy labels.

        Parameters
        ----------
        images : array, path or torch dataset
            uint8 (n, h, w) or (n, h, w, c); or a folder of class folders, a table of
            paths, an .npz file or CIFAR's files; or a dataset of (image, label), where
            a tensor may be (c, h, w) too.
        labels : array-like of shape (n,), optional
            Noisy labels of any type, None where missing. Not needed where ``images``
            brings its own.
        label_column : str, default="label"
            Of a table of paths.
        skip_bad : bool, default=False
            Leave out files that cannot be read and list them in ``skipped_``.
        progress : callable, optional
            Is told how far it is after every step.
        """
        pixels, y, self.skipped_ = images_and_labels(
            images,
            labels,
            size=self.config.image_size,
            label_column=label_column,
            skip_bad=skip_bad,
        )
        encoded = encode(y)
        check_classes(encoded)
        task = Task(
            images=pixels,
            given=encoded.codes,
            num_classes=len(encoded.classes),
            config=self.config,
            seed=self.seed,
            encoder=self.encoder,
        )
        self._fabric = make_fabric(self.config.precision)
        ready = prepare(task, fabric=self._fabric)
        trained = train(task, ready, fabric=self._fabric, show=progress or _ignore)
        state = trained.state
        self.history_ = trained.history
        self.classes_: NDArray[Any] = encoded.classes
        self.network_: Network = state.network.eval()
        self._shape = trained.images.chw
        self.corrector_: LabelCorrector | None = None
        self.labels_: NDArray[Any] = encoded.values
        if self.config.correct.enabled:
            H = embed(state.frozen or state.network, trained.images, self._fabric)  # noqa: N806
            start = starting_labels(encoded.codes, state, self.config)
            values = [None if code < 0 else encoded.classes[code] for code in start]
            fitted = fit_corrector(H, values, state, self.config, self.seed)
            self.corrector_ = fitted
            self.labels_ = fitted.labels_
            self.confidence_ = fitted.confidence_
            self.action_ = fitted.action_
            self.transition_matrix_ = fitted.transition_matrix_
            self.noise_rate_ = fitted.noise_rate_
        return self

    def predict_proba(self, images: Any) -> NDArray[np.float32]:
        """Class probabilities (n, C) of new images, columns as in ``classes_``."""
        return predict(self._network(), self._images(images), self._fabric)

    def predict(self, images: Any) -> NDArray[Any]:
        """Labels (n,) of new images."""
        best = self.predict_proba(images).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def embed(self, images: Any) -> NDArray[np.float32]:
        """Features (n, d) of images, for `stct.LabelCorrector` or anything else."""
        return embed(self._network(), self._images(images), self._fabric)

    def save(self, path: str | Path) -> None:
        """Write the model to one .safetensors file."""
        network = self._network()
        classes = [getattr(c, "tolist", lambda c=c: c)() for c in self.classes_]
        about = About(
            self.config.encoder, self.encoder is not None, classes, self._shape
        )
        save_model(Path(path), network, about)

    @classmethod
    def load(cls, path: str | Path, *, encoder: nn.Module | None = None) -> Self:
        """Read what `save` or ``stct train`` wrote; it can predict and embed."""
        network, about = load_model(Path(path), encoder=encoder)
        model = cls(config=Config(encoder=about.encoder), encoder=encoder)
        model.network_, model._shape = network, about.image_shape
        model.classes_ = np.array(about.classes, dtype=_kind(about.classes))
        model._fabric = make_fabric()
        network.to(model._fabric.device)
        return model

    def _network(self) -> Network:
        if not hasattr(self, "network_"):
            raise ValueError("this STCT is not fitted yet: call fit, or STCT.load")
        return self.network_

    def _images(self, images: Any) -> Images:
        pixels = images_and_labels(images, None, shape=self._shape).images
        return Images(pixels, self._fabric.device)


def _kind(classes: list[Any]) -> Any:
    """Let NumPy choose a type, unless it would turn numbers into text."""
    return None if len({type(label) for label in classes}) == 1 else object


def _ignore(_: Progress) -> None:
    """Tell nobody."""
