"""An earlier run of ``stct correct``, to judge later batches with."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stct.correction.later_rows import Seen
from stct.data.arrays import array_names, read_array
from stct.data.corrected import SOFT_LABELS, read_summary
from stct.data.results import CORRECTOR, RECIPE
from stct.data.row_digests import find_digests, row_digests, with_codes
from stct.numeric.top_classes import MANY, TOP, TopClasses, keep_top

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector


@dataclass(frozen=True)
class EarlierRun:
    """A fitted corrector, and the folder of its run if that was given."""

    path: Path  # of the corrector
    corrector: "LabelCorrector"
    folder: Path | None
    summary: dict[str, Any]  # of the folder; empty without one

    @cached_property
    def class_names(self) -> list[Any]:
        """The classes in the type that the table of the run had."""
        names = self.summary.get("class_names")
        if names is None or len(names) != len(self.corrector.classes_):
            return list(self.corrector.classes_.tolist())
        return list(names)

    @property
    def encoder(self) -> tuple[str, str] | None:
        """Name and digest of the encoder that embedded the images of the run."""
        images = self.summary.get("images") or {}
        if "encoder" not in images:
            return None
        return str(images["encoder"]), str(images.get("encoder_digest"))

    @property
    def recipe(self) -> Path | None:
        """File that says how columns of the table became numbers."""
        path = None if self.folder is None else self.folder / RECIPE
        return path if path is not None and path.exists() else None


def read_earlier(path: Path) -> EarlierRun:
    """Read the output folder of an earlier run, or a corrector.npz alone."""
    from stct.estimator import LabelCorrector

    if not path.exists():
        raise ValueError(f"{path}: there is no such folder or file")
    if path.is_file():
        return EarlierRun(path, LabelCorrector.load(path), None, {})
    file = path / CORRECTOR
    summary = read_summary(path)
    if not file.exists():
        why = "it was made by an earlier version of stct"
        if "pred_probs" in summary.get("inputs", {}):
            why = "a run with --pred-probs has no model of its own"
        raise ValueError(f"{path}: no {CORRECTOR} in it ({why}); correct again")
    return EarlierRun(file, LabelCorrector.load(file), path, summary)


def find_seen(
    run: EarlierRun,
    X: Any,  # noqa: N803
    codes: NDArray[np.intp],
) -> tuple[Seen | None, int]:
    """Find rows that were in the fit, and what leave-one-out said of them there.

    Rows are known by their embedding and their label. Also counts the rows that were
    in the fit with another label.
    """
    if run.folder is None:
        return None, 0
    path = run.folder / SOFT_LABELS
    names = array_names(path) if path.exists() else []
    if "row_digests" not in names:
        return None, 0
    old, old_codes = read_array(path, "row_digests"), read_array(path, "given_codes")
    classes = len(read_array(path, "classes"))
    if old.dtype != np.uint64 or old.shape != old_codes.shape or old.ndim != 1:
        raise ValueError(f"{path}: row_digests and given_codes do not fit together")
    if classes != len(run.corrector.classes_):
        raise ValueError(f"{path}: has {classes} classes, {run.path} has other ones")
    new = row_digests(X)
    place = find_digests(with_codes(new, codes), with_codes(old, old_codes))
    rows = np.flatnonzero(place >= 0)
    relabelled = int((find_digests(new, old) >= 0).sum()) - len(rows)
    if not len(rows):
        return None, relabelled
    try:
        kept = _posterior(path, names, place[rows], codes[rows], classes)
    except IndexError as error:
        raise ValueError(f"{path}: has fewer probabilities than rows") from error
    return Seen(rows, kept), relabelled


def _posterior(
    path: Path,
    names: list[str],
    rows: NDArray[np.intp],
    codes: NDArray[np.intp],
    num_classes: int,
) -> Any:
    """Read Pr[clean | all] of some rows, in the form in which a corrector has it."""
    if "probabilities" in names:
        Q = read_array(path, "probabilities")[rows]  # noqa: N806
        if num_classes <= MANY:
            return Q
        top = keep_top(Q, codes)
        return TopClasses(top[:, :TOP], top[:, TOP:].astype(np.int32), num_classes)
    classes, values = (
        read_array(path, f"top_{k}") for k in ("classes", "probabilities")
    )
    return TopClasses(values[rows], classes[rows].astype(np.int32), num_classes)
