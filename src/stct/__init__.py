"""Correct noisy labels without clean data: noisy meta correction on embeddings."""

from stct.estimator import LabelCorrector

__version__ = "0.1.0"
__all__ = ["LabelCorrector", "__version__"]
