"""Commands that train a network on noisy images, and use it: train and predict."""

import typer

from stct.cli.extras import TRAINING, require
from stct.cli.options import shared
from stct.cli.options import training as options

_WITH_RESUME = {"resume", "save_every", "quiet", "json_output"}


def train(
    context: typer.Context,
    data: options.ImageData = None,
    preset: options.Preset = "cpu",
    assignments: options.Assignments = None,
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
    else:
        _refuse_settings(context)
        folder = resume
    with training_progress(quiet=quiet or json_output) as show:
        summary = run_training(folder, request, show=show, save_every=save_every)
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
    image_column: options.PathColumn = None,
    id_column: shared.IdColumn = None,
    skip_bad: options.LeaveOut = False,
    overwrite: options.ReplaceFile = False,
    quiet: shared.Quiet = False,
) -> None:
    """Label new images with a trained model.

    FILE gets id, label, confidence and one column of probabilities for each class. The
    images are given the size and the colours of those the model has learnt from.

    [bold]Example[/bold]

    stct predict run new-photos/ -o predictions.csv
    """
    require(*TRAINING, extra="train")
    from stct.console import progress
    from stct.data.outputs import check_file
    from stct.train.predictions import predict_to_file

    check_file(output, overwrite=overwrite)
    with progress("Predicting", quiet=quiet):
        done = predict_to_file(
            model,
            data,
            output,
            overwrite=overwrite,
            image_column=image_column,
            id_column=id_column,
            skip_bad=skip_bad,
        )
    if not quiet:
        print(f"{output}: labels of {done.rows:,} images")
        for note in done.notes:
            print(f"  note: {note}")
