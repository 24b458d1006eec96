"""Clothing-1M from its key lists, label files and image folders.

A million photos of clothes with the labels of the shops' own texts, about 38% of them
wrong. Training sees the noisy set only; the clean validation and test sets are for
scoring. The lists stand in the folder itself or in ``annotations``; images are decoded
when they are asked for.
"""

from pathlib import Path

import numpy as np

from stct.data.columns import name_a_few
from stct.data.files import read_text
from stct.data.image_files import Layout
from stct.data.image_set import ImageSet, LazyImages, Progress

_LISTS = {
    "train": ("noisy_train_key_list.txt", "noisy_label_kv.txt"),
    "val": ("clean_val_key_list.txt", "clean_label_kv.txt"),
    "test": ("clean_test_key_list.txt", "clean_label_kv.txt"),
}
_CLASS_NAMES = "category_names_eng.txt"
_PLACES = ("", "annotations")
_SIZE = 256  # pixels, before the crop of training
_REPORT_EVERY = 10_000
_MOST_DIGITS = 5  # of a class number


def is_clothing1m(path: Path) -> bool:
    """Tell whether a folder holds the lists of Clothing-1M."""
    return any((path / place / _LISTS["train"][0]).is_file() for place in _PLACES)


def read_clothing1m(
    folder: Path,
    split: str = "train",
    *,
    size: tuple[int, int] | None = None,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> ImageSet:
    """Read one part of Clothing-1M.

    Parameters
    ----------
    folder : Path
        Holds ``images`` and the text files.
    split : {"train", "val", "test"}
        The noisy training set, or one of the clean ones.
    size : (height, width), optional
        256 x 256 by default: scaled to cover it, cut around the centre.
    skip_bad : bool
        Leave out images whose file is missing, instead of raising. (A damaged file
        is found when it is decoded.)
    progress : callable, optional
        Is told the share that is done.
    """
    folder = Path(folder)
    if split not in _LISTS:
        raise ValueError(f"{folder}: split must be train, val or test, got {split!r}")
    key_list, label_file = (_find(folder, name) for name in _LISTS[split])
    keys = read_text(key_list).split()
    labels = _labels(label_file)
    classes = _class_names(folder, 1 + max(labels.values(), default=0))
    without = [key for key in keys if key not in labels]
    if without:
        raise ValueError(
            f"{label_file}: no label for {name_a_few(without)} of {key_list.name}"
        )
    if len(set(keys)) < len(keys):
        raise ValueError(f"{key_list}: an image is listed twice")
    here, skipped = [], []
    for number, key in enumerate(keys, start=1):
        if (folder / key).is_file():
            here.append(key)
        elif skip_bad:
            skipped.append(f"{folder / key}: there is no such file")
        else:
            raise ValueError(
                f"{folder / key}: there is no such file, but {key_list.name} lists it "
                "(--skip-bad leaves such images out)"
            )
        if progress is not None and number % _REPORT_EVERY == 0:
            progress(number / len(keys))
    if not here:
        raise ValueError(f"{key_list}: no image of it is in {folder}")
    height, width = size or (_SIZE, _SIZE)
    paths = [folder / key for key in here]
    images = LazyImages(paths, [str(path) for path in paths], Layout(height, width, 3))
    numbers = np.array([labels[key] for key in here], dtype=np.intp)
    named = np.array(classes, dtype=object)[numbers]
    return ImageSet(images, named, here, classes=classes, skipped=skipped)


def _find(folder: Path, name: str) -> Path:
    for place in _PLACES:
        if (folder / place / name).is_file():
            return folder / place / name
    raise ValueError(f"{folder}: no {name} in it or in its folder annotations")


def _labels(path: Path) -> dict[str, int]:
    """Read lines of a key and a class number."""
    labels = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        key, _, code = line.rpartition(" ")
        if not line.strip():
            continue
        # isdigit alone takes superscripts, and a huge number is a list of as many names
        if not key or not code.isdecimal() or len(code) > _MOST_DIGITS:
            raise ValueError(
                f"{path}: line {number}: expected an image and a class number, "
                f"got {line[:80]!r}"
            )
        labels[key] = int(code)
    return labels


def _class_names(folder: Path, at_least: int) -> tuple[str, ...]:
    """Give the English names; numbers where the file of names is not there."""
    try:
        path = _find(folder, _CLASS_NAMES)
    except ValueError:
        return tuple(str(code) for code in range(at_least))
    names = tuple(read_text(path).split("\n"))
    names = tuple(name.strip() for name in names if name.strip())
    if len(names) < at_least:
        raise ValueError(
            f"{path}: {len(names)} names, but there is a class number {at_least - 1}"
        )
    return names
