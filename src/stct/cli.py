"""The ``stct`` command: thin functions over `stct.data` and `LabelCorrector`.

Heavy imports wait inside the commands so that ``stct --help`` answers at once.
"""

import json
import sys
import time
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import typer

from stct import options

TRAINING = ("torch", "lightning_fabric", "safetensors", "PIL")  # of stct[train]

app = typer.Typer(
    name="stct",
    help="Correct noisy labels from embeddings, without clean data.",
    epilog="Start with 'stct demo', then 'stct correct --help'.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> None:
    """Run the command; an error is one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # labels in any script
    try:
        sys.exit(app(prog_name="stct", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except MemoryError as error:
        _fail(f"out of memory {error}")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _fail(f"{place}{error.strerror or error}")
    except ValueError as error:
        _fail(str(error))
    except Exception as error:
        # A wrong option or argument; the class depends on the click that typer brings.
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message().replace("Value error, ", "")
        if not message:  # no command at all: the help has been shown
            sys.exit(2)
        _fail(message)


def _fail(message: str) -> NoReturn:
    print(f"stct: error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _stct(version: options.Version = False) -> None:
    if version:
        from stct import __version__

        print(f"stct {__version__}")
        raise typer.Exit


@app.command()
def correct(
    table: options.TableOrImages,
    embeddings: options.EmbeddingsFile = None,
    embeddings_column: options.EmbeddingsColumn = None,
    encoder: options.EncoderName = None,
    skip_bad: options.SkipBad = False,
    cache_dir: options.CacheFolder = None,
    no_cache: options.NoCache = False,
    pred_probs: options.PredProbsFile = None,
    label_column: options.LabelColumn = "label",
    id_column: options.IdColumn = None,
    locked_column: options.LockedColumn = None,
    locked: options.LockedFile = None,
    image_column: options.ImageColumn = None,
    method: options.MethodChoice = options.Method.LOO,
    min_odds: options.MinOdds = 1.0,
    seed: options.Seed = 0,
    engine: options.EngineChoice = options.EngineName.LOCAL,
    ray_address: options.RayAddress = None,
    output: options.OutFolder = Path("stct-output"),
    overwrite: options.OverwriteFolder = False,
    quiet: options.Quiet = False,
    json_output: options.AsJson = False,
) -> None:
    """Correct the labels of TABLE from an embedding of every row.

    [bold]Examples[/bold]

    stct correct photos.csv --embeddings photos.npy

    stct correct reviews.jsonl --embeddings-column vector --label-column stars

    stct correct photos.parquet --embeddings clip.npz --min-odds 3 -o careful

    stct correct photos/ --encoder efficientnet-lite0

    [bold]DIR gets the labels first, whole or not at all, then the report[/bold]

    report.html: open it in a browser to look, review, and export your decisions.

    labels.* (the format of TABLE, or csv): id, given, label, confidence, action
    (keep, relabel, abstain, or fill where the label was missing), then your other
    columns.

    patch.csv: the changed rows only, for 'stct apply' and 'stct revert'.

    soft_labels.npz: ids, classes, and the probability of every class for every row.

    summary.json: everything estimated, all settings, versions and seconds.

    review.npz: what 'stct report DIR' needs to make report.html again.
    """
    from stct.console import progress, show_summary
    from stct.data.outputs import check_folder, whole_folder
    from stct.data.results import as_json, fit_inputs, read_inputs, write_results
    from stct.data.tables import require_column

    start = time.perf_counter()
    if not min_odds >= 1.0:
        raise ValueError(f"--min-odds must be 1 or more, got {min_odds}")
    if pred_probs is not None and method is not options.Method.LOO:
        raise ValueError(f"--method {method.value} needs embeddings, not --pred-probs")
    check_folder(output, overwrite=overwrite)
    where = _engine(engine, ray_address)
    embedded = None
    if encoder is not None:
        if embeddings is not None or embeddings_column is not None:
            raise ValueError("give --encoder or embeddings, not both")
        from stct.encoders.inputs import embed_source

        embedded = embed_source(
            table,
            _load_encoder(encoder),
            label_column=label_column,
            image_column=image_column,
            id_column=id_column,
            skip_bad=skip_bad,
            cache_dir=cache_dir,
            use_cache=not no_cache,
            quiet=quiet or json_output,
        )
    elif skip_bad or cache_dir is not None or no_cache:
        raise ValueError("--skip-bad, --cache-dir and --no-cache need --encoder")
    elif table.is_dir():
        raise ValueError(f"{table}: a folder of images needs --encoder NAME")
    inputs = read_inputs(
        table,
        embeddings=embeddings,
        embeddings_column=embeddings_column,
        label_column=label_column,
        id_column=id_column,
        locked_column=locked_column,
        locked=locked,
        embedded=embedded,
        pred_probs=pred_probs,
    )
    if image_column is not None:
        require_column(inputs.table, table, image_column, "--image-column")
        image_column = "id" if image_column == inputs.id_column else image_column
    from stct import LabelCorrector
    from stct.report import REPORT_FILES, labels_are_safe, write_report

    corrector = LabelCorrector(
        method.value, min_odds=min_odds, engine=where, random_state=seed
    )
    with progress("Correcting", quiet=quiet or json_output) as report:
        fit_inputs(corrector, inputs, report)
    with whole_folder(output, overwrite=overwrite) as folder:
        seconds = time.perf_counter() - start
        summary = write_results(
            folder, inputs, corrector, seconds=seconds, more_files=REPORT_FILES
        )
    with (
        labels_are_safe(output),
        progress("Writing the report", quiet=quiet or json_output) as report,
    ):
        missing = write_report(
            output,
            embeddings=inputs.embeddings,
            images=None if embedded is None else embedded.pixels,
            image_folder=table.parent if embedded is None else embedded.image_folder,
            image_column=image_column if embedded is None else embedded.image_column,
            locked=inputs.locked,
            progress=report,
        )
    summary["notes"] += missing
    if json_output:
        print(as_json(summary), end="")
    elif not quiet:
        show_summary(summary, output)


@app.command()
def apply(
    patch: options.PatchFile,
    table: options.TableFile,
    output: options.OutFile,
    label_column: options.LabelColumn = "label",
    id_column: options.IdColumn = None,
    skip_conflicts: options.SkipConflicts = False,
    overwrite: options.OverwriteFile = False,
    quiet: options.Quiet = False,
) -> None:
    """Write TABLE with the changes of PATCH made.

    A row whose label is not the 'old' one of PATCH is a conflict: it is listed and
    never overwritten.

    stct apply stct-output/patch.csv photos.csv -o photos-corrected.csv
    """
    _patch(
        patch,
        table,
        output,
        label_column=label_column,
        id_column=id_column,
        back=False,
        skip_conflicts=skip_conflicts,
        overwrite=overwrite,
        quiet=quiet,
    )


@app.command()
def revert(
    patch: options.PatchFile,
    table: options.TableFile,
    output: options.OutFile,
    label_column: options.LabelColumn = "label",
    id_column: options.IdColumn = None,
    skip_conflicts: options.SkipConflicts = False,
    overwrite: options.OverwriteFile = False,
    quiet: options.Quiet = False,
) -> None:
    """Write TABLE with the changes of PATCH taken back: the inverse of 'apply'.

    A row whose label is not the 'new' one of PATCH is a conflict: it is listed and
    never overwritten.

    stct revert stct-output/patch.csv photos-corrected.csv -o photos-as-before.csv
    """
    _patch(
        patch,
        table,
        output,
        label_column=label_column,
        id_column=id_column,
        back=True,
        skip_conflicts=skip_conflicts,
        overwrite=overwrite,
        quiet=quiet,
    )


def _patch(
    patch: Path,
    table_path: Path,
    output: Path,
    *,
    label_column: str,
    id_column: str | None,
    back: bool,
    skip_conflicts: bool,
    overwrite: bool,
    quiet: bool,
) -> None:
    from stct.data.patches import apply_patch, describe, read_patch, reverse
    from stct.data.tables import read_table

    _check_output(output, table_path, overwrite=overwrite)
    changes = read_patch(patch)
    patched = apply_patch(
        reverse(changes) if back else changes,
        read_table(table_path),
        table_path,
        label_column=label_column,
        id_column=id_column,
    )
    for line in describe(patched.conflicts):
        print(line, file=sys.stderr)
    if patched.conflicts and not skip_conflicts:
        raise ValueError(
            f"{table_path}: {len(patched.conflicts)} of {len(changes)} labels are not "
            "what the patch expects; nothing was written (see --skip-conflicts)"
        )
    _write_table_file(output, patched.table, overwrite=overwrite)
    if not quiet:
        print(f"{patched.num_changed:,} labels changed in {output}")


@app.command()
def report(
    folder: options.ReportFolder,
    map_kind: options.MapChoice = options.Map.PCA,
    images: options.ImagesFolder = None,
    quiet: options.Quiet = False,
) -> None:
    """Make report.html in DIR again, from the files there.

    stct report stct-output --map tsne
    """
    from stct.report import rebuild_report

    notes = rebuild_report(folder, map_kind=map_kind.value, images=images)
    if not quiet:
        print(f"{folder / 'report.html'}: open it in a browser")
        for note in notes:
            print(f"note: {note}")


@app.command()
def export(
    folder: options.ReportFolder,
    to: options.ToolChoice,
    output: options.ExportFolder = None,
    images: options.ExportImages = None,
    quiet: options.Quiet = False,
) -> None:
    """Hand the correction in DIR over to another tool.

    stct export stct-output --to label-studio
    """
    from stct.export import export_folder

    target = output or Path(f"stct-{to.value}")
    hint = export_folder(folder, to.value, target, images=images)
    if not quiet:
        print(f"{target}: written\n{hint}")


@app.command()
def noise(
    table: options.TableFile,
    output: options.OutFile,
    kind: options.KindChoice = options.Kind.SYMMETRIC,
    rate: options.Rate = 0.5,
    seed: options.Seed = 0,
    flips: options.FlipMap = None,
    matrix: options.MatrixFile = None,
    embeddings: options.EmbeddingsFile = None,
    embeddings_column: options.EmbeddingsColumn = None,
    label_column: options.LabelColumn = "label",
    id_column: options.IdColumn = None,
    keep_clean: options.KeepClean = None,
    overwrite: options.OverwriteFile = False,
    quiet: options.Quiet = False,
    json_output: options.AsJson = False,
) -> None:
    """Write TABLE with noise of a known kind in its labels, for experiments.

    stct noise photos.csv --kind symmetric --rate 0.5 --seed 0 -o noisy.csv
    """
    from stct.data.columns import read_labels
    from stct.data.embeddings import load_embeddings
    from stct.data.noising import add_noise, keep_column
    from stct.data.tables import read_table

    _check_output(output, table, overwrite=overwrite)
    clean = read_table(table)
    labels = read_labels(clean, table, label_column)
    vectors = None
    if kind is options.Kind.INSTANCE:
        vectors, _ = load_embeddings(
            clean,
            table,
            file=embeddings,
            column=embeddings_column,
            id_column=id_column,
        )
    noisy = add_noise(
        labels,
        kind.value,
        rate=rate,
        seed=seed,
        flips=flips,
        matrix=matrix,
        embeddings=vectors,
    )
    result = clean.with_values(label_column, noisy.labels)
    if keep_clean is not None:
        result = keep_column(result, clean.columns[label_column], keep_clean)
    _write_table_file(output, result, overwrite=overwrite)
    rates = {"nominal_rate": noisy.nominal_rate, "actual_rate": noisy.actual_rate}
    if json_output:
        print(json.dumps({"kind": kind.value, "seed": seed, **rates}))
    elif not quiet:
        print(
            f"{output}: {kind.value} noise, nominal rate {noisy.nominal_rate:.2%}, "
            f"actual rate {noisy.actual_rate:.2%}"
        )


@app.command()
def train(
    data: options.ImageData = None,
    preset: options.Preset = "cpu",
    assignments: options.Assignments = None,
    test: options.TestData = None,
    init: options.InitFrom = None,
    resume: options.ResumeFrom = None,
    seed: options.Seed = 0,
    label_column: options.LabelColumn = "label",
    image_column: options.PathColumn = None,
    id_column: options.IdColumn = None,
    skip_bad: options.SkipBad = False,
    save_every: options.SaveEvery = 60.0,
    output: options.RunFolder = None,
    quiet: options.Quiet = False,
    json_output: options.AsJson = False,
) -> None:
    """Train on noisy images: a classifier and corrected labels.

    SimCLR first, then noisy meta correction and semi-supervised learning in turn.

    [bold]Examples[/bold]

    stct train photos/ --preset cpu -o run

    stct train photos.csv --set srl.steps=500 --set num_rounds=6

    stct train --resume run

    torchrun --nproc-per-node 2 -m stct train photos/ -o run

    [bold]DIR gets[/bold]

    model.safetensors, labels.*, soft_labels.npz, patch.csv, report.html, review.npz
    and summary.json at the end; config.json, metrics.jsonl, the labels of each round,
    pretrained.safetensors and a checkpoint on the way.
    """
    from stct.console import show_training, training_progress

    _require(*TRAINING, extra="train")
    from stct.train.command import new_request, next_folder, run_training

    start = time.perf_counter()
    request = None
    if resume is None:
        if data is None:
            raise ValueError("give DATA to train on, or --resume DIR")
        request = new_request(
            data,
            preset_name=preset,
            assignments=assignments or [],
            seed=seed,
            test=test,
            init=init,
            label_column=label_column,
            image_column=image_column,
            id_column=id_column,
            skip_bad=skip_bad,
        )
        folder = output or next_folder(data)
    elif any([data, assignments, test, init, output]):
        raise ValueError(
            "--resume takes no DATA, --set, --test, --init or -o: the run knows them"
        )
    else:
        folder = resume
    with training_progress(quiet=quiet or json_output) as show:
        summary = run_training(folder, request, show=show, save_every=save_every)
    if not summary:  # one of several processes, not the one that writes
        return
    if json_output:
        from stct.data.results import as_json

        print(as_json(summary), end="")
    elif not quiet:
        show_training(summary, folder, time.perf_counter() - start)


@app.command()
def predict(
    model: options.ModelFile,
    data: options.PredictData,
    output: options.PredictFile,
    image_column: options.PathColumn = None,
    id_column: options.IdColumn = None,
    skip_bad: options.SkipBad = False,
    overwrite: options.OverwriteFile = False,
    quiet: options.Quiet = False,
) -> None:
    """Label new images with a trained model.

    stct predict run new-photos/ -o predictions.csv
    """
    _require(*TRAINING, extra="train")
    from stct.data.outputs import check_file
    from stct.train.command import predict_to_file

    check_file(output, overwrite=overwrite)
    count = predict_to_file(
        model,
        data,
        output,
        overwrite=overwrite,
        image_column=image_column,
        id_column=id_column,
        skip_bad=skip_bad,
    )
    if not quiet:
        print(f"{output}: labels of {count:,} images")


def _require(*modules: str, extra: str) -> None:
    """Say what to install when an optional part is not there."""
    missing = _missing(*modules)
    if missing:
        raise ValueError(f"this needs {missing[0]}: pip install 'stct[{extra}]'")


def _missing(*modules: str) -> list[str]:
    from importlib.util import find_spec

    return [name for name in modules if find_spec(name) is None]


@app.command()
def bench(
    source: options.BenchSource,
    embeddings: options.EmbeddingsFile = None,
    embeddings_column: options.EmbeddingsColumn = None,
    label_column: options.BenchLabelColumn = None,
    id_column: options.IdColumn = None,
    noisy_column: options.NoisyColumns = None,
    noise_list: options.NoiseList = "symmetric:0.2,symmetric:0.5,asymmetric:0.4",
    flips: options.BenchFlipMap = None,
    methods: options.Battery = None,
    seeds: options.NumSeeds = 1,
    output: options.OutFolder = Path("stct-bench"),
    overwrite: options.OverwriteFolder = False,
    quiet: options.Quiet = False,
    json_output: options.AsJson = False,
) -> None:
    """Compare label correctors on your own embeddings.

    Noise of a known kind goes into labels that you trust; every method then gets the
    noisy labels and the embeddings, in a process of its own. DIR gets bench.csv (one
    row per run), bench.png and summary.json.

    stct bench photos.csv --embeddings clip.npy --noise symmetric:0.5,asymmetric:0.4

    stct bench cifar10.npz --map cifar10 --seeds 3

    right %: labels that are right after the correction. F1: of finding the wrong
    labels (a changed label is a find). AUROC: of ranking them first. s, MB: seconds,
    and peak memory above the embeddings.
    """
    from stct.bench.command import Options, run_bench
    from stct.console import progress
    from stct.data.results import as_json

    asked = Options(
        source,
        embeddings,
        embeddings_column,
        label_column,
        id_column,
        noisy_column or [],
        noise_list,
        flips,
        methods,
        seeds,
        output,
        overwrite,
    )
    with progress("Benchmarking", quiet=quiet or json_output) as report:
        summary, lines = run_bench(asked, report)
    if json_output:
        print(as_json(summary), end="")
    elif not quiet:
        print("\n".join(lines))
        for note in summary["notes"]:
            print(f"note: {note}")
        print(f"files in {output}: {', '.join(summary['files'])}")


@app.command()
def demo(
    output: options.OutFolder = Path("demo-output"),
    seed: options.Seed = 0,
    overwrite: options.OverwriteFolder = False,
    training: options.Training = True,
) -> None:
    """Correct 1,797 handwritten digits of which half have a random label.

    With stct[train] installed the whole method runs, SimCLR and all, in about a
    minute; otherwise, or with --no-training, labels are corrected from the pixels in
    seconds. Downloads nothing and leaves data and outputs in DIR.
    """
    from stct.console import show_facts, training_progress

    if training and not _missing(*TRAINING):
        from stct.train.demo import run_training_demo

        with training_progress(quiet=False) as show:
            facts, command = run_training_demo(
                output, overwrite=overwrite, seed=seed, show=show
            )
        show_facts("1,797 digits, half of the training labels drawn at random:", facts)
        print(f"Files are in {output}. To do the same yourself:\n  {command}")
        return
    from stct.demo import run_demo

    result = run_demo(output, overwrite=overwrite, seed=seed)
    show_facts("1,797 digits, half of the labels drawn at random:", result.facts)
    print("For example")
    for line in result.examples:
        print(f"  {line}")
    print(f"Look at {output / 'report.html'}")
    print(f"Files are in {output}. To do the same yourself:\n  {result.command}")


@app.command()
def download(
    name: options.DataSetName,
    folder: options.DownloadFolder = Path(),
    mirror: options.Mirror = None,
    quiet: options.Quiet = False,
) -> None:
    """Download CIFAR-10 or CIFAR-100, about 170 MB, and check its MD5.

    A file that is there already is kept. No other command downloads data.

    stct download cifar10 data

    stct train data/cifar-10-python.tar.gz --preset cpu
    """
    from stct.console import progress
    from stct.data.download import HOME, download_cifar

    with progress(f"Downloading {name.value}", quiet=quiet) as report:
        path = download_cifar(name.value, folder, home=mirror or HOME, progress=report)
    if not quiet:
        print(f"{path}: there, with the published MD5")


@app.command()
def plan(
    table: options.OptionalTable = None,
    embeddings: options.EmbeddingsFile = None,
    embeddings_column: options.EmbeddingsColumn = None,
    label_column: options.LabelColumn = "label",
    id_column: options.IdColumn = None,
    rows: options.NumRows = None,
    columns: options.NumColumns = None,
    classes: options.NumClasses = None,
    workers: options.NumWorkers = None,
    json_output: options.AsJson = False,
) -> None:
    """Say what 'stct correct' will cost, from two seconds of measuring here.

    stct plan photos.csv --embeddings shards

    stct plan --rows 1e9 --columns 512 --classes 1000 --workers 256
    """
    from stct.console import show_plan
    from stct.plan import Problem, make_plan

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


def _engine(name: options.EngineName, ray_address: str | None) -> Any:
    """Connect to where rows are worked on, before anything is read."""
    if name is options.EngineName.LOCAL:
        if ray_address is not None:
            raise ValueError("--ray-address goes with --engine ray")
        return name.value
    from stct.on_ray import RayEngine

    engine = RayEngine(ray_address)
    engine.start()
    return engine


def _load_encoder(name: str) -> Any:
    """Load an encoder by name, or the one in a model of 'stct train'."""
    if not Path(name).exists():
        from stct.encoders import load_encoder

        return load_encoder(name)
    _require("torch", "lightning_fabric", "safetensors", extra="train")
    from stct.train.as_encoder import own_encoder

    return own_encoder(Path(name))


def _check_output(output: Path, table: Path, *, overwrite: bool) -> None:
    from stct.data.outputs import check_file
    from stct.data.tables import table_format

    if output.suffix.lower() != f".{table_format(table)}":
        raise ValueError(f"{output}: must end in .{table_format(table)} like {table}")
    check_file(output, overwrite=overwrite)


def _write_table_file(output: Path, table: Any, *, overwrite: bool) -> None:
    from stct.data.outputs import whole_file
    from stct.data.tables import write_table

    with whole_file(output, overwrite=overwrite) as path:
        write_table(path, table)
