"""A fitted corrector as a file: arrays in an .npz, everything else as JSON in it.

Nothing is ever unpickled. A file has a version, a checksum against damage, and is
checked when it is read: a wrong shape or type is one clear line. Legend: d features,
k columns of the model (d, or more with Fourier features), C classes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction.audit import AuditCalibration
from stct.correction.decision import EstimatedAccuracy
from stct.correction.fit_record import Columns, FitRecord
from stct.correction.posterior import NoiseModel
from stct.correction.result import Correction
from stct.numeric.array_file import (
    Arrays,
    Facts,
    Shapes,
    read_array_file,
    write_array_file,
)
from stct.numeric.fourier import FourierFeatures
from stct.numeric.hat_matrix import Axes
from stct.numeric.models import (
    ConstantModel,
    LinearModel,
    Model,
    ReorderedModel,
    SoftmaxModel,
)

FORMAT, VERSION = "stct corrector", 1


class SavedCorrector(NamedTuple):
    """What a fitted corrector is, without what belongs to single rows."""

    classes: NDArray[Any]  # (C,)
    num_features: int
    parameters: dict[str, Any]  # of the constructor
    accuracy: EstimatedAccuracy
    notes: list[str]
    fitted: Correction  # without a posterior


def write_corrector(path: Path, saved: SavedCorrector) -> None:
    """Write the file as a whole; an earlier one is replaced."""
    arrays, about = _pack(saved)
    write_array_file(path, arrays, {"format": FORMAT, "version": VERSION, **about})


def read_corrector(path: Path) -> SavedCorrector:
    """Read a file of `write_corrector`.

    Raises
    ------
    ValueError
        If it is something else, damaged, or of another version.
    """
    try:
        arrays, about = read_array_file(path, FORMAT, VERSION)
        return _unpack(Facts(about), arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a readable corrector: {error}") from error


def _pack(saved: SavedCorrector) -> tuple[Arrays, dict[str, Any]]:
    """Give arrays, and a JSON object of everything else."""
    fitted = saved.fitted
    model, order = fitted.model, None
    if isinstance(model, ReorderedModel):
        order, model = model.order, model.model
    arrays: Arrays = {"transition": fitted.transition, "learnable": fitted.learnable}
    kind: dict[str, Any] = {"kind": "none"}
    if isinstance(model, SoftmaxModel | LinearModel):
        softmax = isinstance(model, SoftmaxModel)
        kind = {"kind": "softmax" if softmax else "linear"}
        arrays |= {"weights": model.weights, "intercept": model.intercept}
    elif isinstance(model, ConstantModel):
        kind = {"kind": "constant"}
        arrays["shares"] = model.shares
    if isinstance(model, SoftmaxModel) and model.fourier is not None:
        mean, scale, frequencies, unit = model.fourier
        kind["fourier"] = {"scale": float(scale), "unit": float(unit)}
        arrays |= {"fourier_mean": mean, "fourier_frequencies": frequencies}
    if order is not None:
        arrays["order"] = order
    about = {
        "classes": _classes_to_json(saved.classes),
        "num_features": saved.num_features,
        "parameters": saved.parameters,
        "accuracy": _accuracy_to_json(saved.accuracy),
        "notes": saved.notes,
        "model": kind,
        "num_rounds": int(fitted.num_rounds),
        "stop": fitted.stop,
        "confusion": fitted.confusion,
        "fit": None,
    }
    if fitted.fit is not None:
        more, about["fit"] = _pack_record(fitted.fit)
        arrays |= more
    return arrays, about


def _pack_record(record: FitRecord) -> tuple[Arrays, dict[str, Any]]:
    noise, columns = record.noise, record.columns
    arrays: Arrays = {
        "noise_transition": noise.transition,
        "noise_ambiguous": noise.ambiguous,
        "column_mean": columns.mean,
        "given_counts": record.given_counts,
        "clean_counts": record.clean_counts,
    }
    if columns.axes is not None:
        arrays |= {
            "axis_values": columns.axes.values,
            "axis_vectors": columns.axes.vectors,
        }
    return arrays, {
        "annotators": float(noise.annotators),
        "errors": float(noise.errors),
        "calibration": [float(value) for value in record.calibration],
        "num_rows": int(columns.num_rows),
        "scale": float(columns.scale),
        "agreement": list(record.agreement),
        "curvature": float(record.curvature),
    }


def _unpack(about: Facts, arrays: Arrays) -> SavedCorrector:
    classes = _classes_from_json(about.need("classes", dict))
    num_features = about.count("num_features")
    here = Shapes(arrays, C=len(classes), d=num_features)
    kind = about.inner("model")
    columns = here.sizes["d"]
    fourier = None
    if "fourier" in kind.values:
        inner = kind.inner("fourier")
        frequencies = here.floats("fourier_frequencies", "d", None)
        columns += 2 * frequencies.shape[1]
        mean = here.floats("fourier_mean", "d")
        scale, unit = inner.number("scale"), inner.number("unit")
        fourier = FourierFeatures(mean, scale, frequencies, unit)
    here.sizes["k"] = columns
    name = kind.need("kind", str)
    model: Model | None = None
    if name in ("softmax", "linear"):
        W, b = here.floats("weights", "k", "C"), here.floats("intercept", "C")
        soft = name == "softmax"
        model = SoftmaxModel(W, b, fourier) if soft else LinearModel(W, b)
    elif name == "constant":
        model = ConstantModel(here.floats("shares", "C"))
    elif name != "none":
        raise ValueError(f"it has an unknown kind of model {name!r}")
    if model is not None and "order" in arrays:
        model = ReorderedModel(model, here.permutation("order"))
    learnable = here.array("learnable", "C")
    if learnable.dtype != bool:
        raise ValueError(f"its array 'learnable' is of {learnable.dtype}, not bool")
    confusion = about.values["confusion"]
    fitted = Correction(
        None,
        here.transition("transition"),
        learnable,
        model,
        about.count("num_rounds"),
        about.need("stop", str),
        confusion=None if confusion is None else about.share("confusion"),
        fit=_unpack_record(about.inner("fit"), here) if about.values["fit"] else None,
    )
    return SavedCorrector(
        classes,
        num_features,
        about.need("parameters", dict),
        _accuracy(about.inner("accuracy")),
        [str(note) for note in about.need("notes", list)],
        fitted,
    )


def _accuracy_to_json(accuracy: EstimatedAccuracy) -> dict[str, Any]:
    """Give an estimate that nobody could make as null."""
    before, after = (None if np.isnan(v) else float(v) for v in accuracy[:2])
    return {**accuracy._asdict(), "before": before, "after": after}


def _accuracy(about: Facts) -> EstimatedAccuracy:
    intervals = []
    for name in ("before_interval", "after_interval"):
        pair = about.need(name, list)
        ends = Facts({"low": pair[0], "high": pair[-1]})
        intervals.append((ends.share("low"), ends.share("high")))
    before, after = (
        np.nan if about.values[name] is None else about.number(name)
        for name in ("before", "after")
    )
    return EstimatedAccuracy(before, after, intervals[0], intervals[1])


def _unpack_record(about: Facts, here: Shapes) -> FitRecord:
    annotators, curvature = about.number("annotators"), about.number("curvature")
    scale = about.number("scale")
    if min(annotators, curvature, scale) <= 0.0:
        raise ValueError("its sharpness, curvature and scale must be positive")
    axes = None
    if "axis_values" in here.arrays:
        vectors = here.floats("axis_vectors", "k", None)
        here.sizes["r"] = vectors.shape[1]
        axes = Axes(here.floats("axis_values", "r"), vectors)
    given = here.array("given_counts", "C")
    if given.dtype.kind != "i" or (given < 0).any():
        raise ValueError("its array 'given_counts' must be counts")
    same, rows = (int(v) for v in about.need("agreement", list))
    if not 0 <= same <= rows:
        raise ValueError("its 'agreement' must be two counts, the smaller one first")
    ambiguous = here.floats("noise_ambiguous", "C")
    noise = NoiseModel(
        annotators,
        1.0,
        here.transition("noise_transition"),
        ambiguous,
        about.share("errors"),
    )
    rows_of = about.count("num_rows")
    mean = here.floats("column_mean", "k")
    sharpness, threshold = about.need("calibration", list)
    inner = Facts({"sharpness": sharpness, "threshold": threshold})
    calibration = AuditCalibration(inner.number("sharpness"), inner.number("threshold"))
    return FitRecord(
        noise,
        calibration,
        Columns(rows_of, mean, scale, axes),
        given.astype(np.intp),
        here.floats("clean_counts", "C"),
        (same, rows),
        curvature,
    )


def _classes_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    """Give labels with their type: text, numbers and booleans."""
    values = classes.tolist()
    plain = all(isinstance(value, str | int | float | bool) for value in values)
    if not plain or classes.dtype.kind not in "OUiufb":
        odd = next((v for v in values if not isinstance(v, str | int | float)), "")
        raise ValueError(
            "a corrector can be saved if its classes are text, numbers or booleans, "
            f"not {type(odd).__name__}"
        )
    return {"dtype": classes.dtype.str, "values": values}


def _classes_from_json(stored: Mapping[str, Any]) -> NDArray[Any]:
    dtype, values = np.dtype(str(stored["dtype"])), stored["values"]
    plain = isinstance(values, list) and all(
        isinstance(value, str | int | float | bool) for value in values
    )
    if dtype.kind not in "OUiufb" or not plain or len(values) < 2:
        raise ValueError("its classes must be two or more texts, numbers or booleans")
    classes = np.empty(len(values), dtype)
    classes[:] = values
    if len(set(map(repr, values))) < len(values):
        raise ValueError("its classes are not all different")
    return classes
