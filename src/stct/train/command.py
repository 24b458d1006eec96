"""``stct train`` and ``stct predict``: from data on the disk to a run directory."""

import csv
import hashlib
import io
import json
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lightning_fabric import Fabric
from numpy.typing import NDArray

from stct.data.columns import as_targets, encode_label
from stct.data.images import ImageSet, LazyImages, read_images
from stct.data.outputs import SUMMARY, WRITTEN_BY, whole_file
from stct.data.results import Inputs, as_json, write_results
from stct.data.tables import Table
from stct.labels import EncodedLabels, encode
from stct.report import REPORT_FILES, write_report
from stct.train.algorithm import fit_corrector, starting_labels
from stct.train.config import Config, from_dict, override, preset
from stct.train.images import Images
from stct.train.inference import embed, predict
from stct.train.model_file import (
    MODEL,
    About,
    load_model,
    save_model,
    start_from,
)
from stct.train.runs import Run
from stct.train.training import (
    Show,
    Task,
    Trained,
    check_classes,
    make_fabric,
    train,
)

_LABELS = "labels.csv"
_NOT_DRAWN = ("phase", "seconds", "labels_changed", "selected")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a run was asked for; everything that a resumed run needs again."""

    data: str
    config: Config
    seed: int
    preset: str
    test: str | None = None
    init: str | None = None
    label_column: str = "label"
    image_column: str | None = None
    id_column: str | None = None
    skip_bad: bool = False


def new_request(
    data: Path,
    *,
    preset_name: str,
    assignments: Sequence[str],
    seed: int,
    test: Path | None,
    init: Path | None,
    **reading: Any,
) -> Request:
    """Check what can be checked before anything is read."""
    for path in [data, *([test] if test else []), *([init] if init else [])]:
        if not path.exists():
            raise ValueError(f"{path}: there is no such file or folder")
    return Request(
        data=str(data.resolve()),
        config=override(preset(preset_name), assignments),
        seed=seed,
        preset=preset_name,
        test=str(test.resolve()) if test else None,
        init=str(init.resolve()) if init else None,
        **reading,
    )


def next_folder(data: Path) -> Path:
    """Give the first free ``runs/NAME-NNN``."""
    name = re.sub(r"[^\w.-]+", "-", data.resolve().stem) or "data"
    number = 1
    while (folder := Path("runs") / f"{name}-{number:03d}").exists():
        number += 1
    return folder


def run_training(
    folder: Path, request: Request | None, *, show: Show, save_every: float
) -> dict[str, Any]:
    """Start a run, or with ``request`` None go on with it; give its summary."""
    fabric = make_fabric()
    if request is None and (folder / SUMMARY).is_file():
        return read_summary(folder)
    with ExitStack() as stack:
        run = None
        if fabric.global_rank == 0 and request is None:
            run = stack.enter_context(Run.open(folder))
        return _run(folder, request, run, stack, fabric, show, save_every)


def _run(
    folder: Path,
    request: Request | None,
    run: Run | None,
    stack: ExitStack,
    fabric: Fabric,
    show: Show,
    save_every: float,
) -> dict[str, Any]:
    """Read, train, write; the first process alone holds the directory."""
    resumed = request is None
    if request is None:
        request = _read_request(folder)
    data = _read(request.data, request)
    encoded = encode(as_targets(_labels(data)))
    _check_enough(data, encoded, request)
    facts = _facts(request, data, encoded)
    if run is not None:
        _check_same(run, facts)
    elif fabric.global_rank == 0:
        run = stack.enter_context(Run.start(folder, facts))
    fabric.barrier()
    if run is not None:
        run.ids = data.ids
    started = time.perf_counter()
    task = _task(request, data, encoded)
    trained = train(
        task,
        fabric=fabric,
        show=show,
        run=run,
        resume_from=folder if resumed else None,
        save_every=save_every,
        about=_about(request, data, encoded),
    )
    seconds = time.perf_counter() - started
    summary = _finish(run, request, data, encoded, trained, fabric, seconds)
    fabric.barrier()
    return summary


def predict_to_file(
    model: Path, data: Path, output: Path, *, overwrite: bool, **reading: Any
) -> int:
    """Write id, label, confidence and all probabilities for new images."""
    network, about = load_model(model)
    channels, *size = about.image_shape
    images = read_images(
        data,
        size=(size[0], size[1]),
        channels=channels,
        labels_required=False,
        **reading,
    )
    fabric = make_fabric()
    network.to(fabric.device)
    P = predict(network, Images(images.images, fabric.device), fabric)  # noqa: N806
    names = [encode_label(label, text_only=False) for label in about.classes]
    best = P.argmax(axis=1)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "label", "confidence", *(f"p:{name}" for name in names)])
    for name, label, row in zip(images.ids, best, P, strict=True):
        numbers = [f"{value:.6f}" for value in row]
        writer.writerow([name, about.classes[label], numbers[label], *numbers])
    with whole_file(output, overwrite=overwrite) as path:
        path.write_text(text.getvalue(), encoding="utf-8", newline="")
    return len(images)


def read_summary(folder: Path) -> dict[str, Any]:
    """Give the summary of a finished run."""
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        summary["training"]["rounds"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{folder}: its {SUMMARY} is not that of a run") from None
    return dict(summary)


def _read(source: str, request: Request, *, like: ImageSet | None = None) -> ImageSet:
    """Read a source; a test set in the shape of the training set."""
    shape = None if like is None else like.images.shape
    size = request.config.image_size or None
    return read_images(
        source,
        label_column=request.label_column,
        image_column=request.image_column,
        id_column=request.id_column,
        size=(shape[1], shape[2]) if shape else size,
        channels=shape[3] if shape else None,
        skip_bad=request.skip_bad,
        split="test" if like is not None else "train",
    )


def _labels(data: ImageSet) -> list[Any]:
    assert data.labels is not None
    return list(data.labels.tolist())


def _check_enough(data: ImageSet, encoded: EncodedLabels, request: Request) -> None:
    try:
        check_classes(encoded)
    except ValueError as error:
        raise ValueError(f"{request.data}: {error}") from None
    if min(data.images.shape[1:3]) < 8:
        raise ValueError(
            f"{request.data}: images must be 8 x 8 or larger, got "
            f"{data.images.shape[1]} x {data.images.shape[2]}"
        )


def _facts(request: Request, data: ImageSet, encoded: EncodedLabels) -> dict[str, Any]:
    return {
        **asdict(request),
        "images": list(data.images.shape),
        "classes": [_plain(label) for label in encoded.classes],
        "fingerprint": _fingerprint(data, encoded),
    }


def _fingerprint(data: ImageSet, encoded: EncodedLabels) -> str:
    """Tell whether a resumed run sees the same rows; files on disk count by name."""
    digest = hashlib.sha256(json.dumps(data.ids).encode())
    digest.update(encoded.codes.tobytes())
    if not isinstance(data.images, LazyImages):
        digest.update(data.images.tobytes())
    return digest.hexdigest()


def _check_same(run: Run, facts: dict[str, Any]) -> None:
    for name in ("fingerprint", "classes", "images"):
        if run.facts.get(name) != facts[name]:
            raise ValueError(
                f"{facts['data']}: is not what it was when the run in {run.folder} "
                f"began (another {name}); start a new run"
            )


def _read_request(folder: Path) -> Request:
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder}: not a run directory, it has no config.json")
    facts = json.loads(path.read_text(encoding="utf-8"))
    names = Request.__dataclass_fields__
    try:
        values = {name: facts[name] for name in names}
        values["config"] = from_dict(values["config"])
        return Request(**values)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not of this version of stct ({error})") from None


def _task(request: Request, data: ImageSet, encoded: EncodedLabels) -> Task:
    init = None
    if request.init is not None:
        start = Path(request.init)

        def init(network: Any) -> None:
            start_from(network, start)

    return Task(
        images=data.images,
        given=encoded.codes,
        num_classes=len(encoded.classes),
        config=request.config,
        seed=request.seed,
        init=init,
        test=_test(request, data, encoded),
    )


def _test(
    request: Request, data: ImageSet, encoded: EncodedLabels
) -> tuple[Any, NDArray[np.intp]] | None:
    if request.test is None:
        return None
    test = _read(request.test, request, like=data)
    number = {_plain(label): i for i, label in enumerate(encoded.classes)}
    targets = as_targets(_labels(test))
    unknown = sorted({str(t) for t in targets if _plain(t) not in number})
    if unknown:
        raise ValueError(
            f"{request.test}: label {unknown[0]!r} is not among the classes of "
            f"{request.data}"
        )
    truth = np.array([number[_plain(t)] for t in targets], dtype=np.intp)
    return test.images, truth


def _about(request: Request, data: ImageSet, encoded: EncodedLabels) -> About:
    _, height, width, channels = data.images.shape
    classes = [_plain(label) for label in encoded.classes]
    return About(request.config.encoder, False, classes, (channels, height, width))


def _plain(value: Any) -> Any:
    """Give a NumPy value as the Python one that JSON can write."""
    return value.item() if isinstance(value, np.generic) else value


def _finish(
    run: Run | None,
    request: Request,
    data: ImageSet,
    encoded: EncodedLabels,
    trained: Trained,
    fabric: Fabric,
    seconds: float,
) -> dict[str, Any]:
    """Correct the labels a last time and write what the run gave; summary last."""
    state, config = trained.state, request.config
    H = embed(state.frozen or state.network, trained.images, fabric)  # noqa: N806
    if run is None:
        return {}
    save_model(run.folder / MODEL, state.network, _about(request, data, encoded))
    inputs = _inputs(data, request, H)
    temporary = run.folder / ".results.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    if config.correct.enabled:
        start = starting_labels(encoded.codes, state, config)
        y = [None if code < 0 else encoded.classes[code] for code in start]
        corrector = fit_corrector(H, y, state, config, request.seed)
        summary = write_results(temporary, inputs, corrector, seconds=seconds)
        summary["files"] = [*summary["files"], *REPORT_FILES]
    else:
        summary = _write_given(temporary, inputs, seconds)
    rounds = run.read_rounds()
    summary["notes"] = [*summary["notes"], *_skipped(data)]
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
    (temporary / SUMMARY).write_text(as_json(summary), encoding="utf-8")
    if config.correct.enabled:
        _write_report(temporary, data, H, run, Path(request.data).name)
    run.adopt(temporary, last=SUMMARY)
    return summary


def _inputs(data: ImageSet, request: Request, H: NDArray[Any]) -> Inputs:  # noqa: N803
    """Give the rows as the writer of results takes them."""
    labels = _labels(data)
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


def _write_report(
    folder: Path,
    data: ImageSet,
    H: NDArray[Any],  # noqa: N803
    run: Run,
    title: str,
) -> None:
    metrics = [
        {k: v for k, v in entry.items() if k not in _NOT_DRAWN}
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


def _skipped(data: ImageSet) -> list[str]:
    if not data.skipped:
        return []
    first = ", ".join(data.skipped[:3])
    return [
        f"{len(data.skipped):,} images could not be read and were left out: {first}"
    ]
