"""Every constant of the default correction that can change a label or an estimate.

One dataclass for each stage, in the order of the pipeline. "Fitted" says that
`benchmarks/fit_settings.py` chose the value on the battery and that docs/method.md has
the leave-one-data-set-out table; "convention" that it is customary; "limit" that it
bounds work and hardly changes a result.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ScoreSettings:
    """Ridge scores and Fourier features (stages 2 and 3)."""

    fourier: bool = True  # try Fourier features at all
    max_frequencies: int = 256  # limit
    rows_per_frequency: int = 8  # rows; fewer rows, fewer frequencies; convention
    bandwidth: float = 1.5  # radians at the median distance; convention
    least_gain: float = 0.02  # of the labels predicted beyond chance; ablation
    errors: float = 2.0  # standard errors that the gain must have; convention
    deciding_rows: int = 4096  # limit
    learnt_errors: float = 1.0  # standard errors beyond chance; convention: 5%


@dataclass(frozen=True)
class CalibrationSettings:
    """Log-odds and transition matrix (stage 4)."""

    sharpness: float = 4.0  # of standardised scores, centre of its prior; convention
    sharpness_precision: float = 1.0  # of the prior on its logarithm; convention
    starts: tuple[float, ...] = (0.95, 0.75, 0.5, 0.25)  # right labels beyond chance
    starting_rows: int = 2048  # limit
    rows: int = 2**15  # limit; rows that fit T and the log-odds
    rows_per_class: int = 64  # limit
    max_rounds: int = 8  # limit; of T and sharpness in turn
    tolerance: float = 2e-3  # largest change of an entry of T that ends the rounds
    weight_precision: float = 30.0  # of the prior on W around one sharpness; fitted
    rows_per_weight: float = 2.0  # with fewer W stays one sharpness; limit
    weight_rounds: int = 2  # of W and T in turn
    weight_steps: int = 30  # limit
    prior_wrong: float = 3.0  # wrong labels, of a Beta prior; fitted
    prior_few: float = 0.0
    prior_right: float = 27.0  # wrong labels, of a Beta prior; fitted
    prior_rows: float = 20.0  # rows that an earlier T is worth, for each of its entries


@dataclass(frozen=True)
class RefitSettings:
    """Ridge taught the posterior, combined with the first scores (stage 5)."""

    enabled: bool = True


@dataclass(frozen=True)
class ResidualSettings:
    """Correction of the log-odds that is linear in the features (stage 6)."""

    enabled: bool = True
    steps: int = 3  # of L-BFGS; early stopping is part of the prior
    most_self_influence: float = 0.95  # of a row's label on its own logits; limit
    rows: int = 2**16  # limit
    rows_per_weight: int = 32  # limit
    max_scores: int = 2**26  # limit; scores of the rows that teach
    sharpness_precision: float = 25.0  # of log sharpness afterwards: error of 0.2


@dataclass(frozen=True)
class NoiseSettings:
    """Instance-dependent noise (stage 7)."""

    share: float = 0.3  # ambiguity share where nothing is known of it; fitted
    unknown: float = 0.5
    widest: float = 0.6  # the share may be from 0 to this where nothing is known
    pooled: tuple[float, float] = (0.1, 0.6)  # elasticity: none, as of annotators
    pooled_rows: float = 30.0  # wrong labels that tell half of it; fitted
    median: tuple[float, float] = (0.1, 0.4)  # elasticity: none, as of annotators
    median_rows: float = 5.0  # wrong labels for each entry of T that tell half; fitted
    hidden: float = 3.0  # errors that T may have missed for each one found; fitted
    unseen: float = 0.0  # share of all rows, likewise; fitted
    most_unseen: float = 0.15  # the same at the end of the range; fitted
    known: tuple[float, float] = (0.6, 0.7)
    most_of_right: float = 0.9  # of the labels that look right may be ambiguous; limit


@dataclass(frozen=True)
class IntervalSettings:
    """Intervals of the estimated share of right labels (stage 9)."""

    model_error: float = 0.03  # share of right labels; fitted


@dataclass(frozen=True)
class Settings:
    """Settings of all stages."""

    scores: ScoreSettings = field(default_factory=ScoreSettings)
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)
    refit: RefitSettings = field(default_factory=RefitSettings)
    residual: ResidualSettings = field(default_factory=ResidualSettings)
    noise: NoiseSettings = field(default_factory=NoiseSettings)
    interval: IntervalSettings = field(default_factory=IntervalSettings)


DEFAULT = Settings()
