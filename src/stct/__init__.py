"""Correct noisy labels without clean data: noisy meta correction on embeddings."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector
    from stct.multi_label import MultiLabelCorrector
    from stct.numeric_labels import NumericLabelChecker

__version__ = "0.2.0"
__all__ = [
    "LabelCorrector",
    "MultiLabelCorrector",
    "NumericLabelChecker",
    "__version__",
]

_HOMES = {
    "LabelCorrector": "stct.estimator",
    "MultiLabelCorrector": "stct.multi_label",
    "NumericLabelChecker": "stct.numeric_labels",
}


def __getattr__(name: str) -> Any:
    """Import on first use: `stct --help` should not wait for scikit-learn."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'stct' has no attribute {name!r}")
