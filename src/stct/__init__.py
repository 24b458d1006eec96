"""Correct noisy labels without clean data: noisy meta correction on embeddings."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector

__version__ = "0.1.0"
__all__ = ["LabelCorrector", "__version__"]


def __getattr__(name: str) -> Any:
    """Import on first use: `stct --help` should not wait for scikit-learn."""
    if name == "LabelCorrector":
        from stct.estimator import LabelCorrector

        return LabelCorrector
    raise AttributeError(f"module 'stct' has no attribute {name!r}")
