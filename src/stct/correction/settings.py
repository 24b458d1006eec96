"""Every constant of the default correction that can change a label or an estimate.

One dataclass for each stage, in the order of the pipeline. The last word of a comment
says where a value comes from. "Fitted": it was chosen on the battery, and
benchmarks/results/settings.md has what other values give and what each data set gives
with a value that was chosen without it. "Chosen": values were compared on the cells
that benchmarks/results/audit.md and crowd.md report, none left out. "Ablation": the
stage was tried with and without it (benchmarks/results/ablations.md). "Convention": it
is customary. "Limit": it bounds work or a corner case and hardly changes a result.
"""

from dataclasses import dataclass, field

from stct.numeric.ridge import USUAL, Strengths


@dataclass(frozen=True)
class CanonicalSettings:
    """Order of rows and exact duplicates (stage 1)."""

    same: float = 1e-5  # standard deviations; rows that differ by less; convention


@dataclass(frozen=True)
class ScoreSettings:
    """Leave-one-out ridge scores (stage 2) and Fourier features (stage 3)."""

    ridge: Strengths = USUAL  # strengths to choose from; convention
    learnt_errors: float = 1.0  # standard errors beyond chance, or stop; convention
    sure_errors: float = 3.0  # fewer are worth a note; convention
    fourier: bool = True  # try Fourier features at all; ablation
    max_frequencies: int = 256  # limit
    rows_per_frequency: int = 8  # with fewer rows, fewer frequencies; convention
    bandwidth: float = 1.5  # radians at the median distance; convention
    least_gain: float = 0.02  # of the labels predicted beyond chance; ablation
    errors: float = 3.0  # standard errors that the gain must have; convention
    deciding_rows: int = 4096  # limit
    first_rows: int = 2048  # of the first, quick look; limit
    first_frequencies: int = 64  # limit


@dataclass(frozen=True)
class CalibrationSettings:
    """Log-odds and transition matrix (stage 4)."""

    sharpness_precision: float = 3.0  # of the prior of its logarithm; convention
    least_separation: float = 0.1  # mu, of classes with one mode of scores; convention
    most_uncertainty: float = 0.75  # of the variance within classes; limit
    rows_per_pair: int = 10  # of classes whose separation is measured; limit
    usual_errors: float = 0.1  # share, in the prior of the error rate; convention
    usual_rows: float = 10.0  # that this knowledge is worth; fitted
    starts: tuple[float, ...] = (0.95, 0.75, 0.5, 0.25)  # right beyond chance; limit
    anchors: float = (
        0.2  # share of the rows of a class, with the largest margins; limit
    )
    starting_rows: int = 2048  # limit
    rows: int = 2**15  # that fit T and the log-odds; limit
    rows_per_class: int = 64  # at least; limit
    max_rounds: int = 8  # of T and sharpness in turn; limit
    tolerance: float = 2e-3  # largest change of an entry of T that ends them; limit
    weight_precision: float = 30.0  # of the prior of W around one sharpness; fitted
    rows_per_weight: float = 2.0  # with fewer rows W stays one sharpness; limit
    weight_rounds: int = 2  # of W and T in turn; ablation
    weight_steps: int = 30  # of L-BFGS; limit
    prior_rows: float = 20.0  # that an earlier T is worth, for each entry; convention


@dataclass(frozen=True)
class RefitSettings:
    """Ridge taught the posterior, combined with the first scores (stage 5)."""

    enabled: bool = True  # ablation


@dataclass(frozen=True)
class ResidualSettings:
    """Correction of the log-odds that is linear in the features (stage 6)."""

    enabled: bool = True  # ablation
    steps: int = 3  # of L-BFGS; early stopping is part of the prior; ablation
    most_self_influence: float = 0.95  # of a row's label on its own logits; limit
    rows: int = 2**16  # that teach, at least; limit
    rows_per_weight: int = 32  # likewise; limit
    max_scores: int = 2**26  # of the rows that teach; limit
    sharpness_precision: float = 25.0  # of log sharpness afterwards; convention: 0.2


@dataclass(frozen=True)
class NoiseSettings:
    """Instance-dependent noise and weak features (stage 7)."""

    share: float = 0.3  # ambiguity share where errors follow the features; fitted
    unknown: float = 0.5  # of it where nothing is known; convention
    hidden: float = 6.0  # ambiguous errors for each one found, at most; fitted
    elasticity: tuple[float, float] = (0.1, 0.5)  # none, as of annotators; fitted
    pooled_rows: float = 30.0  # wrong labels that tell half of one; convention
    median_rows: float = 5.0  # likewise, for each entry of T; convention
    least_rows: float = 5.0  # of a class whose errors are compared; convention
    sharpening: float = 0.5  # of the share: how much sharper features are; ablation
    most_of_right: float = 0.9  # of the labels that look right may be ambiguous; limit
    known: tuple[float, float] = (0.6, 0.7)  # mean largest P of weak, strong; fitted


@dataclass(frozen=True)
class AuditSettings:
    """Sharpness and threshold of the posterior, from verified rows (stage 8)."""

    sharpness_precision: float = 1.0  # of the prior of its logarithm; convention
    threshold_precision: float = 1 / 16  # of the prior, in log-odds; convention
    nearness: float = 3.0  # log-odds from the decision of rows that count; chosen
    evidence: float = 9.0  # squared standard errors that move x by half; chosen
    folds: int = 10  # to judge each verified row by the others; convention


@dataclass(frozen=True)
class IntervalSettings:
    """Intervals of the estimated share of right labels (stage 9)."""

    least: float = 0.02  # half-width beyond that of sampling; convention
    confusion: float = 0.4  # for each row whose class the features do not know; fitted
    uncalibrated: float = 0.25  # where scores are no probabilities; convention
    level: float = 0.95  # of intervals of verified rows and of annotators; convention
    unseen: float = 0.25  # rows of the other kind that a stratum may hide; convention


@dataclass(frozen=True)
class AnnotatorSettings:
    """Several labels per row (docs/annotators.md)."""

    errors: float = 0.2  # share of wrong votes, before they are counted; convention
    errors_rows: float = 10.0  # votes that this is worth; convention
    one_label_votes: int = 10  # of one label only: a rule; convention
    one_label_rows: float = 100.0  # votes that the pooled T is worth for it; chosen
    first_rounds: int = 50  # of Dawid and Skene, without features; limit
    max_rounds: int = 8  # of features and annotators in turn; limit
    least_changed: float = 1e-3  # share of the rows; fewer end the rounds; convention
    tolerance: float = 2e-3  # largest change of a probability; limit
    steps: int = 2  # of log-odds and annotators in turn, in a round; convention
    hard_rows: int = 8192  # that fit the mixture; limit
    # Log-odds of the share of hard rows, log sharpness of easy and hard ones, log-odds
    # of annotators in them: normal priors; convention.
    hard_centre: tuple[float, ...] = (-1.0, 0.3, -0.3, 0.5, -1.0)
    hard_variance: tuple[float, ...] = (1.0, 0.25, 0.25, 0.5, 0.5)
    # Rise of disagreement with ambiguity of the features: usual, and its spread before
    # it is measured; from where errors follow the features entirely; chosen.
    usual_rise: tuple[float, float] = (0.15, 0.15)
    enough_rise: float = 0.3
    shared: float = 0.6  # by how much log-odds are then too large; chosen


@dataclass(frozen=True)
class Settings:
    """Settings of all stages."""

    canonical: CanonicalSettings = field(default_factory=CanonicalSettings)
    scores: ScoreSettings = field(default_factory=ScoreSettings)
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)
    refit: RefitSettings = field(default_factory=RefitSettings)
    residual: ResidualSettings = field(default_factory=ResidualSettings)
    noise: NoiseSettings = field(default_factory=NoiseSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    interval: IntervalSettings = field(default_factory=IntervalSettings)
    annotators: AnnotatorSettings = field(default_factory=AnnotatorSettings)


DEFAULT = Settings()
