"""Images that come as an array: .npz files, and arrays in another shape."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.columns import check_ids, ids_as_text
from stct.data.image_files import Layout, reshape
from stct.data.image_set import ImageSet
from stct.data.npy import open_npz

_NPZ_ARRAYS = ("images", "labels", "ids")


def read_npz(path: Path, labels_required: bool) -> ImageSet:
    """Read ``images`` and ``labels``, and ``ids`` if they are there."""
    with open_npz(path) as archive:
        names = archive.names
        arrays = {name: archive.read(name) for name in names if name in _NPZ_ARRAYS}
    needed = ["images", "labels"] if labels_required else ["images"]
    for name in needed:
        if name not in arrays:
            raise ValueError(
                f"{path}: no array {name!r}; it holds {', '.join(names) or 'nothing'}"
            )
    images = arrays["images"]
    if images.ndim == 3:
        images = images[..., None]
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] not in (1, 3):
        raise ValueError(
            f"{path}: 'images' must be uint8 of shape (n, h, w) or (n, h, w, c) with "
            f"c 1 or 3, got {arrays['images'].dtype} of shape {arrays['images'].shape}"
        )
    if not images.size:
        raise ValueError(f"{path}: there are no images in it")
    labels = arrays.get("labels")
    if labels is not None and labels.dtype.kind == "f" and np.isinf(labels).any():
        row = int(np.flatnonzero(np.isinf(labels))[0])
        raise ValueError(f"{path}: labels, row {row}: a label cannot be infinite")
    for name in ("labels", "ids"):
        found = arrays.get(name)
        if found is not None and found.shape != (len(images),):
            raise ValueError(
                f"{path}: {name!r} must have one value for each of {len(images)} "
                f"images, got shape {found.shape}"
            )
    ids = ids_as_text(
        arrays["ids"].tolist() if "ids" in arrays else list(range(len(images))),
        f"{path}: ids",
    )
    check_ids(ids, f"{path}: ids")
    return ImageSet(images, labels, ids)


def reshaped(
    read: ImageSet, size: tuple[int, int] | None, channels: int | None
) -> ImageSet:
    """Give images that came as an array the wanted shape."""
    num, height, width, found = read.images.shape
    new_height, new_width = size or (height, width)
    layout = Layout(new_height, new_width, channels or found)
    if layout == (height, width, found):
        return read
    images: NDArray[Any] = np.empty((num, *layout), dtype=np.uint8)
    for row in range(num):
        images[row] = reshape(read.images[row], layout)
    kind = "grey" if layout.channels == 1 else "colour"
    note = f"all images were made {layout.width} x {layout.height}, {kind}"
    return replace(read, images=images, notes=[*read.notes, note])
