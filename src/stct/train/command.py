"""``stct train``: from data on the disk to a run directory."""

import math
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric
from torch import nn

from stct.data.columns import as_targets
from stct.data.images import PHOTO_SIDE
from stct.data.outputs import SUMMARY
from stct.encoders.huggingface import offline
from stct.labels import encode
from stct.train.config_text import to_toml
from stct.train.cost import describe
from stct.train.device import free_memory
from stct.train.inference import embedded
from stct.train.own_parts import own_network
from stct.train.pixels import Say, print_nothing
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
    with_size,
)
from stct.train.results import finish, read_summary
from stct.train.runs import Run, check_free
from stct.train.threads import use_threads
from stct.train.training import leave_processes, make_fabric, prepare, train
from stct.train.watching import Show

SETTINGS = "config.toml"  # for --config of another run
_SHARDS = ".embeddings"  # in the run directory, while labels are corrected


def run_training(
    folder: Path,
    request: Request | None,
    *,
    show: Show,
    save_every: float,
    say: Say = print_nothing,
    encoder: str | None = None,
) -> dict[str, Any]:
    """Start a run, or with ``request`` None go on with it; give its summary.

    The first process alone holds the directory and gets the summary, others get {}.
    ``say`` is told in a sentence what a step will need, before the first one.
    ``encoder`` is MODULE:FACTORY of a network of the caller's own. It is imported
    because the caller names it, never because a run's folder does.
    """
    asked = read_request(folder) if request is None else request
    fabric = make_fabric(asked.config.precision)
    first = fabric.global_rank == 0
    resume = request is None
    if resume and (folder / SUMMARY).is_file():
        summary = read_summary(folder)
        leave_processes()
        return summary if first else {}
    with ExitStack() as stack:
        run = None
        if resume and first:
            run = stack.enter_context(Run.open(folder))
        elif first:
            check_free(folder)
        own = own_network(encoder, asked.encoder)
        summary = _run(
            folder, asked, resume, run, stack, fabric, show, save_every, say, own
        )
    leave_processes()
    return summary


def _run(
    folder: Path,
    request: Request,
    resume: bool,
    run: Run | None,
    stack: ExitStack,
    fabric: Fabric,
    show: Show,
    save_every: float,
    say: Say,
    own: nn.Module | None,
) -> dict[str, Any]:
    """Read, train, write; a new directory is made when nothing can be refused."""
    data = read_data(request.data, request, photos_at=None if resume else PHOTO_SIDE)
    if not resume:
        request = with_size(request, data)
    encoded = encode(as_targets(given_labels(data)))
    check_enough(data, encoded, request)
    task = make_task(request, data, encoded, own)
    facts = run_facts(request, data, encoded)
    if run is not None:
        check_same(run, facts)
    # A run that goes on fetches nothing: its folder names an encoder, not the user.
    with offline() if resume else nullcontext():
        start = prepare(
            task, fabric=fabric, resume_from=folder if resume else None, say=say
        )
    if fabric.device.type == "cpu":
        before = None if run is None else run.facts.get("threads")
        flops = max((cost.flops for cost in start.costs), default=math.inf)
        facts["threads"] = use_threads(flops, before)
    if fabric.world_size > 1 and fabric.global_rank == 0:
        say(
            f"{fabric.world_size} processes talk over open ports: on a network that is "
            "not yours, bind them to loopback (docs/training.md)"
        )
    if start.costs and fabric.global_rank == 0:
        say(describe(start.costs, free_memory(fabric.device)))
    if run is None and fabric.global_rank == 0:
        run = stack.enter_context(Run.start(folder, facts))
    fabric.barrier()
    if run is not None:
        run.ids = data.ids
        settings = to_toml(request.config, request.preset)
        run.write_bytes(SETTINGS, settings.encode())
    try:
        trained = train(
            task,
            start,
            fabric=fabric,
            show=show,
            run=run,
            shards=folder / _SHARDS,
            save_every=save_every,
            about=about_model(request, data, encoded),
        )
        network = trained.state.frozen or trained.state.network
        with embedded(network, trained.images, fabric, folder / _SHARDS) as H:  # noqa: N806
            summary = finish(run, request, data, encoded, trained, H)
    except OSError as error:  # such as a full disk
        raise ValueError(
            f"{error.filename or folder}: {error.strerror or error}; the last "
            f"checkpoint is kept, so then: stct train --resume {folder}"
        ) from error
    fabric.barrier()
    return summary


__all__ = ["new_request", "next_folder", "run_training"]
