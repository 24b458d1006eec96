"""Every setting of training, with the paper's symbol and value.

Values that the paper does not give are marked "ours" and argued in ``docs/paper.md``.
A variant is a value: ``correct.enabled=false`` is the method without NMC.
"""

import math
from dataclasses import dataclass, field
from typing import Any

_MOST = 1e30  # of rates: far more would not fit into the network's 32-bit numbers


def _later(default: Any, *, before: Any) -> Any:
    """Declare a setting that runs of an older version lack.

    ``before`` is what those runs did; they are resumed with it.
    """
    return field(default=default, metadata={"before": before})


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """The network that turns an image into a feature vector."""

    # "wrn", or a pre-trained one: "efficientnet-lite0" or "hf:NAME_OR_DIR".
    name: str = "wrn"
    depth: int = 28  # WRN-28-2 for CIFAR-10, WRN-28-8 for CIFAR-100
    width: int = 2
    stem_stride: int = 1  # 2 halves the sides at once: four times as fast
    projection: int = 128  # columns of z, ours

    def __post_init__(self) -> None:
        known = self.name in ("wrn", "efficientnet-lite0")
        if not known and not self.name.startswith("hf:"):
            raise ValueError(
                "encoder.name must be 'wrn', 'efficientnet-lite0' or 'hf:NAME_OR_DIR', "
                f"got {self.name!r}"
            )
        if self.name == "wrn" and (self.depth < 10 or (self.depth - 4) % 6):
            raise ValueError(
                f"encoder.depth must be 10, 16, 22, 28, ... (6 m + 4), got {self.depth}"
            )
        _at_least(1, self, "width", "stem_stride", "projection")


@dataclass(frozen=True, kw_only=True)
class Augment:
    """How images are changed. All ours: the paper names weak and strong only."""

    flip: bool = True  # left-right; wrong for digits and text
    shift: float = 0.125  # weak: shifted crop, share of the side
    num_ops: int = 2  # strong: operations per image, RandAugment's N
    magnitude: float = 1.0  # strong: scales every operation's range
    cutout: float = 0.5  # strong: side of the grey square, share of the side
    min_crop: float = 0.2  # SimCLR: smallest share of the area
    jitter: float = 0.5  # SimCLR: colour strength s

    def __post_init__(self) -> None:
        _at_least(0, self, "num_ops", "magnitude", "jitter")
        _between(0.0, 1.0, self, "shift", "cutout", "min_crop")


@dataclass(frozen=True, kw_only=True)
class Pretrain:
    """SimCLR. The paper gives none of these."""

    epochs: int = 800
    batch_size: int = 512
    learning_rate: float = 0.5
    momentum: float = 0.9
    weight_decay: float = 1e-4
    warmup: float = 0.05  # share of the steps
    temperature: float = 0.5
    size: float = 1.0  # side of the views, as a share of the image's

    def __post_init__(self) -> None:
        _at_least(0, self, "epochs")
        _between(0.0, _MOST, self, "learning_rate", "weight_decay")
        _at_least(2, self, "batch_size")
        _between(0.0, 1.0, self, "momentum", "warmup", "size")
        _positive(self, "temperature", "size")


@dataclass(frozen=True, kw_only=True)
class Correct:
    """NMC: see `stct.LabelCorrector`."""

    enabled: bool = True
    method: str = "loo"
    val_ratio: float = 0.5  # r
    step_size: float = 0.2  # eta
    agreement: float = 0.998  # delta
    coverage: float = 0.9999  # beta

    def __post_init__(self) -> None:
        _one_of(self, "method", "loo", "split", "paper")
        _inside(0.0, 1.0, self, "val_ratio", "coverage")
        _positive(self, "step_size", "agreement")
        _between(0.0, 1.0, self, "agreement")


@dataclass(frozen=True, kw_only=True)
class Select:
    """Clean samples by k-NN agreement, Eq. (10)."""

    num_neighbors: int = 2000  # k
    keep_per_round: float = 0.1  # mu, ours: all samples after ten rounds

    def __post_init__(self) -> None:
        _at_least(1, self, "num_neighbors")
        _between(0.0, 1.0, self, "keep_per_round")
        _positive(self, "keep_per_round")


@dataclass(frozen=True, kw_only=True)
class SRL:
    """Semi-supervised representation learning, Eqs. (11)-(15)."""

    enabled: bool = True  # without it: cross-entropy on all (corrected) labels
    steps: int = 5000  # per round, ours
    batch_size: int = 64  # labelled, ours (FixMatch)
    unlabeled_batch_size: int = 448  # ours (FixMatch: 7 x)
    num_anchors: int = 256  # M, ours
    learning_rate: float = 0.002
    momentum: float = 0.9
    weight_decay: float = 5e-4  # ours (FixMatch)
    confidence: float = 0.95  # lambda
    temperature: float = 0.1  # tau
    # Of the weak view's similarities. The paper's is tau too; less keeps all
    # similarities from becoming equal, which satisfies Eq. (14) as well.
    target_temperature: float = 0.1
    # Eq. (11) is taught Pr[clean | x, given] where `loo` knows it; false: the label.
    soft_labels: bool = True
    labeled_weight: float = 1.0  # 0 leaves the loss out
    unlabeled_weight: float = 1.0
    consistency_weight: float = 1.0
    # D_U: "all" rows without their labels (FixMatch), or as printed the rows that
    # Eq. (10) left "unselected", and all once every row is selected.
    unlabeled: str = _later("all", before="unselected")
    # "adaptive": lambda follows the mean confidence and that of each class (FreeMatch).
    threshold: str = _later("fixed", before="fixed")
    optimizer: str = _later("sgd", before="sgd")  # "adamw" for pre-trained encoders
    layer_decay: float = _later(1.0, before=1.0)  # of the rate, per layer downwards

    def __post_init__(self) -> None:
        _one_of(self, "unlabeled", "all", "unselected")
        _one_of(self, "threshold", "fixed", "adaptive")
        _one_of(self, "optimizer", "sgd", "adamw")
        _between(0.0, 1.0, self, "layer_decay")
        _positive(self, "layer_decay")
        _at_least(1, self, "steps", "batch_size", "unlabeled_batch_size")
        _at_least(2, self, "num_anchors")
        _between(0.0, _MOST, self, "learning_rate", "weight_decay")
        _at_least(0, self, "labeled_weight", "unlabeled_weight", "consistency_weight")
        _between(0.0, 1.0, self, "momentum", "confidence")
        _positive(self, "temperature", "target_temperature")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that decides the outcome of a run, with the seed and the data."""

    num_rounds: int = 10  # max_epoch of Algorithm 1, ours
    noisy_validation: float = 0.05  # rows whose labels SRL never sees, for watching
    # Side that images of a folder get; 0: as they are, and 224 for photos.
    image_size: int = 0
    # Of the passes: "fp32", "bf16", or "auto": bf16 on a GPU that has it.
    precision: str = _later("auto", before="auto")
    encoder: Encoder = field(default_factory=Encoder)
    augment: Augment = field(default_factory=Augment)
    pretrain: Pretrain = field(default_factory=Pretrain)
    correct: Correct = field(default_factory=Correct)
    select: Select = field(default_factory=Select)
    srl: SRL = field(default_factory=SRL)

    def __post_init__(self) -> None:
        _at_least(1, self, "num_rounds")
        _at_least(0, self, "image_size")
        _one_of(self, "precision", "auto", "fp32", "bf16")
        _between(0.0, 0.5, self, "noisy_validation")


def _at_least(low: float, part: Any, *names: str) -> None:
    for name in names:
        if not low <= getattr(part, name) < math.inf:
            _refuse(part, name, f"{low} or more, and finite")


def _between(low: float, high: float, part: Any, *names: str) -> None:
    for name in names:
        if not low <= getattr(part, name) <= high:
            _refuse(part, name, f"from {low} to {high}")


def _inside(low: float, high: float, part: Any, *names: str) -> None:
    for name in names:
        if not low < getattr(part, name) < high:
            _refuse(part, name, f"above {low} and below {high}")


def _positive(part: Any, *names: str) -> None:
    for name in names:
        if not 0 < getattr(part, name) < math.inf:
            _refuse(part, name, "above 0, and finite")


def _one_of(part: Any, name: str, *allowed: str) -> None:
    if getattr(part, name) not in allowed:
        _refuse(part, name, f"{', '.join(allowed[:-1])} or {allowed[-1]}")


def _refuse(part: Any, name: str, allowed: str) -> None:
    place = "" if isinstance(part, Config) else f"{type(part).__name__.lower()}."
    raise ValueError(f"{place}{name} must be {allowed}, got {getattr(part, name)}")
