"""Commands to try ``stct`` out: bench, on your own labels, demo, and download."""

import json
from pathlib import Path

from stct.cli.extras import TRAINING, missing
from stct.cli.options import shared
from stct.cli.options import trying as options


def bench(
    source: options.BenchSource,
    embeddings: shared.EmbeddingsFile = None,
    embeddings_column: shared.EmbeddingsColumn = None,
    label_column: options.BenchLabelColumn = None,
    id_column: shared.IdColumn = None,
    noisy_column: options.NoisyColumns = None,
    noise_list: options.NoiseList = "symmetric:0.2,symmetric:0.5,asymmetric:0.4",
    flips: options.BenchFlipMap = None,
    methods: options.Battery = None,
    seeds: options.NumSeeds = 1,
    output: shared.OutFolder = Path("stct-bench"),
    overwrite: shared.OverwriteFolder = False,
    quiet: shared.Quiet = False,
    json_output: shared.AsJson = False,
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
    from stct.console import progress, say
    from stct.data.summary import as_json

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
        for line in [*lines, *(f"note: {note}" for note in summary["notes"])]:
            say(line)
        say(f"files in {output}: {', '.join(summary['files'])}")


def demo(
    output: shared.OutFolder = Path("demo-output"),
    seed: shared.Seed = 0,
    overwrite: shared.OverwriteFolder = False,
    training: options.Training = True,
    quiet: shared.Quiet = False,
    json_output: shared.AsJson = False,
) -> None:
    r"""Correct 1,797 handwritten digits of which half have a random label.

    With stct\[train] installed the whole method runs, SimCLR and all, in about a
    minute; otherwise, or with --no-training, labels are corrected from the pixels in
    seconds. Downloads nothing and leaves data and outputs in DIR.
    """
    from stct.console import progress, show_facts, training_progress

    silent = quiet or json_output
    if training and not missing(*TRAINING):
        from stct.train.demo import run_training_demo

        with training_progress(quiet=silent) as show:
            result = run_training_demo(
                output, overwrite=overwrite, seed=seed, show=show
            )
    else:
        from stct.demo import run_demo

        with progress("Correcting", quiet=silent):
            result = run_demo(output, overwrite=overwrite, seed=seed)
    if json_output:
        about = {"folder": str(output), "command": result.command}
        print(json.dumps({**result.numbers, **about}))
    elif not quiet:
        show_facts(result.title, result.facts)
        if result.examples:
            print("\n  ".join(["For example", *result.examples]))
        print(f"Files are in {output}. To do the same yourself:\n  {result.command}")


def download(
    name: options.DataSetName,
    folder: options.DownloadFolder = Path(),
    mirror: options.Mirror = None,
    quiet: shared.Quiet = False,
) -> None:
    """Download CIFAR-10 or CIFAR-100, about 170 MB, and check its MD5.

    A file that is there already is kept. No other command downloads data.

    stct download cifar10 data

    stct train data/cifar-10-python.tar.gz --preset cpu
    """
    from stct.console import progress, say
    from stct.data.download import HOME, download_cifar

    with progress(f"Downloading {name.value}", quiet=quiet) as report:
        path = download_cifar(name.value, folder, home=mirror or HOME, progress=report)
    if not quiet:
        say(f"{path}: there, with the published MD5")
