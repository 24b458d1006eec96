"""New rows for the model of an earlier run: read and embedded as its own rows were."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from stct.data.earlier import EarlierRun
    from stct.data.embedded import Embedded
    from stct.estimator import LabelCorrector


def load_any_encoder(name: str) -> Any:
    """Load an encoder by name, or the one in a model of 'stct train'."""
    from stct.cli.extras import require

    if not Path(name).exists():
        from stct.encoders import load_encoder

        return load_encoder(name)
    require("torch", "lightning_fabric", "safetensors", extra="train")
    from stct.train.as_encoder import own_encoder

    return own_encoder(Path(name))


def embed_as_earlier(
    run: "EarlierRun",
    source: Path,
    *,
    encoder: str | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    skip_bad: bool = False,
    cache_dir: Path | None = None,
    quiet: bool = False,
    **reading: Any,
) -> "Embedded":
    """Embed new rows with the recipe or the encoder of an earlier run.

    ``encoder`` says where the encoder is now; it must be the same one.
    """
    if run.recipe is not None:
        if encoder is not None or skip_bad:
            option = "--skip-bad" if encoder is None else "--encoder"
            raise ValueError(f"{option} goes with runs on images; {run.path} is none")
        return _by_recipe(
            run, source, cache_dir, sep=sep, encoding=encoding, quiet=quiet
        )
    if run.encoder is None:
        raise ValueError(
            f"{source}: no embeddings: give --embeddings FILE, made as those of "
            f"{run.path}"
        )
    if sep is not None or encoding is not None:
        raise ValueError("--sep and --encoding do not go with images")
    from stct.encoders.inputs import embed_source

    name, digest = run.encoder
    loaded = load_any_encoder(encoder or name)
    if loaded.digest != digest:
        raise ValueError(
            f"encoder {encoder or name} is not the one of {run.path}: its weights or "
            "settings are others"
        )
    return embed_source(
        source,
        loaded,
        skip_bad=skip_bad,
        cache_dir=cache_dir,
        quiet=quiet,
        **reading,
    )


def _by_recipe(
    run: "EarlierRun",
    path: Path,
    cache_dir: Path | None,
    *,
    sep: str | None,
    encoding: str | None,
    quiet: bool,
) -> "Embedded":
    from stct.console import progress
    from stct.data.embedded import Embedded
    from stct.data.tables import read_table
    from stct.features import as_arrays, read_recipe

    assert run.recipe is not None
    recipe = read_recipe(run.recipe)
    with progress(f"Reading {path}", quiet=quiet):
        table = read_table(path, sep=sep, encoding=encoding)
    if not table.num_rows:
        raise ValueError(f"{path}: the table has no rows")
    with progress("Embedding", quiet=quiet) as report:
        X = recipe.transform(table, path, report, cache_dir)  # noqa: N806
    about = dict(run.summary.get("features") or {})
    return Embedded(
        table,
        None,
        X,
        {"table": path},
        about,
        [],
        None,
        path.parent,
        None,
        as_arrays(recipe),
    )


class Judged(NamedTuple):
    """A later batch, and what an earlier run says of it."""

    inputs: Any
    embedded: "Embedded | None"
    corrector: "LabelCorrector"
    seconds: float
    about: dict[str, Any]  # for the summary


def judge_later(
    earlier: Path,
    table: Path,
    *,
    refit: bool = False,
    engine: Any = "local",
    min_odds: float | None = None,
    embeddings: Path | None = None,
    embeddings_column: str | None = None,
    encoder: str | None = None,
    cache_dir: Path | None = None,
    use_cache: bool = True,
    skip_bad: bool = False,
    image_column: str | None = None,
    command: list[str] | None = None,
    quiet: bool = False,
    **reading: Any,
) -> Judged:
    """Read a batch and judge it with an earlier run; ``reading`` is what to read."""
    from stct.console import progress
    from stct.data.batches import as_batch, judge_batch
    from stct.data.earlier import read_earlier
    from stct.data.inputs import read_inputs

    run, embedded = read_earlier(earlier), None
    if embeddings is not None or embeddings_column is not None:
        if encoder is not None:
            raise ValueError("give embeddings or --encoder, one of them")
    else:
        embedded = embed_as_earlier(
            run,
            table,
            encoder=encoder,
            label_column=reading["label_column"],
            image_column=image_column,
            id_column=reading["id_column"],
            sep=reading["sep"],
            encoding=reading["encoding"],
            skip_bad=skip_bad,
            cache_dir=cache_dir,
            use_cache=use_cache,
            quiet=quiet,
        )
    with progress(f"Reading {table}", quiet=quiet):
        inputs = read_inputs(
            table,
            embeddings=embeddings,
            embeddings_column=embeddings_column,
            embedded=embedded,
            to_fit=False,
            **reading,
        )
    check_columns(run, inputs.embeddings)
    batch = as_batch(replace(inputs, command=command), run, table)
    if not len(batch.original) or (batch.codes is not None and batch.codes.max() < 0):
        raise ValueError(
            f"{table}: column {inputs.label_column!r} has no labels; 'stct predict "
            f"{earlier} {table}' gives labels to such rows"
        )
    run.corrector.set_params(engine=engine)
    if min_odds is not None:
        run.corrector.set_params(min_odds=min_odds)
    start = time.perf_counter()
    with progress("Correcting", quiet=quiet):
        corrector, about = judge_batch(run, batch, refit=refit)
    return Judged(batch, embedded, corrector, time.perf_counter() - start, about)


class Rows(NamedTuple):
    """New rows without labels."""

    ids: list[Any]
    embeddings: Any  # (n, d)
    notes: list[str]


def read_rows(
    run: "EarlierRun",
    source: Path,
    *,
    embeddings: Path | None,
    embeddings_column: str | None,
    id_column: str | None,
    sep: str | None = None,
    encoding: str | None = None,
    quiet: bool = False,
    **reading: Any,
) -> Rows:
    """Read ids and embeddings of rows; a label column is not looked at."""
    from stct.data.columns import read_ids
    from stct.data.embeddings import load_embeddings
    from stct.data.tables import read_table

    if embeddings is None and embeddings_column is None:
        embedded = embed_as_earlier(
            run,
            source,
            sep=sep,
            encoding=encoding,
            quiet=quiet,
            **reading,
            id_column=id_column,
            labels_required=False,
        )
        _, ids = read_ids(embedded.table, source, id_column)
        if embedded.row_numbers is not None:
            ids = list(embedded.row_numbers)
        return Rows(ids, embedded.embeddings, embedded.notes)
    table = read_table(source, sep=sep, encoding=encoding)
    if not table.num_rows:
        raise ValueError(f"{source}: the table has no rows")
    _, ids = read_ids(table, source, id_column)
    X, notes = load_embeddings(  # noqa: N806
        table, source, file=embeddings, column=embeddings_column, id_column=id_column
    )
    return Rows(ids, X, [*table.notes, *notes])


def check_columns(run: "EarlierRun", embeddings: Any) -> None:
    """Refuse rows that do not have the columns of the fit."""
    found, wanted = np.shape(embeddings)[1], run.corrector.n_features_in_
    if found != wanted:
        raise ValueError(
            f"the embeddings have {found} columns, those of {run.path} had {wanted}; "
            "make them in the same way"
        )


def is_corrector(path: Path) -> bool:
    """Tell a model of 'stct correct' from one of 'stct train'."""
    from stct.data.outputs import SUMMARY

    if path.is_dir():
        trained = (path / "model.safetensors").exists()
        return not trained and (path / SUMMARY).exists()
    return path.suffix.lower() == ".npz"


def predict_later(
    model: Path, data: Path, output: Path, *, overwrite: bool, **reading: Any
) -> tuple[int, list[str]]:
    """Write labels of new rows to a table; give their number and notes."""
    from stct.console import progress
    from stct.correction.resemblance import describe_differences
    from stct.data.earlier import read_earlier
    from stct.data.outputs import whole_file
    from stct.data.predictions import prediction_table
    from stct.data.tables import table_format, write_table

    kind = table_format(output)
    run = read_earlier(model)
    rows = read_rows(run, data, **reading)
    check_columns(run, rows.embeddings)
    with progress("Predicting", quiet=reading["quiet"]):
        P = run.corrector.predict_proba(rows.embeddings)  # noqa: N806
        notes = describe_differences(run.corrector.compare_rows(rows.embeddings))
    if run.corrector.termination_condition_ == "nothing_learnt":
        notes.append(
            f"the run of {run.path} learnt nothing: every row gets the shares of its "
            "classes"
        )
    table = prediction_table(kind, rows.ids, run.class_names, P)
    with whole_file(output, overwrite=overwrite) as path:
        write_table(path, table)
    return len(rows.ids), [*rows.notes, *notes]
