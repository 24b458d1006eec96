"""``stct correct``, the command that corrects labels, and ``stct plan``."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from stct.cli import other_labels
from stct.cli.later import judge_later, load_any_encoder
from stct.cli.options import correcting as options
from stct.cli.options import shared
from stct.cli.repeat import command_of


def correct(
    context: typer.Context,
    table: options.TableOrImages,
    embeddings: shared.EmbeddingsFile = None,
    embeddings_column: shared.EmbeddingsColumn = None,
    text_column: options.TextColumn = None,
    feature_columns: options.FeatureColumns = None,
    encoder: options.EncoderName = None,
    skip_bad: shared.SkipBad = False,
    cache_dir: options.CacheFolder = None,
    no_cache: options.NoCache = False,
    pred_probs: options.PredProbsFile = None,
    label_column: shared.LabelColumn = "label",
    annotations: options.AnnotationsFile = None,
    label_columns: options.LabelColumns = None,
    id_column: shared.IdColumn = None,
    sep: shared.Separator = None,
    encoding: shared.Encoding = None,
    locked_column: options.LockedColumn = None,
    locked: options.LockedFile = None,
    audit: options.AuditFile = None,
    image_column: options.ImageColumn = None,
    method: options.MethodChoice = options.Method.LOO,
    min_odds: options.MinOdds = 1.0,
    multi_label: options.MultiLabel = None,
    numeric: options.Numeric = False,
    seed: shared.Seed = 0,
    earlier: options.EarlierRun = None,
    refit: options.Refit = False,
    engine: options.EngineChoice = options.EngineName.LOCAL,
    ray_address: options.RayAddress = None,
    since: options.SinceFolder = None,
    output: shared.OutFolder = Path("stct-output"),
    overwrite: shared.OverwriteFolder = False,
    quiet: shared.Quiet = False,
    json_output: shared.AsJson = False,
) -> None:
    """Correct the labels of TABLE from an embedding of every row, or its columns.

    [bold]Examples[/bold]

    stct correct photos.csv --embeddings photos.npy

    stct correct reviews.jsonl --embeddings-column vector --label-column stars

    stct correct photos.parquet --embeddings clip.npz --min-odds 3 -o careful

    stct correct photos/ --encoder efficientnet-lite0

    stct correct support.csv --text-column text

    stct correct photos.csv --embeddings photos.npy --annotations votes.csv

    stct correct films.csv --embeddings films.npy --multi-label '|'

    stct correct houses.csv --embeddings houses.npy --label-column price --numeric

    stct correct loans.csv --feature-columns age,income,since

    stct correct new.csv --embeddings new.npy --from stct-output -o new-output

    [bold]DIR gets the labels first, whole or not at all, then the report[/bold]

    report.html: open it in a browser to look, review, and export your decisions.

    labels.* (the format of TABLE, or csv): id, given, label, confidence, action
    (keep, relabel, abstain, or fill where the label was missing), then your other
    columns.

    patch.csv: the changed rows only, for 'stct apply' and 'stct revert'.

    soft_labels.npz: ids, classes, and the probability of every class for every row.

    changed.csv: with --since, the labels that differ from those of an earlier run.

    summary.json: everything estimated, all settings, versions and seconds.

    review.npz: what 'stct report DIR' needs to make report.html again.

    features.npz: how columns became numbers, where nothing else did.

    annotators.csv: with several labels per row, what was estimated of each annotator.

    corrector.npz: the fitted model, for --from, 'stct predict' and 'stct check'.
    """
    start = time.perf_counter()  # imports take their time too
    from stct.console import progress
    from stct.data.inputs import fit_inputs, read_inputs
    from stct.data.outputs import check_folder
    from stct.data.since import read_previous
    from stct.data.tables import require_column

    silent = quiet or json_output
    _check_method(method, min_odds, pred_probs=pred_probs, audit=audit)
    classes = other_labels.are_classes(
        multi_label,
        numeric=numeric,
        method=method is not options.Method.LOO,
        engine=engine is not options.EngineName.LOCAL,
        pred_probs=pred_probs is not None,
        audit=audit is not None,
        since=since is not None,
        min_odds=numeric and min_odds != 1.0,
        **{"from": earlier is not None, "refit": refit},
    )
    check_folder(output, overwrite=overwrite)
    previous = None if since is None else read_previous(since)
    where = _engine(engine, ray_address, silent=silent)
    _check_from(context, earlier, output)
    if earlier is not None:
        judged = judge_later(
            earlier,
            table,
            refit=refit,
            engine=where,
            min_odds=min_odds if _is_given(context, "min_odds") else None,
            embeddings=embeddings,
            embeddings_column=embeddings_column,
            encoder=encoder,
            label_column=label_column,
            id_column=id_column,
            image_column=image_column,
            sep=sep,
            encoding=encoding,
            locked_column=locked_column,
            locked=locked,
            audit=audit,
            command=command_of(context),
            skip_bad=skip_bad,
            cache_dir=cache_dir,
            use_cache=not no_cache,
            quiet=silent,
        )
        summary = _write(
            output,
            table,
            *judged,
            image_column,
            previous=previous,
            overwrite=overwrite,
            quiet=silent,
        )
        _show(summary, output, start, quiet=quiet, json_output=json_output)
        return
    from_file = embeddings or embeddings_column or pred_probs
    if from_file and (encoder or text_column or feature_columns):
        raise ValueError(
            "give embeddings, --pred-probs, --feature-columns, or --encoder and "
            "--text-column: one of them"
        )
    if (cache_dir is not None or no_cache) and encoder is None:
        raise ValueError("--cache-dir and --no-cache need --encoder")
    if skip_bad and (from_file or feature_columns):
        raise ValueError("--skip-bad is for images and texts: --encoder, --text-column")
    if table.is_dir() and encoder is None:
        raise ValueError(f"{table}: a folder of images needs --encoder NAME")
    voted = None
    if annotations is not None or label_columns is not None:
        _check_votes(classes=classes, skip_bad=skip_bad)
        voted = _read_votes(
            table,
            quiet=silent,
            annotations=annotations,
            label_columns=label_columns,
            label_column=label_column,
            id_column=id_column,
            sep=sep,
            encoding=encoding,
        )
    embedded = None
    if not from_file and (voted is None or encoder or text_column or feature_columns):
        embedded = _embed(
            table,
            encoder,
            voted,
            text_column=text_column,
            feature_columns=feature_columns,
            locked_column=locked_column,
            label_column=label_column,
            image_column=image_column,
            id_column=id_column,
            sep=sep,
            encoding=encoding,
            skip_bad=skip_bad,
            cache_dir=cache_dir,
            use_cache=not no_cache,
            classes=classes,
            quiet=silent,
        )
    with progress(f"Reading {table}", quiet=silent):
        inputs = read_inputs(
            table,
            embeddings=embeddings,
            embeddings_column=embeddings_column,
            label_column=label_column,
            id_column=id_column,
            locked_column=locked_column,
            locked=locked,
            audit=audit,
            embedded=embedded,
            pred_probs=pred_probs,
            sep=sep,
            encoding=encoding,
            classes=classes,
            voted=voted,
        )
    if not classes:
        other_labels.correct(
            inputs,
            multi_label,
            min_odds,
            output,
            start,
            overwrite=overwrite,
            quiet=quiet,
            as_json=json_output,
        )
        return
    inputs = replace(inputs, command=command_of(context))
    if image_column is not None:
        require_column(inputs.table, table, image_column, "--image-column")
    from stct import LabelCorrector

    corrector = LabelCorrector(
        method.value, min_odds=min_odds, engine=where, random_state=seed
    )
    started = time.perf_counter()
    with progress("Correcting", quiet=silent) as report:
        fit_inputs(corrector, inputs, report)
    seconds = time.perf_counter() - started
    summary = _write(
        output,
        table,
        inputs,
        embedded,
        corrector,
        seconds,
        None,
        image_column,
        previous=previous,
        overwrite=overwrite,
        quiet=silent,
    )
    _show(summary, output, start, quiet=quiet, json_output=json_output)


def _check_votes(*, classes: bool, skip_bad: bool) -> None:
    """Refuse what does not go with several labels per row."""
    if not classes:
        raise ValueError("--annotations and --label-columns take classes")
    if skip_bad:
        raise ValueError("--skip-bad does not go with several labels per row")


def _read_votes(table: Path, *, quiet: bool, **more: Any) -> Any:
    """Read the table with several labels per row."""
    from stct.console import progress
    from stct.data.annotations import read_votes

    with progress(f"Reading {table}", quiet=quiet):
        return read_votes(table, **more)


def _write(
    output: Path,
    table: Path,
    inputs: Any,
    embedded: Any,
    corrector: Any,
    seconds: float,
    earlier: dict[str, Any] | None,
    image_column: str | None,
    *,
    previous: Any = None,
    overwrite: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Write the labels, then the report, and give the summary."""
    from stct.console import progress
    from stct.data.outputs import whole_folder
    from stct.data.results import write_results
    from stct.data.tables import require_column
    from stct.report import REPORT_FILES, labels_are_safe, write_report

    if image_column is not None:
        require_column(inputs.table, table, image_column, "--image-column")
        image_column = "id" if image_column == inputs.id_column else image_column
    with (
        progress("Writing the labels", quiet=quiet),
        whole_folder(output, overwrite=overwrite) as folder,
    ):
        summary = write_results(
            folder,
            inputs,
            corrector,
            seconds=seconds,
            more_files=REPORT_FILES,
            earlier=earlier,
            previous=previous,
        )
    with (
        labels_are_safe(output),
        progress("Writing the report", quiet=quiet) as report,
    ):
        missing = write_report(
            output,
            embeddings=inputs.embeddings,
            images=None if embedded is None else embedded.pixels,
            image_folder=table.parent if embedded is None else embedded.image_folder,
            image_column=image_column if embedded is None else embedded.image_column,
            locked=inputs.checked,
            progress=report,
        )
    summary["notes"] += missing
    return dict(summary)


def _show(
    summary: dict[str, Any],
    output: Path,
    start: float,
    *,
    quiet: bool,
    json_output: bool,
) -> None:
    """Print the summary for people or for machines."""
    from stct.console import show_summary
    from stct.data.summary import as_json

    if json_output:
        print(as_json(summary), end="")
    elif not quiet:
        show_summary(summary, output, time.perf_counter() - start)


_WITH_FROM = {  # everything else is the earlier run's own
    *("table", "embeddings", "embeddings_column", "encoder", "skip_bad", "cache_dir"),
    *("no_cache", "label_column", "id_column", "sep", "encoding", "locked_column"),
    *("locked", "audit", "image_column", "min_odds", "earlier", "refit", "engine"),
    *("ray_address", "since", "output", "overwrite", "quiet", "json_output"),
}


def _check_from(context: typer.Context, earlier: Path | None, output: Path) -> None:
    """Refuse what an earlier run has decided, and --refit without one."""
    if earlier is None:
        if _is_given(context, "refit"):
            raise ValueError("--refit goes with --from DIR")
        return
    if output.exists() and earlier.exists() and output.samefile(earlier):
        raise ValueError(f"{output}: is the earlier run itself; choose another -o")
    for parameter in context.command.params:
        name = str(parameter.name)
        if name not in _WITH_FROM and _is_given(context, name):
            option = max(parameter.opts, key=len)
            raise ValueError(f"--from takes no {option}: the earlier run has its own")


def _is_given(context: typer.Context, name: str) -> bool:
    """Tell whether an option was on the command line."""
    return getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"


def _check_method(
    method: options.Method,
    min_odds: float,
    *,
    pred_probs: Path | None,
    audit: Path | None,
) -> None:
    if not min_odds >= 1.0:
        raise ValueError(f"--min-odds must be 1 or more, got {min_odds}")
    if method is options.Method.LOO:
        return
    if pred_probs is not None:
        raise ValueError(f"--method {method.value} needs embeddings, not --pred-probs")
    if audit is not None:
        raise ValueError(f"--audit goes with --method loo, not {method.value}")


def _engine(name: options.EngineName, ray_address: str | None, *, silent: bool) -> Any:
    """Connect to where rows are worked on, before anything is read."""
    if name is options.EngineName.LOCAL:
        if ray_address is not None:
            raise ValueError("--ray-address goes with --engine ray")
        return name.value
    from stct.numeric.ray_engine import RayEngine

    engine = RayEngine(ray_address)
    engine.start()
    if ray_address is None and not silent:
        print(
            "Ray was started here; its ports are open to the network (SECURITY.md)",
            file=sys.stderr,
        )
    return engine


def _embed(
    table: Path,
    encoder_name: str | None,
    voted: Any,
    *,
    text_column: str | None,
    feature_columns: str | None,
    locked_column: str | None,
    sep: str | None,
    encoding: str | None,
    **more: Any,
) -> Any:
    """Embed images, or columns of a table: the encoder tells which."""
    if encoder_name is not None and feature_columns is not None:
        raise ValueError("give --encoder or --feature-columns, not both")
    from stct.encoders import Encoder

    name = None if encoder_name == "tfidf" else encoder_name
    encoder = None if name is None else load_any_encoder(name)
    if isinstance(encoder, Encoder):
        if text_column is not None:
            raise ValueError(
                f"encoder {encoder_name} is a model of images; for --text-column take "
                "tfidf, minilm, or hf: with a model of text"
            )
        if sep is not None or encoding is not None:
            raise ValueError("--sep and --encoding do not go with images")
        from stct.encoders.inputs import embed_source

        return embed_source(table, encoder, **more)
    from stct.features.inputs import embed_columns

    return embed_columns(
        table,
        encoder=encoder,
        text_column=text_column,
        feature_columns=feature_columns,
        locked_column=locked_column,
        sep=sep,
        encoding=encoding,
        table=None if voted is None else voted[0],
        **more,
    )


def plan(
    table: options.OptionalTable = None,
    embeddings: shared.EmbeddingsFile = None,
    embeddings_column: shared.EmbeddingsColumn = None,
    label_column: shared.LabelColumn = "label",
    id_column: shared.IdColumn = None,
    sep: shared.Separator = None,
    encoding: shared.Encoding = None,
    rows: options.NumRows = None,
    columns: options.NumColumns = None,
    classes: options.NumClasses = None,
    workers: options.NumWorkers = None,
    json_output: shared.AsJson = False,
) -> None:
    """Say what 'stct correct' will cost, from two seconds of measuring here.

    stct plan photos.csv --embeddings shards

    stct plan --rows 1e9 --columns 512 --classes 1000 --workers 256
    """
    from stct.console import show_plan
    from stct.planning.plan import Problem, make_plan

    given = (rows, columns, classes)
    rate = None
    if table is not None:
        if any(value is not None for value in given):
            raise ValueError("give TABLE, or --rows, --columns and --classes, not both")
        from stct.data.sizes import read_problem, read_rate

        problem = read_problem(
            table,
            embeddings=embeddings,
            embeddings_column=embeddings_column,
            label_column=label_column,
            id_column=id_column,
            sep=sep,
            encoding=encoding,
        )
        rate = None if embeddings is None else read_rate(embeddings)
    elif rows is None or columns is None or classes is None:
        raise ValueError("give TABLE, or all of --rows, --columns and --classes")
    else:
        problem = Problem(options.whole(rows, "--rows", 2), columns, classes)
    result = make_plan(problem, workers=workers, read_rate=rate)
    if json_output:
        print(json.dumps({**problem._asdict(), **result._asdict()}))
    else:
        show_plan(problem, result)
