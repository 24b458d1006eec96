"""Commands that train a network on noisy images, and use it: train and predict."""

import sys

import typer

from stct.cli.extras import TRAINING, require
from stct.cli.options import shared
from stct.cli.options import training as options

_WITH_RESUME = {"resume", "encoder", "save_every", "quiet", "json_output"}


def train(
    context: typer.Context,
    data: options.ImageData = None,
    preset: options.Preset = "cpu",
    assignments: options.Assignments = None,
    config: options.ConfigFile = None,
    encoder: options.OwnEncoder = None,
    precision: options.Precision = None,
    test: options.TestData = None,
    init: options.InitFrom = None,
    resume: options.ResumeFrom = None,
    seed: shared.Seed = 0,
    label_column: shared.LabelColumn = "label",
    image_column: options.PathColumn = None,
    id_column: shared.IdColumn = None,
    skip_bad: shared.SkipBad = False,
    save_every: options.SaveEvery = 60.0,
    output: options.RunFolder = None,
    quiet: shared.Quiet = False,
    json_output: shared.AsJson = False,
) -> None:
    """Train on noisy images: a classifier and corrected labels.

    SimCLR first, then noisy meta correction and semi-supervised learning in turn.

    [bold]Examples[/bold]

    stct train photos/ --preset cpu -o run

    stct train photos.csv --set srl.steps=500 --set num_rounds=6

    stct train photos/ --config run/config.toml --seed 1

    stct train --resume run

    torchrun --nproc-per-node 2 -m stct train photos/ -o run

    [bold]DIR gets[/bold]

    model.safetensors, labels.*, soft_labels.npz, patch.csv, report.html, review.npz
    and summary.json at the end; config.json, metrics.jsonl, the labels of each round,
    pretrained.safetensors and a checkpoint on the way.
    """
    from stct.console import show_training, training_progress

    require(*TRAINING, extra="train")
    from stct.train.command import new_request, next_folder, run_training

    request = None
    if resume is None:
        if data is None:
            raise ValueError("give DATA to train on, or --resume DIR")
        own = [] if precision is None else [f"precision={precision}"]
        request = new_request(
            data,
            preset_name=preset,
            assignments=[*own, *(assignments or [])],
            config_file=config,
            encoder=encoder,
            seed=seed,
            test=test,
            init=init,
            label_column=label_column,
            image_column=image_column,
            id_column=id_column,
            skip_bad=skip_bad,
        )
        folder = output or next_folder(data)
    else:
        _refuse_settings(context)
        folder = resume

    def say(text: str) -> None:
        if not (quiet or json_output):
            print(text, file=sys.stderr, flush=True)

    with training_progress(quiet=quiet or json_output) as show:
        summary = run_training(
            folder,
            request,
            show=show,
            save_every=save_every,
            say=say,
            encoder=encoder,
        )
    if not summary:  # one of several processes, not the one that writes
        return
    if json_output:
        from stct.data.summary import as_json

        print(as_json(summary), end="")
    elif not quiet:
        show_training(summary, folder)


def _refuse_settings(context: typer.Context) -> None:
    """Refuse what a run that goes on would not listen to."""
    given = [
        parameter.opts[0] if parameter.opts[0].startswith("-") else "DATA"
        for parameter in context.command.params
        if parameter.name not in _WITH_RESUME
        and getattr(context.get_parameter_source(parameter.name), "name", "")
        == "COMMANDLINE"
    ]
    if given:
        raise ValueError(
            f"--resume takes no {' and no '.join(given)}: the run has its own"
        )


def predict(
    model: options.ModelFile,
    data: options.PredictData,
    output: options.PredictFile,
    embeddings: shared.EmbeddingsFile = None,
    embeddings_column: shared.EmbeddingsColumn = None,
    encoder: options.EncoderNow = None,
    image_column: options.PathColumn = None,
    id_column: shared.IdColumn = None,
    sep: shared.Separator = None,
    encoding: shared.Encoding = None,
    skip_bad: options.LeaveOut = False,
    overwrite: options.ReplaceFile = False,
    quiet: shared.Quiet = False,
) -> None:
    """Label new rows or images, with a model of 'stct correct' or 'stct train'.

    FILE gets id, label, confidence and one column of probabilities for each class.
    With an output folder of 'stct correct', images, texts and columns are embedded as
    they were there; rows of --embeddings need the same columns. With a run of 'stct
    train', images are given the size and the colours of those it has learnt from.

    [bold]Examples[/bold]

    stct predict stct-output new.csv --embeddings new.npy -o predictions.csv

    stct predict stct-output new-photos/ -o predictions.csv

    stct predict run new-photos/ -o predictions.csv
    """
    from stct.cli.later import is_corrector, predict_later
    from stct.console import say
    from stct.data.outputs import check_file

    check_file(output, overwrite=overwrite)
    if is_corrector(model):
        rows, notes = predict_later(
            model,
            data,
            output,
            overwrite=overwrite,
            embeddings=embeddings,
            embeddings_column=embeddings_column,
            encoder=encoder,
            image_column=image_column,
            id_column=id_column,
            sep=sep,
            encoding=encoding,
            skip_bad=skip_bad,
            quiet=quiet,
        )
        what = "rows"
    else:
        given = {
            "--embeddings": embeddings,
            "--embeddings-column": embeddings_column,
            "--encoder": encoder,
            "--sep": sep,
            "--encoding": encoding,
        }
        for option, value in given.items():
            if value is not None:
                raise ValueError(f"{option} goes with an output folder of stct correct")
        require(*TRAINING, extra="train")
        from stct.console import progress
        from stct.train.predictions import predict_to_file

        with progress("Predicting", quiet=quiet):
            rows, notes = predict_to_file(
                model,
                data,
                output,
                overwrite=overwrite,
                image_column=image_column,
                id_column=id_column,
                skip_bad=skip_bad,
            )
        what = "images"
    if not quiet:
        say(f"{output}: labels of {rows:,} {what}")
        for note in notes:
            say(f"  note: {note}")
