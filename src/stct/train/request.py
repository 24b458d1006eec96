"""What a run is asked for, and the data that it names."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from stct.data.columns import as_targets
from stct.data.files import read_json, reading
from stct.data.images import PHOTO_SIDE, ImageSet, LazyImages, read_images
from stct.data.schema import Field, check_fields, is_text, maybe
from stct.encoders.embedding import HUGGING_FACE
from stct.labels import EncodedLabels
from stct.train.config import Config
from stct.train.config_text import from_dict, override, read_toml
from stct.train.model_file import About, start_from
from stct.train.presets import preset
from stct.train.runs import CONFIG, Run
from stct.train.task import Task
from stct.train.training import check_classes


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
    encoder: str | None = None  # MODULE:FACTORY of the caller's own


def new_request(
    data: Path,
    *,
    preset_name: str,
    assignments: Sequence[str],
    seed: int,
    test: Path | None,
    init: Path | None,
    config_file: Path | None = None,
    **reading: Any,
) -> Request:
    """Check what can be checked before anything is read."""
    for path in [data, *([test] if test else []), *([init] if init else [])]:
        if not path.exists():
            raise ValueError(f"{path}: there is no such file or folder")
    config = preset(preset_name)
    if config_file is not None:
        config = read_toml(config_file, config)
    return Request(
        data=str(data.resolve()),
        config=_from_anywhere(override(config, assignments)),
        seed=seed,
        preset=preset_name,
        test=str(test.resolve()) if test else None,
        init=str(init.resolve()) if init else None,
        **reading,
    )


def _from_anywhere(config: Config) -> Config:
    """Write a folder of an ``hf:`` encoder in full: a run may go on elsewhere."""
    name = config.encoder.name.removeprefix(HUGGING_FACE)
    if name == config.encoder.name or not Path(name).is_dir():
        return config
    full = f"{HUGGING_FACE}{Path(name).resolve()}"
    return replace(config, encoder=replace(config.encoder, name=full))


def next_folder(data: Path) -> Path:
    """Give the first free ``runs/NAME-NNN``."""
    name = re.sub(r"[^\w.-]+", "-", data.resolve().stem) or "data"
    number = 1
    while (folder := Path("runs") / f"{name}-{number:03d}").exists():
        number += 1
    return folder


def read_request(folder: Path) -> Request:
    """Give what a run directory was asked for."""
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(f"{folder}: not a run directory, it has no {CONFIG}")
    facts = read_json(path)
    check_fields(facts, _FIELDS, path)
    with reading(path, "not of this version of stct"):
        # What an older version did not know has its default.
        values = {
            name: facts[name]
            for name, about in Request.__dataclass_fields__.items()
            if name in facts or about.default is MISSING
        }
        values["config"] = from_dict(values["config"])
        return Request(**values)


_FIELDS = {
    "data": Field("text", is_text),
    "config": Field("an object", lambda v: isinstance(v, dict)),
    "seed": Field("a whole number", lambda v: type(v) is int),
    "preset": Field("text", is_text),
    **{
        name: Field("null or text", maybe(is_text), required=False)
        for name in ("test", "init", "image_column", "id_column", "encoder")
    },
    "label_column": Field("text", is_text, required=False),
    "skip_bad": Field("true or false", lambda v: isinstance(v, bool), required=False),
}


def read_data(
    source: str,
    request: Request,
    *,
    like: ImageSet | None = None,
    photos_at: int | None = None,
) -> ImageSet:
    """Read a source; a test set in the shape of the training set.

    Photos get the side ``photos_at`` where the settings name none.
    """
    shape = None if like is None else like.images.shape
    size = request.config.image_size or None
    return read_images(
        source,
        label_column=request.label_column,
        image_column=request.image_column,
        id_column=request.id_column,
        size=(shape[1], shape[2]) if shape else size,
        photos_at=photos_at,
        channels=shape[3] if shape else None,
        skip_bad=request.skip_bad,
        split="test" if like is not None else "train",
    )


def with_size(request: Request, data: ImageSet) -> Request:
    """Write the side that photos got into the settings, where a resumed run looks."""
    square = data.images.shape[1:3] == (PHOTO_SIDE, PHOTO_SIDE)
    if request.config.image_size or not square:
        return request
    return replace(request, config=replace(request.config, image_size=PHOTO_SIDE))


def check_enough(data: ImageSet, encoded: EncodedLabels, request: Request) -> None:
    """Refuse data from which nothing can be learnt."""
    try:
        check_classes(encoded)
    except ValueError as error:
        raise ValueError(f"{request.data}: {error}") from None
    if min(data.images.shape[1:3]) < 8:
        raise ValueError(
            f"{request.data}: images must be 8 x 8 or larger, got "
            f"{data.images.shape[1]} x {data.images.shape[2]}"
        )


def run_facts(
    request: Request, data: ImageSet, encoded: EncodedLabels
) -> dict[str, Any]:
    """Give what config.json holds."""
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


def check_same(run: Run, facts: dict[str, Any]) -> None:
    """Refuse to go on with other data than the run began with."""
    for name in ("fingerprint", "classes", "images"):
        if run.facts.get(name) != facts[name]:
            raise ValueError(
                f"{facts['data']}: is not what it was when the run in {run.folder} "
                f"began (another {name}); start a new run"
            )


def make_task(
    request: Request,
    data: ImageSet,
    encoded: EncodedLabels,
    encoder: nn.Module | None = None,
) -> Task:
    """Put together what training needs; the test set is read here."""
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
        encoder=encoder,
        init=init,
        test=_test(request, data, encoded),
    )


def _test(
    request: Request, data: ImageSet, encoded: EncodedLabels
) -> tuple[Any, NDArray[np.intp]] | None:
    if request.test is None:
        return None
    test = read_data(request.test, request, like=data)
    # As text: the numbers of an array and the names of folders are the same classes.
    number = {str(_plain(label)): i for i, label in enumerate(encoded.classes)}
    targets = [None if t is None else str(t) for t in as_targets(given_labels(test))]
    unknown = sorted({str(t) for t in targets if t not in number})
    if unknown:
        raise ValueError(
            f"{request.test}: label {unknown[0]!r} is not among the classes of "
            f"{request.data}"
        )
    truth = np.array([number[str(t)] for t in targets], dtype=np.intp)
    return test.images, truth


def about_model(request: Request, data: ImageSet, encoded: EncodedLabels) -> About:
    """Describe the model that the run will give."""
    _, height, width, channels = data.images.shape
    classes = [_plain(label) for label in encoded.classes]
    own = request.encoder is not None
    return About(request.config.encoder, own, classes, (channels, height, width))


def given_labels(data: ImageSet) -> list[Any]:
    """Give the labels as they came."""
    assert data.labels is not None
    return list(data.labels.tolist())


def _plain(value: Any) -> Any:
    """Give a NumPy value as the Python one that JSON can write."""
    return value.item() if isinstance(value, np.generic) else value
