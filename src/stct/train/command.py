"""``stct train`` and ``stct predict``: from data on the disk to a run directory."""

import csv
import io
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric

from stct.data.columns import as_targets, encode_label
from stct.data.images import read_images
from stct.data.outputs import SUMMARY, whole_file
from stct.labels import encode
from stct.train.images import Images
from stct.train.inference import embedded, predict
from stct.train.model_file import load_model
from stct.train.request import (
    Request,
    about_model,
    check_enough,
    check_same,
    given_labels,
    make_task,
    new_request,
    next_folder,
    read_data,
    read_request,
    run_facts,
)
from stct.train.results import finish, read_summary
from stct.train.runs import Run
from stct.train.training import Show, leave_processes, make_fabric, train

_SHARDS = ".embeddings"  # in the run directory, while labels are corrected


def run_training(
    folder: Path, request: Request | None, *, show: Show, save_every: float
) -> dict[str, Any]:
    """Start a run, or with ``request`` None go on with it; give its summary."""
    fabric = make_fabric()
    if request is None and (folder / SUMMARY).is_file():
        leave_processes()
        return read_summary(folder) if fabric.global_rank == 0 else {}
    with ExitStack() as stack:
        run = None
        if fabric.global_rank == 0 and request is None:
            run = stack.enter_context(Run.open(folder))
        summary = _run(folder, request, run, stack, fabric, show, save_every)
    leave_processes()
    return summary


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
        request = read_request(folder)
    data = read_data(request.data, request)
    encoded = encode(as_targets(given_labels(data)))
    check_enough(data, encoded, request)
    task = make_task(request, data, encoded)
    facts = run_facts(request, data, encoded)
    if run is not None:
        check_same(run, facts)
    elif fabric.global_rank == 0:
        run = stack.enter_context(Run.start(folder, facts))
    fabric.barrier()
    if run is not None:
        run.ids = data.ids
    started = time.perf_counter()
    trained = train(
        task,
        fabric=fabric,
        show=show,
        run=run,
        shards=folder / _SHARDS,
        resume_from=folder if resumed else None,
        save_every=save_every,
        about=about_model(request, data, encoded),
    )
    seconds = time.perf_counter() - started
    with embedded(
        trained.state.frozen or trained.state.network,
        trained.images,
        fabric,
        folder / _SHARDS,
    ) as H:  # noqa: N806
        summary = finish(run, request, data, encoded, trained, H, seconds)
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


__all__ = ["new_request", "next_folder", "predict_to_file", "run_training"]
