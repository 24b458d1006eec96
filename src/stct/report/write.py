"""Write ``review.npz`` and ``report.html`` into an output folder, or rebuild them."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stct.data.corrected import Corrected, read_corrected
from stct.data.locks import locked
from stct.data.outputs import SUMMARY, whole_file
from stct.data.summary import as_json
from stct.numeric.types import Ints
from stct.report import ranking, thumbnails
from stct.report.checking import (
    check_order,
    choose_rows,
    expected_wrong,
    first_rows,
)
from stct.report.details import neighbours_to_picture
from stct.report.neighbours import draw_map, nearest
from stct.report.page import render
from stct.report.payload import fingerprint, make_payload
from stct.report.store import (
    REVIEW,
    Review,
    picture_notes,
    read_review,
    write_review,
)

REPORT = "report.html"
REPORT_FILES = (REPORT, REVIEW)

_NUM_FIRST = 600  # rows to check first, with evidence and a picture
_MOST_TOP = 4_000  # rows with evidence: 5 MB of text and neighbours
_NEIGHBOUR_WORK = 2e10  # multiplications that neighbours of suggestions may cost
_NUM_NEIGHBOURS = 10
_NUM_CANDIDATES = 5
_TSNE_ROWS = 2_000
_FILE_BYTES = 13_500_000  # of report.html, text and code of up to 1.5 MB aside
_ROW_BYTES = 42  # for each row of the page, its id aside


def write_report(
    folder: Path,
    *,
    embeddings: Any = None,
    images: NDArray[np.uint8] | Sequence[Any] | None = None,
    image_folder: Path | None = None,
    image_column: str | None = None,
    locked: ArrayLike | None = None,
    metrics: Sequence[dict[str, Any]] = (),
    title: str | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> list[str]:
    """Write ``report.html`` and ``review.npz`` beside the files of a correction.

    Call it after ``labels.*``, ``summary.json`` and ``soft_labels.npz`` have been
    written as `stct.data.results.write_results` does, best with `REPORT_FILES` among
    the summary's ``files``: what is listed there may be overwritten later. Both files
    appear whole. (Without ``soft_labels.npz`` the page knows a rival only for rows
    whose label was changed.)

    Parameters
    ----------
    folder : Path
        Holds ``labels.*``, ``summary.json`` and ``soft_labels.npz``.
    embeddings : array-like of shape (n, d), optional
        Anything that gives an array for ``embeddings[i:j]``. Without it there are no
        neighbours and no map.
    images : uint8 array (n, h, w) or (n, h, w, c), or sequence of n files, optional
        In the order of the labels file. A file is a path or the bytes of one. It may
        be None or point nowhere: such rows get a placeholder and are counted.
    image_folder, image_column : Path and str, optional
        Without ``images``: the column of the labels file that holds paths, seen from
        this folder. Without ``image_column`` a column is looked for.
    locked : array-like of bool, shape (n,), optional
        Rows that a person has checked.
    metrics : sequence of dict, optional
        One for each round of training, numbers by name, for the curves: names with
        ``loss`` in them share one picture, all others that stay within 0 and 1
        another. ``round`` numbers the rounds.
    title : str, optional
        Name of the data; the name of the table by default.
    progress : callable, optional
        Called with the share of work done.

    Returns
    -------
    notes : list of str
        What is missing from the report, such as images, in sentences.
    """
    corrected = read_corrected(folder)
    review = _gather(corrected, embeddings, locked, metrics, title)
    progress(0.3)
    column = image_column
    if images is None and image_folder is not None:
        images, column = _find_images(corrected, image_folder, image_column)
    if images is not None:
        review = _with_pictures(
            review, images, column, corrected, lambda s: progress(0.3 + 0.6 * s)
        )
        review.about["image_folder"] = _relative(image_folder, folder)
    progress(0.9)
    _write_files(corrected, review)
    return picture_notes(review)


@contextmanager
def labels_are_safe(folder: Path) -> Iterator[None]:
    """Say, if the report cannot be made, what is there and how to make it later."""
    try:
        yield
    except (ValueError, OSError, MemoryError) as error:
        short = isinstance(error, MemoryError)
        why = " ".join(["out of memory" if short else "", str(error)]).strip()
        lacks = "" if (folder / REVIEW).exists() else ", without neighbours and map"
        raise ValueError(
            f"{folder}: the corrected labels are there, whole, but not report.html "
            f"({why}); 'stct report {folder}' makes it{lacks}"
        ) from error


def rebuild_report(
    folder: Path, *, map_kind: str = "pca", images: Path | None = None
) -> list[str]:
    """Write ``report.html`` anew from the files of an output folder; give notes.

    Parameters
    ----------
    folder : Path
        An output folder of stct.
    map_kind : {"pca", "tsne"}
        The map: all rows, or a sample of 2,000 laid out by t-SNE.
    images : Path, optional
        Where the images are now, if they have moved: paths of the image column are
        seen from here.
    """
    if folder.is_dir():
        with locked(folder):
            return _rebuild(folder, map_kind, images)
    return _rebuild(folder, map_kind, images)


def _rebuild(folder: Path, map_kind: str, images: Path | None) -> list[str]:
    corrected = read_corrected(folder)
    review = _stored_review(corrected)
    if images is not None:
        if not images.is_dir():
            raise ValueError(f"{images}: there is no such folder")
        name = review.about.get("image_column")
        paths, column = _find_images(corrected, images, name)
        if paths is None:
            raise ValueError(f"{folder}: no column of image files found for {images}")
        review = _with_pictures(review, paths, column, corrected)
    _write_files(corrected, review, map_kind=map_kind)
    return picture_notes(review)


def ask_for_labels(
    folder: Path,
    rows: Ints,
    weight: NDArray[np.floating],
    *,
    images: Path | None = None,
) -> list[str]:
    """Make ``report.html`` again with an audit of some rows in it; give notes.

    Parameters
    ----------
    rows : ndarray of shape (m,)
        To verify, in this order.
    weight : ndarray of shape (m,)
        1 / inclusion probability.
    images : Path, optional
        Where the images are, if not where they were.
    """
    corrected = read_corrected(folder)
    review = _stored_review(corrected)
    review = replace(review, audit_rows=rows, audit_weight=weight)
    place = images or _image_folder(folder, review)
    if images is not None and not images.is_dir():
        raise ValueError(f"{images}: there is no such folder")
    if place is not None:
        name = review.about.get("image_column")
        paths, column = _find_images(corrected, place, name)
        if paths is not None:
            review = _with_pictures(review, paths, column, corrected)
    _write_files(corrected, review)
    unseen = [row for row in rows.tolist() if row not in review.pictures]
    notes = picture_notes(review)
    if review.about.get("has_images") and unseen:
        notes.append(
            f"{len(unseen):,} rows of the audit have no picture in the report; "
            "--images FOLDER says where the images are"
        )
    return notes


def rows_worth_checking(
    corrected: Corrected, count: int
) -> tuple[Ints, NDArray[np.floating]]:
    """Give the rows where a look puts the most labels right, and that worth, (m,)."""
    review = _stored_review(corrected)
    wrong = expected_wrong(corrected, review.locked)
    order = ranking.review_order(first_rows(review), check_order(wrong, review.locked))
    rows = order[~review.locked[order]][:count]
    return rows, wrong[rows]


def _stored_review(corrected: Corrected) -> Review:
    stored = corrected.folder / REVIEW
    if stored.exists():
        review = read_review(stored, len(corrected.given), len(corrected.classes))
        key = fingerprint(corrected)
        if review.about.get("key", key) != key:
            raise ValueError(f"{stored}: of other rows than the labels beside it")
        return review
    return _gather(corrected, None, None)


def _image_folder(folder: Path, review: Review) -> Path | None:
    """Give the folder of the images, if it is where it was."""
    place: str | None = review.about.get("image_folder")
    if place is None or not (folder / place).is_dir():
        return None
    return folder / place


def _write_files(
    corrected: Corrected, review: Review, *, map_kind: str = "pca"
) -> None:
    """Write both files, each whole; neither if the page cannot be made."""
    folder = corrected.folder
    with whole_file(folder / REVIEW, overwrite=True) as path:
        write_review(path, review)
        # From what is stored, so that a page that is made again has the same bytes.
        stored = read_review(path, len(corrected.given), len(corrected.classes))
        page = render(make_payload(corrected, stored, map_kind=map_kind))
    with whole_file(folder / REPORT, overwrite=True) as path:
        path.write_text(page, encoding="utf-8", newline="\n")
    _list_files(folder, corrected.summary)


def _list_files(folder: Path, summary: dict[str, Any]) -> None:
    """Note the report in the summary of a folder that had none."""
    files = list(summary.get("files", []))
    missing = [name for name in REPORT_FILES if name not in files]
    if missing:
        with whole_file(folder / SUMMARY, overwrite=True) as path:
            text = as_json({**summary, "files": [*files, *missing]})
            path.write_text(text, encoding="utf-8")


def _gather(
    corrected: Corrected,
    embeddings: Any,
    locked: ArrayLike | None,
    metrics: Sequence[dict[str, Any]] = (),
    title: str | None = None,
) -> Review:
    n = len(corrected.given)
    fixed = np.zeros(n, dtype=bool) if locked is None else np.asarray(locked)
    wrong = expected_wrong(corrected, fixed)
    first = choose_rows(wrong, fixed, corrected.label, embeddings, _NUM_FIRST)
    rivals = ranking.find_rivals(corrected)
    detailed = ranking.rows_to_detail(rivals, first, fixed, _most_rows(embeddings))
    neighbours = np.zeros((len(detailed), 0), dtype=np.intp)
    flat = None
    if embeddings is not None and embeddings.shape[1]:
        neighbours = nearest(embeddings, detailed, _NUM_NEIGHBOURS)
        flat = draw_map(embeddings, _TSNE_ROWS)
    classes, odds = _candidates(corrected, detailed)
    about = {
        "key": fingerprint(corrected),
        "metrics": _plain(metrics),
        "title": title,
        "num_first": len(first),
    }
    return Review(fixed, detailed, classes, odds, neighbours, flat, about=about)


def _most_rows(embeddings: Any) -> int:
    """Say how many rows may get evidence: all suggested changes, up to a size."""
    most = _MOST_TOP
    if embeddings is not None and embeddings.shape[1]:
        n, d = embeddings.shape
        most = min(most, int(_NEIGHBOUR_WORK / (n * d)))
    return most


def _relative(path: Path | None, folder: Path) -> str | None:
    """Give the way from one folder to the other, if there is one."""
    try:
        return None if path is None else Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return None


def _find_images(
    corrected: Corrected, folder: Path, column: str | None
) -> tuple[list[str | None] | None, str | None]:
    """Give the image files of all rows and the column that names them."""
    names = [*corrected.other_columns, "id"]
    columns = {name: corrected.table.values(name) for name in names}
    found = thumbnails.find_image_column(columns, folder, column)
    if found is None:
        return None, None
    return thumbnails.image_paths(columns[found], folder), found


def _with_pictures(
    review: Review,
    images: NDArray[Any] | Sequence[Any],
    column: str | None,
    corrected: Corrected,
    progress: Callable[[float], None] = lambda share: None,
) -> Review:
    first = first_rows(review)
    small = neighbours_to_picture(review.neighbours[: len(first)])
    ids = corrected.ids
    shown = min(len(ids), ranking.most_rows(ids))
    rows = shown * (_ROW_BYTES + 3 + sum(map(len, ids)) // max(len(ids), 1))
    made = thumbnails.make_thumbnails(
        images,
        [*review.audit_rows.tolist(), *first.tolist()],
        small,
        budget=(_FILE_BYTES - rows) * 3 // 4,  # base64 takes four letters for three
        progress=progress,
    )
    about = {
        "has_images": True,
        "image_column": column,
        "image_note": made.note,
        "num_missing": made.num_missing,
        "num_left_out": made.num_left_out,
    }
    return replace(review, pictures=made.pictures, about={**review.about, **about})


def _candidates(corrected: Corrected, rows: Ints) -> tuple[Ints, NDArray[np.floating]]:
    """Give the most probable classes of some rows and their probabilities, (R, c)."""
    blocks = corrected.soft_label_blocks()
    count = min(_NUM_CANDIDATES, len(corrected.classes))
    classes = np.full((len(rows), count), -1, dtype=np.intp)
    odds = np.zeros((len(rows), count), dtype=np.float32)
    for tile, P in blocks or ():
        here = np.flatnonzero((rows >= tile.start) & (rows < tile.stop))
        part = P[rows[here] - tile.start]  # (r, C)
        best = np.argsort(-part, axis=1, kind="stable")[:, :count]
        classes[here, : best.shape[1]] = best
        odds[here, : best.shape[1]] = np.take_along_axis(part, best, 1)
    return classes, odds


def _plain(metrics: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    """Keep the finite numbers of each round."""
    kinds = (int, float, np.integer, np.floating)
    return [
        {
            str(name): float(value)
            for name, value in one.items()
            if isinstance(value, kinds)
            and not isinstance(value, bool)
            and np.isfinite(value)
        }
        for one in metrics
    ]
