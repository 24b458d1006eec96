"""What a run leaves: the model, the last correction, the report, the summary."""

import csv
import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stct.data import summary_file as summaries
from stct.data.digests import digest_file
from stct.data.images import ImageSet, LazyImages
from stct.data.inputs import Inputs
from stct.data.outputs import SUMMARY, WRITTEN_BY, sign
from stct.data.results import write_results
from stct.data.schema import (
    Field,
    check_fields,
    is_count,
    is_number,
    is_share,
    is_text,
    list_of,
    maybe,
    object_of,
)
from stct.data.summary import as_json
from stct.data.tables import Table
from stct.labels import EncodedLabels
from stct.report import REPORT_FILES, write_report
from stct.train.algorithm import fit_corrector, starting_labels
from stct.train.images import skipped_note
from stct.train.model_file import MODEL, save_model
from stct.train.request import Request, about_model, given_labels
from stct.train.runs import Run
from stct.train.training import Trained

_LABELS = "labels.csv"
_NOT_DRAWN = ("phase", "seconds", "labels_changed", "selected", "unlabeled")


def read_summary(folder: Path) -> dict[str, Any]:
    """Give the summary of a finished run."""
    path = folder / SUMMARY
    summary = summaries.read_summary(path)
    if "training" not in summary:
        raise ValueError(f"{path}: not the summary of a run")
    check_fields(summary, _FIELDS, path)
    check_fields(summary["training"], _TRAINING, path)
    if "class_names" in summary:
        summaries.check_correction(summary, path)
    return summary


_ROUND = object_of(is_share, "noisy_validation_accuracy")
_FIELDS = {
    "rows": Field("a whole number", is_count),
    "seconds": Field("a number", is_number),
    "notes": Field("a list of texts", list_of(is_text)),
    "files": Field("a list of texts", list_of(is_text)),
}
_TRAINING = {
    "preset": Field("text", is_text),
    "rounds": Field(
        "results of one round or more", lambda v: list_of(_ROUND)(v) and bool(v)
    ),
    "test_accuracy": Field("null or a share", maybe(is_share)),
}


def finish(
    run: Run | None,
    request: Request,
    data: ImageSet,
    encoded: EncodedLabels,
    trained: Trained,
    H: Any,  # noqa: N803
) -> dict[str, Any]:
    """Correct the labels a last time and write what the run gave; summary last.

    H (n, d) are the embeddings, an array or shards.
    """
    state, config, seconds = trained.state, request.config, trained.seconds
    if run is None:
        return {}
    save_model(run.folder / MODEL, state.network, about_model(request, data, encoded))
    inputs = _inputs(data, request, H)
    temporary = run.scratch()
    if config.correct.enabled:
        start = starting_labels(encoded.codes, state, config)
        y = [None if code < 0 else encoded.classes[code] for code in start]
        corrector = fit_corrector(H, y, state, config, request.seed)
        summary = write_results(
            temporary, inputs, corrector, seconds=seconds, for_later=False
        )
        summary["files"] = [*summary["files"], *REPORT_FILES]
    else:
        summary = _write_given(temporary, inputs, seconds)
    rounds = run.read_rounds()
    summary["notes"] = [*summary["notes"], *skipped_note(data), *_software(run)]
    summary["training"] = {
        "preset": request.preset,
        "seed": request.seed,
        "config": asdict(config),
        "rounds": rounds,
        "noisy_validation_accuracy": rounds[-1]["noisy_validation_accuracy"],
        "test_accuracy": rounds[-1].get("test_accuracy"),
        "skipped": data.skipped,
    }
    summary["files"] = [*summary["files"], MODEL]
    sign(summary, temporary)
    summary["sha256"][MODEL] = digest_file(run.folder / MODEL)
    (temporary / SUMMARY).write_text(as_json(summary), encoding="utf-8")
    if config.correct.enabled:
        _write_report(temporary, data, H, run, Path(request.data).name)
    run.adopt(temporary, last=SUMMARY)
    return summary


def _inputs(data: ImageSet, request: Request, H: Any) -> Inputs:  # noqa: N803
    """Give the rows as the writer of results takes them."""
    labels = given_labels(data)
    if data.table is not None:
        table, label_column = data.table, request.label_column
    else:
        columns: dict[str, Any] = {"id": data.ids, "label": labels}
        table, label_column = Table("csv", columns, len(data)), "label"
    return Inputs(
        table,
        label_column,
        data.id_column if data.table is not None else "id",
        list(data.ids),
        labels,
        H,
        None,
        {},
        list(data.notes),
    )


def _write_given(folder: Path, inputs: Inputs, seconds: float) -> dict[str, Any]:
    """Without NMC there is nothing to correct: the labels are the given ones."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "given", "label"])
    for name, label in zip(inputs.ids, inputs.labels, strict=True):
        writer.writerow([name, label, label])
    (folder / _LABELS).write_text(text.getvalue(), encoding="utf-8", newline="")
    return {
        "written_by": WRITTEN_BY,
        "rows": len(inputs.ids),
        "notes": ["NMC was switched off: the labels are the given ones"],
        "seconds": round(seconds, 3),
        "files": [_LABELS, SUMMARY],
    }


def _write_report(
    folder: Path,
    data: ImageSet,
    H: Any,  # noqa: N803
    run: Run,
    title: str,
) -> None:
    metrics = [
        {k: v for k, v in entry.items() if k not in _NOT_DRAWN and v is not None}
        | {"selected_share": entry["selected"] / len(data)}
        | run.read_losses(entry["round"])
        for entry in run.read_rounds()
    ]
    images = data.images
    write_report(
        folder,
        embeddings=H,
        images=images.sources if isinstance(images, LazyImages) else images,
        metrics=metrics,
        title=title,
    )


def _software(run: Run) -> list[str]:
    if len(run.software) == 1:
        return []
    return [
        f"trained in parts with {' and with '.join(run.software)}: one version "
        "throughout may give other numbers"
    ]
